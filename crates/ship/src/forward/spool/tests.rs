//! Spools before a server of a few lines, over several runs.

use std::fs;

use super::*;
use crate::forward::tests::{Behaviour, Server, settings};
use crate::forward::{Settings, run};

const LINE_BYTES: usize = 1000;

/// Lines with numbers, of a length that makes some of them a batch.
fn lines(numbers: std::ops::Range<usize>) -> Vec<u8> {
    let line = |n: usize| format!("{n:07} {}\n", "x".repeat(LINE_BYTES - 9));
    numbers.map(line).collect::<String>().into_bytes()
}

struct Bench {
    directory: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        Bench {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn settings(&self, server: &Server) -> Settings {
        let mut settings = settings(&[server]);
        settings.backoff.give_up_after = Some(Duration::ZERO);
        settings.spool = Some(SpoolSettings {
            path: self.directory.path().join("spool"),
            bytes_max: 4 << 20,
            drops_when_full: false,
        });
        settings
    }

    /// Forwards these lines from a file.
    fn run(&self, settings: &mut Settings, lines: &[u8]) -> Result<Totals, ForwardError> {
        let path = self.directory.path().join("input");
        fs::write(&path, lines).unwrap();
        settings.inputs = vec![path];
        run(settings, &Arc::default())
    }

    fn files(&self) -> usize {
        let journal = self.directory.path().join("spool/journal");
        fs::read_dir(journal).map_or(0, Iterator::count)
    }
}

#[test]
fn what_no_server_took_is_sent_by_the_next_run() {
    let bench = Bench::new();
    let gone = Server::gone();
    let error = bench
        .run(&mut bench.settings(&gone), &lines(0..2500))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("2,500 records") && error.contains("next run"),
        "{error}"
    );
    assert!(bench.files() > 0);
    let server = Server::start(&[]);
    let totals = bench
        .run(&mut bench.settings(&server), &lines(2500..2600))
        .unwrap();
    assert_eq!(server.text(), lines(0..2600));
    assert_eq!((totals.accepted, totals.rejected), (2600, 0));
    assert_eq!(bench.files(), 0, "what is acknowledged goes");
    // Nobody could have them, so they were new; and those of the second run have its own epoch.
    let names = server.names.lock().unwrap();
    assert!(names.len() >= 3 && names.iter().all(|id| id.attempt == 0));
    assert_eq!(
        names.iter().filter(|id| id.epoch == names[0].epoch).count(),
        names.len() - 1
    );
}

#[test]
fn what_may_have_been_sent_is_sent_as_a_retry() {
    let bench = Bench::new();
    let silent = Server::start(&[Behaviour::Vanish; 1000]);
    bench
        .run(&mut bench.settings(&silent), &lines(0..2500))
        .unwrap_err();
    let first = silent.names.lock().unwrap()[0];
    let server = Server::start(&[]);
    bench.run(&mut bench.settings(&server), b"").unwrap();
    assert_eq!(server.text(), lines(0..2500));
    let names = server.names();
    assert_eq!(names[0], (first.sequence, 1));
    assert!(
        names.len() > 1 && names[1..].iter().all(|(_, attempt)| *attempt == 0),
        "{names:?}"
    );
    assert_eq!(server.names.lock().unwrap()[0].epoch, first.epoch);
}

#[test]
fn without_its_marks_everything_is_a_retry() {
    let bench = Bench::new();
    bench
        .run(&mut bench.settings(&Server::gone()), &lines(0..2500))
        .unwrap_err();
    fs::remove_dir_all(bench.directory.path().join("spool/state")).unwrap();
    let server = Server::start(&[]);
    bench.run(&mut bench.settings(&server), b"").unwrap();
    assert_eq!(server.text(), lines(0..2500));
    assert!(server.names().iter().all(|(_, attempt)| *attempt == 1));
}

#[test]
fn a_full_spool_makes_reading_wait() {
    let bench = Bench::new();
    // The server is away for some time, and there is more than the spool holds.
    let server = Server::start(&[Behaviour::Status(503); 20]);
    let mut settings = bench.settings(&server);
    settings.backoff.give_up_after = None;
    let totals = bench.run(&mut settings, &lines(0..12_000)).unwrap();
    assert_eq!((totals.accepted, totals.dropped), (12_000, 0));
    assert_eq!(server.text(), lines(0..12_000));
}

#[test]
fn a_full_spool_drops_what_comes_if_it_may_and_says_so() {
    let bench = Bench::new();
    let mut settings = bench.settings(&Server::gone());
    settings.spool.as_mut().unwrap().drops_when_full = true;
    bench.run(&mut settings, &lines(0..12_000)).unwrap_err();
    let server = Server::start(&[]);
    settings.addresses = super::super::tests::settings(&[&server]).addresses;
    bench.run(&mut settings, b"last\n").unwrap();
    let text = String::from_utf8(server.text()).unwrap();
    let kept = text
        .lines()
        .filter(|line| line.len() == LINE_BYTES - 1)
        .count();
    assert!((2000..6000).contains(&kept), "{kept} records were kept");
    assert!(
        text.as_bytes().starts_with(&lines(0..kept)),
        "the oldest are kept, without a hole"
    );
    assert!(text.ends_with("last\n"), "there is room again");
}

/// What was dropped within a run is said in the log, once there is room.
#[test]
fn the_log_says_what_was_dropped() {
    let bench = Bench::new();
    let server = Server::start(&[Behaviour::Status(503); 3]);
    let mut settings = bench.settings(&server);
    settings.backoff.give_up_after = None;
    let (own, producer) = (Producer::new().unwrap(), Producer::new().unwrap());
    let pause = Pause(Arc::default());
    let spool = SpoolSettings {
        drops_when_full: true,
        ..settings.spool.clone().unwrap()
    };
    let sender = Sender::new(&settings, pause, own);
    let mut spool = Spool::open(&spool, &settings, sender, producer).unwrap();
    spool.dropped_unsaid = 1234;
    spool
        .send(Records::Lines(b"next\n"), &Origin::default())
        .unwrap();
    let drained = spool.finish().unwrap();
    assert!(drained.outcome.is_ok());
    let said = "logpond: 1234 records dropped because the spool was full\nnext\n";
    assert_eq!(server.text(), said.as_bytes());
}

#[test]
fn a_spool_has_one_user() {
    let bench = Bench::new();
    let server = Server::start(&[]);
    let settings = bench.settings(&server);
    let open = || {
        let sender = Sender::new(&settings, Pause(Arc::default()), Producer::new().unwrap());
        let spool = settings.spool.as_ref().unwrap();
        Spool::open(spool, &settings, sender, Producer::new().unwrap())
    };
    let first = open().unwrap();
    let Err(error) = open() else {
        panic!("two forwarders use one spool");
    };
    assert!(error.to_string().contains("another"), "{error}");
    first.finish().unwrap();
    open().unwrap().finish().unwrap();
}

#[test]
fn what_is_not_replicated_stays_in_the_spool() {
    let bench = Bench::new();
    let server = Server::start(&[Behaviour::NotYet; 1000]);
    let mut settings = bench.settings(&server);
    // The end waits for one server only; the rest goes on later.
    bench.run(&mut settings, b"a\n").unwrap();
    assert_eq!((bench.files(), server.names()), (1, vec![(0, 0)]));
    // The next run does not know what became of it; the batch is the same.
    settings.waits_for_replication = true;
    settings.backoff.give_up_after = None;
    let server = Server::start(&[
        Behaviour::NotYet,
        Behaviour::NotYet,
        Behaviour::Lost,
        Behaviour::NotYet,
    ]);
    settings.addresses = crate::forward::tests::settings(&[&server]).addresses;
    bench.run(&mut settings, b"").unwrap();
    assert_eq!((bench.files(), server.left()), (0, 0));
    // What a server lost before there was a copy is sent again.
    assert_eq!(server.names(), [(0, 1), (0, 1)]);
}

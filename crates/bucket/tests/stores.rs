//! One suite for all stores: a directory, and a server that speaks S3, also through a network that
//! fails.

mod relay;
mod s3_server;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use logpond_bucket::{
    Chains, Created, FailureKind, Location, ObjectEntry, Objects, Store, probe, sweep,
};
use logpond_cluster::chain::{Change, Day, Listed, Outcome, Settled, segment_name};
use logpond_record::{Id, Incarnation, SourceId, Timestamp};
use logpond_segment::disk::ReadAt;

use relay::{Fault, Relay};
use s3_server::S3Server;

const NOON: Timestamp = Timestamp(1_763_899_200_000_000_000);

fn names(entries: &[ObjectEntry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.name.as_str()).collect()
}

/// A file of the local disk.
struct Local(File);

impl Local {
    fn new(bytes: &[u8]) -> Local {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Local(file)
    }
}

impl ReadAt for Local {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }
}

/// What every store does.
fn check(objects: &dyn Objects) {
    let body = |text: &'static str| Bytes::from_static(text.as_bytes());
    assert_eq!(objects.get("a/1", 100).unwrap(), None);
    assert_eq!(objects.create("a/1", body("one")).unwrap(), Created::New);
    assert_eq!(objects.create("a/1", body("two")).unwrap(), Created::Exists);
    assert_eq!(objects.get("a/1", 3).unwrap(), Some(body("one")));
    let error = objects.get("a/1", 2).unwrap_err();
    assert!(
        format!("{:?}", error.source).contains("more than 2 bytes"),
        "{error:?}"
    );
    objects.put("a/1", body("three")).unwrap();
    assert_eq!(objects.read("a/1", 1, 3).unwrap(), body("hre"));
    assert!(objects.read("a/1", 3, 3).is_err(), "beyond the end");
    assert_eq!(
        objects.read("a/0", 0, 1).unwrap_err().kind,
        FailureKind::Missing
    );
    for name in ["a/3", "a/2", "b/1", "ab/1"] {
        objects.put(name, body("x")).unwrap();
    }
    let listed = objects.list("a/", None).unwrap();
    assert_eq!(names(&listed), ["a/1", "a/2", "a/3"]);
    assert_eq!(listed[0].bytes, 5);
    assert_eq!(
        names(&objects.list("a/", Some("a/1")).unwrap()),
        ["a/2", "a/3"]
    );
    objects.remove("a/2").unwrap();
    objects.remove("a/2").unwrap();
    assert_eq!(names(&objects.list("a/", None).unwrap()), ["a/1", "a/3"]);
    for bytes in [0usize, 1000, (16 << 20) + 5] {
        let content: Vec<u8> = (0..bytes).map(|at| ((at * 31) >> 3) as u8).collect();
        objects.put_file("large", &Local::new(&content)).unwrap();
        let found = objects.get("large", 64 << 20).unwrap().unwrap();
        assert!(found == content, "{bytes} bytes");
    }
    probe(objects, 7).unwrap();
    assert!(objects.list("probe/", None).unwrap().is_empty());
}

fn listed(id: u128, sequences: impl IntoIterator<Item = u64>) -> Listed {
    let source = |sequence| SourceId {
        incarnation: Incarnation(7),
        sequence,
    };
    Listed {
        id: Id(id),
        bytes: 3,
        index_from: 1,
        rows: 1,
        line_bytes: 9,
        time: (NOON, NOON),
        received: (NOON, NOON),
        cold: false,
        sources: sequences.into_iter().map(source).collect(),
    }
}

fn nonce() -> u128 {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).unwrap();
    u128::from_ne_bytes(bytes)
}

/// Several writers list segments of their own and some that others list, too.
fn race(stores: &[Arc<dyn Objects>], each: u64) {
    let day = Day::of(NOON);
    thread::scope(|scope| {
        for (writer, store) in (0u64..).zip(stores) {
            scope.spawn(move || {
                let mut chains = Chains::new(Arc::clone(store), nonce);
                for number in 0..each {
                    // Every third one is that of the next writer, too.
                    let of = if number % 3 == 0 {
                        100 * ((writer + 1) % 2)
                    } else {
                        100 * writer
                    };
                    let id = u128::from(writer * 1000 + number);
                    let segment = listed(id, [of + number]);
                    let change = || Change::List(segment.clone());
                    // A store that fails for longer than attempts are made is asked again later.
                    while let Ok(Outcome::Contended) | Err(_) = chains.commit(day, change(), NOON) {
                    }
                }
            });
        }
    });
    let mut chains = Chains::new(Arc::clone(&stores[0]), nonce);
    chains.refresh().unwrap();
    let head = &chains.heads()[&day];
    let mut sources: Vec<u64> = head
        .segments
        .iter()
        .flat_map(|s| s.sources.iter())
        .map(|s| s.sequence)
        .collect();
    let all = sources.len();
    sources.sort_unstable();
    sources.dedup();
    assert_eq!(sources.len(), all, "a source is listed twice");
    let mut expected: Vec<u64> = (0..each).flat_map(|n| [n, 100 + n]).collect();
    expected.sort_unstable();
    assert_eq!(sources, expected);
}

#[test]
fn a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let location: Location = format!("file:{}/deep/er", directory.path().display())
        .parse()
        .unwrap();
    let store: Arc<dyn Objects> = Arc::new(Store::open(&location, &[]).unwrap());
    check(&*store);
    race(&[Arc::clone(&store), store], 24);
}

#[test]
fn a_server_that_speaks_s3() {
    let Some(server) = S3Server::start() else {
        return;
    };
    let store: Arc<dyn Objects> = Arc::new(server.store(server.address(), "a/prefix"));
    check(&*store);
    let other: Arc<dyn Objects> = Arc::new(server.store(server.address(), "a/prefix"));
    race(&[store, other], 24);
    let elsewhere = server.store(server.address(), "another");
    assert!(elsewhere.list("a/", None).unwrap().is_empty());
}

#[test]
fn a_store_that_ignores_conditions_is_refused() {
    let Some(server) = S3Server::start() else {
        return;
    };
    let relay = Relay::start(server.address(), |_, _| Fault::Unconditional);
    let error = probe(&server.store(relay.address(), "p"), 7).unwrap_err();
    assert_eq!(error.kind, FailureKind::Unsupported);
    assert!(
        error.source.to_string().contains("conditional writes"),
        "{error:?}"
    );
}

#[test]
fn writers_race_over_a_network_that_fails() {
    let Some(server) = S3Server::start() else {
        return;
    };
    // One request in three meets something, each kind of which is met.
    let faults = |number: u64, head: &str| match number % 21 {
        1 => Fault::Answer(500),
        4 => Fault::Answer(503),
        7 => Fault::Answer(429),
        10 => Fault::LostReply,
        13 => Fault::Closed,
        15 => Fault::Slow,
        16 if head.contains("if-none-match") => Fault::Answer(412),
        19 if head.contains("if-none-match") => Fault::Answer(409),
        _ => Fault::None,
    };
    let relays = [
        Relay::start(server.address(), faults),
        Relay::start(server.address(), faults),
    ];
    let stores = relays.each_ref().map(|relay| {
        let store: Arc<dyn Objects> = Arc::new(server.store(relay.address(), "race"));
        store
    });
    race(&stores, 24);
    let met: u64 = relays.iter().map(Relay::faults).sum();
    assert!(met >= 30, "{met} faults were met");
}

#[test]
fn wrong_credentials_and_unreachable_stores_are_named() {
    let Some(server) = S3Server::start() else {
        return;
    };
    let relay = Relay::start(server.address(), |_, _| Fault::Answer(403));
    let error = server
        .store(relay.address(), "p")
        .list("m/", None)
        .unwrap_err();
    assert_eq!(error.kind, FailureKind::Refused, "{error:?}");
    assert!(error.to_string().contains("credentials"), "{error}");
}

#[test]
fn what_nobody_needs_is_swept() {
    let directory = tempfile::tempdir().unwrap();
    let location: Location = format!("file:{}", directory.path().display())
        .parse()
        .unwrap();
    let store: Arc<dyn Objects> = Arc::new(Store::open(&location, &[]).unwrap());
    let (day, mut chains) = (Day::of(NOON), Chains::new(Arc::clone(&store), nonce));
    for (id, sequences) in [(1, 0..2), (2, 2..4), (3, 0..4), (9, 8..9)] {
        store
            .put(&segment_name(day, Id(id)), Bytes::from_static(b"abc"))
            .unwrap();
        if id != 9 {
            let outcome = chains
                .commit(day, Change::List(listed(id, sequences)), NOON)
                .unwrap();
            assert!(matches!(outcome, Outcome::Written(_)), "{outcome:?}");
        }
    }
    let again = chains
        .commit(day, Change::List(listed(3, 0..4)), NOON)
        .unwrap();
    assert!(
        matches!(again, Outcome::Settled(Settled::Done, _)),
        "{again:?}"
    );
    let objects = || {
        let all = [
            store.list("segments/", None).unwrap(),
            store.list("m/", None).unwrap(),
        ];
        all.map(|entries| entries.len())
    };
    let hour = Duration::from_secs(3600);
    let swept = sweep(&*store, &mut chains, hour, NOON).unwrap();
    assert_eq!((swept.links, swept.dropped, swept.orphans), (0, 0, 0));
    assert_eq!(objects(), [4, 3]);
    let swept = sweep(&*store, &mut chains, Duration::ZERO, NOON).unwrap();
    assert_eq!((swept.links, swept.dropped, swept.orphans), (2, 2, 1));
    assert_eq!(
        names(&store.list("segments/", None).unwrap()),
        [segment_name(day, Id(3))]
    );
    let state = || {
        let mut fresh = Chains::new(Arc::clone(&store), nonce);
        fresh.refresh().unwrap();
        let head = &fresh.heads()[&day];
        (head.number, head.segments.len(), head.dropped.len())
    };
    assert_eq!(state(), (5, 1, 1));
    // The writer of the one that nobody had listed comes back.
    let late = |chains: &mut Chains| chains.commit(day, Change::List(listed(9, 8..9)), NOON);
    assert!(matches!(
        late(&mut chains),
        Ok(Outcome::Settled(Settled::Dropped, _))
    ));
    sweep(&*store, &mut chains, Duration::ZERO, NOON).unwrap();
    assert_eq!(state(), (6, 1, 0));
    assert!(matches!(late(&mut chains), Ok(Outcome::Written(_))));
}

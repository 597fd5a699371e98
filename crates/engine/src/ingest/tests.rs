use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use logpond_record::{EntryKind, Incarnation, Labels};
use logpond_segment::disk::Disk;
use logpond_segment::journal;
use logpond_segment::mem_disk::MemDisk;

use super::*;
use logpond_host::shutdown::{self, Shutdown};

/// What the stand-in journal was told and what it shall answer.
#[derive(Default)]
pub(crate) struct Script {
    calls: Mutex<Vec<&'static str>>,
    synced: Mutex<Vec<Vec<u8>>>,
    labels: Mutex<Vec<Labels>>,
    free_bytes: AtomicUsize,
    fail_syncs: AtomicUsize,
    /// The writer passes only while this can be locked.
    gate: Mutex<()>,
}

impl Script {
    fn new() -> Arc<Script> {
        let script = Script::default();
        script.free_bytes.store(1 << 40, SeqCst);
        Arc::new(script)
    }

    fn log(&self, call: &'static str) {
        self.calls.lock().unwrap().push(call);
    }
}

/// The line of which the journal panics.
const PANICS: &[u8] = b"panic";

struct FakeJournal {
    script: Arc<Script>,
    unsynced: Vec<Vec<u8>>,
    count: u64,
    durable_mark: u64,
}

impl Journal for FakeJournal {
    fn append(
        &mut self,
        batch: &Batch,
        _id: Option<BatchId>,
        now: Timestamp,
    ) -> Result<AppendReceipt, WriteError> {
        drop(self.script.gate.lock());
        self.script.log("append");
        assert!(batch.iter().all(|line| line != PANICS), "a defect");
        self.unsynced.extend(batch.iter().map(<[u8]>::to_vec));
        self.script
            .labels
            .lock()
            .unwrap()
            .push(batch.labels.clone());
        let first_id = Id::new(now.unix_ms() as u64, Incarnation(7), self.count);
        self.count += batch.len() as u64;
        let count = batch.len() as u64;
        Ok(AppendReceipt {
            first_id,
            count,
            source: None,
            is_known: false,
            mark: self.count,
        })
    }

    fn sync(&mut self) -> Result<(), WriteError> {
        self.script.log("sync");
        let unsynced = std::mem::take(&mut self.unsynced);
        if self.script.fail_syncs.load(SeqCst) > 0 {
            self.script.fail_syncs.fetch_sub(1, SeqCst);
            return Err(WriteError::Disk {
                operation: "sync",
                path: "journal/x".to_owned(),
                error: io::ErrorKind::Other.into(),
            });
        }
        self.durable_mark = self.count;
        self.script.synced.lock().unwrap().extend(unsynced);
        Ok(())
    }

    fn rotate_if_due(&mut self, _now: Timestamp) -> Result<(), WriteError> {
        Ok(())
    }

    fn close(&mut self) -> Result<(), WriteError> {
        self.script.log("close");
        self.sync()
    }

    fn end_incarnation(&mut self) -> Result<(), WriteError> {
        self.close()
    }

    fn durable_mark(&self) -> u64 {
        self.durable_mark
    }

    fn needs_attention(&self) -> bool {
        true
    }

    fn visible(&self) -> Arc<Visible> {
        Arc::default()
    }

    fn space(&self) -> io::Result<Space> {
        let free_bytes = self.script.free_bytes.load(SeqCst) as u64;
        Ok(Space {
            free_bytes,
            total_bytes: 1 << 40,
        })
    }
}

struct Stand {
    script: Arc<Script>,
    ingest: Ingest,
    writer: Writer,
    changes: Changes,
    metrics: Arc<Metrics>,
    shutdown: Shutdown,
}

/// What stops a server if its writer panics, and what learns of it.
fn stop_at_panic() -> (StopAtPanic, Shutdown) {
    let (stopper, shutdown) = shutdown::pair();
    (StopAtPanic(Arc::new(stopper)), shutdown)
}

/// The bytes that may wait for the disk.
const QUEUE_BYTES: usize = 32 << 20;

fn parts(news: &News, metrics: &Arc<Metrics>, clock: fn() -> Timestamp) -> Parts {
    Parts {
        news: news.clone(),
        metrics: metrics.clone(),
        clock,
        replication: Arc::new(OneCopy),
        gate: Gate::default(),
        declared: Labels::new(),
        rules: None,
        queue_bytes: QUEUE_BYTES,
    }
}

fn stand() -> Stand {
    let script = Script::new();
    let journal = FakeJournal {
        script: script.clone(),
        unsynced: Vec::new(),
        count: 0,
        durable_mark: 0,
    };
    let news = News::default();
    let metrics = Arc::new(Metrics::default());
    let clock = || Timestamp(1_772_409_600_000_000_000);
    let (at_panic, shutdown) = stop_at_panic();
    let parts = parts(&news, &metrics, clock);
    let (ingest, writer) = start(journal, parts, at_panic).unwrap();
    Stand {
        script,
        ingest,
        writer,
        changes: news.grown,
        metrics,
        shutdown,
    }
}

fn batch(lines: &[&str]) -> Batch {
    let mut batch = Batch::new(EntryKind::Line, Labels::new());
    lines.iter().for_each(|l| batch.push(l.as_bytes()));
    batch
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
        .block_on(future)
}

#[test]
fn a_durable_batch_is_synced_and_visible_when_it_is_accepted() {
    let s = stand();
    let accepted = block_on(s.ingest.submit(batch(&["a", "bc"]), true)).unwrap();
    assert_eq!(accepted.count, 2);
    assert_eq!(*s.script.calls.lock().unwrap(), ["append", "sync"]);
    assert_eq!(s.changes.count(), 1);
    drop(s.ingest);
    s.writer.join().unwrap();
    assert_eq!(s.script.calls.lock().unwrap()[2..], ["close", "sync"]);
}

#[test]
fn a_sender_declares_no_result_of_a_rule() {
    let s = stand();
    let of_rule: Labels = vec![("app".into(), "x".into()), (RULE_FIELD.into(), "r".into())];
    let mut batch = Batch::new(EntryKind::Json, of_rule.clone());
    batch.push(b"{}");
    block_on(s.ingest.submit(batch.clone(), true)).unwrap();
    block_on(s.ingest.submit_all([(batch.clone(), None)])).unwrap();
    block_on(s.ingest.submit_own(batch)).unwrap();
    let renamed: Labels = vec![
        ("app".into(), "x".into()),
        ("_rule@label".into(), "r".into()),
    ];
    let written = s.script.labels.lock().unwrap();
    assert_eq!(*written, [renamed.clone(), renamed, of_rule]);
}

#[test]
fn a_writer_that_panics_stops_the_server() {
    let s = stand();
    block_on(s.ingest.submit(batch(&["a"]), true)).unwrap();
    assert!(!s.shutdown.is_stopping());
    let refused = block_on(s.ingest.submit(batch(&["panic"]), true));
    assert!(refused.is_err());
    assert!(matches!(s.writer.join(), Err(EndError::Panic)));
    assert!(s.shutdown.is_stopping());
    assert!(block_on(s.ingest.submit(batch(&["b"]), true)).is_err());
}

/// A reader hears of each sync; who waits for files hears of those only.
#[test]
fn what_waits_for_files_is_not_woken_by_records() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let journal = DiskJournal::new(disk, journal::Settings::default());
    let news = News::default();
    let clock = || Timestamp(1_772_409_600_000_000_000);
    let metrics = Arc::new(Metrics::default());
    let started = start(journal, parts(&news, &metrics, clock), stop_at_panic().0);
    let (ingest, writer) = started.unwrap();
    for syncs in 1..=3 {
        block_on(ingest.submit(batch(&["a"]), true)).unwrap();
        assert_eq!((news.grown.count(), news.closed.count()), (syncs, 0));
    }
    ingest.closer().close().unwrap();
    assert_eq!(news.closed.count(), 1);
    drop(ingest);
    writer.join().unwrap();
    assert_eq!(news.closed.count(), 1, "there was nothing more to close");
}

#[test]
fn a_fast_batch_becomes_visible_without_further_input() {
    let s = stand();
    let before = s.changes.count();
    block_on(s.ingest.submit(batch(&["a"]), false)).unwrap();
    assert!(s.changes.wait(before, Duration::from_secs(60)) > before);
    assert_eq!(*s.script.synced.lock().unwrap(), [b"a".to_vec()]);
    assert_eq!(
        block_on(s.ingest.submit(batch(&[]), true)).unwrap().count,
        0
    );
}

#[test]
fn one_sync_serves_all_that_wait() {
    let s = stand();
    let gate = s.script.gate.lock().unwrap();
    let script = s.script.clone();
    let ingest = s.ingest.clone();
    block_on(async move {
        let mut all: Vec<_> = Vec::new();
        for _ in 0..50 {
            let ingest = ingest.clone();
            all.push(Box::pin(
                async move { ingest.submit(batch(&["x"]), true).await },
            ));
        }
        // Every submission is queued at its first poll; then the writer may go.
        for one in &mut all {
            let waker = std::task::Waker::noop();
            let mut context = std::task::Context::from_waker(waker);
            assert!(one.as_mut().poll(&mut context).is_pending());
        }
        drop(gate);
        for one in all {
            one.await.unwrap();
        }
    });
    let syncs = script
        .calls
        .lock()
        .unwrap()
        .iter()
        .filter(|c| **c == "sync")
        .count();
    assert!(syncs <= 2, "{syncs} syncs");
}

#[test]
fn a_failed_sync_acknowledges_nothing_and_the_next_batch_works() {
    let s = stand();
    s.script.fail_syncs.store(1, SeqCst);
    let refused = block_on(s.ingest.submit(batch(&["a"]), true)).unwrap_err();
    assert!(refused.to_string().contains("journal/x"), "{refused}");
    assert_eq!(s.metrics.refused_failed.get(), 1);
    block_on(s.ingest.submit(batch(&["b"]), true)).unwrap();
    assert_eq!(*s.script.synced.lock().unwrap(), [b"b".to_vec()]);
}

#[test]
fn a_full_disk_refuses_and_recovers_by_itself() {
    let s = stand();
    s.script.free_bytes.store(10, SeqCst);
    let refused = block_on(s.ingest.submit(batch(&["a"]), true)).unwrap_err();
    assert!(
        matches!(&refused, IngestError::Full(what) if what.contains("10 bytes")),
        "{refused}"
    );
    s.script.free_bytes.store(1 << 40, SeqCst);
    let mut refusals = 0;
    while block_on(s.ingest.submit(batch(&["b"]), true)).is_err() {
        refusals += 1;
        assert!(refusals < 1_000_000);
        std::thread::yield_now();
    }
    assert_eq!(*s.script.synced.lock().unwrap(), [b"b".to_vec()]);
}

#[test]
fn a_stopped_writer_refuses_after_the_bounded_wait() {
    let s = stand();
    let gate = s.script.gate.lock().unwrap();
    let big = "x".repeat(QUEUE_BYTES / 4);
    // Paused time: the bounded wait passes as soon as nothing else can happen.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let outcomes = runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (ingest, batch) = (s.ingest.clone(), batch(&[&big]));
            tasks.spawn(async move { ingest.submit(batch, true).await });
        }
        let mut busy = 0;
        while busy < 5 {
            match tasks.join_next().await.unwrap().unwrap() {
                Err(IngestError::Busy) => busy += 1,
                other => panic!("{other:?}"),
            }
        }
        drop(gate);
        let mut accepted = 0;
        while let Some(one) = tasks.join_next().await {
            accepted += u64::from(one.unwrap().is_ok());
        }
        (busy, accepted)
    });
    assert_eq!(outcomes, (5, 3));
    assert_eq!(s.metrics.refused_busy.get(), 5);
}

#[test]
fn nothing_queued_is_lost_by_the_stop() {
    let s = stand();
    let gate = s.script.gate.lock().unwrap();
    block_on(async {
        let mut one = Box::pin(s.ingest.submit(batch(&["last"]), true));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(one.as_mut().poll(&mut context).is_pending());
        drop(gate);
        one.await.unwrap();
    });
    drop(s.ingest);
    s.writer.join().unwrap();
    assert_eq!(*s.script.synced.lock().unwrap(), [b"last".to_vec()]);
}

#[test]
fn the_load_tells_of_a_queue_and_a_disk_that_fill_up() {
    let s = stand();
    assert_eq!(s.ingest.load(), Load::Green);
    let gate = s.script.gate.lock().unwrap();
    let big = "x".repeat(QUEUE_BYTES / 5);
    block_on(async {
        let submit = || s.ingest.submit(batch(&[&big]), true);
        let mut waiting = [
            Box::pin(submit()),
            Box::pin(submit()),
            Box::pin(submit()),
            Box::pin(submit()),
        ];
        for (one, load) in
            waiting
                .iter_mut()
                .zip([Load::Green, Load::Green, Load::Green, Load::Yellow])
        {
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(one.as_mut().poll(&mut context).is_pending());
            assert_eq!(s.ingest.load(), load);
        }
        drop(gate);
        for one in waiting {
            one.await.unwrap();
        }
    });
    assert_eq!(s.ingest.load(), Load::Yellow, "not so soon");
    let s = stand();
    s.script.free_bytes.store(1 << 34, SeqCst);
    block_on(s.ingest.submit(batch(&["a"]), true)).unwrap();
    assert_eq!(s.ingest.load(), Load::Red);
}

/// What a closing file was asked for after the gate was shut comes before nothing.
#[test]
fn nothing_is_appended_behind_a_shut_gate() {
    let s = stand();
    block_on(s.ingest.submit(batch(&["a"]), true)).unwrap();
    s.ingest.gate().set_leaving(true);
    s.ingest.closer().close().unwrap();
    let refused = block_on(s.ingest.submit(batch(&["b"]), true));
    assert!(matches!(refused, Err(IngestError::Leaving)), "{refused:?}");
    s.ingest.gate().set_leaving(false);
    block_on(s.ingest.submit(batch(&["c"]), true)).unwrap();
}

/// A caller that waits for a closed file learns that it is open still.
#[test]
fn a_file_that_cannot_be_closed_is_said() {
    let s = stand();
    block_on(s.ingest.submit(batch(&["a"]), true)).unwrap();
    s.script.fail_syncs.store(1, SeqCst);
    let error = s.ingest.closer().close().unwrap_err();
    assert!(error.contains("could not be closed"), "{error}");
    s.ingest.closer().close().unwrap();
}

/// The handle with a rule, what tells its counter, and the directory of its file.
fn ruled(stand: &Stand, rule: &str) -> (Ingest, impl Fn(&str) -> f64, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rules.toml");
    std::fs::write(&path, rule).unwrap();
    let metrics = Arc::new(Metrics::default());
    let (rules, _) = rules::WatchedRules::start(&path, &metrics).unwrap();
    let counted = move |name: &str| {
        let text = metrics.expose();
        let found = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        found.unwrap().parse().unwrap()
    };
    (
        stand.ingest.clone().ruled_by(Some(rules)),
        counted,
        directory,
    )
}

const DROPPED: &str = "logpond_rule_records_total{rule=\"1\",action=\"dropped\"}";

#[test]
fn rules_count_what_was_written() {
    let stand = stand();
    let rule = "[[rule]]\nwhere = 'noise'\ndrop = true\n";
    let (ingest, counted, _directory) = ruled(&stand, rule);
    block_on(async {
        stand.script.fail_syncs.store(1, SeqCst);
        let mixed = Arc::new(batch(&["noise", "one", "noise"]));
        assert!(ingest.submit(mixed.clone(), true).await.is_err());
        assert_eq!(counted(DROPPED), 0.0);
        let accepted = ingest.submit(mixed, true).await.unwrap();
        assert_eq!((accepted.count, counted(DROPPED)), (3, 2.0));
        // Of this one nothing is left for the journal.
        let accepted = ingest.submit(batch(&["noise"]), true).await.unwrap();
        assert_eq!((accepted.count, accepted.source), (1, None));
        assert_eq!(counted(DROPPED), 3.0);
        ingest.gate().set_leaving(true);
        let refused = ingest.submit(batch(&["noise"]), true).await;
        assert!(matches!(refused, Err(IngestError::Leaving)), "{refused:?}");
        assert_eq!(counted(DROPPED), 3.0);
        ingest.gate().set_leaving(false);
        ingest
            .submit_own(batch(&["noise of its own"]))
            .await
            .unwrap();
    });
    assert_eq!(counted(DROPPED), 3.0);
    let synced = stand.script.synced.lock().unwrap().clone();
    assert_eq!(synced, [&b"one"[..], b"noise of its own"]);
}

/// Batches of one sender stay in their order, whatever their rules take.
#[test]
fn the_order_stays() {
    let stand = stand();
    let rule = "[[rule]]\nwhere = 'n=3'\ndrop = true\n[[rule]]\nadd = { x = 1 }\n";
    let (ingest, _, _directory) = ruled(&stand, rule);
    let lines: Vec<String> = (0..50).map(|n| format!("n={n} a=b")).collect();
    let batches = lines.iter().map(|line| (batch(&[line]), None));
    block_on(ingest.submit_all(batches)).unwrap();
    let synced = stand.script.synced.lock().unwrap().clone();
    let synced = synced.iter().map(|held| {
        let (_, _, line) = logpond_record::line_of(EntryKind::Enveloped, held);
        String::from_utf8(line.to_vec()).unwrap()
    });
    let kept = lines.iter().filter(|line| !line.starts_with("n=3 "));
    assert!(synced.eq(kept.cloned()));
}

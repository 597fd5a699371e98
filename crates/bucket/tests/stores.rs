//! One suite for all stores: a directory, and a server that speaks S3, also through a network that
//! fails.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "tests cast numbers that they know"
)]

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
    Chains, Columns, CreateOutcome, FailureKind, Location, ObjectEntry, Objects, OpenTable, Store,
    probe, sweep,
};
use logpond_cluster::Day;
use logpond_cluster::chain::{Change, NoWriteReason, Outcome, SegmentEntry, segment_name};
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
    assert_eq!(
        objects.create("a/1", body("one")).unwrap(),
        CreateOutcome::New
    );
    assert_eq!(
        objects.create("a/1", body("two")).unwrap(),
        CreateOutcome::Exists
    );
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

fn listed(id: u128, sequences: impl IntoIterator<Item = u64>) -> SegmentEntry {
    let source = |sequence| SourceId {
        incarnation: Incarnation(7),
        sequence,
    };
    SegmentEntry {
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

/// What the last version of a table lists, after a look at each version.
fn read_table(store: &dyn Objects) -> BTreeSet<String> {
    let (mut live, mut heads) = (BTreeSet::new(), BTreeMap::new());
    let log = store.list("_delta_log/", None).unwrap();
    let versions = log.iter().filter(|entry| entry.name.ends_with(".json"));
    for (number, version) in versions.enumerate() {
        assert_eq!(version.name, format!("_delta_log/{number:020}.json"));
        let text = store.get(&version.name, 1 << 20).unwrap().unwrap();
        for line in text.split(|byte| *byte == b'\n').filter(|l| !l.is_empty()) {
            let line: serde_json::Value = serde_json::from_slice(line).unwrap();
            let path = |action: &str| Some(line[action]["path"].as_str()?.to_owned());
            if let Some(added) = path("add") {
                assert!(live.insert(added), "added twice");
            }
            if let Some(removed) = path("remove") {
                assert!(live.remove(&removed), "removed without being there");
            }
            if let Some(head) = line["txn"]["version"].as_u64() {
                let before = heads.insert(line["txn"]["appId"].to_string(), head);
                assert!(before.is_none_or(|before| before < head), "a day goes back");
            }
        }
    }
    live
}

/// Writers list segments, and each keeps up the table.
fn race_for_versions(stores: &[Arc<dyn Objects>], each: u64) {
    let day = Day::of(NOON);
    let keep_up = |table: &mut OpenTable, chains: &Chains| {
        let mut columns = |_, _: &SegmentEntry| Ok(Columns::default());
        table.publish(chains.heads(), &mut columns, NOON)
    };
    thread::scope(|scope| {
        for (writer, store) in (0u64..).zip(stores) {
            scope.spawn(move || {
                let mut chains = Chains::new(Arc::clone(store), nonce);
                let mut table = OpenTable::new(Arc::clone(store), nonce);
                for number in 0..each {
                    // Every fourth one is a merge of those before it.
                    let first = number - number % 4 * u64::from(number % 4 == 3);
                    let sources = (first..=number).map(|source| 100 * writer + source);
                    let segment = listed(u128::from(writer * 1000 + number), sources);
                    let change = || Change::List(segment.clone());
                    while let Ok(Outcome::Contended) | Err(_) = chains.commit(day, change(), NOON) {
                    }
                    // What fails is done with the next one.
                    let _ = keep_up(&mut table, &chains);
                }
            });
        }
    });
    let mut chains = Chains::new(Arc::clone(&stores[0]), nonce);
    chains.refresh().unwrap();
    let mut table = OpenTable::new(Arc::clone(&stores[0]), nonce);
    while !keep_up(&mut table, &chains).is_ok_and(|published| published.is_whole) {}
    let listed = chains.heads()[&day].segments.iter();
    let listed: BTreeSet<String> = listed.map(|s| segment_name(day, s.id)).collect();
    assert_eq!(read_table(&*stores[0]), listed);
}

#[test]
fn writers_race_for_versions_of_the_table() {
    let directory = tempfile::tempdir().unwrap();
    let location: Location = format!("file:{}", directory.path().display())
        .parse()
        .unwrap();
    let store: Arc<dyn Objects> = Arc::new(Store::open(&location, &[]).unwrap());
    race_for_versions(&[Arc::clone(&store), Arc::clone(&store), store], 24);
    let Some(server) = S3Server::start() else {
        return;
    };
    let faults = |number: u64, head: &str| match number % 17 {
        1 => Fault::Answer(503),
        5 => Fault::LostReply,
        9 => Fault::Closed,
        13 if head.contains("if-none-match") => Fault::Answer(412),
        _ => Fault::None,
    };
    let relays = [
        Relay::start(server.address(), faults),
        Relay::start(server.address(), faults),
    ];
    let stores = relays.each_ref().map(|relay| {
        let store: Arc<dyn Objects> = Arc::new(server.store(relay.address(), "table"));
        store
    });
    race_for_versions(&stores, 24);
    let met: u64 = relays.iter().map(Relay::faults).sum();
    assert!(met >= 20, "{met} faults were met");
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
        matches!(again, Outcome::Settled(NoWriteReason::Done, _)),
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
        Ok(Outcome::Settled(NoWriteReason::Dropped, _))
    ));
    sweep(&*store, &mut chains, Duration::ZERO, NOON).unwrap();
    assert_eq!(state(), (6, 1, 0));
    assert!(matches!(late(&mut chains), Ok(Outcome::Written(_))));
}

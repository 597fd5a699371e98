//! Heads that are damaged or gone are made anew of what lies in the bucket.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use logpond_bucket::{
    Chains, FailureKind, Location, Objects, ReconcileReport, Store, reconcile, segment_objects,
    sweep,
};
use logpond_cluster::Day;
use logpond_cluster::chain::{Change, Outcome, SegmentEntry, link_name, segment_name};
use logpond_record::{
    Assumption, Batch, EntryKind, Id, Incarnation, Message, Record, ShapeTable, TimeSource,
    Timestamp, Value,
};
use logpond_segment::build;
use logpond_segment::disk::Disk;
use logpond_segment::file::{Profile, SegmentFile};
use logpond_segment::journal::{self, Writer};
use logpond_segment::mem_disk::MemDisk;

const NOON: Timestamp = Timestamp(1_763_899_200_000_000_000);

fn nonce() -> u128 {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).unwrap();
    u128::from_ne_bytes(bytes)
}

/// A bucket in a directory, with two segments and their merge, as it is uploaded.
struct Bucket {
    _directory: tempfile::TempDir,
    store: Arc<dyn Objects>,
    segments: Vec<(SegmentEntry, Bytes)>,
}

impl Bucket {
    fn new() -> Bucket {
        let directory = tempfile::tempdir().unwrap();
        let location: Location = format!("file:{}", directory.path().display())
            .parse()
            .unwrap();
        let store: Arc<dyn Objects> = Arc::new(Store::open(&location, &[]).unwrap());
        Bucket {
            _directory: directory,
            store,
            segments: segments(),
        }
    }

    fn day(&self) -> Day {
        Day::of(NOON)
    }

    fn upload(&self, at: usize) {
        let (listed, bytes) = &self.segments[at];
        let name = segment_name(self.day(), listed.id);
        self.store.put(&name, bytes.clone()).unwrap();
    }

    fn list(&self, chains: &mut Chains, at: usize) {
        self.upload(at);
        let change = Change::List(self.segments[at].0.clone());
        let outcome = chains.commit(self.day(), change, NOON).unwrap();
        assert!(matches!(outcome, Outcome::Written(_)), "{outcome:?}");
    }

    fn fresh(&self) -> Chains {
        Chains::new(Arc::clone(&self.store), nonce)
    }

    fn reconcile(&self, chains: &mut Chains) -> ReconcileReport {
        let entries = segment_objects(&*self.store).unwrap();
        reconcile(&*self.store, chains, &entries, NOON).unwrap()
    }

    /// The ids that a reader who knows nothing finds listed.
    fn listed(&self) -> Vec<u128> {
        let mut chains = self.fresh();
        chains.refresh().unwrap();
        assert!(chains.broken().is_empty());
        let head = chains.heads().get(&self.day());
        let listed = head.iter().flat_map(|head| &head.segments);
        listed.map(|segment| segment.id.0).collect()
    }

    fn head(&self) -> String {
        let links = self.store.list("m/", None).unwrap();
        links.last().unwrap().name.clone()
    }
}

fn segments() -> Vec<(SegmentEntry, Bytes)> {
    let disk = MemDisk::new();
    disk.create_directory(build::DIRECTORY).unwrap();
    let mut writer = Writer::new(Arc::new(disk.clone()), journal::Settings::default());
    for file in 0..2 {
        let mut batch = Batch::new(EntryKind::Line, Vec::new());
        (0..50).for_each(|row| batch.push(format!("{file} {row}").as_bytes()));
        writer.append(&batch, NOON, || Incarnation(7)).unwrap();
        writer.close().unwrap();
    }
    let closed = writer.visible().snapshot().closed.to_vec();
    for (at, file) in closed.iter().enumerate() {
        let id = Id(1 + at as u128);
        build::from_journal(&disk, id, std::slice::from_ref(file), |entry| Record {
            id: entry.id,
            time: NOON,
            time_source: TimeSource::Line(Assumption::Nothing),
            received: entry.received,
            message: Message::Part(Value::Str(String::from_utf8_lossy(entry.raw))),
            shape: ShapeTable::new().text(),
            values: vec![Value::Null],
            fixes: Vec::new(),
            labels: Vec::new(),
            whole: None,
        })
        .unwrap();
    }
    let open = |id| build::open(&disk, Id(id)).unwrap();
    build::merge(&disk, Id(3), &[open(1), open(2)], Profile::Hot, &|| false).unwrap();
    let segment = |id| {
        let file: SegmentFile = open(id);
        let listed = SegmentEntry::new(file.manifest(), file.bytes(), file.index_from());
        let bytes = disk.read(&build::path(Id(id), build::SUFFIX_LIVE)).unwrap();
        (listed, Bytes::from(bytes))
    };
    (1..=3).map(segment).collect()
}

#[test]
fn a_damaged_head_is_made_anew_and_hurts_no_other_day() {
    for body in [&b"{}"[..], b"", b"no json", b"{\"format\":1,\"day\":\"x\"}"] {
        let bucket = Bucket::new();
        let mut writer = bucket.fresh();
        bucket.list(&mut writer, 0);
        bucket.list(&mut writer, 1);
        bucket.list(&mut writer, 2);
        let head = bucket.head();
        bucket
            .store
            .put(&head, Bytes::copy_from_slice(body))
            .unwrap();
        let mut chains = bucket.fresh();
        chains.refresh().unwrap();
        assert_eq!(chains.broken().len(), 1);
        // Until it is whole nobody writes to that day, and everybody to others.
        let change = Change::List(bucket.segments[0].0.clone());
        let error = chains.commit(bucket.day(), change, NOON).unwrap_err();
        assert_eq!(error.kind, FailureKind::Unavailable);
        let tomorrow = Day::of(NOON.saturating_add(86_400_000_000_000));
        chains
            .commit(tomorrow, Change::Drop(vec![Id(9)]), NOON)
            .unwrap();
        let reconciled = bucket.reconcile(&mut chains);
        assert_eq!(reconciled.rebuilt.len(), 1);
        assert!(chains.broken().is_empty());
        assert_eq!(bucket.listed(), [3], "the merge has all of it");
        assert!(bucket.reconcile(&mut chains).rebuilt.is_empty());
    }
}

#[test]
fn a_head_that_has_gone_takes_nothing_with_it() {
    // Of a chain of one link, of the last one of several, and of a whole chain.
    for (segments, is_all, expected) in [
        (&[0][..], false, &[1][..]),
        (&[0, 1], false, &[1, 2]),
        (&[0, 1, 2], false, &[3]),
        (&[0, 1, 2], true, &[3]),
    ] {
        for knows in [false, true] {
            let bucket = Bucket::new();
            let mut writer = bucket.fresh();
            segments.iter().for_each(|at| bucket.list(&mut writer, *at));
            for link in bucket.store.list("m/", None).unwrap().iter().rev() {
                bucket.store.remove(&link.name).unwrap();
                if !is_all {
                    break;
                }
            }
            let mut chains = if knows { writer } else { bucket.fresh() };
            bucket.reconcile(&mut chains);
            assert!(chains.broken().is_empty());
            assert_eq!(bucket.listed(), expected, "{segments:?}, {is_all}, {knows}");
        }
    }
}

#[test]
fn what_nothing_else_holds_is_not_swept() {
    let bucket = Bucket::new();
    let mut chains = bucket.fresh();
    // Its writer came to an end before it was listed.
    bucket.upload(0);
    let swept = sweep(&*bucket.store, &mut chains, Duration::ZERO, NOON).unwrap();
    assert_eq!((swept.orphans, bucket.listed()), (0, vec![1]));
    // One that has all of another: the other may go.
    bucket.list(&mut chains, 2);
    bucket.upload(1);
    let swept = sweep(&*bucket.store, &mut chains, Duration::ZERO, NOON).unwrap();
    assert_eq!((swept.orphans, bucket.listed()), (1, vec![3]));
}

#[test]
fn what_expired_stays_away() {
    let bucket = Bucket::new();
    let mut chains = bucket.fresh();
    bucket.list(&mut chains, 0);
    bucket.list(&mut chains, 1);
    let expire = Change::Expire(vec![Id(1)]);
    chains.commit(bucket.day(), expire, NOON).unwrap();
    // A later link is lost; the one that says so is there.
    let forget = Change::Drop(vec![Id(77)]);
    chains.commit(bucket.day(), forget, NOON).unwrap();
    let head = bucket.head();
    bucket.store.put(&head, Bytes::from_static(b"?")).unwrap();
    let mut chains = bucket.fresh();
    bucket.reconcile(&mut chains);
    assert_eq!(bucket.listed(), [2]);
}

#[test]
fn an_object_that_no_list_has_and_nobody_can_read_is_named() {
    let bucket = Bucket::new();
    let mut chains = bucket.fresh();
    bucket.upload(1);
    let name = segment_name(bucket.day(), Id(1));
    let cut = bucket.segments[0].1.slice(..40);
    bucket.store.put(&name, cut).unwrap();
    let reconciled = bucket.reconcile(&mut chains);
    assert_eq!(reconciled.unreadable.len(), 1);
    let what = reconciled.unreadable.values().next().unwrap();
    assert!(what.contains(&name), "{what}");
    assert_eq!(bucket.listed(), [2]);
}

#[test]
fn what_a_later_version_wrote_is_not_replaced() {
    let bucket = Bucket::new();
    let mut writer = bucket.fresh();
    bucket.list(&mut writer, 0);
    let later = Bytes::from_static(b"{\"format\":2}");
    bucket
        .store
        .put(&link_name(bucket.day(), 2), later)
        .unwrap();
    let error = bucket.fresh().refresh().unwrap_err();
    assert_eq!(error.kind, FailureKind::Unsupported);
}

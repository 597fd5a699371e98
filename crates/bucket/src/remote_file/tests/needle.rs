//! What searches in a segment cost that nothing is kept of.

use std::io;

use logpond_record::{
    Assumption, Id, Incarnation, Message, Record, ShapeTable, SourceId, TimeSource, Timestamp,
    Value,
};
use logpond_segment::disk::AppendFile;
use logpond_segment::file::{Directory, Profile, SegmentFile, SegmentWriter, SourceEntry};
use logpond_segment::rows::RowsBuilder;

use super::*;

const GROUPS: u64 = 9;
const GROUP_ROWS: u64 = 24_000;
const NAME: &str = "segments/needle";
const SHAPE: &str = "⟨ip:t⟩ [⟨_time:%d/%b/%Y:%H:%M:%S %z[+0000]⟩] ⟨trace:t⟩ ⟨span:t⟩ ⟨ms:i⟩";

#[derive(Clone, Default)]
struct CapturedOutput(Arc<Mutex<Vec<u8>>>);

impl AppendFile for CapturedOutput {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        lock(&self.0).extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ReadAt for CapturedOutput {
    fn bytes(&self) -> io::Result<u64> {
        Ok(lock(&self.0).len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let from = offset as usize;
        buffer.copy_from_slice(&lock(&self.0)[from..from + buffer.len()]);
        Ok(())
    }
}

fn trace(n: u64) -> String {
    let mut random = SeededRandom::new(n);
    format!("{:016x}{:016x}", random.draw(), random.draw())
}

fn add(builder: &mut RowsBuilder, shapes: &mut ShapeTable, n: u64) {
    let text = |text: String| Value::Str(text.into());
    let record = Record {
        id: Id::new(1_772_409_600_000 + n, Incarnation(5), n),
        time: Timestamp((1_772_409_600 + n as i64) * 1_000_000_000),
        time_source: TimeSource::Line(Assumption::Nothing),
        received: Timestamp((1_772_409_600 + n as i64) * 1_000_000_000),
        message: Message::Line,
        shape: shapes.intern(SHAPE.as_bytes()).unwrap(),
        values: vec![
            text(format!("10.0.{}.{}", n % 3, n % 200)),
            Value::Null,
            text(trace(n)),
            text(trace(n + (1 << 40))),
            Value::Int((n * 7919 % 5000) as i64),
        ],
        fixes: Vec::new(),
        labels: Vec::new(),
        whole: None,
    };
    let mut line = Vec::new();
    record.write_line(&mut line);
    builder.push(&record, n, 0, line.len());
}

/// A segment of several row groups, each of which is longer than what a first miss fetches.
fn segment() -> Vec<u8> {
    let mut shapes = ShapeTable::new();
    let mut sample = RowsBuilder::new();
    (0..GROUP_ROWS).for_each(|n| add(&mut sample, &mut shapes, n));
    let schema = sample.counts().schema();
    let source = SourceEntry {
        source: SourceId {
            incarnation: Incarnation(5),
            sequence: 0,
        },
        rows: GROUPS * GROUP_ROWS,
        hash: 0,
        retry: None,
    };
    let written = CapturedOutput::default();
    let (file, counts) = (Box::new(written.clone()), sample.counts());
    let mut writer = SegmentWriter::new(
        file,
        Id(9),
        Profile::Hot,
        counts,
        schema.clone(),
        vec![source],
    )
    .unwrap();
    for group in 0..GROUPS {
        let mut builder = RowsBuilder::new();
        let rows = group * GROUP_ROWS..(group + 1) * GROUP_ROWS;
        rows.for_each(|n| add(&mut builder, &mut shapes, n));
        writer.write(&builder.take(&schema)).unwrap();
    }
    writer.finish().unwrap();
    lock(&written.0).clone()
}

/// The segment in a store, a cache with room for all of it, and the file.
fn remote(directory: &Path) -> (Arc<Store>, Cache, RemoteFile) {
    let bytes = segment();
    let length = bytes.len() as u64;
    let store = Arc::new(Store {
        objects: [(NAME.to_owned(), bytes.into())].into(),
        ..Store::default()
    });
    let cache = Cache::open(directory, 1 << 30).unwrap();
    let file = RemoteFile::new(&cache, store.clone(), NAME, length, index_from(&store));
    (store, cache, file)
}

/// The row groups with blocks that may hold a token, and these blocks.
fn look_up(segment: &SegmentFile, directory: &Directory, token: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (number, group) in directory.row_groups.iter().enumerate() {
        let set = segment
            .row_group(directory, number)
            .look_up(token.as_bytes())
            .unwrap();
        let blocks = (0..group.blocks.len()).filter(|block| set.contains(*block));
        found.extend(blocks.map(|block| (number, block)));
    }
    found
}

/// Reads all columns of the blocks that were found in a row group.
fn read_group(
    segment: &SegmentFile,
    directory: &Directory,
    found: &[(usize, usize)],
    group: usize,
) {
    let mut reader = segment.row_group(directory, group);
    for (_, block) in found.iter().filter(|(found, _)| *found == group) {
        reader.rows(*block).unwrap();
    }
}

#[test]
fn a_needle_in_a_cold_segment_takes_four_requests() {
    let directory = tempfile::tempdir().unwrap();
    let (store, cache, file) = remote(directory.path());
    let costs = Arc::new(Costs::default());
    let segment = SegmentFile::open(Arc::new(file.counted(costs.clone()))).unwrap();
    let entries = segment.read_directory().unwrap();
    assert_eq!(entries.row_groups.len() as u64, GROUPS);
    assert_eq!(store.taken().len(), 1, "directory and footer");
    let token = trace(5 * GROUP_ROWS + 17_000);
    let found = look_up(&segment, &entries, &token);
    assert_eq!(store.taken().len(), 1, "token indexes");
    assert!(
        found.iter().any(|(group, _)| *group == 5) && found.len() < 4,
        "{found:?}"
    );
    read_group(&segment, &entries, &found, 5);
    assert_eq!(
        store.taken().len(),
        2,
        "the first piece, and the rest of the row group"
    );
    assert_eq!(costs.requests.load(Ordering::Relaxed), 4);
    let fetched = costs.bytes.load(Ordering::Relaxed);
    assert!(
        fetched < segment.bytes() / 2,
        "{fetched} of {}",
        segment.bytes()
    );
    // And once more, also after a restart.
    drop((segment, file));
    drop(cache);
    let cache = Cache::open(directory.path(), 1 << 30).unwrap();
    cache.check();
    let bytes = store.objects[NAME].len() as u64;
    let file = RemoteFile::new(&cache, store.clone(), NAME, bytes, index_from(&store));
    let segment = SegmentFile::open(Arc::new(file)).unwrap();
    let entries = segment.read_directory().unwrap();
    let found = look_up(&segment, &entries, &token);
    read_group(&segment, &entries, &found, 5);
    assert_eq!(store.taken(), []);
}

/// Where the segment's directory begins.
fn index_from(store: &Store) -> u64 {
    let bytes = store.objects[NAME].to_vec();
    let local = Arc::new(CapturedOutput(Arc::new(Mutex::new(bytes))));
    SegmentFile::open(local).unwrap().index_from()
}

/// A chart reads the times of all rows: one piece of each row group.
#[test]
fn one_column_of_all_row_groups_does_not_fetch_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _cache, file) = remote(directory.path());
    let segment = SegmentFile::open(Arc::new(file)).unwrap();
    let entries = segment.read_directory().unwrap();
    store.taken();
    for (number, group) in entries.row_groups.iter().enumerate() {
        let mut reader = segment.row_group(&entries, number);
        for block in 0..group.blocks.len() {
            reader.times(block).unwrap();
        }
    }
    let requests = store.taken();
    let bytes: u64 = requests
        .iter()
        .map(|(_, range)| range.end - range.start)
        .sum();
    assert!(requests.len() as u64 <= GROUPS, "{requests:?}");
    assert!(
        bytes <= GROUPS * 512 * KIB && bytes < segment.bytes() * 2 / 3,
        "{bytes}"
    );
}

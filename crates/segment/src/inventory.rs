//! The inventory of the files that should be on the disk: a list beside the files, so that a file that vanishes is missed.
//!
//! Invariants:
//! - It is derived. It never replaces what the files hold but for a file that is damaged or gone; if it
//!   is lost or damaged, it is made anew of the files.
//! - A file that goes for good, with rows that nothing else here holds, is taken off the list before it goes.
//!   So whatever is listed and not held by any file has vanished, whenever a crash comes. A new file is listed
//!   some time after it is there: who deletes it before that is not found out.
//!
//! ```text
//! {"format":1,"cluster":false,"segments":2,"journal":1}
//! {"segment":"01K…","bytes":…,…}
//! {"journal":"<incarnation>","sequence":7,"rows":…,…}
//! {"bucket_day":"2026-11-23","segments":4,"rows":…,…}
//! crc32c:0123abcd
//! ```
//!
//! `docs/format/inventory.md` is normative.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, ErrorKind};

use logpond_record::{Id, SourceId, Timestamp, cast};
use serde_json::{Map, Value, json};

use crate::build;
use crate::disk::Disk;
use crate::file::Summary;
use crate::journal;
use crate::sources::SourceSet;

/// The file, below the data directory.
pub const PATH: &str = "inventory";

/// The version that is written.
const FORMAT_VERSION: u64 = 1;

/// The most segments and the most journal files that are listed, the newest ones: ten times what a large
/// store has. Older ones are not missed.
const ENTRIES_MAX: usize = 65_536;

/// The longest file that is read: [`ENTRIES_MAX`] segments with some runs of sources each.
const BYTES_MAX: u64 = 128 << 20;

/// The beginning of the names of a bucket's days.
pub const BUCKET: &str = "bucket/";

/// The beginning of the last line.
const CHECKSUM: &str = "crc32c:";

/// A journal file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalEntry {
    /// Its rows, at least so many if it was being written.
    pub rows: u64,
    /// Earliest receive time.
    pub received_min: Timestamp,
    /// Latest receive time.
    pub received_max: Timestamp,
    /// True if it was being written.
    pub is_open: bool,
    /// True if the file is there and lacks rows that it had: then the rows are those that are lost.
    pub is_shortened: bool,
}

/// The segments of a day that a bucket listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketDay {
    /// How many there were.
    pub segments: u64,
    /// Their rows.
    pub rows: u64,
    /// Earliest and latest receive time.
    pub received: (Timestamp, Timestamp),
    /// Earliest and latest event time.
    pub times: (Timestamp, Timestamp),
    /// Their sources.
    pub sources: SourceSet,
}

/// The files that should be there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// True if the node is one of a cluster: a file that is not here may be on other nodes, which know better.
    pub is_cluster: bool,
    /// The segments.
    pub segments: BTreeMap<Id, Summary>,
    /// The journal files with rows.
    pub journal: BTreeMap<SourceId, JournalEntry>,
    /// The segments that the bucket listed, by day in UTC.
    pub bucket: BTreeMap<String, BucketDay>,
}

/// The list, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InventoryState {
    /// There is none.
    None,
    /// It is damaged, or of a version that this program does not know.
    Damaged(&'static str),
    /// A list.
    Sound(Inventory),
}

/// The kind of something that has vanished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VanishedKind {
    /// A file whose rows are known.
    File,
    /// A journal file that was being written: it may have had more rows.
    OpenFile,
    /// A journal file that is there, or has become a segment, without these rows that it had.
    ShortenedFile,
    /// Segments of a day in the bucket.
    BucketDay,
    /// The same, and the server was started without a bucket.
    UnsetBucketDay,
}

/// A file that has vanished, or a day of the bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VanishedFile {
    /// Its path.
    pub path: String,
    /// Its sources. Some of them may be held by other files.
    pub sources: SourceSet,
    /// Its rows, as exactly as its kind says. Of a day, other segments may hold some.
    pub rows: u64,
    /// Its kind.
    pub kind: VanishedKind,
    /// Earliest receive time.
    pub received_min: Timestamp,
    /// Latest receive time.
    pub received_max: Timestamp,
    /// Earliest and latest event time, where they are known.
    pub times: Option<(Timestamp, Timestamp)>,
}

impl fmt::Display for VanishedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let VanishedFile {
            path,
            rows,
            received_min,
            received_max,
            ..
        } = self;
        let (gone, bound) = match self.kind {
            VanishedKind::File => ("the file is gone", ""),
            VanishedKind::OpenFile => ("the file is gone", "at least "),
            VanishedKind::ShortenedFile => ("the file was cut, and its end is gone", "at least "),
            VanishedKind::BucketDay => {
                ("the bucket does not list these segments any more", "up to ")
            }
            VanishedKind::UnsetBucketDay => {
                ("they are in a bucket, and no bucket is set", "up to ")
            }
        };
        let records = if *rows == 1 { "record" } else { "records" };
        write!(
            f,
            "{path}: {gone}, with {bound}{rows} {records} received from {received_min} to {received_max}"
        )
    }
}

impl VanishedFile {
    /// True if rows of it are in none of the files that hold these sources.
    pub fn is_gone(&self, held: &SourceSet) -> bool {
        self.kind == VanishedKind::ShortenedFile || !held.contains_all(&self.sources)
    }

    /// How to get it back.
    pub fn remedy(&self) -> &'static str {
        match self.kind {
            VanishedKind::File | VanishedKind::OpenFile => "put it back and restart the server",
            VanishedKind::ShortenedFile => "restore it from a backup",
            VanishedKind::BucketDay => "set the right bucket or put its objects back",
            VanishedKind::UnsetBucketDay => "start the server with its bucket",
        }
    }
}

impl Inventory {
    /// Reads the file.
    ///
    /// # Errors
    /// When the disk fails; damage is no error.
    pub fn read(disk: &dyn Disk) -> io::Result<InventoryState> {
        let file = match disk.open(PATH) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(InventoryState::None),
            opened => opened?,
        };
        let bytes = file.bytes()?;
        if bytes > BYTES_MAX {
            return Ok(InventoryState::Damaged("it is too long"));
        }
        let mut text = vec![0; cast::to_usize(bytes)];
        file.read_at(0, &mut text)?;
        Ok(match Inventory::from_bytes(&text) {
            Ok(inventory) => InventoryState::Sound(inventory),
            Err(what) => InventoryState::Damaged(what),
        })
    }

    /// The file's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let segments = || self.segments.values().rev().take(ENTRIES_MAX);
        let journal = || self.journal.iter().rev().take(ENTRIES_MAX);
        let days = || self.bucket.iter().rev().take(ENTRIES_MAX);
        let mut header = json!({
            "format": FORMAT_VERSION,
            "cluster": self.is_cluster,
            "segments": segments().count(),
            "journal": journal().count(),
        });
        // Versions that know of no bucket read a list that has none.
        if !self.bucket.is_empty() {
            header["bucket_days"] = days().count().into();
        }
        let lines = std::iter::once(header)
            .chain(segments().map(Summary::to_json))
            .chain(journal().map(|(source, entry)| entry.to_json(*source)))
            .chain(days().map(|(day, listed)| listed.to_json(day)));
        let mut text = String::new();
        for line in lines {
            text.push_str(&line.to_string());
            text.push('\n');
        }
        let crc = crc32c::crc32c(text.as_bytes());
        text.push_str(&format!("{CHECKSUM}{crc:08x}\n"));
        text.into_bytes()
    }

    /// Reads what [`Inventory::to_bytes`] gave.
    ///
    /// # Errors
    /// With what is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Result<Inventory, &'static str> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is no text")?;
        let (body, checksum) = text
            .rfind(CHECKSUM)
            .map(|at| text.split_at(at))
            .ok_or("it has no checksum")?;
        let crc = crc32c::crc32c(body.as_bytes());
        if checksum != format!("{CHECKSUM}{crc:08x}\n") {
            return Err("its checksum is wrong");
        }
        parse(body).ok_or("it is of an unknown format")
    }

    /// Those of its files that are not among `files`, names without their endings, and whose sources are not
    /// all in `held`.
    pub fn absent(&self, files: &BTreeSet<String>, held: &SourceSet) -> Vec<VanishedFile> {
        let is_gone = |absent: &VanishedFile| {
            let is_there = files.contains(stem(&absent.path));
            absent.is_gone(held) && (absent.kind == VanishedKind::ShortenedFile || !is_there)
        };
        let segments = self.segments.values().map(|summary| VanishedFile {
            path: build::path(summary.id, build::SUFFIX_LIVE),
            sources: summary.sources.clone(),
            rows: summary.rows,
            kind: VanishedKind::File,
            received_min: summary.received_min,
            received_max: summary.received_max,
            times: Some((summary.time_min, summary.time_max)),
        });
        let journal = self.journal.iter().map(|(source, entry)| VanishedFile {
            path: journal::path(*source, journal::SUFFIX_CLOSED),
            sources: [*source].into_iter().collect(),
            rows: entry.rows,
            kind: entry.kind(),
            received_min: entry.received_min,
            received_max: entry.received_max,
            times: None,
        });
        let each = segments.chain(journal);
        each.filter(is_gone).collect()
    }

    /// The files of the list that are absent from a disk, and that are on the list there still: a server that lets files
    /// go takes them off the list before that.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn still_absent(&self, disk: &dyn Disk, held: &SourceSet) -> io::Result<Vec<VanishedFile>> {
        let files = files(disk)?;
        let mut absent = self.absent(&files, held);
        if absent.is_empty() {
            return Ok(absent);
        }
        let InventoryState::Sound(now) = Inventory::read(disk)? else {
            return Ok(Vec::new());
        };
        let now = now.absent(&files, held);
        absent.retain(|absent| now.iter().any(|other| other.path == absent.path));
        Ok(absent)
    }

    /// Takes these files off the list. Gives whether it had any of them.
    pub fn forget(
        &mut self,
        segments: impl IntoIterator<Item = Id>,
        journal: impl IntoIterator<Item = SourceId>,
    ) -> bool {
        let segments = segments.into_iter();
        let segments = segments.filter(|id| self.segments.remove(id).is_some());
        let count = segments.count();
        let journal = journal.into_iter();
        let journal = journal.filter(|source| self.journal.remove(source).is_some());
        count + journal.count() > 0
    }
}

/// The files of the directories of segments and of the journal that count as being there, without their
/// endings. A retired file is not: others hold its rows, or it was taken off the list.
///
/// # Errors
/// When a directory cannot be listed.
pub fn files(disk: &dyn Disk) -> io::Result<BTreeSet<String>> {
    let mut files = BTreeSet::new();
    for directory in [journal::DIRECTORY, build::DIRECTORY] {
        let entries = disk.list(directory)?.into_iter();
        let names = entries.map(|entry| entry.name);
        let is_there =
            |name: &String| !(name.ends_with(build::SUFFIX_TRASH) || name.ends_with(".tmp"));
        let paths = names.filter(is_there);
        files.extend(paths.map(|name| stem(&format!("{directory}/{name}")).to_owned()));
    }
    Ok(files)
}

/// A path without its ending.
fn stem(path: &str) -> &str {
    path.rsplit_once('.').map_or(path, |(stem, _)| stem)
}

impl JournalEntry {
    /// A file with this in it.
    pub fn new(summary: &journal::Summary, is_open: bool) -> JournalEntry {
        JournalEntry {
            rows: summary.rows(),
            received_min: summary.received_min,
            received_max: summary.received_max,
            is_open,
            is_shortened: false,
        }
    }

    fn kind(self) -> VanishedKind {
        if self.is_shortened {
            VanishedKind::ShortenedFile
        } else if self.is_open {
            VanishedKind::OpenFile
        } else {
            VanishedKind::File
        }
    }

    fn to_json(self, source: SourceId) -> Value {
        let mut object = json!({
            "journal": source.incarnation.to_string(),
            "sequence": source.sequence,
            "rows": self.rows,
            "received_min_ns": self.received_min.0,
            "received_max_ns": self.received_max.0,
            "open": self.is_open,
        });
        if self.is_shortened {
            object["shortened"] = true.into();
        }
        object
    }

    fn from_json(object: &Map<String, Value>) -> Option<(SourceId, JournalEntry)> {
        let time = |key: &str| object.get(key)?.as_i64().map(Timestamp);
        let source = SourceId {
            incarnation: object.get("journal")?.as_str()?.parse().ok()?,
            sequence: object.get("sequence")?.as_u64()?,
        };
        let entry = JournalEntry {
            rows: object.get("rows")?.as_u64()?,
            received_min: time("received_min_ns")?,
            received_max: time("received_max_ns")?,
            is_open: object.get("open")?.as_bool()?,
            is_shortened: object.get("shortened").is_some_and(|value| value == true),
        };
        Some((source, entry))
    }
}

impl BucketDay {
    /// The day with what of its sources is not in `held`, if there is something.
    pub fn absent(&self, day: &str, held: &SourceSet, kind: VanishedKind) -> Option<VanishedFile> {
        let sources = self.sources.without(held);
        (!sources.is_empty()).then(|| VanishedFile {
            path: format!("{BUCKET}{day}"),
            sources,
            rows: self.rows,
            kind,
            received_min: self.received.0,
            received_max: self.received.1,
            times: Some(self.times),
        })
    }

    /// Adds a segment.
    pub fn add(&mut self, other: &BucketDay) {
        let rows = self.rows + other.rows;
        self.segments += other.segments;
        self.widen(other);
        self.rows = rows;
    }

    /// Has it span the times and hold the sources of another one, with the rows of the larger one.
    pub fn widen(&mut self, other: &BucketDay) {
        self.rows = self.rows.max(other.rows);
        let widest = |one: (Timestamp, Timestamp), two: (Timestamp, Timestamp)| {
            (one.0.min(two.0), one.1.max(two.1))
        };
        self.received = widest(self.received, other.received);
        self.times = widest(self.times, other.times);
        self.sources.union_with(&other.sources);
    }

    fn to_json(&self, day: &str) -> Value {
        json!({
            "bucket_day": day,
            "segments": self.segments,
            "rows": self.rows,
            "received_min_ns": self.received.0.0,
            "received_max_ns": self.received.1.0,
            "time_min_ns": self.times.0.0,
            "time_max_ns": self.times.1.0,
            "sources": self.sources.to_json(),
        })
    }

    fn from_json(object: &Map<String, Value>) -> Option<(String, BucketDay)> {
        let time = |key: &str| object.get(key)?.as_i64().map(Timestamp);
        let listed = BucketDay {
            segments: object.get("segments")?.as_u64()?,
            rows: object.get("rows")?.as_u64()?,
            received: (time("received_min_ns")?, time("received_max_ns")?),
            times: (time("time_min_ns")?, time("time_max_ns")?),
            sources: SourceSet::from_json(object.get("sources")?)?,
        };
        Some((object.get("bucket_day")?.as_str()?.to_owned(), listed))
    }
}

fn parse(body: &str) -> Option<Inventory> {
    let mut lines = body.lines().map(serde_json::from_str::<Value>);
    let header = lines.next()?.ok()?;
    if header.get("format")?.as_u64()? != FORMAT_VERSION {
        return None;
    }
    let mut inventory = Inventory {
        is_cluster: header.get("cluster")?.as_bool()?,
        ..Inventory::default()
    };
    for line in lines {
        let line = line.ok()?;
        let object = line.as_object()?;
        if object.contains_key("segment") {
            let summary = Summary::from_json(object)?;
            inventory.segments.insert(summary.id, summary);
        } else if object.contains_key("bucket_day") {
            let (day, listed) = BucketDay::from_json(object)?;
            inventory.bucket.insert(day, listed);
        } else {
            let (source, entry) = JournalEntry::from_json(object)?;
            inventory.journal.insert(source, entry);
        }
    }
    let count = |key: &str| header.get(key)?.as_u64();
    let counts = [
        inventory.segments.len(),
        inventory.journal.len(),
        inventory.bucket.len(),
    ];
    let stated = [
        count("segments")?,
        count("journal")?,
        count("bucket_days").unwrap_or(0),
    ];
    (stated == counts.map(|count| count as u64)).then_some(inventory)
}

#[cfg(test)]
mod tests {
    use logpond_record::Incarnation;

    use super::*;
    use crate::file::Place;

    fn source(sequence: u64) -> SourceId {
        SourceId {
            incarnation: Incarnation(7),
            sequence,
        }
    }

    fn summary(id: u128, sources: &[u64]) -> Summary {
        Summary {
            id: Id(id),
            bytes: 1000,
            rows: 5000,
            hash: u128::MAX - 3,
            line_bytes: 9000,
            time_min: Timestamp(i64::MIN),
            time_max: Timestamp(9),
            received_min: Timestamp(1_772_409_600_000_000_000),
            received_max: Timestamp(1_772_409_660_000_000_000),
            cold: true,
            sources: sources.iter().map(|number| source(*number)).collect(),
            has_retries: false,
            manifest_crc: 7,
            directory: Place {
                offset: 4,
                bytes: 5,
                plain_bytes: 6,
                crc: u32::MAX,
            },
        }
    }

    fn inventory() -> Inventory {
        let segments = [summary(1, &[0, 1]), summary(2, &[2])];
        let entry = JournalEntry {
            rows: 1,
            received_min: Timestamp(0),
            received_max: Timestamp(0),
            is_open: true,
            is_shortened: false,
        };
        Inventory {
            is_cluster: false,
            segments: segments.map(|summary| (summary.id, summary)).into(),
            journal: [(source(3), entry)].into(),
            bucket: BTreeMap::new(),
        }
    }

    fn day(sources: &[u64]) -> BucketDay {
        BucketDay {
            segments: 4,
            rows: 70,
            received: (Timestamp(10), Timestamp(20)),
            times: (Timestamp(-5), Timestamp(15)),
            sources: sources.iter().map(|number| source(*number)).collect(),
        }
    }

    #[test]
    fn a_shortened_file_stays_absent_whoever_holds_its_source() {
        let mut inventory = inventory();
        let entry = JournalEntry {
            rows: 40,
            is_shortened: true,
            ..inventory.journal[&source(3)]
        };
        inventory.journal.insert(source(3), entry);
        let bytes = inventory.to_bytes();
        assert_eq!(Inventory::from_bytes(&bytes), Ok(inventory.clone()));
        let files = [1, 2].map(|id| build::path(Id(id), ""));
        let files = files.into_iter().chain([journal::path(source(3), "")]);
        let held = [source(3)].into_iter().collect();
        let absent = inventory.absent(&files.collect(), &held);
        assert_eq!(absent.len(), 1);
        assert_eq!(
            (absent[0].rows, absent[0].kind),
            (40, VanishedKind::ShortenedFile)
        );
        assert!(inventory.forget([], [source(3)]));
    }

    #[test]
    fn days_of_the_bucket_come_back_and_name_what_nothing_holds() {
        let mut inventory = inventory();
        inventory
            .bucket
            .insert("2026-11-23".to_owned(), day(&[4, 5]));
        inventory.bucket.insert("2026-11-24".to_owned(), day(&[6]));
        let bytes = inventory.to_bytes();
        assert_eq!(Inventory::from_bytes(&bytes), Ok(inventory.clone()));
        let absent = |held: &[u64]| {
            let held = held.iter().map(|number| source(*number)).collect();
            let days = inventory.bucket.iter();
            let absent =
                days.filter_map(|(day, listed)| listed.absent(day, &held, VanishedKind::BucketDay));
            absent.collect::<Vec<_>>()
        };
        assert_eq!(absent(&[4, 5, 6]), []);
        let gone = absent(&[4, 6]);
        assert_eq!(gone.len(), 1);
        assert_eq!(gone[0].sources, [source(5)].into_iter().collect());
        assert!(
            gone[0]
                .to_string()
                .starts_with("bucket/2026-11-23: the bucket does not list these segments any more, with up to 70 records")
        );
        assert_eq!(absent(&[]).len(), 2);
    }

    #[test]
    fn a_list_comes_back_and_each_changed_byte_shows() {
        let bytes = inventory().to_bytes();
        assert_eq!(Inventory::from_bytes(&bytes), Ok(inventory()));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(Inventory::from_bytes(&changed).is_err(), "byte {at}");
            assert!(Inventory::from_bytes(&bytes[..at]).is_err(), "{at} bytes");
        }
        let golden = include_str!("../../../testdata/inventory/v1");
        assert_eq!(golden, str::from_utf8(&bytes).unwrap());
    }

    #[test]
    fn what_no_file_holds_is_absent() {
        let absent = |files: &[&str], held: &[u64]| {
            let files = files.iter().map(|file| (*file).to_owned()).collect();
            let held = held.iter().map(|number| source(*number)).collect();
            let absent = inventory().absent(&files, &held);
            absent
                .iter()
                .map(VanishedFile::to_string)
                .collect::<Vec<_>>()
        };
        let first = build::path(Id(1), "");
        let second = build::path(Id(2), "");
        let journal = journal::path(source(3), "");
        assert_eq!(absent(&[&first, &second, &journal], &[]), [""; 0]);
        assert_eq!(absent(&[], &[0, 1, 2, 3]), [""; 0]);
        let gone = absent(&[&first, &journal], &[0]);
        let times = "from 2026-03-02T00:00:00.000000000Z to 2026-03-02T00:01:00.000000000Z";
        let what = format!("the file is gone, with 5000 records received {times}");
        assert_eq!(gone, [format!("{second}.parquet: {what}")]);
        assert_eq!(absent(&[&second], &[1]).len(), 2);
        let mut inventory = inventory();
        assert!(inventory.forget([Id(1), Id(9)], [source(3)]));
        assert!(!inventory.forget([Id(1)], []));
        assert_eq!((inventory.segments.len(), inventory.journal.len()), (1, 0));
    }
}

//! What a snapshot says: which files there are, and what is in them. No IO.

use std::fmt;
use std::str::FromStr;

use logpond_record::{Id, Timestamp};
use logpond_segment::{build, journal};
use serde_json::{Value, json};

use super::{FILES, SNAPSHOTS, STATE_PATHS};

/// The version of the format that is written.
const FORMAT_VERSION: u64 = 1;

/// Length of a snapshot's name.
const NAME_BYTES: usize = "2026-11-23T18-05-00.123Z".len();

/// A snapshot's name: when it was begun, in UTC with milliseconds, with `-` for `:`. Names sort by time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SnapshotName(String);

impl SnapshotName {
    /// The name of a snapshot that is begun `now`, but behind all of which `newest` is the last one,
    /// whatever the clock says.
    pub fn new(now: Timestamp, newest: Option<&SnapshotName>) -> SnapshotName {
        let name = SnapshotName::of(now);
        let after = newest.and_then(|newest| Some(newest.time()?.saturating_add(1_000_000)));
        match after {
            Some(after) => name.max(SnapshotName::of(after)),
            None => name,
        }
    }

    fn of(time: Timestamp) -> SnapshotName {
        let text = time.to_string().replace(':', "-");
        // Nine digits of fraction are written, three are kept.
        let (seconds, fraction) = text.split_once('.').unwrap_or((&text, "000"));
        SnapshotName(format!("{seconds}.{}Z", &fraction[..3]))
    }

    fn time(&self) -> Option<Timestamp> {
        let (date, time) = self.0.split_once('T')?;
        let text = format!("{date}T{}", time.replace('-', ":"));
        let time: jiff::Timestamp = text.parse().ok()?;
        i64::try_from(time.as_nanosecond()).ok().map(Timestamp)
    }

    /// The object.
    pub(super) fn object(&self) -> String {
        format!("{SNAPSHOTS}{}.json", self.0)
    }

    /// The snapshot that an object is; `None` for other objects.
    pub(super) fn of_object(name: &str) -> Option<SnapshotName> {
        name.strip_prefix(SNAPSHOTS)?
            .strip_suffix(".json")?
            .parse()
            .ok()
    }
}

impl fmt::Display for SnapshotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text is no snapshot's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameError;

impl FromStr for SnapshotName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<SnapshotName, NameError> {
        let name = SnapshotName(text.to_owned());
        if text.len() == NAME_BYTES && name.time().is_some_and(|t| SnapshotName::of(t) == name) {
            Ok(name)
        } else {
            Err(NameError)
        }
    }
}

/// What kind of file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A segment.
    Segment,
    /// A closed journal file.
    Journal,
    /// A small file that is replaced now and then.
    State,
}

impl Kind {
    /// The kind of file that is at a path below a data directory; `None` if backups hold no such one.
    pub(super) fn of(path: &str) -> Option<Kind> {
        if STATE_PATHS.contains(&path) {
            return Some(Kind::State);
        }
        let (directory, name) = path.split_once('/')?;
        if directory == build::DIRECTORY {
            let id: Id = name.strip_suffix(build::SUFFIX_LIVE)?.parse().ok()?;
            return (build::path(id, build::SUFFIX_LIVE) == path).then_some(Kind::Segment);
        }
        let (_, suffix) = journal::parse_name(name)?;
        let is_closed = directory == journal::DIRECTORY && suffix == journal::SUFFIX_CLOSED;
        is_closed.then_some(Kind::Journal)
    }
}

/// A file of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it is below the data directory.
    pub path: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// XXH3-128 of its bytes.
    pub checksum: u128,
    /// Rows that can be read from it.
    pub rows: u64,
    /// Whether it was damaged when it was uploaded.
    pub is_damaged: bool,
}

impl Entry {
    /// The object that it is in. Segments and journal files never change and have names of their own;
    /// others are called by their checksum.
    pub(super) fn object(&self) -> String {
        match Kind::of(&self.path) {
            Some(Kind::State) => format!("{FILES}state/{:032x}", self.checksum),
            _ => format!("{FILES}{}", self.path),
        }
    }
}

/// What of the data directory is not in a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Journal files that were being written.
    pub open_files: u64,
    /// Rows that were in these.
    pub open_rows: u64,
    /// Files that the server had put aside as not readable.
    pub put_aside: u64,
}

/// A backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// When it was begun, by the clock of its machine.
    pub created: Timestamp,
    /// The version of the program that wrote it.
    pub version: String,
    /// The machine.
    pub host: String,
    /// The files, in order of their paths.
    pub files: Vec<Entry>,
    /// Sources that are in the segments and journal files.
    pub sources: u64,
    /// What is not in it.
    pub left_out: LeftOut,
}

impl Snapshot {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|entry| entry.bytes).sum()
    }

    /// Rows of all files.
    pub fn rows(&self) -> u64 {
        self.files.iter().map(|entry| entry.rows).sum()
    }

    /// As JSON text.
    pub fn to_json(&self) -> String {
        let file = |entry: &Entry| {
            json!({
                "path": entry.path,
                "bytes": entry.bytes,
                "xxh3": format!("{:032x}", entry.checksum),
                "rows": entry.rows,
                "damaged": entry.is_damaged,
            })
        };
        json!({
            "format": FORMAT_VERSION,
            "created_ns": self.created.0,
            "logpond": self.version,
            "host": self.host,
            "files": self.files.iter().map(file).collect::<Vec<_>>(),
            "totals": {
                "files": self.files.len(),
                "bytes": self.bytes(),
                "rows": self.rows(),
                "sources": self.sources,
            },
            "left_out": {
                "open_files": self.left_out.open_files,
                "open_rows": self.left_out.open_rows,
                "put_aside": self.left_out.put_aside,
            },
        })
        .to_string()
    }

    /// Reads a snapshot.
    ///
    /// # Errors
    /// What is wrong with it: another version, or bytes that do not say what they should. Paths that
    /// backups do not hold are refused, too, so that none leads out of the data directory.
    pub fn from_json(bytes: &[u8]) -> Result<Snapshot, &'static str> {
        let value: Value = serde_json::from_slice(bytes).map_err(|_| "it is not JSON")?;
        match value["format"].as_u64() {
            Some(FORMAT_VERSION) => read(&value).ok_or("it does not say what a snapshot does"),
            Some(_) => Err("its format is that of a newer version of logpond"),
            None => Err("it does not say what a snapshot does"),
        }
    }
}

fn read(value: &Value) -> Option<Snapshot> {
    let files: Option<Vec<Entry>> = value["files"].as_array()?.iter().map(read_entry).collect();
    let (totals, left_out) = (&value["totals"], &value["left_out"]);
    let snapshot = Snapshot {
        created: Timestamp(value["created_ns"].as_i64()?),
        version: value["logpond"].as_str()?.to_owned(),
        host: value["host"].as_str()?.to_owned(),
        files: files?,
        sources: totals["sources"].as_u64()?,
        left_out: LeftOut {
            open_files: left_out["open_files"].as_u64()?,
            open_rows: left_out["open_rows"].as_u64()?,
            put_aside: left_out["put_aside"].as_u64()?,
        },
    };
    let is_ordered = snapshot.files.is_sorted_by(|a, b| a.path < b.path);
    // Sums of what somebody else wrote might not fit.
    let sum = |of: fn(&Entry) -> u64| {
        let mut each = snapshot.files.iter().map(of);
        each.try_fold(0u64, u64::checked_add)
    };
    let is_whole = totals["files"].as_u64()? == snapshot.files.len() as u64
        && totals["bytes"].as_u64() == sum(|entry| entry.bytes)
        && totals["rows"].as_u64() == sum(|entry| entry.rows);
    (is_ordered && is_whole).then_some(snapshot)
}

fn read_entry(value: &Value) -> Option<Entry> {
    let path = value["path"].as_str()?;
    Kind::of(path)?;
    let checksum = value["xxh3"].as_str().filter(|text| text.len() == 32)?;
    Some(Entry {
        path: path.to_owned(),
        bytes: value["bytes"].as_u64()?,
        checksum: u128::from_str_radix(checksum, 16).ok()?,
        rows: value["rows"].as_u64()?,
        is_damaged: value["damaged"].as_bool()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> Snapshot {
        let entry = |path: &str, bytes, checksum, rows| Entry {
            path: path.to_owned(),
            bytes,
            checksum,
            rows,
            is_damaged: rows == 20,
        };
        Snapshot {
            created: Timestamp(1_763_921_100_123_000_000),
            version: "0.1.0".to_owned(),
            host: "ash".to_owned(),
            files: vec![
                entry("alerts/state", 0, 0x99aa, 0),
                entry(
                    "journal/0000000000000000000000000000feed-0000000000000007.journal",
                    4096,
                    u128::MAX,
                    20,
                ),
                entry("queries.toml", 80, 7, 0),
                entry(
                    "segments/01K9ZK4E7R0000000000000000.parquet",
                    1_000_000,
                    1,
                    50_000,
                ),
                entry("tokens.toml", 200, 8, 0),
            ],
            sources: 9,
            left_out: LeftOut {
                open_files: 1,
                open_rows: 17,
                put_aside: 0,
            },
        }
    }

    #[test]
    fn the_format_is_that_of_the_golden_file() {
        let golden = include_str!("../../../../testdata/backup/v1.json");
        assert_eq!(snapshot().to_json() + "\n", golden);
        assert_eq!(Snapshot::from_json(golden.as_bytes()), Ok(snapshot()));
    }

    #[test]
    fn what_is_no_snapshot_is_refused() {
        let text = snapshot().to_json();
        for (part, other) in [
            ("\"format\":1", "\"format\":2"),
            ("\"format\":1", "\"format\":\"1\""),
            ("tokens.toml", "../tokens.toml"),
            ("tokens.toml", "cluster/node"),
            ("alerts/state", "/etc/passwd"),
            ("alerts/state", "queries.tomm"),
            ("alerts/state", "journal/x.journal"),
            (".journal", ".open"),
            ("segments/01", "segments/../01"),
            ("\"bytes\":80", "\"bytes\":81"),
            ("\"bytes\":80", "\"bytes\":18446744073709551615"),
            ("\"rows\":20", "\"rows\":-1"),
            ("\"files\":5", "\"files\":4"),
            ("000007\"", "07\""),
        ] {
            let changed = text.replacen(part, other, 1);
            assert_ne!(changed, text, "{part}");
            assert!(Snapshot::from_json(changed.as_bytes()).is_err(), "{other}");
        }
        assert!(Snapshot::from_json(&text.as_bytes()[..text.len() - 1]).is_err());
    }

    #[test]
    fn objects_are_called_by_what_does_not_change() {
        let objects: Vec<String> = snapshot().files.iter().map(Entry::object).collect();
        assert_eq!(
            objects[0],
            "backup/files/state/000000000000000000000000000099aa"
        );
        assert!(objects[1].starts_with("backup/files/journal/0000"));
        assert_eq!(
            objects[3],
            "backup/files/segments/01K9ZK4E7R0000000000000000.parquet"
        );
    }

    #[test]
    fn names_are_times_in_order() {
        let now = Timestamp(1_763_921_100_123_456_789);
        let name = SnapshotName::new(now, None);
        assert_eq!(name.to_string(), "2025-11-23T18-05-00.123Z");
        assert_eq!(name.to_string().parse(), Ok(name.clone()));
        assert_eq!(SnapshotName::of_object(&name.object()), Some(name.clone()));
        // The clock was set back, or has not gone on.
        let next = SnapshotName::new(Timestamp(0), Some(&name));
        assert_eq!(next.to_string(), "2025-11-23T18-05-00.124Z");
        assert!(SnapshotName::new(now.saturating_add(2_000_000), Some(&name)) > next);
        for text in [
            "",
            "latest",
            "2025-11-23T18:05:00.123Z",
            "2025-13-23T18-05-00.123Z",
        ] {
            assert!(text.parse::<SnapshotName>().is_err(), "{text}");
        }
    }
}

//! The summary of a segment that is kept elsewhere: enough to say what is missing when its file is gone, and to read its
//! rows when its footer is.

use logpond_record::{Id, Timestamp};
use serde_json::{Map, Value, json};

use super::directory::Place;
use super::manifest::{FORMAT_VERSION, Manifest, SourceEntry};
use super::reader::SegmentFile;
use crate::batches::BatchSet;
use crate::sources::SourceSet;

/// A segment's manifest without the details of each source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The segment's name.
    pub id: Id,
    /// Length of its file.
    pub bytes: u64,
    /// Number of rows.
    pub rows: u64,
    /// Sum (modulo 2^128) of the hashes of its rows.
    pub hash: u128,
    /// Bytes of the lines, line ends included.
    pub line_bytes: u64,
    /// Earliest event time.
    pub time_min: Timestamp,
    /// Latest event time.
    pub time_max: Timestamp,
    /// Earliest receive time.
    pub received_min: Timestamp,
    /// Latest receive time.
    pub received_max: Timestamp,
    /// Whether the file is compressed for rest.
    pub cold: bool,
    /// The sources, in the order in which rows name them.
    pub sources: SourceSet,
    /// True if sources are copies of batches that were sent again.
    pub has_retries: bool,
    /// CRC32C of the manifest's text.
    pub manifest_crc: u32,
    /// The place of its directory.
    pub directory: Place,
}

impl Summary {
    /// The summary of a segment.
    pub fn of(segment: &SegmentFile) -> Summary {
        let manifest = segment.manifest();
        let hashes = manifest.sources.iter().map(|entry| entry.hash);
        Summary {
            id: manifest.id,
            bytes: segment.bytes(),
            rows: manifest.rows,
            hash: hashes.fold(0, u128::wrapping_add),
            line_bytes: manifest.line_bytes,
            time_min: manifest.time_min,
            time_max: manifest.time_max,
            received_min: manifest.received_min,
            received_max: manifest.received_max,
            cold: manifest.cold,
            sources: manifest.sources.iter().map(|entry| entry.source).collect(),
            has_retries: manifest.retries().next().is_some(),
            manifest_crc: crc32c::crc32c(manifest.to_json().as_bytes()),
            directory: segment.directory_place(),
        }
    }

    /// A manifest that says the same, without rows and hashes of sources, and without names of batches.
    pub(crate) fn to_manifest(&self) -> Manifest {
        let entry = |source| SourceEntry {
            source,
            rows: 0,
            hash: 0,
            retry: None,
        };
        Manifest {
            format: FORMAT_VERSION,
            id: self.id,
            sources: self.sources.iter().map(entry).collect(),
            batches: BatchSet::default(),
            rows: self.rows,
            line_bytes: self.line_bytes,
            whole_lines: 0,
            whole_bytes: 0,
            time_min: self.time_min,
            time_max: self.time_max,
            received_min: self.received_min,
            received_max: self.received_max,
            cold: self.cold,
        }
    }

    /// The summary as JSON.
    pub fn to_json(&self) -> Value {
        let Place {
            offset,
            bytes,
            plain_bytes,
            crc,
        } = self.directory;
        json!({
            "segment": self.id.to_string(),
            "bytes": self.bytes,
            "rows": self.rows,
            "hash": format!("{:032x}", self.hash),
            "line_bytes": self.line_bytes,
            "time_min_ns": self.time_min.0,
            "time_max_ns": self.time_max.0,
            "received_min_ns": self.received_min.0,
            "received_max_ns": self.received_max.0,
            "cold": self.cold,
            "sources": self.sources.to_json(),
            "retries": self.has_retries,
            "manifest_crc": self.manifest_crc,
            "directory": [offset, bytes, plain_bytes, crc],
        })
    }

    /// Reads what [`Summary::to_json`] gave; `None` for anything else.
    pub fn from_json(object: &Map<String, Value>) -> Option<Summary> {
        let number = |key: &str| object.get(key)?.as_u64();
        let time = |key: &str| object.get(key)?.as_i64().map(Timestamp);
        let flag = |key: &str| object.get(key)?.as_bool();
        let [offset, bytes, plain_bytes, crc] = object.get("directory")?.as_array()?.as_slice()
        else {
            return None;
        };
        let length = |value: &Value| usize::try_from(value.as_u64()?).ok();
        Some(Summary {
            id: object.get("segment")?.as_str()?.parse().ok()?,
            bytes: number("bytes")?,
            rows: number("rows")?,
            hash: u128::from_str_radix(object.get("hash")?.as_str()?, 16).ok()?,
            line_bytes: number("line_bytes")?,
            time_min: time("time_min_ns")?,
            time_max: time("time_max_ns")?,
            received_min: time("received_min_ns")?,
            received_max: time("received_max_ns")?,
            cold: flag("cold")?,
            sources: SourceSet::from_json(object.get("sources")?)?,
            has_retries: flag("retries")?,
            manifest_crc: u32::try_from(number("manifest_crc")?).ok()?,
            directory: Place {
                offset: offset.as_u64()?,
                bytes: length(bytes)?,
                plain_bytes: length(plain_bytes)?,
                crc: u32::try_from(crc.as_u64()?).ok()?,
            },
        })
    }
}

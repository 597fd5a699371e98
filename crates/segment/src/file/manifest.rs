//! The manifest of a segment: what it is and where its rows come from (CLUSTER R2, R4, R12).
//!
//! It is JSON under the key `logpond.manifest` of the Parquet footer, so that people and other
//! programs can read it.

use logpond_record::{Id, Incarnation, SourceId, Timestamp};
use serde_json::{Map, Value, json};

use crate::batches::{BatchId, BatchSet};
use crate::sources::SourceSet;

/// The version of the segment format that is written: 2 has a column of templates, 3 a timeline, 4 a table of
/// patterns.
pub(super) const FORMAT_VERSION: u64 = 4;

/// The first version that can be read.
const FORMAT_VERSION_FIRST: u64 = 1;

/// A source that a segment contains whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceEntry {
    /// The source.
    pub source: SourceId,
    /// Rows of it.
    pub rows: u64,
    /// Sum (modulo 2^128) of the hashes of its rows; independent of their order.
    pub hash: u128,
    /// What it repeats, if it is the copy of a batch that was sent again.
    pub retry: Option<Retry>,
}

/// A source's being a copy of a batch that was sent again (CLUSTER R10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Retry {
    /// The batch.
    pub id: BatchId,
    /// Whether the segment has the batch in another source, or had it before it was trimmed of that
    /// one, so that the rows of this one were left out. The source is listed all the same, with no rows: it must not look as if it were lost.
    pub is_shadowed: bool,
}

/// What a segment is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The version of the file's format.
    pub format: u64,
    /// The segment's name: a fresh ULID.
    pub id: Id,
    /// The sources, sorted; the row's `_source` is an index into this list.
    pub sources: Vec<SourceEntry>,
    /// The named batches of all sources but the retries, and of what it was trimmed of.
    pub batches: BatchSet,
    /// Number of rows.
    pub rows: u64,
    /// Bytes of the lines, line ends included.
    pub line_bytes: u64,
    /// Lines that had to be kept whole.
    pub whole_lines: u64,
    /// Bytes of the lines that had to be kept whole.
    pub whole_bytes: u64,
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
}

impl Manifest {
    /// The manifest as JSON text.
    pub fn to_json(&self) -> String {
        let sources: Vec<Value> = intervals(&self.sources)
            .into_iter()
            .map(|run| {
                json!({
                    "incarnation": run[0].source.incarnation.to_string(),
                    "from": run[0].source.sequence,
                    "to": run[run.len() - 1].source.sequence,
                    "rows": run.iter().map(|s| s.rows).collect::<Vec<_>>(),
                    "hashes": run.iter().map(|s| format!("{:032x}", s.hash)).collect::<Vec<_>>(),
                })
            })
            .collect();
        let retries: Vec<Value> = self.retries().map(|(s, r)| retry_to_json(s, r)).collect();
        json!({
            "format": self.format,
            "id": self.id.to_string(),
            "sources": sources,
            "retries": retries,
            "batches": self.batches.to_json(),
            "rows": self.rows,
            "line_bytes": self.line_bytes,
            "whole_lines": self.whole_lines,
            "whole_bytes": self.whole_bytes,
            "time_min_ns": self.time_min.0,
            "time_max_ns": self.time_max.0,
            "received_min_ns": self.received_min.0,
            "received_max_ns": self.received_max.0,
            "cold": self.cold,
        })
        .to_string()
    }

    /// Reads a manifest. `None` if it is not one, or of a format this program does not know.
    pub fn from_json(text: &str) -> Option<Manifest> {
        let value: Value = serde_json::from_str(text).ok()?;
        let object = value.as_object()?;
        let format = object.get("format")?.as_u64()?;
        if !(FORMAT_VERSION_FIRST..=FORMAT_VERSION).contains(&format) {
            return None;
        }
        let mut sources = Vec::new();
        for run in object.get("sources")?.as_array()? {
            read_interval(run.as_object()?, &mut sources)?;
        }
        for retry in object.get("retries")?.as_array()? {
            read_retry(retry.as_object()?, &mut sources)?;
        }
        let number = |key: &str| object.get(key)?.as_u64();
        let time = |key: &str| object.get(key)?.as_i64().map(Timestamp);
        Some(Manifest {
            format,
            id: object.get("id")?.as_str()?.parse().ok()?,
            sources,
            batches: BatchSet::from_json(object.get("batches")?)?,
            rows: number("rows")?,
            line_bytes: number("line_bytes")?,
            whole_lines: number("whole_lines")?,
            whole_bytes: number("whole_bytes")?,
            time_min: time("time_min_ns")?,
            time_max: time("time_max_ns")?,
            received_min: time("received_min_ns")?,
            received_max: time("received_max_ns")?,
            cold: object.get("cold")?.as_bool()?,
        })
    }
}

impl Manifest {
    /// The sources that are copies of batches that were sent again.
    pub fn retries(&self) -> impl Iterator<Item = (SourceId, Retry)> {
        let sources = self.sources.iter();
        sources.filter_map(|entry| Some((entry.source, entry.retry?)))
    }

    /// Rows of some of its sources; others have none.
    pub fn rows_of(&self, sources: &SourceSet) -> u64 {
        let entries = self.sources.iter();
        let those = entries.filter(|entry| sources.contains(entry.source));
        those.map(|entry| entry.rows).sum()
    }
}

fn retry_to_json(source: SourceId, retry: Retry) -> Value {
    json!({
        "incarnation": source.incarnation.to_string(),
        "sequence": source.sequence,
        "batch": retry.id.to_string(),
        "shadowed": retry.is_shadowed,
    })
}

/// Notes a retry with its source, which must be among those that were read.
fn read_retry(retry: &Map<String, Value>, sources: &mut [SourceEntry]) -> Option<()> {
    let source = SourceId {
        incarnation: retry.get("incarnation")?.as_str()?.parse().ok()?,
        sequence: retry.get("sequence")?.as_u64()?,
    };
    let at = sources.binary_search_by_key(&source, |entry| entry.source);
    sources[at.ok()?].retry = Some(Retry {
        id: retry.get("batch")?.as_str()?.parse().ok()?,
        is_shadowed: retry.get("shadowed")?.as_bool()?,
    });
    Some(())
}

/// Runs of sources of one incarnation with consecutive numbers.
fn intervals(sources: &[SourceEntry]) -> Vec<&[SourceEntry]> {
    sources
        .chunk_by(|a, b| {
            a.source.incarnation == b.source.incarnation
                && a.source.sequence + 1 == b.source.sequence
        })
        .collect()
}

fn read_interval(run: &Map<String, Value>, out: &mut Vec<SourceEntry>) -> Option<()> {
    let incarnation: Incarnation = run.get("incarnation")?.as_str()?.parse().ok()?;
    let (from, to) = (run.get("from")?.as_u64()?, run.get("to")?.as_u64()?);
    let (rows, hashes) = (run.get("rows")?.as_array()?, run.get("hashes")?.as_array()?);
    let count = to.checked_sub(from)?.checked_add(1)?;
    if rows.len() as u64 != count || hashes.len() as u64 != count {
        return None;
    }
    for (sequence, (rows, hash)) in (from..=to).zip(rows.iter().zip(hashes)) {
        out.push(SourceEntry {
            source: SourceId {
                incarnation,
                sequence,
            },
            rows: rows.as_u64()?,
            hash: u128::from_str_radix(hash.as_str()?, 16).ok()?,
            retry: None,
        });
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_comes_back() {
        let source = |incarnation, sequence| SourceEntry {
            source: SourceId {
                incarnation: Incarnation(incarnation),
                sequence,
            },
            rows: sequence + 1,
            hash: u128::MAX - u128::from(sequence),
            retry: None,
        };
        let retry = |sequence, is_shadowed| SourceEntry {
            retry: Some(Retry {
                id: format!("{:032x}-{sequence}-2@1763780000000", 0xfeed)
                    .parse()
                    .unwrap(),
                is_shadowed,
            }),
            ..source(1, sequence)
        };
        let manifest = Manifest {
            format: FORMAT_VERSION_FIRST,
            id: Id(77),
            sources: vec![
                source(1, 0),
                source(1, 1),
                source(1, 5),
                retry(6, false),
                retry(9, true),
                source(u128::MAX, 6),
            ],
            batches: [(7, 0), (7, 1), (7, u64::MAX), (u128::MAX, 3)]
                .into_iter()
                .collect(),
            rows: 12,
            line_bytes: 1000,
            whole_lines: 1,
            whole_bytes: 9,
            time_min: Timestamp(-1),
            time_max: Timestamp(i64::MAX),
            received_min: Timestamp(1),
            received_max: Timestamp(2),
            cold: true,
        };
        let again = Manifest::from_json(&manifest.to_json());
        assert_eq!(again.as_ref(), Some(&manifest));
        assert_eq!(Manifest::from_json("{\"format\":4}"), None);
        let text = manifest.to_json();
        for (part, other) in [
            ("[3,3]", "[3]"),
            ("[3,3]", "[3,2]"),
            ("\"sequence\":9", "\"sequence\":8"),
        ] {
            let changed = text.replace(part, other);
            assert!(
                changed != text && Manifest::from_json(&changed).is_none(),
                "{part}"
            );
        }
        assert_eq!(Manifest::from_json("x"), None);
    }
}

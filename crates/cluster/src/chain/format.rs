//! Links as JSON, so that people and other programs can read them. The layout is in
//! `docs/format/bucket.md`.

use logpond_record::{Id, Timestamp};
use logpond_segment::sources::SourceSet;
use serde_json::{Value, json};

use super::link::{DroppedObject, Link, SEGMENTS_MAX, SegmentEntry};

/// The version of the format that is written.
const FORMAT_VERSION: u64 = 1;

/// The longest link that is read: some 600 bytes for each of [`SEGMENTS_MAX`] segments.
pub const LINK_BYTES_MAX: u64 = 64 << 20;

impl Link {
    /// The link as JSON text.
    pub fn to_json(&self) -> String {
        json!({
            "format": FORMAT_VERSION,
            "day": self.day.to_string(),
            "number": self.number,
            "nonce": format!("{:032x}", self.nonce),
            "segments": self.segments.iter().map(segment_to_json).collect::<Vec<_>>(),
            "dropped": self.dropped.iter().map(dropped_to_json).collect::<Vec<_>>(),
            "expired": self.expired.to_json(),
        })
        .to_string()
    }

    /// True if a later version of this program wrote this link: it is not damaged, and not to be replaced.
    pub fn is_later(text: &[u8]) -> bool {
        let value: Option<Value> = serde_json::from_slice(text).ok();
        let format = value.and_then(|value| value.get("format")?.as_u64());
        format.is_some_and(|format| format > FORMAT_VERSION)
    }

    /// Reads a link. `None` if it is not one, or of a format this program does not know.
    pub fn from_json(text: &[u8]) -> Option<Link> {
        let value: Value = serde_json::from_slice(text).ok()?;
        let object = value.as_object()?;
        if object.get("format")?.as_u64()? != FORMAT_VERSION {
            return None;
        }
        let segments = object.get("segments")?.as_array()?;
        let dropped = object.get("dropped")?.as_array()?;
        let link = Link {
            day: object.get("day")?.as_str()?.parse().ok()?,
            number: object.get("number")?.as_u64()?,
            nonce: u128::from_str_radix(object.get("nonce")?.as_str()?, 16).ok()?,
            segments: segments.iter().map(read_segment).collect::<Option<_>>()?,
            dropped: dropped.iter().map(read_dropped).collect::<Option<_>>()?,
            expired: SourceSet::from_json(object.get("expired")?)?,
        };
        let is_sorted = link.segments.is_sorted_by(|a, b| a.id < b.id);
        let of_day = link.segments.iter().all(|s| s.day() == link.day);
        (is_sorted && of_day && link.segments.len() <= SEGMENTS_MAX).then_some(link)
    }
}

fn segment_to_json(segment: &SegmentEntry) -> Value {
    json!({
        "id": segment.id.to_string(),
        "bytes": segment.bytes,
        "index_from": segment.index_from,
        "rows": segment.rows,
        "line_bytes": segment.line_bytes,
        "time_min_ns": segment.time.0.0,
        "time_max_ns": segment.time.1.0,
        "received_min_ns": segment.received.0.0,
        "received_max_ns": segment.received.1.0,
        "cold": segment.cold,
        "sources": segment.sources.to_json(),
    })
}

fn read_segment(value: &Value) -> Option<SegmentEntry> {
    let object = value.as_object()?;
    let number = |key: &str| object.get(key)?.as_u64();
    let time = |key: &str| object.get(key)?.as_i64().map(Timestamp);
    let segment = SegmentEntry {
        id: object.get("id")?.as_str()?.parse().ok()?,
        bytes: number("bytes")?,
        index_from: number("index_from")?,
        rows: number("rows")?,
        line_bytes: number("line_bytes")?,
        time: (time("time_min_ns")?, time("time_max_ns")?),
        received: (time("received_min_ns")?, time("received_max_ns")?),
        cold: object.get("cold")?.as_bool()?,
        sources: SourceSet::from_json(object.get("sources")?)?,
    };
    (segment.index_from <= segment.bytes).then_some(segment)
}

fn dropped_to_json(dropped: &DroppedObject) -> Value {
    json!({ "id": dropped.id.to_string(), "since_ns": dropped.since.0 })
}

fn read_dropped(value: &Value) -> Option<DroppedObject> {
    let object = value.as_object()?;
    Some(DroppedObject {
        id: object.get("id")?.as_str()?.parse::<Id>().ok()?,
        since: Timestamp(object.get("since_ns")?.as_i64()?),
    })
}

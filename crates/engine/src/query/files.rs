//! The files of this node, as a table.

use logpond_record::SourceId;
use logpond_segment::journal::Summary;
use serde_json::{Value, json};

use super::Trailer;
use super::pond::LocalEngine;
use crate::store::LiveSegment;

/// The files of this node, each as an object.
pub(super) fn all(engine: &LocalEngine) -> Vec<Value> {
    let snapshot = engine.visible.snapshot();
    let file = |path: &str, state: &str, source: SourceId, bytes: u64, summary: &Summary| {
        let mut file = json!({
            "path": path,
            "state": state,
            "rows": summary.rows(),
            "bytes": bytes,
            "raw_bytes": summary.tally.bytes + summary.rows(),
            "whole_lines": 0,
            "sources": [source.to_string()],
            "received_from": summary.received_min.to_string(),
            "received_to": summary.received_max.to_string(),
        });
        if let Some((from, to)) = engine.known.spans.of(source) {
            file["time_from"] = from.to_string().into();
            file["time_to"] = to.to_string().into();
        }
        file
    };
    let closed = snapshot.closed.iter();
    let closed = closed.map(|c| file(&c.path, "journal", c.source, c.bytes, &c.summary));
    let open = snapshot.open.iter();
    let open = open.map(|o| {
        file(
            &o.path,
            "journal-open",
            o.source,
            o.synced_bytes,
            &o.summary,
        )
    });
    let segments = engine.live.snapshot();
    let segments = segments.iter().map(|segment| describe(segment));
    closed.chain(open).chain(segments).collect()
}

/// The same with the end of an answer.
pub(super) fn list(engine: &LocalEngine) -> (Vec<Value>, Trailer) {
    let files = all(engine);
    let rows = files.len() as u64;
    let trailer = Trailer {
        rows,
        ..Trailer::default()
    };
    (files, trailer)
}

/// A segment as an object.
fn describe(segment: &LiveSegment) -> Value {
    let manifest = segment.file().manifest();
    let sources = segment.sources().intervals();
    let sources = sources.map(|(incarnation, interval)| {
        json!({ "incarnation": incarnation.to_string(), "from": interval.from, "to": interval.to })
    });
    json!({
        "path": format!("segments/{}.parquet", manifest.id),
        "place": if segment.is_remote() { "bucket" } else { "disk" },
        "state": if manifest.cold { "cold" } else { "hot" },
        "rows": manifest.rows,
        "bytes": segment.file().bytes(),
        "raw_bytes": manifest.line_bytes,
        "whole_lines": manifest.whole_lines,
        "whole_bytes": manifest.whole_bytes,
        "sources": sources.collect::<Vec<_>>(),
        "time_from": manifest.time_min.to_string(),
        "time_to": manifest.time_max.to_string(),
        "received_from": manifest.received_min.to_string(),
        "received_to": manifest.received_max.to_string(),
    })
}

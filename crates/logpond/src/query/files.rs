//! The files of this node, as a table.

use logpond_segment::journal::Summary;
use serde_json::{Value, json};

use super::output::Output;
use super::pond::Pond;
use super::{QueryError, Trailer};
use crate::store::LiveSegment;

pub(super) fn list(engine: &Pond, out: &mut Output) -> Result<Trailer, QueryError> {
    let snapshot = engine.visible.snapshot();
    let mut trailer = Trailer::default();
    let mut file = |path: &str, state: &str, source: String, bytes: u64, summary: &Summary| {
        trailer.rows += 1;
        out.json(&json!({
            "path": path,
            "state": state,
            "rows": summary.rows(),
            "bytes": bytes,
            "raw_bytes": summary.tally.bytes + summary.rows(),
            "whole_lines": 0,
            "sources": [source],
            "received_from": summary.received_min.to_string(),
            "received_to": summary.received_max.to_string(),
        }))
    };
    for closed in snapshot.closed.iter() {
        let source = closed.source.to_string();
        file(
            &closed.path,
            "journal",
            source,
            closed.bytes,
            &closed.summary,
        )?;
    }
    for open in &snapshot.open {
        let source = open.source.to_string();
        file(
            &open.path,
            "journal-open",
            source,
            open.synced_bytes,
            &open.summary,
        )?;
    }
    for segment in engine.live.snapshot().iter() {
        trailer.rows += 1;
        out.json(&describe(segment))?;
    }
    Ok(trailer)
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

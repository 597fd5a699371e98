//! Tables over the pond: top values, histogram, fields, files.

use logpond_record::{Record, TimeRange};
use logpond_search::aggregate::{FieldStats, Histogram, Top, TopRow};
use logpond_search::scan::{GroupScan, Selected};
use logpond_segment::file::ReadError;
use logpond_segment::journal::Summary;
use serde_json::{Value, json};

use super::journal_rows::Pass;
use super::output::Output;
use super::pond::Pond;
use super::progress::Progress;
use super::segment_rows::SegmentPass;
use super::{QueryError, Scope, Trailer};
use crate::store::LiveSegment;

pub(super) fn top(
    engine: &Pond,
    scope: &Scope,
    field: &str,
    count_max: usize,
    out: &mut Output,
) -> Result<Trailer, QueryError> {
    let (top, mut trailer) = each(
        engine,
        scope,
        out,
        || Top::new(field),
        Top::add,
        |scan, selected, top| scan.add_to_top(field, selected, top),
        Top::merge,
    )?;
    let answer = top.finish(count_max);
    for row in &answer.rows {
        // The value first, as people read it; a JSON map would sort the names.
        let (value, count) = (value_of(row), row.count);
        let text = format!(r#"{{"value":{value},"count":{count}}}"#);
        out.line(|chunk| chunk.extend_from_slice(text.as_bytes()))?;
    }
    if !answer.is_exact() {
        let uncounted = answer.uncounted;
        trailer.miss(format_args!(
            "{uncounted} records with values that found no room"
        ));
    }
    Ok(trailer)
}

/// Numbers and truth values as they are, all else as text.
fn value_of(row: &TopRow) -> Value {
    let text = String::from_utf8_lossy(&row.value);
    let bare = row
        .types
        .is_bare_json()
        .then(|| serde_json::from_str(&text).ok());
    bare.flatten()
        .unwrap_or_else(|| Value::String(text.into_owned()))
}

pub(super) fn histogram(
    engine: &Pond,
    scope: &Scope,
    range: TimeRange,
    step_ns: i64,
    out: &mut Output,
) -> Result<Trailer, QueryError> {
    let histogram = Histogram::new(range, step_ns, 0);
    let empty = histogram.map_err(|e| QueryError::Impossible(e.to_string()))?;
    let (histogram, trailer) = each(
        engine,
        scope,
        out,
        || empty.clone(),
        Histogram::add,
        |scan, selected, histogram| scan.add_to_histogram(selected, histogram),
        Histogram::merge,
    )?;
    for bucket in histogram.finish().buckets {
        let to = bucket.start.saturating_add(step_ns);
        let (from, to) = (bucket.start.to_string(), to.to_string());
        out.json(&json!({ "from": from, "to": to, "count": bucket.count }))?;
    }
    Ok(trailer)
}

pub(super) fn fields(
    engine: &Pond,
    scope: &Scope,
    out: &mut Output,
) -> Result<Trailer, QueryError> {
    let (stats, mut trailer) = each(
        engine,
        scope,
        out,
        FieldStats::new,
        FieldStats::add,
        |scan, selected, stats| scan.add_to_fields(selected, stats),
        FieldStats::merge,
    )?;
    let answer = stats.finish();
    for field in &answer.fields {
        let types: Vec<_> = field.types.iter().map(|t| t.as_str()).collect();
        out.json(&json!({
            "field": field.name,
            "rows": field.rows,
            "share": field.share,
            "types": types,
            "distinct": field.distinct,
            "distinct_is_exact": field.distinct_is_exact,
        }))?;
    }
    if answer.unlisted > 0 {
        let unlisted = answer.unlisted;
        trailer.miss(format_args!(
            "{unlisted} values of fields beyond the number that is listed"
        ));
    }
    Ok(trailer)
}

pub(super) fn segments(engine: &Pond, out: &mut Output) -> Result<Trailer, QueryError> {
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

/// Adds every record of a scope to a table: those of the journal one by one, those of segments
/// column by column, on several threads with a table each.
fn each<T: Send>(
    engine: &Pond,
    scope: &Scope,
    out: &mut Output,
    new_table: impl Fn() -> T + Sync,
    add_record: impl Fn(&mut T, &Record<'_>),
    add_block: impl Fn(&mut GroupScan<'_>, &Selected, &mut T) -> Result<(), ReadError> + Sync,
    merge: impl Fn(&mut T, T),
) -> Result<(T, Trailer), QueryError> {
    let view = engine.view()?;
    let mut trailer = Trailer::default();
    view.note_missing(&mut trailer);
    let mut progress = Progress::new(false, view.bytes());
    let (mut table, mut rows) = (new_table(), 0);
    let mut pass = Pass {
        view: &view,
        newest: &engine.newest,
        out,
        trailer: &mut trailer,
        progress: &mut progress,
    };
    pass.matches(scope, |record| {
        rows += 1;
        add_record(&mut table, record);
    })?;
    let pass = SegmentPass {
        spare_threads: &engine.spare_threads,
        view: &view,
        scope,
        counts_only: false,
    };
    let visit = |scan: &mut GroupScan<'_>, selected: Selected, table: &mut T| {
        add_block(scan, &selected, table)
    };
    for stored in pass.run(out, &mut trailer, &mut progress, new_table, visit)? {
        merge(&mut table, stored);
    }
    trailer.rows += rows;
    Ok((table, engine.finish(trailer)))
}

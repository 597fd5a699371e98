//! Tables over the journal: top values, histogram, fields, files.

use logpond_record::TimeRange;
use logpond_search::aggregate::{FieldStats, Histogram, Top, TopRow};
use logpond_segment::journal::Summary;
use serde_json::{Value, json};

use super::super::output::Output;
use super::super::{QueryError, Scope, Trailer};
use super::JournalEngine;

pub(super) fn top(
    engine: &JournalEngine,
    scope: &Scope,
    field: &str,
    count_max: usize,
    out: &mut Output,
) -> Result<Trailer, QueryError> {
    let mut top = Top::new(field);
    let mut trailer = each(engine, scope, out, |record| top.add(record))?;
    let answer = top.finish(count_max);
    for row in &answer.rows {
        out.json(&json!({ "value": value_of(row), "count": row.count }))?;
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
    engine: &JournalEngine,
    scope: &Scope,
    range: TimeRange,
    step_ns: i64,
    out: &mut Output,
) -> Result<Trailer, QueryError> {
    let histogram = Histogram::new(range, step_ns, 0);
    let mut histogram = histogram.map_err(|e| QueryError::Impossible(e.to_string()))?;
    let trailer = each(engine, scope, out, |record| histogram.add(record))?;
    for bucket in histogram.finish().buckets {
        let to = bucket.start.saturating_add(step_ns);
        let (from, to) = (bucket.start.to_string(), to.to_string());
        out.json(&json!({ "from": from, "to": to, "count": bucket.count }))?;
    }
    Ok(trailer)
}

pub(super) fn fields(
    engine: &JournalEngine,
    scope: &Scope,
    out: &mut Output,
) -> Result<Trailer, QueryError> {
    let mut stats = FieldStats::new();
    let mut trailer = each(engine, scope, out, |record| stats.add(record))?;
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

pub(super) fn segments(engine: &JournalEngine, out: &mut Output) -> Result<Trailer, QueryError> {
    let snapshot = engine.visible.snapshot();
    let mut trailer = Trailer::default();
    let mut file = |path: &str, state: &str, source: String, bytes: u64, summary: &Summary| {
        trailer.rows += 1;
        out.json(&json!({
            "path": path,
            "state": state,
            "rows": summary.rows(),
            "bytes": bytes,
            "raw_bytes": summary.tally.bytes,
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
    Ok(trailer)
}

fn each(
    engine: &JournalEngine,
    scope: &Scope,
    out: &mut Output,
    mut add: impl FnMut(&logpond_record::Record<'_>),
) -> Result<Trailer, QueryError> {
    let snapshot = engine.visible.snapshot();
    let mut trailer = Trailer::default();
    let mut rows = 0;
    engine.each_match(scope, &snapshot, false, out, &mut trailer, |record| {
        rows += 1;
        add(record);
    })?;
    trailer.rows = rows;
    trailer.newest = super::Engine::newest(engine);
    Ok(trailer)
}

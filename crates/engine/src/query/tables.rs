//! Tables: top values, histogram, patterns, fields, labels and their streams.

use logpond_record::TimeRange;
use logpond_search::aggregate::{
    FieldStats, FieldsAnswer, HistogramSpec, LabelValues, Patterns, PatternsAnswer,
    STREAMS_BYTES_MAX, Series, StreamRow, Streams, StreamsAsked, Top, TopRow, ValueType,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::label_tables::Labels;
use super::output::Output;
use super::reads::Reads;
use super::{QueryError, Scope, Trailer};

pub(super) fn top(
    reads: &impl Reads,
    scope: &Scope,
    field: &str,
    count_max: usize,
    out: &mut Output,
    trailer: &mut Trailer,
) -> Result<(), QueryError> {
    let top = reads.table(scope, &Top::new(field), out, trailer)?;
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
    Ok(())
}

/// Numbers and truth values as they are written, all else as text.
fn value_of(row: &TopRow) -> String {
    let text = String::from_utf8_lossy(&row.value);
    let is_number = |kind| matches!(kind, ValueType::Int | ValueType::Float | ValueType::Json);
    let has_digit = text
        .trim_start_matches('-')
        .starts_with(|c: char| c.is_ascii_digit());
    let is_bare = row.types.is_bare_json() || has_digit && row.types.iter().all(is_number);
    match is_bare && serde_json::from_str::<&RawValue>(&text).is_ok() {
        true => text.into_owned(),
        false => Value::String(text.into_owned()).to_string(),
    }
}

pub(super) fn histogram(
    reads: &impl Reads,
    scope: &Scope,
    spec: &HistogramSpec,
    out: &mut Output,
    trailer: &mut Trailer,
) -> Result<(), QueryError> {
    let empty = spec.empty();
    let empty = empty.map_err(|e| QueryError::Impossible(e.to_string()))?;
    let answer = reads.table(scope, &empty, out, trailer)?.finish();
    for (at, bucket) in answer.buckets.iter().enumerate() {
        let to = bucket.start.saturating_add(spec.step_ns);
        let (from, to) = (bucket.start.to_string(), to.to_string());
        let mut row = json!({ "from": from, "to": to, "count": bucket.count });
        if spec.by.is_some() {
            row["by"] = counts_by_value(&answer.series, at);
            let other = answer.other.as_ref().map_or(0, |other| other.counts[at]);
            if other > 0 {
                row["other"] = other.into();
            }
        }
        out.json(&row)?;
    }
    Ok(())
}

/// How many records of a bucket have each value, those without one left out.
fn counts_by_value(series: &[Series], bucket: usize) -> Value {
    let counts = series.iter().filter_map(|series| {
        let value = String::from_utf8_lossy(series.value.as_deref()?);
        let count = series.counts[bucket];
        (count > 0).then(|| (value.into_owned(), count.into()))
    });
    Value::Object(counts.collect())
}

/// Patterns over a range with buckets of so many nanoseconds.
pub(super) fn patterns(
    reads: &impl Reads,
    scope: &Scope,
    (range, step_ns): (TimeRange, i64),
    count_max: usize,
    out: &mut Output,
    trailer: &mut Trailer,
) -> Result<PatternsAnswer, QueryError> {
    let patterns = Patterns::new(range, step_ns);
    let empty = patterns.map_err(|e| QueryError::Impossible(e.to_string()))?;
    let patterns = reads.table(scope, &empty, out, trailer)?;
    Ok(patterns.finish(count_max))
}

pub(super) fn fields(
    reads: &impl Reads,
    scope: &Scope,
    out: &mut Output,
    trailer: &mut Trailer,
) -> Result<(), QueryError> {
    let stats = reads.table(scope, &FieldStats::new(), out, trailer)?;
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
    Ok(())
}

pub(super) fn labels(
    reads: &impl Reads,
    scope: &Scope,
    out: &mut Output,
    trailer: &mut Trailer,
) -> Result<FieldsAnswer, QueryError> {
    let labels = reads.table(scope, &Labels::default(), out, trailer)?;
    let answer = labels.finish();
    if answer.unlisted > 0 {
        let unlisted = answer.unlisted;
        trailer.miss(format_args!(
            "{unlisted} labels beyond the number that is listed"
        ));
    }
    Ok(answer)
}

pub(super) fn label_values(
    reads: &impl Reads,
    scope: &Scope,
    label: &str,
    out: &mut Output,
    trailer: &mut Trailer,
) -> Result<Vec<String>, QueryError> {
    let values = reads.table(scope, &LabelValues::new(label), out, trailer)?;
    let (values, unlisted) = values.finish();
    if unlisted > 0 {
        trailer.miss(format_args!("values of '{label}' that found no room"));
    }
    Ok(values)
}

/// Fails where there are more streams than there is room for: some of them would be no answer.
pub(super) fn streams(
    reads: &impl Reads,
    scope: &Scope,
    asked: &StreamsAsked,
    out: &mut Output,
    trailer: &mut Trailer,
) -> Result<Vec<StreamRow>, QueryError> {
    let streams = reads.table(scope, &Streams::new(asked.clone()), out, trailer)?;
    let answer = streams.finish();
    if answer.uncounted > 0 {
        return Err(QueryError::Impossible(format!(
            "the labels of {} streams take {} MiB, and there are more: ask for a shorter time, \
             select by labels, or name the labels that matter",
            answer.streams.len(),
            STREAMS_BYTES_MAX >> 20
        )));
    }
    Ok(answer.streams)
}

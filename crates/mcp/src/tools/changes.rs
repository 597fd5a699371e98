//! `changes`: what is different between two ranges of time.
//!
//! Counts are compared by the second, since the ranges may differ in length.

use std::collections::BTreeMap;

use jiff::Timestamp;
use logpond_client::Trailer;
use logpond_record::cast;
use serde_json::{Value, json};

use super::super::answer::Rows;
use super::super::arguments::{Argument, ArgumentKind, FROM, QUERY, TO, number, optional};
use super::super::report::{Report, range};
use super::patterns::sample;
use super::{Call, Tool, ToolError, parameter};

const FACTOR: Argument = number(
    "factor",
    (10, 2, 1_000),
    "A pattern or value counts as changed if it is so many times as frequent, or so many times rarer.",
);

const FIELDS: Argument = Argument {
    kind: ArgumentKind::Texts,
    ..optional(
        "fields",
        "The fields whose values are compared. The default is those with few values that most records have.",
    )
};

/// Patterns of a range that are compared. More would be rare.
const PATTERNS_MAX: usize = 1_000;

/// Values of a field that are compared.
const VALUES_MAX: usize = 200;

/// Fields that are compared at most.
const FIELDS_MAX: usize = 12;

/// Values of a field that are reported.
const VALUES_SHOWN_MAX: usize = 6;

/// Fields with more values, such as ids, are not compared unless they are named.
const DISTINCT_MAX: u64 = 1_000;

/// A rarer field is not compared unless it is named.
const SHARE_MIN: f64 = 0.05;

/// A change of the share of a value that is reported.
const SHARE_MOVED_MIN: f64 = 0.05;

/// A value or pattern that occurs less often in both ranges is chance.
const COUNT_MIN: u64 = 3;

pub(super) const TOOL: Tool = Tool {
    name: "changes",
    title: "Compare two ranges of time",
    help: "Compares a range of time with an earlier one: patterns of messages that are new, gone, or much more or less \
           frequent, and values of fields whose share moved. It is the first call to find out what broke.",
    arguments: &[
        QUERY,
        FROM,
        TO,
        optional(
            "before_from",
            "The beginning of the earlier range. The default range has the same length and ends at `from`.",
        ),
        optional(
            "before_to",
            "The end of the earlier range, excluded. The default is `from`.",
        ),
        FACTOR,
        FIELDS,
    ],
    run: |call| Box::pin(run(call)),
};

/// A range of time.
#[derive(Clone, Debug)]
struct Span {
    from: String,
    to: String,
    seconds: f64,
}

impl Span {
    /// The range that an answer is about.
    fn of(trailer: &Trailer) -> Option<Span> {
        let now = Timestamp::now().to_string();
        Span::new(trailer.from.clone()?, trailer.to.clone().unwrap_or(now))
    }

    fn new(from: String, to: String) -> Option<Span> {
        let (start, end): (Timestamp, Timestamp) = (from.parse().ok()?, to.parse().ok()?);
        let seconds = (end - start).total(jiff::Unit::Second).ok()?;
        Some(Span {
            from,
            to,
            seconds: seconds.max(0.001),
        })
    }

    /// The range of the same length before it.
    fn before(&self) -> Option<Span> {
        let (start, end): (Timestamp, Timestamp) = (self.from.parse().ok()?, self.to.parse().ok()?);
        let earlier = start.checked_sub(end - start).ok()?;
        Span::new(earlier.to_string(), self.from.clone())
    }

    fn parameters(&self, call: &Call) -> Vec<(String, String)> {
        let mut parameters = call.parameters(&[("query", "q")]);
        parameters.extend([parameter("from", &self.from), parameter("to", &self.to)]);
        parameters
    }
}

async fn run(call: Call) -> Result<Report, ToolError> {
    let mut report = Report::complete(Vec::new());
    let mut parameters = call.scope();
    parameters.push(parameter("n", PATTERNS_MAX));
    let after = call.rows("/api/v1/patterns", parameters).await?;
    report.lack(after.trailer.as_ref());
    let now = after.trailer.as_ref().and_then(Span::of).ok_or_else(|| {
        ToolError::Arguments("the range is too large for a comparison; narrow it".to_owned())
    })?;
    let (before, earlier) = patterns_before(&call, &now).await?;
    report.lack(before.trailer.as_ref());
    for (name, trailer) in [("range", &after.trailer), ("before", &before.trailer)] {
        if let Some(trailer) = trailer {
            let (rows, range) = (trailer.rows, range(trailer));
            report
                .facts
                .push(format!("{name}: {range}, {rows} records"));
        }
    }
    if before.rows.len() >= PATTERNS_MAX {
        report.facts.push(format!(
            "the earlier range has more than {PATTERNS_MAX} patterns: one that is called new may have been rare"
        ));
    }
    let factor = cast::float(call.arguments.number(&FACTOR));
    let spans = (&earlier, &now);
    report.rows = changed_patterns(&before.rows, &after.rows, spans, factor);
    let fields = fields(&call, &now, &mut report).await?;
    for field in fields {
        let mut tables = Vec::new();
        for span in [&earlier, &now] {
            let mut parameters = span.parameters(&call);
            parameters.push(parameter("field", &field));
            parameters.push(parameter("n", VALUES_MAX));
            let answer = call.rows("/api/v1/top", parameters).await?;
            report.lack(answer.trailer.as_ref());
            tables.push(Table::of(&answer));
        }
        if let [before, after] = &tables[..] {
            let moved = moved_values(&field, (before, after), spans, factor);
            report.rows.extend(moved);
        }
    }
    if report.rows.is_empty() {
        let fact = "nothing changed that much; lower 'factor' or choose other ranges";
        report.facts.push(fact.to_owned());
    }
    Ok(report)
}

/// The patterns of the earlier range.
async fn patterns_before(call: &Call, now: &Span) -> Result<(Rows, Span), ToolError> {
    let given = call.parameters(&[("before_from", "from"), ("before_to", "to")]);
    let mut parameters = call.parameters(&[("query", "q")]);
    match (&given[..], now.before()) {
        ([], Some(before)) => parameters = before.parameters(call),
        (given, _) => {
            parameters.extend(given.iter().cloned());
            if given.iter().all(|(name, _)| name != "to") {
                parameters.push(parameter("to", &now.from));
            }
        }
    }
    parameters.push(parameter("n", PATTERNS_MAX));
    let answer = call.rows("/api/v1/patterns", parameters).await?;
    let span = answer.trailer.as_ref().and_then(Span::of);
    let span = span.ok_or_else(|| {
        let message = "the earlier range is too large for a comparison; narrow it";
        ToolError::Arguments(message.to_owned())
    })?;
    Ok((answer, span))
}

/// How something changed, if it changed by this factor.
fn change(
    (before, after): (u64, u64),
    (earlier, now): (&Span, &Span),
    factor: f64,
) -> Option<&'static str> {
    if before.max(after) < COUNT_MIN {
        // Once may be the cause of all else: a new kind of message counts by itself.
        return (before == 0 && after > 0).then_some("new");
    }
    let (was, is) = (
        cast::float(before) / earlier.seconds,
        cast::float(after) / now.seconds,
    );
    match (before, after) {
        (0, _) => Some("new"),
        (_, 0) => Some("gone"),
        _ if is >= was * factor => Some("more"),
        _ if is * factor <= was => Some("less"),
        _ => None,
    }
}

fn changed_patterns(
    before: &[Value],
    after: &[Value],
    spans: (&Span, &Span),
    factor: f64,
) -> Vec<Value> {
    /// Counts before and after, and a row that shows the pattern.
    type Pattern<'a> = (u64, u64, &'a Value);
    let mut patterns: BTreeMap<(String, String), Pattern<'_>> = BTreeMap::new();
    let key = |row: &Value| (row["pattern"].to_string(), row["level"].to_string());
    for row in before {
        let pattern = patterns.entry(key(row)).or_insert((0, 0, row));
        pattern.0 += count(row);
    }
    for row in after {
        let pattern = patterns.entry(key(row)).or_insert((0, 0, row));
        pattern.1 += count(row);
        pattern.2 = row;
    }
    let mut changed: Vec<_> = patterns
        .into_values()
        .filter_map(|(was, is, row)| Some((change((was, is), spans, factor)?, was, is, row)))
        .collect();
    let order = |change: &str| {
        ["new", "more", "gone", "less"]
            .iter()
            .position(|c| *c == change)
    };
    changed.sort_by_key(|(change, was, is, _)| (order(change), std::cmp::Reverse((*is).max(*was))));
    let rows = changed.into_iter().map(|(change, was, is, row)| {
        json!({
            "change": change,
            "pattern": row["pattern"],
            "level": row["level"],
            "count_before": was,
            "count": is,
            "example": sample(row),
        })
    });
    rows.collect()
}

/// The fields that are compared.
async fn fields(call: &Call, now: &Span, report: &mut Report) -> Result<Vec<String>, ToolError> {
    let named = call.arguments.texts(FIELDS.name);
    if !named.is_empty() {
        return Ok(named.into_iter().take(FIELDS_MAX).collect());
    }
    let answer = call.rows("/api/v1/fields", now.parameters(call)).await?;
    report.lack(answer.trailer.as_ref());
    let mut fields: Vec<(f64, String)> = answer
        .rows
        .iter()
        .filter_map(|row| {
            let name = row["field"].as_str()?;
            let (share, distinct) = (row["share"].as_f64()?, row["distinct"].as_u64()?);
            let is_compared = share >= SHARE_MIN && distinct <= DISTINCT_MAX;
            let is_own = name.starts_with('_');
            (is_compared && !is_own).then(|| (share, name.to_owned()))
        })
        .collect();
    fields.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    Ok(fields
        .into_iter()
        .map(|(_, name)| name)
        .take(FIELDS_MAX)
        .collect())
}

/// The counts of the values of a field.
#[derive(Debug, Default)]
struct Table {
    counts: BTreeMap<String, (u64, Value)>,
    /// Records of the range.
    records: u64,
    /// True if there are more values.
    is_cut: bool,
}

impl Table {
    fn of(answer: &Rows) -> Table {
        let row = |row: &Value| (row["value"].to_string(), (count(row), row["value"].clone()));
        Table {
            counts: answer.rows.iter().map(row).collect(),
            records: answer.trailer.as_ref().map_or(0, |trailer| trailer.rows),
            is_cut: answer.rows.len() >= VALUES_MAX,
        }
    }

    fn count(&self, key: &str) -> u64 {
        self.counts.get(key).map_or(0, |(count, _)| *count)
    }

    fn share(&self, key: &str) -> f64 {
        cast::float(self.count(key)) / cast::float(self.records.max(1))
    }
}

/// The values of a field whose share moved, or that changed by the factor.
fn moved_values(
    field: &str,
    (before, after): (&Table, &Table),
    spans: (&Span, &Span),
    factor: f64,
) -> Vec<Value> {
    let all = before.counts.iter().chain(&after.counts);
    let values: BTreeMap<&String, &Value> = all.map(|(key, (_, value))| (key, value)).collect();
    let mut moved: Vec<(f64, Value)> = Vec::new();
    for (key, value) in values {
        let counts = (before.count(key), after.count(key));
        let shares = (before.share(key), after.share(key));
        let distance = (shares.1 - shares.0).abs();
        let is_frequent = counts.0.max(counts.1) >= COUNT_MIN;
        // A value behind the last of a cut table is not known to be absent.
        let is_known = (counts.0 > 0 || !before.is_cut) && (counts.1 > 0 || !after.is_cut);
        let change = change(counts, spans, factor).filter(|_| is_known);
        if !is_frequent || (distance < SHARE_MOVED_MIN && change.is_none()) {
            continue;
        }
        let row = json!({
            "change": change.unwrap_or("moved"),
            "field": field,
            "value": value,
            "count_before": counts.0,
            "count": counts.1,
            "share_before": rounded(shares.0),
            "share": rounded(shares.1),
        });
        moved.push((distance, row));
    }
    moved.sort_by(|a, b| b.0.total_cmp(&a.0));
    moved
        .into_iter()
        .map(|(_, row)| row)
        .take(VALUES_SHOWN_MAX)
        .collect()
}

fn count(row: &Value) -> u64 {
    row["count"].as_u64().unwrap_or(0)
}

fn rounded(share: f64) -> f64 {
    (share * 1e4).round() / 1e4
}

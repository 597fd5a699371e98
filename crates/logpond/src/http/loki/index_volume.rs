//! `GET|POST /loki/api/v1/index/volume` and `…/volume_range`: bytes by labels, most first.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use hyper::Response;
use logpond_record::{TimeRange, Timestamp};
use logpond_search::aggregate::{LabelSet, StreamRow, StreamsAsked};
use logpond_search::logql::LabelMatcher;

use super::reply::{Writer, failed, gathered, seconds, write_labels, write_warnings};
use super::{Asked, selector, times};
use crate::http::App;
use crate::http::body::Body;
use crate::http::error::ApiError;

/// Series of bytes: of each the steps that have some.
type Volumes = Vec<(LabelSet, BTreeMap<i64, u64>)>;

/// What volumes are told apart by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// Values of labels.
    Series,
    /// Names of labels.
    Labels,
}

/// What is asked.
struct Wanted {
    range: TimeRange,
    /// The length of a step; nothing for one number over the whole range.
    step_ns: Option<i64>,
    limit: usize,
    by: By,
    targets: Vec<Box<str>>,
}

/// Sums bytes up: by the labels of `targetLabels`, or of the selector's matchers, or by all labels.
pub(super) async fn answer(
    app: &Arc<App>,
    asked: Asked,
    has_steps: bool,
) -> Result<Response<Body>, ApiError> {
    let wanted = wanted(&asked, has_steps)?;
    let query = asked.text("query").map(str::to_owned);
    let gather = move |app: &App, out: &mut _| {
        let matchers = selector::matchers(query.as_deref())?;
        let scope = selector::scope_of(&matchers, wanted.range)?;
        let streams = streams_asked(&wanted, &matchers);
        let (streams, trailer) = app.engine.streams(&scope, &streams, out).map_err(failed)?;
        let volumes = volumes(streams, &wanted);
        Ok(((volumes, wanted), trailer))
    };
    gathered(
        app,
        &asked.headers,
        gather,
        |(volumes, wanted), warnings, to| write(&volumes, &wanted, warnings, to),
    )
    .await
}

fn wanted(asked: &Asked, has_steps: bool) -> Result<Wanted, ApiError> {
    let range = times::range(asked)?;
    let by = match asked.text("aggregateBy") {
        None | Some("series") => By::Series,
        Some("labels") => By::Labels,
        Some(other) => {
            return Err(ApiError::bad_request(format!(
                "invalid aggregateBy '{other}': it is series or labels"
            )));
        }
    };
    let targets = asked.text("targetLabels").unwrap_or_default();
    let targets = targets.split(',').map(str::trim);
    Ok(Wanted {
        range,
        step_ns: match has_steps {
            true => Some(times::step_ns(asked, range)?),
            false => None,
        },
        limit: usize::try_from(times::limit(asked)?).unwrap_or(usize::MAX),
        by,
        targets: targets
            .filter(|name| !name.is_empty())
            .map(Box::from)
            .collect(),
    })
}

fn streams_asked(wanted: &Wanted, matchers: &[LabelMatcher]) -> StreamsAsked {
    let mut names = wanted.targets.clone();
    // By the names of labels all of them count, unless some are named.
    if names.is_empty() && wanted.by == By::Series {
        for matcher in matchers {
            let name: Box<str> = (*matcher.name).into();
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    StreamsAsked {
        by: (!names.is_empty()).then_some(names),
        steps: wanted.step_ns.map(|step_ns| (wanted.range.from, step_ns)),
    }
}

/// The volumes, largest first, equal ones by their labels.
fn volumes(streams: Vec<StreamRow>, wanted: &Wanted) -> Volumes {
    let mut volumes: BTreeMap<LabelSet, BTreeMap<i64, u64>> = BTreeMap::new();
    let mut add = |labels: LabelSet, row: &StreamRow| {
        *volumes
            .entry(labels)
            .or_default()
            .entry(row.step)
            .or_default() += row.tally.bytes;
    };
    for row in &streams {
        match wanted.by {
            By::Series if row.labels.is_empty() => {}
            By::Series => add(row.labels.clone(), row),
            By::Labels => {
                for (name, _) in row.labels.iter() {
                    add(LabelSet::of_name(name), row);
                }
            }
        }
    }
    let total = |steps: &BTreeMap<i64, u64>| -> u64 { steps.values().sum() };
    let mut volumes: Volumes = volumes.into_iter().collect();
    volumes.sort_by_key(|(_, steps)| std::cmp::Reverse(total(steps)));
    volumes.truncate(wanted.limit);
    volumes
}

fn write(
    volumes: &Volumes,
    wanted: &Wanted,
    warnings: &[String],
    to: Writer<'_>,
) -> io::Result<()> {
    let kind = if wanted.step_ns.is_some() {
        "matrix"
    } else {
        "vector"
    };
    write!(
        to,
        "{{\"status\":\"success\",\"data\":{{\"resultType\":\"{kind}\",\"result\":["
    )?;
    for (at, (labels, steps)) in volumes.iter().enumerate() {
        if at > 0 {
            to.write_all(b",")?;
        }
        to.write_all(b"{\"metric\":")?;
        match wanted.by {
            By::Series => write_labels(labels.iter(), to)?,
            By::Labels => write_labels(labels.iter().map(|(name, _)| (name, "")), to)?,
        }
        match wanted.step_ns {
            None => {
                let bytes: u64 = steps.values().sum();
                write!(
                    to,
                    ",\"value\":[{},\"{bytes}\"]}}",
                    seconds(wanted.range.to)
                )?;
            }
            Some(step_ns) => {
                to.write_all(b",\"values\":[")?;
                for (at, (step, bytes)) in steps.iter().enumerate() {
                    let comma = if at > 0 { "," } else { "" };
                    let time = end_of(*step, step_ns, wanted.range);
                    write!(to, "{comma}[{},\"{bytes}\"]", seconds(time))?;
                }
                to.write_all(b"]}")?;
            }
        }
    }
    to.write_all(b"],\"stats\":{}}")?;
    write_warnings(warnings, to)?;
    to.write_all(b"}\n")
}

/// The end of a step, which its bytes stand at.
fn end_of(step: i64, step_ns: i64, range: TimeRange) -> Timestamp {
    let end = i128::from(range.from.0) + (i128::from(step) + 1) * i128::from(step_ns);
    Timestamp(i64::try_from(end).unwrap_or(i64::MAX)).min(range.to)
}

//! Aggregations: a tree of them is filled by one pass over columns of the records, and is exact.
//!
//! ```text
//! aggs ─▶ read ─▶ Plan (tree, columns) ─▶ the engine's columns ─▶ Level (state) ─▶ finish ─▶ JSON
//! ```
//!
//! Invariants: groups and buckets are bounded; memory is asked for before more rows are taken; an aggregation that is
//! not supported is an error, and so is a member of one.

mod cardinality;
mod columns;
mod conditions;
mod date_histogram;
mod date_range;
mod extended_stats;
mod filter;
mod filters;
mod histogram;
mod keys;
mod missing;
mod order;
mod percentile_ranks;
mod percentiles;
mod range;
mod run;
mod single_value;
mod state;
mod stats;
mod sums;
mod timeline;
mod terms;
mod text_buckets;
mod top_hits;

use std::fmt::Debug;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::json::{Object, bad, object, unsupported};
use super::query::Context;
use crate::error::ApiError;
use columns::{ColumnList, RowView};
use logpond_search::columns::ColumnRequest;
pub(super) use run::run;
use state::{BucketMap, Finish, MetricState};

/// The most buckets of an answer, as `search.max_buckets`.
pub(super) const BUCKETS_MAX: u64 = 65_535;

/// The most aggregations of a request.
pub(super) const AGGREGATIONS_MAX: usize = 100;

/// How deep aggregations may be within one another.
pub(super) const DEPTH_MAX: usize = 10;

/// The aggregations of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    list: Vec<Aggregation>,
    columns: Vec<ColumnRequest>,
}

impl Plan {
    /// True if there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// An aggregation with those within it.
#[derive(Clone, Debug)]
struct Aggregation {
    name: String,
    kind: Kind,
    meta: Option<Json>,
    children: Vec<Aggregation>,
}

#[derive(Clone, Debug)]
enum Kind {
    Buckets(Arc<dyn Buckets>),
    Metric(Arc<dyn Metric>),
    TopHits(Arc<top_hits::TopHits>),
}

/// An aggregation that puts records into buckets.
trait Buckets: Debug + Send + Sync {
    /// The kind in typed answers.
    fn typed(&self, found: &BucketMap) -> &'static str;

    /// The step in milliseconds, if the buckets are those of the engine's own histogram of times.
    fn timeline_step_ms(&self) -> Option<i64> {
        None
    }

    /// Names the buckets of a record, by calls of `put`.
    fn assign(&self, row: &RowView<'_>, put: &mut dyn FnMut(keys::Key<'_>));

    /// Makes the answer of what was found.
    fn finish(
        &self,
        found: BucketMap,
        children: &[Aggregation],
        finish: &mut Finish<'_>,
    ) -> Result<Json, ApiError>;
}

/// An aggregation that computes values.
trait Metric: Debug + Send + Sync {
    /// The kind in typed answers.
    fn typed(&self) -> &'static str;

    /// The state before the first record.
    fn empty(&self) -> MetricState;

    /// Adds a record.
    fn add(&self, row: &RowView<'_>, state: &mut MetricState);

    /// The answer.
    fn finish(&self, state: MetricState) -> Json;

    /// A value by which buckets are ordered; the name is that behind the dot.
    fn value(&self, state: &MetricState, name: &str) -> Option<f64>;
}

/// Reads aggregations.
struct Reader<'c> {
    context: &'c Context,
    columns: ColumnList,
    count: usize,
}

type Read = fn(&Object, &mut Reader<'_>) -> Result<Kind, ApiError>;

/// The aggregations that are supported.
const KINDS: [(&str, Read); 19] = [
    ("avg", single_value::avg),
    ("cardinality", cardinality::read),
    ("date_histogram", date_histogram::read),
    ("date_range", date_range::read),
    ("extended_stats", extended_stats::read),
    ("filter", filter::read),
    ("filters", filters::read),
    ("histogram", histogram::read),
    ("max", single_value::max),
    ("min", single_value::min),
    ("missing", missing::read),
    ("percentile_ranks", percentile_ranks::read),
    ("percentiles", percentiles::read),
    ("range", range::read),
    ("stats", stats::read),
    ("sum", single_value::sum),
    ("terms", terms::read),
    ("top_hits", top_hits::read),
    ("value_count", single_value::value_count),
];

/// The names of the aggregations that are supported.
#[cfg(test)]
pub(super) fn kinds() -> Vec<&'static str> {
    KINDS.iter().map(|(name, _)| *name).collect()
}

/// Aggregations of Elasticsearch that are refused, with the remedy.
const REFUSED: [(&str, &str); 20] = [
    (
        "auto_date_histogram",
        "use date_histogram with fixed_interval",
    ),
    (
        "composite",
        "use terms and date_histogram within one another",
    ),
    ("global", "send a search of its own"),
    (
        "nested",
        "members of objects are fields such as outer.inner",
    ),
    (
        "reverse_nested",
        "members of objects are fields such as outer.inner",
    ),
    ("significant_terms", "use terms"),
    ("rare_terms", "use terms with order {\"_count\":\"asc\"}"),
    ("multi_terms", "use terms within terms"),
    ("top_metrics", "use top_hits with size 1"),
    ("scripted_metric", "use /api/v1/sql"),
    ("median_absolute_deviation", "use percentiles"),
    ("weighted_avg", "use /api/v1/sql"),
    ("rate", "divide the counts of a date_histogram"),
    ("derivative", "compute it from the buckets"),
    ("moving_fn", "compute it from the buckets"),
    ("moving_avg", "compute it from the buckets"),
    ("cumulative_sum", "compute it from the buckets"),
    ("serial_diff", "compute it from the buckets"),
    ("bucket_script", "compute it from the buckets"),
    ("bucket_sort", "use the order and the size of terms"),
];

/// Reads the aggregations of a request.
///
/// # Errors
/// With the one that is wrong or not supported.
pub(super) fn read(given: Option<&Json>, context: &Context) -> Result<Plan, ApiError> {
    let mut reader = Reader {
        context,
        columns: ColumnList::default(),
        count: 0,
    };
    let list = match given {
        None | Some(Json::Null) => Vec::new(),
        Some(given) => reader.level(given, 1)?,
    };
    Ok(Plan {
        list,
        columns: reader.columns.finish(),
    })
}

impl Reader<'_> {
    fn level(&mut self, given: &Json, depth: usize) -> Result<Vec<Aggregation>, ApiError> {
        if depth > DEPTH_MAX {
            return Err(bad(format!(
                "aggregations are nested deeper than {DEPTH_MAX} levels"
            )));
        }
        let members = object(given, "aggs")?;
        let each = members.iter();
        each.map(|(name, body)| self.one(name, body, depth))
            .collect()
    }

    fn one(&mut self, name: &str, body: &Json, depth: usize) -> Result<Aggregation, ApiError> {
        self.count += 1;
        if self.count > AGGREGATIONS_MAX {
            return Err(bad(format!(
                "there are more than {AGGREGATIONS_MAX} aggregations"
            )));
        }
        if name.contains(['[', ']', '>']) || name.is_empty() {
            return Err(bad(format!(
                "invalid aggregation name [{name}]: it has no [, ] and >"
            )));
        }
        let members = object(body, name)?;
        let mut kind = None;
        let mut children = Vec::new();
        for (member, value) in members {
            match &**member {
                "aggs" | "aggregations" => children = self.level(value, depth + 1)?,
                "meta" => {}
                _ if kind.is_some() => {
                    return Err(bad(format!(
                        "[{name}] has two kinds of aggregations, one is [{member}]"
                    )));
                }
                member => kind = Some(self.kind(member, value)?),
            }
        }
        let kind = kind.ok_or_else(|| bad(format!("[{name}] has no kind of aggregation")))?;
        if !matches!(kind, Kind::Buckets(_)) && !children.is_empty() {
            return Err(bad(format!(
                "[{name}] has no buckets, and so no aggregations within them"
            )));
        }
        Ok(Aggregation {
            name: name.to_owned(),
            kind,
            meta: members.get("meta").cloned(),
            children,
        })
    }

    fn kind(&mut self, kind: &str, value: &Json) -> Result<Kind, ApiError> {
        if let Some((_, read)) = KINDS.iter().find(|(name, _)| *name == kind) {
            return read(object(value, kind)?, self);
        }
        if let Some((_, instead)) = REFUSED.iter().find(|(name, _)| *name == kind) {
            return Err(unsupported(kind, instead));
        }
        let known: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
        Err(bad(format!(
            "unknown aggregation type [{kind}]; supported are {}",
            known.join(", ")
        )))
    }
}

/// The answer of some aggregations, by name.
fn finish(
    list: &[Aggregation],
    level: state::Level,
    to: &mut Finish<'_>,
) -> Result<Object, ApiError> {
    let mut out = Object::new();
    for (aggregation, state) in list.iter().zip(level.states) {
        let (kind, mut json) = match (&aggregation.kind, state) {
            (Kind::Buckets(buckets), state::State::Buckets(found)) => {
                let typed = buckets.typed(&found);
                (typed, buckets.finish(found, &aggregation.children, to)?)
            }
            (Kind::Metric(metric), state::State::Metric(state)) => {
                (metric.typed(), metric.finish(state))
            }
            (Kind::TopHits(top), state::State::Top(found)) => ("top_hits", top.finish(found, to)?),
            // States are made of the kinds.
            _ => continue,
        };
        if let Some(meta) = &aggregation.meta {
            json["meta"] = meta.clone();
        }
        let name = if to.has_typed_keys {
            format!("{kind}#{}", aggregation.name)
        } else {
            aggregation.name.clone()
        };
        out.insert(name, json);
    }
    Ok(out)
}

/// A bucket of an answer: its own members, its count, and the answers within it.
fn bucket_json(
    own: Json,
    bucket: state::Bucket,
    children: &[Aggregation],
    to: &mut Finish<'_>,
) -> Result<Json, ApiError> {
    to.count_bucket()?;
    let mut json = own;
    if json.is_null() {
        json = json!({});
    }
    json["doc_count"] = bucket.records.into();
    for (name, value) in finish(children, bucket.level, to)? {
        json[name] = value;
    }
    Ok(json)
}

/// The bounds, for the page.
#[cfg(test)]
pub(super) mod limits {
    pub(in super::super) use super::state::{GROUPS_MAX, VALUES_MAX};
    pub(in super::super) use super::top_hits::{
        HITS_MAX as ALL_TOP_HITS_MAX, SIZE_MAX as TOP_HITS_MAX,
    };
    pub(in super::super) use super::{AGGREGATIONS_MAX, BUCKETS_MAX, DEPTH_MAX};
}

#[cfg(test)]
mod tests;

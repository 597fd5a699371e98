//! Aggregations: a tree of them is filled by one pass over columns of the records, and is exact. Pipelines are computed
//! from the answers of the others.
//!
//! ```text
//! aggs ─▶ read ─▶ Plan (tree, columns) ─▶ the engine's columns ─▶ Level (state) ─▶ finish ─▶ pipelines ─▶ JSON
//! ```
//!
//! Invariants: groups and buckets are bounded; memory is asked for before more rows are taken; an aggregation that is
//! not supported is an error, and so is a member of one.

mod boxplot;
mod cardinality;
mod columns;
mod composite;
mod conditions;
mod date_histogram;
mod date_range;
mod extended_stats;
mod filter;
mod filters;
mod histogram;
mod keys;
mod median_deviation;
mod missing;
mod multi_terms;
mod order;
mod percentile_ranks;
mod percentiles;
mod pipeline;
mod range;
mod rare_terms;
mod rate;
mod run;
mod sampler;
mod single_value;
mod state;
mod stats;
mod sums;
mod terms;
mod text_buckets;
mod timeline;
mod top_hits;
mod top_metrics;
mod tuples;
mod weighted_avg;

use std::fmt::Debug;
use std::sync::Arc;

use jiff::tz::TimeZone;
use serde_json::{Value as Json, json};

use super::dates::interval::Interval;
use super::json::{Object, bad, object, unsupported};
use super::query::Context;
use crate::error::ApiError;
use columns::{ColumnList, RowView};
use logpond_search::columns::ColumnRequest;
use pipeline::{ParentShape, Pipeline};
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
    tree: Tree,
    columns: Vec<ColumnRequest>,
    /// True if some buckets have a place without records.
    has_zeros: bool,
}

impl Plan {
    /// True if there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.tree.list.is_empty()
    }
}

/// Aggregations beside one another.
#[derive(Clone, Debug, Default)]
struct Tree {
    /// Those that records fill.
    list: Vec<Aggregation>,
    /// Those that are computed from answers. Invariant: each is behind those that it reads.
    pipelines: Vec<Pipeline>,
}

/// An aggregation with those within it.
#[derive(Clone, Debug)]
struct Aggregation {
    name: String,
    kind: Kind,
    meta: Option<Json>,
    children: Tree,
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

    /// The shape of its buckets, for the pipelines within them.
    fn shape(&self) -> ParentShape {
        ParentShape::List
    }

    /// The interval of time that a bucket is for.
    fn interval(&self) -> Option<(Interval, TimeZone)> {
        None
    }

    /// How many buckets are kept, the first ones in the order of their keys; all if there is no number.
    fn kept_max(&self) -> Option<usize> {
        None
    }

    /// A number of its own, if buckets have a place also where they have no records.
    fn zeros(&self) -> Option<usize> {
        None
    }

    /// Names the buckets of a record, by calls of `put`.
    fn assign(&self, row: &RowView<'_>, put: &mut dyn FnMut(keys::Key<'_>));

    /// Makes the answer of what was found.
    fn finish(
        &self,
        found: BucketMap,
        children: &Tree,
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

    /// The answer within an interval of time, which begins at these milliseconds.
    fn finish_within(&self, state: MetricState, _start_ms: Option<i64>) -> Json {
        self.finish(state)
    }

    /// True if it has a value of a name.
    fn has_value(&self, name: &str) -> bool {
        name == "value"
    }

    /// A value by which buckets are ordered; the name is that behind the dot.
    fn value(&self, state: &MetricState, name: &str) -> Option<f64>;
}

/// Reads aggregations.
struct Reader<'c> {
    context: &'c Context,
    columns: ColumnList,
    count: usize,
    /// The interval of the closest `date_histogram` around.
    interval: Option<(Interval, TimeZone)>,
    /// True if some buckets have a place without records.
    has_zeros: bool,
}

type Read = fn(&Object, &mut Reader<'_>) -> Result<Kind, ApiError>;

/// The aggregations that are supported.
const KINDS: [(&str, Read); 29] = [
    ("avg", single_value::avg),
    ("boxplot", boxplot::read),
    ("cardinality", cardinality::read),
    ("composite", composite::read),
    ("date_histogram", date_histogram::read),
    ("date_range", date_range::read),
    ("extended_stats", extended_stats::read),
    ("filter", filter::read),
    ("filters", filters::read),
    ("histogram", histogram::read),
    ("max", single_value::max),
    ("median_absolute_deviation", median_deviation::read),
    ("min", single_value::min),
    ("missing", missing::read),
    ("multi_terms", multi_terms::read),
    ("percentile_ranks", percentile_ranks::read),
    ("percentiles", percentiles::read),
    ("random_sampler", sampler::random),
    ("range", range::read),
    ("rare_terms", rare_terms::read),
    ("rate", rate::read),
    ("sampler", sampler::read),
    ("stats", stats::read),
    ("sum", single_value::sum),
    ("terms", terms::read),
    ("top_hits", top_hits::read),
    ("top_metrics", top_metrics::read),
    ("value_count", single_value::value_count),
    ("weighted_avg", weighted_avg::read),
];

/// The names of the aggregations that are supported.
#[cfg(test)]
pub(super) fn kinds() -> Vec<&'static str> {
    KINDS.iter().map(|(name, _)| *name).collect()
}

#[cfg(test)]
pub(super) use pipeline::kinds as pipelines;

/// Aggregations of Elasticsearch that are refused, with the remedy.
const REFUSED: [(&str, &str); 13] = [
    (
        "auto_date_histogram",
        "use date_histogram with fixed_interval",
    ),
    ("cumulative_cardinality", "use cardinality over the range"),
    ("diversified_sampler", "use sampler"),
    ("global", "send a search of its own"),
    ("moving_avg", "use moving_fn"),
    ("moving_percentiles", "use moving_fn"),
    (
        "nested",
        "members of objects are fields such as outer.inner",
    ),
    (
        "reverse_nested",
        "members of objects are fields such as outer.inner",
    ),
    ("scripted_metric", "use /api/v1/sql"),
    ("significant_terms", "use terms"),
    ("significant_text", "use terms, or /api/v1/patterns"),
    ("categorize_text", "use /api/v1/patterns"),
    ("string_stats", "use /api/v1/sql"),
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
        interval: None,
        has_zeros: false,
    };
    let tree = match given {
        None | Some(Json::Null) => Tree::default(),
        Some(given) => reader.level(given, 1)?,
    };
    pipeline::check(&tree.pipelines, ParentShape::None)?;
    Ok(Plan {
        tree,
        has_zeros: reader.has_zeros,
        columns: reader.columns.finish(),
    })
}

/// The name and the value of the member that says the kind of an aggregation.
fn kind_of<'j>(name: &str, members: &'j Object) -> Result<(&'j str, &'j Json), ApiError> {
    let others = ["aggs", "aggregations", "meta"];
    let mut kinds = members
        .iter()
        .filter(|(member, _)| !others.contains(&&***member));
    match (kinds.next(), kinds.next()) {
        (Some((kind, value)), None) => Ok((kind, value)),
        (None, _) => Err(bad(format!("[{name}] has no kind of aggregation"))),
        (_, Some((second, _))) => Err(bad(format!(
            "[{name}] has two kinds of aggregations, one is [{second}]"
        ))),
    }
}

impl Reader<'_> {
    fn level(&mut self, given: &Json, depth: usize) -> Result<Tree, ApiError> {
        if depth > DEPTH_MAX {
            return Err(bad(format!(
                "aggregations are nested deeper than {DEPTH_MAX} levels"
            )));
        }
        let mut tree = Tree::default();
        for (name, body) in object(given, "aggs")? {
            self.one(name, body, depth, &mut tree)?;
        }
        let names: Vec<&str> = tree.list.iter().map(|one| &*one.name).collect();
        tree.pipelines = pipeline::in_order(tree.pipelines, &names)?;
        Ok(tree)
    }

    /// Reads one aggregation into a tree.
    fn one(
        &mut self,
        name: &str,
        body: &Json,
        depth: usize,
        tree: &mut Tree,
    ) -> Result<(), ApiError> {
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
        let (kind, value) = kind_of(name, members)?;
        let meta = members.get("meta").cloned();
        let within = match (members.get("aggs"), members.get("aggregations")) {
            (Some(_), Some(_)) => {
                return Err(bad(format!("[{name}] has both [aggs] and [aggregations]")));
            }
            (aggs, aggregations) => aggs.or(aggregations),
        };
        if let Some(pipeline) = pipeline::read(name, kind, value, meta.clone())? {
            if within.is_some() {
                return Err(bad(format!("[{name}] has no aggregations within it")));
            }
            tree.pipelines.push(pipeline);
            return Ok(());
        }
        let kind = self.kind(kind, value)?;
        let children = match within {
            Some(within) => self.children(&kind, within, depth)?,
            None => Tree::default(),
        };
        if !matches!(kind, Kind::Buckets(_)) && !children.list.is_empty() {
            return Err(bad(format!(
                "[{name}] has no buckets, and so no aggregations within them"
            )));
        }
        tree.list.push(Aggregation {
            name: name.to_owned(),
            kind,
            meta,
            children,
        });
        Ok(())
    }

    /// Reads the aggregations within one of a kind.
    fn children(&mut self, kind: &Kind, within: &Json, depth: usize) -> Result<Tree, ApiError> {
        let around = self.interval.clone();
        let mut shape = ParentShape::None;
        if let Kind::Buckets(buckets) = kind {
            self.interval = buckets.interval().or_else(|| around.clone());
            shape = buckets.shape();
        }
        let children = self.level(within, depth + 1)?;
        self.interval = around;
        pipeline::check(&children.pipelines, shape)?;
        Ok(children)
    }

    fn kind(&mut self, kind: &str, value: &Json) -> Result<Kind, ApiError> {
        if let Some((_, read)) = KINDS.iter().find(|(name, _)| *name == kind) {
            return read(object(value, kind)?, self);
        }
        if let Some((_, instead)) = REFUSED.iter().find(|(name, _)| *name == kind) {
            return Err(unsupported(kind, instead));
        }
        let mut known: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
        known.extend(pipeline::kinds());
        Err(bad(format!(
            "unknown aggregation type [{kind}]; supported are {}",
            known.join(", ")
        )))
    }
}

/// The answer of some aggregations, by name.
fn finish(tree: &Tree, level: state::Level, to: &mut Finish<'_>) -> Result<Object, ApiError> {
    let mut out = Object::new();
    for (aggregation, state) in tree.list.iter().zip(level.states) {
        let (kind, mut json) = match (&aggregation.kind, state) {
            (Kind::Buckets(buckets), state::State::Buckets(found)) => {
                let typed = buckets.typed(&found);
                (typed, buckets.finish(found, &aggregation.children, to)?)
            }
            (Kind::Metric(metric), state::State::Metric(state)) => {
                (metric.typed(), metric.finish_within(state, to.start_ms))
            }
            (Kind::TopHits(top), state::State::Top(found)) => ("top_hits", top.finish(found, to)?),
            // States are made of the kinds.
            _ => continue,
        };
        if let Some(meta) = &aggregation.meta {
            json["meta"] = meta.clone();
        }
        out.insert(to.key(kind, &aggregation.name), json);
    }
    for pipeline in &tree.pipelines {
        pipeline.add_to_siblings(&mut out, to)?;
    }
    Ok(out)
}

/// A bucket of an answer: its own members, its count, and the answers within it.
fn bucket_json(
    own: Json,
    bucket: state::Bucket,
    children: &Tree,
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
    to.keep(&json)?;
    Ok(json)
}

/// The bounds, for the page.
#[cfg(test)]
pub(super) mod limits {
    pub(in super::super) use super::state::{GROUPS_MAX, VALUES_MAX};
    pub(in super::super) use super::top_hits::{
        HITS_MAX as ALL_TOP_HITS_MAX, SIZE_MAX as TOP_HITS_MAX,
    };
    pub(in super::super) use super::tuples::COMBINATIONS_MAX;
    pub(in super::super) use super::{AGGREGATIONS_MAX, BUCKETS_MAX, DEPTH_MAX};
}

#[cfg(test)]
mod tests;

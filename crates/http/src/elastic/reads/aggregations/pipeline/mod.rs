//! Pipelines: aggregations that are computed from the answers of others.
//!
//! ```text
//! buckets of an aggregation ─▶ parent pipelines within it: a value for each bucket, or other buckets
//!                           ─▶ sibling pipelines beside it: one answer for all of its buckets
//! ```
//!
//! Invariants: a pipeline comes behind those that it reads; one that reads itself is refused.

mod bucket_script;
mod bucket_selector;
mod bucket_sort;
mod cumulative_sum;
mod derivative;
mod extended_stats_bucket;
mod moving_fn;
mod moving_functions;
mod normalize;
mod path;
mod percentiles_bucket;
mod script;
mod serial_diff;
mod single_bucket;
mod stats_bucket;

use std::fmt::Debug;
use std::sync::Arc;

use serde_json::Value as Json;

use super::super::json::{Object, bad, object, only, optional};
use super::state::Finish;
use crate::error::ApiError;
use path::{Gap, Path, member};

/// Buckets of an answer, with the names that they have in an object of them.
pub(super) type NamedBuckets = Vec<(String, Json)>;

/// The aggregation around a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParentShape {
    /// None, or one without a list of buckets.
    None,
    /// One with buckets.
    List,
    /// One whose buckets are steps of a number or of time.
    Sequence,
}

/// A pipeline with its name.
#[derive(Clone, Debug)]
pub(super) struct Pipeline {
    name: String,
    meta: Option<Json>,
    kind: PipelineKind,
}

#[derive(Clone, Debug)]
enum PipelineKind {
    /// Within buckets: adds a value to each.
    Values(Arc<dyn BucketValues>),
    /// Within buckets: gives some of them, or another order.
    Choice(Arc<dyn BucketChoice>),
    /// Beside buckets.
    Sibling(Arc<dyn Sibling>),
}

/// A pipeline that adds a value to each bucket.
trait BucketValues: Debug + Send + Sync {
    /// The kind in typed answers.
    fn typed(&self) -> &'static str {
        "simple_value"
    }

    /// The least that the aggregation around it is.
    fn parent(&self) -> ParentShape {
        ParentShape::Sequence
    }

    /// The places of the values that it reads.
    fn paths(&self) -> Vec<&Path>;

    /// An answer for each bucket; a bucket without one stays as it is.
    fn values(&self, buckets: &NamedBuckets) -> Result<Vec<Option<Json>>, ApiError>;
}

/// A pipeline that gives some of the buckets.
trait BucketChoice: Debug + Send + Sync {
    /// The places of the values that it reads.
    fn paths(&self) -> Vec<&Path>;

    /// The buckets that the answer has, in their order.
    fn choose(&self, buckets: NamedBuckets) -> Result<NamedBuckets, ApiError>;
}

/// A pipeline beside an aggregation with buckets.
trait Sibling: Debug + Send + Sync {
    /// The kind in typed answers.
    fn typed(&self) -> &'static str {
        "simple_value"
    }

    /// The answer to the values of all buckets, each with the bucket's key.
    fn finish(&self, values: &[(String, f64)]) -> Json;

    /// The place of the values.
    fn path(&self) -> &SiblingPath;
}

/// The values that a sibling reads.
#[derive(Clone, Debug)]
struct SiblingPath {
    path: Path,
    gap: Gap,
}

impl SiblingPath {
    /// Reads `buckets_path` and `gap_policy`; `own` are further members that are known.
    fn read(members: &Object, own: &[&str], kind: &str) -> Result<SiblingPath, ApiError> {
        Ok(SiblingPath {
            path: single_path(members, own, kind)?,
            gap: Gap::read(members, Gap::Skip)?,
        })
    }
}

/// Reads `buckets_path` of one value; `own` are further members that are known.
fn single_path(members: &Object, own: &[&str], kind: &str) -> Result<Path, ApiError> {
    let mut known = vec!["buckets_path", "gap_policy", "format"];
    known.extend(own);
    only(members, &known, kind)?;
    let given = members.get("buckets_path");
    match given.and_then(|given| match given {
        Json::Array(one) if one.len() == 1 => one.first(),
        other => Some(other),
    }) {
        Some(Json::String(text)) => Path::read(text),
        _ => Err(bad(format!("[{kind}] needs [buckets_path], a text"))),
    }
}

type Read = fn(&Object) -> Result<PipelineKind, ApiError>;

/// The pipelines that are supported.
const KINDS: [(&str, Read); 15] = [
    ("avg_bucket", single_bucket::avg),
    ("bucket_script", bucket_script::read),
    ("bucket_selector", bucket_selector::read),
    ("bucket_sort", bucket_sort::read),
    ("cumulative_sum", cumulative_sum::read),
    ("derivative", derivative::read),
    ("extended_stats_bucket", extended_stats_bucket::read),
    ("max_bucket", single_bucket::max),
    ("min_bucket", single_bucket::min),
    ("moving_fn", moving_fn::read),
    ("normalize", normalize::read),
    ("percentiles_bucket", percentiles_bucket::read),
    ("serial_diff", serial_diff::read),
    ("stats_bucket", stats_bucket::read),
    ("sum_bucket", single_bucket::sum),
];

/// The names of the pipelines.
pub(in super::super) fn kinds() -> Vec<&'static str> {
    KINDS.iter().map(|(name, _)| *name).collect()
}

/// Reads a pipeline, if it is of such a kind.
///
/// # Errors
/// When it is wrong.
pub(super) fn read(
    name: &str,
    kind: &str,
    value: &Json,
    meta: Option<Json>,
) -> Result<Option<Pipeline>, ApiError> {
    let Some((_, read)) = KINDS.iter().find(|(known, _)| *known == kind) else {
        return Ok(None);
    };
    let members = object(value, kind)?;
    // It changes texts of values, which are not given.
    optional(members, "format")?;
    Ok(Some(Pipeline {
        name: name.to_owned(),
        meta,
        kind: read(members)?,
    }))
}

/// Puts pipelines behind those that they read; `names` are those of the aggregations beside them. Those that give some of
/// the buckets come last.
///
/// # Errors
/// When one reads something that is not there, or itself.
pub(super) fn in_order(
    pipelines: Vec<Pipeline>,
    names: &[&str],
) -> Result<Vec<Pipeline>, ApiError> {
    let own: Vec<String> = pipelines.iter().map(|one| one.name.clone()).collect();
    for one in &pipelines {
        one.check_paths(names, &own)?;
    }
    let mut rest = pipelines;
    rest.sort_by_key(|one| matches!(one.kind, PipelineKind::Choice(_)));
    let mut ordered: Vec<Pipeline> = Vec::new();
    while !rest.is_empty() {
        let is_waiting = |name: &str| rest.iter().any(|one| one.name == name);
        let ready = rest
            .iter()
            .position(|one| !one.paths().iter().any(|path| path.begins(is_waiting)));
        let Some(ready) = ready else {
            let name = rest.first().map_or("", |one| &*one.name);
            return Err(bad(format!("[{name}] reads a value that depends on it")));
        };
        ordered.push(rest.remove(ready));
    }
    Ok(ordered)
}

/// Refuses pipelines within an aggregation that has not what they need.
///
/// # Errors
/// With the name of one.
pub(super) fn check(pipelines: &[Pipeline], around: ParentShape) -> Result<(), ApiError> {
    for one in pipelines {
        let (is_met, what) = match &one.kind {
            PipelineKind::Values(values) if values.parent() == ParentShape::Sequence => (
                around == ParentShape::Sequence,
                "histogram or date_histogram",
            ),
            PipelineKind::Values(_) | PipelineKind::Choice(_) => {
                (around != ParentShape::None, "an aggregation with buckets")
            }
            PipelineKind::Sibling(_) => continue,
        };
        if !is_met {
            return Err(bad(format!(
                "[{}] must be directly within {what}",
                one.name
            )));
        }
    }
    Ok(())
}

impl Pipeline {
    fn paths(&self) -> Vec<&Path> {
        match &self.kind {
            PipelineKind::Values(values) => values.paths(),
            PipelineKind::Choice(choice) => choice.paths(),
            PipelineKind::Sibling(sibling) => vec![&sibling.path().path],
        }
    }

    fn check_paths(&self, names: &[&str], own: &[String]) -> Result<(), ApiError> {
        let is_sibling = matches!(self.kind, PipelineKind::Sibling(_));
        for path in self.paths() {
            let is_known = |name: &str| {
                names.contains(&name) || own.iter().any(|one| one == name && *one != self.name)
            };
            if !path.begins(is_known) && (is_sibling || !path.is_own()) {
                return Err(bad(format!(
                    "no aggregation found for [buckets_path] [{}] of [{}]",
                    path.text(),
                    self.name
                )));
            }
            if is_sibling && path.is_single() {
                return Err(bad(format!(
                    "[buckets_path] [{}] of [{}] names buckets and a value within them, such as hosts>_count",
                    path.text(),
                    self.name
                )));
            }
        }
        Ok(())
    }

    /// Adds the answer of one that is beside others.
    ///
    /// # Errors
    /// When it reads something that is no number.
    pub(super) fn add_to_siblings(
        &self,
        answers: &mut Object,
        to: &Finish<'_>,
    ) -> Result<(), ApiError> {
        let PipelineKind::Sibling(sibling) = &self.kind else {
            return Ok(());
        };
        let SiblingPath { path, gap } = sibling.path();
        let (first, within) = path.split();
        let buckets = member(answers, first)
            .and_then(|answer| answer.get("buckets"))
            .ok_or_else(|| {
                bad(format!(
                    "[{}] needs an aggregation with buckets, and [{first}] is none",
                    self.name
                ))
            })?;
        let mut values = Vec::new();
        let mut take = |name: &str, bucket: &Json| -> Result<(), ApiError> {
            if let Some(value) = within.value(bucket, *gap)? {
                values.push((name.to_owned(), value));
            }
            Ok(())
        };
        match buckets {
            Json::Object(named) => {
                for (name, bucket) in named {
                    take(name, bucket)?;
                }
            }
            list => {
                for bucket in list.as_array().into_iter().flatten() {
                    take(&path::key_text(bucket), bucket)?;
                }
            }
        }
        let json = self.with_meta(sibling.finish(&values));
        answers.insert(to.key(sibling.typed(), &self.name), json);
        Ok(())
    }

    fn with_meta(&self, mut json: Json) -> Json {
        if let Some(meta) = &self.meta {
            json["meta"] = meta.clone();
        }
        json
    }
}

/// The buckets of an answer, as a list or as an object by their names, with the values of the pipelines within them.
///
/// # Errors
/// When a pipeline reads something that is no number.
pub(super) fn listed(
    mut buckets: NamedBuckets,
    is_keyed: bool,
    pipelines: &[Pipeline],
    to: &Finish<'_>,
) -> Result<Json, ApiError> {
    for one in pipelines {
        match &one.kind {
            PipelineKind::Values(values) => {
                let found = values.values(&buckets)?;
                for ((_, bucket), value) in buckets.iter_mut().zip(found) {
                    if let Some(value) = value {
                        bucket[to.key(values.typed(), &one.name)] = one.with_meta(value);
                    }
                }
            }
            PipelineKind::Choice(choice) => buckets = choice.choose(buckets)?,
            PipelineKind::Sibling(_) => {}
        }
    }
    Ok(if is_keyed {
        Json::Object(buckets.into_iter().collect())
    } else {
        buckets.into_iter().map(|(_, bucket)| bucket).collect()
    })
}

/// A number of an answer, which has no such thing as infinite.
fn number(value: f64) -> Json {
    if value.is_finite() {
        value.into()
    } else {
        Json::Null
    }
}

#[cfg(test)]
mod tests;

//! `avg_bucket`, `max_bucket`, `min_bucket` and `sum_bucket`.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::super::super::json::Object;
use super::super::sums::Sums;
use super::{PipelineKind, Sibling, SiblingPath};
use crate::error::ApiError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Avg,
    Max,
    Min,
    Sum,
}

#[derive(Clone, Debug)]
struct SingleBucket {
    function: Function,
    path: SiblingPath,
}

/// The mean.
pub(super) fn avg(members: &Object) -> Result<PipelineKind, ApiError> {
    read(Function::Avg, "avg_bucket", members)
}

/// The largest value, with its buckets.
pub(super) fn max(members: &Object) -> Result<PipelineKind, ApiError> {
    read(Function::Max, "max_bucket", members)
}

/// The smallest value, with its buckets.
pub(super) fn min(members: &Object) -> Result<PipelineKind, ApiError> {
    read(Function::Min, "min_bucket", members)
}

/// The sum.
pub(super) fn sum(members: &Object) -> Result<PipelineKind, ApiError> {
    read(Function::Sum, "sum_bucket", members)
}

fn read(function: Function, kind: &str, members: &Object) -> Result<PipelineKind, ApiError> {
    Ok(PipelineKind::Sibling(Arc::new(SingleBucket {
        function,
        path: SiblingPath::read(members, &[], kind)?,
    })))
}

impl Sibling for SingleBucket {
    fn typed(&self) -> &'static str {
        match self.function {
            Function::Max | Function::Min => "bucket_metric_value",
            Function::Avg | Function::Sum => "simple_value",
        }
    }

    fn finish(&self, values: &[(String, f64)]) -> Json {
        let mut all = Sums::default();
        values.iter().for_each(|(_, value)| all.add(*value));
        let extreme = match self.function {
            Function::Avg => return json!({ "value": all.mean() }),
            Function::Sum => return json!({ "value": all.sum() }),
            Function::Max => all.max,
            Function::Min => all.min,
        };
        let keys = values.iter().filter(|(_, value)| *value == extreme);
        let keys: Vec<&str> = keys.map(|(key, _)| &**key).collect();
        json!({ "value": all.some(extreme), "keys": keys })
    }

    fn path(&self) -> &SiblingPath {
        &self.path
    }
}

//! `bucket_selector`: the buckets for which a script is true.

use std::sync::Arc;

use super::super::super::json::{Object, bad};
use super::bucket_script::ScriptOfBuckets;
use super::path::Path;
use super::script::Value;
use super::{BucketChoice, NamedBuckets, PipelineKind};
use crate::error::ApiError;

#[derive(Clone, Debug)]
struct BucketSelector(ScriptOfBuckets);

/// Reads the pipeline.
pub(super) fn read(members: &Object) -> Result<PipelineKind, ApiError> {
    let script = ScriptOfBuckets::read(members, "bucket_selector")?;
    Ok(PipelineKind::Choice(Arc::new(BucketSelector(script))))
}

impl BucketChoice for BucketSelector {
    fn paths(&self) -> Vec<&Path> {
        self.0.paths()
    }

    fn choose(&self, buckets: NamedBuckets) -> Result<NamedBuckets, ApiError> {
        let mut kept = NamedBuckets::new();
        for (name, bucket) in buckets {
            let values = self.0.values(&bucket)?;
            match self.0.run(&values)? {
                Value::Truth(true) => kept.push((name, bucket)),
                Value::Truth(false) => {}
                // Languages without truth values have 1 and 0.
                Value::Number(number) if number == 0.0 || number.is_nan() => {}
                Value::Number(_) => kept.push((name, bucket)),
                Value::Null => {
                    return Err(bad("[script] of [bucket_selector] is true or false"));
                }
            }
        }
        Ok(kept)
    }
}

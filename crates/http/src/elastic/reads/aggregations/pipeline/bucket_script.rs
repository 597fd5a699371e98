//! `bucket_script`: a value that a script computes from values of the bucket.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::super::super::json::{Object, bad, only, text_of};
use super::path::{Gap, Path};
use super::script::{Script, Value};
use super::{BucketValues, NamedBuckets, ParentShape, PipelineKind, number};
use crate::error::ApiError;

/// The most values that a script reads.
const VALUES_MAX: usize = 100;

/// A script with the values that it reads.
#[derive(Clone, Debug)]
pub(super) struct ScriptOfBuckets {
    script: Script,
    paths: Vec<(String, Path)>,
    gap: Gap,
}

#[derive(Clone, Debug)]
struct BucketScript(ScriptOfBuckets);

/// Reads the pipeline.
pub(super) fn read(members: &Object) -> Result<PipelineKind, ApiError> {
    let script = ScriptOfBuckets::read(members, "bucket_script")?;
    Ok(PipelineKind::Values(Arc::new(BucketScript(script))))
}

impl ScriptOfBuckets {
    /// Reads `script`, `buckets_path` and `gap_policy`.
    ///
    /// # Errors
    /// When one is wrong.
    pub(super) fn read(members: &Object, kind: &str) -> Result<ScriptOfBuckets, ApiError> {
        let known = ["buckets_path", "script", "gap_policy", "format"];
        only(members, &known, kind)?;
        let paths = match members.get("buckets_path") {
            Some(Json::String(path)) => vec![("_value".to_owned(), Path::read(path)?)],
            Some(Json::Object(named)) if named.len() <= VALUES_MAX => {
                let named = named.iter().map(|(name, path)| {
                    let path = text_of(path).ok_or_else(|| bad("[buckets_path] has texts"))?;
                    Ok((name.clone(), Path::read(&path)?))
                });
                named.collect::<Result<_, ApiError>>()?
            }
            _ => {
                return Err(bad(format!(
                    "[{kind}] needs [buckets_path]: at most {VALUES_MAX} paths by the names of parameters"
                )));
            }
        };
        let names: Vec<&str> = paths.iter().map(|(name, _)| &**name).collect();
        Ok(ScriptOfBuckets {
            script: Script::read(members.get("script"), &names)?,
            paths,
            gap: Gap::read(members, Gap::Skip)?,
        })
    }

    /// The places of the values that it reads.
    pub(super) fn paths(&self) -> Vec<&Path> {
        self.paths.iter().map(|(_, path)| path).collect()
    }

    /// The values of a bucket in the order of the parameters, without those that it has not.
    pub(super) fn values(&self, bucket: &Json) -> Result<Vec<Option<f64>>, ApiError> {
        let values = self
            .paths
            .iter()
            .map(|(_, path)| path.value(bucket, self.gap));
        values.collect()
    }

    /// The result for some values, of which a missing one is no number.
    pub(super) fn run(&self, values: &[Option<f64>]) -> Result<Value, ApiError> {
        let values = values.iter().map(|value| value.unwrap_or(f64::NAN));
        self.script.run(&values.collect::<Vec<f64>>(), &[])
    }
}

impl BucketValues for BucketScript {
    fn parent(&self) -> ParentShape {
        ParentShape::List
    }

    fn paths(&self) -> Vec<&Path> {
        self.0.paths()
    }

    fn values(&self, buckets: &NamedBuckets) -> Result<Vec<Option<Json>>, ApiError> {
        let each = buckets.iter().map(|(_, bucket)| {
            let values = self.0.values(bucket)?;
            if values.contains(&None) {
                return Ok(None);
            }
            Ok(match self.0.run(&values)? {
                Value::Number(value) => Some(json!({ "value": number(value) })),
                Value::Null => None,
                Value::Truth(_) => {
                    return Err(bad("[script] of [bucket_script] gives a number"));
                }
            })
        });
        each.collect()
    }
}

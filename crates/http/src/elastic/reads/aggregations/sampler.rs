//! `sampler` and `random_sampler`: one bucket. It has all records, since the others are counted exactly, too.

use super::super::json::{Object, only};
use super::conditions::Condition;
use super::filter::one_bucket;
use super::{Kind, Reader};
use crate::error::ApiError;

/// Those of the best records.
pub(super) fn read(members: &Object, _: &mut Reader<'_>) -> Result<Kind, ApiError> {
    only(members, &["shard_size"], "sampler")?;
    Ok(one_bucket("sampler", Condition::All))
}

/// Those that are drawn.
pub(super) fn random(members: &Object, _: &mut Reader<'_>) -> Result<Kind, ApiError> {
    let kind = "random_sampler";
    only(members, &["probability", "seed", "shard_seed"], kind)?;
    Ok(one_bucket(kind, Condition::All))
}

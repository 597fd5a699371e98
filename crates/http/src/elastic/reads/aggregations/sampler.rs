//! `sampler` and `random_sampler`: one bucket. It has all records, since the others are counted exactly, too.

use std::sync::Arc;

use serde_json::Value as Json;

use super::super::json::{Object, only};
use super::columns::RowView;
use super::keys::Key;
use super::pipeline::ParentShape;
use super::state::{BucketMap, Finish};
use super::{Buckets, Kind, Reader, Tree, bucket_json};
use crate::error::ApiError;

#[derive(Clone, Copy, Debug)]
struct Sampler {
    kind: &'static str,
}

/// Those of the best records.
pub(super) fn read(members: &Object, _: &mut Reader<'_>) -> Result<Kind, ApiError> {
    only(members, &["shard_size"], "sampler")?;
    Ok(Kind::Buckets(Arc::new(Sampler { kind: "sampler" })))
}

/// Those that are drawn.
pub(super) fn random(members: &Object, _: &mut Reader<'_>) -> Result<Kind, ApiError> {
    let kind = "random_sampler";
    only(members, &["probability", "seed", "shard_seed"], kind)?;
    Ok(Kind::Buckets(Arc::new(Sampler { kind })))
}

impl Buckets for Sampler {
    fn typed(&self, _: &BucketMap) -> &'static str {
        self.kind
    }

    fn shape(&self) -> ParentShape {
        ParentShape::None
    }

    fn assign(&self, _: &RowView<'_>, put: &mut dyn FnMut(Key<'_>)) {
        put(Key::Number(0));
    }

    fn finish(
        &self,
        mut found: BucketMap,
        children: &Tree,
        finish: &mut Finish<'_>,
    ) -> Result<Json, ApiError> {
        bucket_json(Json::Null, found.take(0, children), children, finish)
    }
}

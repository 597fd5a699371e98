//! `missing`: one bucket of the records without a field.

use std::sync::Arc;

use serde_json::Value as Json;

use super::super::json::{Object, only};
use super::columns::{Field, RowView};
use super::keys::Key;
use super::pipeline::ParentShape;
use super::state::{BucketMap, Finish};
use super::{Buckets, Kind, Reader, Tree, bucket_json};
use crate::error::ApiError;

#[derive(Clone, Debug)]
struct Missing {
    field: Field,
}

/// Reads the aggregation.
pub(super) fn read(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    only(members, &["field"], "missing")?;
    let field = reader.columns.field(members, "missing")?;
    Ok(Kind::Buckets(Arc::new(Missing { field })))
}

impl Buckets for Missing {
    fn typed(&self, _: &BucketMap) -> &'static str {
        "missing"
    }

    fn shape(&self) -> ParentShape {
        ParentShape::None
    }

    fn assign(&self, row: &RowView<'_>, put: &mut dyn FnMut(Key<'_>)) {
        if !row.has(self.field) {
            put(Key::Number(0));
        }
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

//! `filter`: one bucket of the records that a query matches.

use std::sync::Arc;

use serde_json::Value as Json;

use super::super::json::Object;
use super::super::lists;
use super::super::query::translate;
use super::columns::RowView;
use super::conditions::Condition;
use super::keys::Key;
use super::pipeline::ParentShape;
use super::state::{BucketMap, Finish};
use super::{Buckets, Kind, Reader, Tree, bucket_json};
use crate::error::ApiError;

#[derive(Clone, Debug)]
struct OneFilter {
    typed: &'static str,
    condition: Condition,
}

/// Reads the aggregation.
pub(super) fn read(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    let query = Json::Object(members.clone());
    let filter = translate(&query, reader.context)?;
    let condition = Condition::new(&lists::with_elements(&filter), &mut reader.columns)?;
    Ok(one_bucket("filter", condition))
}

/// An aggregation of this kind with one bucket, of the records that satisfy a condition.
pub(super) fn one_bucket(typed: &'static str, condition: Condition) -> Kind {
    Kind::Buckets(Arc::new(OneFilter { typed, condition }))
}

impl Buckets for OneFilter {
    fn typed(&self, _: &BucketMap) -> &'static str {
        self.typed
    }

    fn shape(&self) -> ParentShape {
        ParentShape::None
    }

    fn assign(&self, row: &RowView<'_>, put: &mut dyn FnMut(Key<'_>)) {
        if self.condition.holds(row) {
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

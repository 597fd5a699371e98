//! `filters`: a bucket for each of several queries.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::super::json::{Object, bad, flag, only, optional};
use super::super::lists;
use super::super::query::translate;
use super::columns::RowView;
use super::conditions::Condition;
use super::keys::Key;
use super::pipeline::listed;
use super::state::{BucketMap, Finish};
use super::{Buckets, Kind, Reader, Tree, bucket_json};
use crate::error::ApiError;

/// The most filters of an aggregation.
const FILTERS_MAX: usize = 100;

#[derive(Clone, Debug)]
struct Filters {
    filters: Vec<(String, Condition)>,
    /// The name of the bucket of all other records.
    other: Option<String>,
    is_keyed: bool,
}

/// Reads the aggregation.
pub(super) fn read(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    only(
        members,
        &["filters", "other_bucket", "other_bucket_key", "keyed"],
        "filters",
    )?;
    let (named, is_named): (Vec<(String, &Json)>, bool) = match members.get("filters") {
        Some(Json::Object(filters)) => {
            let named = filters.iter().map(|(name, filter)| (name.clone(), filter));
            (named.collect(), true)
        }
        Some(Json::Array(filters)) => {
            let each = filters.iter().map(|filter| (String::new(), filter));
            (each.collect(), false)
        }
        _ => return Err(bad("[filters] needs [filters]: queries by name, or a list")),
    };
    if named.is_empty() || named.len() > FILTERS_MAX {
        return Err(bad(format!(
            "[filters] has from 1 to {FILTERS_MAX} filters"
        )));
    }
    let mut filters = Vec::new();
    for (name, query) in named {
        let filter = translate(query, reader.context)?;
        let filter = lists::with_elements(&filter);
        filters.push((name, Condition::new(&filter, &mut reader.columns)?));
    }
    let key = optional(members, "other_bucket_key")?;
    let has_other = flag(members, "other_bucket", key.is_some())?;
    let other = has_other.then(|| key.unwrap_or_else(|| "_other_".to_owned()));
    Ok(Kind::Buckets(Arc::new(Filters {
        filters,
        other,
        is_keyed: flag(members, "keyed", is_named)?,
    })))
}

impl Buckets for Filters {
    fn typed(&self, _: &BucketMap) -> &'static str {
        "filters"
    }

    fn assign(&self, row: &RowView<'_>, put: &mut dyn FnMut(Key<'_>)) {
        let mut is_in = false;
        for (at, (_, condition)) in (0..).zip(&self.filters) {
            if condition.holds(row) {
                is_in = true;
                put(Key::Number(at));
            }
        }
        if !is_in && self.other.is_some() {
            put(Key::Number(-1));
        }
    }

    fn finish(
        &self,
        mut found: BucketMap,
        children: &Tree,
        finish: &mut Finish<'_>,
    ) -> Result<Json, ApiError> {
        let mut buckets = Vec::new();
        let other = found.numbers.remove(&-1);
        for (at, (name, _)) in self.filters.iter().enumerate() {
            let bucket = found.take(at, children);
            let json = bucket_json(Json::Null, bucket, children, finish)?;
            buckets.push((name.clone(), json));
        }
        if let Some(name) = &self.other {
            let bucket = other.unwrap_or_else(|| super::state::Bucket::empty(children));
            let json = bucket_json(Json::Null, bucket, children, finish)?;
            buckets.push((name.clone(), json));
        }
        let buckets = listed(buckets, self.is_keyed, &children.pipelines, finish)?;
        Ok(json!({ "buckets": buckets }))
    }
}

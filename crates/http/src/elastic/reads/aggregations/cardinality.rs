//! `cardinality`: how many different values there are, exactly.

use std::collections::BTreeSet;
use std::sync::Arc;

use logpond_record::cast;
use serde_json::{Value as Json, json};
use xxhash_rust::xxh3::xxh3_128;

use super::super::json::{Object, only, optional};
use super::super::lists;
use super::columns::{Field, RowView};
use super::state::MetricState;
use super::{Kind, Metric, Reader};
use crate::error::ApiError;

#[derive(Clone, Debug)]
struct Cardinality {
    field: Field,
    missing: Option<String>,
}

/// Reads the aggregation. The threshold of an estimate changes nothing: the answer is exact.
pub(super) fn read(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    let known = [
        "field",
        "missing",
        "precision_threshold",
        "execution_hint",
        "rehash",
        "script",
    ];
    only(members, &known, "cardinality")?;
    Ok(Kind::Metric(Arc::new(Cardinality {
        field: reader.columns.field(members, "cardinality")?,
        missing: optional(members, "missing")?,
    })))
}

impl Metric for Cardinality {
    fn typed(&self) -> &'static str {
        "cardinality"
    }

    fn empty(&self) -> MetricState {
        MetricState::Distinct(BTreeSet::new())
    }

    fn add(&self, row: &RowView<'_>, state: &mut MetricState) {
        let MetricState::Distinct(hashes) = state else {
            return;
        };
        if self.field.is_time {
            let ms = row.time_ms(self.field);
            hashes.extend(ms.map(|ms| xxh3_128(&ms.to_le_bytes())));
            return;
        }
        let missing = self.missing.as_deref().map(str::as_bytes);
        lists::each_value(row.text(self.field).or(missing), &mut |value| {
            hashes.insert(xxh3_128(value));
        });
    }

    fn finish(&self, state: MetricState) -> Json {
        match state {
            MetricState::Distinct(hashes) => json!({ "value": hashes.len() }),
            _ => Json::Null,
        }
    }

    fn value(&self, state: &MetricState, name: &str) -> Option<f64> {
        match state {
            MetricState::Distinct(hashes) if name == "value" => Some(cast::float(hashes.len())),
            _ => None,
        }
    }
}

//! `date_range`: buckets of times between dates, the first one included.

use std::sync::Arc;

use jiff::tz::TimeZone;
use serde_json::{Value as Json, json};

use super::super::dates::{DateFormat, DateReader, MS_NS, zone_of};
use super::super::json::{Object, flag, only, optional, unsupported};
use super::columns::{Field, RowView};
use super::keys::Key;
use super::order::listed;
use super::range::each;
use super::state::{BucketMap, Finish};
use super::{Aggregation, Buckets, Kind, Reader, bucket_json};
use crate::error::ApiError;

#[derive(Clone, Debug)]
struct DateRanges {
    field: Field,
    ranges: Vec<DateRange>,
    is_keyed: bool,
    format: DateFormat,
    zone: TimeZone,
}

/// Nanoseconds since 1970 of both ends.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DateRange {
    key: String,
    from: Option<i64>,
    to: Option<i64>,
}

/// Reads the aggregation.
pub(super) fn read(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    let known = [
        "field",
        "ranges",
        "keyed",
        "format",
        "time_zone",
        "missing",
        "script",
    ];
    only(members, &known, "date_range")?;
    let field = reader.columns.field(members, "date_range")?;
    if !field.is_time {
        let instead = "use range for numbers";
        return Err(unsupported(
            "date_range on another field than @timestamp",
            instead,
        ));
    }
    let zone_name = optional(members, "time_zone")?;
    let zone = zone_name.as_deref().map_or(Ok(TimeZone::UTC), zone_of)?;
    let formats = optional(members, "format")?;
    let dates = DateReader::new(reader.context.now);
    let dates = dates.with(zone_name.as_deref(), formats.as_deref())?;
    let first = dates.formats.first().cloned();
    let format = first
        .filter(|_| formats.is_some())
        .unwrap_or_else(DateFormat::iso);
    let mut ranges = Vec::new();
    for given in each(members)? {
        let bound = |name: &str| -> Result<Option<i64>, ApiError> {
            let text = optional(given, name)?;
            let span = text.map(|text| dates.span(&text)).transpose()?;
            Ok(span.map(|span| span.from.0))
        };
        let (from, to) = (bound("from")?, bound("to")?);
        let name = |ns: Option<i64>| ns.map_or("*".to_owned(), |ns| format.write(ns, &zone));
        let key = optional(given, "key")?;
        let key = key.unwrap_or_else(|| format!("{}-{}", name(from), name(to)));
        ranges.push(DateRange { key, from, to });
    }
    ranges.sort_by_key(|range| (range.from.unwrap_or(i64::MIN), range.to.unwrap_or(i64::MAX)));
    Ok(Kind::Buckets(Arc::new(DateRanges {
        field,
        ranges,
        is_keyed: flag(members, "keyed", false)?,
        format,
        zone,
    })))
}

impl Buckets for DateRanges {
    fn typed(&self, _: &BucketMap) -> &'static str {
        "date_range"
    }

    fn assign(&self, row: &RowView<'_>, put: &mut dyn FnMut(Key<'_>)) {
        let Some(ns) = row.time_ns(self.field) else {
            return;
        };
        for (at, range) in (0..).zip(&self.ranges) {
            let is_from = range.from.is_none_or(|from| ns >= from);
            if is_from && range.to.is_none_or(|to| ns < to) {
                put(Key::Number(at));
            }
        }
    }

    fn finish(
        &self,
        mut found: BucketMap,
        children: &[Aggregation],
        finish: &mut Finish<'_>,
    ) -> Result<Json, ApiError> {
        let mut buckets = Vec::new();
        for (at, range) in self.ranges.iter().enumerate() {
            let bucket = found.take(at, children);
            let mut own = json!({});
            if !self.is_keyed {
                own["key"] = range.key.as_str().into();
            }
            for (name, bound) in [("from", range.from), ("to", range.to)] {
                if let Some(ns) = bound {
                    own[name] = (ns.div_euclid(MS_NS) as f64).into();
                    own[format!("{name}_as_string")] = self.format.write(ns, &self.zone).into();
                }
            }
            let json = bucket_json(own, bucket, children, finish)?;
            buckets.push((range.key.clone(), json));
        }
        Ok(json!({ "buckets": listed(buckets, self.is_keyed) }))
    }
}

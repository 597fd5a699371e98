//! `date_range`: buckets of times between dates, the first one included.

use std::sync::Arc;

use jiff::tz::TimeZone;
use logpond_record::cast;
use serde_json::Value as Json;

use super::super::dates::{DateFormat, MS_NS};
use super::super::json::{Object, only, optional};
use super::columns::{Field, RowView};
use super::date_histogram::{DateOptions, time_field};
use super::keys::Key;
use super::range::{BoundOrder, RangeList};
use super::state::{BucketMap, Finish};
use super::{Buckets, Kind, Reader, Tree};
use crate::error::ApiError;

#[derive(Clone, Debug)]
struct DateRanges {
    field: Field,
    /// Bounds are nanoseconds since 1970.
    list: RangeList<i64>,
    format: DateFormat,
    zone: TimeZone,
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
    let field = time_field(members, reader, "date_range", "range")?;
    let DateOptions {
        zone,
        dates,
        format,
    } = DateOptions::read(members, reader)?;
    let format = format.unwrap_or_else(DateFormat::iso);
    let order = BoundOrder {
        compare: i64::cmp,
        least: i64::MIN,
        greatest: i64::MAX,
    };
    let bound = |given: &Object, name: &str| -> Result<Option<i64>, ApiError> {
        let text = optional(given, name)?;
        let span = text.map(|text| dates.span(&text)).transpose()?;
        Ok(span.map(|span| span.from.0))
    };
    let list = RangeList::read(members, &order, bound, |ns| format.write(ns, &zone))?;
    Ok(Kind::Buckets(Arc::new(DateRanges {
        field,
        list,
        format,
        zone,
    })))
}

impl Buckets for DateRanges {
    fn typed(&self, _: &BucketMap) -> &'static str {
        "date_range"
    }

    fn assign(&self, row: &RowView<'_>, put: &mut dyn FnMut(Key<'_>)) {
        if let Some(ns) = row.time_ns(self.field) {
            self.list.assign(ns, put);
        }
    }

    fn finish(
        &self,
        found: BucketMap,
        children: &Tree,
        finish: &mut Finish<'_>,
    ) -> Result<Json, ApiError> {
        let show = |own: &mut Json, name: &str, ns: i64| {
            own[name] = cast::float(ns.div_euclid(MS_NS)).into();
            own[format!("{name}_as_string")] = self.format.write(ns, &self.zone).into();
        };
        self.list.finish(found, children, finish, show)
    }
}

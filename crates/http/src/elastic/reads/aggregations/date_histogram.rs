//! `date_histogram`: a bucket for each interval of time.

use std::sync::Arc;

use jiff::tz::TimeZone;
use serde_json::{Value as Json, json};

use super::super::dates::interval::{Interval, duration_ms};
use super::super::dates::{DateFormat, DateReader, MS_NS, zone_of};
use super::super::json::{Object, bad, count, flag, object, only, optional, unsupported};
use super::columns::{Field, RowView};
use super::keys::Key;
use super::order::{BucketOrder, numbered};
use super::pipeline::{ParentShape, listed};
use super::state::{BucketMap, Finish, too_many_buckets};
use super::{BUCKETS_MAX, Buckets, Kind, Reader, Tree, bucket_json};
use crate::error::ApiError;

#[derive(Clone, Debug)]
struct DateHistogram {
    steps: TimeSteps,
    least: u64,
    order: BucketOrder,
    is_keyed: bool,
    /// Milliseconds of the first and the last bucket that are there in any case.
    extended: Option<Bounds>,
    /// The same, beyond which there is none.
    /// From the start of one step to that of another one, which is left out.
    hard: Option<Bounds>,
}

/// Steps of time.
#[derive(Clone, Debug)]
pub(super) struct TimeSteps {
    pub(super) field: Field,
    pub(super) interval: Interval,
    pub(super) zone: TimeZone,
    offset_ms: i64,
    pub(super) format: Option<DateFormat>,
}

/// The lower and the upper one, in milliseconds.
type Bounds = (Option<i64>, Option<i64>);

/// Reads the aggregation.
pub(super) fn read(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    let own = [
        "min_doc_count",
        "order",
        "keyed",
        "extended_bounds",
        "hard_bounds",
        "missing",
        "script",
    ];
    let known = [&TimeSteps::MEMBERS[..], &own].concat();
    only(members, &known, "date_histogram")?;
    let (steps, dates) = TimeSteps::read(members, reader)?;
    let mut default_formats = DateReader::new(reader.context.now).formats;
    let mut bounds_reader = dates;
    bounds_reader.formats.append(&mut default_formats);
    let hard = bounds(members, "hard_bounds", &bounds_reader)?;
    let start = |ms: Option<i64>| ms.map(|ms| steps.start(ms));
    let hard = hard.map(|(low, high)| (start(low), start(high)));
    Ok(Kind::Buckets(Arc::new(DateHistogram {
        steps,
        least: count(members, "min_doc_count", 0)?,
        order: BucketOrder::read(members, BucketOrder::by_key())?,
        is_keyed: flag(members, "keyed", false)?,
        extended: bounds(members, "extended_bounds", &bounds_reader)?,
        hard,
    })))
}

/// The field of an aggregation of dates, which is the time; another one is for numbers.
pub(super) fn time_field(
    members: &Object,
    reader: &mut Reader<'_>,
    name: &str,
    of_numbers: &str,
) -> Result<Field, ApiError> {
    let field = reader.columns.field(members, name)?;
    if field.is_time {
        return Ok(field);
    }
    Err(unsupported(
        &format!("{name} on another field than @timestamp"),
        &format!("use {of_numbers} for numbers"),
    ))
}

/// The zone and the formats of an aggregation of dates.
pub(super) struct DateOptions {
    pub(super) zone: TimeZone,
    /// Reads dates in this zone and these formats.
    pub(super) dates: DateReader,
    /// The first format that is given.
    pub(super) format: Option<DateFormat>,
}

impl DateOptions {
    pub(super) fn read(members: &Object, reader: &Reader<'_>) -> Result<DateOptions, ApiError> {
        let zone_name = optional(members, "time_zone")?;
        let zone = zone_name.as_deref().map_or(Ok(TimeZone::UTC), zone_of)?;
        let formats = optional(members, "format")?;
        let dates = DateReader::new(reader.context.now);
        let dates = dates.with(zone_name.as_deref(), formats.as_deref())?;
        let first = dates.formats.first().cloned();
        Ok(DateOptions {
            zone,
            format: first.filter(|_| formats.is_some()),
            dates,
        })
    }
}

fn interval(members: &Object) -> Result<Interval, ApiError> {
    let given = |name: &str| optional(members, name);
    match (
        given("calendar_interval")?,
        given("fixed_interval")?,
        given("interval")?,
    ) {
        (Some(text), None, None) => Interval::calendar(&text),
        (None, Some(text), None) => Interval::fixed(&text),
        (None, None, Some(text)) => Interval::either(&text),
        _ => Err(bad(
            "[date_histogram] needs one of [fixed_interval] and [calendar_interval]",
        )),
    }
}

/// Bounds in milliseconds.
fn bounds(members: &Object, name: &str, reader: &DateReader) -> Result<Option<Bounds>, ApiError> {
    let Some(given) = members.get(name).filter(|given| !given.is_null()) else {
        return Ok(None);
    };
    let given = object(given, name)?;
    only(given, &["min", "max"], name)?;
    let instant = |bound: &str| -> Result<Option<i64>, ApiError> {
        let Some(text) = optional(given, bound)?.filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        Ok(Some(reader.span(&text)?.from.0.div_euclid(MS_NS)))
    };
    Ok(Some((instant("min")?, instant("max")?)))
}

impl TimeSteps {
    /// The members of a request that say the steps.
    pub(super) const MEMBERS: [&str; 7] = [
        "field",
        "calendar_interval",
        "fixed_interval",
        "interval",
        "time_zone",
        "offset",
        "format",
    ];

    /// Reads the field and the interval, with what reads dates in their zone and format.
    ///
    /// # Errors
    /// When one is wrong.
    pub(super) fn read(
        members: &Object,
        reader: &mut Reader<'_>,
    ) -> Result<(TimeSteps, DateReader), ApiError> {
        let field = time_field(members, reader, "date_histogram", "histogram")?;
        let DateOptions {
            zone,
            dates,
            format,
        } = DateOptions::read(members, reader)?;
        let offset = optional(members, "offset")?;
        let offset_ms = offset.as_deref().map(|text| {
            let ms = duration_ms(text).or_else(|| text.parse().ok());
            ms.ok_or_else(|| {
                bad(format!(
                    "[offset] is a length of time, such as +6h, not [{text}]"
                ))
            })
        });
        let steps = TimeSteps {
            field,
            interval: interval(members)?,
            zone,
            offset_ms: offset_ms.transpose()?.unwrap_or(0),
            format,
        };
        Ok((steps, dates))
    }

    /// The start of the step that an instant is in, in milliseconds.
    pub(super) fn start(&self, ms: i64) -> i64 {
        let moved = ms.saturating_sub(self.offset_ms);
        self.interval
            .start(moved, &self.zone)
            .saturating_add(self.offset_ms)
    }

    /// A start as text.
    pub(super) fn text(&self, ms: i64) -> String {
        let ns = ms.saturating_mul(MS_NS);
        match &self.format {
            Some(format) => format.write(ns, &self.zone),
            None => DateFormat::iso().write(ns, &self.zone),
        }
    }

    fn next(&self, start: i64) -> i64 {
        let moved = start.saturating_sub(self.offset_ms);
        self.interval
            .next(moved, &self.zone)
            .saturating_add(self.offset_ms)
    }
}

impl DateHistogram {
    /// Puts empty buckets between the others, and up to the bounds.
    fn fill(&self, found: &mut BucketMap, children: &Tree) -> Result<(), ApiError> {
        let (low, high) = self.extended.unwrap_or_default();
        let start = |ms: Option<i64>| ms.map(|ms| self.steps.start(ms));
        let Some((first, last)) = found.extent(start(low), start(high)) else {
            return Ok(());
        };
        let mut at = first;
        let mut count = 0;
        while at <= last {
            count += 1;
            if count > BUCKETS_MAX {
                return Err(too_many_buckets());
            }
            found.add_empty(at, children);
            let next = self.steps.next(at);
            if next <= at {
                break;
            }
            at = next;
        }
        Ok(())
    }
}

impl Buckets for DateHistogram {
    fn typed(&self, _: &BucketMap) -> &'static str {
        "date_histogram"
    }

    fn timeline_step_ms(&self) -> Option<i64> {
        let steps = &self.steps;
        let Interval::Fixed(step) = steps.interval else {
            return None;
        };
        let is_plain = steps.zone == TimeZone::UTC && steps.offset_ms == 0 && self.hard.is_none();
        is_plain.then_some(step)
    }

    fn shape(&self) -> ParentShape {
        ParentShape::Sequence
    }

    fn interval(&self) -> Option<(Interval, TimeZone)> {
        Some((self.steps.interval, self.steps.zone.clone()))
    }

    fn assign(&self, row: &RowView<'_>, put: &mut dyn FnMut(Key<'_>)) {
        let Some(ms) = row.time_ms(self.steps.field) else {
            return;
        };
        let (low, high) = self.hard.unwrap_or_default();
        let start = self.steps.start(ms);
        let is_within = low.is_none_or(|low| start >= low) && high.is_none_or(|high| start < high);
        if is_within {
            put(Key::Number(start));
        }
    }

    fn finish(
        &self,
        mut found: BucketMap,
        children: &Tree,
        finish: &mut Finish<'_>,
    ) -> Result<Json, ApiError> {
        self.order.check(children)?;
        if self.least == 0 {
            self.fill(&mut found, children)?;
        }
        let around = finish.start_ms;
        let mut buckets = Vec::new();
        for (ms, bucket) in numbered(found, self.least, &self.order, children) {
            finish.start_ms = Some(ms);
            let text = self.steps.text(ms);
            let own = json!({ "key": ms, "key_as_string": text });
            let json = bucket_json(own, bucket, children, finish)?;
            buckets.push((text, json));
        }
        finish.start_ms = around;
        let buckets = listed(buckets, self.is_keyed, &children.pipelines, finish)?;
        Ok(json!({ "buckets": buckets }))
    }
}

//! Instants as clients write them: formats, date math and time zones.
//!
//! Invariant: a date stands for the whole of its last unit, so that `lte` and `gt` mean its end and `gte`
//! and `lt` its start: `2026-11-21` is a day, a number a millisecond.

pub(super) mod interval;
mod java;
mod math;
mod read;

use jiff::tz::TimeZone;
use logpond_record::{TimeRange, Timestamp};

use super::json::bad;
use crate::error::ApiError;

pub(super) use java::DateFormat;

/// One millisecond in nanoseconds.
pub(super) const MS_NS: i64 = 1_000_000;

/// How dates of a clause are read.
#[derive(Clone, Debug)]
pub(super) struct DateReader {
    /// The time of the request.
    pub(super) now: Timestamp,
    /// The zone of dates without one, and of rounding.
    pub(super) zone: TimeZone,
    /// The formats in the order of trial.
    pub(super) formats: Vec<DateFormat>,
}

impl DateReader {
    /// A reader with the default format, in UTC.
    pub(super) fn new(now: Timestamp) -> DateReader {
        DateReader {
            now,
            zone: TimeZone::UTC,
            formats: DateFormat::defaults(),
        }
    }

    /// The same in another zone and with other formats, if they are given.
    ///
    /// # Errors
    /// When the zone or a format is not known.
    pub(super) fn with(
        mut self,
        zone: Option<&str>,
        format: Option<&str>,
    ) -> Result<DateReader, ApiError> {
        if let Some(zone) = zone {
            self.zone = zone_of(zone)?;
        }
        if let Some(format) = format {
            self.formats = DateFormat::list(format)?;
        }
        Ok(self)
    }

    /// The instants that a date stands for.
    ///
    /// # Errors
    /// When the text is no date.
    pub(super) fn span(&self, text: &str) -> Result<TimeRange, ApiError> {
        math::span(text, self)
            .map_err(|why| bad(format!("failed to parse date field [{text}]: {why}")))
    }
}

/// The zone of a name, such as `Europe/Berlin`, `+02:00` and `Z`.
///
/// # Errors
/// When there is none.
pub(super) fn zone_of(name: &str) -> Result<TimeZone, ApiError> {
    let fixed = read::offset(name).map(|seconds| jiff::tz::Offset::from_seconds(seconds).ok());
    match (name, fixed) {
        ("UTC" | "utc" | "Z" | "GMT", _) => Ok(TimeZone::UTC),
        (_, Some(Some(offset))) => Ok(TimeZone::fixed(offset)),
        _ => TimeZone::get(name).map_err(|_| bad(format!("there is no time zone [{name}]"))),
    }
}

/// The local date and time of an instant.
pub(super) fn civil(ms: i64, zone: &TimeZone) -> jiff::civil::DateTime {
    let instant = jiff::Timestamp::from_millisecond(ms).unwrap_or_default();
    instant.to_zoned(zone.clone()).datetime()
}

/// The instant of a local date and time; one within a gap is moved behind it.
fn instant_ns(local: jiff::civil::DateTime, zone: &TimeZone) -> i64 {
    let zoned = zone.to_ambiguous_zoned(local).compatible();
    let ns = zoned.map(|zoned| zoned.timestamp().as_nanosecond());
    clamp(ns.unwrap_or_else(|_| {
        if local.year() < 1970 {
            i128::from(i64::MIN)
        } else {
            i128::from(i64::MAX)
        }
    }))
}

fn clamp(ns: i128) -> i64 {
    i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(super) const fn tests_now() -> Timestamp {
    tests::NOW
}

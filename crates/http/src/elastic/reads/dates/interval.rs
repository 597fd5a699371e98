//! Intervals of a date histogram: fixed ones and those of the calendar.

use jiff::tz::TimeZone;

use super::super::json::bad;
use super::math::{floor, moved};
use super::read::Unit;
use super::{MS_NS, civil, instant_ns};
use crate::error::ApiError;

/// An interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Interval {
    /// So many milliseconds. Invariant: more than 0.
    Fixed(i64),
    /// A unit of the calendar.
    Calendar(CalendarUnit),
}

/// A unit of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct CalendarUnit(Unit);

impl Interval {
    /// Reads `calendar_interval`.
    ///
    /// # Errors
    /// When there is no such unit.
    pub(in super::super) fn calendar(text: &str) -> Result<Interval, ApiError> {
        calendar(text).ok_or_else(|| {
            bad(format!(
                "[calendar_interval] is one of minute, hour, day, week, month, quarter and year, or 1 of their \
                 letters, not [{text}]; use [fixed_interval] for others"
            ))
        })
    }

    /// Reads `fixed_interval`.
    ///
    /// # Errors
    /// When it is no length of time.
    pub(in super::super) fn fixed(text: &str) -> Result<Interval, ApiError> {
        duration_ms(text).filter(|ms| *ms > 0).map(Interval::Fixed).ok_or_else(|| {
            bad(format!(
                "[fixed_interval] is a number with one of ms, s, m, h and d, such as 30s, not [{text}]"
            ))
        })
    }

    /// Reads the old `interval`, which is either.
    ///
    /// # Errors
    /// When it is neither.
    pub(in super::super) fn either(text: &str) -> Result<Interval, ApiError> {
        calendar(text).map_or_else(|| Interval::fixed(text), Ok)
    }

    /// How many months it is long, if it is one of months.
    pub(in super::super) fn months(self) -> Option<u32> {
        match self {
            Interval::Calendar(CalendarUnit(Unit::Month)) => Some(1),
            Interval::Calendar(CalendarUnit(Unit::Quarter)) => Some(3),
            Interval::Calendar(CalendarUnit(Unit::Year)) => Some(12),
            _ => None,
        }
    }

    /// The start of the interval that an instant is in, in milliseconds.
    pub(in super::super) fn start(self, ms: i64, zone: &TimeZone) -> i64 {
        match self {
            Interval::Fixed(step) => {
                let shift = shift(ms, zone);
                let local = ms.saturating_add(shift);
                let start = local.div_euclid(step).saturating_mul(step);
                start.saturating_sub(shift)
            }
            Interval::Calendar(CalendarUnit(unit)) => {
                let start = floor(civil(ms, zone), unit);
                let ns = instant_ns(start, zone);
                // Within an hour that the clock repeats, hours and minutes begin twice.
                let found = ns.div_euclid(MS_NS);
                let length = match unit {
                    Unit::Hour => 3_600_000,
                    Unit::Minute => 60_000,
                    _ => return found,
                };
                found + (ms - found).div_euclid(length) * length
            }
        }
    }

    /// The start of the interval behind the one that starts here, in milliseconds.
    pub(in super::super) fn next(self, start: i64, zone: &TimeZone) -> i64 {
        match self {
            Interval::Fixed(step) => start.saturating_add(step),
            Interval::Calendar(CalendarUnit(unit @ (Unit::Hour | Unit::Minute))) => {
                let length = if unit == Unit::Hour {
                    3_600_000
                } else {
                    60_000
                };
                start.saturating_add(length)
            }
            Interval::Calendar(CalendarUnit(unit)) => {
                let next = moved(floor(civil(start, zone), unit), unit, 1);
                let next = next.map(|next| instant_ns(next, zone).div_euclid(MS_NS));
                next.filter(|next| *next > start).unwrap_or(i64::MAX)
            }
        }
    }
}

/// How far local time is ahead, in milliseconds.
fn shift(ms: i64, zone: &TimeZone) -> i64 {
    let instant = jiff::Timestamp::from_millisecond(ms).unwrap_or_default();
    i64::from(zone.to_offset(instant).seconds()) * 1000
}

fn calendar(text: &str) -> Option<Interval> {
    let unit = match text {
        "minute" | "1m" => Unit::Minute,
        "hour" | "1h" => Unit::Hour,
        "day" | "1d" => Unit::Day,
        "week" | "1w" => Unit::Week,
        "month" | "1M" => Unit::Month,
        "quarter" | "1q" => Unit::Quarter,
        "year" | "1y" => Unit::Year,
        _ => return None,
    };
    Some(Interval::Calendar(CalendarUnit(unit)))
}

/// The milliseconds of `30s`, `-3h` and the like.
pub(in super::super) fn duration_ms(text: &str) -> Option<i64> {
    let (factor, rest) = match (text.strip_prefix('-'), text.strip_prefix('+')) {
        (Some(rest), _) => (-1, rest),
        (_, Some(rest)) => (1, rest),
        _ => (1, text),
    };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = rest.split_at_checked(digits)?;
    let number: i64 = number.parse().ok()?;
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "w" => 604_800_000,
        _ => return None,
    };
    number.checked_mul(unit_ms)?.checked_mul(factor)
}

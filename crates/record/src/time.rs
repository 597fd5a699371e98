//! Instants in UTC nanoseconds, and the civil calendar.

use std::fmt;

use crate::cast;

/// Nanoseconds in a second.
const SECOND_NS: i64 = 1_000_000_000;

/// An instant: nanoseconds since 1970-01-01T00:00:00Z, from the year 1678 to 2262.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The earliest instant.
    pub const MIN: Timestamp = Timestamp(i64::MIN);
    /// The latest instant.
    pub const MAX: Timestamp = Timestamp(i64::MAX);

    /// From whole seconds and nanoseconds; `None` outside the range.
    pub fn from_seconds(seconds: i64, nanos: u32) -> Option<Timestamp> {
        seconds
            .checked_mul(SECOND_NS)?
            .checked_add(i64::from(nanos))
            .map(Timestamp)
    }

    /// Whole seconds, rounded down, and the nanoseconds above them.
    pub fn seconds(self) -> (i64, u32) {
        (
            self.0.div_euclid(SECOND_NS),
            cast::low_u32(self.0.rem_euclid(SECOND_NS)),
        )
    }

    /// Unix milliseconds, rounded down.
    pub fn unix_ms(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// The instant `nanos` later, clamped to the range.
    pub fn saturating_add(self, nanos: i64) -> Timestamp {
        Timestamp(self.0.saturating_add(nanos))
    }
}

/// RFC 3339 in UTC with nine digits of fraction.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = self.seconds();
        let c = Civil::from_seconds(seconds);
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{nanos:09}Z",
            c.year, c.month, c.day, c.hour, c.minute, c.second
        )
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A half-open range of time: `from <= t < to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// First instant inside.
    pub from: Timestamp,
    /// First instant after.
    pub to: Timestamp,
}

impl TimeRange {
    /// Every instant but the very last.
    pub const ALL: TimeRange = TimeRange {
        from: Timestamp::MIN,
        to: Timestamp::MAX,
    };

    /// Whether `t` lies inside.
    pub fn contains(&self, t: Timestamp) -> bool {
        self.from <= t && t < self.to
    }

    /// Whether any instant from `min` to `max`, both included, lies inside.
    pub fn overlaps(&self, min: Timestamp, max: Timestamp) -> bool {
        self.from <= max && min < self.to
    }

    /// Whether all instants from `min` to `max`, both included, lie inside.
    pub fn covers(&self, min: Timestamp, max: Timestamp) -> bool {
        self.from <= min && max < self.to
    }
}

/// Date and time of day in the proleptic Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// Year.
    pub year: i64,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
    /// 0 to 23.
    pub hour: u32,
    /// 0 to 59.
    pub minute: u32,
    /// 0 to 59; a leap second 60 reads as the following second.
    pub second: u32,
}

impl Civil {
    /// From Unix seconds (Howard Hinnant, "chrono-compatible low-level date algorithms").
    pub fn from_seconds(seconds: i64) -> Civil {
        let days = seconds.div_euclid(86_400);
        let of_day = cast::low_u32(seconds.rem_euclid(86_400));
        let z = days + 719_468;
        let era = z.div_euclid(146_097);
        let day_of_era = z.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = cast::low_u32(day_of_year - (153 * shifted_month + 2) / 5 + 1);
        let month = cast::low_u32(if shifted_month < 10 {
            shifted_month + 3
        } else {
            shifted_month - 9
        });
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Civil {
            year,
            month,
            day,
            hour: of_day / 3600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
        }
    }

    /// Unix seconds, or `None` if a part is out of its range (31 February, hour 24).
    pub fn to_seconds(self) -> Option<i64> {
        let valid = (1..=12).contains(&self.month)
            && (1..=days_in_month(self.year, self.month)).contains(&self.day)
            && self.hour < 24
            && self.minute < 60
            && self.second <= 60;
        if !valid {
            return None;
        }
        let year = self.year - i64::from(self.month <= 2);
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let shifted_month = i64::from((self.month + 9) % 12);
        let day_of_year = (153 * shifted_month + 2) / 5 + i64::from(self.day) - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let days = era * 146_097 + day_of_era - 719_468;
        let of_day = i64::from(self.hour * 3600 + self.minute * 60 + self.second);
        Some(days * 86_400 + of_day)
    }

    /// Day of the week, Sunday is 0.
    pub fn weekday(self) -> u32 {
        let midnight = Civil {
            hour: 0,
            minute: 0,
            second: 0,
            ..self
        };
        let days = midnight.to_seconds().unwrap_or(0).div_euclid(86_400);
        cast::low_u32((days + 4).rem_euclid(7))
    }
}

fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_dates() {
        let c = Civil::from_seconds(1_772_409_600);
        assert_eq!((c.year, c.month, c.day, c.weekday()), (2026, 3, 2, 1));
        assert_eq!(Timestamp(0).to_string(), "1970-01-01T00:00:00.000000000Z");
        let leap = Civil {
            year: 2023,
            month: 2,
            day: 29,
            hour: 0,
            minute: 0,
            second: 0,
        };
        assert_eq!(leap.to_seconds(), None);
    }

    proptest! {
        #[test]
        fn civil_round_trips(seconds in -9_000_000_000i64..9_000_000_000) {
            prop_assert_eq!(Civil::from_seconds(seconds).to_seconds(), Some(seconds));
        }
    }
}

//! Days, which divide the chains of a bucket and are what a registry remembers things for.

use std::fmt;
use std::str::FromStr;

use logpond_record::{Civil, Timestamp};

const DAY_SECONDS: i64 = 86_400;

/// A day in UTC, in days since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i64);

impl Day {
    /// The day that a time is in.
    pub fn of(time: Timestamp) -> Day {
        Day(time.seconds().0.div_euclid(DAY_SECONDS))
    }

    /// How many days later than another one it is; 0 if it is not.
    pub fn days_after(self, other: Day) -> u64 {
        u64::try_from(self.0.saturating_sub(other.0)).unwrap_or(0)
    }

    /// Its number in messages, where 0 is left for none; days before 1970 are 1970's first.
    pub(crate) fn number(self) -> u64 {
        u64::try_from(self.0).unwrap_or(0).saturating_add(1)
    }

    /// What [`Day::number`] gave; `None` of 0.
    pub(crate) fn from_number(number: u64) -> Option<Day> {
        let days = i64::try_from(number.checked_sub(1)?);
        Some(Day(days.unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let civil = Civil::from_seconds(self.0 * DAY_SECONDS);
        write!(f, "{:04}-{:02}-{:02}", civil.year, civil.month, civil.day)
    }
}

/// A text that is no day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoDay;

impl FromStr for Day {
    type Err = NoDay;

    fn from_str(text: &str) -> Result<Day, NoDay> {
        // One name for one day: `2026-1-2` is none of ours.
        let day = read_day(text).filter(|day| day.to_string() == text);
        day.ok_or(NoDay)
    }
}

fn read_day(text: &str) -> Option<Day> {
    let mut parts = text.splitn(3, '-');
    let mut number = || parts.next()?.parse::<u32>().ok();
    let civil = Civil {
        year: i64::from(number()?),
        month: number()?,
        day: number()?,
        hour: 0,
        minute: 0,
        second: 0,
    };
    Some(Day(civil.to_seconds()?.div_euclid(DAY_SECONDS)))
}

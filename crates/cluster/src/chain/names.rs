//! How the objects of a bucket are called.

use std::fmt;
use std::str::FromStr;

use logpond_record::{Civil, Id, Timestamp};

/// What the names of all links begin with.
pub const LINKS: &str = "m/";

/// What the names of all segments begin with.
pub const SEGMENTS: &str = "segments/";

const DAY_SECONDS: i64 = 86_400;

/// A day in UTC, in days since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i64);

impl Day {
    /// The day that a time is in.
    pub fn of(time: Timestamp) -> Day {
        Day(time.seconds().0.div_euclid(DAY_SECONDS))
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

/// The name of a link of a day's chain, by its number.
pub fn link_name(day: Day, number: u64) -> String {
    format!("{LINKS}{day}/{number:020}.json")
}

/// Reads what [`link_name`] wrote; `None` for all other names.
pub fn parse_link_name(name: &str) -> Option<(Day, u64)> {
    let (day, file) = name.strip_prefix(LINKS)?.split_once('/')?;
    let (day, number) = (day.parse().ok()?, file.strip_suffix(".json")?.parse().ok()?);
    (link_name(day, number) == name).then_some((day, number))
}

/// The name of a segment of a day.
pub fn segment_name(day: Day, id: Id) -> String {
    format!("{SEGMENTS}{day}/{id}.parquet")
}

/// Reads what [`segment_name`] wrote; `None` for all other names.
pub fn parse_segment_name(name: &str) -> Option<(Day, Id)> {
    let (day, file) = name.strip_prefix(SEGMENTS)?.split_once('/')?;
    let (day, id) = (
        day.parse().ok()?,
        file.strip_suffix(".parquet")?.parse().ok()?,
    );
    (segment_name(day, id) == name).then_some((day, id))
}

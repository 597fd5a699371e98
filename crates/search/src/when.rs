//! Instants as people write them.
//!
//! | form | meaning |
//! | --- | --- |
//! | `1h` `-1h` `1h ago` `1 hour ago` `now-1h` | before now; `+1h` and `now+1h` after |
//! | `now` | now |
//! | `today` `yesterday` `tomorrow` `monday`… | midnight; the last such weekday, today included |
//! | `09:00` `9:00:30.5` `2pm` | that time today |
//! | `yesterday 09:00` `2pm monday` | both |
//! | `2026-11-21` `2026-11-21 10:00[:00[.123]]` | local time; `T` between them works too; a weekday may stand before it |
//! | `26-11-21` | the same, between 1969 and 2068 |
//! | `2026-11-21T10:00:00Z` `… +01:00` | RFC 3339, any offset |
//! | `Nov 21 10:00:00` `21/Nov/2026:10:00:00 +0100` | as logs have it; without a year the latest |
//! | `@1763719200.5` | Unix seconds |
//! | `1763719200` `…000` `…000000` `…000000000` | Unix s, ms, us, ns by the number of digits |
//!
//! A local time that a clock change repeats is its first occurrence; one that it skips is moved
//! on by the gap. [`resolve`] tells of both.

use std::fmt;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use logpond_record::{Civil, Timestamp, cast};

use crate::size::parse_duration;

/// The longest text that is read as an instant; all forms are much shorter.
const TEXT_BYTES_MAX: usize = 100;

const DAY_NS: i64 = 86_400_000_000_000;

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// In jiff's order: Monday is 1.
pub(crate) const WEEKDAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

/// An instant and what is odd about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The instant.
    pub time: Timestamp,
    /// What the user should know about a local time.
    pub oddity: Option<Oddity>,
}

/// What a clock change does to a local time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oddity {
    /// It occurs twice; the first one was taken.
    Repeated,
    /// It does not occur; the time moved on by as much as the clock was, was taken.
    Skipped,
}

/// Why a text is not an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeError {
    /// No form fits.
    Form(String),
    /// A bare number with too few or too many digits to be Unix time.
    Number(String),
    /// The instant is before 1678 or after 2262.
    Range,
}

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimeError::Form(text) => write!(
                f,
                "`{text}` is no time; write 1h, \"2 days ago\", now-5m, today, yesterday, monday, \
                 09:00, 2026-11-21, \"2026-11-21 10:00\", 2026-11-21T10:00:00Z, \
                 \"Nov 21 10:00:00\", @1763719200 or Unix time in s, ms, us or ns"
            ),
            TimeError::Number(text) => write!(
                f,
                "`{text}` is no time; write {text}s, {text}m, {text}h or {text}d for a time ago, \
                 or @{text} for Unix seconds"
            ),
            TimeError::Range => f.write_str("the time is before 1678 or after 2262"),
        }
    }
}

impl std::error::Error for TimeError {}

/// The instant that `text` means at `now` for somebody in `zone`.
pub fn parse(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, TimeError> {
    resolve(text, now, zone).map(|moment| moment.time)
}

/// Like [`parse`], and says whether a clock change made the answer a choice.
pub fn resolve(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Moment, TimeError> {
    let trimmed = text.trim();
    let unknown = || TimeError::Form(trimmed.chars().take(TEXT_BYTES_MAX).collect());
    if trimmed.len() > TEXT_BYTES_MAX {
        return Err(unknown());
    }
    if let Some(time) = unix(trimmed) {
        return time.map(Moment::plain);
    }
    if let Some(time) = relative(trimmed, now) {
        return time.map(Moment::plain);
    }
    let local = Local { now, zone };
    let lower = trimmed.to_ascii_lowercase();
    // Dates before days: both may start with a weekday's name.
    local
        .date_form(&lower)
        .or_else(|| local.day_form(&lower))
        .ok_or_else(unknown)?
}

/// The instant that `text` means anywhere and at any time: RFC 3339 or parts of it, in UTC where
/// it has no offset, and Unix time.
pub fn absolute(text: &str) -> Option<Timestamp> {
    let trimmed = text.trim();
    if trimmed.len() > TEXT_BYTES_MAX {
        return None;
    }
    if let Some(time) = unix(trimmed) {
        return time.ok();
    }
    let found = Cursor::new(&trimmed.to_ascii_lowercase()).date_and_time()?;
    let datetime = found.datetime(found.year?)?;
    let offset_seconds = found.offset_seconds.unwrap_or(0);
    instant(datetime, offset_seconds, found.clock.leap)
}

impl Moment {
    fn plain(time: Timestamp) -> Moment {
        Moment { time, oddity: None }
    }
}

/// Unix time: `@SECONDS[.FRACTION]`, or a bare number whose digits say the unit.
fn unix(text: &str) -> Option<Result<Timestamp, TimeError>> {
    if let Some(seconds) = text.strip_prefix('@') {
        return Some(unix_seconds(seconds).ok_or_else(|| TimeError::Form(text.to_owned())));
    }
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let unit_ns = match text.len() {
        9..=11 => 1_000_000_000,
        12..=14 => 1_000_000,
        15..=17 => 1_000,
        18..=19 => 1,
        _ => return Some(Err(TimeError::Number(text.to_owned()))),
    };
    let time = text.parse().ok().and_then(|n: i64| n.checked_mul(unit_ns));
    Some(time.map(Timestamp).ok_or(TimeError::Range))
}

fn unix_seconds(text: &str) -> Option<Timestamp> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let nanos: i64 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    let seconds: i64 = whole.parse().ok()?;
    let since = seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?;
    Some(Timestamp(if negative { -since } else { since }))
}

/// Durations from now; `None` if the text is no such form.
fn relative(text: &str, now: Timestamp) -> Option<Result<Timestamp, TimeError>> {
    // As long as the text, so that places in one are places in the other.
    let lower = text.to_ascii_lowercase();
    if lower == "now" {
        return Some(Ok(now));
    }
    let after_now = lower.strip_prefix("now").map(str::trim_start);
    let signed = after_now.unwrap_or(&lower);
    let (sign, rest) = match signed.as_bytes().first() {
        Some(b'+') => (1, &text[text.len() - signed.len() + 1..]),
        Some(b'-') => (-1, &text[text.len() - signed.len() + 1..]),
        _ if after_now.is_some() => return None,
        _ => (-1, text),
    };
    let ago = lower.strip_suffix("ago").filter(|_| sign < 0);
    let rest = match ago {
        Some(_) => &rest[..rest.len().checked_sub(3)?],
        None => rest,
    };
    let duration_ns = parse_duration(rest).ok()?;
    let time = now.0.checked_add(sign * duration_ns);
    Some(time.map(Timestamp).ok_or(TimeError::Range))
}

/// Somebody's clock.
struct Local<'a> {
    now: Timestamp,
    zone: &'a TimeZone,
}

/// `None` if the text has another form.
type Found = Option<Result<Moment, TimeError>>;

impl Local<'_> {
    fn today(&self) -> Option<Date> {
        let now = jiff::Timestamp::from_nanosecond(i128::from(self.now.0)).ok()?;
        Some(self.zone.to_datetime(now).date())
    }

    /// A date, with or without a time of day.
    fn date_form(&self, text: &str) -> Found {
        let found = Cursor::new(text).date_and_time()?;
        match found.year {
            Some(year) => self.at_offset(found.datetime(year)?, &found),
            None => self.latest_year(&found),
        }
    }

    /// Without a year, the latest one that is not more than a day ahead.
    fn latest_year(&self, found: &DateAndTime) -> Found {
        let latest = self.now.saturating_add(DAY_NS);
        let year = self.today()?.year();
        // Eight years always hold a 29 February.
        (0..=8i16)
            .filter_map(|back| self.at_offset(found.datetime(year + 1 - back)?, found))
            .find(|moment| moment.as_ref().is_ok_and(|m| m.time <= latest))
    }

    fn at_offset(&self, datetime: DateTime, found: &DateAndTime) -> Found {
        match found.offset_seconds {
            Some(offset) => Some(
                instant(datetime, offset, found.clock.leap)
                    .map(Moment::plain)
                    .ok_or(TimeError::Range),
            ),
            None => Some(self.at(datetime, found.clock.leap)),
        }
    }

    /// The name of a day, a time of day, or both.
    fn day_form(&self, text: &str) -> Found {
        let mut day = None;
        let mut clock = None;
        let mut cursor = Cursor::new(text);
        while !cursor.rest.is_empty() {
            if day.is_none()
                && let Some(found) = self.day(&mut cursor)
            {
                day = Some(found);
            } else if clock.is_none()
                && let Some(found) = cursor.clock()
            {
                clock = Some(found);
            } else {
                return None;
            }
            cursor.spaces();
            if day.is_some() && clock.is_none() && cursor.word() == "at" {
                cursor.advance(2);
                cursor.spaces();
            }
        }
        let date = match (day, clock) {
            (None, None) => return None,
            (Some(date), _) => date,
            (None, Some(_)) => self.today()?,
        };
        let clock = clock.unwrap_or_default();
        Some(self.at(date.to_datetime(clock.time), clock.leap))
    }

    fn day(&self, cursor: &mut Cursor<'_>) -> Option<Date> {
        let word = cursor.word();
        let today = self.today()?;
        let date = match word {
            "today" => today,
            "yesterday" => today.yesterday().ok()?,
            "tomorrow" => today.tomorrow().ok()?,
            name => {
                let wanted = cast::low_i8(named(&WEEKDAYS, name)?) + 1;
                let back = (today.weekday().to_monday_one_offset() - wanted).rem_euclid(7);
                today.checked_sub(jiff::Span::new().days(back)).ok()?
            }
        };
        cursor.advance(word.len());
        Some(date)
    }

    fn at(&self, datetime: DateTime, leap: bool) -> Result<Moment, TimeError> {
        let ambiguous = self.zone.to_ambiguous_timestamp(datetime);
        let oddity = match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { .. } => None,
            AmbiguousOffset::Gap { .. } => Some(Oddity::Skipped),
            AmbiguousOffset::Fold { .. } => Some(Oddity::Repeated),
        };
        let time = ambiguous.compatible().map_err(|_| TimeError::Range)?;
        let nanos = time.as_nanosecond() + i128::from(leap) * 1_000_000_000;
        let nanos = i64::try_from(nanos).map_err(|_| TimeError::Range)?;
        Ok(Moment {
            time: Timestamp(nanos),
            oddity,
        })
    }
}

/// The instant of a civil time at an offset from UTC.
fn instant(datetime: DateTime, offset_seconds: i64, leap: bool) -> Option<Timestamp> {
    let civil = Civil {
        year: i64::from(datetime.year()),
        month: cast::low_u32(datetime.month()),
        day: cast::low_u32(datetime.day()),
        hour: cast::low_u32(datetime.hour()),
        minute: cast::low_u32(datetime.minute()),
        second: cast::low_u32(datetime.second()),
    };
    let seconds = civil.to_seconds()? - offset_seconds + i64::from(leap);
    Timestamp::from_seconds(seconds, cast::low_u32(datetime.subsec_nanosecond()))
}

/// A date that was read, and what followed it.
struct DateAndTime {
    year: Option<i16>,
    month: i8,
    day: i8,
    clock: Clock,
    offset_seconds: Option<i64>,
}

impl DateAndTime {
    fn datetime(&self, year: i16) -> Option<DateTime> {
        let date = Date::new(year, self.month, self.day).ok()?;
        Some(date.to_datetime(self.clock.time))
    }
}

/// A time of day.
#[derive(Clone, Copy, Default)]
struct Clock {
    time: Time,
    /// Second 60 was written: one second later than `time`.
    leap: bool,
}

/// Reads lower-case text from the left.
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str) -> Cursor<'a> {
        Cursor { rest: text }
    }

    fn date_and_time(mut self) -> Option<DateAndTime> {
        let (year, month, day) = self.iso_date().or_else(|| self.named_date())?;
        let mut found = DateAndTime {
            year,
            month,
            day,
            clock: Clock::default(),
            offset_seconds: None,
        };
        if self.rest.is_empty() {
            return Some(found);
        }
        if !self.eat('t') && !self.eat(':') && self.spaces() == 0 {
            return None;
        }
        found.clock = self.clock()?;
        self.spaces();
        if !self.rest.is_empty() {
            found.offset_seconds = Some(self.offset()?);
        }
        self.rest.is_empty().then_some(found)
    }

    /// `2026-11-21`, `26-11-21` or `2026/11/21`, with a weekday before or without. Reads nothing if it is
    /// none.
    fn iso_date(&mut self) -> Option<(Option<i16>, i8, i8)> {
        let mut ahead = Cursor { rest: self.rest };
        ahead.weekday();
        let year = ahead.number(4, 4);
        let short = || Some(of_century(ahead.number(2, 2)?));
        let is_short = year.is_none();
        let year = year.or_else(short)?;
        let separator = if ahead.eat('-') { '-' } else { '/' };
        if separator == '/' && (is_short || !ahead.eat('/')) {
            return None;
        }
        let month = ahead.number(2, 2)?;
        let day = ahead.eat(separator).then(|| ahead.number(2, 2))??;
        self.rest = ahead.rest;
        Some((
            Some(cast::low_i16(year)),
            cast::low_i8(month),
            cast::low_i8(day),
        ))
    }

    /// The name of a weekday and what separates it, if there is one.
    fn weekday(&mut self) {
        if named(&WEEKDAYS, self.word()).is_some() {
            self.advance(self.word().len());
            self.eat(',');
            self.spaces();
        }
    }

    /// `nov 21`, `nov 21 2026`, `21 nov 2026`, `21/nov/2026`, with a weekday before or without.
    fn named_date(&mut self) -> Option<(Option<i16>, i8, i8)> {
        let mut ahead = Cursor { rest: self.rest };
        ahead.weekday();
        let day_first = ahead.number(1, 2);
        if day_first.is_some() {
            let _ = ahead.eat('/') || ahead.eat('-') || ahead.spaces() > 0;
        }
        let month = named(&MONTHS, ahead.word())? + 1;
        ahead.advance(ahead.word().len());
        let day = match day_first {
            Some(day) => day,
            None => {
                ahead.spaces();
                ahead.number(1, 2)?
            }
        };
        // A year, unless the digits are those of the hour.
        let mut beyond = Cursor { rest: ahead.rest };
        let _ = beyond.eat('/') || beyond.eat('-') || beyond.eat(',');
        beyond.spaces();
        let year = beyond.number(4, 4);
        if year.is_some() {
            ahead = beyond;
        }
        self.rest = ahead.rest;
        Some((
            year.map(cast::low_i16),
            cast::low_i8(month),
            cast::low_i8(day),
        ))
    }

    /// `9:00`, `09:00:30.5`, `2pm`, `2:30 pm`. Reads nothing if it is none.
    fn clock(&mut self) -> Option<Clock> {
        let mut ahead = Cursor { rest: self.rest };
        let mut hour = ahead.number(1, 2)?;
        let (mut minute, mut second, mut nanos) = (None, 0, 0);
        if ahead.eat(':') {
            minute = Some(ahead.number(2, 2)?);
            if ahead.eat(':') {
                second = ahead.number(2, 2)?;
                if ahead.eat('.') || ahead.eat(',') {
                    nanos = ahead.fraction()?;
                }
            }
        }
        let mut beyond = Cursor { rest: ahead.rest };
        beyond.spaces();
        match beyond.word() {
            half @ ("am" | "pm") if (1..=12).contains(&hour) => {
                hour = hour % 12 + if half == "pm" { 12 } else { 0 };
                beyond.advance(2);
                ahead = beyond;
            }
            // An hour alone is no time of day.
            _ => drop(minute?),
        }
        let leap = second == 60;
        let time = Time::new(
            cast::low_i8(hour),
            cast::low_i8(minute.unwrap_or(0)),
            cast::low_i8(second.min(if leap { 59 } else { 60 })),
            nanos,
        );
        self.rest = ahead.rest;
        Some(Clock {
            time: time.ok()?,
            leap,
        })
    }

    fn fraction(&mut self) -> Option<i32> {
        let length = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let nanos = format!("{:0<9}", &self.rest[..length]);
        self.advance(length);
        (length > 0).then(|| nanos[..9].parse().ok())?
    }

    /// `z`, `utc`, `+01:00`, `+0100`, `+01`; in seconds east.
    fn offset(&mut self) -> Option<i64> {
        if matches!(self.word(), "z" | "utc" | "gmt") {
            self.advance(self.word().len());
            return Some(0);
        }
        let sign = if self.eat('+') {
            1
        } else {
            self.eat('-').then_some(-1)?
        };
        let hours = self.two_digits().filter(|h| *h <= 23)?;
        self.eat(':');
        let minutes = if self.rest.is_empty() {
            0
        } else {
            self.two_digits().filter(|m| *m <= 59)?
        };
        Some(sign * i64::from(hours * 3600 + minutes * 60))
    }

    /// Two digits, whatever follows.
    fn two_digits(&mut self) -> Option<i32> {
        let digits = self.rest.get(..2)?;
        let number = digits.bytes().all(|b| b.is_ascii_digit());
        let number = number.then(|| digits.parse().ok())??;
        self.advance(2);
        Some(number)
    }

    /// A number of so many digits, not followed by another. Reads nothing if it is none.
    fn number(&mut self, digits_min: usize, digits_max: usize) -> Option<i32> {
        let length = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        if length < digits_min || length > digits_max {
            return None;
        }
        let number = self.rest[..length].parse().ok()?;
        self.advance(length);
        Some(number)
    }

    /// The letters ahead, which are not read.
    fn word(&self) -> &'a str {
        let length = self.rest.bytes().take_while(u8::is_ascii_lowercase).count();
        &self.rest[..length]
    }

    fn eat(&mut self, wanted: char) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn spaces(&mut self) -> usize {
        let before = self.rest.len();
        self.rest = self.rest.trim_start();
        before - self.rest.len()
    }

    fn advance(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }
}

/// The year that two digits stand for, as POSIX reads them: 1969 to 2068.
fn of_century(year: i32) -> i32 {
    year + if year < 69 { 2000 } else { 1900 }
}

/// Where in the list this name, or the first three letters of it, stands.
fn named(names: &[&str], word: &str) -> Option<usize> {
    let fits = |name: &&str| **name == *word || name[..3] == *word;
    names.iter().position(fits)
}

#[cfg(test)]
mod tests;

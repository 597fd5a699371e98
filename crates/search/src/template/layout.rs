//! Times by layouts of Go's package `time`: how the instant Mon Jan 2 15:04:05 MST 2006 would be
//! written.

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};
use logpond_record::cast;

/// Parts of layouts, longer ones first where one begins like another.
const PARTS: [(&str, Part); 33] = [
    ("January", Part::MonthName),
    ("Jan", Part::MonthShort),
    ("Monday", Part::WeekdayName),
    ("Mon", Part::WeekdayShort),
    ("MST", Part::ZoneName),
    ("2006", Part::Year),
    ("002", Part::DayOfYear),
    ("01", Part::Month),
    ("02", Part::Day),
    ("03", Part::Hour12),
    ("04", Part::Minute),
    ("05", Part::Second),
    ("06", Part::YearShort),
    ("15", Part::Hour),
    ("1", Part::MonthPlain),
    ("_2006", Part::UnderscoreYear),
    ("__2", Part::DayOfYearPadded),
    ("_2", Part::DayPadded),
    ("2", Part::DayPlain),
    ("3", Part::Hour12Plain),
    ("4", Part::MinutePlain),
    ("5", Part::SecondPlain),
    ("PM", Part::Upper),
    ("pm", Part::Lower),
    ("-07:00:00", Part::Offset(':', true, false)),
    ("-070000", Part::Offset(' ', true, false)),
    ("-07:00", Part::Offset(':', false, false)),
    ("-0700", Part::Offset(' ', false, false)),
    ("-07", Part::OffsetHours(false)),
    ("Z07:00", Part::Offset(':', false, true)),
    ("Z0700", Part::Offset(' ', false, true)),
    ("Z07", Part::OffsetHours(true)),
    ("\0", Part::Literal),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    MonthName,
    MonthShort,
    WeekdayName,
    WeekdayShort,
    ZoneName,
    Year,
    UnderscoreYear,
    DayOfYear,
    DayOfYearPadded,
    Month,
    Day,
    Hour12,
    Minute,
    Second,
    YearShort,
    Hour,
    MonthPlain,
    DayPadded,
    DayPlain,
    Hour12Plain,
    MinutePlain,
    SecondPlain,
    Upper,
    Lower,
    /// The sign between hours and minutes, whether there are seconds, whether zero is `Z`.
    Offset(char, bool, bool),
    OffsetHours(bool),
    /// So many digits, the sign before them, and whether zeros at the end are left away.
    Fraction(char, usize, bool),
    Literal,
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Takes the first part off a layout.
fn part_of(layout: &str) -> (Part, usize) {
    if let Some(sign @ ('.' | ',')) = layout.chars().next() {
        for (digit, is_trimmed) in [(b'0', false), (b'9', true)] {
            let count = layout[1..].bytes().take_while(|b| *b == digit).count();
            let next = layout.as_bytes().get(1 + count);
            if count > 0 && !next.is_some_and(u8::is_ascii_digit) {
                return (Part::Fraction(sign, count, is_trimmed), count + 1);
            }
        }
    }
    let known = PARTS.iter().find(|(text, _)| layout.starts_with(text));
    match known {
        // `Jan` is no part of another word.
        Some(("Jan" | "Mon", _)) if layout[3..].starts_with(|c: char| c.is_ascii_lowercase()) => {
            (Part::Literal, 1)
        }
        Some((text, part)) if *part != Part::Literal => (*part, text.len()),
        _ => (
            Part::Literal,
            layout.chars().next().map_or(0, char::len_utf8),
        ),
    }
}

/// An instant by a layout; `None` for one beyond what calendars have.
pub(super) fn format(layout: &str, time_ns: i128, zone: &TimeZone) -> Option<String> {
    let zoned = Timestamp::from_nanosecond(time_ns)
        .ok()?
        .to_zoned(zone.clone());
    let mut out = String::new();
    let mut rest = layout;
    while !rest.is_empty() {
        let (part, length) = part_of(rest);
        match part {
            Part::Literal => out.push_str(&rest[..length]),
            part => write_part(part, &zoned, &mut out),
        }
        rest = &rest[length..];
    }
    Some(out)
}

fn write_part(part: Part, at: &Zoned, out: &mut String) {
    use std::fmt::Write;
    let month = MONTHS[usize::from(at.month().unsigned_abs().clamp(1, 12)) - 1];
    let hour12 = match at.hour() % 12 {
        0 => 12,
        hour => hour,
    };
    let weekday = weekday_name(at.weekday());
    // Writing to a string cannot fail.
    let _ = match part {
        Part::MonthName => write!(out, "{month}"),
        Part::MonthShort => write!(out, "{}", &month[..3]),
        Part::WeekdayName => write!(out, "{weekday}"),
        Part::WeekdayShort => write!(out, "{}", &weekday[..3]),
        Part::ZoneName => write!(out, "{}", at.strftime("%Z")),
        Part::Year => write!(out, "{:04}", at.year()),
        Part::UnderscoreYear => write!(out, "_{:04}", at.year()),
        Part::YearShort => write!(out, "{:02}", at.year().rem_euclid(100)),
        Part::DayOfYear => write!(out, "{:03}", at.day_of_year()),
        Part::DayOfYearPadded => write!(out, "{:3}", at.day_of_year()),
        Part::Month => write!(out, "{:02}", at.month()),
        Part::MonthPlain => write!(out, "{}", at.month()),
        Part::Day => write!(out, "{:02}", at.day()),
        Part::DayPadded => write!(out, "{:2}", at.day()),
        Part::DayPlain => write!(out, "{}", at.day()),
        Part::Hour => write!(out, "{:02}", at.hour()),
        Part::Hour12 => write!(out, "{hour12:02}"),
        Part::Hour12Plain => write!(out, "{hour12}"),
        Part::Minute => write!(out, "{:02}", at.minute()),
        Part::MinutePlain => write!(out, "{}", at.minute()),
        Part::Second => write!(out, "{:02}", at.second()),
        Part::SecondPlain => write!(out, "{}", at.second()),
        Part::Upper => write!(out, "{}", if at.hour() < 12 { "AM" } else { "PM" }),
        Part::Lower => write!(out, "{}", if at.hour() < 12 { "am" } else { "pm" }),
        Part::Offset(..) | Part::OffsetHours(_) => write_offset(part, at.offset().seconds(), out),
        Part::Fraction(sign, digits, is_trimmed) => {
            let all = format!("{:09}", at.subsec_nanosecond());
            let text = &all[..digits.min(9)];
            let text = if is_trimmed {
                text.trim_end_matches('0')
            } else {
                text
            };
            if text.is_empty() {
                Ok(())
            } else {
                write!(out, "{sign}{text}")
            }
        }
        Part::Literal => Ok(()),
    };
}

fn write_offset(part: Part, seconds: i32, out: &mut String) -> std::fmt::Result {
    use std::fmt::Write;
    let (colon, has_seconds, is_z, has_minutes) = match part {
        Part::Offset(colon, has_seconds, is_z) => (colon == ':', has_seconds, is_z, true),
        Part::OffsetHours(is_z) => (false, false, is_z, false),
        _ => return Ok(()),
    };
    if is_z && seconds == 0 {
        return write!(out, "Z");
    }
    let sign = if seconds < 0 { '-' } else { '+' };
    let all = seconds.unsigned_abs();
    write!(out, "{sign}{:02}", all / 3600)?;
    let between = if colon { ":" } else { "" };
    if has_minutes {
        write!(out, "{between}{:02}", all / 60 % 60)?;
    }
    if has_seconds {
        write!(out, "{between}{:02}", all % 60)?;
    }
    Ok(())
}

fn weekday_name(weekday: Weekday) -> &'static str {
    match weekday {
        Weekday::Monday => "Monday",
        Weekday::Tuesday => "Tuesday",
        Weekday::Wednesday => "Wednesday",
        Weekday::Thursday => "Thursday",
        Weekday::Friday => "Friday",
        Weekday::Saturday => "Saturday",
        Weekday::Sunday => "Sunday",
    }
}

/// The fields of a time that were read.
#[derive(Default)]
struct TimeFields {
    year: Option<i16>,
    month: Option<i8>,
    day: Option<i8>,
    day_of_year: Option<i16>,
    hour: i8,
    is_pm: Option<bool>,
    minute: i8,
    second: i8,
    nanosecond: i32,
    offset: Option<i32>,
    is_utc: bool,
}

/// Reads a time by a layout; one without a zone is in `zone`.
pub(super) fn parse(layout: &str, text: &str, zone: &TimeZone) -> Option<i128> {
    let mut read = TimeFields::default();
    let (mut layout, mut text) = (layout, text);
    while !layout.is_empty() {
        let (part, length) = part_of(layout);
        match part {
            Part::Literal => text = text.strip_prefix(&layout[..length])?,
            part => read_part(part, &mut text, &mut read)?,
        }
        layout = &layout[length..];
        // A fraction behind seconds needs none in the layout.
        if matches!(part, Part::Second | Part::SecondPlain) && !layout.starts_with(['.', ',']) {
            read_fraction(&mut text, &mut read);
        }
    }
    if !text.is_empty() {
        return None;
    }
    read.instant(zone)
}

fn digits(text: &mut &str, min: usize, max: usize) -> Option<i32> {
    let count = text
        .bytes()
        .take(max)
        .take_while(u8::is_ascii_digit)
        .count();
    let number = text.get(..count).filter(|_| count >= min)?.parse().ok()?;
    *text = &text[count..];
    Some(number)
}

fn name(text: &mut &str, names: impl Iterator<Item = &'static str>, short: bool) -> Option<i8> {
    for (at, name) in names.enumerate() {
        let name = if short { &name[..3] } else { name };
        let head = text.get(..name.len());
        if head.is_some_and(|head| head.eq_ignore_ascii_case(name)) {
            *text = &text[name.len()..];
            return i8::try_from(at + 1).ok();
        }
    }
    None
}

fn read_part(part: Part, text: &mut &str, read: &mut TimeFields) -> Option<()> {
    let days = [
        "Monday",
        "Tuesday",
        "Wednesday",
        "Thursday",
        "Friday",
        "Saturday",
        "Sunday",
    ];
    match part {
        Part::MonthName => read.month = Some(name(text, MONTHS.into_iter(), false)?),
        Part::MonthShort => read.month = Some(name(text, MONTHS.into_iter(), true)?),
        Part::WeekdayName => _ = name(text, days.into_iter(), false)?,
        Part::WeekdayShort => _ = name(text, days.into_iter(), true)?,
        Part::ZoneName => {
            let count = text.bytes().take_while(u8::is_ascii_uppercase).count();
            read.is_utc = matches!(text.get(..count)?, "UTC" | "GMT");
            *text = text.get(count..).filter(|_| count >= 3)?;
        }
        Part::Year => read.year = Some(cast::low_i16(digits(text, 4, 4)?)),
        Part::UnderscoreYear => {
            *text = text.strip_prefix('_')?;
            read.year = Some(cast::low_i16(digits(text, 4, 4)?));
        }
        Part::YearShort => {
            let year = digits(text, 2, 2)?;
            read.year = Some(cast::low_i16(year + if year >= 69 { 1900 } else { 2000 }));
        }
        Part::DayOfYear | Part::DayOfYearPadded => {
            *text = text.trim_start_matches(' ');
            read.day_of_year = Some(cast::low_i16(digits(text, 1, 3)?));
        }
        Part::Month => read.month = Some(cast::low_i8(digits(text, 2, 2)?)),
        Part::MonthPlain => read.month = Some(cast::low_i8(digits(text, 1, 2)?)),
        Part::Day => read.day = Some(cast::low_i8(digits(text, 2, 2)?)),
        Part::DayPadded | Part::DayPlain => {
            *text = text.trim_start_matches(' ');
            read.day = Some(cast::low_i8(digits(text, 1, 2)?));
        }
        Part::Hour | Part::Hour12 => read.hour = cast::low_i8(digits(text, 2, 2)?),
        Part::Hour12Plain => read.hour = cast::low_i8(digits(text, 1, 2)?),
        Part::Minute => read.minute = cast::low_i8(digits(text, 2, 2)?),
        Part::MinutePlain => read.minute = cast::low_i8(digits(text, 1, 2)?),
        Part::Second => read.second = cast::low_i8(digits(text, 2, 2)?),
        Part::SecondPlain => read.second = cast::low_i8(digits(text, 1, 2)?),
        Part::Upper | Part::Lower => {
            let half = text.get(..2)?.to_ascii_uppercase();
            read.is_pm = Some(match half.as_str() {
                "AM" => false,
                "PM" => true,
                _ => return None,
            });
            *text = &text[2..];
        }
        Part::Fraction(_, _, true) => read_fraction(text, read),
        Part::Fraction(sign, count, false) => {
            *text = text.strip_prefix(sign)?;
            let number = digits(text, count, count)?;
            read.nanosecond = number * 10i32.pow(9u32.saturating_sub(cast::low_u32(count)));
        }
        Part::Offset(..) | Part::OffsetHours(_) => read_offset(part, text, read)?,
        Part::Literal => {}
    }
    Some(())
}

fn read_fraction(text: &mut &str, read: &mut TimeFields) {
    let Some(behind) = text.strip_prefix(['.', ',']) else {
        return;
    };
    let count = behind.bytes().take_while(u8::is_ascii_digit).count();
    if count == 0 {
        return;
    }
    let nine: String = behind[..count]
        .chars()
        .chain("000000000".chars())
        .take(9)
        .collect();
    read.nanosecond = nine.parse().unwrap_or(0);
    *text = &behind[count..];
}

fn read_offset(part: Part, text: &mut &str, read: &mut TimeFields) -> Option<()> {
    let (colon, has_seconds, is_z, has_minutes) = match part {
        Part::Offset(colon, has_seconds, is_z) => (colon == ':', has_seconds, is_z, true),
        Part::OffsetHours(is_z) => (false, false, is_z, false),
        _ => return None,
    };
    if is_z && let Some(behind) = text.strip_prefix('Z') {
        (*text, read.offset) = (behind, Some(0));
        return Some(());
    }
    let sign = match text.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    *text = &text[1..];
    let mut seconds = digits(text, 2, 2)? * 3600;
    for scale in [60, 1] {
        let is_there = (scale == 60 && has_minutes) || (scale == 1 && has_seconds);
        if !is_there {
            break;
        }
        if colon {
            *text = text.strip_prefix(':')?;
        }
        seconds += digits(text, 2, 2)? * scale;
    }
    read.offset = Some(sign * seconds);
    Some(())
}

impl TimeFields {
    fn instant(&self, zone: &TimeZone) -> Option<i128> {
        let hour = match self.is_pm {
            Some(true) if self.hour < 12 => self.hour + 12,
            Some(false) if self.hour == 12 => 0,
            _ => self.hour,
        };
        let time = Time::new(hour, self.minute, self.second, self.nanosecond).ok()?;
        // Years before the first are none in this calendar.
        let year = self.year.filter(|year| *year > 0).unwrap_or(1);
        let date = match self.day_of_year {
            Some(day) => {
                let first = Date::new(year, 1, 1).ok()?;
                first.with().day_of_year(day).build().ok()?
            }
            None => Date::new(year, self.month.unwrap_or(1), self.day.unwrap_or(1)).ok()?,
        };
        let zone = match self.offset {
            Some(seconds) => TimeZone::fixed(Offset::from_seconds(seconds).ok()?),
            None if self.is_utc => TimeZone::UTC,
            None => zone.clone(),
        };
        let zoned = DateTime::from_parts(date, time).to_zoned(zone).ok()?;
        Some(zoned.timestamp().as_nanosecond())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_format_and_parse() {
        let ns = 1_772_409_752_465_922_100;
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let table = [
            ("2006-01-02T15:04:05Z07:00", "2026-03-02T01:02:32+01:00"),
            (
                "Mon Jan _2 15:04:05 MST 2006",
                "Mon Mar  2 01:02:32 CET 2026",
            ),
            (
                "Monday, 02-Jan-06 03:04:05.000 PM",
                "Monday, 02-Mar-26 01:02:32.465 AM",
            ),
            ("1/2/06 3:4pm -0700", "3/2/26 1:2am +0100"),
            ("2006.002 15h05,999999999", "2026.061 01h32,4659221"),
            ("x: -07 -07:00:00", "x: +01 +01:00:00"),
        ];
        for (layout, expected) in table {
            assert_eq!(format(layout, ns, &zone).unwrap(), expected, "{layout}");
        }
        let table = [
            (
                "2006-01-02T15:04:05Z07:00",
                "2026-03-02T01:02:32.4659221+01:00",
                Some(ns),
            ),
            (
                "2006-01-02 15:04:05.000000",
                "2026-03-02 01:02:32.465922",
                Some(ns - 100),
            ),
            (
                "Jan _2 2006 3:04:05PM",
                "Mar  2 2026 1:02:32AM",
                Some(ns - 465_922_100),
            ),
            (
                "2006-01-02Z07:00",
                "2026-03-02Z",
                Some(1_772_409_600_000_000_000),
            ),
            ("2006-01-02", "2026-13-02", None),
            ("2006-01-02", "2026-03-02x", None),
            ("15:04", "ab:cd", None),
        ];
        for (layout, text, expected) in table {
            assert_eq!(parse(layout, text, &zone), expected, "{layout} {text}");
        }
    }
}

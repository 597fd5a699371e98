//! Times of any form that is made of known parts.
//!
//! A date, what stands between, a clock and what follows it are read one after the other. Each part
//! has its own table, so that all combinations are read:
//!
//! | part | forms |
//! | --- | --- |
//! | weekday | `Fri`, `Friday`, with a comma or not |
//! | date, year first | `2026-11-27`, `2026/11/27`, `2026.11.27`, `2026:11:27`, `2026-Nov-27`, `20261127`, `261127`, `2026-331` |
//! | date, day or month first | `27/Nov/2026`, `27-Nov-26`, `27 Nov`, `Nov 27, 2026`, `November 27`, `27.11.2026`, `11/27/2026` |
//! | date and clock in one | `20261127005125` |
//! | clock | `00:51:25`, ` 0:51:25`, `00:51`, `005125`, `00.51.25`, with a fraction or not |
//! | half | `AM`, `pm`, `p.m.`, behind a space of any kind or none |
//! | zone | `Z`, `+01:00`, `+0100`, `-03`, `CEST`, `GMT+1`, `Europe/Berlin` |
//! | year | behind clock or zone, where the date has none |
//!
//! The order of day, month and year of numbers alone is that of the product that writes such a form
//! (see [`Numbers::order`]). If no product is known and several orders give a date, it is the one
//! that is nearest below one day after the receive time, and the day is said to be assumed.

use logpond_record::{Assumption, Civil, Timestamp};

use super::cursor::Cursor;
use super::months;
use super::zones::{self, Zone};
use super::{DAY_NS, LEVELS, in_latest_year, instant};

/// Years of four digits outside of this are numbers of another kind.
const YEARS: std::ops::Range<u32> = 1970..2100;

/// Years of two digits from here on are of the century before.
const CENTURY_TURNS: u32 = 70;

/// The most spaces between date and clock: columns are padded.
const SPACES_MAX: usize = 8;

/// Digits of a date and a clock with nothing between them, and with milliseconds.
const JOINED_DIGITS: usize = 14;
const JOINED_MS_DIGITS: usize = 17;

/// Digits of a second's fraction that are looked at; those behind the ninth do not count.
const FRACTION_DIGITS_MAX: usize = 12;

const MONTHS: [&[u8]; 12] = [
    b"january",
    b"february",
    b"march",
    b"april",
    b"may",
    b"june",
    b"july",
    b"august",
    b"september",
    b"october",
    b"november",
    b"december",
];

const WEEKDAYS: [&[u8]; 7] = [
    b"sunday",
    b"monday",
    b"tuesday",
    b"wednesday",
    b"thursday",
    b"friday",
    b"saturday",
];

/// Texts between date and clock; longer ones stand first.
const BETWEEN: [&[u8]; 21] = [
    b"\" time=\"",
    b"\" \"",
    b"\",\"",
    b"\"\t\"",
    b" time=\"",
    b" time=",
    b" at ",
    b" @ ",
    b" -- ",
    b" - ",
    b", ",
    b"::",
    b" ",
    b"T",
    b"t",
    b"\t",
    b":",
    b"-",
    b",",
    b";",
    b"_",
];

/// A time and what was found out on the way.
#[derive(Clone, Copy, Debug)]
pub(super) struct GeneralTime {
    pub(super) time: Timestamp,
    /// Bytes of the text that belong to it.
    pub(super) bytes: usize,
    pub(super) assumed: Assumption,
    /// The zone that is written.
    pub(super) zone: Option<Zone>,
    /// True if it has seconds and a year of four digits.
    pub(super) is_full: bool,
}

#[derive(Clone, Copy)]
struct Date {
    year: Option<i64>,
    month: u32,
    day: u32,
}

/// A date as it is written.
#[derive(Clone, Copy)]
enum Dates {
    One(Date),
    Numbers(Numbers),
}

/// A date of three numbers whose order is to be found out.
#[derive(Clone, Copy)]
struct Numbers {
    first: u32,
    second: u32,
    third: u32,
    /// True if the third has four digits.
    has_century: bool,
    separator: u8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    DayMonthYear,
    MonthDayYear,
    YearMonthDay,
}

#[derive(Clone, Copy, Default)]
struct Clock {
    hour: u32,
    minute: u32,
    second: u32,
    nanos: u32,
    fraction_digits: usize,
    has_seconds: bool,
    separator: u8,
    half: Option<Half>,
}

/// AM or PM.
#[derive(Clone, Copy)]
struct Half {
    is_upper_case: bool,
}

/// Reads the time that a text begins with.
pub(super) fn read(text: &[u8], received: Timestamp) -> Option<GeneralTime> {
    let mut cursor = Cursor::new(text);
    let weekday = name_of(&cursor, &WEEKDAYS);
    if let Some((_, bytes)) = weekday {
        cursor.at += bytes;
        cursor.eat(b'.');
        cursor.eat(b',');
        if cursor.eat_spaces(2) == 0 {
            return None;
        }
    }
    let digits = cursor.digits();
    let dates = date(&mut cursor)?;
    let between = if matches!(digits, JOINED_DIGITS | JOINED_MS_DIGITS) {
        b""
    } else {
        between(&mut cursor)?
    };
    let is_compact = matches!(dates, Dates::One(_));
    let clock = clock(&mut cursor, is_compact)?;
    if digits == 6 && !is_short_date(&clock, cursor.rest()) {
        return None;
    }
    finish(cursor, dates, between, &clock, received)
}

/// True if what follows a date of six digits and a clock is MySQL's, or Tornado's `web:7]`: process numbers
/// have six digits, too.
fn is_short_date(clock: &Clock, behind: &[u8]) -> bool {
    const BEHIND: [&[u8]; 4] = [b"\t", b" [", b"  ", b" mysqld"];
    let word = behind.split(|byte| *byte == b']').next();
    let is_source = word.is_some_and(|word| {
        let digits = word.iter().rev().take_while(|b| b.is_ascii_digit()).count();
        let name = &word[..word.len() - digits];
        digits > 0 && name.len() > 2 && name.ends_with(b":") && !name[1..].contains(&b' ')
    });
    clock.fraction_digits == 0
        && (behind.is_empty() || is_source || BEHIND.iter().any(|text| behind.starts_with(text)))
}

/// Reads the month, day and clock that Google's logging library writes behind the letter of the level,
/// with a year or without.
pub(super) fn read_google(text: &[u8], received: Timestamp) -> Option<GeneralTime> {
    let mut cursor = Cursor::new(text);
    let year = match cursor.digits() {
        4 => None,
        // CockroachDB.
        6 => Some(of_century(cursor.number(2)?)),
        8 => Some(i64::from(cursor.number(4)?)),
        _ => return None,
    };
    let (month, day) = (cursor.number(2)?, cursor.number(2)?);
    if !cursor.eat(b' ') {
        return None;
    }
    let clock = clock(&mut cursor, false).filter(|clock| clock.fraction_digits >= 3)?;
    let date = Dates::One(Date { year, month, day });
    finish(cursor, date, b" ", &clock, received)
}

/// Reads a clock that stands alone, with seconds or a half of the day: its hour, minute and second in a date that is
/// none, its nanoseconds, and its bytes.
pub(super) fn read_clock(text: &[u8]) -> Option<(Civil, u32, usize)> {
    let mut cursor = Cursor::new(text);
    let clock = clock(&mut cursor, false)?;
    let is_whole = (clock.has_seconds || clock.half.is_some()) && clock.separator == b':';
    let ends = matches!(
        cursor.peek(),
        None | Some(b' ' | b']' | b')' | b'|' | b'\t' | 0x1b)
    );
    let civil = Civil {
        year: 0,
        month: 1,
        day: 1,
        hour: clock.hour,
        minute: clock.minute,
        second: clock.second,
    };
    (is_whole && ends).then_some((civil, clock.nanos, cursor.at))
}

/// Reads what follows the clock, and makes an instant of all.
fn finish(
    mut cursor: Cursor<'_>,
    dates: Dates,
    between: &[u8],
    clock: &Clock,
    received: Timestamp,
) -> Option<GeneralTime> {
    let mut zone = zones::read(&mut cursor, clock.separator == b'.');
    let mut dates = dates;
    if let Dates::One(date) = &mut dates
        && date.year.is_none()
        && clock.has_seconds
    {
        date.year = year_behind(&mut cursor);
        if date.year.is_some() && zone.is_none() {
            zone = zones::read(&mut cursor, false);
        }
    }
    if cursor.is_digit_at(0) {
        return None;
    }
    let minutes = zone.map_or(0, |zone| i64::from(zone.minutes()));
    let is_full = clock.has_seconds
        && match dates {
            Dates::One(date) => date.year.is_some(),
            Dates::Numbers(numbers) => numbers.has_century,
        };
    let (time, has_year, has_day) = match dates {
        Dates::One(date) => (
            date.instant(clock, minutes, received)?,
            date.year.is_some(),
            true,
        ),
        Dates::Numbers(numbers) => {
            let order = numbers.order(between, clock, zone.as_ref(), cursor.rest());
            let (time, is_certain) = numbers.instant(order, clock, minutes, received)?;
            (time, true, is_certain)
        }
    };
    let (time, is_zone_certain) = match zone {
        Some(zone) => zone.place(time, received)?,
        None => (time, false),
    };
    Some(GeneralTime {
        time,
        bytes: cursor.at,
        assumed: Assumption::of(has_day, has_year, is_zone_certain),
        zone,
        is_full,
    })
}

impl Date {
    fn instant(&self, clock: &Clock, minutes: i64, received: Timestamp) -> Option<Timestamp> {
        let mut civil = Civil {
            year: self.year.unwrap_or(0),
            month: self.month,
            day: self.day,
            hour: clock.hour,
            minute: clock.minute,
            second: clock.second,
        };
        match self.year {
            Some(_) => instant(&civil, clock.nanos, minutes),
            None if clock.has_seconds => in_latest_year(&mut civil, clock.nanos, minutes, received),
            None => None,
        }
    }
}

impl Numbers {
    /// The order by the product that writes such a form.
    fn order(
        &self,
        between: &[u8],
        clock: &Clock,
        zone: Option<&Zone>,
        behind: &[u8],
    ) -> Option<Order> {
        let is_slashed = self.separator == b'/';
        match (self.separator, between) {
            // Central Europe.
            (b'.', _) => return Some(Order::DayMonthYear),
            // Suricata's own log up to version 6.
            (b'/', b" -- ") => return Some(Order::DayMonthYear),
            // Suricata and Snort; Microsoft's DHCP server; Valve's game servers.
            (b'/', b"-" | b"," | b" - ") => return Some(Order::MonthDayYear),
            // Access logs: cPanel's, whose offset is always -0000, and Proxmox's.
            (b'/', b":") => {
                let is_unknown_zone = zone.is_some_and(Zone::is_minus_zero);
                return Some(if is_unknown_zone {
                    Order::MonthDayYear
                } else {
                    Order::DayMonthYear
                });
            }
            _ => {}
        }
        // The locale of the United States; others that have halves write them in small letters.
        if is_slashed && clock.half.is_some_and(|half| half.is_upper_case) {
            return Some(Order::MonthDayYear);
        }
        // Spark, Hadoop.
        if is_slashed && !self.has_century && begins_with_level(behind) {
            return Some(Order::YearMonthDay);
        }
        // Splunk's own logs.
        if self.separator == b'-' && clock.fraction_digits == 3 && zone.is_some() {
            return Some(Order::MonthDayYear);
        }
        // PBS and Grid Engine; HTCondor.
        let is_scheduler = matches!(behind.first(), Some(b';' | b'|')) || {
            let behind = behind.trim_ascii_start();
            behind.starts_with(b"(pid:") || behind.starts_with(b"******")
        };
        (is_slashed && is_scheduler).then_some(Order::MonthDayYear)
    }

    /// The instant in an order, or in the one that gives the likeliest; true if no other gives any.
    fn instant(
        &self,
        order: Option<Order>,
        clock: &Clock,
        minutes: i64,
        received: Timestamp,
    ) -> Option<(Timestamp, bool)> {
        let at = |order| self.in_order(order)?.instant(clock, minutes, received);
        if let Some(time) = order.and_then(at) {
            return Some((time, true));
        }
        let orders = [
            Order::MonthDayYear,
            Order::DayMonthYear,
            Order::YearMonthDay,
        ];
        let mut times: Vec<Timestamp> = orders.into_iter().filter_map(at).collect();
        times.dedup();
        if let [time] = times[..] {
            return Some((time, true));
        }
        let latest = received.saturating_add(DAY_NS);
        let past = times.iter().filter(|time| **time <= latest).max();
        Some((*past.or(times.iter().min())?, false))
    }

    fn in_order(&self, order: Order) -> Option<Date> {
        let (year, month, day) = match order {
            Order::DayMonthYear => (self.third, self.second, self.first),
            Order::MonthDayYear => (self.third, self.first, self.second),
            Order::YearMonthDay if self.has_century => return None,
            Order::YearMonthDay => (self.first, self.second, self.third),
        };
        let year = if self.has_century {
            i64::from(year)
        } else {
            of_century(year)
        };
        Some(Date {
            year: Some(year),
            month,
            day,
        })
    }
}

fn begins_with_level(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    LEVELS.iter().any(|level| {
        let word = text.get(..level.len());
        word.is_some_and(|word| word == *level)
            && !text.get(level.len()).is_some_and(u8::is_ascii_alphanumeric)
    })
}

/// The year of two digits.
fn of_century(year: u32) -> i64 {
    let century = if year < CENTURY_TURNS { 2000 } else { 1900 };
    century + i64::from(year)
}

/// The place in a table of names of the name that comes next, three letters of it or all, and its bytes.
fn name_of(cursor: &Cursor<'_>, names: &[&[u8]]) -> Option<(usize, usize)> {
    let first = cursor.rest().first_chunk::<3>()?.map(|byte| byte | 0x20);
    let place = names.iter().position(|name| name[..3] == first)?;
    let letters = cursor.letters();
    let word = &cursor.rest()[..letters];
    let name = names[place];
    // `Sept` is written, too.
    let begin = || {
        name.get(..4)
            .is_some_and(|begin| begin.eq_ignore_ascii_case(word))
    };
    let is_it = letters == 3 || name.eq_ignore_ascii_case(word) || begin();
    is_it.then_some((place, letters))
}

fn month_name(cursor: &mut Cursor<'_>) -> Option<u32> {
    let english = name_of(cursor, &MONTHS).map(|(place, bytes)| (place as u32 + 1, bytes));
    let (month, bytes) = english.or_else(|| months::read(cursor.rest()))?;
    cursor.at += bytes;
    cursor.eat(b'.');
    Some(month)
}

fn full_year(cursor: &mut Cursor<'_>) -> Option<i64> {
    let year = cursor.number(4).filter(|year| YEARS.contains(year))?;
    Some(i64::from(year))
}

fn date(cursor: &mut Cursor<'_>) -> Option<Dates> {
    if !cursor.is_digit_at(0) {
        return month_first(cursor).map(Dates::One);
    }
    match cursor.digits() {
        8 | JOINED_DIGITS | JOINED_MS_DIGITS => {
            let year = Some(full_year(cursor)?);
            let (month, day) = (cursor.number(2)?, cursor.number(2)?);
            Some(Dates::One(Date { year, month, day }))
        }
        // MySQL before 5.7, Tornado.
        6 if cursor.peek_at(6) == Some(b' ') => {
            let year = Some(of_century(cursor.number(2)?));
            let (month, day) = (cursor.number(2)?, cursor.number(2)?);
            Some(Dates::One(Date { year, month, day }))
        }
        4 => year_first(cursor).map(Dates::One),
        digits @ 1..=2 => short_first(cursor, digits),
        _ => None,
    }
}

/// True for the name of a month, three letters of it.
pub(super) fn is_month(text: &[u8]) -> bool {
    name_of(&Cursor::new(text), &MONTHS).is_some_and(|(_, bytes)| bytes == text.len())
}

/// One digit or two.
fn day_of_month(cursor: &mut Cursor<'_>) -> Option<u32> {
    let digits = cursor.digits();
    if !(1..=2).contains(&digits) {
        return None;
    }
    cursor.number(digits)
}

/// `Nov 27`, `Nov 27 2026`, `November 27, 2026`.
fn month_first(cursor: &mut Cursor<'_>) -> Option<Date> {
    // Most words that a line begins with are no month, and no number follows them.
    let behind = &cursor.rest()[months::word_bytes(cursor.rest())..];
    let is_parted = matches!(
        behind,
        [b' ' | b'-' | b'/', b'0'..=b'9' | b' ', ..] | [b'.', b' ', b'0'..=b'9', ..]
    );
    if !is_parted {
        return None;
    }
    let month = month_name(cursor)?;
    let separator = cursor.peek().filter(|b| matches!(b, b' ' | b'-' | b'/'))?;
    cursor.at += 1;
    if separator == b' ' {
        cursor.eat_spaces(1);
    }
    let day = day_of_month(cursor)?;
    let mut ahead = *cursor;
    let is_parted = match separator {
        b' ' => ahead.eat(b',') | (ahead.eat_spaces(2) > 0),
        separator => ahead.eat(separator),
    };
    let year = match ahead.digits() {
        4 if is_parted && ahead.peek_at(4) != Some(b':') => full_year(&mut ahead),
        _ => None,
    };
    if year.is_some() {
        *cursor = ahead;
    }
    Some(Date { year, month, day })
}

/// `2026-11-27`, `2026 Nov 27`, `2026-331`.
fn year_first(cursor: &mut Cursor<'_>) -> Option<Date> {
    let year = full_year(cursor)?;
    let separator = cursor.peek()?;
    if !matches!(separator, b'-' | b'/' | b'.' | b':' | b' ') {
        return None;
    }
    cursor.at += 1;
    let digits = cursor.digits();
    if digits == 3 && separator == b'-' {
        let (month, day) = of_year(year, cursor.number(3)?)?;
        let year = Some(year);
        return Some(Date { year, month, day });
    }
    let month = match digits {
        1..=2 => cursor.number(digits)?,
        0 => month_name(cursor)?,
        _ => return None,
    };
    if !cursor.eat(separator) {
        return None;
    }
    if separator == b' ' {
        cursor.eat_spaces(1);
    }
    let day = day_of_month(cursor)?;
    let year = Some(year);
    Some(Date { year, month, day })
}

/// Month and day of a day of the year.
fn of_year(year: i64, day: u32) -> Option<(u32, u32)> {
    let first = Civil {
        year,
        month: 1,
        day: 1,
        hour: 0,
        minute: 0,
        second: 0,
    };
    let days = i64::from(day.checked_sub(1)?);
    let found = Civil::from_seconds(first.to_seconds()? + days * 86_400);
    (found.year == year).then_some((found.month, found.day))
}

/// A date that begins with one or two digits.
fn short_first(cursor: &mut Cursor<'_>, digits: usize) -> Option<Dates> {
    let first = cursor.number(digits)?;
    let separator = cursor.peek()?;
    if !matches!(separator, b'/' | b'-' | b'.' | b' ') {
        return None;
    }
    cursor.at += 1;
    // `27. November`
    let is_dotted = separator == b'.' && cursor.eat(b' ');
    let separator = if is_dotted { b' ' } else { separator };
    let next = cursor.peek()?;
    if next.is_ascii_alphabetic() || next >= 0x80 {
        return day_and_name(cursor, first, separator).map(Dates::One);
    }
    let seconds = cursor.digits();
    if !(1..=2).contains(&seconds) || separator == b' ' {
        return None;
    }
    let second = cursor.number(seconds)?;
    let is_padded = digits == 2 && seconds == 2;
    if !cursor.eat(separator) {
        // Snort writes `11/27-00:51:25.818426`, Android `11-27 00:51:25.818`.
        let clock = match separator {
            b'/' => b'-',
            b'-' => b' ',
            _ => return None,
        };
        let has_fraction = cursor.peek_at(9) == Some(b'.') && cursor.is_digit_at(12);
        let is_date = is_padded && cursor.peek() == Some(clock) && has_fraction;
        let (year, month, day) = (None, first, second);
        return is_date.then_some(Dates::One(Date { year, month, day }));
    }
    let has_century = match cursor.digits() {
        4 => true,
        // A version is no date.
        2 if separator != b'.' || is_padded => false,
        _ => return None,
    };
    let third = if has_century {
        full_year(cursor)? as u32
    } else {
        cursor.number(2)?
    };
    Some(Dates::Numbers(Numbers {
        first,
        second,
        third,
        has_century,
        separator,
    }))
}

/// Reads the month and the year behind the day: `Nov-2026`, `Nov-26`, `Nov`.
fn day_and_name(cursor: &mut Cursor<'_>, day: u32, separator: u8) -> Option<Date> {
    let month = month_name(cursor)?;
    let mut ahead = *cursor;
    ahead.eat(b',');
    let is_parted = ahead.eat(separator);
    let year = match ahead.digits() {
        _ if !is_parted => None,
        // It may be the clock.
        4 if separator != b' ' || ahead.peek_at(4) != Some(b':') => full_year(&mut ahead),
        2 if separator != b' ' || !matches!(ahead.peek_at(2), Some(b':' | b'.')) => {
            ahead.number(2).map(of_century)
        }
        _ => None,
    };
    if year.is_some() {
        *cursor = ahead;
    }
    (year.is_some() || separator == b' ').then_some(Date { year, month, day })
}

/// Reads what stands between date and clock.
fn between(cursor: &mut Cursor<'_>) -> Option<&'static [u8]> {
    let found = BETWEEN
        .iter()
        .find(|between| cursor.rest().starts_with(between))?;
    cursor.at += found.len();
    cursor.eat_spaces(SPACES_MAX);
    cursor.is_digit_at(0).then_some(found)
}

fn clock(cursor: &mut Cursor<'_>, may_be_compact: bool) -> Option<Clock> {
    let mut clock = match cursor.digits() {
        6 | 9 if may_be_compact => Clock {
            hour: cursor.number(2)?,
            minute: cursor.number(2)?,
            second: cursor.number(2)?,
            has_seconds: true,
            separator: b':',
            ..Clock::default()
        },
        digits @ 1..=2 => separated_clock(cursor, digits)?,
        _ => return None,
    };
    if clock.has_seconds {
        fraction(cursor, &mut clock)?;
    }
    clock.half = half(cursor, &mut clock.hour);
    let is_right = clock.hour < 24 && clock.minute < 60 && clock.second <= 60;
    is_right.then_some(clock)
}

fn separated_clock(cursor: &mut Cursor<'_>, digits: usize) -> Option<Clock> {
    let hour = cursor.number(digits)?;
    let separator = cursor.peek().filter(|b| matches!(b, b':' | b'.'))?;
    cursor.at += 1;
    if cursor.digits() != 2 {
        return None;
    }
    let minute = cursor.number(2)?;
    let mut clock = Clock {
        hour,
        minute,
        separator,
        ..Clock::default()
    };
    if cursor.peek() == Some(separator) && cursor.is_digit_at(1) {
        cursor.at += 1;
        if cursor.digits() != 2 {
            return None;
        }
        clock.second = cursor.number(2)?;
        clock.has_seconds = true;
    }
    (clock.has_seconds || separator == b':').then_some(clock)
}

/// Reads the fraction of a second, if there is any. `None` if it has too many digits.
fn fraction(cursor: &mut Cursor<'_>, clock: &mut Clock) -> Option<()> {
    let digits = |from: usize| {
        let ahead = (from..=from + FRACTION_DIGITS_MAX).take_while(|at| cursor.is_digit_at(*at));
        ahead.count()
    };
    let count = match cursor.peek() {
        // Right behind the second.
        Some(b'0'..=b'9') if digits(0) == 3 => {
            clock.nanos = cursor.number(3)? * 1_000_000;
            clock.fraction_digits = 3;
            return Some(());
        }
        Some(b'.') => digits(1),
        // More digits are the next column.
        Some(b',') => Some(digits(1)).filter(|count| *count <= 9).unwrap_or(0),
        // WebSphere.
        Some(b':') if digits(1) == 3 && cursor.peek_at(4) != Some(b':') => 3,
        _ => 0,
    };
    if count == 0 {
        return Some(());
    }
    if count > FRACTION_DIGITS_MAX {
        return None;
    }
    cursor.at += 1;
    let read = count.min(9);
    clock.nanos = cursor.number(read)? * 10u32.pow(9 - read as u32);
    clock.fraction_digits = read;
    cursor.at += count - read;
    Some(())
}

/// Reads AM or PM and sets the hour right.
fn half(cursor: &mut Cursor<'_>, hour: &mut u32) -> Option<Half> {
    let mut ahead = *cursor;
    // The spaces that newer versions of ICU write, and the usual one.
    let _ = ahead.eat_text("\u{202f}".as_bytes())
        || ahead.eat_text("\u{a0}".as_bytes())
        || ahead.eat(b' ');
    let first = ahead.peek()?;
    let is_afternoon = match first {
        b'A' | b'a' => false,
        b'P' | b'p' => true,
        _ => return None,
    };
    ahead.at += 1;
    let is_dotted = ahead.eat(b'.');
    if !ahead.eat(b'M') && !ahead.eat(b'm') {
        return None;
    }
    if is_dotted {
        ahead.eat(b'.');
    }
    if ahead.peek().is_some_and(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    *cursor = ahead;
    // An hour beyond 12 is right as it is.
    match (*hour, is_afternoon) {
        (12, false) => *hour = 0,
        (1..=11, true) => *hour += 12,
        _ => {}
    }
    Some(Half {
        is_upper_case: first.is_ascii_uppercase(),
    })
}

/// Reads a year of four digits behind a clock or a zone.
fn year_behind(cursor: &mut Cursor<'_>) -> Option<i64> {
    let mut ahead = *cursor;
    if ahead.eat_spaces(2) == 0 || ahead.digits() != 4 {
        return None;
    }
    let year = full_year(&mut ahead)?;
    let ends = ahead.peek().is_none_or(|b| {
        b.is_ascii_whitespace()
            || matches!(b, b':' | b']' | b'>' | b')' | b',' | b'|' | b'"' | b';')
    });
    if !ends {
        return None;
    }
    *cursor = ahead;
    Some(year)
}

//! Dates of times of any form, see [`general`](super::general).

use logpond_record::{Civil, Timestamp, cast};

use super::cursor::Cursor;
use super::months;
use super::time_of_day::Clock;
use super::weekdays;
use super::zones::Zone;
use super::{DAY_NS, LEVELS, in_latest_year, instant};

/// Years of four digits outside of this are numbers of another kind.
const YEARS: std::ops::Range<u32> = 1970..2100;

/// Years of two digits from here on are of the century before.
const CENTURY_TURNS: u32 = 70;

/// Seconds of a day.
const DAY_S: i64 = 86_400;

/// Marks of year, month and day in Chinese and Japanese, and in Korean.
const MARKS: [[&str; 3]; 2] = [["年", "月", "日"], ["년", "월", "일"]];

/// Digits of a date and a clock with nothing between them, and with milliseconds.
pub(super) const JOINED_DIGITS: usize = 14;
pub(super) const JOINED_MS_DIGITS: usize = 17;

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

/// Its year, if it is written, month and day.
#[derive(Clone, Copy)]
pub(super) struct Date {
    pub(super) year: Option<i64>,
    pub(super) month: u32,
    pub(super) day: u32,
}

/// A date as it is written.
#[derive(Clone, Copy)]
pub(super) enum Dates {
    One(Date),
    Numbers(Numbers),
}

/// A date of three numbers whose order is to be found out.
#[derive(Clone, Copy)]
pub(super) struct Numbers {
    first: u32,
    second: u32,
    third: u32,
    /// True if the third has four digits.
    pub(super) has_century: bool,
    separator: u8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    DayMonthYear,
    MonthDayYear,
    YearMonthDay,
}

impl Date {
    pub(super) fn instant(
        &self,
        clock: &Clock,
        minutes: i64,
        received: Timestamp,
    ) -> Option<Timestamp> {
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
    pub(super) fn order(
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
                return Some(if is_unknown_zone || is_netscaler(behind) {
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
        if is_slashed && is_american(self.has_century, clock, behind) {
            return Some(Order::MonthDayYear);
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
    pub(super) fn instant(
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
pub(super) fn of_century(year: u32) -> i64 {
    let century = if year < CENTURY_TURNS { 2000 } else { 1900 };
    century + i64::from(year)
}

/// Reads the date that comes next.
pub(super) fn date(cursor: &mut Cursor<'_>) -> Option<Dates> {
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
        // ASSP: `Nov-27-26 00:51:25`.
        2 if is_parted && separator == b'-' && ahead.peek_at(2) == Some(b' ') => {
            ahead.number(2).map(of_century)
        }
        _ => None,
    };
    if year.is_some() {
        *cursor = ahead;
    }
    Some(Date { year, month, day })
}

/// `2026-11-27`, `2026 Nov 27`, `2026-331`, `2026-W48-5`, `2026年11月27日`.
fn year_first(cursor: &mut Cursor<'_>) -> Option<Date> {
    let year = full_year(cursor)?;
    let separator = cursor.peek()?;
    if separator >= 0x80 {
        return marked(year, cursor);
    }
    if !matches!(separator, b'-' | b'/' | b'.' | b':' | b' ') {
        return None;
    }
    cursor.at += 1;
    // Korean: `2026. 11. 27. `
    let is_spaced = separator == b'.' && cursor.eat(b' ');
    let digits = cursor.digits();
    if digits == 3 && matches!(separator, b'-' | b'/' | b'.') {
        let (month, day) = of_year(year, cursor.number(3)?)?;
        let year = Some(year);
        return Some(Date { year, month, day });
    }
    if separator == b'-' && cursor.eat(b'W') {
        return of_week(year, cursor);
    }
    let month = match digits {
        1..=2 => cursor.number(digits)?,
        0 => month_name(cursor)?,
        _ => return None,
    };
    if !cursor.eat(separator) {
        return None;
    }
    if separator == b' ' || is_spaced {
        cursor.eat_spaces(1);
    }
    let day = day_of_month(cursor)?;
    if is_spaced {
        cursor.eat(separator);
    }
    let year = Some(year);
    Some(Date { year, month, day })
}

/// Reads month and day with the marks of Chinese, Japanese and Korean behind each number, behind the year.
fn marked(year: i64, cursor: &mut Cursor<'_>) -> Option<Date> {
    let marks = MARKS
        .iter()
        .find(|marks| cursor.eat_text(marks[0].as_bytes()))?;
    let mut number = |mark: &str| {
        cursor.eat_spaces(1);
        let number = day_of_month(cursor)?;
        cursor.eat_text(mark.as_bytes()).then_some(number)
    };
    let (month, day) = (number(marks[1])?, number(marks[2])?);
    let year = Some(year);
    Some(Date { year, month, day })
}

/// Unix time in seconds of the start of a year.
fn start_of(year: i64) -> Option<i64> {
    let first = Civil {
        year,
        month: 1,
        day: 1,
        hour: 0,
        minute: 0,
        second: 0,
    };
    first.to_seconds()
}

/// Month and day of a day of the year.
fn of_year(year: i64, day: u32) -> Option<(u32, u32)> {
    let days = i64::from(day.checked_sub(1)?);
    let found = Civil::from_seconds(start_of(year)? + days * DAY_S);
    (found.year == year).then_some((found.month, found.day))
}

/// Reads a week of ISO 8601 and the day in it, `48-5`. The first week is that of 4 January, and Monday is day 1.
fn of_week(year: i64, cursor: &mut Cursor<'_>) -> Option<Date> {
    let week = cursor.number(2).filter(|week| (1..=53).contains(week))?;
    if !cursor.eat(b'-') || cursor.digits() != 1 {
        return None;
    }
    let day = cursor.number(1).filter(|day| (1..=7).contains(day))?;
    let fourth = start_of(year)? / DAY_S + 3;
    // 1 January 1970 was a Thursday.
    let monday = fourth - (fourth + 3).rem_euclid(7);
    let days = monday + i64::from(week - 1) * 7 + i64::from(day - 1);
    let found = Civil::from_seconds(days * DAY_S);
    Some(Date {
        year: Some(found.year),
        month: found.month,
        day: found.day,
    })
}

/// True if what follows a time is that of a product that has the month first.
///
/// | product | behind the time |
/// | --- | --- |
/// | WebSphere | a bracket and a thread |
/// | HP ProCurve | the number of an event |
/// | ExtremeXOS | a component between angles |
/// | Akka | a thread in brackets |
fn is_american(has_century: bool, clock: &Clock, behind: &[u8]) -> bool {
    let count = |text: &[u8], holds: fn(&u8) -> bool| text.iter().take_while(|b| holds(b)).count();
    match behind {
        [b']', b' ', b'[', ..] => has_century && clock.fraction_digits == 3,
        [b']', b' ', rest @ ..] => {
            let thread = count(rest, u8::is_ascii_hexdigit);
            thread == 8 && rest.get(8) == Some(&b' ') && clock.fraction_digits == 3
        }
        [b' ', b'<', b'A'..=b'Z', rest @ ..] => {
            count(rest, u8::is_ascii_lowercase) == 3 && rest.get(3) == Some(&b':')
        }
        [b' ', rest @ ..] => {
            let number = count(rest, u8::is_ascii_digit);
            !has_century && number == 5 && rest.get(5) == Some(&b' ')
        }
        _ => false,
    }
}

/// True if the name of a host and of a packet engine of NetScaler follow, ` adc 0-PPE-0 : `.
fn is_netscaler(behind: &[u8]) -> bool {
    let mut words = behind.splitn(5, |byte| *byte == b' ').skip(2);
    let engine = words.next().unwrap_or_default();
    words.next() == Some(b":") && memchr::memmem::find(engine, b"-PPE-").is_some()
}

/// A date that begins with one or two digits.
fn short_first(cursor: &mut Cursor<'_>, digits: usize) -> Option<Dates> {
    let first = cursor.number(digits)?;
    let separator = cursor.peek()?;
    if separator.is_ascii_alphabetic() {
        return joined_name(cursor, first).map(Dates::One);
    }
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
        // Snort writes `11/27-00:51:25.818426`, Android `11-27 00:51:25.818`, Ethereum's nodes `11-27|00:51:25.818`.
        let is_parted = matches!(
            (separator, cursor.peek()?),
            (b'/', b'-') | (b'-', b' ' | b'|')
        );
        let has_fraction = cursor.peek_at(9) == Some(b'.') && cursor.is_digit_at(12);
        // log15 of Go writes `11-27|00:51:25]`.
        let is_log15 = cursor.peek() == Some(b'|') && cursor.peek_at(9) == Some(b']');
        // Netlogon of Windows writes `11/27 00:51:25 [LOGON]`, vLLM `11-27 00:51:25 [` and `11-27 00:51:25 engine.py:7]`.
        let is_netlogon = matches!(separator, b'/' | b'-')
            && cursor.peek() == Some(b' ')
            && cursor.peek_at(9) == Some(b' ')
            && (cursor.peek_at(10) == Some(b'[') || is_before_place(&cursor.rest()[10..]));
        // SQL Anywhere writes `11/27 00:51:25. `.
        let is_dotted = separator == b'/'
            && cursor.peek_at(9) == Some(b'.')
            && cursor.peek_at(10) == Some(b' ');
        let is_date =
            is_padded && (is_parted && (has_fraction || is_log15) || is_netlogon || is_dotted);
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
        cast::low_u32(full_year(cursor)?)
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

/// True for a file of Python, a line and a bracket.
fn is_before_place(text: &[u8]) -> bool {
    const PLACE_BYTES_MAX: usize = 64;
    let end = memchr::memchr(b']', &text[..text.len().min(PLACE_BYTES_MAX)]);
    let place = end
        .map(|end| text[..end].trim_ascii_end())
        .unwrap_or_default();
    let line = place.iter().rev().take_while(|byte| byte.is_ascii_digit());
    place[..place.len() - line.count()].ends_with(b".py:")
}

/// Reads the month and the year right behind the day: `NOV2026`, as SAS and Forge write it.
fn joined_name(cursor: &mut Cursor<'_>, day: u32) -> Option<Date> {
    let month = month_name(cursor)?;
    if cursor.digits() != 4 {
        return None;
    }
    let year = Some(full_year(cursor)?);
    Some(Date { year, month, day })
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

fn month_name(cursor: &mut Cursor<'_>) -> Option<u32> {
    let english = name_of(cursor, &MONTHS).map(|(place, bytes)| (cast::low_u32(place) + 1, bytes));
    let (month, bytes) = english.or_else(|| months::read(cursor.rest()))?;
    cursor.at += bytes;
    cursor.eat(b'.');
    Some(month)
}

/// Reads a year of four digits.
pub(super) fn full_year(cursor: &mut Cursor<'_>) -> Option<i64> {
    let year = cursor.number(4).filter(|year| YEARS.contains(year))?;
    Some(i64::from(year))
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

/// Reads the name of a day of the week, if there is one. `None` if no date can follow.
pub(super) fn skip_weekday(cursor: &mut Cursor<'_>) -> Option<()> {
    let text = cursor.rest();
    if text.first()?.is_ascii_digit() {
        return Some(());
    }
    let length = match name_of(cursor, &WEEKDAYS) {
        Some((_, length)) => length,
        None => {
            let length = months::word_bytes(text);
            if !weekdays::is_before_date(&text[length..]) {
                return None;
            }
            if !weekdays::is_name(text, length) {
                return Some(());
            }
            length
        }
    };
    cursor.at += length;
    cursor.eat(b'.');
    cursor.eat(b',');
    (cursor.eat_spaces(2) > 0).then_some(())
}

/// Reads the name of a day of the week behind the date, in brackets or not: ` Fri`, ` (Fri)`, `(金)`, ` 星期五`.
pub(super) fn skip_weekday_behind(cursor: &mut Cursor<'_>) {
    let mut ahead = *cursor;
    ahead.eat_spaces(1);
    let is_bracketed = ahead.eat(b'(');
    let bytes = match name_of(&ahead, &WEEKDAYS) {
        Some((_, bytes)) => bytes,
        None => weekdays::east_asian(ahead.rest()),
    };
    ahead.at += bytes;
    let is_closed = !is_bracketed || ahead.eat(b')');
    if bytes > 0 && is_closed && (ahead.peek() == Some(b' ') || ahead.is_digit_at(0)) {
        *cursor = ahead;
    }
}

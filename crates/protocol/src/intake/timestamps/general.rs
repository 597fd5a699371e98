//! Times of any form that is made of known parts.
//!
//! A date, what stands between, a clock and what follows it are read one after the other. Each part
//! has its own table, so that all combinations are read:
//!
//! | part | forms |
//! | --- | --- |
//! | weekday | `Fri`, `Friday`, `Freitag`, with a comma or not; behind the date `(Fri)`, `(金)` |
//! | date, year first | `2026-11-27`, `2026/11/27`, `2026.11.27`, `2026:11:27`, `2026-Nov-27`, `20261127`, `261127`, `2026-331`, `2026-W48-5`, `2026年11月27日` |
//! | date, day or month first | `27/Nov/2026`, `27-Nov-26`, `27 Nov`, `Nov 27, 2026`, `November 27`, `27.11.2026`, `11/27/2026`, `27NOV2026` |
//! | date and clock in one | `20261127005125` |
//! | clock | `00:51:25`, ` 0:51:25`, `00:51`, `005125`, `00.51.25`, `00-51-25`, `00時51分25秒`, with a fraction or not |
//! | half | `AM`, `pm`, `p.m.`, `p. m.`, behind a space of any kind or none; before the hour `午後` |
//! | zone | `Z`, `+01:00`, `+0100`, `-03`, `CEST`, `GMT+1`, `Europe/Berlin`, `Uhr MEZ`, `(UTC)` |
//! | year | behind clock or zone, where the date has none |
//!
//! The order of day, month and year of numbers alone is that of the product that writes such a form
//! (see [`Numbers::order`](super::dates::Numbers::order)). If no product is known and several orders give a date, it is the one
//! that is nearest below one day after the receive time, and the day is said to be assumed.

use logpond_record::{Assumption, Timestamp};

use super::cursor::Cursor;
use super::dates::{
    Date, Dates, JOINED_DIGITS, JOINED_MS_DIGITS, date, full_year, of_century, skip_weekday,
    skip_weekday_behind,
};
use super::time_of_day::{Clock, clock};
use super::zones::{self, Zone};

/// The most spaces between date and clock: columns are padded.
const SPACES_MAX: usize = 8;

/// The most colours in a row, and the most bytes between the signs of one: `38;2;255;255;255`.
const COLOURS_MAX: usize = 4;
const COLOUR_BYTES_MAX: usize = 24;

/// Texts between date and clock; longer ones stand first.
const BETWEEN: [&[u8]; 30] = [
    b"\" time=\"",
    b"\" \"",
    b"\",\"",
    b"\"\t\"",
    b"] [",
    b"][",
    b" time=\"",
    b" time=",
    b" at ",
    b" um ",
    b" alle ",
    " à ".as_bytes(),
    " в ".as_bytes(),
    b" om ",
    b" @ ",
    b" | ",
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
    b"|",
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

/// Reads the time that a text begins with.
pub(super) fn read(text: &[u8], received: Timestamp) -> Option<GeneralTime> {
    let mut cursor = Cursor::new(text);
    skip_weekday(&mut cursor)?;
    let digits = cursor.digits();
    let dates = date(&mut cursor)?;
    let between = if matches!(digits, JOINED_DIGITS | JOINED_MS_DIGITS) {
        b""
    } else {
        between(&mut cursor)?
    };
    let is_compact = matches!(dates, Dates::One(_));
    let is_run = matches!(cursor.digits(), 6 | 9);
    let clock = clock(&mut cursor, is_compact)?;
    if digits == 6 && !is_short_date(&clock, cursor.rest()) {
        return None;
    }
    let found = finish(cursor, dates, between, &clock, received)?;
    let behind = text.get(found.bytes..).unwrap_or_default();
    let is_id = is_run && goes_on(behind, between.is_empty());
    (!is_id).then_some(found)
}

/// True if what follows the digits of a clock belongs to them: hexadecimal ids begin with digits that are a time now and
/// then. One that is `joined` with its date has no sign behind it, either.
fn goes_on(behind: &[u8], joined: bool) -> bool {
    let is_part = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let is_sign = |byte: &u8| matches!(byte, b'-' | b'_');
    is_part(behind.first())
        || joined && behind.first().is_some_and(is_sign) && is_part(behind.get(1))
}

/// True if what follows a date of six digits and a clock is MySQL's, or Tornado's `web:7]`: process numbers
/// have six digits, too.
fn is_short_date(clock: &Clock, behind: &[u8]) -> bool {
    const BEHIND: [&[u8]; 5] = [b"\t", b" [", b"  ", b" mysqld", b" mariadbd"];
    let word = behind.split(|byte| *byte == b']').next();
    let is_source = word.is_some_and(|word| {
        let digits = word.iter().rev().take_while(|b| b.is_ascii_digit()).count();
        let name = &word[..word.len() - digits];
        digits > 0 && name.len() > 2 && name.ends_with(b":") && !name[1..].contains(&b' ')
    });
    // `081109 204005 35 INFO …` of Hadoop.
    let is_hadoop = || {
        let mut words = behind.splitn(4, |byte| *byte == b' ').skip(1);
        let number = words.next().unwrap_or_default();
        let is_number = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
        is_number && super::is_level(words.next().unwrap_or_default())
    };
    clock.fraction_digits == 0
        && (behind.is_empty()
            || is_source
            || is_hadoop()
            || BEHIND.iter().any(|text| behind.starts_with(text)))
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

/// Reads what stands between date and clock.
fn between(cursor: &mut Cursor<'_>) -> Option<&'static [u8]> {
    // The usual case.
    if let [b' ', b'0'..=b'9', ..] = cursor.rest() {
        cursor.at += 1;
        return Some(b" ");
    }
    let mut ahead = *cursor;
    let found = BETWEEN
        .iter()
        .find(|between| ahead.rest().starts_with(between));
    if let Some(found) = found {
        ahead.at += found.len();
        ahead.eat_spaces(SPACES_MAX);
        if ahead.is_digit_at(0) {
            *cursor = ahead;
            return Some(found);
        }
    }
    decorated(cursor).then_some(b" ")
}

/// Reads a blank between date and clock that has more beside it: the colours of a terminal, the day of the week, or what
/// Chinese, Japanese and Korean need no blank for. True if a clock may follow.
fn decorated(cursor: &mut Cursor<'_>) -> bool {
    if !matches!(cursor.peek(), Some(0x1b | b' ' | b'(' | b'T' | 0x80..)) {
        return cursor.is_digit_at(0) && cursor.is_behind_text();
    }
    eat_colours(cursor);
    skip_weekday_behind(cursor);
    cursor.eat_spaces(SPACES_MAX);
    eat_colours(cursor);
    cursor.is_digit_at(0) || cursor.peek().is_some_and(|byte| byte >= 0x80)
}

/// Reads the sequences that set colours of a terminal.
fn eat_colours(cursor: &mut Cursor<'_>) {
    for _ in 0..COLOURS_MAX {
        let Some(inside) = cursor.rest().strip_prefix(b"\x1b[") else {
            break;
        };
        let is_part = |byte: &&u8| byte.is_ascii_digit() || **byte == b';';
        let bytes = inside
            .iter()
            .take(COLOUR_BYTES_MAX)
            .take_while(is_part)
            .count();
        if inside.get(bytes) != Some(&b'm') {
            break;
        }
        cursor.at += 2 + bytes + 1;
    }
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
    // An address of version 6 may begin like a year.
    let is_address = ahead.peek() == Some(b':') && ahead.peek_at(1).is_some_and(|b| b != b' ');
    if !ends || is_address {
        return None;
    }
    *cursor = ahead;
    Some(year)
}

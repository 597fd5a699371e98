//! Written forms of an instant: parsed, and rendered back byte for byte.
//!
//! A pattern is *general* while it holds `%f` (one to nine digits) or `%z` (any offset), and
//! *concrete* when each of these names what was found (`%6f`, `%z[+0100]`). Parsing works with
//! both; only concrete patterns render. Shapes hold concrete patterns.
//!
//! | item | meaning |
//! | --- | --- |
//! | `%Y %m %d %H %M %S` | year (4 digits), month, day, hour, minute, second (2 digits each) |
//! | `%e` | day padded with a space |
//! | `%b` `%a` | English month or weekday, three letters |
//! | `%f` `%1f`…`%9f` | digits of a second's fraction |
//! | `%z` `%z[TEXT]` | offset: `Z`, `+01:00`, `+0100` or `+01` |
//! | `%o[+01:00]` | an offset that is not written |
//! | `%s` `%L` `%U` `%N` | Unix seconds, milliseconds, microseconds, nanoseconds |
//! | `%%` | a percent sign |
//!
//! A pattern without an offset is read as UTC; one without a year takes the year that puts it
//! nearest below one day after the receive time.

use std::fmt;

use crate::cast;
use crate::time::{Civil, Timestamp};
use crate::value::write_int;

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];
const WEEKDAYS: [&[u8; 3]; 7] = [b"Sun", b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat"];
const DAY_NS: i64 = 86_400_000_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    Literal(u8),
    Year,
    Month,
    MonthName,
    Weekday,
    Day,
    DaySpace,
    Hour,
    Minute,
    Second,
    /// Digits of the fraction; `None` in a general pattern.
    Fraction(Option<u8>),
    /// The offset as written and in minutes; `None` in a general pattern.
    Offset(Option<(Box<str>, i32)>),
    /// An offset that is known and not written, in minutes.
    Unwritten(i32),
    /// Unix time in units of so many nanoseconds.
    Epoch(i64),
}

/// A written form of an instant. See the module's documentation for the syntax.
#[derive(Clone, PartialEq, Eq)]
pub struct TimePattern {
    text: Box<str>,
    items: Box<[Item]>,
}

/// Why a text is not a time pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// Byte of the item that is not understood.
    pub at: usize,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the time pattern has an unknown item at byte {}",
            self.at
        )
    }
}

impl std::error::Error for PatternError {}

impl fmt::Debug for TimePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The fields that were parsed so far.
#[derive(Default)]
struct ParsedFields<'a> {
    year: Option<i64>,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    nanos: u32,
    fraction_digits: u8,
    offset: Option<(&'a [u8], i32)>,
    unwritten_minutes: i32,
    epoch: Option<(i64, i64)>,
    /// Sunday is 0.
    weekday: Option<u32>,
}

/// An instant read from text.
#[derive(Clone, Copy, Debug)]
pub struct ParsedTime<'a> {
    /// The instant.
    pub time: Timestamp,
    /// Bytes of the text that belong to it.
    pub bytes: usize,
    fraction_digits: u8,
    offset: &'a [u8],
    is_exact: bool,
}

impl<'a> ParsedTime<'a> {
    /// True if the concrete pattern renders the text as it is written. It does not for a leap second, nor for a weekday
    /// that is not the date's.
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// How many digits the fraction of the second has; 0 if there is none.
    pub fn fraction_digits(&self) -> u8 {
        self.fraction_digits
    }

    /// The offset from UTC as it is written; empty if there is none. At most six bytes.
    pub fn offset(&self) -> &'a [u8] {
        self.offset
    }
}

impl TimePattern {
    /// Compiles a pattern.
    pub fn new(text: &str) -> Result<TimePattern, PatternError> {
        let bytes = text.as_bytes();
        let mut items = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let (item, length) = match bytes[at] {
                b'%' => item(&bytes[at + 1..]).ok_or(PatternError { at })?,
                literal => (Item::Literal(literal), 0),
            };
            items.push(item);
            at += 1 + length;
        }
        Ok(TimePattern {
            text: text.into(),
            items: items.into(),
        })
    }

    /// The pattern as it is written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the pattern says itself how to render.
    pub fn is_concrete(&self) -> bool {
        !self
            .items
            .iter()
            .any(|i| matches!(i, Item::Fraction(None) | Item::Offset(None)))
    }

    /// Reads an instant from the start of `text`.
    ///
    /// `received` decides the year where the pattern has none.
    pub fn parse<'a>(&self, text: &'a [u8], received: Timestamp) -> Option<ParsedTime<'a>> {
        let mut found = ParsedFields {
            month: 1,
            day: 1,
            ..ParsedFields::default()
        };
        let mut at = 0;
        for item in &self.items {
            at += item.read(&text[at..], &mut found)?;
        }
        let time = found.resolve(received)?;
        Some(ParsedTime {
            time,
            bytes: at,
            fraction_digits: found.fraction_digits,
            offset: found.offset.map_or(b"", |(text, _)| text),
            is_exact: found.second < 60 && found.is_weekday_of(time),
        })
    }

    /// Appends the text of the concrete pattern that `parsed` was written in.
    pub fn write_concrete(&self, parsed: &ParsedTime<'_>, out: &mut Vec<u8>) {
        for item in &self.items {
            match item {
                Item::Fraction(_) => {
                    out.extend_from_slice(&[b'%', b'0' + parsed.fraction_digits, b'f'])
                }
                Item::Offset(_) => {
                    out.extend_from_slice(b"%z[");
                    out.extend_from_slice(parsed.offset);
                    out.push(b']');
                }
                other => other.write_pattern(out),
            }
        }
    }

    /// Appends `time` in this form. General items render as nine digits and `Z`.
    pub fn render(&self, time: Timestamp, out: &mut Vec<u8>) {
        let minutes = self.items.iter().find_map(|item| match item {
            Item::Offset(Some((_, minutes))) | Item::Unwritten(minutes) => Some(*minutes),
            _ => None,
        });
        let shift = i64::from(minutes.unwrap_or(0)) * 60_000_000_000;
        let (seconds, nanos) = time.saturating_add(shift).seconds();
        let civil = Civil::from_seconds(seconds);
        for item in &self.items {
            item.render(&civil, nanos, time, out);
        }
    }

    /// True if the letters of a text, in any case, may stand in times of this pattern as they do there; `false`
    /// proves that no such time holds the text.
    pub fn has_letters_of(&self, text: &[u8]) -> bool {
        let Some(words) = self.words() else {
            return true;
        };
        let mut runs = text.split(|byte| !byte.is_ascii_alphabetic());
        runs.all(|run| {
            let run = run.to_ascii_lowercase();
            words.iter().any(|word| {
                let mut parts = word.windows(run.len().max(1));
                run.is_empty() || parts.any(|part| part == run)
            })
        })
    }

    /// The runs of letters in times of this pattern, in lower case; where several forms of one stand side by
    /// side, each of them. `None` if they are too many.
    fn words(&self) -> Option<Vec<Vec<u8>>> {
        let lower = |name: &[u8; 3]| name.to_ascii_lowercase();
        let mut words: Vec<Vec<u8>> = Vec::new();
        // The ends of the words that the next item may go on with.
        let mut open: Vec<Vec<u8>> = vec![Vec::new()];
        for item in &self.items {
            let texts: Vec<Vec<u8>> = match item {
                Item::MonthName => MONTHS.iter().map(|name| lower(name)).collect(),
                Item::Weekday => WEEKDAYS.iter().map(|name| lower(name)).collect(),
                Item::Literal(byte) if byte.is_ascii_alphabetic() => {
                    vec![vec![byte.to_ascii_lowercase()]]
                }
                Item::Offset(None) => vec![b"z".to_vec()],
                Item::Offset(Some((text, _))) if &**text == "Z" => vec![b"z".to_vec()],
                Item::Unwritten(_) => continue,
                _ => {
                    words.append(&mut open);
                    open.push(Vec::new());
                    continue;
                }
            };
            if open.len() * texts.len() > WORDS_MAX {
                return None;
            }
            let joined = open
                .iter()
                .flat_map(|word| texts.iter().map(move |text| [&word[..], text].concat()));
            open = joined.collect();
        }
        words.append(&mut open);
        Some(words)
    }
}

/// The most runs of letters that a pattern is known to show: those of twelve months beside seven weekdays.
const WORDS_MAX: usize = 84;

/// Reads the item after a percent sign; gives it and its length.
fn item(after: &[u8]) -> Option<(Item, usize)> {
    let simple = match after.first()? {
        b'%' => Item::Literal(b'%'),
        b'Y' => Item::Year,
        b'm' => Item::Month,
        b'b' => Item::MonthName,
        b'a' => Item::Weekday,
        b'd' => Item::Day,
        b'e' => Item::DaySpace,
        b'H' => Item::Hour,
        b'M' => Item::Minute,
        b'S' => Item::Second,
        b's' => Item::Epoch(1_000_000_000),
        b'L' => Item::Epoch(1_000_000),
        b'U' => Item::Epoch(1_000),
        b'N' => Item::Epoch(1),
        b'f' => Item::Fraction(None),
        digit @ b'1'..=b'9' if after.get(1) == Some(&b'f') => {
            return Some((Item::Fraction(Some(digit - b'0')), 2));
        }
        letter @ (b'z' | b'o') if after.get(1) == Some(&b'[') => {
            let end = after.iter().position(|&b| b == b']')?;
            let text = &after[2..end];
            let (length, minutes) = offset(text)?;
            if length != text.len() {
                return None;
            }
            let text = std::str::from_utf8(text).ok()?.into();
            let item = match letter {
                b'z' => Item::Offset(Some((text, minutes))),
                _ => Item::Unwritten(minutes),
            };
            return Some((item, end + 1));
        }
        b'z' => Item::Offset(None),
        _ => return None,
    };
    Some((simple, 1))
}

impl Item {
    /// Reads the item from the start of `text`; gives its length.
    fn read<'a>(&self, text: &'a [u8], found: &mut ParsedFields<'a>) -> Option<usize> {
        match self {
            Item::Literal(byte) => return (text.first() == Some(byte)).then_some(1),
            Item::Year => found.year = Some(i64::from(digits(text, 4)?)),
            Item::Month => found.month = digits(text, 2)?,
            Item::MonthName => {
                let name = text.get(..3)?;
                found.month = 1 + cast::low_u32(MONTHS.iter().position(|m| m[..] == *name)?);
                return Some(3);
            }
            Item::Weekday => {
                let name = text.get(..3)?;
                found.weekday = Some(cast::low_u32(WEEKDAYS.iter().position(|w| w[..] == *name)?));
                return Some(3);
            }
            Item::Day => found.day = digits(text, 2)?,
            Item::DaySpace if text.first() == Some(&b' ') => found.day = digits(text.get(1..)?, 1)?,
            Item::DaySpace => found.day = digits(text, 2).filter(|d| *d >= 10)?,
            Item::Hour => found.hour = digits(text, 2)?,
            Item::Minute => found.minute = digits(text, 2)?,
            Item::Second => found.second = digits(text, 2)?,
            Item::Fraction(wanted) => return found.read_fraction(text, *wanted),
            Item::Offset(wanted) => return found.read_offset(text, wanted.as_ref()),
            Item::Unwritten(minutes) => {
                found.unwritten_minutes = *minutes;
                return Some(0);
            }
            Item::Epoch(unit) => return found.read_epoch(text, *unit),
        }
        Some(if matches!(self, Item::Year) { 4 } else { 2 })
    }

    fn write_pattern(&self, out: &mut Vec<u8>) {
        let letter = match self {
            Item::Literal(b'%') => b'%',
            Item::Literal(byte) => return out.push(*byte),
            Item::Year => b'Y',
            Item::Month => b'm',
            Item::MonthName => b'b',
            Item::Weekday => b'a',
            Item::Day => b'd',
            Item::DaySpace => b'e',
            Item::Hour => b'H',
            Item::Minute => b'M',
            Item::Second => b'S',
            Item::Fraction(_) => b'f',
            Item::Offset(_) => b'z',
            Item::Unwritten(minutes) => return write_unwritten_offset(*minutes, out),
            Item::Epoch(1_000_000_000) => b's',
            Item::Epoch(1_000_000) => b'L',
            Item::Epoch(1_000) => b'U',
            Item::Epoch(_) => b'N',
        };
        out.extend_from_slice(&[b'%', letter]);
    }

    fn render(&self, civil: &Civil, nanos: u32, time: Timestamp, out: &mut Vec<u8>) {
        match self {
            Item::Literal(byte) => out.push(*byte),
            Item::Year => push_digits(cast::low_u32(civil.year.clamp(0, 9999)), 4, out),
            Item::Month => out.extend_from_slice(&two_digits(civil.month)),
            Item::MonthName => out.extend_from_slice(MONTHS[civil.month as usize - 1]),
            Item::Weekday => out.extend_from_slice(WEEKDAYS[civil.weekday() as usize]),
            Item::Day => out.extend_from_slice(&two_digits(civil.day)),
            Item::DaySpace if civil.day < 10 => {
                out.extend_from_slice(&[b' ', b'0' + cast::low_u8(civil.day)]);
            }
            Item::DaySpace => out.extend_from_slice(&two_digits(civil.day)),
            Item::Hour => out.extend_from_slice(&two_digits(civil.hour)),
            Item::Minute => out.extend_from_slice(&two_digits(civil.minute)),
            Item::Second => out.extend_from_slice(&two_digits(civil.second)),
            Item::Fraction(count) => {
                let count = u32::from(count.unwrap_or(9));
                push_digits(nanos / 10u32.pow(9 - count), count, out);
            }
            Item::Offset(Some((text, _))) => out.extend_from_slice(text.as_bytes()),
            Item::Offset(None) => out.push(b'Z'),
            Item::Unwritten(_) => {}
            Item::Epoch(unit) => write_int(time.0.div_euclid(*unit), out),
        }
    }
}

impl<'a> ParsedFields<'a> {
    fn read_fraction(&mut self, text: &[u8], wanted: Option<u8>) -> Option<usize> {
        let count = text
            .iter()
            .take(10)
            .take_while(|b| b.is_ascii_digit())
            .count();
        let count = match wanted {
            Some(wanted) => usize::from(wanted),
            None => count,
        };
        if !(1..=9).contains(&count) {
            return None;
        }
        self.nanos = digits(text, count)? * 10u32.pow(9 - cast::low_u32(count));
        self.fraction_digits = cast::low_u8(count);
        Some(count)
    }

    fn read_offset(&mut self, text: &'a [u8], wanted: Option<&(Box<str>, i32)>) -> Option<usize> {
        let (length, minutes) = match wanted {
            Some((wanted, minutes)) => {
                let same = text.starts_with(wanted.as_bytes());
                same.then_some((wanted.len(), *minutes))?
            }
            None => offset(text)?,
        };
        self.offset = Some((&text[..length], minutes));
        Some(length)
    }

    fn read_epoch(&mut self, text: &[u8], unit: i64) -> Option<usize> {
        let count = text
            .iter()
            .take(20)
            .take_while(|b| b.is_ascii_digit())
            .count();
        if count == 0 || (count > 1 && text[0] == b'0') {
            return None;
        }
        let number = std::str::from_utf8(&text[..count]).ok()?.parse().ok()?;
        self.epoch = Some((number, unit));
        Some(count)
    }

    fn resolve(&self, received: Timestamp) -> Option<Timestamp> {
        if let Some((number, unit)) = self.epoch {
            let whole = number.checked_mul(unit)?;
            return whole.checked_add(i64::from(self.nanos)).map(Timestamp);
        }
        let Some(year) = self.year else {
            let latest = received.saturating_add(DAY_NS);
            let year = Civil::from_seconds(latest.seconds().0).year;
            // Eight years always hold a 29 February.
            return (0..8)
                .filter_map(|back| self.in_year(year - back))
                .find(|t| *t <= latest);
        };
        self.in_year(year)
    }

    fn in_year(&self, year: i64) -> Option<Timestamp> {
        let civil = Civil {
            year,
            month: self.month,
            day: self.day,
            hour: self.hour,
            minute: self.minute,
            second: self.second,
        };
        Timestamp::from_seconds(civil.to_seconds()? - self.offset_seconds(), self.nanos)
    }

    /// The offset from UTC that is written or known.
    fn offset_seconds(&self) -> i64 {
        let offset = self.offset.map(|(_, minutes)| minutes);
        i64::from(offset.unwrap_or(self.unwritten_minutes)) * 60
    }

    /// True if no weekday is written, or the one of the date of `time`.
    fn is_weekday_of(&self, time: Timestamp) -> bool {
        self.weekday.is_none_or(|written| {
            let local = time.seconds().0 + self.offset_seconds();
            Civil::from_seconds(local).weekday() == written
        })
    }
}

/// Appends the item of a pattern for an offset, in minutes, that is known and not written.
pub fn write_unwritten_offset(minutes: i32, out: &mut Vec<u8>) {
    let (sign, minutes) = (if minutes < 0 { '-' } else { '+' }, minutes.abs());
    let text = format!("%o[{sign}{:02}:{:02}]", minutes / 60, minutes % 60);
    out.extend_from_slice(text.as_bytes());
}

/// Reads an offset from UTC; gives its length and its minutes.
fn offset(text: &[u8]) -> Option<(usize, i32)> {
    let sign = match text.first()? {
        b'Z' => return Some((1, 0)),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = cast::low_i32(digits(&text[1..], 2).filter(|h| *h <= 23)?);
    let (length, minutes) = match text.get(3) {
        Some(b':') => (6, digits(text.get(4..)?, 2)?),
        _ => match digits(&text[3..], 2) {
            Some(minutes) => (5, minutes),
            None => (3, 0),
        },
    };
    (minutes < 60).then_some((length, sign * (hours * 60 + cast::low_i32(minutes))))
}

/// Reads exactly `count` digits, nine at most.
fn digits(text: &[u8], count: usize) -> Option<u32> {
    let mut value = 0u32;
    for byte in text.get(..count)? {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u32::from(digit);
    }
    Some(value)
}

fn push_digits(value: u32, count: u32, out: &mut Vec<u8>) {
    let (mut text, mut rest) = ([b'0'; 10], value);
    let text = &mut text[..count as usize];
    // Two by two: each waits for the division before it.
    let (first, pairs) = text.as_rchunks_mut::<2>();
    for pair in pairs.iter_mut().rev() {
        *pair = two_digits(rest % 100);
        rest /= 100;
    }
    if let [digit] = first {
        *digit = b'0' + (rest % 10) as u8;
    }
    out.extend_from_slice(text);
}

fn two_digits(value: u32) -> [u8; 2] {
    [value / 10, value].map(|digit| b'0' + (digit % 10) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 2026-03-02T00:00:00Z.
    const RECEIVED: Timestamp = Timestamp(1_772_409_600_000_000_000);

    const GENERAL: [&str; 6] = [
        "%Y-%m-%dT%H:%M:%S.%f%z",
        "%Y-%m-%d %H:%M:%S,%3f",
        "%d/%b/%Y:%H:%M:%S %z",
        "%b %e %H:%M:%S",
        "%a %b %d %H:%M:%S %Y",
        "%s.%f",
    ];

    fn parse(pattern: &str, text: &str) -> Option<Timestamp> {
        let parsed = TimePattern::new(pattern)
            .ok()?
            .parse(text.as_bytes(), RECEIVED)?;
        (parsed.bytes == text.len()).then_some(parsed.time)
    }

    #[test]
    fn letters_of_times_are_known() {
        let table = [
            ("%Y-%m-%dT%H:%M:%S.%6f%z[Z]", "05T1", true),
            ("%Y-%m-%dT%H:%M:%S.%6f%z[Z]", "error", false),
            ("%Y-%m-%dT%H:%M:%S.%6f%z[Z]", "2026-03", true),
            ("%Y-%m-%d %H:%M:%S", "t", false),
            ("%d/%b/%Y:%H:%M:%S %z[+0000]", "ma", true),
            ("%d/%b/%Y:%H:%M:%S %z[+0000]", "mar/", true),
            ("%d/%b/%Y:%H:%M:%S %z[+0000]", "mon", false),
            ("%a %b %e %H:%M:%S", "Mon Mar", true),
            ("%a%b", "nMa", true),
            ("%a%b", "nMx", false),
            ("%s", "", true),
        ];
        for (pattern, text, expected) in table {
            let known = TimePattern::new(pattern).unwrap();
            assert_eq!(
                known.has_letters_of(text.as_bytes()),
                expected,
                "{pattern} {text}"
            );
        }
    }

    proptest! {
        #[test]
        fn what_a_time_shows_has_its_letters(
            pattern in proptest::sample::select(&GENERAL[..]),
            nanos in any::<i64>(),
            from in 0usize..40,
            bytes in 0usize..40,
        ) {
            let pattern = TimePattern::new(pattern).unwrap();
            let mut text = Vec::new();
            pattern.render(Timestamp(nanos), &mut text);
            let from = from.min(text.len());
            let part = &text[from..(from + bytes).min(text.len())];
            prop_assert!(pattern.has_letters_of(part));
        }
    }

    #[test]
    fn forms_are_read() {
        let table = [
            (
                GENERAL[0],
                "2026-03-02T00:02:32.465922Z",
                Some(1_772_409_752_465_922_000),
            ),
            (
                GENERAL[0],
                "2026-03-02T01:02:32.5+01:00",
                Some(1_772_409_752_500_000_000),
            ),
            (GENERAL[0], "2026-02-29T01:02:32.5Z", None),
            (
                GENERAL[1],
                "2026-03-02 00:02:32,465",
                Some(1_772_409_752_465_000_000),
            ),
            (
                GENERAL[2],
                "02/Mar/2026:00:02:32 -0600",
                Some(1_772_431_352_000_000_000),
            ),
            (
                GENERAL[3],
                "Mar  2 00:02:32",
                Some(1_772_409_752_000_000_000),
            ),
            (
                GENERAL[3],
                "Dec 31 00:00:00",
                Some(1_767_139_200_000_000_000),
            ),
            (
                GENERAL[3],
                "Feb 29 00:00:00",
                Some(1_709_164_800_000_000_000),
            ),
            (
                GENERAL[5],
                "1772409752.465",
                Some(1_772_409_752_465_000_000),
            ),
            ("%L", "1772409752465", Some(1_772_409_752_465_000_000)),
            ("%N", "99999999999999999999", None),
        ];
        for (pattern, text, expected) in table {
            assert_eq!(
                parse(pattern, text),
                expected.map(Timestamp),
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn wrong_patterns_name_the_item() {
        assert_eq!(TimePattern::new("%Y-%Q").unwrap_err().at, 3);
        assert_eq!(TimePattern::new("x%").unwrap_err().at, 1);
        assert_eq!(TimePattern::new("%z[+1]").unwrap_err().at, 0);
    }

    proptest! {
        #[test]
        fn what_is_rendered_is_read_back(
            which in 0..GENERAL.len(),
            seconds in 1_700_000_000i64..1_772_000_000,
            nanos in 0u32..1_000_000_000,
        ) {
            let time = Timestamp::from_seconds(seconds, nanos).unwrap();
            let general = TimePattern::new(GENERAL[which]).unwrap();
            let mut text = Vec::new();
            general.render(time, &mut text);
            let parsed = general.parse(&text, RECEIVED).unwrap();
            prop_assert_eq!(parsed.bytes, text.len());
            let mut concrete = Vec::new();
            general.write_concrete(&parsed, &mut concrete);
            let concrete = TimePattern::new(std::str::from_utf8(&concrete).unwrap()).unwrap();
            prop_assert!(concrete.is_concrete());
            let mut again = Vec::new();
            concrete.render(parsed.time, &mut again);
            prop_assert_eq!(again, text);
        }

        #[test]
        fn exact_times_are_rendered_as_they_are_written(
            which in 0..GENERAL.len(),
            seconds in 1_700_000_000i64..1_772_000_000,
            at in 0usize..40,
            digit in 0u8..10,
        ) {
            let time = Timestamp::from_seconds(seconds, 0).unwrap();
            let general = TimePattern::new(GENERAL[which]).unwrap();
            let mut text = Vec::new();
            general.render(time, &mut text);
            let at = at % text.len();
            if text[at].is_ascii_digit() {
                text[at] = b'0' + digit;
            }
            if let Some(parsed) = general.parse(&text, RECEIVED).filter(|p| p.bytes == text.len()) {
                let mut concrete = Vec::new();
                general.write_concrete(&parsed, &mut concrete);
                let concrete = TimePattern::new(std::str::from_utf8(&concrete).unwrap()).unwrap();
                let mut again = Vec::new();
                concrete.render(parsed.time, &mut again);
                prop_assert_eq!(again == text, parsed.is_exact());
            }
        }

        #[test]
        fn nothing_panics(pattern in "[%a-zA-Z0-9\\[\\]+:]{0,12}", text in proptest::collection::vec(any::<u8>(), 0..24)) {
            if let Ok(pattern) = TimePattern::new(&pattern) {
                pattern.parse(&text, RECEIVED);
                pattern.render(Timestamp::MIN, &mut Vec::new());
            }
        }
    }
}

//! Dates as ISO 8601 writes them, with as many parts as are given.

use jiff::civil::DateTime;

/// A unit of the calendar or the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unit {
    Year,
    Quarter,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Nanosecond,
}

/// A date as it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WrittenDate {
    /// The start of what it stands for.
    pub(super) local: DateTime,
    /// The last unit that it has.
    pub(super) unit: Unit,
    /// Its own offset in seconds.
    pub(super) offset: Option<i32>,
}

/// Parts of a date, with the defaults of those that are not written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    pub(super) year: i16,
    pub(super) month: i8,
    pub(super) day: i8,
    pub(super) hour: i8,
    pub(super) minute: i8,
    pub(super) second: i8,
    pub(super) nanosecond: i32,
    pub(super) unit: Unit,
    pub(super) offset: Option<i32>,
}

impl Parts {
    /// Nothing yet.
    pub(super) fn new() -> Parts {
        Parts {
            year: 1970,
            month: 1,
            day: 1,
            hour: 0,
            minute: 0,
            second: 0,
            nanosecond: 0,
            unit: Unit::Year,
            offset: None,
        }
    }

    /// Notes a part of this unit.
    pub(super) fn note(&mut self, unit: Unit) {
        self.unit = self.unit.max(unit);
    }

    /// Sets the fraction of the second from its digits.
    pub(super) fn fraction(&mut self, digits: &str) -> Option<()> {
        let padded = format!("{digits:0<9}");
        self.nanosecond = padded.get(..9)?.parse().ok()?;
        self.note(if digits.len() > 3 {
            Unit::Nanosecond
        } else {
            Unit::Millisecond
        });
        Some(())
    }

    /// The date, if the calendar has it.
    pub(super) fn date(self) -> Option<WrittenDate> {
        let date = jiff::civil::Date::new(self.year, self.month, self.day).ok()?;
        let time = jiff::civil::Time::new(self.hour, self.minute, self.second, self.nanosecond);
        Some(WrittenDate {
            local: date.to_datetime(time.ok()?),
            unit: self.unit,
            offset: self.offset,
        })
    }
}

/// Takes so many digits from the front.
pub(super) fn digits<'t>(rest: &mut &'t str, least: usize, most: usize) -> Option<&'t str> {
    let count = rest
        .bytes()
        .take(most)
        .take_while(u8::is_ascii_digit)
        .count();
    let (found, behind) = rest.split_at_checked(count)?;
    *rest = behind;
    (count >= least).then_some(found)
}

fn sign(rest: &mut &str, text: &str) -> bool {
    match rest.strip_prefix(text) {
        Some(behind) => {
            *rest = behind;
            true
        }
        None => false,
    }
}

/// Reads `2026`, `2026-11`, `2026-11-21T10:00:00.123+01:00` and all between.
pub(super) fn iso(text: &str) -> Option<WrittenDate> {
    let mut rest = text;
    let mut parts = Parts::new();
    parts.year = digits(&mut rest, 4, 4)?.parse().ok()?;
    if sign(&mut rest, "-") {
        parts.month = digits(&mut rest, 1, 2)?.parse().ok()?;
        parts.note(Unit::Month);
        if sign(&mut rest, "-") {
            parts.day = digits(&mut rest, 1, 2)?.parse().ok()?;
            parts.note(Unit::Day);
        }
    }
    if sign(&mut rest, "T") || sign(&mut rest, " ") {
        parts.note(Unit::Day);
        time(&mut rest, &mut parts)?;
        if !rest.is_empty() {
            parts.offset = Some(offset(rest)?);
            rest = "";
        }
    }
    if rest.is_empty() { parts.date() } else { None }
}

fn time(rest: &mut &str, parts: &mut Parts) -> Option<()> {
    if rest.is_empty() {
        return Some(());
    }
    parts.hour = digits(rest, 1, 2)?.parse().ok()?;
    parts.note(Unit::Hour);
    if !sign(rest, ":") {
        return Some(());
    }
    parts.minute = digits(rest, 2, 2)?.parse().ok()?;
    parts.note(Unit::Minute);
    if !sign(rest, ":") {
        return Some(());
    }
    parts.second = digits(rest, 2, 2)?.parse().ok()?;
    parts.note(Unit::Second);
    if sign(rest, ".") || sign(rest, ",") {
        parts.fraction(digits(rest, 1, 9)?)?;
    }
    Some(())
}

/// The seconds of an offset such as `Z`, `+01:00`, `+0100` and `-05`.
pub(super) fn offset(text: &str) -> Option<i32> {
    if text == "Z" {
        return Some(0);
    }
    let (factor, mut rest) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(rest), _) => (1, rest),
        (_, Some(rest)) => (-1, rest),
        _ => return None,
    };
    let hours: i32 = digits(&mut rest, 2, 2)?.parse().ok()?;
    let _ = sign(&mut rest, ":");
    let minutes: i32 = match rest {
        "" => 0,
        _ => digits(&mut rest, 2, 2)?.parse().ok()?,
    };
    let is_whole = rest.is_empty() && hours <= 18 && minutes < 60;
    is_whole.then_some(factor * (hours * 3600 + minutes * 60))
}

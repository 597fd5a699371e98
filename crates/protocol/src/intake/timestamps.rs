//! Instants as log lines write them.
//!
//! Invariants:
//! - What is read depends on the text and the receive time only.
//! - A [`Form`] names the concrete pattern (see `logpond_record::TimePattern`) that the text was
//!   written in; where [`TimestampText::exact`] holds, rendering that pattern gives the text back.
//!
//! The forms that almost all lines have are read by hand. All others are put together of the parts that
//! [`general`] knows. Those among them that are the rows of [`TABLE`] are rendered; a text of any
//! other form is kept beside its record.

mod arrays;
mod clock;
mod cursor;
mod dates;
mod epoch;
mod general;
mod head;
mod labelled;
mod line;
mod months;
mod programs;
mod reading;
mod regions;
mod time_of_day;
mod traditional;
mod utc;
mod weekdays;
mod zones;

use std::sync::{Arc, Mutex};

pub(crate) use clock::{clock_bytes, is_since_start};
pub(crate) use epoch::{unix_instant, unix_seconds, unix_time};
use general::GeneralTime;
use head::continues;
pub(crate) use line::behind_tags;
use logpond_record::{Assumption, Civil, TimePattern, Timestamp, cast, write_unwritten_offset};
pub(crate) use reading::Reading;
use traditional::syslog;
use zones::ZoneName;

use super::timezone::Zone as Place;

/// Forms beyond the ones read by hand that are rendered, in the pattern language of `TimePattern`.
const TABLE: [&str; 31] = [
    // C's asctime, with and without fractions (Apache error logs, mongod), and date(1).
    "%a %b %e %H:%M:%S.%f %Y",
    "%a %b %d %H:%M:%S.%f %Y",
    "%a %b %e %H:%M:%S %Y",
    "%a %b %d %H:%M:%S %Y",
    "%a %b %e %H:%M:%S UTC %Y",
    "%a %b %e %H:%M:%S.%f",
    // Mail and HTTP headers.
    "%a, %d %b %Y %H:%M:%S %z",
    "%a, %d %b %Y %H:%M:%S GMT",
    // Cisco, syslog with a year.
    "%b %e %Y %H:%M:%S.%f",
    "%b %e %Y %H:%M:%S",
    "%b %d %Y %H:%M:%S",
    "%b %d, %Y %H:%M:%S",
    // BIND, Tomcat, Redis.
    "%d-%b-%Y %H:%M:%S.%f",
    "%d-%b-%Y %H:%M:%S",
    "%d %b %Y %H:%M:%S.%f",
    "%d %b %Y %H:%M:%S,%f",
    "%d %b %Y %H:%M:%S",
    // Fortinet, behind `date=`.
    "%Y-%m-%d time=%H:%M:%S",
    // Central Europe.
    "%d.%m.%Y %H:%M:%S.%f",
    "%d.%m.%Y %H:%M:%S",
    // Basic ISO 8601, and dates without separators.
    "%Y%m%dT%H%M%S.%f%z",
    "%Y%m%dT%H%M%S%z",
    "%Y%m%d %H:%M:%S.%f",
    "%Y%m%d %H:%M:%S",
    "%Y%m%d-%H:%M:%S",
    "%Y.%m.%d %H:%M:%S",
    // NX-OS, and Suricata, whose dates are American.
    "%Y %b %e %H:%M:%S.%f",
    "%Y %b %e %H:%M:%S",
    "%Y %b %d %H:%M:%S",
    "%m/%d/%Y-%H:%M:%S.%f",
    // Google's logging libraries.
    "%m%d %H:%M:%S.%f",
];

/// Rows of [`TABLE`] that begin with a letter.
const LETTER_ROWS: std::ops::Range<usize> = 0..12;

/// Rows of [`TABLE`] that begin with a digit.
const DIGIT_ROWS: std::ops::Range<usize> = 12..TABLE.len() - 1;

/// The row of [`TABLE`] for Google's logging libraries.
const GOOGLE_ROW: usize = TABLE.len() - 1;

/// Words before a time and behind it that say a level.
const LEVELS: [&[u8]; 26] = [
    b"TRACE",
    b"DEBUG",
    b"INFO",
    b"INFORMATION",
    b"NOTICE",
    b"NOTE",
    b"WARNING",
    b"WARN",
    b"ERROR",
    b"ERR",
    b"FATAL",
    b"SEVERE",
    b"CRITICAL",
    b"CRIT",
    // German, French, Spanish, Portuguese and Italian.
    b"HINWEIS",
    b"WARNUNG",
    b"FEHLER",
    b"KRITISCH",
    b"AVERTISSEMENT",
    b"ERREUR",
    b"CRITIQUE",
    b"ADVERTENCIA",
    b"AVISO",
    b"ERRO",
    b"AVVERTENZA",
    b"ERRORE",
];

const DAY_NS: i64 = 86_400_000_000_000;

const MINUTE_NS: i64 = 60_000_000_000;

/// How an instant was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    layout: Layout,
    fraction_digits: u8,
    offset: Offset,
    /// The name of a zone behind it, and whether the year stands behind that.
    zone_name: Option<(ZoneName, bool)>,
    /// The offset in minutes that it has by the zone of its batch and that is not written.
    zone_minutes: i16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// Year to second, with the bytes between the parts.
    Iso {
        date: u8,
        middle: u8,
        fraction: u8,
        zone: Zone,
    },
    /// `02/Mar/2026:00:00:06 +0000`
    Access,
    /// `Mar  2 00:00:06`; the day padded with a zero or not, followed by a year or not.
    Syslog { zero: bool, year: bool },
    /// Unix time in the unit that this letter of `TimePattern` stands for.
    Epoch(u8),
    /// A row of [`TABLE`].
    Row(u8),
    /// A form that is not rendered, what it leaves open, and true if a zone is written.
    Other(Assumption, bool),
}

/// What stands between the time of day and the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Zone {
    /// There may be an offset, right after the time.
    Tight,
    /// An offset after a space.
    Spaced,
    /// ` UTC`.
    Named,
}

/// An offset from UTC as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Offset {
    text: [u8; 6],
    length: u8,
}

/// An instant read from text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimestampText {
    /// The instant.
    pub(crate) time: Timestamp,
    /// Bytes of the text that belong to it.
    pub(crate) bytes: usize,
    /// How it was written.
    pub(crate) form: Form,
    /// Whether rendering the form gives the text back.
    pub(crate) exact: bool,
}

impl Form {
    /// What it leaves open.
    pub(crate) fn assumed(&self) -> Assumption {
        let has_offset = self.offset.length > 0 || self.zone_name.is_some();
        let is_year_behind = self.zone_name.is_some_and(|(_, is_year)| is_year);
        let has_offset = has_offset && self.zone_name.is_none_or(|(name, _)| name.is_certain());
        let (has_year, has_zone) = match self.layout {
            Layout::Other(assumed, _) => return assumed,
            Layout::Iso { zone, .. } => (true, has_offset || zone == Zone::Named),
            Layout::Access | Layout::Epoch(_) => (true, true),
            Layout::Syslog { year, .. } => (year || is_year_behind, has_offset),
            Layout::Row(row) => {
                let row = TABLE[usize::from(row)];
                let is_named = row.contains("UTC") || row.contains("GMT");
                (row.contains("%Y"), has_offset || is_named)
            }
        };
        Assumption::of(true, has_year, has_zone)
    }

    /// Appends the concrete pattern.
    pub(crate) fn write_pattern(&self, out: &mut Vec<u8>) {
        self.write_layout(out);
        if let Some((name, is_year_behind)) = &self.zone_name {
            name.write_pattern(*is_year_behind, out);
        }
        if self.zone_minutes != 0 {
            write_unwritten_offset(self.zone_minutes.into(), out);
        }
    }

    fn write_layout(&self, out: &mut Vec<u8>) {
        match self.layout {
            Layout::Iso {
                date,
                middle,
                fraction,
                zone,
            } => {
                out.extend_from_slice(&[b'%', b'Y', date, b'%', b'm', date, b'%', b'd', middle]);
                out.extend_from_slice(b"%H:%M:%S");
                if self.fraction_digits > 0 {
                    out.push(fraction);
                    self.write_fraction(out);
                }
                match zone {
                    Zone::Tight => {}
                    Zone::Spaced => out.push(b' '),
                    Zone::Named => out.extend_from_slice(b" UTC"),
                }
                if self.offset.length > 0 {
                    self.write_offset(out);
                }
            }
            Layout::Access => {
                out.extend_from_slice(b"%d/%b/%Y:%H:%M:%S ");
                self.write_offset(out);
            }
            Layout::Syslog { zero, year } => {
                out.extend_from_slice(if zero { b"%b %d" } else { b"%b %e" });
                out.extend_from_slice(b" %H:%M:%S");
                if self.fraction_digits > 0 {
                    out.push(b'.');
                    self.write_fraction(out);
                }
                if year {
                    out.extend_from_slice(b" %Y");
                }
            }
            Layout::Epoch(letter) => {
                out.extend_from_slice(&[b'%', letter]);
                if self.fraction_digits > 0 {
                    out.push(b'.');
                    self.write_fraction(out);
                }
            }
            Layout::Row(row) => self.write_row(TABLE[usize::from(row)].as_bytes(), out),
            // The text that is kept stands for it.
            Layout::Other(..) => out.extend_from_slice(b"%Y-%m-%dT%H:%M:%S.%9f%z[Z]"),
        }
    }

    fn write_row(&self, general: &[u8], out: &mut Vec<u8>) {
        let mut rest = general;
        while let Some((&byte, after)) = rest.split_first() {
            match (byte, after.first()) {
                (b'%', Some(b'f')) => self.write_fraction(out),
                (b'%', Some(b'z')) => self.write_offset(out),
                (b'%', Some(&letter)) => out.extend_from_slice(&[b'%', letter]),
                _ => {
                    out.push(byte);
                    rest = after;
                    continue;
                }
            }
            rest = &after[1..];
        }
    }

    fn write_fraction(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[b'%', b'0' + self.fraction_digits, b'f']);
    }

    fn write_offset(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"%z[");
        out.extend_from_slice(&self.offset.text[..usize::from(self.offset.length)]);
        out.push(b']');
    }
}

/// Reads instants in any known form.
pub(crate) struct TimeReader {
    rows: Vec<TimePattern>,
    /// The concrete pattern that was last rendered.
    last: Mutex<Option<head::Concrete>>,
    /// The zone of times without one; UTC if there is none.
    place: Option<Arc<Place>>,
}

impl TimeReader {
    /// A reader with the table compiled.
    pub(crate) fn new() -> TimeReader {
        TimeReader {
            rows: TABLE
                .iter()
                .filter_map(|row| TimePattern::new(row).ok())
                .collect(),
            last: Mutex::new(None),
            place: None,
        }
    }

    /// Has times without a zone read in this one from now on, or as UTC.
    pub(crate) fn set_zone(&mut self, place: Option<Arc<Place>>) {
        self.place = place;
    }

    /// The zone of times without one, for forms that are read elsewhere.
    pub(crate) fn place(&self) -> Option<&Place> {
        self.place.as_deref()
    }

    /// The instant that a plain line shows: at its start, behind a level, a process or the like, or in
    /// brackets as in access logs.
    pub(crate) fn of_line(
        &self,
        line: &[u8],
        received: Timestamp,
    ) -> Option<(Timestamp, Assumption)> {
        let found = line::find(line, received)?;
        Some((self.placed_read(&found, received), found.assumed))
    }

    /// True if a plain line begins with an instant, with what may stand before it.
    pub(crate) fn is_at_start(&self, line: &[u8], received: Timestamp) -> bool {
        line::is_at_start(line, received)
    }

    /// The instant that a text begins with in the form `YYYY-MM-DDThh:mm:ss`, see [`iso`].
    pub(crate) fn iso(&self, text: &[u8], received: Timestamp) -> Option<TimestampText> {
        iso(text).map(|found| self.placed(found, received))
    }

    /// The same text in the zone of its batch, if it says none itself.
    fn placed(&self, found: TimestampText, received: Timestamp) -> TimestampText {
        let Some(place) = &self.place else {
            return found;
        };
        if let Some((name, is_year_behind)) = found.form.zone_name {
            return in_place(&found, &name, is_year_behind, place, received);
        }
        if let Layout::Other(_, true) = found.form.layout {
            return found;
        }
        let Some((time, minutes)) = place.instant(found.time, found.form.assumed(), received)
        else {
            return found;
        };
        let zone_minutes = cast::low_i16(minutes);
        let form = Form {
            zone_minutes,
            ..found.form
        };
        TimestampText {
            time,
            form,
            ..found
        }
    }

    /// The instant of a plain line in the zone of its batch, if it says none itself.
    fn placed_read(&self, found: &GeneralTime, received: Timestamp) -> Timestamp {
        let Some(place) = &self.place else {
            return found.time;
        };
        match found.zone.as_ref().map(|zone| zone.name()) {
            None => place
                .instant(found.time, found.assumed, received)
                .map_or(found.time, |(time, _)| time),
            Some(None) => found.time,
            Some(Some(name)) => {
                of_place(found.time, name, place, received).map_or(found.time, |(time, _)| time)
            }
        }
    }

    /// The instant that a header begins with, in any form, with the name of a zone behind it or not,
    /// and the year behind that.
    pub(crate) fn header(&self, text: &[u8], received: Timestamp) -> Option<TimestampText> {
        let hand_read = syslog(text, received).or_else(|| iso(text));
        let is_whole = |found: &TimestampText| {
            let behind = &text[found.bytes..];
            !continues(behind) && !matches!(behind, [b':', b'0'..=b'9', ..])
        };
        let found = match hand_read.filter(is_whole) {
            Some(found) => zones::with_name(text, found, received).unwrap_or(found),
            None => {
                let mut found = self.rare(text, received, false)?;
                found.exact = self.is_exact(&found, &text[..found.bytes]);
                found
            }
        };
        Some(self.placed(found, received))
    }

    /// An instant in a form that is not read by hand. `is_whole` says that it must be all of the text.
    fn rare(&self, text: &[u8], received: Timestamp, is_whole: bool) -> Option<TimestampText> {
        let read = general::read(text, received)?;
        let rest = &text[read.bytes..];
        if is_whole && !rest.is_empty() && zones::repeated(rest) != rest.len() {
            return None;
        }
        let rows = if text[0].is_ascii_digit() {
            DIGIT_ROWS
        } else {
            LETTER_ROWS
        };
        let in_rows = || {
            let found = rows.filter_map(|row| self.row(row, text, received));
            let named = found.map(|found| zones::with_name(text, found, received).unwrap_or(found));
            named
                .into_iter()
                .find(|found| found.bytes == read.bytes && found.time == read.time)
        };
        let hand_read = || {
            let found = syslog(text, received).or_else(|| iso(text))?;
            let found = zones::with_name(text, found, received).unwrap_or(found);
            (found.bytes == read.bytes && found.time == read.time).then_some(found)
        };
        let bytes = if is_whole { text.len() } else { read.bytes };
        let found = in_rows().or_else(hand_read);
        let found = found.filter(|found| found.bytes == bytes);
        Some(found.unwrap_or_else(|| self.unrendered(&read, bytes, received)))
    }

    /// An instant in a form that is not rendered.
    fn unrendered(&self, read: &GeneralTime, bytes: usize, received: Timestamp) -> TimestampText {
        match read.zone {
            None => other(read.time, bytes, read.assumed),
            Some(_) => {
                let mut found = other(self.placed_read(read, received), bytes, read.assumed);
                found.form.layout = Layout::Other(read.assumed, true);
                found
            }
        }
    }

    fn row(&self, row: usize, text: &[u8], received: Timestamp) -> Option<TimestampText> {
        let parsed = self.rows.get(row)?.parse(text, received)?;
        let mut offset = Offset::default();
        let written = parsed.offset();
        offset
            .text
            .get_mut(..written.len())?
            .copy_from_slice(written);
        offset.length = cast::low_u8(written.len());
        Some(TimestampText {
            time: parsed.time,
            bytes: parsed.bytes,
            form: Form {
                layout: Layout::Row(cast::low_u8(row)),
                fraction_digits: parsed.fraction_digits(),
                offset,
                zone_name: None,
                zone_minutes: 0,
            },
            exact: parsed.is_exact(),
        })
    }
}

/// True if a word says a level, in letters of any case.
pub(crate) fn is_level(word: &[u8]) -> bool {
    LEVELS.iter().any(|level| level.eq_ignore_ascii_case(word))
}

/// An instant in a form that is read by hand.
fn known(text: &[u8], received: Timestamp) -> Option<TimestampText> {
    match text.first()? {
        b'0'..=b'9' => iso(text).or_else(|| access(text)),
        b'A'..=b'Z' => syslog(text, received),
        _ => None,
    }
}

/// An instant in a form that is not rendered, which leaves this open.
fn other(time: Timestamp, bytes: usize, assumed: Assumption) -> TimestampText {
    TimestampText {
        time,
        bytes,
        form: Form {
            layout: Layout::Other(assumed, false),
            fraction_digits: 0,
            offset: Offset::default(),
            zone_name: None,
            zone_minutes: 0,
        },
        exact: false,
    }
}

/// The instant of a time with the name of a zone, and the name with its minutes, where the zone of the
/// batch says which of several zones it is.
fn of_place(
    time: Timestamp,
    name: &ZoneName,
    place: &Place,
    received: Timestamp,
) -> Option<(Timestamp, ZoneName)> {
    if name.is_certain() {
        return None;
    }
    let local = time.saturating_add(name.minutes() * MINUTE_NS);
    let (time, minutes) = place.instant(local, Assumption::Zone, received)?;
    Some((time, name.of_place(minutes)?))
}

fn in_place(
    found: &TimestampText,
    name: &ZoneName,
    is_year_behind: bool,
    place: &Place,
    received: Timestamp,
) -> TimestampText {
    match of_place(found.time, name, place, received) {
        Some((time, name)) => TimestampText {
            time,
            form: Form {
                zone_name: Some((name, is_year_behind)),
                ..found.form
            },
            ..*found
        },
        None => *found,
    }
}

/// Reads `YYYY-MM-DDThh:mm:ss`, with `-` or `/`, a `T` or a space, a fraction, an offset or none.
pub(crate) fn iso(text: &[u8]) -> Option<TimestampText> {
    let head: &[u8; 19] = text.first_chunk()?;
    let (date, middle) = (head[4], head[10]);
    let separated = matches!(date, b'-' | b'/')
        && head[7] == date
        && matches!(middle, b'T' | b' ')
        && head[13] == b':'
        && head[16] == b':';
    if !separated {
        return None;
    }
    let civil = Civil {
        year: i64::from(two(head, 0)? * 100 + two(head, 2)?),
        month: two(head, 5)?,
        day: two(head, 8)?,
        hour: two(head, 11)?,
        minute: two(head, 14)?,
        second: two(head, 17)?,
    };
    let mut at = head.len();
    let (mut nanos, mut fraction_digits, mut fraction) = (0, 0, 0);
    if let [mark @ (b'.' | b','), digit, ..] = text[at..]
        && digit.is_ascii_digit()
    {
        (nanos, fraction_digits) = read_fraction(&text[at + 1..])?;
        fraction = mark;
        at += 1 + usize::from(fraction_digits);
    }
    let (zone, offset, minutes) = zone(&text[at..]);
    at += usize::from(offset.length)
        + match zone {
            Zone::Tight => 0,
            Zone::Spaced => 1,
            Zone::Named => 4,
        };
    let layout = Layout::Iso {
        date,
        middle,
        fraction,
        zone,
    };
    Some(TimestampText {
        time: instant(&civil, nanos, minutes)?,
        bytes: at,
        form: Form {
            layout,
            fraction_digits,
            offset,
            zone_name: None,
            zone_minutes: 0,
        },
        exact: civil.second < 60,
    })
}

/// Reads the whole of a text in the form of RFC 3339, section 5.6, with `T` and an offset.
pub(crate) fn rfc3339(text: &[u8]) -> Option<Timestamp> {
    let written = iso(text)?;
    let Layout::Iso { zone, .. } = written.form.layout else {
        return None;
    };
    let is_whole = written.bytes == text.len() && written.form.offset.length > 0;
    (is_whole && zone == Zone::Tight && text[10] == b'T' && text[4] == b'-').then_some(written.time)
}

/// Reads the form of access logs, `02/Mar/2026:00:00:06 +0000`.
pub(crate) fn access(text: &[u8]) -> Option<TimestampText> {
    let head: &[u8; 21] = text.first_chunk()?;
    let separated = head[2] == b'/'
        && head[6] == b'/'
        && head[11] == b':'
        && head[14] == b':'
        && head[17] == b':'
        && head[20] == b' ';
    if !separated {
        return None;
    }
    let civil = Civil {
        year: i64::from(two(head, 7)? * 100 + two(head, 9)?),
        month: month([head[3], head[4], head[5]])?,
        day: two(head, 0)?,
        hour: two(head, 12)?,
        minute: two(head, 15)?,
        second: two(head, 18)?,
    };
    let (offset, minutes) = read_offset(&text[head.len()..])?;
    Some(TimestampText {
        time: instant(&civil, 0, minutes)?,
        bytes: head.len() + usize::from(offset.length),
        form: Form {
            layout: Layout::Access,
            fraction_digits: 0,
            offset,
            zone_name: None,
            zone_minutes: 0,
        },
        exact: civil.second < 60,
    })
}

/// The instant in the year that puts it nearest below one day after the receive time, which is
/// what `TimePattern` does.
fn in_latest_year(
    civil: &mut Civil,
    nanos: u32,
    offset_minutes: i64,
    received: Timestamp,
) -> Option<Timestamp> {
    let latest = received.saturating_add(DAY_NS);
    let year = Civil::from_seconds(latest.seconds().0).year;
    // Eight years always hold a 29 February.
    for back in 0..8 {
        civil.year = year - back;
        if let Some(time) = instant(civil, nanos, offset_minutes).filter(|t| *t <= latest) {
            return Some(time);
        }
    }
    None
}

/// The instant of a date and time, if it and its local form are in the range of `Timestamp`.
fn instant(civil: &Civil, nanos: u32, offset_minutes: i64) -> Option<Timestamp> {
    let local = civil.to_seconds()?;
    Timestamp::from_seconds(local, nanos)?;
    Timestamp::from_seconds(local - offset_minutes * 60, nanos)
}

/// Reads one to nine digits of a second's fraction; gives nanoseconds and the digits.
fn read_fraction(text: &[u8]) -> Option<(u32, u8)> {
    let mut nanos = 0;
    let mut count = 0u8;
    for byte in text.iter().take(10) {
        let Some(digit) = digit(*byte) else { break };
        if count == 9 {
            return None;
        }
        nanos = nanos * 10 + digit;
        count += 1;
    }
    const SCALE: [u32; 10] = [
        0,
        100_000_000,
        10_000_000,
        1_000_000,
        100_000,
        10_000,
        1_000,
        100,
        10,
        1,
    ];
    (count > 0).then(|| (nanos * SCALE[usize::from(count)], count))
}

/// What stands after a time of day: its offset in minutes and how it is written.
fn zone(text: &[u8]) -> (Zone, Offset, i64) {
    let none = (Zone::Tight, Offset::default(), 0);
    match text {
        [b'Z' | b'+' | b'-', ..] => match read_offset(text) {
            Some((offset, minutes)) => (Zone::Tight, offset, minutes),
            None => none,
        },
        [b' ', b'U', b'T', b'C', after @ ..]
            if !matches!(after, [b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z', ..])
                && !matches!(after, [b'+' | b'-', b'0'..=b'9', ..]) =>
        {
            (Zone::Named, Offset::default(), 0)
        }
        [b' ', sign @ (b'+' | b'-'), ..] => match read_offset(&text[1..]) {
            // A word such as `-12` may follow a time as well; offsets of this form have minutes,
            // and only quarters of an hour up to 14 hours are in use.
            Some((offset, minutes))
                if offset.length >= 5
                    && minutes % 15 == 0
                    && minutes.abs() <= 14 * 60
                    && !text
                        .get(1 + usize::from(offset.length))
                        .is_some_and(u8::is_ascii_digit) =>
            {
                debug_assert!(*sign == offset.text[0]);
                (Zone::Spaced, offset, minutes)
            }
            _ => none,
        },
        _ => none,
    }
}

/// Reads `Z`, `+01:00`, `+0100` or `+01`.
fn read_offset(text: &[u8]) -> Option<(Offset, i64)> {
    let sign = match text.first()? {
        b'Z' => 0,
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (length, minutes) = if sign == 0 {
        (1, 0)
    } else {
        let hours = two(text, 1).filter(|h| *h <= 23)?;
        let colon = usize::from(text.get(3) == Some(&b':'));
        match two(text, 3 + colon) {
            Some(minutes) if minutes < 60 => (5 + colon, hours * 60 + minutes),
            None if colon == 0 => (3, hours * 60),
            _ => return None,
        }
    };
    let mut offset = Offset {
        length: cast::low_u8(length),
        ..Offset::default()
    };
    offset.text[..length].copy_from_slice(&text[..length]);
    Some((offset, sign * i64::from(minutes)))
}

fn month(name: [u8; 3]) -> Option<u32> {
    const NAMES: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    let at = NAMES.chunks_exact(3).position(|n| *n == name)?;
    Some(cast::low_u32(at) + 1)
}

#[inline]
fn digit(byte: u8) -> Option<u32> {
    let value = byte.wrapping_sub(b'0');
    (value < 10).then_some(u32::from(value))
}

#[inline]
fn two(text: &[u8], at: usize) -> Option<u32> {
    let tens = text.get(at)?.wrapping_sub(b'0');
    let ones = text.get(at + 1)?.wrapping_sub(b'0');
    (tens < 10 && ones < 10).then(|| u32::from(tens) * 10 + u32::from(ones))
}

#[cfg(test)]
mod tests;

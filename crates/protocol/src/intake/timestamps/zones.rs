//! Offsets from UTC and names of time zones behind times.
//!
//! Abbreviations are not unique. Each has the meaning that is by far the most frequent; one that
//! several zones use today has the others beside it, and a time with it is said to be assumed. An
//! unknown name is no zone, and stays where it is.

use logpond_record::{Timestamp, cast, write_unwritten_offset};

use super::cursor::Cursor;
use super::regions::{self, Region};
use super::traditional::{syslog_civil, year_after};
use super::{Form, Layout, TimestampText, digit, in_latest_year, instant, read_offset};

/// The largest offset that is in use, in minutes.
const MINUTES_MAX: i64 = 14 * 60;

/// Abbreviations, their minutes east of UTC, and the minutes of other zones that use them (IANA's time
/// zone database, and names that are in daily use beside it).
const NAMES: [(&str, i16, &[i16]); 107] = [
    ("UTC", 0, &[]),
    ("GMT", 0, &[]),
    ("UCT", 0, &[]),
    ("Z", 0, &[]),
    ("WET", 0, &[]),
    ("WEST", 60, &[]),
    // Bangladesh and Bougainville, too.
    ("BST", 60, &[360, 660]),
    ("CET", 60, &[]),
    ("CEST", 120, &[]),
    ("MET", 60, &[]),
    ("MEST", 120, &[]),
    // Java's names in German.
    ("MEZ", 60, &[]),
    ("MESZ", 120, &[]),
    ("EET", 120, &[]),
    ("EEST", 180, &[]),
    ("WAT", 60, &[]),
    ("CAT", 120, &[]),
    ("EAT", 180, &[]),
    ("SAST", 120, &[]),
    ("IDT", 180, &[]),
    ("MSK", 180, &[]),
    // The Gulf, and South Georgia.
    ("GST", 240, &[-120]),
    ("PKT", 300, &[]),
    // India, Israel, Ireland.
    ("IST", 330, &[120, 60]),
    ("WIB", 420, &[]),
    ("WITA", 480, &[]),
    ("WIT", 540, &[]),
    ("ICT", 420, &[]),
    ("SGT", 480, &[]),
    ("HKT", 480, &[]),
    ("AWST", 480, &[]),
    ("JST", 540, &[]),
    ("KST", 540, &[]),
    ("ACST", 570, &[]),
    ("ACDT", 630, &[]),
    ("AEST", 600, &[]),
    ("AEDT", 660, &[]),
    ("NZST", 720, &[]),
    ("NZDT", 780, &[]),
    ("EST", -300, &[]),
    ("EDT", -240, &[]),
    // North America, China, Cuba.
    ("CST", -360, &[480, -300]),
    ("CDT", -300, &[540, -240]),
    ("MST", -420, &[]),
    ("MDT", -360, &[]),
    // North America, the Philippines.
    ("PST", -480, &[480]),
    ("PDT", -420, &[]),
    ("AKST", -540, &[]),
    ("AKDT", -480, &[]),
    ("HST", -600, &[]),
    ("HDT", -540, &[]),
    // Samoa, Singapore.
    ("SST", -660, &[480]),
    ("NST", -210, &[]),
    ("NDT", -150, &[]),
    // The Atlantic, Arabia.
    ("AST", -240, &[180]),
    ("ADT", -180, &[]),
    ("BRT", -180, &[]),
    ("BRST", -120, &[]),
    ("ART", -180, &[]),
    // Java's and older PostgreSQL's names. Those that are words in capitals are none: `GET`, `ART`, `BOT`.
    ("COT", -300, &[]),
    ("PET", -300, &[]),
    ("ECT", -300, &[]),
    ("CLT", -240, &[]),
    ("CLST", -180, &[]),
    ("VET", -240, &[]),
    ("UYT", -180, &[]),
    ("UYST", -120, &[]),
    ("PYT", -180, &[-240]),
    ("GFT", -180, &[]),
    ("GYT", -240, &[]),
    ("SRT", -180, &[]),
    ("AMT", -240, &[240]),
    ("AZT", 240, &[]),
    ("BDT", 360, &[]),
    ("BTT", 360, &[]),
    ("NPT", 345, &[]),
    ("MMT", 390, &[]),
    ("MYT", 480, &[]),
    ("BNT", 480, &[]),
    ("PHT", 480, &[]),
    ("IRST", 210, &[]),
    ("IRDT", 270, &[]),
    ("AFT", 270, &[]),
    ("TRT", 180, &[]),
    ("UZT", 300, &[]),
    ("TMT", 300, &[]),
    ("TJT", 300, &[]),
    ("MVT", 300, &[]),
    ("ALMT", 300, &[360]),
    ("KGT", 360, &[]),
    ("YEKT", 300, &[]),
    ("OMST", 360, &[]),
    ("NOVT", 420, &[]),
    ("KRAT", 420, &[]),
    ("IRKT", 480, &[]),
    ("ULAT", 480, &[]),
    ("YAKT", 540, &[]),
    ("VLAT", 600, &[]),
    ("MAGT", 660, &[]),
    ("SAKT", 660, &[]),
    ("PETT", 720, &[]),
    ("SAMT", 240, &[]),
    ("VOLT", 180, &[]),
    ("PGT", 600, &[]),
    ("FJT", 720, &[]),
    ("NCT", 660, &[]),
    ("WAST", 120, &[]),
];

/// Abbreviations that end with another letter than T, as of time.
const OTHER_NAMES: [&[u8]; 7] = [b"UTC", b"Z", b"MSK", b"WIB", b"WITA", b"MEZ", b"MESZ"];

/// Names that are no abbreviations, and their minutes east of UTC: CLDR's names as Java writes them, such as in WebLogic.
const LONG_NAMES: [(&str, i16); 36] = [
    ("Coordinated Universal Time", 0),
    ("Etc/UTC", 0),
    ("Zulu", 0),
    ("Universal", 0),
    ("Greenwich Mean Time", 0),
    ("British Summer Time", 60),
    ("Irish Standard Time", 60),
    ("Western European Standard Time", 0),
    ("Western European Summer Time", 60),
    ("Central European Standard Time", 60),
    ("Central European Summer Time", 120),
    ("Central European Time", 60),
    ("Eastern European Standard Time", 120),
    ("Eastern European Summer Time", 180),
    ("Moscow Standard Time", 180),
    ("Israel Standard Time", 120),
    ("Israel Daylight Time", 180),
    ("Arabian Standard Time", 180),
    ("Gulf Standard Time", 240),
    ("India Standard Time", 330),
    ("China Standard Time", 480),
    ("Hong Kong Standard Time", 480),
    ("Singapore Standard Time", 480),
    ("Japan Standard Time", 540),
    ("Korean Standard Time", 540),
    ("Australian Eastern Standard Time", 600),
    ("Australian Eastern Daylight Time", 660),
    ("South Africa Standard Time", 120),
    ("Brasilia Standard Time", -180),
    ("Eastern Standard Time", -300),
    ("Eastern Daylight Time", -240),
    ("Central Standard Time", -360),
    ("Central Daylight Time", -300),
    ("Mountain Standard Time", -420),
    ("Pacific Standard Time", -480),
    ("Pacific Daylight Time", -420),
];

/// The first letters of these names.
const LONG_INITIALS: &[u8] = b"ABCEGHIJKMPSUWZ";

/// Abbreviations that are zones in brackets, too; others are the names of modules as well.
const BRACKETED: [&str; 20] = [
    "UTC", "GMT", "CET", "CEST", "EET", "EEST", "WEST", "MEZ", "MESZ", "MSK", "JST", "KST", "EST",
    "EDT", "CDT", "MDT", "PDT", "AEST", "AEDT", "NZDT",
];

/// The longest abbreviation, also of the form `TZ-11`.
const NAME_BYTES_MAX: usize = 6;

/// The longest text in brackets behind an offset, `[America/Argentina/ComodRivadavia]` and such.
const COMMENT_BYTES_MAX: usize = 64;

/// The name of a zone as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ZoneName {
    text: [u8; NAME_BYTES_MAX],
    length: u8,
    /// East of UTC.
    minutes: i16,
    /// The same in other zones that use the name.
    others: &'static [i16],
}

/// The zone of a time as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Zone {
    /// An offset in minutes; true if it is `-00:00`, which says that the zone is not known.
    Offset(i16, bool),
    /// An abbreviation.
    Name(ZoneName),
    /// The name of a zone whose offset depends on the time.
    Region(Region),
}

impl Zone {
    /// East of UTC; nothing where that depends on the time, see [`Zone::place`].
    pub(super) fn minutes(&self) -> i16 {
        match self {
            Zone::Offset(minutes, _) => *minutes,
            Zone::Name(name) => name.minutes,
            Zone::Region(_) => 0,
        }
    }

    /// The instant of a time that was read by [`Zone::minutes`], and true if it can be no other one.
    pub(super) fn place(&self, time: Timestamp, received: Timestamp) -> Option<(Timestamp, bool)> {
        match self {
            Zone::Offset(..) => Some((time, true)),
            Zone::Name(name) => Some((time, name.is_certain())),
            Zone::Region(region) => region.instant(time, received),
        }
    }

    pub(super) fn is_minus_zero(&self) -> bool {
        matches!(self, Zone::Offset(_, true))
    }

    /// The abbreviation, if it is one.
    pub(super) fn name(&self) -> Option<&ZoneName> {
        match self {
            Zone::Offset(..) | Zone::Region(_) => None,
            Zone::Name(name) => Some(name),
        }
    }
}

impl ZoneName {
    /// Appends what a pattern says of it, and of a year behind it.
    pub(super) fn write_pattern(&self, is_year_behind: bool, out: &mut Vec<u8>) {
        out.push(b' ');
        out.extend_from_slice(&self.text[..usize::from(self.length)]);
        if is_year_behind {
            out.extend_from_slice(b" %Y");
        }
        if self.minutes != 0 {
            write_unwritten_offset(self.minutes.into(), out);
        }
    }

    /// True if no other zone uses the name.
    pub(super) fn is_certain(&self) -> bool {
        self.others.is_empty()
    }

    /// The same name with the minutes that the zone of the batch has, if one of those that use the name
    /// has them.
    pub(super) fn of_place(&self, minutes: i64) -> Option<ZoneName> {
        let minutes = i16::try_from(minutes).ok()?;
        self.others
            .contains(&minutes)
            .then_some(ZoneName { minutes, ..*self })
    }

    /// East of UTC.
    pub(super) fn minutes(&self) -> i64 {
        self.minutes.into()
    }

    /// Reads a name, `TZ` and hours included, at the start of `text`.
    fn read(text: &[u8]) -> Option<ZoneName> {
        let letters = text.iter().take(NAME_BYTES_MAX);
        let letters = letters.take_while(|b| b.is_ascii_uppercase()).count();
        let (length, minutes, others) = match &text[..letters] {
            b"TZ" => {
                let (bytes, minutes) = hours(&text[letters..])?;
                (letters + bytes, minutes, &[][..])
            }
            name => {
                // Most words behind times are levels.
                let is_likely = name.ends_with(b"T") || OTHER_NAMES.contains(&name);
                let mut names = NAMES.iter().filter(|_| is_likely);
                let known = names.find(|(known, ..)| known.as_bytes() == name)?;
                (letters, known.1, known.2)
            }
        };
        let mut name = ZoneName {
            text: [0; NAME_BYTES_MAX],
            length: cast::low_u8(length),
            minutes,
            others,
        };
        name.text
            .get_mut(..length)?
            .copy_from_slice(&text[..length]);
        Some(name)
    }
}

/// Reads `+H`, `-HH`; gives the bytes and minutes.
fn hours(text: &[u8]) -> Option<(usize, i16)> {
    let sign = match text.first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let tens = digit(*text.get(1)?)?;
    let (bytes, hours) = match text.get(2).copied().and_then(digit) {
        Some(ones) => (3, tens * 10 + ones),
        None => (2, tens),
    };
    (hours <= 14).then_some((bytes, sign * cast::low_i16(hours) * 60))
}

/// The same time with the zone that ` NAME` behind it says, and the year of ` NAME 1987`.
pub(super) fn with_name(
    text: &[u8],
    found: TimestampText,
    received: Timestamp,
) -> Option<TimestampText> {
    if found.form.offset.length > 0 {
        return None;
    }
    let after = text.get(found.bytes..)?.strip_prefix(b" ")?;
    let name = ZoneName::read(after)?;
    let after = &after[usize::from(name.length)..];
    if !matches!(after.first(), None | Some(b' ' | b':' | b'-')) {
        return None;
    }
    let minutes = i64::from(name.minutes);
    let mut bytes = found.bytes + 1 + usize::from(name.length);
    let mut is_year_behind = false;
    let time = match found.form.layout {
        Layout::Syslog { year: false, .. } => {
            let (mut civil, nanos) = syslog_civil(text)?;
            match year_after(after) {
                Some(year) => {
                    civil.year = year;
                    is_year_behind = true;
                    bytes += 5;
                    instant(&civil, nanos, minutes)?
                }
                None => in_latest_year(&mut civil, nanos, minutes, received)?,
            }
        }
        _ => Timestamp(found.time.0.checked_sub(minutes * 60_000_000_000)?),
    };
    Some(TimestampText {
        time,
        bytes,
        form: Form {
            zone_name: Some((name, is_year_behind)),
            ..found.form
        },
        exact: found.exact,
    })
}

/// Reads the zone behind a clock, if there is any. `is_dotted` says that the parts of the clock are
/// parted by dots: DB2, which does so, writes the offset in minutes.
pub(super) fn read(cursor: &mut Cursor<'_>, is_dotted: bool) -> Option<Zone> {
    let mut ahead = *cursor;
    if let Some((region, bytes)) = regions::read_bracketed(ahead.rest()) {
        cursor.at += bytes;
        return Some(Zone::Region(region));
    }
    // German.
    ahead.eat_text(b" Uhr");
    if let Some(zone) = bracketed(&mut ahead) {
        *cursor = ahead;
        return Some(zone);
    }
    let is_spaced = ahead.eat(b' ');
    let zone = match ahead.peek()? {
        b'+' | b'-' if is_dotted && !is_spaced => offset_in_minutes(&mut ahead),
        b'Z' | b'z' if !is_spaced && !is_word_at(&ahead, 1) => {
            ahead.at += 1;
            Some(Zone::Offset(0, false))
        }
        b'+' | b'-' => offset(&mut ahead, is_spaced),
        b'A'..=b'Z' => named(&mut ahead),
        _ => None,
    }?;
    *cursor = ahead;
    Some(zone)
}

/// True if a text begins with a zone in brackets, as [`bracketed`] reads them.
pub(super) fn is_bracketed(text: &[u8]) -> bool {
    bracketed(&mut Cursor::new(text)).is_some()
}

/// Reads a name of [`BRACKETED`] or an offset in brackets behind a space: ` (UTC)`, ` (+01:00)`, ` [CET]`.
fn bracketed(cursor: &mut Cursor<'_>) -> Option<Zone> {
    let (close, rest) = match cursor.rest() {
        [b' ', b'(', rest @ ..] => (b')', rest),
        [b' ', b'[', rest @ ..] => (b']', rest),
        _ => return None,
    };
    let (zone, length) = match rest {
        [b'A'..=b'Z', ..] => {
            let name = ZoneName::read(rest)?;
            let length = usize::from(name.length);
            let is_it = BRACKETED
                .iter()
                .any(|known| known.as_bytes() == &rest[..length]);
            (is_it.then_some(Zone::Name(name))?, length)
        }
        [b'+' | b'-', ..] => {
            let (offset, minutes) = read_offset(rest)?;
            let is_it = offset.length >= 5 && minutes.abs() <= MINUTES_MAX;
            (
                Zone::Offset(i16::try_from(minutes).ok().filter(|_| is_it)?, false),
                usize::from(offset.length),
            )
        }
        _ => return None,
    };
    if rest.get(length) != Some(&close) {
        return None;
    }
    cursor.at += 2 + length + 1;
    Some(zone)
}

/// True if a text begins with a space and a zone.
pub(super) fn is_next(text: &[u8]) -> bool {
    read(&mut Cursor::new(text), false).is_some()
}

/// True if a letter or digit is so many bytes ahead.
fn is_word_at(cursor: &Cursor<'_>, ahead: usize) -> bool {
    cursor
        .peek_at(ahead)
        .is_some_and(|b| b.is_ascii_alphanumeric())
}

/// `+060`
fn offset_in_minutes(cursor: &mut Cursor<'_>) -> Option<Zone> {
    let sign = if cursor.peek() == Some(b'-') { -1 } else { 1 };
    cursor.at += 1;
    if cursor.digits() != 3 {
        return None;
    }
    let minutes = i64::from(cursor.number(3)?);
    (minutes <= MINUTES_MAX).then_some(Zone::Offset(sign * cast::low_i16(minutes), false))
}

/// Reads `+01:00`, `+0100` or `+01`. Behind a space, a number of two digits is an offset only if it can
/// be nothing else: `-12 degrees` is none.
fn offset(cursor: &mut Cursor<'_>, is_spaced: bool) -> Option<Zone> {
    let rest = cursor.rest();
    let (minutes, length) = [rest, rest.get(..3)?].into_iter().find_map(|text| {
        let (offset, minutes) = read_offset(text)?;
        let length = usize::from(offset.length);
        let is_plausible = !is_spaced || minutes % 15 == 0 && minutes.abs() <= MINUTES_MAX;
        let is_it = is_plausible && is_offset_ended(rest, length, is_spaced);
        is_it.then_some((minutes, length))
    })?;
    cursor.at += length;
    let is_minus_zero = rest[0] == b'-' && minutes == 0;
    Some(Zone::Offset(cast::low_i16(minutes), is_minus_zero))
}

/// True if what follows an offset of so many bytes leaves no doubt that it is one.
fn is_offset_ended(text: &[u8], length: usize, is_spaced: bool) -> bool {
    match &text[length..] {
        [] => true,
        [b'0'..=b'9', ..] => false,
        _ if length >= 5 => true,
        behind if !is_spaced => !behind[0].is_ascii_alphanumeric(),
        [b' ', b'[' | b'(' | b'<' | b'-', ..] => true,
        [b' ', ..] => text[1] == b'0',
        [
            b']' | b')' | b'>' | b',' | b';' | b':' | b'|' | b'"' | b'\t',
            ..,
        ] => true,
        _ => false,
    }
}

/// Reads `CET`, `UTC`, `GMT+1`, `UTC-03:00`, `Europe/Berlin`.
fn named(cursor: &mut Cursor<'_>) -> Option<Zone> {
    // Words that go on in small letters are the rule.
    let is_long = matches!(
        cursor.rest(),
        [first, b'a'..=b'z', ..] if LONG_INITIALS.contains(first)
    );
    let ends =
        |cursor: &Cursor<'_>| !is_word_at(cursor, 0) && !matches!(cursor.peek(), Some(b'/' | b'_'));
    let mut long_names = LONG_NAMES.iter().filter(|_| is_long);
    let is_it = |(name, _): &&(&str, i16)| cursor.rest().starts_with(name.as_bytes());
    if let Some((long, minutes)) = long_names.find(is_it) {
        cursor.at += long.len();
        return ends(cursor).then_some(Zone::Offset(*minutes, false));
    }
    if let Some((region, bytes)) = regions::read(cursor.rest())
        && ZoneName::read(cursor.rest()).is_none_or(|name| usize::from(name.length) < bytes)
    {
        cursor.at += bytes;
        return Some(Zone::Region(region));
    }
    let name = ZoneName::read(cursor.rest())?;
    let is_utc = cursor.rest().starts_with(b"UTC") || cursor.rest().starts_with(b"GMT");
    cursor.at += usize::from(name.length);
    if is_session(cursor.rest()) {
        return Some(Zone::Name(name));
    }
    if is_utc && matches!(cursor.peek(), Some(b'+' | b'-')) && cursor.is_digit_at(1) {
        if let Some(zone) = offset(cursor, false) {
            return Some(zone);
        }
        let (bytes, minutes) = hours(cursor.rest())?;
        cursor.at += bytes;
        return ends(cursor).then_some(Zone::Offset(minutes, false));
    }
    // A hyphen belongs to a longer word, or stands between blanks.
    let is_hyphened = cursor.peek() == Some(b'-') && is_word_at(cursor, 1);
    (ends(cursor) && !is_hyphened).then_some(Zone::Name(name))
}

/// True for `-65e0f3b1.4d`, a session of PostgreSQL behind a hyphen: its digits are no offset.
fn is_session(text: &[u8]) -> bool {
    matches!(
        text,
        [b'-', start @ .., ] if start.get(8) == Some(&b'.')
            && start[..8].iter().all(u8::is_ascii_hexdigit)
            && start.get(9).is_some_and(u8::is_ascii_hexdigit)
    )
}

/// Bytes of what says an offset once more: Go's ` CET m=+0.1`, Java's `[Europe/Berlin]`, the
/// ` (Central European Time)` of JavaScript and mail.
pub(super) fn repeated(text: &[u8]) -> usize {
    let mut cursor = Cursor::new(text);
    let mut ahead = cursor;
    ahead.eat(b' ');
    let close = match ahead.peek() {
        Some(b'[') => Some(b']'),
        Some(b'(') => Some(b')'),
        _ => None,
    };
    if let Some(close) = close {
        let inside = ahead.rest().iter().take(COMMENT_BYTES_MAX);
        if let Some(end) = inside.into_iter().position(|byte| *byte == close) {
            return ahead.at + end + 1;
        }
    }
    let name = ahead.rest().iter().take(NAME_BYTES_MAX);
    let is_part = |byte: &&u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    // Zones without an abbreviation have their offset for one.
    let is_signed = matches!(ahead.peek(), Some(b'+' | b'-'));
    let length = usize::from(is_signed)
        + name
            .skip(usize::from(is_signed))
            .take_while(is_part)
            .count();
    if ahead.at > 0 && length > 1 {
        ahead.at += length;
        cursor = ahead;
    }
    let mut ahead = cursor;
    if ahead.eat_text(b" m=") && (ahead.eat(b'+') || ahead.eat(b'-')) {
        let number = ahead.rest().iter().take(COMMENT_BYTES_MAX);
        let is_part = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
        ahead.at += number.take_while(is_part).count();
        cursor = ahead;
    }
    cursor.at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_abbreviations_are_read() {
        for (name, minutes, _) in NAMES {
            let read = ZoneName::read(name.as_bytes()).map(|name| name.minutes);
            assert_eq!(read, Some(minutes), "{name}");
        }
    }
}

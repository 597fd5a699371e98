//! Times at the start of a line in forms that one program writes.

use logpond_record::{Assumption, Civil, Timestamp};

use super::cursor::Cursor;
use super::epoch::{decimal_epoch, leading_epoch};
use super::general::{self, GeneralTime};
use super::line::{PART_BYTES_MAX, WITHIN_BYTES_MAX, certain};
use super::{MINUTE_NS, in_latest_year, iso, read_fraction, read_offset};

/// The end of the second value of PAN-OS, its time.
const SECOND_VALUE_END: usize = 21;

/// Bytes of a date, `2026-11-27`, and of an offset, `+01:00`.
const DATE_BYTES: usize = 10;
const OFFSET_BYTES: usize = 6;

/// The most letters that a time is looked for around.
const LETTERS_MAX: usize = 64;

const HOUR_NS: i64 = 3_600_000_000_000;

/// `1,2026/11/27 00:51:25,…,2026-11-27T00:51:26.134+01:00,…`: of values of PAN-OS the time with its zone, if it is that
/// of the second value to the hour at most. A text of a client stands in quotes before it.
pub(super) fn pan_os(line: &[u8]) -> Option<GeneralTime> {
    // The number behind it would pass for a fraction.
    let first = iso(line.get(2..SECOND_VALUE_END)?)?;
    let head = &line[..line.len().min(WITHIN_BYTES_MAX)];
    let mut letters = memchr::memrchr_iter(b'T', head).take(LETTERS_MAX);
    letters.find_map(|at| {
        let comma = at.checked_sub(DATE_BYTES + 1)?;
        let start = (head[comma] == b',').then_some(comma + 1)?;
        let found = iso(&head[start..])?;
        let end = start + found.bytes;
        let (_, minutes) = read_offset(&head[end.checked_sub(OFFSET_BYTES)?..end])?;
        let local = found.time.saturating_add(minutes * MINUTE_NS);
        let is_same = (local.0 - first.time.0).abs() <= HOUR_NS;
        let is_ended = matches!(head.get(end), Some(b',') | None);
        (is_same && is_ended).then(|| certain(found.time, end))
    })
}

/// `- 1795740685 2026.11.27 node1 …`: a label, Unix time and the date, as the logs of supercomputers have them (Blue Gene,
/// Thunderbird, Spirit).
pub(super) fn labelled(line: &[u8]) -> Option<GeneralTime> {
    const LABEL_BYTES_MAX: usize = 16;
    let blank = memchr::memchr(b' ', &line[..line.len().min(LABEL_BYTES_MAX)])?;
    let text = &line[blank + 1..];
    let is_date = text.get(10) == Some(&b' ')
        && text.get(15) == Some(&b'.')
        && text.get(18) == Some(&b'.')
        && text.get(21) == Some(&b' ');
    let time = leading_epoch(text).filter(|_| is_date)?;
    Some(certain(time, blank + 11))
}

/// `1.795740685818426e+09`, a TAB, as zap's encoder for consoles writes Unix time.
pub(super) fn exponential(line: &[u8]) -> Option<GeneralTime> {
    let [b'1', b'.', ..] = line else { return None };
    let head = &line[..line.len().min(PART_BYTES_MAX)];
    let tab = memchr::memchr(b'\t', head)?;
    let is_it = memchr::memchr(b'e', &head[..tab]).is_some();
    let time = decimal_epoch(&head[..tab], false).filter(|_| is_it)?;
    Some(certain(time, tab))
}

/// `[77:78:1127/005125.818426:ERROR:gpu_init.cc(7)] …`: numbers of process and thread, or none, and the time without a
/// year, as Chromium writes them.
pub(super) fn chromium(line: &[u8], received: Timestamp) -> Option<GeneralTime> {
    let mut cursor = Cursor::new(line.strip_prefix(b"[")?);
    for _ in 0..2 {
        let digits = cursor.digits();
        if digits > 0 && cursor.peek_at(digits) == Some(b':') {
            cursor.at += digits + 1;
        }
    }
    let is_date = cursor.digits() == 4 && cursor.peek_at(4) == Some(b'/');
    if !is_date {
        return None;
    }
    let (month, day) = (cursor.number(2)?, cursor.number(2)?);
    cursor.at += 1;
    if cursor.digits() != 6 {
        return None;
    }
    let mut civil = Civil {
        year: 0,
        month,
        day,
        hour: cursor.number(2)?,
        minute: cursor.number(2)?,
        second: cursor.number(2)?,
    };
    let nanos = if cursor.eat(b'.') {
        let (nanos, digits) = read_fraction(cursor.rest())?;
        cursor.at += usize::from(digits);
        nanos
    } else {
        0
    };
    if cursor.peek() != Some(b':') {
        return None;
    }
    Some(GeneralTime {
        time: in_latest_year(&mut civil, nanos, 0, received)?,
        bytes: line.len() - cursor.rest().len(),
        assumed: Assumption::YearAndZone,
        zone: None,
        is_full: false,
    })
}

/// `…]LOG]!><time="00:51:25.818+060" date="11-27-2026" …>` of Configuration Manager: the minutes are those that UTC is ahead
/// of the clock, and they may be missing.
pub(super) fn cmtrace(line: &[u8]) -> Option<GeneralTime> {
    let at = memchr::memmem::rfind(line, b"]LOG]!><time=\"")? + 14;
    let mut cursor = Cursor::new(&line[at..]);
    let number = |cursor: &mut Cursor<'_>, end: &[u8]| {
        let digits = cursor.digits().min(4);
        let number = cursor.number(digits).filter(|_| digits > 0)?;
        cursor.eat_text(end).then_some(number)
    };
    let (hour, minute) = (number(&mut cursor, b":")?, number(&mut cursor, b":")?);
    let second = number(&mut cursor, b".")?;
    let (nanos, digits) = read_fraction(cursor.rest())?;
    cursor.at += usize::from(digits);
    let sign = cursor.peek().filter(|byte| matches!(byte, b'+' | b'-'));
    let mut bias = 0;
    if let Some(sign) = sign {
        cursor.at += 1;
        let digits = cursor.digits().min(3);
        let minutes = i64::from(cursor.number(digits).filter(|_| digits > 0)?);
        bias = if sign == b'-' { -minutes } else { minutes };
    }
    if !cursor.eat_text(b"\" date=\"") {
        return None;
    }
    let (month, day) = (number(&mut cursor, b"-")?, number(&mut cursor, b"-")?);
    let civil = Civil {
        year: i64::from(number(&mut cursor, b"\"")?),
        month,
        day,
        hour,
        minute,
        second,
    };
    Some(GeneralTime {
        time: super::instant(&civil, nanos, -bias)?,
        bytes: line.len() - cursor.rest().len(),
        assumed: Assumption::of(true, true, sign.is_some()),
        zone: None,
        is_full: true,
    })
}

/// `A924A5FC   0302000026 P S SYSPROC …`: month, day, hour, minute and year behind an identifier, as AIX's `errpt` writes
/// them.
pub(super) fn errpt(line: &[u8]) -> Option<GeneralTime> {
    let is_id = |b: &u8| b.is_ascii_digit() || b.is_ascii_uppercase();
    let (id, rest) = line.split_at_checked(8)?;
    let digits = rest.trim_ascii_start();
    let mut cursor = Cursor::new(digits);
    let is_it = rest.starts_with(b"  ") && cursor.digits() == 10 && id.iter().all(is_id);
    if !is_it
        || !matches!(
            digits[10..],
            [b' ', b'P' | b'T' | b'I' | b'U', b' ', _, b' ', ..]
        )
    {
        return None;
    }
    let (month, day) = (cursor.number(2)?, cursor.number(2)?);
    let (hour, minute) = (cursor.number(2)?, cursor.number(2)?);
    let civil = Civil {
        year: 2000 + i64::from(cursor.number(2)?),
        month,
        day,
        hour,
        minute,
        second: 0,
    };
    Some(GeneralTime {
        time: super::instant(&civil, 0, 0)?,
        bytes: line.len() - cursor.rest().len(),
        assumed: Assumption::Zone,
        zone: None,
        is_full: false,
    })
}

/// `E0000 00:00:1795740685.818426 …`: Abseil's time before it knows its zone.
pub(super) fn abseil(text: &[u8]) -> Option<GeneralTime> {
    let rest = text[1..].strip_prefix(b"0000 00:00:")?;
    Some(certain(leading_epoch(rest)?, text.len() - rest.len() + 10))
}

/// `I20261127-00:51:25.818(1)? …`: Meteor's time behind the letter, and the hours of its zone.
pub(super) fn meteor(text: &[u8], received: Timestamp) -> Option<GeneralTime> {
    if text.get(9) != Some(&b'-') {
        return None;
    }
    let found = general::read(&text[1..], received)?;
    let mut cursor = Cursor::new(text.get(1 + found.bytes..)?.strip_prefix(b"(")?);
    let sign = if cursor.eat(b'-') { -1 } else { 1 };
    let digits = cursor.digits();
    let hours = i64::from(
        cursor
            .number(digits)
            .filter(|_| (1..=2).contains(&digits))?,
    );
    if !cursor.eat(b')') {
        return None;
    }
    let time = found.time.saturating_add(-sign * hours * HOUR_NS);
    Some(certain(time, 1 + found.bytes))
}

//! Times of lines that a label or a word begins, which tells where the time stands and how it is written.

use logpond_record::{Assumption, Civil, Timestamp};

use super::cursor::Cursor;
use super::epoch::epoch;
use super::general::GeneralTime;
use super::{DAY_NS, MINUTE_NS, TimestampText, head, instant, iso, read_fraction};

/// The most bytes of a word before a time.
const WORD_BYTES_MAX: usize = 32;

/// The most bytes of a line of SAP before its time.
const SAP_BYTES_MAX: usize = 64;

/// Words of sentences, which a time may follow.
const PROSE: [&[u8]; 29] = [
    b"after",
    b"at",
    b"before",
    b"begin",
    b"begins",
    b"by",
    b"created",
    b"date",
    b"deadline",
    b"due",
    b"end",
    b"ends",
    b"expires",
    b"for",
    b"from",
    b"is",
    b"last",
    b"next",
    b"of",
    b"on",
    b"since",
    b"start",
    b"starts",
    b"the",
    b"till",
    b"to",
    b"until",
    b"valid",
    b"was",
];

/// `#2.0#2026 11 27 00:51:25:818#+0100#Error#…` and `#1.5#00505…#1795740685818#…`: SAP's list format. Zones are written
/// `+0100`, `0-500` and `0+100`.
pub(super) fn sap(line: &[u8]) -> Option<GeneralTime> {
    let head = &line[..line.len().min(SAP_BYTES_MAX)];
    let mut parts = head.split(|byte| *byte == b'#');
    if parts.next() != Some(b"") || !parts.next()?.starts_with(b"1.") {
        return sap_list(head);
    }
    let found = parts.nth(1).and_then(|part| epoch(part, false))?;
    Some(GeneralTime {
        time: found.time,
        bytes: head.len(),
        assumed: Assumption::Nothing,
        zone: None,
        is_full: true,
    })
}

fn sap_list(head: &[u8]) -> Option<GeneralTime> {
    let behind = head.strip_prefix(b"#2.")?;
    let start = memchr::memchr(b'#', behind)? + 1;
    let mut cursor = Cursor::new(&behind[start..]);
    let mut numbers = [0; 6];
    let digits = [4, 2, 2, 2, 2, 2];
    for ((number, digits), end) in numbers.iter_mut().zip(digits).zip(*b"   :::") {
        if cursor.digits() != digits {
            return None;
        }
        *number = cursor.number(digits)?;
        if !cursor.eat(end) {
            return None;
        }
    }
    let [year, month, day, hour, minute, second] = numbers;
    let (nanos, digits) = read_fraction(cursor.rest())?;
    cursor.at += usize::from(digits);
    if !cursor.eat(b'#') {
        return None;
    }
    let civil = Civil {
        year: i64::from(year),
        month,
        day,
        hour,
        minute,
        second,
    };
    let minutes = sap_zone(cursor.rest());
    Some(GeneralTime {
        time: instant(&civil, nanos, minutes.unwrap_or(0))?,
        bytes: head.len(),
        assumed: Assumption::of(true, true, minutes.is_some()),
        zone: None,
        is_full: true,
    })
}

/// The minutes of `+0100#`, `-0500#`, `0-500#` and `0+100#`.
fn sap_zone(text: &[u8]) -> Option<i64> {
    let text = text.strip_prefix(b"0").unwrap_or(text);
    let sign = match text.first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let mut cursor = Cursor::new(&text[1..]);
    let digits = cursor.digits();
    let number = i64::from(
        cursor
            .number(digits)
            .filter(|_| (1..=4).contains(&digits))?,
    );
    let minutes = number / 100 * 60 + number % 100;
    (cursor.peek() == Some(b'#') && minutes <= 14 * 60).then_some(sign * minutes)
}

/// `shop 2026-11-27 00:51:25.818 …`: a time behind one word, as of a program's name. Behind a word of a sentence it is what
/// the line is about, so that it must be written as loggers do, or be close to the arrival.
pub(super) fn behind_word(line: &[u8], received: Timestamp) -> Option<GeneralTime> {
    let first = line.first().filter(|byte| byte.is_ascii_alphabetic())?;
    let is_part =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':');
    let head = &line[..line.len().min(WORD_BYTES_MAX + 1)];
    let length = head.iter().take_while(|byte| is_part(byte)).count();
    let (word, rest) = line.split_at(length);
    let text = rest.strip_prefix(b" ")?;
    let found = iso(text).filter(|_| !is_prose(word) && first.is_ascii())?;
    let behind = &text[found.bytes..];
    if head::continues(behind) || found.time > received.saturating_add(MINUTE_NS) {
        return None;
    }
    let is_near = found.time >= received.saturating_add(-DAY_NS);
    (is_near || is_written_by_logger(&found, behind)).then(|| GeneralTime {
        time: found.time,
        bytes: length + 1 + found.bytes,
        assumed: found.form.assumed(),
        zone: None,
        is_full: true,
    })
}

/// True for a time with a fraction or a zone, and for one that a level or brackets follow.
fn is_written_by_logger(found: &TimestampText, behind: &[u8]) -> bool {
    let letters = behind.iter().skip(1);
    let letters = letters
        .take_while(|byte| byte.is_ascii_alphabetic())
        .count();
    let is_level = behind.first() == Some(&b' ') && super::is_level(&behind[1..=letters]);
    found.form.fraction_digits > 0
        || found.form.assumed() == Assumption::Nothing
        || is_level
        || behind.starts_with(b" [")
}

/// `bd6d8 1a2b3 lena - 2026-11-27T00:51:25+00:00 ERR (3): …` of Tine: a session, a request and an account before the time.
pub(super) fn tine(line: &[u8]) -> Option<GeneralTime> {
    const HEAD_BYTES_MAX: usize = 96;
    const ID_BYTES: usize = 5;
    let head = &line[..line.len().min(HEAD_BYTES_MAX)];
    let mut words = head.split(|byte| *byte == b' ');
    let is_id = |word: &[u8]| word.len() == ID_BYTES && word.iter().all(u8::is_ascii_hexdigit);
    let is_headed = words.next().is_some_and(is_id) && words.next().is_some_and(is_id);
    let at = memchr::memmem::find(head, b" - ").filter(|_| is_headed)? + 3;
    let found = iso(&line[at..])?;
    Some(GeneralTime {
        time: found.time,
        bytes: at + found.bytes,
        assumed: found.form.assumed(),
        zone: None,
        is_full: true,
    })
}

fn is_prose(word: &[u8]) -> bool {
    let is_one = |known: &&[u8]| known.eq_ignore_ascii_case(word);
    let ends: [&[u8]; 2] = [b"ed", b"ing"];
    PROSE.iter().any(is_one) || ends.iter().any(|end| word.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECEIVED: Timestamp = Timestamp(1_795_780_800_000_000_000);

    #[test]
    fn words_of_sentences_are_no_names_of_programs() {
        for (line, is_time) in [
            ("shop 2026-11-27 00:51:25 refused", true),
            ("shop 2019-11-27 00:51:25 refused", false),
            ("shop 2019-11-27 00:51:25.818 refused", true),
            ("shop 2019-11-27T00:51:25Z refused", true),
            ("shop 2019-11-27 00:51:25 ERROR refused", true),
            ("shop 2019-11-27 00:51:25 [7] refused", true),
            ("expires 2026-11-27 00:51:25 UTC", false),
            ("Started 2026-11-27 00:51:25 by lena", false),
            ("until 2026-11-27 00:51:25", false),
            ("shop 2027-11-27 00:51:25.818 refused", false),
            ("two words 2026-11-27 00:51:25.818 refused", false),
            ("shop 2026-11-27 only a date", false),
        ] {
            let found = behind_word(line.as_bytes(), RECEIVED);
            assert_eq!(found.is_some(), is_time, "{line}");
        }
    }

    #[test]
    fn zones_of_sap_are_read() {
        for (text, minutes) in [
            ("+0100#", Some(60)),
            ("-0530#", Some(-330)),
            ("0-500#", Some(-300)),
            ("0+100#", Some(60)),
            ("#", None),
            ("+9900#", None),
            ("+0100", None),
        ] {
            assert_eq!(sap_zone(text.as_bytes()), minutes, "{text}");
        }
    }
}

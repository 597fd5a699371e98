//! Times of lines that a label or a word begins, which tells where the time stands and how it is written.

use logpond_record::{Assumption, Civil, Timestamp};

use super::cursor::Cursor;
use super::epoch::{epoch, leading_epoch};
use super::general::{self, GeneralTime};
use super::traditional::syslog;
use super::{DAY_NS, MINUTE_NS, TimestampText, head, instant, iso, other, read_fraction};

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

/// The time of a line that begins as only one product writes it.
pub(super) fn of_product(line: &[u8], received: Timestamp) -> Option<GeneralTime> {
    match *line.first()? {
        b'+' | b'-' => behind_offset(line),
        b'(' => beegfs(line, received),
        b'l' if line.starts_with(b"lxc") => lxc(line, received),
        b'h' if line.starts_with(b"http") => drupal(line),
        b'0'..=b'9' if line.get(8) == Some(&b':') => lustre(line),
        b'0'..=b'9' if line.get(10) == Some(&b'.') => zpool(line),
        _ => None,
    }
}

/// `+0100 2026-11-27 00:51:25 ERROR …`: the zone before the time, as sing-box writes it.
fn behind_offset(line: &[u8]) -> Option<GeneralTime> {
    const OFFSET_BYTES: usize = 5;
    let (offset, text) = line.split_at_checked(OFFSET_BYTES + 1)?;
    let sign = if offset[0] == b'-' { -1 } else { 1 };
    let mut cursor = Cursor::new(&offset[1..]);
    if cursor.digits() != 4 || offset[OFFSET_BYTES] != b' ' {
        return None;
    }
    let (hours, minutes) = (cursor.number(2)?, cursor.number(2)?);
    let minutes = sign * i64::from(hours * 60 + minutes);
    let found = iso(text).filter(|found| found.form.assumed() == Assumption::Zone)?;
    let is_zone = minutes.abs() <= OFFSET_MINUTES_MAX && !head::continues(&text[found.bytes..]);
    is_zone.then(|| GeneralTime {
        time: found.time.saturating_add(-minutes * MINUTE_NS),
        bytes: OFFSET_BYTES + 1 + found.bytes,
        assumed: Assumption::Nothing,
        zone: None,
        is_full: true,
    })
}

/// The largest offset of a zone.
const OFFSET_MINUTES_MAX: i64 = 14 * 60;

/// `(3) Nov27 00:51:25 Worker4 [Main] >> …` of BeeGFS: a level, and no blank before the day.
fn beegfs(line: &[u8], received: Timestamp) -> Option<GeneralTime> {
    const HEAD_BYTES: usize = 4;
    let [b'(', b'0'..=b'9', b')', b' ', ref text @ ..] = *line else {
        return None;
    };
    let found = joined_day(text, received)?;
    Some(GeneralTime {
        time: found.time,
        bytes: HEAD_BYTES + found.bytes,
        assumed: found.form.assumed(),
        zone: None,
        is_full: false,
    })
}

/// `Nov27 00:51:25`: a day right behind its month.
pub(super) fn joined_day(text: &[u8], received: Timestamp) -> Option<TimestampText> {
    const MONTH_BYTES: usize = 3;
    const TIME_BYTES: usize = 14;
    let (month, rest) = text.get(..TIME_BYTES)?.split_at(MONTH_BYTES);
    if !rest[0].is_ascii_digit() {
        return None;
    }
    let turned = [month, b" ", rest].concat();
    let found = syslog(&turned, received).filter(|found| found.bytes == turned.len())?;
    Some(other(found.time, TIME_BYTES, found.form.assumed()))
}

/// `lxc-start web 20261127005125.818 ERROR …`: the time behind the program and the container.
fn lxc(line: &[u8], received: Timestamp) -> Option<GeneralTime> {
    const TIME_DIGITS: usize = 14;
    let head = &line[..line.len().min(SAP_BYTES_MAX)];
    let mut blanks = memchr::memchr_iter(b' ', head);
    let start = blanks.nth(1)? + 1;
    let text = &line[start..];
    let digits = Cursor::new(text).digits();
    let found = general::read(text, received).filter(|_| digits == TIME_DIGITS)?;
    Some(GeneralTime {
        bytes: start + found.bytes,
        ..found
    })
}

/// `00000100:00020000:3.0:1795740685.818426:0:…`: the subsystem, the mask and the processor before Unix time, as Lustre's
/// debug log has them.
fn lustre(line: &[u8]) -> Option<GeneralTime> {
    const MASKS_BYTES: usize = 18;
    const PROCESSOR_BYTES_MAX: usize = 12;
    let (masks, rest) = line.split_at_checked(MASKS_BYTES)?;
    let is_mask = |mask: &[u8]| mask[..8].iter().all(u8::is_ascii_hexdigit) && mask[8] == b':';
    let colon = memchr::memchr(b':', &rest[..rest.len().min(PROCESSOR_BYTES_MAX)])?;
    let time = &rest[colon + 1..];
    let is_it = is_mask(&masks[..9]) && is_mask(&masks[9..]) && time.get(10) == Some(&b'.');
    let found = leading_epoch(time).filter(|_| is_it)?;
    Some(GeneralTime {
        time: found,
        bytes: MASKS_BYTES + colon + 11,
        assumed: Assumption::Nothing,
        zone: None,
        is_full: true,
    })
}

/// `https://shop.example|1795740685|php|192.0.2.7|…`: the address of a site before Unix time, as Drupal writes it.
fn drupal(line: &[u8]) -> Option<GeneralTime> {
    let bar = memchr::memchr(b'|', &line[..line.len().min(SAP_BYTES_MAX)])?;
    let time = &line[bar + 1..];
    let found = leading_epoch(time).filter(|_| time.get(10) == Some(&b'|'))?;
    Some(GeneralTime {
        time: found,
        bytes: bar + 11,
        assumed: Assumption::Nothing,
        zone: None,
        is_full: true,
    })
}

/// `2026-11-27.00:51:25 zpool create …`, as `zpool history` prints it.
fn zpool(line: &[u8]) -> Option<GeneralTime> {
    const TIME_BYTES: usize = 19;
    let text = line.get(..TIME_BYTES)?;
    let turned = [&text[..10], b" ", &text[11..]].concat();
    let is_it = text[4] == b'-' && matches!(line.get(TIME_BYTES), Some(b' ') | None);
    let found = iso(&turned).filter(|found| is_it && found.bytes == TIME_BYTES)?;
    Some(GeneralTime {
        time: found.time,
        bytes: TIME_BYTES,
        assumed: found.form.assumed(),
        zone: None,
        is_full: true,
    })
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
    fn lines_of_products_have_their_times() {
        let time = Timestamp(1_795_740_685_000_000_000);
        for (line, minutes) in [
            ("+0000 2026-11-27 00:51:25 INFO x", Some(0)),
            ("+0100 2026-11-27 00:51:25 INFO x", Some(-60)),
            ("-0530 2026-11-27 00:51:25 INFO x", Some(330)),
            ("+9900 2026-11-27 00:51:25 INFO x", None),
            ("+0100 2026-11-27 00:51:25Z x", None),
            ("(3) Nov27 00:51:25 Worker4 [Main] >> x", Some(0)),
            ("(3) Nov 27 00:51:25 x", None),
            ("lxc web 20261127005125.000 ERROR x", Some(0)),
            ("lxc is a thing of 2026", None),
            (
                "00000100:00020000:3.0:1795740685.000000:0:7:0:(a.c:7:f()) x",
                Some(0),
            ),
            ("00000100:0002zz00:3.0:1795740685.000000:0:7", None),
            ("2026-11-27.00:51:25 zpool create tank", Some(0)),
            ("10.11.12.13:51 refused", None),
            ("https://a.example|1795740685|php|192.0.2.7|x", Some(0)),
            ("https://a.example/1795740685|php", None),
        ] {
            let found = of_product(line.as_bytes(), RECEIVED).map(|found| found.time);
            let expected = minutes.map(|minutes| time.saturating_add(minutes * MINUTE_NS));
            assert_eq!(found, expected, "{line}");
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

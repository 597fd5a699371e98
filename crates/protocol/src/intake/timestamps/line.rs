//! The time that a plain line shows.
//!
//! It stands at the start, or behind parts that programs put before it: brackets, levels, numbers, names
//! of processes and machines, names of fields. A word of a sentence is no such part: behind it, a time
//! is what the line is about (`expires 2027-01-01 00:00:00`). Last, a time that is all that stands in
//! square brackets counts wherever they are near the start.

use logpond_record::{Assumption, Timestamp};

use super::cursor::Cursor;
use super::dates;
use super::epoch::{hexadecimal, leading_epoch, tai64};
use super::general::{self, GeneralTime};
use super::labelled::{behind_word, of_product, sap, tine};
use super::programs::{abseil, chromium, cmtrace, errpt, exponential, labelled, meteor, pan_os};
use super::utc::{in_utc, is_utc};
use super::{DAY_NS, TimestampText, continues, iso, zones};
use crate::intake::timestamps::traditional::syslog;
use crate::intake::without_mark;

/// The most parts before a time.
const PARTS_MAX: usize = 10;

/// The most bytes of a part, and of brackets that a time is looked for in.
pub(super) const PART_BYTES_MAX: usize = 96;

/// How far into a line a time in brackets is looked for, in bytes.
const BRACKETS_BYTES_MAX: usize = 512;

/// How far into an event of Windows its time is looked for, in bytes.
pub(super) const WITHIN_BYTES_MAX: usize = 2048;

/// The most brackets that are looked at.
const BRACKETS_MAX: usize = 8;

/// Names of fields that hold the time of a line, in small letters.
const NAMES: [&[u8]; 20] = [
    b"@t",
    b"@timestamp",
    b"_time",
    b"asctime",
    b"at",
    b"date",
    b"date-time",
    b"datetime",
    b"end-date",
    b"eventtime",
    b"log_time",
    b"start-date",
    b"t",
    b"time",
    b"time_iso8601",
    b"time_local",
    b"timestamp",
    b"ts",
    b"utc",
    b"when",
];

/// Words that products put before the time: load balancers their protocol, others as they are.
const WORDS: [&[u8]; 17] = [
    b"http", b"https", b"h2", b"grpcs", b"ws", b"wss", b"tls", b"tcp", b"udp", b"stdout",
    b"stderr", b"alert", // Ceph's log of the cluster.
    b"cluster",
    b"audit", // The Java Service Wrapper, runners of GitHub's and Azure's pipelines.
    b"jvm", b"runner", b"worker",
];

/// The most tags before a text, and the most bytes of one.
const TAGS_MAX: usize = 4;
const TAG_BYTES_MAX: usize = 128;

/// Starts of lines whose time stands behind a word, further on.
const WITHIN: [(&[u8], &[u8]); 9] = [
    // OSSEC, Wazuh.
    (b"** Alert ", b"Alert "),
    // Windows' events.
    (b"<Event", b"SystemTime='"),
    (b"<Event", b"SystemTime=\""),
    // Oracle's Messaging Server.
    (b"<co ts=\"", b"<co ts=\""),
    (b"=====", b" at "),
    // Rails.
    (b"Started ", b" at "),
    (b"Cloud-init v. ", b" at "),
    // Windows' setup.
    (b">>>", b"start "),
    (b"<<<", b"end "),
];

/// The time of a line.
pub(super) fn find(line: &[u8], received: Timestamp) -> Option<GeneralTime> {
    let line = without_mark(line);
    if line.starts_with(b"<![LOG[") {
        return cmtrace(line);
    }
    if line.starts_with(b"1,20")
        && let Some(found) = pan_os(line)
    {
        return Some(found);
    }
    labelled(line)
        .or_else(|| leading(line, received, 0))
        .or_else(|| exponential(line).or_else(|| chromium(line, received)))
        .or_else(|| errpt(line))
        .or_else(|| sap(line).or_else(|| tine(line)))
        .or_else(|| of_product(line, received))
        .or_else(|| in_brackets(line, received))
        .or_else(|| within(line, received))
        .or_else(|| behind_word(line, received))
        .or_else(|| in_object(line, received))
        .map(|found| if is_utc(line) { in_utc(found) } else { found })
}

/// True if a line begins with a time, or with one in brackets as access logs do.
pub(super) fn is_at_start(line: &[u8], received: Timestamp) -> bool {
    let line = without_mark(line);
    leading(line, received, 0).is_some()
        || memchr::memchr(b'[', &line[..line.len().min(BRACKETS_BYTES_MAX)])
            .is_some_and(|bracket| super::access(&line[bracket + 1..]).is_some())
}

/// The time that a text begins with, behind what may stand before it. `depth` is the number of brackets
/// that it stands in.
fn leading(text: &[u8], received: Timestamp, depth: usize) -> Option<GeneralTime> {
    let mut rest = text;
    for part in 0..PARTS_MAX {
        if let Some(found) = here(rest, part == 0, received) {
            return Some(found);
        }
        rest = match *rest.first()? {
            open @ (b'[' | b'(' | b'<' | b'{') => match bracketed(rest, open, received, depth) {
                BracketContent::Time(found) => return Some(found),
                BracketContent::Other(after) => after,
            },
            _ => behind_part(rest)?,
        };
    }
    None
}

/// The time that a text begins with.
fn here(text: &[u8], is_first: bool, received: Timestamp) -> Option<GeneralTime> {
    let (first, second) = (*text.first()?, text.get(1));
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    match first {
        b'0'..=b'9' => {
            let is_iso = text.get(4).is_some_and(|b| matches!(b, b'-' | b'/'));
            if is_iso && let Some(found) = iso(text).filter(|found| is_ended(text, found)) {
                return Some(of_written(&found));
            }
            let found = general::read(text, received);
            found.or_else(|| {
                let has_fraction = text.get(10) == Some(&b'.') && is_digit(text.get(13));
                let found = leading_epoch(text).filter(|_| is_first || has_fraction);
                let (found, bytes) = found
                    .map(|found| (found, 10))
                    .or_else(|| hexadecimal(text))?;
                Some(certain(found, bytes))
            })
        }
        b'I' | b'W' | b'E' | b'F' | b'D' | b'C' if is_digit(second) => {
            let found = general::read_google(&text[1..], received);
            found
                .or_else(|| meteor(text, received))
                .or_else(|| abseil(text))
        }
        // Monit.
        b'U' if text.starts_with(b"UTC ") => here(&text[4..], is_first, received).map(in_utc),
        b'A'..=b'Z' if is_first && is_zone_ahead(text) => zoned(text, received),
        b'A'..=b'Z' => {
            if let Some(found) = syslog(text, received).filter(|found| is_ended(text, found)) {
                return Some(of_written(&found));
            }
            general::read(text, received)
        }
        b'a'..=b'z' => general::read(text, received).filter(|found| found.is_full || is_first),
        b'@' => tai64(text).map(|(time, bytes)| certain(time, bytes)),
        _ => None,
    }
}

/// True for `PDT Apr `: the name of a zone before a month, as older versions of Monit write it.
fn is_zone_ahead(text: &[u8]) -> bool {
    let letters = text.iter().take(ZONE_BYTES_MAX + 1);
    let letters = letters.take_while(|byte| byte.is_ascii_uppercase()).count();
    matches!(letters, 3..=ZONE_BYTES_MAX)
        && text[letters..].starts_with(b" ")
        && text
            .get(letters + 1..letters + 4)
            .is_some_and(dates::is_month)
}

/// The time of a month, a day and a clock behind the name of a zone.
fn zoned(text: &[u8], received: Timestamp) -> Option<GeneralTime> {
    let blank = memchr::memchr(b' ', text)?;
    let (zone, time) = (&text[..blank], &text[blank + 1..]);
    let length = syslog(time, received)?.bytes;
    let turned = [&time[..length], b" ", zone].concat();
    let found = general::read(&turned, received).filter(|found| found.bytes == turned.len())?;
    Some(GeneralTime {
        bytes: text.len().min(blank + 1 + length),
        ..found
    })
}

/// The most letters of the name of a zone before a time.
const ZONE_BYTES_MAX: usize = 4;

/// True if nothing behind a time that was read by hand can belong to it.
fn is_ended(text: &[u8], found: &TimestampText) -> bool {
    match &text[found.bytes..] {
        [] => true,
        behind @ [b' ', b'A'..=b'Z', ..] => !continues(behind) && !zones::is_next(behind),
        [b'0'..=b'9' | b'A'..=b'Z' | b'.' | b',' | b':', ..] => false,
        [b' ', b'1' | b'2', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', ..] => false,
        behind => !continues(behind),
    }
}

fn of_written(found: &TimestampText) -> GeneralTime {
    GeneralTime {
        time: found.time,
        bytes: found.bytes,
        assumed: found.form.assumed(),
        zone: None,
        is_full: true,
    }
}

pub(super) fn certain(time: Timestamp, bytes: usize) -> GeneralTime {
    GeneralTime {
        time,
        bytes,
        assumed: Assumption::Nothing,
        zone: None,
        is_full: true,
    }
}

/// The content of brackets.
enum BracketContent<'t> {
    Time(GeneralTime),
    /// No time; what follows them, or what they hold if they do not end.
    Other(&'t [u8]),
}

fn bracketed(text: &[u8], open: u8, received: Timestamp, depth: usize) -> BracketContent<'_> {
    let close = match open {
        b'[' => b']',
        b'(' => b')',
        b'<' => b'>',
        _ => b'}',
    };
    let inside = &text[1..];
    let head = &inside[..inside.len().min(PART_BYTES_MAX)];
    let end = memchr::memchr(close, head);
    if depth == 0 {
        let held = &inside[..end.unwrap_or(inside.len())];
        // A time may be followed by what looks like the end of the brackets.
        let found = here(inside, true, received).or_else(|| leading(held, received, 1));
        if let Some(found) = found {
            return BracketContent::Time(found);
        }
    }
    BracketContent::Other(end.map_or(inside, |end| &inside[end + 1..]))
}

/// The text behind a part that may stand before a time.
fn behind_part(text: &[u8]) -> Option<&[u8]> {
    let behind = match text.first()? {
        b' ' | b'\t' => 1,
        0x1b | b'\\' => colour(text)?,
        b'"' | b'\'' => quoted(text)?,
        b'-' | b'|' | b'*' | b'#' | b'%' | b'>' | b'=' | b',' | b':' | b';' | b'!' | b']'
        | b'.' => 1,
        b'0'..=b'9' => number(text),
        b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'@' | b'/' => word(text)?,
        _ => return None,
    };
    let rest = text.get(behind..)?;
    let blanks = rest.iter().take(PART_BYTES_MAX);
    let blanks = blanks.take_while(|b| matches!(b, b' ' | b'\t')).count();
    Some(&rest[blanks..])
}

/// Bytes of an escape sequence of a terminal, as it is or as loggers escape it.
fn colour(text: &[u8]) -> Option<usize> {
    const STARTS: [&[u8]; 4] = [b"\x1b[", b"\\x1b[", b"\\u001b[", b"\\033["];
    let start = STARTS.iter().find(|start| text.starts_with(start))?.len();
    let head = text[start..].iter().take(PART_BYTES_MAX);
    let end = head.into_iter().position(u8::is_ascii_alphabetic)?;
    Some(start + end + 1)
}

/// Bytes of a quote, if what is quoted is a time or the name of one, or of the quoted text with the
/// separator behind it, if it is no name.
fn quoted(text: &[u8]) -> Option<usize> {
    let quote = text[0];
    let inside = &text[1..];
    if inside
        .first()
        .is_some_and(|b| b.is_ascii_digit() || *b == b'@')
    {
        return Some(1);
    }
    let head = &inside[..inside.len().min(PART_BYTES_MAX)];
    let end = memchr::memchr(quote, head)?;
    let mut after = Cursor::new(&inside[end + 1..]);
    after.eat_spaces(2);
    let behind = 1 + end + 1;
    if !matches!(after.peek(), Some(b':' | b'=')) || is_time_name(&head[..end]) {
        return Some(behind);
    }
    // Another member of an object that does not end.
    after.at += 1;
    after.eat_spaces(2);
    let value = after.rest();
    let value = &value[..value.len().min(PART_BYTES_MAX)];
    let length = match value.strip_prefix(b"\"") {
        Some(inside) => memchr::memchr(b'"', inside)? + 2,
        None => memchr::memchr(b',', value)?,
    };
    Some(behind + after.at + length)
}

/// Bytes of a word that begins with a digit: a number, an address, an id. A colon in it may part it from
/// the time.
fn number(text: &[u8]) -> usize {
    let is_part = |byte: &&u8| !matches!(byte, b' ' | b'\t' | b'|' | b',' | b';' | b']' | b'[');
    let length = text.iter().take(PART_BYTES_MAX).take_while(is_part).count();
    let colon = memchr::memchr(b':', &text[..length]);
    let behind_colon = |at: usize| {
        let digits = Cursor::new(&text[at + 1..]).digits();
        matches!(digits, 4 | 5 | 8)
    };
    match colon {
        Some(at) if behind_colon(at) => at + 1,
        _ => length,
    }
}

/// Bytes of a word that may stand before a time.
fn word(text: &[u8]) -> Option<usize> {
    let head = &text[..text.len().min(PART_BYTES_MAX)];
    let is_letter = |byte: &&u8| byte.is_ascii_alphabetic();
    let letters = head.iter().take_while(is_letter).count();
    let is_end = |byte: Option<&u8>| {
        byte.is_none_or(|b| !b.is_ascii_alphanumeric() && !matches!(b, b'_' | b'.'))
    };
    if is_end(head.get(letters)) && letters > 0 {
        let word = &head[..letters];
        if letters == 1
            && head
                .get(1)
                .is_some_and(|b| matches!(b, b' ' | b',' | b'/' | b':' | b'|'))
        {
            return Some(1);
        }
        let is_one = |words: &[&[u8]]| words.iter().any(|one| one.eq_ignore_ascii_case(word));
        if super::is_level(word) || is_one(&WORDS) && head.get(letters) == Some(&b' ') {
            return Some(letters);
        }
    }
    let is_part =
        |byte: &&u8| !matches!(byte, b' ' | b'\t' | b'|' | b'=' | b',' | b';' | b'"' | b'[');
    let length = head.iter().take_while(is_part).count();
    if head.get(length) == Some(&b'=') {
        return pair(text, length);
    }
    let word = &head[..length];
    // `WARNING:root:2026-…`
    let behind_colon = memchr::memchr_iter(b':', word).find(|at| begins_with_year(&word[at + 1..]));
    if let Some(colon) = behind_colon {
        return Some(colon + 1);
    }
    if let Some(colons) = memchr::memmem::find(word, b"::") {
        return Some(colons + 2);
    }
    // `RP/0/RSP0/CPU0:Nov 27 …` of Cisco's IOS XR.
    if word.contains(&b'/')
        && let Some((node, month)) = word.len().checked_sub(4).map(|at| word.split_at(at))
        && month[0] == b':'
        && dates::is_month(&month[1..])
    {
        return Some(node.len() + 1);
    }
    if let Some(name) = word.strip_suffix(b":").or(word.strip_suffix(b"\":"))
        && is_time_name(name)
    {
        return Some(length);
    }
    // `time : 2026-…`, `name   | 2026-…`
    let mut after = Cursor::new(&head[length..]);
    let spaces = after.eat_spaces(PART_BYTES_MAX);
    if spaces > 0 && after.peek() == Some(b':') && is_time_name(word) {
        return Some(length + spaces);
    }
    let is_column = after.peek() == Some(b'|') || head.get(length) == Some(&b'\t');
    if is_column || is_machine(word, &head[length..]) {
        return Some(length);
    }
    None
}

/// True if a date with a year of four digits may begin so.
fn begins_with_year(text: &[u8]) -> bool {
    matches!(
        text,
        [
            b'1' | b'2',
            b'0'..=b'9',
            b'0'..=b'9',
            b'0'..=b'9',
            b'-' | b'/' | b'.',
            b'0'..=b'9',
            ..
        ]
    )
}

/// True if a word is the name of a machine, a process or a source file rather than a word of a sentence.
fn is_machine(word: &[u8], behind: &[u8]) -> bool {
    let is_mark =
        |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'_' | b'.' | b'/' | b'@' | b'#');
    let word = word.strip_suffix(b":").unwrap_or(word);
    let inside = word.strip_suffix(b".").unwrap_or(word);
    // Names of chains of a firewall, of queues: `PVEFW-HOST-IN`.
    let is_constant = word.contains(&b'-')
        && word
            .iter()
            .all(|byte| byte.is_ascii_uppercase() || *byte == b'-');
    // `app[12]: 2026-…`
    let has_process =
        behind.first() == Some(&b'[') && behind.get(1).is_some_and(u8::is_ascii_digit);
    has_process || is_constant || inside.iter().any(is_mark)
}

/// Bytes of a field `name=value`, or of `name=` if the value is the time.
fn pair(text: &[u8], name_bytes: usize) -> Option<usize> {
    let value = &text[name_bytes + 1..];
    if is_time_name(&text[..name_bytes]) {
        let quote = usize::from(matches!(value.first(), Some(b'"' | b'\'')));
        return Some(name_bytes + 1 + quote);
    }
    if value.first() == Some(&b'=') {
        return Some(name_bytes);
    }
    let head = &value[..value.len().min(PART_BYTES_MAX)];
    let length = match head.strip_prefix(b"\"") {
        Some(inside) => memchr::memchr(b'"', inside)? + 2,
        None => head
            .iter()
            .position(|b| matches!(b, b' ' | b'\t' | b',' | b';' | b'|'))?,
    };
    Some(name_bytes + 1 + length)
}

fn is_time_name(name: &[u8]) -> bool {
    NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// A time that is all that stands in square brackets.
fn in_brackets(line: &[u8], received: Timestamp) -> Option<GeneralTime> {
    let head = &line[..line.len().min(BRACKETS_BYTES_MAX)];
    let brackets = memchr::memchr_iter(b'[', head).take(BRACKETS_MAX);
    brackets.into_iter().find_map(|bracket| {
        let inside = &line[bracket + 1..];
        let found = here(inside, false, received).filter(|found| is_likely(found, received))?;
        (inside.get(found.bytes) == Some(&b']')).then_some(found)
    })
}

fn within(line: &[u8], received: Timestamp) -> Option<GeneralTime> {
    let line = behind_tags(line);
    let mut rows = WITHIN.iter().filter(|(start, _)| line.starts_with(start));
    rows.find_map(|(start, mark)| {
        // The data behind an event's head may hold anything; a client's text stands before the others.
        let at = match start {
            [b'<', ..] => memchr::memmem::find(&line[..line.len().min(WITHIN_BYTES_MAX)], mark),
            [b'*', ..] => Some(start.len() - mark.len()),
            _ => memchr::memmem::rfind(line, mark),
        }?;
        if start[0] == b'*' {
            return Some(certain(leading_epoch(&line[at + mark.len()..])?, 10));
        }
        here(&line[at + mark.len()..], false, received).filter(|found| is_likely(found, received))
    })
}

/// `error: refused {"service":"shop","timestamp":"2026-11-27T00:51:25.818Z"}`: the time in an object that ends a
/// line, as winston's format `simple` writes it.
fn in_object(line: &[u8], received: Timestamp) -> Option<GeneralTime> {
    const LEVEL_BYTES_MAX: usize = 8;
    const LABEL: &[u8] = b"\"timestamp\":\"";
    if !line.ends_with(b"}") || !line.first()?.is_ascii_lowercase() {
        return None;
    }
    let colon = memchr::memchr(b':', &line[..line.len().min(LEVEL_BYTES_MAX)])?;
    if !super::is_level(&line[..colon]) {
        return None;
    }
    let object = &line[line.len().saturating_sub(WITHIN_BYTES_MAX)..];
    let at = memchr::memmem::rfind(object, LABEL)? + LABEL.len();
    let found = here(&object[at..], false, received)?;
    (object.get(at + found.bytes) == Some(&b'"')).then_some(found)
}

/// The text behind the tags that Rails writes of a request: `[6c2f-…] [192.0.2.7] Started …`.
pub(crate) fn behind_tags(text: &[u8]) -> &[u8] {
    let mut rest = text;
    for _ in 0..TAGS_MAX {
        let Some(inside) = rest.strip_prefix(b"[") else {
            break;
        };
        let end = memchr::memchr(b']', &inside[..inside.len().min(TAG_BYTES_MAX)]);
        match end.and_then(|end| inside[end + 1..].strip_prefix(b" ")) {
            Some(behind) => rest = behind,
            None => break,
        }
    }
    rest
}

/// True if a time within a line can be that of its event: it is whole, and not in the future.
fn is_likely(found: &GeneralTime, received: Timestamp) -> bool {
    found.is_full && found.time <= received.saturating_add(DAY_NS)
}

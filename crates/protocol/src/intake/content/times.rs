//! Times that messages say: of events whose fields say them in a way of their own (CEF, LEEF, the logs of firewalls),
//! and of objects behind a header.
//!
//! | event | fields |
//! | --- | --- |
//! | CEF | `rt`, `end`, `start`, `deviceReceiptTime`, `FTNTFGTeventtime`, `endTime`: Unix time since 1970, or `Mar 02 2026 00:00:06.123 UTC` |
//! | LEEF | `devTime`, `ReceiveTime`: likewise |
//! | Fortinet, Sophos | `eventtime` in nanoseconds or seconds, else `date`, `time` and `tz` |
//! | PAN-OS | the second value, or a later one with a zone |
//! | WELF of Stormshield | `time`, and `tz` behind it |

use logpond_record::{Assumption, Civil, TimeSource, Timestamp};
use memchr::memmem;

use crate::intake::timestamps::TimeReader;

/// Keys of CEF's extension, the most certain first.
const CEF: [&str; 8] = [
    "rt",
    "end",
    "start",
    "deviceReceiptTime",
    "FTNTFGTeventtime",
    "FortinetFortiGateeventtime",
    // Cisco's gateways for mail and the web.
    "endTime",
    "startTime",
];

/// Keys of LEEF's attributes, likewise.
const LEEF: [&str; 4] = ["devTime", "ReceiveTime", "deviceTime", "TimeGenerated"];

/// The most bytes of a time.
const TIME_BYTES_MAX: usize = 64;

/// The time that an event says, if its form has one of its own.
pub(crate) fn of_event(
    text: &str,
    reader: &TimeReader,
    received: Timestamp,
) -> Option<(Timestamp, Assumption)> {
    let read = |value: &str| instant(value, reader, received);
    match text.as_bytes() {
        [b'C', b'E', b'F', b':', ..] => {
            let values = CEF
                .iter()
                .filter_map(|key| value_of(text, key, &[' ', '|']));
            let found = values.map(until_next_key).find_map(|value| {
                let (time, assumed) = read(value)?;
                Some((value, time, assumed))
            });
            let (value, time, assumed) = found?;
            let zone = || value_of(text, "dtz", &[' ', '|']).map(until_next_key);
            let placed = (assumed == Assumption::Zone)
                .then(zone)
                .flatten()
                .and_then(|zone: &str| read(&format!("{value} {zone}")));
            placed.or(Some((time, assumed)))
        }
        [b'L', b'E', b'E', b'F', b':', ..] => {
            let values = LEEF
                .iter()
                .filter_map(|key| value_of(text, key, &['\t', '|', '^', ' ']));
            let ended = values.map(|value| {
                let end = value.find(['\t', '^', '|']).unwrap_or(value.len());
                until_next_key(&value[..end])
            });
            ended.into_iter().find_map(read)
        }
        [b'1', b',', ..] => reader.of_line(text.as_bytes(), received),
        _ => of_pairs(text, reader, received),
    }
}

/// How far into the pairs of a device `eventtime` is looked for, in bytes.
const EVENT_BYTES_MAX: usize = 256;

/// True for the pairs of a device that may say a time of its own. A header may have taken the date.
pub(crate) fn is_of_device(text: &str) -> bool {
    let head = &text.as_bytes()[..text.len().min(EVENT_BYTES_MAX)];
    text.starts_with("date=")
        || memmem::find(head, b"eventtime=").is_some()
        || memmem::find(head, ZONE_KEY.as_bytes()).is_some()
}

/// The keys of a zone behind a time: an offset, and FortiWeb's `(GMT+1:00)Brussels`.
const ZONE_KEY: &str = " tz=";
const NAMED_ZONE_KEY: &str = " timezone=\"(GMT";

/// The time of pairs whose zone stands in a pair of its own, behind the time.
pub(crate) fn of_zone(
    text: &str,
    reader: &TimeReader,
    received: Timestamp,
) -> Option<(Timestamp, Assumption)> {
    if text.starts_with("1,") {
        return of_event(text, reader, received);
    }
    let head = &text.as_bytes()[..text.len().min(EVENT_BYTES_MAX)];
    let behind = |key: &str| text.get(memmem::find(head, key.as_bytes())? + key.len()..);
    let zone = match behind(ZONE_KEY) {
        Some(zone) => zone.split(' ').next()?.trim_matches('"').to_owned(),
        None => padded_offset(behind(NAMED_ZONE_KEY)?.split_once(')')?.0)?,
    };
    let value = |key| {
        let value = value_of(text, key, &[' '])?;
        match value.strip_prefix('"') {
            Some(inside) => Some(&inside[..inside.find('"')?]),
            None => value.split(' ').next(),
        }
    };
    let time = value("time")?;
    let date = value("date").unwrap_or_default();
    if date.len() + time.len() + zone.len() > TIME_BYTES_MAX {
        return None;
    }
    let written = format!("{date} {time}{zone}");
    instant(written.trim_start(), reader, received)
}

/// `+1:00` as `+01:00`, and nothing as UTC.
fn padded_offset(offset: &str) -> Option<String> {
    let Some(sign) = offset.chars().next() else {
        return Some("Z".to_owned());
    };
    let (hours, minutes) = offset[sign.len_utf8()..].split_once(':')?;
    Some(format!("{sign}{hours:0>2}:{minutes}"))
}

/// The time of pairs with an instant, or with a date and a time of day.
fn of_pairs(
    text: &str,
    reader: &TimeReader,
    received: Timestamp,
) -> Option<(Timestamp, Assumption)> {
    let separators = [' '];
    let bare = |key| {
        let value: &str = value_of(text, key, &separators)?;
        let value = value.split(' ').next()?;
        Some(value.trim_matches('"'))
    };
    let seconds = bare("eventtime").and_then(|value| instant(value, reader, received));
    if let Some(found) = seconds {
        return Some(found);
    }
    let Some(date) = bare("date") else {
        return of_zone(text, reader, received);
    };
    let time = bare("time")?;
    let zone = bare("tz").unwrap_or("");
    instant(&format!("{date} {time}{zone}"), reader, received)
}

/// The text behind a key that stands at the beginning or behind a separator.
fn value_of<'a>(text: &'a str, key: &str, separators: &[char]) -> Option<&'a str> {
    let mut places = memmem::find_iter(text.as_bytes(), key.as_bytes());
    let at = places.find(|at| {
        let is_start = *at == 0 || text[..*at].ends_with(separators);
        is_start && text[at + key.len()..].starts_with('=')
    })?;
    Some(&text[at + key.len() + 1..])
}

/// A value up to the blank before the next key.
fn until_next_key(value: &str) -> &str {
    let mut limit = value.len().min(TIME_BYTES_MAX);
    while !value.is_char_boundary(limit) {
        limit -= 1;
    }
    let head = &value[..limit];
    match head.find('=') {
        Some(equals) => head[..equals]
            .rsplit_once(' ')
            .map_or("", |(value, _)| value),
        None => head.trim_end(),
    }
}

/// The instant that a value is.
fn instant(
    value: &str,
    reader: &TimeReader,
    received: Timestamp,
) -> Option<(Timestamp, Assumption)> {
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    // Only these numbers of digits are seconds, milliseconds and so on of this age.
    if is_number && !matches!(value.len(), 10 | 13 | 16 | 19) {
        return None;
    }
    let written = reader.whole(value.as_bytes(), received, true)?;
    Some((written.time, written.form.assumed()))
}

/// Offsets from UTC are multiples of this, and at most [`OFFSET_S_MAX`].
const OFFSET_STEP_S: i64 = 15 * 60;

/// The largest offset from UTC that is in use.
const OFFSET_S_MAX: i64 = 14 * 60 * 60;

const DAY_S: i64 = 86_400;

/// The time that an object says, if the header says the same with less: without a year or a zone, or in
/// whole seconds. An object that says another second is about another time, and the header counts.
pub(crate) fn of_object(
    text: &str,
    header: Option<Timestamp>,
    source: TimeSource,
    exact: impl FnOnce() -> Option<Timestamp>,
) -> Option<Timestamp> {
    let (Some(header), TimeSource::Header(assumed)) = (header, source) else {
        return None;
    };
    let (header, header_ns) = header.seconds();
    if !text.starts_with('{') || header_ns != 0 {
        return None;
    }
    let exact = exact()?;
    let (own, own_ns) = exact.seconds();
    let difference = own - header;
    let is_same = match assumed {
        Assumption::Nothing => difference == 0,
        Assumption::Zone => is_offset(difference),
        Assumption::Year => is_same_in_year(header, own, 0),
        Assumption::YearAndZone => {
            let within = difference.rem_euclid(DAY_S);
            let offsets = [within, within - DAY_S];
            let mut offsets = offsets.iter().filter(|offset| is_offset(**offset));
            offsets.any(|offset| is_same_in_year(header, own, *offset))
        }
        _ => false,
    };
    let is_better = assumed != Assumption::Nothing || own_ns != 0;
    (is_same && is_better).then_some(exact)
}

fn is_offset(seconds: i64) -> bool {
    seconds % OFFSET_STEP_S == 0 && seconds.abs() <= OFFSET_S_MAX
}

/// True if both are one moment of a year, of any two years, and the header's clock is so far behind.
fn is_same_in_year(header: i64, own: i64, offset: i64) -> bool {
    let header = Civil::from_seconds(header + offset);
    let own = Civil::from_seconds(own);
    Civil {
        year: own.year,
        ..header
    } == own
}

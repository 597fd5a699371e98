//! What the message of a syslog record is made of, if it is made of fields.
//!
//! Invariants: the header's fields keep their names, so a field of the message that has the same
//! name is called `body.` and that name; so are those that begin with `_`, which are the words of an
//! intake (`_PID`) and not to be pretended. What cannot be told apart into fields stays one text.

mod cef;
mod checkpoint;
mod events;
mod ise;
mod labels;
mod leef;
mod panos;
mod snare;
mod times;

pub(crate) use times::{of_event, of_zone};

use logpond_record::{Assumption, TimeSource, Timestamp, Value};

use super::access_format::Times;
use super::outline::Outline;
use super::sketch::{Parts, Sketch};
use super::timestamps::TimeReader;
use super::{Beside, audit, json, levels, logfmt, ltsv, programs};

/// What says that a message is JSON (Common Event Expression, as rsyslog and others write it).
const CEE_COOKIE: &str = "@cee:";

/// Whether a line begins like an event of a format that needs no header.
pub(crate) fn is_candidate(line: &[u8]) -> bool {
    line.starts_with(b"CEF:") || line.starts_with(b"LEEF:") || panos::is_candidate(line)
}

/// True for an event of Windows as XML.
pub(crate) fn is_windows_event(line: &[u8]) -> bool {
    events::is_candidate(line)
}

/// True for events that may say a time of their own, see [`times`].
fn is_event(text: &str) -> bool {
    is_candidate(text.as_bytes()) || times::is_of_device(text)
}

/// Reads the fields of a message into `outline`; their values are given back.
pub(crate) fn read<'a>(text: &'a str, outline: &mut Outline) -> Option<Parts<'a>> {
    match text.as_bytes() {
        [b'{', ..] => json::flatten_line(text, outline, 12).ok(),
        [b'C', b'E', b'F', b':', ..] => cef::read(text, outline),
        [b'L', b'E', b'E', b'F', b':', ..] => leef::read(text, outline),
        [b'M', b'S', b'W', b'i', b'n', ..] => snare::read(text, outline),
        [b'[', ..] => checkpoint::read(text, outline),
        bytes if panos::is_candidate(bytes) => panos::read(text, outline),
        bytes if events::is_candidate(bytes) => events::read(text, outline),
        _ if labels::is_firepower(text) => labels::firepower(text, outline),
        bytes if audit::is_candidate(bytes) => audit::read(text, outline),
        bytes if ltsv::is_candidate(bytes) => ltsv::read(text, outline),
        bytes if logfmt::is_candidate(bytes) => {
            let pairs = logfmt::read(text, outline);
            pairs.or_else(|| labels::meraki(text, outline))
        }
        _ => labels::meraki(text, outline),
    }
}

/// Draws the fields of a sketch's message in its place, if it has any; gives what stands beside them.
pub(crate) fn draw<'a>(
    sketch: &mut Sketch<'_, 'a>,
    outline: &mut Outline,
    times: &TimeReader,
    received: Timestamp,
) -> Beside<'a> {
    let Some(message) = sketch.message_text() else {
        return Beside::default();
    };
    let (cookie, text) = match message.strip_prefix(CEE_COOKIE) {
        Some(after) => {
            let text = after.trim_start_matches(' ');
            message.split_at(message.len() - text.len())
        }
        None => ("", message),
    };
    // A record has the zone and the year that many headers lack.
    let is_guess = sketch.parts.time_source != TimeSource::Header(Assumption::Nothing);
    let mut values = sketch.parts.values.iter();
    let is_ise = |value: &Value<'_>| match value {
        Value::Str(name) => name.starts_with(ise::CATEGORY),
        _ => false,
    };
    let found = if values.any(is_ise) {
        ise::read(text, outline)
    } else {
        read(text, outline)
    };
    let Some(parts) = found else {
        return of_program(message, sketch, times, received, is_guess);
    };
    // The instant that the message says by itself, with nothing left open.
    let exact = || {
        let (_, written, _) = outline.find_time(text.as_bytes(), received, times).0?;
        (written.form.assumed() == Assumption::Nothing).then_some(written.time)
    };
    let exact = times::of_object(text, sketch.parts.time, sketch.parts.time_source, exact);
    sketch.take_message();
    sketch.literal(cookie);
    let level = outline.draw_in(sketch, text, parts, received, times);
    let Beside { fields, time, .. } = audit::beside(text);
    let event = || {
        is_event(text)
            .then(|| times::of_event(text, times, received))
            .flatten()
    };
    // A time that leaves nothing open counts more than a header's that does.
    let time = time.or_else(event);
    let time = time.filter(|(_, assumed)| is_guess && *assumed == Assumption::Nothing);
    let exact = exact.map(|time| (time, Assumption::Nothing));
    Beside {
        fields,
        time: time.or(exact),
        level: level.map(|level| level.severity.name()),
        beats_level: level.is_some_and(|level| level.beats),
    }
}

/// Draws a message that begins as only one program writes it, or makes the fields of a daemon's sentence.
fn of_program<'a>(
    message: &'a str,
    sketch: &mut Sketch<'_, 'a>,
    times: &TimeReader,
    received: Timestamp,
    is_guess: bool,
) -> Beside<'a> {
    let mut values = sketch.parts.values.iter();
    let is_daemon = |value: &Value<'_>| match value {
        Value::Str(name) => programs::is_daemon(name),
        _ => false,
    };
    if values.any(is_daemon)
        && let Some(Value::Str(name)) = sketch.value(b"app")
    {
        let fields = programs::fields_of_sentence(Some(name), message);
        return Beside {
            fields,
            ..Beside::default()
        };
    }
    let Some(candidate) = programs::candidate(message.as_bytes()) else {
        return Beside::default();
    };
    let place = sketch.take_message();
    let times = Times {
        reader: times,
        received,
    };
    let level = levels::of_line(message.as_bytes());
    if let Some(beside) = programs::draw(candidate, message, level, times, sketch) {
        return Beside {
            time: programs::certain(beside.time).filter(|_| is_guess),
            ..beside
        };
    }
    sketch.rewind(place);
    sketch.message(message.as_bytes());
    Beside::default()
}

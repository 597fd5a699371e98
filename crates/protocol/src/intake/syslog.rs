//! Syslog messages: RFC 5424, RFC 3164 and what is neither.
//!
//! Invariants: the header's fields are slots, its punctuation is literal; the message is always a
//! slot, empty where there is none, and may hold any bytes. Nothing is lost: a message that no
//! dialect knows is its priority and its content, or plain text.
//!
//! Behind the priority stands a header of one of the RFCs, or of a vendor's: [`vendors`] lists
//! those, a row each, and [`rule`] fits them. A priority that is none is the field
//! `invalid_priority`. A text without a priority has a header only if it is beyond doubt. A mark of
//! byte order before all of it, which .NET's encoders write, is literal.

mod rfc3164;
mod rfc5424;
mod rule;
mod vendors;

use std::sync::LazyLock;

use logpond_record::{Message, Timestamp, Value};

use super::BYTE_ORDER_MARK;
use super::sketch::Sketch;
use super::timestamps::TimeReader;
use rfc3164::{Certainty, Origin};
use rule::Context;

/// The highest priority: facility 23, severity 7.
const PRIORITY_MAX: i64 = 191;

/// The most digits of what is taken for a priority that is none.
const INVALID_PRIORITY_BYTES_MAX: usize = 8;

/// The most blanks between a priority and what has no header.
const BLANKS_MAX: usize = 4;

/// Fields of a header are no longer than this; longer words are content.
const WORD_BYTES_MAX: usize = 255;

/// Draws a syslog message; gives `None` if it is none.
///
/// `anything` says that the sender speaks syslog, so that a priority alone is enough.
pub(crate) fn draw<'s, 'a>(
    raw: &'a [u8],
    received: Timestamp,
    anything: bool,
    times: &TimeReader,
    scratch: &'s mut Vec<u8>,
) -> Option<Sketch<'s, 'a>> {
    let mut sketch = Sketch::new(scratch, 10);
    let context = Context { times, received };
    let raw = match raw.strip_prefix(BYTE_ORDER_MARK.as_bytes()) {
        Some(behind) => {
            sketch.literal(BYTE_ORDER_MARK);
            behind
        }
        None => raw,
    };
    if let Some((priority, after)) = priority(raw) {
        draw_priority(priority, &mut sketch);
        let is_drawn = draw_header(after, context, &mut sketch).is_some();
        if !is_drawn && !anything {
            return None;
        }
        if !is_drawn {
            sketch.message(after);
        }
        return Some(sketch);
    }
    if let Some((digits, after)) = invalid_priority(raw).filter(|_| anything) {
        sketch.literal("<");
        sketch.text("invalid_priority:t", digits);
        sketch.literal(">");
        if draw_header(after, context, &mut sketch).is_none() {
            sketch.message(after);
        }
        return Some(sketch);
    }
    if vendors::is_alone(raw) {
        let mut rules = vendors::ALONE.iter();
        if rules.any(|rule| rule.draw(raw, context, &mut sketch).is_some()) {
            return Some(sketch);
        }
    }
    let before = sketch.mark();
    rfc3164::draw_alone(raw, anything, context, &mut sketch)?;
    if let Some(rule) = labelled(&sketch) {
        sketch.rewind(before);
        if rule.rule.draw(raw, context, &mut sketch).is_none() {
            rfc3164::draw_alone(raw, anything, context, &mut sketch)?;
        }
    }
    Some(sketch)
}

/// How many bytes of a line are the header of a syslog message, with the spaces behind it; `None` if the line
/// is no such message.
pub fn header_bytes(line: &[u8]) -> Option<usize> {
    static TIMES: LazyLock<TimeReader> = LazyLock::new(TimeReader::new);
    if !is_candidate(line) {
        return None;
    }
    let mut scratch = Vec::new();
    // Whenever it came, the header is as long.
    let sketch = draw(line, Timestamp(0), false, &TIMES, &mut scratch)?;
    let message = match &sketch.parts.message {
        Message::Part(Value::Str(text)) => text.len(),
        Message::Part(Value::Bytes(bytes)) => bytes.len(),
        _ => return None,
    };
    line.len().checked_sub(message)
}

/// Draws what follows a priority, or nothing.
fn draw_header<'a>(
    text: &'a [u8],
    context: Context<'_>,
    sketch: &mut Sketch<'_, 'a>,
) -> Option<()> {
    let before = sketch.mark();
    if rfc5424::draw(text, context, sketch).is_some() {
        let message = sketch.message_text().unwrap_or_default();
        if !vendors::is_message(message.as_bytes()) {
            return Some(());
        }
        sketch.rewind(before);
        let drawn = vendors::RELAYED_BY_5424.draw(text, context, sketch);
        return drawn.or_else(|| rfc5424::draw(text, context, sketch));
    }
    sketch.rewind(before);
    // Most messages end here; only what leaves a doubt is worth the time that the rules take.
    let traditional = rfc3164::draw(text, Origin::Sender, context, sketch);
    if traditional.is_some_and(|certainty| certainty != Certainty::Timed) {
        let Some(rule) = labelled(sketch) else {
            return Some(());
        };
        sketch.rewind(before);
        let drawn = rule.rule.draw(text, context, sketch);
        return drawn.or_else(|| rfc3164::draw(text, Origin::Sender, context, sketch).map(|_| ()));
    }
    sketch.rewind(before);
    let mut rules = vendors::RULES.iter();
    if rules.any(|rule| rule.draw(text, context, sketch).is_some()) {
        return Some(());
    }
    // Some put blanks before what has no header.
    let behind = text.trim_ascii_start();
    if behind.len() < text.len() && text.len() - behind.len() <= BLANKS_MAX {
        sketch.ascii(&text[..text.len() - behind.len()]);
        if vendors::BARE.draw(behind, context, sketch).is_some() {
            return Some(());
        }
        sketch.rewind(before);
    }
    match traditional {
        Some(_) => rfc3164::draw(text, Origin::Sender, context, sketch).map(|_| ()),
        None => rfc3164::draw_tagged(text, sketch),
    }
}

/// The rule of a vendor whose label, or whose name, stands where a tag would.
fn labelled(sketch: &Sketch<'_, '_>) -> Option<&'static vendors::LabelledRule> {
    if sketch
        .message_text()
        .is_some_and(|text| text.starts_with('*'))
    {
        return Some(&vendors::CONTROLLER);
    }
    let Some(Value::Str(app)) = sketch.value(b"app") else {
        return None;
    };
    let mut rules = vendors::LABELLED.iter();
    rules.find(|rule| rule.label == *app)
}

/// True if `line` begins as a syslog message does: with a priority, with a month and a day, or as lines
/// of today's files do.
pub(crate) fn is_candidate(line: &[u8]) -> bool {
    if let [b'0'..=b'9', ..] = line {
        return rfc3164::is_of_file(line) || vendors::is_alone(line);
    }
    if vendors::is_alone(line) || rfc3164::is_logread(line) {
        return true;
    }
    matches!(
        line,
        [b'<', b'0'..=b'9', ..]
            | [0xef, 0xbb, 0xbf, b'<', b'0'..=b'9', ..]
            | [
                b'A'..=b'Z',
                _,
                _,
                b' ',
                b' ' | b'0'..=b'3',
                b'0'..=b'9',
                b' ',
                ..
            ]
    )
}

/// Reads `<0>` to `<191>`, without leading zeros.
fn priority(raw: &[u8]) -> Option<(i64, &[u8])> {
    let digits = raw.strip_prefix(b"<")?;
    let end = digits.iter().take(4).position(|b| *b == b'>')?;
    let number = &digits[..end];
    if number.is_empty()
        || (number.len() > 1 && number[0] == b'0')
        || !number.iter().all(u8::is_ascii_digit)
    {
        return None;
    }
    let value = number
        .iter()
        .fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
    (value <= PRIORITY_MAX).then(|| (value, &digits[end + 1..]))
}

/// Reads `<DIGITS>` that is no priority; gives the digits.
fn invalid_priority(raw: &[u8]) -> Option<(&str, &[u8])> {
    let digits = raw.strip_prefix(b"<")?;
    let read = digits.iter().take(INVALID_PRIORITY_BYTES_MAX + 1);
    let length = read.take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = digits.split_at(length);
    let rest = rest.strip_prefix(b">").filter(|_| length > 0)?;
    Some((std::str::from_utf8(digits).ok()?, rest))
}

fn draw_priority(priority: i64, sketch: &mut Sketch<'_, '_>) {
    sketch.literal("<");
    sketch.slot("facility:p", Value::Int(priority / 8));
    sketch.slot("severity:v", Value::Int(priority % 8));
    sketch.literal(">");
}

/// The printable ASCII word that `text` begins with, and the rest.
fn word(text: &[u8]) -> Option<(&str, &[u8])> {
    let end = text
        .iter()
        .take(WORD_BYTES_MAX + 1)
        .take_while(|b| b.is_ascii_graphic())
        .count();
    if end == 0 || end > WORD_BYTES_MAX {
        return None;
    }
    let word = std::str::from_utf8(&text[..end]).ok()?;
    Some((word, &text[end..]))
}

#[cfg(test)]
mod tests;

//! Syslog messages: RFC 5424, RFC 3164 and what is neither.
//!
//! Invariants: the header's fields are slots, its punctuation is literal; the message is always a
//! slot, empty where there is none, and may hold any bytes. Nothing is lost: a message that no
//! dialect knows is its priority and its content, or plain text.
//!
//! Dialects are rows of [`DIALECTS`], one file each; they are tried in this order. A row is told
//! what follows the priority and draws it, or gives `None` and leaves the sketch spoilt.

mod rfc3164;
mod rfc5424;

use logpond_record::{Timestamp, Value};

use super::sketch::Sketch;

type Dialect = for<'a> fn(&'a [u8], Timestamp, &mut Sketch<'_, 'a>) -> Option<()>;

const DIALECTS: [Dialect; 2] = [rfc5424::draw, rfc3164::draw];

/// The highest priority: facility 23, severity 7.
const PRIORITY_MAX: i64 = 191;

/// Fields of a header are no longer than this; longer words are content.
const WORD_BYTES_MAX: usize = 255;

/// Draws a syslog message; gives false if it is none, and the sketch is then spoilt.
///
/// `anything` says that the sender speaks syslog, so that a priority alone is enough.
pub(crate) fn draw<'s, 'a>(
    raw: &'a [u8],
    received: Timestamp,
    anything: bool,
    scratch: &'s mut Vec<u8>,
) -> Option<Sketch<'s, 'a>> {
    let (priority, after) = priority(raw)?;
    let mut sketch = Sketch::new(scratch, 10);
    for dialect in DIALECTS {
        draw_priority(priority, &mut sketch);
        if dialect(after, received, &mut sketch).is_some() {
            return Some(sketch);
        }
        sketch.clear();
    }
    if !anything {
        return None;
    }
    draw_priority(priority, &mut sketch);
    sketch.message(after);
    Some(sketch)
}

/// Whether `line` begins as a syslog message does.
pub(crate) fn is_candidate(line: &[u8]) -> bool {
    matches!(line, [b'<', b'0'..=b'9', ..])
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

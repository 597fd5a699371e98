//! Logplex: the frames of Heroku's HTTPS drains.
//!
//! ```text
//! 83 <40>1 2025-11-22T10:00:00+00:00 host app web.3 - State changed from starting to up
//! ```
//!
//! A frame is its length in bytes, a space, and a message like RFC 5424's, but without structured data. The text after
//! the header is the line; `hostname`, `app`, `procid`, `msgid`, `severity` and `facility` are fields.
//!
//! Invariants: a message whose header cannot be read is a line as it is; frames that are no frames take all, and
//! nothing was taken then.

use std::borrow::Cow;
use std::fmt;

use logpond_record::{EntryKind, Labels, Timestamp, Value};

use super::members::Fields;
use super::{DecodedBody, Shipment, TooLarge};
use crate::intake::timestamps;

/// Digits of a length at most.
const LENGTH_DIGITS_MAX: usize = 9;

/// Why a body is refused as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogplexError {
    /// A frame, counted from 1, is none.
    Frame(usize),
    /// There are other than so many frames as were announced.
    Count {
        /// Those that there are.
        frames: usize,
        /// Those that were announced.
        announced: usize,
    },
    /// More than can be taken at once.
    TooLarge(TooLarge),
}

impl fmt::Display for LogplexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogplexError::Frame(number) => write!(
                f,
                "frame {number} has no length, or is shorter than it says"
            ),
            LogplexError::Count { frames, announced } => write!(
                f,
                "the body has {frames} frames, and Logplex-Msg-Count says {announced}"
            ),
            LogplexError::TooLarge(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for LogplexError {}

/// Decodes frames; `labels` are fields of all, `announced` is how many there have to be.
///
/// # Errors
/// See [`LogplexError`].
pub fn decode(
    body: &[u8],
    labels: Labels,
    announced: Option<usize>,
    line_bytes_max: usize,
) -> Result<DecodedBody, LogplexError> {
    let mut shipment = Shipment::new(labels, line_bytes_max);
    let (mut rest, mut frames) = (body, 0);
    while !rest.is_empty() {
        frames += 1;
        let (frame, behind) = split(rest).ok_or(LogplexError::Frame(frames))?;
        rest = behind;
        add(frame, &mut shipment).map_err(LogplexError::TooLarge)?;
    }
    match announced {
        Some(announced) if announced != frames => Err(LogplexError::Count { frames, announced }),
        _ => Ok(shipment.finish()),
    }
}

/// The first frame, and the rest.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let head = bytes.get(..bytes.len().min(LENGTH_DIGITS_MAX + 1))?;
    let space = memchr::memchr(b' ', head)?;
    let digits = std::str::from_utf8(head.get(..space)?).ok()?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let length: usize = digits.parse().ok()?;
    bytes.get(space + 1..)?.split_at_checked(length)
}

fn add(frame: &[u8], shipment: &mut Shipment) -> Result<(), TooLarge> {
    let frame = frame.strip_suffix(b"\n").unwrap_or(frame);
    let Some(Message { time, fields, line }) = Message::read(frame) else {
        return shipment.add(EntryKind::Syslog, Ok(None), std::iter::empty(), frame);
    };
    let each = fields.iter().map(|(name, value)| (&**name, value));
    shipment.add(EntryKind::Line, Ok(time), each, line)
}

/// A message, read.
struct Message<'a> {
    time: Option<Timestamp>,
    fields: Fields<'a>,
    line: &'a [u8],
}

impl<'a> Message<'a> {
    /// Reads a message; `None` if it has no such header.
    fn read(frame: &'a [u8]) -> Option<Message<'a>> {
        let (priority, rest) = {
            let rest = frame.strip_prefix(b"<")?;
            let end = memchr::memchr(b'>', rest.get(..rest.len().min(4))?)?;
            let priority: u8 = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
            (priority, rest[end + 1..].strip_prefix(b"1 ")?)
        };
        let (time, rest) = word(rest)?;
        let time = timestamps::rfc3339(time.as_bytes())?;
        let mut fields = Fields::new();
        let mut rest = rest;
        for name in ["hostname", "app", "procid", "msgid"] {
            let (text, behind) = word(rest)?;
            rest = behind;
            if text != "-" {
                fields.push((name.into(), Value::Str(Cow::Borrowed(text))));
            }
        }
        fields.push(("severity".into(), Value::Int(i64::from(priority & 7))));
        fields.push(("facility".into(), Value::Int(i64::from(priority >> 3))));
        Some(Message {
            time: Some(time),
            fields,
            line: rest,
        })
    }
}

/// The text up to the next space, and the rest after it.
fn word(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = memchr::memchr(b' ', bytes)?;
    let word = std::str::from_utf8(&bytes[..end]).ok()?;
    Some((word, &bytes[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::super::tests::records;
    use super::*;

    fn frames(messages: &[&str]) -> String {
        let each = messages.iter();
        each.map(|message| format!("{} {message}", message.len()))
            .collect()
    }

    #[test]
    fn frames_are_messages_without_structured_data() {
        let body = frames(&[
            "<40>1 2025-11-22T10:00:00+00:00 host app web.3 - State changed from starting to up\n",
            "<190>1 2025-11-22T10:00:00.5+00:00 d.01 - - - {\"n\":1}",
            "no header\n",
            "<40>1 2025-11-22T10:00:00+00:00 host app web.3 - two\nlines\n",
        ]);
        let pushed = decode(body.as_bytes(), Labels::new(), Some(4), 100).unwrap();
        assert_eq!(
            records(&pushed),
            [
                "Line Some(1763805600000000000) hostname=host app=app procid=web.3 severity=0 facility=5 | State changed \
                 from starting to up",
                "Line Some(1763805600500000000) hostname=d.01 severity=6 facility=23 | {\"n\":1}",
                "Syslog None | no header",
                "Line Some(1763805600000000000) hostname=host app=app procid=web.3 severity=0 facility=5 | two\\nlines",
            ]
        );
    }

    #[test]
    fn frames_that_are_none_take_all() {
        for (body, number) in [
            ("5 four", 1),
            ("x", 1),
            ("1 a2", 2),
            ("-1 x", 1),
            ("9999999999 x", 1),
            (" x", 1),
        ] {
            let refused = decode(body.as_bytes(), Labels::new(), None, 100);
            assert_eq!(refused, Err(LogplexError::Frame(number)), "{body}");
        }
        let refused = decode(frames(&["a", "b"]).as_bytes(), Labels::new(), Some(3), 100);
        assert_eq!(
            refused,
            Err(LogplexError::Count {
                frames: 2,
                announced: 3
            })
        );
    }
}

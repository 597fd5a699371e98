//! Syslog framing over streams (RFC 6587), told apart frame by frame.
//!
//! ```text
//! octet counting:  123 <34>1 …        the count is of the bytes behind the space
//! newline:         <34>1 …\n          LF, CR LF or NUL ends the frame
//! ```
//!
//! A frame is counted if it begins with a number, a space and `<`, and the number is no larger than
//! `LINE_BYTES_MAX`; all else is text up to its end. Of a counted frame line ends and NULs at its end
//! are no part of the message: syslog-ng counts one behind each.
//!
//! Invariants: no byte of a message is lost but the ends of frames that are longer than the limit,
//! which are counted. Empty frames are not given. At most one frame of limited length is held. How
//! the input is cut into chunks does not matter.

use logpond_record::limits::{LINE_BYTES_DEFAULT, LINE_BYTES_MAX};
use memchr::memchr2;

use super::lines::{character_end, clear};

/// Digits of the largest count.
const COUNT_DIGITS_MAX: usize = 8;

/// A frame without its framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framed<'a> {
    /// What there is of the frame.
    pub bytes: &'a [u8],
    /// Bytes that are missing at its end: cut off, or announced and not sent.
    pub truncated_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A frame begins; what may be its count is held.
    Start,
    /// Inside a frame that LF or NUL ends.
    Text,
    /// Inside a counted frame, of which so many bytes are to come.
    Counted(usize),
}

/// What the first bytes of a frame say.
enum Start {
    /// More bytes are needed.
    Unknown,
    Text,
    /// The count, and the length of the count with its space.
    Counted(usize, usize),
}

/// Splits a stream of bytes into syslog messages.
#[derive(Debug)]
pub struct FrameSplitter {
    state: State,
    partial: Vec<u8>,
    truncated_bytes: usize,
    frame_bytes_max: usize,
}

impl Default for FrameSplitter {
    fn default() -> FrameSplitter {
        FrameSplitter::new(LINE_BYTES_DEFAULT)
    }
}

impl FrameSplitter {
    /// A splitter that cuts frames to `frame_bytes_max`, at most [`LINE_BYTES_MAX`].
    pub fn new(frame_bytes_max: usize) -> FrameSplitter {
        FrameSplitter {
            state: State::Start,
            partial: Vec::new(),
            truncated_bytes: 0,
            frame_bytes_max: frame_bytes_max.clamp(COUNT_DIGITS_MAX + 2, LINE_BYTES_MAX),
        }
    }

    /// Takes the next bytes of the stream and gives each message that ends in them.
    pub fn feed(&mut self, mut input: &[u8], mut take: impl FnMut(Framed<'_>)) {
        // Each round consumes a byte at least, or leaves the start of a frame.
        while !input.is_empty() {
            input = match self.state {
                State::Start => self.start(input),
                State::Text => self.text(input, &mut take),
                State::Counted(left) => self.counted(input, left, &mut take),
            };
        }
    }

    /// Gives what there is of an unfinished message.
    pub fn finish(&mut self, mut take: impl FnMut(Framed<'_>)) {
        if let State::Counted(left) = self.state {
            self.truncated_bytes += left;
        }
        if !self.partial.is_empty() || self.truncated_bytes > 0 {
            self.give(&mut take);
        }
        self.state = State::Start;
    }

    /// Bytes of the unfinished message that are held.
    pub fn held_bytes(&self) -> usize {
        self.partial.len()
    }

    fn start<'i>(&mut self, input: &'i [u8]) -> &'i [u8] {
        // With nothing held, which is the rule, the input decides without being copied.
        if self.partial.is_empty() {
            match start(input) {
                Start::Unknown => self.partial.extend_from_slice(input),
                Start::Text => {
                    self.state = State::Text;
                    return input;
                }
                Start::Counted(count, length) => {
                    self.state = State::Counted(count);
                    return &input[length..];
                }
            }
            return &[];
        }
        self.partial.push(input[0]);
        match start(&self.partial) {
            Start::Unknown => &input[1..],
            Start::Text => {
                self.partial.pop();
                self.state = State::Text;
                input
            }
            // The byte behind the space belongs to the message.
            Start::Counted(count, _) => {
                self.partial.clear();
                self.state = State::Counted(count);
                input
            }
        }
    }

    fn text<'i>(&mut self, input: &'i [u8], take: &mut impl FnMut(Framed<'_>)) -> &'i [u8] {
        let Some(end) = memchr2(b'\n', 0, input) else {
            self.hold(input);
            return &[];
        };
        let (frame, after) = (&input[..end], &input[end + 1..]);
        self.state = State::Start;
        let is_line = input[end] == b'\n';
        if self.partial.is_empty() && frame.len() <= self.frame_bytes_max {
            let bytes = without_return(frame, is_line);
            if !bytes.is_empty() {
                take(Framed {
                    bytes,
                    truncated_bytes: 0,
                });
            }
            return after;
        }
        self.hold(frame);
        if self.truncated_bytes == 0 {
            let length = without_return(&self.partial, is_line).len();
            self.partial.truncate(length);
        }
        self.give(take);
        after
    }

    fn counted<'i>(
        &mut self,
        input: &'i [u8],
        left: usize,
        take: &mut impl FnMut(Framed<'_>),
    ) -> &'i [u8] {
        let (part, after) = input.split_at(left.min(input.len()));
        if part.len() < left {
            self.state = State::Counted(left - part.len());
            self.hold(part);
            return after;
        }
        self.state = State::Start;
        if self.partial.is_empty() && part.len() <= self.frame_bytes_max {
            let bytes = trim_end(part);
            if !bytes.is_empty() {
                take(Framed {
                    bytes,
                    truncated_bytes: 0,
                });
            }
            return after;
        }
        self.hold(part);
        if self.truncated_bytes == 0 {
            let length = trim_end(&self.partial).len();
            self.partial.truncate(length);
        }
        self.give(take);
        after
    }

    fn hold(&mut self, bytes: &[u8]) {
        let room = self.frame_bytes_max - self.partial.len();
        let kept = bytes.len().min(room);
        self.partial.extend_from_slice(&bytes[..kept]);
        self.truncated_bytes += bytes.len() - kept;
    }

    fn give(&mut self, take: &mut impl FnMut(Framed<'_>)) {
        let kept = match self.truncated_bytes {
            0 => self.partial.len(),
            _ => character_end(&self.partial),
        };
        let truncated_bytes = self.truncated_bytes + self.partial.len() - kept;
        if kept + truncated_bytes > 0 {
            take(Framed {
                bytes: &self.partial[..kept],
                truncated_bytes,
            });
        }
        clear(&mut self.partial);
        self.truncated_bytes = 0;
    }
}

/// A CR before the LF belongs to the framing.
fn without_return(frame: &[u8], is_line: bool) -> &[u8] {
    match frame.strip_suffix(b"\r") {
        Some(frame) if is_line => frame,
        _ => frame,
    }
}

fn start(bytes: &[u8]) -> Start {
    let digits = bytes
        .iter()
        .take(COUNT_DIGITS_MAX + 1)
        .take_while(|b| b.is_ascii_digit())
        .count();
    if bytes.first() == Some(&b'0') || digits > COUNT_DIGITS_MAX {
        return Start::Text;
    }
    match &bytes[digits..] {
        [] | [b' '] if digits > 0 => Start::Unknown,
        [b' ', b'<', ..] if digits > 0 => {
            let count = bytes[..digits]
                .iter()
                .fold(0, |count, digit| count * 10 + usize::from(digit - b'0'));
            match count <= LINE_BYTES_MAX {
                true => Start::Counted(count, digits + 1),
                false => Start::Text,
            }
        }
        _ => Start::Text,
    }
}

/// A message without the line end or NUL that some senders put behind it.
pub fn trim_end(message: &[u8]) -> &[u8] {
    let end = message
        .iter()
        .rposition(|b| !matches!(b, b'\n' | b'\r' | 0));
    &message[..end.map_or(0, |at| at + 1)]
}

#[cfg(test)]
mod tests;

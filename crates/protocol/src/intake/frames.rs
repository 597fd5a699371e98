//! Syslog framing over streams (RFC 6587), told apart frame by frame.
//!
//! ```text
//! octet counting:  123 <34>1 …        the count is of the bytes behind the space
//! newline:         <34>1 …\n          LF, CR LF or NUL ends the frame
//! ```
//!
//! A frame is counted if it begins with a number, a space and a whole priority (`<34>`), and the number is
//! no larger than `LINE_BYTES_MAX`; all else is text up to its end. Of a counted frame line ends and NULs
//! at its end are no part of the message: syslog-ng counts one behind each.
//!
//! Senders that end frames with NUL write messages of several lines as they are (Python's SysLogHandler).
//! Once a frame with a priority has ended so, an LF ends the next ones only if another frame begins
//! behind it, until one does; the bytes that tell are waited for.
//!
//! Invariants: no byte of a message is lost but the ends of frames that are longer than the limit,
//! which are counted. Empty frames are not given. At most one frame of limited length is held. How
//! the input is cut into chunks does not matter, but for the first frame of a stream: if it comes with its
//! NUL in one chunk, it may have several lines, too.

use logpond_record::limits::{LINE_BYTES_DEFAULT, LINE_BYTES_MAX};
use memchr::memchr2;

use super::lines::{character_end, clear};
use super::{BYTE_ORDER_MARK, without_mark};

/// Digits of the largest count.
const COUNT_DIGITS_MAX: usize = 8;

/// Digits of a priority.
const PRIORITY_DIGITS_MAX: usize = 3;

/// The most bytes that tell how a frame begins: a count, a space and a priority behind a mark.
pub(super) const START_BYTES_MAX: usize = COUNT_DIGITS_MAX + 1 + 3 + PRIORITY_DIGITS_MAX + 2;

/// A frame without its framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
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
    /// Behind an LF in such a frame, which is its end if another frame begins; what may be the start of
    /// that is held.
    Line,
    /// Inside a counted frame, of which so many bytes are to come.
    Counted(usize),
}

/// How the frames of a stream that are text end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    /// None has ended.
    Unknown,
    /// With LF, as far as is known.
    Line,
    /// With NUL.
    Nul,
}

/// The answer to the question if bytes are a priority.
#[derive(PartialEq, Eq)]
enum Priority {
    /// More bytes are needed.
    Unknown,
    None,
    /// So many bytes are one.
    Whole(usize),
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
    ends: Ends,
    partial: Vec<u8>,
    /// The bytes behind the LF that may end the frame.
    behind_line: Vec<u8>,
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
            ends: Ends::Unknown,
            partial: Vec::new(),
            behind_line: Vec::new(),
            truncated_bytes: 0,
            frame_bytes_max: frame_bytes_max.clamp(START_BYTES_MAX, LINE_BYTES_MAX),
        }
    }

    /// Takes the next bytes of the stream and gives each message that ends in them.
    pub fn feed(&mut self, mut input: &[u8], mut take: impl FnMut(Frame<'_>)) {
        // Each round consumes a byte at least, or leaves the start of a frame.
        while !input.is_empty() {
            input = match self.state {
                State::Start => self.start(input, &mut take),
                State::Text => self.text(input, &mut take),
                State::Line => self.line(input, &mut take),
                State::Counted(left) => self.counted(input, left, &mut take),
            };
        }
    }

    /// Gives what there is of an unfinished message.
    pub fn finish(&mut self, mut take: impl FnMut(Frame<'_>)) {
        if let State::Counted(left) = self.state {
            self.truncated_bytes += left;
        }
        if !self.behind_line.is_empty() {
            self.go_on();
        } else if self.state == State::Line {
            self.end_line();
        }
        if !self.partial.is_empty() || self.truncated_bytes > 0 {
            self.give(&mut take);
        }
        self.state = State::Start;
    }

    /// Bytes of the unfinished message that are held.
    pub fn held_bytes(&self) -> usize {
        self.partial.len() + self.behind_line.len()
    }

    fn start<'i>(&mut self, input: &'i [u8], take: &mut impl FnMut(Frame<'_>)) -> &'i [u8] {
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
        let mut bytes = std::mem::take(&mut self.partial);
        bytes.push(input[0]);
        self.begin(bytes, take);
        &input[1..]
    }

    /// Begins a frame with bytes that are held.
    fn begin(&mut self, mut bytes: Vec<u8>, take: &mut impl FnMut(Frame<'_>)) {
        let last = bytes.last().copied();
        match start(&bytes) {
            Start::Unknown => self.partial = bytes,
            // The last byte may be the frame's end.
            Start::Text => {
                bytes.pop();
                self.partial = bytes;
                self.state = State::Text;
                self.text(last.as_slice(), take);
            }
            Start::Counted(count, length) => {
                bytes.drain(..length);
                let left = count - bytes.len();
                self.partial = bytes;
                self.state = State::Counted(left);
                if left == 0 {
                    self.counted(&[], left, take);
                }
            }
        }
    }

    fn text<'i>(&mut self, input: &'i [u8], take: &mut impl FnMut(Frame<'_>)) -> &'i [u8] {
        let Some(end) = memchr2(b'\n', 0, input) else {
            self.hold(input);
            return &[];
        };
        let (frame, after) = (&input[..end], &input[end + 1..]);
        let is_line = input[end] == b'\n';
        if is_line && self.may_go_on(frame, after) {
            self.ends = Ends::Nul;
            self.hold(frame);
            self.state = State::Line;
            return after;
        }
        self.state = State::Start;
        let has_bytes = !self.partial.is_empty() || !frame.is_empty();
        if has_bytes {
            self.ends = if is_line { Ends::Line } else { Ends::Nul };
        }
        if self.partial.is_empty() && frame.len() <= self.frame_bytes_max {
            let bytes = without_return(frame, is_line);
            if !bytes.is_empty() {
                take(Frame {
                    bytes,
                    truncated_bytes: 0,
                });
            }
            return after;
        }
        self.hold(frame);
        if self.truncated_bytes == 0 {
            let (text, is_line) = match self.partial.strip_suffix(b"\n") {
                // A line end before the NUL.
                Some(text) => (text, true),
                None => (&self.partial[..], is_line),
            };
            let length = without_return(text, is_line).len();
            self.partial.truncate(length);
        }
        self.give(take);
        after
    }

    /// True if a frame may go on behind an LF that follows `frame`.
    fn may_go_on(&self, frame: &[u8], after: &[u8]) -> bool {
        let head = self.partial.iter().chain(frame).take(START_BYTES_MAX);
        let has_priority = || is_start(&head.copied().collect::<Vec<u8>>());
        match self.ends {
            Ends::Line => false,
            Ends::Nul => has_priority(),
            Ends::Unknown => {
                let end = memchr::memchr(0, after);
                let is_free = |end: usize| !after[..end].split(|b| *b == b'\n').any(is_start);
                end.is_some_and(is_free) && has_priority()
            }
        }
    }

    /// Behind an LF in a frame that NUL may end.
    fn line<'i>(&mut self, input: &'i [u8], take: &mut impl FnMut(Frame<'_>)) -> &'i [u8] {
        self.behind_line.push(input[0]);
        match start(&self.behind_line) {
            _ if is_start(&self.behind_line) => {
                let bytes = std::mem::take(&mut self.behind_line);
                self.end_line();
                self.give(take);
                self.ends = Ends::Line;
                self.state = State::Start;
                self.begin(bytes, take);
                return &input[1..];
            }
            _ if priority(&self.behind_line) == Priority::Unknown => return &input[1..],
            Start::Unknown => return &input[1..],
            _ => {}
        }
        self.behind_line.pop();
        self.go_on();
        input
    }

    /// Takes the LF and what is held behind it into the frame.
    fn go_on(&mut self) {
        let behind = std::mem::take(&mut self.behind_line);
        self.hold(b"\n");
        self.hold(&behind);
        self.state = State::Text;
    }

    /// Ends the frame before an LF.
    fn end_line(&mut self) {
        if self.truncated_bytes == 0 {
            let length = without_return(&self.partial, true).len();
            self.partial.truncate(length);
        }
    }

    fn counted<'i>(
        &mut self,
        input: &'i [u8],
        left: usize,
        take: &mut impl FnMut(Frame<'_>),
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
                take(Frame {
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

    fn give(&mut self, take: &mut impl FnMut(Frame<'_>)) {
        let kept = match self.truncated_bytes {
            0 => self.partial.len(),
            _ => character_end(&self.partial),
        };
        let truncated_bytes = self.truncated_bytes + self.partial.len() - kept;
        if kept + truncated_bytes > 0 {
            take(Frame {
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
    if digits == 0 {
        return Start::Text;
    }
    let behind = match &bytes[digits..] {
        [] => return Start::Unknown,
        [b' ', behind @ ..] => behind,
        _ => return Start::Text,
    };
    let priority_bytes = match priority(behind) {
        Priority::Unknown => return Start::Unknown,
        Priority::None => return Start::Text,
        Priority::Whole(bytes) => bytes,
    };
    let count = bytes[..digits]
        .iter()
        .fold(0, |count, digit| count * 10 + usize::from(digit - b'0'));
    if (priority_bytes..=LINE_BYTES_MAX).contains(&count) {
        Start::Counted(count, digits + 1)
    } else {
        Start::Text
    }
}

/// Reads `<`, digits and `>`, behind a mark of byte order or not.
fn priority(bytes: &[u8]) -> Priority {
    if bytes.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.as_bytes().starts_with(bytes) {
        return Priority::Unknown;
    }
    let inside = without_mark(bytes);
    let Some((first, inside)) = inside.split_first() else {
        return Priority::Unknown;
    };
    let digits = inside
        .iter()
        .take(PRIORITY_DIGITS_MAX)
        .take_while(|b| b.is_ascii_digit())
        .count();
    match inside.get(digits) {
        _ if *first != b'<' => Priority::None,
        None => Priority::Unknown,
        Some(b'>') if digits > 0 => Priority::Whole(bytes.len() - inside.len() + digits + 1),
        Some(_) => Priority::None,
    }
}

/// True if bytes begin with a whole priority.
pub(crate) fn begins_with_priority(bytes: &[u8]) -> bool {
    matches!(priority(bytes), Priority::Whole(_))
}

/// True if a frame that says a priority begins so.
fn is_start(bytes: &[u8]) -> bool {
    begins_with_priority(bytes) || matches!(start(bytes), Start::Counted(..))
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

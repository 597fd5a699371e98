//! An answer: lines of JSON, among them progress and, last, the trailer.

use std::io::{BufRead, BufReader, Read};

use logpond_record::limits::LINE_BYTES_MAX;
use serde::Deserialize;

use super::ClientError;

/// Bytes read from the connection at once.
const BUFFER_BYTES: usize = 64 << 10;

/// The longest line of an answer: a line of the hard limit whose every byte is escaped as `\u00NN`
/// in both its message and its text, and its fields.
const ANSWER_LINE_BYTES_MAX: usize = 16 * LINE_BYTES_MAX;

/// Capacity that is kept between lines; one long line must not hold its memory for ever.
const LINE_CAPACITY_KEPT: usize = 1 << 20;

/// The end of an answer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Trailer {
    /// Records that matched.
    pub rows: u64,
    /// Bytes that were looked at.
    pub bytes_scanned: u64,
    /// Time it took.
    pub elapsed_ms: f64,
    /// Whether nothing is missing.
    pub complete: bool,
    /// What is missing, if anything.
    pub missing: Vec<serde_json::Value>,
    /// Records that no answer will ever have, in words; they make none incomplete.
    pub lost: Vec<String>,
    /// Event time of the newest record that the server has at all.
    pub newest: Option<String>,
    /// Whether the limit kept further records out of the answer.
    pub more: bool,
    /// Where the next page begins.
    pub cursor: Option<String>,
    /// Where a follower may go on.
    pub position: Option<String>,
    /// The earliest event time that was searched, if there is a bound.
    pub from: Option<String>,
    /// The end of the event times that were searched, excluded, if there is a bound.
    pub to: Option<String>,
    /// What was probably meant, if nothing was found.
    pub hints: Vec<Hint>,
}

/// What a question that found nothing probably meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Hint {
    /// A sentence without its end.
    pub message: String,
    /// A command that asks what was meant.
    pub command: Option<String>,
    /// Where the range has to begin instead.
    pub from: Option<String>,
    /// Where the range has to end instead.
    pub to: Option<String>,
}

impl Trailer {
    /// The end of an answer that lacks nothing.
    pub fn whole() -> Trailer {
        Trailer {
            complete: true,
            ..Trailer::default()
        }
    }

    /// Also lacks what another answer does.
    pub fn lack_too(&mut self, other: Trailer) {
        self.complete &= other.complete;
        for missing in other.missing {
            if !self.missing.contains(&missing) {
                self.missing.push(missing);
            }
        }
        for lost in other.lost {
            if !self.lost.contains(&lost) {
                self.lost.push(lost);
            }
        }
    }
}

/// How far the server is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// Bytes looked at.
    pub bytes: u64,
    /// Bytes to look at in all; 0 if unknown.
    pub bytes_total: u64,
    /// Records found.
    pub rows: u64,
}

/// One line of an answer.
#[derive(Debug)]
pub enum Item<'a> {
    /// A record or a line of a table, as JSON.
    Row(&'a [u8]),
    /// The next record belongs to another group of context.
    Gap,
    /// How far the server is.
    Progress(Progress),
    /// Where a follower may go on after all that came so far.
    Position(String),
    /// Something that people who follow should know.
    Notice(String),
    /// The end.
    Trailer(Trailer),
}

/// An answer that is being received.
pub struct Answer {
    reader: BufReader<Box<dyn Read>>,
    line: Vec<u8>,
}

impl Answer {
    /// The answer that these bytes are.
    pub fn new(reader: Box<dyn Read>) -> Answer {
        Answer {
            reader: BufReader::with_capacity(BUFFER_BYTES, reader),
            line: Vec::new(),
        }
    }

    /// Whether the next line can probably be had without waiting.
    pub fn is_more_at_hand(&self) -> bool {
        memchr::memchr(b'\n', self.reader.buffer()).is_some()
    }

    /// Waits for the next line. An answer always ends by [`Item::Trailer`]: if it is not there,
    /// the answer broke off.
    pub fn next_item(&mut self) -> Result<Item<'_>, ClientError> {
        if !self.read_line()? {
            return Err(ClientError::Broken(None));
        }
        let line = self.line.trim_ascii_end();
        if !line.starts_with(b"{\"_") {
            return Ok(Item::Row(line));
        }
        if line.starts_with(b"{\"_gap\"") {
            return Ok(Item::Gap);
        }
        if line.starts_with(b"{\"_progress\"") {
            #[derive(Deserialize)]
            struct Line {
                _progress: Progress,
            }
            return parse::<Line>(line).map(|line| Item::Progress(line._progress));
        }
        if line.starts_with(b"{\"_position\"") {
            #[derive(Deserialize)]
            struct Line {
                _position: String,
            }
            return parse::<Line>(line).map(|line| Item::Position(line._position));
        }
        if line.starts_with(b"{\"_notice\"") {
            #[derive(Deserialize)]
            struct Notice {
                message: String,
            }
            #[derive(Deserialize)]
            struct Line {
                _notice: Notice,
            }
            return parse::<Line>(line).map(|line| Item::Notice(line._notice.message));
        }
        if line.starts_with(b"{\"_trailer\"") {
            #[derive(Deserialize)]
            struct Line {
                _trailer: Trailer,
            }
            return parse::<Line>(line).map(|line| Item::Trailer(line._trailer));
        }
        Ok(Item::Row(line))
    }

    /// The bytes of an answer that is no text.
    pub fn into_reader(self) -> impl Read {
        self.reader
    }

    /// The whole answer as text, for answers that are one short object.
    pub fn into_text(self, bytes_max: u64) -> Result<Vec<u8>, ClientError> {
        let mut text = Vec::new();
        self.reader
            .take(bytes_max)
            .read_to_end(&mut text)
            .map_err(|source| ClientError::Broken(Some(source)))?;
        Ok(text)
    }

    /// Reads a line; false at the end. A last line without its end is not one.
    fn read_line(&mut self) -> Result<bool, ClientError> {
        self.line.clear();
        self.line.shrink_to(LINE_CAPACITY_KEPT);
        loop {
            let buffer = match self.reader.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(ClientError::Broken(Some(error))),
            };
            if buffer.is_empty() {
                return if self.line.is_empty() {
                    Ok(false)
                } else {
                    Err(ClientError::Broken(None))
                };
            }
            let end = memchr::memchr(b'\n', buffer);
            let taken = end.map_or(buffer.len(), |at| at + 1);
            if self.line.len() + taken > ANSWER_LINE_BYTES_MAX {
                return Err(ClientError::LineTooLong);
            }
            self.line.extend_from_slice(&buffer[..taken]);
            self.reader.consume(taken);
            if end.is_some() && !self.line.trim_ascii().is_empty() {
                return Ok(true);
            }
            if end.is_some() {
                self.line.clear();
            }
        }
    }
}

fn parse<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, ClientError> {
    serde_json::from_slice(line).map_err(|source| ClientError::Nonsense(Box::new(source)))
}

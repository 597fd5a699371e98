//! The journal export format: what `journalctl -o export` writes and `systemd-journal-upload` sends.
//!
//! ```text
//! __CURSOR=s=…;i=…␊PRIORITY=6␊MESSAGE=one line␊
//! MESSAGE␊ 11 0 0 0 0 0 0 0 two␊lines␊!␊
//! ␊
//! ```
//!
//! A field is `NAME=value` and a line end; or, for a value with line ends or other bytes, its name, a
//! line end, the value's length (8 bytes, little-endian), the value and a line end. An empty line ends
//! an entry. Names may repeat. Source: "Journal Export Formats", systemd.io/JOURNAL_EXPORT_FORMATS.
//!
//! Invariants: an entry that cannot be taken takes no other with it, and is reported; at most
//! [`ENTRY_BYTES_MAX`] of one entry are held, whatever lengths the stream says; what is no export ends
//! the stream, since nothing behind it can be understood. How the input is cut does not matter.

use std::fmt;

use logpond_record::cast;
use logpond_record::limits::{FIELD_NAME_BYTES_MAX, FIELDS_MAX};
use memchr::memchr;

/// The most bytes that an entry's names and values take. The journal's own entries have a few
/// kilobytes; a value that is not text takes four times as many where it is kept, which must stay
/// below what an entry of the journal may have.
pub const ENTRY_BYTES_MAX: usize = 7 << 20;

/// The longest value that a stream may announce, taken or not: what journald's own limit is. A
/// greater length is taken for a sign that the stream is none.
pub const VALUE_BYTES_MAX: u64 = 768 << 20;

/// The most fields of an entry, those that repeat a name included: what journald takes, and the
/// address that the export adds.
pub(super) const ENTRY_FIELDS_MAX: usize = FIELDS_MAX + 8;

/// Why an entry is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryFault {
    /// It is longer than [`ENTRY_BYTES_MAX`].
    TooLong,
    /// It has more fields than any may.
    TooManyFields,
    /// A field has no name, one that is too long, or one that is not UTF-8.
    Name,
}

impl fmt::Display for EntryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EntryFault::TooLong => {
                write!(f, "the entry is longer than {} MiB", ENTRY_BYTES_MAX >> 20)
            }
            EntryFault::TooManyFields => {
                write!(f, "the entry has more than {FIELDS_MAX} fields")
            }
            EntryFault::Name => write!(
                f,
                "the name of a field is empty, longer than {FIELD_NAME_BYTES_MAX} bytes or not UTF-8"
            ),
        }
    }
}

/// The bytes are no export of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportError {
    /// A value says that it is longer than [`VALUE_BYTES_MAX`].
    Length {
        /// What it says.
        bytes: u64,
        /// Bytes of the stream before it.
        at: u64,
    },
    /// No line end follows a value of given length.
    End {
        /// Bytes of the stream before it.
        at: u64,
    },
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExportError::Length { bytes, at } => write!(
                f,
                "this is no journal in export format: at byte {at} a value of {bytes} bytes is \
                 announced, and none has more than {VALUE_BYTES_MAX}"
            ),
            ExportError::End { at } => write!(
                f,
                "this is no journal in export format: at byte {at} a line end is missing behind a \
                 value"
            ),
        }
    }
}

impl std::error::Error for ExportError {}

/// Where a field stands in the bytes of its entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) name: (u32, u32),
    pub(super) value: (u32, u32),
}

/// The fields of an entry, in the order of the stream.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    held: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Fields<'a> {
    /// Fields in these bytes; their names were [checked](check_name).
    pub(super) fn new(held: &'a [u8], spans: &'a [Span]) -> Fields<'a> {
        Fields { held, spans }
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + Clone + use<'a> {
        let (held, spans) = (self.held, self.spans);
        let part = move |(from, to): (u32, u32)| &held[from as usize..to as usize];
        spans.iter().map(move |span| {
            // Names were checked when they were read.
            let name = std::str::from_utf8(part(span.name)).unwrap_or_default();
            (name, part(span.value))
        })
    }
}

/// An entry of a stream.
pub type Exported<'a> = Result<Fields<'a>, EntryFault>;

/// What an unfinished entry is, at the end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partial {
    /// Whole fields of it.
    pub fields: usize,
    /// Whether it ends within a field.
    pub is_within_field: bool,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// A line, up to its end.
    Line,
    /// The length of a value.
    Length { bytes: [u8; 8], count: usize },
    /// So many bytes of a value.
    Value { left: u64 },
    /// The line end behind a value.
    End,
}

/// Splits a stream into entries.
#[derive(Debug)]
pub struct ExportSplitter {
    state: State,
    /// Names and values of the entry, the line that is being read at its end.
    held: Vec<u8>,
    spans: Vec<Span>,
    /// Bytes of the line so far, and where its first `=` is.
    line_bytes: u64,
    equals: Option<u64>,
    /// The name of a value of given length.
    name: (u32, u32),
    fault: Option<EntryFault>,
    fields: usize,
    /// Bytes of the stream so far.
    position: u64,
}

impl Default for ExportSplitter {
    fn default() -> ExportSplitter {
        ExportSplitter::new()
    }
}

impl ExportSplitter {
    /// At the beginning of a stream.
    pub fn new() -> ExportSplitter {
        ExportSplitter {
            state: State::Line,
            held: Vec::new(),
            spans: Vec::new(),
            line_bytes: 0,
            equals: None,
            name: (0, 0),
            fault: None,
            fields: 0,
            position: 0,
        }
    }

    /// Memory that is held of an unfinished entry.
    pub fn held_bytes(&self) -> usize {
        self.held.len()
    }

    /// Takes the next bytes of the stream, and hands on each entry that ends in them.
    ///
    /// # Errors
    /// When the stream is no export; then nothing more is to be fed.
    pub fn feed(
        &mut self,
        mut chunk: &[u8],
        mut take: impl FnMut(Exported<'_>),
    ) -> Result<(), ExportError> {
        // Each round takes at least a byte.
        while !chunk.is_empty() {
            let taken = match self.state {
                State::Line => self.line(chunk, &mut take),
                State::Length { bytes, count } => self.length(chunk, bytes, count)?,
                State::Value { left } => self.value(chunk, left),
                State::End => self.end(chunk)?,
            };
            self.position += taken as u64;
            chunk = &chunk[taken..];
        }
        Ok(())
    }

    /// What is unfinished at the end of the stream; `None` if nothing is.
    pub fn partial(&self) -> Option<Partial> {
        let is_within_field = self.line_bytes > 0 || !matches!(self.state, State::Line);
        (is_within_field || self.fields > 0).then_some(Partial {
            fields: self.fields,
            is_within_field,
        })
    }

    fn line(&mut self, chunk: &[u8], take: &mut impl FnMut(Exported<'_>)) -> usize {
        let end = memchr(b'\n', chunk);
        let part = &chunk[..end.unwrap_or(chunk.len())];
        if self.equals.is_none() {
            self.equals = memchr(b'=', part).map(|at| self.line_bytes + at as u64);
        }
        self.line_bytes += part.len() as u64;
        self.hold(part);
        let Some(end) = end else {
            return part.len();
        };
        match (self.line_bytes, self.equals) {
            (0, _) => self.finish_entry(take),
            (_, Some(_)) => self.finish_line(),
            (length, None) => {
                self.name = self.last(length);
                let (bytes, count) = ([0; 8], 0);
                self.state = State::Length { bytes, count };
            }
        }
        self.line_bytes = 0;
        self.equals = None;
        end + 1
    }

    fn length(
        &mut self,
        chunk: &[u8],
        mut bytes: [u8; 8],
        mut count: usize,
    ) -> Result<usize, ExportError> {
        let taken = chunk.len().min(bytes.len() - count);
        bytes[count..count + taken].copy_from_slice(&chunk[..taken]);
        count += taken;
        self.state = State::Length { bytes, count };
        if count == bytes.len() {
            let bytes = u64::from_le_bytes(bytes);
            if bytes > VALUE_BYTES_MAX {
                let at = self.position + taken as u64 - 8;
                return Err(ExportError::Length { bytes, at });
            }
            self.state = match bytes {
                0 => State::End,
                left => State::Value { left },
            };
        }
        Ok(taken)
    }

    fn value(&mut self, chunk: &[u8], left: u64) -> usize {
        let taken = chunk.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.hold(&chunk[..taken]);
        self.state = match left - taken as u64 {
            0 => State::End,
            left => State::Value { left },
        };
        taken
    }

    fn end(&mut self, chunk: &[u8]) -> Result<usize, ExportError> {
        if chunk[0] != b'\n' {
            let at = self.position;
            return Err(ExportError::End { at });
        }
        let value = (self.name.1, cast::low_u32(self.held.len()));
        let name = self.name;
        self.finish_field(Span { name, value });
        self.state = State::Line;
        Ok(1)
    }

    fn finish_line(&mut self) {
        let (from, to) = self.last(self.line_bytes);
        let equals = from.saturating_add(cast::low_u32(self.equals.unwrap_or(0)));
        self.finish_field(Span {
            name: (from, equals),
            value: (equals + 1, to),
        });
    }

    fn finish_field(&mut self, span: Span) {
        self.fields += 1;
        if self.fault.is_some() {
            return;
        }
        let name = &self.held[span.name.0 as usize..span.name.1 as usize];
        if let Err(fault) = check_name(name) {
            self.give_up(fault);
        } else if self.spans.len() == ENTRY_FIELDS_MAX {
            self.give_up(EntryFault::TooManyFields);
        } else {
            self.spans.push(span);
        }
    }

    fn finish_entry(&mut self, take: &mut impl FnMut(Exported<'_>)) {
        if self.fields > 0 {
            let fields = Fields {
                held: &self.held,
                spans: &self.spans,
            };
            take(self.fault.map_or(Ok(fields), Err));
        }
        self.held.clear();
        self.spans.clear();
        self.fields = 0;
        self.fault = None;
    }

    /// The last so many bytes of what is held, which after a fault are none.
    fn last(&self, length: u64) -> (u32, u32) {
        let to = cast::low_u32(self.held.len());
        (to.saturating_sub(cast::low_u32(length)), to)
    }

    fn hold(&mut self, part: &[u8]) {
        if self.fault.is_some() {
            return;
        }
        if self.held.len() + part.len() > ENTRY_BYTES_MAX {
            self.give_up(EntryFault::TooLong)
        } else {
            self.held.extend_from_slice(part)
        }
    }

    fn give_up(&mut self, fault: EntryFault) {
        self.fault = Some(fault);
        self.held = Vec::new();
        self.spans.clear();
    }
}

/// Whether a record may have a field of this name.
pub(super) fn check_name(name: &[u8]) -> Result<(), EntryFault> {
    let is_length = (1..=FIELD_NAME_BYTES_MAX).contains(&name.len());
    if is_length && std::str::from_utf8(name).is_ok() {
        Ok(())
    } else {
        Err(EntryFault::Name)
    }
}

/// Appends a field, in the form that `journalctl` chooses for its value.
pub fn write_field(name: &str, value: &[u8], out: &mut Vec<u8>) {
    let is_text = std::str::from_utf8(value)
        .is_ok_and(|text| text.chars().all(|c| c == '\t' || !c.is_control()));
    out.extend_from_slice(name.as_bytes());
    if is_text {
        out.push(b'=')
    } else {
        out.push(b'\n');
        out.extend_from_slice(&(value.len() as u64).to_le_bytes());
    }
    out.extend_from_slice(value);
    out.push(b'\n');
}

/// Appends an entry.
pub fn write_entry<'f>(fields: impl IntoIterator<Item = (&'f str, &'f [u8])>, out: &mut Vec<u8>) {
    for (name, value) in fields {
        write_field(name, value, out);
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests;

//! The Forward protocol of Fluentd and Fluent Bit (version 1): lists of MessagePack, each a tag with
//! one event or many.
//!
//! ```text
//! Message                  [tag, time, record, option?]
//! Forward                  [tag, [[time, record], …], option?]
//! PackedForward            [tag, bytes of [time, record] one behind the other, option?]
//! CompressedPackedForward  the same, with "compressed" in the option
//! ```
//!
//! The line is what the record has as text under `log`, `message` or `msg`, without a line end, and its
//! form is recognised as anywhere else; without them it is the record as JSON. All else of the record is
//! fields under its own names, maps flattened with dots; then come Fluent Bit's metadata of the event,
//! and `tag`. A time is that of the event, also with nanoseconds. Source: Forward Protocol Specification
//! v1 of Fluentd.
//!
//! Invariants: every event is kept, one way or another; a message that cannot be read takes all of it, and
//! nothing was taken then.

mod handshake;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use logpond_record::limits::{LINE_BYTES_MAX, TRUNCATED_FIELD};
use logpond_record::{Batch, EntryKind, Labels, Timestamp, Value, cast};

use xxhash_rust::xxh3::Xxh3;

use super::members::keep_last;
use super::{BATCH_BYTES_MAX, TooLarge, check_names, check_time};
use crate::intake::body::{BodyError, Encoding, decompressed};
use crate::intake::msgpack::{Fields, MsgpackError, Reader, Token, flatten, json, write};

pub use crate::intake::msgpack::ValueEnd;
pub use handshake::{NotAPing, Ping, read_ping, write_hello, write_pong};

const NANOS: i64 = 1_000_000_000;

/// What may hold the line, the first that is text counts.
const LINE_NAMES: [&str; 3] = ["log", "message", "msg"];

/// The field of the machine that a record comes from.
const HOSTNAME: &str = "hostname";

/// The most records of a batch, and the bytes at which it ends: named batches may not have more than
/// 65536 and 32 MiB, which a record of [`RECORD_BYTES_MAX`] more does not reach.
const BATCH_RECORDS_MAX: usize = 32_768;
const BATCH_BYTES_TARGET: usize = 8 << 20;

/// The longest record that is taken apart, in MessagePack; of a longer one the beginning is kept.
const RECORD_BYTES_MAX: usize = 4 << 20;

/// Why a message cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FluentError {
    /// It is none of the protocol.
    Message(&'static str),
    /// It is no MessagePack.
    Msgpack(MsgpackError),
    /// Its events cannot be decompressed.
    Compressed(BodyError),
    /// Its compression is not known.
    Compression(String),
    /// It has metrics or traces.
    NoLogs,
    /// More than can be taken at once.
    TooLarge(TooLarge),
}

impl fmt::Display for FluentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FluentError::Message(reason) => write!(f, "no message of Fluentd: {reason}"),
            FluentError::Msgpack(error) => write!(f, "no message of Fluentd: {error}"),
            FluentError::Compressed(error) => write!(f, "{error}"),
            FluentError::Compression(name) => write!(
                f,
                "compression {name} is not taken; send gzip, zstd or none"
            ),
            FluentError::NoLogs => {
                f.write_str("metrics and traces are not taken; send logs only (match their tags)")
            }
            FluentError::TooLarge(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for FluentError {}

impl From<MsgpackError> for FluentError {
    fn from(error: MsgpackError) -> FluentError {
        FluentError::Msgpack(error)
    }
}

/// A chunk, which is acknowledged by the name that its sender gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    name: Vec<u8>,
    is_text: bool,
    identity: u128,
}

impl Chunk {
    /// What tells it from others: a hash of its name, its tag and its events, however they were
    /// compressed. The same chunk sent again has the same; two chunks that were given one name by
    /// mistake have not.
    pub fn identity(&self) -> u128 {
        self.identity
    }

    /// Appends the acknowledgement.
    pub fn write_ack(&self, out: &mut Vec<u8>) {
        write::map(1, out);
        write::text(b"ack", out);
        if self.is_text {
            write::text(&self.name, out)
        } else {
            write::bytes(&self.name, out)
        }
    }
}

/// The events of a message, or of several one behind the other that want no acknowledgement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecodedEvents {
    /// The records, in order.
    pub batches: Vec<Batch>,
    /// The chunk that they are, if its sender waits for an acknowledgement.
    pub chunk: Option<Chunk>,
    /// Events that are none: kept as they could be.
    pub malformed: usize,
    /// Records that were cut to the limit of a line.
    pub truncated: usize,
}

/// Decodes messages that stand one behind the other, of a sender of this name. The events of one have at most `bytes_max`
/// bytes when decompressed.
///
/// # Errors
/// Of the first message that cannot be taken. What stands before it is given all the same.
pub fn decode(
    messages: &[u8],
    sender: &str,
    (bytes_max, line_bytes_max): (usize, usize),
) -> (Vec<DecodedEvents>, Result<(), FluentError>) {
    let mut parts = vec![DecodedEvents::default()];
    let mut reader = Reader::new(messages);
    while !reader.is_at_end() {
        let mut taking = MessageReader {
            decoded: DecodedEvents::default(),
            bytes: 0,
            records: 0,
            sender,
            bytes_max,
            line_bytes_max: line_bytes_max.min(LINE_BYTES_MAX),
        };
        let taken = reader.value().map_err(FluentError::Msgpack);
        if let Err(error) = taken.and_then(|message| taking.message(message)) {
            return (parts, Err(error));
        }
        let decoded = taking.decoded;
        match parts.last_mut() {
            Some(last) if last.chunk.is_none() && decoded.chunk.is_none() => last.append(decoded),
            _ => parts.push(decoded),
        }
    }
    (parts, Ok(()))
}

impl DecodedEvents {
    fn append(&mut self, mut other: DecodedEvents) {
        self.malformed += other.malformed;
        self.truncated += other.truncated;
        for batch in other.batches.drain(..) {
            match self.batches.last_mut().filter(|last| has_room(last)) {
                Some(last) => batch.iter().for_each(|held| last.push(held)),
                None => self.batches.push(batch),
            }
        }
    }
}

fn has_room(batch: &Batch) -> bool {
    batch.len() < BATCH_RECORDS_MAX && batch.payload().len() < BATCH_BYTES_TARGET
}

/// What a message says beside its events.
#[derive(Default)]
struct Options<'a> {
    chunk: Option<Chunk>,
    compressed: Cow<'a, str>,
    /// What Fluent Bit sends: 0 are logs.
    signal: i64,
}

impl<'a> Options<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Options<'a>, FluentError> {
        let mut options = Options::default();
        let count = match reader.token()? {
            Token::Nil => return Ok(options),
            Token::Map(count) => count,
            _ => return Err(FluentError::Message("its option is no map")),
        };
        for _ in 0..count {
            let name = reader.token()?;
            let mut value = Reader::new(reader.value()?);
            let (Token::Text(name) | Token::Bytes(name)) = name else {
                return Err(FluentError::Message(
                    "its option has a name that is no text",
                ));
            };
            match (name, value.token()?) {
                (b"chunk", Token::Text(name)) => options.chunk = Some(chunk(name, true)),
                (b"chunk", Token::Bytes(name)) => options.chunk = Some(chunk(name, false)),
                (b"chunk", Token::Nil) => {}
                // Without its acknowledgement the sender would send it for ever.
                (b"chunk", _) => return Err(FluentError::Message("its chunk is no text")),
                (b"compressed", Token::Text(name) | Token::Bytes(name)) => {
                    options.compressed = String::from_utf8_lossy(name);
                }
                (b"fluent_signal", Token::Int(signal)) => options.signal = signal,
                _ => {}
            }
        }
        Ok(options)
    }

    fn encoding(&self) -> Result<Encoding, FluentError> {
        match &*self.compressed {
            "" | "text" | "none" => Ok(Encoding::Identity),
            "gzip" => Ok(Encoding::Gzip),
            "zstd" => Ok(Encoding::Zstd),
            other => Err(FluentError::Compression(other.chars().take(40).collect())),
        }
    }
}

fn chunk(name: &[u8], is_text: bool) -> Chunk {
    Chunk {
        name: name.to_vec(),
        is_text,
        identity: 0,
    }
}

impl Chunk {
    /// With what it has beside its name.
    fn of(mut self, parts: &[&[u8]]) -> Chunk {
        let mut hash = Xxh3::new();
        for part in [&*self.name].iter().chain(parts) {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        self.identity = hash.digest128();
        self
    }
}

/// A message that is being read.
struct MessageReader<'s> {
    decoded: DecodedEvents,
    /// Of all its batches.
    bytes: usize,
    /// Records so far.
    records: usize,
    sender: &'s str,
    bytes_max: usize,
    line_bytes_max: usize,
}

impl MessageReader<'_> {
    fn message(&mut self, message: &[u8]) -> Result<(), FluentError> {
        let mut reader = Reader::new(message);
        let count = match reader.token()? {
            // Says that the sender is still there.
            Token::Nil => return Ok(()),
            Token::List(count @ 2..=4) => count,
            _ => return Err(FluentError::Message("it is no list of 2 to 4 values")),
        };
        let tag = match reader.token()? {
            Token::Text(tag) | Token::Bytes(tag) => String::from_utf8_lossy(tag),
            _ => return Err(FluentError::Message("its tag is no text")),
        };
        let mut second = reader.clone();
        let events = reader.value()?;
        let first = second.token()?;
        let has_record = match first {
            Token::Text(_) | Token::Bytes(_) => false,
            Token::List(_) => is_entry_head(events),
            _ => true,
        };
        let mut record = None;
        if has_record {
            if count < 3 {
                return Err(FluentError::Message("it has a time and no record"));
            }
            record = Some(reader.value()?);
        }
        let mut options = if reader.is_at_end() {
            Options::default()
        } else {
            Options::read(&mut reader)?
        };
        if options.signal != 0 {
            return Err(FluentError::NoLogs);
        }
        let chunk = options.chunk.take();
        let identify = |events: &[u8], record: &[u8]| {
            let parts = [tag.as_bytes(), events, record];
            self.decoded.chunk = chunk.map(|chunk| chunk.of(&parts));
        };
        match (record, first) {
            (Some(record), _) => {
                identify(events, record);
                self.event(&tag, events, record)
            }
            (None, Token::List(count)) => {
                identify(events, b"");
                self.entries(&tag, &mut second, Some(count))
            }
            (None, Token::Text(packed) | Token::Bytes(packed)) => {
                let packed = decompressed(packed, options.encoding()?, self.bytes_max)
                    .map_err(FluentError::Compressed)?;
                identify(&packed, b"");
                self.entries(&tag, &mut Reader::new(&packed), None)
            }
            (None, _) => Err(FluentError::Message("it has no events")),
        }
    }

    /// Takes so many entries, or all there are.
    fn entries(
        &mut self,
        tag: &str,
        reader: &mut Reader<'_>,
        count: Option<usize>,
    ) -> Result<(), FluentError> {
        let mut taken = 0;
        while count.map_or(!reader.is_at_end(), |count| taken < count) {
            taken += 1;
            let entry = reader.value()?;
            let mut parts = Reader::new(entry);
            match parts.token()? {
                Token::List(2) => {
                    let head = parts.value()?;
                    self.event(tag, head, parts.value()?)?;
                }
                // Bytes that happen to be MessagePack, such as a time as text.
                Token::Int(_) if count.is_none() => {
                    return Err(FluentError::Message("its events are no lists"));
                }
                // It has no record: all of it is.
                _ => self.event(tag, b"\xc0", entry)?,
            }
        }
        Ok(())
    }

    /// Takes an event: its time, or that with metadata, and its record.
    fn event(&mut self, tag: &str, head: &[u8], record: &[u8]) -> Result<(), FluentError> {
        let mut fields = Fields::new();
        let mut metadata = Fields::new();
        let mut head = Reader::new(head);
        let mut given = head.token()?;
        if let Token::List(_) = given {
            given = head.token()?;
            let meta = head.value()?;
            if flatten(meta, &mut metadata).is_err() {
                metadata.push(("metadata".into(), Value::Json(json(meta)?.into())));
            }
        }
        let time = time_of(given);
        if time.is_none() && given != Token::Nil {
            metadata.extend(unusable_time(given));
        }
        let is_map = matches!(Reader::new(record).token()?, Token::Map(_));
        let is_short = record.len() <= RECORD_BYTES_MAX.max(2 * self.line_bytes_max);
        let line = if is_map && is_short && flatten(record, &mut fields).is_ok() {
            take_line(&mut fields)
        } else {
            None
        };
        let (mut kind, mut line) = match line {
            Some(line) => (EntryKind::Line, line),
            None => {
                fields.clear();
                let kind = if is_map {
                    EntryKind::Json
                } else {
                    EntryKind::Line
                };
                self.decoded.malformed += usize::from(!is_map);
                (kind, Cow::Owned(json(record)?.into_bytes()))
            }
        };
        keep_last(&mut fields, 0);
        keep_last(&mut metadata, 0);
        fields.append(&mut metadata);
        fields.push(("tag".into(), Value::Str(tag.into())));
        if !fields.iter().any(|(name, _)| name == HOSTNAME) {
            fields.push((HOSTNAME.into(), Value::Str(self.sender.into())));
        }
        // Metadata and the tag are kept beside a member of their name.
        let each = fields.iter().map(|(name, value)| (&**name, value));
        let apart: Option<Fields<'static>> = super::layers::apart(each).map(|apart| {
            let owned = |(name, value): (Cow<'_, str>, &Value<'_>)| {
                (Cow::Owned(name.into_owned()), value.clone().into_owned())
            };
            apart.into_iter().map(owned).collect()
        });
        if let Some(apart) = apart {
            fields = apart;
        }
        // What cannot be fields all the same is the line, with the tag only.
        if check_names(fields.iter().map(|(name, _)| &**name)).is_err() {
            kind = EntryKind::Json;
            line = Cow::Owned(json(record)?.into_bytes());
            fields = vec![("tag".into(), Value::Str(tag.chars().take(256).collect()))];
        }
        if kind == EntryKind::Json && super::json::validate(&line).is_err() {
            kind = EntryKind::Line;
        }
        if line.len() > self.line_bytes_max {
            self.decoded.truncated += 1;
            let sent = line.len().to_string();
            fields.push((TRUNCATED_FIELD.into(), Value::Str(sent.into())));
            line = Cow::Owned(line[..self.line_bytes_max].to_vec());
            kind = EntryKind::Line;
        }
        self.push(kind, time, &fields, &line)
    }

    fn push(
        &mut self,
        kind: EntryKind,
        time: Option<Timestamp>,
        fields: &Fields<'_>,
        line: &[u8],
    ) -> Result<(), FluentError> {
        let batches = &mut self.decoded.batches;
        if !batches.last().is_some_and(has_room) {
            batches.push(Batch::new(EntryKind::Enveloped, Labels::new()));
        }
        let each = fields.iter().map(|(name, value)| (&**name, value));
        if let Some(batch) = batches.last_mut() {
            let before = batch.payload().len();
            batch.push_enveloped(kind, time, each, line);
            self.bytes += batch.payload().len() - before;
        }
        self.records += 1;
        if self.records > super::BATCH_RECORDS_MAX {
            return Err(FluentError::TooLarge(TooLarge::Records));
        }
        if self.bytes > BATCH_BYTES_MAX {
            Err(FluentError::TooLarge(TooLarge::Bytes))
        } else {
            Ok(())
        }
    }
}

/// Whether a list is a time with metadata, rather than entries.
fn is_entry_head(list: &[u8]) -> bool {
    let mut reader = Reader::new(list);
    let is_pair = reader.token() == Ok(Token::List(2));
    let time = reader.token();
    is_pair
        && matches!(
            time,
            Ok(Token::Int(_) | Token::Float(_) | Token::Extension(..))
        )
}

/// The time that a token is: seconds, or `EventTime`, which has nanoseconds.
fn time_of(token: Token<'_>) -> Option<Timestamp> {
    let time = match token {
        Token::Int(seconds) => seconds.checked_mul(NANOS)?,
        Token::Float(seconds) => cast::whole_i64(seconds * cast::float(NANOS)),
        Token::Extension(0, bytes) => {
            let (seconds, rest) = bytes.split_first_chunk()?;
            let nanos: &[u8; 4] = rest.try_into().ok()?;
            let (seconds, nanos) = (u32::from_be_bytes(*seconds), u32::from_be_bytes(*nanos));
            i64::from(seconds) * NANOS + i64::from(nanos)
        }
        _ => return None,
    };
    let time = Timestamp(time);
    (time.0 > 0 && check_time(Some(time)).is_ok()).then_some(time)
}

/// A time that is none, as a field.
fn unusable_time(token: Token<'_>) -> Option<(Cow<'static, str>, Value<'static>)> {
    let value = match token {
        Token::Int(0) => return None,
        Token::Int(seconds) => Value::Int(seconds),
        Token::Float(seconds) => Value::Float(seconds),
        Token::Text(text) => Value::Str(String::from_utf8_lossy(text).into_owned().into()),
        _ => return None,
    };
    Some(("time".into(), value))
}

/// Takes the line out of the fields.
fn take_line<'a>(fields: &mut Fields<'a>) -> Option<Cow<'a, [u8]>> {
    let is_text = |value: &Value<'_>| matches!(value, Value::Str(_) | Value::Bytes(_));
    let place = LINE_NAMES.iter().find_map(|wanted| {
        let mut each = fields.iter();
        each.position(|(name, value)| name == wanted && is_text(value))
    })?;
    let line = match fields.remove(place).1 {
        Value::Str(Cow::Borrowed(text)) => Cow::Borrowed(text.as_bytes()),
        Value::Str(Cow::Owned(text)) => Cow::Owned(text.into_bytes()),
        Value::Bytes(bytes) => bytes,
        _ => return None,
    };
    Some(match line {
        Cow::Borrowed(line) => Cow::Borrowed(line.strip_suffix(b"\n").unwrap_or(line)),
        Cow::Owned(mut line) => {
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            Cow::Owned(line)
        }
    })
}

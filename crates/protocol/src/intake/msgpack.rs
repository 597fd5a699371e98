//! MessagePack: values one behind the other, read without a schema and without a tree of them.
//!
//! Source: the MessagePack specification.
//!
//! Invariants: nothing recurses but over values whose depth is checked, nothing is allocated from a
//! length that a sender gave, and each byte of a stream is looked at once to find the end of a value.

use std::borrow::Cow;
use std::fmt;

use logpond_record::limits::{FIELDS_MAX, JSON_DEPTH_MAX};
use logpond_record::{Value, cast, write_json_string};

/// What stands at one place: a scalar, or how many values follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Token<'a> {
    Nil,
    Bool(bool),
    Int(i64),
    /// More than an `i64` holds.
    Big(u64),
    Float(f64),
    Text(&'a [u8]),
    Bytes(&'a [u8]),
    List(usize),
    /// Twice as many values follow: names and values in turns.
    Map(usize),
    Extension(i8, &'a [u8]),
}

/// The bytes are no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MsgpackError {
    /// A byte that begins nothing, or an end within a value.
    Malformed,
    /// A value that is longer than allowed, in bytes.
    TooLong(usize),
}

impl fmt::Display for MsgpackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MsgpackError::Malformed => f.write_str("it is no MessagePack"),
            MsgpackError::TooLong(max) => write!(f, "it is longer than {max} bytes"),
        }
    }
}

impl std::error::Error for MsgpackError {}

/// What the first bytes of a value say.
enum Kind {
    Nil,
    Bool(bool),
    /// The number stands in the first byte.
    Small(i64),
    Unsigned,
    Signed,
    Float,
    Text,
    Bytes,
    List(usize),
    Map(usize),
    Extension,
}

/// Length of the head, what it begins, and bytes behind it that belong to it.
struct Head {
    bytes: usize,
    kind: Kind,
    payload: usize,
}

/// Reads a head; `None` if it is not all there.
fn head(bytes: &[u8]) -> Result<Option<Head>, MsgpackError> {
    let Some(&first) = bytes.first() else {
        return Ok(None);
    };
    let short = |kind, payload| {
        Ok(Some(Head {
            bytes: 1,
            kind,
            payload,
        }))
    };
    let low = |mask: u8| usize::from(first & mask);
    match first {
        0x00..=0x7f => return short(Kind::Small(i64::from(first)), 0),
        0x80..=0x8f => return short(Kind::Map(low(0x0f)), 0),
        0x90..=0x9f => return short(Kind::List(low(0x0f)), 0),
        0xa0..=0xbf => return short(Kind::Text, low(0x1f)),
        0xc0 => return short(Kind::Nil, 0),
        0xc1 => return Err(MsgpackError::Malformed),
        0xc2 | 0xc3 => return short(Kind::Bool(first == 0xc3), 0),
        0xca | 0xcb => return short(Kind::Float, 4 << (first - 0xca)),
        0xcc..=0xcf => return short(Kind::Unsigned, 1 << (first - 0xcc)),
        0xd0..=0xd3 => return short(Kind::Signed, 1 << (first - 0xd0)),
        0xd4..=0xd8 => return short(Kind::Extension, 1 + (1 << (first - 0xd4))),
        0xe0..=0xff => return short(Kind::Small(i64::from(cast::low_i8(first))), 0),
        0xc4..=0xc9 | 0xd9..=0xdf => {}
    }
    // What is left has a length of 1, 2 or 4 bytes.
    let width = match first {
        0xc4 | 0xc7 | 0xd9 => 1,
        0xc5 | 0xc8 | 0xda | 0xdc | 0xde => 2,
        _ => 4,
    };
    let Some(digits) = bytes.get(1..1 + width) else {
        return Ok(None);
    };
    let length = digits.iter().fold(0, |n, &b| n << 8 | usize::from(b));
    let (kind, payload) = match first {
        0xc4..=0xc6 => (Kind::Bytes, length),
        0xc7..=0xc9 => (Kind::Extension, 1 + length),
        0xd9..=0xdb => (Kind::Text, length),
        0xdc | 0xdd => (Kind::List(length), 0),
        _ => (Kind::Map(length), 0),
    };
    Ok(Some(Head {
        bytes: 1 + width,
        kind,
        payload,
    }))
}

impl Kind {
    /// How many values follow that belong to it.
    fn values(&self) -> usize {
        match self {
            Kind::List(count) => *count,
            Kind::Map(count) => count * 2,
            _ => 0,
        }
    }
}

/// Finds where a value ends whose bytes come bit by bit.
#[derive(Clone, Debug)]
pub struct ValueEnd {
    at: usize,
    /// Values that are to come, each of at least a byte.
    pending: usize,
}

impl Default for ValueEnd {
    fn default() -> ValueEnd {
        ValueEnd { at: 0, pending: 1 }
    }
}

impl ValueEnd {
    /// Where the value ends that `bytes` begin with, if it ends there; all calls for one value give
    /// the bytes of the call before and those that came since.
    ///
    /// # Errors
    /// When they are no value, or one of more than `bytes_max`.
    pub fn find(&mut self, bytes: &[u8], bytes_max: usize) -> Result<Option<usize>, MsgpackError> {
        while self.pending > 0 && self.at <= bytes.len() {
            let Some(head) = head(&bytes[self.at..])? else {
                return Ok(None);
            };
            self.at += head.bytes + head.payload;
            self.pending = self.pending - 1 + head.kind.values();
            if self.at.saturating_add(self.pending) > bytes_max {
                return Err(MsgpackError::TooLong(bytes_max));
            }
        }
        Ok((self.pending == 0 && self.at <= bytes.len()).then_some(self.at))
    }
}

/// Reads values.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// The next token.
    pub(crate) fn token(&mut self) -> Result<Token<'a>, MsgpackError> {
        let head = head(self.0)?.ok_or(MsgpackError::Malformed)?;
        let rest = &self.0[head.bytes..];
        let split = rest.split_at_checked(head.payload);
        let (payload, rest) = split.ok_or(MsgpackError::Malformed)?;
        self.0 = rest;
        let unsigned = || payload.iter().fold(0, |n, &b| n << 8 | u64::from(b));
        Ok(match head.kind {
            Kind::Nil => Token::Nil,
            Kind::Bool(value) => Token::Bool(value),
            Kind::Small(value) => Token::Int(value),
            Kind::Unsigned => match i64::try_from(unsigned()) {
                Ok(value) => Token::Int(value),
                Err(_) => Token::Big(unsigned()),
            },
            Kind::Signed => {
                let shift = 64 - 8 * cast::low_u32(payload.len());
                Token::Int(cast::signed(unsigned() << shift) >> shift)
            }
            Kind::Float if payload.len() == 4 => {
                Token::Float(f64::from(f32::from_bits(cast::low_u32(unsigned()))))
            }
            Kind::Float => Token::Float(f64::from_bits(unsigned())),
            Kind::Text => Token::Text(payload),
            Kind::Bytes => Token::Bytes(payload),
            Kind::List(count) => Token::List(count),
            Kind::Map(count) => Token::Map(count),
            Kind::Extension => Token::Extension(cast::low_i8(payload[0]), &payload[1..]),
        })
    }

    /// The bytes of the next value, which is skipped.
    pub(crate) fn value(&mut self) -> Result<&'a [u8], MsgpackError> {
        let end = ValueEnd::default().find(self.0, usize::MAX)?;
        let (value, rest) = self.0.split_at(end.ok_or(MsgpackError::Malformed)?);
        self.0 = rest;
        Ok(value)
    }
}

/// Names and values of a record.
pub(crate) type Fields<'a> = Vec<(Cow<'a, str>, Value<'a>)>;

/// A scalar as a value; `None` for lists and maps.
fn scalar<'a>(token: Token<'a>) -> Option<Value<'a>> {
    Some(match token {
        Token::Nil => Value::Null,
        Token::Bool(value) => Value::Bool(value),
        Token::Int(value) => Value::Int(value),
        Token::Big(value) => Value::Json(value.to_string().into()),
        Token::Float(value) => Value::Float(value),
        Token::Text(bytes) | Token::Bytes(bytes) => Value::text(bytes),
        Token::Extension(0, bytes) if bytes.len() == 8 => Value::Json(event_time(bytes).into()),
        Token::Extension(_, bytes) => Value::Bytes(bytes.into()),
        Token::List(_) | Token::Map(_) => return None,
    })
}

/// Seconds with nanoseconds, as a number of JSON.
fn event_time(bytes: &[u8]) -> String {
    let half = |at: usize| {
        let bytes = bytes[at..at + 4].iter();
        bytes.fold(0u64, |n, &b| n << 8 | u64::from(b))
    };
    format!("{}.{:09}", half(0), half(4))
}

/// Text of a name, whatever it is.
fn name<'a>(key: Token<'a>) -> Option<Cow<'a, str>> {
    Some(match key {
        Token::Text(bytes) | Token::Bytes(bytes) => String::from_utf8_lossy(bytes),
        other => String::from_utf8_lossy(&scalar(other)?.to_text())
            .into_owned()
            .into(),
    })
}

/// Adds the members of a map as fields, those of maps in it with the names joined by dots. One field
/// more than a record may have is the last that is added.
pub(crate) fn flatten<'a>(map: &'a [u8], to: &mut Fields<'a>) -> Result<(), MsgpackError> {
    let mut reader = Reader::new(map);
    match reader.token()? {
        Token::Map(count) => members(&mut reader, count, "", 1, to),
        _ => Err(MsgpackError::Malformed),
    }
}

fn members<'a>(
    reader: &mut Reader<'a>,
    count: usize,
    prefix: &str,
    depth: usize,
    to: &mut Fields<'a>,
) -> Result<(), MsgpackError> {
    for _ in 0..count {
        let mut key = Reader::new(reader.value()?);
        let name = name(key.token()?).ok_or(MsgpackError::Malformed)?;
        let name = match prefix {
            "" => name,
            prefix => format!("{prefix}.{name}").into(),
        };
        let value = reader.value()?;
        if to.len() > FIELDS_MAX {
            continue;
        }
        let mut inner = Reader::new(value);
        let token = inner.token()?;
        match token {
            Token::Map(count) if count > 0 && depth < JSON_DEPTH_MAX => {
                members(&mut inner, count, &name, depth + 1, to)?;
            }
            token => match scalar(token) {
                Some(scalar) => to.push((name, scalar)),
                None => {
                    let json = json(value)?;
                    to.push((name, Value::Json(json.into())));
                }
            },
        }
    }
    Ok(())
}

/// A value as JSON. What nests too deep is null, and text that is none has replacement characters.
pub(crate) fn json(value: &[u8]) -> Result<String, MsgpackError> {
    let mut out = Vec::new();
    write_json(&mut Reader::new(value), 0, &mut out)?;
    // It is made of texts.
    Ok(String::from_utf8_lossy(&out).into_owned())
}

fn write_json(
    reader: &mut Reader<'_>,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), MsgpackError> {
    if depth == JSON_DEPTH_MAX {
        reader.value()?;
        out.extend_from_slice(b"null");
        return Ok(());
    }
    match reader.token()? {
        Token::List(count) => {
            out.push(b'[');
            for index in 0..count {
                if index > 0 {
                    out.push(b',');
                }
                write_json(reader, depth + 1, out)?;
            }
            out.push(b']');
        }
        Token::Map(count) => {
            out.push(b'{');
            for index in 0..count {
                if index > 0 {
                    out.push(b',');
                }
                let mut key = Reader::new(reader.value()?);
                let name = name(key.token()?).ok_or(MsgpackError::Malformed)?;
                write_json_string(&name, out);
                out.push(b':');
                write_json(reader, depth + 1, out)?;
            }
            out.push(b'}');
        }
        token => {
            if let Some(value) = scalar(token) {
                value.write_json(out);
            }
        }
    }
    Ok(())
}

/// Writes values: answers, and for tests what is read.
pub(crate) mod write {
    use logpond_record::cast;

    /// The head of a map of so many members, at most 15.
    pub(crate) fn map(count: u8, out: &mut Vec<u8>) {
        out.push(0x80 | count & 0x0f);
    }

    /// The head of a list of so many values, at most 15.
    pub(crate) fn list(count: u8, out: &mut Vec<u8>) {
        out.push(0x90 | count & 0x0f);
    }

    pub(crate) fn bool(value: bool, out: &mut Vec<u8>) {
        out.push(0xc2 | u8::from(value));
    }

    pub(crate) fn text(bytes: &[u8], out: &mut Vec<u8>) {
        match bytes.len() {
            length @ 0..32 => out.push(0xa0 | cast::low_u8(length)),
            length @ 32..256 => out.extend_from_slice(&[0xd9, cast::low_u8(length)]),
            length => {
                out.push(0xdb);
                out.extend_from_slice(&cast::low_u32(length).to_be_bytes());
            }
        }
        out.extend_from_slice(bytes);
    }

    pub(crate) fn bytes(bytes: &[u8], out: &mut Vec<u8>) {
        out.push(0xc6);
        out.extend_from_slice(&cast::low_u32(bytes.len()).to_be_bytes());
        out.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests;

//! Messages of the protocol, version 3: those of clients are decoded, those of the server encoded.
//!
//! Invariants:
//! - A message is read only within its own length, and every count in it is checked before it is used. A message that does
//!   not fit into its length is an error, never a panic.
//! - A message of a client is at most [`MESSAGE_BYTES_MAX`] long; before the client is admitted, [`STARTUP_BYTES_MAX`].

use std::fmt;

use bytes::{Buf, Bytes, BytesMut};

/// The longest message of a client: a statement is at most 64 KiB, and its parameters become a part of it.
pub(crate) const MESSAGE_BYTES_MAX: usize = 256 << 10;

/// The longest message of a client that is not admitted yet.
pub(crate) const STARTUP_BYTES_MAX: usize = 10_000;

/// Parameters of a statement, and columns of a result, of which a message can name the forms.
pub(crate) const FORMATS_MAX: usize = 4096;

const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
const CANCEL_REQUEST: u32 = 80_877_102;

/// The only major version that is spoken.
const MAJOR: u32 = 3;

/// The first message of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// The client wants TLS.
    Ssl,
    /// The client wants encryption by GSSAPI.
    Gss,
    /// Another connection's statement is to be cancelled.
    Cancel { process_id: i32, secret: i32 },
    /// A session begins.
    Startup {
        minor: u32,
        parameters: Vec<(String, String)>,
    },
}

/// A message of a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frontend {
    Query(String),
    Parse {
        name: String,
        text: String,
        types: Vec<u32>,
    },
    Bind {
        portal: String,
        statement: String,
        formats: Vec<i16>,
        values: Vec<Option<Bytes>>,
        results: Vec<i16>,
    },
    Describe {
        target: Target,
        name: String,
    },
    Execute {
        portal: String,
        rows_max: i32,
    },
    Close {
        target: Target,
        name: String,
    },
    Flush,
    Sync,
    Terminate,
    Password(Bytes),
    /// Data of a copy, which is ignored: no copy is ever begun.
    Copy,
    FunctionCall,
}

/// The object of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Statement,
    Portal,
}

/// A message that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WireError(String);

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn broken(what: &str) -> WireError {
    WireError(format!("invalid message: {what}"))
}

/// The rest of a message.
struct Rest(Bytes);

impl Rest {
    fn take(&mut self, count: usize) -> Result<Bytes, WireError> {
        if self.0.len() < count {
            return Err(broken("it ends too early"));
        }
        Ok(self.0.split_to(count))
    }

    fn u16(&mut self) -> Result<u16, WireError> {
        Ok(self.take(2)?.get_u16())
    }

    fn i32(&mut self) -> Result<i32, WireError> {
        Ok(self.take(4)?.get_i32())
    }

    fn u32(&mut self) -> Result<u32, WireError> {
        Ok(self.take(4)?.get_u32())
    }

    fn text(&mut self) -> Result<String, WireError> {
        let end = self.0.iter().position(|byte| *byte == 0);
        let end = end.ok_or_else(|| broken("a text has no end"))?;
        let text = self.take(end)?;
        self.0.advance(1);
        String::from_utf8(text.to_vec()).map_err(|_| broken("a text is not UTF-8"))
    }

    fn target(&mut self) -> Result<Target, WireError> {
        match self.take(1)?.get_u8() {
            b'S' => Ok(Target::Statement),
            b'P' => Ok(Target::Portal),
            _ => Err(broken("it is about no statement and no portal")),
        }
    }

    fn formats(&mut self) -> Result<Vec<i16>, WireError> {
        let count = usize::from(self.u16()?);
        if count > FORMATS_MAX {
            return Err(broken("too many forms"));
        }
        let mut formats = Vec::with_capacity(count);
        for _ in 0..count {
            formats.push(self.take(2)?.get_i16());
        }
        Ok(formats)
    }

    fn end<T>(self, message: T) -> Result<T, WireError> {
        if self.0.is_empty() {
            Ok(message)
        } else {
            Err(broken("it is longer than its content"))
        }
    }
}

/// True if the value at a place is in binary. Without a form all are texts, one form is for all, else each has its own.
pub(crate) fn is_binary(formats: &[i16], at: usize) -> bool {
    let format = match formats {
        [all] => Some(all),
        each => each.get(at),
    };
    format == Some(&1)
}

/// The length in the first bytes, behind `before` others.
fn length(input: &[u8], before: usize) -> Option<usize> {
    let bytes: [u8; 4] = input.get(before..before + 4)?.try_into().ok()?;
    Some(usize::try_from(u32::from_be_bytes(bytes)).unwrap_or(usize::MAX))
}

/// Takes the first message of a connection, once all of it is there.
pub(crate) fn opening(input: &mut BytesMut) -> Result<Option<Opening>, WireError> {
    let Some(length) = length(input, 0) else {
        return Ok(None);
    };
    if !(8..=STARTUP_BYTES_MAX).contains(&length) {
        return Err(broken("the first message is no request of Postgres"));
    }
    if input.len() < length {
        return Ok(None);
    }
    let mut rest = Rest(input.split_to(length).freeze());
    rest.take(4)?;
    let code = rest.u32()?;
    match code {
        SSL_REQUEST => rest.end(Opening::Ssl).map(Some),
        GSS_REQUEST => rest.end(Opening::Gss).map(Some),
        CANCEL_REQUEST => {
            let (process_id, secret) = (rest.i32()?, rest.i32()?);
            rest.end(Opening::Cancel { process_id, secret }).map(Some)
        }
        _ if code >> 16 == MAJOR => {
            let mut parameters = Vec::new();
            loop {
                let name = rest.text()?;
                if name.is_empty() {
                    break;
                }
                parameters.push((name, rest.text()?));
            }
            let minor = code & 0xffff;
            rest.end(Opening::Startup { minor, parameters }).map(Some)
        }
        _ => Err(WireError(format!(
            "unsupported protocol {}.{}: version 3.0 is spoken here",
            code >> 16,
            code & 0xffff
        ))),
    }
}

/// Takes a message of at most so many bytes, once all of it is there.
pub(crate) fn message(
    input: &mut BytesMut,
    bytes_max: usize,
) -> Result<Option<Frontend>, WireError> {
    let Some(length) = length(input, 1) else {
        return Ok(None);
    };
    if length < 4 || length > bytes_max {
        return Err(WireError(format!(
            "a message has {length} bytes; the longest may have {bytes_max}"
        )));
    }
    if input.len() < length + 1 {
        return Ok(None);
    }
    let mut rest = Rest(input.split_to(length + 1).freeze());
    let kind = rest.take(1)?.get_u8();
    rest.take(4)?;
    decode(kind, rest).map(Some)
}

fn decode(kind: u8, mut rest: Rest) -> Result<Frontend, WireError> {
    match kind {
        b'Q' => {
            let text = rest.text()?;
            rest.end(Frontend::Query(text))
        }
        b'P' => {
            let (name, text) = (rest.text()?, rest.text()?);
            let count = usize::from(rest.u16()?);
            if count > FORMATS_MAX {
                return Err(broken("too many parameters"));
            }
            let mut types = Vec::with_capacity(count);
            for _ in 0..count {
                types.push(rest.u32()?);
            }
            rest.end(Frontend::Parse { name, text, types })
        }
        b'B' => bind(rest),
        b'D' => {
            let (target, name) = (rest.target()?, rest.text()?);
            rest.end(Frontend::Describe { target, name })
        }
        b'E' => {
            let (portal, rows_max) = (rest.text()?, rest.i32()?);
            rest.end(Frontend::Execute { portal, rows_max })
        }
        b'C' => {
            let (target, name) = (rest.target()?, rest.text()?);
            rest.end(Frontend::Close { target, name })
        }
        b'H' => rest.end(Frontend::Flush),
        b'S' => rest.end(Frontend::Sync),
        b'X' => rest.end(Frontend::Terminate),
        b'p' => Ok(Frontend::Password(rest.0)),
        b'd' | b'c' | b'f' => Ok(Frontend::Copy),
        b'F' => Ok(Frontend::FunctionCall),
        other => Err(WireError(format!("unknown message {other:#04x}"))),
    }
}

fn bind(mut rest: Rest) -> Result<Frontend, WireError> {
    let (portal, statement) = (rest.text()?, rest.text()?);
    let formats = rest.formats()?;
    let count = usize::from(rest.u16()?);
    if count > FORMATS_MAX {
        return Err(broken("too many parameters"));
    }
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        values.push(match usize::try_from(rest.i32()?) {
            Ok(length) => Some(rest.take(length)?),
            Err(_) => None,
        });
    }
    let results = rest.formats()?;
    rest.end(Frontend::Bind {
        portal,
        statement,
        formats,
        values,
        results,
    })
}

/// Appends a message of the server whose content `write` appends.
pub(crate) fn put(out: &mut Vec<u8>, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    set_length(out, at);
}

/// Writes the length of what is behind this place, and of itself.
pub(crate) fn set_length(out: &mut [u8], at: usize) {
    // Messages of the server are bounded by their rows, and rows by the records they are of.
    let length = u32::try_from(out.len() - at).unwrap_or(u32::MAX);
    if let Some(place) = out.get_mut(at..at + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}

/// The end of the message that is on its way once so many bytes were sent; the same number between two messages.
pub(crate) fn message_end(messages: &[u8], sent: usize) -> usize {
    let mut end = 0;
    while end < sent {
        let length = messages.get(end + 1..).and_then(|rest| rest.first_chunk());
        let length = length.map_or(messages.len(), |bytes| u32::from_be_bytes(*bytes) as usize);
        end = (end + 1 + length).min(messages.len());
    }
    end
}

/// Appends a text and its end.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().filter(|byte| *byte != 0));
    out.push(0);
}

/// Appends a message without content.
pub(crate) fn put_empty(out: &mut Vec<u8>, kind: u8) {
    put(out, kind, |_| ());
}

/// Appends the request for a password.
pub(crate) fn put_password_request(out: &mut Vec<u8>) {
    put(out, b'R', |out| out.extend_from_slice(&3_u32.to_be_bytes()));
}

/// Appends the mechanisms (SASL) by which a client can show that it has a password.
pub(crate) fn put_mechanisms(out: &mut Vec<u8>, names: &[&str]) {
    put(out, b'R', |out| {
        out.extend_from_slice(&10_u32.to_be_bytes());
        names.iter().for_each(|name| put_text(out, name));
        out.push(0);
    });
}

/// The exchange of a mechanism goes on.
pub(crate) const SASL_GOES_ON: u32 = 11;

/// The exchange of a mechanism ends.
pub(crate) const SASL_ENDS: u32 = 12;

/// Appends a message of the exchange of a mechanism.
pub(crate) fn put_sasl(out: &mut Vec<u8>, step: u32, message: &str) {
    put(out, b'R', |out| {
        out.extend_from_slice(&step.to_be_bytes());
        out.extend_from_slice(message.as_bytes());
    });
}

/// The first answer of a client in the exchange of a mechanism.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SaslResponse {
    pub(crate) mechanism: String,
    pub(crate) data: String,
}

/// Reads the content of a message for a password as that answer.
///
/// # Errors
/// When it is something else.
pub(crate) fn sasl_response(content: Bytes) -> Result<SaslResponse, WireError> {
    let mut rest = Rest(content);
    let (mechanism, length) = (rest.text()?, rest.i32()?);
    let data = rest.take(usize::try_from(length).unwrap_or(0))?;
    let data = String::from_utf8(data.to_vec()).map_err(|_| broken("a text is not UTF-8"))?;
    rest.end(SaslResponse { mechanism, data })
}

/// Appends that the client is admitted.
pub(crate) fn put_admitted(out: &mut Vec<u8>) {
    put(out, b'R', |out| out.extend_from_slice(&0_u32.to_be_bytes()));
}

/// Appends the value of a setting.
pub(crate) fn put_parameter(out: &mut Vec<u8>, name: &str, value: &str) {
    put(out, b'S', |out| {
        put_text(out, name);
        put_text(out, value);
    });
}

/// Appends what cancels statements of a session.
pub(crate) fn put_key(out: &mut Vec<u8>, process_id: i32, secret: i32) {
    put(out, b'K', |out| {
        out.extend_from_slice(&process_id.to_be_bytes());
        out.extend_from_slice(&secret.to_be_bytes());
    });
}

/// Appends that only version 3.0 is spoken, and which options are not known.
pub(crate) fn put_version(out: &mut Vec<u8>, unknown: &[&str]) {
    put(out, b'v', |out| {
        out.extend_from_slice(&0_u32.to_be_bytes());
        let count = u32::try_from(unknown.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&count.to_be_bytes());
        for name in unknown {
            put_text(out, name);
        }
    });
}

/// Appends that the next message may come, with the letter of the transaction.
pub(crate) fn put_ready(out: &mut Vec<u8>, transaction: u8) {
    put(out, b'Z', |out| out.push(transaction));
}

/// Appends the end of a command.
pub(crate) fn put_complete(out: &mut Vec<u8>, tag: &str) {
    put(out, b'C', |out| put_text(out, tag));
}

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnDescription {
    pub(crate) name: String,
    pub(crate) oid: u32,
    pub(crate) bytes: i16,
    pub(crate) is_binary: bool,
}

/// Appends the columns of a result.
pub(crate) fn put_columns(out: &mut Vec<u8>, columns: &[ColumnDescription]) {
    put(out, b'T', |out| {
        put_count(out, columns.len());
        for column in columns {
            put_text(out, &column.name);
            // Of no table: clients would look for it to change a row.
            out.extend_from_slice(&0_u32.to_be_bytes());
            out.extend_from_slice(&0_u16.to_be_bytes());
            out.extend_from_slice(&column.oid.to_be_bytes());
            out.extend_from_slice(&column.bytes.to_be_bytes());
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            out.extend_from_slice(&u16::from(column.is_binary).to_be_bytes());
        }
    });
}

/// Appends the types of parameters.
pub(crate) fn put_parameter_types(out: &mut Vec<u8>, types: &[u32]) {
    put(out, b't', |out| {
        put_count(out, types.len());
        for oid in types {
            out.extend_from_slice(&oid.to_be_bytes());
        }
    });
}

/// Appends a count of 16 bits.
pub(crate) fn put_count(out: &mut Vec<u8>, count: usize) {
    let count = u16::try_from(count).unwrap_or(u16::MAX);
    out.extend_from_slice(&count.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(kind: u8, content: &[u8]) -> BytesMut {
        let mut out = Vec::new();
        put(&mut out, kind, |out| out.extend_from_slice(content));
        BytesMut::from(&out[..])
    }

    fn decoded(kind: u8, content: &[u8]) -> Result<Option<Frontend>, WireError> {
        message(&mut framed(kind, content), MESSAGE_BYTES_MAX)
    }

    #[test]
    fn the_end_of_a_message_is_found() {
        let messages = [framed(b'D', b"abc"), framed(b'D', b""), framed(b'C', b"d")].concat();
        let ends = [8, 13, 19];
        for sent in 0..=messages.len() {
            let expected = ends.into_iter().find(|end| *end >= sent && sent > 0);
            assert_eq!(
                message_end(&messages, sent),
                expected.unwrap_or(0),
                "{sent}"
            );
        }
    }

    #[test]
    fn messages_are_decoded() {
        let query = decoded(b'Q', b"SELECT 1\0").unwrap();
        assert_eq!(query, Some(Frontend::Query("SELECT 1".to_owned())));
        let parse = decoded(b'P', b"s\0SELECT $1\0\0\x01\0\0\0\x14").unwrap();
        let expected = Frontend::Parse {
            name: "s".to_owned(),
            text: "SELECT $1".to_owned(),
            types: vec![20],
        };
        assert_eq!(parse, Some(expected));
        let bind = b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\x01\0\0";
        let expected = Frontend::Bind {
            portal: "p".to_owned(),
            statement: "s".to_owned(),
            formats: vec![1],
            values: vec![Some(Bytes::from_static(b"ab")), None],
            results: vec![0],
        };
        assert_eq!(decoded(b'B', bind).unwrap(), Some(expected));
    }

    #[test]
    fn every_cut_of_a_message_is_an_error() {
        let whole: [(u8, &[u8]); 5] = [
            (b'Q', b"SELECT 1\0"),
            (b'P', b"s\0SELECT $1\0\0\x01\0\0\0\x14"),
            (
                b'B',
                b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\x01\0\0",
            ),
            (b'D', b"Sname\0"),
            (b'E', b"p\0\0\0\0\x05"),
        ];
        for (kind, content) in whole {
            for length in 0..content.len() {
                let cut = decoded(kind, &content[..length]);
                assert!(cut.is_err(), "{kind} {length}: {cut:?}");
            }
            let mut long = content.to_vec();
            long.push(0);
            assert!(decoded(kind, &long).is_err(), "{kind}");
            // A part of it waits for the rest, which the message behind it is no part of.
            let mut parts = framed(kind, content);
            let rest = parts.split_off(parts.len() - 1);
            assert_eq!(message(&mut parts, MESSAGE_BYTES_MAX), Ok(None));
            parts.unsplit(rest);
            parts.extend_from_slice(&framed(b'S', b""));
            assert!(message(&mut parts, MESSAGE_BYTES_MAX).unwrap().is_some());
            assert_eq!(
                message(&mut parts, MESSAGE_BYTES_MAX),
                Ok(Some(Frontend::Sync))
            );
        }
        assert!(message(&mut BytesMut::from(&b"Q\xff\xff\xff\xff"[..]), 100).is_err());
        assert!(message(&mut BytesMut::from(&b"Q\0\0\0\x03"[..]), 100).is_err());
    }

    #[test]
    fn openings_are_told_apart() {
        let table: [(&[u8], Opening); 3] = [
            (b"\0\0\0\x08\x04\xd2\x16\x2f", Opening::Ssl),
            (
                b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x07\0\0\0\x09",
                Opening::Cancel {
                    process_id: 7,
                    secret: 9,
                },
            ),
            (
                b"\0\0\0\x12\0\x03\0\0user\0ann\0\0",
                Opening::Startup {
                    minor: 0,
                    parameters: vec![("user".to_owned(), "ann".to_owned())],
                },
            ),
        ];
        for (bytes, expected) in table {
            let mut input = BytesMut::from(bytes);
            assert_eq!(opening(&mut input), Ok(Some(expected)));
            assert_eq!(opening(&mut BytesMut::from(&bytes[..5])), Ok(None));
        }
        for bytes in [&b"GET / HTTP/1.1\r\n"[..], b"\0\0\0\x08\0\x02\0\0"] {
            assert!(opening(&mut BytesMut::from(bytes)).is_err());
        }
    }
}

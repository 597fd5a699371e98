//! `PushRequest` in one block of Snappy.
//!
//! ```text
//! PushRequest  1: Stream*
//! Stream       1: labels  2: Entry*
//! Entry        1: Timestamp  2: line  3: LabelPair*
//! Timestamp    1: seconds  2: nanoseconds
//! LabelPair    1: name  2: value
//! ```

use std::borrow::Cow;

use logpond_record::{Labels, Timestamp, Value, cast};

use super::{LokiError, Pairs, add, labels};
use crate::intake::protobuf::{Field, fields};
use crate::intake::push::members::keep_last;
use crate::intake::push::{DecodedBody, RejectReason, Shipment};

const NANOS: i64 = 1_000_000_000;

/// Decodes a body that is decompressed.
///
/// # Errors
/// See [`LokiError`].
pub fn decode(
    body: &[u8],
    of_batch: Labels,
    line_bytes_max: usize,
) -> Result<DecodedBody, LokiError> {
    let mut shipment = Shipment::new(of_batch, line_bytes_max);
    let mut has_streams = false;
    for field in fields(body) {
        if let (1, Field::Bytes(stream)) = field.map_err(|_| malformed("a message"))? {
            has_streams = true;
            take_stream(stream, &mut shipment)?;
        }
    }
    if !has_streams {
        return Err(LokiError::NoStreams);
    }
    Ok(shipment.finish())
}

fn malformed(what: &str) -> LokiError {
    LokiError::Body(format!("{what} is not encoded as Protocol Buffers"))
}

fn take_stream(stream: &[u8], shipment: &mut Shipment) -> Result<(), LokiError> {
    let mut text = "{}";
    // Labels may stand behind entries.
    for field in fields(stream) {
        if let (1, field) = field.map_err(|_| malformed("a stream"))? {
            text = field
                .text()
                .ok_or_else(|| malformed("the text of labels"))?;
        }
    }
    let labels = labels::read(text)?;
    let entries = fields(stream).flatten().filter(|(number, _)| *number == 2);
    for entry in entries.filter_map(|(_, field)| field.bytes()) {
        take_entry(entry, &labels, shipment)?;
    }
    Ok(())
}

/// Takes an entry in; one that is no message, or has a text that is not UTF-8, takes no other with it.
fn take_entry(entry: &[u8], labels: &Pairs<'_>, shipment: &mut Shipment) -> Result<(), LokiError> {
    match read_entry(entry) {
        Ok((time, line, mut metadata)) => {
            keep_last(&mut metadata, 0);
            add(shipment, time, &metadata, labels, line)
        }
        Err(what) => {
            let reason = format!("{what} is not encoded as Protocol Buffers, or is not UTF-8");
            shipment.reject(RejectReason::Malformed(reason));
            Ok(())
        }
    }
}

/// The time, the line and the metadata of an entry, or what of it cannot be read.
type ReadEntry<'a> = (Result<Timestamp, RejectReason>, &'a [u8], Pairs<'a>);

fn read_entry(entry: &[u8]) -> Result<ReadEntry<'_>, &'static str> {
    let (mut time, mut line, mut metadata) = (Ok(Timestamp(0)), &b""[..], Pairs::new());
    for field in fields(entry) {
        match field.map_err(|_| "an entry")? {
            (1, Field::Bytes(stamp)) => time = time_of(stamp)?,
            (2, Field::Bytes(text)) => line = text,
            (3, Field::Bytes(pair)) => super::hold(pair_of(pair)?, &mut metadata),
            _ => {}
        }
    }
    Ok((time, line, metadata))
}

fn time_of(stamp: &[u8]) -> Result<Result<Timestamp, RejectReason>, &'static str> {
    let (mut seconds, mut nanos) = (0, 0);
    for field in fields(stamp) {
        match field.map_err(|_| "a time")? {
            (1, Field::Varint(number)) => seconds = cast::signed(number),
            (2, Field::Varint(number)) => nanos = cast::signed(number),
            _ => {}
        }
    }
    let time = seconds.checked_mul(NANOS);
    let time = time.and_then(|time| time.checked_add(nanos)).map(Timestamp);
    Ok(time.ok_or_else(|| {
        RejectReason::Malformed(format!(
            "time {seconds} s is beyond what nanoseconds can say"
        ))
    }))
}

fn pair_of(pair: &[u8]) -> Result<(Cow<'_, str>, Value<'_>), &'static str> {
    const WHAT: &str = "its metadata";
    let (mut name, mut value) = ("", "");
    for field in fields(pair) {
        match field.map_err(|_| WHAT)? {
            (1, field) => name = field.text().ok_or(WHAT)?,
            (2, field) => value = field.text().ok_or(WHAT)?,
            _ => {}
        }
    }
    Ok((Cow::Borrowed(name), Value::Str(Cow::Borrowed(value))))
}

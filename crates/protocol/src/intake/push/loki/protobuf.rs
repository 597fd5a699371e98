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

use logpond_record::{Labels, Timestamp, Value};

use super::{LokiError, Pairs, add, labels};
use crate::intake::protobuf::{Field, fields};
use crate::intake::push::members::keep_last;
use crate::intake::push::{Pushed, RejectReason, Shipment};

const NANOS: i64 = 1_000_000_000;

/// Decodes a body that is decompressed.
///
/// # Errors
/// See [`LokiError`].
pub fn decode(body: &[u8], of_batch: Labels, line_bytes_max: usize) -> Result<Pushed, LokiError> {
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

fn take_entry(entry: &[u8], labels: &Pairs<'_>, shipment: &mut Shipment) -> Result<(), LokiError> {
    let (mut time, mut line, mut metadata) = (Ok(Timestamp(0)), &b""[..], Pairs::new());
    for field in fields(entry) {
        match field.map_err(|_| malformed("an entry"))? {
            (1, Field::Bytes(stamp)) => time = time_of(stamp)?,
            (2, Field::Bytes(text)) => line = text,
            (3, Field::Bytes(pair)) => super::hold(pair_of(pair)?, &mut metadata),
            _ => {}
        }
    }
    keep_last(&mut metadata, 0);
    add(shipment, time, &metadata, labels, line)
}

fn time_of(stamp: &[u8]) -> Result<Result<Timestamp, RejectReason>, LokiError> {
    let (mut seconds, mut nanos) = (0, 0);
    for field in fields(stamp) {
        match field.map_err(|_| malformed("a time"))? {
            (1, Field::Varint(number)) => seconds = number as i64,
            (2, Field::Varint(number)) => nanos = number as i64,
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

fn pair_of(pair: &[u8]) -> Result<(Cow<'_, str>, Value<'_>), LokiError> {
    let (mut name, mut value) = ("", "");
    for field in fields(pair) {
        let (number, field) = field.map_err(|_| malformed("metadata"))?;
        let text = || {
            field
                .text()
                .ok_or_else(|| malformed("the text of metadata"))
        };
        match number {
            1 => name = text()?,
            2 => value = text()?,
            _ => {}
        }
    }
    Ok((Cow::Borrowed(name), Value::Str(Cow::Borrowed(value))))
}

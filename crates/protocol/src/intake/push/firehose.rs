//! Deliveries of AWS Firehose to an HTTP endpoint: records in base 64.
//!
//! ```text
//! {"requestId":"ed4acda5-034f-9f42-bba1-f29aea6d7d8f","timestamp":1763805600123,"records":[{"data":"aGVsbG8="}]}
//! ```
//!
//! A record is lines of text or of JSON, also compressed by gzip. The envelopes of CloudWatch Logs subscriptions are
//! opened: each event is a record with the fields `owner`, `logGroup`, `logStream` and `event_id`. Control messages, by
//! which CloudWatch tests a destination, hold no events.
//!
//! Invariants: the bytes of all records together are bounded; a bad line takes no other with it, a body that is no
//! delivery takes all, and nothing was taken then.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use logpond_record::{EntryKind, Labels, Timestamp, Value};
use serde::Deserialize;

use super::{DecodedBody, Lines, Shipment, TooLarge, without_cr};
use crate::intake::body::{BodyError, Encoding, decompressed};

/// A delivery, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its id, which the answer repeats. A delivery that is sent again has the same.
    pub request_id: String,
    /// Its records.
    pub pushed: DecodedBody,
}

/// Why a delivery is refused as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FirehoseError {
    /// It is none.
    Body(String),
    /// A record, counted from 1, cannot be decompressed.
    Compressed(usize, BodyError),
    /// More than can be taken at once.
    TooLarge(TooLarge),
}

impl fmt::Display for FirehoseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FirehoseError::Body(reason) => write!(f, "the body is no delivery: {reason}"),
            FirehoseError::Compressed(number, error) => write!(f, "record {number}: {error}"),
            FirehoseError::TooLarge(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for FirehoseError {}

impl From<TooLarge> for FirehoseError {
    fn from(error: TooLarge) -> FirehoseError {
        FirehoseError::TooLarge(error)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(borrow)]
    request_id: Cow<'a, str>,
    #[serde(borrow)]
    records: Vec<Record<'a>>,
}

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    data: Cow<'a, str>,
}

/// The envelope that a subscription of CloudWatch Logs sends.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(borrow)]
    message_type: Cow<'a, str>,
    #[serde(borrow)]
    owner: Cow<'a, str>,
    #[serde(borrow)]
    log_group: Cow<'a, str>,
    #[serde(borrow)]
    log_stream: Cow<'a, str>,
    #[serde(borrow)]
    log_events: Vec<Event<'a>>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    /// Milliseconds.
    timestamp: i64,
    #[serde(borrow)]
    message: Cow<'a, str>,
}

/// Decodes a delivery, whose data have at most `bytes_max` bytes when decompressed; `labels` are fields of all records.
///
/// # Errors
/// See [`FirehoseError`].
pub fn decode(
    body: &[u8],
    labels: Labels,
    (bytes_max, line_bytes_max): (usize, usize),
) -> Result<Delivery, FirehoseError> {
    let request: Request<'_> =
        serde_json::from_slice(body).map_err(|error| FirehoseError::Body(error.to_string()))?;
    let mut shipment = Shipment::new(labels, line_bytes_max);
    let mut room = bytes_max;
    for (number, record) in (1..).zip(&request.records) {
        let data = STANDARD.decode(&*record.data);
        let data = data.map_err(|error| {
            FirehoseError::Body(format!("record {number} is no base 64: {error}"))
        })?;
        let is_packed = data.starts_with(&[0x1f, 0x8b]);
        let encoding = if is_packed {
            Encoding::Gzip
        } else {
            Encoding::Identity
        };
        let compressed = |error| FirehoseError::Compressed(number, error);
        let data = decompressed(&data, encoding, room).map_err(compressed)?;
        if is_packed {
            room -= data.len().min(room);
        }
        add(&data, &mut shipment)?;
    }
    Ok(Delivery {
        request_id: request.request_id.into_owned(),
        pushed: shipment.finish(),
    })
}

/// Takes the lines of a record.
fn add(data: &[u8], shipment: &mut Shipment) -> Result<(), TooLarge> {
    let lines = Lines(data).map(without_cr);
    for line in lines.filter(|line| !line.trim_ascii().is_empty()) {
        match envelopes(line) {
            Some(envelopes) => {
                for envelope in envelopes {
                    open(&envelope, shipment)?;
                }
            }
            None => shipment.add(kind_of(line), Ok(None), std::iter::empty(), line)?,
        }
    }
    Ok(())
}

/// The envelopes that a line is: Firehose puts several behind one another.
fn envelopes(line: &[u8]) -> Option<Vec<Envelope<'_>>> {
    if !line.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    serde_json::Deserializer::from_slice(line)
        .into_iter::<Envelope<'_>>()
        .collect::<Result<_, _>>()
        .ok()
}

fn open(envelope: &Envelope<'_>, shipment: &mut Shipment) -> Result<(), TooLarge> {
    if envelope.message_type == "CONTROL_MESSAGE" {
        return Ok(());
    }
    let text = |text: &'_ str| Value::Str(Cow::Owned(text.to_owned()));
    let mut fields = [
        ("owner", text(&envelope.owner)),
        ("logGroup", text(&envelope.log_group)),
        ("logStream", text(&envelope.log_stream)),
        ("event_id", Value::Null),
    ];
    for event in &envelope.log_events {
        if let Some((_, id)) = fields.last_mut() {
            *id = text(&event.id);
        }
        let time = event.timestamp.checked_mul(1_000_000).map(Timestamp);
        let line = event.message.as_bytes();
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let each = fields.iter().map(|(name, value)| (*name, value));
        shipment.add(kind_of(line), Ok(time), each, line)?;
    }
    Ok(())
}

/// The kind of a line: a JSON object is a structured record.
fn kind_of(line: &[u8]) -> EntryKind {
    let is_object = line.starts_with(b"{") && crate::intake::json::validate(line).is_ok();
    if is_object && !line.contains(&b'\n') {
        EntryKind::Json
    } else {
        EntryKind::Line
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::tests::records;
    use super::*;
    use crate::intake::body::BODY_BYTES_MAX;

    fn delivery(data: &[Vec<u8>]) -> String {
        let records: Vec<String> = data
            .iter()
            .map(|data| format!(r#"{{"data":"{}"}}"#, STANDARD.encode(data)))
            .collect();
        format!(
            r#"{{"requestId":"r-1","timestamp":1763805600123,"records":[{}]}}"#,
            records.join(",")
        )
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(text.as_bytes()).unwrap();
        packed.finish().unwrap()
    }

    #[test]
    fn records_are_lines_or_envelopes() {
        let envelope = r#"{"messageType":"DATA_MESSAGE","owner":"111122223333","logGroup":"/aws/lambda/shop","logStream":"s",
            "subscriptionFilters":["all"],"logEvents":[{"id":"3195310660696698337880902507980421114328961542429EXAMPLE",
            "timestamp":1763805600123,"message":"START\n"},{"id":"2","timestamp":1763805600124,"message":"{\"n\":1}"}]}"#;
        let envelope = envelope.replace('\n', " ");
        let control = envelope.replace("DATA_MESSAGE", "CONTROL_MESSAGE");
        let body = delivery(&[
            b"one\r\n\n{\"n\":1}\n".to_vec(),
            gzip(&format!("{control}{envelope}")),
            b"{\"messageType\":1}".to_vec(),
        ]);
        let read = decode(body.as_bytes(), Labels::new(), (BODY_BYTES_MAX, 1000)).unwrap();
        assert_eq!(read.request_id, "r-1");
        assert_eq!(read.pushed.rejected, []);
        assert_eq!(
            records(&read.pushed),
            [
                "Line None | one",
                "Json None | {\"n\":1}",
                "Line Some(1763805600123000000) owner=111122223333 logGroup=/aws/lambda/shop logStream=s \
                 event_id=3195310660696698337880902507980421114328961542429EXAMPLE | START",
                "Json Some(1763805600124000000) owner=111122223333 logGroup=/aws/lambda/shop logStream=s event_id=2 | \
                 {\"n\":1}",
                "Json None | {\"messageType\":1}",
            ]
        );
    }

    #[test]
    fn what_is_no_delivery_is_refused() {
        for bad in [
            "",
            "{}",
            "[]",
            r#"{"requestId":"r","records":[{"data":"%"}]}"#,
        ] {
            let refused = decode(bad.as_bytes(), Labels::new(), (BODY_BYTES_MAX, 100));
            assert!(matches!(refused, Err(FirehoseError::Body(_))), "{bad}");
        }
        let broken = delivery(&[vec![0x1f, 0x8b, 1, 2]]);
        let refused = decode(broken.as_bytes(), Labels::new(), (BODY_BYTES_MAX, 100));
        assert!(
            matches!(refused, Err(FirehoseError::Compressed(1, _))),
            "{refused:?}"
        );
        // Records that are small each, and large together.
        let bomb = gzip(&"x".repeat(BODY_BYTES_MAX / 2));
        let bombs = delivery(&[bomb.clone(), bomb.clone(), bomb]);
        let refused = decode(bombs.as_bytes(), Labels::new(), (BODY_BYTES_MAX, 100));
        assert!(
            matches!(refused, Err(FirehoseError::Compressed(..))),
            "{refused:?}"
        );
    }
}

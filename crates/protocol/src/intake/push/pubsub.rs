//! Push deliveries of Google Pub/Sub: one message, its data in base 64.
//!
//! ```text
//! {"message":{"attributes":{"k":"v"},"data":"aGVsbG8=","messageId":"2070443601311540","publishTime":"2025-11-22T10:00:00Z"},
//!  "subscription":"projects/p/subscriptions/s"}
//! ```
//!
//! The data is a line, with the attributes as fields. An entry of Cloud Logging, as a log sink publishes it, is opened:
//! `textPayload` is a line, `jsonPayload` a JSON record, another payload the entry itself; `severity` is the field
//! `level`, `timestamp` the time, and the other members are fields.
//!
//! Invariant: a body that is no delivery is refused, and nothing was taken then.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use logpond_record::{EntryKind, Labels, Value, json_on_one_line};
use serde::Deserialize;

use super::members::{Fields, Members, flatten, keep_last, text_of};
use super::{DecodedBody, Shipment, TooLarge, moments};

/// A delivery, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The subscription and the id of the message. A delivery that is sent again has the same.
    pub identity: String,
    /// The record.
    pub pushed: DecodedBody,
}

/// Why a delivery is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PubSubError {
    /// It is none.
    Body(String),
    /// More than can be taken at once.
    TooLarge(TooLarge),
}

impl fmt::Display for PubSubError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PubSubError::Body(reason) => write!(f, "the body is no delivery of Pub/Sub: {reason}"),
            PubSubError::TooLarge(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for PubSubError {}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    message: Message<'a>,
    #[serde(borrow, default)]
    subscription: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    #[serde(borrow)]
    attributes: Option<Members<'a>>,
    #[serde(borrow, default)]
    data: Cow<'a, str>,
    #[serde(borrow)]
    message_id: Cow<'a, str>,
    #[serde(borrow, default)]
    publish_time: Cow<'a, str>,
}

/// Decodes a delivery.
///
/// # Errors
/// See [`PubSubError`].
pub fn decode(body: &[u8], line_bytes_max: usize) -> Result<Delivery, PubSubError> {
    let request: Request<'_> =
        serde_json::from_slice(body).map_err(|error| PubSubError::Body(error.to_string()))?;
    let message = request.message;
    let data = STANDARD
        .decode(&*message.data)
        .map_err(|error| PubSubError::Body(format!("its data is no base 64: {error}")))?;
    let mut fields = Fields::new();
    for (name, value) in message.attributes.into_iter().flat_map(|members| members.0) {
        flatten(name, value, &mut fields);
    }
    let mut shipment = Shipment::new(Labels::new(), line_bytes_max);
    let data = data.strip_suffix(b"\n").unwrap_or(&data);
    let added = match entry(data) {
        Some(entry) => add_entry(entry, fields, data, &mut shipment),
        None => {
            let time = moments::of_json(&message.publish_time);
            let kind = kind_of(data);
            let each = fields.iter().map(|(name, value)| (&**name, value));
            // JSON has a time of its own, if any.
            let time = time.filter(|_| kind == EntryKind::Line);
            shipment.add(kind, Ok(time), each, data)
        }
    };
    added.map_err(PubSubError::TooLarge)?;
    Ok(Delivery {
        identity: format!("{} {}", request.subscription, message.message_id),
        pushed: shipment.finish(),
    })
}

fn kind_of(data: &[u8]) -> EntryKind {
    let is_object = data.starts_with(b"{") && crate::intake::json::validate(data).is_ok();
    if is_object && !data.contains(&b'\n') {
        EntryKind::Json
    } else {
        EntryKind::Line
    }
}

/// The members of an entry of Cloud Logging, if the data is one.
fn entry(data: &[u8]) -> Option<Members<'_>> {
    if !data.starts_with(b"{") {
        return None;
    }
    let members: Members<'_> = serde_json::from_slice(data).ok()?;
    let has = |wanted: &str| members.0.iter().any(|(name, _)| name == wanted);
    (has("logName") && has("insertId")).then_some(members)
}

fn add_entry(
    entry: Members<'_>,
    attributes: Fields<'_>,
    data: &[u8],
    shipment: &mut Shipment,
) -> Result<(), TooLarge> {
    let mut fields = attributes;
    let beside = fields.len();
    let (mut time, mut payload) = (None, None);
    for (name, value) in &entry.0 {
        match &**name {
            "textPayload" => payload = Some((EntryKind::Line, text_of(value).unwrap_or_default())),
            "jsonPayload" => payload = Some((EntryKind::Json, json_on_one_line(value.get()))),
            "protoPayload" => {}
            "timestamp" => time = moments::of_json(value.get()),
            "severity" => {
                let level = text_of(value).unwrap_or_default();
                fields.push(("level".into(), Value::Str(level)));
            }
            name => flatten(Cow::Borrowed(name), value, &mut fields),
        }
    }
    keep_last(&mut fields, beside);
    let whole = String::from_utf8_lossy(data);
    let (kind, line) = payload.unwrap_or_else(|| {
        // All of the entry is the record: nothing is beside it.
        fields.truncate(beside);
        (EntryKind::Json, json_on_one_line(&whole))
    });
    let each = fields.iter().map(|(name, value)| (&**name, value));
    shipment.add(kind, Ok(time), each, line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::tests::records;
    use super::*;

    fn delivery(data: &str) -> Vec<String> {
        let data = STANDARD.encode(data);
        let body = format!(
            r#"{{"message":{{"attributes":{{"k":"v"}},"data":"{data}","messageId":"17","message_id":"17",
            "publishTime":"2025-11-22T10:00:00.5Z"}},"subscription":"projects/p/subscriptions/s"}}"#
        );
        let read = decode(body.as_bytes(), 1000).unwrap();
        assert_eq!(read.identity, "projects/p/subscriptions/s 17");
        assert_eq!(read.pushed.rejected, []);
        records(&read.pushed)
    }

    #[test]
    fn data_is_a_line() {
        assert_eq!(
            delivery("hello\n"),
            ["Line Some(1763805600500000000) k=v | hello"]
        );
        assert_eq!(delivery("{\"n\":1}"), ["Json None k=v | {\"n\":1}"]);
        assert_eq!(delivery(""), ["Line Some(1763805600500000000) k=v | "]);
    }

    #[test]
    fn entries_of_cloud_logging_are_opened() {
        let entry = |payload: &str| {
            format!(
                r#"{{"insertId":"i","logName":"projects/p/logs/run","receiveTimestamp":"2025-11-22T10:00:01Z",
                "resource":{{"type":"k8s","labels":{{"pod":"a"}}}},"severity":"ERROR",
                "timestamp":"2025-11-22T10:00:00.25Z",{payload}}}"#
            )
        };
        let beside = "k=v insertId=i logName=projects/p/logs/run receiveTimestamp=2025-11-22T10:00:01Z resource.type=k8s \
                      resource.labels.pod=a level=ERROR";
        let time = "Some(1763805600250000000)";
        assert_eq!(
            delivery(&entry(r#""textPayload":"it failed""#)),
            [format!("Line {time} {beside} | it failed")]
        );
        assert_eq!(
            delivery(&entry(r#""jsonPayload":{"message":"no","n":1}"#)),
            [format!(
                "Json {time} {beside} | {{\"message\":\"no\",\"n\":1}}"
            )]
        );
        let audit = delivery(&entry(r#""protoPayload":{"methodName":"create"}"#));
        assert!(
            audit[0].starts_with(&format!("Json {time} k=v | {{\"insertId\"")),
            "{audit:?}"
        );
        assert!(audit[0].contains("\"methodName\":\"create\""), "{audit:?}");
    }

    #[test]
    fn what_is_no_delivery_is_refused() {
        for bad in [
            "",
            "{}",
            r#"{"message":{}}"#,
            r#"{"message":{"messageId":"1","data":"%"}}"#,
        ] {
            let refused = decode(bad.as_bytes(), 100);
            assert!(matches!(refused, Err(PubSubError::Body(_))), "{bad}");
        }
    }
}

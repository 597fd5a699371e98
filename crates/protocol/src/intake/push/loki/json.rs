//! `{"streams":[{"stream":{…},"values":[["<ns>","line",{…}],…]}]}`.

use std::borrow::Cow;
use std::fmt;

use logpond_record::{Labels, Timestamp, Value};
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{LokiError, Pairs, add};
use crate::intake::push::bounded::AtMost;
use crate::intake::push::members::keep_last;
use crate::intake::push::{BATCH_RECORDS_MAX, DecodedBody, RejectReason, Shipment};

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default)]
    streams: AtMost<Stream<'a>, BATCH_RECORDS_MAX>,
}

#[derive(Deserialize)]
struct Stream<'a> {
    #[serde(borrow, default)]
    stream: LabelTexts<'a>,
    /// Read once the labels are known: they may stand behind.
    #[serde(borrow)]
    values: &'a RawValue,
}

/// An object of labels or of metadata. A value that is no text is the text that it is written as, as
/// Loki takes it: `5`, `true`.
#[derive(Default)]
struct LabelTexts<'a>(Pairs<'a>);

/// A text that is not copied if it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for LabelTexts<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LabelTexts<'a>, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = LabelTexts<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of labels")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Pairs::new();
                while let Some((Text(name), value)) = map.next_entry::<_, &RawValue>()? {
                    let Scalar(value) = Scalar::of(value).map_err(A::Error::custom)?;
                    super::hold((name, Value::Str(value)), &mut pairs);
                }
                keep_last(&mut pairs, 0);
                Ok(LabelTexts(pairs))
            }
        }
        deserializer.deserialize_map(Names)
    }
}

/// A value as text: of a string its content, of anything else its JSON.
struct Scalar<'a>(Cow<'a, str>);

impl<'a> Scalar<'a> {
    fn of(value: &'a RawValue) -> Result<Scalar<'a>, serde_json::Error> {
        let written = value.get();
        if written.starts_with('"') {
            serde_json::from_str(written).map(|Text(text)| Scalar(text))
        } else {
            Ok(Scalar(Cow::Borrowed(written)))
        }
    }
}

/// Takes the values of a stream in.
struct Values<'s, 'l> {
    shipment: &'s mut Shipment,
    labels: &'s Pairs<'l>,
    /// True if the body is not UTF-8: then these are the entries that are not.
    is_lossy: bool,
    /// Why taking in ended.
    error: &'s mut Option<LokiError>,
}

impl<'de> Visitor<'de> for Values<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        while let Some(value) = values.next_element::<&RawValue>()? {
            if self.is_lossy && value.get().contains('\u{fffd}') {
                let reason = "it has a text that is not UTF-8".to_owned();
                self.shipment.reject(RejectReason::Malformed(reason));
                continue;
            }
            let added = match serde_json::from_str::<Entry<'_>>(value.get()) {
                Ok(entry) => {
                    let time = time_of(&entry.time);
                    let line = entry.line.as_bytes();
                    add(self.shipment, time, &entry.metadata.0, self.labels, line)
                }
                Err(error) => {
                    self.shipment
                        .reject(RejectReason::Malformed(error.to_string()));
                    Ok(())
                }
            };
            if let Err(error) = added {
                *self.error = Some(error);
                return Err(A::Error::custom("too large"));
            }
        }
        Ok(())
    }
}

/// `["<ns>","line",{…}]`
struct Entry<'a> {
    time: Cow<'a, str>,
    line: Cow<'a, str>,
    metadata: LabelTexts<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Entry<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entry<'a>, D::Error> {
        deserializer.deserialize_seq(OneEntry)
    }
}

struct OneEntry;

impl<'de> Visitor<'de> for OneEntry {
    type Value = Entry<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[\"<nanoseconds>\", \"line\"], with an object of metadata or without")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Entry<'de>, A::Error> {
        let missing = |index| A::Error::invalid_length(index, &self);
        // Loki takes a number, too.
        let time: &RawValue = parts.next_element()?.ok_or_else(|| missing(0))?;
        let Scalar(time) = Scalar::of(time).map_err(A::Error::custom)?;
        let Text(line) = parts.next_element()?.ok_or_else(|| missing(1))?;
        let metadata: Option<Option<LabelTexts<'_>>> = parts.next_element()?;
        while parts.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Entry {
            time,
            line,
            metadata: metadata.flatten().unwrap_or_default(),
        })
    }
}

fn time_of(text: &str) -> Result<Timestamp, RejectReason> {
    let time = text.parse().map(Timestamp);
    time.map_err(|_| {
        RejectReason::Malformed(format!(
            "time '{}' is no number of nanoseconds",
            text.escape_debug()
        ))
    })
}

/// Decodes a body.
///
/// # Errors
/// See [`LokiError`].
pub fn decode(
    body: &[u8],
    labels: Labels,
    line_bytes_max: usize,
) -> Result<DecodedBody, LokiError> {
    let no_push = |error: serde_json::Error| LokiError::Body(error.to_string());
    let text = String::from_utf8_lossy(body);
    let is_lossy = matches!(text, Cow::Owned(_));
    let body: Body<'_> = serde_json::from_str(&text).map_err(no_push)?;
    let streams = body.streams.0;
    if streams.is_empty() {
        return Err(LokiError::NoStreams);
    }
    let mut shipment = Shipment::new(labels, line_bytes_max);
    for Stream { stream, values } in &streams {
        let mut error = None;
        let values_of = Values {
            shipment: &mut shipment,
            labels: &stream.0,
            is_lossy,
            error: &mut error,
        };
        let mut values = serde_json::Deserializer::from_str(values.get());
        let read = values.deserialize_seq(values_of);
        if let Some(error) = error {
            return Err(error);
        }
        read.map_err(no_push)?;
    }
    Ok(shipment.finish())
}

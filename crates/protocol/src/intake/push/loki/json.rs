//! `{"streams":[{"stream":{…},"values":[["<ns>","line",{…}],…]}]}`.

use std::borrow::Cow;
use std::fmt;

use logpond_record::{Labels, Timestamp, Value};
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{LokiError, Pairs, add};
use crate::intake::push::bounded::AtMost;
use crate::intake::push::members::keep_last;
use crate::intake::push::{BATCH_RECORDS_MAX, Pushed, RejectReason, Shipment};

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

/// An object of labels. What is no text is a label as it is written, as Loki takes it: `5`, `true`.
#[derive(Default)]
struct LabelTexts<'a>(Pairs<'a>);

/// An object of texts.
#[derive(Default)]
struct Texts<'a>(Pairs<'a>);

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
                    let written = value.get();
                    let value = match written.starts_with('"') {
                        true => serde_json::from_str::<Text<'_>>(written),
                        false => Ok(Text(Cow::Borrowed(written))),
                    };
                    let Text(value) = value.map_err(A::Error::custom)?;
                    super::hold((name, Value::Str(value)), &mut pairs);
                }
                keep_last(&mut pairs, 0);
                Ok(LabelTexts(pairs))
            }
        }
        deserializer.deserialize_map(Names)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Texts<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Texts<'a>, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = Texts<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of texts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Texts<'de>, A::Error> {
                let mut pairs = Pairs::new();
                while let Some((Text(name), Text(value))) = map.next_entry()? {
                    super::hold((name, Value::Str(value)), &mut pairs);
                }
                keep_last(&mut pairs, 0);
                Ok(Texts(pairs))
            }
        }
        deserializer.deserialize_map(Names)
    }
}

/// Takes the values of a stream in.
struct Values<'s, 'l> {
    shipment: &'s mut Shipment,
    labels: &'s Pairs<'l>,
    /// Why taking in ended.
    error: &'s mut Option<LokiError>,
}

impl<'de> Visitor<'de> for Values<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        while let Some(value) = values.next_element_seed(OneValue)? {
            let time = time_of(&value.time);
            let line = value.line.as_bytes();
            if let Err(error) = add(self.shipment, time, &value.metadata.0, self.labels, line) {
                *self.error = Some(error);
                return Err(A::Error::custom("too large"));
            }
        }
        Ok(())
    }
}

/// `["<ns>","line",{…}]`
struct OneValue;

struct Entry<'a> {
    time: Cow<'a, str>,
    line: Cow<'a, str>,
    metadata: Texts<'a>,
}

impl<'de> DeserializeSeed<'de> for OneValue {
    type Value = Entry<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Entry<'de>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for OneValue {
    type Value = Entry<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[\"<nanoseconds>\", \"line\"], with an object of metadata or without")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Entry<'de>, A::Error> {
        let missing = |index| A::Error::invalid_length(index, &self);
        let Text(time) = parts.next_element()?.ok_or_else(|| missing(0))?;
        let Text(line) = parts.next_element()?.ok_or_else(|| missing(1))?;
        let metadata: Option<Option<Texts<'_>>> = parts.next_element()?;
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
pub fn decode(body: &[u8], labels: Labels, line_bytes_max: usize) -> Result<Pushed, LokiError> {
    let no_push = |error: serde_json::Error| LokiError::Body(error.to_string());
    let body: Body<'_> = serde_json::from_slice(body).map_err(no_push)?;
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
            error: &mut error,
        };
        let read = serde_json::Deserializer::from_str(values.get()).deserialize_seq(values_of);
        if let Some(error) = error {
            return Err(error);
        }
        read.map_err(no_push)?;
    }
    Ok(shipment.finish())
}

//! Access logs among the lines that a parser sees: of declared formats, and behind syslog headers.

use std::borrow::Cow;
use std::sync::Arc;

use logpond_record::{Assumption, Entry, TimeSource, Value};

use super::super::access_format::{AccessFormat, DerivedFields, LABEL_PREFIX, Times};
use super::super::outline::without_message;
use super::super::sketch::Sketch;
use super::super::timestamps::TimeReader;
use super::super::{Beside, access};
use super::Derived;

/// Definitions that are kept compiled. A server has a few; more come only from many senders, and
/// then each is compiled again for a batch or so.
const FORMATS_MAX: usize = 32;

/// The format that a record's line was read by.
const FORMAT_FIELD: &str = "access_log";

const HOST_FIELD: &str = "host";

const PORT_FIELD: &str = "port";

const REFERER_HOST_FIELD: &str = "referer_host";

const DURATION_FIELD: &str = "duration_s";

/// Fields of usual access logs that a vendor's header might have, too.
const USUAL_FIELDS: [&[u8]; 6] = [
    b"remote_addr",
    b"user",
    b"host",
    b"port",
    b"status",
    b"bytes",
];

/// Formats by their definition; `None` for those that do not compile.
#[derive(Default)]
pub(super) struct Formats {
    known: Vec<(Box<str>, Option<Arc<AccessFormat>>)>,
}

impl Formats {
    /// Draws a line in the first declared format that it fits.
    pub(super) fn draw_line<'a>(
        &mut self,
        entry: &Entry<'a>,
        sketch: &mut Sketch<'_, 'a>,
        times: &TimeReader,
    ) -> Option<Beside<'a>> {
        let line = std::str::from_utf8(entry.raw).ok()?;
        let (drawn, name) = self.draw(declared(entry), line, entry, sketch, times)?;
        Some(Beside {
            time: drawn.time.filter(|_| sketch.parts.time.is_none()),
            fields: derived(&drawn, Some(name)),
            ..Beside::default()
        })
    }

    /// Draws the message of a syslog record, if that is a line of an access log.
    pub(super) fn draw_message<'a>(
        &mut self,
        entry: &Entry<'a>,
        sketch: &mut Sketch<'_, 'a>,
        times: &TimeReader,
    ) -> Option<Beside<'a>> {
        let message = sketch.message_text()?;
        let reader = access::reader(message.as_bytes());
        if reader.is_none() && !is_declared(entry) {
            return None;
        }
        // A server writes the zone and the year that many headers lack.
        let is_guess = sketch.parts.time_source != TimeSource::Header(Assumption::Nothing);
        let place = sketch.take_message();
        if let Some((drawn, name)) = self.draw(declared(entry), message, entry, sketch, times) {
            return Some(Beside {
                time: drawn.time.filter(|_| is_guess),
                fields: derived(&drawn, Some(name)),
                ..Beside::default()
            });
        }
        let usual = Times {
            reader: times,
            received: entry.received,
        };
        let is_free = || !USUAL_FIELDS.iter().any(|name| sketch.has_slot(name));
        if let Some(reader) = reader
            && is_free()
            && let Some(drawn) = access::draw(reader, message, usual, sketch)
        {
            return Some(Beside {
                time: drawn.time.filter(|_| is_guess),
                fields: derived(&drawn, None),
                ..Beside::default()
            });
        }
        sketch.rewind(place);
        sketch.message(message.as_bytes());
        None
    }

    /// Draws `line` behind what is drawn already; gives the format's name, too.
    fn draw<'a>(
        &mut self,
        declared: impl Iterator<Item = (&'a str, &'a str)>,
        line: &'a str,
        entry: &Entry<'_>,
        sketch: &mut Sketch<'_, 'a>,
        times: &TimeReader,
    ) -> Option<(DerivedFields<'a>, &'a str)> {
        let place = sketch.mark();
        let times = Times {
            reader: times,
            received: entry.received,
        };
        for (name, definition) in declared {
            let Some(format) = self.get(definition) else {
                continue;
            };
            if let Some(drawn) = format.draw(line, times, sketch) {
                if place.is_start() {
                    sketch.parts.message = without_message(format.is_json());
                }
                return Some((drawn, name));
            }
            sketch.rewind(place);
        }
        None
    }

    fn get(&mut self, definition: &str) -> Option<Arc<AccessFormat>> {
        if let Some((_, format)) = self.known.iter().find(|(known, _)| **known == *definition) {
            return format.clone();
        }
        if self.known.len() >= FORMATS_MAX {
            self.known.clear();
        }
        let format = AccessFormat::new(definition).ok().map(Arc::new);
        self.known.push((definition.into(), format.clone()));
        format
    }
}

/// Whether an entry's batch declares any format.
pub(super) fn is_declared(entry: &Entry<'_>) -> bool {
    declared(entry).next().is_some()
}

/// Names and definitions of the formats that an entry's batch declares.
fn declared<'a>(entry: &Entry<'a>) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
    let labels = entry.labels.iter();
    labels.filter_map(|(name, definition)| Some((name.strip_prefix(LABEL_PREFIX)?, &**definition)))
}

/// The fields that a line has beside those that it is made of.
pub(super) fn derived<'a>(drawn: &DerivedFields<'a>, format: Option<&'a str>) -> Derived<'a> {
    let text = |name, text| (Cow::Borrowed(name), Value::Str(Cow::Borrowed(text)));
    let mut fields = Vec::new();
    fields.extend(format.map(|name| text(FORMAT_FIELD, name)));
    fields.extend(
        drawn
            .referer_host
            .map(|host| text(REFERER_HOST_FIELD, host)),
    );
    if let Some((host, port)) = drawn.authority {
        fields.push(text(HOST_FIELD, host));
        fields.push((Cow::Borrowed(PORT_FIELD), Value::Int(port)));
    }
    let duration = drawn.duration_s.map(Value::Float);
    fields.extend(duration.map(|seconds| (Cow::Borrowed(DURATION_FIELD), seconds)));
    fields
}

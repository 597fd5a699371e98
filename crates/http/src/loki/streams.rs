//! Lines put together into streams, in Loki's form.

use std::collections::BTreeMap;
use std::io;

use hyper::header::HeaderMap;
use logpond_record::{Timestamp, write_json_string};
use logpond_search::pipeline::Origin;

use super::reply::{Writer, write_labels};
use logpond_engine::query::Line;

/// The header with which a client asks for labels by their origin.
const FLAGS: &str = "x-loki-response-encoding-flags";

/// The flag.
const CATEGORIZE: &str = "categorize-labels";

/// Whether a client wants labels by where they come from.
pub(super) fn wants_categories(headers: &HeaderMap) -> bool {
    let values = headers.get_all(FLAGS).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let mut flags = values.flat_map(|value| value.split(','));
    flags.any(|flag| flag.trim() == CATEGORIZE)
}

/// Lines by their streams, in the order in which they came.
pub(super) struct Streams {
    is_categorized: bool,
    /// By the labels as JSON.
    streams: BTreeMap<Box<str>, Vec<Value>>,
}

struct Value {
    time: Timestamp,
    line: Vec<u8>,
    /// The labels that are not of the stream, as JSON; empty where labels are not told apart.
    others: Box<str>,
}

impl Streams {
    pub(super) fn new(is_categorized: bool) -> Streams {
        Streams {
            is_categorized,
            streams: BTreeMap::new(),
        }
    }

    /// Adds lines behind those of their streams.
    pub(super) fn add_all(&mut self, lines: Vec<Line>) {
        for line in lines {
            self.add(line);
        }
    }

    fn add(&mut self, line: Line) {
        let (stream, others) = if self.is_categorized {
            (of_origins(&line, &[Origin::Stream]), others(&line))
        } else {
            let all = line.labels.iter();
            let all = all.map(|(name, value, _)| (&**name, &**value));
            (object(all), String::new())
        };
        let time = line.key.time;
        let values = self.streams.entry(stream.into()).or_default();
        values.push(Value {
            time,
            line: line.line,
            others: others.into(),
        });
    }

    /// How many lines there are.
    pub(super) fn count(&self) -> u64 {
        self.streams
            .values()
            .map(|values| values.len() as u64)
            .sum()
    }

    /// Writes the flags of the encoding as a member before the streams: clients that read as it comes
    /// must know them first.
    pub(super) fn write_flags(&self, to: Writer<'_>) -> io::Result<()> {
        if self.is_categorized {
            write!(to, "\"encodingFlags\":[\"{CATEGORIZE}\"],")
        } else {
            Ok(())
        }
    }

    /// Writes the streams as a list.
    pub(super) fn write(&self, to: Writer<'_>) -> io::Result<()> {
        to.write_all(b"[")?;
        let mut text = Vec::new();
        for (at, (stream, values)) in self.streams.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(to, "{comma}{{\"stream\":{stream},\"values\":[")?;
            for (at, value) in values.iter().enumerate() {
                text.clear();
                write_json_string(&String::from_utf8_lossy(&value.line), &mut text);
                let comma = if at > 0 { "," } else { "" };
                write!(to, "{comma}[\"{}\",", value.time.0)?;
                to.write_all(&text)?;
                if self.is_categorized {
                    write!(to, ",{}", value.others)?;
                }
                to.write_all(b"]")?;
            }
            to.write_all(b"]}")?;
        }
        to.write_all(b"]")
    }
}

/// The labels of a line that come from one of these, as JSON.
fn of_origins(line: &Line, wanted: &[Origin]) -> String {
    let labels = line.labels.iter();
    let labels = labels.filter(|(_, _, origin)| wanted.contains(origin));
    object(labels.map(|(name, value, _)| (&**name, &**value)))
}

/// The labels that are not of the stream, by where they come from.
fn others(line: &Line) -> String {
    let parts: [(&str, &[Origin]); 2] = [
        ("structuredMetadata", &[Origin::Metadata, Origin::Field]),
        ("parsed", &[Origin::Parsed]),
    ];
    let parts = parts.into_iter().filter_map(|(name, origins)| {
        let labels = of_origins(line, origins);
        (labels != "{}").then(|| format!("\"{name}\":{labels}"))
    });
    format!("{{{}}}", parts.collect::<Vec<_>>().join(","))
}

/// Labels as JSON; those without text too, which are a stage's: streams and senders have none.
fn object<'l>(labels: impl Iterator<Item = (&'l str, &'l str)>) -> String {
    let mut out = Vec::new();
    // Writing to a vector cannot fail.
    let _ = write_labels(labels, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use logpond_record::Id;

    use super::*;
    use logpond_engine::query::Key;

    fn line(time: i64, text: &str, parsed: &[(&str, &str)]) -> Line {
        let label = |name: &str, value: &str, origin| (name.into(), value.into(), origin);
        let base = [
            label("app", "a", Origin::Stream),
            label("detected_level", "info", Origin::Metadata),
        ];
        let parsed = parsed
            .iter()
            .map(|(name, value)| label(name, value, Origin::Parsed));
        Line {
            key: Key {
                time: Timestamp(time),
                id: Id(time as u128),
            },
            line: text.into(),
            labels: base.into_iter().chain(parsed).collect(),
        }
    }

    fn written(streams: &Streams) -> String {
        let mut out = Vec::new();
        streams.write_flags(&mut out).unwrap();
        streams.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn labels_are_put_together_or_told_apart() {
        let table = [
            (
                false,
                r#"[{"stream":{"app":"a","detected_level":"info","x":"1"},"values":[["2","r"]]},{"stream":{"app":"a","detected_level":"info","y":""},"values":[["1","p\"q"]]}]"#,
            ),
            (
                true,
                r#""encodingFlags":["categorize-labels"],[{"stream":{"app":"a"},"values":[["1","p\"q",{"structuredMetadata":{"detected_level":"info"},"parsed":{"y":""}}],["2","r",{"structuredMetadata":{"detected_level":"info"},"parsed":{"x":"1"}}]]}]"#,
            ),
        ];
        for (is_categorized, expected) in table {
            let mut streams = Streams::new(is_categorized);
            let lines = vec![line(1, "p\"q", &[("y", "")]), line(2, "r", &[("x", "1")])];
            streams.add_all(lines);
            assert_eq!(written(&streams), expected);
            assert_eq!(streams.count(), 2);
        }
        assert_eq!(written(&Streams::new(false)), "[]");
    }
}

//! Streams of entries for both servers, from a seed.
//!
//! Invariants: every line differs from all others of its stream, as Loki drops copies; streams whose
//! numbers are aggregated have no two entries of one time, as their order would not be defined.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::lines::{self, Form};
use crate::draw::Draw;

/// When the first entry may be, in seconds since 1970.
pub(super) const FROM_S: i64 = 1_714_557_600;

/// How long entries go on, in seconds.
pub(super) const LENGTH_S: i64 = 7_200;

/// What of the entries of streams in which times may be equal has the time of the one before, in percent.
const EQUAL_TIMES_PERCENT: usize = 15;

/// Entries of a stream.
const ENTRIES: usize = 90;

/// A label or a field of an entry.
pub(super) type Pair = (String, String);

/// An entry of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) time_ns: i64,
    pub(super) line: String,
    pub(super) metadata: Vec<Pair>,
}

/// A stream with its entries in the order of their times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stream {
    pub(super) labels: &'static [(&'static str, &'static str)],
    pub(super) entries: Vec<Entry>,
}

/// All streams.
pub(super) struct Data {
    pub(super) streams: Vec<Stream>,
}

/// Which half of the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    First,
    Second,
}

/// The streams that there are, and what their lines look like.
const STREAMS: [(&[(&str, &str)], Form); 18] = [
    (
        &[("app", "shop"), ("env", "prod"), ("region", "eu")],
        Form::Json,
    ),
    (&[("app", "shop"), ("env", "dev")], Form::JsonOdd),
    (
        &[("app", "api"), ("env", "prod"), ("region", "us")],
        Form::Logfmt,
    ),
    (&[("app", "api"), ("env", "dev")], Form::LogfmtOdd),
    (
        &[("app", "web"), ("env", "prod"), ("node", "web-1")],
        Form::Access,
    ),
    (
        &[("app", "web"), ("env", "prod"), ("node", "web-2")],
        Form::Access,
    ),
    (&[("app", "cron"), ("env", "prod")], Form::Plain),
    (&[("app", "net"), ("env", "prod")], Form::Addresses),
    (&[("app", "tty"), ("env", "dev")], Form::Colours),
    (&[("app", "pack"), ("env", "prod")], Form::Packed),
    (&[("job", "meta"), ("env", "prod")], Form::Metadata),
    (&[("service", "svc"), ("env", "dev")], Form::Plain),
    (&[("team", "x"), ("empty", "")], Form::Plain),
    (&[("app", "ünï"), ("env", "dev")], Form::Unicode),
    // All fields that its lines have are labels of the stream, too.
    (
        &[
            ("app", "api"),
            ("env", "dev"),
            ("job", "twin"),
            ("service", "svc"),
            ("team", "x"),
        ],
        Form::Clash,
    ),
    // What differs on purpose is in streams of its own, so that it can be left out of a question.
    (&[("odd", "clash"), ("app", "shop")], Form::Clash),
    (&[("odd", "broken"), ("app", "shop")], Form::Broken),
    (&[("odd", "levels"), ("env", "prod")], Form::Levels),
];

impl Data {
    /// The streams of a seed.
    pub(super) fn new(seed: u64) -> Data {
        let mut taken = HashSet::new();
        let streams = STREAMS.iter().enumerate();
        let streams = streams.map(|(at, (labels, form))| {
            let mut draw = Draw::new(seed, 1_000 + at as u64);
            let times = times(&mut draw, *form, &mut taken);
            let entries = times.into_iter().enumerate().map(|(n, time_ns)| {
                let (line, metadata) = lines::line(&mut draw, *form, n);
                Entry {
                    time_ns,
                    line,
                    metadata,
                }
            });
            Stream {
                labels,
                entries: entries.collect(),
            }
        });
        Data {
            streams: streams.collect(),
        }
    }

    /// How many entries there are.
    pub(super) fn count(&self) -> usize {
        self.streams.iter().map(|stream| stream.entries.len()).sum()
    }

    /// The body of a push of one half.
    pub(super) fn body(&self, half: Half) -> String {
        let streams = self.streams.iter().map(|stream| {
            let (first, second) = stream.entries.split_at(stream.entries.len() / 2);
            let entries = match half {
                Half::First => first,
                Half::Second => second,
            };
            let labels = stream.labels.iter();
            let labels = labels.map(|(name, value)| ((*name).to_owned(), Value::from(*value)));
            let labels: serde_json::Map<_, _> = labels.collect();
            let values: Vec<_> = entries.iter().map(value).collect();
            json!({ "stream": labels, "values": values })
        });
        json!({ "streams": streams.collect::<Vec<_>>() }).to_string()
    }
}

fn value(entry: &Entry) -> Value {
    let time = entry.time_ns.to_string();
    let pairs = entry.metadata.iter();
    let pairs = pairs.map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    let metadata: serde_json::Map<_, _> = pairs.collect();
    if metadata.is_empty() {
        json!([time, entry.line])
    } else {
        json!([time, entry.line, metadata])
    }
}

/// The times of a stream, in order; half of them are whole seconds, which ends of ranges are, too.
fn times(draw: &mut Draw, form: Form, taken: &mut HashSet<i64>) -> Vec<i64> {
    let mut times: Vec<i64> = Vec::new();
    while times.len() < ENTRIES {
        let second = FROM_S + draw.below(LENGTH_S as usize) as i64;
        let nanos = match draw.below(2) {
            0 => 0,
            _ => draw.below(1_000_000_000) as i64,
        };
        let drawn = second * 1_000_000_000 + nanos;
        let is_equal = form.has_equal_times() && draw.below(100) < EQUAL_TIMES_PERCENT;
        match times.last() {
            Some(last) if is_equal => times.push(*last),
            _ if taken.insert(drawn) => times.push(drawn),
            _ => {}
        }
    }
    times.sort_unstable();
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_data() {
        let (one, same, other) = (Data::new(7), Data::new(7), Data::new(8));
        assert_eq!(one.streams, same.streams);
        assert_ne!(one.streams, other.streams);
        assert_eq!(one.count(), STREAMS.len() * ENTRIES);
    }

    #[test]
    fn lines_differ_and_times_rise() {
        let data = Data::new(3);
        for stream in &data.streams {
            let lines: HashSet<_> = stream.entries.iter().map(|entry| &entry.line).collect();
            assert_eq!(lines.len(), ENTRIES, "{:?}", stream.labels);
            assert!(stream.entries.is_sorted_by_key(|entry| entry.time_ns));
        }
    }

    #[test]
    fn both_halves_are_all() {
        let data = Data::new(3);
        let count = |half| {
            let body: Value = serde_json::from_str(&data.body(half)).unwrap();
            let streams = body["streams"].as_array().unwrap();
            let counts = streams
                .iter()
                .map(|s| s["values"].as_array().unwrap().len());
            counts.sum::<usize>()
        };
        assert_eq!(count(Half::First) + count(Half::Second), data.count());
    }
}

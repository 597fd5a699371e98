//! A day of made-up logs of a small shop, with one incident in it.
//!
//! Invariants: the lines of a second are a pure function of the seed, the story's begin and the
//! second, so the day and the live lines behind it are one stream; nothing here reads a clock, a
//! file or a socket; a second has at most [`SECOND_RECORDS_MAX`] records of each source.
//!
//! One file makes the logs of one kind: [`access`], [`services`], [`journal`], [`syslog`],
//! [`proxy`]. Each writes ordinary records, and its part of the [`IncidentTimes`].

mod access;
mod draw;
mod journal;
mod proxy;
mod questions;
mod services;
mod story;
mod syslog;

pub use questions::{QUESTIONS, Question};

use draw::Draw;
use story::IncidentTimes;

/// Seconds of a day.
pub const DAY_SECONDS: i64 = 86_400;

/// Most records of one source in one second: far above every rate below.
const SECOND_RECORDS_MAX: u64 = 64;

/// The load of each hour of the day in UTC, in percent of the busiest.
const HOURS: [u64; 24] = [
    22, 16, 12, 10, 10, 14, 24, 40, 58, 72, 82, 88, 92, 90, 86, 84, 86, 92, 100, 98, 88, 70, 50, 34,
];

/// A stream of records that one program sends.
pub struct Source {
    /// The name in messages and in batches.
    pub name: &'static str,
    /// The path of the server to which it is pushed.
    pub path: &'static str,
    /// The content type of its bodies.
    pub content_type: &'static str,
    /// Labels of its records.
    pub labels: &'static [(&'static str, &'static str)],
    /// Records of a hundred seconds in the busiest hour.
    rate: u64,
    /// Writes one ordinary record.
    ordinary: fn(&mut Moment<'_>, &mut Vec<u8>),
    /// Writes the records of the story in this second; gives how many.
    planted: fn(&mut Moment<'_>, &mut Vec<u8>) -> u64,
}

/// The path for text and objects.
const PUSH: &str = "/api/v1/push";

/// All sources. The access logs of the two servers are apart, as their lines do not name them.
pub static SOURCES: [Source; 6] = [
    Source {
        name: "access-edge-1",
        path: PUSH,
        content_type: "text/plain",
        labels: &[("hostname", "edge-1"), ("app", "nginx")],
        rate: 130,
        ordinary: access::ordinary,
        planted: access::planted,
    },
    Source {
        name: "access-edge-2",
        path: PUSH,
        content_type: "text/plain",
        labels: &[("hostname", "edge-2"), ("app", "nginx")],
        rate: 90,
        ordinary: access::ordinary,
        planted: access::planted,
    },
    Source {
        name: "services",
        path: PUSH,
        content_type: "application/x-ndjson",
        labels: &[],
        rate: 110,
        ordinary: services::ordinary,
        planted: services::planted,
    },
    Source {
        name: "journal",
        path: "/upload",
        content_type: "application/vnd.fdo.journal",
        labels: &[],
        rate: 30,
        ordinary: journal::ordinary,
        planted: journal::planted,
    },
    Source {
        name: "syslog",
        path: PUSH,
        content_type: "text/plain",
        labels: &[],
        rate: 25,
        ordinary: syslog::ordinary,
        planted: syslog::planted,
    },
    Source {
        name: "proxy",
        path: PUSH,
        content_type: "application/x-ndjson",
        labels: &[("hostname", "edge-1"), ("app", "logpond-proxy")],
        rate: 40,
        ordinary: proxy::ordinary,
        planted: |_, _| 0,
    },
];

/// One record's place: its time, its random numbers, and the story.
struct Moment<'a> {
    /// Nanoseconds since 1970.
    nanos: i128,
    draw: Draw,
    incident: &'a IncidentTimes,
}

impl Moment<'_> {
    /// The second of the record.
    fn second(&self) -> i64 {
        i64::try_from(self.nanos.div_euclid(1_000_000_000)).unwrap_or(0)
    }

    /// The time by this format of strftime, in UTC.
    fn time(&self, format: &str) -> String {
        let time = jiff::Timestamp::from_nanosecond(self.nanos).unwrap_or_default();
        time.strftime(format).to_string()
    }
}

/// The times of RFC 3339 with milliseconds and microseconds.
const RFC3339_MS: &str = "%Y-%m-%dT%H:%M:%S.%3fZ";
const RFC3339_US: &str = "%Y-%m-%dT%H:%M:%S.%6fZ";

/// The logs of a demo: a day before `now`, and all that comes behind it.
pub struct Day {
    seed: u64,
    now: i64,
    incident: IncidentTimes,
}

impl Day {
    /// The day before `now`, in seconds since 1970.
    pub fn new(seed: u64, now: i64) -> Day {
        Day {
            seed,
            now,
            incident: IncidentTimes::before(now),
        }
    }

    /// Seconds of the day, oldest first.
    pub fn seconds(&self) -> std::ops::Range<i64> {
        self.now - DAY_SECONDS..self.now
    }

    /// Appends the records of a source in this second; gives how many.
    pub fn write(&self, source: &Source, second: i64, out: &mut Vec<u8>) -> u64 {
        let mut draw = Draw::new(self.seed, source.name, second);
        let hour = second.rem_euclid(DAY_SECONDS) / 3600;
        let load = HOURS[usize::try_from(hour).unwrap_or(0) % HOURS.len()];
        // Hundredths of a percent of a record: the part below a whole one is drawn.
        let count = (source.rate * load + draw.below(10_000)) / 10_000;
        let count = count.min(SECOND_RECORDS_MAX);
        let mut moment = Moment {
            nanos: 0,
            draw,
            incident: &self.incident,
        };
        for number in 0..count {
            let step = 1_000_000_000 / count;
            let within = number * step + moment.draw.below(step);
            moment.nanos = i128::from(second) * 1_000_000_000 + i128::from(within);
            (source.ordinary)(&mut moment, out);
        }
        moment.nanos = i128::from(second) * 1_000_000_000 + 500_000_000;
        count + (source.planted)(&mut moment, out)
    }
}

#[cfg(test)]
mod tests;

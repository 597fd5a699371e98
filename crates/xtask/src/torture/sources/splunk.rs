//! Events of Splunk's collector, without a channel.

use serde_json::Value;

use super::request::{self, Request};
use super::{Promise, Record, Source};

pub(super) const SOURCE: Source = Source {
    name: "splunk",
    promise: Promise::Once,
    listener: None,
    open: |address| request::open(address, &REQUEST),
};

const REQUEST: Request = Request {
    target: "/services/collector/event",
    headers: &[
        ("content-type", "application/json"),
        ("authorization", "Splunk torture"),
    ],
    body,
    is_acknowledged: |status, text| {
        let answer: Value = serde_json::from_str(text).unwrap_or_default();
        status == 200 && answer["code"] == 0
    },
};

/// Nanoseconds of a second.
const SECOND_NS: i64 = 1_000_000_000;

fn body(records: &[Record]) -> String {
    let events = records.iter().map(|record| {
        let (seconds, micros) = (record.time.0 / SECOND_NS, record.time.0 % SECOND_NS / 1_000);
        let event = record.object();
        format!("{{\"time\":{seconds}.{micros:06},\"event\":{event}}}\n")
    });
    events.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::torture::sources::record;

    #[test]
    fn an_event_has_the_time_of_its_record() {
        let body = body(&[record(1)]);
        assert!(
            body.starts_with("{\"time\":1750000000.123456,\"event\":{"),
            "{body}"
        );
    }
}

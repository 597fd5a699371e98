use logpond_record::Timestamp;

use super::interval::{Interval, duration_ms};
use super::*;

/// 2026-11-21T10:30:15.250Z.
const BERLIN: &str = "Europe/Berlin";

/// The time of requests.
pub(super) const NOW: Timestamp = Timestamp(1_795_257_015_250_000_000);

fn spans_first() -> Vec<(
    &'static str,
    Option<&'static str>,
    &'static str,
    &'static str,
)> {
    vec![
        (
            "now",
            None,
            "2026-11-21T10:30:15.25Z",
            "2026-11-21T10:30:15.251Z",
        ),
        (
            "now-1h",
            None,
            "2026-11-21T09:30:15.25Z",
            "2026-11-21T09:30:15.251Z",
        ),
        (
            "now/d",
            None,
            "2026-11-21T00:00:00Z",
            "2026-11-22T00:00:00Z",
        ),
        (
            "now-1d/d",
            None,
            "2026-11-20T00:00:00Z",
            "2026-11-21T00:00:00Z",
        ),
        (
            "now/w",
            None,
            "2026-11-16T00:00:00Z",
            "2026-11-23T00:00:00Z",
        ),
        (
            "now-1M/M",
            None,
            "2026-10-01T00:00:00Z",
            "2026-11-01T00:00:00Z",
        ),
        (
            "now/d",
            Some("+02:00"),
            "2026-11-20T22:00:00Z",
            "2026-11-21T22:00:00Z",
        ),
        ("2026", None, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
        (
            "2026-11",
            None,
            "2026-11-01T00:00:00Z",
            "2026-11-02T00:00:00Z",
        ),
        (
            "2026-11-21",
            None,
            "2026-11-21T00:00:00Z",
            "2026-11-22T00:00:00Z",
        ),
        (
            "2026-11-21",
            Some("Europe/Berlin"),
            "2026-11-20T23:00:00Z",
            "2026-11-21T23:00:00Z",
        ),
    ]
}

fn spans_second() -> Vec<(
    &'static str,
    Option<&'static str>,
    &'static str,
    &'static str,
)> {
    vec![
        (
            "2026-11-21||+1d/d",
            None,
            "2026-11-22T00:00:00Z",
            "2026-11-23T00:00:00Z",
        ),
        (
            "2026-11-21||+1d",
            None,
            "2026-11-22T00:00:00Z",
            "2026-11-22T00:00:00.001Z",
        ),
        (
            "2026-11-21T10:00",
            None,
            "2026-11-21T10:00:00Z",
            "2026-11-21T10:01:00Z",
        ),
        (
            "2026-11-21T10:00:00+01:00",
            None,
            "2026-11-21T09:00:00Z",
            "2026-11-21T09:00:01Z",
        ),
        (
            "2026-11-21T10:00:00.5Z",
            Some("+05:00"),
            "2026-11-21T10:00:00.5Z",
            "2026-11-21T10:00:00.501Z",
        ),
        (
            "2026-11-21T10:00:00.123456789Z",
            None,
            "2026-11-21T10:00:00.123456789Z",
            "2026-11-21T10:00:00.12345679Z",
        ),
        (
            "1795257015250",
            None,
            "2026-11-21T10:30:15.25Z",
            "2026-11-21T10:30:15.251Z",
        ),
    ]
}

#[test]
fn dates_are_spans() {
    let table = [spans_first(), spans_second()].concat();
    let at =
        |text: &str| Timestamp(text.parse::<jiff::Timestamp>().unwrap().as_nanosecond() as i64);
    for (text, zone, from, to) in table {
        let reader = DateReader::new(NOW).with(zone, None).unwrap();
        let span = reader.span(text).unwrap();
        assert_eq!((span.from, span.to), (at(from), at(to)), "{text} {zone:?}");
    }
}

#[test]
fn what_is_no_date_is_refused() {
    for text in [
        "",
        "yesterday",
        "now-1x",
        "now~1d",
        "2026-13-01",
        "2026-11-21T25:00",
        "now/1d",
        "2026-11-21 x",
    ] {
        assert!(DateReader::new(NOW).span(text).is_err(), "{text}");
    }
    assert!(DateReader::new(NOW).with(Some("Mars/Base"), None).is_err());
    assert!(DateReader::new(NOW).with(None, Some("yyyy-QQ")).is_err());
}

#[test]
fn formats_read_and_write() {
    let ns = NOW.0;
    let table = [
        ("epoch_millis", "1795257015250"),
        ("epoch_second", "1795257015"),
        ("strict_date_optional_time", "2026-11-21T10:30:15.250Z"),
        (
            "strict_date_optional_time_nanos",
            "2026-11-21T10:30:15.250000000Z",
        ),
        ("yyyy-MM-dd", "2026-11-21"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2026-11-21T10:30:15.250Z"),
        ("uuuu/M/d HH:mm Z", "2026/11/21 10:30 +0000"),
        ("HH:mm:ss", "10:30:15"),
    ];
    for (name, text) in table {
        let format = DateFormat::of(name).unwrap();
        assert_eq!(format.write(ns, &TimeZone::UTC), text, "{name}");
        assert!(format.read(text).is_some(), "{name}");
    }
    let reader = DateReader::new(NOW)
        .with(None, Some("dd.MM.yyyy||epoch_second"))
        .unwrap();
    assert_eq!(
        reader.span("21.11.2026").unwrap().from,
        reader.span("1795219200").unwrap().from
    );
    assert!(reader.span("2026-11-21").is_err());
}

fn intervals_first() -> Vec<(
    Interval,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
)> {
    vec![
        (
            Interval::fixed("30s").unwrap(),
            "UTC",
            "2026-11-21T10:30:15Z",
            "2026-11-21T10:30:00Z",
            "2026-11-21T10:30:30Z",
        ),
        (
            Interval::fixed("1d").unwrap(),
            "+02:00",
            "2026-11-21T23:30:00Z",
            "2026-11-21T22:00:00Z",
            "2026-11-22T22:00:00Z",
        ),
        (
            Interval::calendar("day").unwrap(),
            BERLIN,
            "2026-10-25T12:00:00Z",
            "2026-10-24T22:00:00Z",
            "2026-10-25T23:00:00Z",
        ),
        (
            Interval::calendar("1h").unwrap(),
            BERLIN,
            "2026-10-25T01:30:00Z",
            "2026-10-25T01:00:00Z",
            "2026-10-25T02:00:00Z",
        ),
        (
            Interval::calendar("1h").unwrap(),
            BERLIN,
            "2026-10-25T00:30:00Z",
            "2026-10-25T00:00:00Z",
            "2026-10-25T01:00:00Z",
        ),
        (
            Interval::calendar("month").unwrap(),
            "UTC",
            "2026-11-21T10:30:15Z",
            "2026-11-01T00:00:00Z",
            "2026-12-01T00:00:00Z",
        ),
        (
            Interval::calendar("quarter").unwrap(),
            "UTC",
            "2026-11-21T10:30:15Z",
            "2026-10-01T00:00:00Z",
            "2027-01-01T00:00:00Z",
        ),
        (
            Interval::calendar("1w").unwrap(),
            "UTC",
            "2026-11-22T23:59:59Z",
            "2026-11-16T00:00:00Z",
            "2026-11-23T00:00:00Z",
        ),
    ]
}

fn intervals_second() -> Vec<(
    Interval,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
)> {
    vec![(
        Interval::either("1y").unwrap(),
        "UTC",
        "2026-11-22T23:59:59Z",
        "2026-01-01T00:00:00Z",
        "2027-01-01T00:00:00Z",
    )]
}

#[test]
fn intervals_begin_and_end() {
    let ms = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_millisecond();
    let table = [intervals_first(), intervals_second()].concat();
    for (interval, zone, at, start, next) in table {
        let zone = zone_of(zone).unwrap();
        let found = interval.start(ms(at), &zone);
        assert_eq!(
            (found, interval.next(found, &zone)),
            (ms(start), ms(next)),
            "{interval:?} {at}"
        );
    }
    for text in ["", "0s", "2w4", "x", "-1s", "1M"] {
        assert!(Interval::fixed(text).is_err(), "{text}");
    }
    assert!(Interval::calendar("2d").is_err());
    assert_eq!(duration_ms("-3h"), Some(-10_800_000));
}

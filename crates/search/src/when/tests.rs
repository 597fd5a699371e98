use super::*;
use proptest::prelude::*;

/// Saturday 2026-11-21T20:30:00Z.
const NOW: Timestamp = Timestamp(1_795_293_000_000_000_000);

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap()
}

/// What `text` means, as UTC without needless zeros; `-` if nothing.
fn show(text: &str, now: Timestamp, zone: &TimeZone) -> String {
    match parse(text, now, zone) {
        Ok(time) => time.to_string().replace(".000000000Z", "Z"),
        Err(_) => "-".into(),
    }
}

#[test]
fn forms_that_need_no_zone() {
    let table = [
        ("now", "2026-11-21T20:30:00Z"),
        ("NOW - 5m", "2026-11-21T20:25:00Z"),
        ("now+1h30m", "2026-11-21T22:00:00Z"),
        ("1h", "2026-11-21T19:30:00Z"),
        ("-1h", "2026-11-21T19:30:00Z"),
        ("+1h", "2026-11-21T21:30:00Z"),
        ("1h ago", "2026-11-21T19:30:00Z"),
        ("1 hour ago", "2026-11-21T19:30:00Z"),
        ("1 day 2 hours ago", "2026-11-20T18:30:00Z"),
        ("30 min ago", "2026-11-21T20:00:00Z"),
        ("now-1h", "2026-11-21T19:30:00Z"),
        ("@1795293000", "2026-11-21T20:30:00Z"),
        ("@1795293000.25", "2026-11-21T20:30:00.250000000Z"),
        ("@-1", "1969-12-31T23:59:59Z"),
        ("1795293000", "2026-11-21T20:30:00Z"),
        ("1795293000123", "2026-11-21T20:30:00.123000000Z"),
        ("1795293000123456", "2026-11-21T20:30:00.123456000Z"),
        ("1795293000123456789", "2026-11-21T20:30:00.123456789Z"),
        ("2026-11-21T10:00:00Z", "2026-11-21T10:00:00Z"),
        ("2026-11-21t10:00:00.5z", "2026-11-21T10:00:00.500000000Z"),
        ("2026-11-21T10:00:00+01:00", "2026-11-21T09:00:00Z"),
        ("2026-11-21 10:00:00 +0530", "2026-11-21T04:30:00Z"),
        ("2026-11-21 10:00:00-08", "2026-11-21T18:00:00Z"),
        ("2026-11-21 10:00 UTC", "2026-11-21T10:00:00Z"),
        ("21/Nov/2026:10:00:00 +0100", "2026-11-21T09:00:00Z"),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
    ];
    for name in ["UTC", "Europe/Berlin", "Asia/Kathmandu"] {
        for (text, expected) in table {
            assert_eq!(show(text, NOW, &zone(name)), expected, "{text} in {name}");
        }
    }
}

#[test]
fn forms_of_somewhere() {
    // What each means: the day of November 2026 in UTC, in Berlin (+01:00) and in Kathmandu
    // (+05:45, where it is Sunday the 22nd already), and the time of day.
    let table = [
        ("today", "21 21 22", "00:00:00"),
        ("yesterday", "20 20 21", "00:00:00"),
        ("sat", "21 21 21", "00:00:00"),
        ("Sunday", "15 15 22", "00:00:00"),
        ("09:00", "21 21 22", "09:00:00"),
        ("9:00:30.5", "21 21 22", "09:00:30.5"),
        ("2pm yesterday", "20 20 21", "14:00:00"),
        ("monday at 12:30 AM", "16 16 16", "00:30:00"),
        ("12pm", "21 21 22", "12:00:00"),
        ("2026-11-21", "21 21 21", "00:00:00"),
        ("2026/11/21 10:00", "21 21 21", "10:00:00"),
        ("2026-11-21T10:00:00,123", "21 21 21", "10:00:00.123"),
        ("Nov 21 10:00:00", "21 21 21", "10:00:00"),
        ("Nov  1", "01 01 01", "00:00:00"),
        ("Sat, 21 November 2026 10:00", "21 21 21", "10:00:00"),
        ("nov 22", "22 22 22", "00:00:00"),
    ];
    let zones = [
        ("UTC", "Z"),
        ("Europe/Berlin", "+01:00"),
        ("Asia/Kathmandu", "+05:45"),
    ];
    for (text, days, clock) in table {
        for ((name, offset), day) in zones.iter().zip(days.split(' ')) {
            let expected = absolute(&format!("2026-11-{day}T{clock}{offset}"));
            assert_eq!(
                parse(text, NOW, &zone(name)).ok(),
                expected,
                "{text} in {name}"
            );
        }
    }
}

#[test]
fn dates_without_a_year_are_the_latest() {
    let table = [
        ("dec 31 23:00:00", "2025-12-31T22:00:00Z"),
        ("nov 22 20:00", "2026-11-22T19:00:00Z"),
        ("nov 22 23:00", "2025-11-22T22:00:00Z"),
        ("feb 29", "2024-02-28T23:00:00Z"),
        ("1 Jan", "2025-12-31T23:00:00Z"),
    ];
    for (text, expected) in table {
        assert_eq!(show(text, NOW, &zone("Europe/Berlin")), expected, "{text}");
    }
    let new_year = absolute("2026-12-31T23:59:00Z").unwrap();
    assert_eq!(
        show("Jan 1 00:10:00", new_year, &TimeZone::UTC),
        "2027-01-01T00:10:00Z"
    );
}

#[test]
fn clock_changes_are_told() {
    let berlin = zone("Europe/Berlin");
    // Summer time ended on 2026-10-25 at 03:00, and began on 2026-03-29 at 02:00.
    let table = [
        (
            "2026-10-25 02:30",
            "2026-10-25T00:30:00Z",
            Some(Oddity::Repeated),
        ),
        ("2026-10-25 03:00", "2026-10-25T02:00:00Z", None),
        (
            "2026-03-29 02:30",
            "2026-03-29T01:30:00Z",
            Some(Oddity::Skipped),
        ),
        ("2026-03-29 01:59", "2026-03-29T00:59:00Z", None),
        ("2026-10-25T02:30:00+01:00", "2026-10-25T01:30:00Z", None),
    ];
    for (text, expected, oddity) in table {
        let moment = resolve(text, NOW, &berlin).unwrap();
        assert_eq!(moment.time.to_string().replace(".000000000", ""), expected);
        assert_eq!(moment.oddity, oddity, "{text}");
    }
    // The day of the change has 25 hours: yesterday's midnight is not 24 hours before today's.
    let after = parse("2026-10-26T12:00:00Z", NOW, &berlin).unwrap();
    assert_eq!(show("yesterday", after, &berlin), "2026-10-24T22:00:00Z");
    assert_eq!(show("today", after, &berlin), "2026-10-25T23:00:00Z");
}

#[test]
fn what_is_no_time_is_refused() {
    let refused = [
        "",
        "soon",
        "5",
        "12345678",
        "12345678901234567890",
        "1x",
        "1M",
        "25:00",
        "9",
        "13pm",
        "2026-13-01",
        "2026-02-29",
        "2026-11-21T",
        "2026-11-21T10",
        "2026-11-21 10:00 +25:00",
        "2026-11-21 10:00 CET",
        "nov",
        "nov 31",
        "now 1h",
        "ago",
        "@",
        "@x",
        "--1h",
        "at 9:00",
        "monday tuesday",
        "0001-01-01",
        "999y ago",
        "@99999999999999999",
        "yesterday ago",
        "-\u{130}",
        "1h \u{130}ago",
    ];
    for text in refused {
        assert_eq!(show(text, NOW, &TimeZone::UTC), "-", "{text}");
    }
    let error = parse("soon", NOW, &TimeZone::UTC).unwrap_err().to_string();
    assert!(
        error.contains("`soon`") && error.contains("now-5m"),
        "{error}"
    );
    let error = parse("5", NOW, &TimeZone::UTC).unwrap_err().to_string();
    assert!(error.contains("5m") && error.contains("@5"), "{error}");
}

#[test]
fn absolute_times_need_nothing_else() {
    let table = [
        ("2026-11-21T20:30:00Z", Some(NOW)),
        ("2026-11-21 20:30", Some(NOW)),
        ("1795293000", Some(NOW)),
        ("1h", None),
        ("today", None),
        ("nov 21 20:30", None),
    ];
    for (text, expected) in table {
        assert_eq!(absolute(text), expected, "{text}");
    }
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(nanos in any::<i64>(), now in any::<i64>()) {
        let time = Timestamp(nanos);
        prop_assert_eq!(absolute(&time.to_string()), Some(time));
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        prop_assert_eq!(parse(&time.to_string(), Timestamp(now), &berlin), Ok(time));
    }

    #[test]
    fn nothing_panics(text in "\\PC{0,24}", now in any::<i64>()) {
        let _ = parse(&text, Timestamp(now), &TimeZone::UTC);
    }

    #[test]
    fn nothing_like_a_time_panics(
        text in "(now|@|today|sun|nov|21| |-|\\+|:|/|T|z|pm|[0-9]{1,4}|\\.|ago|h|d|at|,){0,9}",
        now in any::<i64>(),
    ) {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        let _ = parse(&text, Timestamp(now), &berlin);
    }
}

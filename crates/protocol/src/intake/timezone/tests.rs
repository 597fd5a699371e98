use logpond_record::{Batch, Entry, EntryKind, Labels, TimePattern};
use proptest::prelude::*;

use super::*;
use crate::intake::Parser;
use crate::intake::parser::rebuilds;
use crate::intake::parser::tests::{RECEIVED, describe_record, entry};

const BERLIN: &str = "CET-1CEST,M3.5.0,M10.5.0/3";

/// Moscow had an hour more from 2011 to 2014.
const MOSCOW: &str = "+03:00 until 1301180400, +04:00 until 1414274400, MSK-3";

fn labels(rule: &str) -> Labels {
    vec![(LABEL.into(), rule.into())]
}

/// What a line becomes, and the pattern that its time is written in.
fn read(rule: &str, kind: EntryKind, received: Timestamp, line: &str) -> (String, String) {
    let labels = labels(rule);
    let entry = Entry {
        received,
        ..entry(kind, &labels, line.as_bytes())
    };
    let record = Parser::new().parse(&entry);
    assert!(rebuilds(&record, line.as_bytes()), "{line}");
    let shape = record.shape.as_str();
    let pattern = shape
        .split_once("⟨_time:")
        .and_then(|(_, rest)| rest.split_once('⟩'));
    let pattern = pattern.map_or("", |(pattern, _)| pattern);
    (describe_record(&record), pattern.to_owned())
}

#[test]
fn what_is_no_rule_is_refused() {
    let long = format!("{}UTC0", "+01:00 until 1, ".repeat(300));
    let unordered = "+01:00 until 5, +02:00 until 5, UTC0";
    let many: String = (0..=CHANGES_MAX)
        .map(|at| format!("+01:00 until {at}, "))
        .collect();
    let table = [
        (long.as_str(), ZoneError::TooLong),
        (&format!("{many}UTC0"), ZoneError::TooLong),
        (unordered, ZoneError::Change("+02:00 until 5".into())),
        (
            "1:00 until 5, UTC0",
            ZoneError::Change("1:00 until 5".into()),
        ),
        (
            "+24:00 until 5, UTC0",
            ZoneError::Change("+24:00 until 5".into()),
        ),
        (
            "+01:60 until 5, UTC0",
            ZoneError::Change("+01:60 until 5".into()),
        ),
        (
            "+01:00 until x, UTC0",
            ZoneError::Change("+01:00 until x".into()),
        ),
        ("", ZoneError::Rule(String::new())),
        ("Europe/Berlin", ZoneError::Rule("Europe/Berlin".into())),
        ("+01:00 until 5, ", ZoneError::Rule(String::new())),
    ];
    for (text, error) in table {
        assert_eq!(Zone::new(text).unwrap_err(), error, "{text}");
    }
}

/// Local times, given as if they were UTC, with the receive time and what they are.
#[test]
fn local_times_have_the_offset_of_their_day() {
    // 2026-03-29 01:00Z clocks are put forward, 2026-10-25 01:00Z back.
    let table = [
        (BERLIN, "2026-03-02T00:00:00", "2026-03-02T00:00:00", 60),
        (BERLIN, "2026-07-02T00:00:00", "2026-03-02T00:00:00", 120),
        (BERLIN, "2026-03-29T01:59:59", "2026-03-29T01:00:00", 60),
        // Does not occur: what an hour later is shown.
        (BERLIN, "2026-03-29T02:30:00", "2026-03-29T01:30:00", 60),
        (BERLIN, "2026-03-29T03:00:00", "2026-03-29T01:00:00", 120),
        (BERLIN, "2026-10-25T01:59:59", "2026-10-25T00:00:00", 120),
        // Occurs twice: before and after the change.
        (BERLIN, "2026-10-25T02:30:00", "2026-10-25T00:30:01", 120),
        (BERLIN, "2026-10-25T02:30:00", "2026-10-25T01:30:01", 60),
        (BERLIN, "2026-10-25T02:30:00", "2026-10-20T00:00:00", 120),
        (BERLIN, "2026-10-25T02:30:00", "2026-11-20T00:00:00", 60),
        (BERLIN, "2026-10-25T03:00:00", "2026-10-25T02:00:00", 60),
        (MOSCOW, "2010-01-01T00:00:00", "2026-03-02T00:00:00", 180),
        (MOSCOW, "2011-03-27T01:59:59", "2026-03-02T00:00:00", 180),
        (MOSCOW, "2011-03-27T03:00:00", "2026-03-02T00:00:00", 240),
        (MOSCOW, "2014-10-25T23:00:00", "2026-03-02T00:00:00", 240),
        (MOSCOW, "2014-10-26T02:00:00", "2026-03-02T00:00:00", 180),
        (
            "<+0530>-05:30",
            "2026-03-02T00:00:00",
            "2026-03-02T00:00:00",
            330,
        ),
        (
            "NST3:30NDT,M3.2.0,M11.1.0",
            "2026-07-02T00:00:00",
            "2026-03-02T00:00:00",
            -150,
        ),
        ("UTC0", "2026-03-02T00:00:00", "2026-03-02T00:00:00", 0),
    ];
    let pattern = TimePattern::new("%Y-%m-%dT%H:%M:%S").unwrap();
    let instant = |text: &str| pattern.parse(text.as_bytes(), RECEIVED).unwrap().time;
    for (rule, local, received, minutes) in table {
        let zone = Zone::new(rule).unwrap();
        let (time, found) = zone
            .instant(instant(local), Assumption::Zone, instant(received))
            .unwrap();
        assert_eq!(found, minutes, "{rule} {local}");
        assert_eq!(time.0, instant(local).0 - minutes * 60_000_000_000);
    }
}

/// Lines, what they become in a batch of Berlin's, and the pattern of their time.
const LINES: &[(EntryKind, &str, &str, &str)] = &[
    (
        EntryKind::Syslog,
        "<13>Mar  2 01:00:00 h app: x",
        "header-year-and-zone-assumed=1772409600 facility=1 severity=5 hostname=h app=app | x",
        "%b %e %H:%M:%S%o[+01:00]",
    ),
    (
        EntryKind::Syslog,
        "<13>Aug  2 02:00:00 h app: x",
        "header-year-and-zone-assumed=1754092800 facility=1 severity=5 hostname=h app=app | x",
        "%b %e %H:%M:%S%o[+02:00]",
    ),
    (
        EntryKind::Syslog,
        "<13>1 2026-03-02T01:00:00.5 h app - - - x",
        "header-zone-assumed=1772409600.5 facility=1 severity=5 hostname=h app=app | x",
        "%Y-%m-%dT%H:%M:%S.%1f%o[+01:00]",
    ),
    // What says its zone itself is in that one.
    (
        EntryKind::Syslog,
        "<13>1 2026-03-02T00:00:00Z h app - - - x",
        "header=1772409600 facility=1 severity=5 hostname=h app=app | x",
        "%Y-%m-%dT%H:%M:%S%z[Z]",
    ),
    (
        EntryKind::Syslog,
        "<189>29: foo: *Apr 29 13:58:40.411 EST: %SYS-5-CONFIG_I: x",
        "header-year-assumed=1745953120.411 facility=23 severity=5 sequence=29 hostname=foo clock_status=* app=%SYS-5-CONFIG_I | x",
        "%b %e %H:%M:%S.%3f EST%o[-05:00]",
    ),
    (
        EntryKind::Json,
        r#"{"time":"2026-07-02 02:00:00","msg":"x"}"#,
        "field-zone-assumed=1782950400 | x",
        "%Y-%m-%d %H:%M:%S%o[+02:00]",
    ),
    (
        EntryKind::Json,
        r#"{"time":1772409600,"msg":"x"}"#,
        "field=1772409600 | x",
        "%s",
    ),
    (
        EntryKind::Line,
        "2026-03-02 01:00:00 x",
        "line-zone-assumed=1772409600 | 2026-03-02 01:00:00 x",
        "",
    ),
    (
        EntryKind::Line,
        "I0302 01:00:00.000000 1 a.cc:1] x",
        "line-year-and-zone-assumed=1772409600 tid=1 file=a.cc line=1 level=info | x",
        "%m%d %H:%M:%S.%6f%o[+01:00]",
    ),
    (
        EntryKind::Line,
        "1.1.1.1 - - [02/Mar/2026:00:00:06 +0000] \"GET / HTTP/1.1\" 200 1",
        "line=1772409606 remote_addr=1.1.1.1 method=GET path=/ protocol=HTTP/1.1 status=200 bytes=1 | line",
        "%d/%b/%Y:%H:%M:%S %z[+0000]",
    ),
];

#[test]
fn lines_without_a_zone_are_read_in_that_of_their_batch() {
    for (kind, line, record, pattern) in LINES {
        let (described, found) = read(BERLIN, *kind, RECEIVED, line);
        assert_eq!(
            (described.as_str(), found.as_str()),
            (*record, *pattern),
            "{line}"
        );
    }
}

#[test]
fn a_year_is_chosen_in_the_zone() {
    // 2025-12-31T12:30:00Z; it is the new year in Kiritimati already, and in the old one in Samoa.
    let received = Timestamp(1_767_184_200_000_000_000);
    let table = [
        ("<+14>-14", "<13>Jan  1 02:30:00 h a: x", 1_767_184_200),
        ("<-11>11", "<13>Dec 31 01:30:00 h a: x", 1_767_184_200),
        // Two days ahead is none of this year.
        ("<-11>11", "<13>Jan  2 01:30:00 h a: x", 1_735_821_000),
        (BERLIN, "<13>Feb 29 12:00:00 h a: x", 1_709_204_400),
    ];
    for (rule, line, seconds) in table {
        let (described, _) = read(rule, EntryKind::Syslog, received, line);
        let expected = format!("header-year-and-zone-assumed={seconds} ");
        assert!(
            described.starts_with(&expected),
            "{rule} {line}: {described}"
        );
    }
}

#[test]
fn a_parser_keeps_zones_apart() {
    let line = br#"{"time":"2026-07-02 02:00:00","msg":"x"}"#;
    let mut parser = Parser::new();
    let zones = [
        labels(BERLIN),
        Labels::new(),
        labels("<+01>-1"),
        labels("no rule"),
        labels(BERLIN),
    ];
    for _ in 0..3 {
        let times = zones.each_ref().map(|labels| {
            let record = parser.parse(&entry(EntryKind::Json, labels, line));
            assert!(rebuilds(&record, line));
            assert!(record.labels.is_empty());
            record.time.seconds().0
        });
        assert_eq!(
            times,
            [
                1_782_950_400,
                1_782_957_600,
                1_782_954_000,
                1_782_957_600,
                1_782_950_400
            ]
        );
    }
}

#[test]
fn a_changed_line_is_read_in_the_same_zone() {
    let mut batch = Batch::new(EntryKind::Line, labels(BERLIN));
    batch.push(b"x");
    let kept = crate::intake::declared::declarations_of(&batch.labels);
    assert_eq!(kept, batch.labels);
    assert_eq!(
        crate::intake::declared::fields_of_batch(&batch.labels).count(),
        0
    );
}

proptest! {
    /// Whatever the rule and the time: lines come back, and offsets are those that are in use.
    #[test]
    fn local_times_come_back(seconds in 0i64..4_000_000_000, rule in 0usize..4, shift in -40_000_000i64..40_000_000) {
        let rule = [BERLIN, MOSCOW, "NST3:30NDT,M3.2.0,M11.1.0", "<+1245>-12:45<+1345>,M9.5.0/2:45,M4.1.0/3:45"][rule];
        let zone = Zone::new(rule).unwrap();
        let local = seconds + zone.minutes_at(seconds) * 60;
        let read = Timestamp::from_seconds(local, 5).unwrap();
        let received = Timestamp::from_seconds(seconds + shift, 0).unwrap();
        let (time, minutes) = zone.instant(read, Assumption::Zone, received).unwrap();
        prop_assert_eq!(time.seconds().0 + minutes * 60, local);
        prop_assert_eq!(zone.minutes_at(time.seconds().0), minutes);
        // An hour that occurs twice is the one that is nearer; all others are what they were.
        prop_assert!((time.seconds().0 - seconds - shift).abs() <= shift.abs());
    }
}

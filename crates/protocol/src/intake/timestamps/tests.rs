use super::*;
use proptest::prelude::*;

/// 2026-03-02T00:00:00Z.
const RECEIVED: Timestamp = Timestamp(1_772_409_600_000_000_000);

fn pattern(form: &Form) -> String {
    let mut out = Vec::new();
    form.write_pattern(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn the_table_compiles() {
    assert_eq!(TimeReader::new().rows.len(), TABLE.len());
}

/// A time field's value, Unix seconds, and the pattern that it is written in.
const FIELDS: &[(&str, &str, &str)] = &[
    (
        "2026-03-02T00:02:32.465922Z",
        "1772409752.465922",
        "%Y-%m-%dT%H:%M:%S.%6f%z[Z]",
    ),
    (
        "2026-03-02T01:02:32+01:00",
        "1772409752",
        "%Y-%m-%dT%H:%M:%S%z[+01:00]",
    ),
    ("2026/03/02 00:02:32", "1772409752", "%Y/%m/%d %H:%M:%S"),
    (
        "2026-03-02 00:02:32,465",
        "1772409752.465",
        "%Y-%m-%d %H:%M:%S,%3f",
    ),
    (
        "2026-03-02 00:02:32.465 UTC",
        "1772409752.465",
        "%Y-%m-%d %H:%M:%S.%3f UTC",
    ),
    (
        "2026-03-02 00:02:32 -0600",
        "1772431352",
        "%Y-%m-%d %H:%M:%S %z[-0600]",
    ),
    (
        "2026-03-02 00:02:32+05",
        "1772391752",
        "%Y-%m-%d %H:%M:%S%z[+05]",
    ),
    (
        "02/Mar/2026:00:02:32 -0600",
        "1772431352",
        "%d/%b/%Y:%H:%M:%S %z[-0600]",
    ),
    ("Mar  2 00:02:32", "1772409752", "%b %e %H:%M:%S"),
    ("Mar 02 00:02:32.5", "1772409752.5", "%b %d %H:%M:%S.%1f"),
    ("Apr 15 21:28:13 2007", "1176672493", "%b %e %H:%M:%S %Y"),
    (
        "Mon Mar  2 00:02:32 2026",
        "1772409752",
        "%a %b %e %H:%M:%S %Y",
    ),
    (
        "Mon Mar 02 00:02:32.123456 2026",
        "1772409752.123456",
        "%a %b %d %H:%M:%S.%6f %Y",
    ),
    (
        "Mon, 02 Mar 2026 00:02:32 GMT",
        "1772409752",
        "%a, %d %b %Y %H:%M:%S GMT",
    ),
    (
        "02-Mar-2026 00:02:32.465",
        "1772409752.465",
        "%d-%b-%Y %H:%M:%S.%3f",
    ),
    ("02.03.2026 00:02:32", "1772409752", "%d.%m.%Y %H:%M:%S"),
    ("20260302T000232Z", "1772409752", "%Y%m%dT%H%M%S%z[Z]"),
    ("1772409752", "1772409752", "%s"),
    ("1772409752.465", "1772409752.465", "%s.%3f"),
    ("1772409752465", "1772409752.465", "%L"),
    ("1772409752465922", "1772409752.465922", "%U"),
    ("1772409752465922001", "1772409752.465922001", "%N"),
];

#[test]
fn values_of_time_fields() {
    let reader = TimeReader::new();
    for (text, seconds, expected) in FIELDS {
        let found = reader.whole(text.as_bytes(), RECEIVED, false);
        let found = found.unwrap_or_else(|| panic!("{text} is not read"));
        let (whole, fraction) = seconds.split_once('.').unwrap_or((*seconds, "0"));
        let nanos: i64 = format!("{fraction:0<9}").parse().unwrap();
        let time = whole.parse::<i64>().unwrap() * 1_000_000_000 + nanos;
        assert_eq!(found.time, Timestamp(time), "{text}");
        assert_eq!(pattern(&found.form), *expected, "{text}");
        assert!(
            found.exact && TimeReader::new().renders_to(&found, text.as_bytes()),
            "{text}"
        );
    }
}

/// Values that no pattern renders, and Unix milliseconds.
const UNRENDERED: &[(&str, i64)] = &[
    ("1772409752.4659221111", 1_772_409_752_465),
    ("1772409752465.922", 1_772_409_752_465),
    ("1.772409752465E9", 1_772_409_752_465),
    ("1.772409752465e+12", 1_772_409_752_465),
    ("/Date(1772409752465)/", 1_772_409_752_465),
    ("\\/Date(1772409752465+0100)\\/", 1_772_409_752_465),
    ("20260302T000232,465Z", 1_772_409_752_465),
    (
        "2026-03-02T01:02:32.465+01:00[Europe/Berlin]",
        1_772_409_752_465,
    ),
    (
        "2026-03-02 01:02:32.465922 +0100 CET m=+0.001",
        1_772_409_752_465,
    ),
    ("2026-03-02 03:02:32.465922 +0300 +03", 1_772_409_752_465),
    ("2026-03-02 12:02:32 AM", 1_772_409_752_000),
    ("3/2/2026, 12:02:32 AM", 1_772_409_752_000),
    ("Mar 2, 2026 12:02:32.465 AM", 1_772_409_752_465),
    ("Mar 2, 2026, 12:02:32\u{202f}AM", 1_772_409_752_000),
    (
        "Mon Mar 02 2026 01:02:32 GMT+0100 (Central European Standard Time)",
        1_772_409_752_000,
    ),
    ("Mon Mar 02 00:02:32 UTC 2026", 1_772_409_752_000),
    ("Mon Mar 02 01:02:32 +0100 2026", 1_772_409_752_000),
    ("Monday, 02-Mar-26 00:02:32 UTC", 1_772_409_752_000),
    ("02 Mar 26 00:02 UTC", 1_772_409_720_000),
    ("Mon, 02 Mar 2026 01:02:32 +0100 (CET)", 1_772_409_752_000),
    ("2026-03-02T00:02Z", 1_772_409_720_000),
    ("2026-061T00:02:32", 1_772_409_752_000),
    ("20260302000232", 1_772_409_752_000),
    ("20260302000232.465Z", 1_772_409_752_465),
    ("20260302000232465", 1_772_409_752_465),
];

#[test]
fn values_that_are_not_rendered() {
    let reader = TimeReader::new();
    for (text, ms) in UNRENDERED {
        let found = reader.whole(text.as_bytes(), RECEIVED, false);
        let found = found.unwrap_or_else(|| panic!("{text} is not read"));
        assert_eq!(found.time.unix_ms(), *ms, "{text}");
        assert!(!found.exact && found.bytes == text.len(), "{text}");
    }
}

#[test]
fn what_is_no_time() {
    let reader = TimeReader::new();
    for text in [
        "Wed MayA19 08:00:03 EST 2021",
        "",
        "7.53",
        "12",
        "yesterday",
        "2026-02-30T00:00:00Z",
        "2026-03-02T00:00:00Zx",
        "-1772409752",
        "01772409752",
        "17724097524",
        "20261402000232",
        "1772409752.",
        "2026-03-02T24:00:00Z",
        "9999-01-01T00:00:00Z",
        "2026-03-02",
    ] {
        assert!(
            reader.whole(text.as_bytes(), RECEIVED, false).is_none(),
            "{text}"
        );
    }
    // In a field that can be nothing else, a small number is a time.
    assert_eq!(
        reader.whole(b"12", RECEIVED, true).unwrap().time.0,
        12_000_000_000
    );
}

#[test]
fn what_cannot_be_rendered_is_not_exact() {
    let reader = TimeReader::new();
    for text in [
        "2026-03-02T00:00:60Z",
        "02/Mar/2026:00:00:60 +0000",
        "Sun Mar  2 00:02:32 2026",
    ] {
        let found = reader.whole(text.as_bytes(), RECEIVED, false).unwrap();
        assert!(!found.exact, "{text}");
    }
}

/// 2026-03-02T00:02:32Z.
const AT: i64 = 1_772_409_752;

/// Plain lines, and the Unix seconds that they show.
const LINES: &[(&str, Option<i64>)] = &[
    ("2026-03-02T00:02:32Z INFO x", Some(AT)),
    ("[2026-03-02 00:02:32] x", Some(AT)),
    ("[02/Mar/2026:00:02:32 +0000] x", Some(AT)),
    ("[Mon Mar 02 00:02:32.123456 2026] [core:error] x", Some(AT)),
    ("Mar  2 00:02:32 host sshd[1]: x", Some(AT)),
    ("INFO  2026-03-02 00:02:32 x", Some(AT)),
    ("[WARN] 2026-03-02 00:02:32 x", Some(AT)),
    ("W0302 00:02:32.000000 12345 main.go:7] x", Some(AT)),
    ("1772409752.465 x", Some(AT)),
    ("1772409752465 x", Some(AT)),
    ("Mar 2 00:02:32 x", Some(AT)),
    ("Mon Mar 2 00:02:32 2026 [pid 1] x", Some(AT)),
    ("2026 Mar  2 00:02:32 UTC: x", Some(AT)),
    ("[20260302-00:02:32] x", Some(AT)),
    ("03/02/2026-00:02:32.000000  [**] x", Some(AT)),
    ("1.2.3.4 \"user\" [02/Mar/2026:00:02:32 +0000] x", Some(AT)),
    ("2026/03/02 00:02:32 [error] 7#7: x", Some(AT)),
    ("2026-03-02 00:02:32 -12 degrees", Some(AT)),
    ("2026-03-02  0:02:32 331 [Warning] x", Some(AT)),
    ("2026-03-02 12:02:32 AM [INFO] x", Some(AT)),
    ("3/2/2026 12:02:32 AM x", Some(AT)),
    ("03/02/2026 00:02:32;0002;server;x", Some(AT)),
    ("[Nest] 36  - 03/02/2026, 12:02:32 AM     LOG x", Some(AT)),
    ("Mar 2, 2026 12:02:32 AM org.a.B c", Some(AT)),
    ("2026-03-02 02:02:32.123 EET [4711] LOG:  x", Some(AT)),
    ("2026-03-01 21:02:32.123 -03 [4711] LOG:  x", Some(AT)),
    (
        "2026-03-01 21:02:32 -03:192.0.2.1(1):u@d:[1]:LOG:  x",
        Some(AT),
    ),
    ("[02-Mar-2026 00:02:32 UTC] PHP Warning:  x", Some(AT)),
    (
        "[02-Mar-2026 01:02:32 Europe/Berlin] PHP Warning:  x",
        Some(AT),
    ),
    ("02-MAR-2026 00:02:32 * (CONNECT_DATA=x)", Some(AT)),
    ("W, [2026-03-02T00:02:32.123456 #1]  WARN -- : x", Some(AT)),
    ("E [02/Mar/2026:00:02:32 +0000] [Job 1] x", Some(AT)),
    ("[GIN] 2026/03/02 - 00:02:32 | 200 | x", Some(AT)),
    ("# Time: 2026-03-02T00:02:32.123456Z", Some(AT)),
    ("# Time: 260302  0:02:32", Some(AT)),
    ("260302  0:02:32 [Note] x", Some(AT)),
    ("1:M 02 Mar 2026 00:02:32.123 * x", Some(AT)),
    ("[1] 02 Mar 00:02:32.123 * x", Some(AT)),
    (
        "https 2026-03-02T00:02:32.123456Z app/x/1 192.0.2.1:1 x",
        Some(AT),
    ),
    ("26/03/02 00:02:32 INFO executor.Backend: x", Some(AT)),
    ("[3/2/26 0:02:32:123 UTC] 0000002e x", Some(AT)),
    ("11,03/02/26,00:02:32,Renew,192.0.2.1,x", Some(AT)),
    ("L 03/02/2026 - 00:02:32: x", Some(AT)),
    ("03-02-2026 00:02:32.123 +0000 INFO  Metrics - x", Some(AT)),
    ("2026-03-02-00.02.32.123456+000 I1A1 LEVEL: x", Some(AT)),
    ("####<Mar 2, 2026 12:02:32,123 AM UTC> <Info> x", Some(AT)),
    ("=INFO REPORT==== 2-Mar-2026::00:02:32 ===", Some(AT)),
    ("  1234:20260302:000232.123 x", Some(AT)),
    (
        "00:0000:00000:00001:2026/03/02 00:02:32.12 server  x",
        Some(AT),
    ),
    ("2026:03:02-00:02:32 gw httpproxy[1]: x", Some(AT)),
    ("2026-061T00:02:32,123:DEBUG:x", Some(AT)),
    ("03-02 00:02:32.123  1234  5678 I Activity: x", Some(AT)),
    ("03/02-00:02:32.123456  [**] x", Some(AT)),
    ("I20260302 00:02:32.123456 1 a.cc:1] x", Some(AT)),
    ("2 Mar 00:02:32 - [info] x", Some(AT)),
    ("Mon 2026-03-02 00:02:32: x", Some(AT)),
    ("2 03 2026 00:02:32", None),
    ("web-1  | 2026-03-02T00:02:32Z x", Some(AT)),
    ("\x1b[32m2026-03-02 00:02:32\x1b[0m x", Some(AT)),
    ("\u{feff}2026-03-02 00:02:32 x", Some(AT)),
    ("[I 260302 00:02:32 web:2271] 200 GET /", Some(AT)),
    ("20260302000232 x", Some(AT)),
    ("20260302000232Z x", Some(AT)),
    ("20260302T000232: x", Some(AT)),
    ("x 20260302000232", Some(AT)),
    // Ids that begin with digits.
    ("20260302000232f67c8a317d0ba43 is the sha", None),
    ("v011439v 20260302000232f67c8a317d0ba43", None),
    ("trace 20260302000232-f67c8a", None),
    ("20260302000232_a x", None),
    ("x 20260302T000232f67c", None),
    ("1,2026/03/02 00:02:32,001801000001,TRAFFIC,end", Some(AT)),
    ("WARNING:root:2026-03-02 00:02:32,123 x", Some(AT)),
    ("MainThread::INFO::2026-03-02 00:02:32,123::x", Some(AT)),
    (
        "[pid: 1|app: 0] 192.0.2.1 () {2 vars} [Mon Mar  2 00:02:32 2026] GET / x",
        Some(AT),
    ),
    (
        "192.0.2.1:1 [02/Mar/2026:00:02:32.123] front back/s x",
        Some(AT),
    ),
    (
        "::1 - root@pam [02/03/2026:00:02:32 +0000] \"GET /api2 x",
        Some(AT),
    ),
    ("@4000000069a4d3a20bebc200 x", Some(AT)),
    (
        "Started GET \"/\" for ::1 at 2026-03-02 00:02:32 +0000",
        Some(AT),
    ),
    (
        "{\"level\":\"info\",\"ts\":\"2026-03-02T00:02:32Z\",\"msg\":\"cut o",
        Some(AT),
    ),
    ("certificate expires 2026-03-02 00:02:32", None),
    ("certificate is valid [2027-03-02 00:02:32]", None),
    ("expires: 2026-03-02 00:02:32", None),
    (
        "{\"expires\":\"2026-03-02T00:02:32Z\",\"msg\":\"cut o",
        None,
    ),
    ("next run at 2026-03-02 00:02:32", None),
    ("101112 12:21:46 execve(\"/bin/x\") = 0", None),
    ("00:02:32.123 INFO x", None),
    ("2026-03-02 00:02:321 x", None),
    ("1.2.26 00:02:32 x", None),
    ("no time", None),
    ("", None),
    ("I", None),
    ("2026", None),
    ("12345 67890", None),
    ("1.2.3.4 x", None),
];

#[test]
fn plain_lines_show_a_time() {
    let reader = TimeReader::new();
    for (line, expected) in LINES {
        let found = reader.of_line(line.as_bytes(), RECEIVED);
        assert_eq!(found.map(|(time, _)| time.seconds().0), *expected, "{line}");
    }
}

/// The source of a time tells that a part of it is a guess.
#[test]
fn guesses_are_told() {
    let table = [
        ("2026-03-02 00:02:32 CST x", 1_772_431_352, Assumption::Zone),
        (
            "2026-03-02 00:02:32 EST x",
            1_772_427_752,
            Assumption::Nothing,
        ),
        ("2026-03-02 00:02:32 XYZ x", 1_772_409_752, Assumption::Zone),
        (
            "2026-03-02 00:02:32 UTC+01:00 x",
            1_772_406_152,
            Assumption::Nothing,
        ),
        (
            "2026-03-02 00:02:32 GMT-7 x",
            1_772_434_952,
            Assumption::Nothing,
        ),
        // The third of February is nearer than the second of March, which is in the future.
        (
            "02/03/2026 00:02:32 x",
            1_772_409_752,
            Assumption::DayAndZone,
        ),
        // Neither is in the past.
        (
            "05/06/2026 00:02:32 x",
            1_778_025_752,
            Assumption::DayAndZone,
        ),
        (
            "05/02/2026 00:02:32 x",
            1_770_249_752,
            Assumption::DayAndZone,
        ),
        ("28/02/2026 00:02:32 x", 1_772_236_952, Assumption::Zone),
        (
            "2026-03-02\t00:02:32\tFRA56-P1\t1\tx",
            1_772_409_752,
            Assumption::Nothing,
        ),
        ("2026-03-02\t00:02:32\tx", 1_772_409_752, Assumption::Zone),
        (
            "2026-03-02 00:02:32 192.0.2.1 GET / - 443 - 192.0.2.7 x - 200",
            1_772_409_752,
            Assumption::Nothing,
        ),
        (
            "2026-03-02 00:02:32 GET / 200",
            1_772_409_752,
            Assumption::Zone,
        ),
        ("Mar  2 00:02:32 CET x", 1_772_406_152, Assumption::Year),
    ];
    let reader = TimeReader::new();
    for (line, seconds, assumed) in table {
        let found = reader.of_line(line.as_bytes(), RECEIVED);
        let found = found.map(|(time, assumed)| (time.seconds().0, assumed));
        assert_eq!(found, Some((seconds, assumed)), "{line}");
    }
}

/// The zone of the batch tells which of several zones a name is, and nothing else of a time with a zone.
#[test]
fn ambiguous_names_are_those_of_the_batch() {
    let table = [
        ("CST-8", "2026-03-02 08:02:32 CST", AT),
        ("CST6CDT,M3.2.0,M11.1.0", "2026-03-01 18:02:32 CST", AT),
        // The name is of no use there, and has its usual meaning.
        ("CET-1", "2026-03-01 18:02:32 CST", AT),
        ("IST-2", "2026-03-02 02:02:32 IST", AT),
        ("CET-1", "2026-03-01 19:02:32 EST", AT),
        ("CET-1", "2026-03-01 21:02:32 -03", AT),
        ("CET-1", "2026-03-02 01:02:32", AT),
        ("CET-1", "3/2/2026 1:02:32 AM", AT),
    ];
    for (rule, text, seconds) in table {
        let mut reader = TimeReader::new();
        reader.set_zone(Some(Arc::new(Place::new(rule).unwrap())));
        let of_line = reader
            .of_line(text.as_bytes(), RECEIVED)
            .map(|(time, _)| time);
        let header = reader
            .header(text.as_bytes(), RECEIVED)
            .map(|found| found.time);
        let whole = reader.whole(text.as_bytes(), RECEIVED, false);
        for time in [of_line, header, whole.map(|found| found.time)] {
            assert_eq!(
                time.map(|time| time.seconds().0),
                Some(seconds),
                "{rule} {text}"
            );
        }
        if let Some(found) = whole.filter(|found| found.exact) {
            assert!(
                TimeReader::new().renders_to(&found, text.as_bytes()),
                "{rule} {text}"
            );
        }
    }
}

#[test]
fn years_are_guessed_from_the_receive_time() {
    let table = [
        ("Dec 31 00:00:00", 1_767_139_200),
        ("Feb 29 00:00:00", 1_709_164_800),
        ("Mar  2 20:00:00", 1_772_481_600),
    ];
    for (text, expected) in table {
        let found = syslog(text.as_bytes(), RECEIVED).unwrap();
        assert_eq!(found.time.seconds().0, expected, "{text}");
    }
}

proptest! {
    #[test]
    fn what_is_exact_renders(text in "[0-9]{4}[-/][01][0-9][-/][0-3][0-9][T ][0-2][0-9]:[0-5][0-9]:[0-6][0-9]([.,][0-9]{1,9})?(Z| UTC| ?[+-][01][0-9]:?[0-5][0-9])?|(Jan|Feb|Dec) [ 0-3]?[0-9] [012][0-9]:[0-5][0-9]:[0-5][0-9]([.][0-9]{1,3})?( 20[0-9]{2})?|[0-9]{1,20}([.][0-9]{1,9})?") {
        let reader = TimeReader::new();
        if let Some(found) = reader.whole(text.as_bytes(), RECEIVED, true) {
            prop_assert_eq!(found.exact, TimeReader::new().renders_to(&found, text.as_bytes()), "{}", text);
            let concrete = TimePattern::new(&pattern(&found.form)).unwrap();
            prop_assert!(concrete.is_concrete());
        }
    }

    #[test]
    fn nothing_panics(text in proptest::collection::vec(any::<u8>(), 0..40)) {
        let reader = TimeReader::new();
        reader.of_line(&text, RECEIVED);
        reader.is_at_start(&text, RECEIVED);
        reader.header(&text, RECEIVED);
        reader.whole(&text, RECEIVED, true);
    }
}

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
    assert!(TimeReader::new().glog.is_some());
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
        assert!(found.exact && renders_to(&found, text.as_bytes()), "{text}");
    }
}

#[test]
fn what_is_no_time() {
    let reader = TimeReader::new();
    for text in [
        "",
        "7.53",
        "12",
        "yesterday",
        "2026-02-30T00:00:00Z",
        "2026-03-02T00:00:00Zx",
        "1.7e9",
        "-1772409752",
        "01772409752",
        "17724097524",
        "1772409752.",
        "2026-03-02T24:00:00Z",
        "2026-03-02T00:00:00.1234567890Z",
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

#[test]
fn plain_lines_begin_with_a_time() {
    let at = 1_772_409_752;
    let table = [
        ("2026-03-02T00:02:32Z INFO x", Some(at)),
        ("[2026-03-02 00:02:32] x", Some(at)),
        ("[02/Mar/2026:00:02:32 +0000] x", Some(at)),
        ("[Mon Mar 02 00:02:32.123456 2026] [core:error] x", Some(at)),
        ("Mar  2 00:02:32 host sshd[1]: x", Some(at)),
        ("INFO  2026-03-02 00:02:32 x", Some(at)),
        ("[WARN] 2026-03-02 00:02:32 x", Some(at)),
        ("W0302 00:02:32.000000 12345 main.go:7] x", Some(at)),
        ("1772409752.465 x", Some(at)),
        ("1772409752465 x", Some(at)),
        ("Mar 2 00:02:32 x", Some(at)),
        ("Mon Mar 2 00:02:32 2026 [pid 1] x", Some(at)),
        ("2026 Mar  2 00:02:32 UTC: x", Some(at)),
        ("[20260302-00:02:32] x", Some(at)),
        ("03/02/2026-00:02:32.000000  [**] x", Some(at)),
        ("1.2.3.4 \"user\" [02/Mar/2026:00:02:32 +0000] x", Some(at)),
        ("2026/03/02 00:02:32 [error] 7#7: x", Some(at)),
        ("2026-03-02 00:02:32 -12 degrees", Some(at)),
        ("no time", None),
        ("", None),
        ("I", None),
        ("2026", None),
        ("12345 67890", None),
        ("1.2.3.4 x", None),
    ];
    let reader = TimeReader::new();
    for (line, expected) in table {
        let found = reader.of_line(line.as_bytes(), RECEIVED);
        assert_eq!(found.map(|(time, _)| time.seconds().0), expected, "{line}");
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
            prop_assert_eq!(found.exact, renders_to(&found, text.as_bytes()), "{}", text);
            let concrete = TimePattern::new(&pattern(&found.form)).unwrap();
            prop_assert!(concrete.is_concrete());
        }
    }

    #[test]
    fn nothing_panics(text in proptest::collection::vec(any::<u8>(), 0..40)) {
        let reader = TimeReader::new();
        reader.of_line(&text, RECEIVED);
        reader.whole(&text, RECEIVED, true);
    }
}

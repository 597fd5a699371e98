use std::sync::Arc;

use logpond_record::{Id, Message, Record, Shape, Timestamp, Value};

use super::*;
use crate::Matcher;
use crate::query;

fn read(texts: &[&str]) -> Result<Filter, MatchError> {
    let terms: Result<Vec<Term>, _> = texts.iter().map(|text| term(text.as_bytes())).collect();
    matches(&terms?)
}

/// The text that goes to servers, which must read back as the same.
fn text(filter: &Filter) -> String {
    let text = filter.to_string();
    assert_eq!(query::parse(&text).as_ref(), Ok(filter), "{text}");
    assert!(Matcher::new(filter).is_ok(), "{text}");
    text
}

#[test]
fn matches_are_joined_as_journalctl_joins_them() {
    let one = |name: &str, value: &str| equal(name, value.as_bytes());
    let table: [(&[&str], Filter); 8] = [
        (&[], Filter::All),
        (&["_COMM=sshd"], one("_COMM", "sshd")),
        (
            &["_TRANSPORT=syslog", "_COMM=autosshd"],
            Filter::and([one("_TRANSPORT", "syslog"), one("_COMM", "autosshd")]),
        ),
        (
            &["A=1", "B=2", "A=3"],
            Filter::and([Filter::or([one("A", "1"), one("A", "3")]), one("B", "2")]),
        ),
        (
            &["_COMM=sshd", "+", "_COMM=autossh", "B=x=y"],
            Filter::or([
                one("_COMM", "sshd"),
                Filter::and([one("_COMM", "autossh"), one("B", "x=y")]),
            ]),
        ),
        (
            &["A!=1", "A!=2"],
            Filter::and([Filter::negate(one("A", "1")), Filter::negate(one("A", "2"))]),
        ),
        (
            &["A=~^x|y$", "A=b", "B!~z="],
            Filter::and([
                Filter::or([like("A", "^x|y$", false), one("A", "b")]),
                Filter::negate(like("B", "z=", false)),
            ]),
        ),
        (
            &["A=", "a.b=!~"],
            Filter::and([one("A", ""), one("a.b", "!~")]),
        ),
    ];
    for (texts, wanted) in table {
        let found = read(texts).unwrap();
        assert_eq!(found, wanted, "{texts:?}");
        text(&found);
    }
}

#[test]
fn what_is_no_match_is_named() {
    let table: [(&[&str], &str); 7] = [
        (&["nginx"], "`nginx` is no match"),
        (&["=x"], "no field with such a name"),
        (&["a b=x"], "no field with such a name"),
        (&["A=~("], "unclosed group"),
        (&["+"], "none on one side"),
        (&["A=1", "+"], "none on one side"),
        (&["A=1", "+", "+", "B=2"], "none on one side"),
    ];
    for (texts, wanted) in table {
        let said = read(texts).unwrap_err().to_string();
        assert!(said.contains(wanted), "{texts:?}: {said}");
    }
}

#[test]
fn values_in_lists_and_bytes_are_found() {
    let table = [
        ("a", r#"["a","b"]"#, true),
        ("b", r#"["a","b"]"#, true),
        ("b", r#"["a","b","c"]"#, true),
        ("b", r#"["ab"]"#, false),
        ("b", r#"["\",\"b\",\""]"#, false),
        ("x\"y\n", r#"["1","x\"y\n"]"#, true),
    ];
    for (value, list, wanted) in table {
        let finder = crate::Finder::new(&listed(value.as_bytes())).unwrap();
        assert_eq!(
            finder.is_match(list.as_bytes()),
            wanted,
            "{value} in {list}"
        );
    }
    let bytes = crate::Finder::new(&listed(b"\xff\x01")).unwrap();
    assert!(bytes.is_match(b"[255,1]") && bytes.is_match(b"[\"a\",[255,1]]"));
    assert!(!bytes.is_match(b"[255,11]") && !bytes.is_match(b"[1,255,1]"));
}

/// A record of other origin, or an entry of a journal, with these fields of its line.
fn record(is_entry: bool, fields: &[(&'static str, Value<'static>)]) -> Record<'static> {
    let labels = fields
        .iter()
        .cloned()
        .map(|(name, value)| (name.into(), value));
    let entry = is_entry.then(|| ("_BOOT_ID".into(), Value::Str("9c7f".into())));
    Record {
        id: Id(1),
        time: Timestamp(0),
        time_source: logpond_record::TimeSource::Received,
        received: Timestamp(0),
        message: Message::Part(Value::Str("said".into())),
        shape: Arc::new(Shape::new("msg=⟨_msg:t⟩").unwrap()),
        values: vec![Value::Null],
        fixes: Vec::new(),
        labels: labels.chain(entry).collect(),
        whole: None,
    }
}

#[test]
fn what_a_program_says_passes_for_nothing_that_a_journal_says() {
    let text = |text: &'static str| Value::Str(text.into());
    let said = [
        ("procid", Value::Int(1)),
        ("unit", text("a.service")),
        ("hostname", text("h")),
        ("app", text("a")),
        ("severity", Value::Int(3)),
        ("facility", Value::Int(4)),
        ("src", text("x")),
        ("level", text("error")),
        ("SYSLOG_PID", Value::Int(1)),
    ];
    let (entry, other) = (record(true, &said), record(false, &said));
    let terms = [
        "_PID=1",
        "_SYSTEMD_UNIT=a.service",
        "_SYSTEMD_UNIT=~^a",
        "_HOSTNAME=h",
        "SYSLOG_IDENTIFIER=a",
        "PRIORITY=3",
        "SYSLOG_FACILITY=4",
        "SRC=x",
        "LEVEL=error",
        "MESSAGE=said",
    ];
    let mut filters: Vec<Filter> = terms.iter().map(|term| read(&[term]).unwrap()).collect();
    filters.extend([
        unit("a"),
        levels("err").unwrap(),
        exists("SRC"),
        grep("^said", true),
    ]);
    for filter in filters {
        let shown = self::text(&filter);
        let matcher = Matcher::new(&query::parse(&shown).unwrap()).unwrap();
        let mut scratch = crate::Scratch::new();
        assert!(matcher.matches(&other, &mut scratch), "{shown}");
        assert!(!matcher.matches(&entry, &mut scratch), "{shown}");
    }
}

#[test]
fn a_name_means_the_field_that_is_shown_under_it() {
    let text = |text: &'static str| Value::Str(text.into());
    let both = [("a.b", text("2")), ("A_B", text("1")), ("a_b", Value::Null)];
    let table: [(&str, &[_], bool); 19] = [
        ("A_B=1", &both, true),
        ("A_B=2", &both, false),
        ("A_B=2", &both[..1], true),
        ("a.b=2", &both, true),
        (
            "_SYSTEMD_UNIT=u",
            &[("unit", text("u")), ("_SYSTEMD_UNIT", text("v"))],
            false,
        ),
        ("PRIORITY=2", &[("lvl", text("Fatal"))], true),
        ("PRIORITY=0", &[("lvl", text("Fatal"))], false),
        ("PRIORITY=0", &[("severity", Value::Int(0))], true),
        ("PRIORITY=2", &[("severity", Value::Int(0))], false),
        ("PRIORITY=0", &[("level", text("EMERGENCY"))], true),
        ("PRIORITY=3", &[("level", text("ERROR+1"))], true),
        // Hundreds are Google's there.
        ("PRIORITY=4", &[("severity", Value::Int(400))], true),
        ("PRIORITY=1", &[("severity", Value::Int(700))], true),
        ("PRIORITY=4", &[("levelno", Value::Int(30))], true),
        (
            "PRIORITY=3",
            &[("level", text("error")), ("PRIORITY", Value::Int(7))],
            false,
        ),
        ("_PID=0100", &[("_PID", Value::Int(100))], false),
        ("_PID=100", &[("_PID", Value::Int(100))], true),
        ("CODE=0100", &[("CODE", text("0100"))], true),
        ("CODE=100", &[("CODE", text("0100"))], false),
    ];
    for (term, fields, wanted) in table {
        let matcher = Matcher::new(&read(&[term]).unwrap()).unwrap();
        let found = matcher.matches(&record(false, fields), &mut crate::Scratch::new());
        assert_eq!(found, wanted, "{term}");
    }
}

#[test]
fn levels_and_facilities() {
    let range = |text| levels(text).map(|filter| self::text(&filter));
    let shown = range("err").unwrap();
    assert!(
        shown.starts_with("(PRIORITY>=0 AND PRIORITY<=3) OR "),
        "{shown}"
    );
    assert_eq!(range("3"), range("error"));
    assert_eq!(range("err..info"), range("6..3"));
    assert_eq!(range("warn..warning"), range("4..4"));
    assert!(range("debug..debug").unwrap().starts_with("PRIORITY=7 OR "));
    for all in ["debug", "7", "0..7", "debug..emerg"] {
        assert_eq!(levels(all), Ok(Filter::All), "{all}");
    }
    for bad in ["", "8", "errr", "err..", "..err", "-1"] {
        assert!(range(bad).is_err(), "{bad}");
    }
    let numbers = [("kern", 0), ("authpriv", 10), ("local7", 23), ("13", 13)];
    for (name, number) in numbers {
        assert_eq!(facility(name), Ok(number));
    }
    assert!(facility("24").is_err() && facility("").is_err() && facility("x").is_err());
}

#[test]
fn names_of_units() {
    let table = [
        ("nginx", "nginx.service"),
        ("nginx.service", "nginx.service"),
        ("user@1000", "user@1000.service"),
        ("a.b", "a.b.service"),
        (".service", "\\x2eservice.service"),
        ("x y", "x\\x20y.service"),
        ("a/b", "a-b.service"),
        ("/dev/sda1", "dev-sda1.device"),
        ("/home/my-data/", "home-my\\x2ddata.mount"),
        ("/", "-.mount"),
        ("-.slice", "-.slice"),
        ("ssh*", "ssh*"),
    ];
    for (typed, name) in table {
        assert_eq!(unit_name(typed), name, "{typed}");
    }
}

#[test]
fn patterns_of_units_are_expressions() {
    let table = [
        ("ssh*", "ssh.service", true),
        ("ssh*", "xssh.service", false),
        ("ssh?.service", "sshd.service", true),
        ("tty[1-3].service", "tty2.service", true),
        ("tty[!1-3].service", "tty2.service", false),
        ("a[]x].service", "a].service", true),
        ("a[.service*", "a[.service", true),
        ("a.b*", "aXb", false),
    ];
    for (pattern, name, wanted) in table {
        let shown = text(&unit(pattern));
        let found = name.as_bytes();
        let source = unit_expression(pattern);
        let finder = crate::Finder::new(&Pattern::regex(&source, false)).unwrap();
        assert_eq!(finder.is_match(found), wanted, "{pattern} {name} {source}");
        assert!(shown.contains("_logpond_entry._SYSTEMD_UNIT~/"));
    }
}

fn unit_expression(pattern: &str) -> String {
    match unit(pattern) {
        Filter::Or(parts) => parts.iter().find_map(source_of).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn source_of(filter: &Filter) -> Option<String> {
    match filter {
        Filter::Field(field) => match &field.test {
            FieldTest::Contains(Pattern::Regex { source, .. }) => Some(source.to_string()),
            _ => None,
        },
        _ => None,
    }
}

#[test]
fn cursors() {
    use crate::order::Key;
    let key = Key {
        time: Timestamp(1_702_617_286_786_610_123),
        id: Id(77),
    };
    let text = Cursor::text(key);
    assert!(text.starts_with("t=60c857a913e32;l=2023-12-15T05:14:46.786610123Z_"));
    assert_eq!(
        Cursor::parse(&format!("{text}\n")),
        Some(Cursor::Place(key))
    );
    let api = text.split_once(";l=").unwrap().1;
    assert_eq!(Cursor::parse(api), Some(Cursor::Place(key)));
    let theirs = "s=bc8d;i=460;b=9c7f;m=1ba5;t=60c857a913e32;x=2dd1";
    let entry = |time| {
        Some(Cursor::Entry {
            text: theirs.to_owned(),
            time,
        })
    };
    let time = Timestamp(1_702_617_286_786_610_000);
    assert_eq!(Cursor::parse(theirs), entry(Some(time)));
    for bad in ["", "x", "t=zz", "a;b", "l=1"] {
        assert_eq!(Cursor::parse(bad), None, "{bad}");
    }
}

#[test]
fn matches_are_filters_that_read_back() {
    for lines in [
        "lob=~",
        "lob!~",
        "lob=~(?:)",
        "a=~/\\/",
        "a=~b\nb=\n+\nc!~/",
    ] {
        super::fuzz_matches(lines.as_bytes());
        let terms: Result<Vec<Term>, _> = lines.split('\n').map(|l| term(l.as_bytes())).collect();
        assert!(matches(&terms.unwrap()).is_ok(), "{lines:?}");
    }
}

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

#[test]
fn other_records_are_asked_under_their_own_names() {
    let shown = text(&equal("SYSLOG_IDENTIFIER", b"sshd"));
    assert!(
        shown.starts_with("SYSLOG_IDENTIFIER=sshd OR ")
            && shown.ends_with(
                "OR (NOT SYSLOG_IDENTIFIER:* AND (app=sshd OR app~/^\\[(?:.*,)?\"sshd\"[,\\]]/))"
            ),
        "{shown}"
    );
    let shown = text(&grep("a/b", true));
    assert!(shown.starts_with("_msg~/a\\/b/i OR (("), "{shown}");
}

#[test]
fn levels_and_facilities() {
    let range = |text| levels(text).map(|filter| self::text(&filter));
    assert!(
        range("err")
            .unwrap()
            .starts_with("(PRIORITY>=0 AND PRIORITY<=3) OR ")
    );
    assert_eq!(range("3"), range("error"));
    assert_eq!(range("err..info"), range("6..3"));
    assert_eq!(range("warn..warning"), range("4..4"));
    assert!(range("debug..debug").unwrap().starts_with("PRIORITY=7 OR "));
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
        assert!(shown.contains("_SYSTEMD_UNIT~/"));
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
    use logpond_record::{Id, Timestamp};
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

use crate::intake::parser::tests::describe;
use logpond_record::EntryKind;
use logpond_record::limits::FIELD_NAME_BYTES_MAX;

#[test]
fn pairs_become_fields() {
    let table = [
        ("a=1 b=2.5", "a=1 b=2.5 | line"),
        ("a=01 b=2.50 c=-0 d=1e3", "a=01 b=2.50 c=-0 d=1e3 | line"),
        (
            "a=true b=false c=null d=",
            "a=true b=false c=null d= | line",
        ),
        (
            "ts=2026-03-02T00:00:00Z level=info msg=\"x y\"",
            "field=1772409600 level=info | x y",
        ),
        (
            "time=\"2026-03-02T00:00:00Z\" msg=x",
            "field=1772409600 | x",
        ),
        ("ts=1772409600.250 a=b", "field=1772409600.25 a=b | line"),
        (
            r#"a="q \"x\" \\" b="\n\d""#,
            r#"a=q "x" \\ b=\n\\d | line fix1=\\n\\d"#,
        ),
        ("a=http://x/?y=z b=\"\"", "a=http://x/?y=z b= | line"),
        ("a=1 b=2\r", "a=1 b=2 | line"),
        // Pairs as Python writes them.
        (
            "timestamp='2026-03-02T00:00:00Z' level='info' event='x y' n=1",
            "field=1772409600 level=info event=x y n=1 | x y",
        ),
        (
            r"a='it\'s' b='c\\d\n\xe9\u65e5\q' c='' d='e\U0001f389'",
            concat!(
                r"a=it's b=c\\d\n\xc3\xa9\xe6\x97\xa5\\q c= d=e\xf0\x9f\x8e\x89 | line ",
                r"fix0=it\\'s fix1=c\\\\d\\n\\xe9\\u65e5\\q fix3=e\\U0001f389",
            ),
        ),
        (
            "user={'id': 7, 'name': 'a } b'} tags=[1, \"two\"] at=(1, 2) n=None",
            "user={'id': 7, 'name': 'a } b'} tags=[1, \"two\"] at=(1, 2) n=None | line",
        ),
        ("a='x b=y", "a='x b=y | line"),
        ("a=[x b=y", "a=[x b=y | line"),
        ("a=1 a=2", "a=2 | line whole"),
        ("_msg=5 a=2", "_msg@label=5 a=2 | line"),
        ("a=é b=⟨", "a=\\xc3\\xa9 b=\\xe2\\x9f\\xa8 | line"),
    ];
    for (line, expected) in table {
        assert_eq!(
            describe(EntryKind::Line, line.as_bytes()),
            expected,
            "{line}"
        );
    }
}

#[test]
fn what_is_not_all_pairs_is_text() {
    for line in [
        "a=1",
        "a=1 b",
        "a=1  b=2",
        "x a=1 b=2",
        "a=1 b=\"x",
        "a=1 b=x\"y",
        "=1 b=2",
        "a=1 =2",
        "a=\"x\"y b=1",
        "a='x y'z b=1",
        "a=[x y b=1",
        "a='x b='",
        "a=[x y]z b=1",
        "a=1 b=2\tc=3",
    ] {
        let described = describe(EntryKind::Line, line.as_bytes());
        assert!(described.starts_with('|'), "{described}");
    }
}

/// A name of any length is a field, as in JSON: only lines whose names have no room in a listing lack some.
#[test]
fn a_long_name_hides_no_field() {
    for length in [128, 129, 130, 256, 257, 5000, 100_000] {
        let name = "n".repeat(length);
        let whole = if length > FIELD_NAME_BYTES_MAX {
            " whole"
        } else {
            ""
        };
        for (line, expected) in [
            (format!("user=ann {name}=1"), format!("user=ann {name}=1")),
            (format!("{name}=1 user=ann"), format!("{name}=1 user=ann")),
        ] {
            let described = describe(EntryKind::Line, line.as_bytes());
            assert_eq!(described, format!("{expected} | line{whole}"));
        }
        // A text with a late equals sign is prose all the same.
        let prose = format!("{name}=");
        assert!(describe(EntryKind::Line, prose.as_bytes()).starts_with('|'));
    }
}

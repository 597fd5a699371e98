use logpond_record::{Id, Timestamp, Value};

use super::*;

/// 2023-12-15 05:14:46.786610 UTC
const TIME: Timestamp = Timestamp(1_702_617_286_786_610_000);

fn row(fields: &[(&'static str, Value<'static>)], line: &'static [u8]) -> Row<'static> {
    Row {
        time: Some(TIME),
        id: Id(7).to_string().into(),
        message: Some(line.into()),
        fields: fields
            .iter()
            .map(|(name, value)| ((*name).into(), value.clone()))
            .collect(),
        line: Some(line.into()),
    }
}

fn text(text: &'static str) -> Value<'static> {
    Value::Str(text.into())
}

fn list(json: &'static str) -> Value<'static> {
    Value::Json(json.into())
}

/// An entry of a journal.
fn entry(more: &[(&'static str, Value<'static>)], line: &'static [u8]) -> Row<'static> {
    let mut fields = vec![
        ("PRIORITY", Value::Int(4)),
        ("SYSLOG_IDENTIFIER", text("sshd")),
        ("_BOOT_ID", text("9c7f833031f94777aedd645a8789e450")),
        ("_HOSTNAME", text("huggy")),
        ("_PID", Value::Int(12)),
        ("__CURSOR", text("s=1;i=2")),
        ("__MONOTONIC_TIMESTAMP", Value::Int(28_989_881)),
        ("__REALTIME_TIMESTAMP", Value::Int(1_702_617_286_786_624)),
        ("severity", Value::Int(4)),
        ("app", text("sshd")),
    ];
    fields.extend_from_slice(more);
    row(&fields, line)
}

fn style(format: Format) -> Style {
    Style {
        format,
        zone: TimeZone::UTC,
        all: false,
        columns: 0,
        no_hostname: false,
        only: Vec::new(),
        colour: false,
        escapes: false,
        marks_boots: true,
        has_own_cursors: true,
        spans: None,
    }
}

fn printed(style: Style, rows: &[Row<'_>]) -> String {
    let mut journal = Journal::new(style, LastCursor::default());
    let mut out = Vec::new();
    rows.iter().for_each(|row| journal.row(row, &mut out));
    String::from_utf8_lossy(&out).into_owned()
}

fn one(format: Format, row: Row<'_>) -> String {
    printed(style(format), &[row])
}

#[test]
fn times_are_in_front_of_lines() {
    let table = [
        (Format::Short, "Dec 15 05:14:46"),
        (Format::ShortFull, "Fri 2023-12-15 05:14:46 UTC"),
        (Format::ShortIso, "2023-12-15T05:14:46+0000"),
        (Format::ShortIsoPrecise, "2023-12-15T05:14:46.786610+0000"),
        (Format::ShortPrecise, "Dec 15 05:14:46.786610"),
        (Format::ShortUnix, "1702617286.786610"),
        (Format::ShortMonotonic, "[   28.989881]"),
        (Format::ShortDelta, "[   28.989881                ]"),
    ];
    for (format, time) in table {
        let wanted = format!("{time} huggy sshd[12]: hello\n");
        assert_eq!(one(format, entry(&[], b"hello")), wanted);
    }
    let unit = entry(&[("_SYSTEMD_UNIT", text("ssh.service"))], b"hello");
    assert_eq!(
        one(Format::WithUnit, unit),
        "Fri 2023-12-15 05:14:46 UTC huggy ssh.service[12]: hello\n"
    );
}

#[test]
fn messages_are_shown_as_journalctl_shows_them() {
    let table: [(&'static [u8], &str); 10] = [
        (
            b"two\nlines\n",
            "two\n                                lines\n",
        ),
        (
            b"a\n\nb",
            "a\n                                \n                                b\n",
        ),
        (b"tab\there", "tab        here\n"),
        (b"\x1b[1;31mred\x1b[0m end\r", "red end\n"),
        (b"x \x1b]8;;http://a\x07link\x1b]8;;\x07", "x link\n"),
        (b"x \x1b[2J", "[6B blob data]\n"),
        (b"cr\rmid\r", "[6B blob data]\n"),
        (b"x\r\ny", "x\n                                y\n"),
        (b"bad \xff", "[5B blob data]\n"),
        ("del \u{85} \u{7f}".as_bytes(), "[8B blob data]\n"),
    ];
    for (message, wanted) in table {
        let found = one(Format::Short, entry(&[], message));
        let found = found
            .strip_prefix("Dec 15 05:14:46 huggy sshd[12]: ")
            .unwrap();
        assert_eq!(found, wanted);
    }
    let all = Style {
        all: true,
        ..style(Format::Short)
    };
    assert!(printed(all, &[entry(&[], b"x\t\x1b[2J")]).ends_with(": x\t\x1b[2J\n"));
    let cut = Style {
        columns: 40,
        ..style(Format::Short)
    };
    assert!(printed(cut, &[entry(&[], b"0123456789")]).ends_with(": 0123456…\n"));
    // An entry without a message has no line, one with an empty message has.
    assert_eq!(one(Format::Short, entry(&[], b"")), "");
    let empty = entry(&[("MESSAGE", text(""))], b"");
    assert!(one(Format::Short, empty).ends_with(": \n"));
}

#[test]
fn long_values_are_blobs_where_lines_are_cut() {
    let verbose = |columns, length| {
        let value = Value::Str("y".repeat(length).into());
        let style = Style {
            columns,
            ..style(Format::Verbose)
        };
        printed(style, &[entry(&[("A", value)], b"x")])
    };
    assert!(verbose(80, 298).contains("    A=[298B blob data]\n"));
    assert!(verbose(80, 297).contains("    A=yyy"));
    assert!(verbose(0, 298).contains("    A=yyy"));
}

#[test]
fn blobs_have_sizes() {
    let table = [
        (999, "999B"),
        (1024, "1.0K"),
        (2006, "1.9K"),
        (3 << 20, "3.0M"),
    ];
    for (bytes, shown) in table {
        assert_eq!(plain::blob(bytes), format!("[{shown} blob data]"));
    }
}

#[test]
fn fields_keep_their_values_and_bytes() {
    let many = [
        ("A", list(r#"["1","x\ny"]"#)),
        ("B", list("[[255,1],\"t\"]")),
        ("C", list("[255]")),
    ];
    let row = entry(&many, b"hello");
    let json = one(Format::Json, row.clone());
    assert_eq!(
        json,
        "{\"__CURSOR\":\"s=1;i=2\",\"__REALTIME_TIMESTAMP\":\"1702617286786624\",\
         \"__MONOTONIC_TIMESTAMP\":\"28989881\",\"_BOOT_ID\":\"9c7f833031f94777aedd645a8789e450\",\
         \"A\":[\"1\",\"x\\ny\"],\"B\":[[255,1],\"t\"],\"C\":[255],\"MESSAGE\":\"hello\",\
         \"PRIORITY\":\"4\",\"SYSLOG_IDENTIFIER\":\"sshd\",\"_HOSTNAME\":\"huggy\",\"_PID\":\"12\"}\n"
    );
    let export = one(Format::Export, row.clone());
    assert!(export.starts_with("__CURSOR=s=1;i=2\n__REALTIME_TIMESTAMP=1702617286786624\n"));
    assert!(export.contains("A=1\nA\n\u{3}\0\0\0\0\0\0\0x\ny\nB\n\u{2}\0\0\0\0\0\0\0"));
    assert!(export.ends_with("_PID=12\n\n"));
    let verbose = one(Format::Verbose, row.clone());
    assert!(verbose.starts_with("Fri 2023-12-15 05:14:46.786610 UTC [s=1;i=2]\n    _BOOT_ID=9c"));
    assert!(verbose.contains("    A=1\n    A=x\n      y\n    B=[2B blob data]\n    B=t\n"));
    let pretty = one(Format::JsonPretty, row);
    assert!(
        pretty.contains("\n\t\"B\" : [\n\t\t[\n\t\t\t255,\n\t\t\t1\n\t\t],\n\t\t\"t\"\n\t],\n")
    );
}

#[test]
fn long_fields_are_null_unless_all_is_wanted() {
    let long: &'static str = "y".repeat(FIELD_LENGTH).leak();
    let row = entry(&[("F", text(long)), ("FF", text(long))], b"m");
    let json = one(Format::Json, row.clone());
    assert!(json.contains("\"FF\":null") && json.contains("\"F\":\"yyy"));
    let all = Style {
        all: true,
        ..style(Format::JsonSeq)
    };
    let json = printed(all, &[row]);
    assert!(json.starts_with("\u{1e}{") && !json.contains("null"));
}

/// The longest value that a name of one letter may have in JSON.
const FIELD_LENGTH: usize = 4093;

#[test]
fn other_records_have_names_of_journals() {
    let row = row(
        &[
            ("severity", Value::Int(3)),
            ("facility", Value::Int(16)),
            ("hostname", text("web1")),
            ("app", text("nginx")),
            ("procid", text("77")),
            ("http.method", text("GET")),
            ("_x", text("y")),
            ("5xx", Value::Int(1)),
            ("gone", Value::Null),
            ("__REALTIME_TIMESTAMP", text("1")),
        ],
        b"it broke",
    );
    assert_eq!(
        one(Format::Short, row.clone()),
        "Dec 15 05:14:46 web1 nginx[77]: it broke\n"
    );
    let export = one(Format::Export, row);
    let place = "t=60c857a913e32;l=2023-12-15T05:14:46.786610000Z_00000000000000000000000007";
    assert_eq!(
        export,
        format!(
            "__CURSOR={place}\n__REALTIME_TIMESTAMP=1702617286786610\nF_5XX=1\nHTTP_METHOD=GET\n\
             MESSAGE=it broke\nPRIORITY=3\nSYSLOG_FACILITY=16\nSYSLOG_IDENTIFIER=nginx\n\
             SYSLOG_PID=77\nX=y\n_HOSTNAME=web1\n\n"
        )
    );
}

#[test]
fn fields_of_a_message_do_not_pass_for_those_of_its_entry() {
    let row = entry(
        &[("level", text("info")), ("unit", text("x"))],
        b"{\"level\":\"info\"}",
    );
    let json = one(Format::Json, row);
    assert!(!json.contains("LEVEL") && !json.contains("UNIT"), "{json}");
}

#[test]
fn a_new_boot_of_a_machine_has_a_line() {
    let of = |host: &'static str, boot: &'static str| {
        row(&[("_HOSTNAME", text(host)), ("_BOOT_ID", text(boot))], b"m")
    };
    const BOOTS: [&str; 3] = [
        "11111111111111111111111111111111",
        "22222222222222222222222222222222",
        "33333333333333333333333333333333",
    ];
    let rows = [
        of("a", BOOTS[0]),
        of("b", BOOTS[1]),
        of("a", BOOTS[0]),
        of("a", BOOTS[2]),
        of("b", BOOTS[1]),
    ];
    let found = printed(style(Format::Short), &rows);
    assert_eq!(found.matches("-- Boot").count(), 1);
    assert!(found.contains(&format!("\n-- Boot {} --\n", BOOTS[2])));
}

#[test]
fn chosen_fields_only() {
    let chosen = |format| Style {
        only: vec!["PRIORITY".into(), "A".into(), "_BOOT_ID".into()],
        ..style(format)
    };
    let row = entry(&[("A", text("1"))], b"m");
    let cat = printed(chosen(Format::Cat), std::slice::from_ref(&row));
    assert_eq!(cat, "4\n1\n9c7f833031f94777aedd645a8789e450\n");
    let verbose = printed(chosen(Format::Verbose), std::slice::from_ref(&row));
    assert_eq!(verbose.lines().count(), 4);
    assert_eq!(one(Format::Cat, row), "m\n");
}

#[test]
fn levels_have_colours_and_matches_too() {
    let found = Style {
        colour: true,
        spans: Some(Arc::new(|text: &[u8]| {
            memchr::memmem::find_iter(text, b"l")
                .map(|at| at..at + 1)
                .collect()
        })),
        ..style(Format::Cat)
    };
    let yellow = "\x1b[0;1;38;5;185m";
    let red = "\x1b[0;1;31m";
    assert_eq!(
        printed(found, &[entry(&[], b"hello")]),
        format!("{yellow}he{red}l{yellow}{red}l{yellow}o\x1b[0m\n")
    );
}

/// A record says what it likes: neither its boot nor its cursor begins an entry of its own.
#[test]
fn a_record_forges_no_entry() {
    let forged = "0\nMESSAGE=forged\n\n__REALTIME_TIMESTAMP=1";
    for name in ["_BOOT_ID", "__CURSOR"] {
        let row = row(&[(name, text(forged)), ("_PID", text("1"))], b"m");
        let found = printed(style(Format::Export), &[row]);
        // A value with line ends has its length before it; other addresses than those of journals are left out.
        let length = str::from_utf8(&(forged.len() as u64).to_le_bytes())
            .unwrap()
            .to_owned();
        let is_framed = found.contains(&format!("{name}\n{length}{forged}\n"));
        assert_eq!(is_framed, found.contains("forged"), "{name}: {found}");
        assert_eq!(found.matches("__CURSOR=t=").count(), 1, "{name}: {found}");
    }
    let journal = "s=1a;i=2;b=3;m=4;t=5;x=6";
    let row = row(&[("__CURSOR", text(journal)), ("_PID", text("1"))], b"m");
    let found = printed(style(Format::Export), &[row]);
    assert!(
        found.starts_with(&format!("__CURSOR={journal}\n")),
        "{found}"
    );
}

/// `systemd-journal-remote` ends at the first entry that it does not take, and loses all behind it.
#[test]
fn what_is_exported_is_what_systemd_takes() {
    let boot = "9c7f833031f94777aedd645a8789e450";
    let table = [
        ("_BOOT_ID", "x"),
        ("_BOOT_ID", ""),
        ("_BOOT_ID", "abc"),
        ("__REALTIME_TIMESTAMP", "-5"),
        ("__REALTIME_TIMESTAMP", "0"),
        ("__REALTIME_TIMESTAMP", "1"),
        ("__REALTIME_TIMESTAMP", "99999999999999999"),
        ("__MONOTONIC_TIMESTAMP", "-7"),
    ];
    for (name, value) in table {
        let mut fields = vec![("_TRANSPORT", text("a")), (name, text(value))];
        if name != "_BOOT_ID" {
            fields.push(("_BOOT_ID", text(boot)));
        }
        let found = one(Format::Export, row(&fields, b"m"));
        assert!(
            found.contains("\n__REALTIME_TIMESTAMP=1702617286786610\n"),
            "{name}: {found}"
        );
        assert_eq!(
            found.contains("_BOOT_ID="),
            name != "_BOOT_ID",
            "{value}: {found}"
        );
        assert!(!found.contains("__MONOTONIC_TIMESTAMP"), "{value}: {found}");
    }
}

#[test]
fn times_far_apart_do_not_overflow() {
    let of = |fields: &[(&'static str, Value<'static>)]| {
        let boot = ("_BOOT_ID", text("9c7f833031f94777aedd645a8789e450"));
        row(&[fields, &[boot]].concat(), b"m")
    };
    let [first, last] = ["-9223372036854775808", "9223372036854775807"];
    for name in ["_SOURCE_REALTIME_TIMESTAMP", "_SOURCE_MONOTONIC_TIMESTAMP"] {
        let rows = [
            of(&[(name, text(first))]),
            of(&[(name, text(last))]),
            of(&[]),
        ];
        assert_eq!(
            printed(style(Format::ShortDelta), &rows).lines().count(),
            3,
            "{name}"
        );
    }
}

mod samples;

use crate::intake::parser::tests::describe;
use logpond_record::EntryKind;

fn check(table: &[(&str, &str)]) {
    for (message, expected) in table {
        let described = describe(EntryKind::Syslog, message.as_bytes());
        assert_eq!(described, *expected, "{message}");
    }
}

#[test]
fn rfc5424() {
    check(&[
        ("<0>1 - - - - - -", "facility=0 severity=0 | "),
        ("<191>1 - - - - - - ", "facility=23 severity=7 | "),
        (
            "<28>1 2026-03-02T00:00:00.862016Z web-01 jellyfin 55905 ID47 - hi there",
            "header=1772409600.862016 facility=3 severity=4 hostname=web-01 app=jellyfin procid=55905 msgid=ID47 | hi there",
        ),
        (
            r#"<34>1 2026-03-02T01:00:00+01:00 h - - - [a@1 x="1" y="\"\]\\"][b z=""] m"#,
            r#"header=1772409600 facility=4 severity=2 hostname=h a@1.x=1 a@1.y="]\\ b.z= | m"#,
        ),
        // A backslash before anything else is part of the value.
        (
            r#"<34>1 - h - - - [a x="c:\d"]"#,
            r#"facility=4 severity=2 hostname=h a.x=c:\\d |  fix3=c:\\d"#,
        ),
        (
            "<34>1 - h - - - - \u{feff}bom",
            "facility=4 severity=2 hostname=h | bom",
        ),
        (
            "<34>1 - h - - - [sdid] m",
            "facility=4 severity=2 hostname=h | m",
        ),
        // Structured data that is missing or wrong is content.
        (
            "<34>1 - h - - ID1 text",
            "facility=4 severity=2 hostname=h msgid=ID1 | text",
        ),
        (
            r#"<34>1 - h - - - [a i=""ok"] m"#,
            r#"facility=4 severity=2 hostname=h | [a i=""ok"] m"#,
        ),
        // A parameter that an element repeats is a list; of elements with one name the last one counts.
        (
            r#"<34>1 - h - - - [a i="1" i="2\"" j="3"] m"#,
            r#"facility=4 severity=2 hostname=h a.i=["1","2\\""] a.j=3 | m whole"#,
        ),
        (
            r#"<34>1 - h - - - [a i="1" j="2"][b i="3"][a i="4"] m"#,
            "facility=4 severity=2 hostname=h a.i=4 a.j=2 b.i=3 | m whole",
        ),
        // The message's fields are found likewise.
        (
            r#"<34>1 - h - - - - {"a":1,"a":2,"hostname":3,"msg":"m"}"#,
            "facility=4 severity=2 hostname=h a=2 body.hostname=3 | m whole",
        ),
        (
            "<34>1 - h - - - - a=1 b=2 a=3",
            "facility=4 severity=2 hostname=h b=2 a=3 | line whole",
        ),
        (
            "<34>1 - - - - - - x\ny\0",
            "facility=4 severity=2 | x\\ny\\x00",
        ),
        (
            "<34>1 2026-03-02T00:00:00.123456789Z - - - - -",
            "header=1772409600.123456789 facility=4 severity=2 | ",
        ),
    ]);
}

/// Structured data beyond the RFC.
#[test]
fn odd_structured_data() {
    check(&[
        (
            r#"<34>1 - h - - - [a i="1" j=""]x"#,
            r#"facility=4 severity=2 hostname=h a.i=1 a.j= | x"#,
        ),
        (
            r#"<34>1 - h - - - [a  i="1]2"  j:k="3" ] m"#,
            r#"facility=4 severity=2 hostname=h a.i=1]2 a.j:k=3 | m fix3=1]2"#,
        ),
        (
            r#"<34>1 - h - - - [gerät größe="1"] m"#,
            r#"facility=4 severity=2 hostname=h gerät.größe=1 | m whole"#,
        ),
        (
            r#"<34>1 - h - - - [note]x"#,
            r#"facility=4 severity=2 hostname=h | [note]x"#,
        ),
        (
            "\u{feff}<34>1 - h - - - - m",
            "facility=4 severity=2 hostname=h | m",
        ),
    ]);
}

/// Names longer than the RFC has them, and more of them than a shape has room for, are found as others.
#[test]
fn structured_data_may_be_wide() {
    let name = "n".repeat(300);
    let pairs: Vec<String> = (0..600).map(|i| format!(" p{i}=\"{i}\"")).collect();
    for data in [
        format!("[{name} {name}=\"v\"][b p599=\"599\"]"),
        format!("[b{}]", pairs.concat()),
        format!("[b@{}{}]", "e".repeat(30), pairs.concat()),
        "[b p599=\"599\"][_time:%Y x=\"1\"]".to_owned(),
    ] {
        let line = format!("<34>1 - h - - - {data} m");
        let described = describe(EntryKind::Line, line.as_bytes());
        let is_told = described.contains("p599=599 ") && described.ends_with("| m whole");
        assert!(is_told && described.contains("hostname=h"), "{described}");
    }
}

#[test]
fn rfc3164() {
    check(&[
        (
            "<34>Mar  2 00:00:00 mymachine su: 'su root' failed",
            "header-year-and-zone-assumed=1772409600 facility=4 severity=2 hostname=mymachine app=su | 'su root' failed",
        ),
        (
            "<13>Mar  2 00:00:00 10.0.0.99 Use the BFG!",
            "header-year-and-zone-assumed=1772409600 facility=1 severity=5 hostname=10.0.0.99 | Use the BFG!",
        ),
        (
            "<30>Mar  2 00:00:00 postfix/smtpd[123]: connect",
            "header-year-and-zone-assumed=1772409600 facility=3 severity=6 app=postfix/smtpd procid=123 | connect",
        ),
        (
            "<30> Mar  2 00:00:00 fe80::1 prg0: x",
            "header-year-and-zone-assumed=1772409600 facility=3 severity=6 hostname=fe80::1 app=prg0 | x",
        ),
        (
            "<30>Mar  2 00:00:00 X4711",
            "header-year-and-zone-assumed=1772409600 facility=3 severity=6 hostname=X4711 | ",
        ),
        (
            "<30>2026-03-02T01:00:00+01:00 h p[1]: x\n",
            "header=1772409600 facility=3 severity=6 hostname=h app=p procid=1 | x\\n",
        ),
        (
            "<30>Mar  2 2026 00:00:00: %ASA-6-302013: x",
            "header-zone-assumed=1772409600 facility=3 severity=6 app=%ASA-6-302013 | x",
        ),
        (
            "<30>Apr 15 21:28:13 2007 linksys app: x",
            "header-zone-assumed=1176672493 facility=3 severity=6 hostname=linksys app=app | x",
        ),
        (
            "<34>Mar  2 00:00:60 h a: x",
            "header-year-and-zone-assumed=1772409660 facility=4 severity=2 hostname=h app=a | x fix2=Mar  2 00:00:60",
        ),
        (
            "<38>User logged in.",
            "facility=4 severity=6 | User logged in.",
        ),
        ("<13>plain\0", "facility=1 severity=5 | plain\\x00"),
    ]);
}

#[test]
fn what_has_no_priority() {
    check(&[
        ("Use the BFG!", "| Use the BFG!"),
        ("", "| "),
        ("<", "| <"),
        ("<13", "| <13"),
        ("<>x", "| <>x"),
        ("<013>x", "invalid_priority=013 | x"),
        ("<192>x", "invalid_priority=192 | x"),
        ("<999>x", "invalid_priority=999 | x"),
        ("<13Oct", "| <13Oct"),
        (
            "Mar  2 00:00:00 h a: x",
            "header-year-and-zone-assumed=1772409600 hostname=h app=a | x",
        ),
    ]);
}

/// Tags as the RFC does not have them.
#[test]
fn odd_tags() {
    check(&[
        (
            "<131>2026-03-02T00:00:00Z h app[77] msg",
            "header=1772409600 facility=16 severity=3 hostname=h app=app procid=77 | msg",
        ),
        (
            "<38>Mar  2 00:00:00 gw-1 sshd[4242]:Failed password",
            "header-year-and-zone-assumed=1772409600 facility=4 severity=6 hostname=gw-1 app=sshd procid=4242 | Failed password",
        ),
        (
            "<188>Mar  2 2026 00:00:00 SW-1 %%01LLDP/4/BAD_PACKET(l)[87]:4 packets",
            "header-zone-assumed=1772409600 facility=23 severity=4 hostname=SW-1 app=%%01LLDP/4/BAD_PACKET(l) procid=87 | 4 packets",
        ),
        (
            "<142>Mar  2 00:00:00 h myapp:msg",
            "header-year-and-zone-assumed=1772409600 facility=17 severity=6 hostname=h app=myapp | msg",
        ),
        ("<142>myapp: msg", "facility=17 severity=6 app=myapp | msg"),
        (
            "<142>my-app[12]: {\"a\":1}",
            "facility=17 severity=6 app=my-app procid=12 a=1 | none",
        ),
        // Content.
        (
            "<142>Mar  2 00:00:00 h http://x/y is down",
            "header-year-and-zone-assumed=1772409600 facility=17 severity=6 hostname=h | http://x/y is down",
        ),
        (
            "<142>Mar  2 00:00:00 h C:\\x is down",
            "header-year-and-zone-assumed=1772409600 facility=17 severity=6 hostname=h | C:\\\\x is down",
        ),
        (
            "<142>a text: of words",
            "facility=17 severity=6 | a text: of words",
        ),
        ("<142>12: x", "facility=17 severity=6 | 12: x"),
    ]);
}

/// Files of today's daemons, as lines of unknown origin.
#[test]
fn lines_of_files() {
    let table = [
        (
            "2026-03-02T00:00:00.818426+00:00 myhost sshd[123]: Failed password for root",
            "header=1772409600.818426 hostname=myhost app=sshd procid=123 | Failed password for root",
        ),
        (
            "2026-03-02T00:00:00.818426+00:00 myhost kernel: x",
            "header=1772409600.818426 hostname=myhost app=kernel | x",
        ),
        (
            "2026-03-02T00:00:00+0000 web-1 systemd[1]: x",
            "header=1772409600 hostname=web-1 app=systemd procid=1 | x",
        ),
        (
            "2026-03-02T00:00:00Z web-1 kernel: x",
            "header=1772409600 hostname=web-1 app=kernel | x",
        ),
        (
            "2026-03-02T00:00:00.818426+00:00 myhost app[1]: user=ann status=5",
            "header=1772409600.818426 hostname=myhost app=app procid=1 user=ann status=5 | line",
        ),
        (
            "2026-03-02T00:00:00.818426+00:00 heroku[router]: at=info status=5",
            "header=1772409600.818426 app=heroku procid=router at=info status=5 | line",
        ),
        (
            "Mar  2 00:00:00 ERROR main: x",
            "line-year-and-zone-assumed=1772409600 level=error | Mar  2 00:00:00 ERROR main: x",
        ),
        (
            "Mar  2 00:00:00 ERROR worker[12] x",
            "line-year-and-zone-assumed=1772409600 level=error | Mar  2 00:00:00 ERROR worker[12] x",
        ),
        // Others write a level, a thread or a class there.
        (
            "2026-03-02T00:00:00.818426+00:00 INFO main: x",
            "line=1772409600.818426 level=info | main: x",
        ),
        (
            "2026-03-02T00:00:00.818Z main org.a.B: x",
            "line=1772409600.818 | 2026-03-02T00:00:00.818Z main org.a.B: x",
        ),
        (
            "2026-03-02T00:00:00.818Z info vpxd[47413] [Originator@6876 sub=x] x",
            "line=1772409600.818 level=info | 2026-03-02T00:00:00.818Z info vpxd[47413] [Originator@6876 sub=x] x",
        ),
        (
            "2026-03-02T00:00:00 a b: x",
            "line-zone-assumed=1772409600 | 2026-03-02T00:00:00 a b: x",
        ),
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
fn messages_may_hold_any_bytes() {
    let described = describe(EntryKind::Syslog, b"<13>1 - h - - - - caf\xe9");
    assert_eq!(described, "facility=1 severity=5 hostname=h | caf\\xe9");
    let described = describe(EntryKind::Syslog, b"<13>1 - h\xe9 - - - - x");
    assert_eq!(described, "facility=1 severity=5 | 1 - h\\xe9 - - - - x");
}

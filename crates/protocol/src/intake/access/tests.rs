use crate::intake::parser::tests::describe;
use logpond_record::EntryKind;

#[test]
fn access_lines_become_fields() {
    const TIME: &str = "[02/Mar/2026:00:00:06 +0000]";
    let table = [
        (
            r#"1.2.3.4 - - TIME "GET /a?b=1?c HTTP/1.1" 200 12"#,
            "line=1772409606 remote_addr=1.2.3.4 method=GET path=/a query=b=1?c protocol=HTTP/1.1 status=200 bytes=12 | line",
        ),
        (
            r#"::1 id joe TIME "POST /a? HTTP/2.0" 404 - "-" "M \"x\" é""#,
            r#"line=1772409606 remote_addr=::1 ident=id user=joe method=POST path=/a query= protocol=HTTP/2.0 status=404 referer=- agent=M \\"x\\" \xc3\xa9 | line"#,
        ),
        (
            r#"1.2.3.4 - - TIME "-" 408 0 "-" "-" "shop.example.com""#,
            "line=1772409606 remote_addr=1.2.3.4 request=- status=408 bytes=0 referer=- agent=- host=shop.example.com | line",
        ),
        (
            r#"www.example.com:443 1.2.3.4 - - TIME "GET / HTTP/1.1" 200 5 "r" "a" "x""#,
            "line=1772409606 host=www.example.com port=443 remote_addr=1.2.3.4 method=GET path=/ protocol=HTTP/1.1 status=200 bytes=5 referer=r agent=a extra1=x | line",
        ),
        (
            r#"1.2.3.4 - - TIME "GET /a b HTTP/1.1" 400 5 "r" "a" "10.0.0.1, 10.0.0.2" 0.004 rt=1"#,
            "line=1772409606 remote_addr=1.2.3.4 request=GET /a b HTTP/1.1 status=400 bytes=5 referer=r agent=a http_x_forwarded_for=10.0.0.1, 10.0.0.2 extra1=0.004 request_time=1 duration_s=1.0 | line",
        ),
        (
            r#"1.2.3.4 - - TIME "\x16\x03" 400 5"#,
            "line=1772409606 remote_addr=1.2.3.4 request=\\\\x16\\\\x03 status=400 bytes=5 | line",
        ),
    ];
    for (line, expected) in table {
        for end in ["", "\r"] {
            let line = line.replace("TIME", TIME) + end;
            assert_eq!(
                describe(EntryKind::Line, line.as_bytes()),
                expected,
                "{line}"
            );
        }
    }
}

#[test]
fn what_is_no_access_line_is_text() {
    for line in [
        r#"1.2.3.4 - - [02/Mar/2026:00:00:06 +0000] "GET / HTTP/1.1"#,
        r#"1.2.3.4 - - [02/Mar/2026:00:00:06 +0000] "GET / HTTP/1.1" 02005 5"#,
        r#"1.2.3.4 - - [02/Mar/2026:00:00:06 +0000] "GET / HTTP/1.1" ok 5"#,
        r#"1.2.3.4 - - [02/Mar/2026:00:00:06 +0000] "GET / HTTP/1.1" 200 many"#,
        r#"1.2.3.4 x first last [02/Mar/2026:00:00:06 +0000] "GET / HTTP/1.1" 200 5"#,
        r#"1.2.3.4 - - [02/Foo/2026:00:00:06 +0000] "GET / HTTP/1.1" 200 5"#,
    ] {
        let described = describe(EntryKind::Line, line.as_bytes());
        assert!(described.contains("| 1.2.3.4"), "{described}");
    }
}

#[test]
fn a_leap_second_is_kept() {
    let line = r#"1.2.3.4 - - [02/Mar/2026:00:00:60 +0000] "GET / HTTP/1.1" 200 5"#;
    let described = describe(EntryKind::Line, line.as_bytes());
    assert!(
        described.ends_with("| line fix1=02/Mar/2026:00:00:60 +0000"),
        "{described}"
    );
}

#[test]
fn a_weekday_that_is_not_the_date_s_is_kept() {
    let line = "[pid: 7|app: 0|req: 1/1] 127.0.0.1 () {38 vars in 696 bytes} [Sun Mar 13 22:49:12 2216] POST /a => \
        generated 47 bytes in 129 msecs (HTTP/1.1 200) 9 headers in 378 bytes (1 switches on core 3)";
    let described = describe(EntryKind::Line, line.as_bytes());
    assert!(
        described.ends_with("| line fix5=Sun Mar 13 22:49:12 2216"),
        "{described}"
    );
}

use logpond_record::{EntryKind, Labels};

use super::*;
use crate::intake::Parser;
use crate::intake::parser::rebuilds;
use crate::intake::parser::tests::{describe_record, entry};

/// What a line becomes that was sent with a definition.
fn describe(definition: &str, kind: EntryKind, line: &str) -> String {
    let name = format!("{LABEL_PREFIX}shop");
    let labels: Labels = vec![(name.into(), definition.into())];
    let mut parser = Parser::new();
    let record = parser.parse(&entry(kind, &labels, line.as_bytes()));
    assert!(rebuilds(&record, line.as_bytes()), "{line}");
    describe_record(&record)
}

const COMBINED: &str = r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent""#;

#[test]
fn lines_of_nginx_become_fields() {
    let table = [
        (
            COMBINED,
            r#"::1 - joe [02/Mar/2026:00:00:06 +0000] "GET /a?b=1 HTTP/1.1" 200 12 "http://x.example:80/p" "M""#,
            "line=1772409606 remote_addr=::1 user=joe method=GET path=/a query=b=1 protocol=HTTP/1.1 status=200 bytes=12 referer=http://x.example:80/p agent=M access_log=shop referer_host=x.example | line",
        ),
        (
            // A user with a blank, a request that is none, nothing sent.
            COMBINED,
            r#"::1 - joe doe [02/Mar/2026:00:00:06 +0000] "\x16\x03" 400 0 "-" "a \"b\"""#,
            r#"line=1772409606 remote_addr=::1 user=joe doe request=\\x16\\x03 status=400 bytes=0 referer=- agent=a \\"b\\" access_log=shop | line"#,
        ),
        (
            "'$msec $host$request_uri $request_time '\n'$upstream_addr $upstream_response_time \"$http_x_forwarded_for\" $cookie_id'",
            r#"1772409606.250 www.example.com/a/b?c 0.120 10.0.0.1:80, 10.0.0.2:80 : 10.0.0.3:80 0.060, 0.060 : 0.000 "-" -"#,
            "line=1772409606.25 host=www.example.com path=/a/b query=c request_time=0.120 upstream_addr=10.0.0.1:80, 10.0.0.2:80 : 10.0.0.3:80 upstream_response_time=0.060, 0.060 : 0.000 access_log=shop duration_s=0.12 | line",
        ),
        (
            // The more exact time is the record's.
            "[$time_local] ${time_iso8601} $request_method|$uri|$args|$pid",
            "[02/Mar/2026:01:00:06 +0100] 2026-03-02T01:00:06+01:00 GET|/x||77",
            "line=1772409606 time_local=02/Mar/2026:01:00:06 +0100 method=GET path=/x query= worker_pid=77 access_log=shop | line",
        ),
        (
            "$time_iso8601 \"$request\" $request_method $request_uri $status $status",
            "2026-03-02T00:00:06Z \"GET /a HTTP/1.1\" GET /a 200 200",
            "line=1772409606 method=GET path=/a protocol=HTTP/1.1 request_method=GET request_uri=/a status=200 status_2=200 access_log=shop | line",
        ),
        (
            r#"escape=json '{"t":"$time_iso8601","agent":"$http_user_agent","n":$status,"path":"$uri"}'"#,
            r#"{"t":"2026-03-02T00:00:06+00:00","agent":"a \"b\" \u001B é","n":200,"path":"/x"}"#,
            r#"line=1772409606 agent=a "b" \x1b \xc3\xa9 status=200 path=/x access_log=shop | none fix1=a \\"b\\" \\u001B \xc3\xa9"#,
        ),
    ];
    for (definition, line, expected) in table {
        for end in ["", "\r"] {
            let line = format!("{line}{end}");
            if end == "\r" && !line.contains("[02") {
                continue;
            }
            assert_eq!(describe(definition, EntryKind::Line, &line), expected);
        }
    }
}

#[test]
fn lines_of_apache_become_fields() {
    let table = [
        (
            r#""%v:%p %h %l %u %t \"%r\" %>s %O \"%{Referer}i\" \"%{User-Agent}i\" %D" vhost_combined"#,
            r#"www.example.com:443 192.0.2.1 - - [02/Mar/2026:00:00:06 +0000] "GET /a HTTP/1.1" 200 5 "-" "M" 1500"#,
            "line=1772409606 host=www.example.com port=443 remote_addr=192.0.2.1 method=GET path=/a protocol=HTTP/1.1 status=200 bytes_sent=5 referer=- agent=M request_us=1500 access_log=shop duration_s=0.0015 | line",
        ),
        (
            "%{%Y-%m-%dT%H:%M:%S%z}t %a %m %U%q %H %!200,304{X-Id}i %{ms}T %{SID}C 100%%",
            "2026-03-02T00:00:06+0000 192.0.2.1 GET /a?b HTTP/2.0 - 25 - 100%",
            "line=1772409606 remote_addr=192.0.2.1 method=GET path=/a query=b protocol=HTTP/2.0 request_ms=25 access_log=shop duration_s=0.025 | line",
        ),
        (
            "\"%r\" %{msec}t %T %b",
            "\"-\" 1772409606250 3 -",
            "line=1772409606.25 request_s=3 access_log=shop duration_s=3.0 | line",
        ),
    ];
    for (definition, line, expected) in table {
        assert_eq!(describe(definition, EntryKind::Line, line), expected);
    }
}

/// Behind a header its fields keep their names, and the server's time counts if the header's leaves
/// something open.
#[test]
fn messages_behind_a_header_become_fields() {
    let definition = "$hostname [$time_local] $status";
    let line = "<190>Mar  2 01:00:07 web-1 nginx: web-1 [02/Mar/2026:01:00:06 +0100] 204";
    assert_eq!(
        describe(definition, EntryKind::Syslog, line),
        "field=1772409606 facility=23 severity=6 hostname=web-1 app=nginx body.hostname=web-1 \
         time_local=02/Mar/2026:01:00:06 +0100 status=204 access_log=shop | line fix2=Mar  2 01:00:07"
    );
    let line =
        "<190>1 2026-03-02T00:00:09Z web-1 nginx - - - web-1 [02/Mar/2026:01:00:06 +0100] 204";
    assert_eq!(
        describe(definition, EntryKind::Syslog, line),
        "header=1772409609 facility=23 severity=6 hostname=web-1 app=nginx body.hostname=web-1 \
         time_local=02/Mar/2026:01:00:06 +0100 status=204 access_log=shop | line"
    );
    let line = "<190>Mar  2 00:00:06 web-1 nginx: 192.0.2.1 - - [02/Mar/2026:00:00:06 +0000] \"GET / HTTP/1.1\" 200 5 \"https://a.example/\" \"M\"";
    assert_eq!(
        describe(definition, EntryKind::Syslog, line),
        "field=1772409606 facility=23 severity=6 hostname=web-1 app=nginx remote_addr=192.0.2.1 \
         time_local=02/Mar/2026:00:00:06 +0000 method=GET path=/ protocol=HTTP/1.1 status=200 \
         bytes=5 referer=https://a.example/ agent=M referer_host=a.example | line"
    );
}

#[test]
fn lines_that_do_not_fit_are_what_they_were() {
    for line in [
        "",
        "hello",
        r#"::1 - - [02/Foo/2026:00:00:06 +0000] "GET / HTTP/1.1" 200 12 "-" "M""#,
        r#"::1 - - [02/Mar/2026:00:00:06 +0000] "GET / HTTP/1.1" 2xx 12 "-" "M""#,
        r#"::1 - - [02/Mar/2026:00:00:06 +0000] "GET / HTTP/1.1" 200 12 "-" "M"#,
        r#"::1 - - [02/Mar/2026:00:00:06 +0000] "GET / HTTP/1.1" 200 12 "-" "M" more"#,
    ] {
        let described = describe(COMBINED, EntryKind::Line, line);
        assert!(!described.contains("access_log="), "{described}");
    }
    let json = r#"{"a":1,"msg":"x"}"#;
    assert_eq!(describe(COMBINED, EntryKind::Line, json), "a=1 | x");
    let labels: Labels = vec![(format!("{LABEL_PREFIX}a").into(), COMBINED.into())];
    let mut parser = Parser::new();
    let known = [(&labels, 1), (&Labels::new(), 0)];
    for (labels, unfit) in known {
        for raw in [&b"hello"[..], json.as_bytes()] {
            parser.parse(&entry(EntryKind::Line, labels, raw));
        }
        assert_eq!(parser.take_met().unfit, unfit);
    }
    // A definition that is none, which only a sender could have put there.
    assert_eq!(describe("nothing", EntryKind::Line, "x"), "| x");
}

#[test]
fn definitions_that_are_none_are_refused_by_name() {
    let long = "x".repeat(DEFINITION_BYTES_MAX + 1);
    let many = "$time_local ".to_owned() + &"$a ".repeat(VARIABLES_MAX);
    let name = format!("$time_local ${}", "n".repeat(300));
    let table: [(&str, &str); 13] = [
        (&long, "the format is longer than 4096 bytes"),
        (&many, "the format has more than 128 variables"),
        (&name, "of more than 256 bytes (at byte 12)"),
        ("plain", "the format has neither variables of nginx"),
        ("$status", "the format has no time: add $time_iso8601"),
        (
            "$time_local $status$host",
            "nothing stands between $status and $host, so a line does not say where one ends: put \
             a space between them (at byte 19)",
        ),
        ("%t %y", "Apache has no directive %y (at byte 3)"),
        ("%t %>", "Apache has no directive %> (at byte 3)"),
        (
            "%{%W}t",
            "times written as %{%W}t are not understood; use %t or",
        ),
        ("%{Referer", "a { is not closed"),
        ("$time_local '${a'", "a { is not closed (at byte 13)"),
        (
            "$time_local ⟨",
            "⟨ and ⟩ cannot be part of a format (at byte 12)",
        ),
        ("escape=xml '$time_local'", "escape=xml is none of"),
    ];
    for (definition, expected) in table {
        let error = AccessFormat::new(definition).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn hosts_of_addresses() {
    let table = [
        ("https://a.example/x", Some("a.example")),
        ("http://user:pass@a.example:8080", Some("a.example")),
        ("android-app://com.example.app/", Some("com.example.app")),
        ("http://[::1]:80/", Some("[::1]")),
        ("https://?", None),
        ("-", None),
        ("", None),
        ("a.example/x", None),
    ];
    for (address, host) in table {
        assert_eq!(host_of(address), host, "{address}");
    }
}

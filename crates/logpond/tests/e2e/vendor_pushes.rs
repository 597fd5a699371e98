//! Senders of vendors, over real sockets: requests as their documentation shows them, what is stored, and answers that
//! the senders understand.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::pond::{Scratch, TestServer};
use crate::surroundings::program;

fn start(name: &str) -> (Scratch, TestServer) {
    let scratch = Scratch::new(name).unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    (scratch, server)
}

fn post(server: &TestServer, target: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
    let mut client = server.client().unwrap();
    let response = client.send("POST", target, headers, body).unwrap();
    (response.status, response.text().unwrap())
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

fn deflate(text: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

/// The rows of a query without ids.
fn rows(server: &TestServer, q: &str) -> Vec<Value> {
    let (mut rows, trailer) = server.query(q).unwrap();
    assert_eq!(trailer["complete"], true);
    for row in &mut rows {
        row.as_object_mut().unwrap().remove("_id");
    }
    rows
}

#[test]
fn heroku_drains() {
    let (_scratch, server) = start("logplex");
    let message =
        "<40>1 2026-11-21T10:00:00+00:00 host app web.3 - State changed from starting to up\n";
    let two = format!("{} {message}{} {message}", message.len(), message.len());
    let headers = [
        ("content-type", "application/logplex-1"),
        ("logplex-msg-count", "2"),
        ("logplex-frame-id", "09C557EAFCFB6CF2740EE62F62971098"),
        (
            "logplex-drain-token",
            "d.fc6b856b-3332-4546-93de-7d0ee272c3bd",
        ),
        ("user-agent", "Logplex/v49"),
    ];
    // It is sent again after a timeout, and stored once.
    for _ in 0..2 {
        assert_eq!(
            post(&server, "/logplex", &headers, two.as_bytes()),
            (200, String::new())
        );
    }
    let stored = rows(&server, "app=app");
    assert_eq!(stored.len(), 2);
    let expected = json!({
        "_time": "2026-11-21T10:00:00.000000000Z", "_msg": "State changed from starting to up", "hostname": "host",
        "app": "app", "procid": "web.3", "severity": 0, "facility": 5, "drain": "d.fc6b856b-3332-4546-93de-7d0ee272c3bd",
    });
    assert_eq!(stored[0], expected);
    let mut wrong = headers;
    wrong[1].1 = "3";
    let (status, text) = post(&server, "/logplex", &wrong, two.as_bytes());
    assert_eq!(status, 400, "{text}");
    let (status, _) = post(&server, "/logplex", &[("content-type", "text/plain")], b"x");
    assert_eq!(status, 415);
    assert_eq!(rows(&server, "app=app").len(), 2);
}

#[test]
fn datadog_logs() {
    let (_scratch, server) = start("datadog");
    let log = |n: u32| {
        json!({ "message": format!("request {n}"), "ddsource": "nginx", "ddtags": "env:prod,web", "hostname": "web-1",
                "service": "shop", "status": "warn", "timestamp": 1_795_255_200_000_u64 + u64::from(n) })
    };
    let body = |n: u32| json!([log(n)]).to_string().into_bytes();
    let zstd = zstd::encode_all(&body(4)[..], 3).unwrap();
    let head = ("content-type", "application/json");
    for (target, encoding, body, status) in [
        ("/api/v2/logs", "identity", body(1), 202),
        ("/api/v2/logs", "gzip", gzip(&body(2)), 202),
        ("/v1/input", "deflate", deflate(&body(3)), 200),
        ("/api/v2/logs", "zstd", zstd, 202),
    ] {
        let headers = [
            head,
            ("content-encoding", encoding),
            ("dd-api-key", "unused"),
        ];
        let answer = post(&server, target, &headers, &body);
        assert_eq!(answer, (status, "{}\n".to_owned()), "{encoding}");
    }
    let stored = rows(&server, "service=shop");
    assert_eq!(stored.len(), 4);
    let expected = json!({
        "_time": "2026-11-21T10:00:00.001000000Z", "_msg": "request 1", "ddsource": "nginx", "env": "prod",
        "ddtags": "web", "hostname": "web-1", "service": "shop", "level": "warn",
    });
    assert_eq!(stored[0], expected);
    let text = [("content-type", "text/plain")];
    let target = "/api/v2/logs?ddsource=cron&ddtags=team:a&service=jobs&hostname=h";
    assert_eq!(post(&server, target, &text, b"one\ntwo\n").0, 202);
    assert_eq!(rows(&server, "service=jobs team=a").len(), 2);
    let bad = br#"[{"message":"good","service":"half"},{"":1}]"#;
    let (status, said) = post(&server, "/api/v2/logs", &[head], bad);
    assert_eq!(status, 400);
    let said: Value = serde_json::from_str(&said).unwrap();
    let detail = said["errors"][0]["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("1 logs are stored; 1 are not"),
        "{detail}"
    );
    assert_eq!(rows(&server, "service=half").len(), 1);
    for (headers, body, status) in [
        (head, &b"{"[..], 400),
        (("content-type", "application/xml"), &b"<a/>"[..], 415),
    ] {
        let (found, said) = post(&server, "/api/v2/logs", &[headers], body);
        assert!(
            found == status && said.contains("\"errors\""),
            "{found} {said}"
        );
    }
}

#[test]
fn firehose_deliveries() {
    let (_scratch, server) = start("firehose");
    let envelope = json!({
        "messageType": "DATA_MESSAGE", "owner": "111122223333", "logGroup": "/aws/lambda/shop", "logStream": "2026/11/21",
        "subscriptionFilters": ["all"],
        "logEvents": [{ "id": "319", "timestamp": 1_795_255_200_000_u64, "message": "Task timed out" }],
    });
    let control = json!({
        "messageType": "CONTROL_MESSAGE", "owner": "CloudwatchLogs", "logGroup": "", "logStream": "",
        "subscriptionFilters": [],
        "logEvents": [{ "id": "", "timestamp": 1, "message": "CWL CONTROL MESSAGE: Checking health of destination Firehose." }],
    });
    let data = |bytes: &[u8]| json!({ "data": STANDARD.encode(bytes) });
    let records = [
        data(&gzip(control.to_string().as_bytes())),
        data(&gzip(envelope.to_string().as_bytes())),
        data(b"plain line of firehose\n"),
    ];
    let id = "ed4acda5-034f-9f42-bba1-f29aea6d7d8f";
    let body = json!({ "requestId": id, "timestamp": 1_795_255_200_000_u64, "records": records })
        .to_string();
    let headers = [
        ("content-type", "application/json"),
        ("x-amz-firehose-protocol-version", "1.0"),
        ("x-amz-firehose-request-id", id),
        (
            "x-amz-firehose-common-attributes",
            r#"{"commonAttributes":{"env":"prod"}}"#,
        ),
        ("content-encoding", "gzip"),
    ];
    for _ in 0..2 {
        let (status, said) = post(&server, "/firehose", &headers, &gzip(body.as_bytes()));
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!((status, &said["requestId"]), (200, &json!(id)));
        assert!(
            said["timestamp"].is_u64() && said["errorMessage"].is_null(),
            "{said}"
        );
    }
    let stored = rows(&server, "logGroup:*");
    let expected = json!({
        "_time": "2026-11-21T10:00:00.000000000Z", "_msg": "Task timed out", "owner": "111122223333",
        "logGroup": "/aws/lambda/shop", "logStream": "2026/11/21", "event_id": "319", "env": "prod",
    });
    assert_eq!(stored, [expected]);
    assert_eq!(
        rows(&server, "env=prod").len(),
        2,
        "control messages are none, and nothing is there twice"
    );
    let (status, said) = post(&server, "/firehose", &headers[..3], b"{}");
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((status, &said["requestId"]), (400, &json!(id)));
    assert!(said["errorMessage"].is_string());
}

#[test]
fn pubsub_deliveries() {
    let (_scratch, server) = start("pubsub");
    let entry = json!({
        "insertId": "i1", "logName": "projects/p/logs/run", "severity": "ERROR", "textPayload": "it failed",
        "timestamp": "2026-11-21T10:00:00.25Z", "resource": { "type": "cloud_run_revision" },
    });
    let delivery = |id: &str, data: &str| {
        json!({
            "message": { "attributes": { "k": "v" }, "data": STANDARD.encode(data), "messageId": id, "message_id": id,
                         "publishTime": "2026-11-21T10:00:01Z", "publish_time": "2026-11-21T10:00:01Z" },
            "subscription": "projects/p/subscriptions/s",
        })
        .to_string()
    };
    let head = [("content-type", "application/json")];
    for (id, data) in [
        ("1", entry.to_string()),
        ("1", entry.to_string()),
        ("2", "a plain line".to_owned()),
    ] {
        let answer = post(&server, "/pubsub", &head, delivery(id, &data).as_bytes());
        assert_eq!(answer, (204, String::new()));
    }
    let stored = rows(&server, "insertId:*");
    let expected = json!({
        "_time": "2026-11-21T10:00:00.250000000Z", "_msg": "it failed", "k": "v", "insertId": "i1",
        "logName": "projects/p/logs/run", "level": "ERROR", "resource.type": "cloud_run_revision",
    });
    assert_eq!(stored, [expected]);
    assert_eq!(rows(&server, "k=v").len(), 2);
    assert_eq!(post(&server, "/pubsub", &head, b"{}").0, 400);
}

#[test]
fn cloudflare_uploads() {
    let (_scratch, server) = start("logpush");
    let head = [("content-encoding", "gzip")];
    let test = gzip(b"{\"content\":\"tests\"}");
    assert_eq!(post(&server, "/logpush", &head, &test).0, 200);
    let lines = "{\"EdgeStartTimestamp\":1795255200123456789,\"RayID\":\"7f1\",\"EdgeResponseStatus\":503}\n\
                 {\"EdgeStartTimestamp\":\"2026-11-21T10:00:01Z\",\"RayID\":\"7f1\",\"EdgeResponseStatus\":200}\n";
    for _ in 0..2 {
        assert_eq!(
            post(&server, "/logpush", &head, &gzip(lines.as_bytes())).0,
            200
        );
    }
    let stored = rows(&server, "*");
    assert_eq!(
        stored[0]["_time"], "2026-11-21T10:00:00.123456789Z",
        "{stored:?}"
    );
    assert_eq!(rows(&server, "EdgeResponseStatus=503").len(), 1);
    let (status, said) = post(&server, "/logpush", &head, &gzip(b"{\"n\":1}\nno JSON\n"));
    assert!(
        status == 400 && said.contains("1 lines are stored; 1 are not"),
        "{said}"
    );
}

#[test]
fn victorialogs_lines_and_queries() {
    let (_scratch, server) = start("victoria");
    let lines: String = (0..20)
        .map(|n| {
            let host = if n % 4 == 0 { "a" } else { "b" };
            format!("{{\"date\":\"2026-11-21T10:00:{n:02}Z\",\"log\":{{\"text\":\"error number {n}\"}},\"host\":\"{host}\",\"n\":{n}}}\n")
        })
        .collect();
    let target = "/insert/jsonline?_stream_fields=host&_time_field=date&_msg_field=log.text&extra_fields=env=prod";
    let head = [
        ("content-type", "application/stream+json"),
        ("accountid", "0"),
    ];
    assert_eq!(
        post(&server, target, &head, lines.as_bytes()),
        (200, String::new())
    );
    let by_headers = [
        ("vl-time-field", "t"),
        ("vl-msg-field", "m"),
        ("vl-stream-fields", "app"),
    ];
    let line = b"{\"t\":\"2026-11-21T10:01:00Z\",\"m\":\"errors of another\",\"app\":\"x\"}\n";
    assert_eq!(post(&server, "/insert/jsonline", &by_headers, line).0, 200);
    let plain = b"{\"_time\":\"2026-11-21T10:02:00Z\",\"_msg\":\"plain\",\"app\":\"y\"}\n";
    assert_eq!(post(&server, "/insert/jsonline", &[], plain).0, 200);
    assert_eq!(
        post(&server, "/insert/jsonline?ignore_fields=a", &[], plain).0,
        400
    );
    victorialogs_queries(&server);
}

/// Asks in LogsQL for the records above.
fn victorialogs_queries(server: &TestServer) {
    let ask = |query: &str, more: &str| {
        let target = format!(
            "/select/logsql/query?query={}{more}",
            crate::http::encode(query)
        );
        let mut client = server.client().unwrap();
        let response = client.send("GET", &target, &[], b"").unwrap();
        (response.status, response.text().unwrap())
    };
    let answer = |query: &str, more: &str| -> Vec<Value> {
        let (status, text) = ask(query, more);
        assert_eq!(status, 200, "{query}: {text}");
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let first = answer("error", "&limit=1");
    assert_eq!(
        first,
        [
            json!({ "_time": "2026-11-21T10:00:19.000000000Z", "_msg": "error number 19", "_stream": "{}", "host": "b",
                 "n": "19", "env": "prod", "date": "2026-11-21T10:00:19Z", "log.text": "error number 19" })
        ],
        "a word is no part of another"
    );
    assert_eq!(answer("error*", "").len(), 21);
    assert_eq!(
        answer("host:=a n:>=8 | fields n, _msg", "")[0],
        json!({ "n": "8", "_msg": "error number 8" })
    );
    assert_eq!(
        answer("_time:[2026-11-21T10:00:05Z, 2026-11-21T10:00:07Z]", "").len(),
        3
    );
    assert_eq!(
        answer(
            "\"number 3\" or plain",
            "&start=2026-11-21T10:00:00Z&end=1795255321"
        )
        .len(),
        2
    );
    let mut counts = answer("* | stats by (host) count() as n", "");
    counts.sort_by_key(|row| row["n"].to_string());
    assert_eq!(
        counts,
        [
            json!({ "host": "b", "n": "15" }),
            json!({ "host": "", "n": "2" }),
            json!({ "host": "a", "n": "5" })
        ]
    );
    assert_eq!(
        answer("host:* | stats count() rows", ""),
        [json!({ "rows": "20" })]
    );
    assert_eq!(answer("nothing_like_this", ""), Vec::<Value>::new());
    let (status, text) = ask("* | uniq by (host)", "");
    assert!(
        status == 400 && text.contains("the pipe 'uniq' is not supported"),
        "{text}"
    );
}

/// The token is the key that each sender has a place for.
#[test]
fn tokens_are_the_keys_of_senders() {
    let scratch = Scratch::new("vendor-tokens").unwrap();
    let data = scratch.path().join("data");
    std::fs::create_dir_all(&data).unwrap();
    let token = |role: &str| {
        let mut command = std::process::Command::new(program());
        let arguments = [
            "token",
            "create",
            "--role",
            role,
            "--data",
            data.to_str().unwrap(),
        ];
        let made = command.args(arguments).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        String::from_utf8(made.stdout).unwrap().trim().to_owned()
    };
    let (writer, reader) = (token("write"), token("read"));
    let server = TestServer::start(program(), &data, &["--require-token"]).unwrap();
    for (key, status) in [(&*writer, 202), (&reader, 403), ("lp_wrong_key", 401)] {
        let headers = [("content-type", "application/json"), ("dd-api-key", key)];
        assert_eq!(post(&server, "/api/v2/logs", &headers, b"[]").0, status);
        let target = format!("/api/v2/logs?dd-api-key={key}");
        assert_eq!(post(&server, &target, &headers[..1], b"[]").0, status);
        let headers = [
            ("x-amz-firehose-access-key", key),
            ("x-amz-firehose-request-id", "r"),
        ];
        let empty = br#"{"requestId":"r","timestamp":1,"records":[]}"#;
        let wanted = if status == 202 { 200 } else { status };
        assert_eq!(post(&server, "/firehose", &headers, empty).0, wanted);
        let message = br#"{"message":{"data":"eA==","messageId":"1"},"subscription":"s"}"#;
        let wanted = if status == 202 { 204 } else { status };
        let target = format!("/pubsub?token={key}");
        assert_eq!(post(&server, &target, &[], message).0, wanted);
        // Elsewhere an address is no place for a token.
        assert_eq!(
            post(&server, &format!("/api/v1/push?token={key}"), &[], b"").0,
            401
        );
    }
}

//! Fields of lines that are wide, have a name twice, or hold numbers beyond 64 bits: found by their names,
//! wherever the record is and whoever asks.

use serde_json::Value;

use crate::http::encode;
use crate::pond::{ALL_TIME, Scratch, TestServer};
use crate::surroundings::program;

const JSON: &str = "application/x-ndjson";

/// A JSON object of so many fields with `last` behind them.
fn wide(count: usize, msg: &str, last: &str) -> String {
    let names = (0..count).map(|n| format!("\"resource_attribute_number_{n:04}_x\":{n},"));
    let names: String = names.collect();
    format!("{{\"time\":\"2026-11-27T00:24:00Z\",\"msg\":\"{msg}\",{names}{last}}}")
}

/// All lines, one a record.
fn lines() -> Vec<String> {
    let long = "n".repeat(400);
    let number = |digits: &str| {
        format!(r#"{{"time":"2026-11-26T10:00:00Z","msg":"span","trace":{digits}}}"#)
    };
    let pairs: String = (0..1500).map(|n| format!("key{n}={n} ")).collect();
    let parameters: String = (0..700).map(|n| format!(" p{n}=\"{n}\"")).collect();
    vec![
        wide(600, "mid", r#""user":"ann-mid""#),
        wide(
            3000,
            "most",
            r#""user":"ann-most","nested":{"deep":{"er":7}}"#,
        ),
        format!(r#"{{"msg":"long","{long}":"x","user":"ann-long"}}"#),
        format!("{pairs}user=ann-pairs"),
        format!("<13>1 2026-11-27T00:24:00Z host app - - [ex@1{parameters}] user ann-syslog"),
        format!(
            "<13>1 2026-11-27T00:24:00Z host app - - - {}",
            wide(2000, "in", r#""user":"ann-body""#)
        ),
        r#"{"msg":"doubled","app":"first","n":1,"app":"second"}"#.to_owned(),
        r#"{"msg":"dotted","a.b":1,"a":{"b":2}}"#.to_owned(),
        "doubled=one x=1 doubled=two".to_owned(),
        r#"{"msg":"marks","⟨odd⟩":"found"}"#.to_owned(),
        number("18446744073709551610"),
        number("18446744073709551613"),
        number("18446744073709551615"),
        number("340282366920938463463374607431768211456"),
        number("9007199254740993"),
        number("-9223372036854775809"),
        number("1700000000.123456789"),
        number("7"),
    ]
}

/// Conditions, and how many records they want.
const CONDITIONS: [(&str, usize); 32] = [
    ("user=ann-mid", 1),
    ("user=ann-most", 1),
    ("user=ann-long", 1),
    ("user=ann-pairs", 1),
    ("user=ann-body", 1),
    ("user:*", 5),
    ("nested.deep.er=7", 1),
    ("resource_attribute_number_2999_x=2999", 1),
    ("resource_attribute_number_1999_x>=1999", 2),
    ("key1499=1499", 1),
    ("ex@1.p699=699", 1),
    ("app=second", 1),
    ("app=first", 0),
    ("a.b=2", 1),
    ("a.b=1", 0),
    ("doubled=two", 1),
    ("doubled=one", 0),
    ("\"⟨odd⟩\"=found", 1),
    ("trace=18446744073709551613", 1),
    ("trace=18446744073709551614", 0),
    ("trace!=18446744073709551613 trace:*", 7),
    ("trace>18446744073709551610", 3),
    ("trace>=18446744073709551610 trace<18446744073709551615", 2),
    ("trace>9223372036854775807", 4),
    ("trace=9007199254740993", 1),
    ("trace=9007199254740992", 0),
    ("trace<-9223372036854775808", 1),
    ("trace=-9223372036854775809", 1),
    ("trace=1700000000.123456789", 1),
    ("trace=1700000000.123456788", 0),
    ("trace=340282366920938463463374607431768211456", 1),
    ("trace<8", 2),
];

#[test]
fn fields_are_found_whatever_their_lines() {
    let scratch = Scratch::new("fields").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let lines = lines();
    let json: String = lines
        .iter()
        .filter(|line| line.starts_with('{'))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(server.push(JSON, json.as_bytes()).unwrap().status, 200);
    let others: String = lines
        .iter()
        .filter(|line| !line.starts_with('{'))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(
        server
            .send_tcp("durable", others.as_bytes())
            .unwrap()
            .trim(),
        "OK 4"
    );
    check(&server, "journal", &lines);
    server.compact().unwrap();
    check(&server, "segments", &lines);
}

fn check(server: &TestServer, place: &str, lines: &[String]) {
    for (condition, expected) in CONDITIONS {
        let (rows, trailer) = server.query(condition).unwrap();
        assert_eq!(rows.len(), expected, "{place}: {condition}");
        assert_eq!(trailer["complete"], true, "{place}: {condition}");
    }
    // Lines are what they were, and numbers have their digits.
    let target = format!("/api/v1/query?{ALL_TIME}&limit=0&fields=raw,origin");
    let text = server.get(&target).unwrap();
    let rows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for line in lines {
        let is_there = rows.iter().any(|row| row["_line"] == line.as_str());
        assert!(is_there, "{place}: {}", &line[..line.len().min(100)]);
    }
    for digits in [
        "18446744073709551613",
        "340282366920938463463374607431768211456",
        "9007199254740993",
        "1700000000.123456789",
    ] {
        let condition = encode(&format!("trace={digits}"));
        let text = server
            .get(&format!("/api/v1/query?{ALL_TIME}&q={condition}"))
            .unwrap();
        assert!(
            text.contains(&format!("\"trace\":{digits}")),
            "{place}: {text}"
        );
    }
    let top = server
        .get(&format!("/api/v1/top?{ALL_TIME}&field=trace&n=0"))
        .unwrap();
    for digits in [
        "18446744073709551615",
        "340282366920938463463374607431768211456",
        "7",
    ] {
        let row = format!("{{\"value\":{digits},\"count\":1}}");
        assert!(top.lines().any(|line| line == row), "{place}: {top}");
    }
    let top = server
        .get(&format!("/api/v1/top?{ALL_TIME}&field=user&n=0"))
        .unwrap();
    assert_eq!(top.lines().count(), 6, "{place}: {top}");
    check_logql(server, place);
}

fn check_logql(server: &TestServer, place: &str) {
    let logql = |query: &str| {
        let target = format!(
            "/loki/api/v1/query_range?start=1&end=4000000000&limit=100&query={}",
            encode(query)
        );
        let answer: Value = serde_json::from_str(&server.get(&target).unwrap()).unwrap();
        let streams = answer["data"]["result"].as_array().unwrap().clone();
        let entries = streams
            .iter()
            .map(|stream| stream["values"].as_array().unwrap().len());
        entries.sum::<usize>()
    };
    for (query, expected) in [
        (r#"{service_name=~".+"} | json | user="ann-mid""#, 1),
        (r#"{service_name=~".+"} | json | app="second""#, 1),
        (r#"{service_name=~".+"} | json | app="first""#, 0),
        (r#"{service_name=~".+"} | json x="app" | x="second""#, 1),
        (r#"{service_name=~".+"} | json | a_b="2""#, 1),
        (r#"{service_name=~".+"} | logfmt | doubled="two""#, 1),
        (
            r#"{service_name=~".+"} | json | trace="18446744073709551613""#,
            1,
        ),
        (r#"{service_name=~".+"} | trace="18446744073709551613""#, 1),
    ] {
        assert_eq!(logql(query), expected, "{place}: {query}");
    }
}

/// A line whose names take more room than a listing has, because objects in it have long names themselves.
fn unlisted() -> String {
    let inner: Vec<String> = (0..20_000).map(|n| format!("\"f{n:05}\":{n}")).collect();
    let outer = "p".repeat(400);
    format!(
        r#"{{"msg":"hello wide","user":"ann","{outer}":{{{}}}}}"#,
        inner.join(",")
    )
}

/// Of a record that has more names than can be listed, only answers that depend on names are not complete.
#[test]
fn answers_about_text_are_complete_beside_fields_that_are_not_listed() {
    let scratch = Scratch::new("unlisted").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    assert_eq!(
        server.push(JSON, unlisted().as_bytes()).unwrap().status,
        200
    );
    let table = [
        ("query?q=hello", true),
        ("query?q=", true),
        ("query?q=user%3Dann", false),
        ("histogram?q=hello", true),
        ("top?field=user", false),
        ("top?field=_level", true),
        ("top?field=_msg", true),
        ("fields?", false),
    ];
    for place in ["journal", "segment"] {
        for (asked, is_complete) in table {
            let answer = server.get(&format!("/api/v1/{asked}&{ALL_TIME}")).unwrap();
            let trailer: Value = serde_json::from_str(answer.lines().last().unwrap()).unwrap();
            let trailer = &trailer["_trailer"];
            assert_eq!(
                trailer["complete"], is_complete,
                "{place}: {asked}: {trailer}"
            );
        }
        server.compact().unwrap();
    }
}

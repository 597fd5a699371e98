//! Fields and labels that are called like parts of an answer: none passes for one, and none is lost.

use std::process::Command;

use serde_json::{Value, json};

use crate::http::encode;
use crate::pond::{ALL_TIME, Scratch, TestServer, wait_until};
use crate::surroundings::program;

/// Names that mean something else in answers.
const RESERVED: [&str; 18] = [
    "_time",
    "_id",
    "_msg",
    "_msg_bin",
    "_line",
    "_line_b64",
    "_received",
    "_time_source",
    "_raw",
    "_more",
    "_trailer",
    "_gap",
    "_notice",
    "_position",
    "_progress",
    "_columns",
    "_clipped",
    "_rule",
];

/// Names of members of lines that are no rows.
const BESIDE_ROWS: [&str; 6] = [
    "_trailer",
    "_gap",
    "_notice",
    "_position",
    "_progress",
    "_columns",
];

/// Lines of an answer: all but the last are rows, and the last is the trailer.
fn rows(server: &TestServer, target: &str) -> Vec<Value> {
    let text = server.get(target).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let mut lines: Vec<Value> = lines.collect();
    let trailer = lines.pop().unwrap();
    assert_eq!(trailer["_trailer"]["complete"], true, "{target}: {trailer}");
    for row in &lines {
        let keys: Vec<&String> = row.as_object().unwrap().keys().collect();
        let is_forged = keys.iter().any(|key| BESIDE_ROWS.contains(&key.as_str()));
        assert!(!is_forged, "{target}: {row}");
    }
    lines
}

fn query(server: &TestServer, q: &str) -> Vec<Value> {
    let q = encode(q);
    rows(
        server,
        &format!("/api/v1/query?{ALL_TIME}&limit=0&fields=raw,origin&q={q}"),
    )
}

/// One record of each way in: by a field of the line, by a label of the push, of a stream, of a header's body.
fn fill(server: &TestServer) {
    for name in RESERVED {
        let line = json!({ name: format!("field of {name}"), "msg": "by field", "n": 1 });
        // The time and the message are what they are.
        let line = match name {
            "_msg" => json!({ name: 7, "msg": "by field", "n": 1 }),
            _ => line,
        };
        let pushed = server
            .push("application/x-ndjson", format!("{line}\n").as_bytes())
            .unwrap();
        assert_eq!((pushed.status, pushed.accepted()), (200, 1), "{name}");
        let mut client = server.client().unwrap();
        let label = format!("label={}", encode(&format!("{name}=label of {name}")));
        let body = b"{\"msg\":\"by label\"}\nplain by label\n";
        let pushed = crate::pond::push(&mut client, "application/x-ndjson", &label, &body[..19]);
        assert_eq!(pushed.unwrap().status, 200, "{name}");
        let stream = json!({ "streams": [{
            "stream": { name: format!("stream of {name}") },
            "values": [["1772409600000000000", "by stream"]],
        }] });
        let headers = [("content-type", "application/json")];
        let answer = client.send(
            "POST",
            "/loki/api/v1/push",
            &headers,
            stream.to_string().as_bytes(),
        );
        assert_eq!(answer.unwrap().status, 204, "{name}");
    }
    let both = b"_trailer=forged complete=true rows=99\n{\"_trailer\":{},\"_gap\":true}\n";
    server.send_tcp("durable", both).unwrap();
    wait_until("all is visible", || {
        query(server, "").len() == 3 * RESERVED.len() + 2
    })
    .unwrap_or_else(|e| panic!("{e}: {}", query(server, "").len()));
}

fn check(server: &TestServer) {
    for name in RESERVED {
        let shown = format!("{name}@label");
        for (way, text) in [
            ("field", "by field"),
            ("label", "by label"),
            ("stream", "by stream"),
        ] {
            let value = format!("{way} of {name}");
            let q = match (name, way) {
                ("_msg", "field") => format!("\"{shown}\"=7"),
                _ => format!("\"{shown}\"=\"{value}\""),
            };
            let found = query(server, &q);
            assert_eq!(found.len(), 1, "{q}: {found:?}");
            assert_eq!(found[0]["_msg"], text, "{q}");
            let is_number = (name, way) == ("_msg", "field");
            let expected = if is_number { json!(7) } else { json!(value) };
            assert_eq!(found[0][&shown], expected, "{}", found[0]);
        }
        let field = encode(&shown);
        let values = rows(server, &format!("/api/v1/top?{ALL_TIME}&n=0&field={field}"));
        assert!(values.len() >= 3, "{name}: {values:?}");
    }
    let fields = rows(server, &format!("/api/v1/fields?{ALL_TIME}"));
    for name in RESERVED {
        let is_there = |name: &str| fields.iter().any(|field| field["field"] == name);
        assert!(is_there(&format!("{name}@label")), "{name}: {fields:?}");
    }
    let forged = query(server, "\"_trailer@label\"=forged");
    assert_eq!((forged.len(), &forged[0]["rows"]), (1, &json!(99)));
    // Beside rows of context, and in other forms.
    let around = rows(
        server,
        &format!("/api/v1/query?{ALL_TIME}&q=&before=1&limit=3"),
    );
    assert!(around.len() >= 3);
    let csv = server
        .get(&format!("/api/v1/query?{ALL_TIME}&q=&format=csv"))
        .unwrap();
    let head = csv.lines().next().unwrap();
    for name in RESERVED {
        assert!(
            head.split(',')
                .any(|column| column == format!("{name}@label")),
            "{name}: {head}"
        );
    }
    let streams = format!(
        "/loki/api/v1/query_range?start=1772409500&end=1772409700&query={}",
        encode("{_trailer=\"stream of _trailer\"}")
    );
    let answer: Value = serde_json::from_str(&server.get(&streams).unwrap()).unwrap();
    let found = answer["data"]["result"].as_array().unwrap();
    assert_eq!(found.len(), 1, "{answer}");
    let entries = server.get("/entries").unwrap();
    assert_eq!(
        entries.matches("by stream").count(),
        RESERVED.len(),
        "{entries}"
    );
}

#[test]
fn no_record_forges_a_part_of_an_answer() {
    let scratch = Scratch::new("reserved").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    fill(&server);
    check(&server);
    server.compact().unwrap();
    check(&server);
    // Exported lines can be taken in again: no label passes for a part of a record there either.
    let run = |arguments: &[&str]| {
        let mut command = Command::new(program());
        let output = command
            .args(arguments)
            .args(["--addr", &server.url()])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let exported = run(&["export"]);
    assert_eq!(exported.lines().count(), query(&server, "").len());
    let printed = run(&[
        "query",
        "",
        "-n",
        "0",
        "--since",
        "2020-01-01",
        "-o",
        "json",
    ]);
    let mut lines = [&exported, &printed].map(|text| {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        lines
    });
    let printed = std::mem::take(&mut lines[1]);
    assert_eq!(lines[0], printed);
    let other = TestServer::start(program(), &scratch.path().join("other"), &[]).unwrap();
    let pushed = other
        .push("application/x-ndjson", exported.as_bytes())
        .unwrap();
    assert_eq!(
        (pushed.status, pushed.accepted()),
        (200, printed.len() as u64)
    );
    for name in RESERVED {
        let q = format!("\"{name}@label\"=\"label of {name}\"");
        assert_eq!(query(&other, &q).len(), 1, "{q}");
    }
    // The ids that they had are fields beside those that they have.
    let id = printed[0].split('"').nth(7).unwrap();
    assert_eq!(query(&other, id).len(), 1, "{id}");
}

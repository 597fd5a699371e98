//! Queries by name: saved over HTTP and by the command, kept over restarts, known to all nodes.

use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::nodes::node;
use crate::pond::{Scratch, TestServer, wait_until};
use crate::surroundings::program;

const PATH: &str = "/api/v1/saved-queries";

fn ask(server: &TestServer, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let mut client = server.client().unwrap();
    let headers = [("content-type", "application/json")];
    let body = body.to_string();
    let response = client
        .send(method, path, &headers, body.as_bytes())
        .unwrap();
    let status = response.status;
    (
        status,
        serde_json::from_str(&response.text().unwrap()).unwrap(),
    )
}

fn names(server: &TestServer) -> Vec<String> {
    let (status, answer) = ask(server, "GET", PATH, &Value::Null);
    assert_eq!(status, 200);
    let queries = answer["queries"].as_array().unwrap().iter();
    let saved = queries.filter(|query| query["built_in"] == false);
    saved
        .map(|query| query["name"].as_str().unwrap().to_owned())
        .collect()
}

fn saved(server: &TestServer, arguments: &[&str]) -> Output {
    Command::new(program())
        .arg("saved")
        .args(arguments)
        .args(["--addr", &server.url()])
        .output()
        .unwrap()
}

#[test]
fn queries_are_saved_and_kept() {
    let scratch = Scratch::new("saved").unwrap();
    let data = scratch.path().join("data");
    let server = TestServer::start(program(), &data, &[]).unwrap();
    assert!(names(&server).is_empty());
    let one = format!("{PATH}/errors.by-app_1");
    let body = json!({ "query": "sum by (app) (count_over_time({app=~\"$app\"}[$__interval]))",
        "legend": "{{app}}", "variables": { "app": ".+" } });
    let (status, answer) = ask(&server, "PUT", &one, &body);
    assert_eq!(
        (status, &answer["format"]),
        (201, &json!("time_series")),
        "{answer}"
    );
    assert_eq!(ask(&server, "PUT", &one, &body).0, 200);
    assert_eq!(
        ask(
            &server,
            "PUT",
            &format!("{PATH}/top-articles"),
            &json!({ "query": "{}" })
        )
        .0,
        201
    );
    assert!(server.terminate().unwrap().success());
    let server = TestServer::start(program(), &data, &[]).unwrap();
    assert_eq!(names(&server), ["errors.by-app_1", "top-articles"]);
    assert_eq!(
        ask(
            &server,
            "DELETE",
            &format!("{PATH}/top-articles"),
            &Value::Null
        )
        .0,
        200
    );
    let (_, built_in) = ask(
        &server,
        "GET",
        &format!("{PATH}/top-articles"),
        &Value::Null,
    );
    assert_eq!(built_in["built_in"], true, "it was only covered");
}

#[test]
fn what_cannot_be_saved_is_refused() {
    let scratch = Scratch::new("saved-refused").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let one = format!("{PATH}/one");
    let body = json!({ "query": "{}" });
    let table = [
        (
            "PUT",
            format!("{PATH}/a%20b"),
            body.clone(),
            400,
            "bad_request",
        ),
        (
            "PUT",
            one.clone(),
            json!({ "query": "{app=\"" }),
            400,
            "bad_query",
        ),
        (
            "PUT",
            one.clone(),
            json!({ "query": "{app=\"$nobody\"}" }),
            400,
            "bad_query",
        ),
        (
            "PUT",
            one.clone(),
            json!({ "query": "x".repeat(20_000) }),
            400,
            "bad_request",
        ),
        (
            "GET",
            format!("{PATH}/nobody"),
            Value::Null,
            404,
            "not_found",
        ),
        (
            "DELETE",
            format!("{PATH}/nobody"),
            Value::Null,
            404,
            "not_found",
        ),
        (
            "DELETE",
            format!("{PATH}/outbound-bytes"),
            Value::Null,
            409,
            "conflict",
        ),
        ("POST", one.clone(), Value::Null, 405, "method_not_allowed"),
    ];
    for (method, path, body, expected, code) in table {
        let (status, answer) = ask(&server, method, &path, &body);
        assert_eq!(
            (status, &answer["error"]["code"]),
            (expected, &json!(code)),
            "{method} {path}"
        );
    }
    assert!(names(&server).is_empty());
}

#[test]
fn the_command_saves_and_asks() {
    let scratch = Scratch::new("saved-command").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let lines = "{\"time\":\"2026-03-02T00:00:01Z\",\"app\":\"shop\",\"msg\":\"one\"}\n\
                 {\"time\":\"2026-03-02T00:00:02Z\",\"app\":\"cart\",\"msg\":\"two\"}\n\
                 {\"time\":\"2026-03-02T00:00:02Z\",\"app\":\"shop\",\"msg\":\"three\"}\n";
    server
        .push("application/x-ndjson", lines.as_bytes())
        .unwrap();
    let query = "sum by (app) (count_over_time({app=~\"$app\"}[$__range]))";
    let done = saved(
        &server,
        &[
            "set",
            "apps",
            query,
            "--format",
            "table",
            "--variable",
            "app=.+",
        ],
    );
    assert!(done.status.success(), "{done:?}");
    let text = |output: &Output| String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(text(&saved(&server, &["show", "apps"])).trim(), query);
    let listed = text(&saved(&server, &["list"]));
    assert!(
        listed.contains("apps") && listed.contains("(built in)"),
        "{listed}"
    );
    let times = [
        "--since",
        "2026-03-02T00:00:00Z",
        "--until",
        "2026-03-02T00:01:00Z",
    ];
    let run =
        |query: &str, more: &[&str]| saved(&server, &[&["run", query], &times[..], more].concat());
    let all = run("apps", &["-o", "json"]);
    let rows: Vec<Value> = text(&all)
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let counts: Vec<_> = rows
        .iter()
        .map(|row| (&row["app"], &row["value"]))
        .collect();
    assert_eq!(
        counts,
        [(&json!("cart"), &json!(1)), (&json!("shop"), &json!(2))]
    );
    let one = text(&run("apps", &["--variable", "app=cart"]));
    assert!(one.contains("cart") && !one.contains("shop"), "{one}");
    let lines = run("{app=\"shop\"}", &["-n", "1"]);
    assert_eq!(text(&lines).lines().count(), 2, "a head and a line");
    assert!(String::from_utf8_lossy(&lines.stderr).contains("more than 1"));
    let none = run("apps", &["--variable", "app=nobody"]);
    assert_eq!(none.status.code(), Some(1), "{none:?}");
    let done = saved(&server, &["remove", "apps"]);
    assert!(done.status.success(), "{done:?}");
    let gone = run("apps", &[]);
    assert_eq!(gone.status.code(), Some(2), "{gone:?}");
    assert!(
        String::from_utf8_lossy(&gone.stderr).contains("no saved query 'apps'"),
        "{gone:?}"
    );
}

#[test]
fn all_nodes_of_a_cluster_have_them() {
    let scratch = Scratch::new("saved-cluster").unwrap();
    let first = node(&scratch, 0, None).unwrap();
    let second = node(&scratch, 1, Some(&first)).unwrap();
    let third = node(&scratch, 2, Some(&first)).unwrap();
    let path = |name: &str| format!("{PATH}/{name}");
    let put = |server: &TestServer, name: &str, text: &str| {
        let (status, answer) = ask(server, "PUT", &path(name), &json!({ "query": text }));
        assert!(status < 300, "{answer}");
    };
    let text = |server: &TestServer, name: &str| {
        ask(server, "GET", &path(name), &Value::Null).1["query"].clone()
    };
    let know = |what: &str, ponds: &[&TestServer], expected: &[&str]| {
        let known = || ponds.iter().all(|server| names(server) == expected);
        wait_until(what, known).unwrap();
    };
    put(&first, "a", "{} |= `first`");
    put(&second, "b", "{}");
    know("all know both", &[&first, &second, &third], &["a", "b"]);
    // While one is away, one query changes, another one goes, and another one comes.
    assert!(third.terminate().unwrap().success());
    put(&second, "a", "{} |= `second`");
    assert_eq!(ask(&first, "DELETE", &path("b"), &Value::Null).0, 200);
    put(&first, "c", "{}");
    know("both know it", &[&first, &second], &["a", "c"]);
    let third = node(&scratch, 2, Some(&first)).unwrap();
    know("the one that is back knows it", &[&third], &["a", "c"]);
    for server in [&first, &second, &third] {
        wait_until("the later text counts", || {
            text(server, "a") == "{} |= `second`"
        })
        .unwrap();
    }
    // The removal of a query is no removal of a later one of its name.
    put(&third, "b", "{} | json");
    know(
        "it is there again",
        &[&first, &second, &third],
        &["a", "b", "c"],
    );
    assert_eq!(text(&first, "b"), "{} | json");
}

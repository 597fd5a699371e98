//! Tables of some of the records, and of all of them together.

use serde_json::json;

use crate::answers::{one, rows};
use crate::pond::{Scratch, TestServer};
use crate::surroundings::program;

/// Access logs of all formats are in one table, with the seconds of their times.
fn all_access_logs_have_a_table(server: &TestServer) {
    let all = "SELECT epoch, remote_addr, status, body_bytes_sent, user_agent, request_time FROM access_requests \
               WHERE epoch >= 1772445600 AND epoch < 1772445601 ORDER BY epoch, remote_addr";
    let of_combined = json!({ "epoch": 1772445600, "remote_addr": "192.0.2.1", "status": 200,
        "body_bytes_sent": 12, "user_agent": "curl", "request_time": null });
    let of_declared = json!({ "epoch": 1772445600, "remote_addr": "192.0.2.2", "status": 404,
        "body_bytes_sent": null, "user_agent": null, "request_time": 0.25 });
    assert_eq!(rows(server, all), [of_combined, of_declared]);
    for (condition, count) in [
        ("epoch = 1772445600", 2),
        ("epoch <= 1772445599", 0),
        ("epoch > 1772445599 AND epoch <= 1772445600", 2),
        ("epoch BETWEEN 1772445600 AND 1772445600", 2),
        ("epoch + 1 = 1772445601", 2),
    ] {
        let statement = format!("SELECT count(*) FROM access_requests WHERE {condition}");
        assert_eq!(one(server, &statement), count, "{condition}");
    }
    let newest =
        "SELECT remote_addr FROM access_requests WHERE status < 400 ORDER BY epoch DESC LIMIT 1";
    assert_eq!(
        rows(server, newest),
        [json!({ "remote_addr": "192.0.2.1" })]
    );
}

#[test]
fn access_logs_have_tables_of_their_own() {
    let scratch = Scratch::new("sql-views").unwrap();
    let server = TestServer::start(
        program(),
        &scratch.path().join("data"),
        &[
            "--access-log",
            "My-Shop=$remote_addr [$time_iso8601] \"$request\" $status $request_time",
        ],
    )
    .unwrap();
    let combined =
        "192.0.2.1 - - [02/Mar/2026:10:00:00 +0000] \"GET /a HTTP/1.1\" 200 12 \"-\" \"curl\"\n";
    let declared = "192.0.2.2 [2026-03-02T10:00:00+00:00] \"GET /b HTTP/1.1\" 404 0.25\n";
    // Whatever other records have in these fields.
    let other = "{\"status\":\"OK\",\"method\":\"none\",\"bytes\":1.5,\"path\":7,\"agent\":true}\n";
    let odd = "{\"remote_addr\":\"a\",\"method\":\"b\",\"status\":\"OK\"}\n";
    for text in [combined, declared, other, odd] {
        assert_eq!(
            server.push("text/plain", text.as_bytes()).unwrap().status,
            200
        );
    }
    for is_stored in [false, true] {
        if is_stored {
            server.compact().unwrap();
        }
        let combined = "SELECT path, status, bytes, agent FROM access_combined WHERE status < 300";
        let expected = json!({ "path": "/a", "status": 200, "bytes": 12, "agent": "curl" });
        assert_eq!(rows(&server, combined), [expected]);
        let odd = "SELECT count(*) AS n FROM access_combined WHERE status IS NULL";
        assert_eq!(rows(&server, odd), [json!({ "n": 1 })]);
        let sums =
            "SELECT sum(status) AS s, max(bytes) AS b FROM access_combined WHERE status = 200";
        assert_eq!(rows(&server, sums), [json!({ "s": 200, "b": 12 })]);
        let mixed = "SELECT count(*) AS n FROM logs WHERE status IN (200, 404)";
        assert_eq!(rows(&server, mixed), [json!({ "n": 2 })]);
        let declared = "SELECT path, status, duration_s FROM access_my_shop";
        let expected = json!({ "path": "/b", "status": 404, "duration_s": 0.25 });
        assert_eq!(rows(&server, declared), [expected]);
        let columns = rows(&server, "DESCRIBE access_my_shop");
        let columns: Vec<&str> = columns
            .iter()
            .map(|row| row["column_name"].as_str().unwrap())
            .collect();
        assert!(
            columns.contains(&"duration_s") && !columns.contains(&"agent"),
            "{columns:?}"
        );
        all_access_logs_have_a_table(&server);
        let tables = rows(&server, "SHOW TABLES");
        let names = [
            "logs",
            "access_combined",
            "access_my_shop",
            "access_requests",
            "fields",
            "journal",
            "patterns",
            "proxy_connections",
        ];
        let has = |name: &&str| tables.iter().any(|row| row["table_name"] == **name);
        assert!(names.iter().all(has), "{tables:?}");
    }
    assert_eq!(one(&server, "SELECT count(*) FROM logs"), 4);
}

#[test]
fn summaries_are_tables() {
    let scratch = Scratch::new("sql-summaries").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let mut text = String::new();
    for number in 0..20 {
        let level = if number % 5 == 0 { "error" } else { "info" };
        let record =
            json!({ "level": level, "n": number, "message": format!("user {number} went away") });
        text.push_str(&format!("{record}\n"));
    }
    assert_eq!(
        server
            .push("application/x-ndjson", text.as_bytes())
            .unwrap()
            .status,
        200
    );
    for is_stored in [false, true] {
        if is_stored {
            server.compact().unwrap();
        }
        let fields = "SELECT type, count FROM fields WHERE name = 'n'";
        assert_eq!(
            rows(&server, fields),
            [json!({ "type": "BIGINT", "count": 20 })]
        );
        let patterns = "SELECT pattern, level, count FROM patterns ORDER BY count DESC";
        let row = |level: &str, count: u64| json!({ "pattern": "user <_> went away", "level": level, "count": count });
        assert_eq!(rows(&server, patterns), [row("info", 16), row("error", 4)]);
        let sample = one(&server, "SELECT sample FROM patterns WHERE level = 'error'");
        assert!(sample.as_str().unwrap().ends_with(" went away"), "{sample}");
    }
}

#[test]
fn the_journal_and_the_proxy_have_tables() {
    let scratch = Scratch::new("sql-fixed").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let lines = [
        r#"{"_TRANSPORT":"journal","PRIORITY":"3","_PID":"12","_SYSTEMD_UNIT":"a.service","MESSAGE":"down"}"#,
        r#"{"client":"192.0.2.7","client_port":40000,"sni":"a.example","resumed":false,"close_reason":"client","bytes_from_client":12,"duration_s":4.5}"#,
        r#"{"client":"not the proxy's","PRIORITY":"none"}"#,
    ];
    let text = lines.join("\n");
    assert_eq!(
        server
            .push("application/x-ndjson", text.as_bytes())
            .unwrap()
            .status,
        200
    );
    let journal = "SELECT message, \"PRIORITY\" AS p, \"_PID\" AS pid, \"_SYSTEMD_UNIT\" AS unit FROM journal";
    let expected = json!({ "message": "down", "p": 3, "pid": 12, "unit": "a.service" });
    assert_eq!(rows(&server, journal), [expected]);
    let proxy = "SELECT sni, resumed, bytes_from_client + 1 AS n, duration_s FROM proxy_connections WHERE client_port = 40000";
    let expected = json!({ "sni": "a.example", "resumed": false, "n": 13, "duration_s": 4.5 });
    assert_eq!(rows(&server, proxy), [expected]);
}

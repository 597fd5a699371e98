//! Access logs in formats that servers are told: lines of real servers become the same fields with
//! a definition as without one, wherever they come from and wherever they are kept.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::pond::{Scratch, TestServer, wait_until};
use crate::surroundings::{program, say, shared};

/// nginx's `combined` and the host, as it stands in a server's configuration.
const NGINX: &str = r#"shop='$remote_addr - $remote_user [$time_local] "$request" '
    '$status $body_bytes_sent "$http_referer" "$http_user_agent" "$host"'"#;

/// Apache's `combined`, likewise.
const APACHE: &str =
    r#"www="%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\"" combined"#;

fn rows(server: &TestServer, filter: &str) -> Vec<Value> {
    let (rows, trailer) = server.query(filter).unwrap();
    assert_eq!(trailer["complete"], true, "{trailer}");
    rows
}

/// A record without what tells two of the same line apart.
fn alike(mut row: Value) -> Value {
    let fields = row.as_object_mut().unwrap();
    for name in ["_id", "run", "access_log"] {
        fields.remove(name);
    }
    row
}

/// `logpond forward` sends the same of a file with a definition as without, but for lines that the definition
/// does not fit: a line that was cut off is an access line all the same.
fn check_definition(server: &TestServer, file: &Path, definition: &str, records: usize) {
    let name = definition.split('=').next().unwrap();
    for (run, format) in [("declared", Some(definition)), ("known", None)] {
        let mut forward = Command::new(program());
        forward.args(["forward", "--addr", &server.url(), "--label"]);
        forward.arg(format!("run={name}-{run}"));
        forward.args(format.iter().flat_map(|format| ["--access-log", format]));
        assert!(forward.arg(file).status().unwrap().success());
    }
    let of = |run: &str| rows(server, &format!("run={name}-{run}"));
    let (declared, known) = (of("declared"), of("known"));
    assert_eq!((declared.len(), known.len()), (records, records));
    let is_fit = |row: &Value| row["access_log"] == name;
    let fit = declared.iter().filter(|row| is_fit(row)).count();
    let is_access = |row: &&Value| row["status"].is_i64();
    assert!(fit + 1 >= known.iter().filter(is_access).count());
    for (declared, known) in declared.into_iter().zip(known) {
        if is_fit(&declared) {
            assert_eq!(alike(declared), alike(known));
        }
    }
}

/// Lines of a file, in their order.
fn lines_of(file: &Path) -> usize {
    let text = fs::read(file).unwrap();
    text.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .count()
}

#[test]
fn definitions_give_what_is_known_without_them() {
    let scratch = Scratch::new("access-log-definitions").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let Some(shared) = shared("access logs of real servers") else {
        return;
    };
    let fixture = |name: &str| shared.join("fixtures").join(name);
    let files = [
        (fixture("rrinlog/test-access.log"), NGINX),
        (fixture("elastic-examples/apache_logs.log"), APACHE),
    ];
    for (file, definition) in &files {
        let records = lines_of(file);
        check_definition(&server, file, definition, records);
        say(&format!(
            "access logs: {records} lines of {}",
            file.display()
        ));
    }
    server.compact().unwrap();
    for (file, definition) in &files {
        let name = definition.split('=').next().unwrap();
        let stored = rows(&server, &format!("access_log={name}"));
        assert!(stored.len() * 100 >= lines_of(file) * 99);
    }
}

/// A server's own formats hold for all that it takes in; what fits none is text, and counted.
#[test]
fn a_server_reads_all_intakes_by_its_formats() {
    let scratch = Scratch::new("access-log-server").unwrap();
    let formats = [
        "--access-log",
        "a=$msec $status $request_time",
        "--access-log",
        "b=%t %s",
    ];
    let server = TestServer::start(program(), &scratch.path().join("data"), &formats).unwrap();
    let text = "1772409606.250 404 0.125\n[02/Mar/2026:00:00:07 +0000] 204\nno line of those\n";
    server.push("text/plain", text.as_bytes()).unwrap();
    let syslog = "<190>Mar  2 00:00:08 web-1 nginx: 1772409608.500 503 0.000\n";
    server.send_tcp("syslog_tcp", syslog.as_bytes()).unwrap();
    wait_until("all are there", || rows(&server, "").len() == 4).unwrap();
    for _ in 0..2 {
        let found = rows(&server, "status>0");
        let told: Vec<Value> = found
            .iter()
            .map(|row| {
                let names = ["_time", "access_log", "status", "duration_s", "hostname"];
                names.map(|name| row[name].clone()).into()
            })
            .collect();
        let expected: Value = serde_json::json!([
            ["2026-03-02T00:00:06.250000000Z", "a", 404, 0.125, null],
            ["2026-03-02T00:00:07.000000000Z", "b", 204, null, null],
            ["2026-03-02T00:00:08.500000000Z", "a", 503, 0.0, "web-1"],
        ]);
        assert_eq!(Value::from(told), expected);
        server.compact().unwrap();
    }
    assert_eq!(server.metric("logpond_store_unfit_lines_total"), Ok(1.0));
}

#[test]
fn a_definition_that_is_none_is_refused_at_the_start() {
    for command in ["serve", "forward"] {
        let scratch = Scratch::new("access-log-refused").unwrap();
        let output = Command::new(program())
            .arg(command)
            .args(["--access-log", "x=$status $time_local$host"])
            .env("XDG_DATA_HOME", scratch.path())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains("nothing stands between $time_local and $host"),
            "{said}"
        );
        assert!(said.contains("format 'x'"), "{said}");
    }
}

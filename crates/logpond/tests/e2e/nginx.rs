//! nginx as the source: what it logs of requests into files that `logpond forward` follows, and
//! sends as syslog.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::http::encode;
use crate::pond::{ALL_TIME, Scratch, TestServer, wait_until};
use crate::surroundings::{program, skip};
use crate::unpacked::unpacked;

/// Requests that are served while the logs are followed.
const REQUESTS: usize = 2000;

/// Formats as they are used most; the third one is of the manual's example for JSON.
const FORMATS: [(&str, &str); 3] = [
    (
        "vhost",
        "'$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \
         \"$http_referer\" \"$http_user_agent\" \"$host\"'",
    ),
    (
        "json",
        "escape=json '{\"time\":\"$time_iso8601\",\"method\":\"$request_method\",\
         \"uri\":\"$request_uri\",\"status\":$status,\"agent\":\"$http_user_agent\"}'",
    ),
    (
        "timed",
        "'$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \
         \"$http_referer\" \"$http_user_agent\" $request_time'",
    ),
];

/// A process that ends with its owner.
struct ChildGuard(Child);

impl Drop for ChildGuard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// nginx, and the socket at which it serves.
struct Nginx {
    _process: ChildGuard,
    socket: PathBuf,
}

impl Nginx {
    /// Starts it with its logs in `logs` and at this listener of syslog; none where it is not.
    fn start(scratch: &Scratch, syslog: &str) -> Option<Nginx> {
        let mut command = unpacked("nginx", "nginx")?;
        let directory = scratch.path().display().to_string();
        let socket = scratch.path().join("web");
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {directory}/temporary;\n"))
            .concat();
        let formats: String = FORMATS
            .map(|(name, format)| {
                format!(
                    "log_format {name} {format};\naccess_log {directory}/logs/{name}.log {name};\n"
                )
            })
            .concat();
        // One process, which serves, so that it ends as a whole.
        let configuration = format!(
            "daemon off; master_process off; pid {directory}/nginx.pid;\n\
             error_log {directory}/logs/error.log notice;\nevents {{}}\nhttp {{\n{temporary}{formats}\
             access_log {directory}/logs/combined.log;\n\
             access_log syslog:server={syslog},tag=nginx,severity=info json;\n\
             set_real_ip_from unix:; real_ip_header X-Real-IP;\n\
             server {{ listen unix:{}; return 204; }}\n}}\n",
            socket.display(),
        );
        let path = scratch.path().join("nginx.conf");
        fs::write(&path, configuration).unwrap();
        fs::create_dir(scratch.path().join("logs")).unwrap();
        let child = command
            .arg("-e")
            .arg(scratch.path().join("logs/error.log"))
            .arg("-c")
            .arg(&path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let nginx = Nginx {
            _process: ChildGuard(child),
            socket,
        };
        wait_until("nginx serves", || nginx.connect().is_ok()).unwrap();
        Some(nginx)
    }
}

impl Nginx {
    fn connect(&self) -> std::io::Result<UnixStream> {
        UnixStream::connect(&self.socket)
    }

    /// Sends a request over a connection of its own, and waits until it is answered.
    fn ask(&self, request: &[u8]) {
        let mut stream = self.connect().unwrap();
        stream.write_all(request).unwrap();
        // It may be refused before it is read to its end.
        let _ = stream.read_to_end(&mut Vec::new());
    }
}

/// Each line of a log is a record, byte for byte, and has its fields.
fn assert_log_is_here(server: &TestServer, path: &Path, is_text: bool) {
    let question = format!("file=\"{}\"", path.display());
    wait_until("all lines are here", || {
        server
            .query(&question)
            .is_ok_and(|(rows, _)| rows.len() > REQUESTS)
    })
    .unwrap();
    let target = format!(
        "/api/v1/query?{ALL_TIME}&limit=0&fields=raw&q={}",
        encode(&question)
    );
    let text = server.get(&target).unwrap();
    let lines = text.lines().filter_map(|line| {
        let row: Value = serde_json::from_str(line).unwrap();
        row["_line"].as_str().map(str::to_owned)
    });
    let mut stored: Vec<_> = lines.collect();
    stored.sort();
    let written = fs::read_to_string(path).unwrap();
    let mut written: Vec<_> = written.lines().collect();
    written.sort_unstable();
    assert!(
        stored == written,
        "{question}: {} of {}",
        stored.len(),
        written.len()
    );
    let count = |rest: &str| server.query(&format!("{question} {rest}")).unwrap().0.len();
    assert_eq!(count("method=GET status=204"), REQUESTS, "{question}");
    assert_eq!(count("status=400"), 1, "{question}");
    if is_text {
        let one = "path=/of/17 query=\"n=17\" remote_addr=192.0.2.17 protocol=\"HTTP/1.1\"";
        assert_eq!(count(one), 1, "{question}");
    }
}

#[test]
fn what_nginx_logs_of_requests_is_here_with_its_fields() {
    let scratch = Scratch::new("nginx").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let Some(nginx) = Nginx::start(&scratch, &server.address("syslog_udp")) else {
        return skip("nginx", "it is not installed (./test unpacks it)");
    };
    let logs = scratch.path().join("logs");
    let forwarder = Command::new(program())
        .args(["forward", "--tail", "--addr", &server.url(), "--state"])
        .arg(scratch.path().join("state.json"))
        .arg(logs.join("*.log"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let _forwarder = ChildGuard(forwarder);
    for number in 0..REQUESTS {
        let agent = ["curl/8", "a \"quoted\" \\ one", "\u{e4}\u{20ac}"][number % 3];
        let request = format!(
            "GET /of/{number}?n={number} HTTP/1.1\r\nHost: ash.example.org\r\n\
             X-Real-IP: 192.0.2.{}\r\nUser-Agent: {agent}\r\nConnection: close\r\n\r\n",
            number % 250,
        );
        nginx.ask(request.as_bytes());
    }
    // What is no request is logged, too.
    nginx.ask(b"\x16\x03\x01\x02\0\x01\xff\xfe\"\r\n\r\n");
    for name in ["combined", "vhost", "timed", "json"] {
        assert_log_is_here(
            &server,
            &logs.join(name).with_extension("log"),
            name != "json",
        );
    }
    let vhosts = server.query("host=ash.example.org").unwrap().0.len();
    assert_eq!(vhosts, REQUESTS);
    // Datagrams over loopback: as many as there is room for, which is enough here.
    wait_until("syslog is here", || {
        server
            .query("app=nginx severity=6 method=GET status=204")
            .is_ok_and(|(rows, _)| rows.len() == REQUESTS)
    })
    .unwrap();
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

//! Clients of Postgres: psql, and libraries of Python.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::answers::{STORED, WAITING, filled_with};
use crate::pond::{Scratch, TestServer, wait_until};
use crate::surroundings::{has_program, java_packages, program, python, skip};

/// A listener for clients of Postgres at a port that the system chooses.
const LISTENER: [&str; 2] = ["--postgres", "127.0.0.1:0"];

/// Runs a command of psql; `None` if there is no psql.
fn psql(server: &TestServer, command: &str, password: &str) -> Option<Output> {
    psql_with(server, command, &[("PGPASSWORD", password)])
}

/// The same with these variables of its environment.
fn psql_with(server: &TestServer, command: &str, variables: &[(&str, &str)]) -> Option<Output> {
    if !has_program("psql") {
        skip(
            "clients of Postgres",
            "there is no psql (./test installs it)",
        );
        return None;
    }
    let address = server.address("postgres");
    let (host, port) = address.rsplit_once(':').unwrap();
    let output = Command::new("psql")
        .args(["-h", host, "-p", port, "-U", "ann", "-d", "logpond"])
        .args([
            "-X",
            "-A",
            "-t",
            "-w",
            "-v",
            "VERBOSITY=verbose",
            "-c",
            command,
        ])
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    Some(output)
}

/// The output of psql for a command that has an answer.
fn printed(server: &TestServer, command: &str) -> Option<String> {
    let output = psql(server, command, "")?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.is_empty(),
        "{command}: {said}"
    );
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn psql_asks_and_describes() {
    let scratch = Scratch::new("postgres-psql").unwrap();
    let server = filled_with(&scratch, &LISTENER);
    let all = STORED + WAITING;
    let Some(count) = printed(&server, "SELECT count(*) FROM logs") else {
        return;
    };
    assert_eq!(count, format!("{all}\n"));
    for (command, expected) in [
        (
            "SELECT time, status, ok FROM logs ORDER BY time LIMIT 1",
            "2026-03-02 00:00:00+00|200|t\n",
        ),
        ("SELECT 1; SELECT 2", "1\n2\n"),
        ("\\dn", "public|logpond\n"),
        (
            "\\dt",
            "public|access_combined|table|logpond\npublic|access_requests|table|logpond\n\
             public|fields|table|logpond\npublic|journal|table|logpond\npublic|logs|table|logpond\n\
             public|patterns|table|logpond\npublic|proxy_connections|table|logpond\n",
        ),
        ("SHOW server_version_num", "140000\n"),
        ("BEGIN; SELECT 1; COMMIT", "BEGIN\n1\nCOMMIT\n"),
    ] {
        assert_eq!(printed(&server, command).unwrap(), expected, "{command}");
    }
    let described = printed(&server, "\\d logs").unwrap();
    for line in [
        "time|timestamp with time zone|||",
        "status|bigint|||",
        "took|double precision|||",
    ] {
        assert!(
            described.lines().any(|found| found == line),
            "{line}: {described}"
        );
    }
    let described = printed(&server, "\\d+ logs").unwrap();
    assert!(described.contains("The event time"), "{described}");
    assert!(printed(&server, "\\l").unwrap().contains("logpond"));
    assert!(
        printed(&server, "EXPLAIN SELECT count(*) FROM logs")
            .unwrap()
            .contains("plan")
    );
    for (command, code) in [
        ("DROP TABLE logs", "25006"),
        ("SELECT nonsense FROM logs", "42703"),
    ] {
        let output = psql(&server, command, "").unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && said.contains("ERROR"),
            "{code}: {said}"
        );
    }
}

#[test]
fn sessions_are_encrypted() {
    let scratch = Scratch::new("postgres-tls").unwrap();
    let path = |name: &str| scratch.path().join(name).display().to_string();
    for name in ["own", "other"] {
        let key = rcgen::KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let params = rcgen::CertificateParams::new(names).unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        std::fs::write(path(&format!("{name}.pem")), pem).unwrap();
        std::fs::write(path(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }
    let (own, other, key) = (path("own.pem"), path("other.pem"), path("own.key"));
    let flags = [
        LISTENER[0],
        LISTENER[1],
        "--tls-certificate",
        &own,
        "--tls-key",
        &key,
    ];
    let server = TestServer::start(program(), &scratch.path().join("data"), &flags).unwrap();
    for (mode, root, is_let) in [
        ("verify-full", &own, true),
        ("verify-full", &other, false),
        ("require", &own, true),
        // Within this machine.
        ("disable", &own, true),
    ] {
        let variables = [("PGSSLMODE", mode), ("PGSSLROOTCERT", root)];
        let Some(output) = psql_with(&server, "SELECT 1", &variables) else {
            return;
        };
        assert_eq!(output.status.success(), is_let, "{mode}: {output:?}");
    }
}

#[test]
fn libraries_of_python_ask() {
    let Some(python) = python("libraries of Postgres") else {
        return;
    };
    let scratch = Scratch::new("postgres-python").unwrap();
    let server = filled_with(&scratch, &LISTENER);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sql/postgres_clients.py");
    let output = Command::new(python)
        .arg(script)
        .args([server.address("postgres"), (STORED + WAITING).to_string()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    // A token is asked for nowhere, so none is refused.
    assert_eq!(server.metric("logpond_queries_active").unwrap(), 0.0);
}

/// The queries that a small server of access logs asks of SQLite, with its columns.
const SIMPLE_QUERIES: [(&str, &str); 3] = [
    (
        "SELECT referer, Count(*) AS views FROM access_requests WHERE +host = 'comments.example.org' AND method = 'GET' \
         AND path <> '/js/embed.min.js' AND epoch >= 1772445600 AND epoch < 1772449200 AND referer <> '-' \
         AND remote_addr <> '192.0.2.9' GROUP BY referer ORDER BY views DESC",
        "https://example.org/a|2\nhttps://example.org/b|1\n",
    ),
    (
        "SELECT (epoch / 3600) * 3600 * 1000 AS ep, host, Count(*) AS views FROM access_requests \
         WHERE +host LIKE \"%example.org\" AND epoch >= 1772445600 AND epoch < 1772449200 GROUP BY epoch / 3600, host",
        "1772445600000|comments.example.org|6\n",
    ),
    (
        "SELECT (epoch / 60) * 60 * 1000 AS ep, COUNT(*) AS views, SUM(body_bytes_sent) as data FROM access_requests \
         WHERE epoch >= 1772445600 AND epoch < 1772449200 AND remote_addr <> '192.0.2.9' GROUP BY epoch / (60) ORDER BY ep",
        "1772445600000|4|40\n1772445660000|1|10\n",
    ),
];

#[test]
fn queries_of_simple_tables_run() {
    let scratch = Scratch::new("postgres-simple").unwrap();
    let format = "vhost=$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \
                  \"$http_referer\" \"$http_user_agent\" \"$host\"";
    let flags = [LISTENER[0], LISTENER[1], "--access-log", format];
    let server = TestServer::start(program(), &scratch.path().join("data"), &flags).unwrap();
    let mut text = String::new();
    for (address, minute, path, referer) in [
        (1, 0, "/count", "https://example.org/a"),
        (2, 0, "/count", "https://example.org/a"),
        (3, 1, "/count", "https://example.org/b"),
        (3, 0, "/js/embed.min.js", "https://example.org/b"),
        (4, 0, "/count", "-"),
        (9, 0, "/count", "https://example.org/a"),
    ] {
        text.push_str(&format!(
            "192.0.2.{address} - - [02/Mar/2026:10:{minute:02}:07 +0000] \"GET {path} HTTP/1.1\" 200 10 \
             \"{referer}\" \"curl\" \"comments.example.org\"\n"
        ));
    }
    assert_eq!(
        server.push("text/plain", text.as_bytes()).unwrap().status,
        200
    );
    for (query, expected) in SIMPLE_QUERIES {
        let Some(found) = printed(&server, query) else {
            return;
        };
        assert_eq!(found, expected, "{query}");
    }
}

#[test]
fn jdbc_asks() {
    let Some(packages) = java_packages("JDBC") else {
        return;
    };
    let scratch = Scratch::new("postgres-jdbc").unwrap();
    let server = filled_with(&scratch, &LISTENER);
    let program =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/clients/java/Ask.java");
    let output = Command::new("java")
        .arg("-cp")
        .arg(packages.join("*"))
        .arg(program)
        .args([server.address("postgres"), (STORED + WAITING).to_string()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[test]
fn odbc_asks() {
    if !has_program("isql") {
        return skip("ODBC", "there is no isql (./test installs it)");
    }
    let scratch = Scratch::new("postgres-odbc").unwrap();
    let server = filled_with(&scratch, &LISTENER);
    let address = server.address("postgres");
    let (host, port) = address.rsplit_once(':').unwrap();
    let connection = format!(
        "Driver={{PostgreSQL Unicode}};Servername={host};Port={port};Database=logpond;UserName=ann;ReadOnly=1"
    );
    let asked = |command: &str| {
        let mut isql = Command::new("isql")
            .args(["-b", "-d,", "-k", &connection])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        writeln!(isql.stdin.take().unwrap(), "{command}").unwrap();
        let output = isql.wait_with_output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let counts = asked("SELECT status, count(*) FROM logs WHERE status = 404 GROUP BY status");
    let expected = format!("404,{}", (STORED + WAITING) / 4);
    assert!(counts.contains(&expected), "{counts}");
    let tables = asked("help");
    assert!(tables.contains("logpond,public,logs,TABLE"), "{tables}");
    let columns = asked("help logs");
    assert!(columns.contains("logs,took,6,float8"), "{columns}");
}

/// Runs `logpond token` with a file of tokens; gives what it prints.
fn token(tokens: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program())
        .arg("token")
        .args(arguments)
        .arg("--tokens")
        .arg(tokens)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn tokens_are_passwords() {
    let scratch = Scratch::new("postgres-tokens").unwrap();
    let tokens = scratch.path().join("tokens.toml");
    let make = |name: &str, role: &str| {
        let made = token(&tokens, &["create", "--name", name, "--role", role]);
        let mut words = made.split_whitespace();
        words
            .find(|word| word.starts_with("lp_"))
            .unwrap()
            .to_owned()
    };
    let (reader, writer) = (make("reader", "read"), make("writer", "write"));
    let path = tokens.display().to_string();
    let flags = [
        LISTENER[0],
        LISTENER[1],
        "--require-token",
        "--tokens",
        &path,
    ];
    let server = TestServer::start(program(), &scratch.path().join("data"), &flags).unwrap();
    let Some(output) = psql(&server, "SELECT 1", &reader) else {
        return;
    };
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n", "{output:?}");
    for (password, said) in [
        ("wrong", "the token is not known here"),
        (&*writer, "this needs a token of role read"),
    ] {
        let output = psql(&server, "SELECT 1", password).unwrap();
        let found = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && found.contains(said), "{found}");
    }
    // Clients that would not send the token itself.
    prove_by_scram(&server, &reader, &writer);
    // A token from before there were keys for that is sent as it is. A session ends soon after its token was
    // revoked, also one that only waits.
    let kept = std::fs::read_to_string(&tokens).unwrap();
    let lines = kept.lines().filter(|line| !line.starts_with("scram-"));
    let older: String = lines.map(|line| format!("{line}\n")).collect();
    assert_ne!(older, kept);
    std::fs::write(&tokens, older).unwrap();
    let server = TestServer::start(program(), &scratch.path().join("older"), &flags).unwrap();
    let output = psql(&server, "SELECT 1", &reader).unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut session = Session::begin(&server, Some(&reader));
    assert!(session.query("SELECT 1").contains(&b'D'));
    let mut busy = Session::begin(&server, Some(&reader));
    let mut long = Session::begin(&server, Some(&reader));
    long.send(LONG);
    token(&tokens, &["revoke", "reader"]);
    let ending = session.rest();
    let ending = String::from_utf8_lossy(&ending).into_owned();
    assert!(
        ending.contains("FATAL") && ending.contains("was revoked"),
        "{ending}"
    );
    // And so does one that asks without a pause.
    let ending = busy.query_until_error("SELECT 1", Duration::from_secs(20));
    let ending = ending.expect("a session of a revoked token goes on");
    assert!(ending.contains("was revoked"), "{ending}");
    // And one whose statement runs, which the reason ends, too.
    let ending = String::from_utf8_lossy(&long.rest()).into_owned();
    assert!(ending.contains("was revoked"), "{ending}");
}

/// Takes very long without a record.
const LONG: &str = "SELECT count(*) FROM information_schema.columns a, information_schema.columns b, \
    information_schema.columns c, information_schema.columns d, information_schema.columns e \
    WHERE a.ordinal_position + b.ordinal_position + c.ordinal_position + d.ordinal_position + e.ordinal_position = 1";

/// Connects with a library that refuses every other way to show a password.
fn prove_by_scram(server: &TestServer, reader: &str, writer: &str) {
    let Some(python) = python("SCRAM by a client of Postgres") else {
        return;
    };
    let script = "\
import psycopg, sys
host, port = sys.argv[1].rsplit(':', 1)
def connect(token):
    return psycopg.connect(
        host=host, port=port, user='ann', dbname='logpond', password=token, require_auth='scram-sha-256')
assert connect(sys.argv[2]).execute('SELECT 1').fetchone() == (1,)
for token, said in ((sys.argv[2] + 'x', 'not known here'), (sys.argv[3], 'has role write')):
    try:
        connect(token)
    except psycopg.OperationalError as error:
        assert said in str(error), error
    else:
        raise AssertionError(token)
";
    let output = Command::new(python)
        .args(["-c", script, &server.address("postgres"), reader, writer])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// A session without a library.
struct Session {
    stream: TcpStream,
    process_id: [u8; 4],
    secret: [u8; 4],
}

fn message(kind: Option<u8>, content: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = kind.into_iter().collect();
    let length = u32::try_from(content.len() + 4).unwrap();
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(content);
    bytes
}

impl Session {
    fn begin(server: &TestServer, token: Option<&str>) -> Session {
        let mut stream = TcpStream::connect(server.address("postgres")).unwrap();
        let startup = message(None, b"\0\x03\0\0user\0ann\0\0");
        stream.write_all(&startup).unwrap();
        let mut session = Session {
            stream,
            process_id: [0; 4],
            secret: [0; 4],
        };
        if let Some(token) = token {
            assert_eq!(session.next().0, b'R');
            let password = message(Some(b'p'), format!("{token}\0").as_bytes());
            session.stream.write_all(&password).unwrap();
        }
        loop {
            let (kind, content) = session.next();
            match kind {
                b'K' => {
                    session.process_id.copy_from_slice(&content[..4]);
                    session.secret.copy_from_slice(&content[4..]);
                }
                b'Z' => return session,
                b'E' => panic!("{}", String::from_utf8_lossy(&content)),
                _ => {}
            }
        }
    }

    fn next(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut content = vec![0; usize::try_from(length).unwrap() - 4];
        self.stream.read_exact(&mut content).unwrap();
        (head[0], content)
    }

    fn send(&mut self, text: &str) {
        let query = message(Some(b'Q'), format!("{text}\0").as_bytes());
        self.stream.write_all(&query).unwrap();
    }

    /// The letters of the messages of an answer.
    fn query(&mut self, text: &str) -> Vec<u8> {
        self.send(text);
        let mut letters = Vec::new();
        while letters.last() != Some(&b'Z') {
            letters.push(self.next().0);
        }
        letters
    }

    /// Sends a statement again and again up to an error, or for so long.
    fn query_until_error(&mut self, text: &str, time_max: Duration) -> Option<String> {
        let begun = Instant::now();
        while begun.elapsed() < time_max {
            self.send(text);
            loop {
                match self.next() {
                    (b'E', error) => return Some(String::from_utf8_lossy(&error).into_owned()),
                    (b'Z', _) => break,
                    _ => {}
                }
            }
        }
        None
    }

    /// Everything up to the end of the connection.
    fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).unwrap();
        rest
    }
}

/// Idle sessions of one address keep no others out, nor do connections that were never admitted.
#[test]
fn one_address_has_half_of_the_sessions() {
    let scratch = Scratch::new("postgres-sessions").unwrap();
    let server = filled_with(&scratch, &LISTENER);
    let mut sessions: Vec<Session> = (0..128).map(|_| Session::begin(&server, None)).collect();
    let mut stream = TcpStream::connect(server.address("postgres")).unwrap();
    let startup = message(None, b"\0\x03\0\0user\0ann\0\0");
    stream.write_all(&startup).unwrap();
    let mut said = Vec::new();
    stream.read_to_end(&mut said).unwrap();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(
        said.contains("128 sessions of this address are open"),
        "{said}"
    );
    // All of them go on, and each that ends makes room for another.
    assert!(sessions[0].query("SELECT 1").contains(&b'D'));
    drop(sessions.pop());
    wait_until("a session ends", || {
        let mut stream = TcpStream::connect(server.address("postgres")).unwrap();
        stream.write_all(&startup).unwrap();
        let mut letter = [0];
        stream.read_exact(&mut letter).unwrap();
        let mut rest = Vec::new();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        stream.read_to_end(&mut rest).unwrap();
        !String::from_utf8_lossy(&rest).contains("of this address are open")
    })
    .unwrap();
}

/// A statement that computes for minutes.
const SLOW: &str =
    "SELECT count(*) FROM logs a, logs b, logs c WHERE a.took + b.took + c.took = 1.25";

#[test]
fn statements_are_cancelled() {
    let scratch = Scratch::new("postgres-cancel").unwrap();
    let server = filled_with(&scratch, &LISTENER);
    let running = || server.metric("logpond_queries_active").unwrap();
    let mut session = Session::begin(&server, None);
    session.send(SLOW);
    wait_until("the statement runs", || running() > 0.0).unwrap();
    let cancel = |secret: &[u8]| {
        let mut content = vec![0x04, 0xd2, 0x16, 0x2e];
        content.extend_from_slice(&session.process_id);
        content.extend_from_slice(secret);
        let mut stream = TcpStream::connect(server.address("postgres")).unwrap();
        stream.write_all(&message(None, &content)).unwrap();
        let mut rest = Vec::new();
        assert_eq!(stream.read_to_end(&mut rest).unwrap(), 0);
    };
    cancel(&[0; 4]);
    cancel(&session.secret);
    let (kind, content) = session.next();
    let text = String::from_utf8_lossy(&content).into_owned();
    assert!(kind == b'E' && text.contains("57014"), "{text}");
    assert_eq!(session.next().0, b'Z');
    assert!(session.query("SELECT 1").contains(&b'D'));
    wait_until("the statement ends", || running() == 0.0).unwrap();
    // A client that goes away ends its statement, too.
    session.send(SLOW);
    wait_until("the statement runs", || running() > 0.0).unwrap();
    drop(session);
    wait_until("the statement ends", || running() == 0.0).unwrap();
}

#[test]
fn rows_are_read_in_parts() {
    let scratch = Scratch::new("postgres-parts").unwrap();
    let server = filled_with(&scratch, &LISTENER);
    let mut session = Session::begin(&server, None);
    let mut bytes = message(Some(b'P'), b"\0SELECT took FROM logs LIMIT 25\0\0\0");
    bytes.extend(message(Some(b'B'), b"\0\0\0\0\0\0\0\0"));
    for _ in 0..4 {
        bytes.extend(message(Some(b'E'), b"\0\0\0\0\x0a"));
    }
    bytes.extend(message(Some(b'S'), b""));
    session.stream.write_all(&bytes).unwrap();
    let mut letters = String::new();
    while !letters.ends_with('Z') {
        letters.push(char::from(session.next().0));
    }
    let ten = "D".repeat(10);
    assert_eq!(letters, format!("12{ten}s{ten}s{}CCZ", "D".repeat(5)));
    // A message that ends too early ends the session, and no other one.
    session
        .stream
        .write_all(&message(Some(b'B'), b"\0\0\0\x01"))
        .unwrap();
    let ending = String::from_utf8_lossy(&session.rest()).into_owned();
    assert!(ending.contains("08P01"), "{ending}");
    assert!(
        Session::begin(&server, None)
            .query("SELECT 1")
            .contains(&b'D')
    );
}

//! Rules for records on their way in, with a real server: what was hidden is in no file, and every count
//! is exact.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::pond::{Scratch, TestServer, files_below, signal, wait_until};
use crate::proxy::Proxy;
use crate::resends::line;
use crate::surroundings::{program, say, shared};

/// A server with these rules, and their file.
fn start(scratch: &Scratch, rules: &str) -> (TestServer, PathBuf) {
    let path = scratch.path().join("rules.toml");
    fs::write(
        scratch.path().join("key"),
        "a key of the tests, long enough",
    )
    .unwrap();
    fs::write(&path, rules).unwrap();
    (start_again(scratch, &path), path)
}

fn start_again(scratch: &Scratch, rules: &Path) -> TestServer {
    let data = scratch.path().join("data");
    let rules = rules.display().to_string();
    TestServer::start(program(), &data, &["--rules", &rules]).unwrap()
}

fn count(server: &TestServer, q: &str) -> usize {
    server.query(q).unwrap().0.len()
}

/// The value of one sample of a metric.
fn sample(server: &TestServer, name: &str) -> f64 {
    let text = server.get("/metrics").unwrap();
    let found = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    found
        .unwrap_or_else(|| panic!("no {name} in {text}"))
        .parse()
        .unwrap()
}

/// Asserts that no file below the directory has these bytes.
fn assert_nowhere(directory: &Path, secrets: &[&str]) {
    let files = files_below(directory, "");
    assert!(!files.is_empty());
    let mut bytes = 0;
    for file in files {
        let held = fs::read(&file).unwrap_or_default();
        bytes += held.len();
        for secret in secrets {
            let found = memchr::memmem::find(&held, secret.as_bytes());
            assert!(found.is_none(), "{secret} is in {}", file.display());
        }
    }
    assert!(bytes > 1000, "only {bytes} bytes were looked at");
}

const HIDING: &str = r#"
hash-key-file = "key"

[[rule]]
name = "hidden"
redact = ["password", "headers.authorization", "x@1.token"]
hash = ["user"]
anonymise = ["remote_addr"]
remove = ["session"]
replace = [{ field = "_msg", pattern = '\b\d{16}\b', with = "<card>" }]

[[rule]]
name = "labels"
where = 'app=shop'
redact = ["file"]
add = { team = "shop" }
"#;

/// What no file and no answer may have.
const SECRETS: [&str; 5] = [
    "geheim",
    "203.0.113.77",
    "4111111111111111",
    "1234567812345678",
    "77123456789",
];

/// Sends secrets as lines of text and as syslog.
fn send_lines(server: &TestServer) {
    let text = "level=info user=geheim-four password=\"geheim-one and more\" n=4\n\
                203.0.113.77 - geheim-four [10/Oct/2000:13:55:36 -0700] \"GET /a HTTP/1.0\" 200 2326\n\
                paid by 4111111111111111 today\n\
                user=geheim-four user=geheim-seven n=5\n";
    let answers = server.send_tcp("durable", text.as_bytes()).unwrap();
    assert!(answers.starts_with("OK "), "{answers}");
    let header = "<34>1 2026-03-02T00:00:10Z web-01 sshd 7 -";
    let syslog = format!(
        "{header} [x@1 token=\"geheim-\\\"eight\" k=\"v\"] m 1234567812345678\n\
         {header} - {{\"password\":\"geheim-one\",\"n\":6}}\n"
    );
    server.send_tcp("syslog_tcp", syslog.as_bytes()).unwrap();
}

/// Sends secrets by the protocols that ship records.
fn send_records(server: &TestServer, scratch: &Scratch) {
    let json =
        br#"{"app":"shop","password":"geheim-one","headers":{"authorization":"geheim-two"},"n":1}
{"app":"shop","session":"geheim-three","user":"geheim-four","password":77123456789,"n":2}
{"app":"other","password":"geheim-one","password":"geheim-five","msg":"by 4111111111111111","n":3}
"#;
    let mut client = server.client().unwrap();
    let labels = "label=file=/srv/sechs&label=user=geheim-four";
    let pushed = crate::pond::push(&mut client, "application/x-ndjson", labels, json).unwrap();
    assert_eq!(
        (pushed.status, pushed.accepted()),
        (200, 3),
        "{}",
        pushed.body
    );
    let gelf = br#"{"version":"1.1","host":"h","short_message":"card 4111111111111111","_password":"geheim-nine","_n":7}"#;
    let loki = br#"{"streams":[{"stream":{"app":"shop","password":"geheim-ten"},"values":[["1772409600000000000","line 4111111111111111",{"user":"geheim-four"}]]}]}"#;
    for (path, body) in [("/gelf", &gelf[..]), ("/loki/api/v1/push", loki)] {
        let mut client = server.client().unwrap();
        let json = [("content-type", "application/json")];
        let response = client.send("POST", path, &json, body).unwrap();
        assert!(response.status < 300, "{path}: {}", response.status);
    }
    let upload = scratch.path().join("upload.log");
    fs::write(&upload, "{\"password\":\"geheim-bulk\",\"n\":8}\n").unwrap();
    let output = Command::new(program())
        .args(["forward", "--bulk", "--addr", &server.address("bulk")])
        .arg(&upload)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Asserts that answers have what was put in the place of secrets.
fn assert_hidden(server: &TestServer) {
    for secret in SECRETS {
        assert_eq!(count(server, &format!("\"{secret}\"")), 0, "{secret}");
    }
    let (all, _) = server.query("*").unwrap();
    assert_eq!(all.len(), 12);
    let text: String = all.iter().map(ToString::to_string).collect();
    assert!(
        !SECRETS.iter().any(|secret| text.contains(secret)),
        "{text}"
    );
    for (filter, expected) in [
        ("password=REDACTED", 8),
        ("headers.authorization=REDACTED n=1", 1),
        ("remote_addr=203.0.113.0 status=200", 1),
        ("\"<card>\"", 5),
        ("x@1.token=REDACTED x@1.k=v", 1),
        ("team=shop", 3),
        // The label of a batch was changed for those of its records that the rule is about.
        ("file=REDACTED", 2),
        ("file=/srv/sechs n=3", 1),
    ] {
        assert_eq!(count(server, filter), expected, "{filter}");
    }
    // The same name gives the same hash, wherever it stood.
    let users: Vec<_> = all.iter().filter_map(|row| row["user"].as_str()).collect();
    let hash = users[0];
    let is_hash = hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    assert!(is_hash, "{hash}");
    assert!(
        users.iter().filter(|user| **user == hash).count() >= 6,
        "{users:?}"
    );
}

#[test]
fn what_was_hidden_is_in_no_file() {
    let scratch = Scratch::new("rules-hidden").unwrap();
    let (server, _) = start(&scratch, HIDING);
    send_records(&server, &scratch);
    send_lines(&server);
    wait_until("all records are visible", || count(&server, "*") == 12).unwrap();
    let data = scratch.path().join("data");
    assert_nowhere(&data, &SECRETS);
    assert_hidden(&server);
    let mut client = server.client().unwrap();
    client
        .send("POST", "/api/v1/compact?wait", &[], b"")
        .unwrap();
    assert_hidden(&server);
    let changed = "logpond_rule_records_total{rule=\"hidden\",action=\"changed\"}";
    assert_eq!(sample(&server, changed), 12.0);
    assert_eq!(server.terminate().unwrap().code(), Some(0));
    assert_nowhere(&data, &SECRETS);
}

#[test]
fn changed_rules_are_taken_in_and_bad_ones_are_not() {
    let scratch = Scratch::new("rules-reload").unwrap();
    let (server, path) = start(
        &scratch,
        "[[rule]]\nname = 'one'\nwhere = 'alpha'\ndrop = true\n",
    );
    let push = || {
        let pushed = server.push("text/plain", b"alpha\nbeta\ngamma\n").unwrap();
        assert_eq!(pushed.accepted(), 3, "what is dropped was accepted");
    };
    let reloads = |result: &str| {
        sample(
            &server,
            &format!("logpond_reloads_total{{what=\"rules\",result=\"{result}\"}}"),
        )
    };
    push();
    assert_eq!((count(&server, "alpha"), count(&server, "beta")), (0, 1));
    fs::write(
        &path,
        "[[rule]]\nname = 'one'\nwere = 'beta'\ndrop = true\n",
    )
    .unwrap();
    signal("HUP", server.pid()).unwrap();
    wait_until("the bad file was seen", || reloads("failed") >= 1.0).unwrap();
    let mistake = "rules.toml:3:1: a rule has no key 'were', did you mean 'where'?; the rules stay";
    server.said(mistake);
    push();
    assert_eq!((count(&server, "alpha"), count(&server, "beta")), (0, 2));
    fs::write(
        &path,
        "[[rule]]\nname = 'one'\nwhere = 'beta'\ndrop = true\n",
    )
    .unwrap();
    wait_until("the file is taken in", || reloads("done") >= 1.0).unwrap();
    push();
    assert_eq!((count(&server, "alpha"), count(&server, "beta")), (1, 2));
    let dropped = "logpond_rule_records_total{rule=\"one\",action=\"dropped\"}";
    assert_eq!(sample(&server, dropped), 3.0);
    drop(server);
    fs::write(&path, "[[rule]]\nsample = 'x'\n").unwrap();
    let output = Command::new(program())
        .args(["serve", "--http", "127.0.0.1:0", "--data"])
        .arg(scratch.path().join("other"))
        .arg("--rules")
        .arg(&path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("rules.toml:2:10: ''x'' is no value for sample"),
        "{said}"
    );
}

/// The records that tell of losses: how many they say, and how many they are.
fn told(server: &TestServer) -> (u64, usize) {
    let (rows, _) = server.query("_quota:*").unwrap();
    let lost = rows
        .iter()
        .map(|row| row["_lost_records"].as_u64().unwrap());
    (lost.sum(), rows.len())
}

#[test]
fn what_a_quota_does_not_let_in_is_told_by_records() {
    let scratch = Scratch::new("rules-quota").unwrap();
    let rules = "[[quota]]\nname = 'per app'\nby = ['app']\nrecords = 20\nevery = '1s'\n\
                 [[quota]]\nname = 'whole'\nwhere = 'app=bulky'\nbytes = '1KB'\nevery = '31d'\n";
    let (server, path) = start(&scratch, rules);
    let mut lines = String::new();
    for n in 0..1000 {
        lines.push_str(&format!("app=chatty n={n}\n"));
    }
    lines.push_str("app=quiet n=1\n");
    let pushed = server.push("text/plain", lines.as_bytes()).unwrap();
    assert_eq!(pushed.accepted(), 1001, "{}", pushed.body);
    // The windows are those of the clock, so more than one may have been open.
    wait_until("the loss is told", || {
        let kept = count(&server, "app=chatty n:*") as u64;
        told(&server).0 + kept == 1000
    })
    .unwrap();
    assert_eq!(count(&server, "app=quiet"), 1);
    assert!(count(&server, "app=chatty n:*") >= 20);
    let (rows, _) = server
        .query("_quota=\"per app\" app=chatty level=warning")
        .unwrap();
    let text = rows[0]["_msg"].as_str().unwrap();
    assert!(
        text.starts_with("logpond: quota \"per app\": 9")
            && text.contains("of app=chatty were not kept from "),
        "{text}"
    );
    let lost = sample(
        &server,
        "logpond_quota_lost_records_total{quota=\"per app\"}",
    );
    assert_eq!(lost as u64, told(&server).0);
    // The other window is long: it is told at the end.
    let bulky = format!("app=bulky {}\n", "x=y ".repeat(100).trim_end()).repeat(5);
    assert_eq!(
        server
            .push("text/plain", bulky.as_bytes())
            .unwrap()
            .accepted(),
        5
    );
    assert_eq!(count(&server, "app=bulky x=y"), 2);
    let before = told(&server).1;
    assert_eq!(server.terminate().unwrap().code(), Some(0));
    let server = start_again(&scratch, &path);
    let (rows, _) = server.query("_quota=whole").unwrap();
    assert_eq!((rows.len(), told(&server).1), (1, before + 1));
    assert_eq!(rows[0]["_lost_records"], 3);
}

/// Lines that are sent over connections that are cut.
const LINES: usize = 20_000;

#[test]
fn batches_that_are_sent_again_are_counted_once() {
    let scratch = Scratch::new("rules-resends").unwrap();
    let rules = "[[rule]]\nname = 'low'\nwhere = 'n<5000'\ndrop = true\n\
                 [[rule]]\nname = 'mid'\nwhere = 'n<10000'\nsample = 100\n\
                 [[rule]]\nname = 'all'\nadd = { seen = true }\n\
                 [[quota]]\nname = 'q'\nwhere = 'n>=15000'\nrecords = 1000\nevery = '31d'\n";
    let (server, _) = start(&scratch, rules);
    let proxy = Proxy::start(&server.address("http"));
    let mut forwarder = Command::new(program())
        .args(["forward", "--quiet", "--addr", &proxy.url()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = forwarder.stdin.take().unwrap();
    (0..LINES).for_each(|n| input.write_all(line(n).as_bytes()).unwrap());
    drop(input);
    let output = forwarder.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let resends = server.metric("logpond_ingest_resends_total").unwrap();
    say(&format!(
        "rules: {} connections cut, {resends} batches sent again",
        proxy.cuts()
    ));
    assert!(resends >= 1.0);
    let counted = [
        (
            "logpond_rule_records_total{rule=\"low\",action=\"dropped\"}",
            5000,
        ),
        (
            "logpond_rule_records_total{rule=\"mid\",action=\"sampled\"}",
            4950,
        ),
        (
            "logpond_rule_records_total{rule=\"all\",action=\"changed\"}",
            10_050,
        ),
        ("logpond_quota_lost_records_total{quota=\"q\"}", 4000),
        (
            "logpond_ingest_left_out_records_total{reason=\"sampled\"}",
            4950,
        ),
    ];
    for (name, expected) in counted {
        assert_eq!(sample(&server, name), f64::from(expected), "{name}");
    }
    assert_eq!(count(&server, "resend n<10000"), 50);
    assert_eq!(count(&server, "resend _sample_rate=100"), 50);
    assert_eq!(count(&server, "resend n>=10000 n<15000 seen=true"), 5000);
    assert_eq!(count(&server, "resend n>=15000"), 1000);
}

#[test]
fn acknowledgements_count_what_was_sent() {
    let scratch = Scratch::new("rules-counts").unwrap();
    let (server, _) = start(&scratch, "[[rule]]\nwhere = 'noise'\ndrop = true\n");
    let answers = server
        .send_tcp("durable", b"noise\nnoise\nsignal\n")
        .unwrap();
    let counts = answers.lines().map(|line| line.trim_start_matches("OK "));
    let sum: u64 = counts.map(|count| count.parse::<u64>().unwrap()).sum();
    assert_eq!(sum, 3, "{answers}");
    let answers = server.send_tcp("durable", b"noise\nnoise\n").unwrap();
    assert!(answers.starts_with("OK "), "{answers}");
    assert_eq!(count(&server, "*"), 1);
    assert_eq!(server.metric("logpond_ingest_records_total").unwrap(), 5.0);
    assert_eq!(
        server
            .metric("logpond_ingest_left_out_records_total")
            .unwrap(),
        4.0
    );
}

/// Access logs of these addresses.
fn visits(addresses: &[&str]) -> String {
    let each = addresses.iter().map(|address| {
        format!("{address} - - [02/Mar/2026:00:00:06 +0000] \"GET / HTTP/1.1\" 200 5\n")
    });
    each.collect()
}

/// What is said of the records' places, in the order in which they came.
fn places(server: &TestServer) -> Vec<String> {
    let rows = server.query("status=200").unwrap().0;
    let names = [
        "remote_addr",
        "geo_country",
        "geo_city",
        "geo_asn",
        "geo_organization",
    ];
    let told = |row: &serde_json::Value| {
        let known = names.iter().filter(|name| !row[**name].is_null());
        let each = known.map(|name| row[*name].to_string().replace('"', ""));
        each.collect::<Vec<_>>().join(" ")
    };
    rows.iter().map(told).collect()
}

#[test]
fn addresses_have_their_places() {
    let Some(shared) = shared("databases of addresses") else {
        return;
    };
    let databases = shared.join("fixtures/maxmind-testdb/test-data");
    let scratch = Scratch::new("rules-geoip").unwrap();
    let own = scratch.path().join("asn.mmdb");
    fs::copy(databases.join("GeoLite2-ASN-Test.mmdb"), &own).unwrap();
    let city = databases.join("GeoIP2-City-Test.mmdb");
    let rules = format!(
        "geoip = [\"{}\", \"asn.mmdb\"]\n[[rule]]\nwhere = 'geo_country=SE'\n\
         anonymise = ['remote_addr']\n",
        city.display()
    );
    let (server, _) = start(&scratch, &rules);
    let addresses = [
        "89.160.20.112",
        "1.128.0.7",
        "::ffff:216.160.83.56",
        "10.0.0.1",
        "nobody",
    ];
    server
        .push("text/plain", visits(&addresses).as_bytes())
        .unwrap();
    let expected = [
        "89.160.20.0 SE Linköping 29518 Bredband2 AB",
        "1.128.0.7 1221 Telstra Pty Ltd",
        "::ffff:216.160.83.56 US Milton 209",
        "10.0.0.1",
        "nobody",
    ];
    assert_eq!(places(&server), expected);
    server.compact().unwrap();
    assert_eq!(places(&server), expected, "in segments");
    // A database that changes is taken in.
    fs::copy(databases.join("GeoIP2-ISP-Test.mmdb"), &own).unwrap();
    let done = || {
        sample(
            &server,
            "logpond_reloads_total{what=\"rules\",result=\"done\"}",
        )
    };
    wait_until("the database is taken in", || done() >= 1.0).unwrap();
    server
        .push("text/plain", visits(&["1.128.0.8"]).as_bytes())
        .unwrap();
    let now = places(&server);
    assert!(
        now.contains(&"1.128.0.8 1221 Telstra Pty Ltd".to_owned()),
        "{now:?}"
    );
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

/// Whatever a database is: it is refused by name, or says nothing of addresses.
#[test]
fn broken_databases_harm_nothing() {
    let Some(shared) = shared("broken databases of addresses") else {
        return;
    };
    let databases = shared.join("fixtures/maxmind-testdb");
    let broken = files_below(&databases.join("bad-data"), ".mmdb");
    let other = files_below(&databases.join("test-data"), ".mmdb");
    let broken: Vec<PathBuf> = broken
        .into_iter()
        .chain(
            other
                .into_iter()
                .filter(|path| path.to_string_lossy().contains("roken")),
        )
        .collect();
    assert!(broken.len() > 10);
    let (mut refused, mut taken) = (0, 0);
    for path in &broken {
        let scratch = Scratch::new("rules-geoip-broken").unwrap();
        let rules = scratch.path().join("rules.toml");
        fs::write(&rules, format!("geoip = [\"{}\"]\n", path.display())).unwrap();
        let rules = rules.display().to_string();
        match TestServer::start(
            program(),
            &scratch.path().join("data"),
            &["--rules", &rules],
        ) {
            Err(error) => {
                refused += 1;
                assert!(error.contains("rules.toml:1:9: "), "{error}");
                assert!(error.contains(&*path.to_string_lossy()), "{error}");
            }
            Ok(server) => {
                taken += 1;
                server
                    .push("text/plain", visits(&["1.1.1.1", "::1"]).as_bytes())
                    .unwrap();
                assert_eq!(count(&server, "status=200"), 2);
                assert_eq!(server.terminate().unwrap().code(), Some(0));
            }
        }
    }
    say(&format!(
        "broken databases: {refused} refused, {taken} without a word"
    ));
    assert!(refused > 0);
}

/// Lines of a declared format are known to rules by its fields, and are lines of it when they were changed.
#[test]
fn lines_of_declared_formats_are_changed_and_stay_such() {
    let scratch = Scratch::new("rules-access-log").unwrap();
    let path = scratch.path().join("rules.toml");
    let rules = "[[rule]]\nwhere = 'access_log=shop path=/healthz'\ndrop = true\n\
                 [[rule]]\nwhere = 'status>=400'\nanonymise = ['remote_addr']\n\
                 redact = ['query']\nadd = { page = true }\n";
    fs::write(&path, rules).unwrap();
    let data = scratch.path().join("data");
    let format = "shop=$remote_addr [$time_iso8601] \"$request\" $status $request_time";
    let flags = [
        "--rules",
        &path.display().to_string(),
        "--access-log",
        format,
    ];
    let server = TestServer::start(program(), &data, &flags).unwrap();
    let lines = "192.0.2.77 [2026-03-02T00:00:06+00:00] \"GET /healthz HTTP/1.1\" 200 0.001\n\
                 192.0.2.77 [2026-03-02T00:00:07+00:00] \"GET /a?t=geheim HTTP/1.1\" 404 0.250\n\
                 192.0.2.77 [2026-03-02T00:00:08+00:00] \"GET /b HTTP/1.1\" 200 0.125\n";
    server.push("text/plain", lines.as_bytes()).unwrap();
    // The same behind the header of a server that sends its log as syslog.
    let syslog = "<190>Mar  2 00:00:09 web-1 nginx: 192.0.2.77 [2026-03-02T00:00:09+00:00] \
                  \"GET /c?t=geheim HTTP/1.1\" 500 0.500\n";
    server.send_tcp("syslog_tcp", syslog.as_bytes()).unwrap();
    wait_until("all are there", || count(&server, "") == 3).unwrap();
    for _ in 0..2 {
        let (rows, _) = server.query("access_log=shop").unwrap();
        let told: Vec<String> = rows
            .iter()
            .map(|row| {
                let names = [
                    "remote_addr",
                    "path",
                    "query",
                    "status",
                    "duration_s",
                    "page",
                ];
                names.map(|name| row[name].to_string()).join(" ")
            })
            .collect();
        assert_eq!(
            told,
            [
                r#""192.0.2.0" "/a" "REDACTED" 404 0.25 true"#,
                r#""192.0.2.77" "/b" null 200 0.125 null"#,
                r#""192.0.2.0" "/c" "REDACTED" 500 0.5 true"#,
            ]
        );
        server.compact().unwrap();
    }
    assert_nowhere(&data, &["geheim", "healthz"]);
}

//! Grafana's JSON data sources and Infinity, as they ask: with bodies as SimpleJson 1.4 and simPod's JSON
//! 0.6 send them. What is expected of the fixture is counted here, from the text of its lines.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::http::encode;
use crate::pond::{Scratch, TestServer};
use crate::surroundings::{program, shared};

/// The address that the article's author left out of his counts, here.
const OWN_ADDRESS: &str = "127.0.0.2";

/// The script that pages embed.
const SCRIPT: &str = "/js/embed.min.js";

/// The time between two points of panels, in milliseconds.
const STEP_MS: i64 = 60_000;

/// A request, as far as it matters here.
struct Request {
    address: String,
    time_s: i64,
    method: String,
    path: String,
    bytes: u64,
    referer: String,
    host: String,
}

/// Reads a line of nginx's `combined` with the host behind it.
fn request(line: &str) -> Request {
    let quoted: Vec<&str> = line.split('"').collect();
    let (head, tail) = (quoted[0], quoted[2]);
    let time = head.split(['[', ']']).nth(1).unwrap();
    let time = jiff::fmt::strtime::parse("%d/%b/%Y:%H:%M:%S %z", time).unwrap();
    let mut asked = quoted[1].split(' ');
    Request {
        address: head.split(' ').next().unwrap().to_owned(),
        time_s: time.to_timestamp().unwrap().as_second(),
        method: asked.next().unwrap().to_owned(),
        path: asked.next().unwrap().to_owned(),
        bytes: tail.split_whitespace().nth(1).unwrap().parse().unwrap(),
        referer: quoted[3].to_owned(),
        host: quoted[7].to_owned(),
    }
}

/// A server with the requests of the fixture.
struct Blog {
    server: TestServer,
    requests: Vec<Request>,
    _scratch: Scratch,
}

impl Blog {
    /// An address of flat objects around all requests.
    fn flat(&self, query: &str, rest: &str) -> String {
        let range = self.range();
        let time = |name: &str| range[name].as_str().unwrap().to_owned();
        let (from, to, query) = (time("from"), time("to"), encode(query));
        format!("/api/query?from={from}&to={to}&query={query}{rest}")
    }

    /// `None` where the fixture is absent.
    fn start(name: &str) -> Option<Blog> {
        let shared = shared("the article's panels")?;
        let text = fs::read_to_string(shared.join("fixtures/rrinlog/test-access.log")).unwrap();
        let scratch = Scratch::new(name).unwrap();
        let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
        let pushed = server.push("text/plain", text.as_bytes()).unwrap();
        let requests: Vec<Request> = text.lines().map(request).collect();
        assert_eq!(pushed.accepted(), requests.len() as u64);
        Some(Blog {
            server,
            requests,
            _scratch: scratch,
        })
    }

    /// A range around all requests, as Grafana sends it.
    fn range(&self) -> Value {
        let times = || self.requests.iter().map(|request| request.time_s);
        let text = |second: i64| {
            let time = jiff::Timestamp::from_second(second).unwrap();
            format!("{time:.3}")
        };
        let (from, to) = (
            text(times().min().unwrap() - 600),
            text(times().max().unwrap() + 600),
        );
        json!({ "from": from, "to": to, "raw": { "from": from, "to": to } })
    }

    /// A question as SimpleJson sends it.
    fn question(&self, targets: &Value) -> Value {
        let variable = |value: &str| json!({ "text": value, "value": value, "selected": true });
        json!({
            "requestId": "Q1", "timezone": "browser", "panelId": 1, "dashboardId": null,
            "range": self.range(), "rangeRaw": self.range(),
            "interval": "1m", "intervalMs": STEP_MS, "maxDataPoints": 1196,
            "targets": targets, "format": "json", "adhocFilters": [], "cacheTimeout": null,
            "scopedVars": {
                "__interval": { "text": "1m", "value": "1m" },
                "__interval_ms": { "text": "60000", "value": STEP_MS },
                "own_address": variable(OWN_ADDRESS),
                "scripts": variable(SCRIPT),
            },
        })
    }

    fn ask(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.post(path, body);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let mut client = self.server.client().unwrap();
        let headers = [("content-type", "application/json")];
        let body = body.to_string();
        let response = client
            .send("POST", path, &headers, body.as_bytes())
            .unwrap();
        let status = response.status;
        (
            status,
            serde_json::from_str(&response.text().unwrap()).unwrap(),
        )
    }

    /// Those that others than oneself have made.
    fn of_others(&self) -> impl Iterator<Item = &Request> {
        let requests = self.requests.iter();
        requests.filter(|request| request.address != OWN_ADDRESS)
    }

    /// Views of articles, the most read first.
    fn views(&self) -> Vec<(String, u64)> {
        let mut views: BTreeMap<&str, u64> = BTreeMap::new();
        for request in self.of_others() {
            let is_view = request.method == "GET" && request.path != SCRIPT;
            if is_view && request.referer != "-" {
                *views.entry(&request.referer).or_default() += 1;
            }
        }
        let mut views: Vec<_> = views
            .into_iter()
            .map(|(referer, views)| (referer.to_owned(), views))
            .collect();
        views.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
        views
    }
}

/// Sums by the ends of windows, in milliseconds.
fn windows<'r>(
    requests: impl Iterator<Item = &'r Request>,
    number: impl Fn(&Request) -> u64,
) -> BTreeMap<i64, u64> {
    let mut sums = BTreeMap::new();
    for request in requests {
        // A window has its end, and not its beginning.
        let end = (request.time_s * 1000 + STEP_MS - 1).div_euclid(STEP_MS) * STEP_MS;
        *sums.entry(end).or_default() += number(request);
    }
    sums
}

/// Checks a series against sums: it has all of them, zero everywhere else, and no gap.
fn check_series(series: &Value, mut expected: BTreeMap<i64, u64>) {
    let points = series["datapoints"].as_array().unwrap();
    let mut last = None;
    for point in points {
        let (value, at) = (point[0].as_f64().unwrap(), point[1].as_i64().unwrap());
        assert_eq!(value, expected.remove(&at).unwrap_or(0) as f64, "at {at}");
        assert!(
            last.is_none_or(|last| at - last == STEP_MS),
            "gap before {at}"
        );
        last = Some(at);
    }
    assert!(expected.is_empty() && points.len() > 10, "{expected:?}");
    assert!(points.iter().any(|point| point[0] == 0.0), "there are gaps");
}

fn sorted_rows(table: &Value) -> Vec<(String, u64)> {
    let rows = table["rows"].as_array().unwrap().iter();
    let mut rows: Vec<(String, u64)> = rows
        .map(|row| {
            (
                row[0].as_str().unwrap().to_owned(),
                row[1].as_u64().unwrap(),
            )
        })
        .collect();
    rows.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    rows
}

#[test]
fn the_three_panels_of_the_article_have_its_answers() {
    let Some(blog) = Blog::start("grafana-article") else {
        return;
    };
    let target = |name: &str, id: &str| json!({ "target": name, "refId": id, "type": "timeserie" });
    let question = blog.question(&json!([
        target("top-articles", "A"),
        target("outbound-bytes", "B"),
        { "target": "", "refId": "C", "type": "timeserie" },
        { "target": "requests-by-host", "refId": "D", "type": "timeserie", "hide": true },
        target("requests-by-host", "E"),
    ]));
    for _ in 0..2 {
        for path in ["/query", "/grafana/json/query"] {
            let answer = blog.ask(path, &question);
            let [articles, outbound, hosts] = &answer.as_array().unwrap()[..] else {
                panic!("there are three targets: {answer}");
            };
            let columns = json!([
                { "text": "referer", "type": "string" },
                { "text": "value", "type": "number" },
            ]);
            assert_eq!(articles["columns"], columns);
            assert_eq!(
                (&articles["type"], &articles["refId"]),
                (&json!("table"), &json!("A"))
            );
            assert!(!blog.views().is_empty());
            assert_eq!(sorted_rows(articles), blog.views());
            assert_eq!(outbound["target"], "outbound");
            let sent = windows(blog.of_others(), |request| request.bytes);
            check_series(outbound, sent);
            let host = &blog.requests[0].host;
            assert_eq!(hosts["target"], **host);
            let served = windows(blog.requests.iter(), |_| 1);
            check_series(hosts, served);
        }
        blog.server.compact().unwrap();
    }
    // Without an address of one's own nobody is left out.
    let mut question = blog.question(&json!([target("outbound-bytes", "A")]));
    question["scopedVars"] = Value::Null;
    let answer = blog.ask("/query", &question);
    let all = windows(blog.requests.iter(), |request| request.bytes);
    check_series(&answer[0], all);
    // Where nothing is, everything is zero.
    let mut question = blog.question(&json!([target("outbound-bytes", "A")]));
    question["range"] = json!({ "from": "2016-01-01T00:00:00Z", "to": "2016-01-02T00:00:00Z" });
    let answer = blog.ask("/query", &question);
    let points = answer[0]["datapoints"].as_array().unwrap();
    assert!(points.len() > 1000 && points.iter().all(|point| point[0] == 0.0));
}

#[test]
fn menus_have_what_there_is() {
    let Some(blog) = Blog::start("grafana-forms") else {
        return;
    };
    assert_eq!(blog.server.get("/grafana/json/").unwrap(), "ok\n");
    let names = json!(["outbound-bytes", "requests-by-host", "top-articles"]);
    assert_eq!(blog.ask("/search", &json!({ "target": "" })), names);
    assert_eq!(
        blog.ask("/search", &json!({ "target": "art" })),
        json!(["top-articles"])
    );
    let host = blog.requests[0].host.as_str();
    let within = |mut body: Value| {
        body["range"] = blog.range();
        body
    };
    let values = blog.ask(
        "/search",
        &within(json!({ "target": "label_values(host)" })),
    );
    assert_eq!(values, json!([host]));
    let metrics = blog.ask("/grafana/json/metrics", &json!({}));
    let articles = &metrics[2];
    assert_eq!(articles["value"], "top-articles");
    let fields = articles["payloads"].as_array().unwrap().iter();
    let fields: Vec<_> = fields
        .map(|field| field["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        fields,
        ["host", "own_address", "scripts", "legend", "format"]
    );
    assert!(
        blog.server
            .get("/metrics")
            .unwrap()
            .contains("logpond_build_info")
    );

    let payload = json!({ "payload": { "target": "label_values({method=\"GET\"}, remote_addr)" } });
    let addresses = blog.ask("/variable", &within(payload));
    let entry = |text: &str| json!({ "__text": text, "__value": text });
    assert_eq!(addresses, json!([entry("127.0.0.1"), entry("127.0.0.2")]));
    let payload = json!({ "payload": { "target": "top-articles" } });
    let found = blog.ask("/variable", &within(payload));
    assert!(
        found
            .as_array()
            .unwrap()
            .iter()
            .any(|value| value["__text"] == blog.views()[0].0)
    );
    let body = json!({ "metric": "top-articles", "payload": {}, "name": "host" });
    let options = blog.ask("/metric-payload-options", &within(body));
    assert_eq!(options, json!([{ "label": host, "value": host }]));
    let keys = blog.ask("/tag-keys", &within(json!({})));
    let key = |name: &str| json!({ "type": "string", "text": name });
    for name in ["host", "method", "status", "service_name"] {
        assert!(
            keys.as_array().unwrap().contains(&key(name)),
            "{name}: {keys}"
        );
    }
    let values = blog.ask("/tag-values", &within(json!({ "key": "remote_addr" })));
    assert_eq!(
        values,
        json!([{ "text": "127.0.0.1" }, { "text": "127.0.0.2" }])
    );
}

#[test]
fn forms_and_filters_narrow_what_is_asked() {
    let Some(blog) = Blog::start("grafana-filters") else {
        return;
    };
    let host = blog.requests[0].host.as_str();
    // The form of a target, with a choice of several hosts; and a filter of the whole dashboard.
    let mut question = blog.question(&json!([{
        "refId": "A", "target": "requests-by-host", "editorMode": "builder", "hide": false,
        "payload": { "host": [host, "other.example"], "legend": "at {{host}}", "format": "table" },
    }]));
    question["filters"] = json!([
        { "key": "method", "operator": "=", "value": "GET" },
        { "key": "bytes", "operator": ">", "value": "1000" },
    ]);
    question["adhocFilters"] = question["filters"].clone();
    question["dashboardUID"] = json!("x");
    let answer = blog.ask("/grafana/json/query", &question);
    // A table is about the whole range.
    let large = || {
        let requests = blog.requests.iter();
        requests.filter(|request| request.method == "GET" && request.bytes > 1000)
    };
    assert_eq!(
        sorted_rows(&answer[0]),
        [(host.to_owned(), large().count() as u64)]
    );
    question["targets"][0]["payload"]["format"] = Value::Null;
    let answer = blog.ask("/grafana/json/query", &question);
    assert_eq!(answer[0]["target"], format!("at {host}"));
    check_series(&answer[0], windows(large(), |_| 1));
    // Another host has nothing.
    question["targets"][0]["payload"]["host"] = json!("other.example");
    assert_eq!(blog.ask("/grafana/json/query", &question), json!([]));
}

#[test]
fn texts_are_queries_and_lines_are_tables() {
    let Some(blog) = Blog::start("grafana-texts") else {
        return;
    };
    let question = blog.question(&json!([
        { "refId": "A", "target": "{method=\"GET\"} |= `embed.min.js`", "type": "timeserie" },
        { "refId": "B", "target": "sum by (method) (count_over_time({}[$__range]))", "type": "table" },
        { "refId": "C", "target": "logql",
            "payload": { "query": "avg_over_time({bytes!=\"\"} | unwrap bytes [$__interval]) by ()" } },
        { "refId": "D", "target": "1 + 1", "type": "table" },
    ]));
    let answer = blog.ask("/query", &question);
    let scripts = blog
        .requests
        .iter()
        .filter(|r| r.path == SCRIPT && r.method == "GET");
    let (lines, methods, mean, two) = (&answer[0], &answer[1], &answer[2], &answer[3]);
    assert_eq!(lines["rows"].as_array().unwrap().len(), scripts.count());
    assert_eq!(
        lines["columns"][0],
        json!({ "text": "time", "type": "time" })
    );
    assert_eq!(
        lines["columns"][1],
        json!({ "text": "line", "type": "string" })
    );
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for request in &blog.requests {
        *counts.entry(&request.method).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().map(|(m, n)| (m.to_owned(), n)).collect();
    counts.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    assert_eq!(sorted_rows(methods), counts);
    // A mean of nothing is none.
    let points = mean["datapoints"].as_array().unwrap();
    assert!(points.iter().any(|point| point[0].is_null()), "{mean}");
    assert!(
        points.iter().any(|point| point[0].as_f64() > Some(100.0)),
        "{mean}"
    );
    assert_eq!(two["rows"], json!([[2]]));
}

#[test]
fn lines_are_marks() {
    let Some(blog) = Blog::start("grafana-marks") else {
        return;
    };
    let mut body = blog.question(&json!([]));
    body["annotation"] = json!({ "name": "posts", "datasource": "x", "iconColor": "red",
        "enable": true, "query": "{method=\"POST\"}" });
    let marks = blog.ask("/annotations", &body);
    let posts: Vec<_> = blog
        .requests
        .iter()
        .filter(|r| r.method == "POST")
        .collect();
    let marks = marks.as_array().unwrap();
    assert_eq!(marks.len(), posts.len());
    let newest = posts.iter().map(|post| post.time_s).max().unwrap();
    assert_eq!(marks[0]["time"], newest * 1000);
    assert_eq!(marks[0]["annotation"]["name"], "posts");
    assert!(marks[0]["text"].as_str().unwrap().contains("\"POST "));
}

#[test]
fn what_cannot_be_answered_is_said() {
    let Some(blog) = Blog::start("grafana-errors") else {
        return;
    };
    let table = [
        (
            "/query",
            json!({ "targets": [{ "refId": "B", "target": "no-such" }] }),
            "B: ",
        ),
        ("/query", json!({ "targets": [5] }), "no JSON object"),
        (
            "/query",
            json!({ "targets": [{ "target": "{}", "payload": { "format": "pie" } }] }),
            "pie",
        ),
        (
            "/query",
            json!({ "targets": vec![json!({ "target": "{}" }); 65] }),
            "64 targets",
        ),
        (
            "/query",
            json!({ "adhocFilters": [{ "key": "a", "operator": "~" }] }),
            "operator '~'",
        ),
        (
            "/query",
            json!({ "range": { "from": "x" } }),
            "'range.from'",
        ),
        ("/annotations", json!({}), "annotation.query"),
        ("/variable", json!({ "payload": "" }), "payload.target"),
        ("/tag-values", json!({}), "'key'"),
    ];
    for (path, body, part) in table {
        let (status, answer) = blog.post(path, &body);
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(
            status == 400 && message.contains(part),
            "{path} {body}: {status} {answer}"
        );
        assert!(answer["error"]["code"].is_string());
    }
}

#[test]
fn flat_objects_are_for_whatever_fetches_addresses() {
    let Some(blog) = Blog::start("flat") else {
        return;
    };
    let get = |query: &str, rest: &str| blog.server.get(&blog.flat(query, rest)).unwrap();
    let own = format!(
        "&var-own_address={OWN_ADDRESS}&var-scripts={}",
        encode(SCRIPT)
    );
    let rows: Value = serde_json::from_str(&get("top-articles", &own)).unwrap();
    let rows = rows.as_array().unwrap();
    let views: u64 = rows.iter().map(|row| row["value"].as_u64().unwrap()).sum();
    assert_eq!(
        views,
        blog.views().iter().map(|(_, views)| views).sum::<u64>()
    );
    assert!(rows[0]["time"].as_str().unwrap().ends_with('Z'));

    // Several values are several choices.
    let several = "&var-own_address=127.0.0.1&var-own_address=127.0.0.2&show=table&step=1d";
    let none: Value = serde_json::from_str(&get("outbound-bytes", several)).unwrap();
    assert_eq!(none[0]["value"], 0);

    // A name that was mistyped is no other question.
    let refused = blog
        .server
        .get(&blog.flat("top-articles", "&var-own_adress=x"));
    let refused = refused.unwrap_err().to_string();
    for part in ["status 400", "no variable 'own_adress'", "own_address"] {
        assert!(refused.contains(part), "{refused}");
    }
}

#[test]
fn flat_objects_come_page_by_page_and_in_all_forms() {
    let Some(blog) = Blog::start("flat-pages") else {
        return;
    };
    let get = |query: &str, rest: &str| blog.server.get(&blog.flat(query, rest)).unwrap();
    let mut seen = Vec::new();
    let mut cursor = String::new();
    while cursor != "end" {
        let rest = format!(
            "&format=page&limit=40&direction=forward&cursor={}",
            encode(&cursor)
        );
        let page: Value = serde_json::from_str(&get("{}", &rest)).unwrap();
        assert_eq!(page["complete"], true);
        seen.extend(page["rows"].as_array().unwrap().iter().cloned());
        cursor = page["cursor"].as_str().unwrap_or("end").to_owned();
    }
    assert_eq!(seen.len(), blog.requests.len());
    let mut client = blog.server.client().unwrap();
    let target = blog.flat("{}", "&format=ndjson&limit=40");
    let response = client.send("GET", &target, &[], b"").unwrap();
    let header = |name: &str| {
        response
            .headers
            .iter()
            .any(|(n, v)| n == name && !v.is_empty())
    };
    assert!(header("logpond-cursor") && !header("logpond-warning"));
    assert_eq!(response.text().unwrap().lines().count(), 40);
    let csv = get(
        "sum by (method) (count_over_time({}[$__range]))",
        "&format=csv&show=table",
    );
    let lines: Vec<&str> = csv.split("\r\n").collect();
    assert_eq!(lines[0], "time,method,value");
    let gets = blog.requests.iter().filter(|r| r.method == "GET").count();
    assert!(
        lines
            .iter()
            .any(|line| line.ends_with(&format!(",GET,{gets}"))),
        "{csv}"
    );

    for (rest, part) in [
        ("&query=x&query=y", "given twice"),
        ("&query=no-such", "saved query"),
        ("&query={}&format=xml", "'format'"),
        ("&query={}&step=0", "'step'"),
        ("&query={}&colour=red", "unknown parameter 'colour'"),
        ("", "'query' is missing"),
    ] {
        let target = format!("/api/query?from=1d{rest}");
        let error = blog.server.get(&target).unwrap_err();
        assert!(
            error.contains("status 400") && error.contains(part),
            "{error}"
        );
    }
}

#[test]
fn answers_are_compressed_for_those_that_take_it() {
    let Some(blog) = Blog::start("grafana-gzip") else {
        return;
    };
    let targets = json!([
        { "target": "outbound-bytes", "refId": "A", "type": "timeserie" },
        { "target": "{}", "refId": "B", "type": "table" },
    ]);
    let question = blog.question(&targets).to_string();
    let flat = |form: &str| blog.flat("{}", &format!("&limit=0&format={form}"));
    let asked = [
        ("POST", "/grafana/json/query".to_owned(), question.clone()),
        ("POST", "/query".to_owned(), question),
        ("POST", "/search".to_owned(), "{}".to_owned()),
        ("GET", flat("json"), String::new()),
        ("GET", flat("csv"), String::new()),
    ];
    for (method, target, body) in asked {
        let answer = |accepted: &str| {
            let headers = [
                ("content-type", "application/json"),
                ("accept-encoding", accepted),
            ];
            let mut client = blog.server.client().unwrap();
            let response = client
                .send(method, &target, &headers, body.as_bytes())
                .unwrap();
            assert_eq!(response.status, 200, "{target}");
            let varies = ("vary".to_owned(), "accept-encoding".to_owned());
            assert!(response.headers.contains(&varies), "{target}");
            let coding = response
                .headers
                .iter()
                .find(|(name, _)| name == "content-encoding");
            let coding = coding.map(|(_, value)| value.clone());
            (coding, response.bytes().unwrap())
        };
        let (coding, plain) = answer("gzip;q=0");
        assert_eq!(coding, None, "{target}");
        let (coding, packed) = answer("br, gzip");
        assert_eq!(coding.as_deref(), Some("gzip"), "{target}");
        let mut unpacked = Vec::new();
        GzDecoder::new(&packed[..])
            .read_to_end(&mut unpacked)
            .unwrap();
        assert_eq!(unpacked, plain, "{target}");
        // The names of queries are too short to gain anything.
        let is_short = plain.len() < 500;
        assert!(is_short || packed.len() < plain.len() / 2, "{target}");
    }
}

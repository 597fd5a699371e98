//! The requests of the test of all routes.

use serde_json::{Value, json};

/// The range of all records.
pub(super) const RANGE: &str = "from=2026-11-20T00:00:00Z&to=2026-11-21T00:00:00Z";

/// A range without a record, so that answers say what there is outside of it.
pub(super) const RANGE_LATER: &str = "from=2026-11-22T00:00:00Z&to=2026-11-23T00:00:00Z";

/// A request of the test.
pub(super) struct Question {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) body: String,
}

fn get(path: String) -> Question {
    Question {
        method: "GET",
        path,
        body: String::new(),
    }
}

fn post(path: &str, body: &Value) -> Question {
    Question {
        method: "POST",
        path: path.to_owned(),
        body: body.to_string(),
    }
}

/// The requests to a route of readers; none to one that is refused to a bound reader, or says nothing of records.
pub(super) fn questions(method: &str, route: &'static str) -> Vec<Question> {
    let name = |name: &str| route.replacen("{}", name, 1);
    match (method, route) {
        ("POST", path) if path.starts_with("/grafana/json/") || GRAFANA.contains(&path) => {
            grafana(path)
        }
        (_, "/api/v1/query") => own(route),
        (_, "/api/query") => [
            "query=%7Bapp%3D~%22.%2B%22%7D",
            "query=sum%20by%20(team)%20(count_over_time(%7Bapp%3D~%22.%2B%22%7D%5B1h%5D))",
        ]
        .map(|query| get(format!("{route}?{RANGE}&{query}")))
        .into(),
        (_, "/api/v1/fields" | "/api/v1/patterns") => vec![get(format!("{route}?{RANGE}"))],
        (_, "/api/v1/top") => ["team", "status", "suspect", "sspect"]
            .map(|field| get(format!("{route}?{RANGE}&field={field}")))
            .into(),
        (_, "/api/v1/stats") => ["field=status", "field=status&by=team", "field=suspect"]
            .map(|rest| get(format!("{route}?{RANGE}&{rest}")))
            .into(),
        (_, "/api/v1/histogram") => ["step=1m", "by=team", "step=1h&by=app", ""]
            .map(|rest| get(format!("{route}?{RANGE}&{rest}")))
            .into(),
        (_, "/api/v1/sql") => SQL
            .map(|statement| get(format!("{route}?query={}", statement.replace(' ', "%20"))))
            .into(),
        (_, "/mcp") => tools(),
        (_, "/select/logsql/query") => ["*", "declined", "secret:*"]
            .map(|query| {
                get(format!(
                    "{route}?query={query}&start=2026-11-20T00:00:00Z&end=2026-11-21T00:00:00Z"
                ))
            })
            .into(),
        (_, "/api/v1/saved-queries") => vec![get(route.to_owned())],
        (_, "/api/v1/saved-queries/{}") => vec![get(name("mine")), get(name("requests-by-host"))],
        (_, path)
            if path.starts_with("/loki/")
                || path.starts_with("/api/prom/")
                || path.starts_with("/prometheus/") =>
        {
            loki(route)
        }
        (_, "/entries") => vec![
            get(route.to_owned()),
            get(format!("{route}?team=fraud")),
            get(format!("{route}?TEAM=fraud")),
        ],
        (_, "/fields/{}") => vec![get(name("team")), get(name("TEAM")), get(name("MESSAGE"))],
        ("GET", path) if path.starts_with("/grafana/json") => vec![get(path.to_owned())],
        (_, "/browse") => vec![get(route.to_owned())],
        _ => elastic(route),
    }
}

fn loki(route: &'static str) -> Vec<Question> {
    let nanoseconds = "start=1795132800000000000&end=1795219200000000000";
    let ask = |rest: &str| get(format!("{route}?{nanoseconds}&{rest}"));
    let selector = "query=%7Bapp%3D~%22.%2B%22%7D";
    let name = |name: &str| route.replacen("{}", name, 1);
    match route {
        "/loki/api/v1/query" => vec![get(format!(
            "{route}?time=1795219200000000000&query=sum%20by%20(team)%20(count_over_time(%7Bapp%3D~%22.%2B%22%7D%5B24h%5D))"
        ))],
        "/loki/api/v1/query_range" | "/api/prom/query" => vec![
            ask(selector),
            ask("query=%7Bapp%3D~%22.%2B%22%7D%20%7C%3D%20%22declined%22"),
            ask(
                "step=3600&query=sum%20by%20(team)%20(count_over_time(%7Bapp%3D~%22.%2B%22%7D%5B1h%5D))",
            ),
        ],
        "/loki/api/v1/tail" => vec![ask(selector)],
        "/loki/api/v1/detected_field/{}/values" => {
            vec![get(format!("{}?{nanoseconds}&{selector}", name("suspect")))]
        }
        "/loki/api/v1/label/{}/values" | "/api/prom/label/{}/values" => ["team", "app", "suspect"]
            .map(|label| get(format!("{}?{nanoseconds}", name(label))))
            .into(),
        path if path.starts_with("/loki/api/v1/") && !path.contains("rules") => {
            vec![ask(selector), ask("")]
        }
        "/api/prom/label" => vec![ask("")],
        "/loki/api/v1/rules"
        | "/api/prom/rules"
        | "/prometheus/api/v1/rules"
        | "/prometheus/api/v1/alerts" => vec![get(route.to_owned())],
        path if path.contains("/rules/") => vec![get(path.replace("{}", "a"))],
        _ => Vec::new(),
    }
}

const GRAFANA: [&str; 8] = [
    "/search",
    "/query",
    "/annotations",
    "/tag-keys",
    "/tag-values",
    "/metrics",
    "/metric-payload-options",
    "/variable",
];

const SQL: [&str; 8] = [
    "SELECT count(*) AS n FROM logs",
    "SELECT team, count(*) AS n FROM logs GROUP BY team ORDER BY team",
    "SELECT time, message, status FROM logs ORDER BY time",
    "SELECT count(*) AS n FROM logs WHERE status > 500 OR team = 'fraud'",
    "SELECT * FROM fields ORDER BY 1",
    "SELECT * FROM patterns ORDER BY 1",
    "SHOW COLUMNS FROM logs",
    "SELECT suspect FROM logs",
];

fn own(route: &str) -> Vec<Question> {
    let rests = [
        "",
        "q=declined",
        "q=team%3Dfraud",
        "q=sspect%3Duser-1",
        "q=team%3Dfruad",
        "count=true",
        "q=declined&count=true",
        "limit=3",
        "limit=3&direction=backward",
        "q=%22order%2020%22&before=3&after=3",
        "q=record:*",
        "q=NOT%20paid",
        "format=csv",
        "progress=true",
        "q=_rule:*",
        "q=paid%20OR%20declined&strict=true",
        "fields=team,suspect",
    ];
    let mut all: Vec<Question> = rests
        .map(|rest| get(format!("{route}?{RANGE}&{rest}")))
        .into();
    for rest in ["", "q=declined", "q=paid", "q=suspect:*"] {
        all.push(get(format!("{route}?{RANGE_LATER}&{rest}")));
    }
    let narrow = "from=2026-11-20T10:00:20Z&to=2026-11-20T10:00:21Z";
    all.push(get(format!("{route}?{narrow}&before=2&after=2")));
    all
}

fn tools() -> Vec<Question> {
    let range = json!({"from": "2026-11-20T00:00:00Z", "to": "2026-11-21T00:00:00Z"});
    let with = |members: Value| {
        let mut all = range.clone();
        let members = members.as_object().unwrap().clone();
        all.as_object_mut().unwrap().extend(members);
        all
    };
    let calls = [
        ("search", with(json!({"query": ""}))),
        ("search", with(json!({"query": "declined"}))),
        ("count", with(json!({"query": ""}))),
        ("fields", with(json!({}))),
        ("values", with(json!({"field": "team"}))),
        ("histogram", with(json!({}))),
        ("patterns", with(json!({}))),
        ("stats", with(json!({"field": "status"}))),
        ("saved_queries", json!({})),
        ("sql", json!({"query": "SELECT count(*) AS n FROM logs"})),
        ("run_saved_query", json!({"name": "mine"})),
    ];
    let call = |(name, arguments): (&str, Value)| {
        let call = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": name, "arguments": arguments},
        });
        post("/mcp", &call)
    };
    calls.into_iter().map(call).collect()
}

fn grafana(path: &'static str) -> Vec<Question> {
    let range = json!({"from": "2026-11-20T00:00:00Z", "to": "2026-11-21T00:00:00Z"});
    let target = |query: &str| json!({"refId": "A", "target": query, "type": "table"});
    let query = |query: &str| {
        json!({
            "range": range, "intervalMs": 3_600_000, "maxDataPoints": 100,
            "targets": [target(query)],
            "target": query, "name": "team", "payload": {"target": query}, "annotation": {"query": query, "name": "a"}, "key": "team",
        })
    };
    [
        "{app=~\".+\"}",
        "{team=\"fraud\"}",
        "sum by (team) (count_over_time({app=~\".+\"}[1h]))",
        "mine",
    ]
    .map(|text| post(path, &query(text)))
    .into()
}

fn elastic(route: &str) -> Vec<Question> {
    let path = route.replacen("{}", "*", 1).replace("{}", "team");
    let all = json!({"size": 50, "sort": [{"@timestamp": "asc"}], "track_total_hits": true});
    let buckets = json!({"size": 0, "aggs": {
        "teams": {"terms": {"field": "team"}},
        "times": {"date_histogram": {"field": "@timestamp", "fixed_interval": "1h"}},
        "most": {"max": {"field": "status"}},
    }});
    match route {
        "/_search" | "/{}/_search" => vec![
            post(&path, &all),
            post(&path, &buckets),
            post(&path, &json!({"query": {"term": {"team": "fraud"}}})),
        ],
        "/_msearch" | "/{}/_msearch" => vec![Question {
            method: "POST",
            path,
            body: format!("{{}}\n{all}\n{{}}\n{buckets}\n"),
        }],
        "/_count" | "/{}/_count" => vec![get(path)],
        "/_field_caps" | "/{}/_field_caps" => vec![get(format!("{path}?fields=*"))],
        "/_search/scroll" => vec![post(&path, &json!({"scroll_id": "x"}))],
        "/{}/_pit" => vec![post(&format!("{path}?keep_alive=1m"), &json!({}))],
        "/_pit" => vec![Question {
            method: "DELETE",
            path,
            body: json!({"id": "x"}).to_string(),
        }],
        _ => vec![get(path)],
    }
}

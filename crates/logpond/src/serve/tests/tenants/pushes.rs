//! A record by each way to push, whose sender says that it is of another team.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

/// A request: path, headers, body.
pub(super) struct Push {
    pub(super) path: &'static str,
    pub(super) headers: Vec<(&'static str, &'static str)>,
    pub(super) body: String,
}

fn push(path: &'static str, content_type: &'static str, body: impl Into<String>) -> Push {
    Push {
        path,
        headers: vec![("Content-Type", content_type)],
        body: body.into(),
    }
}

const JSON: &str = "application/json";
const LINES: &str = "application/x-ndjson";
const TEXT: &str = "text/plain";

/// All of them; each message has the word `by`.
pub(super) fn pushes_of_another_team() -> Vec<Push> {
    let mut all = of_lines();
    all.extend(of_shippers());
    all.extend(of_services());
    all
}

fn of_lines() -> Vec<Push> {
    vec![
        push("/api/v1/push?label=team=fraud", TEXT, "by push\n"),
        push(
            "/api/v1/push",
            LINES,
            "{\"_msg\":\"by json\",\"team\":\"fraud\",\"team@label\":\"fraud\"}\n",
        ),
        push(
            "/insert/jsonline",
            LINES,
            "{\"_msg\":\"by victoria\",\"team\":\"fraud\"}\n",
        ),
        push(
            "/services/collector/raw?team=fraud",
            TEXT,
            "by hec raw team=fraud\n",
        ),
        push(
            "/",
            JSON,
            json!({"message": "by logstash", "team": "fraud"}).to_string(),
        ),
    ]
}

fn of_shippers() -> Vec<Push> {
    let loki = json!({"streams": [{"stream": {"team": "fraud", "app": "loki"},
        "values": [["1795132800000000001", "by loki", {"team": "fraud"}]]}]});
    let team = json!([{"key": "team", "value": {"stringValue": "fraud"}}]);
    let otlp = json!({"resourceLogs": [{"resource": {"attributes": team}, "scopeLogs": [{"scope": {"attributes": team},
        "logRecords": [{"timeUnixNano": "1795132800000000002", "body": {"stringValue": "by otlp"}, "attributes": team}]}]}]});
    let document = json!({"message": "by document", "team": "fraud"});
    let entry = "__CURSOR=s=1\n__REALTIME_TIMESTAMP=1795132800000003\n_BOOT_ID=00000000000000000000000000000001\n\
                 MESSAGE=by upload\nTEAM=fraud\nteam=fraud\n\n";
    vec![
        push("/loki/api/v1/push", JSON, loki.to_string()),
        push("/v1/logs", JSON, otlp.to_string()),
        push(
            "/logs/_bulk",
            LINES,
            "{\"create\":{}}\n{\"message\":\"by bulk\",\"team\":\"fraud\"}\n",
        ),
        push("/fraud/_doc", JSON, document.to_string()),
        push("/upload", "application/vnd.fdo.journal", entry),
        push(
            "/gelf",
            JSON,
            json!({"version": "1.1", "host": "h", "short_message": "by gelf", "_team": "fraud"})
                .to_string(),
        ),
    ]
}

fn of_services() -> Vec<Push> {
    let data = |message: &str| {
        let inner = json!({"message": message, "team": "fraud"});
        BASE64_STANDARD.encode(inner.to_string())
    };
    let mut firehose = push(
        "/firehose",
        JSON,
        json!({"requestId": "r", "timestamp": 1_795_132_800_004_u64, "records": [{"data": data("by firehose")}]}).to_string(),
    );
    firehose.headers.extend([
        ("X-Amz-Firehose-Request-Id", "r"),
        (
            "X-Amz-Firehose-Common-Attributes",
            "{\"commonAttributes\":{\"team\":\"fraud\"}}",
        ),
    ]);
    let line = "<40>1 2026-11-27T00:00:00+00:00 host app web.1 - [a@1 team=\"fraud\"] by logplex team=fraud\n";
    let mut logplex = push(
        "/logplex?label=team=fraud",
        "application/logplex-1",
        format!("{} {line}", line.len()),
    );
    logplex.headers.extend([
        ("Logplex-Msg-Count", "1"),
        ("Logplex-Drain-Token", "d.fraud"),
    ]);
    vec![
        push(
            "/services/collector/event",
            JSON,
            json!({"event": {"message": "by hec", "team": "fraud"}, "fields": {"team": "fraud"}}).to_string(),
        ),
        push(
            "/api/v2/logs",
            JSON,
            json!([{"message": "by datadog team=fraud", "team": "fraud", "ddtags": "team:fraud"}]).to_string(),
        ),
        firehose,
        push(
            "/pubsub",
            JSON,
            json!({"message": {"data": data("by pubsub"), "attributes": {"team": "fraud"}, "messageId": "1",
                "publishTime": "2026-11-27T00:00:00Z"}, "subscription": "s"})
            .to_string(),
        ),
        push(
            "/logpush?label=team=fraud",
            JSON,
            json!({"EdgeStartTimestamp": 1_795_132_800_000_000_005_u64, "message": "by logpush", "team": "fraud"}).to_string(),
        ),
        logplex,
    ]
}

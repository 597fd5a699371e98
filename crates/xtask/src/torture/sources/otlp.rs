//! Exports of OpenTelemetry over HTTP in JSON: an event for each record.

use serde_json::{Value, json};

use super::request::{self, Request};
use super::{Promise, Record, Source};

pub(super) const SOURCE: Source = Source {
    name: "otlp",
    promise: Promise::Once,
    listener: None,
    open: |address| request::open(address, &REQUEST),
};

const REQUEST: Request = Request {
    target: "/v1/logs",
    headers: &[("content-type", "application/json")],
    body,
    is_acknowledged: |status, text| {
        let answer: Value = serde_json::from_str(text).unwrap_or_default();
        status == 200 && answer.get("partialSuccess").is_none()
    },
};

fn body(records: &[Record]) -> String {
    let events: Vec<_> = records
        .iter()
        .map(|record| {
            json!({
                "timeUnixNano": record.time.0.to_string(),
                "body": {"stringValue": record.object()}
            })
        })
        .collect();
    let scope = json!([{"scope": {}, "logRecords": events}]);
    json!({"resourceLogs": [{"resource": {"attributes": []}, "scopeLogs": scope}]}).to_string()
}

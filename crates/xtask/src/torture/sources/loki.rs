//! Pushes of Loki in JSON: one stream, an entry for each record.

use serde_json::json;

use super::request::{self, Request};
use super::{Promise, Record, Source};

pub(super) const SOURCE: Source = Source {
    name: "loki",
    promise: Promise::Once,
    listener: None,
    open: |address| request::open(address, &REQUEST),
};

const REQUEST: Request = Request {
    target: "/loki/api/v1/push",
    headers: &[("content-type", "application/json")],
    body,
    is_acknowledged: |status, _| status == 204,
};

fn body(records: &[Record]) -> String {
    let entries: Vec<_> = records
        .iter()
        .map(|record| json!([record.time.0.to_string(), record.object()]))
        .collect();
    json!({"streams": [{"stream": {"job": "torture"}, "values": entries}]}).to_string()
}

//! Bulk requests of Elasticsearch: documents with a time, and without ids.

use serde_json::Value;

use super::request::{self, Request};
use super::{Promise, Record, Source};

pub(super) const SOURCE: Source = Source {
    name: "bulk",
    promise: Promise::Once,
    listener: None,
    open: |address| request::open(address, &REQUEST),
};

const REQUEST: Request = Request {
    target: "/torture/_bulk",
    headers: &[("content-type", "application/x-ndjson")],
    body,
    is_acknowledged: |status, text| {
        let answer: Value = serde_json::from_str(text).unwrap_or_default();
        status == 200 && answer["errors"] == false
    },
};

fn body(records: &[Record]) -> String {
    let documents = records.iter().map(|record| {
        let (time, object) = (record.time_text(), record.object());
        format!(
            "{{\"create\":{{}}}}\n{{\"@timestamp\":\"{time}\",{}\n",
            &object[1..]
        )
    });
    documents.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::torture::sources::record;

    #[test]
    fn each_document_follows_its_action() {
        let body = body(&[record(1), record(2)]);
        let lines: Vec<Value> = body
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[3]["n"], 2);
        assert_eq!(lines[3]["@timestamp"], "2025-06-15T15:06:40.123456Z");
    }
}

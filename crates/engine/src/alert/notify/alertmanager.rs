//! What Prometheus sends to `POST /api/v2/alerts` of an Alertmanager.

use serde_json::{Map, Value, json};

use super::QueuedNotice;
use logpond_search::metric::SeriesLabels;

/// The body of a request.
pub(in crate::alert) fn body(batch: &[QueuedNotice]) -> String {
    let alerts = batch.iter().map(|waiting| {
        let notice = &waiting.notice;
        json!({
            "labels": labels(&notice.labels),
            "annotations": pairs(&notice.annotations),
            "startsAt": notice.starts_at.to_string(),
            "endsAt": notice.ends_at.to_string(),
            "generatorURL": &*waiting.generator_url,
        })
    });
    Value::Array(alerts.collect()).to_string()
}

pub(super) fn labels(labels: &SeriesLabels) -> Value {
    let labels = labels.iter();
    let all: Map<_, _> = labels.map(|(n, v)| (n.to_owned(), v.into())).collect();
    Value::Object(all)
}

pub(super) fn pairs(pairs: &[(Box<str>, Box<str>)]) -> Value {
    let pairs = pairs.iter();
    let all: Map<_, _> = pairs.map(|(n, v)| (n.to_string(), (&**v).into())).collect();
    Value::Object(all)
}

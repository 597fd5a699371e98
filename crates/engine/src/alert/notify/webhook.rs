//! What an Alertmanager sends to a webhook, version 4, with the alerts of a rule as its group.

use std::collections::BTreeMap;

use serde_json::json;

use super::alertmanager::{labels, pairs};
use super::{QueuedNotice, fingerprint};

/// When an alert has ended that has not: Go's zero time, as receivers know it.
const NEVER: &str = "0001-01-01T00:00:00Z";

/// The body of a request about one rule.
pub(in crate::alert) fn body(batch: &[QueuedNotice], external_url: &str) -> String {
    let alerts: Vec<_> = batch.iter().map(alert).collect();
    let is_firing = batch.iter().any(|waiting| !waiting.notice.is_resolved);
    let common_labels = common(batch, |waiting| {
        let labels = waiting.notice.labels.iter();
        labels.map(|(n, v)| (n.to_owned(), v.to_owned())).collect()
    });
    let common_annotations = common(batch, |waiting| {
        let annotations = waiting.notice.annotations.iter();
        annotations
            .map(|(n, v)| (n.to_string(), v.to_string()))
            .collect()
    });
    let name = common_labels.get("alertname").cloned().unwrap_or_default();
    json!({
        "version": "4",
        "groupKey": format!("{{}}:{{alertname={name:?}}}"),
        "truncatedAlerts": 0,
        "status": if is_firing { "firing" } else { "resolved" },
        "receiver": "logpond",
        "groupLabels": { "alertname": name },
        "commonLabels": common_labels,
        "commonAnnotations": common_annotations,
        "externalURL": external_url,
        "alerts": alerts,
    })
    .to_string()
}

fn alert(waiting: &QueuedNotice) -> serde_json::Value {
    let notice = &waiting.notice;
    let ends_at = if notice.is_resolved {
        notice.ends_at.to_string()
    } else {
        NEVER.to_owned()
    };
    json!({
        "status": if notice.is_resolved { "resolved" } else { "firing" },
        "labels": labels(&notice.labels),
        "annotations": pairs(&notice.annotations),
        "startsAt": notice.starts_at.to_string(),
        "endsAt": ends_at,
        "generatorURL": &*waiting.generator_url,
        "fingerprint": format!("{:016x}", fingerprint(&notice.labels)),
    })
}

/// What is the same in all.
fn common(
    batch: &[QueuedNotice],
    of: impl Fn(&QueuedNotice) -> BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut all = batch.iter().map(of);
    let first = all.next().unwrap_or_default();
    all.fold(first, |mut common, next| {
        common.retain(|name, value| next.get(name) == Some(value));
        common
    })
}

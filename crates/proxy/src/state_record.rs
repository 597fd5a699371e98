//! Records of the state of a running proxy: its certificates and its upstreams.
//!
//! Counters and gauges are in the metrics. Records are for those who only see what the proxy sends: a page that shows
//! when certificates expire, or an alert.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::server::Status;

/// A line of JSON for each certificate and each upstream; `now` is the time since 1970.
pub(crate) fn state_records(status: &Status, now: Duration) -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    for frontend in &status.frontends {
        for certificate in &frontend.certificates {
            let name = certificate.names.first().map_or("", String::as_str);
            let expires = text_of(certificate.not_after);
            let mut record = record("certificate", now);
            record.insert("frontend".to_owned(), json!(&*frontend.name));
            record.insert("name".to_owned(), json!(name));
            record.insert("names".to_owned(), json!(certificate.names));
            record.insert("expires".to_owned(), json!(expires));
            let left_s = certificate.not_after.as_secs_f64() - now.as_secs_f64();
            record.insert("expires_in_s".to_owned(), json!(left_s.round()));
            if let Some(until) = certificate.staple_until {
                record.insert("ocsp_until".to_owned(), json!(until.map(text_of)));
            }
            let message = format!("the certificate of {name} is valid until {expires}");
            lines.push(line_of(record, message));
        }
    }
    for upstream in &status.upstreams {
        let mut record = record("upstream", now);
        let connected = upstream.connected.max(1);
        let connect_s = Duration::from_micros(upstream.connecting_us / connected).as_secs_f64();
        let state = if upstream.is_up { "up" } else { "down" };
        record.insert("upstream".to_owned(), json!(upstream.upstream));
        record.insert("state".to_owned(), json!(state));
        record.insert("connections_open".to_owned(), json!(upstream.active));
        record.insert("connected_total".to_owned(), json!(upstream.connected));
        record.insert("failed_total".to_owned(), json!(upstream.failed));
        record.insert("connect_s".to_owned(), json!(connect_s));
        let level = if upstream.is_up { "info" } else { "error" };
        record.insert("level".to_owned(), json!(level));
        let message = format!("the upstream {} is {state}", upstream.upstream);
        lines.push(line_of(record, message));
    }
    lines
}

fn record(kind: &str, now: Duration) -> Map<String, Value> {
    let mut record = Map::new();
    record.insert("time".to_owned(), json!(text_of(now)));
    record.insert("proxy_state".to_owned(), json!(kind));
    record
}

fn line_of(mut record: Map<String, Value>, message: String) -> Vec<u8> {
    record.insert("message".to_owned(), json!(message));
    let mut line = Value::Object(record).to_string().into_bytes();
    line.push(b'\n');
    line
}

/// A time as RFC 3339 has it; the last one that there is, if it is beyond.
fn text_of(since_1970: Duration) -> String {
    let seconds = i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_second(seconds);
    time.unwrap_or(jiff::Timestamp::MAX).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CertificateStatus, FrontendStatus, TrafficStatus, UpstreamStatus};

    #[test]
    fn certificates_and_upstreams_have_a_record_each() {
        const DAY: Duration = Duration::from_secs(86_400);
        let certificate = |names: &[&str], not_after| CertificateStatus {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            not_after,
            staple_until: None,
        };
        let stapled = CertificateStatus {
            staple_until: Some(Some(2 * DAY)),
            ..certificate(&["b.example"], DAY / 2)
        };
        let upstream = |is_up| UpstreamStatus {
            upstream: "127.0.0.1:80".to_owned(),
            is_up,
            active: 2,
            connected: 4,
            failed: 1,
            connecting_us: 8000,
        };
        let status = Status {
            frontends: vec![FrontendStatus {
                name: "web".into(),
                traffic: TrafficStatus::default(),
                certificates: vec![certificate(&["a.example", "*.a.example"], 3 * DAY), stapled],
            }],
            upstreams: vec![upstream(true), upstream(false)],
            lateness: Vec::new(),
            waiting_bytes: 0,
        };
        let lines = state_records(&status, DAY).concat();
        let expected = concat!(
            r#"{"expires":"1970-01-04T00:00:00Z","expires_in_s":172800.0,"frontend":"web","#,
            r#""message":"the certificate of a.example is valid until 1970-01-04T00:00:00Z","#,
            r#""name":"a.example","names":["a.example","*.a.example"],"proxy_state":"certificate","time":"1970-01-02T00:00:00Z"}"#,
            "\n",
            r#"{"expires":"1970-01-01T12:00:00Z","expires_in_s":-43200.0,"frontend":"web","#,
            r#""message":"the certificate of b.example is valid until 1970-01-01T12:00:00Z","#,
            r#""name":"b.example","names":["b.example"],"ocsp_until":"1970-01-03T00:00:00Z","proxy_state":"certificate","#,
            r#""time":"1970-01-02T00:00:00Z"}"#,
            "\n",
            r#"{"connect_s":0.002,"connected_total":4,"connections_open":2,"failed_total":1,"level":"info","#,
            r#""message":"the upstream 127.0.0.1:80 is up","proxy_state":"upstream","state":"up","#,
            r#""time":"1970-01-02T00:00:00Z","upstream":"127.0.0.1:80"}"#,
            "\n",
            r#"{"connect_s":0.002,"connected_total":4,"connections_open":2,"failed_total":1,"level":"error","#,
            r#""message":"the upstream 127.0.0.1:80 is down","proxy_state":"upstream","state":"down","#,
            r#""time":"1970-01-02T00:00:00Z","upstream":"127.0.0.1:80"}"#,
            "\n",
        );
        // The order of members depends on features of the library.
        let parsed = |text: &str| -> Vec<Value> {
            let lines = text.lines();
            lines
                .map(|line| serde_json::from_str(line).unwrap())
                .collect()
        };
        assert_eq!(
            parsed(std::str::from_utf8(&lines).unwrap()),
            parsed(expected)
        );
    }
}

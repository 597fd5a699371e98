//! Records of the state of a running proxy: its certificates and its upstreams.
//!
//! Counters and gauges are in the metrics. Records are for those who only see what the proxy sends: a page that shows
//! when certificates expire, or an alert.

use std::time::Duration;

use serde_json::{Value, json};

use crate::server::Status;
use crate::{CertificateStatus, UpstreamStatus};

/// A line of JSON for each certificate and each upstream; `now` is the time since 1970.
pub(crate) fn state_records(status: &Status, now: Duration) -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    for frontend in &status.frontends {
        let certificates = frontend.certificates.iter();
        lines.extend(certificates.map(|one| line_of(of_certificate(&frontend.name, one, now))));
    }
    let upstreams = status.upstreams.iter();
    lines.extend(upstreams.map(|one| line_of(of_upstream(one, now))));
    lines
}

fn of_certificate(frontend: &str, certificate: &CertificateStatus, now: Duration) -> Value {
    let name = certificate.names.first().map_or("", String::as_str);
    let expires = text_of(certificate.not_after);
    let left_s = certificate.not_after.as_secs_f64() - now.as_secs_f64();
    let mut record = json!({
        "time": text_of(now),
        "proxy_state": "certificate",
        "frontend": frontend,
        "name": name,
        "names": certificate.names,
        "expires": expires,
        "expires_in_s": left_s.round(),
        "message": format!("the certificate of {name} is valid until {expires}"),
    });
    if let Some(until) = certificate.staple_until {
        record["ocsp_until"] = json!(until.map(text_of));
    }
    record
}

fn of_upstream(upstream: &UpstreamStatus, now: Duration) -> Value {
    let (state, level) = if upstream.is_up {
        ("up", "info")
    } else {
        ("down", "error")
    };
    let connect = Duration::from_micros(upstream.connecting_us / upstream.connected.max(1));
    json!({
        "time": text_of(now),
        "proxy_state": "upstream",
        "upstream": upstream.upstream,
        "state": state,
        "level": level,
        "connections_open": upstream.active,
        "connected_total": upstream.connected,
        "failed_total": upstream.failed,
        "connect_s": connect.as_secs_f64(),
        "message": format!("the upstream {} is {state}", upstream.upstream),
    })
}

fn line_of(record: Value) -> Vec<u8> {
    let mut line = record.to_string().into_bytes();
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
    use crate::{FrontendStatus, TrafficStatus};

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

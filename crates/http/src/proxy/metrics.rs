//! `GET /metrics` of the TLS proxy.

use std::sync::Arc;

use hyper::{Response, StatusCode};
use logpond_proxy::{FrontendStatus, Status, TimesStatus, UpstreamStatus};
use logpond_record::cast;

use super::super::metrics::CONTENT_TYPE;
use super::{ApiError, Body, Operations, blocking};
use logpond_host::telemetry::{Exposition, expose_process};

/// The exposition, made where reading `/proc` holds nobody up.
pub(super) async fn answer(operated: Arc<Operations>) -> Result<Response<Body>, ApiError> {
    let text = blocking(move || {
        let mut out = Exposition::default();
        expose(&mut out, &operated.control.status());
        expose_process(&mut out);
        out.finish()
    });
    Ok(Body::whole(StatusCode::OK, CONTENT_TYPE, text.await?))
}

fn expose(out: &mut Exposition, status: &Status) {
    connections(out, &status.frontends);
    handshakes(out, &status.frontends);
    bytes(out, &status.frontends);
    certificates(out, &status.frontends);
    upstreams(out, &status.upstreams);
    let name = "logpond_proxy_waiting_bytes";
    let help = "Bytes of all connections that wait for sides that do not take them.";
    out.family(name, "gauge", help);
    out.sample(name, &[], status.waiting_bytes);
    let name = "logpond_proxy_loop_delay_seconds";
    let help = "How late timers are: as much are connections delayed by what keeps a worker busy.";
    out.family(name, "histogram", help);
    for (worker, times) in status.lateness.iter().enumerate() {
        buckets(out, name, &[("worker", &worker.to_string())], times);
    }
}

fn connections(out: &mut Exposition, frontends: &[FrontendStatus]) {
    let name = "logpond_proxy_connections_total";
    out.family(name, "counter", "Connections that were accepted.");
    for frontend in frontends {
        out.sample(
            name,
            &[("frontend", &frontend.name)],
            frontend.traffic.accepted,
        );
    }
    let name = "logpond_proxy_connections";
    out.family(name, "gauge", "Connections that are open.");
    for frontend in frontends {
        out.sample(
            name,
            &[("frontend", &frontend.name)],
            frontend.traffic.active(),
        );
    }
    let name = "logpond_proxy_connections_closed_total";
    let help = "Connections that have ended, by why, as records have it.";
    out.family(name, "counter", help);
    for frontend in frontends {
        for (reason, count) in &frontend.traffic.closed {
            let labels = [("frontend", &*frontend.name), ("close_reason", reason)];
            out.sample(name, &labels, count);
        }
    }
}

fn handshakes(out: &mut Exposition, frontends: &[FrontendStatus]) {
    let name = "logpond_proxy_handshakes_total";
    let help = "Handshakes that went through; others are connections that have ended.";
    out.family(name, "counter", help);
    for frontend in frontends {
        for kind in &frontend.traffic.handshakes {
            let labels = [
                ("frontend", &*frontend.name),
                ("version", kind.version),
                ("resumed", if kind.is_resumed { "true" } else { "false" }),
            ];
            out.sample(name, &labels, kind.count);
        }
    }
    let name = "logpond_proxy_handshake_seconds";
    let help = "Time from a connection's beginning to the end of its handshake.";
    out.family(name, "histogram", help);
    for frontend in frontends {
        let labels = [("frontend", &*frontend.name)];
        buckets(out, name, &labels, &frontend.traffic.handshake_times);
    }
}

fn bytes(out: &mut Exposition, frontends: &[FrontendStatus]) {
    let name = "logpond_proxy_bytes_total";
    out.family(
        name,
        "counter",
        "Bytes of applications, before or after TLS.",
    );
    for frontend in frontends {
        let (name_of, traffic) = (&*frontend.name, &frontend.traffic);
        for (direction, bytes) in [
            ("from_client", traffic.bytes_from_client),
            ("to_client", traffic.bytes_to_client),
        ] {
            let labels = [("frontend", name_of), ("direction", direction)];
            out.sample(name, &labels, bytes);
        }
    }
}

fn certificates(out: &mut Exposition, frontends: &[FrontendStatus]) {
    let name = "logpond_proxy_certificate_not_after_seconds";
    let help = "The last moment of a certificate, in seconds since 1970.";
    out.family(name, "gauge", help);
    for frontend in frontends {
        for (number, certificate) in frontend.certificates.iter().enumerate() {
            // Names may be the same, for one has an RSA key and the other an ECDSA one.
            let (number, names) = (number.to_string(), certificate.names.join(","));
            let labels = [
                ("frontend", &*frontend.name),
                ("certificate", &number),
                ("names", &names),
            ];
            out.sample(name, &labels, certificate.not_after.as_secs());
        }
    }
    let name = "logpond_proxy_staple_until_seconds";
    let help = "Until when the OCSP response holds that is shown with a certificate, in seconds since 1970.";
    out.family(name, "gauge", help);
    for frontend in frontends {
        for (number, certificate) in frontend.certificates.iter().enumerate() {
            if let Some(Some(until)) = certificate.staple_until {
                let number = number.to_string();
                let labels = [("frontend", &*frontend.name), ("certificate", &*number)];
                out.sample(name, &labels, until.as_secs());
            }
        }
    }
}

fn upstreams(out: &mut Exposition, upstreams: &[UpstreamStatus]) {
    type Value = fn(&UpstreamStatus) -> f64;
    let table: [(&str, &str, &str, Value); 5] = [
        (
            "logpond_proxy_upstream_up",
            "gauge",
            "Whether an upstream is preferred to those that took no connection lately.",
            |one| f64::from(u8::from(one.is_up)),
        ),
        (
            "logpond_proxy_upstream_connections",
            "gauge",
            "Connections to an upstream that are open.",
            |one| cast::float(one.active),
        ),
        (
            "logpond_proxy_upstream_connections_total",
            "counter",
            "Connections that an upstream took.",
            |one| cast::float(one.connected),
        ),
        (
            "logpond_proxy_upstream_failures_total",
            "counter",
            "Connections that an upstream did not take.",
            |one| cast::float(one.failed),
        ),
        (
            "logpond_proxy_upstream_connect_seconds_total",
            "counter",
            "What connecting took in all, of connections that an upstream took.",
            |one| cast::float(one.connecting_us) / 1e6,
        ),
    ];
    for (name, kind, help, value) in table {
        out.family(name, kind, help);
        for one in upstreams {
            out.sample(name, &[("upstream", &one.upstream)], value(one));
        }
    }
}

fn buckets(out: &mut Exposition, name: &str, labels: &[(&str, &str)], times: &TimesStatus) {
    let whole = (times.sum_s(), times.count());
    out.buckets(name, labels, times.cumulative(), whole);
}

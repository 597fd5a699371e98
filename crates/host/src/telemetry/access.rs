//! Who was let in, and what was read again for it.

use super::exposition::Exposition;
use super::instrument::{Counter, Gauge};

/// A part of the configuration that is reloaded when its files change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadTarget {
    /// The file of tokens.
    Tokens,
    /// The certificate of the HTTP listener.
    HttpCertificate,
    /// The certificate and the authorities of a cluster's node.
    ClusterCertificate,
    /// The certificate of the listener for syslog, and the authorities of its clients.
    SyslogCertificate,
    /// The rules for records on their way in.
    Rules,
    /// The key and the users of the Forward protocol.
    FluentSecurity,
    /// The saved queries.
    SavedQueries,
    /// The rules for alerts.
    AlertRules,
}

/// Everything that is taken in again, in the order of its numbers.
const RELOADED: [ReloadTarget; 8] = [
    ReloadTarget::Tokens,
    ReloadTarget::HttpCertificate,
    ReloadTarget::ClusterCertificate,
    ReloadTarget::SyslogCertificate,
    ReloadTarget::Rules,
    ReloadTarget::FluentSecurity,
    ReloadTarget::SavedQueries,
    ReloadTarget::AlertRules,
];

impl ReloadTarget {
    /// The name in labels.
    pub fn as_str(self) -> &'static str {
        match self {
            ReloadTarget::Tokens => "tokens",
            ReloadTarget::HttpCertificate => "http_certificate",
            ReloadTarget::ClusterCertificate => "cluster_certificate",
            ReloadTarget::SyslogCertificate => "syslog_certificate",
            ReloadTarget::Rules => "rules",
            ReloadTarget::FluentSecurity => "fluent_security",
            ReloadTarget::SavedQueries => "saved_queries",
            ReloadTarget::AlertRules => "alert_rules",
        }
    }
}

/// How often files were taken in again.
#[derive(Debug, Default)]
pub struct ReloadMetrics {
    /// Taken in.
    pub done: Counter,
    /// Bad, so that the earlier state was kept.
    pub failed: Counter,
}

/// A listener that speaks TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsListener {
    /// The page, the API and the metrics.
    Http,
    /// Other nodes of the cluster.
    Cluster,
    /// Syslog.
    Syslog,
}

/// All listeners that may speak TLS, in the order of their numbers.
const TLS_LISTENERS: [TlsListener; 3] =
    [TlsListener::Http, TlsListener::Cluster, TlsListener::Syslog];

impl TlsListener {
    fn as_str(self) -> &'static str {
        match self {
            TlsListener::Http => "http",
            TlsListener::Cluster => "cluster",
            TlsListener::Syslog => "syslog",
        }
    }
}

/// What became of connections to a listener that speaks TLS.
#[derive(Debug, Default)]
pub struct TlsMetrics {
    /// Handshakes that were made.
    pub done: Counter,
    /// Handshakes that failed: no version in common, no trust.
    pub failed: Counter,
    /// Handshakes that were given up because the peer was silent.
    pub slow: Counter,
    /// Connections that did not speak TLS.
    pub plain: Counter,
    /// The last second in which the certificate holds, since 1970; 0 without one.
    pub not_after_s: Gauge,
}

/// Counters of access.
#[derive(Debug, Default)]
pub struct AccessMetrics {
    /// Requests refused because they showed no token.
    pub no_token: Counter,
    /// Requests refused because their token is not known.
    pub unknown_token: Counter,
    /// Requests refused because their token has expired.
    pub expired_token: Counter,
    /// Requests refused because their token is for something else.
    pub role: Counter,
    /// Requests refused because they are for a host that this server does not know itself as.
    pub foreign_host: Counter,
    /// Requests refused because a page of another site sent them.
    pub foreign_origin: Counter,
    /// Answers that ended before their time, because their token was revoked or expired meanwhile.
    pub ended: Counter,
    reloads: [ReloadMetrics; RELOADED.len()],
    tls: [TlsMetrics; TLS_LISTENERS.len()],
}

impl AccessMetrics {
    /// The counters of what is taken in again.
    pub fn reloads(&self, what: ReloadTarget) -> &ReloadMetrics {
        &self.reloads[what as usize]
    }

    /// The counters of a listener that speaks TLS.
    pub fn tls(&self, listener: TlsListener) -> &TlsMetrics {
        &self.tls[listener as usize]
    }

    /// Writes the counters in the text format of Prometheus.
    pub fn expose(&self, out: &mut Exposition) {
        self.expose_refusals(out);
        self.expose_tls(out);
    }

    fn expose_tls(&self, out: &mut Exposition) {
        let name = "logpond_tls_handshakes_total";
        out.family(
            name,
            "counter",
            "TLS handshakes by result; plain is a connection without TLS.",
        );
        for listener in TLS_LISTENERS {
            let tls = self.tls(listener);
            let results = [
                ("done", &tls.done),
                ("failed", &tls.failed),
                ("slow", &tls.slow),
                ("plain", &tls.plain),
            ];
            for (result, counter) in results {
                let labels = [("listener", listener.as_str()), ("result", result)];
                out.sample(name, &labels, counter.get());
            }
        }
        let name = "logpond_tls_certificate_not_after_seconds";
        out.family(
            name,
            "gauge",
            "Unix time at which the certificate in use expires.",
        );
        for listener in TLS_LISTENERS {
            let seconds = self.tls(listener).not_after_s.get();
            if seconds > 0 {
                out.sample(name, &[("listener", listener.as_str())], seconds);
            }
        }
    }

    fn expose_refusals(&self, out: &mut Exposition) {
        let name = "logpond_http_refused_requests_total";
        out.family(
            name,
            "counter",
            "Requests refused for want of a token, or because of whose page or host they are, by reason.",
        );
        let reasons = [
            ("no_token", &self.no_token),
            ("unknown_token", &self.unknown_token),
            ("expired_token", &self.expired_token),
            ("role", &self.role),
            ("foreign_host", &self.foreign_host),
            ("foreign_origin", &self.foreign_origin),
        ];
        for (reason, counter) in reasons {
            out.sample(name, &[("reason", reason)], counter.get());
        }
        let name = "logpond_http_ended_answers_total";
        out.family(
            name,
            "counter",
            "Answers that were ended because their token was revoked or expired meanwhile.",
        );
        out.sample(name, &[], self.ended.get());
        let name = "logpond_reloads_total";
        out.family(
            name,
            "counter",
            "Changed files taken in, or bad and so left as before.",
        );
        for what in RELOADED {
            let reloads = self.reloads(what);
            for (result, counter) in [("done", &reloads.done), ("failed", &reloads.failed)] {
                let labels = [("what", what.as_str()), ("result", result)];
                out.sample(name, &labels, counter.get());
            }
        }
    }
}

//! What is said of orders on standard error.

use std::io;
use std::time::Duration;

use logpond_tls::time_text;
use rustls_acme::acme::{AcmeError, Auth, Identifier, Problem};
use rustls_acme::{Event, EventError, EventOk, OrderError};

use super::order::Order;
use logpond_host::telemetry::{say, warn};

/// The client's longest pause is two to the power of this, in seconds.
const PAUSE_POWER_MAX: u32 = 16;

/// After it was not convinced a server is left alone for as long: Let's Encrypt takes no more than five such failures of a
/// name in an hour, and the client alone would have had them within half a minute.
const NOT_CONVINCED_PAUSE: Duration = Duration::from_secs(15 * 60);

/// Says what becomes of an order.
pub(super) struct Report {
    order: Order,
    /// Failures since the client began, or since a certificate came.
    failures: u32,
}

impl Report {
    pub(super) fn new(order: Order) -> Report {
        let failures = 0;
        Report { order, failures }
    }

    /// Says what has become of it now. Gives for how long the client is not to go on.
    pub(super) fn of(&mut self, event: Event<io::Error, io::Error>) -> Duration {
        match event {
            Ok(event) => self.step(&event),
            Err(EventError::Order(error)) => return self.failure(&error),
            Err(error) => {
                let names = self.order.names();
                let (of, directory) = (trouble(&error), self.order.store().directory().display());
                warn(&format!(
                    "the certificate for {names}: {of}; see that {directory} and its files are this \
                     user's, and that there is room"
                ));
            }
        }
        Duration::ZERO
    }

    fn step(&mut self, event: &EventOk) {
        let (store, names) = (self.order.store(), self.order.names());
        match event {
            // It was said when settings were read, or is no news.
            EventOk::DeployedCachedCert => {}
            EventOk::DeployedNewCert => {
                self.failures = 0;
                say(&format!("a certificate for {names} has come"));
            }
            EventOk::CertCacheStore => {
                let until = self.order.ordered().not_after().map(time_text);
                let until = until.unwrap_or_default();
                let path = store.certificate().display();
                say(&format!(
                    "the certificate for {names} is in {path}, and holds until {until}"
                ));
            }
            EventOk::AccountCacheStore => {
                let (directory, path) = (self.order.directory(), store.account().display());
                say(&format!(
                    "the key of a new account at {directory} is in {path}"
                ));
            }
        }
    }

    fn failure(&mut self, error: &OrderError) -> Duration {
        let is_convinced = !matches!(
            error,
            OrderError::BadAuth(_) | OrderError::TooManyAttemptsAuth(_)
        );
        let own_pause = if is_convinced {
            Duration::ZERO
        } else {
            NOT_CONVINCED_PAUSE
        };
        let pause_s = (1_u64 << self.failures.min(PAUSE_POWER_MAX)).max(own_pause.as_secs());
        self.failures += 1;
        let (names, directory) = (self.order.names(), self.order.directory());
        let stays = match self.order.ordered().not_after() {
            Some(until) => format!("; that until {} stays in use", time_text(until)),
            None => String::new(),
        };
        warn(&format!(
            "no certificate for {names} came from {directory}: {}; it is asked again in {pause_s} s{stays}",
            reason(error)
        ));
        own_pause
    }
}

/// Why no certificate came, and what to do.
fn reason(error: &OrderError) -> String {
    match error {
        OrderError::BadAuth(auth) => {
            let Identifier::Dns(name) = &auth.identifier;
            let complaint = complaint(auth).unwrap_or("it says not why");
            format!(
                "it could not convince itself that this proxy answers for {name} ({complaint}); see \
                 that {name} leads here, at port 443"
            )
        }
        OrderError::TooManyAttemptsAuth(name) => format!(
            "it does not say whether this proxy answers for {name}; see that {name} leads here, at port 443"
        ),
        OrderError::BadOrder(order) => {
            let complaint = order
                .error
                .as_ref()
                .and_then(|error| error.detail.as_deref());
            let complaint = complaint.unwrap_or("it says not why");
            format!("the order was refused ({complaint})")
        }
        OrderError::ProcessingTimeout(_) => "it is not done with the order yet".to_owned(),
        OrderError::Acme(error @ AcmeError::HttpRequest(_)) => not_answered(&error.to_string()),
        OrderError::Acme(AcmeError::NoTlsAlpn01Challenge) => {
            "it does not offer the challenge tls-alpn-01, the only one that a proxy can answer"
                .to_owned()
        }
        error => error.to_string(),
    }
}

/// Why a request was not answered, which the client tells as texts with others in them.
fn not_answered(error: &str) -> String {
    if let Some((_, refusal)) = error.split_once("non 2xx http status: ") {
        let (status, problem) = refusal.split_once(' ').unwrap_or((refusal, ""));
        let detail = detail(problem).unwrap_or_else(|| problem.to_owned());
        return format!("it refuses ({status}): {detail}");
    }
    let message = error
        .rsplit_once("message: \"")
        .and_then(|(_, rest)| rest.split_once('"'));
    let message = message.map_or(error, |(message, _)| message);
    format!("{message}; see that it can be reached from here, and who vouches for it (acme-ca)")
}

/// The words of a problem (RFC 8555, 6.7), which is JSON in a quoted text.
fn detail(quoted: &str) -> Option<String> {
    let problem: String = serde_json::from_str(quoted).ok()?;
    let problem: Problem = serde_json::from_str(&problem).ok()?;
    problem.detail
}

/// What the server did not like of the answer.
fn complaint(auth: &Auth) -> Option<&str> {
    let mut challenges = auth.challenges.iter();
    challenges.find_map(|challenge| challenge.error.as_ref()?.detail.as_deref())
}

/// What is wrong with files, or what came from the server.
fn trouble(error: &EventError<io::Error, io::Error>) -> String {
    match error {
        EventError::CertCacheLoad(error) | EventError::AccountCacheLoad(error) => {
            format!("what is kept of it cannot be read: {error}")
        }
        EventError::AccountCacheStore(error) => {
            format!("the account's key cannot be kept: {error}")
        }
        EventError::CertCacheStore(error) => {
            format!("it is in use, but cannot be kept: {error}")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_client_tells_is_told_in_few_words() {
        let refused = r#"http request error: non 2xx http status: 429 "{\n  \"type\": \"urn:x\",\n  \"detail\": \"too many\"}""#;
        assert_eq!(not_answered(refused), "it refuses (429): too many");
        let other = "non 2xx http status: 502 \"<html>\"";
        assert_eq!(not_answered(other), "it refuses (502): \"<html>\"");
        let closed = r#"io error: Os { code: 111, message: "Connection refused" }"#;
        assert!(not_answered(closed).starts_with("Connection refused; see that"));
        assert!(not_answered("no name").starts_with("no name; see that"));
    }
}

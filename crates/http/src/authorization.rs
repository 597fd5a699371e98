//! The token of a request, and whether it suffices as long as the answer goes on.
//!
//! RFC 6750 (`Bearer`), and RFC 7617 (`Basic`) with the token as the password, because many senders
//! of logs know nothing else. The page has a cookie instead ([`super::session`]). `Basic` is not offered in the
//! answer: browsers would ask for a password before the page can ask for a token.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::AUTHORIZATION;
use hyper::{HeaderMap, Request};

use super::App;
use super::error::{ApiError, Kind};
use super::origin::{self, Target};
use super::session;
use logpond_engine::audit::Trail;
use logpond_host::clock;
use logpond_listen::tokens::{Admission, Refusal, Role};

/// Longer values hold no token of ours, also not encoded beside a long user name.
const VALUE_BYTES_MAX: usize = 4096;

/// What to do about a missing or bad token.
const HINT: &str = "send one as `Authorization: Bearer TOKEN`, or as the password of `Basic`; \
                    the commands take it by --token-file FILE or the variable LOGPOND_TOKEN; \
                    `logpond token create --role read|write|admin` at the server makes one";

/// Refuses a request for another host, where a browser could be made to ask without a token.
pub(super) fn check_host<B>(app: &App, request: &Request<B>) -> Result<(), ApiError> {
    if app.guard.is_required() {
        return Ok(());
    }
    let checked = app.hosts.check(request);
    checked.inspect_err(|_| app.metrics.access.foreign_host.add(1))
}

/// Refuses what a browser sends for another site's page.
pub(super) fn check_origin<B>(
    app: &App,
    request: &Request<B>,
    target: Target,
) -> Result<(), ApiError> {
    let checked = origin::check(request.method(), request.headers(), target);
    checked.inspect_err(|_| app.metrics.access.foreign_origin.add(1))
}

/// How often is looked whether a request that goes on may still do so. With the second after which a
/// changed file of tokens is noticed it is less than two.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

tokio::task_local! {
    /// The token that let the request in which is being answered.
    static ADMITTED: Option<Admission>;
}

/// Answers a request that was let in: what goes on for long asks for its admission.
pub(super) async fn admitted<T>(
    admission: Option<Admission>,
    answering: impl Future<Output = T>,
) -> T {
    ADMITTED.scope(admission, answering).await
}

/// The admission of the request that this task answers, if it needs one.
pub(super) fn admission() -> Option<Admission> {
    ADMITTED.try_with(Clone::clone).ok().flatten()
}

/// Waits until the request that this task answers may not go on, which may be never.
pub(super) async fn refused() -> ApiError {
    let Some(admission) = admission() else {
        return std::future::pending().await;
    };
    loop {
        tokio::time::sleep(LOOK_INTERVAL).await;
        if let Some(refusal) = admission.refusal(clock::now()) {
            return ApiError::new(Kind::TokenRefused, refusal.to_string());
        }
    }
}

/// Headers and parameters in which senders put a key of their own: the token is the key.
const KEY_HEADERS: [&str; 2] = ["dd-api-key", "x-amz-firehose-access-key"];

/// The key in a header of its own.
fn key_of(headers: &HeaderMap) -> Option<String> {
    let keys = KEY_HEADERS.iter().filter_map(|name| headers.get(*name));
    let texts = keys.filter_map(|value| value.to_str().ok());
    texts.map(|text| text.trim().to_owned()).next()
}

/// Refuses a request without a token that allows what needs `needed`. One that is given counts also
/// if none is asked for. Of a known one that does not allow it the trail has the name.
pub(super) fn check(
    app: &App,
    headers: &HeaderMap,
    in_address: Option<&str>,
    needed: Role,
    trail: Option<&Trail>,
) -> Result<Option<Admission>, ApiError> {
    let given = headers.get(AUTHORIZATION).map(|value| value.as_bytes());
    // Browsers that have signed in send a cookie; what a program says by a header counts before it.
    let token = given.map(token_of).or_else(|| key_of(headers));
    let cookie = session::token(headers).filter(|_| token.is_none());
    let is_of_cookie = cookie.is_some();
    let token = token.or(cookie);
    let token = token.or_else(|| in_address.map(str::to_owned));
    match Admission::new(&app.guard, token.as_deref(), needed, clock::now()) {
        // A browser keeps the cookie of another server that was at this address before.
        Err(Refusal::Unknown) if is_of_cookie && !app.guard.is_required() => Ok(None),
        outcome => outcome.map_err(|refusal| {
            if let (Some(trail), Some(label)) = (trail, refusal.label()) {
                trail.came_with(label);
            }
            error_of(app, &refusal)
        }),
    }
}

/// Refuses a token that is not known, or may read nothing.
pub(super) fn check_token(app: &App, token: &str) -> Result<(), ApiError> {
    if app.guard.is_required() {
        let outcome = Admission::new(&app.guard, Some(token), Role::Read, clock::now());
        outcome.map_err(|refusal| error_of(app, &refusal))?;
    }
    Ok(())
}

/// The answer to a request that is not let in, which is counted.
fn error_of(app: &App, refusal: &Refusal) -> ApiError {
    app.count_refusal(refusal);
    let kind = match refusal {
        Refusal::Missing => Kind::TokenMissing,
        Refusal::Unknown
        | Refusal::Revoked { .. }
        | Refusal::Changed { .. }
        | Refusal::Expired { .. } => Kind::TokenRefused,
        Refusal::Role { .. } => Kind::RoleMissing,
    };
    let mut error = ApiError::new(kind, refusal.to_string());
    error.hint = match refusal {
        Refusal::Role { needed, .. } => Some(format!(
            "`logpond token create --role {}` at the server makes one",
            needed.as_str()
        )),
        _ => Some(HINT.to_owned()),
    };
    error
}

impl App {
    /// Counts a client that is not let in, by the reason.
    pub fn count_refusal(&self, refusal: &Refusal) {
        let counters = &self.metrics.access;
        let counter = match refusal {
            Refusal::Missing => &counters.no_token,
            Refusal::Unknown | Refusal::Revoked { .. } | Refusal::Changed { .. } => {
                &counters.unknown_token
            }
            Refusal::Expired { .. } => &counters.expired_token,
            Refusal::Role { .. } => &counters.role,
        };
        counter.add(1);
    }
}

/// The token in the value of the header; empty, and so no token, for anything else.
fn token_of(value: &[u8]) -> String {
    let find = || {
        let text = std::str::from_utf8(value).ok()?;
        if text.len() > VALUE_BYTES_MAX {
            return None;
        }
        let (scheme, rest) = text.trim().split_once(' ')?;
        let rest = rest.trim();
        // Splunk's senders have a scheme of their own.
        if scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("splunk") {
            return Some(rest.to_owned());
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let pair = String::from_utf8(STANDARD.decode(rest).ok()?).ok()?;
        let (_user, password) = pair.split_once(':')?;
        Some(password.to_owned())
    };
    find().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_schemes_carry_a_token() {
        let basic = |pair: &str| format!("Basic {}", STANDARD.encode(pair));
        let table = [
            ("Bearer lp_a_b".to_owned(), "lp_a_b"),
            ("bearer   lp_a_b ".to_owned(), "lp_a_b"),
            ("Splunk lp_a_b".to_owned(), "lp_a_b"),
            (basic("anyone:lp_a_b"), "lp_a_b"),
            (basic(":lp_a_b"), "lp_a_b"),
            (basic("lp_a_b"), ""),
            ("Basic lp_a_b".to_owned(), ""),
            ("Digest lp_a_b".to_owned(), ""),
            ("lp_a_b".to_owned(), ""),
            (String::new(), ""),
            (format!("Bearer {}", "x".repeat(VALUE_BYTES_MAX)), ""),
        ];
        for (value, token) in table {
            assert_eq!(token_of(value.as_bytes()), token, "{value}");
        }
        assert_eq!(token_of(b"Bearer \xff"), "");
    }
}

//! The part of the server that a request sees and writes.
//!
//! Invariants:
//! - An endpoint gets an [`App`] whose engine answers from the records that its request may read, and whose ingestion labels
//!   what its request writes. It cannot reach the others.
//! - Endpoints that say something of all records or of the server are refused to a request that sees a part
//!   ([`Reach::Server`]). Each endpoint names its reach.

use std::net::IpAddr;
use std::sync::Arc;

use hyper::header::{HeaderMap, HeaderName};
use logpond_engine::query::{RestrictedEngine, Restriction};
use logpond_listen::tokens::{Admission, Role};
use logpond_record::Labels;

use super::App;
use super::error::{ApiError, Kind};

/// The field of the tenant that a header names.
const TENANT_FIELD: &str = "tenant";

/// The longest name of a tenant, as in Loki.
const TENANT_BYTES_MAX: usize = 150;

/// The most tenants that one question may be about.
const TENANTS_MAX: usize = 64;

/// The records and the state that an endpoint tells or changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Records, by way of the engine: those that the request may read.
    Records,
    /// Nothing of records that were taken before.
    Nothing,
    /// All records, or the server.
    Server,
}

/// The client of a session.
#[derive(Clone, Debug, Default)]
pub(super) struct Client {
    /// The name or the id of its token.
    pub(super) token: Option<String>,
    pub(super) address: Option<IpAddr>,
}

impl App {
    /// The server as a request sees it that was let in by this token, and may have these headers.
    ///
    /// # Errors
    /// When a tenant has to be named, and is not.
    pub fn seen_by(
        self: &Arc<App>,
        admission: Option<&Admission>,
        needed: Role,
        headers: &HeaderMap,
    ) -> Result<Arc<App>, ApiError> {
        if admission.is_some_and(Admission::is_admin) {
            return self.of_admin(headers, needed);
        }
        let bounds = admission.map(Admission::bounds);
        let is_bound = bounds.is_some_and(|b| b.only().is_some() || !b.labels().is_empty());
        let tenants = self.tenants(headers)?;
        if self.tenant_header.is_some() && tenants.is_empty() && !is_bound {
            return Err(self.no_tenant());
        }
        match needed {
            Role::Read => {
                let own = bounds.and_then(|bounds| bounds.restriction().cloned());
                // Without tokens everybody may do everything.
                let all = admission.map(|_| Restriction::without_audit());
                Ok(self.reading(own.or(all), &tenants))
            }
            Role::Write | Role::Admin => {
                let labels = bounds.map(|bounds| bounds.labels().clone());
                self.writing(labels.unwrap_or_default(), &tenants)
            }
        }
    }

    /// The server as a session sees it whose protocol has no headers.
    ///
    /// # Errors
    /// As for [`App::seen_by`], in words.
    pub fn seen_by_session(
        self: &Arc<App>,
        admission: Option<&Admission>,
        address: IpAddr,
    ) -> Result<Arc<App>, String> {
        let seen = self.seen_by(admission, Role::Read, &HeaderMap::new());
        let seen = seen.map_err(|error| error.message)?;
        let mut seen = App::clone(&seen);
        seen.client = Arc::new(Client {
            token: admission.map(|admission| admission.label().to_owned()),
            address: Some(address),
        });
        Ok(Arc::new(seen))
    }

    /// The server as an administrator sees it: all of it, or one tenant that is named.
    fn of_admin(self: &Arc<App>, headers: &HeaderMap, needed: Role) -> Result<Arc<App>, ApiError> {
        let tenants = self.tenants(headers)?;
        match needed {
            Role::Read => Ok(self.reading(None, &tenants)),
            Role::Write => self.writing(Labels::new(), &tenants),
            Role::Admin => Ok(Arc::clone(self)),
        }
    }

    fn reading(self: &Arc<App>, own: Option<Restriction>, tenants: &[&str]) -> Arc<App> {
        let of_tenants = (!tenants.is_empty())
            .then(|| Restriction::of_label(TENANT_FIELD, tenants.iter().copied()));
        let restriction = match (own, of_tenants) {
            (Some(own), Some(of_tenants)) => own.and(of_tenants),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return Arc::clone(self),
        };
        let mut seen = App::clone(self);
        if restriction.is_partial() {
            seen.is_partial = true;
            seen.saved = Arc::clone(&self.built_in);
            (seen.alerts, seen.operator) = (None, None);
        }
        let (engine, metrics) = (Arc::clone(&self.engine), Arc::clone(&self.metrics));
        seen.engine = Arc::new(RestrictedEngine::new(engine, restriction, metrics));
        Arc::new(seen)
    }

    fn writing(self: &Arc<App>, labels: Labels, tenants: &[&str]) -> Result<Arc<App>, ApiError> {
        let mut labels = labels;
        match tenants {
            [] => {}
            [tenant] => {
                let own = labels.iter().find(|(name, _)| **name == *TENANT_FIELD);
                if own.is_some_and(|(_, value)| **value != **tenant) {
                    let message = format!("this token writes for another tenant than '{tenant}'");
                    return Err(ApiError::new(Kind::RoleMissing, message));
                }
                if own.is_none() {
                    labels.push((TENANT_FIELD.into(), (*tenant).into()));
                }
            }
            _ => {
                return Err(ApiError::bad_request(
                    "records are of one tenant: name one in the header",
                ));
            }
        }
        if labels.is_empty() {
            return Ok(Arc::clone(self));
        }
        let mut seen = App::clone(self);
        seen.ingest = self.ingest.stamped(labels);
        Ok(Arc::new(seen))
    }

    /// The tenants that a request names.
    fn tenants<'h>(&self, headers: &'h HeaderMap) -> Result<Vec<&'h str>, ApiError> {
        let Some(header) = &self.tenant_header else {
            return Ok(Vec::new());
        };
        let mut tenants = Vec::new();
        for value in headers.get_all(header) {
            let text = value.to_str().unwrap_or_default();
            for tenant in text.split('|') {
                if !is_tenant(tenant) || tenants.len() >= TENANTS_MAX {
                    return Err(bad_tenant(header));
                }
                tenants.push(tenant);
            }
        }
        Ok(tenants)
    }

    fn no_tenant(&self) -> ApiError {
        let header = self.tenant_header.as_ref().map_or("", HeaderName::as_str);
        let mut error = ApiError::new(
            Kind::RoleMissing,
            format!("this server wants the tenant of a request in the header {header}"),
        );
        error.hint = Some("a token that is bound, or of role admin, needs no header".to_owned());
        error
    }

    /// Refuses what says something of all records to a request that sees a part of them.
    pub(super) fn check_reach(&self, reach: Reach) -> Result<(), ApiError> {
        if !self.is_partial || reach != Reach::Server {
            return Ok(());
        }
        let message = "this is about all records of the server, and this request sees a part of \
                       them: its token or its tenant is bound to a condition";
        Err(ApiError::new(Kind::RoleMissing, message))
    }
}

fn bad_tenant(header: &HeaderName) -> ApiError {
    ApiError::bad_request(format!(
        "header {header}: a tenant has up to {TENANT_BYTES_MAX} letters, digits and !-_.*'(), and there are up to \
         {TENANTS_MAX} with | between"
    ))
}

fn is_tenant(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!-_.*'()".contains(&byte);
    (1..=TENANT_BYTES_MAX).contains(&text.len()) && text.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_have_the_names_of_loki() {
        for good in ["a", "team-a_1.x", "!*'()", &"x".repeat(TENANT_BYTES_MAX)] {
            assert!(is_tenant(good), "{good}");
        }
        for bad in [
            "",
            "a b",
            "a/b",
            "ä",
            "a\"",
            &"x".repeat(TENANT_BYTES_MAX + 1),
        ] {
            assert!(!is_tenant(bad), "{bad}");
        }
    }
}

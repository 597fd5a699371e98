//! The beginning of a session: its client, its token, its settings.

use std::sync::Arc;

use bytes::Bytes;
use logpond_host::clock;
use logpond_http::App;
use logpond_listen::tokens::{Admission, Refusal, Role};

use crate::failure::{Code, Failure};
use crate::settings::SessionSettings;

/// The longest name of a user: it is shown in the catalog.
const USER_BYTES_MAX: usize = 64;

/// Parameters of the first message that are no settings.
const NO_SETTINGS: [&str; 5] = ["user", "database", "replication", "options", "_pq_."];

/// The beginning of a session, as its client wants it.
#[derive(Debug)]
pub(crate) struct Login {
    pub(crate) user: String,
    pub(crate) settings: SessionSettings,
}

impl Login {
    /// Reads the parameters of the first message.
    ///
    /// # Errors
    /// When there is no user, or a setting has no such value.
    pub(crate) fn of(parameters: &[(String, String)]) -> Result<Login, Failure> {
        let value = |name: &str| {
            let mut found = parameters.iter().filter(|(known, _)| known == name);
            found.next().map(|(_, value)| value.as_str())
        };
        let user = value("user").unwrap_or_default();
        if user.is_empty() || user.len() > USER_BYTES_MAX {
            let message = format!("a user has a name of 1 to {USER_BYTES_MAX} bytes");
            return Err(Failure::new(Code::NotAuthorized, message));
        }
        if value("replication").is_some_and(|value| !matches!(value, "false" | "off" | "no" | "0"))
        {
            let message = "there is no replication over this protocol";
            return Err(Failure::new(Code::FeatureNotSupported, message));
        }
        let mut settings = SessionSettings::new(user);
        let given = parameters
            .iter()
            .filter(|(name, _)| !NO_SETTINGS.contains(&&**name) && !name.starts_with("_pq_."));
        for (name, value) in given {
            settings.set(name, Some(value))?;
        }
        for (name, value) in value("options").map(options).unwrap_or_default() {
            settings.set(&name, Some(&value))?;
        }
        settings.keep();
        Ok(Login {
            user: user.to_owned(),
            settings,
        })
    }
}

/// The settings in the options of a client: `-c name=value` or `--name=value`.
fn options(text: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        let pair = match word.strip_prefix("--") {
            Some(pair) => Some(pair),
            None if word == "-c" => words.next(),
            None => word.strip_prefix("-c"),
        };
        let pair = pair.and_then(|pair| pair.split_once('='));
        all.extend(pair.map(|(name, value)| (name.replace('-', "_"), value.to_owned())));
    }
    all
}

/// Checks that a token may be sent over this connection.
///
/// # Errors
/// When others could read it on its way.
pub(crate) fn check_way(is_encrypted: bool, is_local: bool) -> Result<(), Failure> {
    if is_encrypted || is_local {
        return Ok(());
    }
    let message = "a token is taken over TLS only: connect with sslmode=verify-full, or require";
    Err(Failure::new(Code::NotAuthorized, message)
        .hint("the server needs --tls-certificate and --tls-key for it"))
}

/// Admits a client by its password, which is its token.
///
/// # Errors
/// When the token is not known, or may not read.
pub(crate) fn admit(app: &Arc<App>, password: &Bytes) -> Result<Option<Admission>, Failure> {
    let text = password.strip_suffix(b"\0").unwrap_or(password);
    let token = std::str::from_utf8(text).unwrap_or_default();
    let admission = Admission::new(&app.guard, Some(token), Role::Read, clock::now());
    let counters = &app.metrics.access;
    admission.map_err(|refusal| {
        let counter = match refusal {
            Refusal::Missing => &counters.no_token,
            Refusal::Unknown | Refusal::Revoked { .. } => &counters.unknown_token,
            Refusal::Expired { .. } => &counters.expired_token,
            Refusal::Role { .. } => &counters.role,
        };
        counter.add(1);
        refused(&refusal)
    })
}

/// The error of a token that does not suffice, or does no more.
pub(crate) fn refused(refusal: &Refusal) -> Failure {
    let code = match refusal {
        Refusal::Missing | Refusal::Unknown => Code::BadPassword,
        Refusal::Revoked { .. } | Refusal::Expired { .. } | Refusal::Role { .. } => {
            Code::NotAuthorized
        }
    };
    Failure::new(code, refusal.to_string()).hint(
        "the password is a token of the role read; `logpond token create --role read` at the server makes one",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(parameters: &[(&str, &str)]) -> Result<Login, Failure> {
        let owned = parameters
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Login::of(&owned.collect::<Vec<_>>())
    }

    #[test]
    fn clients_begin_with_settings() {
        let begun = login(&[
            ("user", "ann"),
            ("database", "any"),
            ("application_name", "psql"),
            (
                "options",
                "-c statement_timeout=5s --logpond.incomplete=warning",
            ),
        ]);
        let begun = begun.unwrap();
        assert_eq!(begun.user, "ann");
        for (name, value) in [
            ("application_name", "psql"),
            ("statement_timeout", "5s"),
            ("logpond.incomplete", "warning"),
        ] {
            assert_eq!(begun.settings.get(name), Some(value));
        }
        assert!(login(&[]).is_err());
        assert!(login(&[("user", "ann"), ("replication", "database")]).is_err());
        assert!(login(&[("user", "ann"), ("client_encoding", "LATIN1")]).is_err());
    }

    #[test]
    fn tokens_are_not_sent_in_the_clear() {
        for (is_encrypted, is_local, is_let) in [
            (true, false, true),
            (false, true, true),
            (false, false, false),
        ] {
            assert_eq!(check_way(is_encrypted, is_local).is_ok(), is_let);
        }
    }
}

//! The beginning of a session: its client and its settings.

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
}

//! The settings of a session.

use std::time::Duration;

use crate::failure::{Code, Failure};

/// The version of Postgres whose catalog and answers clients get. Older ones lack statements that current clients send.
const POSTGRES_VERSION: &str = "14.0";

/// The name of the setting that says what becomes of an answer that is not complete.
const INCOMPLETE: &str = "logpond.incomplete";

/// The longest value of a setting, and name of one.
const VALUE_BYTES_MAX: usize = 1024;

/// The most settings of a session, with those that it makes up.
const SETTINGS_MAX: usize = 128;

/// The settings that there are: name, default, and true if clients are told of the value.
const KNOWN: [(&str, &str, bool); 34] = [
    ("application_name", "", true),
    ("bytea_output", "hex", false),
    ("client_encoding", "UTF8", true),
    ("client_min_messages", "notice", false),
    ("DateStyle", "ISO, MDY", true),
    ("default_transaction_isolation", "serializable", false),
    ("default_transaction_read_only", "on", true),
    ("enable_seqscan", "on", false),
    ("extra_float_digits", "1", false),
    ("geqo", "on", false),
    ("idle_in_transaction_session_timeout", "0", false),
    ("in_hot_standby", "off", true),
    ("integer_datetimes", "on", true),
    ("IntervalStyle", "postgres", true),
    ("is_superuser", "off", true),
    ("jit", "off", false),
    ("lc_collate", "C.UTF-8", false),
    ("lock_timeout", "0", false),
    (INCOMPLETE, "error", false),
    ("max_identifier_length", "63", false),
    ("max_index_keys", "32", false),
    ("row_security", "off", false),
    ("search_path", "public", false),
    ("server_encoding", "UTF8", true),
    ("server_version", "14.0 (Logpond)", true),
    ("server_version_num", "140000", false),
    ("session_authorization", "", true),
    ("standard_conforming_strings", "on", true),
    ("statement_timeout", "0", false),
    ("synchronize_seqscans", "on", false),
    ("TimeZone", "UTC", true),
    ("transaction_isolation", "serializable", false),
    ("transaction_read_only", "on", false),
    ("work_mem", "4MB", false),
];

/// Settings that only the server decides.
const FIXED: [&str; 12] = [
    "in_hot_standby",
    "integer_datetimes",
    "is_superuser",
    "lc_collate",
    "max_identifier_length",
    "max_index_keys",
    "server_encoding",
    "server_version",
    "server_version_num",
    "session_authorization",
    "bytea_output",
    "synchronize_seqscans",
];

/// The fate of an answer that is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Incompleteness {
    /// It ends with an error.
    Error,
    /// It ends with a warning.
    Warning,
}

/// The settings of a session.
#[derive(Clone, Debug)]
pub(crate) struct SessionSettings {
    values: Vec<(String, String)>,
    defaults: Vec<(String, String)>,
}

/// The result of setting a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The name as it is reported.
    pub(crate) name: String,
    /// The value as it is reported.
    pub(crate) value: String,
    /// True if the client is told of the value.
    pub(crate) is_reported: bool,
    /// A remark for the client.
    pub(crate) warning: Option<String>,
}

impl SessionSettings {
    pub(crate) fn new(user: &str) -> SessionSettings {
        let value = |(name, value, _): (&str, &str, bool)| {
            let value = if name == "session_authorization" {
                user
            } else {
                value
            };
            (name.to_owned(), value.to_owned())
        };
        let values: Vec<(String, String)> = KNOWN.into_iter().map(value).collect();
        SessionSettings {
            defaults: values.clone(),
            values,
        }
    }

    /// The version of the server, as `version()` shows it.
    pub(crate) fn version() -> String {
        let own = env!("CARGO_PKG_VERSION");
        format!("PostgreSQL {POSTGRES_VERSION} (Logpond {own})")
    }

    /// The values that clients are told of.
    pub(crate) fn reported(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_reported = |name: &str| KNOWN.iter().any(|(known, _, is)| *is && *known == name);
        let all = self.values.iter();
        let all = all.map(|(name, value)| (&**name, &**value));
        all.filter(move |(name, _)| is_reported(name))
    }

    pub(crate) fn all(&self) -> &[(String, String)] {
        &self.values
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.values.iter();
        let mut found = found.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| &**value)
    }

    /// Gives all settings their defaults.
    pub(crate) fn reset(&mut self) {
        self.values.clone_from(&self.defaults);
    }

    /// Keeps the values as the defaults of the session: a client gave them at its start.
    pub(crate) fn keep(&mut self) {
        self.defaults.clone_from(&self.values);
    }

    /// Sets a value, or the default.
    ///
    /// # Errors
    /// When there is no such setting, or the value is none for it.
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>) -> Result<Change, Failure> {
        let default = || {
            let known = self.defaults.iter();
            let mut known = known.filter(|(known, _)| known.eq_ignore_ascii_case(name));
            known.next().map(|(_, value)| value.clone())
        };
        let given = match value {
            Some(value) => value.to_owned(),
            None => default().unwrap_or_default(),
        };
        if given.len() > VALUE_BYTES_MAX || name.len() > VALUE_BYTES_MAX {
            let message = format!("a setting has at most {VALUE_BYTES_MAX} bytes");
            return Err(Failure::new(Code::InvalidParameter, message));
        }
        let Some(at) = self.place(name) else {
            return self.make_up(name, given);
        };
        let known = KNOWN
            .iter()
            .find(|(known, ..)| known.eq_ignore_ascii_case(name));
        let canonical = known.map_or(name, |(known, ..)| *known);
        let (value, warning) = checked(canonical, given, self.get(canonical))?;
        if let Some((_, place)) = self.values.get_mut(at) {
            place.clone_from(&value);
        }
        Ok(Change {
            name: canonical.to_owned(),
            value,
            is_reported: known.is_some_and(|(_, _, is_reported)| *is_reported),
            warning,
        })
    }

    fn place(&self, name: &str) -> Option<usize> {
        let mut names = self.values.iter();
        names.position(|(known, _)| known.eq_ignore_ascii_case(name))
    }

    /// Names with a dot are of extensions, and may be made up; others that are not known change nothing here.
    fn make_up(&mut self, name: &str, value: String) -> Result<Change, Failure> {
        if name.starts_with("logpond.") {
            let message = format!("no setting {name}: there is {INCOMPLETE}");
            return Err(Failure::new(Code::NoParameter, message));
        }
        if self.values.len() >= SETTINGS_MAX {
            let message = format!("a session has at most {SETTINGS_MAX} settings");
            return Err(Failure::new(Code::ConfigurationLimit, message));
        }
        let warning =
            (!name.contains('.')).then(|| format!("the setting {name} has no effect here"));
        self.values.push((name.to_owned(), value.clone()));
        Ok(Change {
            name: name.to_owned(),
            value,
            is_reported: false,
            warning,
        })
    }

    /// How long a statement may take; `None` is for as long as it computes.
    pub(crate) fn statement_timeout(&self) -> Option<Duration> {
        let value = self.get("statement_timeout").and_then(duration)?;
        (!value.is_zero()).then_some(value)
    }

    pub(crate) fn incompleteness(&self) -> Incompleteness {
        match self.get(INCOMPLETE) {
            Some("warning") => Incompleteness::Warning,
            _ => Incompleteness::Error,
        }
    }
}

/// A value as it is kept, and what the client should know of it.
fn checked(
    name: &str,
    value: String,
    current: Option<&str>,
) -> Result<(String, Option<String>), Failure> {
    let refused = |what: &str| {
        let message = format!("invalid value for {name}: '{value}'; {what}");
        Err(Failure::new(Code::InvalidParameter, message))
    };
    if FIXED.contains(&name) {
        let is_same = current.is_some_and(|current| current.eq_ignore_ascii_case(&value));
        if is_same {
            return Ok((value, None));
        }
        return refused("it cannot be changed");
    }
    match name {
        "client_encoding" => {
            // Some clients send it in quotes.
            let plain = value.replace(['-', '_', '\''], "").to_ascii_lowercase();
            if !matches!(&*plain, "utf8" | "unicode") {
                return refused("texts are UTF8");
            }
            Ok(("UTF8".to_owned(), None))
        }
        "TimeZone" => {
            let is_utc = [
                "utc", "gmt", "etc/utc", "etc/gmt", "z", "0", "+00", "+00:00", "uct",
            ]
            .contains(&&*value.to_ascii_lowercase());
            let warning = (!is_utc).then(|| {
                format!("times stay in UTC, and not in {value}: their offset is shown with them")
            });
            Ok(("UTC".to_owned(), warning))
        }
        "DateStyle" if !value.to_ascii_lowercase().starts_with("iso") => refused("dates are ISO"),
        "DateStyle" => Ok(("ISO, MDY".to_owned(), None)),
        "IntervalStyle" if value != "postgres" => refused("intervals are in the style postgres"),
        "standard_conforming_strings" if !is_true(&value) => {
            refused("a backslash is itself in texts")
        }
        "default_transaction_read_only" | "transaction_read_only" if !is_true(&value) => {
            let warning = "nothing can be written here".to_owned();
            Ok(("on".to_owned(), Some(warning)))
        }
        "statement_timeout" if duration(&value).is_none() => {
            refused("it is a time, such as 5000, 5s or 1min; 0 is none")
        }
        INCOMPLETE if !matches!(&*value, "error" | "warning") => refused("it is error or warning"),
        _ => Ok((value, None)),
    }
}

fn is_true(value: &str) -> bool {
    ["on", "true", "yes", "1"].contains(&&*value.to_ascii_lowercase())
}

/// A time as Postgres writes it: milliseconds, or a number with a unit.
fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let number: u64 = number.parse().ok()?;
    let ms = match unit.trim() {
        "" | "ms" => 1,
        "s" => 1000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    Some(Duration::from_millis(number.checked_mul(ms)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked() {
        let mut settings = SessionSettings::new("ann");
        for (name, value, expected) in [
            ("client_encoding", "utf-8", Some("UTF8")),
            ("CLIENT_ENCODING", "latin1", None),
            ("timezone", "Europe/Berlin", Some("UTC")),
            ("statement_timeout", "5s", Some("5s")),
            ("statement_timeout", "soon", None),
            ("logpond.incomplete", "warning", Some("warning")),
            ("logpond.incomplete", "maybe", None),
            ("logpond.complete", "yes", None),
            ("server_version", "15", None),
            ("plan_cache_mode", "auto", Some("auto")),
            ("datestyle", "German", None),
        ] {
            let set = settings.set(name, Some(value));
            let set = set.ok().map(|change| change.value);
            assert_eq!(set.as_deref(), expected, "{name}");
        }
        assert_eq!(settings.statement_timeout(), Some(Duration::from_secs(5)));
        assert_eq!(settings.incompleteness(), Incompleteness::Warning);
        assert_eq!(settings.get("session_authorization"), Some("ann"));
        settings.set("statement_timeout", None).unwrap();
        assert_eq!(settings.statement_timeout(), None);
        settings.reset();
        assert_eq!(settings.incompleteness(), Incompleteness::Error);
    }

    #[test]
    fn other_zones_are_warned_of() {
        let mut settings = SessionSettings::new("ann");
        let zone = |settings: &mut SessionSettings, zone| {
            settings
                .set("TimeZone", Some(zone))
                .unwrap()
                .warning
                .is_some()
        };
        assert!(!zone(&mut settings, "UTC"));
        assert!(zone(&mut settings, "Asia/Tokyo"));
    }
}

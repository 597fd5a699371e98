//! Bounds of tokens: which records they read, and how the records that they write are labelled.

use logpond_engine::query::{Restriction, is_plain_name};
use logpond_record::Labels;

use super::Role;
use super::file::TokenFileError;

/// The most labels of a token: they are with every record that it writes.
pub const LABELS_MAX: usize = 8;

/// The longest name of a label.
const LABEL_NAME_BYTES_MAX: usize = 64;

/// The longest value of a label.
const LABEL_VALUE_BYTES_MAX: usize = 256;

/// Names that stand for something else than a label: a sender's line says them, or they are computed.
const OTHER_NAMES: [&str; 4] = ["hostname", "time", "message", "level"];

/// The part of the rights of its role that a token has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The condition that records have to meet to be read, as it was written.
    only: Option<String>,
    /// The same, parsed.
    restriction: Option<Restriction>,
    labels: Labels,
}

impl Bounds {
    /// Bounds of a condition for readers, and of labels for writers.
    ///
    /// # Errors
    /// When the condition is none, or there are too many labels or two of a name.
    pub fn new(only: Option<String>, labels: Labels) -> Result<Bounds, TokenFileError> {
        let restriction = only.as_deref().map(Restriction::of_condition).transpose();
        let restriction =
            restriction.map_err(|error| TokenFileError::Bounds(format!("--only: {error}")))?;
        if labels.len() > LABELS_MAX {
            let message = format!("--label: a token has up to {LABELS_MAX} labels");
            return Err(TokenFileError::Bounds(message));
        }
        for (at, (name, _)) in labels.iter().enumerate() {
            if labels.iter().take(at).any(|(other, _)| other == name) {
                let message = format!("--label: '{name}' is given twice");
                return Err(TokenFileError::Bounds(message));
            }
        }
        Ok(Bounds {
            only,
            restriction,
            labels,
        })
    }

    /// Checks that a token of a role can have them.
    pub(super) fn check(&self, role: Role) -> Result<(), TokenFileError> {
        let message = match role {
            Role::Read | Role::Admin if !self.labels.is_empty() => {
                "--label is for tokens of role write"
            }
            Role::Write | Role::Admin if self.only.is_some() => "--only is for tokens of role read",
            _ => return Ok(()),
        };
        Err(TokenFileError::Bounds(message.to_owned()))
    }

    /// The condition that records have to meet to be read, as it was written.
    pub fn only(&self) -> Option<&str> {
        self.only.as_deref()
    }

    /// The records that may be read, if not all.
    pub fn restriction(&self) -> Option<&Restriction> {
        self.restriction.as_ref()
    }

    /// The labels of all records that are written.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// The labels as they are given, with commas between.
    pub fn labels_text(&self) -> String {
        let labels = self.labels.iter();
        let texts: Vec<String> = labels
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        texts.join(",")
    }

    /// The lines of the file.
    pub(super) fn render(&self) -> String {
        let mut text = String::new();
        if let Some(only) = &self.only {
            text.push_str(&format!("only = {}\n", quoted(only)));
        }
        if !self.labels.is_empty() {
            let labels = self.labels.iter();
            let labels: Vec<String> = labels
                .map(|(name, value)| quoted(&format!("{name}={value}")))
                .collect();
            text.push_str(&format!("label = [{}]\n", labels.join(", ")));
        }
        text
    }
}

/// Reads `NAME=VALUE`.
///
/// # Errors
/// When it is something else, or the label would not be told from a field of a line.
pub fn read_label(text: &str) -> Result<(Box<str>, Box<str>), TokenFileError> {
    let wrong = |what: &str| TokenFileError::Bounds(format!("--label: '{text}': {what}"));
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| wrong("expected NAME=VALUE"))?;
    if !is_plain_name(name) || name.len() > LABEL_NAME_BYTES_MAX {
        return Err(wrong(
            "a name has up to 64 letters and digits, and begins with a letter",
        ));
    }
    if OTHER_NAMES.contains(&name) {
        return Err(wrong("this name is not free for labels"));
    }
    if value.is_empty() || value.len() > LABEL_VALUE_BYTES_MAX || value.contains(char::is_control) {
        return Err(wrong(
            "a value has 1 to 256 bytes, and no control characters",
        ));
    }
    Ok((name.into(), value.into()))
}

/// A text of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            control if control.is_control() => {
                out.push_str(&format!("\\u{:04X}", u32::from(control)));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_told_from_fields() {
        let good = read_label("team=a=b").unwrap();
        assert_eq!((&*good.0, &*good.1), ("team", "a=b"));
        let bad = [
            "team",
            "=a",
            "team=",
            "te.am=a",
            "te_am=a",
            "hostname=a",
            "7a=b",
            "a=b\n",
        ];
        for bad in bad {
            assert!(read_label(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn bounds_fit_the_role() {
        let only = || Bounds::new(Some("team=a".to_owned()), Vec::new()).unwrap();
        let label = || Bounds::new(None, vec![read_label("team=a").unwrap()]).unwrap();
        for (role, reads, writes) in [
            (Role::Read, true, false),
            (Role::Write, false, true),
            (Role::Admin, false, false),
        ] {
            assert_eq!(only().check(role).is_ok(), reads, "{role:?}");
            assert_eq!(label().check(role).is_ok(), writes, "{role:?}");
            assert!(Bounds::default().check(role).is_ok());
        }
        assert!(Bounds::new(Some("(".to_owned()), Vec::new()).is_err());
        let twice = vec![read_label("a=b").unwrap(), read_label("a=c").unwrap()];
        assert!(Bounds::new(None, twice).is_err());
    }
}

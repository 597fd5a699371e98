//! Names of the fields with the time and the message of objects, where nobody could know them.

use logpond_protocol::intake::declared::{MESSAGE_FIELDS, NAMES_MAX, TIME_FIELDS};
use logpond_record::Labels;
use logpond_record::limits::FIELD_NAME_BYTES_MAX;

use super::{SettingsError, Values};

impl Values<'_> {
    /// The labels that declare the fields with the time and the message.
    pub(super) fn field_names(&self) -> Result<Labels, SettingsError> {
        let mut labels = self.read("time-field", time_fields)?;
        labels.extend(self.read("message-field", message_fields)?);
        Ok(labels)
    }
}

/// The label that declares names of the fields with the time. `text` has them in lines or with commas between
/// them, or is `off`.
///
/// # Errors
/// When a name is empty or too long, or there are too many.
pub fn time_fields(text: &str) -> Result<Labels, String> {
    declared(TIME_FIELDS, text)
}

/// The same for the fields with the message.
///
/// # Errors
/// As for [`time_fields`].
pub fn message_fields(text: &str) -> Result<Labels, String> {
    declared(MESSAGE_FIELDS, text)
}

/// Both labels, of the names that flags give.
///
/// # Errors
/// As for [`time_fields`]; the error begins with the flag.
pub fn flagged_fields(time: &[String], message: &[String]) -> Result<Labels, String> {
    let mut labels = Labels::new();
    for (flag, label, names) in [
        ("--time-field", TIME_FIELDS, time),
        ("--message-field", MESSAGE_FIELDS, message),
    ] {
        if !names.is_empty() {
            let read = declared(label, &names.join(","));
            labels.extend(read.map_err(|error| format!("{flag}: {error}"))?);
        }
    }
    Ok(labels)
}

fn declared(label: &str, text: &str) -> Result<Labels, String> {
    if text == "off" {
        return Ok(Labels::new());
    }
    let names: Vec<&str> = text.split([',', '\n']).map(str::trim).collect();
    if names.len() > NAMES_MAX {
        return Err(format!("there are more than {NAMES_MAX} names"));
    }
    if let Some(name) = names
        .iter()
        .find(|name| name.is_empty() || name.len() > FIELD_NAME_BYTES_MAX)
    {
        return Err(format!(
            "a name has from 1 to {FIELD_NAME_BYTES_MAX} bytes, not '{name}'"
        ));
    }
    Ok(vec![(label.into(), names.join(",").into())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_a_label() {
        let table = [
            ("off", None),
            ("when", Some("when")),
            ("event.when, at", Some("event.when,at")),
            ("when\nat", Some("when,at")),
        ];
        for (text, expected) in table {
            let labels = time_fields(text).unwrap();
            let found = labels.first().map(|(_, value)| &**value);
            assert_eq!(found, expected, "{text}");
        }
        assert_eq!(&*message_fields("what").unwrap()[0].0, MESSAGE_FIELDS);
        let long = "n".repeat(FIELD_NAME_BYTES_MAX + 1);
        let many = ["n"; NAMES_MAX + 1].join(",");
        for text in ["", "a,,b", &long, &many] {
            assert!(time_fields(text).is_err(), "{text}");
        }
    }
}

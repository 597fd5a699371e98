//! Records as tests of formats and of recorded requests see them.

use logpond_record::{Record, SEVERITY_LABELS, Severity};

/// A severity of a record, as queries compute it.
pub(crate) fn severity(record: &Record<'_>) -> Option<Severity> {
    let plain = |name: &str| -> String {
        let own = name.split('@').find(|part| !part.is_empty());
        let at = if name.starts_with('@') { "_" } else { "" };
        let letters = own.unwrap_or_default().chars();
        let letters = letters.map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
        at.chars().chain(letters).collect()
    };
    SEVERITY_LABELS.iter().find_map(|label| {
        let mut fields = record.fields();
        fields.find_map(|(name, value)| {
            if plain(name) == *label {
                Severity::of_field(name, &value.to_text())
            } else {
                None
            }
        })
    })
}

/// The message, for people.
pub(crate) fn message(record: &Record<'_>) -> String {
    let mut message = Vec::new();
    record.write_message(&mut message);
    String::from_utf8_lossy(&message).into_owned()
}

//! How much the audit keeps.

/// The extent of what is kept of questions and of administration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditLevel {
    /// Nothing.
    #[default]
    Off,
    /// A record of each, without the text of questions.
    Metadata,
    /// The same with the text.
    Queries,
}

pub(super) fn audit_level(text: &str) -> Result<AuditLevel, String> {
    match text {
        "off" => Ok(AuditLevel::Off),
        "metadata" => Ok(AuditLevel::Metadata),
        "queries" => Ok(AuditLevel::Queries),
        _ => Err("expected off, metadata or queries".to_owned()),
    }
}

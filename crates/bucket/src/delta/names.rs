//! How the objects of the log are called.

/// What the names of all of them begin with.
pub const LOG: &str = "_delta_log/";

/// Names the last checkpoint; a hint.
pub(super) const LAST_CHECKPOINT: &str = "_delta_log/_last_checkpoint";

/// An object of the log that makes a version, or sums versions up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LogName {
    /// What a version has beyond the one before.
    Commit(u64),
    /// All that a version has.
    Checkpoint(u64),
}

impl LogName {
    /// The version.
    pub(super) fn version(self) -> u64 {
        match self {
            LogName::Commit(version) | LogName::Checkpoint(version) => version,
        }
    }

    /// Reads a name; `None` for all others.
    pub(super) fn parse(name: &str) -> Option<LogName> {
        let (version, suffix) = name.strip_prefix(LOG)?.split_once('.')?;
        let number = version.parse().ok()?;
        let parsed = match suffix {
            "json" => LogName::Commit(number),
            "checkpoint.parquet" => LogName::Checkpoint(number),
            _ => return None,
        };
        (parsed.to_string() == name).then_some(parsed)
    }
}

impl std::fmt::Display for LogName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let version = self.version();
        match self {
            LogName::Commit(_) => write!(f, "{LOG}{version:020}.json"),
            LogName::Checkpoint(_) => write!(f, "{LOG}{version:020}.checkpoint.parquet"),
        }
    }
}

/// A name before all those of a version and behind all those of the one before.
pub(super) fn before(version: u64) -> String {
    format!("{LOG}{version:020}.")
}

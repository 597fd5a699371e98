//! Levels and facilities by name and number (RFC 5424, section 6.2.1, under systemd's names).

use std::fmt;

use logpond_record::{Severity, cast};

use super::of_journals;
use crate::label;
use crate::query::{Comparison, FieldTest, Filter, Pattern};

/// Levels by number, the most urgent first.
pub const LEVELS: [&str; 8] = [
    "emerg", "alert", "crit", "err", "warning", "notice", "info", "debug",
];

/// Other names of levels.
const LEVELS_TOO: [(&str, u8); 3] = [("panic", 0), ("error", 3), ("warn", 4)];

/// The number of a program's severity: a program that ends is critical, only a system that ends is an
/// emergency.
fn number_of(severity: Severity) -> u8 {
    match severity {
        Severity::Fatal => CRITICAL,
        other => other.syslog(),
    }
}

const CRITICAL: u8 = 2;

const EMERGENCY: u8 = 0;

/// The words for an emergency, in any case, and its number in syslog.
const EMERGENCIES: [&str; 4] = ["0", "emerg", "emergency", "panic"];

/// Fields in which records of other origin say an emergency.
pub(super) const LEVEL_FIELDS: [&str; 6] = [
    "severity",
    "level",
    "lvl",
    "loglevel",
    "log.level",
    "severity_text",
];

/// Facilities by number; 12 to 15 have no name that all agree on.
pub const FACILITIES: [&str; 24] = [
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv",
    "ftp", "", "", "", "", "local0", "local1", "local2", "local3", "local4", "local5", "local6",
    "local7",
];

/// A text that is no level, range of levels or facility.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LevelError {
    /// It is no level.
    Level(String),
    /// It is no facility.
    Facility(String),
}

impl fmt::Display for LevelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LevelError::Level(text) => write!(
                f,
                "`{text}` is no level; levels are {} or 0 to 7, and ranges such as err..info",
                LEVELS.join(", ")
            ),
            LevelError::Facility(text) => {
                let names: Vec<&str> = names().map(|(_, name)| name).collect();
                write!(
                    f,
                    "`{text}` is no facility; facilities are {} or 0 to 23",
                    names.join(", ")
                )
            }
        }
    }
}

impl std::error::Error for LevelError {}

fn names() -> impl Iterator<Item = (usize, &'static str)> {
    let named = FACILITIES.iter().copied().enumerate();
    named.filter(|(_, name)| !name.is_empty())
}

/// The number of a level.
///
/// # Errors
/// When it is none.
pub fn level(text: &str) -> Result<u8, LevelError> {
    let lower = text.trim().to_ascii_lowercase();
    let number = lower.parse().ok().filter(|number| *number <= 7);
    let named = || LEVELS.iter().position(|name| *name == lower);
    let too = || LEVELS_TOO.iter().find(|(name, _)| *name == lower);
    number
        .or_else(|| named().map(cast::low_u8))
        .or_else(|| too().map(|(_, number)| *number))
        .ok_or_else(|| LevelError::Level(text.to_owned()))
}

/// Records of these levels: of one and all that are more urgent, or `FROM..TO`, either way round. Records that
/// say no level are among those of all levels.
///
/// # Errors
/// When it is no level or range.
pub fn levels(text: &str) -> Result<Filter, LevelError> {
    let (from, to) = match text.split_once("..") {
        Some((from, to)) => (level(from)?, level(to)?),
        None => (0, level(text)?),
    };
    let (from, to) = (from.min(to), from.max(to));
    if (from, to) == (0, 7) {
        return Ok(Filter::All);
    }
    let listed = Pattern::regex(&format!(r#"^\[(?:.*,)?"[{from}-{to}]"[,\]]"#), false);
    Ok(Filter::or([
        between("PRIORITY", from, to),
        Filter::field("PRIORITY", FieldTest::Contains(listed)),
        of_others(from, to),
    ]))
}

/// Records of other origin that have no priority of their own.
pub(super) fn without_priority() -> Filter {
    let lacks = Filter::negate(Filter::field("PRIORITY", FieldTest::Exists));
    Filter::and([Filter::negate(of_journals()), lacks])
}

/// Records of other origin that say one of these levels: by the severity that all answers have of them.
pub(super) fn of_others(from: u8, to: u8) -> Filter {
    let is_meant = |number: u8| (from..=to).contains(&number);
    let severities = Severity::all().filter(|severity| is_meant(number_of(*severity)));
    let says = Filter::or(severities.map(of_severity));
    // If only one of the two is meant, the words for an emergency tell it from a program's end.
    let says = match (is_meant(EMERGENCY), is_meant(CRITICAL)) {
        (true, false) => Filter::or([says, emergencies()]),
        (false, true) => Filter::and([says, Filter::negate(emergencies())]),
        _ => says,
    };
    Filter::and([without_priority(), says])
}

fn of_severity(severity: Severity) -> Filter {
    let name = severity.name().as_bytes();
    let is_it = FieldTest::Compare(Comparison::Equal, name.into());
    Filter::field(label::SEVERITY, is_it)
}

/// Records that say an emergency, by its number in syslog or a word.
pub(super) fn emergencies() -> Filter {
    let words = format!("^(?:{})$", EMERGENCIES.join("|"));
    let worded = LEVEL_FIELDS.iter().map(|name| {
        let pattern = Pattern::regex(&words, true);
        Filter::field(name, FieldTest::Contains(pattern))
    });
    Filter::and([of_severity(Severity::Fatal), Filter::or(worded)])
}

/// The priority of a record of other origin whose field says a severity in this text.
pub fn priority_of(severity: Severity, text: &[u8]) -> u8 {
    let is_emergency = EMERGENCIES
        .iter()
        .any(|word| text.trim_ascii().eq_ignore_ascii_case(word.as_bytes()));
    match severity {
        Severity::Fatal if is_emergency => EMERGENCY,
        other => number_of(other),
    }
}

fn between(name: &str, from: u8, to: u8) -> Filter {
    let compare = |comparison, number: u8| {
        let number = number.to_string().into_bytes();
        Filter::field(name, FieldTest::Compare(comparison, number.into()))
    };
    if from == to {
        compare(Comparison::Equal, from)
    } else {
        Filter::and([
            compare(Comparison::GreaterOrEqual, from),
            compare(Comparison::LessOrEqual, to),
        ])
    }
}

/// The number of a facility.
///
/// # Errors
/// When it is none.
pub fn facility(text: &str) -> Result<u8, LevelError> {
    let lower = text.trim().to_ascii_lowercase();
    let number = lower.parse().ok().filter(|number| *number <= 23);
    let named = || names().find(|(_, name)| *name == lower);
    number
        .or_else(|| named().map(|(number, _)| cast::low_u8(number)))
        .ok_or_else(|| LevelError::Facility(text.to_owned()))
}

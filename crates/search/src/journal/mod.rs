//! How journals of systemd are asked, as filters: what `journalctl` and `systemd-journal-gatewayd` take
//! on their command lines and in their URLs (`journalctl(1)`, `sd_journal_add_match(3)`).
//!
//! Records that no journal wrote have other names for the same: [`ALIASES`]. A condition on a name of
//! journals holds for them, too, but only where a record has no field of the name itself: what a program
//! says in its message never passes for what the journal vouches for.

mod cursor;
mod level;
mod matches;
mod unit;

use logpond_record::write_json_string;

pub use cursor::Cursor;
pub use level::{FACILITIES, LEVEL_FIELDS, LEVELS, LevelError, facility, level, level_of, levels};
pub use matches::{MatchError, Term, fuzz_matches, matches, term};
pub use unit::{unit, unit_name, user_unit};

use crate::query::{Comparison, FieldTest, Filter, Pattern};

/// Names of journals, and what other records have the same under. The first one for a name of ours is
/// how such a record is shown.
pub const ALIASES: [(&str, &str); 7] = [
    ("PRIORITY", "severity"),
    ("SYSLOG_FACILITY", "facility"),
    ("_HOSTNAME", "hostname"),
    ("SYSLOG_IDENTIFIER", "app"),
    ("SYSLOG_PID", "procid"),
    ("_PID", "procid"),
    ("_SYSTEMD_UNIT", "unit"),
];

/// The message of an entry.
pub const MESSAGE: &str = "MESSAGE";

/// The field that only messages of the kernel have, with this value.
pub const KERNEL: (&str, &[u8]) = ("_TRANSPORT", b"kernel");

/// Fields one of which every entry of a journal has and no other record does.
pub const OF_JOURNALS: [&str; 5] = [
    "_BOOT_ID",
    "_MACHINE_ID",
    "_TRANSPORT",
    "__CURSOR",
    "__REALTIME_TIMESTAMP",
];

/// What other records have under this name of journals.
pub fn alias(name: &str) -> Option<&'static str> {
    let mut aliases = ALIASES.iter();
    aliases.find_map(|(theirs, ours)| (*theirs == name).then_some(*ours))
}

/// Whether a field of a journal may have this name: capitals, digits and underscores, at most 64, no
/// digit first.
pub fn is_journal_name(name: &str) -> bool {
    let is_allowed = |byte: u8| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_');
    (1..=64).contains(&name.len())
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(is_allowed)
}

/// Records one of whose values of this name is this.
pub fn equal(name: &str, value: &[u8]) -> Filter {
    named(name, |name| {
        let same = FieldTest::Compare(Comparison::Equal, value.into());
        let listed = FieldTest::Contains(listed(value));
        Filter::or([Filter::field(name, same), Filter::field(name, listed)])
    })
}

/// Records one of whose values of this name this regular expression matches somewhere.
pub fn like(name: &str, source: &str, case_insensitive: bool) -> Filter {
    named(name, |name| {
        let pattern = Pattern::regex(source, case_insensitive);
        Filter::field(name, FieldTest::Contains(pattern))
    })
}

/// Records that have this name.
pub fn exists(name: &str) -> Filter {
    named(name, |name| Filter::field(name, FieldTest::Exists))
}

/// Entries of journals.
pub fn of_journals() -> Filter {
    let each = OF_JOURNALS.iter();
    Filter::or(each.map(|name| Filter::field(name, FieldTest::Exists)))
}

/// Records whose message this regular expression matches: of an entry the line, of others what is the
/// message in it.
pub fn grep(source: &str, case_insensitive: bool) -> Filter {
    like(MESSAGE, source, case_insensitive)
}

/// Whether a search for this expression ignores case if nobody says so: unless it has a capital.
pub fn is_case_insensitive(source: &str) -> bool {
    !source.chars().any(char::is_uppercase)
}

/// A condition on a name, wherever it is in a record.
fn named(name: &str, condition: impl Fn(&str) -> Filter) -> Filter {
    if name == MESSAGE {
        let line = Filter::and([of_journals(), condition("_raw")]);
        return Filter::or([condition("_msg"), line, condition(MESSAGE)]);
    }
    match alias(name) {
        None => condition(name),
        Some(ours) => {
            let lacks = Filter::negate(Filter::field(name, FieldTest::Exists));
            let other = Filter::and([lacks, condition(ours)]);
            Filter::or([condition(name), other])
        }
    }
}

/// Finds a value in a list, as records have values that repeat, and bytes that are no text.
fn listed(value: &[u8]) -> Pattern {
    let Ok(text) = std::str::from_utf8(value) else {
        let bytes: Vec<String> = value.iter().map(u8::to_string).collect();
        let source = format!(r"^\[(?:.*,\[)?{}\]", bytes.join(","));
        return Pattern::regex(&source, false);
    };
    let mut quoted = Vec::new();
    write_json_string(text, &mut quoted);
    let quoted = String::from_utf8_lossy(&quoted);
    let source = format!(r"^\[(?:.*,)?{}[,\]]", regex_syntax::escape(&quoted));
    Pattern::regex(&source, false)
}

#[cfg(test)]
mod tests;

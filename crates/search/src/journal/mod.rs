//! How journals of systemd are asked, as filters: what `journalctl` and `systemd-journal-gatewayd` take
//! on their command lines and in their URLs (`journalctl(1)`, `sd_journal_add_match(3)`).
//!
//! Records that no journal wrote have other names for the same, see [`names`]. A condition on a name of
//! journals holds for them, too; of an entry of a journal it looks at the field of this name alone: what a
//! program says in its message never passes for what the journal vouches for.

mod cursor;
mod level;
mod matches;
pub mod names;
mod unit;
mod values;

pub use cursor::Cursor;
pub use level::{FACILITIES, LEVELS, LevelError, facility, level, levels, priority_of};
pub use matches::{MatchError, Term, fuzz_matches, matches, term};
pub use names::{field_name, is_journal_name};
pub use unit::{unit, unit_name, user_unit};
pub use values::{ValuesAt, values_of};

use crate::elements::{list_with, quoted};
use crate::number::Number;
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

/// Fields one of which every entry of a journal has and no other record does. The time of an entry alone is none of
/// them: whatever it is, it would be the time of the record.
pub const OF_JOURNALS: [&str; 4] = ["_BOOT_ID", "_MACHINE_ID", "_TRANSPORT", "__CURSOR"];

/// Records one of whose values of this name is this.
pub fn equal(name: &str, value: &[u8]) -> Filter {
    let same = named(name, |name| {
        let same = exactly(value);
        let listed = FieldTest::Contains(listed(value));
        Filter::or([Filter::field(name, same), Filter::field(name, listed)])
    });
    match (name, value) {
        ("PRIORITY", [digit @ b'0'..=b'7']) => {
            let level = digit - b'0';
            Filter::or([same, level::of_others(level, level)])
        }
        _ => same,
    }
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
    match name {
        MESSAGE => message(condition),
        name if names::may_be_another(name) => condition(&format!("{}{name}", names::ENTRY_PREFIX)),
        name => condition(name),
    }
}

/// A condition on the message: of an entry the line, and beside it where it has several; of other records the
/// message in the line, or the line.
fn message(condition: impl Fn(&str) -> Filter) -> Filter {
    let lacks = Filter::negate(Filter::field("_msg", FieldTest::Exists));
    let of_others = Filter::or([
        condition("_msg"),
        Filter::and([lacks, condition("_raw")]),
        condition(MESSAGE),
    ]);
    let of_entries = Filter::or([condition("_raw"), condition(MESSAGE)]);
    Filter::or([
        Filter::and([of_journals(), of_entries]),
        Filter::and([Filter::negate(of_journals()), of_others]),
    ])
}

/// The value itself: journals compare texts, of which several may be one number (`0100`).
fn exactly(value: &[u8]) -> FieldTest {
    match (Number::parse(value), std::str::from_utf8(value)) {
        (Some(Number::Int(int)), Ok(text)) if int.to_string() != text => {
            let source = format!("^{}$", regex_syntax::escape(text));
            FieldTest::Contains(Pattern::regex(&source, false))
        }
        _ => FieldTest::Compare(Comparison::Equal, value.into()),
    }
}

/// Finds a value in a list, as records have values that repeat, and bytes that are no text.
fn listed(value: &[u8]) -> Pattern {
    let Ok(text) = std::str::from_utf8(value) else {
        let bytes: Vec<String> = value.iter().map(u8::to_string).collect();
        let source = format!(r"^\[(?:.*,\[)?{}\]", bytes.join(","));
        return Pattern::regex(&source, false);
    };
    Pattern::regex(&list_with(&quoted(text)), false)
}

#[cfg(test)]
mod tests;

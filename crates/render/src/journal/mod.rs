//! Records as `journalctl` prints them: one file a family of formats, all functions of an [`Entry`].
//!
//! Invariants: an entry that came from a journal is printed as journalctl prints it, but for the order
//! of its fields, which is that of their names (journals have none that means anything); what other
//! records have is under the names that journals have for it (see [`entry`]). Only `cat`, `export` and
//! the JSON formats, and all with [`Style::all`], hand control characters through, unless with
//! [`Style::escapes`].

mod entry;
mod export;
mod json;
mod plain;
mod short;
mod stamp;
mod verbose;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::tz::TimeZone;

pub use entry::{Entry, key_of};
pub use stamp::pretty as pretty_time;

use super::{Render, Row};

/// How entries are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// As syslog's files look: local time, host, program, message.
    #[default]
    Short,
    /// The same with the time in full.
    ShortFull,
    /// The same with the time as in ISO 8601.
    ShortIso,
    /// The same with microseconds.
    ShortIsoPrecise,
    /// As short, with microseconds.
    ShortPrecise,
    /// The time since the boot.
    ShortMonotonic,
    /// The same, and since the entry before.
    ShortDelta,
    /// Seconds since 1970, with microseconds.
    ShortUnix,
    /// As short-full, with the unit in place of the program.
    WithUnit,
    /// All fields, a line each.
    Verbose,
    /// The journal's own form for other programs.
    Export,
    /// An object a line.
    Json,
    /// Objects over many lines.
    JsonPretty,
    /// Objects as events (server-sent events).
    JsonSse,
    /// Objects behind record separators (RFC 7464).
    JsonSeq,
    /// The message alone.
    Cat,
}

impl Format {
    /// Whether there is nothing but data in it.
    pub fn is_data(self) -> bool {
        use Format::{Cat, Export, Json, JsonPretty, JsonSeq, JsonSse};
        matches!(self, Export | Json | JsonPretty | JsonSse | JsonSeq | Cat)
    }

    /// True if it has colours, and escapes text as [`Style::escapes`] says.
    pub fn is_for_people(self) -> bool {
        !self.is_data() || self == Format::Cat
    }
}

/// How it looks.
#[derive(Clone)]
pub struct Style {
    /// In which format.
    pub format: Format,
    /// The zone of times.
    pub zone: TimeZone,
    /// Whether fields are printed whatever is in them, and however long they are.
    pub all: bool,
    /// Columns after which lines are cut; 0 is never.
    pub columns: usize,
    /// Whether there is no host in lines.
    pub no_hostname: bool,
    /// Fields that are left; empty is all.
    pub only: Vec<String>,
    /// Whether colours are used.
    pub colour: bool,
    /// Escapes control characters of records, for terminals. The JSON formats and `export` leave
    /// that to the guard of the terminal.
    pub escapes: bool,
    /// Whether a new boot of a machine gets a line of its own.
    pub marks_boots: bool,
    /// Whether the cursor of the last entry is its record's place, which outlives the entry, rather than
    /// what the journal called it.
    pub has_own_cursors: bool,
    /// What is highlighted in messages where there are colours.
    pub spans: Option<Spans>,
}

/// Finds the parts of a text that matched.
pub type Spans = Arc<dyn Fn(&[u8]) -> Vec<std::ops::Range<usize>> + Send + Sync>;

/// The cursor of the last entry that was printed.
pub type LastCursor = Arc<Mutex<Option<String>>>;

/// Prints entries.
pub struct Journal {
    style: Style,
    last: LastCursor,
    /// Boots by machine.
    boots: HashMap<Vec<u8>, String>,
    before: Option<PreviousEntry>,
}

/// The facts of the entry before.
struct PreviousEntry {
    boot_id: Option<String>,
    since_boot_us: Option<i64>,
    shown_us: i64,
}

/// Machines whose boots are known at a time; of more, a line is missing now and then.
const MACHINES_MAX: usize = 10_000;

impl Journal {
    /// Prints like this; `last` is told of each entry.
    pub fn new(style: Style, last: LastCursor) -> Journal {
        Journal {
            style,
            last,
            boots: HashMap::new(),
            before: None,
        }
    }

    /// Appends an entry.
    pub fn entry(&mut self, entry: &Entry, out: &mut Vec<u8>) {
        if self.style.marks_boots {
            self.mark_boot(entry, out);
        }
        let style = &self.style;
        match style.format {
            Format::Verbose => verbose::write(entry, style, out),
            Format::Export => export::write(entry, style, out),
            Format::Json | Format::JsonSse | Format::JsonSeq | Format::JsonPretty => {
                json::write(entry, style, out);
            }
            Format::Cat => plain::cat(entry, style, out),
            _ => short::write(entry, style, self.before.as_ref(), out),
        }
        if style.format == Format::ShortDelta {
            self.before = Some(PreviousEntry {
                boot_id: entry.boot_id.clone(),
                since_boot_us: entry.since_boot_us(),
                shown_us: entry.shown_us,
            });
        }
        let place = if style.has_own_cursors {
            entry.place.map(logpond_search::journal::Cursor::text)
        } else {
            Some(entry.cursor.clone())
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = place;
    }

    /// Appends a line where a machine was started since its entry before.
    fn mark_boot(&mut self, entry: &Entry, out: &mut Vec<u8>) {
        let Some(boot) = &entry.boot_id else { return };
        let machine = entry.last("_MACHINE_ID").or(entry.last("_HOSTNAME"));
        let machine = machine.unwrap_or_default().to_vec();
        if self.boots.len() >= MACHINES_MAX {
            self.boots.clear();
        }
        let before = self.boots.insert(machine, boot.clone());
        if before.is_none_or(|before| before == *boot) {
            return;
        }
        let (on, off) = if self.style.colour {
            (plain::BRIGHT, plain::NORMAL)
        } else {
            ("", "")
        };
        out.extend_from_slice(format!("{on}-- Boot ").as_bytes());
        plain::put(boot.as_bytes(), &self.style, out);
        out.extend_from_slice(format!(" --{off}\n").as_bytes());
    }
}

impl Render for Journal {
    fn row(&mut self, row: &Row<'_>, out: &mut Vec<u8>) {
        self.entry(&Entry::of(row), out);
    }

    fn gap(&mut self, _out: &mut Vec<u8>) {}
}

impl Style {
    /// Whether a field is printed by formats that print fields.
    fn shows(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}

#[cfg(test)]
mod tests;

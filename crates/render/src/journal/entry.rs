//! A record as an entry of a journal.
//!
//! | of the entry | of an imported or received entry | of any other record |
//! | --- | --- | --- |
//! | `__CURSOR` | as it came, else the record's place | the record's place |
//! | `__REALTIME_TIMESTAMP` | as it came, else the record's time | the record's time |
//! | `__MONOTONIC_TIMESTAMP`, `_BOOT_ID` | as they came | none |
//! | `MESSAGE` | the line | the message, else the line |
//! | `PRIORITY` | as it came | the severity that some field says ([`severity_of`]) |
//! | `SYSLOG_FACILITY`, `_HOSTNAME`, `SYSLOG_IDENTIFIER`, `SYSLOG_PID`, `_SYSTEMD_UNIT` | as they came | `facility`, `hostname`, `app`, `procid`, `unit` |
//! | other fields with names of journals | as they came, each value | as they are |
//! | other fields | left out: they are made of the message or of these | in capitals: `http.method` is `HTTP_METHOD`; names of addresses (`__X`) are left out |
//!
//! A value that is null is none. The time that is shown is that of the program where an entry has it, else the
//! record's.

use logpond_protocol::intake::journal_entry;
use logpond_record::{Id, Timestamp, Value};
use logpond_search::journal::{
    Cursor, MESSAGE, OF_JOURNALS, field_name, is_journal_name, names, priority_of,
};
use logpond_search::label::severity_of;
use logpond_search::order::Key;

use crate::Row;

/// The last time that journals take, in microseconds since 1970; the first one is 1 (`VALID_REALTIME` of systemd).
const REALTIME_US_MAX: i64 = (1 << 55) - 1;

/// One entry to print.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// The record's place, where the row tells it.
    pub place: Option<Key>,
    /// The cursor that is printed.
    pub cursor: String,
    /// When the journal, or we, took it; in microseconds since 1970.
    pub realtime_us: i64,
    /// When that was after the boot.
    pub monotonic_us: Option<i64>,
    /// The boot.
    pub boot_id: Option<String>,
    /// The time that is shown: that of the program, where the journal knows it.
    pub shown_us: i64,
    /// The fields but those above, by name; the values of one name in their order.
    pub fields: Vec<(String, Vec<u8>)>,
}

impl Entry {
    /// The entry that a row stands for; its line should be in the row.
    pub fn of(row: &Row<'_>) -> Entry {
        let time = row.time.unwrap_or(Timestamp(0));
        let place = key_of(row);
        let mut entry = Entry {
            place,
            cursor: place.map(Cursor::text).unwrap_or_default(),
            realtime_us: time.0.div_euclid(1000).clamp(1, REALTIME_US_MAX),
            shown_us: time.0.div_euclid(1000),
            ..Entry::default()
        };
        if OF_JOURNALS.iter().any(|name| row.field(name).is_some()) {
            entry.fill_from_journal(row)
        } else {
            entry.fill_from_other(row)
        }
        entry.fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        entry
    }

    fn fill_from_journal(&mut self, row: &Row<'_>) {
        let named = row.fields.iter().map(|(name, value)| (&**name, value));
        let named = named.filter(|(name, _)| is_journal_name(name));
        let line = row.line.as_deref().or(row.message.as_deref());
        journal_entry::fields_of(named, line.unwrap_or_default(), |name, value| {
            self.take(name, value);
        });
    }

    fn take(&mut self, name: &str, value: &[u8]) {
        let text = || String::from_utf8_lossy(value);
        let number = || text().parse().ok();
        if name == journal_entry::SENT_AT {
            let is_time = |us: &i64| (1..=REALTIME_US_MAX).contains(us);
            self.shown_us = number().filter(is_time).unwrap_or(self.shown_us);
        }
        match name {
            "__CURSOR" => {
                if Cursor::is_of_journals(&text()) {
                    self.cursor = text().into_owned();
                }
            }
            "__REALTIME_TIMESTAMP" => {
                // Of an entry it is the record's time to a microsecond; anything else is no entry's.
                let is_near = |us: &i64| us.abs_diff(self.realtime_us) < 1_000_000;
                self.realtime_us = number().filter(is_near).unwrap_or(self.realtime_us);
            }
            "__MONOTONIC_TIMESTAMP" => self.monotonic_us = number().filter(|us| *us >= 0),
            // Whatever a record says: readers end at an entry with another one.
            "_BOOT_ID" if is_boot_id(value) => self.boot_id = Some(text().into_owned()),
            "_BOOT_ID" => {}
            // Other addresses are for who reads the file itself.
            _ if name.starts_with("__") => {}
            _ => self.fields.push((name.to_owned(), value.to_vec())),
        }
    }

    fn fill_from_other(&mut self, row: &Row<'_>) {
        let message = row.message.as_deref().or(row.line.as_deref());
        if let Some(message) = message {
            self.fields.push((MESSAGE.to_owned(), message.to_vec()));
        }
        if row.field("PRIORITY").is_none() {
            self.fields.extend(priority(row));
        }
        let fields = row.fields.iter().filter(|(_, value)| *value != Value::Null);
        let named = fields.map(|(field, value)| (field_name(field), field, value));
        // Addresses are those of the entry, which this record is not.
        let mut named: Vec<_> = named.filter(|(name, ..)| !name.starts_with("__")).collect();
        // Of several fields that one name means the first counts; and of one field the first, as everywhere.
        named.sort_by(|(a, a_field, _), (b, b_field, _)| {
            (a, names::place(a, a_field)).cmp(&(b, names::place(b, b_field)))
        });
        for (name, _, value) in named {
            if !self.fields.iter().any(|(known, _)| *known == name) {
                self.fields
                    .push((name.into_owned(), value.to_text().into_owned()));
            }
        }
    }

    /// The values of a name.
    pub fn values<'e>(&'e self, name: &'e str) -> impl Iterator<Item = &'e [u8]> {
        let named = self.fields.iter().filter(move |(n, _)| n == name);
        named.map(|(_, value)| value.as_slice())
    }

    /// The last value of a name: the one that is shown where there is room for one.
    pub fn last(&self, name: &str) -> Option<&[u8]> {
        let named = self.fields.iter().rev().find(|(n, _)| n == name);
        named.map(|(_, value)| value.as_slice())
    }

    /// The time after the boot that is shown, in microseconds.
    pub(super) fn since_boot_us(&self) -> Option<i64> {
        let said = self.last("_SOURCE_MONOTONIC_TIMESTAMP");
        let said = said.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        said.or(self.monotonic_us)
    }

    /// Its level.
    pub fn level(&self) -> Option<u8> {
        match self.last("PRIORITY")? {
            [digit @ b'0'..=b'7'] => Some(digit - b'0'),
            _ => None,
        }
    }
}

/// At most 128 bits in hexadecimal digits.
/// The priority of a record of other origin: the severity that all answers have of it.
fn priority(row: &Row<'_>) -> Option<(String, Vec<u8>)> {
    let fields = row.fields.iter();
    let (field, severity) = severity_of(fields.map(|(name, value)| (&**name, value)))?;
    let text = row.fields.iter().find(|(name, _)| name == field);
    let text = text.map(|(_, value)| value.to_text()).unwrap_or_default();
    let priority = priority_of(severity, &text);
    Some(("PRIORITY".to_owned(), priority.to_string().into_bytes()))
}

/// 128 bits in hexadecimal digits: readers of exports end at anything else.
fn is_boot_id(value: &[u8]) -> bool {
    value.len() == 32 && value.iter().all(u8::is_ascii_hexdigit)
}

/// The place of a row.
pub fn key_of(row: &Row<'_>) -> Option<Key> {
    let id: Id = row.id.parse().ok()?;
    Some(Key {
        time: row.time?,
        id,
    })
}

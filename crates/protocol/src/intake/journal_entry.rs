//! Entries of systemd's journal as records, and back.
//!
//! | of the entry | in the record |
//! | --- | --- |
//! | `MESSAGE` | the line, whose form is recognised as anywhere else; empty if there is none |
//! | `__REALTIME_TIMESTAMP`, else `_SOURCE_REALTIME_TIMESTAMP` | the time, by which `journalctl` orders and selects |
//! | every field but `MESSAGE` | a field of the same name |
//! | `PRIORITY`, `SYSLOG_FACILITY` | also `severity` and `facility`, as of syslog |
//! | `_HOSTNAME` | also `hostname` |
//! | `SYSLOG_IDENTIFIER`, else `_COMM` | also `app` |
//! | `SYSLOG_PID`, else `_PID` | also `procid` |
//! | `UNIT` of process 1, else `_SYSTEMD_UNIT` | also `unit` |
//!
//! A value is a number in the fields of [`NUMBERS`] where its text is that of a number, otherwise
//! text. What is no UTF-8 is JSON, a list of its bytes; the values of a name that repeats are a list of
//! texts and such lists: both as `journalctl -o json` writes them. `MESSAGE` is a field, too, if it is
//! there and empty, or repeats; its first value is the line.
//!
//! Invariants: [`fields_of`] gives every field of the entry back, byte for byte; their order, which
//! means nothing, is lost. No field of the line passes for one of the entry: a line with a field that has
//! a name as those of journals (`UNIT`) is kept as text. So what the journal vouches for (`_PID`,
//! `_SYSTEMD_UNIT`) cannot be pretended by a message.

use std::borrow::Cow;

use logpond_record::limits::{FIELDS_MAX, LINE_BYTES_MAX};
use logpond_record::{
    Batch, Entry, EntryKind, Envelope, Id, Labels, Timestamp, Value, write_json_string,
};

use super::audit;
use super::parser::Parser;
use super::push::{RejectReason, check_names, may_be_given};

/// When the program has sent an entry, in microseconds since 1970.
pub const SENT_AT: &str = "_SOURCE_REALTIME_TIMESTAMP";

/// Fields whose values are whole numbers.
pub const NUMBERS: [&str; 24] = [
    "CODE_LINE",
    "ERRNO",
    "OBJECT_GID",
    "OBJECT_PID",
    "OBJECT_UID",
    "PRIORITY",
    "SYSLOG_FACILITY",
    "SYSLOG_PID",
    "TID",
    "_AUDIT_ID",
    "_AUDIT_LOGINUID",
    "_AUDIT_SESSION",
    "_AUDIT_TYPE",
    "_GID",
    "_PID",
    "_PPID",
    "_SOURCE_BOOTTIME_TIMESTAMP",
    "_SOURCE_MONOTONIC_TIMESTAMP",
    SENT_AT,
    "_SYSTEMD_OWNER_UID",
    "_UID",
    "__MONOTONIC_TIMESTAMP",
    "__REALTIME_TIMESTAMP",
    "__SEQNUM",
];

/// Fields that are derived from others, under the names that other intakes use.
pub const DERIVED: [&str; 6] = ["severity", "facility", "hostname", "app", "procid", "unit"];

/// What each of [`DERIVED`] is derived from.
const DERIVED_FROM: [&[&str]; DERIVED.len()] = [
    &["PRIORITY"],
    &["SYSLOG_FACILITY"],
    &["_HOSTNAME"],
    &["SYSLOG_IDENTIFIER", "_COMM"],
    &["SYSLOG_PID", "_PID"],
    &["UNIT", "_SYSTEMD_UNIT"],
];

/// Whether a field beside a line says again, under a name of other intakes, what another one says there.
pub(super) fn is_alias(name: &str, value: &Value<'_>, envelope: &Envelope<'_>) -> bool {
    let Some(at) = DERIVED.iter().position(|derived| *derived == name) else {
        return false;
    };
    let mut others = envelope.fields();
    others
        .any(|(other, said)| DERIVED_FROM[at].contains(&other) && said.to_text() == value.to_text())
}

/// The most bytes of a line that are looked at for fields that would pass for those of its entry; longer
/// ones are kept as text. Structured messages are shorter.
const RECOGNISED_BYTES_MAX: usize = 256 << 10;

/// The most that an envelope adds to its names and values.
const ENVELOPE_BYTES_MAX: usize = 64 << 10;

/// Which entry of which journal it is: by its cursor or, where there is none, by its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The id of the counter.
    pub seqnum_id: u128,
    /// The entry's number.
    pub seqnum: u64,
    /// The boot that it is from.
    pub boot_id: u128,
    /// When the journal took it, in microseconds since 1970.
    pub realtime_us: u64,
}

impl Position {
    /// Reads what a cursor says: `s=…;i=…;b=…;m=…;t=…;x=…`, of which some may be missing.
    fn of_cursor(cursor: &[u8]) -> Option<Position> {
        let text = std::str::from_utf8(cursor).ok()?;
        let part = |letter: &str| {
            let mut parts = text.split(';');
            parts.find_map(|part| part.strip_prefix(letter)?.strip_prefix('='))
        };
        Some(Position {
            seqnum_id: u128::from_str_radix(part("s")?, 16).ok()?,
            seqnum: u64::from_str_radix(part("i")?, 16).ok()?,
            boot_id: u128::from_str_radix(part("b")?, 16).ok()?,
            realtime_us: u64::from_str_radix(part("t")?, 16).ok()?,
        })
    }

    /// Reads the address that newer exports have beside the cursor.
    fn of_address(fields: &SortedFields<'_>) -> Option<Position> {
        let hexadecimal = |name| u128::from_str_radix(fields.text(name)?, 16).ok();
        Some(Position {
            seqnum_id: hexadecimal("__SEQNUM_ID")?,
            seqnum: fields.text("__SEQNUM")?.parse().ok()?,
            boot_id: hexadecimal("_BOOT_ID")?,
            realtime_us: fields.text("__REALTIME_TIMESTAMP")?.parse().ok()?,
        })
    }
}

/// Which entry of which journal it is, if it says so.
pub fn position_of<'a>(
    fields: impl Iterator<Item = (&'a str, &'a [u8])> + Clone,
) -> Option<Position> {
    position(&SortedFields::new(fields))
}

fn position(fields: &SortedFields<'_>) -> Option<Position> {
    let cursor = fields.first("__CURSOR").and_then(Position::of_cursor);
    cursor.or_else(|| Position::of_address(fields))
}

/// The fields of an entry by name.
struct SortedFields<'a>(Vec<(&'a str, &'a [u8])>);

impl<'a> SortedFields<'a> {
    fn new(fields: impl Iterator<Item = (&'a str, &'a [u8])>) -> SortedFields<'a> {
        let mut fields: Vec<_> = fields.collect();
        // Values of one name stay in their order.
        fields.sort_by_key(|(name, _)| *name);
        SortedFields(fields)
    }

    /// The values of each name.
    fn groups(&self) -> impl Iterator<Item = &[(&'a str, &'a [u8])]> {
        self.0.chunk_by(|a, b| a.0 == b.0)
    }

    fn values(&self, name: &str) -> &[(&'a str, &'a [u8])] {
        let from = self.0.partition_point(|(n, _)| *n < name);
        let to = self.0.partition_point(|(n, _)| *n <= name);
        &self.0[from..to]
    }

    fn first(&self, name: &str) -> Option<&'a [u8]> {
        self.values(name).first().map(|(_, value)| *value)
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        std::str::from_utf8(self.first(name)?).ok()
    }

    fn has(&self, name: &str) -> bool {
        self.first(name).is_some()
    }
}

/// Makes records of entries.
pub struct Sealer {
    /// What lines are recognised by, as they will be when they are read.
    parser: Parser,
    no_labels: Labels,
    line_bytes_max: usize,
    is_of_kernel: bool,
}

impl Sealer {
    /// Entries with messages longer than `line_bytes_max`, at most [`LINE_BYTES_MAX`], are rejected.
    pub fn new(line_bytes_max: usize) -> Sealer {
        Sealer {
            parser: Parser::new(),
            no_labels: Labels::new(),
            line_bytes_max: line_bytes_max.min(LINE_BYTES_MAX),
            is_of_kernel: false,
        }
    }

    /// The same of entries that are made here of what the kernel says: its records of audit may say whom
    /// they are about, as no process may.
    pub fn of_kernel(line_bytes_max: usize) -> Sealer {
        Sealer {
            is_of_kernel: true,
            ..Sealer::new(line_bytes_max)
        }
    }

    /// Appends an entry to a batch of enveloped ones; gives its position, if it says one.
    ///
    /// # Errors
    /// Why it cannot be taken; then the batch is as it was.
    pub fn seal<'a>(
        &mut self,
        fields: impl Iterator<Item = (&'a str, &'a [u8])> + Clone,
        batch: &mut Batch,
    ) -> Result<Option<Position>, RejectReason> {
        let fields = SortedFields::new(fields);
        let line = fields.first("MESSAGE").unwrap_or_default();
        if line.len() > self.line_bytes_max {
            return Err(RejectReason::TooLong {
                bytes: line.len(),
                bytes_max: self.line_bytes_max,
            });
        }
        let mut envelope: Vec<(&str, Value<'_>)> = Vec::with_capacity(fields.0.len() + 6);
        for group in fields.groups() {
            if let Some(value) = value_of(group) {
                envelope.push((group[0].0, value));
            }
        }
        check_names(envelope.iter().map(|(name, _)| *name))?;
        let bytes: usize = envelope
            .iter()
            .map(|(name, value)| name.len() + value_bytes(value))
            .sum();
        if bytes + line.len() > LINE_BYTES_MAX - ENVELOPE_BYTES_MAX {
            let reason = "with the bytes of its values listed it is longer than an entry may be";
            return Err(RejectReason::Malformed(reason.to_owned()));
        }
        let derived = derived(&fields).filter(|(name, _)| !fields.has(name));
        let room = FIELDS_MAX - envelope.len();
        envelope.extend(derived.take(room));
        let kind = self.kind(line, &fields);
        let each = envelope.iter().map(|(name, value)| (*name, value));
        batch.push_enveloped(kind, time_of(&fields), each, line);
        Ok(position(&fields))
    }

    /// How the line is to be read: for what it is, unless a field of it would pass for one of an entry.
    fn kind(&mut self, line: &[u8], fields: &SortedFields<'_>) -> EntryKind {
        if line.len() > RECOGNISED_BYTES_MAX {
            return EntryKind::Text;
        }
        let record = self.parser.parse(&Entry {
            id: Id::MIN,
            received: Timestamp(0),
            kind: EntryKind::Line,
            labels: &self.no_labels,
            envelope: Envelope::default(),
            raw: line,
        });
        let may_name = self.is_of_kernel && audit::is_candidate(line);
        let slots = record.shape.slots().iter();
        let mut own = slots.filter(|slot| slot.is_field());
        let would_pass = |name: &str| fields.has(name) || (is_journal_name(name) && !may_name);
        if own.any(|slot| would_pass(&slot.name)) {
            EntryKind::Text
        } else {
            EntryKind::Line
        }
    }
}

/// Whether a field of a journal may have this name.
fn is_journal_name(name: &str) -> bool {
    let is_allowed = |byte: u8| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_');
    !name.starts_with(|c: char| c.is_ascii_digit()) && name.bytes().all(is_allowed)
}

/// The value of a field that is in the record beside the line; `None` if the line is all of it.
fn value_of<'a>(group: &[(&'a str, &'a [u8])]) -> Option<Value<'a>> {
    let [(name, value)] = group else {
        return Some(list_of(group));
    };
    match (*name, std::str::from_utf8(value)) {
        ("MESSAGE", _) if !value.is_empty() => None,
        (_, Ok(text)) => Some(typed(name, text)),
        (_, Err(_)) => Some(list_of_bytes(value)),
    }
}

fn typed<'a>(name: &str, text: &'a str) -> Value<'a> {
    let number = match NUMBERS.binary_search(&name) {
        Ok(_) => text.parse::<i64>().ok(),
        Err(_) => None,
    };
    match number {
        Some(number) if number.to_string() == text => Value::Int(number),
        _ => Value::Str(Cow::Borrowed(text)),
    }
}

fn list_of(group: &[(&str, &[u8])]) -> Value<'static> {
    let mut list = vec![b'['];
    for (at, (_, value)) in group.iter().enumerate() {
        if at > 0 {
            list.push(b',');
        }
        match std::str::from_utf8(value) {
            Ok(text) => write_json_string(text, &mut list),
            Err(_) => write_bytes(value, &mut list),
        }
    }
    list.push(b']');
    json(list)
}

fn list_of_bytes(value: &[u8]) -> Value<'static> {
    let mut list = Vec::with_capacity(4 * value.len() + 2);
    write_bytes(value, &mut list);
    json(list)
}

fn write_bytes(value: &[u8], out: &mut Vec<u8>) {
    out.push(b'[');
    for (at, byte) in value.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        logpond_record::write_int(i64::from(*byte), out);
    }
    out.push(b']');
}

fn json(text: Vec<u8>) -> Value<'static> {
    // Nothing but texts and digits was written.
    Value::Json(Cow::Owned(String::from_utf8(text).unwrap_or_default()))
}

fn value_bytes(value: &Value<'_>) -> usize {
    match value {
        Value::Str(text) | Value::Json(text) => text.len(),
        _ => 8,
    }
}

fn derived<'a>(fields: &SortedFields<'a>) -> impl Iterator<Item = (&'a str, Value<'a>)> + use<'a> {
    let level = |name, max| {
        let number: i64 = fields.text(name)?.parse().ok()?;
        (0..=max).contains(&number).then_some(Value::Int(number))
    };
    let text = |names: [&str; 2]| {
        let mut found = names.into_iter().filter_map(|name| fields.text(name));
        found
            .find(|text| !text.is_empty())
            .map(|text| Value::Str(Cow::Borrowed(text)))
    };
    let unit = match fields.first("_PID") {
        Some(b"1") => text(["UNIT", "_SYSTEMD_UNIT"]),
        _ => text(["_SYSTEMD_UNIT", "_SYSTEMD_UNIT"]),
    };
    let values = [
        level("PRIORITY", 7),
        level("SYSLOG_FACILITY", 23),
        text(["_HOSTNAME", "_HOSTNAME"]),
        text(["SYSLOG_IDENTIFIER", "_COMM"]),
        text(["SYSLOG_PID", "_PID"]),
        unit,
    ];
    let named = DERIVED.into_iter().zip(values);
    named.filter_map(|(name, value)| Some((name, value?)))
}

/// The entry's time; `None` if it says none that a record may have. By the time at which the journal took them
/// entries are in the order of the journal, which those of programs are not.
fn time_of(fields: &SortedFields<'_>) -> Option<Timestamp> {
    let names = ["__REALTIME_TIMESTAMP", SENT_AT];
    let mut times = names.into_iter().filter_map(|name| {
        let us: i64 = fields.text(name)?.parse().ok()?;
        let time = Timestamp(us.checked_mul(1000)?);
        may_be_given(time).then_some(time)
    });
    times.next()
}

/// Gives the fields of the entry that a record was made of: `fields` are those beside the line.
/// A field that no entry had, or whose value makes no sense, is passed over.
pub fn fields_of<'r>(
    fields: impl Iterator<Item = (&'r str, &'r Value<'r>)>,
    line: &[u8],
    mut take: impl FnMut(&str, &[u8]),
) {
    let mut has_message = false;
    for (name, value) in fields {
        let is_derived = DERIVED.contains(&name) || name.is_empty();
        if is_derived {
            continue;
        }
        has_message |= name == "MESSAGE";
        match value {
            Value::Json(text) => {
                for value in values_of(text) {
                    take(name, &value);
                }
            }
            value => take(name, &value.to_text()),
        }
    }
    if !has_message && !line.is_empty() {
        take("MESSAGE", line);
    }
}

/// The values that a list stands for.
fn values_of(text: &str) -> Vec<Vec<u8>> {
    let Ok(list) = serde_json::from_str::<Vec<serde_json::Value>>(text) else {
        return Vec::new();
    };
    if let Some(bytes) = bytes_of(&list).filter(|bytes| !bytes.is_empty()) {
        return vec![bytes];
    }
    let each = list.into_iter().filter_map(|value| match value {
        serde_json::Value::String(text) => Some(text.into_bytes()),
        serde_json::Value::Array(list) => bytes_of(&list),
        _ => None,
    });
    each.collect()
}

/// The bytes that a list of numbers stands for.
fn bytes_of(list: &[serde_json::Value]) -> Option<Vec<u8>> {
    let byte = |value: &serde_json::Value| u8::try_from(value.as_u64()?).ok();
    list.iter().map(byte).collect()
}

#[cfg(test)]
mod tests;

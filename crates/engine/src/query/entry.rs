//! A record as a line with its labels, its time and its id, for those who follow: one line of JSON, so
//! that it stands among notices.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use logpond_record::{Record, Timestamp};
use logpond_search::logql::NamedLabels;
use logpond_search::order::Key;
use logpond_search::pipeline::Labels;
use serde::{Deserialize, Serialize};

use super::line_rows;

/// As it is written.
#[derive(Deserialize, Serialize)]
struct Entry<'a> {
    #[serde(rename = "_t")]
    time_ns: i64,
    #[serde(rename = "_id")]
    id: &'a str,
    /// The line with its labels.
    row: &'a str,
}

/// Appends a record with the labels that it comes with, and those of these names.
pub(super) fn write(record: &Record<'_>, names: &NamedLabels, out: &mut Vec<u8>) {
    let mut row = Vec::new();
    line_rows::write(record, names, &mut row);
    let entry = Entry {
        time_ns: record.time.0,
        id: &record.id.to_string(),
        row: &STANDARD.encode(row),
    };
    // Writing to a vector cannot fail.
    let _ = serde_json::to_writer(out, &entry);
}

/// Reads what was written of a record: puts the labels into `labels`, and returns its place and its
/// line. Nothing for all else.
pub fn read_entry(text: &[u8], labels: &mut Labels) -> Option<(Key, Vec<u8>)> {
    let entry: Entry<'_> = serde_json::from_slice(text).ok()?;
    let row = STANDARD.decode(entry.row).ok()?;
    let line = line_rows::read(&row, labels).ok()?;
    let key = Key {
        time: Timestamp(entry.time_ns),
        id: entry.id.parse().ok()?,
    };
    Some((key, line.to_vec()))
}

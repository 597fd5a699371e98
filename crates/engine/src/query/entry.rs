//! A record as a line with its labels, behind its time and its id: for those who follow.

use logpond_record::{Id, Record};
use logpond_search::logql::NamedLabels;
use logpond_search::order::Key;
use logpond_search::pipeline::Labels;
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use super::line_rows;

/// Appends a record with the labels that it comes with, and those of these names.
pub(super) fn write(record: &Record<'_>, names: &NamedLabels, out: &mut Vec<u8>) {
    let mut place = Encoder::onto(std::mem::take(out));
    place.time(record.time);
    place.wide(record.id.0);
    *out = place.finish();
    line_rows::write(record, names, out);
}

/// Reads what was written of a record: puts the labels into `labels`, and returns its place and its line.
///
/// # Errors
/// When it is no such row.
pub fn read_entry<'r>(row: &'r [u8], labels: &mut Labels) -> Result<(Key, &'r [u8]), DecodeError> {
    let mut from = Decoder::bare(row);
    let time = from.time("the time of a line")?;
    let id = Id(from.wide("the id of a line")?);
    let line = line_rows::read(from.rest(), labels)?;
    Ok((Key { time, id }, line))
}

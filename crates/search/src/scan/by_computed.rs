//! Rows of a block by what a condition says of a label that is computed.

use logpond_record::Value;
use logpond_segment::file::ReadError;

use super::evaluate::select_by_record;
use super::group::GroupScan;
use super::labels::Source;
use crate::field::FieldMatcher;
use crate::label::Computed;

/// The rows whose computed label is wanted: of each what the first of some columns says that has a text.
pub(super) fn select_by_computed(
    label: Computed,
    matcher: &FieldMatcher,
    number: usize,
    scan: &mut GroupScan<'_>,
    rows: Vec<u32>,
) -> Result<Vec<u32>, ReadError> {
    let sources = scan.sources(Some(&[label.name().into()]))?;
    let all: Vec<&Source> = sources.iter().collect();
    let schema = &scan.directory.schema;
    let mut columns = sources.iter().flat_map(|source| &source.columns);
    if columns.any(|column| scan.mixes_numbers(&schema.columns[column.number].name)) {
        // How such a number is written is known to its record alone.
        return select_by_record(matcher, scan, rows);
    }
    let (mut rest, odd) = scan.split(&rows, &all, false)?;
    let mut wanted = select_by_record(matcher, scan, odd)?;
    for source in &sources {
        let is_wanted =
            |value: &Value<'_>| matcher.matches_value(Some(&Value::text(&source.text(value))));
        for column in &source.columns {
            if rest.is_empty() {
                break;
            }
            let present = scan.part_by_presence(column.number, rest)?;
            rest = present.without;
            let parted = scan.part_by_column(column.number, number, present.wanted, is_wanted)?;
            wanted.extend(parted.wanted);
        }
    }
    let unknown = Value::Str(label.unknown().into());
    if matcher.matches_value(Some(&unknown)) {
        wanted.extend(rest);
    }
    wanted.sort_unstable();
    Ok(wanted)
}

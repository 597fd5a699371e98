//! The order of rows in a row group: similar rows together, then by time.

use logpond_record::cast;

use super::builder::Rows;
use super::column::{Column, StringColumn};

/// The most distinct values of a field that rows are grouped by.
const DISTINCT_MAX: usize = 1024;

/// The most fields that rows are grouped by.
const FIELDS_MAX: usize = 3;

/// Rows per group below which further grouping only scatters time.
const ROWS_PER_GROUP_MIN: usize = 64;

/// Cuts rows into slices of time, none of which has more lines than `bytes_max` and `rows_max`
/// allow, except that a slice has a row at least. Rows of a slice are in time order.
pub fn time_slices(rows: &Rows, bytes_max: u64, rows_max: usize) -> Vec<Vec<u32>> {
    let mut all: Vec<u32> = (0..cast::low_u32(rows.len())).collect();
    all.sort_unstable_by_key(|row| by_time(rows, *row));
    let total: u64 = rows.line_bytes.iter().map(|b| u64::from(*b)).sum();
    if total <= bytes_max && all.len() <= rows_max {
        return vec![all];
    }
    let mut slices = Vec::new();
    let (mut from, mut bytes) = (0, 0);
    for (at, row) in all.iter().enumerate() {
        let line = u64::from(rows.line_bytes[*row as usize]);
        if at > from && (bytes + line > bytes_max || at - from >= rows_max) {
            slices.push(all[from..at].to_vec());
            (from, bytes) = (at, 0);
        }
        bytes += line;
    }
    slices.push(all[from..].to_vec());
    slices
}

fn by_time(rows: &Rows, row: u32) -> (i64, u32, i64) {
    let at = row as usize;
    (rows.time[at], rows.source[at], rows.number[at])
}

/// The order in which the rows of a slice are stored: grouped by their templates and by fields of few
/// distinct values (measured here, on these rows), then by time, then by source and number.
pub fn sorted_order(rows: &Rows, slice: &[u32], templates: Option<&StringColumn>) -> Vec<u32> {
    let keys = sort_keys(rows, slice.len(), templates);
    let group = |row: u32| {
        keys.iter().fold(0, |key, (column, bits)| {
            (key << bits) | rank(column, row as usize)
        })
    };
    let mut order: Vec<(u64, u32)> = slice.iter().map(|row| (group(*row), *row)).collect();
    // Rows of a slice are in time order, and stay so within a group.
    order.sort_by_key(|(key, _)| *key);
    order.into_iter().map(|(_, row)| row).collect()
}

/// The place of a row's value; rows without one come first.
fn rank(column: &StringColumn, row: usize) -> u64 {
    u64::from(column.codes[row].wrapping_add(1))
}

/// The columns to group by with the bits of their ranks, most telling first.
fn sort_keys<'r>(
    rows: &'r Rows,
    rows_count: usize,
    templates: Option<&'r StringColumn>,
) -> Vec<(&'r StringColumn, u32)> {
    let mut candidates: Vec<(usize, &StringColumn)> = rows
        .fields
        .iter()
        .filter_map(|column| match column {
            Column::Strings(strings) => Some(strings),
            _ => None,
        })
        .chain([&rows.shape])
        .map(|strings| (strings.values.len(), strings))
        .filter(|(distinct, strings)| (2..=DISTINCT_MAX).contains(distinct) && is_frequent(strings))
        .collect();
    // Few values first: they split the rows into the largest groups. The order of columns breaks
    // ties, so equal rows give equal files.
    candidates.sort_by_key(|(distinct, _)| *distinct);
    let mut groups = 1;
    let mut keys = Vec::new();
    let bits = |distinct: usize| usize::BITS - distinct.leading_zeros();
    // A search decides about a template once, and skips blocks that have none that it wants.
    if let Some(templates) = templates.filter(|templates| templates.values.len() > 1) {
        groups = templates.values.len();
        keys.push((templates, bits(groups)));
    }
    let fields_max = keys.len() + FIELDS_MAX;
    for (distinct, strings) in candidates {
        if keys.len() < fields_max && rows_count / (groups * distinct) >= ROWS_PER_GROUP_MIN {
            groups *= distinct;
            keys.push((strings, bits(distinct)));
        }
    }
    keys
}

fn is_frequent(strings: &StringColumn) -> bool {
    let present = strings.codes.iter().filter(|c| **c != super::NULL).count();
    present * 2 >= strings.codes.len()
}

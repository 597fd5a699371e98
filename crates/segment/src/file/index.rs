//! Filling the token index from a row group's columns.
//!
//! Invariant: every token of every line, and of every value by itself, is added to the block of
//! its row, except those that look like fractions of a second (see
//! [`crate::tokens::may_be_time_fraction`]). Values that many rows share are cut into tokens once
//! per block, not once per row.

use std::ops::Range;

use logpond_record::{Piece, Shape, SlotKind, Timestamp, write_int};

use crate::rows::{
    Column, ColumnType, Fixes, NULL, Overflow, Plans, Rows, RowsView, Schema, StringColumn,
    write_number,
};
use crate::tokens::{TokenCollector, is_token_byte};

/// Collects the tokens of one row group, block by block.
pub(super) struct RowGroupTokens<'a> {
    rows: &'a Rows,
    schema: &'a Schema,
    view: RowsView<'a>,
    /// For every code of a dictionary, the last block (plus one) that it was added to.
    seen: Vec<Vec<u32>>,
    scratch: Vec<u8>,
}

/// What the index must know of a row's shape.
struct ShapeTraits<'a> {
    code: u32,
    glued: bool,
    priority: bool,
    time: Option<&'a logpond_record::TimePattern>,
    /// Whether the fraction of the time needs no token.
    fraction_skipped: bool,
}

impl<'a> RowGroupTokens<'a> {
    pub(super) fn new(
        rows: &'a Rows,
        schema: &'a Schema,
        plans: &'a mut Plans,
    ) -> RowGroupTokens<'a> {
        let strings = string_columns(rows)
            .map(|s| vec![0; s.values.len()])
            .collect();
        let view = RowsView::new(rows, schema, plans);
        RowGroupTokens {
            rows,
            schema,
            view,
            seen: strings,
            scratch: Vec::new(),
        }
    }

    /// Adds the tokens of a block, that is of `order[block]`.
    pub(super) fn add_block(
        &mut self,
        order: &[u32],
        block: Range<usize>,
        number: u32,
        out: &mut TokenCollector,
    ) {
        let rows = &order[block];
        for (strings, seen) in string_columns(self.rows).zip(&mut self.seen) {
            add_strings(strings, rows, number + 1, seen, out);
        }
        for (column, spec) in self.rows.fields.iter().zip(&self.schema.columns) {
            add_numbers(column, spec.kind, rows, &mut self.scratch, out);
        }
        for &row in rows {
            let row = row as usize;
            self.rows
                .more
                .get(row)
                .into_iter()
                .flat_map(Overflow::new)
                .for_each(|(_, value)| {
                    add_text(&value.to_text(), out);
                });
            Fixes::new(self.rows.fix.get(row)).for_each(|(_, text)| out.add_text(text));
        }
        self.add_lines(rows, out);
        out.end_block();
    }

    /// Adds what stands in lines but in no value: literals, times, priorities.
    fn add_lines(&mut self, rows: &[u32], out: &mut TokenCollector) {
        let mut last: Option<(u32, i64, i64)> = None;
        let mut known: Vec<ShapeTraits<'_>> = Vec::new();
        let mut scratch = std::mem::take(&mut self.scratch);
        for &row in rows {
            let row = row as usize;
            if self.rows.whole.codes[row] != NULL {
                continue;
            }
            let code = self.rows.shape.codes[row];
            let at = match known.iter().position(|k| k.code == code) {
                Some(at) => at,
                None => {
                    known.push(learn(code, self.view.shape(row), out));
                    known.len() - 1
                }
            };
            let traits = &known[at];
            scratch.clear();
            if traits.glued {
                self.view.write_line(row, &mut scratch);
                out.add_text(&scratch);
                continue;
            }
            let priority = if traits.priority {
                self.priority(row)
            } else {
                -1
            };
            let second = Timestamp(self.rows.time[row]).seconds().0;
            let same = last == Some((code, second, priority));
            last = Some((code, second, priority));
            if traits.priority && !same {
                write_int(priority, &mut scratch);
                out.add_token(&scratch);
                scratch.clear();
            }
            if let Some(pattern) = traits.time.filter(|_| !(same && traits.fraction_skipped)) {
                pattern.render(Timestamp(self.rows.time[row]), &mut scratch);
                out.add_text(&scratch);
            }
        }
        self.scratch = scratch;
    }

    fn priority(&self, row: usize) -> i64 {
        let number = |name: &str| {
            let column = self.schema.column(name)?;
            self.view.column_value(column, row)?.as_number()
        };
        let overflow = |name: &str| Overflow::find(self.rows.more.get(row)?, name)?.as_number();
        let part = |name: &str| number(name).or_else(|| overflow(name)).unwrap_or(0.0) as i64;
        part("facility") * 8 + part("severity")
    }
}

/// Adds the literals of a shape, and says what else its lines need.
fn learn<'s>(code: u32, shape: &'s Shape, out: &mut TokenCollector) -> ShapeTraits<'s> {
    for piece in shape.pieces() {
        if let Piece::Literal(text) = piece {
            out.add_text(text.as_bytes());
        }
    }
    let kinds = || shape.slots().iter().map(|slot| &slot.kind);
    let time = kinds().find_map(|kind| match kind {
        SlotKind::Time(pattern) => Some(pattern),
        _ => None,
    });
    if kinds().any(|k| *k == SlotKind::Null) {
        out.add_token(b"null");
    }
    ShapeTraits {
        code,
        glued: shape.is_glued(is_token_byte),
        priority: kinds().any(|k| *k == SlotKind::Severity),
        fraction_skipped: time.is_some_and(|p| {
            p.as_str().ends_with("f%z[Z]") || p.as_str().contains("%S") && !p.as_str().contains('f')
        }),
        time,
    }
}

/// The columns of text in which equal values share a code.
fn string_columns(rows: &Rows) -> impl Iterator<Item = &StringColumn> {
    let fields = rows.fields.iter().filter_map(|column| match column {
        Column::Strings(strings) => Some(strings),
        _ => None,
    });
    [&rows.message, &rows.message_bytes, &rows.whole]
        .into_iter()
        .chain(fields)
}

fn add_strings(
    strings: &StringColumn,
    rows: &[u32],
    stamp: u32,
    seen: &mut [u32],
    out: &mut TokenCollector,
) {
    for &row in rows {
        let code = strings.codes[row as usize];
        if code != NULL && seen[code as usize] != stamp {
            seen[code as usize] = stamp;
            add_text(strings.values.get(code), out);
        }
    }
}

/// Adds the tokens of a value, and of the form that JSON escapes give it in a line.
fn add_text(text: &[u8], out: &mut TokenCollector) {
    out.add_text(text);
    if text.iter().any(|byte| *byte < 0x20) {
        let mut escaped = Vec::with_capacity(text.len() + 16);
        SlotKind::JsonString.write_text(text, &mut escaped);
        out.add_text(&escaped);
    }
}

fn add_numbers(
    column: &Column,
    kind: ColumnType,
    rows: &[u32],
    scratch: &mut Vec<u8>,
    out: &mut TokenCollector,
) {
    let mut last = None;
    for &row in rows {
        let row = row as usize;
        let bits = match column {
            Column::Ints(numbers) => numbers.get(row),
            Column::Floats(numbers) => numbers.get(row).map(|f| f.to_bits() as i64),
            Column::Bools(numbers) => numbers.get(row).map(i64::from),
            Column::Strings(_) | Column::Absent => return,
        };
        let Some(bits) = bits.filter(|_| bits != last) else {
            continue;
        };
        last = Some(bits);
        scratch.clear();
        match column {
            Column::Floats(_) => logpond_record::write_float(f64::from_bits(bits as u64), scratch),
            Column::Bools(_) => {
                scratch.extend_from_slice(if bits == 1 { b"true" } else { b"false" })
            }
            _ => write_number(kind, bits, scratch),
        }
        out.add_text(scratch);
    }
}

//! Filling the token index from a row group's columns.
//!
//! Invariant: every token of every line, and of every value by itself, is added to the block of
//! its row, except those that look like fractions of a second (see
//! [`crate::tokens::may_be_time_fraction`]). Values that many rows share are cut into tokens once
//! per block, not once per row.

use std::ops::Range;

use logpond_record::{Piece, Shape, SlotKind, Timestamp, Value, cast, write_int};

use crate::rows::{
    Column, ColumnType, Fixes, NULL, Overflow, Plans, Rows, RowsView, Schema, StringColumn,
    Strings, write_number,
};
use crate::tokens::{TokenCollector, is_token_byte};

/// The fields that a priority is made of: eight times the first, and the second.
const PRIORITY_FIELDS: [&str; 2] = ["facility", "severity"];

/// Numbers that a block is known to have: most columns repeat a few. One that is forgotten is just added
/// again.
struct RecentNumbers([Option<i64>; 64]);

impl RecentNumbers {
    fn new() -> RecentNumbers {
        RecentNumbers([None; 64])
    }

    /// Whether a number was not added lately.
    fn is_new(&mut self, number: i64) -> bool {
        let place = cast::unsigned(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
        self.0[place as usize].replace(number) != Some(number)
    }
}

/// Collects the tokens of one row group, block by block.
pub(super) struct RowGroupTokens<'a> {
    rows: &'a Rows,
    schema: &'a Schema,
    view: RowsView<'a>,
    /// For every code of a dictionary, the last block (plus one) that it was added to.
    seen: Vec<Vec<u32>>,
    /// The columns of facility and severity, which make a priority.
    priority_columns: [Option<usize>; 2],
    texts: Texts,
}

/// What a block has, one after another with spaces between: cut into tokens at once, while it is in the
/// processor's cache.
#[derive(Default)]
struct Texts(Vec<u8>);

impl Texts {
    fn add(&mut self, text: &[u8]) {
        self.0.extend_from_slice(text);
        self.0.push(b' ');
    }

    /// Adds a text that is written.
    fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.0);
        self.0.push(b' ');
    }

    /// Adds a value, also in the form that JSON escapes give it in a line.
    fn add_value(&mut self, text: &[u8]) {
        self.add(text);
        if has_control(text) {
            self.write(|out| SlotKind::JsonString.write_text(text, out));
        }
    }

    fn tokens_to(&mut self, out: &mut TokenCollector) {
        out.add_text(&self.0);
        self.0.clear();
    }
}

/// Whether a text has bytes that JSON escapes, quotes and backslashes left aside.
fn has_control(text: &[u8]) -> bool {
    // To its end in any case: many bytes are compared at once then.
    text.iter().fold(false, |has, byte| has | (*byte < 0x20))
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
            priority_columns: PRIORITY_FIELDS.map(|name| schema.column(name)),
            texts: Texts::default(),
        }
    }

    /// Adds the tokens of a block.
    pub(super) fn add_block(&mut self, block: Range<usize>, number: u32, out: &mut TokenCollector) {
        for (strings, seen) in string_columns(self.rows).zip(&mut self.seen) {
            add_strings(
                &strings.values,
                &strings.codes[block.clone()],
                number + 1,
                seen,
                &mut self.texts,
            );
        }
        for (column, spec) in self.rows.fields.iter().zip(&self.schema.columns) {
            add_numbers(column, spec.kind, block.clone(), &mut self.texts);
        }
        for row in block.clone() {
            let others = self.rows.more.get(row).into_iter().flat_map(Overflow::new);
            others.for_each(|(_, value)| self.texts.add_value(&value.to_text()));
            Fixes::new(self.rows.fix.get(row)).for_each(|(_, text)| self.texts.add(text));
        }
        self.add_lines(block);
        self.texts.tokens_to(out);
        out.end_block();
    }

    /// Adds what stands in lines but in no value: literals, times, priorities.
    fn add_lines(&mut self, block: Range<usize>) {
        let mut last: Option<(u32, i64)> = None;
        let mut known: Vec<ShapeTraits<'_>> = Vec::new();
        let mut priorities = RecentNumbers::new();
        let mut texts = std::mem::take(&mut self.texts);
        for row in block {
            if self.rows.whole.codes[row] != NULL {
                continue;
            }
            let code = self.rows.shape.codes[row];
            let at = match known.iter().position(|k| k.code == code) {
                Some(at) => at,
                None => {
                    known.push(learn(code, self.view.shape(row), &mut texts));
                    known.len() - 1
                }
            };
            let traits = &known[at];
            if traits.glued {
                texts.write(|out| self.view.write_line(row, out));
                continue;
            }
            if traits.priority {
                let priority = self.priority(row);
                if priorities.is_new(priority) {
                    texts.write(|out| write_int(priority, out));
                }
            }
            let Some(pattern) = traits.time else {
                continue;
            };
            let time = Timestamp(self.rows.time[row]);
            let second = time.seconds().0;
            let same = last.replace((code, second)) == Some((code, second));
            if !(same && traits.fraction_skipped) {
                texts.write(|out| pattern.render(time, out));
            }
        }
        self.texts = texts;
    }

    fn priority(&self, row: usize) -> i64 {
        let [facility, severity] = [0, 1].map(|part| {
            let value = self.priority_columns[part]
                .and_then(|column| self.view.column_value(column, row))
                .or_else(|| Overflow::find(self.rows.more.get(row)?, PRIORITY_FIELDS[part]));
            match value {
                Some(Value::Int(number)) => number,
                other => cast::whole_i64(other.and_then(|value| value.as_number()).unwrap_or(0.0)),
            }
        });
        facility.wrapping_mul(8).wrapping_add(severity)
    }
}

/// Adds the literals of a shape, and says what else its lines need.
fn learn<'s>(code: u32, shape: &'s Shape, texts: &mut Texts) -> ShapeTraits<'s> {
    for piece in shape.pieces() {
        if let Piece::Literal(text) = piece {
            texts.add(text.as_bytes());
        }
    }
    let kinds = || shape.slots().iter().map(|slot| &slot.kind);
    let time = kinds().find_map(|kind| match kind {
        SlotKind::Time(pattern) => Some(pattern),
        _ => None,
    });
    if kinds().any(|k| *k == SlotKind::Null) {
        texts.add(b"null");
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

fn add_strings(values: &Strings, codes: &[u32], stamp: u32, seen: &mut [u32], texts: &mut Texts) {
    for &code in codes {
        if code != NULL && seen[code as usize] != stamp {
            seen[code as usize] = stamp;
            texts.add_value(values.get(code));
        }
    }
}

fn add_numbers(column: &Column, kind: ColumnType, block: Range<usize>, texts: &mut Texts) {
    let mut known = RecentNumbers::new();
    for row in block {
        let bits = match column {
            Column::Ints(numbers) => numbers.get(row),
            Column::Floats(numbers) => numbers.get(row).map(|f| cast::signed(f.to_bits())),
            Column::Bools(numbers) => numbers.get(row).map(i64::from),
            Column::Strings(_) | Column::Absent => return,
        };
        let Some(bits) = bits.filter(|bits| known.is_new(*bits)) else {
            continue;
        };
        texts.write(|out| match column {
            Column::Floats(_) => {
                logpond_record::write_float(f64::from_bits(cast::unsigned(bits)), out)
            }
            Column::Bools(_) => out.extend_from_slice(if bits == 1 { b"true" } else { b"false" }),
            _ => write_number(kind, bits, out),
        });
    }
}

//! Rows of a block by what a condition says of their values in one column.

use std::sync::Arc;

use logpond_record::{Value, cast};
use logpond_segment::file::ReadError;
use logpond_segment::rows::{
    Column, ColumnType, NULL, Numbers, StringColumn, Strings, column_value, number_value,
    string_value,
};

use super::block::has_value;
use super::group::GroupScan;

/// How many whole numbers of a column are remembered with what was decided about them.
const NUMBERS_KNOWN: usize = 64;

/// What a condition has decided about values in a row group.
#[derive(Default)]
pub(super) struct Decisions {
    dictionary: Option<Arc<Strings>>,
    /// By the codes of the dictionary: 0 unknown, 1 no, 2 yes.
    by_code: Vec<u8>,
    /// About the one value that all rows have in a column, with the column's number.
    of_all: Option<(usize, bool)>,
}

impl Decisions {
    /// What was decided about the texts of this dictionary.
    pub(super) fn of(&mut self, dictionary: &Arc<Strings>) -> &mut [u8] {
        if !self
            .dictionary
            .as_ref()
            .is_some_and(|known| Arc::ptr_eq(known, dictionary))
        {
            self.dictionary = Some(Arc::clone(dictionary));
            self.by_code.clear();
            self.by_code.resize(dictionary.len(), 0);
        }
        &mut self.by_code
    }

    /// What was decided about all rows by their value in a column.
    fn of_all(&self, column: usize) -> Option<bool> {
        let decided = self.of_all.filter(|(known, _)| *known == column);
        decided.map(|(_, is_wanted)| is_wanted)
    }
}

/// Rows that were parted by a condition; both are in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RowPartition {
    /// Those whose value is wanted.
    pub(super) wanted: Vec<u32>,
    /// Those without a value.
    pub(super) without: Vec<u32>,
}

impl RowPartition {
    /// None has a value.
    pub(super) fn without_value(rows: Vec<u32>) -> RowPartition {
        RowPartition {
            wanted: Vec::new(),
            without: rows,
        }
    }

    fn all_or_none(rows: Vec<u32>, are_wanted: bool) -> RowPartition {
        RowPartition {
            wanted: if are_wanted { rows } else { Vec::new() },
            without: Vec::new(),
        }
    }
}

impl GroupScan<'_> {
    /// Parts rows of the block at hand by their values in a column; the condition has this number in the
    /// memory of decisions.
    ///
    /// # Errors
    /// When the block cannot be read.
    pub(super) fn part_by_column(
        &mut self,
        column: usize,
        number: usize,
        rows: Vec<u32>,
        is_wanted: impl Fn(&Value<'_>) -> bool,
    ) -> Result<RowPartition, ReadError> {
        let kind = self.directory.schema.columns[column].kind;
        let is_uniform = self.reader.is_uniform(column);
        let (block, reader, decisions) = self.parts();
        let decisions = &mut decisions[number];
        if let Some(are_wanted) = decisions.of_all(column) {
            return Ok(RowPartition::all_or_none(rows, are_wanted));
        }
        let values = block.field(column, reader)?;
        if let Column::Strings(strings) = values
            && let Some(text) = strings.values.iter().next().filter(|_| is_uniform)
        {
            let are_wanted = is_wanted(&string_value(kind, text));
            decisions.of_all = Some((column, are_wanted));
            return Ok(RowPartition::all_or_none(rows, are_wanted));
        }
        Ok(part(values, is_wanted, decisions, kind, rows))
    }

    /// Parts rows of the block at hand by whether a column has a text or a number for them.
    ///
    /// # Errors
    /// When the block cannot be read.
    pub(super) fn part_by_presence(
        &mut self,
        column: usize,
        rows: Vec<u32>,
    ) -> Result<RowPartition, ReadError> {
        let (block, reader, _) = self.parts();
        let values = block.field(column, reader)?;
        let (wanted, without) = rows
            .into_iter()
            .partition(|row| has_value(values, *row as usize));
        Ok(RowPartition { wanted, without })
    }
}

fn part(
    column: &Column,
    is_wanted: impl Fn(&Value<'_>) -> bool,
    decisions: &mut Decisions,
    kind: ColumnType,
    rows: Vec<u32>,
) -> RowPartition {
    match column {
        Column::Absent => RowPartition::without_value(rows),
        Column::Strings(strings) => part_texts(strings, is_wanted, decisions, kind, rows),
        Column::Ints(numbers) => part_ints(numbers, is_wanted, kind, rows),
        Column::Floats(_) | Column::Bools(_) => keep(rows, |row| {
            let value = column_value(column, kind, row as usize)?;
            Some(is_wanted(&value))
        }),
    }
}

fn part_texts(
    strings: &StringColumn,
    is_wanted: impl Fn(&Value<'_>) -> bool,
    decisions: &mut Decisions,
    kind: ColumnType,
    rows: Vec<u32>,
) -> RowPartition {
    let known = decisions.of(&strings.values);
    keep(rows, |row| {
        let code = strings.codes[row as usize];
        if code == NULL {
            return None;
        }
        let decision = &mut known[code as usize];
        if *decision == 0 {
            let value = string_value(kind, strings.values.get(code));
            *decision = 1 + u8::from(is_wanted(&value));
        }
        Some(*decision == 2)
    })
}

fn part_ints(
    numbers: &Numbers<i64>,
    is_wanted: impl Fn(&Value<'_>) -> bool,
    kind: ColumnType,
    rows: Vec<u32>,
) -> RowPartition {
    // Columns such as those of statuses and ports have few numbers, in any order.
    let mut known: [Option<(i64, bool)>; NUMBERS_KNOWN] = [None; NUMBERS_KNOWN];
    keep(rows, |row| {
        let number = numbers.get(row as usize)?;
        let place = &mut known[cast::to_usize(cast::unsigned(number)) % NUMBERS_KNOWN];
        match *place {
            Some((same, is_wanted)) if same == number => Some(is_wanted),
            _ => {
                let is_wanted = is_wanted(&number_value(kind, number));
                *place = Some((number, is_wanted));
                Some(is_wanted)
            }
        }
    })
}

/// Parts rows by whether they are wanted; `None` is said of those without a value.
fn keep(mut rows: Vec<u32>, mut is_wanted: impl FnMut(u32) -> Option<bool>) -> RowPartition {
    let mut without = Vec::new();
    let mut kept = 0;
    for at in 0..rows.len() {
        let row = rows[at];
        let is_wanted = is_wanted(row);
        if is_wanted.is_none() {
            without.push(row);
        }
        // Nobody can foresee which rows are wanted: written at any rate, a row costs no wrong guess.
        rows[kept] = row;
        kept += usize::from(is_wanted == Some(true));
    }
    rows.truncate(kept);
    RowPartition {
        wanted: rows,
        without,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::FieldMatcher;
    use crate::query::{Comparison, FieldFilter, FieldTest};

    #[test]
    fn numbers_that_share_a_place_are_told_apart() {
        let condition = FieldFilter {
            name: "status".into(),
            test: FieldTest::Compare(Comparison::GreaterOrEqual, b"500"[..].into()),
        };
        let matcher = FieldMatcher::new(&condition).expect("it compiles");
        let far = NUMBERS_KNOWN as i64;
        let numbers = Numbers {
            values: vec![500, 500 - far, 500, 499, 0, 500 + far, 500 - far, -1],
            valid: vec![true, true, true, true, false, true, true, true],
        };
        let column = Column::Ints(numbers);
        let parted = |rows: &[u32]| {
            let mut decisions = Decisions::default();
            let kind = ColumnType::Int;
            let is_wanted = |value: &Value<'_>| matcher.matches_value(Some(value));
            part(&column, is_wanted, &mut decisions, kind, rows.to_vec())
        };
        let expected = |wanted: &[u32], without: &[u32]| RowPartition {
            wanted: wanted.to_vec(),
            without: without.to_vec(),
        };
        assert_eq!(
            parted(&[0, 1, 2, 3, 4, 5, 6, 7]),
            expected(&[0, 2, 5], &[4])
        );
        assert_eq!(parted(&[1, 3, 5, 6]), expected(&[5], &[]));
        assert_eq!(parted(&[]), expected(&[], &[]));
    }
}

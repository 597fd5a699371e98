//! The kinds of rows: their fields that may say a severity.

use std::collections::HashMap;

use logpond_record::{Value, cast, is_severity_field, split_label_name};

use super::{KINDS_MAX, Kind};
use crate::rows::{
    Column, ColumnType, FieldCounts, OverflowField, Plans, Rows, RowsView, Schema, as_slot,
    cell_bits, column_value,
};

/// A value of a column in one number: a code, a number's bits, and whether its slot is one of whole numbers.
type Cell = Option<(u64, bool)>;

/// The kinds of the rows of a row group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowKinds {
    /// The kinds, each once, in the order of the first row of each.
    pub(crate) kinds: Vec<Kind>,
    /// For each row the number of its kind.
    pub(crate) of_rows: Vec<u32>,
}

/// A column of a field that may say a severity.
struct SeverityColumn<'r> {
    name: &'r str,
    kind: ColumnType,
    column: &'r Column,
    /// True if the slot tells how a number is written.
    is_mixed: bool,
}

impl RowKinds {
    /// The kinds of rows; `counts` are those of the whole file. `None` if they are too many to be told apart.
    pub(crate) fn of(rows: &Rows, schema: &Schema, counts: &FieldCounts) -> Option<RowKinds> {
        let mut plans = Plans::default();
        let view = RowsView::new(rows, schema, &mut plans);
        let fields = rows.fields.iter().zip(&schema.columns);
        let columns: Vec<SeverityColumn<'_>> = fields
            .filter(|(column, spec)| says_severity(&spec.name) && !matches!(column, Column::Absent))
            .map(|(column, spec)| SeverityColumn {
                name: &spec.name,
                kind: spec.kind,
                column,
                is_mixed: (counts.fields.get(&spec.name))
                    .is_some_and(|count| count.may_mix(spec.kind)),
            })
            .collect();
        let names = counts.fields.keys().filter(|name| says_severity(name));
        let elsewhere: Vec<(&str, OverflowField)> = names
            .map(|name| (&**name, OverflowField::new(name)))
            .collect();
        let mut found = RowKinds::default();
        let mut known: HashMap<Vec<Cell>, u32> = HashMap::new();
        let mut cells: Vec<Cell> = Vec::new();
        // Neighbouring rows are mostly alike.
        let mut last: Option<(Vec<Cell>, u32)> = None;
        for row in 0..rows.len() {
            cells.clear();
            cells.extend(columns.iter().map(|column| column.cell(&view, row)));
            let beside = rows.more.get(row);
            let beside = beside.map_or_else(Kind::new, |object| kind_of(&elsewhere, object));
            let number = match &last {
                _ if !beside.is_empty() => found.number_of(&columns, &view, row, beside)?,
                Some((same, number)) if *same == cells => *number,
                _ => {
                    let number = match known.get(&cells) {
                        Some(number) => *number,
                        None => {
                            let number = found.number_of(&columns, &view, row, beside)?;
                            known.insert(cells.clone(), number);
                            number
                        }
                    };
                    last = Some((cells.clone(), number));
                    number
                }
            };
            found.of_rows.push(number);
        }
        Some(found)
    }

    /// The number of a row's kind; `None` if there are too many.
    fn number_of(
        &mut self,
        columns: &[SeverityColumn<'_>],
        view: &RowsView<'_>,
        row: usize,
        beside: Kind,
    ) -> Option<u32> {
        let mut kind = beside;
        for column in columns {
            if let Some(value) = column.value(view, row) {
                kind.push((column.name.into(), (*value.to_text()).into()));
            }
        }
        kind.sort_unstable();
        if let Some(at) = self.kinds.iter().position(|known| *known == kind) {
            return Some(cast::low_u32(at));
        }
        if self.kinds.len() == KINDS_MAX {
            return None;
        }
        self.kinds.push(kind);
        Some(cast::low_u32(self.kinds.len()) - 1)
    }
}

impl SeverityColumn<'_> {
    fn cell(&self, view: &RowsView<'_>, row: usize) -> Cell {
        let bits = cell_bits(self.column, row)?;
        Some((bits, self.is_whole(view, row)))
    }

    fn value<'v>(&'v self, view: &RowsView<'_>, row: usize) -> Option<Value<'v>> {
        let value = column_value(self.column, self.kind, row)?;
        Some(as_slot(value, self.is_whole(view, row)))
    }

    fn is_whole(&self, view: &RowsView<'_>, row: usize) -> bool {
        self.is_mixed && view.is_whole_number(row, self.name)
    }
}

/// True if a field may say a severity.
fn says_severity(name: &str) -> bool {
    is_severity_field(split_label_name(name).0)
}

/// Those of these fields that an object of fields without a column has.
fn kind_of(fields: &[(&str, OverflowField)], object: &[u8]) -> Kind {
    let found = fields.iter().filter_map(|(name, field)| {
        let value = field.find(object).filter(|value| *value != Value::Null)?;
        Some(((*name).into(), (*value.to_text()).into()))
    });
    found.collect()
}

//! The timeline of rows.

use std::collections::HashMap;

use logpond_record::{Value, is_severity_field, split_label_name};

use super::{Kind, Timeline};
use crate::rows::{
    Column, ColumnType, FieldCounts, NULL, Overflow, Plans, Rows, RowsView, Schema, as_slot,
    column_value,
};

/// A value of a column in one number: a code, a number's bits, and whether its slot is one of whole numbers.
type Cell = Option<(u64, bool)>;

/// Makes the timeline of a segment, row group by row group.
#[derive(Default)]
pub struct TimelineBuilder {
    timeline: Timeline,
}

/// A column of a field that may say a severity.
struct SeverityColumn<'r> {
    name: &'r str,
    kind: ColumnType,
    column: &'r Column,
    /// Whether the slot tells how a number is written.
    is_mixed: bool,
}

impl TimelineBuilder {
    /// Adds rows; `counts` are those of the whole file.
    pub(crate) fn add(&mut self, rows: &Rows, schema: &Schema, counts: &FieldCounts) {
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
        let is_in_overflow = counts.fields.keys().any(|name| says_severity(name));
        let mut known: HashMap<Vec<Cell>, u32> = HashMap::new();
        let mut cells: Vec<Cell> = Vec::new();
        let step_ns = self.timeline.step_ns();
        // Neighbouring rows are mostly alike.
        let mut last: Option<(Vec<Cell>, u32)> = None;
        let mut pending: HashMap<(i64, u32), u64> = HashMap::new();
        for row in 0..rows.len() {
            cells.clear();
            cells.extend(columns.iter().map(|column| column.cell(&view, row)));
            let beside = rows.more.get(row).filter(|_| is_in_overflow);
            let beside = beside.map(severities_in).unwrap_or_default();
            let number = match &last {
                _ if !beside.is_empty() => self.number_of(&columns, &view, row, beside),
                Some((same, number)) if *same == cells => *number,
                _ => {
                    let number = match known.get(&cells) {
                        Some(number) => *number,
                        None => {
                            let number = self.number_of(&columns, &view, row, beside);
                            known.insert(cells.clone(), number);
                            number
                        }
                    };
                    last = Some((cells.clone(), number));
                    number
                }
            };
            let start = rows.time[row].div_euclid(step_ns).saturating_mul(step_ns);
            *pending.entry((start, number)).or_default() += 1;
        }
        let mut added = Timeline {
            kinds: self.timeline.kinds.clone(),
            ..Timeline::default()
        };
        for ((start, kind), rows) in sorted(pending) {
            added.add(start, kind, rows);
        }
        self.timeline.merge(&added);
    }

    /// The number of a row's kind.
    fn number_of(
        &mut self,
        columns: &[SeverityColumn<'_>],
        view: &RowsView<'_>,
        row: usize,
        beside: Kind,
    ) -> u32 {
        let mut kind = beside;
        for column in columns {
            if let Some(value) = column.value(view, row) {
                kind.push((column.name.into(), (*value.to_text()).into()));
            }
        }
        kind.sort_unstable();
        self.timeline.number_of(kind)
    }

    /// Adds the timeline of other rows.
    pub(crate) fn merge(&mut self, other: &Timeline) {
        self.timeline.merge(other);
    }

    /// The timeline; `None` if it has too many steps.
    pub(crate) fn finish(self) -> Option<Timeline> {
        Some(self.timeline).filter(Timeline::is_bounded)
    }
}

impl SeverityColumn<'_> {
    fn cell(&self, view: &RowsView<'_>, row: usize) -> Cell {
        let bits = match self.column {
            Column::Strings(strings) => {
                let code = strings.codes[row];
                (code != NULL).then_some(u64::from(code))
            }
            Column::Ints(numbers) => numbers.get(row).map(|number| number as u64),
            Column::Floats(numbers) => numbers.get(row).map(f64::to_bits),
            Column::Bools(numbers) => numbers.get(row).map(u64::from),
            Column::Absent => None,
        };
        bits.map(|bits| (bits, self.is_whole(view, row)))
    }

    fn value<'v>(&'v self, view: &RowsView<'_>, row: usize) -> Option<Value<'v>> {
        let value = column_value(self.column, self.kind, row)?;
        Some(as_slot(value, self.is_whole(view, row)))
    }

    fn is_whole(&self, view: &RowsView<'_>, row: usize) -> bool {
        let slot = || {
            let shape = view.shape(row);
            shape
                .slots()
                .iter()
                .any(|slot| *slot.name == *self.name && slot.kind.is_whole_number())
        };
        self.is_mixed && slot()
    }
}

/// Whether a field may say a severity.
fn says_severity(name: &str) -> bool {
    is_severity_field(split_label_name(name).0)
}

/// The fields of a row without a column that say a severity.
fn severities_in(object: &[u8]) -> Kind {
    let fields =
        Overflow::new(object).filter(|(name, value)| *value != Value::Null && says_severity(name));
    fields
        .map(|(name, value)| (name.into(), (*value.to_text()).into()))
        .collect()
}

fn sorted(counts: HashMap<(i64, u32), u64>) -> Vec<((i64, u32), u64)> {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_unstable();
    counts
}

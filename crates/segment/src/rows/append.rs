//! Rows of one file appended to those of another, column by column.
//!
//! Invariant: a builder holds the same after [`RowsBuilder::append`] as after [`RowsBuilder::push`] of the
//! row as a record. No record is made, names and shapes are looked up once a block, and a text of a
//! dictionary is hashed once a block.

use logpond_record::cast;

use super::builder::{Rows, RowsBuilder, StringBuilder, field_of};
use super::column::{Column, NULL, StringColumn};
use super::overflow::Overflow;
use super::schema::{ColumnType, Schema};
use super::view::{Plan, Plans, as_slot, column_value, time_source};

/// The code of a text that the builder was not given yet.
const UNKNOWN: u32 = u32::MAX;

/// A block of a file whose rows are appended to a builder, one by one and in any order.
pub(crate) struct Block {
    rows: Rows,
    plans: Plans,
    /// For each shape the columns with a value in any of its rows; made with the first row of the shape.
    present: Vec<Option<Vec<usize>>>,
    known: CodeCache,
}

/// Codes and places that a builder has given to a block: void once its rows were taken.
#[derive(Default)]
struct CodeCache {
    generation: Option<u64>,
    shapes: Vec<Option<KnownShape>>,
    message: Codes,
    message_bytes: Codes,
    whole: Codes,
    fix: Codes,
    /// Codes of the texts of each column of a field.
    columns: Vec<Codes>,
}

/// Where a builder puts rows of a shape.
struct KnownShape {
    /// Its place among the shapes of the builder.
    place: usize,
    columns: Vec<InColumn>,
}

/// A column with values of a shape's rows.
#[derive(Clone, Copy)]
struct InColumn {
    column: usize,
    field: u32,
    is_label: bool,
    /// The slot's numbers are whole, also in a column of fractions.
    is_whole: bool,
}

/// Codes of the builder by those of a column.
#[derive(Default)]
struct Codes {
    codes: Vec<u32>,
}

impl Codes {
    /// Of a dictionary; texts that are nearly all different are looked for one by one.
    fn new(column: &StringColumn) -> Codes {
        let is_dictionary = column.values.len() * 2 < column.codes.len();
        let count = if is_dictionary {
            column.values.len()
        } else {
            0
        };
        Codes {
            codes: vec![UNKNOWN; count],
        }
    }

    /// Gives a builder of texts the value of a row, if it has one.
    fn push(&mut self, column: &StringColumn, from: usize, to: u32, into: &mut StringBuilder) {
        let code = column.codes[from];
        if code == NULL {
            return;
        }
        let text = column.values.get(code);
        match self.codes.get_mut(code as usize) {
            None => into.push(to, text),
            Some(known) if *known == UNKNOWN => {
                into.push(to, text);
                *known = into.last_code();
            }
            Some(known) => into.push_code(to, *known),
        }
    }
}

impl Block {
    pub(crate) fn new(rows: Rows) -> Block {
        Block {
            present: vec![None; rows.shape.values.len()],
            rows,
            plans: Plans::default(),
            known: CodeCache::default(),
        }
    }

    pub(crate) fn rows(&self) -> &Rows {
        &self.rows
    }
}

impl CodeCache {
    fn new(rows: &Rows, generation: u64) -> CodeCache {
        let columns = rows.fields.iter().map(|column| match column {
            Column::Strings(strings) => Codes::new(strings),
            _ => Codes::default(),
        });
        CodeCache {
            generation: Some(generation),
            shapes: rows.shape.values.iter().map(|_| None).collect(),
            message: Codes::new(&rows.message),
            message_bytes: Codes::new(&rows.message_bytes),
            whole: Codes::new(&rows.whole),
            fix: Codes::new(&rows.fix),
            columns: columns.collect(),
        }
    }
}

impl RowsBuilder {
    /// Appends row `row` of a block of a file with these columns; it is of source `source` of the list.
    pub(crate) fn append(&mut self, block: &mut Block, schema: &Schema, row: usize, source: u32) {
        if block.known.generation != Some(self.generation) {
            block.known = CodeCache::new(&block.rows, self.generation);
        }
        let Block {
            rows,
            plans,
            present,
            known,
        } = block;
        let plan = plans.plan(rows, schema, row);
        let shape = rows.shape.codes[row] as usize;
        let to = self.append_fixed(rows, row, source);
        let known_shape = match &mut known.shapes[shape] {
            Some(known) => known,
            none => {
                let present = present[shape]
                    .get_or_insert_with(|| columns_present(rows, cast::low_u32(shape)));
                none.insert(self.know(plan, schema, present))
            }
        };
        self.push_shape(known_shape.place);
        for &InColumn {
            column,
            field,
            is_label,
            is_whole,
        } in &known_shape.columns
        {
            let builder = &mut self.fields[field as usize];
            match (&rows.fields[column], schema.columns[column].kind) {
                (Column::Strings(strings), kind @ (ColumnType::Text | ColumnType::Json)) => {
                    if strings.codes[row] != NULL
                        && let Some(texts) = builder.texts(kind, to)
                    {
                        known.columns[column].push(strings, row, to, texts);
                    }
                }
                (values, kind) => {
                    if let Some(value) = column_value(values, kind, row) {
                        builder.push(to, &as_slot(value, is_whole), is_label);
                    }
                }
            }
        }
        if let Some(object) = rows.more.get(row) {
            self.append_overflow(plan, object, to);
        }
        let CodeCache {
            message,
            message_bytes,
            whole,
            fix,
            ..
        } = known;
        // A message that is no text counts only where there is no other.
        if rows.message.codes[row] == NULL {
            message_bytes.push(&rows.message_bytes, row, to, &mut self.message_bytes);
        }
        message.push(&rows.message, row, to, &mut self.message);
        whole.push(&rows.whole, row, to, &mut self.whole);
        fix.push(&rows.fix, row, to, &mut self.fix);
        self.pushed();
    }

    /// Appends what every row has; gives the number of the row.
    fn append_fixed(&mut self, rows: &Rows, row: usize, source: u32) -> u32 {
        self.push_fixed(
            (rows.time[row], rows.received[row]),
            rows.number[row],
            source,
            time_source(rows.time_source[row]),
            rows.line_bytes[row],
        )
    }

    /// Appends the fields without a column. Those that are slots of the shape are of the line.
    fn append_overflow(&mut self, plan: &Plan, object: &[u8], to: u32) {
        for (name, value) in Overflow::new(object) {
            let slot = plan.shape.field_slot(&name);
            let value = match slot.map(|slot| &plan.shape.slots()[slot].kind) {
                Some(kind) => as_slot(value, kind.is_whole_number()),
                None if plan.is_slot(&name) => continue,
                None => value,
            };
            let field = field_of(&name, &mut self.names, &mut self.fields);
            self.fields[field as usize].push(to, &value, slot.is_none());
        }
    }

    /// Looks up a shape, and the fields of those columns that its rows have values in.
    fn know(&mut self, plan: &Plan, schema: &Schema, present: &[usize]) -> KnownShape {
        let place = self.place_of_shape(&plan.shape);
        let mut columns = Vec::new();
        for &column in present {
            let name = &schema.columns[column].name;
            let slot = plan.shape.field_slot(name);
            // A column whose name the shape uses for something else has no value of it.
            if slot.is_none() && plan.is_slot(name) {
                continue;
            }
            let kind = slot.map(|slot| &plan.shape.slots()[slot].kind);
            columns.push(InColumn {
                column,
                field: field_of(name, &mut self.names, &mut self.fields),
                is_label: slot.is_none(),
                is_whole: kind.is_some_and(|kind| kind.is_whole_number()),
            });
        }
        KnownShape { place, columns }
    }
}

/// The columns in which any row of a shape has a value.
fn columns_present(rows: &Rows, shape: u32) -> Vec<usize> {
    let of_shape: Vec<usize> = (0..rows.len())
        .filter(|row| rows.shape.codes[*row] == shape)
        .collect();
    let has = |column: &Column, row: usize| match column {
        Column::Strings(strings) => strings.codes[row] != NULL,
        Column::Ints(numbers) => numbers.get(row).is_some(),
        Column::Floats(numbers) => numbers.get(row).is_some(),
        Column::Bools(numbers) => numbers.get(row).is_some(),
        Column::Absent => false,
    };
    let is_present = |column: &usize| of_shape.iter().any(|row| has(&rows.fields[*column], *row));
    (0..rows.fields.len()).filter(is_present).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use logpond_record::{Fix, Id, Message, Record, Shape, SlotKind, TimeSource, Timestamp, Value};
    use proptest::prelude::*;

    use super::super::view::RowsView;
    use super::*;

    const SHAPES: [&str; 5] = [
        "⟨_msg:t⟩",
        "{⟨a:t⟩,⟨b:i⟩,⟨n:n⟩}",
        "{⟨a:i⟩ ⟨c:f⟩ ⟨_msg:j⟩}",
        "{⟨b:f⟩⟨d:r⟩⟨e:b⟩}",
        "⟨c:i⟩",
    ];

    const LABELS: [&str; 7] = ["a", "b", "c", "d", "e", "n", "x"];

    fn text() -> impl Strategy<Value = String> {
        prop_oneof![4 => "[ab]", 1 => "[a-z]{2,5}"]
    }

    fn value() -> impl Strategy<Value = Value<'static>> {
        prop_oneof![
            4 => text().prop_map(|text| Value::Str(text.into())),
            2 => (-3i64..300).prop_map(Value::Int),
            2 => prop::sample::select(vec![0.5, 2.25, 3.0, 1.0 / 3.0]).prop_map(Value::Float),
            1 => any::<bool>().prop_map(Value::Bool),
            1 => Just(Value::Json("[1]".into())),
            1 => Just(Value::Null),
            1 => Just(Value::Bytes(vec![0xff, b'x'].into())),
        ]
    }

    /// A value that a slot of this kind has.
    fn fitting(kind: &SlotKind, drawn: &Value<'static>, number: i64) -> Value<'static> {
        match kind {
            SlotKind::Int => Value::Int(number),
            SlotKind::Float => Value::Float(number as f64 / 4.0),
            SlotKind::Bool => Value::Bool(number % 2 == 0),
            SlotKind::Json => Value::Json("{}".into()),
            SlotKind::Null => Value::Null,
            _ => match drawn {
                Value::Bytes(_) | Value::Str(_) => drawn.clone(),
                _ => Value::Str("text".into()),
            },
        }
    }

    type Drawn = (usize, Vec<Option<Value<'static>>>, Value<'static>, u8, i64);

    fn drawn() -> impl Strategy<Value = Drawn> {
        let labels = prop::collection::vec(prop::option::weighted(0.3, value()), LABELS.len());
        (0..SHAPES.len(), labels, value(), any::<u8>(), -9i64..900)
    }

    fn record_of(drawn: &Drawn, shapes: &[Arc<Shape>]) -> Record<'static> {
        let (shape, labels, value, bits, number) = drawn;
        let shape = Arc::clone(&shapes[*shape]);
        let message = match (bits & 3, value) {
            (0, _) => Message::Absent,
            (_, Value::Str(_) | Value::Bytes(_)) => Message::Part(value.clone()),
            _ => Message::Part(Value::Str("said".into())),
        };
        let slots = shape.slots().iter();
        let values = slots.map(|slot| {
            if slot.is_message() {
                Value::Null
            } else {
                fitting(&slot.kind, value, *number)
            }
        });
        let is_free = |name: &&str| shape.slots().iter().all(|slot| *slot.name != **name);
        let labels = LABELS.iter().zip(labels).filter(|(name, _)| is_free(name));
        let labels = labels.filter_map(|(name, value)| Some(((*name).into(), value.clone()?)));
        let fix = Fix {
            slot: 0,
            text: b"007"[..].into(),
        };
        Record {
            id: Id(0),
            time: Timestamp(*number),
            time_source: TimeSource::Received,
            received: Timestamp(*number * 1000),
            message,
            values: values.collect(),
            labels: labels.collect(),
            fixes: if bits & 4 == 0 { vec![] } else { vec![fix] },
            whole: (bits & 8 != 0).then(|| b"whole"[..].into()),
            shape,
        }
    }

    /// The rows as records, with their labels in the order of names.
    fn shown(rows: &Rows, schema: &Schema) -> Vec<String> {
        let mut plans = Plans::default();
        let view = RowsView::new(rows, schema, &mut plans);
        let each = (0..rows.len()).map(|row| {
            let mut record = view.record(row, Id(0));
            record.labels.sort_by(|a, b| a.0.cmp(&b.0));
            let shape = record.shape.as_str().to_owned();
            let fixed = (rows.number[row], rows.source[row], rows.line_bytes[row]);
            format!("{shape} {fixed:?} {record:?}")
        });
        each.collect()
    }

    proptest! {
        #[test]
        fn rows_are_appended_as_their_records_are_pushed(
            drawn in prop::collection::vec(drawn(), 1..80),
            kept in any::<[bool; 8]>(),
            taken_at in any::<prop::sample::Index>(),
        ) {
            let shapes = SHAPES.map(|text| Arc::new(Shape::new(text).unwrap()));
            let mut builder = RowsBuilder::new();
            for (drawn, number) in drawn.iter().zip(0..) {
                builder.push(&record_of(drawn, &shapes), number, 3, 10);
            }
            let mut schema = builder.counts().schema();
            let mut kept = kept.iter();
            schema.columns.retain(|_| *kept.next().unwrap_or(&true));
            let rows = builder.take(&schema);
            let mut block = Block::new(rows);
            let (mut pushed, mut appended) = (RowsBuilder::new(), RowsBuilder::new());
            let mut plans = Plans::default();
            for row in (0..drawn.len()).rev() {
                let rows = block.rows();
                let view = RowsView::new(rows, &schema, &mut plans);
                let (number, line_bytes) = (rows.number[row] as u64, rows.line_bytes[row] - 1);
                pushed.push(&view.record(row, Id(0)), number, 5, line_bytes as usize);
                appended.append(&mut block, &schema, row, 5);
                if row == taken_at.index(drawn.len()) || row == 0 {
                    let counts = pushed.counts();
                    prop_assert_eq!(&counts, &appended.counts());
                    prop_assert_eq!(pushed.line_bytes(), appended.line_bytes());
                    let columns = counts.schema();
                    let (one, other) = (pushed.take(&columns), appended.take(&columns));
                    prop_assert_eq!(shown(&one, &columns), shown(&other, &columns));
                }
            }
        }
    }
}

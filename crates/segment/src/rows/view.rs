//! Rows seen as records again: their lines and fields.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use logpond_record::{
    Fix, Id, Message, Piece, Record, Shape, SlotKind, TimeSource, Timestamp, Value, cast,
    write_float, write_int,
};

use super::builder::Rows;
use super::column::{Column, NULL, Strings};
use super::fixes::Fixes;
use super::overflow::Overflow;
use super::schema::{ColumnType, Schema, from_decimal};

/// What fills a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    /// The column of this index in the schema, or the overflow column where that has no value.
    Column(usize),
    /// The overflow column.
    Overflow,
    /// The message.
    Message,
    /// Nothing: the slot's kind says it all.
    Fixed,
}

/// A shape with the places where the values of its slots are.
pub(super) struct Plan {
    pub(super) shape: Arc<Shape>,
    fills: Vec<Fill>,
    /// Columns whose field is no slot of the shape.
    other_columns: Vec<usize>,
}

/// The plans of a dictionary of shapes, each made when it is first needed.
///
/// Keep it for as long as rows of the same dictionary are looked at: compiling a shape costs as
/// much as rendering some hundred lines.
#[derive(Default)]
pub struct Plans {
    dictionary: Option<Arc<Strings>>,
    plans: Vec<OnceLock<Plan>>,
}

impl Plans {
    /// Forgets the plans of another dictionary than that of `rows`.
    fn prepare(&mut self, rows: &Rows) {
        let same = self
            .dictionary
            .as_ref()
            .is_some_and(|d| Arc::ptr_eq(d, &rows.shape.values));
        if !same {
            self.dictionary = Some(Arc::clone(&rows.shape.values));
            self.plans.clear();
            self.plans
                .resize_with(rows.shape.values.len(), OnceLock::new);
        }
    }

    /// The plan of a row, which has a shape of the dictionary of `rows`.
    pub(super) fn plan(&mut self, rows: &Rows, schema: &Schema, row: usize) -> &Plan {
        self.prepare(rows);
        self.of_code(rows.shape.codes[row], rows, schema)
    }

    fn of_code(&self, code: u32, rows: &Rows, schema: &Schema) -> &Plan {
        self.plans[code as usize].get_or_init(|| Plan::new(rows.shape.values.get(code), schema))
    }
}

impl Plan {
    fn new(text: &[u8], schema: &Schema) -> Plan {
        let shape = std::str::from_utf8(text)
            .ok()
            .and_then(|t| Shape::new(t).ok());
        // Only a damaged file that passed its checksum would have a shape that does not compile.
        let shape = Arc::new(shape.unwrap_or_else(Shape::text));
        let fills = shape
            .slots()
            .iter()
            .map(|slot| match &slot.kind {
                SlotKind::Time(_) | SlotKind::Null => Fill::Fixed,
                _ if slot.is_message() => Fill::Message,
                _ => schema
                    .column(&slot.name)
                    .map_or(Fill::Overflow, Fill::Column),
            })
            .collect();
        let is_slot = |name: &str| is_slot(&shape, name);
        let others = schema
            .columns
            .iter()
            .enumerate()
            .filter(|(_, c)| !is_slot(&c.name));
        let other_columns = others.map(|(column, _)| column).collect();
        Plan {
            shape,
            fills,
            other_columns,
        }
    }

    /// True if the shape has a slot of this name.
    pub(super) fn is_slot(&self, name: &str) -> bool {
        is_slot(&self.shape, name)
    }
}

/// Whether a shape has a slot of this name.
fn is_slot(shape: &Shape, name: &str) -> bool {
    let is_reserved = matches!(name, "_time" | "_msg");
    shape.field_slot(name).is_some()
        || is_reserved && shape.slots().iter().any(|slot| *slot.name == *name)
}

/// Lines with more slots than this find values of the overflow column by a table: their order there is
/// that of the file, and looking for each in turn would read all of it again and again.
const SLOTS_IN_TURN_MAX: usize = 256;

/// What the overflow column has of a row, once it was asked for.
type Beside<'a> = Option<BesideColumns<'a>>;

/// What the overflow column has of a row.
enum BesideColumns<'a> {
    InTurn(Overflow<'a>),
    ByName(HashMap<Cow<'a, str>, Value<'a>>),
}

impl<'a> BesideColumns<'a> {
    fn new(object: &'a [u8], slots: usize) -> BesideColumns<'a> {
        let fields = Overflow::new(object);
        if slots > SLOTS_IN_TURN_MAX {
            BesideColumns::ByName(fields.collect())
        } else {
            BesideColumns::InTurn(fields)
        }
    }

    fn field(&mut self, name: &str) -> Option<Value<'a>> {
        match self {
            BesideColumns::InTurn(fields) => fields.field(name),
            BesideColumns::ByName(fields) => fields.get(name).cloned(),
        }
    }
}

/// Rows together with what is needed to see them as records.
pub struct RowsView<'a> {
    rows: &'a Rows,
    schema: &'a Schema,
    plans: &'a Plans,
}

impl<'a> RowsView<'a> {
    /// A view of `rows`, whose columns must be there as far as they are asked for: to write lines,
    /// the fields that are slots of their shapes, and everything else but identities.
    pub fn new(rows: &'a Rows, schema: &'a Schema, plans: &'a mut Plans) -> RowsView<'a> {
        plans.prepare(rows);
        RowsView {
            rows,
            schema,
            plans,
        }
    }

    /// The rows.
    pub fn rows(&self) -> &'a Rows {
        self.rows
    }

    /// The shape of a row.
    pub fn shape(&self, row: usize) -> &Arc<Shape> {
        &self.plan(row).shape
    }

    /// True if the shape of a row has a slot for whole numbers of this name.
    pub(crate) fn is_whole_number(&self, row: usize, name: &str) -> bool {
        let mut slots = self.shape(row).slots().iter();
        let slot = slots.find(|slot| *slot.name == *name);
        slot.is_some_and(|slot| slot.kind.is_whole_number())
    }

    fn plan(&self, row: usize) -> &Plan {
        let code = self.rows.shape.codes[row];
        self.plans.of_code(code, self.rows, self.schema)
    }

    /// Appends a row's line, without a line end.
    pub fn write_line(&self, row: usize, out: &mut Vec<u8>) {
        if let Some(whole) = self.rows.whole.get(row) {
            out.extend_from_slice(whole);
            return;
        }
        let plan = self.plan(row);
        let mut fixes = Fixes::new(self.rows.fix.get(row)).peekable();
        let mut beside = None;
        let mut facility = 0;
        for piece in plan.shape.pieces() {
            let index = match piece {
                Piece::Literal(text) => {
                    out.extend_from_slice(text.as_bytes());
                    continue;
                }
                Piece::Slot(index) => *index,
            };
            if let Some((_, text)) = fixes.next_if(|(slot, _)| *slot == index) {
                out.extend_from_slice(text);
                continue;
            }
            let kind = &plan.shape.slots()[index].kind;
            match kind {
                SlotKind::Facility => facility = self.int(plan, index, row, &mut beside),
                SlotKind::Severity => {
                    write_int(
                        facility.wrapping_mul(8).wrapping_add(self.int(
                            plan,
                            index,
                            row,
                            &mut beside,
                        )),
                        out,
                    );
                }
                _ => self.write_slot(plan, index, row, (&mut beside, out)),
            }
        }
    }

    fn int(&self, plan: &Plan, index: usize, row: usize, beside: &mut Beside<'a>) -> i64 {
        if let Fill::Column(column) = plan.fills[index]
            && let Some(number) = self.column_int(column, row)
        {
            return number;
        }
        cast::whole_i64(
            self.slot_value(plan, index, row, beside)
                .and_then(|v| v.as_number())
                .unwrap_or(0.0),
        )
    }

    /// The whole number of a row in a column of such; without going through [`Value`].
    fn column_int(&self, column: usize, row: usize) -> Option<i64> {
        match &self.rows.fields[column] {
            Column::Ints(numbers) if self.schema.columns[column].kind == ColumnType::Int => {
                numbers.get(row)
            }
            _ => None,
        }
    }

    /// Appends a slot's text; the common cases without going through [`Value`].
    fn write_slot(
        &self,
        plan: &Plan,
        index: usize,
        row: usize,
        (beside, out): (&mut Beside<'a>, &mut Vec<u8>),
    ) {
        let kind = &plan.shape.slots()[index].kind;
        match (plan.fills[index], kind) {
            (Fill::Fixed, SlotKind::Time(pattern)) => {
                pattern.render(Timestamp(self.rows.time[row]), out)
            }
            (Fill::Message, _) => {
                let message = self
                    .rows
                    .message
                    .get(row)
                    .or_else(|| self.rows.message_bytes.get(row));
                kind.write_text(message.unwrap_or(b""), out);
            }
            (Fill::Column(column), _) => match (&self.rows.fields[column], kind) {
                (Column::Strings(strings), _) if strings.codes[row] != NULL => {
                    kind.write_text(strings.values.get(strings.codes[row]), out);
                }
                (Column::Ints(_), SlotKind::Int) => match self.column_int(column, row) {
                    Some(number) => write_int(number, out),
                    None => self.write_slot_value(plan, index, row, (beside, out)),
                },
                _ => self.write_slot_value(plan, index, row, (beside, out)),
            },
            _ => self.write_slot_value(plan, index, row, (beside, out)),
        }
    }

    fn write_slot_value(
        &self,
        plan: &Plan,
        index: usize,
        row: usize,
        (beside, out): (&mut Beside<'a>, &mut Vec<u8>),
    ) {
        let value = self.slot_value(plan, index, row, beside);
        let value = value.unwrap_or(Value::Null);
        plan.shape
            .render_slot(index, Timestamp(self.rows.time[row]), &value, out);
    }

    /// The value of a slot; `beside` is kept from slot to slot of a row.
    fn slot_value(
        &self,
        plan: &Plan,
        index: usize,
        row: usize,
        beside: &mut Beside<'a>,
    ) -> Option<Value<'a>> {
        let slot = &plan.shape.slots()[index];
        let value = match plan.fills[index] {
            Fill::Column(column) => self.column_value(column, row),
            Fill::Overflow | Fill::Message | Fill::Fixed => None,
        };
        let value = match value {
            Some(value) => value,
            None if plan.fills[index] == Fill::Fixed => return None,
            None => {
                let object = self.rows.more.get(row)?;
                let slots = plan.shape.slots().len();
                let beside = beside.get_or_insert_with(|| BesideColumns::new(object, slots));
                beside.field(&slot.name)?
            }
        };
        Some(as_slot(value, slot.kind.is_whole_number()))
    }

    /// The value of a row in the column of the schema with this index.
    pub fn column_value(&self, column: usize, row: usize) -> Option<Value<'a>> {
        let kind = self.schema.columns[column].kind;
        column_value(&self.rows.fields[column], kind, row)
    }

    /// A row as a record. `id_of` makes the id from the row's source and number.
    pub fn record(&self, row: usize, id: Id) -> Record<'a> {
        let plan = self.plan(row);
        let slots = plan.shape.slots();
        let mut beside = None;
        let mut value = |slot| self.slot_value(plan, slot, row, &mut beside);
        let values: Vec<Value<'a>> = (0..slots.len())
            .map(|slot| value(slot).unwrap_or(Value::Null))
            .collect();
        Record {
            id,
            time: Timestamp(self.rows.time[row]),
            time_source: time_source(self.rows.time_source[row]),
            received: Timestamp(self.rows.received[row].saturating_mul(1000)),
            message: self.message(row, &plan.shape),
            labels: self.labels(row, plan),
            fixes: Fixes::new(self.rows.fix.get(row))
                .map(|(slot, text)| Fix {
                    slot: cast::low_u16(slot),
                    text: Cow::Borrowed(text),
                })
                .collect(),
            whole: self.rows.whole.get(row).map(Cow::Borrowed),
            shape: Arc::clone(&plan.shape),
            values,
        }
    }

    fn message(&self, row: usize, shape: &Shape) -> Message<'a> {
        if let Some(text) = self.rows.message.get(row) {
            return Message::Part(string_value(ColumnType::Text, text));
        }
        match self.rows.message_bytes.get(row) {
            Some(bytes) => Message::Part(Value::Bytes(Cow::Borrowed(bytes))),
            None if shape.message_is_line() => Message::Line,
            None => Message::Absent,
        }
    }

    /// Fields that are not slots of the row's shape.
    fn labels(&self, row: usize, plan: &Plan) -> Vec<(Cow<'a, str>, Value<'a>)> {
        let columns = plan.other_columns.iter().filter_map(|&column| {
            let value = self.column_value(column, row)?;
            Some((Cow::Borrowed(&*self.schema.columns[column].name), value))
        });
        let overflow = self.rows.more.get(row).into_iter().flat_map(Overflow::new);
        columns
            .chain(overflow.filter(|(name, _)| !plan.is_slot(name)))
            .collect()
    }
}

/// The value of a row in a column of this type.
pub fn column_value(column: &Column, kind: ColumnType, row: usize) -> Option<Value<'_>> {
    match column {
        Column::Strings(strings) => strings.get(row).map(|bytes| string_value(kind, bytes)),
        Column::Ints(numbers) => numbers.get(row).map(|int| number_value(kind, int)),
        Column::Floats(numbers) => numbers.get(row).map(Value::Float),
        Column::Bools(numbers) => numbers.get(row).map(Value::Bool),
        Column::Absent => None,
    }
}

/// The bits that stand for the value of a row in its column: the code of a text, a number.
pub fn cell_bits(column: &Column, row: usize) -> Option<u64> {
    match column {
        Column::Strings(strings) => {
            let code = strings.codes[row];
            (code != NULL).then_some(u64::from(code))
        }
        Column::Ints(numbers) => numbers.get(row).map(cast::unsigned),
        Column::Floats(numbers) => numbers.get(row).map(f64::to_bits),
        Column::Bools(numbers) => numbers.get(row).map(u64::from),
        Column::Absent => None,
    }
}

/// A value as a slot has it: columns of fractions hold whole numbers too, and the slot knows which it was.
pub fn as_slot(value: Value<'_>, is_whole: bool) -> Value<'_> {
    match value {
        Value::Float(float) if is_whole => Value::Int(cast::whole_i64(float)),
        value => value,
    }
}

/// A stored whole number as a value.
pub fn number_value(kind: ColumnType, int: i64) -> Value<'static> {
    match kind {
        ColumnType::Decimal(scale) => Value::Float(from_decimal(int, scale)),
        _ => Value::Int(int),
    }
}

/// A stored text as a value.
pub fn string_value(kind: ColumnType, bytes: &[u8]) -> Value<'_> {
    match (kind, std::str::from_utf8(bytes)) {
        (ColumnType::Json, Ok(text)) => Value::Json(Cow::Borrowed(text)),
        (_, Ok(text)) => Value::Str(Cow::Borrowed(text)),
        (_, Err(_)) => Value::Bytes(Cow::Borrowed(bytes)),
    }
}

pub(super) fn time_source(code: u32) -> TimeSource {
    u8::try_from(code)
        .ok()
        .and_then(TimeSource::from_code)
        .unwrap_or(TimeSource::Received)
}

/// Appends the text of a number as a field shows it.
pub fn write_number(kind: ColumnType, value: i64, out: &mut Vec<u8>) {
    match kind {
        ColumnType::Decimal(scale) => write_float(from_decimal(value, scale), out),
        _ => write_int(value, out),
    }
}

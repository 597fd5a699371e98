//! Records in, columns out.

use std::collections::HashMap;
use std::sync::Arc;

use logpond_record::{Message, Record, Shape, SlotKind, TimeSource, Value, cast};

use super::column::{Column, NULL, Numbers, StringColumn};
use super::fixes::write_fix;
use super::interned::Interner;
use super::memory::memory_of_fields;
use super::overflow::write_overflow;
use super::room::Room;
use super::row_list::RowList;
use super::schema::{ColumnType, FieldCount, FieldCounts, Schema, to_decimal};

/// After so many values a string column decides whether equal strings are worth looking for.
const INTERN_TRIAL: usize = 4096;

/// After so many rows it is known how much of the lines each column takes: twice those of the trial, so that
/// columns of most rows have decided.
const ROOM_TRIAL: usize = 2 * INTERN_TRIAL;

/// Rows as columns. Every column has one place per row.
#[derive(Debug, Default)]
pub struct Rows {
    /// Event times in nanoseconds.
    pub time: Vec<i64>,
    /// Receive times in microseconds.
    pub received: Vec<i64>,
    /// Numbers of the records within their incarnations.
    pub number: Vec<i64>,
    /// Index of each record's source in the file's list of sources.
    pub source: Vec<u32>,
    /// [`logpond_record::TimeSource`] by its code.
    pub time_source: Vec<u32>,
    /// Texts of the shapes.
    pub shape: StringColumn,
    /// Messages that are a part of the line.
    pub message: StringColumn,
    /// Messages that are not UTF-8.
    pub message_bytes: StringColumn,
    /// Lines that had to be kept whole.
    pub whole: StringColumn,
    /// Slots that render differently: `slot:length:text`, one after another.
    pub fix: StringColumn,
    /// Fields without a column (see [`super::Overflow`]).
    pub more: StringColumn,
    /// One column per entry of the schema.
    pub fields: Vec<Column>,
    /// Length of each row's line, its line end included.
    pub line_bytes: Vec<u32>,
}

impl Rows {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.time.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
    }

    /// Makes room in what a builder fills itself.
    fn make_room(&mut self, room: &Room) {
        let more = room.rows_like(self.len());
        self.time.reserve(more);
        self.received.reserve(more);
        self.number.reserve(more);
        self.source.reserve(more);
        self.time_source.reserve(more);
        self.line_bytes.reserve(more);
    }
}

/// Strings of some rows; equal strings share a code as long as that pays.
#[derive(Default)]
pub(super) struct StringBuilder {
    rows: RowList,
    codes: Vec<u32>,
    strings: Interner,
    gave_up: bool,
}

impl StringBuilder {
    pub(super) fn push(&mut self, row: u32, value: &[u8]) {
        let code = self.intern(value);
        self.push_code(row, code);
    }

    /// Appends a value by a code that this builder has given to it.
    pub(super) fn push_code(&mut self, row: u32, code: u32) {
        self.rows.push(row);
        self.codes.push(code);
    }

    /// The code of the last value.
    pub(super) fn last_code(&self) -> u32 {
        self.codes.last().copied().unwrap_or(NULL)
    }

    fn intern(&mut self, value: &[u8]) -> u32 {
        if self.gave_up {
            return self.strings.push(value);
        }
        let values = &self.strings.values;
        // Neighbouring rows are often alike.
        if let Some(last) = self.codes.last().filter(|last| values.get(**last) == value) {
            return *last;
        }
        let before = values.len();
        let code = self.strings.intern(value);
        let distinct = self.strings.values.len();
        let is_new = distinct > before;
        if is_new && self.codes.len() >= INTERN_TRIAL && distinct * 4 > self.codes.len() * 3 {
            self.gave_up = true;
            self.strings.stop_looking();
        }
        code
    }

    fn dense(self, rows: usize) -> StringColumn {
        StringColumn {
            // Rows are distinct and in order: all have a value.
            codes: if self.rows.len() == rows {
                self.codes
            } else {
                spread(&self.rows, &self.codes, rows)
            },
            values: Arc::new(self.strings.values),
        }
    }

    fn make_room(&mut self, room: &Room) {
        self.rows.make_room(room);
        self.codes.reserve(room.rows_like(self.codes.len()));
        if self.gave_up {
            let count = room.rows_like(self.strings.values.len());
            let bytes = room.bytes_like(self.strings.values.bytes().len());
            self.strings.values.reserve(count, bytes);
        }
    }
}

/// A code per row, where only some rows have one.
fn spread(rows: &RowList, codes: &[u32], count: usize) -> Vec<u32> {
    let mut all = vec![NULL; count];
    rows.iter()
        .zip(codes)
        .for_each(|(row, code)| all[row as usize] = *code);
    all
}

#[derive(Default)]
struct SparseColumn<T> {
    rows: RowList,
    values: Vec<T>,
}

impl<T: Copy + Default> SparseColumn<T> {
    fn push(&mut self, row: u32, value: T) {
        self.rows.push(row);
        self.values.push(value);
    }

    fn dense<U: Copy + Default>(&self, rows: usize, convert: impl Fn(T) -> U) -> Numbers<U> {
        let mut numbers = Numbers {
            values: vec![U::default(); rows],
            valid: Vec::new(),
        };
        self.add_to(&mut numbers, rows, convert);
        numbers
    }

    fn add_to<U: Copy>(&self, numbers: &mut Numbers<U>, rows: usize, convert: impl Fn(T) -> U) {
        if self.rows.len() == rows {
            // Rows are distinct: all have a value.
            numbers.valid.clear();
            numbers
                .values
                .iter_mut()
                .zip(&self.values)
                .for_each(|(to, from)| *to = convert(*from));
            return;
        }
        numbers.valid.resize(rows, false);
        for (row, value) in self.rows.iter().zip(&self.values) {
            numbers.values[row as usize] = convert(*value);
            numbers.valid[row as usize] = true;
        }
    }

    fn make_room(&mut self, room: &Room) {
        self.rows.make_room(room);
        self.values.reserve(room.rows_like(self.values.len()));
    }
}

/// The values of one field, by type.
#[derive(Default)]
pub(super) struct FieldBuilder {
    name: Box<str>,
    count: FieldCount,
    last_row: Option<u32>,
    text: StringBuilder,
    bytes: StringBuilder,
    json: StringBuilder,
    /// Whole numbers of lines. A column of fractions may hold them: the slots say which they are.
    int: SparseColumn<i64>,
    /// Whole numbers beside lines.
    label_int: SparseColumn<i64>,
    float: SparseColumn<f64>,
    bool: SparseColumn<bool>,
    null: RowList,
}

/// A value that goes to the overflow column: which row, field and type, of a null none, and where it
/// lies there.
type Spilled = (u32, u32, Option<ColumnType>, u32);

impl FieldBuilder {
    /// Where a value of a column of texts goes, which is counted; nowhere if the row has one already.
    pub(super) fn texts(&mut self, kind: ColumnType, row: u32) -> Option<&mut StringBuilder> {
        if self.last_row.replace(row) == Some(row) {
            return None;
        }
        if kind == ColumnType::Json {
            self.count.json += 1;
            return Some(&mut self.json);
        }
        self.count.text += 1;
        Some(&mut self.text)
    }

    pub(super) fn push(&mut self, row: u32, value: &Value<'_>, is_label: bool) {
        // A label may have the name of a field of the line, which comes first and counts.
        if self.last_row.replace(row) == Some(row) {
            return;
        }
        self.count.add(value);
        match value {
            Value::Str(text) => self.text.push(row, text.as_bytes()),
            Value::Bytes(bytes) => self.bytes.push(row, bytes),
            Value::Json(text) => self.json.push(row, text.as_bytes()),
            Value::Int(int) if is_label => {
                self.count.label_int += 1;
                self.label_int.push(row, *int);
            }
            Value::Int(int) => self.int.push(row, *int),
            Value::Float(float) => self.float.push(row, *float),
            Value::Bool(bool) => self.bool.push(row, *bool),
            Value::Null => self.null.push(row),
        }
    }

    /// The column of type `kind`; everything else stays and is to be spilled.
    fn take_column(&mut self, kind: ColumnType, rows: usize) -> Column {
        match kind {
            ColumnType::Text => Column::Strings(std::mem::take(&mut self.text).dense(rows)),
            ColumnType::Json => Column::Strings(std::mem::take(&mut self.json).dense(rows)),
            ColumnType::Bytes => Column::Absent,
            ColumnType::Bool => Column::Bools(std::mem::take(&mut self.bool).dense(rows, |b| b)),
            ColumnType::Int => {
                let mut numbers = std::mem::take(&mut self.int).dense(rows, |i| i);
                let labels = std::mem::take(&mut self.label_int);
                if !labels.rows.is_empty() {
                    labels.add_to(&mut numbers, rows, |i| i);
                }
                Column::Ints(numbers)
            }
            ColumnType::Decimal(scale) => {
                let (int, float) = (
                    std::mem::take(&mut self.int),
                    std::mem::take(&mut self.float),
                );
                let unit = 10i64.pow(u32::from(scale));
                let mut numbers = float.dense(rows, |f| to_decimal(f, scale).unwrap_or(0));
                if !int.rows.is_empty() {
                    int.add_to(&mut numbers, rows, |i| i * unit);
                }
                Column::Ints(numbers)
            }
            ColumnType::Float => {
                let float = std::mem::take(&mut self.float);
                let mut numbers = float.dense(rows, |f| f);
                if self.count.floats_hold_ints() && !self.int.rows.is_empty() {
                    std::mem::take(&mut self.int).add_to(&mut numbers, rows, cast::float);
                }
                Column::Floats(numbers)
            }
        }
    }

    fn spill(&self, field: u32, out: &mut Vec<Spilled>) {
        let mut list = |rows: &RowList, kind, first: u32| {
            let placed = rows.iter().zip(first..);
            out.extend(placed.map(|(row, at)| (row, field, kind, at)));
        };
        list(&self.text.rows, Some(ColumnType::Text), 0);
        list(&self.bytes.rows, Some(ColumnType::Bytes), 0);
        list(&self.json.rows, Some(ColumnType::Json), 0);
        list(&self.int.rows, Some(ColumnType::Int), 0);
        // Those beside lines are found behind those of lines.
        let first = cast::low_u32(self.int.values.len());
        list(&self.label_int.rows, Some(ColumnType::Int), first);
        list(&self.float.rows, Some(ColumnType::Float), 0);
        list(&self.bool.rows, Some(ColumnType::Bool), 0);
        list(&self.null, None, 0);
    }

    fn make_room(&mut self, room: &Room) {
        self.text.make_room(room);
        self.bytes.make_room(room);
        self.json.make_room(room);
        self.int.make_room(room);
        self.label_int.make_room(room);
        self.float.make_room(room);
        self.bool.make_room(room);
        self.null.make_room(room);
    }

    fn spilled_value(&self, kind: Option<ColumnType>, at: u32) -> Value<'_> {
        let bytes = |builder: &'_ StringBuilder| {
            let code = builder.codes[at as usize];
            builder.strings.values.get(code).to_vec()
        };
        let text =
            |builder: &'_ StringBuilder| String::from_utf8_lossy(&bytes(builder)).into_owned();
        let Some(kind) = kind else {
            return Value::Null;
        };
        match kind {
            ColumnType::Text => Value::Str(text(&self.text).into()),
            ColumnType::Json => Value::Json(text(&self.json).into()),
            ColumnType::Int => {
                let mut ints = self.int.values.iter().chain(&self.label_int.values);
                Value::Int(ints.nth(at as usize).copied().unwrap_or_default())
            }
            ColumnType::Float | ColumnType::Decimal(_) => {
                Value::Float(self.float.values[at as usize])
            }
            ColumnType::Bool => Value::Bool(self.bool.values[at as usize]),
            ColumnType::Bytes => Value::Bytes(bytes(&self.bytes).into()),
        }
    }
}

/// What is known of a shape after its first record.
struct KnownShape {
    /// Keeps the address, which is the key, from being used again.
    _shape: Arc<Shape>,
    code: u32,
    /// For each slot its field, or `None` for time, null and message slots.
    slot_fields: Vec<Option<u32>>,
    /// Fields of the null slots.
    null_fields: Vec<u32>,
}

/// Collects records as columns.
#[derive(Default)]
pub struct RowsBuilder {
    /// Rows that are expected, and the bytes of their lines.
    expected: (u64, u64),
    /// How often rows were taken: what was learned of codes and fields before is void.
    pub(super) generation: u64,
    rows: Rows,
    line_bytes_total: u64,
    shape_codes: Vec<u32>,
    shapes: StringBuilder,
    pub(super) message: StringBuilder,
    pub(super) message_bytes: StringBuilder,
    pub(super) whole: StringBuilder,
    pub(super) fix: StringBuilder,
    pub(super) fields: Vec<FieldBuilder>,
    pub(super) names: HashMap<Box<str>, u32>,
    /// The fields of the last record's labels.
    last_labels: Vec<u32>,
    known_shapes: Vec<KnownShape>,
    /// Where each shape is in that list, by its address.
    shape_places: HashMap<usize, usize>,
    last_shape: Option<(usize, usize)>,
    scratch: Vec<u8>,
}

impl RowsBuilder {
    /// An empty builder.
    pub fn new() -> RowsBuilder {
        RowsBuilder::default()
    }

    /// An empty builder that expects about so many rows, with so many bytes of lines, each time. It takes what
    /// comes; where that is what it expected it copies nothing to make room.
    pub fn expecting(rows: u64, line_bytes: u64) -> RowsBuilder {
        RowsBuilder {
            expected: (rows, line_bytes),
            ..RowsBuilder::default()
        }
    }

    /// Number of rows so far.
    pub fn len(&self) -> usize {
        self.rows.time.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all lines so far, line ends included.
    pub fn line_bytes(&self) -> u64 {
        self.line_bytes_total
    }

    /// About the memory of all rows so far.
    pub fn memory_bytes(&self) -> u64 {
        let rows = self.len() as u64;
        memory_of_fields(rows, self.fields.len(), self.line_bytes_total)
    }

    /// Appends a record: record `number` of its incarnation, from source `source` of the file's
    /// list, with a line of `line_bytes` bytes without its end.
    pub fn push(&mut self, record: &Record<'_>, number: u64, source: u32, line_bytes: usize) {
        let row = self.push_fixed(
            (record.time.0, record.received.0.div_euclid(1000)),
            cast::signed(number),
            source,
            record.time_source,
            cast::low_u32(line_bytes) + 1,
        );
        self.push_shape_and_fields(row, record);
        self.push_message(row, &record.message);
        if let Some(whole) = &record.whole {
            self.whole.push(row, whole);
        }
        if !record.fixes.is_empty() {
            self.scratch.clear();
            for fix in &record.fixes {
                write_fix(fix, &mut self.scratch);
            }
            self.fix.push(row, &self.scratch);
        }
        for (place, (name, value)) in record.labels.iter().enumerate() {
            let field = self.label_field(place, name);
            self.fields[field as usize].push(row, value, true);
        }
        self.pushed();
    }

    /// Begins a row with what each has; `line_bytes` are those of its line and the end. Gives its number.
    pub(super) fn push_fixed(
        &mut self,
        (time, received): (i64, i64),
        number: i64,
        source: u32,
        time_source: TimeSource,
        line_bytes: u32,
    ) -> u32 {
        let row = cast::low_u32(self.len());
        self.rows.time.push(time);
        self.rows.received.push(received);
        self.rows.number.push(number);
        self.rows.source.push(source);
        self.rows.time_source.push(u32::from(time_source.code()));
        self.rows.line_bytes.push(line_bytes);
        self.line_bytes_total += u64::from(line_bytes);
        row
    }

    /// Ends a row.
    pub(super) fn pushed(&mut self) {
        if self.len() == ROOM_TRIAL {
            self.make_room();
        }
    }

    /// Makes room for what is expected, by what has come.
    fn make_room(&mut self) {
        let (rows, bytes) = (self.len() as u64, self.line_bytes_total);
        let room = Room::new(self.expected, (rows, bytes));
        self.rows.make_room(&room);
        self.shape_codes
            .reserve(room.rows_like(self.shape_codes.len()));
        for strings in [
            &mut self.message,
            &mut self.message_bytes,
            &mut self.whole,
            &mut self.fix,
        ] {
            strings.make_room(&room);
        }
        for field in &mut self.fields {
            field.make_room(&room);
        }
    }

    fn push_shape_and_fields(&mut self, row: u32, record: &Record<'_>) {
        let place = self.place_of_shape(&record.shape);
        self.push_shape(place);
        let known = &self.known_shapes[place];
        for (field, value) in known.slot_fields.iter().zip(&record.values) {
            if let Some(field) = field {
                self.fields[*field as usize].push(row, value, false);
            }
        }
    }

    /// Appends the shape at this place, and what it says by itself.
    pub(super) fn push_shape(&mut self, place: usize) {
        let known = &self.known_shapes[place];
        self.shape_codes.push(known.code);
        for field in &known.null_fields {
            self.fields[*field as usize].count.shape_null += 1;
        }
    }

    /// Where what is known of a shape is. Neighbouring records often have the same one.
    pub(super) fn place_of_shape(&mut self, shape: &Arc<Shape>) -> usize {
        let key = Arc::as_ptr(shape) as usize;
        if let Some((last, place)) = self.last_shape
            && last == key
        {
            return place;
        }
        let place = match self.shape_places.get(&key) {
            Some(place) => *place,
            None => {
                let known = self.learn_shape(shape);
                let place = self.known_shapes.len();
                self.known_shapes.push(known);
                self.shape_places.insert(key, place);
                place
            }
        };
        self.last_shape = Some((key, place));
        place
    }

    /// The field of a label. Neighbouring records have the same labels in the same order.
    fn label_field(&mut self, place: usize, name: &str) -> u32 {
        if let Some(field) = self.last_labels.get(place)
            && *self.fields[*field as usize].name == *name
        {
            return *field;
        }
        let field = field_of(name, &mut self.names, &mut self.fields);
        self.last_labels.truncate(place);
        self.last_labels.push(field);
        field
    }

    fn learn_shape(&mut self, shape: &Arc<Shape>) -> KnownShape {
        let slot_fields = shape
            .slots()
            .iter()
            .map(|slot| {
                let field = slot.is_field() && slot.kind != SlotKind::Null;
                field.then(|| field_of(&slot.name, &mut self.names, &mut self.fields))
            })
            .collect();
        let nulls = shape
            .slots()
            .iter()
            .filter(|slot| slot.kind == SlotKind::Null);
        let null_fields = nulls
            .map(|slot| field_of(&slot.name, &mut self.names, &mut self.fields))
            .collect();
        let code = self.shapes.intern(shape.as_str().as_bytes());
        KnownShape {
            _shape: Arc::clone(shape),
            code,
            slot_fields,
            null_fields,
        }
    }

    fn push_message(&mut self, row: u32, message: &Message<'_>) {
        match message {
            Message::Absent | Message::Line => {}
            Message::Part(Value::Bytes(bytes)) => self.message_bytes.push(row, bytes),
            Message::Part(value) => self.message.push(row, &value.to_text()),
        }
    }

    /// Types and counts of the fields so far.
    pub fn counts(&self) -> FieldCounts {
        let counted = self
            .fields
            .iter()
            .filter(|f| f.count != FieldCount::default());
        FieldCounts {
            fields: counted.map(|f| (f.name.clone(), f.count)).collect(),
            rows: self.len() as u64,
        }
    }

    /// The rows so far with the columns of `schema`; the builder is empty afterwards.
    pub fn take(&mut self, schema: &Schema) -> Rows {
        let (rows, line_bytes) = self.expected;
        let empty = RowsBuilder {
            generation: self.generation + 1,
            ..RowsBuilder::expecting(rows, line_bytes)
        };
        let mut builder = std::mem::replace(self, empty);
        let count = builder.len();
        let mut rows = builder.rows;
        rows.fields = schema
            .columns
            .iter()
            .map(|spec| match builder.names.get(&spec.name) {
                Some(field) => builder.fields[*field as usize].take_column(spec.kind, count),
                None => Column::Absent,
            })
            .collect();
        rows.shape = StringColumn {
            codes: builder.shape_codes,
            values: Arc::new(builder.shapes.strings.values),
        };
        rows.message = builder.message.dense(count);
        rows.message_bytes = builder.message_bytes.dense(count);
        rows.whole = builder.whole.dense(count);
        rows.fix = builder.fix.dense(count);
        rows.more = overflow_column(&builder.fields, count);
        rows
    }
}

pub(super) fn field_of(
    name: &str,
    names: &mut HashMap<Box<str>, u32>,
    fields: &mut Vec<FieldBuilder>,
) -> u32 {
    if let Some(field) = names.get(name) {
        return *field;
    }
    let field = cast::low_u32(fields.len());
    names.insert(name.into(), field);
    fields.push(FieldBuilder {
        name: name.into(),
        ..FieldBuilder::default()
    });
    field
}

fn overflow_column(fields: &[FieldBuilder], rows: usize) -> StringColumn {
    let mut spilled = Vec::new();
    fields
        .iter()
        .zip(0..)
        .for_each(|(f, number)| f.spill(number, &mut spilled));
    spilled.sort_unstable();
    let mut column = StringBuilder::default();
    let mut object = Vec::new();
    for row in spilled.chunk_by(|a, b| a.0 == b.0) {
        object.clear();
        for &(_, field, kind, at) in row {
            let field = &fields[field as usize];
            write_overflow(&field.name, &field.spilled_value(kind, at), &mut object);
        }
        object.push(b'}');
        column.push(row[0].0, &object);
    }
    column.dense(rows)
}

//! Rows column by column: what engines take that compute on columns.
//!
//! Invariant: a column has one place for each row, whatever it was made from: columns of a segment,
//! records, or rows of another node. A value that its column cannot hold is counted, and its place
//! is empty.

use std::borrow::Cow;
use std::sync::Arc;

use logpond_record::{Message, Record, Value, cast};
use logpond_segment::rows::{Column, NULL, Numbers, StringColumn, Strings};
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use crate::aggregate::{TypeSet, ValueType};
use crate::field::Target;
use crate::journal::names;
use crate::label;

/// Rows that are put together at most, as many as a block of a segment has.
pub const ROWS_MAX: usize = 8192;

/// Bytes of texts from which on rows are handed over, as in a block of a segment.
const TEXT_BYTES_ENOUGH: usize = 1 << 20;

/// The longest name of a column that is taken from another node.
const NAME_BYTES_MAX: usize = 64 << 10;

/// The longest text that is taken from another node; a record is shorter.
const TEXT_BYTES_MAX: usize = 64 << 20;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ColumnKind {
    /// Instants, as nanoseconds since 1970.
    Time,
    /// Whole numbers.
    Int,
    /// Numbers.
    Float,
    /// True or false.
    Bool,
    /// The text of any value.
    Text,
    /// Numbers as floats. Where a value may be no number, some rows come as texts together: those read as
    /// numbers are for the taker to find.
    Number,
}

impl ColumnKind {
    /// The kind of column that holds values of these types; a null is no value.
    pub fn of(types: TypeSet) -> ColumnKind {
        let has = |kind| types.contains(kind);
        let others = [ValueType::String, ValueType::Json, ValueType::Bytes];
        match (
            has(ValueType::Bool),
            has(ValueType::Int),
            has(ValueType::Float),
        ) {
            _ if others.into_iter().any(has) => ColumnKind::Text,
            (true, false, false) => ColumnKind::Bool,
            (false, true, false) => ColumnKind::Int,
            (false, _, true) => ColumnKind::Float,
            _ => ColumnKind::Text,
        }
    }

    fn number(self) -> u64 {
        match self {
            ColumnKind::Time => 0,
            ColumnKind::Int => 1,
            ColumnKind::Float => 2,
            ColumnKind::Bool => 3,
            // Between nodes rows come one by one, with the text of each value.
            ColumnKind::Text | ColumnKind::Number => 4,
        }
    }

    fn from_number(number: u64) -> Option<ColumnKind> {
        let all = [
            ColumnKind::Time,
            ColumnKind::Int,
            ColumnKind::Float,
            ColumnKind::Bool,
            ColumnKind::Text,
        ];
        all.into_iter().find(|kind| kind.number() == number)
    }
}

/// A column that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnRequest {
    /// The field's name, or a reserved one such as `_msg`.
    pub name: Box<str>,
    /// What the column holds. Invariant: [`ColumnKind::Time`] for `_time` and `_received`, and for
    /// these alone.
    pub kind: ColumnKind,
}

impl ColumnRequest {
    /// Appends the column to a message between nodes.
    pub fn encode(&self, out: &mut Encoder) {
        out.bytes(self.name.as_bytes());
        out.number(self.kind.number());
    }

    /// Reads what [`ColumnRequest::encode`] wrote.
    ///
    /// # Errors
    /// When the bytes are something else.
    pub fn decode(from: &mut Decoder<'_>) -> Result<ColumnRequest, DecodeError> {
        let name: Box<str> = from.text(NAME_BYTES_MAX, "a column's name")?.into();
        let kind = ColumnKind::from_number(from.number("a column's kind")?);
        let kind = kind.ok_or(DecodeError::Malformed("a column's kind"))?;
        let is_time = matches!(Target::new(&name), Target::Time | Target::Received);
        if is_time == (kind == ColumnKind::Time) {
            Ok(ColumnRequest { name, kind })
        } else {
            Err(DecodeError::Malformed("a column's kind"))
        }
    }
}

/// Some rows.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// How many.
    pub rows: usize,
    /// The columns in the order in which they were asked for.
    pub columns: Vec<Column>,
    /// Values that their columns cannot hold: of fields that have got values of another type since
    /// the kind of their column was chosen.
    pub unfit: u64,
}

/// A value as a column of some kind holds it.
enum ColumnValue<'v> {
    None,
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(Cow<'v, [u8]>),
    Unfit,
}

fn fit<'v>(kind: ColumnKind, value: &'v Value<'_>) -> ColumnValue<'v> {
    match (kind, value) {
        (_, Value::Null) => ColumnValue::None,
        (ColumnKind::Text | ColumnKind::Number, value) => ColumnValue::Text(value.to_text()),
        (ColumnKind::Int | ColumnKind::Time, Value::Int(int)) => ColumnValue::Int(*int),
        (ColumnKind::Float, Value::Int(int)) => ColumnValue::Float(cast::float(*int)),
        (ColumnKind::Float, Value::Float(float)) => ColumnValue::Float(*float),
        (ColumnKind::Bool, Value::Bool(bool)) => ColumnValue::Bool(*bool),
        _ => ColumnValue::Unfit,
    }
}

/// Calls `with` with what a record has for a column.
fn with_fitted<R>(
    record: &Record<'_>,
    (target, kind): (&Target, ColumnKind),
    with: impl FnOnce(ColumnValue<'_>) -> R,
) -> R {
    let line = || {
        let mut line = Vec::new();
        record.write_line(&mut line);
        ColumnValue::Text(line.into())
    };
    let text = |text: String| ColumnValue::Text(text.into_bytes().into());
    let computed = match target {
        Target::Computed(label) => label.value_of(record),
        _ => None,
    };
    with(match target {
        Target::Time => ColumnValue::Int(record.time.0),
        Target::Received => ColumnValue::Int(record.received.0),
        Target::Id => text(record.id.to_string()),
        Target::TimeSource => text(record.time_source.as_str().to_owned()),
        Target::Line => line(),
        Target::Message => match &record.message {
            Message::Absent => ColumnValue::None,
            Message::Part(value) => fit(kind, value),
            Message::Line => line(),
        },
        Target::Field(name) => record
            .field(name)
            .map_or(ColumnValue::None, |v| fit(kind, v)),
        Target::Label(name) => {
            label::value(record, name).map_or(ColumnValue::None, |v| fit(kind, v))
        }
        Target::Computed(_) => computed
            .as_ref()
            .map_or(ColumnValue::None, |v| fit(kind, v)),
        Target::Entry(name) => {
            names::value(record, name).map_or(ColumnValue::None, |v| fit(kind, v))
        }
    })
}

/// Appends a record as a row of some columns: what one node sends to another.
///
/// ```text
/// for each column: 0 nothing, 1 a value, 2 one that the column cannot hold; the value:
/// whole numbers zigzag, floats by their bits, truth values as a flag, texts by length and bytes
/// ```
pub fn write_row(record: &Record<'_>, asked: &[ColumnRequest], out: &mut Vec<u8>) {
    let mut row = Encoder::default();
    for column in asked {
        let target = Target::new(&column.name);
        with_fitted(record, (&target, column.kind), |fitted| {
            row.number(match fitted {
                ColumnValue::None => 0,
                ColumnValue::Unfit => 2,
                _ => 1,
            });
            match fitted {
                ColumnValue::None | ColumnValue::Unfit => {}
                ColumnValue::Int(int) => row.number(cast::unsigned(int << 1 ^ int >> 63)),
                ColumnValue::Float(float) => row.number(float.to_bits().swap_bytes()),
                ColumnValue::Bool(bool) => row.flag(bool),
                ColumnValue::Text(text) => row.bytes(&text),
            }
        });
    }
    out.extend_from_slice(&row.finish());
}

/// Puts rows together that come one by one.
pub struct ColumnsBuilder {
    asked: Arc<[ColumnRequest]>,
    targets: Vec<Target>,
    building: BuilderState,
}

#[derive(Default)]
struct BuilderState {
    rows: usize,
    columns: Vec<Places>,
    text_bytes: usize,
    unfit: u64,
}

/// The places of a column so far.
enum Places {
    Ints(Numbers<i64>),
    Floats(Numbers<f64>),
    Bools(Numbers<bool>),
    Texts(Vec<u32>, Strings),
}

impl Places {
    fn new(kind: ColumnKind) -> Places {
        match kind {
            ColumnKind::Time | ColumnKind::Int => Places::Ints(Numbers::default()),
            ColumnKind::Float => Places::Floats(Numbers::default()),
            ColumnKind::Bool => Places::Bools(Numbers::default()),
            ColumnKind::Text | ColumnKind::Number => Places::Texts(Vec::new(), Strings::default()),
        }
    }

    /// Fills the next place; gives the bytes of text in it.
    fn push(&mut self, fitted: &ColumnValue<'_>) -> usize {
        match (self, fitted) {
            (Places::Ints(numbers), ColumnValue::Int(int)) => push(numbers, Some(*int)),
            (Places::Ints(numbers), _) => push(numbers, None),
            (Places::Floats(numbers), ColumnValue::Float(float)) => push(numbers, Some(*float)),
            (Places::Floats(numbers), _) => push(numbers, None),
            (Places::Bools(numbers), ColumnValue::Bool(bool)) => push(numbers, Some(*bool)),
            (Places::Bools(numbers), _) => push(numbers, None),
            (Places::Texts(codes, strings), ColumnValue::Text(text)) => {
                codes.push(cast::low_u32(strings.len()));
                strings.push(text);
                return text.len();
            }
            (Places::Texts(codes, _), _) => codes.push(NULL),
        }
        0
    }

    fn finish(self) -> Column {
        match self {
            Places::Ints(numbers) => Column::Ints(numbers),
            Places::Floats(numbers) => Column::Floats(numbers),
            Places::Bools(numbers) => Column::Bools(numbers),
            Places::Texts(codes, strings) => {
                let values = Arc::new(strings);
                Column::Strings(StringColumn { codes, values })
            }
        }
    }
}

fn push<T: Copy + Default>(numbers: &mut Numbers<T>, value: Option<T>) {
    numbers.values.push(value.unwrap_or_default());
    numbers.valid.push(value.is_some());
}

impl BuilderState {
    fn new(asked: &[ColumnRequest]) -> BuilderState {
        BuilderState {
            columns: asked
                .iter()
                .map(|column| Places::new(column.kind))
                .collect(),
            ..BuilderState::default()
        }
    }

    fn push(&mut self, column: usize, fitted: &ColumnValue<'_>) {
        self.unfit += u64::from(matches!(fitted, ColumnValue::Unfit));
        self.text_bytes += self.columns[column].push(fitted);
    }
}

impl ColumnsBuilder {
    /// No rows yet.
    pub fn new(asked: Arc<[ColumnRequest]>) -> ColumnsBuilder {
        ColumnsBuilder {
            targets: asked
                .iter()
                .map(|column| Target::new(&column.name))
                .collect(),
            building: BuilderState::new(&asked),
            asked,
        }
    }

    /// Appends a record.
    pub fn add(&mut self, record: &Record<'_>) {
        for (number, (target, asked)) in self.targets.iter().zip(&*self.asked).enumerate() {
            let building = &mut self.building;
            with_fitted(record, (target, asked.kind), |fitted| {
                building.push(number, &fitted)
            });
        }
        self.building.rows += 1;
    }

    /// Appends a row that [`write_row`] wrote.
    ///
    /// # Errors
    /// When the bytes are something else; the rows are of no use then.
    pub fn add_row(&mut self, row: &[u8]) -> Result<(), DecodeError> {
        let mut from = Decoder::bare(row);
        for (number, asked) in self.asked.iter().enumerate() {
            let fitted = match from.number("whether there is a value")? {
                0 => ColumnValue::None,
                2 => ColumnValue::Unfit,
                1 => read_value(asked.kind, &mut from)?,
                _ => return Err(DecodeError::Malformed("whether there is a value")),
            };
            self.building.push(number, &fitted);
        }
        self.building.rows += 1;
        from.finish()
    }

    /// Rows since they were last taken.
    pub fn rows(&self) -> usize {
        self.building.rows
    }

    /// Whether there are as many rows, or as much text, as should be handed over at once.
    pub fn is_full(&self) -> bool {
        self.building.rows >= ROWS_MAX || self.building.text_bytes >= TEXT_BYTES_ENOUGH
    }

    /// The rows since they were last taken.
    pub fn take(&mut self) -> Columns {
        let building = std::mem::replace(&mut self.building, BuilderState::new(&self.asked));
        Columns {
            rows: building.rows,
            columns: building.columns.into_iter().map(Places::finish).collect(),
            unfit: building.unfit,
        }
    }
}

fn read_value<'v>(
    kind: ColumnKind,
    from: &mut Decoder<'v>,
) -> Result<ColumnValue<'v>, DecodeError> {
    Ok(match kind {
        ColumnKind::Time | ColumnKind::Int => {
            let number = from.number("a whole number")?;
            ColumnValue::Int(cast::signed(number >> 1) ^ -cast::signed(number & 1))
        }
        ColumnKind::Float => {
            ColumnValue::Float(f64::from_bits(from.number("a number")?.swap_bytes()))
        }
        ColumnKind::Bool => ColumnValue::Bool(from.flag("a truth value")?),
        ColumnKind::Text | ColumnKind::Number => {
            ColumnValue::Text(from.bytes(TEXT_BYTES_MAX, "a text")?.into())
        }
    })
}

/// Reads any bytes as columns and a row of another node, and checks that each column has a place for it. An
/// entry point for fuzzing.
///
/// # Panics
///
/// If one has not.
pub fn fuzz_columns(bytes: &[u8]) {
    let mut from = Decoder::bare(bytes);
    let Ok(count) = from.count(2, "the columns") else {
        return;
    };
    let mut asked = Vec::new();
    for _ in 0..count {
        match ColumnRequest::decode(&mut from) {
            Ok(column) => asked.push(column),
            Err(_) => return,
        }
    }
    let Ok(row) = from.bytes(bytes.len(), "a row") else {
        return;
    };
    let mut builder = ColumnsBuilder::new(asked.into());
    if builder.add_row(row).is_ok() {
        let columns = builder.take();
        assert_eq!(columns.rows, 1);
        for column in &columns.columns {
            let places = match column {
                Column::Strings(texts) => texts.codes.len(),
                Column::Ints(numbers) => numbers.values.len(),
                Column::Floats(numbers) => numbers.values.len(),
                Column::Bools(numbers) => numbers.values.len(),
                Column::Absent => 1,
            };
            assert_eq!(places, 1);
        }
    }
}

/// Puts the values of one column together that come row by row.
pub(crate) struct ColumnBuilder {
    kind: ColumnKind,
    places: Places,
    unfit: u64,
}

impl ColumnBuilder {
    pub(crate) fn new(kind: ColumnKind) -> ColumnBuilder {
        ColumnBuilder {
            kind,
            places: Places::new(kind),
            unfit: 0,
        }
    }

    /// Appends a value, or a place without.
    pub(crate) fn push(&mut self, value: Option<&Value<'_>>) {
        let fitted = value.map_or(ColumnValue::None, |value| fit(self.kind, value));
        self.unfit += u64::from(matches!(fitted, ColumnValue::Unfit));
        self.places.push(&fitted);
    }

    /// Appends a text.
    pub(crate) fn push_text(&mut self, text: Option<&[u8]>) {
        let fitted = text.map_or(ColumnValue::None, |text| ColumnValue::Text(text.into()));
        self.places.push(&fitted);
    }

    /// The column, and how many values it cannot hold.
    pub(crate) fn finish(self) -> (Column, u64) {
        (self.places.finish(), self.unfit)
    }
}

#[cfg(test)]
mod tests {
    use logpond_record::{Id, Shape, TimeSource, Timestamp};

    use super::*;

    fn asked(list: &[(&str, ColumnKind)]) -> Arc<[ColumnRequest]> {
        let asked = list.iter().map(|(name, kind)| ColumnRequest {
            name: (*name).into(),
            kind: *kind,
        });
        asked.collect()
    }

    fn record() -> Record<'static> {
        Record {
            id: Id(1),
            time: Timestamp(-7),
            time_source: TimeSource::Received,
            received: Timestamp(9),
            message: Message::Part(Value::Str("hello".into())),
            shape: Arc::new(Shape::new("⟨_msg:t⟩ a=⟨a:i⟩ b=⟨b:f⟩").unwrap()),
            values: vec![Value::Null, Value::Int(-5), Value::Float(0.5)],
            fixes: Vec::new(),
            labels: vec![
                ("yes".into(), Value::Bool(true)),
                ("none".into(), Value::Null),
                ("app".into(), Value::Str("shop".into())),
                ("list".into(), Value::Json("[1]".into())),
            ],
            whole: None,
        }
    }

    /// The places of a row as texts.
    fn shown(columns: &Columns, row: usize) -> Vec<String> {
        let show = |column: &Column| match column {
            Column::Strings(texts) => texts
                .get(row)
                .map(|text| String::from_utf8_lossy(text).into_owned()),
            Column::Ints(numbers) => numbers.get(row).map(|n| n.to_string()),
            Column::Floats(numbers) => numbers.get(row).map(|n| n.to_string()),
            Column::Bools(numbers) => numbers.get(row).map(|n| n.to_string()),
            Column::Absent => None,
        };
        let shown = columns.columns.iter().map(show);
        shown.map(|text| text.unwrap_or("-".into())).collect()
    }

    #[test]
    fn records_and_rows_of_other_nodes_give_the_same_columns() {
        use ColumnKind::{Bool, Float, Int, Text, Time};
        let asked = asked(&[
            ("_time", Time),
            ("_received", Time),
            ("_time_source", Text),
            ("_msg", Text),
            ("_raw", Text),
            ("a", Int),
            ("a", Float),
            ("a", Text),
            ("a", Bool),
            ("b", Float),
            ("b", Int),
            ("yes", Bool),
            ("none", Text),
            ("list", Text),
            ("absent", Int),
            ("_logpond_label.service_name", Text),
            ("_logpond_label.detected_level", Text),
        ]);
        let mut by_record = ColumnsBuilder::new(asked.clone());
        by_record.add(&record());
        let mut row = Vec::new();
        write_row(&record(), &asked, &mut row);
        let mut by_row = ColumnsBuilder::new(asked.clone());
        by_row.add_row(&row).unwrap();
        for columns in [by_record.take(), by_row.take()] {
            assert_eq!((columns.rows, columns.unfit), (1, 2));
            let expected = [
                "-7",
                "9",
                "received",
                "hello",
                "hello a=-5 b=0.5",
                "-5",
                "-5",
                "-5",
                "-",
                "0.5",
                "-",
                "true",
                "-",
                "[1]",
                "-",
                "shop",
                "unknown",
            ];
            assert_eq!(shown(&columns, 0), expected);
        }
        for length in 0..row.len() {
            let mut broken = ColumnsBuilder::new(asked.clone());
            assert!(broken.add_row(&row[..length]).is_err(), "{length}");
        }
        assert_eq!(by_row.rows(), 0);
    }

    #[test]
    fn kinds_hold_all_values_of_their_types() {
        let of = |values: &[Value<'_>]| {
            let mut types = TypeSet::default();
            values.iter().for_each(|v| types.merge(TypeSet::of(v)));
            ColumnKind::of(types)
        };
        let (int, float, bool) = (Value::Int(1), Value::Float(0.5), Value::Bool(true));
        let text = Value::Str("a".into());
        let table = [
            (vec![], ColumnKind::Text),
            (vec![Value::Null], ColumnKind::Text),
            (vec![int.clone(), Value::Null], ColumnKind::Int),
            (vec![float.clone()], ColumnKind::Float),
            (vec![int.clone(), float.clone()], ColumnKind::Float),
            (vec![bool.clone()], ColumnKind::Bool),
            (vec![bool, int.clone()], ColumnKind::Text),
            (vec![text, int], ColumnKind::Text),
            (
                vec![Value::Bytes(b"\xff".as_slice().into())],
                ColumnKind::Text,
            ),
        ];
        for (values, kind) in table {
            assert_eq!(of(&values), kind, "{values:?}");
        }
    }

    #[test]
    fn columns_that_are_asked_for_come_back() {
        let column = ColumnRequest {
            name: "a b".into(),
            kind: ColumnKind::Float,
        };
        let mut out = Encoder::default();
        column.encode(&mut out);
        let bytes = out.finish();
        assert_eq!(
            ColumnRequest::decode(&mut Decoder::bare(&bytes)),
            Ok(column)
        );
        let mut out = Encoder::default();
        out.bytes(b"_time");
        out.number(ColumnKind::Text.number());
        assert!(ColumnRequest::decode(&mut Decoder::bare(&out.finish())).is_err());
    }
}

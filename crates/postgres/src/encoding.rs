//! Rows of the engine as rows of Postgres, in text or in binary.
//!
//! Times have microseconds. A text of Postgres has no NUL: it is shown as U+FFFD, as bytes are that are not UTF-8.

mod number;
mod time;

use logpond_sql::arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array,
    Decimal256Array, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array,
    IntervalMonthDayNanoArray, StringViewArray,
};
use logpond_sql::arrow::buffer::NullBuffer;
use logpond_sql::arrow::compute::{CastOptions, cast, cast_with_options};
use logpond_sql::arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, DurationNanosecondType, Float32Type,
    Float64Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType, IntervalUnit, Schema,
    Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use logpond_sql::arrow::error::ArrowError;
use logpond_sql::arrow::util::display::{ArrayFormatter, FormatOptions};
use logpond_sql::{RecordBatch, postgres_type, shown_name};

use crate::wire::{ColumnDescription, is_binary, put_count, set_length};
use number::{put_decimal, put_float};
use time::Interval;

/// The mark of a value that is null.
const NULL: i32 = -1;

/// The columns of a result, in the forms that a client wants.
pub(crate) fn columns(schema: &Schema, formats: &[i16]) -> Vec<ColumnDescription> {
    let fields = schema.fields().iter().enumerate();
    let column = |(at, field): (usize, &std::sync::Arc<logpond_sql::arrow::datatypes::Field>)| {
        let (found, is_list) = postgres_type(field.data_type());
        ColumnDescription {
            name: shown_name(field.name()).to_owned(),
            oid: if is_list { found.list_oid } else { found.oid },
            bytes: if is_list { -1 } else { found.bytes },
            is_binary: is_binary(formats, at),
        }
    };
    fields.map(column).collect()
}

/// The values of a column of a batch.
enum Values {
    Bool(BooleanArray),
    Int16(Int16Array),
    Int32(Int32Array),
    Int64(Int64Array),
    Float32(Float32Array),
    Float64(Float64Array),
    Decimal128(Decimal128Array),
    Decimal256(Decimal256Array),
    Text(StringViewArray),
    Bytes(BinaryViewArray),
    Date(Date32Array),
    /// Microseconds of a day.
    Time(Vec<i64>),
    /// Microseconds since 1970, and true if they have a zone.
    Timestamp(Vec<i64>, bool),
    /// Nanoseconds.
    Duration(Vec<i64>),
    Interval(IntervalMonthDayNanoArray),
    /// Lists, with the number of the type of their items.
    List(ArrayRef, u32),
    /// Anything else, as the engine shows it.
    Shown(ArrayRef),
}

impl Values {
    fn new(array: &ArrayRef) -> Result<Values, ArrowError> {
        let as_type = |wanted: &DataType| -> Result<ArrayRef, ArrowError> {
            if array.data_type() == wanted {
                Ok(std::sync::Arc::clone(array))
            } else {
                cast(array, wanted)
            }
        };
        Ok(match array.data_type() {
            DataType::Boolean => Values::Bool(array.as_boolean().clone()),
            DataType::Int8 | DataType::UInt8 | DataType::Int16 => Values::Int16(
                as_type(&DataType::Int16)?
                    .as_primitive::<Int16Type>()
                    .clone(),
            ),
            DataType::UInt16 | DataType::Int32 => Values::Int32(
                as_type(&DataType::Int32)?
                    .as_primitive::<Int32Type>()
                    .clone(),
            ),
            DataType::UInt32 | DataType::Int64 => Values::Int64(
                as_type(&DataType::Int64)?
                    .as_primitive::<Int64Type>()
                    .clone(),
            ),
            DataType::UInt64 => {
                // A number that has no room is an error, and no null.
                let options = CastOptions {
                    safe: false,
                    ..CastOptions::default()
                };
                let numbers = cast_with_options(array, &DataType::Int64, &options)?;
                Values::Int64(numbers.as_primitive::<Int64Type>().clone())
            }
            DataType::Float16 | DataType::Float32 => Values::Float32(
                as_type(&DataType::Float32)?
                    .as_primitive::<Float32Type>()
                    .clone(),
            ),
            DataType::Float64 => Values::Float64(array.as_primitive::<Float64Type>().clone()),
            DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
                let wide = as_type(&DataType::Decimal128(*precision, *scale))?;
                Values::Decimal128(wide.as_primitive::<Decimal128Type>().clone())
            }
            DataType::Decimal128(..) => {
                Values::Decimal128(array.as_primitive::<Decimal128Type>().clone())
            }
            DataType::Decimal256(..) => {
                Values::Decimal256(array.as_primitive::<Decimal256Type>().clone())
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                Values::Text(as_type(&DataType::Utf8View)?.as_string_view().clone())
            }
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
                Values::Bytes(as_type(&DataType::BinaryView)?.as_binary_view().clone())
            }
            other => Values::of_time_or_list(array, other)?,
        })
    }

    fn of_time_or_list(array: &ArrayRef, data_type: &DataType) -> Result<Values, ArrowError> {
        Ok(match data_type {
            DataType::Date32 | DataType::Date64 => {
                let days = cast(array, &DataType::Date32)?;
                Values::Date(days.as_primitive::<Date32Type>().clone())
            }
            DataType::Time32(_) | DataType::Time64(_) => {
                let times = cast(array, &DataType::Time64(TimeUnit::Microsecond))?;
                Values::Time(
                    times
                        .as_primitive::<Time64MicrosecondType>()
                        .values()
                        .to_vec(),
                )
            }
            DataType::Timestamp(_, zone) => {
                let wanted = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
                let times = cast(array, &wanted)?;
                let times = times.as_primitive::<TimestampMicrosecondType>();
                Values::Timestamp(times.values().to_vec(), zone.is_some())
            }
            DataType::Duration(_) => {
                let spans = cast(array, &DataType::Duration(TimeUnit::Nanosecond))?;
                Values::Duration(
                    spans
                        .as_primitive::<DurationNanosecondType>()
                        .values()
                        .to_vec(),
                )
            }
            DataType::Interval(_) => {
                let spans = cast(array, &DataType::Interval(IntervalUnit::MonthDayNano))?;
                Values::Interval(spans.as_primitive::<IntervalMonthDayNanoType>().clone())
            }
            DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
                let (item, _) = postgres_type(data_type);
                Values::List(std::sync::Arc::clone(array), item.oid)
            }
            DataType::Dictionary(_, value) => Values::new(&cast(array, value)?)?,
            _ => Values::Shown(std::sync::Arc::clone(array)),
        })
    }

    fn put(&self, row: usize, is_binary: bool, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        if is_binary {
            self.put_binary(row, out)
        } else {
            self.put_text(row, out)
        }
    }

    fn put_text(&self, row: usize, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        match self {
            Values::Bool(values) => out.push(if values.value(row) { b't' } else { b'f' }),
            Values::Int16(values) => put_shown(out, values.value(row)),
            Values::Int32(values) => put_shown(out, values.value(row)),
            Values::Int64(values) => put_shown(out, values.value(row)),
            Values::Float32(values) => {
                put_float(out, f64::from(values.value(row)), Some(values.value(row)))
            }
            Values::Float64(values) => put_float(out, values.value(row), None),
            Values::Decimal128(values) => put_shown(out, values.value_as_string(row)),
            Values::Decimal256(values) => put_shown(out, values.value_as_string(row)),
            Values::Text(values) => put_chars(out, values.value(row)),
            Values::Bytes(values) => {
                out.extend_from_slice(b"\\x");
                for byte in values.value(row) {
                    put_shown(out, format_args!("{byte:02x}"));
                }
            }
            Values::Date(values) => time::put_date(out, values.value(row)),
            Values::Time(values) => time::put_time(out, at(values, row)),
            Values::Timestamp(values, has_zone) => {
                time::put_timestamp(out, at(values, row), *has_zone);
            }
            Values::Duration(values) => Interval::of_ns(at(values, row)).put_text(out),
            Values::Interval(values) => interval(values, row).put_text(out),
            Values::List(lists, _) => put_list_text(&item(lists, row)?, out)?,
            Values::Shown(values) => put_chars(out, &shown(values, row)?),
        }
        Ok(())
    }

    fn put_binary(&self, row: usize, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        match self {
            Values::Bool(values) => out.push(u8::from(values.value(row))),
            Values::Int16(values) => out.extend_from_slice(&values.value(row).to_be_bytes()),
            Values::Int32(values) => out.extend_from_slice(&values.value(row).to_be_bytes()),
            Values::Int64(values) => out.extend_from_slice(&values.value(row).to_be_bytes()),
            Values::Float32(values) => out.extend_from_slice(&values.value(row).to_be_bytes()),
            Values::Float64(values) => out.extend_from_slice(&values.value(row).to_be_bytes()),
            Values::Decimal128(values) => put_decimal(out, &values.value_as_string(row)),
            Values::Decimal256(values) => put_decimal(out, &values.value_as_string(row)),
            Values::Text(values) => put_chars(out, values.value(row)),
            Values::Bytes(values) => out.extend_from_slice(values.value(row)),
            Values::Date(values) => {
                let days = values.value(row).saturating_sub(time::EPOCH_DAYS);
                out.extend_from_slice(&days.to_be_bytes());
            }
            Values::Time(values) => out.extend_from_slice(&at(values, row).to_be_bytes()),
            Values::Timestamp(values, _) => {
                let us = at(values, row).saturating_sub(time::EPOCH_US);
                out.extend_from_slice(&us.to_be_bytes());
            }
            Values::Duration(values) => Interval::of_ns(at(values, row)).put_binary(out),
            Values::Interval(values) => interval(values, row).put_binary(out),
            Values::List(lists, oid) => put_list_binary(&item(lists, row)?, *oid, out)?,
            Values::Shown(values) => put_chars(out, &shown(values, row)?),
        }
        Ok(())
    }
}

fn at(values: &[i64], row: usize) -> i64 {
    values.get(row).copied().unwrap_or_default()
}

fn interval(values: &IntervalMonthDayNanoArray, row: usize) -> Interval {
    let value = values.value(row);
    Interval {
        months: value.months,
        days: value.days,
        ns: value.nanoseconds,
    }
}

fn put_shown(out: &mut Vec<u8>, value: impl std::fmt::Display) {
    use std::io::Write;
    // A vector takes all bytes.
    let _ = write!(out, "{value}");
}

fn put_chars(out: &mut Vec<u8>, text: &str) {
    if text.as_bytes().contains(&0) {
        out.extend_from_slice(text.replace('\0', "\u{fffd}").as_bytes());
    } else {
        out.extend_from_slice(text.as_bytes());
    }
}

/// A value as the engine shows it.
fn shown(values: &ArrayRef, row: usize) -> Result<String, ArrowError> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(values, &options)?;
    Ok(formatter.value(row).to_string())
}

/// The items of a list; lists in it are their texts.
fn item(lists: &ArrayRef, row: usize) -> Result<ArrayRef, ArrowError> {
    let items = match lists.data_type() {
        DataType::List(_) => lists.as_list::<i32>().value(row),
        DataType::LargeList(_) => lists.as_list::<i64>().value(row),
        _ => lists.as_fixed_size_list().value(row),
    };
    let (_, is_nested) = postgres_type(items.data_type());
    if !is_nested {
        return Ok(items);
    }
    let text = |at| (!items.is_null(at)).then(|| shown(&items, at)).transpose();
    let texts = (0..items.len()).map(text);
    let texts = texts.collect::<Result<StringViewArray, ArrowError>>()?;
    Ok(std::sync::Arc::new(texts))
}

fn put_list_text(items: &ArrayRef, out: &mut Vec<u8>) -> Result<(), ArrowError> {
    let values = Values::new(items)?;
    out.push(b'{');
    let nulls = items.logical_nulls();
    let mut text = Vec::new();
    for at in 0..items.len() {
        if at > 0 {
            out.push(b',');
        }
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(at)) {
            out.extend_from_slice(b"NULL");
            continue;
        }
        text.clear();
        values.put_text(at, &mut text)?;
        let is_special = |byte: &u8| byte.is_ascii_whitespace() || b"{},\"\\".contains(byte);
        if text.is_empty() || text.eq_ignore_ascii_case(b"null") || text.iter().any(is_special) {
            out.push(b'"');
            for byte in &text {
                if b"\"\\".contains(byte) {
                    out.push(b'\\');
                }
                out.push(*byte);
            }
            out.push(b'"');
        } else {
            out.extend_from_slice(&text);
        }
    }
    out.push(b'}');
    Ok(())
}

fn put_list_binary(items: &ArrayRef, oid: u32, out: &mut Vec<u8>) -> Result<(), ArrowError> {
    let values = Values::new(items)?;
    let count = i32::try_from(items.len()).unwrap_or(i32::MAX);
    let nulls = items.logical_nulls();
    let has_nulls = i32::from(nulls.as_ref().is_some_and(|nulls| nulls.null_count() > 0));
    out.extend_from_slice(&i32::from(count > 0).to_be_bytes());
    out.extend_from_slice(&has_nulls.to_be_bytes());
    out.extend_from_slice(&oid.to_be_bytes());
    if count == 0 {
        return Ok(());
    }
    out.extend_from_slice(&count.to_be_bytes());
    out.extend_from_slice(&1_i32.to_be_bytes());
    for at in 0..items.len() {
        put_value(&values, nulls.as_ref(), (at, true), out)?;
    }
    Ok(())
}

/// Appends a value with its length before it.
fn put_value(
    values: &Values,
    nulls: Option<&NullBuffer>,
    (row, is_binary): (usize, bool),
    out: &mut Vec<u8>,
) -> Result<(), ArrowError> {
    if nulls.is_some_and(|nulls| nulls.is_null(row)) {
        out.extend_from_slice(&NULL.to_be_bytes());
        return Ok(());
    }
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    values.put(row, is_binary, out)?;
    // The length of a value is without its own four bytes.
    let length = i32::try_from(out.len() - at - 4).unwrap_or(i32::MAX);
    if let Some(place) = out.get_mut(at..at + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

/// A column of a batch.
struct EncodedColumn {
    values: Values,
    nulls: Option<NullBuffer>,
    is_binary: bool,
}

/// The rows of a batch, as messages.
pub(crate) struct RowEncoder {
    columns: Vec<EncodedColumn>,
    rows: usize,
}

impl RowEncoder {
    pub(crate) fn new(
        batch: &RecordBatch,
        columns: &[ColumnDescription],
    ) -> Result<RowEncoder, ArrowError> {
        let pairs = batch.columns().iter().zip(columns);
        let encoded = pairs.map(|(array, column)| {
            Ok(EncodedColumn {
                values: Values::new(array)?,
                nulls: array.logical_nulls(),
                is_binary: column.is_binary,
            })
        });
        Ok(RowEncoder {
            columns: encoded.collect::<Result<_, ArrowError>>()?,
            rows: batch.num_rows(),
        })
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Appends the message of a row.
    pub(crate) fn put(&self, row: usize, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        out.push(b'D');
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        put_count(out, self.columns.len());
        for column in &self.columns {
            put_value(
                &column.values,
                column.nulls.as_ref(),
                (row, column.is_binary),
                out,
            )?;
        }
        set_length(out, at);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use logpond_sql::arrow::array::{ListArray, TimestampNanosecondArray, UInt64Array};

    use super::*;

    fn encoded(array: ArrayRef, is_binary: bool) -> Vec<Option<Vec<u8>>> {
        let values = Values::new(&array).unwrap();
        let one = |row| {
            let mut out = Vec::new();
            (!array.is_null(row)).then(|| {
                values.put(row, is_binary, &mut out).unwrap();
                out
            })
        };
        (0..array.len()).map(one).collect()
    }

    fn texts(array: ArrayRef) -> Vec<Option<String>> {
        let all = encoded(array, false).into_iter();
        all.map(|one| one.map(|bytes| String::from_utf8(bytes).unwrap()))
            .collect()
    }

    #[test]
    fn values_are_texts() {
        let some = |text: &str| Some(text.to_owned());
        let list = ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1), None])]);
        let names = ListArray::try_new(
            Arc::new(logpond_sql::arrow::datatypes::Field::new(
                "item",
                DataType::Utf8View,
                true,
            )),
            logpond_sql::arrow::buffer::OffsetBuffer::from_lengths([3]),
            Arc::new(StringViewArray::from(vec!["a", "b \"c", ""])),
            None,
        );
        let times = TimestampNanosecondArray::from(vec![Some(1_000_000_001_500), Some(-1), None]);
        let table: [(ArrayRef, Vec<Option<String>>); 6] = [
            (
                Arc::new(BooleanArray::from(vec![true, false])),
                vec![some("t"), some("f")],
            ),
            (Arc::new(UInt64Array::from(vec![7])), vec![some("7")]),
            (
                Arc::new(StringViewArray::from(vec!["a\0b"])),
                vec![some("a\u{fffd}b")],
            ),
            (Arc::new(list), vec![some("{1,NULL}")]),
            (Arc::new(names.unwrap()), vec![some("{a,\"b \\\"c\",\"\"}")]),
            (
                Arc::new(times.with_timezone("+00:00")),
                vec![
                    some("1970-01-01 00:16:40.000001+00"),
                    some("1970-01-01 00:00:00+00"),
                    None,
                ],
            ),
        ];
        for (array, expected) in table {
            assert_eq!(texts(array), expected);
        }
    }

    #[test]
    fn values_are_bytes() {
        let list = ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(5)])]);
        let head: Vec<u8> = [1_i32, 0, 20, 1, 1, 8]
            .iter()
            .flat_map(|n| n.to_be_bytes())
            .collect();
        let table: [(ArrayRef, Vec<u8>); 4] = [
            (Arc::new(Int32Array::from(vec![-1])), vec![0xff; 4]),
            (
                Arc::new(Date32Array::from(vec![time::EPOCH_DAYS + 1])),
                vec![0, 0, 0, 1],
            ),
            (
                Arc::new(UInt64Array::from(vec![7])),
                vec![0, 0, 0, 0, 0, 0, 0, 7],
            ),
            (
                Arc::new(list),
                [head, vec![0, 0, 0, 0, 0, 0, 0, 5]].concat(),
            ),
        ];
        for (array, expected) in table {
            assert_eq!(encoded(array, true), [Some(expected)]);
        }
    }

    #[test]
    fn numbers_without_room_are_errors() {
        let array: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX]));
        assert!(Values::new(&array).is_err());
    }

    #[test]
    fn rows_are_messages() {
        let schema = Schema::new(vec![
            logpond_sql::arrow::datatypes::Field::new("a", DataType::Int64, true),
            logpond_sql::arrow::datatypes::Field::new("b", DataType::Utf8View, true),
        ]);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![7])),
            Arc::new(StringViewArray::from(vec![None::<&str>])),
        ];
        let batch = RecordBatch::try_new(Arc::new(schema.clone()), columns).unwrap();
        let described = super::columns(&schema, &[]);
        let mut out = Vec::new();
        let encoder = RowEncoder::new(&batch, &described).unwrap();
        encoder.put(0, &mut out).unwrap();
        assert_eq!(out, b"D\0\0\0\x0f\0\x02\0\0\0\x017\xff\xff\xff\xff");
    }
}

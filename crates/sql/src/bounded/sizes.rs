//! What results of functions take at most.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNanoType, IntervalUnit, TimeUnit};
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;
use logpond_record::cast;

/// Bytes of the longest character.
const CHARACTER_BYTES: u64 = 4;

/// Bytes of a number, and of what a text takes beside its bytes.
const ELEMENT_BYTES: u64 = 16;

/// A byte of an argument becomes at most so many: two digits, or the capital letters of one letter.
const LINEAR_BYTES: u64 = 4;

/// Bytes that a result has whatever the arguments are: the digits of the longest hash.
const VALUE_BYTES: u64 = 128;

/// A letter of a format of times may become the name of a month or a whole time.
const FORMATTED_BYTES: u64 = 40;

/// Nanoseconds of a day, and of the shortest month.
const DAY_NS: u64 = 86_400_000_000_000;
const MONTH_NS: u64 = 28 * DAY_NS;

/// How results grow with what is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// All texts, one behind the other, or all elements.
    Joined,
    /// All texts, with the first one between them.
    Separated,
    /// A text as often as is said.
    Repeated,
    /// As many characters as are said.
    Padded,
    /// The third text at each place of the first.
    Replaced,
    /// The second text, filled in.
    Formatted,
    /// One element for each byte.
    Split,
    /// The elements of a list, with a text between them.
    Listed,
    /// The first argument as often as the second says.
    ArrayRepeated,
    /// So many elements.
    Resized,
    /// The numbers or times from one to another.
    Range,
    /// The third argument in place of elements of the first.
    ElementsReplaced,
    /// The text of each group of the second.
    Matched,
    /// A few bytes for each byte of all arguments: any other function.
    Linear,
}

impl Growth {
    /// How the results of this function grow; nothing if they are about as large as its arguments.
    pub(super) fn of(name: &str) -> Option<Growth> {
        Some(match name {
            "concat" | "overlay" => Growth::Joined,
            "array_concat" | "array_append" | "array_prepend" | "make_array" => Growth::Joined,
            "concat_ws" => Growth::Separated,
            "repeat" => Growth::Repeated,
            "lpad" | "rpad" => Growth::Padded,
            "replace" | "regexp_replace" => Growth::Replaced,
            "to_char" => Growth::Formatted,
            "string_to_array" => Growth::Split,
            "array_to_string" => Growth::Listed,
            "array_repeat" => Growth::ArrayRepeated,
            "array_resize" => Growth::Resized,
            "range" | "generate_series" => Growth::Range,
            "array_replace" | "array_replace_n" | "array_replace_all" => Growth::ElementsReplaced,
            "regexp_match" => Growth::Matched,
            _ => return None,
        })
    }

    /// Whether results are as large as is said, and not only at most.
    pub(super) fn is_exact(self) -> bool {
        !matches!(
            self,
            Growth::Replaced
                | Growth::Formatted
                | Growth::Split
                | Growth::Listed
                | Growth::ElementsReplaced
                | Growth::Matched
                | Growth::Linear
        )
    }

    /// The bytes of the results of so many rows.
    pub(super) fn sizes(self, args: &[ColumnarValue], rows: usize) -> Result<Vec<u64>> {
        let args = args.iter().map(Argument::of).collect::<Result<Vec<_>>>()?;
        let size = |row: usize| self.size(&args, row);
        Ok((0..rows).map(size).collect())
    }

    fn size(self, args: &[Argument], row: usize) -> u64 {
        let bytes = |at: usize| args.get(at).map_or(0, |arg| arg.bytes(row));
        let number = |at: usize| args.get(at).map_or(0, |arg| arg.number(row));
        let all = || args.iter().map(|arg| arg.bytes(row)).sum::<u64>();
        match self {
            Growth::Joined => all(),
            Growth::Separated => all().saturating_add(bytes(0).saturating_mul(args.len() as u64)),
            Growth::Repeated => bytes(0).saturating_mul(number(1)),
            Growth::Padded => {
                let filling = args.get(2).map_or(1, |arg| arg.widest(row));
                number(1).saturating_mul(filling).saturating_add(bytes(0))
            }
            Growth::Replaced => {
                let places = bytes(0).saturating_add(1);
                // What is put in may name parts of what was found, each with two bytes.
                let found = bytes(0).saturating_mul(bytes(2));
                places
                    .saturating_mul(bytes(2))
                    .saturating_add(found)
                    .saturating_add(bytes(0))
            }
            Growth::Formatted => bytes(1).saturating_mul(FORMATTED_BYTES),
            Growth::Split => bytes(0).saturating_add(1).saturating_mul(ELEMENT_BYTES + 1),
            Growth::Listed => bytes(0).saturating_add(number(0).saturating_mul(bytes(1))),
            Growth::ArrayRepeated => bytes(0).max(ELEMENT_BYTES).saturating_mul(number(1)),
            Growth::Resized => bytes(2).max(ELEMENT_BYTES).saturating_mul(number(1)),
            Growth::Range => steps(args, row).saturating_mul(ELEMENT_BYTES),
            Growth::ElementsReplaced => {
                let elements = number(0).max(1);
                bytes(0).saturating_add(elements.saturating_mul(bytes(2).max(ELEMENT_BYTES)))
            }
            Growth::Matched => {
                let groups = args.get(1).map_or(0, |arg| arg.opened_groups(row));
                bytes(0).saturating_mul(groups.saturating_add(1))
            }
            Growth::Linear => all()
                .saturating_mul(LINEAR_BYTES)
                .saturating_add(VALUE_BYTES),
        }
    }
}

/// How many numbers or times there are from one to another.
fn steps(args: &[Argument], row: usize) -> u64 {
    let value = |at: usize| args.get(at).and_then(|arg| arg.signed(row));
    let (from, to) = match (value(0), value(1)) {
        (Some(from), Some(to)) => (from, to),
        (Some(to), None) if args.len() == 1 => (0, to),
        // The range of a null is one.
        _ => return 0,
    };
    let step = match args.get(2) {
        Some(arg) => arg.step(row),
        None => 1,
    };
    // A step of nothing is refused by the function itself.
    (from.abs_diff(to) / step.max(1)).saturating_add(1)
}

/// An argument, whose only value counts for all rows if it has one.
pub(super) struct Argument {
    array: ArrayRef,
    is_scalar: bool,
    /// The same as numbers, nanoseconds or lengths of lists, where it is any of these.
    numbers: Option<Int64Array>,
    /// Bytes of a value that is no text.
    width: u64,
}

impl Argument {
    pub(super) fn of(value: &ColumnarValue) -> Result<Argument> {
        let is_scalar = matches!(value, ColumnarValue::Scalar(_));
        let array = value.to_array(1)?;
        let rows = array.len().max(1) as u64;
        Ok(Argument {
            numbers: numbers(&array),
            width: (array.get_array_memory_size() as u64).div_ceil(rows),
            array,
            is_scalar,
        })
    }

    /// The row that counts, unless it is null.
    fn row(&self, row: usize) -> Option<usize> {
        let row = if self.is_scalar { 0 } else { row };
        (row < self.array.len() && self.array.is_valid(row)).then_some(row)
    }

    fn bytes(&self, row: usize) -> u64 {
        let Some(row) = self.row(row) else {
            return 0;
        };
        self.text(row).map_or(self.width, |text| text.len() as u64)
    }

    /// Bytes of a text, elements of a list, or 1.
    pub(super) fn length(&self, row: usize) -> u64 {
        let Some(valid) = self.row(row) else {
            return 0;
        };
        match self.text(valid) {
            Some(text) => text.len() as u64,
            None if matches!(self.array.data_type(), DataType::List(_)) => self.number(row),
            None => 1,
        }
    }

    fn text(&self, row: usize) -> Option<&str> {
        Some(match self.array.data_type() {
            DataType::Utf8 => self.array.as_string::<i32>().value(row),
            DataType::LargeUtf8 => self.array.as_string::<i64>().value(row),
            DataType::Utf8View => self.array.as_string_view().value(row),
            _ => return None,
        })
    }

    /// The most groups that a pattern may have.
    fn opened_groups(&self, row: usize) -> u64 {
        let pattern = self.row(row).and_then(|row| self.text(row));
        let opened = pattern.map_or(0, |pattern| pattern.matches('(').count());
        opened as u64
    }

    /// Bytes of the longest character of a text.
    fn widest(&self, row: usize) -> u64 {
        match self.row(row).and_then(|row| self.text(row)) {
            Some(text) => text.chars().map(char::len_utf8).max().unwrap_or(1) as u64,
            None => CHARACTER_BYTES,
        }
    }

    fn signed(&self, row: usize) -> Option<i64> {
        let row = self.row(row)?;
        let numbers = self.numbers.as_ref()?;
        // What is no such number is a larger one.
        Some(if numbers.is_valid(row) {
            numbers.value(row)
        } else {
            i64::MAX
        })
    }

    /// A number that is none below zero.
    fn number(&self, row: usize) -> u64 {
        let number = self.signed(row).unwrap_or_default();
        u64::try_from(number).unwrap_or_default()
    }

    fn step(&self, row: usize) -> u64 {
        if let Some(interval) = self.array.as_primitive_opt::<IntervalMonthDayNanoType>() {
            let Some(row) = self.row(row) else {
                return 1;
            };
            let step = interval.value(row);
            let months = u64::from(step.months.unsigned_abs()).saturating_mul(MONTH_NS);
            let days = u64::from(step.days.unsigned_abs()).saturating_mul(DAY_NS);
            return months.max(days).max(step.nanoseconds.unsigned_abs());
        }
        self.signed(row).map_or(1, i64::unsigned_abs)
    }
}

fn numbers(array: &ArrayRef) -> Option<Int64Array> {
    let safe = CastOptions::default();
    let to_int = |array: &ArrayRef| cast_with_options(array, &DataType::Int64, &safe).ok();
    let ints = match array.data_type() {
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            let lengths = lists.offsets().lengths().map(cast::low_i64);
            return Some(lengths.collect());
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => None,
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => {
            let nanoseconds = DataType::Timestamp(TimeUnit::Nanosecond, None);
            let times = cast_with_options(array, &nanoseconds, &safe).ok()?;
            to_int(&times)
        }
        kind if kind.is_integer() => to_int(array),
        _ => None,
    }?;
    ints.as_primitive_opt().cloned()
}

#[cfg(test)]
mod tests {
    use datafusion::common::ScalarValue;

    use super::*;

    fn scalar(value: ScalarValue) -> ColumnarValue {
        ColumnarValue::Scalar(value)
    }

    fn text(text: &str) -> ColumnarValue {
        scalar(ScalarValue::from(text))
    }

    fn int(int: i64) -> ColumnarValue {
        scalar(ScalarValue::from(int))
    }

    #[test]
    fn results_are_no_larger_than_is_said() {
        let date = |day| scalar(ScalarValue::Date32(Some(day)));
        let hour = scalar(ScalarValue::new_interval_mdn(0, 0, 3_600_000_000_000));
        let table = [
            ("concat", vec![text("ab"), text("cde")], 5),
            ("concat_ws", vec![text("--"), text("a"), text("b")], 10),
            ("repeat", vec![text("ab"), int(1_000_000)], 2_000_000),
            ("repeat", vec![text("ab"), int(-1)], 0),
            ("repeat", vec![text("ab"), int(i64::MAX)], u64::MAX),
            ("repeat", vec![scalar(ScalarValue::Utf8(None)), int(9)], 0),
            ("lpad", vec![text("ab"), int(10)], 12),
            ("rpad", vec![text("ab"), int(10), text("ä")], 22),
            ("replace", vec![text("ab"), text(""), text("xyz")], 17),
            ("array_repeat", vec![text("a"), int(100)], 1600),
            (
                "array_repeat",
                vec![int(1), scalar(ScalarValue::UInt64(Some(u64::MAX)))],
                u64::MAX,
            ),
            ("upper", vec![text("abcdefghij")], 168),
            (
                "array_replace",
                vec![text("a"), text("b"), text("cdef")],
                17,
            ),
            ("regexp_match", vec![text("abc"), text("((b))")], 9),
            ("range", vec![int(100)], 101 * ELEMENT_BYTES),
            ("range", vec![int(10), int(-10), int(-5)], 5 * ELEMENT_BYTES),
            (
                "generate_series",
                vec![int(i64::MIN), int(i64::MAX)],
                u64::MAX,
            ),
            (
                "generate_series",
                vec![date(0), date(1), hour],
                25 * ELEMENT_BYTES,
            ),
        ];
        for (name, args, expected) in table {
            let growth = Growth::of(name).unwrap_or(Growth::Linear);
            let sizes = growth.sizes(&args, 2).unwrap();
            let same = sizes.iter().all(|size| *size == sizes[0]);
            assert!(same, "{name} {args:?}");
            // What is not exact may be said to be larger, but never smaller.
            assert!(
                sizes[0] >= expected.min(u64::MAX / 8),
                "{name} {args:?}: {sizes:?}"
            );
            if expected < u64::MAX {
                assert!(sizes[0] <= expected * 8, "{name} {args:?}: {sizes:?}");
            }
        }
    }
}

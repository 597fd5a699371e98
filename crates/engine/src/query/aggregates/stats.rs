//! Statistics of the numbers of a field, for all records or by the values of another field.
//!
//! Invariants:
//! - A value is a number if it reads as one, as in comparisons. The least and the greatest are exact at any length up
//!   to [`EXACT_BYTES_MAX`].
//! - Whole numbers add up exactly. Tables merge in any order; only the last digits of sums of fractions may
//!   differ by it.
//! - A percentile is at most 0.8 % too small: numbers are counted by their sign, exponent and the first
//!   seven digits of their fraction, in base 2. Whole numbers below 256 have a count of their own.
//! - Memory is bounded by [`BYTES_MAX`]; numbers that find no room are counted.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use logpond_record::{Record, cast};
use logpond_search::columns::{ColumnKind, ColumnRequest, Columns, ColumnsBuilder};
use logpond_search::scan::{GroupScan, SelectedRows};
use logpond_search::{EXACT_END, Number, Target};
use logpond_segment::file::ReadError;
use logpond_segment::rows::Column;
use logpond_segment::wire::{DecodeError, Decoder, Encoder};
use serde_json::value::RawValue;

use super::super::output::Output;
use super::super::{Engine, QueryError, Scope, Trailer};
use super::{
    Aggregate, AnyTable, Arguments, ColumnForm, FIELD_BYTES_MAX, Parameter, ParameterKind, Table,
    column, read_field,
};

/// The most memory of a table.
const BYTES_MAX: usize = 64 << 20;

/// The memory of a group beside its value and its counts.
const GROUP_BYTES: usize = 256;

/// The memory of a count of close numbers.
const COUNT_BYTES: usize = 32;

/// The longest value that is told apart; a record is shorter.
const VALUE_BYTES_MAX: usize = 64 << 20;

/// Numbers that take more bytes are the nearest floats.
const EXACT_BYTES_MAX: usize = 128;

/// The digits of a fraction, in base 2, that are not told apart.
const DIGITS_DROPPED: u32 = 52 - 7;

/// Groups in an answer at most.
const GROUPS_MAX: u64 = 100_000;

/// The percentiles of an answer.
const PERCENTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)];

pub(super) const AGGREGATE: Aggregate = Aggregate {
    name: "stats",
    path: "/api/v1/stats",
    help: "Summarise the numbers of a field: extremes, mean, sum and percentiles",
    parameters: &[
        Parameter {
            name: "field",
            help: "The field whose numbers are summarised",
            kind: ParameterKind::Field("a number in the field"),
        },
        Parameter {
            name: "by",
            help: "Summarise by the values of this field, such as app",
            kind: ParameterKind::By,
        },
        Parameter {
            name: "n",
            help: "How many values of --by; 0 is no limit",
            kind: ParameterKind::Limit {
                default: "10",
                max: GROUPS_MAX,
            },
        },
    ],
    columns: &[
        column("value", "value", ColumnForm::Text),
        column("count", "count", ColumnForm::Count),
        column("min", "min", ColumnForm::Number),
        column("p50", "p50", ColumnForm::Number),
        column("p90", "p90", ColumnForm::Number),
        column("p95", "p95", ColumnForm::Number),
        column("p99", "p99", ColumnForm::Number),
        column("max", "max", ColumnForm::Number),
        column("mean", "mean", ColumnForm::Number),
        column("sum", "sum", ColumnForm::Number),
    ],
    answer,
};

/// Emits an object for each group, the one with most numbers first.
fn answer(
    engine: &dyn Engine,
    scope: &Scope,
    arguments: &Arguments,
    out: &mut Output,
) -> Result<Trailer, QueryError> {
    let empty = Stats::new(&arguments.field, arguments.by.as_deref());
    let empty = empty.map_err(|reason| QueryError::Impossible(reason.to_owned()))?;
    let (stats, mut trailer) = engine.filled(scope, empty, out)?;
    let has_groups = stats.asked.len() > 1;
    let mut groups: Vec<_> = stats.groups.iter().collect();
    groups.sort_by(|a, b| b.1.count.cmp(&a.1.count).then_with(|| a.0.cmp(b.0)));
    for (value, numbers) in groups.into_iter().take(arguments.limit) {
        let mut row = numbers.to_row();
        if has_groups {
            let value = value.as_deref().map(String::from_utf8_lossy);
            row.insert("value", raw(serde_json::json!(value).to_string()));
        }
        let row = serde_json::to_vec(&row).unwrap_or_default();
        out.line(|out| out.extend_from_slice(&row))?;
    }
    if stats.uncounted > 0 {
        let uncounted = stats.uncounted;
        trailer.miss(format_args!("{uncounted} numbers that found no room"));
    }
    Ok(trailer)
}

/// A row of an answer.
type StatsRow = BTreeMap<&'static str, Box<RawValue>>;

/// JSON as it is; null if it is none.
fn raw(json: String) -> Box<RawValue> {
    RawValue::from_string(json).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The numbers of a group of records.
#[derive(Clone, Debug, Default, PartialEq)]
struct Numbers {
    count: u64,
    /// The sum of whole numbers.
    whole: i128,
    /// The sum of the others.
    others: f64,
    /// The least and the greatest; none without a number.
    extremes: Option<(Number, Number)>,
    /// Counts of close numbers, by the order of their values.
    close: BTreeMap<u64, u64>,
}

impl Numbers {
    fn add(&mut self, number: &Number) {
        let float = finite(number);
        match whole(number) {
            Some(whole) => self.whole = self.whole.saturating_add(whole),
            None => self.others += float,
        }
        self.note(number, number);
        self.count += 1;
        *self.close.entry(place_of(float)).or_default() += 1;
    }

    fn note(&mut self, least: &Number, greatest: &Number) {
        let Some((min, max)) = &mut self.extremes else {
            self.extremes = Some((least.clone(), greatest.clone()));
            return;
        };
        if least.compare(min) == Ordering::Less {
            *min = least.clone();
        }
        if greatest.compare(max) == Ordering::Greater {
            *max = greatest.clone();
        }
    }

    fn merge(&mut self, other: Numbers) {
        let Some((min, max)) = &other.extremes else {
            return;
        };
        self.note(min, max);
        self.count += other.count;
        self.whole = self.whole.saturating_add(other.whole);
        self.others += other.others;
        for (place, count) in other.close {
            *self.close.entry(place).or_default() += count;
        }
    }

    /// The number that this share of the numbers does not exceed.
    fn percentile(&self, share: f64, (min, max): (f64, f64)) -> f64 {
        let wanted = cast::whole_u64((share * cast::float(self.count)).ceil());
        let mut passed = 0;
        for (place, count) in &self.close {
            passed += count;
            if passed >= wanted {
                return number_at(*place).clamp(min, max);
            }
        }
        max
    }

    fn to_row(&self) -> StatsRow {
        let Some((min, max)) = &self.extremes else {
            return StatsRow::new();
        };
        let mut row = StatsRow::from([
            ("count", raw(self.count.to_string())),
            ("min", json_of(min)),
            ("max", json_of(max)),
        ]);
        let sum = cast::float(self.whole) + self.others;
        let is_whole = self.others == 0.0;
        let mean = self.whole / i128::from(self.count.max(1));
        let is_whole_mean = is_whole && mean * i128::from(self.count) == self.whole;
        let sums = [
            ("sum", is_whole.then_some(self.whole), sum),
            (
                "mean",
                is_whole_mean.then_some(mean),
                sum / cast::float(self.count),
            ),
        ];
        for (name, exact, float) in sums {
            let json = exact.map(|exact| raw(exact.to_string()));
            row.insert(name, json.unwrap_or_else(|| json_of(&Number::Float(float))));
        }
        let bounds = (finite(min), finite(max));
        for (name, share) in PERCENTILES {
            let float = self.percentile(share, bounds);
            row.insert(name, json_of(&Number::Float(float)));
        }
        row
    }
}

/// The nearest finite float.
fn finite(number: &Number) -> f64 {
    number.to_float().clamp(f64::MIN, f64::MAX)
}

/// A whole number that is added up exactly.
fn whole(number: &Number) -> Option<i128> {
    match number {
        Number::Int(int) => Some(i128::from(*int)),
        Number::Float(float) if float.fract() == 0.0 && float.abs() < 2f64.powi(63) => {
            Some(cast::whole_i128(*float))
        }
        Number::Float(_) => None,
        // So many of any 64 bits find room in 128.
        Number::Decimal(text) => text.parse::<u64>().ok().map(i128::from),
    }
}

/// A number of JSON with all digits: a whole one without a fraction.
fn json_of(number: &Number) -> Box<RawValue> {
    match number {
        Number::Float(float) if float.fract() == 0.0 && float.abs() < EXACT_END => {
            raw(cast::whole_i64(*float).to_string())
        }
        Number::Float(float) => raw(serde_json::json!(float).to_string()),
        Number::Int(int) => raw(int.to_string()),
        // Written as JSON has none, it is the nearest float.
        Number::Decimal(text) => RawValue::from_string(text.to_string())
            .unwrap_or_else(|_| raw(serde_json::json!(finite(number)).to_string())),
    }
}

/// A number with all digits, in few bytes.
fn text_of(number: &Number) -> String {
    match number {
        Number::Float(float) => format!("{float:?}"),
        other => other.to_string(),
    }
}

/// A number that takes little memory.
fn bounded(number: Number) -> Number {
    match &number {
        Number::Decimal(text) if text.len() > EXACT_BYTES_MAX => Number::Float(finite(&number)),
        _ => number,
    }
}

/// The place of a number in the order of all, without the digits that are not told apart.
fn place_of(number: f64) -> u64 {
    let bits = number.to_bits();
    // Negative numbers are in the reverse order of their bits.
    let ordered = if bits >> 63 == 0 {
        bits | 1 << 63
    } else {
        !bits
    };
    ordered >> DIGITS_DROPPED
}

/// The number closest to zero of a place.
fn number_at(place: u64) -> f64 {
    let ordered = place << DIGITS_DROPPED;
    let bits = if ordered >> 63 == 1 {
        ordered & !(1 << 63)
    } else {
        !ordered
    };
    f64::from_bits(bits >> DIGITS_DROPPED << DIGITS_DROPPED)
}

/// The numbers of a field.
#[derive(Clone)]
struct Stats {
    /// The field, and the field that tells records apart.
    asked: Arc<[ColumnRequest]>,
    /// The same with all digits of the numbers, for blocks with numbers that floats do not tell apart.
    exact: Arc<[ColumnRequest]>,
    /// For a node that takes extremes as floats.
    is_of_first_version: bool,
    groups: BTreeMap<Option<Box<[u8]>>, Numbers>,
    bytes: usize,
    uncounted: u64,
}

impl Stats {
    fn new(field: &str, by: Option<&str>) -> Result<Stats, &'static str> {
        let asked = |name: &str, kind| match Target::new(name) {
            Target::Time | Target::Received => Err("times are no numbers and no groups"),
            _ => Ok(ColumnRequest {
                name: name.into(),
                kind,
            }),
        };
        let by = by.map(|by| asked(by, ColumnKind::Text)).transpose()?;
        let columns = |kind| -> Result<Arc<[ColumnRequest]>, &'static str> {
            let numbers = asked(field, kind)?;
            Ok(std::iter::once(numbers).chain(by.clone()).collect())
        };
        Ok(Stats {
            asked: columns(ColumnKind::Number)?,
            exact: columns(ColumnKind::Text)?,
            is_of_first_version: false,
            groups: BTreeMap::new(),
            bytes: 0,
            uncounted: 0,
        })
    }

    fn add_columns(&mut self, columns: &Columns) {
        let (numbers, by) = (columns.columns.first(), columns.columns.get(1));
        for row in 0..columns.rows {
            let number = match numbers {
                Some(Column::Floats(floats)) => floats.get(row).map(Number::Float),
                Some(Column::Strings(texts)) => texts.get(row).and_then(Number::parse),
                // No row has a number.
                _ => return,
            };
            let value = match by {
                Some(Column::Strings(values)) => values.get(row),
                _ => None,
            };
            if let Some(number) = number {
                self.add_number(value, &bounded(number));
            }
        }
    }

    fn add_number(&mut self, value: Option<&[u8]>, number: &Number) {
        if let Some(numbers) = self.room_for(value, 1) {
            let before = numbers.close.len();
            numbers.add(number);
            let grown = numbers.close.len() - before;
            self.bytes += grown * COUNT_BYTES;
        } else {
            self.uncounted += 1;
        }
    }

    /// The group of a value, if there is room for so many further counts.
    fn room_for(&mut self, value: Option<&[u8]>, counts: usize) -> Option<&mut Numbers> {
        let value: Option<Box<[u8]>> = value.map(Into::into);
        let known = self.groups.contains_key(&value);
        let group = value.as_deref().map_or(0, <[u8]>::len) + GROUP_BYTES;
        let bytes = if known { 0 } else { group };
        if self.bytes + bytes + counts * COUNT_BYTES > BYTES_MAX {
            return None;
        }
        self.bytes += bytes;
        Some(self.groups.entry(value).or_default())
    }

    fn merge_group(&mut self, value: Option<&[u8]>, other: Numbers) {
        let count = other.count;
        if let Some(numbers) = self.room_for(value, other.close.len()) {
            let before = numbers.close.len();
            numbers.merge(other);
            let grown = numbers.close.len() - before;
            self.bytes += grown * COUNT_BYTES;
        } else {
            self.uncounted += count;
        }
    }
}

/// True if floats may not be the numbers that they were made of.
fn has_large_floats(columns: &Columns) -> bool {
    let Some(Column::Floats(floats)) = columns.columns.first() else {
        return false;
    };
    (0..columns.rows).any(|row| {
        floats
            .get(row)
            .is_some_and(|float| float.abs() >= EXACT_END)
    })
}

/// Reads one for a node that takes extremes as floats.
pub(super) fn read_first(from: &mut Decoder<'_>) -> Result<Box<dyn AnyTable>, DecodeError> {
    let mut stats = empty(from)?;
    stats.is_of_first_version = true;
    Ok(Box::new(stats))
}

/// Reads one. Earlier nodes do not know it.
pub(super) fn read(from: &mut Decoder<'_>) -> Result<Box<dyn AnyTable>, DecodeError> {
    Ok(Box::new(empty(from)?))
}

fn empty(from: &mut Decoder<'_>) -> Result<Stats, DecodeError> {
    let field = read_field(from)?;
    let has_groups = from.flag("whether there are groups")?;
    let by = from.text(FIELD_BYTES_MAX, "a field")?;
    let empty = Stats::new(&field, has_groups.then_some(by));
    empty.map_err(DecodeError::Malformed)
}

impl Table for Stats {
    fn add(&mut self, record: &Record<'_>) {
        let mut builder = ColumnsBuilder::new(Arc::clone(&self.asked));
        builder.add(record);
        self.add_columns(&builder.take());
    }

    fn add_block(
        &mut self,
        scan: &mut GroupScan<'_>,
        selected: &SelectedRows,
    ) -> Result<(), ReadError> {
        let mut columns = scan.columns(&self.asked, selected)?;
        if has_large_floats(&columns) {
            columns = scan.columns(&self.exact, selected)?;
        }
        self.add_columns(&columns);
        Ok(())
    }

    fn merge(&mut self, other: Stats) {
        self.uncounted += other.uncounted;
        for (value, numbers) in other.groups {
            self.merge_group(value.as_deref(), numbers);
        }
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn looks_at_fields(&self) -> bool {
        let mut columns = self.asked.iter();
        columns.any(|column| Target::new(&column.name).is_of_fields())
    }

    fn ask(&self, out: &mut Encoder) {
        out.number(if self.is_of_first_version { 10 } else { 13 });
        out.bytes(self.asked[0].name.as_bytes());
        let by = self.asked.get(1);
        out.flag(by.is_some());
        out.bytes(by.map_or(&b""[..], |by| by.name.as_bytes()));
    }

    fn encode(&self, out: &mut Encoder) {
        out.number(self.uncounted);
        out.count(self.groups.len());
        for (value, numbers) in &self.groups {
            out.flag(value.is_some());
            out.bytes(value.as_deref().unwrap_or_default());
            out.number(numbers.count);
            out.wide(numbers.whole.cast_unsigned());
            out.number(numbers.others.to_bits().swap_bytes());
            for extreme in numbers.extremes.iter().flat_map(|(min, max)| [min, max]) {
                if self.is_of_first_version {
                    out.number(finite(extreme).to_bits().swap_bytes());
                } else {
                    out.bytes(text_of(extreme).as_bytes());
                }
            }
            out.count(numbers.close.len());
            for (place, count) in &numbers.close {
                out.number(*place);
                out.number(*count);
            }
        }
    }

    fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        self.uncounted += from.number("numbers without room")?;
        for _ in 0..from.count(20, "the groups")? {
            let has_value = from.flag("a group")?;
            let value = from.bytes(VALUE_BYTES_MAX, "a group")?;
            let mut numbers = Numbers {
                count: from.number("a count")?,
                whole: from.wide("a sum")?.cast_signed(),
                ..Numbers::default()
            };
            numbers.others = f64::from_bits(from.number("a number")?.swap_bytes());
            let mut extreme = || {
                let text = from.bytes(EXACT_BYTES_MAX, "a number")?;
                Number::parse(text).ok_or(DecodeError::Malformed("a number"))
            };
            numbers.extremes = Some((extreme()?, extreme()?));
            for _ in 0..from.count(2, "the counts")? {
                let place = from.number("a place")?;
                *numbers.close.entry(place).or_default() += from.number("a count")?;
            }
            self.merge_group(has_value.then_some(value), numbers);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stats(values: &[(Option<&str>, f64)]) -> Stats {
        let mut stats = Stats::new("duration", Some("app")).unwrap();
        for (value, number) in values {
            stats.add_number(value.map(str::as_bytes), &Number::Float(*number));
        }
        stats
    }

    #[test]
    fn places_are_in_the_order_of_numbers() {
        let all = [
            -1e300, -2.5, -1.0, -1e-300, 0.0, 1e-300, 0.1, 1.0, 255.0, 1e9,
        ];
        for pair in all.windows(2) {
            assert!(place_of(pair[0]) < place_of(pair[1]), "{pair:?}");
        }
        for number in all {
            let error = (number_at(place_of(number)) - number).abs();
            assert!(error <= number.abs() / 128.0, "{number}");
        }
        for whole in 0..256 {
            assert_eq!(number_at(place_of(f64::from(whole))), f64::from(whole));
        }
    }

    #[test]
    fn numbers_are_summarised() {
        let mut numbers = Numbers::default();
        (1..=100).for_each(|number| numbers.add(&Number::Float(f64::from(number))));
        let expected = json!({
            "count": 100, "min": 1, "max": 100, "sum": 5050, "mean": 50.5,
            "p50": 50, "p90": 90, "p95": 95, "p99": 99,
        });
        assert_eq!(serde_json::to_value(numbers.to_row()).unwrap(), expected);
    }

    /// The row of these numbers, as they are written.
    fn row_of(texts: &[&str]) -> BTreeMap<&'static str, String> {
        let mut numbers = Numbers::default();
        for text in texts {
            numbers.add(&bounded(Number::parse(text.as_bytes()).unwrap()));
        }
        let row = numbers.to_row().into_iter();
        row.map(|(name, value)| (name, value.get().to_owned()))
            .collect()
    }

    #[test]
    fn extremes_and_whole_sums_have_all_digits() {
        let row = row_of(&["9007199254740993", "9007199254740997", "9007199254740995"]);
        let shown = ["min", "max", "sum", "mean"].map(|name| &*row[name]);
        let expected = [
            "9007199254740993",
            "9007199254740997",
            "27021597764222985",
            "9007199254740995",
        ];
        assert_eq!(shown, expected);
        let row = row_of(&["18446744073709551615", "5", "18446744073709551616"]);
        let shown = ["count", "min", "max"].map(|name| &*row[name]);
        assert_eq!(shown, ["3", "5", "18446744073709551616"]);
        let row = row_of(&["1e400", "-0.1234567890123456789"]);
        assert_eq!(
            [&*row["min"], &*row["max"]],
            ["-0.1234567890123456789", "1e400"]
        );
        // Such as no JSON has.
        assert_eq!(row_of(&["+5"])["max"], "5");
        let long = format!("1{}", "0".repeat(200));
        assert_eq!(row_of(&[&long])["max"], "1e+200");
    }

    #[test]
    fn parts_merge_in_any_order_and_through_messages() {
        let all = [
            (Some("a"), 1.0),
            (None, 7.0),
            (Some("b"), -0.5),
            (Some("a"), 3.25),
            (Some("a"), 1e12),
        ];
        let whole = stats(&all);
        for cut in 0..all.len() {
            let (mut left, right) = (stats(&all[cut..]), stats(&all[..cut]));
            left.merge(right.clone());
            assert_eq!(left.groups, whole.groups, "{cut}");
            let mut message = Encoder::default();
            right.encode(&mut message);
            let bytes = message.finish();
            let mut left = stats(&all[cut..]);
            let mut from = Decoder::bare(&bytes);
            left.merge_encoded(&mut from).unwrap();
            from.finish().unwrap();
            assert_eq!(
                (left.groups, left.bytes),
                (whole.groups.clone(), whole.bytes)
            );
        }
    }

    #[test]
    fn numbers_beyond_the_room_are_counted() {
        let mut stats = stats(&[]);
        stats.bytes = BYTES_MAX - GROUP_BYTES - COUNT_BYTES - 1;
        stats.add_number(Some(b"a"), &Number::Int(1));
        stats.add_number(Some(b"b"), &Number::Int(1));
        assert_eq!((stats.groups.len(), stats.uncounted), (1, 1));
    }
}

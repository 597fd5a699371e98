//! Values of which a percentile is wanted.

use std::cmp::Ordering;
use std::fmt::Debug;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, ListArray, PrimitiveArray,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{ArrowNativeType, DataType, Field, Float64Type, Int64Type};
use datafusion::common::{ScalarValue, exec_err};
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;
use logpond_record::cast;

use super::Place;
use crate::moving::FrameAccumulator;

/// By what part of itself a product of a percentile and a number may be off.
const PRODUCT_ERROR: f64 = 4.0 * f64::EPSILON;

/// Distinct values that are looked for only once there are more: fewer take next to nothing.
const DISTINCT_MIN: usize = 1024;

/// A number that values are kept as.
pub(super) trait Value: ArrowNativeType {
    type Arrow: ArrowPrimitiveType<Native = Self>;

    fn order(&self, other: &Self) -> Ordering;

    /// What is so far from one to another.
    fn between(self, other: Self, part: f64) -> Self;
}

impl Value for f64 {
    type Arrow = Float64Type;

    fn order(&self, other: &f64) -> Ordering {
        self.total_cmp(other)
    }

    fn between(self, other: f64, part: f64) -> f64 {
        self + (other - self) * part
    }
}

impl Value for i64 {
    type Arrow = Int64Type;

    fn order(&self, other: &i64) -> Ordering {
        self.cmp(other)
    }

    fn between(self, other: i64, part: f64) -> i64 {
        let (from, to) = (i128::from(self), i128::from(other));
        let step = cast::whole_i128(cast::float(to - from) * part);
        i64::try_from(from + step).unwrap_or(other)
    }
}

/// A number, or the whole one that it would be but for how a percentile is written in binary.
fn snapped(number: f64) -> f64 {
    let whole = number.round();
    if (number - whole).abs() <= whole * PRODUCT_ERROR {
        whole
    } else {
        number
    }
}

impl Place {
    /// The places of two values in their order, and how far from the first to the second.
    fn of(self, count: usize) -> (usize, usize, f64) {
        let last = count - 1;
        let (first, second, part) = if self.is_between {
            let rank = snapped(self.percentile * cast::float(last));
            let (first, second) = (rank.floor(), rank.ceil());
            (
                cast::whole_usize(first),
                cast::whole_usize(second),
                rank - first,
            )
        } else {
            let rank = snapped(self.percentile * cast::float(count)).ceil();
            let place = cast::whole_usize(rank).saturating_sub(1);
            (place, place, 0.0)
        };
        let (first, second) = (first.min(last), second.min(last));
        if self.is_descending {
            (last - first, last - second, part)
        } else {
            (first, second, part)
        }
    }

    /// What is there of values, which come into another order.
    pub(super) fn in_values<V: Value>(self, values: &mut [V]) -> Option<V> {
        if values.is_empty() {
            return None;
        }
        let (first, second, part) = self.of(values.len());
        let mut at = |place: usize| *values.select_nth_unstable_by(place, V::order).1;
        let value = at(first);
        if first == second {
            Some(value)
        } else {
            Some(value.between(at(second), part))
        }
    }

    /// What is there of values in their order.
    fn in_order<V: Value>(self, values: &[V]) -> Option<V> {
        if values.is_empty() {
            return None;
        }
        let (first, second, part) = self.of(values.len());
        let value = values[first];
        if first == second {
            Some(value)
        } else {
            Some(value.between(values[second], part))
        }
    }
}

/// An array as the numbers that it is kept as.
pub(super) fn numbers<V: Value>(array: &ArrayRef) -> Result<PrimitiveArray<V::Arrow>> {
    let array = cast(array, &V::Arrow::DATA_TYPE)?;
    match array.as_primitive_opt::<V::Arrow>() {
        Some(numbers) => Ok(numbers.clone()),
        None => exec_err!("percentiles of {}", array.data_type()),
    }
}

/// The numbers of a list of them.
pub(super) fn listed<V: Value>(lists: &ListArray, row: usize) -> Result<PrimitiveArray<V::Arrow>> {
    numbers::<V>(&lists.value(row))
}

/// Lists of so many numbers.
pub(super) fn lists<V: Value>(
    lengths: impl IntoIterator<Item = usize>,
    values: Vec<V>,
) -> Result<ListArray> {
    let values = PrimitiveArray::<V::Arrow>::new(values.into(), None);
    let field = Arc::new(Field::new_list_field(V::Arrow::DATA_TYPE, true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(ListArray::try_new(field, offsets, Arc::new(values), None)?)
}

/// A percentile as a value of its type.
fn scalar<V: Value>(value: Option<V>, kind: &DataType) -> Result<ScalarValue> {
    let array: PrimitiveArray<V::Arrow> = [value].into_iter().collect();
    let array = cast(&array, kind)?;
    ScalarValue::try_from_array(&array, 0)
}

/// Values in any order.
#[derive(Debug)]
pub(super) struct Values<V> {
    values: Vec<V>,
    place: Place,
    kind: DataType,
    is_distinct: bool,
    /// How many there may be until distinct ones are looked for.
    count_max: usize,
}

impl<V: Value> Values<V> {
    pub(super) fn new(place: Place, kind: DataType, is_distinct: bool) -> Values<V> {
        Values {
            values: Vec::new(),
            place,
            kind,
            is_distinct,
            count_max: DISTINCT_MIN,
        }
    }

    fn take(&mut self, numbers: &PrimitiveArray<V::Arrow>) {
        self.values.extend(numbers.iter().flatten());
        if self.is_distinct && self.values.len() > self.count_max {
            self.dedup();
            self.count_max = DISTINCT_MIN.max(2 * self.values.len());
        }
    }

    fn dedup(&mut self) {
        self.values.sort_unstable_by(V::order);
        self.values.dedup_by(|a, b| a.order(b).is_eq());
        self.values.shrink_to(2 * self.values.len());
    }
}

impl<V: Value> Accumulator for Values<V> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if let Some(array) = values.first() {
            self.take(&numbers::<V>(array)?);
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for lists in states.iter().filter_map(|state| state.as_list_opt::<i32>()) {
            for row in 0..lists.len() {
                self.take(&listed::<V>(lists, row)?);
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = std::mem::take(&mut self.values);
        let list = lists([values.len()], values)?;
        Ok(vec![ScalarValue::List(Arc::new(list))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.is_distinct {
            self.dedup();
        }
        scalar(self.place.in_values(&mut self.values), &self.kind)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<V>()
    }
}

/// Values in their order, which come and go with the frame of a window.
#[derive(Debug)]
pub(super) struct OrderedValues<V>(Values<V>);

impl<V: Value> OrderedValues<V> {
    pub(super) fn new(place: Place, kind: DataType, is_distinct: bool) -> OrderedValues<V> {
        OrderedValues(Values::new(place, kind, is_distinct))
    }

    fn place_of(&self, value: V) -> std::result::Result<usize, usize> {
        self.0.values.binary_search_by(|other| other.order(&value))
    }
}

impl<V: Value> FrameAccumulator for OrderedValues<V> {
    fn enter(&mut self, values: &ArrayRef) -> Result<()> {
        for value in numbers::<V>(values)?.iter().flatten() {
            let place = self.place_of(value).unwrap_or_else(|place| place);
            self.0.values.insert(place, value);
        }
        Ok(())
    }

    fn leave(&mut self, values: &ArrayRef) -> Result<()> {
        for value in numbers::<V>(values)?.iter().flatten() {
            let Ok(place) = self.place_of(value) else {
                return exec_err!("a value leaves a window that it is not in");
            };
            self.0.values.remove(place);
        }
        Ok(())
    }

    fn value(&self) -> Result<ScalarValue> {
        let values = &self.0.values;
        let value = if self.0.is_distinct {
            let mut distinct = values.clone();
            distinct.dedup_by(|a, b| a.order(b).is_eq());
            self.0.place.in_order(&distinct)
        } else {
            self.0.place.in_order(values)
        };
        scalar(value, &self.0.kind)
    }

    fn bytes(&self) -> usize {
        self.0.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(percentile: f64, is_between: bool, is_descending: bool) -> Place {
        Place {
            percentile,
            is_between,
            is_descending,
        }
    }

    #[test]
    fn places_are_those_of_the_standard() {
        let table = [
            (place(0.0, true, false), 4, (0, 0, 0.0)),
            (place(1.0, true, false), 4, (3, 3, 0.0)),
            (place(0.5, true, false), 4, (1, 2, 0.5)),
            (place(0.5, true, false), 5, (2, 2, 0.0)),
            (place(0.9, true, false), 11, (9, 9, 0.0)),
            (place(0.9, true, true), 11, (1, 1, 0.0)),
            (place(0.25, true, true), 4, (3, 2, 0.75)),
            (place(0.07, true, false), 101, (7, 7, 0.0)),
            (place(0.0, false, false), 4, (0, 0, 0.0)),
            (place(0.25, false, false), 4, (0, 0, 0.0)),
            (place(0.26, false, false), 4, (1, 1, 0.0)),
            (place(0.07, false, false), 100, (6, 6, 0.0)),
            (place(1.0, false, true), 4, (0, 0, 0.0)),
            (place(1.0, true, false), 1, (0, 0, 0.0)),
        ];
        for (place, count, expected) in table {
            assert_eq!(place.of(count), expected, "{place:?} of {count}");
        }
    }

    #[test]
    fn what_is_between_has_no_steps() {
        let mut values = [3.0, 1.0, 2.0, 1e15];
        let third = place(1.0 / 3.0 + 1e-7, true, false);
        let found = third.in_values(&mut values).unwrap();
        assert!((found - 2.000_000_3).abs() < 1e-9, "{found}");
        assert_eq!(i64::MIN.between(i64::MAX, 0.5), 0);
        assert_eq!(10.between(0, 0.3), 7);
    }
}

//! Percentiles of groups.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, PrimitiveArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};

use super::Place;
use super::values::{Value, listed, lists, numbers};

/// The values of each group.
#[derive(Debug)]
pub(super) struct Groups<V> {
    groups: Vec<Vec<V>>,
    place: Place,
    kind: DataType,
    /// What the values of all groups take.
    bytes: usize,
}

impl<V: Value> Groups<V> {
    pub(super) fn new(place: Place, kind: DataType) -> Groups<V> {
        Groups {
            groups: Vec::new(),
            place,
            kind,
            bytes: 0,
        }
    }

    fn grow(&mut self, count: usize) {
        if self.groups.len() < count {
            self.groups.resize_with(count, Vec::new);
        }
    }

    fn push(&mut self, group: usize, values: impl Iterator<Item = V>) {
        let group = &mut self.groups[group];
        let before = group.capacity();
        group.extend(values);
        self.bytes += (group.capacity() - before) * size_of::<V>();
    }

    fn emitted(&mut self, emit: EmitTo) -> Vec<Vec<V>> {
        let groups = emit.take_needed(&mut self.groups);
        let taken: usize = groups.iter().map(Vec::capacity).sum();
        self.bytes -= taken * size_of::<V>();
        groups
    }
}

fn is_wanted(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

impl<V: Value> GroupsAccumulator for Groups<V> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.grow(count);
        let Some(values) = values.first() else {
            return exec_err!("a percentile is one of values");
        };
        let numbers = numbers::<V>(values)?;
        for (row, (group, number)) in groups.iter().zip(numbers.iter()).enumerate() {
            if number.is_some() && is_wanted(filter, row) {
                self.push(*group, number.into_iter());
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.grow(count);
        let Some(lists) = values.first().and_then(|lists| lists.as_list_opt::<i32>()) else {
            return exec_err!("a percentile is one of values");
        };
        for (row, group) in groups.iter().enumerate() {
            if lists.is_valid(row) {
                let numbers = listed::<V>(lists, row)?;
                self.push(*group, numbers.iter().flatten());
            }
        }
        Ok(())
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let groups = self.emitted(emit);
        let lengths: Vec<usize> = groups.iter().map(Vec::len).collect();
        // Each group goes as it is copied.
        let mut values = Vec::with_capacity(lengths.iter().sum());
        for group in groups {
            values.extend(group);
        }
        Ok(vec![Arc::new(lists(lengths, values)?)])
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let mut groups = self.emitted(emit);
        let percentiles = groups.iter_mut().map(|group| self.place.in_values(group));
        let percentiles: PrimitiveArray<V::Arrow> = percentiles.collect();
        Ok(cast(&percentiles, &self.kind)?)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let Some(values) = values.first() else {
            return exec_err!("a percentile is one of values");
        };
        let numbers = numbers::<V>(values)?;
        let of_rows = numbers.iter().enumerate();
        let of_rows: Vec<Option<V>> = of_rows
            .map(|(row, number)| number.filter(|_| is_wanted(filter, row)))
            .collect();
        let lengths: Vec<usize> = of_rows
            .iter()
            .map(|one| usize::from(one.is_some()))
            .collect();
        let values = of_rows.into_iter().flatten().collect();
        Ok(vec![Arc::new(lists::<V>(lengths, values)?)])
    }

    fn size(&self) -> usize {
        self.bytes + self.groups.capacity() * size_of::<Vec<V>>()
    }
}

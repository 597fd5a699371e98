//! Operators that make many rows of one, or keep all rows, and what they may be given.
//!
//! Texts are views, which copies of a row share. A list is copied with each row: one with the messages of a day beside
//! each record of the day, by a join or `unnest`, would end the process, and no operator asks the pool for it. Windows
//! over all of a partition keep their input without asking, too.
//!
//! Invariants:
//! - A list that is copied with its row has no more bytes than a row's part of what the results of functions may be
//!   for a batch.
//! - Elements of one list are put beside no more than that for a batch.
//! - What a window keeps is memory of the statement.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec,
};
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::windows::WindowAggExec;
use logpond_record::cast;

use crate::bounded::RESULT_BYTES_MAX;
use crate::engine::BATCH_ROWS;

/// The most bytes of a list that is copied with its row.
pub(crate) const LIST_BYTES_MAX: u64 = RESULT_BYTES_MAX / BATCH_ROWS as u64;

/// Bytes of a text in a list, whose letters are shared.
const VIEW_BYTES: u64 = 16;

/// How often a window has what it keeps: as it came, and in one piece.
const KEPT_TIMES: usize = 2;

/// What an operator makes of the rows of an input.
#[derive(Clone, Debug)]
pub(crate) enum Copies {
    /// Nothing that it does not account for.
    Few,
    /// Many rows of each.
    Joined,
    /// A row of each element of the lists in these columns.
    Unnested(Arc<[usize]>),
    /// It keeps all of them.
    Kept,
}

impl Copies {
    pub(crate) fn of(operator: &Arc<dyn ExecutionPlan>) -> Copies {
        let is_join = operator.is::<HashJoinExec>()
            || operator.is::<NestedLoopJoinExec>()
            || operator.is::<CrossJoinExec>()
            || operator.is::<SortMergeJoinExec>();
        if is_join {
            return Copies::Joined;
        }
        if let Some(unnest) = operator.downcast_ref::<UnnestExec>() {
            let lists = unnest.list_column_indices().iter();
            return Copies::Unnested(lists.map(|list| list.index_in_input_schema).collect());
        }
        if operator.is::<WindowAggExec>() {
            Copies::Kept
        } else {
            Copies::Few
        }
    }

    /// Bytes that the operator keeps of a batch.
    pub(crate) fn kept(&self, batch: &RecordBatch) -> usize {
        match self {
            Copies::Kept => {
                let bytes = batch.columns().iter().map(held_bytes).sum::<usize>();
                bytes.saturating_mul(KEPT_TIMES)
            }
            _ => 0,
        }
    }

    /// Refuses rows that would take too much when they are copied.
    pub(crate) fn check(&self, batch: &RecordBatch) -> Result<()> {
        match self {
            Copies::Few | Copies::Kept => Ok(()),
            Copies::Joined => check_joined(batch),
            Copies::Unnested(lists) => check_unnested(batch, lists),
        }
    }
}

fn check_joined(batch: &RecordBatch) -> Result<()> {
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        if !field.data_type().is_nested() {
            continue;
        }
        let largest = (0..column.len()).map(|row| row_bytes(column, row)).max();
        if largest.unwrap_or_default() > LIST_BYTES_MAX {
            return exec_err!(
                "a list of more than {} KiB, in column {}, would stand beside each row of a join: join first, and \
                 make lists of the result, or take IN (SELECT …) for a list that is looked into",
                LIST_BYTES_MAX >> 10,
                field.name()
            );
        }
    }
    Ok(())
}

fn check_unnested(batch: &RecordBatch, lists: &[usize]) -> Result<()> {
    let columns = || batch.columns().iter().enumerate();
    for row in 0..batch.num_rows() {
        let unnested = columns().filter(|(at, _)| lists.contains(at));
        let elements = unnested.map(|(_, list)| elements(list, row)).max();
        let others = columns().filter(|(at, column)| {
            let kind = column.data_type();
            !lists.contains(at) || kind.is_nested() && lists.iter().filter(|l| *l == at).count() > 1
        });
        let beside: u64 = others.map(|(_, column)| row_bytes(column, row)).sum();
        let bytes = beside.saturating_mul(elements.unwrap_or_default());
        if bytes > RESULT_BYTES_MAX {
            return exec_err!(
                "what stands beside the elements of a list that unnest takes apart has more than {} MiB for one row: \
                 select less beside it",
                RESULT_BYTES_MAX >> 20
            );
        }
    }
    Ok(())
}

fn elements(list: &ArrayRef, row: usize) -> u64 {
    if list.is_null(row) {
        return 0;
    }
    match list.data_type() {
        DataType::List(_) => cast::low_u64(list.as_list::<i32>().value_length(row)),
        DataType::LargeList(_) => cast::unsigned(list.as_list::<i64>().value_length(row)),
        DataType::FixedSizeList(_, count) => u64::try_from(*count).unwrap_or_default(),
        _ => 1,
    }
}

/// Bytes of an array without those that its rows do not need: others may share its texts.
pub(crate) fn held_bytes(array: &ArrayRef) -> usize {
    match array.as_string_view_opt() {
        Some(texts) => {
            let lengths = texts.lengths().map(|length| length as usize);
            lengths.sum::<usize>() + array.len() * cast::to_usize(VIEW_BYTES)
        }
        None => array.to_data().get_slice_memory_size().unwrap_or_default(),
    }
}

/// Bytes that are copied with a row.
pub(crate) fn row_bytes(column: &ArrayRef, row: usize) -> u64 {
    if column.is_null(row) {
        return 0;
    }
    match column.data_type() {
        DataType::List(_) => elements(column, row) * mean_bytes(column.as_list::<i32>().values()),
        DataType::LargeList(_) => {
            elements(column, row) * mean_bytes(column.as_list::<i64>().values())
        }
        _ => mean_bytes(column),
    }
}

/// Bytes that are copied with an element.
fn mean_bytes(array: &ArrayRef) -> u64 {
    if let Some(width) = array.data_type().primitive_width() {
        return width as u64;
    }
    match array.data_type() {
        DataType::Utf8View | DataType::BinaryView => VIEW_BYTES,
        DataType::Boolean | DataType::Null => 1,
        _ => {
            let bytes = array.to_data().get_slice_memory_size().unwrap_or_default();
            (bytes as u64).div_ceil(array.len().max(1) as u64)
        }
    }
}

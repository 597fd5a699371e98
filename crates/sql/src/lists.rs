//! Lists and texts that are made of the values of many rows.
//!
//! The engine tells the pool of what it holds, and takes several times as much when it makes lists of groups of that:
//! a place for each value, and the lists themselves, whose texts keep all batches alive that they are from. In windows
//! it tells nothing at all, and has such a list for each row.
//!
//! Invariants:
//! - Values of groups are told as what their lists take until they are handed over, and hold their own texts only.
//! - The lists and texts of all rows of windows of a statement, but for frames whose beginning moves, have no more
//!   bytes than results of functions may have; one of any frame has no more than a row's part of it.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, ListArray};
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue, exec_err, resources_err};
use datafusion::error::Result;
use datafusion::functions_aggregate::array_agg::ArrayAgg;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, Expr, GroupsAccumulator, ReversedUDAF,
    Signature, WindowFunctionDefinition,
};

use crate::bounded::RESULT_BYTES_MAX;
use crate::copies::{LIST_BYTES_MAX, held_bytes, row_bytes};
use crate::engine::BATCH_ROWS;

/// How often values are there when lists are made of them: as they came, with their places, and in the lists.
const TIMES: usize = 3;

/// `array_agg`, whose groups tell what they take.
#[derive(Debug)]
pub(crate) struct Lists {
    inner: ArrayAgg,
    emitted: EmitBudget,
}

impl Lists {
    /// The function for one statement, with so much memory for all of them.
    pub(crate) fn new(memory_bytes: usize) -> Lists {
        Lists {
            inner: ArrayAgg::default(),
            emitted: EmitBudget {
                bytes: Arc::default(),
                bytes_max: (memory_bytes / TIMES) as u64,
            },
        }
    }
}

impl PartialEq for Lists {
    fn eq(&self, other: &Lists) -> bool {
        self.inner == other.inner
    }
}

impl Eq for Lists {}

impl Hash for Lists {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

/// What parts of groups hand over to those that put them together. Few large lists are put into one batch with those
/// that come later, which nobody accounts for until it has as many rows as a batch.
#[derive(Clone, Debug)]
struct EmitBudget {
    bytes: Arc<AtomicU64>,
    bytes_max: u64,
}

impl EmitBudget {
    fn add(&self, lists: &ArrayRef) -> Result<()> {
        if lists.len() >= BATCH_ROWS {
            return Ok(());
        }
        let bytes = (0..lists.len())
            .map(|row| row_bytes(lists, row))
            .sum::<u64>();
        let all = self
            .bytes
            .fetch_add(bytes, Ordering::Relaxed)
            .saturating_add(bytes);
        if all > self.bytes_max {
            resources_err!(
                "the lists of groups have more than {} KiB",
                self.bytes_max >> 10
            )
        } else {
            Ok(())
        }
    }
}

impl AggregateUDFImpl for Lists {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        is_ordered: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        // Ordered lists have no groups of this kind.
        Arc::new(ArrayAgg::default()).with_beneficial_ordering(is_ordered)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let inner = self.inner.accumulator(args)?;
        Ok(Box::new(OneList { inner, bytes: 0 }))
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        self.inner.create_sliding_accumulator(args)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.inner.reverse_expr()
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let inner = self.inner.create_groups_accumulator(args)?;
        Ok(Box::new(Groups {
            inner,
            texts: 0,
            emitted: self.emitted.clone(),
        }))
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.inner.supports_null_handling_clause()
    }
}

/// The lists of groups.
struct Groups {
    inner: Box<dyn GroupsAccumulator>,
    /// Bytes of texts in them.
    texts: usize,
    emitted: EmitBudget,
}

/// Values with no texts but their own, and the bytes of these.
fn own(values: &ArrayRef) -> (ArrayRef, usize) {
    let Some(texts) = values.as_string_view_opt() else {
        return (Arc::clone(values), 0);
    };
    let texts = texts.gc();
    let bytes = texts.data_buffers().iter().map(Buffer::len).sum();
    (Arc::new(texts), bytes)
}

fn own_in(lists: &ArrayRef) -> Result<(ArrayRef, usize)> {
    let Some(lists) = lists.as_list_opt::<i32>() else {
        return exec_err!("lists are {}", lists.data_type());
    };
    let (DataType::List(field), offsets) = (lists.data_type(), lists.offsets()) else {
        return exec_err!("lists are {}", lists.data_type());
    };
    let (values, bytes) = own(lists.values());
    let nulls = lists.nulls().cloned();
    let lists = ListArray::try_new(Arc::clone(field), offsets.clone(), values, nulls)?;
    Ok((Arc::new(lists), bytes))
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        let values = values.iter().map(|values| {
            let (values, bytes) = own(values);
            self.texts += bytes;
            values
        });
        let values: Vec<ArrayRef> = values.collect();
        self.inner.update_batch(&values, groups, filter, count)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let (lists, bytes) = own_in(&self.inner.evaluate(emit)?)?;
        self.texts = match emit {
            EmitTo::All => 0,
            EmitTo::First(_) => self.texts.saturating_sub(bytes),
        };
        Ok(lists)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let lists = self.evaluate(emit)?;
        self.emitted.add(&lists)?;
        Ok(vec![lists])
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        let mut own_values = Vec::with_capacity(values.len());
        for lists in values {
            let (lists, bytes) = own_in(lists)?;
            self.texts += bytes;
            own_values.push(lists);
        }
        self.inner.merge_batch(&own_values, groups, count)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(values, filter)
    }

    fn size(&self) -> usize {
        (self.inner.size() + self.texts).saturating_mul(TIMES)
    }
}

/// The list of all rows. It tells what it takes when it is handed over, too.
#[derive(Debug)]
struct OneList {
    inner: Box<dyn Accumulator>,
    /// Bytes of the values in it.
    bytes: usize,
}

impl OneList {
    fn add(&mut self, values: &ArrayRef) -> ArrayRef {
        let (values, _) = own(values);
        self.bytes += held_bytes(&values);
        values
    }
}

impl Accumulator for OneList {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values: Vec<ArrayRef> = values.iter().map(|values| self.add(values)).collect();
        self.inner.update_batch(&values)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for lists in states {
            let lists = lists.as_list_opt::<i32>();
            self.bytes += lists.map_or(0, |lists| held_bytes(lists.values()));
        }
        self.inner.merge_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.inner.evaluate()
    }

    fn size(&self) -> usize {
        self.bytes.max(self.inner.size()).saturating_mul(TIMES)
    }
}

/// Counts the lists and texts of the windows of one statement.
#[derive(Debug, Default)]
pub(crate) struct WindowLists(Arc<AtomicU64>);

impl FunctionRewrite for WindowLists {
    fn name(&self) -> &'static str {
        "window_lists"
    }

    fn rewrite(&self, expr: Expr, _: &DFSchema, _: &ConfigOptions) -> Result<Transformed<Expr>> {
        let Expr::WindowFunction(mut window) = expr else {
            return Ok(Transformed::no(expr));
        };
        let WindowFunctionDefinition::AggregateUDF(function) = &window.fun else {
            return Ok(Transformed::no(Expr::WindowFunction(window)));
        };
        let is_list = matches!(function.name(), "array_agg" | "string_agg");
        if !is_list || function.inner().is::<InWindow>() {
            return Ok(Transformed::no(Expr::WindowFunction(window)));
        }
        let counted = AggregateUDF::from(InWindow {
            inner: Arc::clone(function),
            bytes: Arc::clone(&self.0),
        });
        window.fun = WindowFunctionDefinition::AggregateUDF(Arc::new(counted));
        Ok(Transformed::yes(Expr::WindowFunction(window)))
    }
}

/// Such a function in a window.
#[derive(Debug)]
struct InWindow {
    inner: Arc<AggregateUDF>,
    bytes: Arc<AtomicU64>,
}

impl PartialEq for InWindow {
    fn eq(&self, other: &InWindow) -> bool {
        self.inner == other.inner
    }
}

impl Eq for InWindow {}

impl Hash for InWindow {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl AggregateUDFImpl for InWindow {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(CountingAccumulator {
            inner: self.inner.accumulator(args)?,
            bytes: Some(Arc::clone(&self.bytes)),
            rows: 0,
        }))
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(CountingAccumulator {
            inner: self.inner.create_sliding_accumulator(args)?,
            bytes: None,
            rows: 0,
        }))
    }
}

/// Counts what it gives.
#[derive(Debug)]
struct CountingAccumulator {
    inner: Box<dyn Accumulator>,
    /// What all give, unless the beginning of the frame moves.
    bytes: Option<Arc<AtomicU64>>,
    /// Rows since it was last asked: as many may be given the same.
    rows: u64,
}

impl Accumulator for CountingAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.rows += values.first().map_or(0, |values| values.len() as u64);
        self.inner.update_batch(values)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let value = self.inner.evaluate()?;
        let size = match &value {
            ScalarValue::List(_) => row_bytes(&value.to_array()?, 0),
            text => text.size() as u64,
        };
        let all = size.saturating_mul(self.rows.max(1));
        self.rows = 0;
        let (told, max) = match &self.bytes {
            Some(bytes) => (
                bytes.fetch_add(all, Ordering::Relaxed).saturating_add(all),
                RESULT_BYTES_MAX,
            ),
            None => (size, LIST_BYTES_MAX),
        };
        if told > max {
            return exec_err!(
                "the lists or texts that windows make for each row have more than {} KiB: GROUP BY makes one for each \
                 group",
                max >> 10
            );
        }
        Ok(value)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
}

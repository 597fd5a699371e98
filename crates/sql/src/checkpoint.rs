//! Where a statement ends that nobody waits for any more.
//!
//! A task ends only where it yields. The operators of a plan call each other, and what is above a join may
//! take its rows for hours without ever having to wait: the loop yields nowhere, and whoever aborts the
//! task, or sets a timer on the same threads, waits in vain. So between any two operators there is a
//! [`Checkpoint`], and in the condition of each join, which may reject all rows in a loop of its own, a
//! [`StoppableCondition`].
//!
//! Invariant: what runs between two checkpoints works on as much as two batches have, for one row of the
//! other side of a join at a time.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::resources_err;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::lit;
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{
    ChildrenPropertiesMode, ReplaceChildrenOptions, SchedulingType,
};
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    HashJoinExec, HashJoinExecBuilder, NestedLoopJoinExec, NestedLoopJoinExecBuilder,
};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures_util::{Stream, StreamExt};

use crate::copies::Copies;
use crate::error::{Blame, SqlError};

/// The flag that ends a statement.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// The statement ends at its next checkpoints.
    pub(crate) fn begin(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) {
            Err(DataFusionError::External(Box::new(SqlError::new(
                Blame::Cancelled,
                "the statement was cancelled",
            ))))
        } else {
            Ok(())
        }
    }
}

/// The plan with checkpoints between its operators.
pub(crate) fn with_checkpoints(
    plan: Arc<dyn ExecutionPlan>,
    ending: &StopFlag,
) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|operator| {
        if operator.children().is_empty() {
            return Ok(Transformed::no(operator));
        }
        let operator = with_checked_filter(operator, ending)?;
        let is_held = operator.is::<NestedLoopJoinExec>();
        let copies = Copies::of(&operator);
        let inputs = operator.children().into_iter().enumerate();
        let inputs = inputs.map(|(at, input)| {
            let is_once = is_held && at == 0;
            Checkpoint::on(Arc::clone(input), ending, is_once, copies.clone())
        });
        let inputs = inputs.collect();
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        Ok(Transformed::yes(
            operator.replace_children(inputs, options)?,
        ))
    })
    .data()
}

/// A join whose condition is a checkpoint.
fn with_checked_filter(
    operator: Arc<dyn ExecutionPlan>,
    ending: &StopFlag,
) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(join) = operator.downcast_ref::<HashJoinExec>()
        && let Some(filter) = join.filter()
    {
        let filter = Some(StoppableCondition::filter(filter, ending));
        return HashJoinExecBuilder::from(join)
            .with_filter(filter)
            .build_exec();
    }
    if let Some(join) = operator.downcast_ref::<NestedLoopJoinExec>() {
        let always = || JoinFilter::new(lit(true), Vec::new(), Arc::new(Schema::empty()));
        let filter = join.filter().cloned().unwrap_or_else(always);
        let filter = Some(StoppableCondition::filter(&filter, ending));
        let join = NestedLoopJoinExecBuilder::from(join).with_filter(filter);
        return Ok(Arc::new(join.build()?));
    }
    Ok(operator)
}

/// Hands over what its input gives, unless the statement is to end.
#[derive(Debug)]
struct Checkpoint {
    input: Arc<dyn ExecutionPlan>,
    ending: StopFlag,
    properties: Arc<PlanProperties>,
    /// Whether it may be begun once only: a join that compares all rows with each other begins its input anew
    /// where that does not fit into memory, which operators below do not expect, and then has some rows of
    /// outer joins several times.
    is_once: bool,
    is_begun: AtomicBool,
    /// What becomes of the rows.
    copies: Copies,
}

impl Checkpoint {
    fn on(
        input: Arc<dyn ExecutionPlan>,
        ending: &StopFlag,
        is_once: bool,
        copies: Copies,
    ) -> Arc<dyn ExecutionPlan> {
        let properties = PlanProperties::clone(input.properties())
            .with_scheduling_type(SchedulingType::Cooperative);
        Arc::new(Checkpoint {
            input,
            ending: ending.clone(),
            properties: Arc::new(properties),
            is_once,
            is_begun: AtomicBool::new(false),
            copies,
        })
    }
}

impl DisplayAs for Checkpoint {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Checkpoint")
    }
}

impl ExecutionPlan for Checkpoint {
    fn name(&self) -> &'static str {
        "Checkpoint"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.pop().unwrap_or_else(|| Arc::clone(&self.input));
        let copies = self.copies.clone();
        Ok(Checkpoint::on(input, &self.ending, self.is_once, copies))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if self.is_once && self.is_begun.swap(true, Ordering::Relaxed) {
            return resources_err!(
                "one side of a join that compares all rows does not fit into it"
            );
        }
        let kept = MemoryConsumer::new("Window").register(context.memory_pool());
        let input = self.input.execute(partition, context)?;
        Ok(Box::pin(CheckedStream {
            input: make_cooperative(input),
            ending: self.ending.clone(),
            copies: self.copies.clone(),
            kept,
        }))
    }
}

struct CheckedStream {
    input: SendableRecordBatchStream,
    ending: StopFlag,
    copies: Copies,
    /// What the operator above keeps, until it lets go of this stream.
    kept: MemoryReservation,
}

impl CheckedStream {
    fn checked(&self, batch: RecordBatch) -> Result<RecordBatch> {
        self.copies.check(&batch)?;
        self.kept.try_grow(self.copies.kept(&batch))?;
        Ok(batch)
    }
}

impl Stream for CheckedStream {
    type Item = Result<RecordBatch>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<RecordBatch>>> {
        match self.ending.check() {
            Ok(()) => {
                let polled = self.input.poll_next_unpin(context);
                polled.map(|next| next.map(|batch| self.checked(batch?)))
            }
            Err(error) => Poll::Ready(Some(Err(error))),
        }
    }
}

impl RecordBatchStream for CheckedStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}

/// A condition that fails once the statement is to end.
#[derive(Debug)]
struct StoppableCondition {
    inner: Arc<dyn PhysicalExpr>,
    ending: StopFlag,
}

impl StoppableCondition {
    fn filter(filter: &JoinFilter, ending: &StopFlag) -> JoinFilter {
        let checked = StoppableCondition {
            inner: Arc::clone(filter.expression()),
            ending: ending.clone(),
        };
        let columns = filter.column_indices().to_vec();
        JoinFilter::new(Arc::new(checked), columns, Arc::clone(filter.schema()))
    }
}

impl fmt::Display for StoppableCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl PartialEq for StoppableCondition {
    fn eq(&self, other: &StoppableCondition) -> bool {
        *self.inner == *other.inner
    }
}

impl Eq for StoppableCondition {}

impl Hash for StoppableCondition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl PhysicalExpr for StoppableCondition {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.ending.check()?;
        self.inner.evaluate(batch)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.inner.return_field(schema)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let inner = children.pop().unwrap_or_else(|| Arc::clone(&self.inner));
        let ending = self.ending.clone();
        Ok(Arc::new(StoppableCondition { inner, ending }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}

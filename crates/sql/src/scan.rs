//! Reading a table: one stream of batches, made by a thread that the source blocks.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    EquivalenceProperties, LexOrdering, Partitioning, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions, SchedulingType,
};
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SortOrderPushdownResult,
};
use logpond_search::columns::{ColumnKind, Columns};
use logpond_search::order::Direction;
use tokio::sync::mpsc::Sender;

use crate::arrays;
use crate::engine::BATCH_ROWS;
use crate::source::{Scan, Source, Take};

/// Batches between the source and those who take them: enough that both work side by side, those of a
/// block and some more.
const BATCHES_MAX: usize = 8;

/// Reads what a scan wants.
#[derive(Debug)]
pub(crate) struct ScanExec {
    source: Arc<dyn Source>,
    scan: Scan,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl ScanExec {
    pub(crate) fn new(source: Arc<dyn Source>, scan: Scan, schema: SchemaRef) -> Result<ScanExec> {
        let mut equivalence = EquivalenceProperties::new(Arc::clone(&schema));
        let time = scan
            .columns
            .iter()
            .position(|column| &*column.name == "_time");
        if let (Some(order), Some(time)) = (scan.order, time) {
            let name = schema.field(time).name();
            let sort = PhysicalSortExpr::new(
                Arc::new(Column::new(name, time)),
                SortOptions {
                    descending: order == Direction::Backward,
                    nulls_first: false,
                },
            );
            if let Some(ordering) = LexOrdering::new([sort]) {
                equivalence.add_ordering(ordering);
            }
        }
        let properties = PlanProperties::new(
            equivalence,
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Ok(ScanExec {
            source,
            scan,
            schema,
            properties: Arc::new(properties),
        })
    }

    fn with(&self, scan: Scan) -> Result<Arc<dyn ExecutionPlan>> {
        let (source, schema) = (Arc::clone(&self.source), Arc::clone(&self.schema));
        Ok(Arc::new(ScanExec::new(source, scan, schema)?))
    }
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<&str> = self.scan.columns.iter().map(|c| &*c.name).collect();
        write!(f, "Scan: filter={}", self.scan.filter)?;
        let range = self.scan.range;
        if range != logpond_record::TimeRange::ALL {
            write!(f, ", from={}, to={}", range.from, range.to)?;
        }
        write!(f, ", columns=[{}]", columns.join(", "))?;
        if let Some(order) = self.scan.order {
            write!(f, ", order={order:?}")?;
        }
        if let Some(limit) = self.scan.limit {
            write!(f, ", limit={limit}")?;
        }
        Ok(())
    }
}

impl ExecutionPlan for ScanExec {
    fn name(&self) -> &'static str {
        "Scan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() {
            Ok(self)
        } else {
            internal_err!("a scan has no children")
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() {
            Ok(self)
        } else {
            internal_err!("a scan has no children")
        }
    }

    fn fetch(&self) -> Option<usize> {
        self.scan
            .limit
            .and_then(|limit| usize::try_from(limit).ok())
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let limit = limit.map(|limit| limit as u64);
        let scan = Scan {
            limit,
            ..self.scan.clone()
        };
        self.with(scan).ok()
    }

    /// Records come in the order of their time where that is asked for: the newest ones are found
    /// without reading the others.
    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
    ) -> Result<SortOrderPushdownResult<Arc<dyn ExecutionPlan>>> {
        let [sort] = order else {
            return Ok(SortOrderPushdownResult::Unsupported);
        };
        let column = sort.expr.downcast_ref::<Column>();
        let asked = column.and_then(|column| self.scan.columns.get(column.index()));
        if asked.is_none_or(|asked| &*asked.name != "_time") {
            return Ok(SortOrderPushdownResult::Unsupported);
        }
        let order = if sort.options.descending {
            Direction::Backward
        } else {
            Direction::Forward
        };
        let inner = self.with(Scan {
            order: Some(order),
            ..self.scan.clone()
        })?;
        Ok(SortOrderPushdownResult::Exact { inner })
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = Arc::clone(&self.schema);
        let mut stream = RecordBatchReceiverStreamBuilder::new(Arc::clone(&schema), BATCHES_MAX);
        let sender = stream.tx();
        let (source, scan) = (Arc::clone(&self.source), self.scan.clone());
        let batches = Arc::new(Batches {
            kinds: scan.columns.iter().map(|column| column.kind).collect(),
            left: AtomicU64::new(scan.limit.unwrap_or(u64::MAX)),
            schema,
            sender,
        });
        stream.spawn_blocking(move || {
            let scanned = source.scan(&scan, batches);
            scanned.map_err(|error| DataFusionError::External(Box::new(error)))
        });
        Ok(stream.build())
    }
}

/// Makes batches of records.
struct Batches {
    kinds: Vec<ColumnKind>,
    /// Rows that are still wanted.
    left: AtomicU64,
    schema: SchemaRef,
    sender: Sender<Result<RecordBatch>>,
}

impl Take for Batches {
    fn take(&self, columns: Columns) -> bool {
        let batch = arrays::batch(columns, &self.kinds, &self.schema);
        let batch = batch.map_err(DataFusionError::from);
        let pieces = batch.and_then(|batch| {
            let batch = cut(batch, &self.left);
            Ok(arrays::pieces(&batch, BATCH_ROWS)?)
        });
        match pieces {
            Ok(pieces) => {
                let mut pieces = pieces.into_iter();
                pieces.all(|piece| self.sender.blocking_send(Ok(piece)).is_ok()) && self.is_wanted()
            }
            Err(error) => {
                // Nobody hears it who does not wait any more.
                let _ = self.sender.blocking_send(Err(error));
                false
            }
        }
    }

    /// Nobody takes batches any more when the statement has ended.
    fn is_wanted(&self) -> bool {
        !self.sender.is_closed() && self.left.load(Ordering::Relaxed) > 0
    }
}

/// The rows of a batch that are still wanted.
fn cut(batch: RecordBatch, left: &AtomicU64) -> RecordBatch {
    let rows = batch.num_rows() as u64;
    let before = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
        Some(left.saturating_sub(rows))
    });
    let before = before.unwrap_or_default();
    match usize::try_from(before) {
        Ok(wanted) if before < rows => batch.slice(0, wanted),
        _ => batch,
    }
}

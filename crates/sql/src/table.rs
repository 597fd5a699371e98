//! The table that DataFusion plans with.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use logpond_record::TimeRange;
use logpond_search::Filter;

use crate::layout::Layout;
use crate::pushdown::{PushedFilter, push};
use crate::scan::ScanExec;
use crate::source::{Scan, Source};

/// The most scans of one statement. All of them may be needed at once, each with a thread.
pub(crate) const SCANS_MAX: usize = 16;

/// All records, or some of them.
pub(crate) struct Table {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) layout: Layout,
    /// Which records.
    pub(crate) filter: Filter,
    /// Scans of the statement so far.
    pub(crate) scans: Arc<AtomicUsize>,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("filter", &self.filter)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for Table {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.layout.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match push(filter, &self.layout) {
            Some(PushedFilter { is_exact: true, .. }) => TableProviderFilterPushDown::Exact,
            Some(_) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if self.scans.fetch_add(1, Ordering::Relaxed) >= SCANS_MAX {
            return plan_err!("the statement reads tables more than {SCANS_MAX} times");
        }
        let mut filter = vec![self.filter.clone()];
        let mut range = TimeRange::ALL;
        for pushed in filters.iter().filter_map(|expr| push(expr, &self.layout)) {
            filter.push(pushed.filter);
            range.from = range.from.max(pushed.range.from);
            range.to = range.to.min(pushed.range.to);
        }
        let all: Vec<usize> = (0..self.layout.columns.len()).collect();
        let projection = projection.unwrap_or(&all);
        let columns = projection.iter().map(|at| self.layout.columns[*at].clone());
        let scan = Scan {
            filter: Filter::and(filter),
            range,
            columns: columns.collect(),
            order: None,
            limit: limit.map(|limit| limit as u64),
        };
        let schema = Arc::new(self.layout.schema.project(projection)?);
        Ok(Arc::new(ScanExec::new(
            Arc::clone(&self.source),
            scan,
            schema,
        )?))
    }
}

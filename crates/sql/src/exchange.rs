//! Exchanges of rows between tasks, with one writer each.
//!
//! An exchange spills what its readers have no memory for. Those of several writers share a pool of files for each
//! reader, which reads the oldest file first: it may wait for a file whose writer waits for the reader, and the
//! statement never ends (apache/datafusion issue 24883, mended after 55.2). One writer has one file at a time.
//!
//! Invariant: an exchange that does not keep an order has one input partition. Those that keep one have a pool for each
//! pair of writer and reader.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

/// Puts the partitions that an exchange reads together before it.
#[derive(Debug)]
pub(crate) struct OneWriter;

impl PhysicalOptimizerRule for OneWriter {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|operator| {
            let Some(exchange) = operator.downcast_ref::<RepartitionExec>() else {
                return Ok(Transformed::no(operator));
            };
            let input = exchange.input();
            if exchange.preserve_order() || input.output_partitioning().partition_count() <= 1 {
                return Ok(Transformed::no(operator));
            }
            let input = CoalescePartitionsExec::new(Arc::clone(input));
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            let exchange = operator.replace_children(vec![Arc::new(input)], options)?;
            Ok(Transformed::yes(exchange))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "OneWriter"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

//! Constants that a plan would put beside many rows.
//!
//! Invariant: the constants of an operator, beside each row of a batch, are no larger than the results of
//! functions may be. Texts of the statement are short; only computed ones can be larger.

use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;

use crate::statement::STATEMENT_BYTES_MAX;

use super::refused;

/// Refuses a plan that would put large constants beside each of its rows.
pub(crate) fn check_constants(
    plan: &Arc<dyn ExecutionPlan>,
    batch_rows: usize,
    bytes_max: u64,
) -> Result<()> {
    plan.apply(|operator| {
        let is_of_one_row = |input: &&Arc<dyn ExecutionPlan>| input.is::<PlaceholderRowExec>();
        let inputs = operator.children();
        if inputs.is_empty() || inputs.iter().any(is_of_one_row) {
            return Ok(TreeNodeRecursion::Continue);
        }
        // Other operators compare texts of the statement with rows, and copy none of them.
        let bytes_min = if operator.is::<ProjectionExec>() {
            0
        } else {
            STATEMENT_BYTES_MAX as u64
        };
        let mut bytes = 0_u64;
        operator.apply_expressions(&mut |expr| {
            bytes += constant_bytes(expr, bytes_min)?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        if bytes.saturating_mul(batch_rows as u64) > bytes_max {
            return refused(format!(
                "the texts that the statement puts beside each row have more than {} KiB",
                (bytes_max / batch_rows as u64) >> 10
            ));
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .map(|_| ())
}

/// Bytes of the constants that have at least so many.
fn constant_bytes(expr: &Arc<dyn PhysicalExpr>, bytes_min: u64) -> Result<u64> {
    let mut bytes = 0;
    expr.apply(|part| {
        if let Some(constant) = part.downcast_ref::<Literal>() {
            let size = constant.value().size() as u64;
            bytes += if size >= bytes_min { size } else { 0 };
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(bytes)
}

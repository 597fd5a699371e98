//! `stats`: extremes, mean and percentiles of a number.

use super::super::arguments::{FROM, QUERY, TO, optional, required};
use super::super::report::Report;
use super::{Call, Tool, ToolError};

pub(super) const TOOL: Tool = Tool {
    name: "stats",
    title: "Statistics of a number",
    help: "Gives the extremes, the mean and percentiles of a numeric field, such as a duration.",
    arguments: &[
        required("field", "The field with the numbers."),
        optional("by", "A field by whose values the records are told apart."),
        QUERY,
        FROM,
        TO,
    ],
    run: |call| Box::pin(run(call)),
};

async fn run(call: Call) -> Result<Report, ToolError> {
    let mut parameters = call.scope();
    parameters.extend(call.parameters(&[("field", "field"), ("by", "by")]));
    Ok(Report::of(call.rows("/api/v1/stats", parameters).await?))
}

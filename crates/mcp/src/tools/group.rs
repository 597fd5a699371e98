//! `group`: how many records have each value of a field.

use super::super::arguments::{Argument, FROM, QUERY, TO, number, required};
use super::super::report::Report;
use super::{Call, Tool, ToolError, parameter};

const LIMIT: Argument = number("limit", (20, 1, 1_000), "The most values.");

pub(super) const TOOL: Tool = Tool {
    name: "group",
    title: "Group records by a field",
    help: "Counts the records that match by the values of a field, the most frequent values first.",
    arguments: &[
        required("field", "The field whose values are counted."),
        QUERY,
        FROM,
        TO,
        LIMIT,
    ],
    run: |call| Box::pin(run(call)),
};

async fn run(call: Call) -> Result<Report, ToolError> {
    let mut parameters = call.scope();
    parameters.extend(call.parameters(&[("field", "field")]));
    parameters.push(parameter("n", call.arguments.number(&LIMIT)));
    Ok(Report::of(call.rows("/api/v1/top", parameters).await?))
}

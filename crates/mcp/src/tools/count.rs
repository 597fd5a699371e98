//! `count`: how many records match.

use serde_json::json;

use super::super::arguments::{FROM, QUERY, TO};
use super::super::report::Report;
use super::{Call, Tool, ToolError, parameter};

pub(super) const TOOL: Tool = Tool {
    name: "count",
    title: "Count records",
    help: "Counts the records that match.",
    arguments: &[QUERY, FROM, TO],
    run: |call| Box::pin(run(call)),
};

async fn run(call: Call) -> Result<Report, ToolError> {
    let mut parameters = call.scope();
    parameters.push(parameter("count", true));
    let mut answer = call.rows("/api/v1/query", parameters).await?;
    if let Some(trailer) = &answer.trailer {
        answer.rows = vec![json!({ "count": trailer.rows })];
    }
    Ok(Report::of(answer))
}

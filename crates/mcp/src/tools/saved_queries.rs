//! `saved_queries`: the queries that people keep at the server.

use super::super::report::Report;
use super::{Call, Tool, ToolError};

pub(super) const TOOL: Tool = Tool {
    name: "saved_queries",
    title: "List saved queries",
    help: "Lists the saved queries with their descriptions and variables, for `run_saved_query`.",
    arguments: &[],
    run: |call| Box::pin(run(call)),
};

async fn run(call: Call) -> Result<Report, ToolError> {
    let answer = call.value("/api/v1/saved-queries", Vec::new()).await?;
    let queries = answer["queries"].as_array().cloned();
    Ok(Report::complete(queries.unwrap_or_default()))
}

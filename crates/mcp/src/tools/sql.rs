//! `sql`: a statement of SQL.

use super::super::arguments::{FROM, TO, required};
use super::super::report::Report;
use super::{Call, Tool, ToolError, parameter};

pub(super) const TOOL: Tool = Tool {
    name: "sql",
    title: "Ask in SQL",
    help: "Answers a SELECT statement over the table `logs`, for joins and aggregates that no other tool has. Fields \
           are columns; `DESCRIBE logs` lists them. Write a LIMIT.",
    arguments: &[required("statement", "The statement."), FROM, TO],
    run: |call| Box::pin(run(call)),
};

async fn run(call: Call) -> Result<Report, ToolError> {
    let mut parameters = call.parameters(&[("statement", "query"), ("from", "from"), ("to", "to")]);
    parameters.push(parameter("format", "json"));
    Ok(Report::of(call.rows("/api/v1/sql", parameters).await?))
}

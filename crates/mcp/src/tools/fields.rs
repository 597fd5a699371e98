//! `fields`: the fields of the records that match.

use super::super::arguments::{FROM, QUERY, TO};
use super::super::report::Report;
use super::{Call, Tool, ToolError};

pub(super) const TOOL: Tool = Tool {
    name: "fields",
    title: "List fields",
    help: "Lists the fields of the records that match, with their types, their share of records and the number of \
           their values. Call it before a query that names fields.",
    arguments: &[QUERY, FROM, TO],
    run: |call| Box::pin(run(call)),
};

async fn run(call: Call) -> Result<Report, ToolError> {
    Ok(Report::of(call.rows("/api/v1/fields", call.scope()).await?))
}

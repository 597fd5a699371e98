//! `patterns`: the kinds of messages.

use serde_json::{Value, json};

use super::super::arguments::{Argument, FROM, QUERY, TO, number};
use super::super::report::Report;
use super::{Call, Tool, ToolError, parameter};

const LIMIT: Argument = number("limit", (30, 1, 1_000), "The most patterns.");

pub(super) const TOOL: Tool = Tool {
    name: "patterns",
    title: "List patterns of messages",
    help: "Lists the kinds of messages with counts and one example each, the most frequent first. It gives an \
           overview of many records in few lines.",
    arguments: &[QUERY, FROM, TO, LIMIT],
    run: |call| Box::pin(run(call)),
};

async fn run(call: Call) -> Result<Report, ToolError> {
    let mut parameters = call.scope();
    parameters.push(parameter("n", call.arguments.number(&LIMIT)));
    let mut answer = call.rows("/api/v1/patterns", parameters).await?;
    for row in &mut answer.rows {
        *row = json!({
            "pattern": row["pattern"],
            "level": row["level"],
            "count": row["count"],
            "example": sample(row),
        });
    }
    Ok(Report::of(answer))
}

/// The first example of a pattern.
pub(super) fn sample(row: &Value) -> &Value {
    &row["samples"][0]["message"]
}

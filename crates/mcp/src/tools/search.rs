//! `search`: records that match.

use super::super::arguments::{Argument, FROM, QUERY, TO, number, optional};
use super::super::report::Report;
use super::{Call, Tool, ToolError, parameter};

const LIMIT: Argument = number("limit", (50, 1, 1_000), "The most records.");

pub(super) const TOOL: Tool = Tool {
    name: "search",
    title: "Search records",
    help: "Lists the records that match, newest first. Count or group first if there may be many.",
    arguments: &[
        QUERY,
        FROM,
        TO,
        LIMIT,
        optional("order", "`newest` first, the default, or `oldest` first."),
        optional(
            "cursor",
            "The cursor of an earlier answer: only records after it. Repeat the other arguments.",
        ),
    ],
    run: |call| Box::pin(run(call)),
};

async fn run(call: Call) -> Result<Report, ToolError> {
    let mut parameters = call.scope();
    parameters.extend(call.parameters(&[("cursor", "cursor")]));
    let direction = match call.arguments.text("order") {
        None | Some("newest") => "backward",
        Some("oldest") => "forward",
        Some(_) => {
            let message = "the argument 'order' is newest or oldest";
            return Err(ToolError::Arguments(message.to_owned()));
        }
    };
    parameters.push(parameter("direction", direction));
    parameters.push(parameter("limit", call.arguments.number(&LIMIT)));
    let mut report = Report::of(call.rows("/api/v1/query", parameters).await?);
    report.has_cursors = true;
    Ok(report)
}

//! `run_saved_query`: a saved query, or LogQL.

use serde_json::Value;

use super::super::arguments::{Argument, ArgumentKind, FROM, TO, number, optional, required};
use super::super::report::{Completeness, Report};
use super::{Call, Tool, ToolError, parameter};

const LIMIT: Argument = number("limit", (100, 1, 1_000), "The most rows.");

const VARIABLES: Argument = Argument {
    kind: ArgumentKind::Members,
    ..optional(
        "variables",
        "Values of the variables of the query, by name.",
    )
};

/// Warnings that are passed on.
const WARNINGS_MAX: usize = 10;

pub(super) const TOOL: Tool = Tool {
    name: "run_saved_query",
    title: "Run a saved query",
    help: "Runs a saved query by its name, or a query in LogQL.",
    arguments: &[
        required("query", "The name of a saved query, or LogQL."),
        VARIABLES,
        FROM,
        TO,
        optional(
            "step",
            "The time between two points of a series, such as 1m.",
        ),
        LIMIT,
    ],
    run: |call| Box::pin(run(call)),
};

async fn run(call: Call) -> Result<Report, ToolError> {
    let mut parameters = call.parameters(&[
        ("query", "query"),
        ("from", "from"),
        ("to", "to"),
        ("step", "step"),
    ]);
    let variables = call.arguments.members(VARIABLES.name).into_iter();
    parameters.extend(variables.map(|(name, value)| (format!("var-{name}"), value)));
    parameters.push(parameter("limit", call.arguments.number(&LIMIT)));
    parameters.push(parameter("format", "page"));
    let page = call.value("/api/query", parameters).await?;
    let mut report = Report::complete(list(&page["rows"]));
    if page["complete"] != true {
        report.completeness = Completeness::Incomplete;
    }
    for warning in list(&page["warnings"]).into_iter().take(WARNINGS_MAX) {
        report.remark("_missing", warning);
    }
    for lost in list(&page["lost"]).into_iter().take(WARNINGS_MAX) {
        report.remark("_lost", lost);
    }
    if page["cursor"].is_string() {
        let more = "more: rows beyond 'limit' are left out; narrow the range";
        report.facts.push(more.to_owned());
    }
    Ok(report)
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

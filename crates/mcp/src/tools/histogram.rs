//! `histogram`: how many records match over time.

use super::super::arguments::{FROM, QUERY, TO, optional};
use super::super::report::Report;
use super::{Call, Tool, ToolError};

pub(super) const TOOL: Tool = Tool {
    name: "histogram",
    title: "Count records over time",
    help: "Counts the records that match in buckets of time, to find when something began or ended.",
    arguments: &[
        QUERY,
        FROM,
        TO,
        optional(
            "step",
            "The width of a bucket, such as 1m; the default gives about 60 buckets.",
        ),
        optional("by", "A field by whose values each bucket is split."),
    ],
    run: |call| Box::pin(run(call)),
};

async fn run(call: Call) -> Result<Report, ToolError> {
    let mut parameters = call.scope();
    parameters.extend(call.parameters(&[("step", "step"), ("by", "by")]));
    Ok(Report::of(
        call.rows("/api/v1/histogram", parameters).await?,
    ))
}

//! `values`: the values of a field, as a compact list.

use serde_json::{Value, json};

use super::super::arguments::{Argument, FROM, QUERY, TO, number, optional, required};
use super::super::report::Report;
use super::{Call, Tool, ToolError, parameter};

const LIMIT: Argument = number("limit", (100, 1, 1_000), "The most values.");

/// Values that are looked through for `contains`.
const VALUES_SEARCHED: u64 = 10_000;

pub(super) const TOOL: Tool = Tool {
    name: "values",
    title: "List values of a field",
    help: "Lists values of a field without counts, the most frequent first, to learn the names of hosts, services \
           or users.",
    arguments: &[
        required("field", "The field."),
        optional("contains", "Only values with this text, in any case."),
        QUERY,
        FROM,
        TO,
        LIMIT,
    ],
    run: |call| Box::pin(run(call)),
};

async fn run(call: Call) -> Result<Report, ToolError> {
    let limit = call.arguments.number(&LIMIT);
    let wanted = call.arguments.text("contains").map(str::to_lowercase);
    let searched = if wanted.is_some() {
        VALUES_SEARCHED
    } else {
        // One more shows that there are more.
        limit + 1
    };
    let mut parameters = call.scope();
    parameters.extend(call.parameters(&[("field", "field")]));
    parameters.push(parameter("n", searched));
    let mut answer = call.rows("/api/v1/top", parameters).await?;
    let is_searched_in_part = answer.rows.len() as u64 >= searched;
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    answer.rows.retain(|row| {
        let contains = |wanted: &String| text(&row["value"]).to_lowercase().contains(wanted);
        wanted.as_ref().is_none_or(contains)
    });
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = answer.rows.len() > limit;
    answer.rows.truncate(limit);
    for row in &mut answer.rows {
        *row = json!({ "value": row["value"] });
    }
    let mut report = Report::of(answer);
    report.facts.retain(|fact| !fact.starts_with("more: "));
    if has_more {
        let more = "more: values beyond 'limit' are left out; narrow by 'contains' or 'query'";
        report.facts.push(more.to_owned());
    } else if wanted.is_some() && is_searched_in_part {
        report.facts.push(format!(
            "more: only the {VALUES_SEARCHED} most frequent values were looked through; narrow by 'query'"
        ));
    }
    Ok(report)
}

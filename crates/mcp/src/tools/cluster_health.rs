//! `cluster_health`: how the server and its nodes are.

use serde_json::json;

use super::super::report::Report;
use super::super::server::{Question, Refusal};
use super::{Call, Tool, ToolError};

pub(super) const TOOL: Tool = Tool {
    name: "cluster_health",
    title: "Show the health of the cluster",
    help: "Shows if the server is ready, and the state of all nodes of its cluster. Call it if an answer is not \
           complete.",
    arguments: &[],
    run: |call| Box::pin(run(call)),
};

async fn run(call: Call) -> Result<Report, ToolError> {
    let ready = call.server.ask(Question {
        path: "/-/ready",
        parameters: Vec::new(),
    });
    let ready = match ready.await {
        Ok(raw) => String::from_utf8_lossy(&raw.bytes).trim().to_owned(),
        Err(refusal) => refusal.message,
    };
    let mut report = Report::complete(vec![json!({ "ready": ready })]);
    match call.value("/api/v1/cluster", Vec::new()).await {
        Ok(status) => report.rows.push(status),
        Err(ToolError::Refused(Refusal { code, .. })) if code == "not_found" => {
            let fact = "this server is no node of a cluster: it answers for all records";
            report.facts.push(fact.to_owned());
        }
        Err(error) => return Err(error),
    }
    Ok(report)
}

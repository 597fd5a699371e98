//! A push of few bytes that are very many records. No node may keep any of it, or end because of it.

use std::time::Duration;

use super::Run;
use super::patience::patient;
use super::topology::Process;
use crate::e2e::http;
use crate::e2e::pond::wait_within;
use crate::run::Outcome;

/// How long a node may take for an answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How long a node may be too busy to refuse the push for its size.
const DEADLINE: Duration = Duration::from_secs(60);

/// Sends the push to a node that has just been started, until the node refuses it for good. What else
/// the node answers is an error; what it keeps is found by the checker, since nobody sent it.
pub(super) fn throw(run: &Run, process: &Process) -> Outcome<()> {
    let bomb = &run.tools.bomb;
    // A node that takes no records in says so.
    let wanted = if process.role.ingests() { 413 } else { 421 };
    let (name, mut last) = (process.name(), Ok((0, String::new())));
    let waited = wait_within(patient(DEADLINE), "the push is refused", || {
        last = send(&process.http(), bomb);
        let is_busy = matches!(last, Err(_) | Ok((408 | 429 | 503 | 507, _)));
        !is_busy || process.death().is_some()
    });
    match (process.death(), last) {
        (Some(status), last) => Err(format!("{name} ended: {status}: {last:?}")),
        (None, Ok((status, _))) if status == wanted => Ok(()),
        (None, last) => Err(format!(
            "{name} did not refuse a push of very many records by {wanted}: {last:?}, {waited:?}"
        )),
    }
}

fn send(address: &str, bomb: &[u8]) -> Outcome<(u16, String)> {
    let failed = |e: std::io::Error| format!("{address}: {e}");
    let headers = [("content-type", "text/plain"), ("content-encoding", "gzip")];
    let mut client = http::Client::connect_within(address, patient(TIMEOUT), patient(TIMEOUT))
        .map_err(failed)?;
    let answer = client.send("POST", "/api/v1/push", &headers, bomb);
    let answer = answer.map_err(failed)?;
    let status = answer.status;
    Ok((status, answer.text().map_err(failed)?))
}

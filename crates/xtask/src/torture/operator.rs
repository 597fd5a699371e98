//! What somebody does who looks after the cluster: has it compact, gives up nodes whose disk is
//! lost, and looks whether copies are missing.

use std::sync::PoisonError;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::Run;
use super::history::Place;
use super::patience::patient;
use crate::draw::Draw;
use crate::e2e::http;
use crate::run::Outcome;

/// The longest time between two compactions that are asked for.
const PAUSE_MS_MAX: u64 = 1_500;

/// How long a node may take for what it does at once.
const TIMEOUT_SHORT: Duration = Duration::from_millis(100);

/// The same for what it asks others for, while some are broken.
pub(super) const TIMEOUT_BROKEN: Duration = Duration::from_secs(2);

/// The same for anything, in the end.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

/// Calls a node; anything but 200 and 202 is an error.
pub(super) fn call(
    run: &Run,
    place: Place,
    (method, target): (&str, &str),
    timeout: Duration,
) -> Outcome<String> {
    let address = run.processes[place].http();
    let failed = |e: std::io::Error| format!("{address}{target}: {e}");
    let timeout = patient(timeout);
    let client = http::Client::connect_within(&address, timeout, timeout);
    let mut client = client.map_err(failed)?;
    let answer = client.send(method, target, &[], b"").map_err(failed)?;
    let status = answer.status;
    let text = answer.text().map_err(failed)?;
    match status {
        200 | 202 => Ok(text),
        _ => Err(format!("{address}{target}: status {status}: {text}")),
    }
}

/// Works until the load stops. Nodes close their journals and merge segments much more often than
/// by themselves, so that records move from node to node and file to file while all else happens.
pub(super) fn operate(run: &Run) {
    let mut draw = Draw::new(run.seed, 300);
    let nodes = run.nodes();
    while !run.is_load_over() {
        let target = match draw.below(4) {
            0 => "/api/v1/compact?cold=true",
            _ => "/api/v1/compact",
        };
        // Who cannot do it now does not.
        let _ = call(run, *draw.one(&nodes), ("POST", target), TIMEOUT_SHORT);
        forget(run, *draw.one(&nodes), TIMEOUT_BROKEN);
        thread::sleep(Duration::from_millis(draw.within(50, PAUSE_MS_MAX)));
    }
}

/// Has a node give up all nodes whose disk is lost; true if there are none left. Where the answer
/// does not come in time it is asked again.
pub(super) fn forget(run: &Run, by: Place, timeout: Duration) -> bool {
    let mut lost = run.lost.lock().unwrap_or_else(PoisonError::into_inner);
    lost.retain(|node| {
        let target = format!("/api/v1/cluster/forget?node={node}");
        call(run, by, ("POST", &target), timeout).is_err()
    });
    lost.is_empty()
}

/// Takes note that a node has lost its disk, and is to be given up.
pub(super) fn note_lost(run: &Run, node: String) {
    run.lost
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(node);
}

/// Of how many sources too few nodes have a copy, as a node knows.
pub(super) fn copies_lacking(run: &Run, place: Place, timeout: Duration) -> Outcome<u64> {
    let text = call(run, place, ("GET", "/api/v1/cluster"), timeout)?;
    let status: Value = serde_json::from_str(&text).map_err(|e| format!("{e}: {text}"))?;
    let lacking = status["copies_lacking"].as_u64();
    lacking.ok_or_else(|| format!("no copies_lacking in {text}"))
}

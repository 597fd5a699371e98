//! Asks servers what has become of batches that are durable but not replicated yet.

use logpond_segment::batches::BatchSet;
use logpond_segment::sources::Interval;
use serde::Deserialize;

use logpond_client::Address;

/// Runs of sequences in one question: fewer than a request may have parameters.
const RUNS_MAX: usize = 100;

/// The longest answer that is read: a server names no more runs than it was asked about, or a few
/// more where they have holes.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// The batches that are durable, and those that are replicated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReplicationState {
    /// Those that some server holds durably.
    pub(super) durable: BatchSet,
    /// Those that are replicated.
    pub(super) replicated: BatchSet,
    /// Whether every server has answered.
    pub(super) is_whole: bool,
}

#[derive(Deserialize)]
struct Answer {
    durable: Vec<(u64, u64)>,
    replicated: Vec<(u64, u64)>,
}

/// Asks all servers about all of these batches.
pub(super) fn ask(
    agent: &ureq::Agent,
    addresses: &[Address],
    wanted: &BatchSet,
) -> ReplicationState {
    let mut known = ReplicationState {
        is_whole: true,
        ..ReplicationState::default()
    };
    let runs: Vec<(u128, Interval)> = wanted.runs().collect();
    let of_one_epoch = runs.chunk_by(|a, b| a.0 == b.0);
    for runs in of_one_epoch.flat_map(|runs| runs.chunks(RUNS_MAX)) {
        let epoch = runs[0].0;
        let mut parameters = vec![("epoch", format!("{epoch:032x}"))];
        let texts = runs
            .iter()
            .map(|(_, run)| format!("{}-{}", run.from, run.to));
        parameters.extend(texts.map(|text| ("run", text)));
        for address in addresses {
            match question(agent, &address.url("/api/v1/batches", &parameters)) {
                Some(answer) => {
                    add(epoch, &answer.durable, &mut known.durable);
                    add(epoch, &answer.replicated, &mut known.replicated);
                }
                None => known.is_whole = false,
            }
        }
    }
    known
}

fn add(epoch: u128, runs: &[(u64, u64)], to: &mut BatchSet) {
    let sound = runs.iter().filter(|(first, last)| first <= last);
    sound.for_each(|(from, to_)| {
        let run = Interval {
            from: *from,
            to: *to_,
        };
        to.insert_run(epoch, run);
    });
}

fn question(agent: &ureq::Agent, url: &str) -> Option<Answer> {
    use std::io::Read;
    let response = agent.get(url).call().ok()?;
    if response.status().as_u16() != 200 {
        return None;
    }
    let mut text = Vec::new();
    let body = response.into_body().into_reader();
    body.take(ANSWER_BYTES_MAX).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

//! What must be true once everything is healed: all that was acknowledged is there once on every
//! node, followers were shown it, copies are where they should be, any node can be lost, files are
//! sound.

use std::collections::BTreeSet;
use std::ops::Range;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::checker;
use super::history::{Client, Event, Place, QueryResult, Question};
use super::load::Kind;
use super::operator::{self, TIMEOUT, call};
use super::patience::patient;
use super::questions::ask;
use super::{Run, follow, history};
use crate::e2e::pond::{metric, wait_within};
use crate::run::output;

/// How long after the last fault was healed until answers are complete, and all is replicated.
const HEALING_DEADLINE: Duration = Duration::from_secs(90);

/// How often it is looked whether followers have everything: there is much to compare.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// All records of a client.
fn all(run: &Run, client: Client) -> Range<u64> {
    0..run.clients[client].next.load(Ordering::SeqCst)
}

/// Records that must be there now: acknowledged, seen, or given to a forwarder.
fn expected(run: &Run) -> Vec<Vec<u64>> {
    let mut expected = checker::there(&run.history.events(), &run.facts());
    for (client, expected) in expected.iter_mut().enumerate() {
        if matches!(run.clients[client].kind, Kind::Lines(_)) {
            *expected = all(run, client).collect();
        }
    }
    expected
}

/// What a node says of a client: what is absent, and whether it says that nothing is.
fn absent(run: &Run, place: Place, client: Client, expected: &[u64]) -> (Vec<u64>, Event) {
    let question = Question::Rows(client, all(run, client));
    let event = ask(run, &question, &mut || place);
    let had: BTreeSet<u64> = match &event {
        Event::Answered(answer) => match &answer.found {
            QueryResult::Rows { numbers, .. } => numbers.iter().copied().collect(),
            QueryResult::Counts(_) => BTreeSet::new(),
        },
        _ => BTreeSet::new(),
    };
    let absent = expected
        .iter()
        .copied()
        .filter(|number| !had.contains(number));
    (absent.collect(), event)
}

/// An answer in short: the history has all of it.
fn short(event: &Event) -> String {
    match event {
        Event::Answered(answer) => format!("missing: {:?}", answer.missing),
        Event::Unanswered { why, .. } => why.clone(),
        other => format!("{other:?}"),
    }
}

fn is_complete(event: &Event) -> bool {
    matches!(event, Event::Answered(answer) if answer.is_complete)
}

/// Waits until each node answers completely and has everything. What stays absent is lost.
fn settle(run: &Run, when: &str) {
    let expected = expected(run);
    for place in run.nodes() {
        for (client, expected) in expected.iter().enumerate() {
            let mut last = (Vec::new(), None);
            let what = "the answer is complete and has everything";
            let settled = wait_within(patient(HEALING_DEADLINE), what, || {
                let (absent, event) = absent(run, place, client, expected);
                let is_settled = is_complete(&event) && absent.is_empty();
                last = (absent, Some(event));
                is_settled
            });
            let (absent, Some(event)) = last else {
                continue;
            };
            run.history.note(event.clone());
            if settled.is_err() {
                let (name, who) = (&run.clients[client].name, run.processes[place].name());
                let runs = history::runs(&absent);
                let kind = if is_complete(&event) {
                    "LOST"
                } else {
                    "NOT HEALED"
                };
                let (waited, event) = (patient(HEALING_DEADLINE), short(&event));
                let text = format!("{when}, {waited:?} in vain: {who} lacks of {name} {runs:?}");
                run.history.wrong(kind, format!("{text}: {event}"));
                return;
            }
        }
    }
}

/// Waits until followers were shown everything. What they were not is the checker's to judge.
fn show(run: &Run) {
    let expected = expected(run);
    let what = "followers were shown everything";
    let _ = wait_within(patient(HEALING_DEADLINE), what, || {
        thread::sleep(LOOK_INTERVAL);
        follow::unshown(run, &expected).iter().all(Vec::is_empty)
    });
}

/// Has every node close its journal, and waits until copies of all are where they should be.
fn replicate(run: &Run) {
    for place in run.nodes() {
        if let Err(error) = call(run, place, ("POST", "/api/v1/compact?wait=true"), TIMEOUT) {
            run.history.wrong("NOT HEALED", error);
        }
    }
    for place in run.nodes() {
        let mut bytes = f64::NAN;
        let replicated = wait_within(
            patient(HEALING_DEADLINE),
            "everything has its copies",
            || {
                let text = call(run, place, ("GET", "/metrics"), TIMEOUT);
                bytes = text.map_or(f64::NAN, |text| metric(&text, "logpond_unreplicated_bytes"));
                bytes == 0.0
            },
        );
        if let Err(error) = replicated {
            let who = run.processes[place].name();
            run.history.wrong(
                "NOT REPLICATED",
                format!("{who} has {bytes} bytes: {error}"),
            );
        }
    }
}

/// Waits until every node says that nothing lacks copies.
fn repair(run: &Run) {
    for place in run.nodes() {
        let mut lacking = Ok(0);
        let what = "nothing lacks copies";
        let repaired = wait_within(patient(HEALING_DEADLINE), what, || {
            lacking = operator::copies_lacking(run, place, TIMEOUT);
            lacking == Ok(0)
        });
        if let Err(error) = repaired {
            let who = run.processes[place].name();
            run.history
                .wrong("NOT REPAIRED", format!("{who}: {lacking:?}: {error}"));
        }
    }
}

/// Kills one node after the other: the others have everything, though they cannot know that.
fn lose_each(run: &Run) {
    let expected = expected(run);
    let nodes = run.nodes();
    for lost in &nodes {
        let process = &run.processes[*lost];
        let (fault, down) = (format!("kill {}", process.name()), vec![*lost]);
        let at = run.history.now();
        let broken = Event::Broken {
            fault: fault.clone(),
            kind: "kill",
            down: down.clone(),
            at,
        };
        run.history.note(broken);
        process.kill();
        // One other answers for all others.
        let others = nodes.iter().cycle().skip_while(|place| *place != lost);
        for place in others.skip(1).take(1) {
            for (client, expected) in expected.iter().enumerate() {
                let (absent, event) = absent(run, *place, client, expected);
                run.history.note(event.clone());
                if !absent.is_empty() {
                    let (name, who) = (&run.clients[client].name, run.processes[*place].name());
                    let runs = history::runs(&absent);
                    let (lost, event) = (process.name(), short(&event));
                    let text = format!("without {lost}, {who} lacks of {name} {runs:?}: {event}");
                    run.history.wrong("ONE COPY", text);
                }
            }
        }
        if let Err(error) = process.start() {
            run.history.wrong("NOT STARTED", error);
        }
        let at = run.history.now();
        run.history.note(Event::Healed { fault, down, at });
    }
}

/// Stops all processes, and looks at the files of the nodes.
fn stop(run: &Run) {
    for process in &run.processes {
        let stopped = process.signal("TERM").and_then(|()| process.wait_for_end());
        if let Err(error) = stopped {
            run.history.wrong("BAD STOP", error);
        }
    }
    for place in run.nodes() {
        let process = &run.processes[place];
        let mut verify = Command::new(&run.program);
        verify.arg("verify").arg("--data").arg(process.data());
        if let Err(error) = output(&mut verify) {
            run.history
                .wrong("UNCLEAN", format!("{}: {error}", process.name()));
        }
    }
}

/// Checks all of it, and stops everything.
pub(super) fn end(run: &Run) {
    let what = "lost nodes are given up";
    let forgotten = wait_within(patient(HEALING_DEADLINE), what, || {
        run.nodes()
            .iter()
            .any(|place| operator::forget(run, *place, TIMEOUT))
    });
    if let Err(error) = forgotten {
        run.history.wrong("NOT FORGOTTEN", error);
    }
    settle(run, "after the last fault");
    show(run);
    replicate(run);
    repair(run);
    settle(run, "after everything was replicated");
    lose_each(run);
    settle(run, "after each node was killed");
    // They end by the trailers of nodes that stop.
    follow::end(run);
    stop(run);
}

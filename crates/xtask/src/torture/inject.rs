//! Carries faults out and heals them, and sees who dies without being told to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use super::history::{Event, Micros, Place};
use super::limits::{Group, Limit};
use super::plan::{Fault, PlannedFault, Way};
use super::topology::{Condition, Process};
use super::tracer::Tracer;
use super::{Run, bomb, operator};
use crate::run::Outcome;

/// How often it is looked whether something is due, or dead.
const POLL: Duration = Duration::from_millis(10);

/// Bytes written at once to fill a disk: large steps first, then up to the last page.
const FILL_BYTES: [usize; 2] = [1 << 20, 4 << 10];

/// How long after a lost disk it is believed that nothing lacks copies: nodes look every other
/// second, and have first to hear that the node is given up.
const SETTLING: Micros = 10_000_000;

/// A step of a plan.
struct Step<'a> {
    at_ms: u64,
    begins: bool,
    planned: &'a PlannedFault,
}

/// Carries a plan out, from now on; all is healed when it returns. A busy machine delays faults: those that would
/// begin when the time is up are left out.
pub(super) fn inject(run: &Run, plan: &[PlannedFault], until: Instant) {
    let mut steps: Vec<Step<'_>> = plan
        .iter()
        .flat_map(|planned| {
            let ends = [(planned.from_ms, true), (planned.to_ms, false)];
            ends.map(|(at_ms, begins)| Step {
                at_ms,
                begins,
                planned,
            })
        })
        .collect();
    steps.sort_by_key(|step| step.at_ms);
    let start = run.history.now();
    let mut watch = Watch::default();
    let mut state = State::default();
    let mut left_out: Vec<&PlannedFault> = Vec::new();
    for step in steps {
        if step.begins && Instant::now() > until {
            left_out.push(step.planned);
        }
        // A plan may have the same fault twice, at other times.
        if left_out
            .iter()
            .any(|late| std::ptr::eq(*late, step.planned))
        {
            continue;
        }
        while run.history.now() < start + step.at_ms * 1_000 {
            watch.look(run);
            thread::sleep(POLL);
        }
        let fault = &state.instead(run, &step);
        let place = fault.place();
        let down = if fault.is_down() && run.processes[place].role.is_node() {
            vec![place]
        } else {
            Vec::new()
        };
        let at = run.history.now();
        let text = describe(run, fault);
        if step.begins {
            watch.expected.insert(place);
            let (fault, kind) = (text.clone(), fault.kind());
            run.history.note(Event::Broken {
                fault,
                kind,
                down: down.clone(),
                at,
            });
        }
        let done = if step.begins {
            begin(run, fault, &mut state)
        } else {
            end(run, fault, &mut state)
        };
        if let Err(error) = done {
            run.history
                .wrong("BROKEN FAULT", format!("{text}: {error}"));
        }
        if !step.begins {
            watch.expected.remove(&place);
            let at = run.history.now();
            run.history.note(Event::Healed {
                fault: text,
                down,
                at,
            });
        }
    }
}

/// Who may be dead, and who was found to be so.
#[derive(Default)]
struct Watch {
    expected: BTreeSet<Place>,
    found: BTreeSet<Place>,
}

impl Watch {
    fn look(&mut self, run: &Run) {
        for process in &run.processes {
            let place = process.place;
            if self.expected.contains(&place) || self.found.contains(&place) {
                continue;
            }
            if let Some(status) = process.death() {
                self.found.insert(place);
                let name = process.name();
                run.history
                    .wrong("DIED", format!("{name} ended by itself: {status}"));
            }
        }
    }
}

fn describe(run: &Run, fault: &Fault) -> String {
    let name = |place: Place| run.processes[place].name();
    match fault {
        Fault::Cut {
            place,
            others,
            way,
            is_silent,
        } => {
            let others: Vec<String> = others.iter().map(|other| name(*other)).collect();
            let how = if *is_silent {
                "silently"
            } else {
                "with errors"
            };
            format!("{} {way:?} {} {how}", name(*place), others.join(" "))
        }
        other => format!("{} {}", other.kind(), name(other.place())),
    }
}

fn begin(run: &Run, fault: &Fault, state: &mut State) -> Outcome<()> {
    let process = &run.processes[fault.place()];
    match fault {
        Fault::Kill(_) => {
            process.kill();
            Ok(())
        }
        Fault::Wipe(_) => {
            operator::note_lost(run, process.node_id()?);
            process.kill();
            process.wipe()
        }
        Fault::Restart(_) => process.signal("TERM"),
        Fault::Pause(_) => process.signal("STOP"),
        Fault::Fill(_) => {
            let path = process.disk().join("ballast");
            fill(&mut File::create(&path).map_err(|e| format!("ballast: {e}"))?);
            Ok(())
        }
        Fault::Errors { calls, step, .. } => {
            let tracer = Tracer::attach(process.pid()?, &process.data(), (*calls, *step))?;
            state.tracers.insert(process.place, tracer);
            Ok(())
        }
        Fault::PowerCut(_) => {
            let image = process.image().ok_or("its disk is no image")?;
            let cut = process.stop().and_then(|()| image.cut_power());
            process.kill();
            cut.and_then(|()| image.unmount())
        }
        Fault::Memory { is_address, .. } => {
            let limit = if *is_address {
                Limit::Address
            } else {
                Limit::Group(Group::create(&process.name())?)
            };
            let restarted = restart(run, process, Condition::Memory(&limit));
            state.limits.insert(process.place, limit);
            restarted?;
            bomb::throw(run, process)
        }
        Fault::Clock { days, .. } => {
            note_clock(run, process.place, *days);
            restart(run, process, Condition::Clock(*days))
        }
        Fault::Cut { is_silent, .. } => state.cuts.cut(run, &ways(fault), *is_silent),
    }
}

fn end(run: &Run, fault: &Fault, state: &mut State) -> Outcome<()> {
    let process = &run.processes[fault.place()];
    match fault {
        Fault::Kill(_) => process.start(),
        Fault::Wipe(_) => {
            state.lost_at = Some(run.history.now());
            process.start()
        }
        Fault::Restart(_) => {
            let ended = process.wait_for_end();
            if ended.is_err() {
                process.kill();
            }
            process.start().and(ended)
        }
        Fault::Errors { .. } => match state.tracers.remove(&process.place) {
            // strace ends with its process, whose end is seen by the watch.
            Some(tracer) => tracer.detach().map(drop),
            None => Ok(()),
        },
        Fault::PowerCut(_) => {
            let image = process.image().ok_or("its disk is no image")?;
            image.mount()?;
            process.start()
        }
        Fault::Memory { .. } => {
            let restarted = restart(run, process, Condition::Normal);
            state.limits.remove(&process.place);
            restarted
        }
        Fault::Clock { .. } => {
            let restarted = restart(run, process, Condition::Normal);
            note_clock(run, process.place, 0);
            restarted
        }
        Fault::Pause(_) => process.signal("CONT"),
        Fault::Fill(_) => {
            fs::remove_file(process.disk().join("ballast")).map_err(|e| format!("ballast: {e}"))
        }
        Fault::Cut { is_silent, .. } => state.cuts.mend(run, &ways(fault), *is_silent),
    }
}

/// Ends a process by SIGTERM and starts it under a condition: a fault of its own, so that nobody
/// expects answers meanwhile.
fn restart(run: &Run, process: &Process, condition: Condition<'_>) -> Outcome<()> {
    let (name, death) = (process.name(), process.death());
    if let Some(status) = death {
        let text = format!("{name} ended by itself: {status}");
        run.history.wrong("DIED", text);
    }
    let (fault, down) = (format!("restart {name}"), vec![process.place]);
    run.history.note(Event::Broken {
        fault: fault.clone(),
        kind: "restart",
        down: down.clone(),
        at: run.history.now(),
    });
    let ended = match death {
        Some(_) => Ok(()),
        None => process.signal("TERM").and_then(|()| process.wait_for_end()),
    };
    if ended.is_err() {
        process.kill();
    }
    let started = process.start_under(condition);
    let at = run.history.now();
    run.history.note(Event::Healed { fault, down, at });
    started.and(ended)
}

fn note_clock(run: &Run, place: Place, days: i64) {
    let at = run.history.now();
    run.history.note(Event::Clock { place, days, at });
}

/// What is broken at the moment.
#[derive(Default)]
struct State {
    cuts: Cuts,
    /// Tracers that have system calls fail.
    tracers: BTreeMap<Place, Tracer>,
    /// Limits of memory.
    limits: BTreeMap<Place, Limit>,
    /// When a disk was lost last, or its node came back without what was on it.
    lost_at: Option<Micros>,
    /// Who is killed only, although it was to lose its disk.
    spared: BTreeSet<Place>,
}

impl State {
    /// The fault of a step. A second disk is lost once everything has its copies again: until then
    /// the process is killed only.
    fn instead(&mut self, run: &Run, step: &Step<'_>) -> Fault {
        let fault = step.planned.fault.clone();
        let Fault::Wipe(place) = fault else {
            return fault;
        };
        let is_spared = if !step.begins {
            self.spared.remove(&place)
        } else if self.may_lose_a_disk(run) {
            self.lost_at = Some(run.history.now());
            false
        } else {
            self.spared.insert(place)
        };
        if is_spared { Fault::Kill(place) } else { fault }
    }

    /// Whether all have answered that nothing lacks copies, a while after the last loss.
    fn may_lose_a_disk(&self, run: &Run) -> bool {
        let Some(at) = self.lost_at else {
            return true;
        };
        let timeout = operator::TIMEOUT_BROKEN;
        let has_all = |place: &Place| operator::copies_lacking(run, *place, timeout) == Ok(0);
        run.history.now() > at + SETTLING
            && operator::forget(run, run.nodes()[0], timeout)
            && run.nodes().iter().all(has_all)
    }
}

/// How many faults cut a way at the moment, by how they do it.
#[derive(Default)]
struct Cuts(BTreeMap<(Place, Place, bool), u32>);

impl Cuts {
    fn cut(&mut self, run: &Run, ways: &[(Place, Place)], is_silent: bool) -> Outcome<()> {
        for (from, to) in ways {
            let count = self.0.entry((*from, *to, is_silent)).or_default();
            *count += 1;
            if *count == 1 {
                run.world.cut(*from, *to, is_silent)?;
            }
        }
        Ok(())
    }

    fn mend(&mut self, run: &Run, ways: &[(Place, Place)], is_silent: bool) -> Outcome<()> {
        for (from, to) in ways {
            let count = self.0.entry((*from, *to, is_silent)).or_default();
            *count -= 1;
            if *count == 0 {
                run.world.mend(*from, *to, is_silent)?;
            }
        }
        Ok(())
    }
}

/// Writes until nothing more goes in.
fn fill(file: &mut File) {
    for bytes in FILL_BYTES {
        let block = vec![0; bytes];
        while file.write_all(&block).is_ok() {}
    }
}

/// From where to where packets are lost.
fn ways(fault: &Fault) -> Vec<(Place, Place)> {
    let Fault::Cut {
        place, others, way, ..
    } = fault
    else {
        return Vec::new();
    };
    let out = others.iter().map(|other| (*place, *other));
    let back = others.iter().map(|other| (*other, *place));
    match way {
        Way::Out => out.collect(),
        Way::In => back.collect(),
        Way::Both => out.chain(back).collect(),
    }
}

//! Carries faults out and heals them, and sees who dies without being told to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::thread;
use std::time::Duration;

use super::Run;
use super::history::{Event, Place};
use super::plan::{Fault, Planned, Way};
use crate::run::Outcome;

/// How often it is looked whether something is due, or dead.
const POLL: Duration = Duration::from_millis(10);

/// Bytes written at once to fill a disk: large steps first, then up to the last page.
const FILL_BYTES: [usize; 2] = [1 << 20, 4 << 10];

/// A step of a plan.
struct Step<'a> {
    at_ms: u64,
    begins: bool,
    planned: &'a Planned,
}

/// Carries a plan out, from now on; all is healed when it returns.
pub(super) fn inject(run: &Run, plan: &[Planned]) {
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
    let mut cuts = Cuts::default();
    for step in steps {
        while run.history.now() < start + step.at_ms * 1_000 {
            watch.look(run);
            thread::sleep(POLL);
        }
        let fault = &step.planned.fault;
        let place = fault.place();
        let down = match fault.is_down() && run.processes[place].role.is_node() {
            true => vec![place],
            false => Vec::new(),
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
        let done = match step.begins {
            true => begin(run, fault, &mut cuts),
            false => end(run, fault, &mut cuts),
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

fn begin(run: &Run, fault: &Fault, cuts: &mut Cuts) -> Outcome<()> {
    let process = &run.processes[fault.place()];
    match fault {
        Fault::Kill(_) => {
            process.kill();
            Ok(())
        }
        Fault::Restart(_) => process.signal("TERM"),
        Fault::Pause(_) => process.signal("STOP"),
        Fault::Fill(_) => {
            let path = process.disk().join("ballast");
            fill(&mut File::create(&path).map_err(|e| format!("ballast: {e}"))?);
            Ok(())
        }
        Fault::Cut { is_silent, .. } => cuts.cut(run, &ways(fault), *is_silent),
    }
}

fn end(run: &Run, fault: &Fault, cuts: &mut Cuts) -> Outcome<()> {
    let process = &run.processes[fault.place()];
    match fault {
        Fault::Kill(_) => process.start(),
        Fault::Restart(_) => {
            let ended = process.wait_for_end();
            if ended.is_err() {
                process.kill();
            }
            process.start().and(ended)
        }
        Fault::Pause(_) => process.signal("CONT"),
        Fault::Fill(_) => {
            fs::remove_file(process.disk().join("ballast")).map_err(|e| format!("ballast: {e}"))
        }
        Fault::Cut { is_silent, .. } => cuts.mend(run, &ways(fault), *is_silent),
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

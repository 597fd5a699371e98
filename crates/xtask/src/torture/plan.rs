//! Which faults happen when, drawn from a seed before the run begins.
//!
//! Invariants: every fault ends within [`LENGTH_MS_MAX`] and before the time is up; a process has
//! one fault of its own at a time; each kind comes once before any comes twice; one clock is wrong at
//! a time. Other faults of different places may overlap.

use std::collections::BTreeSet;

use super::history::Place;
use crate::draw::Draw;

/// The shortest fault: what is shorter is met by the tests of single crashes.
const LENGTH_MS_MIN: u64 = 300;

/// The longest fault: longer than any time a node waits for another.
const LENGTH_MS_MAX: u64 = 8_000;

/// The longest time without a fault.
const PAUSE_MS_MAX: u64 = 1_500;

/// How long a place is left alone after a fault of its own, to start again.
const REST_MS: u64 = 2_000;

/// The most calls of a thread of which one fails.
const ERROR_STEP_MAX: u64 = 4;

/// Days by which a clock is ahead: more than the default retention.
const AHEAD_DAYS: i64 = 40;

/// Days by which a clock is behind: before all records of the run.
const BEHIND_DAYS: i64 = -3;

/// Of 100 faults, how many begin before the one before them has ended.
const OVERLAPPING_PERCENT: usize = 40;

/// How packets are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From the place to the others and back.
    Both,
    /// From the place to the others only.
    Out,
    /// From the others to the place only.
    In,
}

/// System calls of a node that fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Calls {
    /// `fsync` and `fdatasync` fail with EIO.
    Sync,
    /// Writes to files fail with ENOSPC.
    Write,
    /// `rename` and `unlink` fail with EIO.
    Rename,
}

/// Something that breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// SIGKILL, and a new process later.
    Kill(Place),
    /// SIGTERM, and a new process later.
    Restart(Place),
    /// SIGSTOP and SIGCONT.
    Pause(Place),
    /// SIGKILL, and a new process later that finds nothing of what was on the disk.
    Wipe(Place),
    /// The disk of a node is full.
    Fill(Place),
    /// System calls of the running process fail. `step`: one of so many of each thread.
    Errors {
        place: Place,
        calls: Calls,
        step: u64,
    },
    /// The file system loses what was not synced, SIGKILL, and a new process later.
    PowerCut(Place),
    /// SIGTERM, and a new process with little memory, to which a push of very many records is sent.
    /// `is_address`: what it maps is limited, used or not.
    Memory { place: Place, is_address: bool },
    /// SIGTERM, and a new process whose clock is wrong by so many days.
    Clock { place: Place, days: i64 },
    /// The network between a place and others is cut. `is_silent`: packets vanish, otherwise the
    /// sender is told that there is no way.
    Cut {
        place: Place,
        others: Vec<Place>,
        way: Way,
        is_silent: bool,
    },
}

/// Kinds of faults that need tools of the system.
const POWER_CUT: &str = "power cut";
const MEMORY_LIMIT: &str = "memory limit";
const ADDRESS_LIMIT: &str = "address limit";
const CLOCK_AHEAD: &str = "clock ahead";
const CLOCK_BEHIND: &str = "clock behind";

impl Calls {
    const ALL: [Calls; 3] = [Calls::Sync, Calls::Write, Calls::Rename];

    fn kind(self) -> &'static str {
        match self {
            Calls::Sync => "sync errors",
            Calls::Write => "write errors",
            Calls::Rename => "rename errors",
        }
    }
}

impl Fault {
    /// The process or network that it befalls.
    pub(super) fn place(&self) -> Place {
        match self {
            Fault::Kill(place) | Fault::Restart(place) | Fault::Pause(place) => *place,
            Fault::Wipe(place) | Fault::Fill(place) | Fault::Cut { place, .. } => *place,
            Fault::PowerCut(place) | Fault::Memory { place, .. } => *place,
            Fault::Errors { place, .. } | Fault::Clock { place, .. } => *place,
        }
    }

    /// Its kind, for counting.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Fault::Kill(_) => "kill",
            Fault::Restart(_) => "restart",
            Fault::Pause(_) => "pause",
            Fault::Wipe(_) => "lost disk",
            Fault::Fill(_) => "full disk",
            Fault::Errors { calls, .. } => calls.kind(),
            Fault::PowerCut(_) => POWER_CUT,
            Fault::Memory { is_address, .. } => {
                if *is_address {
                    ADDRESS_LIMIT
                } else {
                    MEMORY_LIMIT
                }
            }
            Fault::Clock { days, .. } => {
                if *days > 0 {
                    CLOCK_AHEAD
                } else {
                    CLOCK_BEHIND
                }
            }
            Fault::Cut { way: Way::Both, .. } => "partition",
            Fault::Cut { .. } => "one-way partition",
        }
    }

    /// Whether the process does not run meanwhile.
    pub(super) fn is_down(&self) -> bool {
        matches!(
            self,
            Fault::Kill(_)
                | Fault::Restart(_)
                | Fault::Pause(_)
                | Fault::Wipe(_)
                | Fault::PowerCut(_)
        )
    }

    /// True if a process ends when it begins.
    pub(super) fn ends_a_process(&self) -> bool {
        self.is_down() || matches!(self, Fault::Memory { .. } | Fault::Clock { .. })
    }
}

/// A fault with its time, in milliseconds since the load began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlannedFault {
    pub(super) fault: Fault,
    pub(super) from_ms: u64,
    pub(super) to_ms: u64,
}

/// What there is to break.
#[derive(Clone, Debug)]
pub(super) struct Targets {
    /// Places of nodes.
    pub(super) nodes: Vec<Place>,
    /// Places of those whose disk may be lost, one at a time.
    pub(super) stores: Vec<Place>,
    /// Places of forwarders.
    pub(super) forwarders: Vec<Place>,
    /// Places of those whose disk is an image of a file system, which can lose what was not synced.
    pub(super) images: Vec<Place>,
    /// Whether each place has a network and a disk of its own.
    pub(super) is_isolated: bool,
    /// True if system calls can be made to fail.
    pub(super) has_tracer: bool,
    /// True if the memory of a process can be limited.
    pub(super) has_memory_limits: bool,
    /// True if the clock of a process can be set.
    pub(super) has_clocks: bool,
    /// The only kinds of faults that are drawn; all if there are none.
    pub(super) only: BTreeSet<String>,
}

/// A card of the deck from which faults are drawn.
#[derive(Clone, Copy)]
enum Card {
    Kill,
    Restart,
    Pause,
    KillForwarder,
    Wipe,
    Fill,
    Errors(Calls),
    PowerCut,
    Memory,
    Address,
    ClockAhead,
    ClockBehind,
    Cut(Way),
}

impl Card {
    /// The kind of its faults.
    fn kind(self) -> &'static str {
        match self {
            Card::Kill | Card::KillForwarder => "kill",
            Card::Restart => "restart",
            Card::Pause => "pause",
            Card::Wipe => "lost disk",
            Card::Fill => "full disk",
            Card::Errors(calls) => calls.kind(),
            Card::PowerCut => POWER_CUT,
            Card::Memory => MEMORY_LIMIT,
            Card::Address => ADDRESS_LIMIT,
            Card::ClockAhead => CLOCK_AHEAD,
            Card::ClockBehind => CLOCK_BEHIND,
            Card::Cut(Way::Both) => "partition",
            Card::Cut(Way::Out | Way::In) => "one-way partition",
        }
    }
}

fn is_wanted(targets: &Targets, kind: &str) -> bool {
    targets.only.is_empty() || targets.only.contains(kind)
}

fn deck(targets: &Targets) -> Vec<Card> {
    let mut cards = vec![Card::Kill, Card::Kill, Card::Restart, Card::Pause];
    if !targets.forwarders.is_empty() {
        cards.push(Card::KillForwarder);
    }
    if !targets.stores.is_empty() {
        cards.push(Card::Wipe);
    }
    if targets.is_isolated {
        cards.extend([Card::Fill, Card::Cut(Way::Both), Card::Cut(Way::Both)]);
        cards.extend([Card::Cut(Way::Out), Card::Cut(Way::In)]);
    }
    if targets.has_tracer {
        cards.extend(Calls::ALL.map(Card::Errors));
    }
    if !targets.images.is_empty() {
        cards.push(Card::PowerCut);
    }
    if targets.has_memory_limits {
        cards.push(Card::Memory);
    }
    cards.push(Card::Address);
    if targets.has_clocks {
        cards.extend([Card::ClockAhead, Card::ClockBehind]);
    }
    cards.retain(|card| is_wanted(targets, card.kind()));
    cards
}

/// All kinds of faults that a long run has.
pub(super) fn kinds(targets: &Targets) -> Vec<&'static str> {
    let kinds: BTreeSet<&str> = deck(targets).into_iter().map(Card::kind).collect();
    kinds.into_iter().collect()
}

/// Draws the faults of a run.
pub(super) fn plan(draw: &mut Draw, targets: &Targets, length_ms: u64) -> Vec<PlannedFault> {
    let mut planned: Vec<PlannedFault> = Vec::new();
    let mut cards = Vec::new();
    let mut at = draw.within(LENGTH_MS_MIN, PAUSE_MS_MAX);
    loop {
        if cards.is_empty() {
            cards = deck(targets);
            draw.shuffle(&mut cards);
        }
        let Some(card) = cards.pop() else {
            return planned;
        };
        // Most are short, so that there are many.
        let long = draw.within(LENGTH_MS_MIN, LENGTH_MS_MAX);
        let to_ms = at + draw.within(LENGTH_MS_MIN, long + 1);
        if to_ms > length_ms {
            return planned;
        }
        let card_fault = match card {
            Card::ClockAhead | Card::ClockBehind if has_wrong_clock(&planned, at) => None,
            _ => fault(draw, targets, card, &busy(&planned, at)),
        };
        match card_fault {
            Some(fault) => planned.push(PlannedFault {
                fault,
                from_ms: at,
                to_ms,
            }),
            // Later, when there is somebody whom it may befall.
            None => cards.insert(0, card),
        }
        at = if draw.below(100) < OVERLAPPING_PERCENT {
            draw.within(at + 1, to_ms)
        } else {
            to_ms + draw.within(0, PAUSE_MS_MAX)
        };
    }
}

/// Places that have a fault at this time, or had one a moment ago.
fn busy(planned: &[PlannedFault], at: u64) -> Vec<Place> {
    let near = planned.iter().filter(|p| at < p.to_ms + REST_MS);
    near.map(|p| p.fault.place()).collect()
}

/// True if a clock is wrong at this time, or was a moment ago: two that are wrong alike would agree.
fn has_wrong_clock(planned: &[PlannedFault], at: u64) -> bool {
    let mut near = planned.iter().filter(|p| at < p.to_ms + REST_MS);
    near.any(|p| matches!(p.fault, Fault::Clock { .. }))
}

/// A fault of this kind at a place that has none.
fn fault(draw: &mut Draw, targets: &Targets, card: Card, busy: &[Place]) -> Option<Fault> {
    let of = match card {
        Card::KillForwarder => &targets.forwarders,
        Card::Wipe => &targets.stores,
        Card::PowerCut => &targets.images,
        // A forwarder is cut off as well.
        Card::Cut(Way::Both) => &[&targets.nodes[..], &targets.forwarders[..]].concat(),
        _ => &targets.nodes,
    };
    let free: Vec<Place> = of.iter().copied().filter(|p| !busy.contains(p)).collect();
    if free.is_empty() {
        return None;
    }
    let place = *draw.one(&free);
    Some(match card {
        Card::Kill | Card::KillForwarder => Fault::Kill(place),
        Card::Restart => Fault::Restart(place),
        Card::Pause => Fault::Pause(place),
        Card::Wipe => Fault::Wipe(place),
        Card::Fill => Fault::Fill(place),
        Card::Errors(calls) => Fault::Errors {
            place,
            calls,
            step: draw.within(1, ERROR_STEP_MAX + 1),
        },
        Card::PowerCut => Fault::PowerCut(place),
        Card::Memory | Card::Address => Fault::Memory {
            place,
            is_address: matches!(card, Card::Address),
        },
        Card::ClockAhead => Fault::Clock {
            place,
            days: AHEAD_DAYS,
        },
        Card::ClockBehind => Fault::Clock {
            place,
            days: BEHIND_DAYS,
        },
        Card::Cut(way) => {
            let mut others = targets.nodes.clone();
            others.retain(|other| *other != place);
            draw.shuffle(&mut others);
            others.truncate(1 + draw.below(others.len()));
            others.sort_unstable();
            let is_silent = draw.below(3) > 0;
            Fault::Cut {
                place,
                others,
                way,
                is_silent,
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn targets(is_isolated: bool) -> Targets {
        Targets {
            nodes: vec![0, 1, 2],
            stores: vec![1, 2],
            forwarders: vec![3, 4],
            images: if is_isolated {
                vec![0, 1, 2]
            } else {
                Vec::new()
            },
            is_isolated,
            has_tracer: is_isolated,
            has_memory_limits: is_isolated,
            has_clocks: is_isolated,
            only: BTreeSet::new(),
        }
    }

    /// The length of a run that has all kinds.
    const LENGTH_MS: u64 = 90_000;

    #[test]
    fn faults_are_bounded_and_of_all_kinds() {
        for seed in 0..200 {
            let planned = plan(&mut Draw::new(seed, 1), &targets(true), LENGTH_MS);
            let found: BTreeSet<&str> = planned.iter().map(|p| p.fault.kind()).collect();
            let all: BTreeSet<&str> = kinds(&targets(true)).into_iter().collect();
            assert_eq!(found, all, "seed {seed}");
            for p in &planned {
                let length = p.to_ms - p.from_ms;
                assert!((LENGTH_MS_MIN..=LENGTH_MS_MAX).contains(&length), "{p:?}");
                assert!(p.to_ms <= LENGTH_MS, "seed {seed}: {p:?}");
            }
            for (at, one) in planned.iter().enumerate() {
                let others = planned[at + 1..].iter();
                let mut same = others.filter(|p| p.fault.place() == one.fault.place());
                assert!(same.all(|p| p.from_ms >= one.to_ms), "seed {seed}: {one:?}");
            }
        }
    }

    #[test]
    fn one_clock_is_wrong_at_a_time() {
        let targets = Targets {
            only: [CLOCK_AHEAD, CLOCK_BEHIND].map(str::to_owned).into(),
            ..targets(true)
        };
        let mut found = BTreeSet::new();
        for seed in 0..50 {
            let planned = plan(&mut Draw::new(seed, 1), &targets, LENGTH_MS);
            let apart = |pair: &[PlannedFault]| pair[1].from_ms >= pair[0].to_ms + REST_MS;
            assert!(planned.windows(2).all(apart), "seed {seed}: {planned:?}");
            found.extend(planned.iter().map(|p| p.fault.kind()));
        }
        assert_eq!(found, BTreeSet::from([CLOCK_AHEAD, CLOCK_BEHIND]));
    }

    #[test]
    fn power_is_cut_of_images_only() {
        let targets = Targets {
            images: vec![2],
            ..targets(true)
        };
        for seed in 0..50 {
            let planned = plan(&mut Draw::new(seed, 1), &targets, LENGTH_MS);
            let is_cut = |p: &&PlannedFault| p.fault.kind() == POWER_CUT;
            let mut cuts = planned.iter().filter(is_cut);
            assert!(cuts.all(|p| p.fault == Fault::PowerCut(2)), "seed {seed}");
        }
    }

    #[test]
    fn calls_fail_always_or_now_and_then() {
        let mut found: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        for seed in 0..200 {
            let planned = plan(&mut Draw::new(seed, 1), &targets(true), LENGTH_MS);
            for p in planned {
                if let Fault::Errors { calls, step, .. } = p.fault {
                    assert!(!p.fault.is_down() && !p.fault.ends_a_process());
                    found.entry(calls.kind()).or_default().insert(step);
                }
            }
        }
        let steps: BTreeSet<u64> = (1..=ERROR_STEP_MAX).collect();
        let all = Calls::ALL.map(|calls| (calls.kind(), steps.clone()));
        assert_eq!(found, BTreeMap::from(all));
    }

    #[test]
    fn what_tools_are_missing_for_is_neither_planned_nor_asked_for() {
        let without = Targets {
            images: Vec::new(),
            has_tracer: false,
            has_memory_limits: false,
            has_clocks: false,
            ..targets(true)
        };
        let planned = plan(&mut Draw::new(3, 1), &without, LENGTH_MS);
        let found: BTreeSet<&str> = planned.iter().map(|p| p.fault.kind()).collect();
        let all: BTreeSet<&str> = kinds(&without).into_iter().collect();
        assert_eq!(found, all);
        let mut left_out = Calls::ALL.map(Calls::kind).to_vec();
        left_out.extend([POWER_CUT, MEMORY_LIMIT, CLOCK_AHEAD, CLOCK_BEHIND]);
        assert!(left_out.iter().all(|kind| !all.contains(kind)));
    }

    #[test]
    fn a_run_can_be_narrowed_down() {
        for card in deck(&targets(true)) {
            let kind = card.kind();
            let only = BTreeSet::from([kind.to_owned()]);
            let targets = Targets {
                only,
                ..targets(true)
            };
            let planned = plan(&mut Draw::new(3, 1), &targets, LENGTH_MS);
            assert!(planned.iter().all(|p| p.fault.kind() == kind), "{kind}");
            assert!(!planned.is_empty() && kinds(&targets) == [kind], "{kind}");
        }
    }

    #[test]
    fn a_seed_names_a_plan() {
        let plan = |seed| plan(&mut Draw::new(seed, 1), &targets(true), 60_000);
        assert_eq!(plan(7), plan(7));
        assert_ne!(plan(7), plan(8));
    }

    #[test]
    fn without_networks_of_their_own_processes_still_die() {
        let planned = plan(&mut Draw::new(1, 1), &targets(false), 60_000);
        assert!(planned.len() > 5, "{planned:?}");
        let mut found = planned.iter().map(|p| p.fault.kind());
        assert!(found.all(|kind| kinds(&targets(false)).contains(&kind)));
    }
}

//! Which faults happen when, drawn from a seed before the run begins.
//!
//! Invariants: every fault ends within [`LENGTH_MS_MAX`] and before the time is up; a process has
//! one fault of its own at a time; each kind comes once before any comes twice. Faults of different
//! places may overlap.

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
    /// The network between a place and others is cut. `is_silent`: packets vanish, otherwise the
    /// sender is told that there is no way.
    Cut {
        place: Place,
        others: Vec<Place>,
        way: Way,
        is_silent: bool,
    },
}

impl Fault {
    /// The process or network that it befalls.
    pub(super) fn place(&self) -> Place {
        match self {
            Fault::Kill(place) | Fault::Restart(place) | Fault::Pause(place) => *place,
            Fault::Wipe(place) | Fault::Fill(place) | Fault::Cut { place, .. } => *place,
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
            Fault::Cut { way: Way::Both, .. } => "partition",
            Fault::Cut { .. } => "one-way partition",
        }
    }

    /// Whether the process does not run meanwhile.
    pub(super) fn is_down(&self) -> bool {
        matches!(
            self,
            Fault::Kill(_) | Fault::Restart(_) | Fault::Pause(_) | Fault::Wipe(_)
        )
    }
}

/// A fault with its time, in milliseconds since the load began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Planned {
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
    /// Whether each place has a network and a disk of its own.
    pub(super) is_isolated: bool,
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
    Cut(Way),
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
    cards
}

/// All kinds of faults that a long run has.
pub(super) fn kinds(targets: &Targets) -> Vec<&'static str> {
    let mut kinds = vec!["kill", "restart", "pause"];
    if !targets.stores.is_empty() {
        kinds.push("lost disk");
    }
    if targets.is_isolated {
        kinds.extend(["full disk", "partition", "one-way partition"]);
    }
    kinds
}

/// Draws the faults of a run.
pub(super) fn plan(draw: &mut Draw, targets: &Targets, length_ms: u64) -> Vec<Planned> {
    let mut planned: Vec<Planned> = Vec::new();
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
        match fault(draw, targets, card, &busy(&planned, at)) {
            Some(fault) => planned.push(Planned {
                fault,
                from_ms: at,
                to_ms,
            }),
            // Later, when there is somebody whom it may befall.
            None => cards.insert(0, card),
        }
        at = match draw.below(100) < OVERLAPPING_PERCENT {
            true => draw.within(at + 1, to_ms),
            false => to_ms + draw.within(0, PAUSE_MS_MAX),
        };
    }
}

/// Places that have a fault at this time, or had one a moment ago.
fn busy(planned: &[Planned], at: u64) -> Vec<Place> {
    let near = planned.iter().filter(|p| at < p.to_ms + REST_MS);
    near.map(|p| p.fault.place()).collect()
}

/// A fault of this kind at a place that has none.
fn fault(draw: &mut Draw, targets: &Targets, card: Card, busy: &[Place]) -> Option<Fault> {
    let of = match card {
        Card::KillForwarder => &targets.forwarders,
        Card::Wipe => &targets.stores,
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
    use std::collections::BTreeSet;

    use super::*;

    fn targets(is_isolated: bool) -> Targets {
        Targets {
            nodes: vec![0, 1, 2],
            stores: vec![1, 2],
            forwarders: vec![3, 4],
            is_isolated,
        }
    }

    #[test]
    fn faults_are_bounded_and_of_all_kinds() {
        for seed in 0..200 {
            let planned = plan(&mut Draw::new(seed, 1), &targets(true), 60_000);
            let found: BTreeSet<&str> = planned.iter().map(|p| p.fault.kind()).collect();
            let all: BTreeSet<&str> = kinds(&targets(true)).into_iter().collect();
            assert_eq!(found, all, "seed {seed}");
            for p in &planned {
                let length = p.to_ms - p.from_ms;
                assert!((LENGTH_MS_MIN..=LENGTH_MS_MAX).contains(&length), "{p:?}");
                assert!(p.to_ms <= 60_000, "seed {seed}: {p:?}");
            }
            for (at, one) in planned.iter().enumerate() {
                let others = planned[at + 1..].iter();
                let mut same = others.filter(|p| p.fault.place() == one.fault.place());
                assert!(same.all(|p| p.from_ms >= one.to_ms), "seed {seed}: {one:?}");
            }
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

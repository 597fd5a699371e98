//! When an answer is late, and whether another node may be asked for it, too.
//!
//! After Dean and Barroso, "The Tail at Scale" (Communications of the ACM, 2013): a call that takes
//! longer than nearly all lately is made again elsewhere, and the first answer counts.
//!
//! Invariants:
//! - Of all calls at most one in [`HEDGES_ONE_IN`] is made again, and [`HEDGES_BURST`] more, however
//!   late all are: what makes every node slow must not be made worse.
//! - What a late node was asked for is taken either from it or from those that were asked in its
//!   place, all of them; never a part from each.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use logpond_segment::sources::SourceSet;

use crate::question::{Question, Task, TaskId};

/// Calls whose times are remembered: some seconds of a node that is asked now and then.
const CALLS_MAX: usize = 256;

/// With fewer known times nothing is late before [`PATIENCE_UNKNOWN`].
const CALLS_MIN: usize = 16;

/// A call is late when it takes longer than all but one in so many did.
const LATE_ONE_IN: usize = 20;

/// Nothing is late before this: a busy machine takes so long to run a thread.
const PATIENCE_MIN: Duration = Duration::from_millis(20);

/// What is late while little is known.
const PATIENCE_UNKNOWN: Duration = Duration::from_millis(500);

/// One further call for so many calls: 5 % more load.
pub const HEDGES_ONE_IN: u32 = 20;

/// Further calls that may be made at once after a quiet time: as much as one question to a cluster of
/// a few nodes, one of which has just stopped, needs.
pub const HEDGES_BURST: u32 = 8;

/// How long calls took lately.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    times: VecDeque<Duration>,
}

impl Lateness {
    /// Notes how long a call took, or how long it had taken when nobody waited for it any more.
    pub fn note(&mut self, took: Duration) {
        if self.times.len() == CALLS_MAX {
            self.times.pop_front();
        }
        self.times.push_back(took);
    }

    /// How long a call may take until it is late.
    pub fn patience(&self) -> Duration {
        if self.times.len() < CALLS_MIN {
            return PATIENCE_UNKNOWN;
        }
        let mut times: Vec<Duration> = self.times.iter().copied().collect();
        let rank = times.len() - 1 - times.len() / LATE_ONE_IN;
        let (_, quantile, _) = times.select_nth_unstable(rank);
        (*quantile).max(PATIENCE_MIN)
    }
}

/// How many further calls may be made.
#[derive(Clone, Debug)]
pub struct Budget {
    /// In calls that have to be made for one, [`HEDGES_ONE_IN`] for each.
    credit: u32,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget {
            credit: HEDGES_BURST * HEDGES_ONE_IN,
        }
    }
}

impl Budget {
    /// Notes that a call was made.
    pub fn earn(&mut self) {
        self.credit = (self.credit + 1).min(HEDGES_BURST * HEDGES_ONE_IN);
    }

    /// Whether so many further calls may be made now; if so, they are.
    pub fn spend(&mut self, calls: usize) -> bool {
        let calls = u32::try_from(calls).unwrap_or(u32::MAX);
        let left = self.credit.checked_sub(calls.saturating_mul(HEDGES_ONE_IN));
        left.map(|left| self.credit = left).is_some()
    }
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// With an answer.
    Done(T),
    /// Something of what was asked for is not there, or no longer.
    Gone,
    /// Without an answer.
    Failed,
}

/// The effect of a finished call on its question.
#[derive(Clone, Debug)]
pub enum CallOutcome<T> {
    /// The task was done; its receipt is yet to be given to the question.
    Done(Task, T),
    /// It was not, and the question knows. Nobody does the same.
    Undone(Task),
    /// Others did it first, and nobody waits for it.
    Overtaken(Task),
}

/// A late call, and those that do the same together.
#[derive(Clone, Debug)]
struct Race<T> {
    late: TaskId,
    others: Vec<TaskId>,
    /// Those of the others that are done.
    done: Vec<(Task, T)>,
}

/// The calls of a question that are under way.
#[derive(Clone, Debug)]
pub struct Races<T> {
    waiting: BTreeMap<TaskId, Task>,
    races: Vec<Race<T>>,
}

impl<T> Default for Races<T> {
    fn default() -> Races<T> {
        Races {
            waiting: BTreeMap::new(),
            races: Vec::new(),
        }
    }
}

impl<T> Races<T> {
    /// Notes that a node is asked.
    pub fn begin(&mut self, task: Task) {
        self.waiting.insert(task.id, task);
    }

    /// Notes that these are asked ([`Question::hedge`]), as well as the late one.
    pub fn hedge(&mut self, late: TaskId, others: Vec<Task>) {
        self.races.push(Race {
            late,
            others: others.iter().map(|task| task.id).collect(),
            done: Vec::new(),
        });
        others.into_iter().for_each(|task| self.begin(task));
    }

    /// The calls that are waited for.
    pub fn waiting(&self) -> impl Iterator<Item = &Task> {
        self.waiting.values()
    }

    /// Notes how a call ended; gives what follows. Nothing follows from one that nobody waits for.
    pub fn ended(
        &mut self,
        question: &mut Question,
        id: TaskId,
        outcome: Outcome<T>,
    ) -> Vec<CallOutcome<T>> {
        let Some(task) = self.waiting.remove(&id) else {
            return Vec::new();
        };
        let mut races = self.races.iter();
        let at = races.position(|race| race.late == id || race.others.contains(&id));
        let race = at.map(|at| self.races.swap_remove(at));
        match outcome {
            Outcome::Done(answer) => match race {
                None => vec![CallOutcome::Done(task, answer)],
                Some(race) => self.done(question, race, task, answer),
            },
            Outcome::Gone => {
                question.receipt(id, &SourceSet::new());
                self.undone(question, race, task)
            }
            Outcome::Failed => {
                question.failed(id);
                self.undone(question, race, task)
            }
        }
    }

    fn done(
        &mut self,
        question: &mut Question,
        mut race: Race<T>,
        task: Task,
        answer: T,
    ) -> Vec<CallOutcome<T>> {
        if task.id == race.late {
            self.call_off(question, &race);
            return vec![CallOutcome::Done(task, answer)];
        }
        race.done.push((task, answer));
        if race.done.len() < race.others.len() {
            self.races.push(race);
            return Vec::new();
        }
        let late = self.waiting.remove(&race.late);
        question.give_over(race.late);
        // For the rest of the question it would be late again.
        late.iter().for_each(|late| question.avoid(late.node));
        let mut ended: Vec<CallOutcome<T>> = late.into_iter().map(CallOutcome::Overtaken).collect();
        ended.extend(
            race.done
                .into_iter()
                .map(|(task, answer)| CallOutcome::Done(task, answer)),
        );
        ended
    }

    fn undone(
        &mut self,
        question: &mut Question,
        race: Option<Race<T>>,
        task: Task,
    ) -> Vec<CallOutcome<T>> {
        match race {
            None => vec![CallOutcome::Undone(task)],
            // The others are calls like any from now on.
            Some(race) if race.late == task.id => {
                let done = race.done.into_iter();
                done.map(|(task, answer)| CallOutcome::Done(task, answer))
                    .collect()
            }
            // Without this one the others cannot do it all.
            Some(race) => {
                self.call_off(question, &race);
                Vec::new()
            }
        }
    }

    /// The others are not needed.
    fn call_off(&mut self, question: &mut Question, race: &Race<T>) {
        for other in &race.others {
            self.waiting.remove(other);
            question.give_over(*other);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use logpond_record::{Id, Incarnation, SourceId, TimeRange, Timestamp};
    use proptest::prelude::*;

    use super::*;
    use crate::question::Collection;
    use crate::{Fate, HeldSegment, IndexedInventory, Inventory, NodeId, ProcessId, Registry};

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn late_is_what_nearly_all_were_not() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.patience(), PATIENCE_UNKNOWN);
        (0..CALLS_MIN).for_each(|_| lateness.note(MS));
        assert_eq!(lateness.patience(), PATIENCE_MIN);
        (0..CALLS_MAX).for_each(|n| lateness.note(100 * MS + MS * n as u32));
        // 12 of 256 took longer.
        assert_eq!(lateness.patience(), 343 * MS);
        // What was long ago counts no more.
        (0..CALLS_MAX).for_each(|_| lateness.note(50 * MS));
        assert_eq!(lateness.patience(), 50 * MS);
    }

    /// A node with segments of one source each.
    fn node(number: u128, held: &[u64]) -> Arc<IndexedInventory> {
        let incarnation = Incarnation(5);
        let mut inventory = Inventory::empty(NodeId(number), ProcessId(number));
        let segment = |sequence: &u64| HeldSegment {
            id: Id(number << 8 | u128::from(*sequence)),
            digest: 0,
            bytes: 1,
            rows: 1,
            time_min: Timestamp(0),
            time_max: Timestamp(0),
            received_min: Timestamp(0),
            received_max: Timestamp(0),
            is_remote: false,
            sources: SourceSet::from_iter([SourceId {
                incarnation,
                sequence: *sequence,
            }]),
        };
        inventory.segments = Arc::new(held.iter().map(segment).collect());
        let mut registry = Registry::default();
        registry.note(incarnation, Fate::born(NodeId(1), Timestamp(0)));
        registry.seal(incarnation, 4);
        inventory.registry = Arc::new(registry);
        Arc::new(IndexedInventory::new(inventory))
    }

    /// In whatever order calls end and however, everything that was asked for is done once, or known
    /// to be undone.
    fn check(held: &[Vec<u64>], ends: &[(u8, usize)]) -> Result<(), TestCaseError> {
        let mut collection = Collection::new(Registry::default(), []);
        for (number, held) in (1..).zip(held) {
            collection.answered(node(number, held));
        }
        let none = SourceSet::new();
        let (mut question, tasks) =
            Question::new(collection.finish(), none, TimeRange::ALL, None, 1);
        let asked = tasks.iter().fold(SourceSet::new(), |mut all, task| {
            all.union_with(&task.share.sources);
            all
        });
        let mut races: Races<()> = Races::default();
        tasks.into_iter().for_each(|task| races.begin(task));
        let (mut done, mut undone) = (SourceSet::new(), SourceSet::new());
        let mut hedged: BTreeSet<TaskId> = BTreeSet::new();
        let mut ends = ends.iter().copied().chain(std::iter::repeat((0, 0)));
        while let Some((what, which)) = ends.next().filter(|_| races.waiting().count() > 0) {
            let count = races.waiting().count();
            let id = races.waiting().nth(which % count).map(|task| task.id);
            let Some(id) = id else { break };
            let outcome = match what {
                0 => Outcome::Done(()),
                1 => Outcome::Gone,
                2 => Outcome::Failed,
                _ if hedged.insert(id) => {
                    let others = question.hedge(id);
                    hedged.extend(others.iter().map(|other| other.id));
                    if !others.is_empty() {
                        races.hedge(id, others);
                    }
                    continue;
                }
                _ => Outcome::Done(()),
            };
            for ended in races.ended(&mut question, id, outcome) {
                match ended {
                    CallOutcome::Done(task, ()) => {
                        prop_assert!(done.is_disjoint(&task.share.sources), "twice");
                        prop_assert!(question.receipt(task.id, &task.share.sources));
                        done.union_with(&task.share.sources);
                    }
                    CallOutcome::Undone(task) => undone.union_with(&task.share.sources),
                    CallOutcome::Overtaken(_) => {}
                }
            }
        }
        prop_assert!(done.is_disjoint(&undone));
        undone.union_with(&done);
        prop_assert_eq!(undone, asked);
        prop_assert_eq!(question.waiting().count(), 0);
        Ok(())
    }

    proptest! {
        #[test]
        fn all_is_done_once_or_known_to_be_undone(
            held in prop::collection::vec(prop::collection::btree_set(0u64..4, 1..4), 1..4),
            ends in prop::collection::vec((0u8..6, 0usize..4), 0..20),
        ) {
            let held: Vec<Vec<u64>> = held.into_iter().map(|set| set.into_iter().collect()).collect();
            check(&held, &ends)?;
        }

        #[test]
        fn further_calls_are_few(
            steps in prop::collection::vec(prop_oneof![3 => Just(0usize), 1 => 1usize..12], 0..400),
        ) {
            let mut budget = Budget::default();
            let (mut calls, mut hedges) = (0, 0);
            for step in steps {
                if step == 0 {
                    budget.earn();
                    calls += 1;
                } else if budget.spend(step) {
                    hedges += step as u32;
                }
                prop_assert!(hedges <= calls / HEDGES_ONE_IN + HEDGES_BURST);
            }
        }
    }
}

//! What a node's store holds, and what it says of that to others (CLUSTER R5, R6).
//!
//! Invariants:
//! - A source is held while a live segment lists it. The live segments change only here, and each
//!   way in which one may go has its own check, made in the same step: by a merge only if the other
//!   live ones list all its sources ([`Holdings::retire`]), by giving up only what an attempt has
//!   flagged and others have confirmed ([`Holdings::give_up`]), by expiry, or by damage.
//! - An answer names only sources that are held and that no attempt of this node has flagged; a
//!   node that is being emptied names none.
//! - A flag lives in memory. A process that ends has given up nothing.
//!
//! A journal file is no holding. It is never named in an answer, so giving it up needs no flag: if
//! no store flagged a source after the ingester had begun to ask, those that answered hold it
//! still; else the last to flag it that dropped it had as many answers as it takes, from nodes that
//! have it still. For the same reason an ingester may count the answer of its own store.

use std::collections::BTreeMap;

use logpond_record::Id;
use logpond_segment::sources::SourceSet;

use crate::give_up::{Attempt, WhoHolds};

/// What a node's store holds at this moment.
#[derive(Clone, Debug, Default)]
pub struct Holdings {
    live: BTreeMap<Id, SourceSet>,
    /// The union of `live`.
    stored: SourceSet,
    flags: BTreeMap<Attempt, SourceSet>,
    is_draining: bool,
    /// What its bucket lists, as far as it has read there, if it has one.
    listed: Option<SourceSet>,
}

impl Holdings {
    /// What the footers of the valid segments of a directory list.
    pub fn new(live: impl IntoIterator<Item = (Id, SourceSet)>) -> Holdings {
        let mut holdings = Holdings::default();
        for (id, sources) in live {
            holdings.add(id, sources);
        }
        holdings
    }

    /// Adds a segment whose file and name are durable.
    pub fn add(&mut self, id: Id, sources: SourceSet) {
        self.stored.union_with(&sources);
        self.live.insert(id, sources);
    }

    /// The live segments and their sources.
    pub fn live(&self) -> impl Iterator<Item = (Id, &SourceSet)> {
        self.live.iter().map(|(id, sources)| (*id, sources))
    }

    /// The sources that live segments list.
    pub fn stored(&self) -> &SourceSet {
        &self.stored
    }

    /// Whether the node is being emptied.
    pub fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// Says whether the node is being emptied: it counts as a holder of nothing from then on.
    pub fn set_draining(&mut self, is_draining: bool) {
        self.is_draining = is_draining;
    }

    /// Says what this node's bucket lists, if it has one. Nothing of it is held here: what is listed
    /// needs no disk of this node (CLUSTER R14).
    pub fn set_listed(&mut self, listed: Option<SourceSet>) {
        self.listed = listed;
    }

    /// What this node's bucket lists, if it has one.
    pub fn listed(&self) -> Option<&SourceSet> {
        self.listed.as_ref()
    }

    /// Those that this node's bucket lists, of the sources that are asked for.
    pub fn answer_listed(&self, question: &WhoHolds) -> Option<SourceSet> {
        self.listed().map(|listed| listed.common(&question.sources))
    }

    /// Which of the sources that are asked for are held, and are not being given up.
    pub fn answer(&self, question: &WhoHolds) -> SourceSet {
        if self.is_draining {
            return SourceSet::new();
        }
        let held = self.stored.common(&question.sources);
        let flags = self.flags.values();
        flags.fold(held, |held, flagged| held.without(flagged))
    }

    /// Begins to give sources up: no answer names them until the attempt is over.
    pub fn flag(&mut self, attempt: Attempt, sources: SourceSet) {
        self.flags.insert(attempt, sources);
    }

    /// Ends an attempt, whatever came of it.
    pub fn unflag(&mut self, attempt: Attempt) {
        self.flags.remove(&attempt);
    }

    /// Retires segments, if the other live ones list all their sources (R5). What is not live is
    /// left out.
    ///
    /// # Errors
    /// With the sources that no other live segment lists; then nothing has changed.
    pub fn retire(&mut self, ids: &[Id]) -> Result<(), SourceSet> {
        let lacking = self.only_in(ids);
        if lacking.is_empty() {
            self.remove(ids);
            return Ok(());
        }
        Err(lacking)
    }

    /// Drops a segment that an attempt has flagged, if each of its sources is in another live
    /// segment or was `confirmed` by others (R6).
    ///
    /// # Errors
    /// With the sources for which that is not so; then nothing has changed.
    pub fn give_up(
        &mut self,
        id: Id,
        attempt: Attempt,
        confirmed: &SourceSet,
    ) -> Result<(), SourceSet> {
        let flagged = self.flags.get(&attempt).cloned().unwrap_or_default();
        let lacking = self.only_in(&[id]).without(&flagged.common(confirmed));
        if lacking.is_empty() {
            self.remove(&[id]);
            return Ok(());
        }
        Err(lacking)
    }

    /// Removes segments that are damaged, or whose rows have all outlived their retention (R8).
    /// Gives the sources that are held no more, for which others should be told.
    pub fn lose(&mut self, ids: &[Id]) -> SourceSet {
        let lost = self.only_in(ids);
        self.remove(ids);
        lost
    }

    /// The sources of segments that no other live segment lists.
    fn only_in(&self, ids: &[Id]) -> SourceSet {
        let mut only = SourceSet::new();
        for sources in ids.iter().filter_map(|id| self.live.get(id)) {
            only.union_with(sources);
        }
        let others = self.live.iter().filter(|(id, _)| !ids.contains(id));
        for (_, sources) in others {
            if only.is_empty() {
                break;
            }
            only = only.without(sources);
        }
        only
    }

    fn remove(&mut self, ids: &[Id]) {
        let gone = self.only_in(ids);
        self.live.retain(|id, _| !ids.contains(id));
        self.stored = self.stored.without(&gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logpond_record::{Incarnation, SourceId};
    use proptest::prelude::*;

    fn set(numbers: &[u64]) -> SourceSet {
        let each = numbers.iter();
        each.map(|sequence| SourceId {
            incarnation: Incarnation(1),
            sequence: *sequence,
        })
        .collect()
    }

    fn holdings(live: &[(u128, &[u64])]) -> Holdings {
        let each = live.iter();
        Holdings::new(each.map(|(id, numbers)| (Id(*id), set(numbers))))
    }

    fn answer(holdings: &Holdings, numbers: &[u64]) -> SourceSet {
        holdings.answer(&WhoHolds::new(Attempt(9), set(numbers)))
    }

    #[test]
    fn inputs_retire_once_their_output_is_there() {
        let mut holdings = holdings(&[(1, &[1]), (2, &[2]), (3, &[1, 2])]);
        assert_eq!(holdings.retire(&[Id(1), Id(2)]), Ok(()));
        assert_eq!(holdings.retire(&[Id(3)]), Err(set(&[1, 2])));
        assert_eq!(holdings.stored(), &set(&[1, 2]));
    }

    /// The output was given away between the moment when it was written and the one when its inputs
    /// were to retire.
    #[test]
    fn inputs_stay_when_their_output_has_gone() {
        let mut holdings = holdings(&[(1, &[1]), (2, &[2]), (3, &[1, 2])]);
        holdings.flag(Attempt(1), set(&[1, 2]));
        assert_eq!(
            holdings.give_up(Id(3), Attempt(1), &set(&[1, 2])),
            Ok(()),
            "others have it"
        );
        assert_eq!(holdings.retire(&[Id(1), Id(2)]), Err(set(&[1, 2])));
        assert_eq!(holdings.stored(), &set(&[1, 2]));
    }

    #[test]
    fn what_is_being_given_up_is_not_named() {
        let mut holdings = holdings(&[(1, &[1, 2]), (2, &[3])]);
        assert_eq!(answer(&holdings, &[2, 3, 4]), set(&[2, 3]));
        holdings.flag(Attempt(1), set(&[2]));
        holdings.flag(Attempt(2), set(&[2, 3]));
        assert_eq!(answer(&holdings, &[1, 2, 3]), set(&[1]));
        holdings.unflag(Attempt(2));
        assert_eq!(answer(&holdings, &[1, 2, 3]), set(&[1, 3]));
        holdings.unflag(Attempt(1));
        holdings.set_draining(true);
        assert!(answer(&holdings, &[1, 2, 3]).is_empty());
    }

    #[test]
    fn only_what_is_flagged_and_confirmed_goes() {
        let mut holdings = holdings(&[(1, &[1, 2]), (2, &[2])]);
        let all = set(&[1, 2]);
        assert_eq!(holdings.give_up(Id(1), Attempt(1), &all), Err(set(&[1])));
        holdings.flag(Attempt(1), set(&[1]));
        assert_eq!(
            holdings.give_up(Id(1), Attempt(1), &set(&[2])),
            Err(set(&[1]))
        );
        assert_eq!(holdings.give_up(Id(1), Attempt(2), &all), Err(set(&[1])));
        assert_eq!(holdings.give_up(Id(1), Attempt(1), &set(&[1])), Ok(()));
        assert_eq!(holdings.stored(), &set(&[2]));
        assert_eq!(holdings.lose(&[Id(2)]), set(&[2]));
        assert!(holdings.stored().is_empty());
    }

    proptest! {
        #[test]
        fn what_is_stored_is_what_live_segments_list(
            steps in prop::collection::vec((0u128..6, prop::collection::vec(0u64..8, 1..4), 0u8..4), 0..30)
        ) {
            let mut holdings = Holdings::default();
            for (id, numbers, what) in steps {
                let before = holdings.stored().clone();
                match what {
                    0 | 1 if !holdings.live.contains_key(&Id(id)) => holdings.add(Id(id), set(&numbers)),
                    2 => {
                        let _ = holdings.retire(&[Id(id), Id(id + 1)]);
                        prop_assert_eq!(holdings.stored(), &before, "a merge takes nothing away");
                    }
                    _ => {
                        let lost = holdings.lose(&[Id(id)]);
                        prop_assert_eq!(holdings.stored(), &before.without(&lost));
                    }
                }
                let mut listed = SourceSet::new();
                holdings.live().for_each(|(_, sources)| listed.union_with(sources));
                prop_assert_eq!(holdings.stored(), &listed);
            }
        }
    }
}

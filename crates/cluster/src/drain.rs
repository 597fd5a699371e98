//! Leaving a cluster without taking anything along.
//!
//! An ingester stops to take records in, closes its journal, seals its incarnation and waits until
//! stores have everything. A store that is being emptied is given nothing and counts as a holder
//! of nothing ([`Holdings::set_draining`]); [`crate::repair::Repair`] of a node that is
//! [`crate::repair::Presence::Draining`] sends what others lack and gives the rest up. A node that
//! is both does the one and then the other.

use logpond_segment::sources::SourceSet;

use crate::Holdings;

/// The progress of an ingester that leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DrainState {
    /// Whether it still takes records in.
    pub takes_in: bool,
    /// Whether a journal file is open.
    pub has_open: bool,
    /// Whether all its incarnations are sealed in its own registry.
    pub is_sealed: bool,
    /// Whether as many others have recorded the seals as must ([`crate::births`]).
    pub is_published: bool,
    /// Whether closed files are left ([`crate::offers::Offers::is_empty`]).
    pub has_files: bool,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Refuse new records, and say where else to go.
    Refuse,
    /// Close the journal file.
    Close,
    /// Seal. Before all is consumed: only then may the last file go.
    Seal,
    /// Tell others of the seals.
    Publish,
    /// Wait until stores have taken everything.
    Wait,
    /// Nothing is left here.
    Done,
}

impl DrainState {
    /// The next step.
    pub fn next(&self) -> Step {
        match self {
            DrainState { takes_in: true, .. } => Step::Refuse,
            DrainState { has_open: true, .. } => Step::Close,
            DrainState {
                is_sealed: false, ..
            } => Step::Seal,
            DrainState {
                is_published: false,
                ..
            } => Step::Publish,
            DrainState {
                has_files: true, ..
            } => Step::Wait,
            DrainState { .. } => Step::Done,
        }
    }
}

/// How far a store is with being emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Segments that are left.
    pub segments: usize,
    /// Sources in them.
    pub sources: u64,
    /// Those of them of which there are too few copies elsewhere.
    pub lacking: u64,
}

impl Progress {
    /// What is left, where `elsewhere` has the sources of which there are enough copies on others.
    /// What a bucket lists is there, too.
    pub fn new(holdings: &Holdings, elsewhere: &SourceSet) -> Progress {
        let lacking = holdings.stored().without(elsewhere);
        let lacking = match holdings.listed() {
            Some(listed) => lacking.without(listed),
            None => lacking,
        };
        Progress {
            segments: holdings.live().count(),
            sources: holdings.stored().len(),
            lacking: lacking.len(),
        }
    }

    /// Whether the node may go.
    pub fn is_done(&self) -> bool {
        self.segments == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logpond_record::{Id, Incarnation, SourceId};

    #[test]
    fn an_ingester_leaves_in_order() {
        let mut state = DrainState {
            takes_in: true,
            has_open: true,
            has_files: true,
            ..DrainState::default()
        };
        let mut steps = Vec::new();
        loop {
            let step = state.next();
            steps.push(step);
            match step {
                Step::Refuse => state.takes_in = false,
                Step::Close => state.has_open = false,
                Step::Seal => state.is_sealed = true,
                Step::Publish => state.is_published = true,
                Step::Wait => state.has_files = false,
                Step::Done => break,
            }
        }
        let expected = [
            Step::Refuse,
            Step::Close,
            Step::Seal,
            Step::Publish,
            Step::Wait,
            Step::Done,
        ];
        assert_eq!(steps, expected);
    }

    #[test]
    fn a_store_counts_down() {
        let set = |numbers: &[u64]| -> SourceSet {
            let each = numbers.iter().map(|sequence| SourceId {
                incarnation: Incarnation(1),
                sequence: *sequence,
            });
            each.collect()
        };
        let mut holdings = Holdings::new([(Id(1), set(&[1, 2])), (Id(2), set(&[3]))]);
        let progress = Progress::new(&holdings, &set(&[3]));
        let expected = Progress {
            segments: 2,
            sources: 3,
            lacking: 2,
        };
        assert_eq!(progress, expected);
        holdings.lose(&[Id(1), Id(2)]);
        assert!(Progress::new(&holdings, &set(&[])).is_done());
    }
}

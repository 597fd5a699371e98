//! The nodes that a node asks first for the others.
//!
//! `A` is an address, which the product reaches.
//!
//! Invariants:
//! - An address is met once a node has answered there, or is known to be there.
//! - A name may have several addresses, others after a while, and addresses at which nobody listens. It is met once
//!   each of its addresses was asked and one has answered: a node that answers tells whom it knows.
//! - A seed that was met stays so, also when its node moves on to another address.

use std::collections::BTreeSet;
use std::fmt;

/// The most addresses of a name that are asked; these nodes tell of the others.
pub const ADDRESSES_MAX: usize = 64;

/// One of the nodes that are asked first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seed<A> {
    /// The one at an address.
    Address(A),
    /// Those at the addresses of a name.
    Name {
        /// The name of the host.
        host: Box<str>,
        /// The port at each address.
        port: u16,
    },
}

impl<A: fmt::Display> fmt::Display for Seed<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Seed::Address(address) => write!(f, "{address}"),
            Seed::Name { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

/// The seeds of a node, and which were met.
#[derive(Clone, Debug)]
pub struct Seeds<A> {
    own: A,
    seeds: Vec<SeedState<A>>,
}

#[derive(Clone, Debug)]
struct SeedState<A> {
    seed: Seed<A>,
    /// Addresses of other nodes that it stands for, as far as they are known.
    addresses: BTreeSet<A>,
    /// Those of them that were asked.
    asked: BTreeSet<A>,
    has_answered: bool,
    is_met: bool,
}

impl<A: Copy + Ord> Seeds<A> {
    /// Seeds that nobody has asked yet. One list may be given to all nodes, each of which is in it: `own` is left out.
    pub fn new(seeds: Vec<Seed<A>>, own: A) -> Seeds<A> {
        let others = seeds.into_iter().filter(|seed| *seed != Seed::Address(own));
        let state = |seed| SeedState {
            addresses: match seed {
                Seed::Address(address) => BTreeSet::from([address]),
                Seed::Name { .. } => BTreeSet::new(),
            },
            seed,
            asked: BTreeSet::new(),
            has_answered: false,
            is_met: false,
        };
        Seeds {
            own,
            seeds: others.map(state).collect(),
        }
    }

    /// True if there is none: the node founds a cluster.
    pub fn is_empty(&self) -> bool {
        self.seeds.is_empty()
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Seed<A>> {
        self.seeds.iter().map(|state| &state.seed)
    }

    /// Those that were not met.
    pub fn unmet(&self) -> impl Iterator<Item = &Seed<A>> {
        let unmet = self.seeds.iter().filter(|state| !state.is_met);
        unmet.map(|state| &state.seed)
    }

    /// Names whose addresses are wanted, now and again until they are met.
    pub fn names_to_resolve(&self) -> Vec<(Box<str>, u16)> {
        let names = self.unmet().filter_map(|seed| match seed {
            Seed::Address(_) => None,
            Seed::Name { host, port } => Some((host.clone(), *port)),
        });
        names.collect()
    }

    /// Notes the addresses of a name, at most [`ADDRESSES_MAX`] of them. No address is no news.
    pub fn note_addresses(&mut self, name: (&str, u16), found: impl Iterator<Item = A>) {
        let found: BTreeSet<A> = found.take(ADDRESSES_MAX).collect();
        if found.is_empty() {
            return;
        }
        let is_named =
            |seed: &Seed<A>| matches!(seed, Seed::Name { host, port } if (&**host, *port) == name);
        for state in self.seeds.iter_mut().filter(|state| is_named(&state.seed)) {
            state.addresses = found.iter().copied().filter(|a| *a != self.own).collect();
            state.settle();
        }
    }

    /// Addresses to ask, each once.
    pub fn addresses_to_ask(&self) -> Vec<A> {
        let unmet = self.seeds.iter().filter(|state| !state.is_met);
        let unasked = unmet.flat_map(|state| state.addresses.difference(&state.asked));
        let unasked: BTreeSet<A> = unasked.copied().collect();
        unasked.into_iter().collect()
    }

    /// Notes that a node has answered at an address, or is known to be there.
    pub fn note_answer(&mut self, address: A) {
        self.note(address, |state| state.has_answered = true);
    }

    /// Notes that nobody has answered at an address: it is asked again in its turn.
    pub fn note_failure(&mut self, address: A) {
        self.note(address, |_| {});
    }

    fn note(&mut self, address: A, change: impl Fn(&mut SeedState<A>)) {
        let states = self.seeds.iter_mut();
        for state in states.filter(|state| state.addresses.contains(&address)) {
            state.asked.insert(address);
            change(state);
            state.settle();
        }
    }
}

impl<A: Copy + Ord> SeedState<A> {
    /// Decides after all addresses were asked; if none has answered, all are asked again.
    fn settle(&mut self) {
        self.asked.retain(|asked| self.addresses.contains(asked));
        if self.addresses.is_empty() || self.asked.len() < self.addresses.len() {
            return;
        }
        if self.has_answered {
            self.is_met = true;
        } else {
            self.asked.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> Seed<u8> {
        Seed::Name {
            host: "nodes".into(),
            port: 7659,
        }
    }

    fn found(seeds: &mut Seeds<u8>, numbers: &[u8]) {
        seeds.note_addresses(("nodes", 7659), numbers.iter().copied());
    }

    #[test]
    fn a_node_is_no_seed_of_its_own() {
        assert!(Seeds::new(Vec::<Seed<u8>>::new(), 1).is_empty());
        assert!(Seeds::new(vec![Seed::Address(1)], 1).is_empty());
        let seeds = Seeds::new(vec![Seed::Address(1), Seed::Address(2)], 1);
        assert_eq!(seeds.addresses_to_ask(), [2]);
    }

    #[test]
    fn an_address_is_asked_until_it_answers() {
        let mut seeds = Seeds::new(vec![Seed::Address(2), Seed::Address(3)], 1);
        seeds.note_failure(2);
        assert_eq!(seeds.addresses_to_ask(), [2, 3]);
        seeds.note_answer(3);
        assert_eq!(seeds.addresses_to_ask(), [2]);
        assert_eq!(seeds.unmet().collect::<Vec<_>>(), [&Seed::Address(2)]);
        seeds.note_answer(2);
        seeds.note_failure(2);
        assert_eq!(seeds.unmet().count(), 0);
    }

    #[test]
    fn a_name_is_met_when_all_were_asked_and_one_has_answered() {
        let mut seeds = Seeds::new(vec![name()], 1);
        assert_eq!(seeds.names_to_resolve(), [("nodes".into(), 7659)]);
        found(&mut seeds, &[1, 2, 3]);
        assert_eq!(seeds.addresses_to_ask(), [2, 3]);
        seeds.note_answer(2);
        assert_eq!(seeds.addresses_to_ask(), [3]);
        assert_eq!(seeds.unmet().count(), 1);
        seeds.note_failure(3);
        assert_eq!(seeds.unmet().count(), 0);
        assert!(seeds.names_to_resolve().is_empty());
        // Later addresses are of nodes that come to this one.
        found(&mut seeds, &[4]);
        assert_eq!(seeds.unmet().count(), 0);
    }

    #[test]
    fn a_name_that_nobody_answers_at_is_asked_again() {
        let mut seeds = Seeds::new(vec![name()], 1);
        found(&mut seeds, &[2, 3]);
        seeds.note_failure(2);
        seeds.note_failure(3);
        assert_eq!(seeds.addresses_to_ask(), [2, 3]);
        assert_eq!(seeds.unmet().count(), 1);
    }

    #[test]
    fn a_name_of_this_node_alone_is_not_met() {
        let mut seeds = Seeds::new(vec![name()], 1);
        found(&mut seeds, &[1]);
        assert!(!seeds.is_empty());
        assert!(seeds.addresses_to_ask().is_empty());
        assert_eq!(seeds.unmet().count(), 1);
    }

    #[test]
    fn addresses_that_have_gone_are_not_waited_for() {
        let mut seeds = Seeds::new(vec![name()], 1);
        found(&mut seeds, &[2, 3]);
        seeds.note_answer(2);
        found(&mut seeds, &[]);
        assert_eq!(seeds.addresses_to_ask(), [3]);
        found(&mut seeds, &[2]);
        assert_eq!(seeds.unmet().count(), 0);
    }

    #[test]
    fn a_name_has_no_more_addresses_than_are_asked() {
        let mut seeds = Seeds::new(vec![name()], 1);
        seeds.note_addresses(("nodes", 7659), 2..200);
        assert_eq!(seeds.addresses_to_ask().len(), ADDRESSES_MAX);
    }
}

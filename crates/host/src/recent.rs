//! What came lately, by its identity: what senders do not name, and send again as it was.

use std::collections::{HashMap, VecDeque};

/// Identities that are remembered, each with something: those of the requests of a day of one sender, or of minutes
/// of a hundred that send each second. Of a hundred bytes each they take some 9 MB.
pub const IDENTITIES_MAX: usize = 65_536;

/// The latest identities, with what is known of each.
#[derive(Debug, Default)]
pub struct Recent<V> {
    known: HashMap<u128, V>,
    /// In the order in which they first came. Invariant: these are the known ones.
    order: VecDeque<u128>,
}

impl<V: Default> Recent<V> {
    /// What is known of an identity, which is remembered from now on; the oldest one is forgotten for it.
    pub fn of(&mut self, identity: u128) -> &mut V {
        if !self.known.contains_key(&identity) {
            if self.order.len() == IDENTITIES_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.known.remove(&oldest);
            }
            self.order.push_back(identity);
        }
        self.known.entry(identity).or_default()
    }

    /// How many identities are known.
    pub fn count(&self) -> usize {
        assert_eq!(self.known.len(), self.order.len());
        self.known.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_remembered_and_the_memory_is_bounded() {
        let mut recent = Recent::default();
        *recent.of(1) += 1;
        *recent.of(1) += 1;
        assert_eq!((*recent.of(1), *recent.of(2)), (2, 0));
        for identity in 0..2 * IDENTITIES_MAX as u128 {
            recent.of(1000 + identity);
        }
        assert_eq!(*recent.of(1), 0, "it is forgotten");
        assert_eq!(recent.count(), IDENTITIES_MAX);
    }
}

//! Random numbers that a seed, a source and a second decide.

use logpond_record::cast;

/// Steps of the state: the golden ratio in 64 bits.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A sequence of random numbers (SplitMix64).
pub(super) struct Draw(u64);

impl Draw {
    /// The sequence of this source in this second.
    pub(super) fn new(seed: u64, source: &str, second: i64) -> Draw {
        let named = source.bytes().fold(mixed(seed), |state, byte| {
            mixed(state.wrapping_add(u64::from(byte)).wrapping_add(STEP))
        });
        Draw(mixed(named ^ second.cast_unsigned()))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mixed(self.0)
    }

    /// A number below `bound`; 0 if that is 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A number of these, the last one included.
    pub(super) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// True for so many of a thousand.
    pub(super) fn is_one_of_thousand(&mut self, share: u64) -> bool {
        self.below(1000) < share
    }

    /// One of these.
    pub(super) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[cast::to_usize(self.below(of.len() as u64)) % of.len()]
    }

    /// A number that is mostly small, and up to `most`.
    pub(super) fn skewed(&mut self, most: u64) -> u64 {
        let first = self.below(most + 1);
        self.below(first + 1)
    }
}

/// Spreads each bit over all bits.
fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

//! Numbers from a seed: the same seed gives the same faults and the same questions.

/// A generator of numbers that look random (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Draw(u64);

impl Draw {
    /// A stream of its own for each purpose, so that one does not shift the others.
    pub(crate) fn new(seed: u64, purpose: u64) -> Draw {
        let mut draw = Draw(seed ^ purpose.wrapping_mul(0xa076_1d64_78bd_642f));
        draw.next();
        draw
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// A number from `from` to below `to`, which is larger.
    pub(crate) fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from)
    }

    /// One of these, which are not empty.
    pub(crate) fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// One of these texts, which are not empty.
    pub(crate) fn text(&mut self, of: &[&'static str]) -> &'static str {
        of[self.below(of.len())]
    }

    /// Brings them into another order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}

/// Spreads the bits of a number over all of it.
pub(crate) fn mixed(number: u64) -> u64 {
    let mut z = number;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

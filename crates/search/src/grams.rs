//! Which runs of five bytes a text has, so that it is not searched for a literal that it cannot hold.
//!
//! The runs at all places of the text are in a bitmap, by their hashes. A literal is held only if all
//! of its runs are there. The bitmap has a bit or two for each byte of the text, of which logs, which
//! repeat themselves, set a fifth or so. A text with thousands of ids in hexadecimal has nearly all runs
//! of four digits, but few of those of five.
//!
//! Invariant: a literal that is in one of the texts that were added is never denied.

/// Length of a run.
const GRAM_BYTES: usize = 5;

/// The bits of a run in a number.
const GRAM_BITS: usize = 8 * GRAM_BYTES;

/// The fewest bits, for a table that is no smaller than its administration.
const BITS_MIN: usize = 1 << 10;

/// The runs of some texts.
#[derive(Clone, Debug)]
pub(crate) struct Grams {
    bits: Box<[u64]>,
    /// How far a hash is shifted to become the number of a bit.
    shift: u32,
}

impl Grams {
    /// No runs; for texts of so many bytes together, as further ones make it say less and less.
    pub(crate) fn for_bytes(bytes: usize) -> Grams {
        let bits = bytes.max(BITS_MIN).next_power_of_two();
        Grams {
            bits: vec![0; bits / 64].into(),
            shift: u64::BITS - bits.trailing_zeros(),
        }
    }

    /// Adds the runs of a text.
    pub(crate) fn add(&mut self, text: &[u8]) {
        let Some((first, rest)) = text.split_first_chunk::<{ GRAM_BYTES - 1 }>() else {
            return;
        };
        let mut gram = first.iter().fold(0, following);
        for byte in rest {
            gram = following(gram, byte);
            let (word, bit) = self.place(gram);
            self.bits[word] |= bit;
        }
    }

    /// Whether one of the texts may hold the literal.
    pub(crate) fn may_hold(&self, literal: &[u8]) -> bool {
        literal.array_windows::<GRAM_BYTES>().all(|gram| {
            let (word, bit) = self.place(gram.iter().fold(0, following));
            self.bits[word] & bit != 0
        })
    }

    /// What it takes of the memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.bits)
    }

    /// Where the bit of a run is. The multiplier is 2^64 over the golden ratio, as in Fibonacci hashing
    /// (Knuth, The Art of Computer Programming, 6.4).
    fn place(&self, gram: u64) -> (usize, u64) {
        let number = gram.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift;
        ((number >> 6) as usize, 1 << (number & 63))
    }
}

/// The run that ends with the byte, by the one that ends with the byte before.
fn following(gram: u64, byte: &u8) -> u64 {
    (gram << 8 | u64::from(*byte)) & ((1 << GRAM_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_there_is_never_denied(
            texts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..600), 1..4),
            which in any::<prop::sample::Index>(),
            ends in any::<(prop::sample::Index, prop::sample::Index)>(),
        ) {
            let mut grams = Grams::for_bytes(100);
            texts.iter().for_each(|text| grams.add(text));
            let text = which.get(&texts);
            let (from, to) = (ends.0.index(text.len() + 1), ends.1.index(text.len() + 1));
            prop_assert!(grams.may_hold(&text[from.min(to)..from.max(to)]));
        }
    }

    #[test]
    fn what_is_not_there_is_mostly_denied() {
        let line = |number: u32| {
            format!(
                "10.1.{}.7 GET /article/{number} 200 {}\n",
                number % 251,
                number * 31
            )
        };
        let text: String = (0..5000).map(line).collect();
        let mut grams = Grams::for_bytes(text.len());
        grams.add(text.as_bytes());
        assert!(grams.bytes() <= text.len() / 4);
        let words =
            (0..1000_u32).map(|number| format!("word{:x}", number.wrapping_mul(0x9E37_79B1)));
        let held = words.filter(|word| grams.may_hold(word.as_bytes())).count();
        assert!(held < 10, "{held} of 1000");
        assert!(grams.may_hold(b"/article/4711 200"));
    }

    #[test]
    fn what_is_shorter_than_a_run_may_be_anywhere() {
        let grams = Grams::for_bytes(0);
        assert!(grams.may_hold(b"") && grams.may_hold(b"abcd"));
        assert!(!grams.may_hold(b"abcde"));
    }

    #[test]
    fn runs_do_not_cross_from_one_text_to_the_next() {
        let mut grams = Grams::for_bytes(1 << 20);
        grams.add(b"abc");
        grams.add(b"def");
        assert!(!grams.may_hold(b"abcdef"));
    }
}

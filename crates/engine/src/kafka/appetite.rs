//! How much brokers are asked for at a time. No IO.
//!
//! A broker counts bytes as they are stored, compressed, and sends one batch of messages whole whatever it
//! is asked for; what they become is known only afterwards. So reading begins with single batches, and asks
//! for more once what came stayed small.

use logpond_record::cast;

/// What is asked of a broker at a time, in bytes as they are sent. The first gives single batches. The last is
/// enough to keep a connection busy; more would only be more to decode at once.
const LEVELS: [i32; 3] = [1, 64 << 10, 2 << 20];

/// What may come of one answer before less is asked for, in bytes as they are decoded.
const DECODED_BYTES_MAX: usize = 64 << 20;

/// Answers in a row that must have stayed small before more is asked for.
const ANSWERS_MIN: u32 = 8;

/// The bytes that a fetch asks for.
#[derive(Debug, Default)]
pub(super) struct FetchLimits {
    level: usize,
    /// Answers in a row that stayed small.
    small: u32,
    /// What was taken over before, in bytes: an answer is taken over in two parts at most.
    before: usize,
}

impl FetchLimits {
    /// Bytes to ask for.
    pub(super) fn bytes(&self) -> i32 {
        LEVELS[self.level]
    }

    /// Notes what was taken over, in bytes; gives whether another number is to be asked for from now on.
    pub(super) fn note(&mut self, decoded: usize) -> bool {
        let both = decoded + std::mem::replace(&mut self.before, decoded);
        let level = self.level;
        if both > DECODED_BYTES_MAX {
            (self.level, self.small) = (0, 0);
        } else if let Some(small_max) = self.small_max() {
            // Less than what is asked for says nothing of how much it may become.
            let is_full = level == 0 || decoded >= cast::to_usize(cast::low_u64(LEVELS[level]));
            self.small = if both <= small_max {
                self.small + u32::from(is_full)
            } else {
                0
            };
            if self.small >= ANSWERS_MIN {
                (self.level, self.small) = (level + 1, 0);
            }
        }
        self.level != level
    }

    /// What may come of an answer so that more may be asked for: the next level's is in proportion. How small
    /// a single batch was is not known, so it must be small once it is decoded.
    fn small_max(&self) -> Option<usize> {
        let next = *LEVELS.get(self.level + 1)?;
        Some(match self.level {
            0 => DECODED_BYTES_MAX / 64,
            level => DECODED_BYTES_MAX / cast::to_usize(cast::low_u64(next / LEVELS[level])),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1 << 10;
    const MIB: usize = 1 << 20;

    fn after(answers: &[(usize, usize)]) -> i32 {
        let mut appetite = FetchLimits::default();
        for &(decoded, times) in answers {
            for _ in 0..times {
                let before = appetite.bytes();
                assert_eq!(appetite.note(decoded), appetite.bytes() != before);
            }
        }
        appetite.bytes()
    }

    #[test]
    fn more_is_asked_for_once_answers_stayed_small() {
        let cases: [(&[_], i32); 10] = [
            (&[], LEVELS[0]),
            (&[(KIB, 7)], LEVELS[0]),
            (&[(KIB, 8)], LEVELS[1]),
            // Single batches that become large go on to be asked for one by one.
            (&[(MIB, 100)], LEVELS[0]),
            // A trickle says nothing.
            (&[(KIB, 1_000)], LEVELS[1]),
            (&[(300 * KIB, 16)], LEVELS[2]),
            // What is compressed to a thirtieth is not asked for in larger numbers.
            (&[(KIB, 8), (2 * MIB, 100)], LEVELS[1]),
            (&[(300 * KIB, 16), (30 * MIB, 100)], LEVELS[2]),
            // Too much at once, or in the two parts of an answer: back to single batches.
            (&[(300 * KIB, 16), (65 * MIB, 1)], LEVELS[0]),
            (&[(300 * KIB, 16), (33 * MIB, 2)], LEVELS[0]),
        ];
        for (answers, expected) in cases {
            assert_eq!(after(answers), expected, "{answers:?}");
        }
    }
}

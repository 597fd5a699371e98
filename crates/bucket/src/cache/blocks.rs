//! Objects cut into blocks, and which of them are there.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use logpond_record::cast;

/// Bytes of a block: what is fetched, checked and kept at least.
pub(crate) const BLOCK_BYTES: u64 = 64 << 10;

/// Bytes at an object's end that count as its tail at least: so many a segment's reader asks for before
/// it knows where the directory lies.
const TAIL_BYTES_MIN: u64 = 64 << 10;

/// The two files that the cache keeps of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// What lies before the tail.
    Pages,
    /// Directory and footer: small, and needed by whoever reads anything.
    Tail,
}

/// How an object is cut. Blocks are counted from its start; the last one may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Length of the object.
    pub(crate) bytes: u64,
    /// The first block of the tail.
    pub(crate) tail_block: u64,
}

impl Geometry {
    pub(crate) fn new(bytes: u64, index_from: u64) -> Geometry {
        let from = index_from.min(bytes.saturating_sub(TAIL_BYTES_MIN));
        Geometry {
            bytes,
            tail_block: from / BLOCK_BYTES,
        }
    }

    pub(crate) fn blocks(self) -> u64 {
        self.bytes.div_ceil(BLOCK_BYTES)
    }

    /// The blocks of one of the files.
    pub(crate) fn of(self, kind: Kind) -> Range<u64> {
        match kind {
            Kind::Pages => 0..self.tail_block,
            Kind::Tail => self.tail_block..self.blocks(),
        }
    }

    pub(crate) fn kind(self, block: u64) -> Kind {
        if block < self.tail_block {
            Kind::Pages
        } else {
            Kind::Tail
        }
    }

    /// The blocks with any byte of a range that lies within the object.
    pub(crate) fn covering(self, from: u64, to: u64) -> Range<u64> {
        let to = to.min(self.bytes);
        from.min(to) / BLOCK_BYTES..to.div_ceil(BLOCK_BYTES)
    }

    /// The bytes of blocks, as offsets in the object.
    pub(crate) fn bytes_of(self, blocks: &Range<u64>) -> Range<u64> {
        blocks.start * BLOCK_BYTES..(blocks.end * BLOCK_BYTES).min(self.bytes)
    }

    /// The same as a number.
    pub(crate) fn length_of(self, blocks: &Range<u64>) -> u64 {
        let bytes = self.bytes_of(blocks);
        bytes.end - bytes.start
    }
}

/// A set of blocks that is looked at without a lock.
pub(crate) struct Bits(Vec<AtomicU64>);

impl Bits {
    pub(crate) fn new(blocks: u64) -> Bits {
        Bits(
            (0..blocks.div_ceil(64))
                .map(|_| AtomicU64::new(0))
                .collect(),
        )
    }

    pub(crate) fn has(&self, block: u64) -> bool {
        self.word(block).load(Ordering::Acquire) >> (block % 64) & 1 == 1
    }

    pub(crate) fn has_all(&self, blocks: Range<u64>) -> bool {
        let mut all = masks(blocks);
        all.all(|(word, mask)| self.0[word].load(Ordering::Acquire) & mask == mask)
    }

    pub(crate) fn has_any(&self, blocks: Range<u64>) -> bool {
        let mut any = masks(blocks);
        any.any(|(word, mask)| self.0[word].load(Ordering::Acquire) & mask != 0)
    }

    pub(crate) fn add(&self, blocks: Range<u64>) {
        masks(blocks).for_each(|(word, mask)| {
            self.0[word].fetch_or(mask, Ordering::Release);
        });
    }

    pub(crate) fn remove(&self, blocks: Range<u64>) {
        masks(blocks).for_each(|(word, mask)| {
            self.0[word].fetch_and(!mask, Ordering::Release);
        });
    }

    fn word(&self, block: u64) -> &AtomicU64 {
        &self.0[(block / 64) as usize]
    }
}

/// The words that a range of bits lies in, and its bits in each of them.
fn masks(bits: Range<u64>) -> impl Iterator<Item = (usize, u64)> {
    let words = bits.start / 64..bits.end.div_ceil(64);
    let words = if bits.is_empty() { 0..0 } else { words };
    words.map(move |word| {
        let from = bits.start.saturating_sub(word * 64);
        let to = (bits.end - word * 64).min(64);
        (
            cast::to_usize(word),
            (u64::MAX >> (64 - (to - from))) << from,
        )
    })
}

/// Blocks, in ascending order, as ranges to fetch: with one request where it pays to fetch again what
/// lies between, and several for long ranges.
pub(crate) fn plan(blocks: &[u64], may_bridge: impl Fn(u64) -> bool) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for &block in blocks {
        match runs.last_mut() {
            Some(run) if block - run.end <= GAP_BLOCKS && (run.end..block).all(&may_bridge) => {
                run.end = block + 1;
            }
            _ => runs.push(block..block + 1),
        }
    }
    runs.into_iter().flat_map(split).collect()
}

/// Blocks that are fetched again rather than with a request more: 1 MiB comes in about a third of the
/// time that a request takes.
const GAP_BLOCKS: u64 = (1 << 20) / BLOCK_BYTES;

/// Blocks of one request at most, 16 MiB: the token indexes of a segment of 1 GiB come with one.
const REQUEST_BLOCKS_MAX: u64 = (16 << 20) / BLOCK_BYTES;

/// A range as parts of about the same length.
fn split(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let blocks = range.end - range.start;
    let parts = blocks.div_ceil(REQUEST_BLOCKS_MAX);
    let edge = move |part: u64| range.start + blocks * part / parts.max(1);
    (0..parts).map(move |part| edge(part)..edge(part + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_gaps_are_bridged_and_long_ranges_are_split() {
        let plan = |blocks: &[u64]| {
            let ranges = plan(blocks, |block| block != 500);
            let edges = ranges.into_iter().map(|range| (range.start, range.end));
            edges.collect::<Vec<_>>()
        };
        assert_eq!(plan(&[]), []);
        assert_eq!(plan(&[3, 4, 5 + GAP_BLOCKS]), [(3, 6 + GAP_BLOCKS)]);
        let far = 5 + GAP_BLOCKS;
        assert_eq!(plan(&[3, far]), [(3, 4), (far, far + 1)]);
        assert_eq!(plan(&[499, 501]), [(499, 500), (501, 502)]);
        let long: Vec<u64> = (0..2 * REQUEST_BLOCKS_MAX + 1).collect();
        assert_eq!(plan(&long), [(0, 171), (171, 342), (342, 513)]);
    }

    #[test]
    fn the_tail_is_what_an_opening_reader_asks_for_at_least() {
        let mib = 1 << 20;
        assert_eq!(Geometry::new(10 * mib, 9 * mib).of(Kind::Tail), 144..160);
        assert_eq!(
            Geometry::new(10 * mib, 10 * mib - 9).of(Kind::Tail),
            159..160
        );
        assert_eq!(
            Geometry::new(10 * mib + 1, 10 * mib).of(Kind::Tail),
            159..161
        );
        assert_eq!(Geometry::new(100, 90).of(Kind::Tail), 0..1);
    }

    proptest! {
        #[test]
        fn bits_are_a_set(ranges in prop::collection::vec((0u64..200, 0u64..200, any::<bool>()), 1..20)) {
            let bits = Bits::new(200);
            let mut model = [false; 200];
            for (a, b, adds) in ranges {
                let range = a.min(b)..a.max(b);
                if adds { bits.add(range.clone()) } else { bits.remove(range.clone()) }
                model[range.start as usize..range.end as usize].fill(adds);
                for block in 0..200 {
                    prop_assert_eq!(bits.has(block), model[block as usize]);
                }
                let asked = a / 2..a / 2 + b / 2;
                let part = &model[asked.start as usize..asked.end as usize];
                prop_assert_eq!(bits.has_all(asked.clone()), part.iter().all(|bit| *bit));
                prop_assert_eq!(bits.has_any(asked), part.contains(&true));
            }
        }
    }
}

//! Filters of the parts of ids, for searches within ids.
//!
//! Ids (see [`is_id`]) are many and different, so they are not among the words. Of each block's ids the runs of
//! [`GRAM_BYTES`] digits, letters folded, are put into a filter of [`BITS_PER_GRAM`] bits each: a text that is
//! part of an id can only be in blocks whose filter has all of its runs.
//!
//! Fractions of a second are in no index (see [`super::may_be_time_fraction`]). Of these the most digits are kept,
//! as a text of decimal digits may lie within one.

use logpond_record::cast;

use super::words::is_id;
use super::{BlockSet, IndexBytes};
use crate::encoding::MalformedPage;

/// Hexadecimal digits of a run: shorter texts are not looked for.
pub(super) const GRAM_BYTES: usize = 5;

/// Bits of a run as a number: four for each digit.
const GRAM_BITS: usize = 4 * GRAM_BYTES;

/// Bits of a filter for each different run: two of five absent runs seem to be there. Most texts have several.
const BITS_PER_GRAM: usize = 2;

/// The longest filter: that of all runs.
const FILTER_BYTES_MAX: usize = (1 << GRAM_BITS) * BITS_PER_GRAM / 8;

/// Spreads runs over a filter.
const SPREAD: u32 = 0x9e37_79b1;

/// The length of what is kept of each block before the filters: a number of digits (1), and where its filter
/// ends, in bytes (4).
const BLOCK_BYTES: usize = 5;

/// Collects the runs of the ids of one block after another.
pub(super) struct GramCollector {
    /// A bit for each run of the current block.
    present: Vec<u64>,
    digits_max: u8,
    /// The entries of all blocks so far, and their filters.
    blocks: Vec<u8>,
    filters: Vec<u8>,
}

impl Default for GramCollector {
    fn default() -> GramCollector {
        GramCollector {
            present: vec![0; (1 << GRAM_BITS) / 64],
            digits_max: 0,
            blocks: Vec::new(),
            filters: Vec::new(),
        }
    }
}

impl GramCollector {
    /// Takes note of a token that is new in its block.
    pub(super) fn add(&mut self, token: &[u8]) {
        if is_id(token) {
            for gram in grams(token) {
                self.present[gram as usize / 64] |= 1 << (gram % 64);
            }
        }
    }

    /// Takes note of a fraction of a second with so many digits.
    pub(super) fn note_fraction(&mut self, digits: usize) {
        self.digits_max = self.digits_max.max(cast::low_u8(digits));
    }

    /// Ends the current block.
    pub(super) fn end_block(&mut self) {
        let count: u32 = self.present.iter().map(|word| word.count_ones()).sum();
        let bytes = (count as usize * BITS_PER_GRAM).div_ceil(8);
        let from = self.filters.len();
        self.filters.resize(from + bytes, 0);
        let filter = &mut self.filters[from..];
        for (number, word) in self.present.iter_mut().enumerate() {
            let mut bits = std::mem::take(word);
            while bits != 0 {
                let gram = cast::low_u32(number) * 64 + bits.trailing_zeros();
                bits &= bits - 1;
                let at = place(gram, bytes);
                filter[at / 8] |= 1 << (at % 8);
            }
        }
        self.blocks.push(std::mem::take(&mut self.digits_max));
        let end = cast::low_u32(self.filters.len());
        self.blocks.extend_from_slice(&end.to_le_bytes());
    }

    /// The filters of all blocks, as they are stored; the collector is empty for the next row group.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let mut out = std::mem::take(&mut self.blocks);
        out.append(&mut self.filters);
        out
    }
}

/// The runs of an id as numbers. The token has hexadecimal digits only.
fn grams(token: &[u8]) -> impl Iterator<Item = u32> {
    token.windows(GRAM_BYTES).map(|run| {
        let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or(0);
        run.iter().fold(0, |number, byte| number << 4 | digit(byte))
    })
}

/// The bit of a run in a filter of so many bytes.
fn place(gram: u32, bytes: usize) -> usize {
    let spread = u64::from(gram.wrapping_mul(SPREAD));
    ((spread * (bytes as u64 * 8)) >> 32) as usize
}

/// The blocks that may hold a text of hexadecimal digits within an id or a fraction of a second. The filters
/// begin at `from` in an index of so many blocks. The text is not shorter than [`GRAM_BYTES`].
pub(super) fn blocks_with<B: IndexBytes>(
    index: &mut B,
    (from, blocks): (usize, usize),
    text: &[u8],
) -> Result<BlockSet, B::Error> {
    let head = index.bytes(from, blocks * BLOCK_BYTES)?;
    let filters_from = from + head.len();
    let is_decimal = text.iter().all(u8::is_ascii_digit);
    let mut found = BlockSet::none(blocks);
    let mut start = 0;
    for (block, kept) in head.chunks_exact(BLOCK_BYTES).enumerate() {
        let digits_max = usize::from(kept[0]);
        let end = u32::from_le_bytes([kept[1], kept[2], kept[3], kept[4]]) as usize;
        let bytes = end
            .checked_sub(start)
            .filter(|bytes| *bytes <= FILTER_BYTES_MAX)
            .ok_or(MalformedPage("a filter of ids has a wrong length"))?;
        let may_be_of_time = is_decimal && text.len() <= digits_max;
        if may_be_of_time || has_all(index, (filters_from + start, bytes), text)? {
            found.insert(block);
        }
        start = end;
    }
    Ok(found)
}

/// True if a filter has all runs of a text.
fn has_all<B: IndexBytes>(
    index: &mut B,
    (from, bytes): (usize, usize),
    text: &[u8],
) -> Result<bool, B::Error> {
    if bytes == 0 {
        return Ok(false);
    }
    for gram in grams(text) {
        let at = place(gram, bytes);
        let byte = index.bytes(from + at / 8, 1)?;
        if byte.first().is_none_or(|byte| byte >> (at % 8) & 1 == 0) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Plain(Vec<u8>);

    impl IndexBytes for Plain {
        type Error = MalformedPage;

        fn bytes(&mut self, from: usize, length: usize) -> Result<Vec<u8>, MalformedPage> {
            let bytes = self.0.get(from..from + length);
            bytes
                .map(<[u8]>::to_vec)
                .ok_or(MalformedPage("it ends early"))
        }
    }

    fn found(stored: &[u8], blocks: usize, text: &str) -> Vec<usize> {
        let mut index = Plain(stored.to_vec());
        let found = blocks_with(&mut index, (0, blocks), text.as_bytes()).unwrap();
        found.iter().collect()
    }

    #[test]
    fn parts_of_ids_are_found_where_they_are() {
        let mut collector = GramCollector::default();
        collector.add(b"130856138");
        collector.end_block();
        // Not of ids: a word, and digits that are too few.
        collector.add(b"blk130856138");
        collector.add(b"1308");
        collector.end_block();
        collector.add(b"00DeadBeef00cafe");
        collector.note_fraction(6);
        collector.end_block();
        let stored = collector.finish();
        for (text, expected) in [
            ("130856138", &[0][..]),
            ("85613", &[0, 2]),
            ("856138", &[0, 2]),
            ("deadbeef", &[2]),
            ("EADBEEF00", &[2]),
        ] {
            // So small filters have others by chance.
            let found = found(&stored, 3, text);
            assert!(expected.iter().all(|block| found.contains(block)), "{text}");
        }
        assert!(
            collector.finish().is_empty(),
            "the next row group begins anew"
        );
    }

    /// Few absent texts seem to be there, and none that is there is missed.
    #[test]
    fn filters_are_of_use() {
        let id = |n: u64| {
            format!(
                "{:09}",
                n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 1_000_000_000
            )
        };
        let mut collector = GramCollector::default();
        let all: Vec<String> = (0..6000).map(id).collect();
        all.iter().for_each(|id| collector.add(id.as_bytes()));
        collector.end_block();
        let stored = collector.finish();
        assert!(
            all.iter()
                .all(|id| found(&stored, 1, id) == [0] && found(&stored, 1, &id[2..7]) == [0])
        );
        let absent = (6000..10_000).map(id).filter(|id| !all.contains(id));
        let (seen, count) = absent.fold((0, 0), |(seen, count), id| {
            (seen + found(&stored, 1, &id).len(), count + 1)
        });
        assert!(seen * 20 < count, "{seen} of {count}");
        assert!(stored.len() < 8 << 10, "{} bytes", stored.len());
    }

    #[test]
    fn damage_is_no_panic() {
        let wrong = [[0, 9, 0, 0, 0], [0, 4, 0, 0, 0]].concat();
        assert!(blocks_with(&mut Plain(wrong), (0, 2), b"12345").is_err());
        assert!(blocks_with(&mut Plain(vec![0, 9]), (0, 1), b"12345").is_err());
        assert!(blocks_with(&mut Plain(vec![0, 255, 255, 255, 255]), (0, 1), b"12345").is_err());
    }
}

//! What a source contains, in a form that survives merging in any order.
//!
//! Invariants: the tally of a set of rows does not depend on their order or grouping; two copies
//! of a source have equal tallies (R2), and a merge puts out what it took in (R4).

use logpond_record::Id;
use xxhash_rust::xxh3::xxh3_128;

/// Rows, raw bytes and an order-free sum of row hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tally {
    /// Number of rows.
    pub rows: u64,
    /// Raw bytes of all rows, without framing.
    pub bytes: u64,
    /// Sum of [`row_hash`] of all rows, modulo 2^128.
    pub hash_sum: u128,
}

impl Tally {
    /// Counts one row.
    pub fn add_row(&mut self, id: Id, raw: &[u8]) {
        self.rows += 1;
        self.bytes += raw.len() as u64;
        self.hash_sum = self.hash_sum.wrapping_add(row_hash(id, raw));
    }

    /// Counts the rows of another tally.
    pub fn add(&mut self, other: &Tally) {
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.hash_sum = self.hash_sum.wrapping_add(other.hash_sum);
    }
}

/// The hash of a row: XXH3-128 over the id and the XXH3-128 of the raw bytes, both little-endian.
///
/// The bytes are hashed first and alone, so that no row has to be copied behind its id.
pub fn row_hash(id: Id, raw: &[u8]) -> u128 {
    let mut joined = [0u8; 32];
    joined[..16].copy_from_slice(&id.0.to_le_bytes());
    joined[16..].copy_from_slice(&xxh3_128(raw).to_le_bytes());
    xxh3_128(&joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_grouping_do_not_matter() {
        let rows: [(u128, &[u8]); 3] = [(1, b"a"), (2, b"a"), (3, b"")];
        let mut forward = Tally::default();
        rows.iter()
            .for_each(|(id, raw)| forward.add_row(Id(*id), raw));
        let mut grouped = Tally::default();
        for (id, raw) in rows.iter().rev() {
            let mut one = Tally::default();
            one.add_row(Id(*id), raw);
            grouped.add(&one);
        }
        assert_eq!(forward, grouped);
        assert_eq!((forward.rows, forward.bytes), (3, 2));
    }

    #[test]
    fn id_and_bytes_both_count() {
        assert_ne!(row_hash(Id(1), b"a"), row_hash(Id(2), b"a"));
        assert_ne!(row_hash(Id(1), b"a"), row_hash(Id(1), b"b"));
    }
}

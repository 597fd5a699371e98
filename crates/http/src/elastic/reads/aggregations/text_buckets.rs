//! Buckets by texts: a hash table, as a row is looked up in it for each of its values.

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

use super::state::Bucket;

/// Buckets by their texts, in no order.
#[derive(Debug, Default)]
pub(super) struct TextBuckets {
    table: HashTable<(Box<[u8]>, Bucket)>,
}

impl TextBuckets {
    /// The bucket of a text, which is made if there is none.
    pub(super) fn entry(&mut self, text: &[u8], make: impl FnOnce() -> Bucket) -> &mut Bucket {
        let hash = xxh3_64(text);
        let is_same = |pair: &(Box<[u8]>, Bucket)| *pair.0 == *text;
        let hash_of = |pair: &(Box<[u8]>, Bucket)| xxh3_64(&pair.0);
        let entry = self.table.entry(hash, is_same, hash_of);
        let entry = entry.or_insert_with(|| (text.into(), make()));
        &mut entry.into_mut().1
    }

    /// The texts.
    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.table.iter().map(|(text, _)| &**text)
    }

    /// The buckets.
    pub(super) fn buckets(&self) -> impl Iterator<Item = &Bucket> {
        self.table.iter().map(|(_, bucket)| bucket)
    }

    /// All of them.
    pub(super) fn into_pairs(self) -> impl Iterator<Item = (Box<[u8]>, Bucket)> {
        self.table.into_iter()
    }
}

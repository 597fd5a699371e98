//! The memory that a reader of a row group takes.

use super::RowGroupReader;
use crate::file::page::Dictionary;

/// About the memory of a decompressor of pages.
const DECOMPRESSOR_BYTES: usize = 96 << 10;

impl RowGroupReader<'_> {
    /// About the memory of what is kept for all blocks: dictionaries, parts of the token index, the decompressor.
    pub fn memory_bytes(&self) -> u64 {
        let dictionaries = self.dictionaries.iter().flatten();
        let dictionaries = dictionaries.map(Dictionary::memory_bytes).sum::<usize>();
        let index = self.index_parts.values().map(Vec::len).sum::<usize>();
        let decompressor = self.decompressor.as_ref().map_or(0, |_| DECOMPRESSOR_BYTES);
        (dictionaries + index + decompressor) as u64
    }
}

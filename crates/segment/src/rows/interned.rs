//! Distinct strings, each once.

use hashbrown::HashTable;
use logpond_record::cast;
use xxhash_rust::xxh3::xxh3_64;

use super::column::Strings;

/// Strings by codes, and codes by strings.
#[derive(Default)]
pub(crate) struct Interner {
    pub(crate) values: Strings,
    known: HashTable<u32>,
}

impl Interner {
    /// The code of a string, which is added if it is new.
    pub(crate) fn intern(&mut self, value: &[u8]) -> u32 {
        let values = &self.values;
        let hash = xxh3_64(value);
        if let Some(code) = self.known.find(hash, |code| values.get(*code) == value) {
            return *code;
        }
        let code = self.push(value);
        let values = &self.values;
        self.known
            .insert_unique(hash, code, |code| xxh3_64(values.get(*code)));
        code
    }

    /// The code of a string, if it is known.
    pub(crate) fn find(&self, value: &[u8]) -> Option<u32> {
        let values = &self.values;
        let found = self
            .known
            .find(xxh3_64(value), |code| values.get(*code) == value);
        found.copied()
    }

    /// Adds a string, known or not, that is not looked for later.
    pub(crate) fn push(&mut self, value: &[u8]) -> u32 {
        let code = cast::low_u32(self.values.len());
        self.values.push(value);
        code
    }

    /// Forgets the codes: strings are only added from now on.
    pub(crate) fn stop_looking(&mut self) {
        self.known = HashTable::new();
    }
}

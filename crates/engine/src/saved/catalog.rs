//! All queries of a server with the times of their changes, and how two of these become one.

use std::collections::BTreeMap;

use logpond_record::Timestamp;

use super::query::{SavedError, SavedQuery};

/// The most queries: a menu of more is no menu.
pub const QUERIES_MAX: usize = 1_000;

/// Removals that are kept. A node that comes back after more of them, and after it was away for all of
/// them, brings the query back; then it is there to be seen and removed again.
const REMOVALS_MAX: usize = 1_000;

/// The most queries that several nodes may have together: they add some while they do not hear each
/// other. More are not taken over.
const MERGED_QUERIES_MAX: usize = 4 * QUERIES_MAX;

const MILLISECOND_NS: i64 = 1_000_000;

/// The last change of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When, in whole milliseconds.
    pub changed: Timestamp,
    /// The query; `None` once it was removed.
    pub query: Option<SavedQuery>,
}

impl Entry {
    /// Whether this one counts if the other one is of the same name.
    fn is_later_than(&self, other: &Entry) -> bool {
        // The text only matters where two were made in the same millisecond; all nodes then choose
        // the same.
        let rank = |entry: &Entry| {
            let query = entry.query.clone().unwrap_or_default();
            let is_kept = entry.query.is_some();
            let parts = (query.query, query.description, query.legend);
            (
                entry.changed,
                is_kept,
                parts,
                query.format.as_str(),
                query.variables,
            )
        };
        rank(self) > rank(other)
    }
}

/// All names that were ever changed, as far as they are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog(BTreeMap<String, Entry>);

impl Catalog {
    /// The query of this name.
    pub fn get(&self, name: &str) -> Option<&SavedQuery> {
        self.0.get(name)?.query.as_ref()
    }

    /// All names with their last changes, in their order.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.0.iter().map(|(name, entry)| (&**name, entry))
    }

    /// How many queries there are.
    pub fn count(&self) -> usize {
        self.0
            .values()
            .filter(|entry| entry.query.is_some())
            .count()
    }

    /// Adds an entry that was read, which must be the only one of its name.
    pub(super) fn insert(&mut self, name: String, entry: Entry) -> bool {
        self.0.insert(name, entry).is_none()
    }

    /// Saves a query, in the place of another one of its name.
    ///
    /// # Errors
    /// When the query cannot be saved, or there are [`QUERIES_MAX`].
    pub fn set(&mut self, name: &str, query: SavedQuery, now: Timestamp) -> Result<(), SavedError> {
        query.check(name)?;
        if self.get(name).is_none() && self.count() >= QUERIES_MAX {
            return Err(SavedError::TooMany);
        }
        self.change(name, Some(query), now);
        Ok(())
    }

    /// Removes a query.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn remove(&mut self, name: &str, now: Timestamp) -> Result<(), SavedError> {
        if self.get(name).is_none() {
            return Err(SavedError::Unknown(name.to_owned()));
        }
        self.change(name, None, now);
        self.forget_old_removals();
        Ok(())
    }

    fn change(&mut self, name: &str, query: Option<SavedQuery>, now: Timestamp) {
        let whole = |time: Timestamp| time.unix_ms().saturating_mul(MILLISECOND_NS);
        let known = self.0.get(name);
        // It was known when this change was made, so this one is later.
        let least = known.map_or(i64::MIN, |entry| {
            entry.changed.0.saturating_add(MILLISECOND_NS)
        });
        let changed = Timestamp(whole(now).max(least));
        self.0.insert(name.to_owned(), Entry { changed, query });
    }

    /// Takes over what another catalog has later. True if that was anything.
    ///
    /// # Errors
    /// When there would be too many; nothing has changed then.
    pub fn merge(&mut self, other: &Catalog) -> Result<bool, SavedError> {
        let mut merged = self.clone();
        for (name, entry) in &other.0 {
            if merged
                .0
                .get(name)
                .is_none_or(|known| entry.is_later_than(known))
            {
                merged.0.insert(name.clone(), entry.clone());
            }
        }
        merged.forget_old_removals();
        if merged.count() > MERGED_QUERIES_MAX {
            return Err(SavedError::TooMany);
        }
        let is_news = merged != *self;
        *self = merged;
        Ok(is_news)
    }

    /// Takes over a file that somebody has edited: what differs from what the server wrote was changed
    /// now, unless it says a later time. True if that was anything.
    pub fn adopt(&mut self, edited: &Catalog, now: Timestamp) -> bool {
        let before = self.clone();
        for (name, entry) in &edited.0 {
            match self.0.get(name) {
                Some(known) if known.query == entry.query && known.changed >= entry.changed => {}
                Some(known) if known.changed < entry.changed => {
                    self.0.insert(name.clone(), entry.clone());
                }
                _ => self.change(name, entry.query.clone(), now.max(entry.changed)),
            }
        }
        let gone = before
            .entries()
            .filter(|(name, entry)| entry.query.is_some() && !edited.0.contains_key(*name));
        for (name, _) in gone {
            self.change(name, None, now);
        }
        self.forget_old_removals();
        *self != before
    }

    /// Leaves only the last [`REMOVALS_MAX`] removals: all catalogs with the same changes leave the
    /// same.
    fn forget_old_removals(&mut self) {
        let removals = self.0.iter().filter(|(_, entry)| entry.query.is_none());
        let mut removals: Vec<(Timestamp, String)> = removals
            .map(|(name, entry)| (entry.changed, name.clone()))
            .collect();
        if let Some(surplus) = removals.len().checked_sub(REMOVALS_MAX) {
            removals.sort_unstable();
            for (_, name) in &removals[..surplus] {
                self.0.remove(name);
            }
        }
    }
}

//! The saved queries of a server, in memory and on disk.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use logpond_record::{Timestamp, cast};
use logpond_segment::disk::Disk;
use xxhash_rust::xxh3::xxh3_64;

use super::built_in::built_in;
use super::catalog::Catalog;
use super::query::{SavedError, SavedQuery};
use super::text;
use logpond_host::disk::replace;

/// The file, below the data directory.
pub const PATH: &str = "queries.toml";

/// All queries together, as text.
pub const CATALOG_BYTES_MAX: usize = 4 << 20;

/// The longest text that is read, of the file and of other nodes: as with the number of queries, several
/// nodes may have more together.
pub const TEXT_BYTES_MAX: usize = 4 * CATALOG_BYTES_MAX;

/// The saved queries of a server.
pub struct SavedQueries {
    disk: Arc<dyn Disk>,
    /// Held while the file is read or written.
    file: Mutex<()>,
    state: Mutex<State>,
}

#[derive(Clone)]
struct State {
    catalog: Arc<Catalog>,
    /// What was read or written last.
    text: Arc<str>,
    digest: u64,
}

impl State {
    fn new(catalog: Catalog, text: String) -> State {
        State {
            digest: digest(&catalog),
            catalog: Arc::new(catalog),
            text: text.into(),
        }
    }
}

/// A number that differs where catalogs do, and is not zero.
fn digest(catalog: &Catalog) -> u64 {
    xxh3_64(text::render(catalog).as_bytes()).max(1)
}

impl SavedQueries {
    /// Reads the queries of a data directory; there are none at first.
    ///
    /// # Errors
    /// When the file cannot be read or understood.
    pub fn open(disk: Arc<dyn Disk>, now: Timestamp) -> Result<SavedQueries, SavedError> {
        let text = read(&*disk)?.unwrap_or_default();
        let catalog = text::parse(&text, now)?;
        Ok(SavedQueries::of(disk, State::new(catalog, text)))
    }

    fn of(disk: Arc<dyn Disk>, state: State) -> SavedQueries {
        SavedQueries {
            disk,
            file: Mutex::new(()),
            state: Mutex::new(state),
        }
    }

    /// The same for a server that starts: a file that cannot be understood keeps no records out. Without its queries
    /// nothing is saved until it is corrected. Gives what is wrong with it.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn open_at_start(
        disk: Arc<dyn Disk>,
        now: Timestamp,
    ) -> Result<(SavedQueries, Option<SavedError>), SavedError> {
        match SavedQueries::open(Arc::clone(&disk), now) {
            Ok(saved) => Ok((saved, None)),
            Err(error @ SavedError::File { .. }) => {
                let empty = State::new(Catalog::default(), String::new());
                Ok((SavedQueries::of(disk, empty), Some(error)))
            }
            Err(error) => Err(error),
        }
    }

    /// The queries that every server has, without those that were saved.
    #[must_use]
    pub fn without_saved(&self) -> SavedQueries {
        let empty = State::new(Catalog::default(), String::new());
        SavedQueries::of(Arc::clone(&self.disk), empty)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that was saved, without what every server has.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.state().catalog.clone()
    }

    /// A number that differs where the saved queries do; never zero.
    pub fn digest(&self) -> u64 {
        self.state().digest
    }

    /// The text that other nodes are told.
    pub fn to_text(&self) -> String {
        text::render(&self.catalog())
    }

    /// The query of this name, saved or of every server.
    pub fn get(&self, name: &str) -> Option<SavedQuery> {
        let saved = self.catalog().get(name).cloned();
        saved.or_else(|| {
            let mut own = built_in();
            own.find(|(own, _)| *own == name)
                .map(|(_, query)| query.clone())
        })
    }

    /// All queries in the order of their names, with whether they are those of every server.
    pub fn all(&self) -> Vec<(String, SavedQuery, bool)> {
        let catalog = self.catalog();
        let saved = catalog.entries().filter_map(|(name, entry)| {
            let query = entry.query.clone()?;
            Some((name.to_owned(), query, false))
        });
        let others = built_in().filter(|(name, _)| catalog.get(name).is_none());
        let others = others.map(|(name, query)| (name.to_owned(), query.clone(), true));
        let mut all: Vec<_> = saved.chain(others).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    /// Saves a query. Returns once it is on disk.
    ///
    /// # Errors
    /// See [`SavedError`]; nothing has changed then.
    pub fn set(&self, name: &str, query: SavedQuery, now: Timestamp) -> Result<(), SavedError> {
        self.change(now, |catalog| {
            catalog.set(name, query, now)?;
            if text::render(catalog).len() > CATALOG_BYTES_MAX {
                Err(SavedError::TooLarge)
            } else {
                Ok(())
            }
        })
    }

    /// Removes a query. Returns once that is on disk. Of the name of one that every server has, that
    /// one is there again.
    ///
    /// # Errors
    /// See [`SavedError`]; nothing has changed then.
    pub fn remove(&self, name: &str, now: Timestamp) -> Result<(), SavedError> {
        self.change(now, |catalog| match catalog.remove(name, now) {
            Err(SavedError::Unknown(name)) if built_in().any(|(own, _)| own == name) => {
                Err(SavedError::BuiltIn(name))
            }
            other => other,
        })
    }

    /// Takes over what another node has told. Returns once that is on disk.
    ///
    /// # Errors
    /// When it is no catalog, or there would be too many queries.
    pub fn learn(&self, told: &str, now: Timestamp) -> Result<(), SavedError> {
        let told = text::parse(told, now)?;
        self.change(now, |catalog| catalog.merge(&told).map(drop))
    }

    /// Takes over what somebody has changed in the file. True if that was anything.
    ///
    /// # Errors
    /// When the file cannot be read, understood or written; what is known stays as it is.
    pub fn look(&self, now: Timestamp) -> Result<bool, SavedError> {
        let before = self.digest();
        self.change(now, |_| Ok(()))?;
        Ok(self.digest() != before)
    }

    /// Changes the catalog and the file. What others have changed in the file counts before.
    fn change(
        &self,
        now: Timestamp,
        change: impl FnOnce(&mut Catalog) -> Result<(), SavedError>,
    ) -> Result<(), SavedError> {
        let _file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.state().clone();
        let mut catalog = Catalog::clone(&state.catalog);
        // A file that is gone is no wish to remove everything; it is written anew with the next change.
        let edited = read(&*self.disk)?.filter(|found| **found != *state.text);
        if let Some(edited) = &edited {
            catalog.adopt(&text::parse(edited, now)?, now);
        }
        change(&mut catalog)?;
        if catalog == *state.catalog && edited.is_none() {
            return Ok(());
        }
        let text = text::render(&catalog);
        if text.len() > TEXT_BYTES_MAX {
            return Err(SavedError::TooLarge);
        }
        // Also where only the form was edited: the times of changes must be in the file.
        if edited.is_none_or(|edited| edited != text) {
            replace(&*self.disk, "", PATH, text.as_bytes()).map_err(SavedError::Disk)?;
        }
        *self.state() = State::new(catalog, text);
        Ok(())
    }
}

/// The text of the file, if there is one.
fn read(disk: &dyn Disk) -> Result<Option<String>, SavedError> {
    let file = match disk.open(PATH) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(SavedError::Disk(error)),
    };
    let bytes = file.bytes().map_err(SavedError::Disk)?;
    if bytes > TEXT_BYTES_MAX as u64 {
        let what = format!("it is longer than {TEXT_BYTES_MAX} bytes");
        return Err(SavedError::File { line: 1, what });
    }
    let mut text = vec![0; cast::to_usize(bytes)];
    file.read_at(0, &mut text).map_err(SavedError::Disk)?;
    String::from_utf8(text).map(Some).map_err(|_| {
        let what = "it is not UTF-8 text".to_owned();
        SavedError::File { line: 1, what }
    })
}

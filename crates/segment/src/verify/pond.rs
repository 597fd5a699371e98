//! Checking all files of a data directory, beside a server or without one.

use std::collections::BTreeSet;
use std::io;

use crate::build;
use crate::disk::{DirEntry, Disk};
use crate::inventory::{self, Inventory};
use crate::journal::{self, JournalFile, OpenError};
use crate::sources::SourceSet;

/// How often the directory is listed anew because files went and came meanwhile. A server moves
/// one a second at most, and each new one is checked within the next round.
const ROUNDS_MAX: usize = 8;

/// Something worth saying about a file.
#[derive(Debug)]
pub enum Finding {
    /// Bytes that are not what they should be.
    Damage {
        /// The file.
        path: String,
        /// What is wrong.
        what: String,
        /// First byte.
        from: u64,
        /// First byte behind.
        to: u64,
    },
    /// What is no damage, but good to know.
    Remark {
        /// The file.
        path: String,
        /// What about it.
        what: String,
    },
    /// A file that could not be read.
    Error {
        /// The file.
        path: String,
        /// What the disk said.
        error: io::Error,
    },
}

/// What was checked, and what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Segments checked.
    pub segments: u64,
    /// Journal files checked.
    pub journal_files: u64,
    /// Rows that can be read.
    pub rows: u64,
    /// Bytes of the files checked.
    pub bytes: u64,
    /// Damaged places, and files that were put aside.
    pub damages: u64,
    /// Files that should be there and are not; they count as damages, too.
    pub absent: u64,
    /// Files that could not be read.
    pub errors: u64,
}

/// Checks every journal file and every live segment, and names what was put aside, and what should be there
/// and is not.
///
/// A file that vanishes meanwhile is not damage: a server has moved its rows elsewhere, and what
/// they moved to is checked as well.
///
/// # Errors
/// When a directory cannot be listed.
pub fn data_directory(disk: &dyn Disk, say: &mut dyn FnMut(Finding)) -> io::Result<Totals> {
    // First: what is listed is there or has moved by the time when the files are looked at.
    let listed = inventory(disk)?;
    let known = match &listed {
        inventory::InventoryState::Sound(inventory) => Some(inventory),
        _ => None,
    };
    let mut checker = Checker {
        disk,
        say,
        totals: Totals::default(),
        known,
        held: SourceSet::new(),
    };
    if let inventory::InventoryState::Damaged(what) = &listed {
        let what = format!("{what}; the next start makes it anew");
        checker.remark(inventory::PATH, &what);
    }
    let mut seen = BTreeSet::new();
    for _ in 0..ROUNDS_MAX {
        let mut is_new = false;
        for directory in [journal::DIRECTORY, build::DIRECTORY] {
            let mut entries = disk.list(directory)?;
            entries.sort_by(|a, b| a.name.cmp(&b.name));
            for entry in entries {
                let path = format!("{directory}/{}", entry.name);
                if seen.insert(path.clone()) {
                    is_new = true;
                    checker.entry(directory, &path, &entry);
                }
            }
        }
        if !is_new {
            break;
        }
    }
    checker.absent()?;
    Ok(checker.totals)
}

/// The inventory.
fn inventory(disk: &dyn Disk) -> io::Result<inventory::InventoryState> {
    match Inventory::read(disk) {
        // It was replaced by a shorter one while it was read.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Inventory::read(disk),
        read => read,
    }
}

struct Checker<'a> {
    disk: &'a dyn Disk,
    say: &'a mut dyn FnMut(Finding),
    totals: Totals,
    /// The files that should be there.
    known: Option<&'a Inventory>,
    /// The sources in segments.
    held: SourceSet,
}

impl Checker<'_> {
    fn entry(&mut self, directory: &str, path: &str, entry: &DirEntry) {
        let result = if entry.name.ends_with(journal::SUFFIX_QUARANTINED) {
            self.damage(
                path,
                "it was put aside; its rows are missing",
                0,
                entry.bytes,
            );
            Ok(())
        } else if entry.name.ends_with(build::SUFFIX_SUPERSEDED) {
            self.remark(path, "it was put aside; another file has its rows");
            Ok(())
        } else if directory == journal::DIRECTORY {
            self.journal(path, entry)
        } else if entry.name.ends_with(build::SUFFIX_LIVE) {
            self.segment(path, entry)
        } else {
            // Files being written, and retired ones.
            Ok(())
        };
        match result {
            // Another process may have retired it since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if self.is_listed(directory, &entry.name) {
                    let what = "it is a link that leads nowhere; its rows are missing";
                    self.damage(path, what, 0, entry.bytes);
                }
            }
            Err(error) => {
                self.totals.errors += 1;
                let path = path.to_owned();
                (self.say)(Finding::Error { path, error });
            }
            Ok(()) => {}
        }
    }

    fn is_listed(&self, directory: &str, name: &str) -> bool {
        let listed = self.disk.list(directory);
        listed.is_ok_and(|entries| entries.iter().any(|entry| entry.name == name))
    }

    fn segment(&mut self, path: &str, entry: &DirEntry) -> io::Result<()> {
        let file = self.disk.open(path)?;
        let bytes = file.bytes()?;
        let id = entry.name.strip_suffix(build::SUFFIX_LIVE);
        let id = id.and_then(|id| id.parse().ok());
        let known = id.and_then(|id| self.known?.segments.get(&id));
        let checked = super::file(file, known)?;
        self.held.union_with(&checked.sources);
        self.totals.segments += 1;
        self.totals.bytes += bytes;
        self.totals.rows += checked.rows;
        for damage in &checked.damages {
            let end = damage.offset.saturating_add(damage.bytes);
            self.damage(path, damage.what, damage.offset, end);
        }
        if let Some(id) = checked.id
            && entry.name != format!("{id}{}", build::SUFFIX_LIVE)
        {
            self.damage(path, "its name is not the id that it holds", 0, bytes);
        }
        Ok(())
    }

    fn journal(&mut self, path: &str, entry: &DirEntry) -> io::Result<()> {
        let (source, suffix) = match journal::parse_name(&entry.name) {
            // The copy of a file that is there as well.
            Some((_, journal::SUFFIX_SALVAGE)) => return Ok(()),
            Some(name) => name,
            None => {
                self.remark(path, "it is not named like a journal file");
                return Ok(());
            }
        };
        let is_open = suffix == journal::SUFFIX_OPEN;
        let journal = match JournalFile::open(self.disk, path) {
            Ok(journal) => journal,
            Err(OpenError::Disk(error)) => return Err(error),
            Err(error) => {
                self.damage(path, &error.to_string(), 0, entry.bytes);
                return Ok(());
            }
        };
        let scanned = match journal.scan() {
            // It was cut while it was read: only ever done to what no sync had returned for.
            Err(error) if is_open && error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            other => other?,
        };
        self.totals.journal_files += 1;
        self.totals.bytes += journal.limit();
        self.totals.rows += scanned.summary.rows();
        let listed = scanned.damages.listed.len() as u64;
        for range in &scanned.unsynced.listed {
            let what = if range.from >= scanned.good_end {
                format!(
                    "its last {} bytes are no whole frame (yet)",
                    journal.limit() - range.from
                )
            } else {
                format!(
                    "bytes {}..{} were lost before they were synced",
                    range.from, range.to
                )
            };
            self.remark(path, &what);
            if range.from >= scanned.good_end {
                break;
            }
        }
        for damage in &scanned.damages.listed {
            let what = match damage.rows {
                Some(rows) => format!("{}, {rows} rows", damage.reason),
                None => damage.reason.to_string(),
            };
            self.damage(path, &what, damage.from, damage.to);
        }
        self.totals.damages += scanned.damages.count.saturating_sub(listed);
        // A file only grows while a server writes it. Damaged rows were counted, and those that a start found are listed.
        let known = self.known.and_then(|known| known.journal.get(&source));
        let known = known.filter(|known| !known.is_shortened && scanned.damages.count == 0);
        let lacking = known.map_or(0, |known| known.rows.saturating_sub(scanned.summary.rows()));
        if lacking > 0 {
            let what = format!("it lacks {lacking} rows that it had");
            self.damage(path, &what, journal.limit(), journal.limit());
        }
        if !is_open && scanned.summary.rows() == 0 && scanned.damages.count == 0 {
            self.damage(path, "a closed file without rows", 0, journal.limit());
        }
        Ok(())
    }

    /// Names the files that should be there and are not.
    fn absent(&mut self) -> io::Result<()> {
        let Some(listed) = self.known else {
            return Ok(());
        };
        for absent in listed.still_absent(self.disk, &self.held)? {
            let text = absent.to_string();
            let what = text.strip_prefix(&absent.path).unwrap_or(&text);
            let what = what.trim_start_matches(": ");
            if listed.is_cluster {
                let what = format!("{what}; other nodes of the cluster may hold them");
                self.remark(&absent.path, &what);
            } else {
                self.totals.absent += 1;
                self.damage(&absent.path, what, 0, 0);
            }
        }
        Ok(())
    }

    fn damage(&mut self, path: &str, what: &str, from: u64, to: u64) {
        self.totals.damages += 1;
        let (path, what) = (path.to_owned(), what.to_owned());
        (self.say)(Finding::Damage {
            path,
            what,
            from,
            to,
        });
    }

    fn remark(&mut self, path: &str, what: &str) {
        let (path, what) = (path.to_owned(), what.to_owned());
        (self.say)(Finding::Remark { path, what });
    }
}

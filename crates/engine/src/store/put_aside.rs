//! Files whose rows are missing from every answer.
//!
//! Invariant: a file is listed from the moment it is put aside until somebody has removed it; as
//! nobody knows which rows were in it, no answer is complete until then.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use logpond_segment::disk::Disk;

/// A file, by the names it may have.
struct Aside {
    /// In the order that it gets them.
    paths: Vec<String>,
    why: String,
}

/// The files that were put aside. Cheap to clone; all clones are the same list.
#[derive(Clone, Default)]
pub struct PutAside {
    files: Arc<Mutex<Vec<Aside>>>,
    /// What cannot be read beyond the local disk, with the reasons.
    elsewhere: Arc<Mutex<Vec<String>>>,
}

impl PutAside {
    /// Adds a file, and why it cannot be read. A file that is about to be renamed has two paths,
    /// the new one last, so that it is listed all the while.
    pub fn add(&self, paths: &[&str], why: &str) {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if !files.iter().any(|known| known.paths == paths) {
            let why = why.to_owned();
            files.push(Aside { paths, why });
        }
    }

    /// Says all that cannot be read beyond the local disk, each with the reason, in place of what was said
    /// before.
    pub(super) fn set_elsewhere(&self, missing: Vec<String>) {
        *self
            .elsewhere
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = missing;
    }

    /// Whether something cannot be read beyond the local disk.
    pub fn has_elsewhere(&self) -> bool {
        let elsewhere = self
            .elsewhere
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        !elsewhere.is_empty()
    }

    /// The files that are still there, and what is missing elsewhere, each with the reason. Costs one look
    /// at each file.
    pub fn list(&self, disk: &dyn Disk) -> Vec<String> {
        let is_there = |path: &&String| {
            let opened = disk.open(path);
            !opened.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        };
        let elsewhere = self
            .elsewhere
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut listed = elsewhere.clone();
        drop(elsewhere);
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|file| {
            let found = file.paths.iter().find(is_there);
            listed.extend(found.map(|path| format!("{path}: {}", file.why)));
            found.is_some()
        });
        listed
    }
}

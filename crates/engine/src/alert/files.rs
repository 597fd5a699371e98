//! Files of alert rules: one, or all `*.yml` and `*.yaml` of a directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use logpond_search::alert::{FILE_BYTES_MAX, parse};

use super::{AlertRulesError, LoadedGroup, RuleSet};
use logpond_host::disk::read_bounded;

/// The most files of a directory.
const FILES_MAX: usize = 1000;

/// Reads the rules of a file, or of all files of a directory.
///
/// # Errors
/// When one of them cannot be used; nothing is left out.
pub fn read(path: &Path) -> Result<RuleSet, AlertRulesError> {
    let mut groups = Vec::new();
    for file in files(path)? {
        let text = text_of(&file)?;
        let parsed = parse(&text).map_err(|error| AlertRulesError::Wrong {
            path: file.clone(),
            error,
        })?;
        let namespace = file.file_name().unwrap_or(file.as_os_str());
        let namespace = namespace.to_string_lossy().into_owned();
        let shown = file.display().to_string();
        let loaded = parsed.into_iter();
        groups.extend(loaded.map(|group| Arc::new(LoadedGroup::new(&namespace, &shown, group))));
    }
    Ok(RuleSet::new(groups))
}

/// The files that a path means, in the order of their names.
pub(super) fn files(path: &Path) -> Result<Vec<PathBuf>, AlertRulesError> {
    let unreadable = |source| AlertRulesError::Unreadable {
        path: path.to_owned(),
        source,
    };
    if !fs::metadata(path).map_err(unreadable)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        let is_yaml = file.extension().is_some_and(|e| e == "yml" || e == "yaml");
        if !is_yaml || !file.is_file() {
            continue;
        }
        if found.len() >= FILES_MAX {
            return Err(AlertRulesError::TooMany {
                path: path.to_owned(),
                most: FILES_MAX,
            });
        }
        found.push(file);
    }
    found.sort();
    Ok(found)
}

fn text_of(path: &Path) -> Result<String, AlertRulesError> {
    let read = || {
        let bytes = read_bounded(path, FILE_BYTES_MAX as u64)?;
        String::from_utf8(bytes)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no UTF-8 text"))
    };
    read().map_err(|source| AlertRulesError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

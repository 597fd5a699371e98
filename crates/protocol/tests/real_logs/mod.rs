//! Real logs, where tests find them.

use std::path::{Path, PathBuf};

/// The folder with real logs and tools, or `None`, said plainly, where there is none.
pub(crate) fn shared(test: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("LOGPOND_SHARED").map_or(beside, PathBuf::from);
    if folder.join("fixtures").is_dir() {
        return Some(folder);
    }
    let absent = format!("{test} because {} is absent", folder.display());
    assert!(
        std::env::var_os("CI").is_none_or(|ci| ci != "true"),
        "cannot run: {absent}"
    );
    println!("skipped: {absent}");
    None
}

/// All files below a folder, sorted within each.
pub(crate) fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            files_below(&path, found);
        } else {
            found.push(path);
        }
    }
}

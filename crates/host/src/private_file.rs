//! Files that nobody but their owner reads, replaced in one step, and those that others do not read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;

use rustix::fs::Mode;

/// What their owner may do.
const MODE: u32 = 0o600;

/// The rights that other users have to nothing, and the owner's group only to read.
const WITHHELD: u32 = 0o027;

/// Withholds from other users whatever this process makes from now on, also by libraries, such as copies in a directory
/// that is a bucket. Files that get a mode by `chmod`, such as sockets, are not affected.
pub fn withhold_from_others() {
    let withheld = Mode::from_raw_mode(WITHHELD);
    let before = rustix::process::umask(withheld);
    if !withheld.contains(before) {
        rustix::process::umask(before | withheld);
    }
}

/// Replaces a file by these bytes, or makes it: whoever reads it finds the old or the new one, also
/// after a crash. `directory` is the one it is in, locked by the caller against others that write there.
///
/// # Errors
/// Those of the system; the file is as it was then.
pub fn replace(path: &Path, directory: &File, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    // Of a process that was killed: nobody else writes under the lock.
    let _ = fs::remove_file(&temporary);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(&temporary)?;
    // Made by root for a server that runs as another user, who must be able to read it.
    if rustix::process::geteuid().is_root() {
        let owner = fs::metadata(path).or_else(|_| directory.metadata())?;
        fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
    }
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    directory.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_replaced_and_stays_private() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = File::open(scratch.path()).unwrap();
        let path = scratch.path().join("key.pem");
        // Of one that was killed.
        fs::write(scratch.path().join("key.pem.tmp"), "half").unwrap();
        for text in ["first", "second, which is longer", "third"] {
            replace(&path, &directory, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            let mode = path.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, MODE);
        }
        let names = fs::read_dir(scratch.path()).unwrap();
        assert_eq!(names.count(), 1);
    }
}

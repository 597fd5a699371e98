//! Whether files have changed.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What tells one state of a file from another, as far as the system tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp(Result<[i64; 7], ErrorKind>);

impl Stamp {
    /// The state of the file now; that it cannot be looked at is one, too. Take it before the file
    /// is read, so that a change in between is seen by the next look.
    pub fn of(path: &Path) -> Stamp {
        let found = fs::metadata(path).map_err(|error| error.kind());
        Stamp(found.map(|m| {
            [
                m.dev().cast_signed(),
                m.ino().cast_signed(),
                m.size().cast_signed(),
                m.mtime(),
                m.mtime_nsec(),
                m.ctime(),
                m.ctime_nsec(),
            ]
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_a_file_changes_its_stamp() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let other = directory.path().join("b");
        let mut stamps = vec![Stamp::of(&path)];
        fs::write(&path, "x").unwrap();
        stamps.push(Stamp::of(&path));
        fs::write(&other, "y").unwrap();
        fs::rename(&other, &path).unwrap();
        stamps.push(Stamp::of(&path));
        fs::write(&path, "longer").unwrap();
        stamps.push(Stamp::of(&path));
        for (index, stamp) in stamps.iter().enumerate() {
            assert!(!stamps[..index].contains(stamp), "{index}");
        }
        assert_eq!(Stamp::of(&path), Stamp::of(&path));
    }
}

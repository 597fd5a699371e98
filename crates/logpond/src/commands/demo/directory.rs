//! The directory of a demo's own pond.
//!
//! ```text
//! DIR/demo.txt   the seed, the time, and whether the day is there; made first and removed last
//! DIR/pond/      the data directory of the server
//! ```
//!
//! Invariant: nothing is removed of a directory without that file.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use logpond_host::disk::RealDisk;

use crate::commands::Failure;

/// The file that says that a directory is a demo's.
const MARKER: &str = "demo.txt";

/// The data directory.
const POND: &str = "pond";

/// The first line of the marker.
const TITLE: &str = "made by logpond demo; logpond demo --clean --data DIR removes it";

/// The longest marker that is read.
const MARKER_BYTES_MAX: u64 = 4096;

/// The facts that a demo goes on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) seed: u64,
    /// The end of the day, in seconds since 1970.
    pub(super) now: i64,
    /// True once the whole day is in the pond.
    pub(super) is_filled: bool,
}

impl State {
    fn text(self) -> String {
        let State {
            seed,
            now,
            is_filled,
        } = self;
        let filled = if is_filled { "filled" } else { "filling" };
        format!("{TITLE}\n{seed} {now} {filled}\n")
    }

    fn parse(text: &str) -> Option<State> {
        let (title, rest) = text.split_once('\n')?;
        let mut words = rest.split_whitespace();
        let state = State {
            seed: words.next()?.parse().ok()?,
            now: words.next()?.parse().ok()?,
            is_filled: words.next()? == "filled",
        };
        (title == TITLE).then_some(state)
    }
}

/// A directory that a demo uses. A temporary one is removed with this.
pub(super) struct Directory {
    path: PathBuf,
    state: State,
    is_temporary: bool,
}

impl Directory {
    /// The directory with this name, new or of an earlier demo.
    pub(super) fn open(path: &Path, fresh: State) -> Result<Directory, Failure> {
        let state = match read(path)? {
            Some(state) if state.is_filled => state,
            Some(_) => {
                return Err(format!(
                    "{} has an unfinished demo; remove it: logpond demo --clean --data DIR",
                    path.display()
                )
                .into());
            }
            None => {
                make(path, fresh)?;
                fresh
            }
        };
        Ok(Directory {
            path: path.to_owned(),
            state,
            is_temporary: false,
        })
    }

    /// A new directory among the temporary ones.
    pub(super) fn temporary(fresh: State) -> Result<Directory, Failure> {
        let name = format!("logpond-demo-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).map_err(|error| named(&path, &error))?;
        make(&path, fresh)?;
        Ok(Directory {
            path,
            state: fresh,
            is_temporary: true,
        })
    }

    /// The data directory.
    pub(super) fn pond(&self) -> PathBuf {
        self.path.join(POND)
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    /// Notes that the day is there.
    pub(super) fn note_filled(&self) -> Result<(), Failure> {
        let state = State {
            is_filled: true,
            ..self.state
        };
        write(&self.path, state)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.is_temporary {
            // The system removes what is left of it.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Removes the pond of a demo that does not run, and the directory if nothing else is in it.
pub(super) fn clean(path: &Path) -> Result<(), Failure> {
    if read(path)?.is_none() {
        return Err(format!("{} has no pond of a demo", path.display()).into());
    }
    let pond = path.join(POND);
    if pond.is_dir() {
        let lock = RealDisk::create(&pond)?.lock()?;
        fs::remove_dir_all(&pond).map_err(|error| named(&pond, &error))?;
        drop(lock);
    }
    let marker = path.join(MARKER);
    fs::remove_file(&marker).map_err(|error| named(&marker, &error))?;
    match fs::remove_dir(path) {
        Err(error) if error.kind() != ErrorKind::DirectoryNotEmpty => Err(named(path, &error)),
        _ => Ok(()),
    }
}

/// Makes the directory of a demo of one that is empty or is not there.
fn make(path: &Path, state: State) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|error| named(path, &error))?;
    let mut entries = fs::read_dir(path).map_err(|error| named(path, &error))?;
    if entries.next().is_some() {
        return Err(format!(
            "{} is not empty and has no pond of a demo; name another directory",
            path.display()
        )
        .into());
    }
    write(path, state)
}

fn write(path: &Path, state: State) -> Result<(), Failure> {
    let marker = path.join(MARKER);
    fs::write(&marker, state.text()).map_err(|error| named(&marker, &error))
}

/// The state of a demo's directory; none if it is none.
fn read(path: &Path) -> Result<Option<State>, Failure> {
    let marker = path.join(MARKER);
    match fs::metadata(&marker) {
        Ok(metadata) if metadata.len() > MARKER_BYTES_MAX => return Ok(None),
        Ok(_) => {}
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(named(&marker, &error)),
    }
    let text = fs::read_to_string(&marker).map_err(|error| named(&marker, &error))?;
    Ok(State::parse(&text))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn named(path: &Path, error: &io::Error) -> Failure {
    format!("{}: {error}", path.display()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: State = State {
        seed: 7,
        now: 1_772_450_000,
        is_filled: false,
    };

    #[test]
    fn a_demo_goes_on_and_is_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a/b");
        let directory = Directory::open(&path, FRESH).unwrap();
        fs::create_dir(directory.pond()).unwrap();
        let error = Directory::open(&path, FRESH).err().unwrap().to_string();
        assert!(error.contains("unfinished"), "{error}");
        directory.note_filled().unwrap();
        let later = State { now: 1, ..FRESH };
        let again = Directory::open(&path, later).unwrap();
        assert_eq!(again.state().now, FRESH.now);
        clean(&path).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn nothing_else_is_used_or_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path();
        fs::write(path.join("letter"), "dear").unwrap();
        assert!(Directory::open(path, FRESH).is_err());
        assert!(clean(path).is_err());
        assert!(path.join("letter").exists());
        fs::write(path.join(MARKER), "something else\n1 2 filled\n").unwrap();
        assert!(clean(path).is_err());
    }

    #[test]
    fn a_temporary_directory_leaves_nothing() {
        let directory = Directory::temporary(FRESH).unwrap();
        let path = directory.path.clone();
        assert!(path.join(MARKER).exists());
        drop(directory);
        assert!(!path.exists());
    }
}

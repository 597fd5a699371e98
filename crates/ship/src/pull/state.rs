//! The position of an import, and the page that is being sent, as files.
//!
//! ```text
//! page from the source ─▶ STATE.page, synced ─▶ target: durable ─▶ STATE: position behind the page ─▶ STATE.page removed
//! ```
//!
//! Invariants: a page is in its file before the first byte of it is sent, and until the position is behind it;
//! after a crash the same bytes are sent again, which the target knows by their hash, so that nothing is stored
//! twice and nothing is left out. Both files are replaced as a whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::PullError;
use logpond_host::state_lock::StateLock;

/// The longest file with a position that is read: half a million identities of records with the same time.
const STATE_BYTES_MAX: u64 = 64 << 20;

/// The longest file with a page that is read: an answer of the source, and its labels in every body.
const PAGE_BYTES_MAX: u64 = 1 << 30;

/// Version of both files.
const STATE_VERSION: u32 = 1;

/// The counts of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Records that the source gave.
    pub read: u64,
    /// Records that the target holds durably.
    pub accepted: u64,
    /// Records that the target refused.
    pub rejected: u64,
    /// Bytes of requests to the target.
    pub bytes: u64,
    /// Records that the source counts in the range, once this is known.
    pub counted: Option<u64>,
}

impl Totals {
    /// True if the target has every record that the source counts.
    pub fn is_complete(&self) -> bool {
        let is_short = self.counted.is_some_and(|counted| counted > self.read);
        self.rejected == 0 && !is_short
    }
}

/// The position of an import.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct State<C> {
    pub(super) version: u32,
    /// The source and the selection, to tell one import from another.
    pub(super) import: String,
    /// The number of the last page that the target has.
    pub(super) page: u64,
    pub(super) totals: Totals,
    pub(super) is_done: bool,
    pub(super) cursor: C,
}

/// Some records on their way to the target.
#[derive(Clone, Debug)]
pub(super) struct Page<C> {
    /// Requests to the target.
    pub(super) bodies: Vec<PushBody>,
    /// The position behind the page.
    pub(super) next: C,
}

/// The body of a request to the target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PushBody {
    pub(super) bytes: Vec<u8>,
    pub(super) records: u64,
}

/// The first line of the file with a page.
#[derive(Serialize, Deserialize)]
struct PageHead<C> {
    version: u32,
    page: u64,
    /// Of each body its length and its number of records.
    bodies: Vec<(u64, u64)>,
    next: C,
}

/// The files of an import.
pub(super) struct StateFile {
    path: PathBuf,
    page: PathBuf,
    lock: StateLock,
}

impl StateFile {
    /// Opens the files of this process alone, and reads the position, if there is one.
    pub(super) fn open<C: DeserializeOwned>(
        path: &Path,
    ) -> Result<(StateFile, Option<State<C>>), PullError> {
        let failed = |source| PullError::State {
            path: path.to_owned(),
            source,
        };
        let lock = StateLock::take(path).map_err(|error| match error.kind() {
            io::ErrorKind::ResourceBusy => PullError::StateInUse(path.to_owned()),
            _ => failed(error),
        })?;
        let text = read_up_to(path, STATE_BYTES_MAX).map_err(failed)?;
        // An empty file was made to be locked.
        let state = if text.is_empty() {
            None
        } else {
            let read: State<C> = serde_json::from_slice(&text)
                .map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidData, error)))?;
            check_version(read.version).map_err(failed)?;
            Some(read)
        };
        let file = StateFile {
            path: path.to_owned(),
            page: path.with_added_extension("page"),
            lock,
        };
        Ok((file, state))
    }

    /// Replaces the position.
    pub(super) fn save<C: Serialize>(&mut self, state: &State<C>) -> Result<(), PullError> {
        let text = serde_json::to_vec(state).map_err(io::Error::other);
        let saved = text.and_then(|mut text| {
            text.push(b'\n');
            self.lock.replace(&text)?;
            sync_directory(&self.path)
        });
        saved.map_err(|source| self.failed(source))
    }

    /// Writes a page down before it is sent.
    pub(super) fn hold<C: Serialize + Clone>(
        &self,
        number: u64,
        page: &Page<C>,
    ) -> Result<(), PullError> {
        let sizes = page.bodies.iter();
        let head = PageHead {
            version: STATE_VERSION,
            page: number,
            bodies: sizes
                .map(|body| (body.bytes.len() as u64, body.records))
                .collect(),
            next: page.next.clone(),
        };
        let write = || {
            let new = self.page.with_added_extension("new");
            // Records are for their owner alone.
            let mut options = OpenOptions::new();
            let options = options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = options.open(&new)?;
            let mut line = serde_json::to_vec(&head).map_err(io::Error::other)?;
            line.push(b'\n');
            file.write_all(&line)?;
            let mut bodies = page.bodies.iter();
            bodies.try_for_each(|body| file.write_all(&body.bytes))?;
            file.sync_all()?;
            fs::rename(&new, &self.page)?;
            sync_directory(&self.page)
        };
        write().map_err(|source| self.failed(source))
    }

    /// The page with this number, if it was written down.
    pub(super) fn held<C: DeserializeOwned>(
        &self,
        number: u64,
    ) -> Result<Option<Page<C>>, PullError> {
        let read = || {
            let text = read_up_to(&self.page, PAGE_BYTES_MAX)?;
            if text.is_empty() {
                return Ok(None);
            }
            let nonsense =
                |reason: &str| io::Error::new(io::ErrorKind::InvalidData, reason.to_owned());
            let end = memchr::memchr(b'\n', &text).ok_or_else(|| nonsense("it has no head"))?;
            let (head, rest) = text.split_at(end + 1);
            let head: PageHead<C> = serde_json::from_slice(head)?;
            check_version(head.version)?;
            if head.page != number {
                return Ok(None);
            }
            let (mut bodies, mut rest) = (Vec::new(), rest);
            for (length, records) in head.bodies {
                let length = usize::try_from(length).map_err(|_| nonsense("it is too long"))?;
                let parts = rest.split_at_checked(length);
                let (body, after) = parts.ok_or_else(|| nonsense("it ends early"))?;
                bodies.push(PushBody {
                    bytes: body.to_vec(),
                    records,
                });
                rest = after;
            }
            Ok(Some(Page {
                bodies,
                next: head.next,
            }))
        };
        read().map_err(|source| PullError::State {
            path: self.page.clone(),
            source,
        })
    }

    /// Removes the page that the position is behind.
    pub(super) fn release(&self) {
        // A page that is left is known by its number.
        let _ = fs::remove_file(&self.page);
    }

    fn failed(&self, source: io::Error) -> PullError {
        PullError::State {
            path: self.path.clone(),
            source,
        }
    }
}

/// The version of new positions.
pub(super) const fn version() -> u32 {
    STATE_VERSION
}

fn check_version(version: u32) -> io::Result<()> {
    if version == STATE_VERSION {
        return Ok(());
    }
    let reason = format!("it has version {version}, and this program reads {STATE_VERSION}");
    Err(io::Error::new(io::ErrorKind::InvalidData, reason))
}

/// The content of a file; of a missing one nothing.
fn read_up_to(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(text),
        file => file?.take(bytes_max + 1).read_to_end(&mut text)?,
    };
    if text.len() as u64 > bytes_max {
        let reason = format!("it has more than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    Ok(text)
}

/// Makes a rename durable.
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(bytes: &[u8], records: u64) -> PushBody {
        let bytes = bytes.to_vec();
        PushBody { bytes, records }
    }

    #[test]
    fn a_page_is_held_until_the_position_is_behind_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/state.json");
        let (mut file, state) = StateFile::open::<u64>(&path).unwrap();
        assert!(state.is_none());
        assert!(file.held::<u64>(1).unwrap().is_none());
        let page = Page {
            bodies: vec![body(b"one\n", 1), body(b"", 0), body(b"three", 2)],
            next: 7_u64,
        };
        file.hold(1, &page).unwrap();
        let held = file.held::<u64>(1).unwrap().unwrap();
        assert_eq!((held.bodies, held.next), (page.bodies, 7));
        assert!(
            file.held::<u64>(2).unwrap().is_none(),
            "it is of another number"
        );
        assert!(matches!(
            StateFile::open::<u64>(&path),
            Err(PullError::StateInUse(_))
        ));
        let state = State {
            version: version(),
            import: "x".to_owned(),
            page: 1,
            totals: Totals {
                read: 3,
                ..Totals::default()
            },
            is_done: false,
            cursor: 7_u64,
        };
        file.save(&state).unwrap();
        file.release();
        drop(file);
        let (file, state) = StateFile::open::<u64>(&path).unwrap();
        let state = state.unwrap();
        assert_eq!((state.page, state.totals.read, state.cursor), (1, 3, 7));
        assert!(file.held::<u64>(2).unwrap().is_none());
    }

    #[test]
    fn files_that_cannot_be_read_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        fs::write(&path, b"{}").unwrap();
        let error = StateFile::open::<u64>(&path).err().unwrap();
        assert!(
            error.to_string().contains("name another by --state"),
            "{error}"
        );
        fs::write(
            &path,
            br#"{"version":9,"import":"","page":0,"totals":{"read":0,"accepted":0,"rejected":0,"bytes":0,"counted":null},"is_done":false,"cursor":0}"#,
        )
        .unwrap();
        assert!(StateFile::open::<u64>(&path).is_err());
        fs::remove_file(&path).unwrap();
        let (file, _) = StateFile::open::<u64>(&path).unwrap();
        let head = r#"{"version":1,"page":1,"bodies":[[9,1]],"next":0}"#;
        fs::write(path.with_added_extension("page"), format!("{head}\nshort")).unwrap();
        assert!(file.held::<u64>(1).is_err());
    }
}

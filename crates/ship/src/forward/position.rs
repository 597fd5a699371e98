//! Positions in files that are followed, and the file that remembers them.
//!
//! Invariants: a position is behind what was acknowledged, never before it, but for parts of lines that
//! were read and not sent, which it names; the file is replaced as a whole, so that it is never half
//! written; one process at a time uses it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use logpond_protocol::intake::assembly::Held;
use logpond_protocol::intake::container::{Format, Stream};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::ForwardError;
use logpond_host::state_lock::StateLock;
use logpond_host::terminal::note;

/// Bytes at the start of a file that tell it from another one with the same inode number.
pub(super) const FINGERPRINT_BYTES_MAX: u64 = 1 << 10;

/// Bytes before a position that tell a file from one that was filled anew with the same beginning.
const NEAR_BYTES_MAX: u64 = 1 << 10;

/// Most positions that are remembered: far more files than one machine's services write.
pub(super) const POSITIONS_MAX: usize = 10_000;

/// The longest file of positions that is read: it has room for all of them with long paths.
const STATE_BYTES_MAX: u64 = 64 << 20;

/// Version of the file of positions.
const STATE_VERSION: u32 = 1;

/// Which file it is, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// The identity of an open file or a path's target.
    pub(super) fn of(metadata: &std::fs::Metadata) -> Identity {
        Identity {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }
}

/// The hash of a file's first bytes: of as many as were acknowledged, up to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fingerprint {
    hash: u64,
    bytes: u64,
}

impl Fingerprint {
    /// The fingerprint of what was acknowledged up to `offset`.
    pub(super) fn of(file: &File, offset: u64) -> io::Result<Fingerprint> {
        let bytes = offset.min(FINGERPRINT_BYTES_MAX);
        let mut start = vec![0; bytes as usize];
        file.read_exact_at(&mut start, 0)?;
        Ok(Fingerprint {
            hash: xxh3_64(&start),
            bytes,
        })
    }

    /// The fingerprint of what was acknowledged up to `offset` of content that starts like this.
    pub(super) fn of_start(start: &[u8], offset: u64) -> Fingerprint {
        let bytes = offset.min(FINGERPRINT_BYTES_MAX).min(start.len() as u64);
        Fingerprint {
            hash: xxh3_64(&start[..bytes as usize]),
            bytes,
        }
    }

    /// Whether content starts with the bytes of this fingerprint, which has some.
    pub(super) fn is_of(&self, start: &[u8]) -> bool {
        self.bytes > 0
            && start.len() as u64 >= self.bytes
            && Fingerprint::of_start(start, self.bytes) == *self
    }

    /// Whether it already covers as much as it can.
    pub(super) fn is_whole(&self) -> bool {
        self.bytes == FINGERPRINT_BYTES_MAX
    }

    /// Whether the file starts with the bytes of this fingerprint.
    pub(super) fn matches(&self, file: &File) -> io::Result<bool> {
        if file.metadata()?.len() < self.bytes {
            return Ok(false);
        }
        Ok(Fingerprint::of(file, self.bytes)? == *self)
    }
}

/// The hash of the bytes right before an offset.
pub(super) fn hash_before(file: &File, offset: u64) -> io::Result<u64> {
    let bytes = offset.min(NEAR_BYTES_MAX);
    let mut near = vec![0; bytes as usize];
    file.read_exact_at(&mut near, offset - bytes)?;
    Ok(xxh3_64(&near))
}

/// How far a file was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    /// The name it had when it was opened.
    pub(super) path: PathBuf,
    /// Which file it is.
    #[serde(flatten)]
    pub(super) identity: Identity,
    /// What it starts with.
    #[serde(flatten)]
    pub(super) fingerprint: Fingerprint,
    /// Bytes that were acknowledged, but for what is held.
    pub(super) offset: u64,
    /// The hash of the bytes right before the offset. Positions of earlier versions and of compressed
    /// files have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) near: Option<u64>,
    /// What the lines were taken for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    format: Option<String>,
    /// By the names of streams, where parts of unfinished lines begin that are before the offset.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    held: BTreeMap<String, u64>,
    /// Streams whose unfinished line begins in the file before, which had the same name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    carried: Vec<String>,
    /// The file's own path, where the name is that of a symbolic link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<PathBuf>,
    /// The length of a compressed file whose content was sent to its end; offset and fingerprint of
    /// such a file are of the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) archive: Option<u64>,
}

impl Position {
    /// A position before everything.
    pub(super) fn start(path: PathBuf, identity: Identity, fingerprint: Fingerprint) -> Position {
        let target = std::fs::canonicalize(&path).ok();
        Position {
            target: target.filter(|target| *target != path),
            path,
            identity,
            fingerprint,
            offset: 0,
            near: None,
            format: None,
            held: BTreeMap::new(),
            carried: Vec::new(),
            archive: None,
        }
    }

    /// Goes on from where another file with the same content was sent up to.
    pub(super) fn go_on(&mut self, other: &Position) {
        self.fingerprint = other.fingerprint;
        self.offset = other.offset;
        self.near = None;
        self.format = other.format.clone();
        self.held = other.held.clone();
    }

    /// True if the file begins with what was acknowledged, and has it right before the offset.
    pub(super) fn is_in(&self, file: &File) -> io::Result<bool> {
        if file.metadata()?.len() < self.offset || !self.fingerprint.matches(file)? {
            return Ok(false);
        }
        match self.near {
            Some(near) => Ok(hash_before(file, self.offset)? == near),
            None => Ok(true),
        }
    }

    /// What the lines were taken for, if that was decided.
    pub(super) fn format(&self) -> Option<Format> {
        Format::from_name(self.format.as_deref()?)
    }

    /// Notes what the lines are taken for.
    pub(super) fn set_format(&mut self, format: Option<Format>) {
        self.format = format.map(|format| format.name().to_owned());
    }

    /// Where parts begin that were not sent.
    pub(super) fn held(&self) -> Held {
        Stream::ALL.map(|stream| self.held.get(key(stream)).copied())
    }

    /// Notes where parts begin that were not sent, and which of their lines begin in the file before.
    pub(super) fn set_held(&mut self, held: Held, carried: [bool; 3]) {
        let streams = Stream::ALL.into_iter();
        let each = streams.clone().zip(held);
        let named = each.filter_map(|(stream, from)| Some((key(stream).to_owned(), from?)));
        self.held = named.collect();
        let each = streams.zip(carried).filter(|(_, is_carried)| *is_carried);
        self.carried = each.map(|(stream, _)| key(stream).to_owned()).collect();
    }

    /// Streams whose unfinished line begins in the file before.
    pub(super) fn carried(&self) -> [bool; 3] {
        Stream::ALL.map(|stream| self.carried.iter().any(|name| name == key(stream)))
    }

    /// Of two positions in a file, which is behind the other: with the same offset, the one that holds
    /// less back.
    pub(super) fn progress(&self) -> impl Ord {
        (self.offset, std::cmp::Reverse(self.held.len()))
    }
}

/// The name of a stream in a position.
fn key(stream: Stream) -> &'static str {
    stream.name().unwrap_or("lines")
}

#[derive(Serialize, Deserialize)]
struct State {
    version: u32,
    files: Vec<Position>,
}

/// The file of positions.
pub(super) struct StateFile {
    path: PathBuf,
    lock: StateLock,
}

impl StateFile {
    /// Opens and reads it. A file that makes no sense is kept under another name and reading
    /// starts anew: records twice are better than records lost.
    pub(super) fn open(path: &Path) -> Result<(StateFile, Vec<Position>), ForwardError> {
        let failed = |source| ForwardError::State {
            path: path.to_path_buf(),
            source,
        };
        let lock = StateLock::take(path).map_err(|error| match error.kind() {
            io::ErrorKind::ResourceBusy => ForwardError::StateInUse(path.to_path_buf()),
            _ => failed(error),
        })?;
        let positions = match read(path) {
            Ok(positions) => positions,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let kept = path.with_added_extension("bad");
                std::fs::rename(path, &kept).map_err(failed)?;
                note(&format!(
                    "logpond: {} makes no sense ({error}), kept as {}; files are read from their \
                     beginning",
                    path.display(),
                    kept.display()
                ));
                Vec::new()
            }
            Err(error) => return Err(failed(error)),
        };
        let state = StateFile {
            path: path.to_path_buf(),
            lock,
        };
        Ok((state, positions))
    }

    /// Replaces the file.
    pub(super) fn save(&mut self, positions: Vec<Position>) -> Result<(), ForwardError> {
        self.replace(positions)
            .map_err(|source| ForwardError::State {
                path: self.path.clone(),
                source,
            })
    }

    fn replace(&mut self, mut positions: Vec<Position>) -> io::Result<()> {
        positions.truncate(POSITIONS_MAX);
        let state = State {
            version: STATE_VERSION,
            files: positions,
        };
        let mut text = serde_json::to_vec_pretty(&state).map_err(io::Error::other)?;
        text.push(b'\n');
        self.lock.replace(&text)
    }
}

fn read(path: &Path) -> io::Result<Vec<Position>> {
    let bytes = match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        metadata => metadata?.len(),
    };
    if bytes == 0 {
        // It was made to be locked.
        return Ok(Vec::new());
    }
    let nonsense = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
    if bytes > STATE_BYTES_MAX {
        return Err(nonsense(format!("it has {bytes} bytes")));
    }
    let state: State = serde_json::from_slice(&std::fs::read(path)?)
        .map_err(|error| nonsense(error.to_string()))?;
    match state.version {
        STATE_VERSION => Ok(state.files),
        other => Err(nonsense(format!("it is of version {other}"))),
    }
}

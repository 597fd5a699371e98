//! Where it is noted what is known of each stream: a file in memory.
//!
//! Its descriptor is kept like those of the streams, so it outlives the server with all that it says. It
//! has a slot for each stream; behind these are the lines whose ends had not come when a server stopped.
//! Nothing else is noted of lines: after a kill nobody could tell whether they were written meanwhile.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use logpond_protocol::intake::lines::UnfinishedLine;
use logpond_record::cast;
use logpond_record::limits::LINE_BYTES_MAX;
use rustix::fs::MemfdFlags;

use super::slot::{self, PHASE_AT, Phase, Place, SLOT_BYTES, STATE_AT, State, UNFINISHED_AT};
use crate::net::local::streams::STREAMS_MAX;

/// What it begins with, by its version.
const MAGIC: &[u8] = b"logpond streams 1\n";

/// Where the lines begin: behind the first place, which is the magic's, and the slots.
const LINES_AT: u64 = ((STREAMS_MAX + 1) * SLOT_BYTES) as u64;

/// Notes of all streams.
pub(super) struct Board {
    file: File,
    /// Where the next line goes.
    end: AtomicU64,
}

/// The saved state of a stream.
pub(in crate::net::local) struct StreamNote {
    /// What is known of it.
    pub(in crate::net::local) state: State,
    /// Whether its header may be in the stream still.
    pub(in crate::net::local) is_header_there: bool,
    /// The line that had no end yet.
    pub(in crate::net::local) unfinished: Option<UnfinishedLine>,
}

impl Board {
    /// One that says nothing. What is never written takes no memory.
    pub(super) fn new() -> io::Result<Board> {
        let file = rustix::fs::memfd_create("logpond-streams", MemfdFlags::CLOEXEC)?;
        let file = File::from(file);
        file.set_len(LINES_AT)?;
        file.write_all_at(MAGIC, 0)?;
        Ok(Board::over(file))
    }

    /// One that an earlier server has written.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn open(descriptor: OwnedFd) -> io::Result<Board> {
        let file = File::from(descriptor);
        let mut magic = [0; MAGIC.len()];
        file.read_exact_at(&mut magic, 0)?;
        if magic == MAGIC && file.metadata()?.len() >= LINES_AT {
            Ok(Board::over(file))
        } else {
            Err(io::ErrorKind::InvalidData.into())
        }
    }

    fn over(file: File) -> Board {
        let end = AtomicU64::new(LINES_AT);
        Board { file, end }
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// What is noted of a stream; `None` if nothing of it was taken yet.
    pub(super) fn read(&self, slot: u16) -> io::Result<Option<StreamNote>> {
        let mut bytes = vec![0; SLOT_BYTES];
        self.file.read_exact_at(&mut bytes, at(slot))?;
        let (phase, state, place) = slot::read(&bytes);
        if phase == Phase::New {
            return Ok(None);
        }
        let state = state.ok_or(io::ErrorKind::InvalidData)?;
        Ok(Some(StreamNote {
            state,
            is_header_there: phase == Phase::Seen,
            unfinished: self.read_line(place)?,
        }))
    }

    fn read_line(&self, place: Place) -> io::Result<Option<UnfinishedLine>> {
        if place.length == 0 {
            return Ok(None);
        }
        if place.length > LINE_BYTES_MAX as u64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = vec![0; cast::to_usize(place.length)];
        self.file.read_exact_at(&mut bytes, place.offset)?;
        Ok(Some(UnfinishedLine {
            bytes,
            truncated_bytes: cast::to_usize(place.truncated_bytes),
        }))
    }

    /// Forgets the lines, which have been read.
    pub(super) fn forget_lines(&self, slots: impl Iterator<Item = u16>) -> io::Result<()> {
        for slot in slots {
            let none = Place::default().to_bytes();
            self.file.write_all_at(&none, at(slot) + UNFINISHED_AT)?;
        }
        self.file.set_len(LINES_AT)
    }

    /// Notes what a stream says of itself, before that is taken out of it.
    pub(super) fn see(&self, slot: u16, state: &State) -> io::Result<()> {
        let bytes = state.to_bytes();
        self.file.write_all_at(&bytes, at(slot) + STATE_AT as u64)?;
        self.phase(slot, Phase::Seen)
    }

    /// Notes that it was taken out.
    pub(super) fn take(&self, slot: u16) -> io::Result<()> {
        self.phase(slot, Phase::Taken)
    }

    /// Notes a line whose end has not come.
    pub(super) fn leave(&self, slot: u16, line: &UnfinishedLine) -> io::Result<()> {
        let length = line.bytes.len() as u64;
        let offset = self.end.fetch_add(length, Ordering::Relaxed);
        self.file.write_all_at(&line.bytes, offset)?;
        let place = Place {
            offset,
            length,
            truncated_bytes: line.truncated_bytes as u64,
        };
        let place = place.to_bytes();
        self.file.write_all_at(&place, at(slot) + UNFINISHED_AT)
    }

    /// Forgets a stream.
    pub(super) fn clear(&self, slot: u16) -> io::Result<()> {
        self.phase(slot, Phase::New)
    }

    fn phase(&self, slot: u16, phase: Phase) -> io::Result<()> {
        self.file.write_all_at(&[phase as u8], at(slot) + PHASE_AT)
    }
}

fn at(slot: u16) -> u64 {
    (usize::from(slot) + 1) as u64 * SLOT_BYTES as u64
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use logpond_protocol::intake::journal_stdout::StreamHeader;

    use super::*;

    fn state(name: &str) -> State {
        State {
            header: StreamHeader {
                identifier: name.to_owned(),
                ..StreamHeader::default()
            },
            labels: None,
        }
    }

    fn reopened(board: &Board) -> Board {
        Board::open(board.file().as_fd().try_clone_to_owned().unwrap()).unwrap()
    }

    #[test]
    fn the_next_server_reads_what_was_noted() {
        let board = Board::new().unwrap();
        let last = u16::try_from(STREAMS_MAX - 1).unwrap();
        for (slot, name) in [(0, "first"), (1, "gone"), (last, "last")] {
            assert!(board.read(slot).unwrap().is_none());
            board.see(slot, &state(name)).unwrap();
        }
        board.take(last).unwrap();
        board.clear(1).unwrap();
        let lines = [("half", 0), ("a line", 3)].map(|(text, truncated_bytes)| UnfinishedLine {
            bytes: text.as_bytes().to_vec(),
            truncated_bytes,
        });
        board.leave(0, &lines[0]).unwrap();
        board.leave(last, &lines[1]).unwrap();
        let next = reopened(&board);
        let first = next.read(0).unwrap().unwrap();
        assert_eq!(first.state, state("first"));
        assert!(first.is_header_there);
        assert_eq!(first.unfinished.as_ref(), Some(&lines[0]));
        assert!(next.read(1).unwrap().is_none());
        let found = next.read(last).unwrap().unwrap();
        assert!(!found.is_header_there);
        assert_eq!(found.unfinished.as_ref(), Some(&lines[1]));
        // Each line goes on once.
        next.forget_lines([0, last].into_iter()).unwrap();
        assert_eq!(next.file().metadata().unwrap().len(), LINES_AT);
        let after = reopened(&next);
        let found = after.read(last).unwrap().unwrap();
        assert_eq!((found.state, found.unfinished), (state("last"), None));
    }

    #[test]
    fn other_files_are_none() {
        let file = |length| {
            let file = rustix::fs::memfd_create("other", MemfdFlags::CLOEXEC);
            let file = File::from(file.unwrap());
            file.set_len(length).unwrap();
            file
        };
        for length in [0, 5, LINES_AT] {
            assert!(Board::open(file(length).into()).is_err());
        }
        let short = file(LINES_AT - 1);
        short.write_all_at(MAGIC, 0).unwrap();
        assert!(Board::open(short.into()).is_err());
    }
}

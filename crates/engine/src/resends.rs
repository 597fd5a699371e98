//! The memory of batches and messages whose journal files are gone: whatever is sent again, after any
//! number of restarts and compactions, is stored once.
//!
//! Senders that were cut off send again what they do not know to be stored, and do not say that they do.
//! Requests are named by what is in them ([`batches::content_epoch`]), in the frames of the journal; messages
//! of RELP are known by their fingerprints, of each sender the last ones. As long as the journal has them it
//! is the journal that knows.
//!
//! Invariants:
//! - The names and messages in a file of the journal are on disk before the file goes; if that cannot be written, that is
//!   said, and the file goes all the same: rather twice than a full disk.
//! - The files that were released and may still be there are named, so that a message is not read a second time from one
//!   of them after a crash: a message that stands twice is stored again when it is sent again.
//! - Both memories are bounded ([`NAMES_MAX`], [`MESSAGES_ALL_MAX`]); the oldest are forgotten first.
//!
//! `docs/format/resends.md` is normative.

use std::collections::{HashSet, VecDeque};
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use logpond_protocol::intake::resent::{Fingerprint, MESSAGES_MAX, Recent};
use logpond_record::{EntryKind, SourceId, cast};
use logpond_segment::batches;
use logpond_segment::disk::Disk;
use logpond_segment::journal::{ClosedFile, JournalFile, OpenError};
use logpond_segment::sources::SourceSet;
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use logpond_host::disk::replace;
use logpond_host::telemetry::warn;

/// The file, below the data directory.
pub const PATH: &str = "resends";

/// Version of the file.
const VERSION: u64 = 1;

/// Names of requests that are remembered: those of a day of one sender, or of eleven minutes of a hundred
/// that send each second. They take 1 MiB on disk and some 4 MiB in memory.
pub const NAMES_MAX: usize = 65_536;

/// Senders whose messages are remembered; the one that is longest unchanged is forgotten first.
pub const PEERS_MAX: usize = 1024;

/// Fingerprints of all senders together: as many as each of 64 has at most, 2 MiB. Of a thousand senders
/// each has the last 256, twice what is on its way by default.
const MESSAGES_ALL_MAX: usize = 64 * MESSAGES_MAX;

/// The longest file that is read: both memories full, with long names of senders.
const BYTES_MAX: u64 = 16 << 20;

/// The longest name of a sender: one of DNS has 253 bytes.
const PEER_BYTES_MAX: usize = 1024;

/// The label that says who sent something.
const LABEL: &str = "hostname";

/// The memory. There is one in a process.
pub struct Resends {
    disk: Arc<dyn Disk>,
    /// True if messages are remembered, too: only a listener for RELP asks for them.
    has_messages: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// In the order in which they came, the oldest first.
    order: VecDeque<u128>,
    /// The same. Invariant: these are those in the order.
    names: HashSet<u128>,
    peers: Peers,
    /// Files that were released. Those that had gone by the last release are left out.
    covered: SourceSet,
    is_failing: bool,
}

/// The last messages of senders, the one that is longest unchanged first.
#[derive(Clone, Default)]
struct Peers(VecDeque<(Box<str>, Recent)>);

impl Peers {
    fn append(&mut self, name: &str, messages: &Recent) {
        let place = self.0.iter().position(|(known, _)| &**known == name);
        let known = place.and_then(|place| self.0.remove(place));
        let (name, mut all) = known.unwrap_or_else(|| (name.into(), Recent::default()));
        all.append(messages);
        if self.0.len() == PEERS_MAX {
            self.0.pop_front();
        }
        self.0.push_back((name, all));
    }
}

impl State {
    fn note(&mut self, name: u128) {
        if !self.names.insert(name) {
            return;
        }
        self.order.push_back(name);
        if self.order.len() > NAMES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.names.remove(&oldest);
        }
    }
}

impl Resends {
    /// Opens the memory of earlier lives. A file that makes no sense is said, and taken for none.
    pub fn open(disk: Arc<dyn Disk>, has_messages: bool) -> Resends {
        let state = match read(&*disk) {
            Ok(state) => state,
            Err(error) => {
                warn(&format!(
                    "{PATH}: {error}; what was sent before this start may be stored twice if it is sent again"
                ));
                State::default()
            }
        };
        Resends {
            disk,
            has_messages,
            state: Mutex::new(state),
        }
    }

    /// True if a request of this name has left the journal lately.
    pub fn has(&self, name: u128) -> bool {
        self.state().names.contains(&name)
    }

    /// True if this file of the journal is in the memory although the file may be there.
    pub fn covers(&self, source: SourceId) -> bool {
        self.state().covered.contains(source)
    }

    /// The last messages of senders that have left the journal.
    pub fn messages(&self) -> Vec<(Box<str>, Recent)> {
        self.state().peers.0.iter().cloned().collect()
    }

    /// Remembers what is in files of the journal that are about to go; `journal` has all files that are there.
    pub fn release(&self, files: &[ClosedFile], journal: &[ClosedFile]) {
        let mut state = self.state();
        let is_new = |file: &&ClosedFile| !state.covered.contains(file.source);
        let files: Vec<&ClosedFile> = files.iter().filter(is_new).collect();
        if files.is_empty() {
            return;
        }
        let mut is_changed = false;
        for file in &files {
            for name in file.batches.content_names() {
                is_changed = true;
                state.note(name);
            }
            if self.has_messages {
                let peers = &mut state.peers;
                let read = read_messages(&*self.disk, file, |peer, messages| {
                    is_changed = true;
                    peers.append(peer, messages);
                });
                if let Err(error) = read {
                    warn(&format!(
                        "{}: what its senders send again may be stored twice: {error}",
                        file.path
                    ));
                }
            }
        }
        let there: SourceSet = journal.iter().map(|file| file.source).collect();
        let mut covered = state.covered.common(&there);
        files.iter().for_each(|file| covered.insert(file.source));
        state.covered = covered;
        if !is_changed {
            return;
        }
        let written = replace(&*self.disk, "", PATH, &encode(&state));
        if let (Err(error), false) = (&written, state.is_failing) {
            warn(&format!(
                "{PATH} cannot be written: what was sent so far may be stored twice if it is sent again \
                 after a restart: {error}"
            ));
        }
        state.is_failing = written.is_err();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Kinds of frames that can have syslog messages.
const KINDS: &[EntryKind] = &[EntryKind::Syslog, EntryKind::Enveloped];

/// Reads the syslog messages of a file of the journal, whatever they came by, with their senders. Frames of
/// other kinds are passed over. Gives the bytes of the frames that were read.
///
/// # Errors
/// When the file cannot be read; what was read before stays.
pub fn read_messages(
    disk: &dyn Disk,
    file: &ClosedFile,
    mut found: impl FnMut(&str, &Recent),
) -> Result<u64, OpenError> {
    let file = JournalFile::from_closed(disk, file)?;
    let mut frames = file.frames();
    frames.only(KINDS);
    let mut bytes = 0;
    while let Some(frame) = frames.next()? {
        bytes += frame.bytes();
        let peer = frame.labels().iter().find(|(name, _)| &**name == LABEL);
        let Some((_, peer)) = peer.filter(|(_, peer)| peer.len() <= PEER_BYTES_MAX) else {
            continue;
        };
        let mut recent = Recent::default();
        let messages = frame
            .entries()
            .filter(|entry| entry.kind == EntryKind::Syslog);
        messages.for_each(|message| recent.add(Fingerprint::of(message.raw)));
        if !recent.is_empty() {
            found(peer, &recent);
        }
    }
    Ok(bytes)
}

fn encode(state: &State) -> Vec<u8> {
    let mut out = Encoder::new(VERSION);
    out.sources(&state.covered);
    out.count(state.order.len());
    state.order.iter().for_each(|name| out.wide(*name));
    let peers = &state.peers.0;
    let each = (MESSAGES_ALL_MAX / peers.len().max(1)).min(MESSAGES_MAX);
    out.count(peers.len());
    for (name, messages) in peers {
        out.bytes(name.as_bytes());
        let skipped = messages.len().saturating_sub(each);
        let newest = messages.iter().skip(skipped);
        let bytes: Vec<u8> = newest
            .flat_map(|message| message.number().to_le_bytes())
            .collect();
        out.bytes(&bytes);
    }
    let mut bytes = out.finish();
    let crc = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes
}

fn read(disk: &dyn Disk) -> io::Result<State> {
    let file = match disk.open(PATH) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(State::default()),
        opened => opened?,
    };
    let length = file.bytes()?;
    if length > BYTES_MAX {
        return Err(io::Error::new(ErrorKind::InvalidData, "it is too long"));
    }
    let mut bytes = vec![0; cast::to_usize(length)];
    file.read_at(0, &mut bytes)?;
    let damaged = || io::Error::new(ErrorKind::InvalidData, "its checksum is wrong");
    let (body, crc) = bytes.split_last_chunk::<4>().ok_or_else(damaged)?;
    if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
        return Err(damaged());
    }
    decode(body).map_err(|error| io::Error::new(ErrorKind::InvalidData, error.to_string()))
}

fn decode(body: &[u8]) -> Result<State, DecodeError> {
    let mut from = Decoder::new(body, VERSION)?;
    let mut state = State {
        covered: from.sources("the files")?,
        ..State::default()
    };
    for _ in 0..from.count(16, "the names")? {
        let name = from.wide("a name")?;
        state.note(name);
    }
    for _ in 0..from.count(2, "the senders")? {
        let name = from.text(PEER_BYTES_MAX, "the name of a sender")?;
        let bytes = from.bytes(8 * MESSAGES_MAX, "the messages of a sender")?;
        let mut messages = Recent::default();
        for number in bytes.as_chunks::<8>().0 {
            messages.add(Fingerprint::of_number(u64::from_le_bytes(*number)));
        }
        state.peers.append(name, &messages);
    }
    from.finish()?;
    Ok(state)
}

/// The name of a request, by what tells it from others.
pub fn name_of(identity: u128) -> batches::BatchId {
    batches::BatchId {
        epoch: batches::content_epoch(identity),
        sequence: 0,
        attempt: 0,
        first_sent: logpond_record::Timestamp(0),
        more: 0,
    }
}

#[cfg(test)]
mod tests {
    use logpond_record::{Batch, Incarnation, Timestamp};
    use logpond_segment::journal::{Settings, Writer};
    use logpond_segment::mem_disk::{Fault, MemDisk};

    use super::*;

    fn message(number: usize) -> String {
        format!("<13>1 2026-03-02T00:00:00.{number:06}Z ash app 7 - - x")
    }

    /// The low bits of an identity are in no name.
    fn identity(number: usize) -> u128 {
        (number as u128) << 64
    }

    /// Closed files, each with a named batch and a message.
    fn files(disk: &MemDisk, count: usize) -> Vec<ClosedFile> {
        disk.create_directory("").unwrap();
        let mut writer = Writer::new(Arc::new(disk.clone()), Settings::default());
        for number in 0..count {
            let mut batch = Batch::new(EntryKind::Syslog, vec![(LABEL.into(), "ash".into())]);
            batch.push(message(number).as_bytes());
            let now = Timestamp(1_772_409_600_000_000_000);
            let id = Some(name_of(identity(number)));
            writer
                .append_identified(&batch, id, now, || Incarnation(5))
                .unwrap();
            writer.close().unwrap();
        }
        writer.visible().snapshot().closed.to_vec()
    }

    fn knows(resends: &Resends, number: usize) -> bool {
        resends.has(name_of(identity(number)).epoch)
    }

    fn messages(resends: &Resends) -> usize {
        let messages = resends.messages();
        messages.iter().map(|(_, messages)| messages.len()).sum()
    }

    #[test]
    fn what_left_the_journal_is_known_after_any_number_of_starts() {
        let disk = MemDisk::new();
        let files = files(&disk, 4);
        for life in 0..4 {
            let resends = Resends::open(Arc::new(disk.clone()), true);
            for number in 0..4 {
                assert_eq!(knows(&resends, number), number < life);
            }
            assert_eq!(messages(&resends), life);
            resends.release(&files[life..=life], &files);
            // A crash came before the file went.
            resends.release(&files[life..=life], &files);
            let again = Resends::open(Arc::new(disk.clone()), true);
            // None of them has gone yet.
            assert!(files[..=life].iter().all(|file| again.covers(file.source)));
            again.release(&files[..=life], &files);
            assert_eq!(messages(&again), life + 1);
        }
    }

    #[test]
    fn damage_and_full_disks_are_borne() {
        let disk = MemDisk::new();
        let files = files(&disk, 3);
        let open = || Resends::open(Arc::new(disk.clone()), false);
        let resends = open();
        resends.release(&files[..1], &files);
        disk.fail_at(disk.calls_count() + 1, Fault::Error(ErrorKind::StorageFull));
        resends.release(&files[1..2], &files[1..]);
        disk.clear_faults();
        resends.release(&files[2..], &files[2..]);
        assert!((0..3).all(|number| knows(&open(), number)));
        let mut bytes = disk.read(PATH).unwrap();
        for at in 0..bytes.len() {
            bytes[at] ^= 0x10;
            disk.write(PATH, &bytes);
            assert!(!knows(&open(), 0), "byte {at}");
            bytes[at] ^= 0x10;
        }
        disk.write(PATH, &bytes);
        assert!(knows(&open(), 0));
    }

    #[test]
    fn the_bytes_are_those_of_the_format() {
        let mut state = State::default();
        state.covered.insert(SourceId {
            incarnation: Incarnation(5),
            sequence: 7,
        });
        state.note(name_of(0xfeed << 40).epoch);
        let mut messages = Recent::default();
        for number in [7, u64::MAX] {
            messages.add(Fingerprint::of_number(number));
        }
        state.peers.append("ash", &messages);
        let golden = include_bytes!("../../../testdata/resends/v1");
        assert_eq!(encode(&state), golden);
    }

    #[test]
    fn the_memory_is_bounded() {
        let mut state = State::default();
        for name in 0..2 * NAMES_MAX as u128 {
            state.note(name);
        }
        for peer in 0..2 * PEERS_MAX {
            let mut messages = Recent::default();
            for number in 0..600 {
                messages.add(Fingerprint::of(message(number).as_bytes()));
            }
            state.peers.append(&format!("peer{peer}"), &messages);
        }
        let bytes = encode(&state);
        assert!((bytes.len() as u64) < BYTES_MAX);
        let again = decode(&bytes[..bytes.len() - 4]).unwrap();
        assert_eq!(again.order, state.order);
        assert_eq!(again.names.len(), NAMES_MAX);
        assert_eq!(again.peers.0.len(), PEERS_MAX);
        let newest = Fingerprint::of(message(599).as_bytes());
        let (_, messages) = &again.peers.0[0];
        assert_eq!(messages.iter().last(), Some(newest));
        assert_eq!(messages.len(), MESSAGES_ALL_MAX / PEERS_MAX);
    }
}

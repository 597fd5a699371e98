//! What was stored of whom lately, beyond the end of a session and of the process.
//!
//! After a start it is what is remembered of files that have left the journal ([`logpond_engine::resends`]) and what the
//! journal has: its last files, up to [`JOURNAL_BYTES_MAX`], whatever they came by. A message of which rules
//! changed the text is not known again then.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use logpond_protocol::intake::resent::{Fingerprint, Recent, Resends};
use logpond_segment::disk::Disk;
use logpond_segment::journal::{ClosedFile, OpenError};

use logpond_engine::resends::{PEERS_MAX, Resends as Remembered, read_messages};

/// How much of the journal is read at a start: four files of the usual size.
const JOURNAL_BYTES_MAX: u64 = 64 << 20;

/// What a session has stored. Others look at it while it is open: its client may have begun another one
/// before its end is seen here.
type Stored = Arc<Mutex<Recent>>;

/// A sender.
#[derive(Debug)]
struct PeerState {
    name: Box<str>,
    /// Of sessions that ended without a close.
    ended: Recent,
    open: Vec<Stored>,
}

/// Senders by name, the one that is longest unchanged first.
#[derive(Debug, Default)]
pub struct Peers(Mutex<VecDeque<PeerState>>);

impl Peers {
    /// Reads the memory of released files, and the journal.
    ///
    /// # Errors
    /// When a file cannot be read; what was read of others before is known all the same.
    pub fn read(
        &self,
        remembered: &Remembered,
        disk: &dyn Disk,
        closed: &[ClosedFile],
    ) -> Result<(), OpenError> {
        for (peer, messages) in remembered.messages() {
            self.change(&peer, |known| known.ended.append(&messages));
        }
        let closed = closed.iter().filter(|file| !remembered.covers(file.source));
        let mut bytes = 0;
        let newest_first = closed.rev().take_while(|file| {
            bytes += file.bytes;
            bytes <= JOURNAL_BYTES_MAX
        });
        let files: Vec<&ClosedFile> = newest_first.collect();
        for file in files.into_iter().rev() {
            read_messages(disk, file, |peer, messages| {
                self.change(peer, |known| known.ended.append(messages));
            })?;
        }
        Ok(())
    }

    /// Changes what is known of a peer.
    fn change(&self, name: &str, change: impl FnOnce(&mut PeerState)) {
        let mut peers = lock(&self.0);
        let place = peers.iter().position(|known| &*known.name == name);
        let mut known = place
            .and_then(|place| peers.remove(place))
            .unwrap_or_else(|| PeerState {
                name: name.into(),
                ended: Recent::default(),
                open: Vec::new(),
            });
        change(&mut known);
        if peers.len() == PEERS_MAX {
            peers.pop_front();
        }
        if !known.open.is_empty() || !known.ended.is_empty() {
            peers.push_back(known);
        }
    }

    /// With what the first messages of a peer's session are compared; it is open from now on.
    fn open(&self, name: &str, stored: &Stored) -> Resends {
        let mut resends = Resends::default();
        self.change(name, |known| {
            let mut all = known.ended.clone();
            known.open.iter().for_each(|of| all.append(&lock(of)));
            resends = Resends::of(&all);
            known.open.push(stored.clone());
        });
        resends
    }

    /// A session has ended.
    fn end(&self, name: &str, stored: &Stored) {
        self.change(name, |known| {
            known.open.retain(|open| !Arc::ptr_eq(open, stored));
            known.ended.append(&lock(stored));
        });
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One peer's session.
pub(in crate::net) struct Peer {
    name: Arc<str>,
    peers: Arc<Peers>,
    resends: Resends,
    stored: Stored,
}

impl Peer {
    /// A session of the peer of this name begins.
    pub(in crate::net) fn new(name: Arc<str>, peers: Arc<Peers>) -> Peer {
        let stored = Stored::default();
        Peer {
            resends: peers.open(&name, &stored),
            stored,
            name,
            peers,
        }
    }

    /// Whether the next message is one that is stored already.
    pub(super) fn is_resent(&mut self, message: &[u8]) -> bool {
        self.resends.is_resent(message)
    }

    /// A message is stored.
    pub(super) fn add(&mut self, message: Fingerprint) {
        lock(&self.stored).add(message);
    }

    /// The client was told of everything.
    pub(super) fn knows_all(&mut self) {
        *lock(&self.stored) = Recent::default();
    }

    /// The session has ended: nobody knows what of the answers its client was told.
    pub(super) fn end(&mut self) {
        self.peers.end(&self.name, &self.stored);
    }
}

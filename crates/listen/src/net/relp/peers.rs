//! What was stored of whom lately, beyond the end of a session and of the process.
//!
//! After a start it is what is remembered of files that have left the journal ([`logpond_engine::resends`]) and what the
//! journal has: messages of syslog in its last files, up to [`MESSAGES_BYTES_MAX`] of them, whatever they came by. A
//! message of which rules changed the text is not known again then.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use logpond_protocol::intake::resent::{Fingerprint, Recent, Resends};
use logpond_segment::disk::Disk;
use logpond_segment::journal::{ClosedFile, OpenError};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use logpond_engine::resends::{PEERS_MAX, Resends as Remembered, read_messages};

/// Syslog messages of the journal that are read at a start. What else is in its files does not count: a
/// sender of much by another protocol makes nobody forget them.
const MESSAGES_BYTES_MAX: u64 = 64 << 20;

/// The newest files of the journal, in which they are looked for: some seconds for the headers of their frames.
const JOURNAL_BYTES_MAX: u64 = 8 << 30;

/// How often an earlier session reads on and stores before a new one of its peer no longer waits for it. Each time
/// takes all that is there, up to half a MiB, so a client that was cut off has nothing left on its way.
const ROUNDS_AWAITED: u64 = 4;

/// How long is waited for an earlier session that neither stores nor reads: its client does not take its answers.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// A session, as others of its peer see it while it is open: its client may have begun another one before
/// its end is seen here.
#[derive(Debug, Default)]
struct SharedSession {
    /// Messages that it has stored.
    stored: Mutex<Recent>,
    progress: watch::Sender<Progress>,
    /// Asks it to read on.
    is_awaited: Notify,
}

#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// How often it has stored all that it had read, or found nothing to read.
    rounds: u64,
    /// True while messages are on their way to the disk.
    is_storing: bool,
    is_over: bool,
}

impl SharedSession {
    /// Waits until it has read and stored what had come before this, or is over. After `until` it waits
    /// only for the disk, which answers in the end: the new session's messages would wait for it as well.
    async fn settled(&self, until: Instant) {
        let mut progress = self.progress.subscribe();
        let rounds = progress.borrow().rounds + ROUNDS_AWAITED;
        loop {
            let now = *progress.borrow_and_update();
            if now.is_over || now.rounds >= rounds {
                return;
            }
            self.is_awaited.notify_one();
            let changed = progress.changed();
            let goes_on = if now.is_storing {
                changed.await.is_ok()
            } else {
                matches!(tokio::time::timeout_at(until, changed).await, Ok(Ok(())))
            };
            if !goes_on {
                return;
            }
        }
    }
}

/// A sender.
#[derive(Debug)]
struct PeerState {
    name: Box<str>,
    /// Of sessions that ended without a close.
    ended: Recent,
    open: Vec<Arc<SharedSession>>,
}

/// Senders by name, the one that is longest unchanged first.
#[derive(Debug, Default)]
pub struct Peers(Mutex<VecDeque<PeerState>>);

impl Peers {
    /// Reads the memory of released files, and the journal.
    ///
    /// # Errors
    /// When a file cannot be read; what was read of others is known all the same.
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
        let mut journal_bytes = 0;
        let newest_first = closed.rev().take_while(|file| {
            journal_bytes += file.bytes;
            journal_bytes <= JOURNAL_BYTES_MAX
        });
        let mut messages_bytes = 0;
        let mut found = Vec::new();
        let mut result = Ok(());
        for file in newest_first {
            let mut of_file: Vec<(Box<str>, Recent)> = Vec::new();
            let read = read_messages(disk, file, |peer, messages| {
                of_file.push((peer.into(), messages.clone()));
            });
            found.push(of_file);
            match read {
                Ok(bytes) => messages_bytes += bytes,
                Err(error) => result = result.and(Err(error)),
            }
            if messages_bytes >= MESSAGES_BYTES_MAX {
                break;
            }
        }
        for (peer, messages) in found.into_iter().rev().flatten() {
            self.change(&peer, |known| known.ended.append(&messages));
        }
        result
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

    /// Takes note of a session that begins; gives the earlier ones that are open.
    fn begin(&self, name: &str, session: &Arc<SharedSession>) -> Vec<Arc<SharedSession>> {
        let mut earlier = Vec::new();
        self.change(name, |known| {
            earlier.clone_from(&known.open);
            known.open.push(session.clone());
        });
        earlier
    }

    /// With what the first messages of a session of a peer are compared.
    fn resends(&self, name: &str, session: &Arc<SharedSession>) -> Resends {
        let mut resends = Resends::default();
        self.change(name, |known| {
            let mut all = known.ended.clone();
            let others = known.open.iter().filter(|open| !Arc::ptr_eq(open, session));
            others.for_each(|of| all.append(&lock(&of.stored)));
            resends = Resends::of(&all);
        });
        resends
    }

    /// A session has ended.
    fn end(&self, name: &str, session: &Arc<SharedSession>) {
        if session.progress.borrow().is_over {
            return;
        }
        self.change(name, |known| {
            known.open.retain(|open| !Arc::ptr_eq(open, session));
            known.ended.append(&lock(&session.stored));
        });
        session
            .progress
            .send_modify(|progress| progress.is_over = true);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One peer's session.
pub(in crate::net) struct Peer {
    name: Arc<str>,
    peers: Arc<Peers>,
    /// Sessions that were open when this one began, until it has waited for them.
    earlier: Vec<Arc<SharedSession>>,
    resends: Option<Resends>,
    session: Arc<SharedSession>,
}

impl Peer {
    /// A session of the peer of this name begins.
    pub(in crate::net) fn new(name: Arc<str>, peers: Arc<Peers>) -> Peer {
        let session = Arc::default();
        Peer {
            earlier: peers.begin(&name, &session),
            resends: None,
            session,
            name,
            peers,
        }
    }

    /// Waits for what earlier sessions of the peer have on its way: its client may have been cut off from
    /// one of them, and send all of that again.
    pub(super) async fn wait_for_earlier(&mut self) {
        // Later ones wait for this one, too, which may have to wait for the disk.
        self.note_storing();
        let until = Instant::now() + SILENCE_MAX;
        for earlier in std::mem::take(&mut self.earlier) {
            earlier.settled(until).await;
        }
        self.note_settled();
    }

    /// A later session of the peer waits for this one to read on.
    pub(super) async fn awaited(&self) {
        self.session.is_awaited.notified().await;
    }

    /// Messages are on their way to the disk.
    pub(super) fn note_storing(&self) {
        let progress = &self.session.progress;
        progress.send_modify(|progress| progress.is_storing = true);
    }

    /// All messages that were read are stored or refused.
    pub(super) fn note_settled(&self) {
        self.session.progress.send_modify(|progress| {
            progress.rounds += 1;
            progress.is_storing = false;
        });
    }

    /// Whether the next message is one that is stored already.
    pub(super) fn is_resent(&mut self, message: &[u8]) -> bool {
        let Peer {
            name,
            peers,
            session,
            ..
        } = self;
        let resends = self
            .resends
            .get_or_insert_with(|| peers.resends(name, session));
        resends.is_resent(message)
    }

    /// A message is stored.
    pub(super) fn add(&mut self, message: Fingerprint) {
        lock(&self.session.stored).add(message);
    }

    /// The client was told of everything.
    pub(super) fn knows_all(&mut self) {
        *lock(&self.session.stored) = Recent::default();
    }

    /// The session has ended: nobody knows what of the answers its client was told.
    pub(super) fn end(&mut self) {
        self.peers.end(&self.name, &self.session);
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use logpond_record::{Batch, EntryKind, Incarnation, Timestamp};
    use logpond_segment::journal::{Settings, Writer};
    use logpond_segment::mem_disk::MemDisk;

    use super::*;

    fn message(number: usize) -> String {
        format!("<13>1 2026-03-02T00:00:00.{number:06}Z ash app - - - x")
    }

    /// Others that push much meanwhile, so that the store is behind, make nobody forget.
    #[test]
    fn messages_before_a_journal_of_other_records_are_known() {
        let disk = MemDisk::new();
        disk.create_directory("").unwrap();
        let mut writer = Writer::new(Arc::new(disk.clone()), Settings::default());
        let now = Timestamp(1_772_409_600_000_000_000);
        let labels = vec![("hostname".into(), "ash".into())];
        let mut append = |batch: &Batch| {
            writer.append(batch, now, || Incarnation(5)).unwrap();
            writer.close().unwrap();
        };
        for number in 0..2 {
            let mut batch = Batch::new(EntryKind::Syslog, labels.clone());
            batch.push(message(number).as_bytes());
            append(&batch);
        }
        let mut lines = Batch::new(EntryKind::Line, labels);
        lines.push(&vec![b'x'; 16 << 20]);
        (0..=MESSAGES_BYTES_MAX >> 24).for_each(|_| append(&lines));
        let closed = writer.visible().snapshot().closed;
        let peers = Arc::<Peers>::default();
        let remembered = Remembered::open(Arc::new(disk.clone()), true);
        peers.read(&remembered, &disk, &closed).unwrap();
        let mut peer = Peer::new("ash".into(), peers);
        assert!((0..2).all(|number| peer.is_resent(message(number).as_bytes())));
        assert!(!peer.is_resent(message(2).as_bytes()));
    }

    /// A client that was cut off is back before its messages are on the disk.
    #[tokio::test(start_paused = true)]
    async fn a_session_waits_for_what_earlier_ones_have_on_its_way() {
        let peers = Arc::<Peers>::default();
        let new = || Peer::new("ash".into(), peers.clone());
        let (mut earlier, mut later, mut last) = (new(), new(), new());
        earlier.note_storing();
        let mut waits = Box::pin(later.wait_for_earlier());
        let mut waits_as_well = Box::pin(last.wait_for_earlier());
        let long = SILENCE_MAX * 100;
        assert!(tokio::time::timeout(long, &mut waits).await.is_err());
        assert!(
            tokio::time::timeout(long, &mut waits_as_well)
                .await
                .is_err()
        );
        earlier.add(Fingerprint::of(message(1).as_bytes()));
        (0..ROUNDS_AWAITED).for_each(|_| earlier.note_settled());
        waits.await;
        drop(later);
        waits_as_well.await;
        assert!(last.is_resent(message(1).as_bytes()));
        // One that does nothing, as its client takes no answers, holds up nobody for ever.
        let began = Instant::now();
        new().wait_for_earlier().await;
        let waited = began.elapsed();
        assert!(
            (SILENCE_MAX..2 * SILENCE_MAX).contains(&waited),
            "{waited:?}"
        );
        drop((earlier, last));
        new().wait_for_earlier().await;
        assert_eq!(began.elapsed(), waited);
    }
}

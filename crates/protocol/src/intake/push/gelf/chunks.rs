//! Messages that come in several datagrams.
//!
//! ```text
//! 1e 0f │ message id, 8 bytes │ number of the chunk, from 0 │ count of chunks, up to 128 │ data
//! ```
//!
//! Invariants:
//! - All chunks of a message come within [`ASSEMBLY_TIME_MAX`] of its first one, or it is lost.
//! - At most [`MESSAGES_MAX`] messages and [`BYTES_MAX`] bytes are under assembly, of one sender at
//!   most [`SENDER_MESSAGES_MAX`] and [`SENDER_BYTES_MAX`]. Where there is no room, the one that was
//!   begun first gives way: of the same sender, if it is the sender's share that is full.
//! - Every message of which a chunk came is given out whole once, or counted as lost once. A chunk
//!   that can belong to no message counts as one that is lost.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

/// What a chunk begins with.
const MAGIC: [u8; 2] = [0x1e, 0x0f];

/// Bytes before the data of a chunk.
const HEAD_BYTES: usize = 12;

/// The most chunks of a message, as the specification has it.
const COUNT_MAX: u8 = 128;

/// How long the chunks of a message may take, as the specification has it.
pub const ASSEMBLY_TIME_MAX: Duration = Duration::from_secs(5);

/// Messages under assembly: with an usual size of 50 kB as many as fit into [`BYTES_MAX`].
const MESSAGES_MAX: usize = 1024;

/// Memory of all messages under assembly: several of the largest kind, of 8 MiB.
const BYTES_MAX: usize = 32 << 20;

/// Messages of one sender, so that none has all.
const SENDER_MESSAGES_MAX: usize = 256;

/// Memory of the messages of one sender: two of the largest kind.
const SENDER_BYTES_MAX: usize = 16 << 20;

/// What a message costs beside its data, with maps and allocator.
const MESSAGE_OVERHEAD_BYTES: usize = 256;

/// What each chunk of a message costs beside its data, also one that has not come.
const CHUNK_OVERHEAD_BYTES: usize = 32;

/// A sender and the id that it gave a message.
type Key = (u128, [u8; 8]);

/// A message of which some chunks are missing.
struct Partial {
    began: Duration,
    serial: u64,
    chunks: Vec<Option<Box<[u8]>>>,
    missing: usize,
    bytes: usize,
}

/// What is held, of a sender or of all.
#[derive(Clone, Copy, Default)]
struct HeldChunks {
    messages: usize,
    bytes: usize,
}

/// Messages under assembly, of one socket.
#[derive(Default)]
pub struct Chunks {
    partial: BTreeMap<Key, Partial>,
    /// By the order in which they were begun.
    order: BTreeMap<u64, Key>,
    senders: BTreeMap<u128, HeldChunks>,
    all: HeldChunks,
    serial: u64,
    lost: u64,
}

/// A chunk's header is sound.
struct Chunk<'d> {
    id: [u8; 8],
    index: usize,
    count: usize,
    data: &'d [u8],
}

impl<'d> Chunk<'d> {
    fn read(datagram: &'d [u8]) -> Option<Chunk<'d>> {
        let (head, data) = datagram.split_at_checked(HEAD_BYTES)?;
        let (index, count) = (head[10], head[11]);
        let is_sound = count <= COUNT_MAX && index < count;
        is_sound.then_some(Chunk {
            id: *head[2..].first_chunk()?,
            index: usize::from(index),
            count: usize::from(count),
            data,
        })
    }
}

impl Chunks {
    /// Takes a datagram that came `now`, which never goes back; gives the message that it is or
    /// completes.
    pub fn take<'d>(
        &mut self,
        sender: u128,
        datagram: &'d [u8],
        now: Duration,
    ) -> Option<Cow<'d, [u8]>> {
        if !datagram.starts_with(&MAGIC) {
            return Some(Cow::Borrowed(datagram));
        }
        self.expire(now);
        let Some(chunk) = Chunk::read(datagram) else {
            self.lost += 1;
            return None;
        };
        if chunk.count == 1 {
            return Some(Cow::Borrowed(chunk.data));
        }
        let key = (sender, chunk.id);
        if !self.partial.contains_key(&key) {
            self.begin(key, chunk.count, now);
        }
        self.add(key, &chunk);
        let is_whole = self.partial.get(&key).is_some_and(|p| p.missing == 0);
        if !is_whole {
            self.make_room(key);
            return None;
        }
        let whole = self.remove(key)?;
        let chunks = whole.chunks.into_iter().flatten();
        Some(Cow::Owned(chunks.collect::<Vec<_>>().concat()))
    }

    /// Gives up what is too old `now`.
    pub fn expire(&mut self, now: Duration) {
        while let Some(deadline) = self.deadline()
            && deadline <= now
        {
            if let Some((_, key)) = self.order.first_key_value() {
                self.lose(*key);
            }
        }
    }

    /// When the next message is given up.
    pub fn deadline(&self) -> Option<Duration> {
        let (_, key) = self.order.first_key_value()?;
        Some(self.partial.get(key)?.began + ASSEMBLY_TIME_MAX)
    }

    /// Gives up everything.
    pub fn abandon(&mut self) {
        let lost = self.lost + self.partial.len() as u64;
        *self = Chunks {
            lost,
            ..Chunks::default()
        };
    }

    /// How many messages were lost since this was asked last.
    pub fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }

    /// Memory of what is under assembly, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.all.bytes
    }

    fn begin(&mut self, key: Key, count: usize, now: Duration) {
        let partial = Partial {
            began: now,
            serial: self.serial,
            chunks: vec![None; count],
            missing: count,
            bytes: 0,
        };
        self.order.insert(self.serial, key);
        self.serial += 1;
        self.partial.insert(key, partial);
        self.all.messages += 1;
        self.senders.entry(key.0).or_default().messages += 1;
        self.charge(key, MESSAGE_OVERHEAD_BYTES + count * CHUNK_OVERHEAD_BYTES);
    }

    fn add(&mut self, key: Key, chunk: &Chunk<'_>) {
        let Some(partial) = self.partial.get_mut(&key) else {
            return;
        };
        if partial.chunks.len() != chunk.count {
            self.lost += 1;
            return;
        }
        let place = &mut partial.chunks[chunk.index];
        if place.is_none() {
            *place = Some(chunk.data.into());
            partial.missing -= 1;
            self.charge(key, chunk.data.len());
        }
    }

    fn charge(&mut self, key: Key, bytes: usize) {
        if let Some(partial) = self.partial.get_mut(&key) {
            partial.bytes += bytes;
        }
        self.senders.entry(key.0).or_default().bytes += bytes;
        self.all.bytes += bytes;
    }

    /// Gives up others than `key` until everything is within its bounds.
    fn make_room(&mut self, key: Key) {
        loop {
            let own = self.senders.get(&key.0).copied().unwrap_or_default();
            let is_own = own.messages > SENDER_MESSAGES_MAX || own.bytes > SENDER_BYTES_MAX;
            let is_all = self.all.messages > MESSAGES_MAX || self.all.bytes > BYTES_MAX;
            if !is_own && !is_all {
                return;
            }
            let mut others = self.order.values().filter(|other| **other != key);
            let victim = others.find(|other| !is_own || other.0 == key.0);
            // One message alone is within all bounds.
            let Some(victim) = victim.copied() else {
                return;
            };
            self.lose(victim);
        }
    }

    fn lose(&mut self, key: Key) {
        if self.remove(key).is_some() {
            self.lost += 1;
        }
    }

    fn remove(&mut self, key: Key) -> Option<Partial> {
        let partial = self.partial.remove(&key)?;
        self.order.remove(&partial.serial);
        self.all.messages -= 1;
        self.all.bytes -= partial.bytes;
        if let Some(own) = self.senders.get_mut(&key.0) {
            own.messages -= 1;
            own.bytes -= partial.bytes;
            if own.messages == 0 {
                self.senders.remove(&key.0);
            }
        }
        Some(partial)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn chunk(id: u64, index: u8, count: u8, data: &[u8]) -> Vec<u8> {
        let head = [&MAGIC[..], &id.to_be_bytes(), &[index, count]].concat();
        [&head, data].concat()
    }

    fn take(chunks: &mut Chunks, sender: u128, datagram: &[u8], now: Duration) -> Option<Vec<u8>> {
        chunks.take(sender, datagram, now).map(Cow::into_owned)
    }

    #[test]
    fn chunks_of_several_senders_come_in_any_order() {
        let mut chunks = Chunks::default();
        let zero = Duration::ZERO;
        assert_eq!(take(&mut chunks, 1, b"{}", zero), Some(b"{}".to_vec()));
        assert_eq!(take(&mut chunks, 1, &chunk(7, 2, 3, b"c"), zero), None);
        assert_eq!(take(&mut chunks, 2, &chunk(7, 0, 2, b"x"), zero), None);
        assert_eq!(take(&mut chunks, 1, &chunk(7, 0, 3, b"a"), zero), None);
        // A datagram may come twice.
        assert_eq!(take(&mut chunks, 1, &chunk(7, 0, 3, b"a"), zero), None);
        let abc = take(&mut chunks, 1, &chunk(7, 1, 3, b"b"), zero);
        assert_eq!(abc, Some(b"abc".to_vec()));
        let xy = take(&mut chunks, 2, &chunk(7, 1, 2, b"y"), zero);
        assert_eq!(xy, Some(b"xy".to_vec()));
        let one = take(&mut chunks, 2, &chunk(8, 0, 1, b"one"), zero);
        assert_eq!(one, Some(b"one".to_vec()));
        assert_eq!((chunks.take_lost(), chunks.held_bytes()), (0, 0));
        assert!(chunks.deadline().is_none() && chunks.senders.is_empty());
    }

    #[test]
    fn what_is_late_or_no_chunk_is_counted() {
        let mut chunks = Chunks::default();
        for bad in [
            &MAGIC[..],
            &chunk(1, 0, 2, b"")[..11],
            &chunk(1, 0, 0, b""),
            &chunk(1, 2, 2, b""),
            &chunk(1, 0, 129, b""),
        ] {
            assert_eq!(take(&mut chunks, 1, bad, Duration::ZERO), None);
        }
        assert_eq!(chunks.take_lost(), 5);
        assert_eq!(take(&mut chunks, 1, &chunk(1, 0, 2, b"a"), SECOND), None);
        assert_eq!(take(&mut chunks, 1, &chunk(1, 1, 3, b"b"), SECOND), None);
        assert_eq!(chunks.take_lost(), 1, "of another message with its id");
        assert_eq!(chunks.deadline(), Some(6 * SECOND));
        chunks.expire(6 * SECOND - Duration::from_nanos(1));
        assert_eq!(chunks.take_lost(), 0);
        assert_eq!(
            take(&mut chunks, 1, &chunk(1, 1, 2, b"b"), 6 * SECOND),
            None
        );
        assert_eq!(chunks.take_lost(), 1, "the first half, which was too old");
        chunks.abandon();
        assert_eq!((chunks.take_lost(), chunks.held_bytes()), (1, 0));
    }

    #[test]
    fn a_sender_that_ends_nothing_takes_nothing_from_others() {
        let mut chunks = Chunks::default();
        take(&mut chunks, 1, &chunk(0, 0, 2, b"good "), Duration::ZERO);
        for id in 0..100_000 {
            take(&mut chunks, 2, &chunk(id, 0, 128, &[0; 60_000]), SECOND);
            assert!(chunks.held_bytes() <= BYTES_MAX);
        }
        let lost = chunks.take_lost();
        assert!(lost + SENDER_MESSAGES_MAX as u64 >= 100_000, "{lost}");
        let whole = take(&mut chunks, 1, &chunk(0, 1, 2, b"end"), 2 * SECOND);
        assert_eq!(whole, Some(b"good end".to_vec()));
    }

    #[test]
    fn many_senders_stay_within_the_bounds_of_all() {
        let mut chunks = Chunks::default();
        for sender in 0..5_000 {
            take(&mut chunks, sender, &chunk(0, 0, 2, &[0; 100]), SECOND);
        }
        assert_eq!(chunks.partial.len(), MESSAGES_MAX);
        assert_eq!(chunks.take_lost(), 5_000 - MESSAGES_MAX as u64);
        // The last are there.
        assert!(take(&mut chunks, 4_999, &chunk(0, 1, 2, b"x"), SECOND).is_some());
    }

    proptest! {
        /// Whatever order they come in and whichever get lost: each message whose chunks all came is
        /// given out once, and each other one of which a chunk came is lost once.
        #[test]
        fn every_message_is_whole_or_lost(
            counts in prop::collection::vec(2u8..6, 1..20),
            drawn in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..120),
        ) {
            let mut sent: Vec<(usize, u8)> = (counts.iter().enumerate())
                .flat_map(|(id, count)| (0..*count).map(move |index| (id, index)))
                .collect();
            let mut chunks = Chunks::default();
            let (mut whole, mut came) = (Vec::new(), vec![0; counts.len()]);
            for (at, arrives) in drawn {
                if sent.is_empty() {
                    break;
                }
                let (id, index) = sent.swap_remove(at.index(sent.len()));
                if !arrives {
                    continue;
                }
                came[id] += 1;
                let datagram = chunk(id as u64, index, counts[id], &[id as u8, index]);
                if let Some(message) = take(&mut chunks, id as u128 % 3, &datagram, SECOND) {
                    let expected = (0..counts[id]).flat_map(|n| [id as u8, n]);
                    prop_assert_eq!(message, expected.collect::<Vec<_>>());
                    whole.push(id);
                }
            }
            let complete = (0..counts.len()).filter(|id| came[*id] == counts[*id]);
            let torn = (0..counts.len()).filter(|id| (1..counts[*id]).contains(&came[*id]));
            whole.sort_unstable();
            prop_assert_eq!(whole, complete.collect::<Vec<_>>());
            chunks.expire(SECOND + ASSEMBLY_TIME_MAX);
            prop_assert_eq!(chunks.take_lost(), torn.count() as u64);
            prop_assert_eq!(chunks.held_bytes(), 0);
        }
    }
}

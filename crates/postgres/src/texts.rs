//! The texts of statements that sessions keep: prepared ones, and those of portals.
//!
//! Invariant: the texts of all sessions together have at most as many bytes as their room.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::failure::{Code, Failure};

/// The part of the memory for queries that the texts of all sessions may take, the most of it, and the least.
pub(crate) const SHARE: usize = 16;
pub(crate) const BYTES_MAX: usize = 64 << 20;
const BYTES_MIN: usize = 4 << 20;

/// The room for texts of all sessions of a listener.
#[derive(Debug)]
pub(crate) struct TextRoom {
    bytes_max: usize,
    bytes: AtomicUsize,
}

/// A text that has its place in the room until it is dropped.
#[derive(Debug)]
pub(crate) struct StoredText {
    text: String,
    room: Arc<TextRoom>,
}

impl TextRoom {
    /// Room for so many bytes, or a few MiB.
    pub(crate) fn new(bytes_max: usize) -> Arc<TextRoom> {
        Arc::new(TextRoom {
            bytes_max: bytes_max.max(BYTES_MIN),
            bytes: AtomicUsize::new(0),
        })
    }

    /// Keeps a text.
    ///
    /// # Errors
    /// When the texts of all sessions leave no room for it.
    pub(crate) fn keep(self: &Arc<TextRoom>, text: String) -> Result<StoredText, Failure> {
        let more = |bytes: usize| {
            let sum = bytes.checked_add(text.len());
            sum.filter(|sum| *sum <= self.bytes_max)
        };
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        if self.bytes.fetch_update(set, fetch, more).is_err() {
            let message = format!(
                "prepared statements and portals of all sessions have {} MiB, as many as they may; DEALLOCATE \
                 statements, or close sessions",
                self.bytes_max >> 20
            );
            return Err(Failure::new(Code::OutOfMemory, message));
        }
        let room = Arc::clone(self);
        Ok(StoredText { text, room })
    }
}

impl Deref for StoredText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl Drop for StoredText {
    fn drop(&mut self) {
        self.room
            .bytes
            .fetch_sub(self.text.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_take_room_until_they_are_dropped() {
        let room = TextRoom::new(0);
        let text = |bytes: usize| "x".repeat(bytes);
        let first = room.keep(text(BYTES_MIN - 1)).unwrap();
        let second = room.keep(text(1)).unwrap();
        assert_eq!((first.len(), &*second), (BYTES_MIN - 1, "x"));
        assert!(room.keep(text(1)).is_err());
        drop(second);
        assert!(room.keep(text(1)).is_ok());
        assert!(room.keep(text(2)).is_err());
    }
}

//! The texts of statements that sessions keep: prepared ones, and those of portals.
//!
//! Invariant: the texts of all sessions together have at most as many bytes as their room.

use std::ops::Deref;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::failure::{Code, Failure};

/// The part of the memory for queries that the texts of all sessions may take, the most of it, and the least.
pub(crate) const SHARE: usize = 16;
pub(crate) const BYTES_MAX: usize = 64 << 20;
const BYTES_MIN: usize = 4 << 20;

/// The room for texts of all sessions of a listener.
#[derive(Debug)]
pub(crate) struct TextRoom {
    bytes_max: usize,
    /// A permit for each byte that is free.
    free: Arc<Semaphore>,
}

/// A text that has its place in the room until it is dropped.
#[derive(Debug)]
pub(crate) struct StoredText {
    text: String,
    _place: OwnedSemaphorePermit,
}

impl TextRoom {
    /// Room for so many bytes, or a few MiB.
    pub(crate) fn new(bytes_max: usize) -> Arc<TextRoom> {
        let bytes_max = bytes_max.max(BYTES_MIN);
        Arc::new(TextRoom {
            bytes_max,
            free: Arc::new(Semaphore::new(bytes_max)),
        })
    }

    /// Keeps a text.
    ///
    /// # Errors
    /// When the texts of all sessions leave no room for it.
    pub(crate) fn keep(&self, text: String) -> Result<StoredText, Failure> {
        let bytes = u32::try_from(text.len()).ok();
        let place = bytes.and_then(|bytes| {
            let free = Arc::clone(&self.free);
            free.try_acquire_many_owned(bytes).ok()
        });
        let Some(_place) = place else {
            let message = format!(
                "prepared statements and portals of all sessions have {} MiB, as many as they may; DEALLOCATE \
                 statements, or close sessions",
                self.bytes_max >> 20
            );
            return Err(Failure::new(Code::OutOfMemory, message));
        };
        Ok(StoredText { text, _place })
    }
}

impl Deref for StoredText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
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

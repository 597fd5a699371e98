//! Memory: what a worker has once, and what a connection has for a while.

/// Bytes that are read at once: four records and what they are wrapped in come out near it.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// What a worker lends its connections, one at a time.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// What was read from either side.
    pub(crate) incoming: Box<[u8]>,
    /// What is for the upstream.
    pub(crate) plain: Buffer,
    /// What is for the client.
    pub(crate) sealed: Buffer,
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch {
            incoming: vec![0; READ_BYTES].into(),
            plain: Buffer::default(),
            sealed: Buffer::default(),
        }
    }
}

/// Bytes with room behind them, which is not cleared again and again as that of a vector.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    /// At most `bytes.len()`.
    length: usize,
}

impl Buffer {
    /// What is in it.
    pub(crate) fn filled(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Empties it; the memory stays.
    pub(crate) fn clear(&mut self) {
        self.length = 0;
    }

    /// At least so much room behind what is in it. What is written there counts once
    /// [`Buffer::advance`] says so.
    pub(crate) fn room(&mut self, bytes: usize) -> &mut [u8] {
        let end = self.length + bytes;
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        &mut self.bytes[self.length..]
    }

    /// Counts so many bytes of the room as written.
    pub(crate) fn advance(&mut self, bytes: usize) {
        debug_assert!(self.length + bytes <= self.bytes.len());
        self.length += bytes;
    }

    /// Appends these.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.room(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.advance(bytes.len());
    }
}

/// Bytes that one side of a connection has not taken yet. Empty ones own no memory.
#[derive(Debug, Default)]
pub(crate) struct PendingBytes {
    bytes: Vec<u8>,
    /// How many of them were taken; less than there are, or both are none.
    taken: usize,
}

impl PendingBytes {
    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What waits.
    pub(crate) fn waiting(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    /// Has these wait, too.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The first so many of the waiting bytes were taken.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.taken += bytes;
        debug_assert!(self.taken <= self.bytes.len());
        if self.taken >= self.bytes.len() {
            *self = PendingBytes::default();
        }
    }
}

//! LZ4 as systemd packs it: a block behind its decompressed length (8 bytes, little-endian).
//!
//! In journal files the block ends with its object. In a body blocks follow each other and nothing says
//! how long they are: the sender gives each to HTTP as a chunk, but chunks are HTTP's own, and whoever is
//! between may cut them anew. But a block is a row of sequences, each of literals and of a copy, and ends
//! with literals where its decompressed length is reached. So the heads of sequences tell where it ends.
//! Source: "LZ4 Block Format Description" of the LZ4 project.

use logpond_record::cast;

use super::STEP_BYTES_MAX;

/// The longest block, decompressed. `systemd-journal-upload` packs what it reads at a time: 64 KiB.
pub const LZ4_BLOCK_BYTES_MAX: usize = STEP_BYTES_MAX;

/// The shortest copy.
const COPY_BYTES_MIN: usize = 4;

/// Half of a token that says that the count goes on behind it.
const COUNT_GOES_ON: u8 = 15;

/// Appends what is unpacked to `held`, which may have `bytes_max` then; gives whether all of it has
/// room, `None` if it is no such block.
pub(in super::super) fn unpack_block(
    payload: &[u8],
    bytes_max: usize,
    held: &mut Vec<u8>,
) -> Option<bool> {
    let (length, block) = payload.split_first_chunk()?;
    let length = u64::from_le_bytes(*length);
    if length > bytes_max.saturating_sub(held.len()) as u64 {
        return Some(false);
    }
    let from = held.len();
    held.resize(from + cast::to_usize(length), 0);
    let unpacked = lz4_flex::block::decompress_into(block, &mut held[from..]).ok()?;
    (unpacked == cast::to_usize(length)).then_some(true)
}

/// Unpacks blocks that come in pieces.
#[derive(Default)]
pub(super) struct Lz4Unpacker {
    /// What came of a block, its length included.
    block: Vec<u8>,
    next: Next,
    /// Bytes that the sequence's copy adds, as far as they are known.
    copy_bytes: usize,
    /// Bytes of the decompressed block that come from sequences behind this place.
    bytes_left: usize,
}

/// What the next byte is.
#[derive(Clone, Copy, Default)]
enum Next {
    #[default]
    Length,
    Token,
    /// More of the count of literals, which is so high yet.
    LiteralsCount(usize),
    /// So many literals.
    Literals(usize),
    OffsetLow,
    OffsetHigh,
    CopyCount,
}

impl Lz4Unpacker {
    pub(super) fn is_complete(&self) -> bool {
        self.block.is_empty()
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.block.capacity()
    }

    /// Takes input to the end of a block, which it appends to `out`; gives how much it took, `None` if
    /// it is no such block.
    pub(super) fn step(&mut self, input: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let mut taken = 0;
        while let Some(byte) = input.get(taken) {
            let run = match self.next {
                Next::Literals(count) => count.min(input.len() - taken),
                _ => 1,
            };
            self.block.extend_from_slice(&input[taken..taken + run]);
            taken += run;
            if self.advance(*byte, run)? {
                unpack_block(&self.block, LZ4_BLOCK_BYTES_MAX, out)?;
                // The next block may come in hours.
                self.block = Vec::new();
                self.next = Next::Length;
                break;
            }
        }
        Some(taken)
    }

    /// Whether the block ends with this byte, or with this run of literals.
    fn advance(&mut self, byte: u8, run: usize) -> Option<bool> {
        self.next = match self.next {
            Next::Length => self.length()?,
            Next::Token => {
                self.copy_bytes = usize::from(byte & 15) + COPY_BYTES_MIN;
                match byte >> 4 {
                    COUNT_GOES_ON => Next::LiteralsCount(usize::from(COUNT_GOES_ON)),
                    count => self.literals(usize::from(count))?,
                }
            }
            Next::LiteralsCount(count) if byte == u8::MAX => {
                let count = count + usize::from(byte);
                (count <= self.bytes_left).then_some(Next::LiteralsCount(count))?
            }
            Next::LiteralsCount(count) => self.literals(count + usize::from(byte))?,
            Next::Literals(count) => {
                self.bytes_left -= run;
                match (count - run, self.bytes_left) {
                    (0, 0) => return Some(true),
                    (0, _) => Next::OffsetLow,
                    (rest, _) => Next::Literals(rest),
                }
            }
            Next::OffsetLow => Next::OffsetHigh,
            Next::OffsetHigh => {
                if self.copy_bytes == usize::from(COUNT_GOES_ON) + COPY_BYTES_MIN {
                    Next::CopyCount
                } else {
                    self.copy()?
                }
            }
            Next::CopyCount => {
                self.copy_bytes += usize::from(byte);
                match byte {
                    u8::MAX => (self.copy_bytes < self.bytes_left).then_some(Next::CopyCount)?,
                    _ => self.copy()?,
                }
            }
        };
        Some(false)
    }

    fn length(&mut self) -> Option<Next> {
        let Some(length) = self.block.first_chunk() else {
            return Some(Next::Length);
        };
        let length = u64::from_le_bytes(*length);
        self.bytes_left = usize::try_from(length).ok()?;
        (1..=LZ4_BLOCK_BYTES_MAX)
            .contains(&self.bytes_left)
            .then_some(Next::Token)
    }

    fn literals(&self, count: usize) -> Option<Next> {
        match count {
            0 => Some(Next::OffsetLow),
            _ => (count <= self.bytes_left).then_some(Next::Literals(count)),
        }
    }

    /// A copy is never the last of a block.
    fn copy(&mut self) -> Option<Next> {
        self.bytes_left = self.bytes_left.checked_sub(self.copy_bytes)?;
        (self.bytes_left > 0).then_some(Next::Token)
    }
}

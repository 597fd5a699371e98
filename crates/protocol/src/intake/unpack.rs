//! Bodies of any length, decompressed in steps.
//!
//! Invariants: a step gives at most [`STEP_BYTES_MAX`], whatever the input; nothing of what was given
//! is kept but the window that copies refer to, and that no longer than its frame or stream lasts. A
//! body that ends early is an error at its end, never a short result. A body of many members, frames, streams or
//! blocks has some content in each: one without costs as much time as one with.

pub(super) mod lz4;
mod xz;

#[cfg(test)]
pub(super) mod samples;

use std::io::{self, Write};

use flate2::write::{MultiGzDecoder, ZlibDecoder};
use zstd::stream::raw::{Decoder as ZstdDecoder, InBuffer, Operation, OutBuffer};

use super::body::{BodyError, Encoding, MEMBERS_MAX, MemberCount, zstd_decoder};
pub use lz4::LZ4_BLOCK_BYTES_MAX;
use lz4::Lz4Unpacker;
use xz::XzUnpacker;

/// zstd's output of a step.
const ZSTD_STEP_BYTES: usize = 64 << 10;

/// The input of a step of gzip and zlib, which make at most 1,032 bytes of one.
const DEFLATE_STEP_BYTES: usize = 512;

/// A window up to this size is kept for the next frame or stream.
const WINDOW_KEPT_BYTES: usize = 64 << 10;

/// Content that each compressed part of a body has on average, beyond the first [`MEMBERS_MAX`]. Senders of
/// journals compress each entry, or each 64 KiB, as a part of its own, and a body may last for hours.
pub const PART_BYTES_MIN: usize = 64;

/// The most that a step gives.
pub const STEP_BYTES_MAX: usize = 1 << 20;

/// The largest dictionary of xz that may be filled: as large as zstd's window. It is that of
/// `xz -6`, the default.
pub const XZ_DICTIONARY_BYTES_MAX: usize = 8 << 20;

/// The largest dictionary that xz may ask for, which is that of `xz -9`, if its streams are no longer
/// than [`XZ_DICTIONARY_BYTES_MAX`], so that no more of it is ever filled.
pub const XZ_DICTIONARY_CLAIM_BYTES_MAX: usize = 64 << 20;

/// Decompresses one body.
pub struct Unpacker {
    inner: Inner,
    encoding: Encoding,
    has_input: bool,
    members: MemberCount,
    /// Compressed parts that have ended, as far as the encoding tells.
    ended: usize,
    /// Bytes that came out.
    given: u64,
    /// Bytes that came out of a frame of zstd or a stream of xz, of which the end is in its window.
    /// Invariant: not above the largest window, 8 MiB.
    window_bytes: usize,
}

enum Inner {
    Identity,
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    Deflate(Box<ZlibDecoder<Vec<u8>>>),
    Zstd {
        decoder: ZstdDecoder<'static>,
        /// Whether the last frame is complete.
        complete: bool,
        /// Whether there may be more output without input.
        is_pending: bool,
    },
    Xz(Box<XzUnpacker>),
    Lz4(Lz4Unpacker),
}

impl Unpacker {
    /// How what it decompresses is compressed.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// A decoder for one body; `None` if its encoding has no end within a stream, as a block of
    /// Snappy, or its memory is not to be had.
    pub fn new(encoding: Encoding) -> Option<Unpacker> {
        Some(Unpacker {
            inner: Inner::new(encoding)?,
            encoding,
            has_input: false,
            members: MemberCount::default(),
            ended: 0,
            given: 0,
            window_bytes: 0,
        })
    }

    /// Bytes that it holds of the body, beside some 64 KiB: the window of a frame or stream that has
    /// not ended.
    pub fn held_bytes(&self) -> usize {
        match &self.inner {
            Inner::Lz4(lz4) => lz4.held_bytes(),
            _ => self.window_bytes,
        }
    }

    /// Whether [`Unpacker::step`] has something to do without further input.
    pub fn is_pending(&self) -> bool {
        match &self.inner {
            Inner::Zstd { is_pending, .. } => *is_pending,
            Inner::Xz(xz) => xz.is_pending,
            _ => false,
        }
    }

    /// Whether the body may end here, as far as that can be told before its [end](Unpacker::finish).
    pub fn is_complete(&self) -> bool {
        match &self.inner {
            Inner::Zstd { complete, .. } => *complete,
            Inner::Xz(xz) => xz.is_complete,
            Inner::Lz4(lz4) => lz4.is_complete(),
            _ => true,
        }
    }

    /// Decompresses some of the input into `out`, which it replaces; gives how much it took.
    ///
    /// # Errors
    /// When it is not what its encoding says; then the decoder is of no use any more.
    pub fn step(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, BodyError> {
        out.clear();
        self.has_input |= !input.is_empty();
        let deflated = &input[..input.len().min(DEFLATE_STEP_BYTES)];
        let taken = match &mut self.inner {
            Inner::Identity => {
                let part = &input[..input.len().min(STEP_BYTES_MAX)];
                out.extend_from_slice(part);
                Ok(part.len())
            }
            Inner::Gzip(gzip) => {
                std::mem::swap(gzip.get_mut(), out);
                let written = gzip.write_all(deflated).and_then(|()| gzip.flush());
                std::mem::swap(gzip.get_mut(), out);
                written.map(|()| deflated.len())
            }
            Inner::Deflate(zlib) => {
                std::mem::swap(zlib.get_mut(), out);
                let written = zlib.write_all(deflated).and_then(|()| zlib.flush());
                std::mem::swap(zlib.get_mut(), out);
                written.map(|()| deflated.len())
            }
            Inner::Zstd {
                decoder,
                complete,
                is_pending,
            } => zstd_step(decoder, input, out, complete, is_pending),
            Inner::Xz(xz) => Ok(xz.step(input, out)?),
            Inner::Lz4(lz4) => {
                let corrupt = || io::ErrorKind::InvalidData.into();
                lz4.step(input, out).ok_or_else(corrupt)
            }
        };
        let taken = taken.map_err(|_| BodyError::Corrupt(self.encoding))?;
        self.note_parts(&input[..taken], out.len())?;
        self.note_window(out.len())?;
        Ok(taken)
    }

    /// Counts compressed parts, of which each must have some content if there are many.
    fn note_parts(&mut self, taken: &[u8], given: usize) -> Result<(), BodyError> {
        match self.inner {
            Inner::Identity | Inner::Deflate(_) => return Ok(()),
            Inner::Gzip(_) => self.members.add(taken),
            // A step ends with the part.
            Inner::Zstd { .. } | Inner::Xz(_) | Inner::Lz4(_) => {
                self.ended += usize::from(!taken.is_empty() && self.is_complete());
            }
        }
        self.given += given as u64;
        let parts = self.members.count + self.ended;
        let free = MEMBERS_MAX as u64 + self.given / PART_BYTES_MIN as u64;
        if parts as u64 > free {
            return Err(BodyError::Crumbs);
        }
        Ok(())
    }

    /// Counts what came out into the window, and gives a large one back where it is of no use.
    fn note_window(&mut self, given: usize) -> Result<(), BodyError> {
        if !matches!(self.inner, Inner::Zstd { .. } | Inner::Xz(_)) {
            return Ok(());
        }
        let bytes = self.window_bytes + given;
        self.window_bytes = bytes.min(XZ_DICTIONARY_BYTES_MAX);
        if self.is_complete() && !self.is_pending() {
            if self.window_bytes > WINDOW_KEPT_BYTES {
                let corrupt = BodyError::Corrupt(self.encoding);
                self.inner = Inner::new(self.encoding).ok_or(corrupt)?;
            }
            self.window_bytes = 0;
        }
        Ok(())
    }

    /// Checks that the body is complete; gives what was left of it.
    ///
    /// # Errors
    /// When it ends early.
    pub fn finish(self) -> Result<Vec<u8>, BodyError> {
        let corrupt = BodyError::Corrupt(self.encoding);
        if !self.has_input {
            return Ok(Vec::new());
        }
        let is_complete = self.is_complete();
        match self.inner {
            Inner::Identity => Ok(Vec::new()),
            Inner::Gzip(mut gzip) => match gzip.try_finish() {
                Ok(()) => Ok(std::mem::take(gzip.get_mut())),
                Err(_) => Err(corrupt),
            },
            Inner::Deflate(mut zlib) => match zlib.try_finish() {
                Ok(()) => Ok(std::mem::take(zlib.get_mut())),
                Err(_) => Err(corrupt),
            },
            Inner::Zstd { .. } | Inner::Xz(_) | Inner::Lz4(_) => {
                is_complete.then(Vec::new).ok_or(corrupt)
            }
        }
    }
}

impl Inner {
    fn new(encoding: Encoding) -> Option<Inner> {
        Some(match encoding {
            Encoding::Identity => Inner::Identity,
            Encoding::Gzip => Inner::Gzip(Box::new(MultiGzDecoder::new(Vec::new()))),
            Encoding::Deflate => Inner::Deflate(Box::new(ZlibDecoder::new(Vec::new()))),
            Encoding::Zstd => Inner::Zstd {
                decoder: zstd_decoder().ok()?,
                complete: true,
                is_pending: false,
            },
            Encoding::Xz => Inner::Xz(Box::new(XzUnpacker::new())),
            Encoding::Lz4Blocks => Inner::Lz4(Lz4Unpacker::default()),
            Encoding::SnappyBlock => return None,
        })
    }
}

fn zstd_step(
    decoder: &mut ZstdDecoder<'static>,
    chunk: &[u8],
    out: &mut Vec<u8>,
    complete: &mut bool,
    is_pending: &mut bool,
) -> io::Result<usize> {
    if chunk.is_empty() && !*is_pending {
        return Ok(0);
    }
    out.resize(ZSTD_STEP_BYTES, 0);
    let mut input = InBuffer::around(chunk);
    let mut output = OutBuffer::around(&mut out[..]);
    let hint = decoder.run(&mut input, &mut output)?;
    *complete = hint == 0;
    let (taken, given) = (input.pos(), output.pos());
    if taken == 0 && given == 0 && !chunk.is_empty() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    *is_pending = given == ZSTD_STEP_BYTES && !*complete;
    out.truncate(given);
    Ok(taken)
}

#[cfg(test)]
mod tests;

//! Bodies of any length, decompressed in steps.
//!
//! Invariants: a step gives at most [`STEP_BYTES_MAX`], whatever the input; nothing of what was given
//! is kept. A body that ends early is an error at its end, never a short result.

use std::io::{self, Write};

use flate2::write::{MultiGzDecoder, ZlibDecoder};
use zstd::stream::raw::{Decoder as ZstdDecoder, InBuffer, Operation, OutBuffer};

use super::body::{BodyError, Encoding, zstd_decoder};

/// zstd's output of a step.
const ZSTD_STEP_BYTES: usize = 64 << 10;

/// The input of a step of gzip and zlib, which make at most 1,032 bytes of one.
const DEFLATE_STEP_BYTES: usize = 512;

/// The most that a step gives.
pub const STEP_BYTES_MAX: usize = 1 << 20;

/// Decompresses one body.
pub struct Unpacker {
    inner: Inner,
    encoding: Encoding,
    has_input: bool,
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
}

impl Unpacker {
    /// A decoder for one body; `None` if its encoding has no end within a stream, as a block of
    /// Snappy, or its memory is not to be had.
    pub fn new(encoding: Encoding) -> Option<Unpacker> {
        let inner = match encoding {
            Encoding::Identity => Inner::Identity,
            Encoding::Gzip => Inner::Gzip(Box::new(MultiGzDecoder::new(Vec::new()))),
            Encoding::Deflate => Inner::Deflate(Box::new(ZlibDecoder::new(Vec::new()))),
            Encoding::Zstd => Inner::Zstd {
                decoder: zstd_decoder().ok()?,
                complete: true,
                is_pending: false,
            },
            Encoding::SnappyBlock => return None,
        };
        Some(Unpacker {
            inner,
            encoding,
            has_input: false,
        })
    }

    /// Whether [`Unpacker::step`] has something to do without further input.
    pub fn is_pending(&self) -> bool {
        matches!(
            self.inner,
            Inner::Zstd {
                is_pending: true,
                ..
            }
        )
    }

    /// Whether the body may end here, as far as that can be told before its [end](Unpacker::finish).
    pub fn is_complete(&self) -> bool {
        !matches!(
            self.inner,
            Inner::Zstd {
                complete: false,
                ..
            }
        )
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
        };
        taken.map_err(|_| BodyError::Corrupt(self.encoding))
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
            Inner::Zstd { complete, .. } => complete.then(Vec::new).ok_or(corrupt),
        }
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
mod tests {
    use super::*;

    fn packed(encoding: Encoding, text: &[u8]) -> Vec<u8> {
        match encoding {
            Encoding::Gzip => {
                let mut writer = flate2::write::GzEncoder::new(Vec::new(), Default::default());
                writer.write_all(text).unwrap();
                writer.finish().unwrap()
            }
            Encoding::Deflate => {
                let mut writer = flate2::write::ZlibEncoder::new(Vec::new(), Default::default());
                writer.write_all(text).unwrap();
                writer.finish().unwrap()
            }
            Encoding::Zstd => zstd::encode_all(text, 3).unwrap(),
            _ => text.to_vec(),
        }
    }

    fn unpacked(encoding: Encoding, chunks: &[&[u8]]) -> Result<Vec<u8>, BodyError> {
        let mut unpacker = Unpacker::new(encoding).unwrap();
        let (mut all, mut out) = (Vec::new(), Vec::new());
        for chunk in chunks {
            let mut rest = *chunk;
            while !rest.is_empty() || unpacker.is_pending() {
                let taken = unpacker.step(rest, &mut out)?;
                assert!(out.len() <= STEP_BYTES_MAX);
                rest = &rest[taken..];
                all.extend_from_slice(&out);
            }
        }
        all.extend(unpacker.finish()?);
        Ok(all)
    }

    const ALL: [Encoding; 4] = [
        Encoding::Identity,
        Encoding::Gzip,
        Encoding::Deflate,
        Encoding::Zstd,
    ];

    #[test]
    fn what_was_packed_is_unpacked_however_it_is_cut() {
        let text = "a line of a journal that repeats "
            .repeat(100_000)
            .into_bytes();
        for encoding in ALL {
            // Two bodies one behind the other are one, where the encoding allows it.
            let mut body = packed(encoding, &text);
            let mut wanted = text.clone();
            if encoding != Encoding::Deflate {
                body.extend(packed(encoding, b"end"));
                wanted.extend(b"end");
            }
            for size in [1, 7, 1000, body.len()] {
                let chunks: Vec<&[u8]> = body.chunks(size).collect();
                assert!(
                    unpacked(encoding, &chunks).unwrap() == wanted,
                    "{encoding:?} {size}"
                );
            }
            assert_eq!(unpacked(encoding, &[]), Ok(Vec::new()));
        }
    }

    #[test]
    fn what_ends_early_or_is_something_else_is_refused() {
        let text = b"some text that is long enough".repeat(9);
        for encoding in &ALL[1..] {
            let body = packed(*encoding, &text);
            let corrupt = Err(BodyError::Corrupt(*encoding));
            assert_eq!(unpacked(*encoding, &[&body[..body.len() - 1]]), corrupt);
            assert_eq!(unpacked(*encoding, &[&body[..1]]), corrupt);
            assert_eq!(
                unpacked(*encoding, &[b"no such thing, but some text"]),
                corrupt
            );
        }
    }
}

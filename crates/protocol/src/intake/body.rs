//! Bodies of requests, decompressed as they arrive.
//!
//! Invariants: what is given out is never longer than `bytes_max`, nor than `RATIO_MAX` times what
//! came in (beyond a small allowance), and no more than that is ever allocated. A body that ends
//! early is an error, never a short result.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use flate2::write::{MultiGzDecoder, ZlibDecoder};
use zstd::stream::raw::{Decoder as ZstdDecoder, InBuffer, Operation, OutBuffer};

use super::unpack::{self, Unpacker};

/// The longest body, decompressed: what one request may make the server hold.
pub const BODY_BYTES_MAX: usize = 64 << 20;

/// The highest ratio of decompressed to compressed bytes. Logs of one repeated line reach several
/// hundred; ratios beyond are bombs.
pub const RATIO_MAX: usize = 2000;

/// Bytes that any body may decompress to, whatever the ratio.
const ALLOWANCE_BYTES: usize = 1 << 20;

/// zstd's window, as a power of two: the 8 MiB that RFC 8878 asks decoders to support.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// Bytes that zstd decompresses at a time.
const STEP_BYTES: usize = 64 << 10;

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Not at all.
    Identity,
    /// gzip, one or more members.
    Gzip,
    /// zstd, one or more frames.
    Zstd,
    /// zlib, which HTTP calls deflate (RFC 9110, section 8.4.1.2).
    Deflate,
    /// One block of Snappy, without its framing. No header names it.
    SnappyBlock,
    /// xz, one or more streams; of uploads of a journal.
    Xz,
    /// LZ4 as systemd packs it: blocks, each behind its decompressed length in 8 bytes, with neither
    /// their compressed lengths nor LZ4's own framing. Of uploads of a journal.
    Lz4Blocks,
}

impl Encoding {
    /// The encoding that a `Content-Encoding` header names; `None` if it is not supported.
    pub fn from_header(value: &str) -> Option<Encoding> {
        match value.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Some(Encoding::Identity),
            "gzip" | "x-gzip" => Some(Encoding::Gzip),
            "zstd" => Some(Encoding::Zstd),
            "deflate" => Some(Encoding::Deflate),
            _ => None,
        }
    }

    /// The same of an upload of a journal, whose senders know more.
    pub fn from_upload_header(value: &str) -> Option<Encoding> {
        match value.trim().to_ascii_lowercase().as_str() {
            "xz" => Some(Encoding::Xz),
            "lz4" => Some(Encoding::Lz4Blocks),
            _ => Encoding::from_header(value),
        }
    }
}

/// Why a body cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// It is longer than the limit, which is given in bytes.
    TooLong(usize),
    /// It decompresses to more than [`RATIO_MAX`] times its size.
    TooDense,
    /// It is gzip of more than [`MEMBERS_MAX`] members.
    Members,
    /// It is made of more than [`MEMBERS_MAX`] members, frames, streams or blocks with little in them.
    Crumbs,
    /// It is xz that asks for a dictionary of so many bytes, which are too many, or too many for so
    /// long a stream.
    Dictionary(u64),
    /// It is not what its encoding says, or ends early.
    Corrupt(Encoding),
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BodyError::TooLong(max) => write!(
                f,
                "the body is longer than {max} bytes decompressed; send it in parts"
            ),
            BodyError::TooDense => write!(
                f,
                "the body decompresses to more than {RATIO_MAX} times its size; send it in parts"
            ),
            BodyError::Members => write!(
                f,
                "the body has more than {MEMBERS_MAX} members of gzip; compress it as one"
            ),
            BodyError::Crumbs => write!(
                f,
                "the body has more than {MEMBERS_MAX} compressed parts with less than {} bytes each; \
                 compress it as one",
                unpack::PART_BYTES_MIN
            ),
            BodyError::Dictionary(bytes) => write!(
                f,
                "the body's xz asks for a dictionary of {bytes} bytes; at most {max} are taken, and at \
                 most {} in streams that have no more than {max} bytes decompressed",
                unpack::XZ_DICTIONARY_CLAIM_BYTES_MAX,
                max = unpack::XZ_DICTIONARY_BYTES_MAX,
            ),
            BodyError::Corrupt(Encoding::Gzip) => f.write_str("the body is not complete gzip"),
            BodyError::Corrupt(Encoding::Zstd) => f.write_str("the body is not complete zstd"),
            BodyError::Corrupt(Encoding::Deflate) => f.write_str("the body is not complete zlib"),
            BodyError::Corrupt(Encoding::SnappyBlock) => {
                f.write_str("the body is not one complete block of Snappy")
            }
            BodyError::Corrupt(Encoding::Xz) => f.write_str("the body is not complete xz"),
            BodyError::Corrupt(Encoding::Lz4Blocks) => write!(
                f,
                "the body is not complete LZ4 as systemd sends it: blocks, each behind its length in 8 \
                 bytes, which is at most {}",
                unpack::LZ4_BLOCK_BYTES_MAX
            ),
            BodyError::Corrupt(Encoding::Identity) => f.write_str("the body is not complete"),
        }
    }
}

impl std::error::Error for BodyError {}

/// How a member of gzip begins (RFC 1952, section 2.3.1).
const MEMBER: &[u8] = b"\x1f\x8b\x08";

/// Members of gzip in a body: each takes some microseconds, also an empty one of 20 bytes. Programs that append to
/// a file make one for each time.
pub(super) const MEMBERS_MAX: usize = 1 << 16;

/// A body that came whole, as it was before it was compressed, if it was: then at most `bytes_max`.
///
/// # Errors
/// When it cannot be decompressed, or only to more than that.
pub fn decompressed(
    body: &[u8],
    encoding: Encoding,
    bytes_max: usize,
) -> Result<Cow<'_, [u8]>, BodyError> {
    if encoding == Encoding::Identity {
        return Ok(Cow::Borrowed(body));
    }
    let mut decoder = Decoder::new(encoding, bytes_max)?;
    decoder.write(body)?;
    decoder.finish().map(Cow::Owned)
}

/// Decompresses one body.
pub struct Decoder {
    inner: Inner,
    encoding: Encoding,
    members: MemberCount,
}

/// Counts the places of a body where a member of gzip seems to begin, also across chunks. By chance there are two
/// in 32 MiB.
#[derive(Default)]
pub(super) struct MemberCount {
    pub(super) count: usize,
    /// The end of what came, one byte less than [`MEMBER`] has.
    tail: Vec<u8>,
}

impl MemberCount {
    /// Takes the next bytes of the body.
    pub(super) fn add(&mut self, chunk: &[u8]) {
        let rest = MEMBER.len() - 1;
        self.tail.extend_from_slice(&chunk[..chunk.len().min(rest)]);
        self.count += memchr::memmem::find_iter(&self.tail, MEMBER).count();
        self.count += memchr::memmem::find_iter(chunk, MEMBER).count();
        if chunk.len() >= rest {
            self.tail.clear();
            self.tail.extend_from_slice(&chunk[chunk.len() - rest..]);
        } else {
            self.tail.drain(..self.tail.len().saturating_sub(rest));
        }
    }
}

enum Inner {
    Identity(CollectedBytes),
    Gzip(Box<MultiGzDecoder<CollectedBytes>>),
    Zstd {
        decoder: ZstdDecoder<'static>,
        collected: CollectedBytes,
        /// Whether the last frame is complete.
        complete: bool,
    },
    Deflate(Box<ZlibDecoder<CollectedBytes>>),
    /// A block is decompressed as a whole: what came of it.
    SnappyBlock {
        block: Vec<u8>,
        collected: CollectedBytes,
    },
    Stepped {
        unpacker: Box<Unpacker>,
        collected: CollectedBytes,
    },
}

/// What came out so far.
struct CollectedBytes {
    bytes: Vec<u8>,
    bytes_max: usize,
    received: usize,
    failure: Option<BodyError>,
}

impl Decoder {
    /// A decoder for one body of at most `bytes_max` bytes, at most [`BODY_BYTES_MAX`].
    pub fn new(encoding: Encoding, bytes_max: usize) -> Result<Decoder, BodyError> {
        let collected = CollectedBytes {
            bytes: Vec::new(),
            bytes_max: bytes_max.min(BODY_BYTES_MAX),
            received: 0,
            failure: None,
        };
        let inner = match encoding {
            Encoding::Identity => Inner::Identity(collected),
            Encoding::Gzip => Inner::Gzip(Box::new(MultiGzDecoder::new(collected))),
            Encoding::Zstd => Inner::Zstd {
                decoder: zstd_decoder().map_err(|_| BodyError::Corrupt(encoding))?,
                collected,
                complete: true,
            },
            Encoding::Deflate => Inner::Deflate(Box::new(ZlibDecoder::new(collected))),
            Encoding::SnappyBlock => Inner::SnappyBlock {
                block: Vec::new(),
                collected,
            },
            Encoding::Xz | Encoding::Lz4Blocks => Inner::Stepped {
                unpacker: Box::new(Unpacker::new(encoding).ok_or(BodyError::Corrupt(encoding))?),
                collected,
            },
        };
        Ok(Decoder {
            inner,
            encoding,
            members: MemberCount::default(),
        })
    }

    /// Takes the next bytes of the body. After an error the decoder is of no use.
    pub fn write(&mut self, chunk: &[u8]) -> Result<(), BodyError> {
        let result = match &mut self.inner {
            Inner::Identity(collected) => collected.receive(chunk.len()).write_all(chunk),
            Inner::Gzip(gzip) => {
                self.members.add(chunk);
                if self.members.count > MEMBERS_MAX {
                    return Err(BodyError::Members);
                }
                gzip.get_mut().receive(chunk.len());
                gzip.write_all(chunk)
            }
            Inner::Zstd {
                decoder,
                collected,
                complete,
            } => {
                collected.receive(chunk.len());
                decompress(decoder, chunk, collected, complete)
            }
            Inner::Deflate(zlib) => {
                zlib.get_mut().receive(chunk.len());
                zlib.write_all(chunk)
            }
            Inner::SnappyBlock { block, collected } => {
                collected.receive(chunk.len());
                let allowed = collected.allow(block.len() + chunk.len());
                allowed.map(|()| block.extend_from_slice(chunk))
            }
            Inner::Stepped {
                unpacker,
                collected,
            } => step_through(unpacker, chunk, collected.receive(chunk.len())),
        };
        result.map_err(|_| self.failure())
    }

    /// Gives the body, if it is complete.
    pub fn finish(mut self) -> Result<Vec<u8>, BodyError> {
        let corrupt = BodyError::Corrupt(self.encoding);
        if let Inner::Gzip(gzip) = &mut self.inner
            && gzip.get_ref().received > 0
            && gzip.try_finish().is_err()
        {
            return Err(self.failure());
        }
        if let Inner::Deflate(zlib) = &mut self.inner
            && zlib.get_ref().received > 0
            && zlib.try_finish().is_err()
        {
            return Err(self.failure());
        }
        match self.inner {
            Inner::Identity(collected) => Ok(collected.bytes),
            Inner::Gzip(mut gzip) => Ok(std::mem::take(&mut gzip.get_mut().bytes)),
            Inner::Zstd {
                collected,
                complete,
                ..
            } => complete.then_some(collected.bytes).ok_or(corrupt),
            Inner::Deflate(mut zlib) => Ok(std::mem::take(&mut zlib.get_mut().bytes)),
            Inner::SnappyBlock { block, collected } => decompress_block(&block, collected),
            Inner::Stepped {
                unpacker,
                collected,
            } => unpacker.finish().map(|_| collected.bytes),
        }
    }

    fn failure(&self) -> BodyError {
        let collected = match &self.inner {
            Inner::Identity(collected)
            | Inner::Zstd { collected, .. }
            | Inner::SnappyBlock { collected, .. }
            | Inner::Stepped { collected, .. } => collected,
            Inner::Gzip(gzip) => gzip.get_ref(),
            Inner::Deflate(zlib) => zlib.get_ref(),
        };
        let corrupt = BodyError::Corrupt(self.encoding);
        collected.failure.clone().unwrap_or(corrupt)
    }
}

pub(super) fn zstd_decoder() -> io::Result<ZstdDecoder<'static>> {
    let mut decoder = ZstdDecoder::new()?;
    decoder.set_parameter(zstd::stream::raw::DParameter::WindowLogMax(
        ZSTD_WINDOW_LOG_MAX,
    ))?;
    Ok(decoder)
}

fn decompress(
    decoder: &mut ZstdDecoder<'static>,
    chunk: &[u8],
    collected: &mut CollectedBytes,
    complete: &mut bool,
) -> io::Result<()> {
    let mut input = InBuffer::around(chunk);
    let mut step = vec![0; STEP_BYTES];
    // Each round takes input or gives output, until neither is left.
    loop {
        let mut output = OutBuffer::around(&mut step[..]);
        let before = input.pos();
        if before == chunk.len() && *complete {
            return Ok(());
        }
        let hint = decoder.run(&mut input, &mut output)?;
        *complete = hint == 0;
        let given = output.pos();
        collected.write_all(&step[..given])?;
        if input.pos() == chunk.len() && given < STEP_BYTES {
            return Ok(());
        }
        if input.pos() == before && given == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

fn step_through(
    unpacker: &mut Unpacker,
    chunk: &[u8],
    collected: &mut CollectedBytes,
) -> io::Result<()> {
    let (mut rest, mut out) = (chunk, Vec::new());
    while !rest.is_empty() || unpacker.is_pending() {
        match unpacker.step(rest, &mut out) {
            Ok(taken) => rest = &rest[taken..],
            Err(error) => {
                collected.failure = Some(error);
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        collected.write_all(&out)?;
    }
    Ok(())
}

/// A block says first how long it is decompressed, which is checked before it is believed.
fn decompress_block(block: &[u8], mut collected: CollectedBytes) -> Result<Vec<u8>, BodyError> {
    if block.is_empty() {
        return Ok(Vec::new());
    }
    let corrupt = |_| BodyError::Corrupt(Encoding::SnappyBlock);
    let length = snap::raw::decompress_len(block).map_err(corrupt)?;
    if collected.allow(length).is_err() {
        return Err(collected.failure.unwrap_or(BodyError::TooDense));
    }
    let mut decoder = snap::raw::Decoder::new();
    decoder.decompress_vec(block).map_err(corrupt)
}

impl CollectedBytes {
    /// Fails, and notes why, if a body of so many bytes is not taken.
    fn allow(&mut self, length: usize) -> io::Result<()> {
        let dense_max = ALLOWANCE_BYTES.max(self.received.saturating_mul(RATIO_MAX));
        if length > self.bytes_max {
            self.failure = Some(BodyError::TooLong(self.bytes_max));
        } else if length > dense_max {
            self.failure = Some(BodyError::TooDense);
        }
        match self.failure {
            Some(_) => Err(io::ErrorKind::OutOfMemory.into()),
            None => Ok(()),
        }
    }

    fn receive(&mut self, bytes: usize) -> &mut CollectedBytes {
        self.received = self.received.saturating_add(bytes);
        self
    }
}

impl Write for CollectedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.allow(self.bytes.len() + bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;

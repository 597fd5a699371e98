//! Files and standard input as streams of bytes; gzip and zstd are recognised by their content.
//!
//! What xz or bzip2 has compressed is refused: rotated logs are often, and their lines would be
//! taken for records.

pub mod text;

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use text::TextReader;

/// Bytes read from a file at once.
const BUFFER_BYTES: usize = 64 << 10;

/// The first bytes of gzip.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// The first bytes of zstd.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The first bytes of xz.
const XZ_MAGIC: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];
/// The first bytes of bzip2, before the digit of the level and after it.
const BZIP2_MAGIC: (&[u8], &[u8]) = (b"BZh", b"1AY&SY");

/// Bytes that tell all of these forms.
pub const START_BYTES: usize = 10;

/// Largest window of a zstd stream, as a power of two: 128 MiB is what `zstd` itself allows.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

/// Opens a file; fails for a directory at once rather than at the first read.
pub fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    decoded(file)
}

/// The same as UTF-8, whatever it is encoded in, without holes.
pub fn open_text(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    let name = path.display().to_string();
    Ok(Box::new(TextReader::new(open(path)?, &name)))
}

/// How many bytes a file will give, where that is known: it is a regular file and not compressed.
pub fn plain_length(path: &Path) -> Option<u64> {
    let mut file = File::open(path).ok()?;
    let metadata = file.metadata().ok().filter(|m| m.is_file())?;
    let mut start = [0; ZSTD_MAGIC.len()];
    let filled = file.read(&mut start).ok()?;
    (!is_compressed(&start[..filled])).then_some(metadata.len())
}

/// Standard input. What is compressed is only recognised once its first bytes are there.
pub fn standard() -> Box<dyn Read + Send> {
    Box::new(LazyStream {
        inner: Some(Box::new(io::stdin())),
        opened: None,
    })
}

/// The same as UTF-8, without holes.
pub fn standard_text() -> Box<dyn Read + Send> {
    Box::new(TextReader::new(standard(), "standard input"))
}

/// Whether content that starts like this is compressed.
pub fn is_compressed(start: &[u8]) -> bool {
    start.starts_with(&GZIP_MAGIC) || start.starts_with(&ZSTD_MAGIC)
}

/// Whether content that starts like this, with [`START_BYTES`], is compressed in a form that is not
/// read.
pub fn is_unreadable(start: &[u8]) -> bool {
    start.len() == START_BYTES && may_be_compressed(start) && !is_compressed(start)
}

/// Whether more bytes may make a compressed form of this start, or it is one.
fn may_be_compressed(start: &[u8]) -> bool {
    let begins = |magic: &[u8]| start.iter().zip(magic).all(|(a, b)| a == b);
    let (before, after) = BZIP2_MAGIC;
    let is_bzip2 = || {
        let rest = start.get(before.len() + 1..).unwrap_or_default();
        begins(before) && rest.iter().zip(after).all(|(a, b)| a == b)
    };
    begins(&GZIP_MAGIC) || begins(&ZSTD_MAGIC) || begins(&XZ_MAGIC) || is_bzip2()
}

/// Gives the content of a stream, decompressed if its first bytes say so.
fn decoded(mut reader: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let mut start = Vec::with_capacity(START_BYTES);
    // A terminal or a slow program may have sent one short line: it must not wait for more.
    while start.len() < START_BYTES && !is_compressed(&start) && may_be_compressed(&start) {
        let mut byte = [0];
        match reader.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => start.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let other = match start.len() {
        START_BYTES if may_be_compressed(&start) && !is_compressed(&start) => Some(start[0]),
        _ => None,
    };
    if let Some(first) = other {
        let (form, tool) = if first == XZ_MAGIC[0] {
            ("xz", "xzcat")
        } else {
            ("bzip2", "bzcat")
        };
        let what = format!("it is compressed by {form}; give its text instead: {tool} FILE | …");
        return Err(io::Error::new(io::ErrorKind::Unsupported, what));
    }
    let is_gzip = start.starts_with(&GZIP_MAGIC);
    let is_zstd = start.starts_with(&ZSTD_MAGIC);
    let whole = Cursor::new(start).chain(reader);
    if is_gzip {
        let buffered = BufReader::with_capacity(BUFFER_BYTES, whole);
        return Ok(Box::new(flate2::bufread::MultiGzDecoder::new(buffered)));
    }
    if is_zstd {
        let buffered = BufReader::with_capacity(BUFFER_BYTES, whole);
        let mut decoder = zstd::stream::read::Decoder::with_buffer(buffered)?;
        decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
        return Ok(Box::new(decoder));
    }
    Ok(Box::new(whole))
}

/// A stream whose start is looked at on the first read, not before.
struct LazyStream {
    inner: Option<Box<dyn Read + Send>>,
    opened: Option<Box<dyn Read + Send>>,
}

impl Read for LazyStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(inner) = self.inner.take() {
            self.opened = Some(decoded(inner)?);
        }
        match &mut self.opened {
            Some(reader) => reader.read(buffer),
            None => Ok(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        decoded(Cursor::new(bytes))?.read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn content_decides() {
        let mut gzip = Vec::new();
        for part in ["a\n", "b\n"] {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
            encoder.write_all(part.as_bytes()).unwrap();
            gzip.extend(encoder.finish().unwrap());
        }
        let mut zstd = zstd::encode_all(&b"a\n"[..], 1).unwrap();
        zstd.extend(zstd::encode_all(&b"b\n"[..], 1).unwrap());
        for bytes in [gzip, zstd, b"a\nb\n".to_vec()] {
            assert_eq!(read(bytes).unwrap(), b"a\nb\n");
        }
        for short in [&b""[..], b"\x1f", b"(", b"\x28\xb5"] {
            assert_eq!(read(short.to_vec()).unwrap(), short);
        }
        assert!(read(b"\x1f\x8bnonsense".to_vec()).is_err());
        for (other, form) in [(&b"BZh91AY&SY.."[..], "bzip2"), (b"\xfd7zXZ\0....", "xz")] {
            let error = read(other.to_vec()).unwrap_err().to_string();
            assert!(error.contains(form), "{error}");
        }
        for text in [&b"BZh9 is no digit"[..], b"BZh", b"\xfd7z is text"] {
            assert_eq!(read(text.to_vec()).unwrap(), text);
        }
    }
}

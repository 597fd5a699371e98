//! Answers on their way out: as they are, or compressed for clients that take it.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::Response;
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue, VARY};

use super::body::Body;
use logpond_engine::query::{CHUNK_BYTES, Cancellation, Output};

/// How an answer is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Plain,
    Gzip,
}

impl Coding {
    /// The coding that a client asks for.
    pub(super) fn of(headers: &HeaderMap) -> Coding {
        if takes(headers, "gzip") {
            Coding::Gzip
        } else {
            Coding::Plain
        }
    }

    /// Says in the head of an answer how it is sent.
    pub(super) fn dress(self, response: &mut Response<Body>) {
        let headers = response.headers_mut();
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        if self == Coding::Gzip {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
    }

    /// Sends what is written.
    ///
    /// # Errors
    /// Those of `write`, and that the client is gone.
    pub(super) fn send(
        self,
        out: &mut Output,
        write: impl FnOnce(&mut AnswerEncoder<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut sending = match self {
            Coding::Plain => AnswerEncoder::Plain(out),
            Coding::Gzip => AnswerEncoder::Gzip {
                encoder: GzEncoder::new(Sink(out), Compression::fast()),
                chunk: Vec::new(),
            },
        };
        write(&mut sending)?;
        sending.finish()
    }
}

/// True if a client names a coding, and not with the weight 0 (RFC 9110, section 12.5.3).
pub(super) fn takes(headers: &HeaderMap, wanted: &str) -> bool {
    let named = headers.get_all(ACCEPT_ENCODING).iter();
    let named = named.filter_map(|value| value.to_str().ok());
    named.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let refused = |part: &str| {
            let weight = part.strip_prefix("q=").map(str::parse::<f32>);
            matches!(weight, Some(Ok(weight)) if weight <= 0.0)
        };
        name.eq_ignore_ascii_case(wanted) && !parts.any(refused)
    })
}

/// An answer that is sent.
pub(super) enum AnswerEncoder<'o> {
    Plain(&'o mut Output),
    Gzip {
        encoder: GzEncoder<Sink<'o>>,
        /// What is not compressed yet.
        chunk: Vec<u8>,
    },
}

impl AnswerEncoder<'_> {
    /// Appends what is written.
    pub(super) fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Cancellation> {
        match self {
            AnswerEncoder::Plain(out) => out.append(write),
            AnswerEncoder::Gzip { encoder, chunk } => {
                write(chunk);
                if chunk.len() >= CHUNK_BYTES {
                    // It writes to memory, until the client is gone.
                    encoder.write_all(chunk).map_err(|_| Cancellation)?;
                    chunk.clear();
                }
                Ok(())
            }
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            AnswerEncoder::Plain(_) => Ok(()),
            AnswerEncoder::Gzip { mut encoder, chunk } => {
                encoder.write_all(&chunk)?;
                encoder.finish().map(|_| ())
            }
        }
    }
}

impl Write for AnswerEncoder<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(|chunk| chunk.extend_from_slice(bytes))
            .map_err(gone)?;
        Ok(bytes.len())
    }

    /// What waits is sent once there is enough of it.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is compressed already.
pub(super) struct Sink<'o>(&'o mut Output);

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .append(|chunk| chunk.extend_from_slice(bytes))
            .map_err(gone)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(gone)
    }
}

/// The client is gone.
pub(super) fn gone(_: Cancellation) -> io::Error {
    io::Error::from(io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_for_those_that_take_it() {
        let table = [
            ("", Coding::Plain),
            ("gzip", Coding::Gzip),
            ("deflate, GZIP;q=0.5", Coding::Gzip),
            ("gzip;q=0", Coding::Plain),
            ("gzip; q=0.0, br", Coding::Plain),
            ("x-gzip", Coding::Plain),
        ];
        for (value, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(value));
            assert_eq!(Coding::of(&headers), expected, "{value}");
        }
    }
}

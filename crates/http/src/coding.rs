//! Answers on their way out: as they are, or compressed for clients that take it.

use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::Response;
use hyper::body::{Body as _, Bytes, Frame};
use hyper::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, VARY,
};

use super::body::{Body, BrokenOff};
use logpond_engine::query::{CHUNK_BYTES, Cancellation, Output};

/// Text, which becomes much smaller. A stream of events is sent as it is: browsers read it only so.
const TYPES: [&str; 5] = [
    "application/json",
    "application/x-ndjson",
    "text/csv",
    "text/html",
    "text/plain",
];

/// Answers in one piece that are shorter gain nothing.
const WHOLE_BYTES_MIN: usize = 1 << 10;

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

/// The answer as its client takes it: compressed where that is of use, and it is not yet. What is streamed still comes
/// chunk by chunk.
pub(super) fn coded(coding: Coding, mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers();
    let given = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let kind = given
        .and_then(|given| given.split(';').next())
        .unwrap_or_default();
    if !TYPES.contains(&kind.trim()) || headers.contains_key(CONTENT_ENCODING) {
        return response;
    }
    if coding == Coding::Gzip {
        match response.body_mut() {
            Body::Whole(Some(bytes)) if bytes.len() >= WHOLE_BYTES_MIN => {
                *bytes = gzip(bytes).into();
            }
            Body::Rows(..) => {
                let inner = std::mem::replace(response.body_mut(), Body::Whole(None));
                *response.body_mut() = Body::Coded(Box::new(Coded::new(inner)));
            }
            Body::Whole(_) | Body::Coded(_) | Body::Noted(..) => return response,
        }
    }
    coding.dress(&mut response);
    response
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to a vector cannot fail, here and below.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// An answer in chunks, each of which is compressed so far that it can be read.
pub struct Coded {
    inner: Body,
    /// `None` at the end.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl Coded {
    fn new(inner: Body) -> Coded {
        let encoder = GzEncoder::new(Vec::new(), Compression::fast());
        Coded {
            inner,
            encoder: Some(encoder),
        }
    }

    pub(super) fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let Some(encoder) = &mut self.encoder else {
            return Poll::Ready(None);
        };
        let chunk = match ready!(Pin::new(&mut self.inner).poll_frame(context)) {
            Some(Ok(frame)) => {
                let bytes = frame.into_data().unwrap_or_default();
                let _ = encoder.write_all(&bytes).and_then(|()| encoder.flush());
                std::mem::take(encoder.get_mut())
            }
            // What was sent ends without its trailer, so that it is not taken for whole.
            Some(Err(broken)) => {
                self.encoder = None;
                return Poll::Ready(Some(Err(broken)));
            }
            None => {
                let encoder = self.encoder.take();
                encoder
                    .and_then(|encoder| encoder.finish().ok())
                    .unwrap_or_default()
            }
        };
        Poll::Ready(Some(Ok(Frame::data(chunk.into()))))
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

    fn answer(kind: &'static str, bytes: &'static [u8]) -> Response<Body> {
        Body::whole(hyper::StatusCode::OK, kind, bytes)
    }

    #[test]
    fn long_text_is_compressed() {
        let long = [b'a'; 2 * WHOLE_BYTES_MIN].as_slice();
        let long: &'static [u8] = Box::leak(long.to_vec().into_boxed_slice());
        let table = [
            (Coding::Gzip, "application/json", long, true),
            (Coding::Gzip, "text/csv; charset=utf-8", long, true),
            (Coding::Gzip, "text/event-stream", long, false),
            (Coding::Gzip, "application/vnd.apache.parquet", long, false),
            (Coding::Gzip, "application/json", b"short", false),
            (Coding::Plain, "application/json", long, false),
        ];
        for (coding, kind, bytes, is_coded) in table {
            let coded = coded(coding, answer(kind, bytes));
            let is_said = coded.headers().contains_key(CONTENT_ENCODING);
            assert_eq!(is_said, is_coded, "{kind} {coding:?}");
            let Body::Whole(Some(sent)) = coded.body() else {
                panic!("{kind}: one piece");
            };
            assert_eq!(sent.len() < bytes.len(), is_coded, "{kind} {coding:?}");
        }
    }

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

//! As much of HTTP/1.1 as the load needs: what is asked, where a head ends, how long its body is.

use std::fmt;

use crate::run::Outcome;

/// The most that a head may have: those here have some hundred bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// A request and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exchange {
    /// A body of so many bytes is sent and comes back.
    Echo(usize),
    /// Only the answer has a body of so many bytes.
    Download(usize),
}

impl Exchange {
    /// The request, head and body.
    pub(super) fn request(self) -> Vec<u8> {
        match self {
            Exchange::Echo(bytes) => {
                let mut request = format!(
                    "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {bytes}\r\n\r\n"
                )
                .into_bytes();
                request.resize(request.len() + bytes, b'a');
                request
            }
            Exchange::Download(bytes) => {
                format!("GET /{bytes} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes()
            }
        }
    }

    /// Bytes of bodies in both directions.
    pub(super) fn moved_bytes(self) -> usize {
        match self {
            Exchange::Echo(bytes) => 2 * bytes,
            Exchange::Download(bytes) => bytes,
        }
    }
}

impl fmt::Display for Exchange {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let size = |bytes: usize| match bytes {
            1_000.. => format!("{},{:03} B", bytes / 1_000, bytes % 1_000),
            _ => format!("{bytes} B"),
        };
        match self {
            Exchange::Echo(bytes) => formatter.write_str(&size(*bytes)),
            Exchange::Download(bytes) => write!(formatter, "{}, answer only", size(*bytes)),
        }
    }
}

/// The head of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head<'m> {
    /// The request or status line.
    pub(super) first_line: &'m str,
    /// Bytes up to the body.
    pub(super) bytes: usize,
    /// Bytes of the body.
    pub(super) body_bytes: usize,
}

/// The head that a message begins with; none if it is not complete.
///
/// # Errors
///
/// If it is too long, no text, or has no length that is a number.
pub(super) fn head(message: &[u8]) -> Outcome<Option<Head<'_>>> {
    let looked_at = &message[..message.len().min(HEAD_BYTES_MAX)];
    let Some(end) = looked_at.windows(4).position(|four| four == b"\r\n\r\n") else {
        return if message.len() < HEAD_BYTES_MAX {
            Ok(None)
        } else {
            Err("a head does not end".into())
        };
    };
    let text = str::from_utf8(&message[..end]).map_err(|e| e.to_string())?;
    let mut lines = text.split("\r\n");
    let first_line = lines.next().unwrap_or_default();
    let length = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let body_bytes = match length {
        None => 0,
        Some((_, value)) => value
            .trim()
            .parse()
            .map_err(|_| format!("a body of {value} bytes"))?,
    };
    Ok(Some(Head {
        first_line,
        bytes: end + 4,
        body_bytes,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_they_are_written() {
        for bytes in [10, 0] {
            let request = Exchange::Echo(bytes).request();
            let head = head(&request).unwrap().unwrap();
            assert_eq!(head.first_line, "POST / HTTP/1.1");
            assert_eq!(head.body_bytes, bytes);
            assert_eq!(head.bytes + head.body_bytes, request.len());
        }
        let request = Exchange::Download(1_000).request();
        let head = head(&request).unwrap().unwrap();
        assert_eq!(head.first_line, "GET /1000 HTTP/1.1");
        assert_eq!((head.body_bytes, head.bytes), (0, request.len()));
    }

    #[test]
    fn a_head_may_come_in_pieces_and_with_its_body() {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-LENGTH:  5\r\n\r\nhello, and more";
        for cut in 0..38 {
            assert_eq!(head(&answer[..cut]), Ok(None), "{cut}");
        }
        let found = head(answer).unwrap().unwrap();
        assert_eq!((found.bytes, found.body_bytes), (39, 5));
    }

    #[test]
    fn heads_that_make_no_sense_are_refused() {
        assert!(head(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n").is_err());
        assert!(head(b"\xff\r\n\r\n").is_err());
        assert!(head(&vec![b'a'; HEAD_BYTES_MAX]).is_err());
    }

    #[test]
    fn exchanges_are_shown_with_their_sizes() {
        assert_eq!(Exchange::Echo(10).to_string(), "10 B");
        assert_eq!(Exchange::Echo(100_000).to_string(), "100,000 B");
        assert_eq!(
            Exchange::Download(1_000).to_string(),
            "1,000 B, answer only"
        );
        assert_eq!(Exchange::Echo(100).moved_bytes(), 200);
        assert_eq!(Exchange::Download(100).moved_bytes(), 100);
    }
}

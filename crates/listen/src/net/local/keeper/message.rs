//! What a server and the process that keeps its descriptors say to each other.
//!
//! Over a socket that keeps messages apart (`SOCK_SEQPACKET`), each with at most one descriptor beside it
//! (`SCM_RIGHTS`):
//!
//! ```text
//! keeper ─▶ server   keeper 1 COUNT        once, when it is connected
//! keeper ─▶ server   kept NAME             COUNT times, each with its descriptor
//! server ─▶ keeper   keep NAME NUL PATH    with the descriptor; PATH is what to remove at the end, or empty
//! server ─▶ keeper   drop NAME
//! server ─▶ keeper   serving MILLISECONDS  how long to wait for the next server once this one is gone
//! ```

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::name::Name;

/// The version of all this; a keeper of another one is left alone, and ends by itself.
const VERSION: u32 = 1;

/// The longest message: with the longest path that the kernel takes, and a name.
pub(super) const MESSAGE_BYTES_MAX: usize = (4 << 10) + 128;

/// What a server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Keep what comes with this, and remove the path in the end.
    Keep(Name, Option<PathBuf>),
    /// Let go of it.
    Drop(Name),
    /// Everything is served; wait so long for the next server.
    Serving(Duration),
}

/// What a keeper says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// How many descriptors follow.
    Count(usize),
    /// What comes with this.
    Kept(Name),
}

/// The message is none of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnknownMessage;

impl Request {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Request::Keep(name, path) => {
                let path = path.as_deref().unwrap_or(Path::new(""));
                let path = path.as_os_str().as_bytes();
                [format!("keep {name}\0").as_bytes(), path].concat()
            }
            Request::Drop(name) => format!("drop {name}").into_bytes(),
            Request::Serving(wait) => format!("serving {}", wait.as_millis()).into_bytes(),
        }
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Request, UnknownMessage> {
        let (verb, rest) = words(bytes)?;
        match verb {
            b"keep" => {
                let end = rest.iter().position(|b| *b == 0).ok_or(UnknownMessage)?;
                let path = Path::new(OsStr::from_bytes(&rest[end + 1..]));
                let path = (!path.as_os_str().is_empty()).then(|| path.to_owned());
                Ok(Request::Keep(parsed(&rest[..end])?, path))
            }
            b"drop" => Ok(Request::Drop(parsed(rest)?)),
            b"serving" => Ok(Request::Serving(Duration::from_millis(parsed(rest)?))),
            _ => Err(UnknownMessage),
        }
    }
}

impl Answer {
    pub(super) fn to_bytes(self) -> Vec<u8> {
        match self {
            Answer::Count(count) => format!("keeper {VERSION} {count}").into_bytes(),
            Answer::Kept(name) => format!("kept {name}").into_bytes(),
        }
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Answer, UnknownMessage> {
        match words(bytes)? {
            (b"keeper", rest) => match words(rest)? {
                (version, count) if parsed(version) == Ok(VERSION) => {
                    Ok(Answer::Count(parsed(count)?))
                }
                _ => Err(UnknownMessage),
            },
            (b"kept", name) => Ok(Answer::Kept(parsed(name)?)),
            _ => Err(UnknownMessage),
        }
    }
}

/// The first word, and what is behind the space.
fn words(bytes: &[u8]) -> Result<(&[u8], &[u8]), UnknownMessage> {
    let end = bytes
        .iter()
        .position(|b| *b == b' ')
        .ok_or(UnknownMessage)?;
    Ok((&bytes[..end], &bytes[end + 1..]))
}

fn parsed<T: std::str::FromStr>(bytes: &[u8]) -> Result<T, UnknownMessage> {
    let text = std::str::from_utf8(bytes).map_err(|_| UnknownMessage)?;
    text.parse().map_err(|_| UnknownMessage)
}

#[cfg(test)]
mod tests {
    use super::super::name::{Identity, Kind};
    use super::*;

    #[test]
    fn messages_come_back() {
        let socket = Name::Socket(
            Kind::Listener,
            Identity {
                device: 1,
                inode: 2,
            },
        );
        let odd = PathBuf::from(OsStr::from_bytes(b"/run/a b\xff/stdout"));
        let requests: [(Request, &[u8]); 5] = [
            (
                Request::Keep(socket, Some(odd)),
                b"keep listener-1-2\0/run/a b\xff/stdout",
            ),
            (Request::Keep(Name::Stream(7), None), b"keep stream-7\0"),
            (Request::Drop(Name::Board), b"drop board"),
            (Request::Serving(Duration::ZERO), b"serving 0"),
            (Request::Serving(Duration::from_secs(10)), b"serving 10000"),
        ];
        for (request, bytes) in requests {
            assert_eq!(request.to_bytes(), bytes);
            assert_eq!(Request::read(bytes), Ok(request));
        }
        let answers: [(Answer, &[u8]); 2] = [
            (Answer::Count(4096), b"keeper 1 4096"),
            (Answer::Kept(Name::Stream(7)), b"kept stream-7"),
        ];
        for (answer, bytes) in answers {
            assert_eq!(answer.to_bytes(), bytes);
            assert_eq!(Answer::read(bytes), Ok(answer));
        }
    }

    #[test]
    fn others_are_misunderstood() {
        let requests: [&[u8]; 9] = [
            b"",
            b"keep",
            b"keep board",
            b"keep \xff\0",
            b"keep other\0/x",
            b"drop",
            b"drop board\0",
            b"serving -1",
            b"hello board",
        ];
        for bytes in requests {
            let read = Request::read(bytes);
            assert_eq!(read, Err(UnknownMessage), "{}", bytes.escape_ascii());
        }
        let answers: [&[u8]; 6] = [
            b"",
            b"keeper 1",
            b"keeper 2 5",
            b"keeper 1 -5",
            b"kept",
            b"kept other",
        ];
        for bytes in answers {
            let read = Answer::read(bytes);
            assert_eq!(read, Err(UnknownMessage), "{}", bytes.escape_ascii());
        }
    }
}

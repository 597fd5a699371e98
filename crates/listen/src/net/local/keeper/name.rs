//! What a descriptor is called while it is kept.
//!
//! A service manager gives a name back with each descriptor and nothing else: so the name says what the
//! descriptor is. Names of bound sockets are those of their files, by which it is seen whether a path
//! still leads to the socket.

use std::fmt;
use std::str::FromStr;

/// A socket's or file's name: at most 255 printable characters without a colon (sd_notify(3), `FDNAME=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Name {
    /// The [board](super::board).
    Board,
    /// The stream that has this slot on the board.
    Stream(u16),
    /// A socket that is bound to a path.
    Socket(Kind, Identity),
}

/// How a bound socket receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::net::local) enum Kind {
    /// Datagrams.
    Datagrams,
    /// Connections.
    Listener,
}

/// The file that a socket is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::net::local) struct Identity {
    /// Its file system.
    pub(in crate::net::local) device: u64,
    /// Its number there.
    pub(in crate::net::local) inode: u64,
}

/// The name is none of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnknownName;

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Board => f.write_str("board"),
            Name::Stream(slot) => write!(f, "stream-{slot}"),
            Name::Socket(kind, Identity { device, inode }) => {
                let kind = match kind {
                    Kind::Datagrams => "datagrams",
                    Kind::Listener => "listener",
                };
                write!(f, "{kind}-{device}-{inode}")
            }
        }
    }
}

impl FromStr for Name {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Name, UnknownName> {
        let mut parts = text.split('-');
        let number = |parts: &mut std::str::Split<'_, char>| {
            let digits = parts
                .next()
                .filter(|part| part.starts_with(|c: char| c.is_ascii_digit()));
            digits
                .and_then(|part| part.parse::<u64>().ok())
                .ok_or(UnknownName)
        };
        let name = match parts.next() {
            Some("board") => Name::Board,
            Some("stream") => {
                let slot = number(&mut parts)?;
                Name::Stream(u16::try_from(slot).map_err(|_| UnknownName)?)
            }
            Some(kind @ ("datagrams" | "listener")) => {
                let kind = match kind {
                    "listener" => Kind::Listener,
                    _ => Kind::Datagrams,
                };
                let (device, inode) = (number(&mut parts)?, number(&mut parts)?);
                Name::Socket(kind, Identity { device, inode })
            }
            _ => return Err(UnknownName),
        };
        match parts.next() {
            None => Ok(name),
            Some(_) => Err(UnknownName),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        let identity = Identity {
            device: u64::MAX,
            inode: 0,
        };
        let table = [
            (Name::Board, "board"),
            (Name::Stream(0), "stream-0"),
            (Name::Stream(u16::MAX), "stream-65535"),
            (
                Name::Socket(Kind::Listener, identity),
                "listener-18446744073709551615-0",
            ),
            (
                Name::Socket(Kind::Datagrams, identity),
                "datagrams-18446744073709551615-0",
            ),
        ];
        for (name, text) in table {
            assert_eq!(name.to_string(), text);
            assert_eq!(text.parse(), Ok(name));
        }
        let unknown = [
            "",
            "stored",
            "board-",
            "stream",
            "stream-",
            "stream--1",
            "stream-+1",
            "stream-65536",
            "stream-1-2",
            "listener-1",
            "listener-1-2-3",
            "listener-1-18446744073709551616",
        ];
        for text in unknown {
            assert_eq!(text.parse::<Name>(), Err(UnknownName), "{text}");
        }
    }
}

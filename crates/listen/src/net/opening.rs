//! Connections that turn out to speak HTTP or TLS where neither is taken.
//!
//! Invariant: nothing of such a connection becomes a record, and nothing is acknowledged. It is counted
//! and ended, and its peer is told in its own protocol.

use std::time::Duration;

use logpond_protocol::intake::foreign::{self, Foreign, OpeningLook};

use super::Context;
use super::wire::Wire;

/// How much is held back until it is known what a connection speaks. The first frame of a protocol of
/// frames tells it within some fifty bytes; what is longer is left to its own decoder to refuse.
pub(super) const UNDECIDED_BYTES_MAX: usize = 8 << 10;

/// How long, and with how many bytes, the peer may go on sending after it was refused, so that it gets
/// to read why: were the connection closed with something unread, the system would take the answer back.
const LINGER_TIME_MAX: Duration = Duration::from_secs(1);
const LINGER_BYTES_MAX: usize = 64 << 10;

/// The first bytes of a connection, and their meaning.
pub(super) struct ConnectionPrefix {
    look: OpeningLook,
    is_own: bool,
    foreign: Option<Foreign>,
    /// True if all undecided bytes are held back, and not only the head of a TLS record.
    holds_all: bool,
    held: Vec<u8>,
}

impl ConnectionPrefix {
    /// Of a protocol that makes nothing of bytes before their line ends: only what may be the head of a
    /// TLS record is held back, because its length may have a byte that ends a line or a frame.
    pub(super) fn of_lines() -> ConnectionPrefix {
        ConnectionPrefix {
            look: OpeningLook::default(),
            is_own: false,
            foreign: None,
            holds_all: false,
            held: Vec::new(),
        }
    }

    /// Of one that does: bytes are held back until it is known that they are its own.
    pub(super) fn of_frames() -> ConnectionPrefix {
        let holds_all = true;
        let lines = ConnectionPrefix::of_lines();
        ConnectionPrefix { holds_all, ..lines }
    }

    /// The other protocol, once it is known.
    pub(super) fn foreign(&self) -> Option<Foreign> {
        self.foreign
    }

    /// Gives the bytes of the connection to `take`, unless they are foreign.
    pub(super) fn pass(&mut self, new: &[u8], mut take: impl FnMut(&[u8])) {
        if self.is_own {
            return take(new);
        }
        let opening = self.look.look(new);
        if opening == foreign::OpeningVerdict::Undecided
            && (self.holds_all || self.look.may_be_hello())
            && self.held.len() + new.len() <= UNDECIDED_BYTES_MAX
        {
            return self.held.extend_from_slice(new);
        }
        // What is longer is left to the protocol's own decoder from here on.
        self.holds_all = false;
        self.decide(opening, &mut take);
        if self.foreign.is_none() {
            take(new);
        }
    }

    /// The connection has ended.
    pub(super) fn end(&mut self, mut take: impl FnMut(&[u8])) {
        if !self.is_own && self.foreign.is_none() {
            let opening = self.look.end();
            self.decide(opening, &mut take);
        }
    }

    fn decide(&mut self, opening: foreign::OpeningVerdict, take: &mut impl FnMut(&[u8])) {
        let held = std::mem::take(&mut self.held);
        match opening {
            foreign::OpeningVerdict::Foreign(foreign) => self.foreign = Some(foreign),
            foreign::OpeningVerdict::Own => self.is_own = true,
            foreign::OpeningVerdict::Undecided => {}
        }
        if self.foreign.is_none() && !held.is_empty() {
            take(&held);
        }
    }
}

/// Ends a connection that speaks another protocol: its peer is told, and it is counted.
/// `speaks` is the protocol that is spoken here.
pub(super) async fn refuse(
    mut stream: Wire,
    foreign: Foreign,
    speaks: &'static str,
    context: &Context,
) {
    count(context);
    let answer = answer(foreign, speaks);
    let told = async {
        stream.write_all(&answer).await?;
        stream.shutdown().await?;
        let mut unread = [0; 4096];
        for _ in 0..LINGER_BYTES_MAX / unread.len() {
            if stream.read(&mut unread).await? == 0 {
                break;
            }
        }
        std::io::Result::Ok(())
    };
    // It is over in any case.
    let _ = tokio::time::timeout(LINGER_TIME_MAX, told).await;
}

/// Counts a connection that is ended for what it speaks.
pub(super) fn count(context: &Context) {
    context.metrics.intake(context.intake).foreign.add(1);
}

/// The answer to a peer that speaks another protocol than `speaks`.
pub(super) fn answer(foreign: Foreign, speaks: &'static str) -> Vec<u8> {
    match foreign {
        // A fatal alert, of an unexpected message (RFC 8446, section 6).
        Foreign::Tls => vec![21, 3, 3, 0, 2, 2, 10],
        Foreign::Http => {
            let text = format!(
                "this port takes {speaks}, not HTTP; HTTP is at the address of the setting http, by \
                 default port 7650\n"
            );
            let length = text.len();
            let head = format!(
                "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
                 Connection: close\r\n\r\n"
            );
            (head + &text).into_bytes()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is taken of these chunks, with the end.
    fn taken_of(mut opening: ConnectionPrefix, chunks: &[&[u8]]) -> (Vec<u8>, Option<Foreign>) {
        let mut taken = Vec::new();
        for chunk in chunks {
            opening.pass(chunk, |bytes| taken.extend_from_slice(bytes));
        }
        opening.end(|bytes| taken.extend_from_slice(bytes));
        (taken, opening.foreign())
    }

    #[test]
    fn bytes_are_held_back_until_they_are_known() {
        let request: [&[u8]; 3] = [b"GET /<13>a HT", b"TP/1.1\r\n", b"<13>b\n"];
        let foreign = Some(Foreign::Http);
        assert_eq!(
            taken_of(ConnectionPrefix::of_frames(), &request),
            (Vec::new(), foreign)
        );
        // A splitter of lines has made nothing of what it was given.
        let (taken, found) = taken_of(ConnectionPrefix::of_lines(), &request);
        assert_eq!((&taken[..], found), (request[0], foreign));
        let own: [&[u8]; 3] = [b"1 op", b"en 85 relp", b"_version"];
        for opening in [ConnectionPrefix::of_frames(), ConnectionPrefix::of_lines()] {
            assert_eq!(taken_of(opening, &own), (own.concat(), None));
        }
        // The length of a hello may have the byte that ends a line or a frame.
        let hello: [&[u8]; 3] = [b"\x16\x03\x01", b"\x01\n", b"\x01\0"];
        let not_one: [&[u8]; 2] = [b"\x16\x03\x01\x01\n", b"\n"];
        for opening in [ConnectionPrefix::of_frames, ConnectionPrefix::of_lines] {
            let tls = Some(Foreign::Tls);
            assert_eq!(taken_of(opening(), &hello), (Vec::new(), tls));
            assert_eq!(taken_of(opening(), &not_one), (not_one.concat(), None));
            let torn = &not_one[..1];
            assert_eq!(taken_of(opening(), torn), (torn.concat(), None));
        }
        // What ends before it is known is the protocol's own.
        assert_eq!(
            taken_of(ConnectionPrefix::of_frames(), &own[..1]),
            (own[0].to_vec(), None)
        );
    }

    #[test]
    fn what_is_held_back_is_bounded() {
        let mut opening = ConnectionPrefix::of_frames();
        let mut taken = 0;
        for _ in 0..3 {
            opening.pass(&[b'x'; UNDECIDED_BYTES_MAX / 2], |bytes| {
                taken += bytes.len()
            });
        }
        assert_eq!(taken, UNDECIDED_BYTES_MAX / 2 * 3);
        assert!(opening.held.is_empty() && !opening.holds_all);
    }
}

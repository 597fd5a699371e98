//! Recognises connections that begin in another protocol than the one of their listener: HTTP and TLS.
//!
//! A page in a browser can have it send HTTP to any port that it reaches, and what the page says would
//! become records line by line. No record begins so that it could be taken for one of these:
//!
//! ```text
//! HTTP: METHOD SP target SP "HTTP/" digit ["." digit] [CR] LF      the whole first line (RFC 9112, section 3)
//! TLS:  22 3 0..4 length length 1                                  a record with a ClientHello (RFC 8446)
//! ```
//!
//! Over UDP it can send STUN, with a user name of the page's choice, and then DTLS:
//!
//! ```text
//! STUN: two bits 0, type, length, 21 12 a4 42, ...                 a whole message (RFC 8489, section 5)
//! DTLS: 22 254 253..255 epoch sequence length 1                    a record with a ClientHello (RFC 9147)
//! ```
//!
//! Invariants: a verdict that was given stands. It comes with the line end at the latest, or, where the
//! bytes may be the head of a TLS record, with the sixth byte: a byte of the length can be a line end, so
//! such bytes must wait ([`OpeningLook::may_be_hello`]). A line that is no request line in full is none,
//! whatever it begins with. How the input is cut into chunks does not matter, and nothing of it is held.

/// What speaks another protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// A request of HTTP, of whatever version.
    Http,
    /// The first message of TLS.
    Tls,
}

/// What is known of a connection by what it began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpeningVerdict {
    /// More bytes are needed; no line has ended, unless the bytes may be the head of a TLS record.
    Undecided,
    /// It is none of the others.
    Own,
    /// It speaks something else.
    Foreign(Foreign),
}

/// The bytes of STUN before its attributes, and where its cookie stands.
const STUN_HEAD_BYTES: usize = 20;
const STUN_COOKIE: &[u8] = b"\x21\x12\xa4\x42";

/// The place of the message's type in a record of DTLS.
const DTLS_TYPE_AT: usize = 13;

/// True if a page can have a browser send this datagram to any port.
pub fn is_of_browser(datagram: &[u8]) -> bool {
    is_stun(datagram) || is_dtls(datagram)
}

fn is_stun(datagram: &[u8]) -> bool {
    let Some((head, rest)) = datagram.split_at_checked(STUN_HEAD_BYTES) else {
        return false;
    };
    let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
    head[0] < 0x40 && length == rest.len() && &head[4..8] == STUN_COOKIE
}

fn is_dtls(datagram: &[u8]) -> bool {
    let is_head = matches!(datagram, [HANDSHAKE, 254, 253..=255, ..]);
    is_head && datagram.get(DTLS_TYPE_AT) == Some(&CLIENT_HELLO)
}

/// Looks at the first bytes of a connection.
#[derive(Debug)]
pub struct OpeningLook(State);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    Method,
    /// Behind the method and its space.
    TargetStart,
    Target,
    /// So many bytes of [`VERSION`] have come.
    Version(usize),
    /// Behind the major version.
    Major,
    /// Behind the dot.
    Minor,
    /// Behind the version.
    LineEnd,
    /// Behind the CR.
    LineFeed,
    /// So many bytes of a TLS record have come.
    Hello(usize),
    Decided(OpeningVerdict),
}

const VERSION: &[u8] = b"HTTP/";

/// The type of TLS records that make handshakes, and of the message that is the first of one.
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;

/// The largest minor version that a record has: TLS 1.3 as drafts had it.
const TLS_MINOR_MAX: u8 = 4;

/// Where the type of the message stands, behind that of the record, its version and its length.
const MESSAGE_TYPE_AT: usize = 5;

impl Default for OpeningLook {
    fn default() -> OpeningLook {
        OpeningLook(State::Start)
    }
}

impl OpeningLook {
    /// Takes the next bytes of the connection.
    pub fn look(&mut self, bytes: &[u8]) -> OpeningVerdict {
        for byte in bytes {
            if let State::Decided(opening) = self.0 {
                return opening;
            }
            self.0 = next(self.0, *byte);
        }
        match self.0 {
            State::Decided(opening) => opening,
            _ => OpeningVerdict::Undecided,
        }
    }

    /// True while all bytes so far, at most five, may be the head of a TLS record: one of them may be the
    /// end of a frame, and must not be taken for it.
    pub fn may_be_hello(&self) -> bool {
        matches!(self.0, State::Hello(_))
    }

    /// The connection has ended: a whole request line needs no end then.
    pub fn end(&mut self) -> OpeningVerdict {
        let opening = match self.0 {
            State::Decided(opening) => opening,
            State::LineEnd | State::LineFeed => OpeningVerdict::Foreign(Foreign::Http),
            _ => OpeningVerdict::Own,
        };
        self.0 = State::Decided(opening);
        opening
    }
}

fn next(state: State, byte: u8) -> State {
    const OWN: State = State::Decided(OpeningVerdict::Own);
    const HTTP: State = State::Decided(OpeningVerdict::Foreign(Foreign::Http));
    match (state, byte) {
        (State::Start, HANDSHAKE) => State::Hello(1),
        (State::Start | State::Method, byte) if is_token(byte) => State::Method,
        (State::Method, b' ') => State::TargetStart,
        // Of a counted frame of syslog `<` comes here, and none of a browser's addresses.
        (State::TargetStart, b'/' | b'*' | b'[') => State::Target,
        (State::TargetStart, byte) if byte.is_ascii_alphanumeric() => State::Target,
        (State::Target, b' ') => State::Version(0),
        (State::Target, b'!'..=b'~' | 0x80..) => State::Target,
        (State::Version(at), byte) if VERSION.get(at) == Some(&byte) => State::Version(at + 1),
        (State::Version(at), b'0'..=b'9') if at == VERSION.len() => State::Major,
        (State::Major, b'.') => State::Minor,
        (State::Minor, b'0'..=b'9') => State::LineEnd,
        (State::Major | State::LineEnd, b'\r') => State::LineFeed,
        (State::Major | State::LineEnd | State::LineFeed, b'\n') => HTTP,
        (State::Hello(1), 3) => State::Hello(2),
        (State::Hello(2), 0..=TLS_MINOR_MAX) => State::Hello(3),
        (State::Hello(at @ 3..MESSAGE_TYPE_AT), _) => State::Hello(at + 1),
        (State::Hello(MESSAGE_TYPE_AT), CLIENT_HELLO) => {
            State::Decided(OpeningVerdict::Foreign(Foreign::Tls))
        }
        _ => OWN,
    }
}

/// Bytes of a token (RFC 9110, section 5.6.2): pages may choose any method.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opening(bytes: &[u8]) -> OpeningVerdict {
        let whole = OpeningLook::default().look(bytes);
        let mut piecemeal = OpeningLook::default();
        let last = bytes.chunks(1).map(|byte| piecemeal.look(byte)).last();
        assert_eq!(
            last.unwrap_or(OpeningVerdict::Undecided),
            whole,
            "{bytes:?}"
        );
        whole
    }

    #[test]
    fn datagrams_of_browsers_are_known_and_records_are_not() {
        let stun = |name: &str| {
            let padded = name.len().next_multiple_of(4);
            let mut bytes = vec![0, 1, 0, u8::try_from(padded + 4).unwrap()];
            bytes.extend_from_slice(STUN_COOKIE);
            bytes.extend_from_slice(b"transaction!");
            bytes.extend_from_slice(&[0, 6, 0, u8::try_from(name.len()).unwrap()]);
            bytes.extend_from_slice(name.as_bytes());
            bytes.resize(STUN_HEAD_BYTES + 4 + padded, 0);
            bytes
        };
        let hello = [&[22, 254, 253][..], &[0; 10], &[1, 0, 0]].concat();
        assert!(is_of_browser(&stun("ufrag:of/the+page")));
        assert!(is_of_browser(&hello));
        let mut longer = stun("a");
        longer.push(b'x');
        let records: [&[u8]; 5] = [
            b"<13>Mar  3 10:00:00 host app: said",
            b"{\"version\":\"1.1\",\"host\":\"h\",\"short_message\":\"m\"}",
            b"\x1e\x0f12345678\0\x02{\"version\":\"1.1\"",
            b"\x1f\x8b\x08\0\0\0\0\0\0\x03",
            &longer,
        ];
        for record in records {
            assert!(!is_of_browser(record), "{record:?}");
        }
    }

    #[test]
    fn requests_and_hellos_are_foreign() {
        const HTTP: OpeningVerdict = OpeningVerdict::Foreign(Foreign::Http);
        const TLS: OpeningVerdict = OpeningVerdict::Foreign(Foreign::Tls);
        let table: [(&[u8], OpeningVerdict); 37] = [
            (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", HTTP),
            (b"POST /api/v1/push?a=b%3Cc HTTP/1.0\r\n", HTTP),
            (b"GET / HTTP/1.1\n", HTTP),
            (b"OPTIONS * HTTP/1.1\r\n", HTTP),
            (b"CONNECT a.example:443 HTTP/1.1\r\n", HTTP),
            (b"GET http://a.example/ HTTP/1.1\r\n", HTTP),
            (b"GET [::1]:80 HTTP/1.1\r\n", HTTP),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", HTTP),
            (b"GET / HTTP/3\r\n", HTTP),
            (b"5 /abc HTTP/1.1\r\n", HTTP),
            (b"{x /abc HTTP/1.1\r\n", OpeningVerdict::Own),
            (b"no-such-method /<13>x\xc3\xa4 HTTP/1.1\r\n", HTTP),
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", TLS),
            (b"\x16\x03\x03\x00\x05\x01", TLS),
            (b"\x16\x03\x03\x00\x05\x02", OpeningVerdict::Own),
            (b"\x16\x03\x0a", OpeningVerdict::Own),
            (b"\x16 text\n", OpeningVerdict::Own),
            (b"", OpeningVerdict::Undecided),
            (b"GET", OpeningVerdict::Undecided),
            (b"GET / HTTP/1.1", OpeningVerdict::Undecided),
            (b"\x16\x03\x01\x02", OpeningVerdict::Undecided),
            (b"\x16\x03\x01\x01\n", OpeningVerdict::Undecided),
            (b"\x16\x03\x01\x01\n\x01", TLS),
            (b"\x16\x03\x01\x01\n\n", OpeningVerdict::Own),
            (b"GET / HTTP/1.1 200\n", OpeningVerdict::Own),
            (b"GET / took 5 ms\n", OpeningVerdict::Own),
            (b"GET /\r\n", OpeningVerdict::Own),
            (b"GET /\0 HTTP/1.1\r\n", OpeningVerdict::Own),
            (b"GET the book\n", OpeningVerdict::Own),
            (b"POST failed\n", OpeningVerdict::Own),
            (b"\"GET / HTTP/1.1\" 200\n", OpeningVerdict::Own),
            (
                b"10.0.0.1 - - [x] \"GET / HTTP/1.1\"\n",
                OpeningVerdict::Own,
            ),
            (
                b"<34>1 2026 a b - - - GET / HTTP/1.1\n",
                OpeningVerdict::Own,
            ),
            (b"12 <34>1 2026 a", OpeningVerdict::Own),
            (b"1 open 85 relp_version=0\n", OpeningVerdict::Own),
            (
                b"{\"short_message\":\"GET / HTTP/1.1\"}\0",
                OpeningVerdict::Own,
            ),
            (b"\n", OpeningVerdict::Own),
        ];
        for (bytes, expected) in table {
            assert_eq!(opening(bytes), expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_verdict_stands() {
        let mut look = OpeningLook::default();
        assert_eq!(look.look(b"hello\n"), OpeningVerdict::Own);
        assert_eq!(look.look(b"GET / HTTP/1.1\r\n"), OpeningVerdict::Own);
        let mut look = OpeningLook::default();
        look.look(b"GET / HTTP/1.1\r\n");
        let http = OpeningVerdict::Foreign(Foreign::Http);
        assert_eq!((look.look(b"hello\n"), look.end()), (http, http));
    }

    #[test]
    fn only_the_head_of_a_tls_record_may_be_a_hello() {
        for (bytes, expected) in [
            (&b""[..], false),
            (b"GET", false),
            (b"\x16", true),
            (b"\x16\x03\x01\x01\n", true),
            (b"\x16\n", false),
            (b"\x16\x03\x01\x01\n\x01", false),
        ] {
            let mut look = OpeningLook::default();
            look.look(bytes);
            assert_eq!(look.may_be_hello(), expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn the_end_decides() {
        for (bytes, expected) in [
            (
                &b"GET / HTTP/1.1"[..],
                OpeningVerdict::Foreign(Foreign::Http),
            ),
            (b"GET / HTTP/1.1\r", OpeningVerdict::Foreign(Foreign::Http)),
            (b"GET / HTTP/", OpeningVerdict::Own),
            (b"GET / HTTP/1", OpeningVerdict::Own),
            (b"\x16\x03", OpeningVerdict::Own),
            (b"", OpeningVerdict::Own),
        ] {
            let mut look = OpeningLook::default();
            assert_eq!(look.look(bytes), OpeningVerdict::Undecided);
            assert_eq!(look.end(), expected, "{}", bytes.escape_ascii());
        }
    }
}

//! The header of the PROXY protocol, versions 1 and 2: who a connection comes from, said by a proxy
//! before the connection's first byte.
//!
//! Invariants: a header is decoded from the bytes that there are, or more are asked for; never are
//! more than [`HEADER_BYTES_MAX`] asked for. What follows a header is not looked at. Nothing is
//! believed of a header whose checksum is wrong. [`encode_text`] and [`encode_binary`] give what
//! [`decode`] reads again.

mod binary;
mod text;

use core::net::SocketAddr;
use std::{error, fmt};

pub use binary::encode as encode_binary;
pub use text::encode as encode_text;

/// The longest header of either version that is taken: addresses and every extension that is known
/// fit several times.
pub const HEADER_BYTES_MAX: usize = 4096;

/// The longest part of a header that an extension may be, so that lengths fit their 16 bits and a
/// header its bound.
const VALUE_BYTES_MAX: usize = 512;

/// The longest unique id (PROXY protocol, section 2.2.5).
pub const UNIQUE_ID_BYTES_MAX: usize = 128;

/// What a proxy says of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// From where to where it goes.
    pub addresses: Addresses,
    /// What else is said; version 1 has none of it.
    pub extensions: Extensions,
}

/// From where to where a connection goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Addresses {
    /// The proxy connected for itself, such as to see whether anybody is there.
    Local,
    /// The proxy does not say.
    #[default]
    Unknown,
    /// Both are of the same family.
    Internet {
        /// The client.
        source: SocketAddr,
        /// What it connected to.
        destination: SocketAddr,
    },
    /// Sockets of the proxy's machine, by their paths, which may be empty.
    Unix {
        /// The client.
        source: Vec<u8>,
        /// What it connected to.
        destination: Vec<u8>,
    },
}

/// What version 2 says beside the addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extensions {
    /// The application's protocol, as TLS agreed on it.
    pub alpn: Option<Vec<u8>>,
    /// The name that the client asked for.
    pub authority: Option<String>,
    /// What tells the connection from all others, at most [`UNIQUE_ID_BYTES_MAX`] bytes.
    pub unique_id: Option<Vec<u8>>,
    /// What is known of TLS between the client and the proxy.
    pub tls: Option<Tls>,
}

/// TLS between a client and a proxy. Texts are at most 512 bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Whether the client showed a certificate in this connection.
    pub has_certificate: bool,
    /// Whether it showed one in this connection or in the one that this one resumes.
    pub had_certificate: bool,
    /// Whether this certificate was found good.
    pub is_verified: bool,
    /// The version, such as `TLSv1.3`.
    pub version: Option<String>,
    /// The common name of the client's certificate.
    pub common_name: Option<String>,
    /// The cipher, by its name of OpenSSL or of the registry.
    pub cipher: Option<String>,
    /// The algorithm that the proxy's certificate is signed by.
    pub signature_algorithm: Option<String>,
    /// The algorithm of the key of the proxy's certificate.
    pub key_algorithm: Option<String>,
}

/// Why bytes begin with no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// They begin like none.
    NoHeader,
    /// The line of version 1 breaks the grammar, or has no end where it must.
    Line,
    /// A version, command or family of version 2 that does not exist.
    Kind,
    /// A length does not fit what it is a part of, or the header is longer than
    /// [`HEADER_BYTES_MAX`].
    Length,
    /// A text is none.
    Text,
    /// The checksum is another one.
    Checksum,
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HeaderError::NoHeader => "there is no header of the PROXY protocol",
            HeaderError::Line => "the line of the PROXY protocol is broken",
            HeaderError::Kind => "a version, command or family of the PROXY protocol is unknown",
            HeaderError::Length => "a length in the header of the PROXY protocol does not fit",
            HeaderError::Text => "a text in the header of the PROXY protocol is none",
            HeaderError::Checksum => "the checksum of the header of the PROXY protocol is wrong",
        })
    }
}

impl error::Error for HeaderError {}

/// The header that bytes begin with and how many they are of it; `None` while more bytes are needed.
///
/// # Errors
/// When they begin with no header, whatever else comes.
pub fn decode(bytes: &[u8]) -> Result<Option<(Header, usize)>, HeaderError> {
    let is_beginning = |of: &[u8]| bytes.iter().zip(of).all(|(one, other)| one == other);
    if is_beginning(&binary::SIGNATURE) {
        return binary::decode(bytes);
    }
    if is_beginning(text::PREFIX) {
        text::decode(bytes)
    } else {
        Err(HeaderError::NoHeader)
    }
}

/// Entry point of the fuzzer.
///
/// # Panics
/// If a header is longer than its bytes or the bound, depends on what follows it, is found in a part
/// of itself, or is another one after it was encoded and decoded.
pub fn fuzz_proxy(data: &[u8]) {
    let Ok(Some((header, length))) = decode(data) else {
        return;
    };
    assert!(length <= data.len() && length <= HEADER_BYTES_MAX);
    assert_eq!(decode(&data[..length]), Ok(Some((header.clone(), length))));
    assert_eq!(decode(&data[..length - 1]), Ok(None));
    for with_checksum in [false, true] {
        let mut again = Vec::new();
        encode_binary(&header, with_checksum, &mut again);
        let whole = again.len();
        assert_eq!(decode(&again), Ok(Some((header.clone(), whole))));
    }
    if matches!(header.addresses, Addresses::Internet { .. }) {
        let mut line = Vec::new();
        encode_text(&header.addresses, &mut line);
        let (read, _) = decode(&line).expect("a header").expect("a whole one");
        assert_eq!(read.addresses, header.addresses);
    }
}

#[cfg(test)]
mod tests;

//! Version 1: a line, such as `PROXY TCP4 192.0.2.1 192.0.2.2 40000 443`.

use core::net::{IpAddr, SocketAddr};
use std::io::Write as _;

use super::{Addresses, Header, HeaderError};

/// What a line begins with.
pub(super) const PREFIX: &[u8] = b"PROXY ";

/// The longest line with its end (PROXY protocol, section 2.1).
const LINE_BYTES_MAX: usize = 107;

/// Reads a line; `None` while it has no end.
pub(super) fn decode(bytes: &[u8]) -> Result<Option<(Header, usize)>, HeaderError> {
    let within = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    let Some(end) = memchr::memchr(b'\n', within) else {
        return if bytes.len() < LINE_BYTES_MAX {
            Ok(None)
        } else {
            Err(HeaderError::Line)
        };
    };
    let line = within[..end].strip_suffix(b"\r").ok_or(HeaderError::Line)?;
    let line = str::from_utf8(line).map_err(|_| HeaderError::Line)?;
    let header = Header {
        addresses: addresses(line)?,
        ..Header::default()
    };
    Ok(Some((header, end + 1)))
}

fn addresses(line: &str) -> Result<Addresses, HeaderError> {
    let words: Vec<&str> = line.split(' ').collect();
    let (family, [source, destination, source_port, destination_port]) = match words[..] {
        // What follows is to be passed over.
        [_, "UNKNOWN", ..] => return Ok(Addresses::Unknown),
        [_, family, from, to, from_port, to_port] => (family, [from, to, from_port, to_port]),
        _ => return Err(HeaderError::Line),
    };
    let source = SocketAddr::new(address(source)?, port(source_port)?);
    let destination = SocketAddr::new(address(destination)?, port(destination_port)?);
    match (family, source.is_ipv4(), destination.is_ipv4()) {
        ("TCP4", true, true) | ("TCP6", false, false) => Ok(Addresses::Internet {
            source,
            destination,
        }),
        _ => Err(HeaderError::Line),
    }
}

fn address(text: &str) -> Result<IpAddr, HeaderError> {
    text.parse().map_err(|_| HeaderError::Line)
}

/// A decimal number without zeros before it.
fn port(text: &str) -> Result<u16, HeaderError> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_padded = text.len() > 1 && text.starts_with('0');
    match text.parse() {
        Ok(port) if is_plain && !is_padded => Ok(port),
        _ => Err(HeaderError::Line),
    }
}

/// Appends the line that says these addresses; what version 1 has no words for is `UNKNOWN`.
pub fn encode(addresses: &Addresses, into: &mut Vec<u8>) {
    let Addresses::Internet {
        source,
        destination,
    } = addresses
    else {
        into.extend_from_slice(b"PROXY UNKNOWN\r\n");
        return;
    };
    let family = match source {
        SocketAddr::V4(_) => "TCP4",
        SocketAddr::V6(_) => "TCP6",
    };
    // Writing into memory does not fail.
    let _ = write!(
        into,
        "PROXY {family} {} {} {} {}\r\n",
        source.ip(),
        destination.ip(),
        source.port(),
        destination.port()
    );
}

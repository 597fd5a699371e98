//! Version 2.
//!
//! ```text
//! signature 12 · version 4 bits, command 4 bits · family 4 bits, transport 4 bits · length u16
//! addresses: 12 bytes of IPv4, 36 of IPv6, 216 of Unix, or none
//! extensions, up to the length: type u8 · length u16 · value
//! ```
//!
//! Numbers are big endian.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{
    Addresses, Extensions, HEADER_BYTES_MAX, Header, HeaderError, Tls, UNIQUE_ID_BYTES_MAX,
    VALUE_BYTES_MAX,
};

/// What a header begins with.
pub(super) const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// Bytes before the addresses.
const FIXED_BYTES: usize = 16;

const VERSION: u8 = 2;
const COMMAND_LOCAL: u8 = 0;
const COMMAND_PROXY: u8 = 1;

const FAMILY_NONE: u8 = 0;
const FAMILY_IPV4: u8 = 1;
const FAMILY_IPV6: u8 = 2;
const FAMILY_UNIX: u8 = 3;
const TRANSPORT_MAX: u8 = 2;
const TRANSPORT_STREAM: u8 = 1;

/// Bytes of a path of a Unix socket.
const PATH_BYTES: usize = 108;

/// Types of extensions (PROXY protocol, section 2.2).
const ALPN: u8 = 0x01;
const AUTHORITY: u8 = 0x02;
const CRC32C: u8 = 0x03;
const UNIQUE_ID: u8 = 0x05;
const TLS: u8 = 0x20;
const TLS_VERSION: u8 = 0x21;
const TLS_COMMON_NAME: u8 = 0x22;
const TLS_CIPHER: u8 = 0x23;
const TLS_SIGNATURE_ALGORITHM: u8 = 0x24;
const TLS_KEY_ALGORITHM: u8 = 0x25;

/// Bits of what a client did.
const CLIENT_TLS: u8 = 0x01;
const CLIENT_CERTIFICATE: u8 = 0x02;
const CLIENT_HAD_CERTIFICATE: u8 = 0x04;

/// Reads a header; `None` while bytes of it are missing.
pub(super) fn decode(bytes: &[u8]) -> Result<Option<(Header, usize)>, HeaderError> {
    let Some(fixed) = bytes.first_chunk::<FIXED_BYTES>() else {
        return Ok(None);
    };
    let (version, command) = (fixed[12] >> 4, fixed[12] & 15);
    let (family, transport) = (fixed[13] >> 4, fixed[13] & 15);
    let is_known = version == VERSION && command <= COMMAND_PROXY && transport <= TRANSPORT_MAX;
    if !is_known || family > FAMILY_UNIX {
        return Err(HeaderError::Kind);
    }
    let length = FIXED_BYTES + usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    if length > HEADER_BYTES_MAX {
        return Err(HeaderError::Length);
    }
    let Some(whole) = bytes.get(..length) else {
        return Ok(None);
    };
    let (addresses, rest) = addresses(family, &whole[FIXED_BYTES..])?;
    let header = Header {
        addresses: match command {
            COMMAND_LOCAL => Addresses::Local,
            _ => addresses,
        },
        extensions: extensions(rest, whole)?,
    };
    Ok(Some((header, length)))
}

/// The addresses, and what follows them.
fn addresses(family: u8, bytes: &[u8]) -> Result<(Addresses, &[u8]), HeaderError> {
    let of = |source: (IpAddr, [u8; 2]), destination: (IpAddr, [u8; 2])| Addresses::Internet {
        source: SocketAddr::new(source.0, u16::from_be_bytes(source.1)),
        destination: SocketAddr::new(destination.0, u16::from_be_bytes(destination.1)),
    };
    match family {
        FAMILY_IPV4 => {
            let (from, rest) = take::<4>(bytes)?;
            let (to, rest) = take::<4>(rest)?;
            let (from_port, rest) = take::<2>(rest)?;
            let (to_port, rest) = take::<2>(rest)?;
            let [from, to] = [from, to].map(|octets| IpAddr::from(Ipv4Addr::from(octets)));
            Ok((of((from, from_port), (to, to_port)), rest))
        }
        FAMILY_IPV6 => {
            let (from, rest) = take::<16>(bytes)?;
            let (to, rest) = take::<16>(rest)?;
            let (from_port, rest) = take::<2>(rest)?;
            let (to_port, rest) = take::<2>(rest)?;
            let [from, to] = [from, to].map(|octets| IpAddr::from(Ipv6Addr::from(octets)));
            Ok((of((from, from_port), (to, to_port)), rest))
        }
        FAMILY_UNIX => {
            let (source, rest) = take::<PATH_BYTES>(bytes)?;
            let (destination, rest) = take::<PATH_BYTES>(rest)?;
            let [source, destination] = [source, destination].map(|path| path_of(&path));
            let unix = Addresses::Unix {
                source,
                destination,
            };
            Ok((unix, rest))
        }
        _ => Ok((Addresses::Unknown, bytes)),
    }
}

fn take<const N: usize>(bytes: &[u8]) -> Result<([u8; N], &[u8]), HeaderError> {
    let (taken, rest) = bytes.split_first_chunk().ok_or(HeaderError::Length)?;
    Ok((*taken, rest))
}

/// A path up to the zeros that fill it up. Names without files begin with one.
fn path_of(padded: &[u8]) -> Vec<u8> {
    let end = padded.iter().rposition(|byte| *byte != 0);
    padded[..end.map_or(0, |at| at + 1)].to_vec()
}

/// The first extension: its type, value, and what follows.
fn extension(bytes: &[u8]) -> Result<(u8, &[u8], &[u8]), HeaderError> {
    let ([kind, high, low], rest) = take::<3>(bytes)?;
    let length = usize::from(u16::from_be_bytes([high, low]));
    let (value, rest) = rest.split_at_checked(length).ok_or(HeaderError::Length)?;
    Ok((kind, value, rest))
}

/// Reads extensions; those that are not known are passed over.
fn extensions(mut rest: &[u8], whole: &[u8]) -> Result<Extensions, HeaderError> {
    let mut read = Extensions::default();
    // Each round takes at least the three bytes of an extension's type and length.
    while !rest.is_empty() {
        let (kind, value, after) = extension(rest)?;
        match kind {
            ALPN => read.alpn = Some(bounded(value)?.to_vec()),
            AUTHORITY => read.authority = Some(text(value)?),
            UNIQUE_ID if value.len() > UNIQUE_ID_BYTES_MAX => return Err(HeaderError::Length),
            UNIQUE_ID => read.unique_id = Some(value.to_vec()),
            CRC32C => check(value, whole.len() - after.len(), whole)?,
            TLS => read.tls = tls(value)?,
            _ => {}
        }
        rest = after;
    }
    Ok(read)
}

/// `None` if there was no TLS.
fn tls(value: &[u8]) -> Result<Option<Tls>, HeaderError> {
    let ([client], rest) = take::<1>(value)?;
    let (verify, mut rest) = take::<4>(rest)?;
    if client & CLIENT_TLS == 0 {
        return Ok(None);
    }
    let mut read = Tls {
        has_certificate: client & CLIENT_CERTIFICATE != 0,
        had_certificate: client & CLIENT_HAD_CERTIFICATE != 0,
        is_verified: verify == [0; 4],
        ..Tls::default()
    };
    while !rest.is_empty() {
        let (kind, value, after) = extension(rest)?;
        match kind {
            TLS_VERSION => read.version = Some(text(value)?),
            TLS_COMMON_NAME => read.common_name = Some(text(value)?),
            TLS_CIPHER => read.cipher = Some(text(value)?),
            TLS_SIGNATURE_ALGORITHM => read.signature_algorithm = Some(text(value)?),
            TLS_KEY_ALGORITHM => read.key_algorithm = Some(text(value)?),
            _ => {}
        }
        rest = after;
    }
    Ok(Some(read))
}

/// Compares the checksum, which ends at `end`, with that of the header with zeros in its place.
fn check(value: &[u8], end: usize, whole: &[u8]) -> Result<(), HeaderError> {
    let expected = <[u8; 4]>::try_from(value).map_err(|_| HeaderError::Length)?;
    let begin = end - expected.len();
    let sum = crc32c::crc32c_append(crc32c::crc32c(&whole[..begin]), &[0; 4]);
    if crc32c::crc32c_append(sum, &whole[end..]) == u32::from_be_bytes(expected) {
        Ok(())
    } else {
        Err(HeaderError::Checksum)
    }
}

fn bounded(value: &[u8]) -> Result<&[u8], HeaderError> {
    if value.len() <= VALUE_BYTES_MAX {
        Ok(value)
    } else {
        Err(HeaderError::Length)
    }
}

fn text(value: &[u8]) -> Result<String, HeaderError> {
    let text = str::from_utf8(bounded(value)?).map_err(|_| HeaderError::Text)?;
    Ok(text.to_owned())
}

/// Appends a header; with a checksum of itself if that is wanted. Values of extensions are cut at
/// their bounds, paths at 108 bytes.
pub fn encode(header: &Header, with_checksum: bool, into: &mut Vec<u8>) {
    let begin = into.len();
    let (command, family) = match &header.addresses {
        Addresses::Local => (COMMAND_LOCAL, FAMILY_NONE),
        Addresses::Unknown => (COMMAND_PROXY, FAMILY_NONE),
        Addresses::Internet { source, .. } if source.is_ipv4() => (COMMAND_PROXY, FAMILY_IPV4),
        Addresses::Internet { .. } => (COMMAND_PROXY, FAMILY_IPV6),
        Addresses::Unix { .. } => (COMMAND_PROXY, FAMILY_UNIX),
    };
    let transport = match family {
        FAMILY_NONE => 0,
        _ => TRANSPORT_STREAM,
    };
    into.extend_from_slice(&SIGNATURE);
    into.extend_from_slice(&[VERSION << 4 | command, family << 4 | transport, 0, 0]);
    put_addresses(&header.addresses, into);
    put_extensions(&header.extensions, into);
    let checksum_at = with_checksum.then(|| {
        put(CRC32C, &[0; 4], into);
        into.len() - 4
    });
    let length = into.len() - begin - FIXED_BYTES;
    debug_assert!(length + FIXED_BYTES <= HEADER_BYTES_MAX);
    let length = u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes();
    into[begin + 14..begin + FIXED_BYTES].copy_from_slice(&length);
    if let Some(at) = checksum_at {
        let sum = crc32c::crc32c(&into[begin..]).to_be_bytes();
        into[at..].copy_from_slice(&sum);
    }
}

fn put_addresses(addresses: &Addresses, into: &mut Vec<u8>) {
    match addresses {
        Addresses::Local | Addresses::Unknown => {}
        Addresses::Internet {
            source,
            destination,
        } => {
            for address in [source, destination] {
                match (address.ip(), source.is_ipv4()) {
                    (IpAddr::V4(address), true) => into.extend_from_slice(&address.octets()),
                    (IpAddr::V6(address), true) => {
                        let v4 = address.to_ipv4().unwrap_or(Ipv4Addr::UNSPECIFIED);
                        into.extend_from_slice(&v4.octets());
                    }
                    (IpAddr::V4(address), false) => {
                        into.extend_from_slice(&address.to_ipv6_mapped().octets());
                    }
                    (IpAddr::V6(address), false) => into.extend_from_slice(&address.octets()),
                }
            }
            into.extend_from_slice(&source.port().to_be_bytes());
            into.extend_from_slice(&destination.port().to_be_bytes());
        }
        Addresses::Unix {
            source,
            destination,
        } => {
            for path in [source, destination] {
                let path = &path[..path.len().min(PATH_BYTES)];
                into.extend_from_slice(path);
                into.resize(into.len() + PATH_BYTES - path.len(), 0);
            }
        }
    }
}

fn put_extensions(extensions: &Extensions, into: &mut Vec<u8>) {
    let texts = [
        (ALPN, extensions.alpn.as_deref(), VALUE_BYTES_MAX),
        (
            AUTHORITY,
            extensions.authority.as_deref().map(str::as_bytes),
            VALUE_BYTES_MAX,
        ),
        (
            UNIQUE_ID,
            extensions.unique_id.as_deref(),
            UNIQUE_ID_BYTES_MAX,
        ),
    ];
    for (kind, value, bytes_max) in texts {
        if let Some(value) = value {
            put(kind, &value[..value.len().min(bytes_max)], into);
        }
    }
    let Some(tls) = &extensions.tls else { return };
    let mut client = CLIENT_TLS;
    if tls.has_certificate {
        client |= CLIENT_CERTIFICATE;
    }
    if tls.had_certificate {
        client |= CLIENT_HAD_CERTIFICATE;
    }
    let mut value = vec![client];
    value.extend_from_slice(&u32::from(!tls.is_verified).to_be_bytes());
    for (kind, text) in [
        (TLS_VERSION, &tls.version),
        (TLS_COMMON_NAME, &tls.common_name),
        (TLS_CIPHER, &tls.cipher),
        (TLS_SIGNATURE_ALGORITHM, &tls.signature_algorithm),
        (TLS_KEY_ALGORITHM, &tls.key_algorithm),
    ] {
        if let Some(text) = text {
            let end = text.floor_char_boundary(VALUE_BYTES_MAX);
            put(kind, &text.as_bytes()[..end], &mut value);
        }
    }
    put(TLS, &value, into);
}

fn put(kind: u8, value: &[u8], into: &mut Vec<u8>) {
    let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
    into.push(kind);
    into.extend_from_slice(&length.to_be_bytes());
    into.extend_from_slice(value);
}

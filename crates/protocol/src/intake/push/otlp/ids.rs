//! Ids of traces and spans.
//!
//! They are bytes in Protocol Buffers and hexadecimal digits in JSON. Some senders put the digits where the
//! bytes belong, and encoders of Protocol Buffers as JSON write bytes as base64: both are read by their
//! length. Sources: the data model of OpenTelemetry's logs, and OTLP's own mapping to JSON.

use base64::Engine as _;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::DecodePaddingMode::Indifferent;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

use super::NoRecord;

/// Bytes of the id of a trace.
pub(super) const TRACE_BYTES: usize = 16;

/// Bytes of the id of a span.
pub(super) const SPAN_BYTES: usize = 8;

/// Base64 with its padding or without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new().with_decode_padding_mode(Indifferent),
);

/// The digits of an id of `N` bytes, in lower case; empty for none, which may be zeros.
pub(super) fn of_bytes<const N: usize>(given: &[u8]) -> Result<String, NoRecord> {
    if given.len() == N {
        Ok(unless_zeros(hexadecimal(given)))
    } else {
        of_text::<N>(given)
    }
}

/// The same of an id that is written as text.
pub(super) fn of_text<const N: usize>(given: &[u8]) -> Result<String, NoRecord> {
    if given.is_empty() {
        return Ok(String::new());
    }
    if given.len() == 2 * N && given.iter().all(u8::is_ascii_hexdigit) {
        let digits = String::from_utf8_lossy(given).to_ascii_lowercase();
        return Ok(unless_zeros(digits));
    }
    let decoded = BASE64.decode(given).ok();
    let bytes = decoded.filter(|bytes| bytes.len() == N);
    let bytes = bytes.ok_or_else(|| no_id::<N>(given))?;
    Ok(unless_zeros(hexadecimal(&bytes)))
}

fn unless_zeros(digits: String) -> String {
    if digits.bytes().all(|digit| digit == b'0') {
        String::new()
    } else {
        digits
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cold]
fn no_id<const N: usize>(given: &[u8]) -> NoRecord {
    NoRecord(format!(
        "an id has {} bytes where {N} bytes or {} hexadecimal digits are expected",
        given.len(),
        2 * N
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_or_refused() {
        let table: [(&[u8], Option<&str>); 12] = [
            (b"", Some("")),
            (b"\0\0\0\0\0\0\0\0", Some("")),
            (b"0000000000000000", Some("")),
            (
                b"\x00\xf0\x67\xaa\x0b\xa9\x02\xb7",
                Some("00f067aa0ba902b7"),
            ),
            (b"00F067aa0ba902b7", Some("00f067aa0ba902b7")),
            (b"APBnqgupArc=", Some("00f067aa0ba902b7")),
            (b"APBnqgupArc", Some("00f067aa0ba902b7")),
            (b"abcdefgh", Some("6162636465666768")),
            (b"00f067aa0ba902b", None),
            (b"00f067aa0ba902bx", None),
            (b"4bf92f3577b34da6a3ce929d0e0e4736", None),
            (b"seven", None),
        ];
        for (given, expected) in table {
            let found = of_bytes::<SPAN_BYTES>(given).ok();
            assert_eq!(found.as_deref(), expected, "{}", given.escape_ascii());
        }
        assert!(of_text::<SPAN_BYTES>(b"abcdefgh").is_err());
    }
}

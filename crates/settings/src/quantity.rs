//! Addresses as people write them, and how much durations and sizes may be.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use logpond_record::cast;
use logpond_record::limits::LINE_BYTES_MAX;
use logpond_search::size::{AmountError, Size, parse_duration, parse_size};

/// The shortest limit for lines that makes sense; below it ordinary lines would be cut.
const LINE_BYTES_MIN: u64 = 1 << 10;

/// Why a text is no address, duration or size.
#[derive(Clone, Debug, PartialEq)]
pub enum QuantityError {
    /// Not an address.
    Address,
    /// Not a duration or a size.
    Amount(AmountError),
    /// A percentage where bytes are expected.
    Percent,
    /// All of the disk.
    WholeDisk,
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QuantityError::Address => f.write_str(
                "expected an address such as 127.0.0.1:7650, [::1]:7650, 7650 or :0, or 'off'",
            ),
            QuantityError::Amount(error) => write!(f, "{error}"),
            QuantityError::Percent => f.write_str("expected bytes, such as 200MB or 10GiB"),
            QuantityError::WholeDisk => f.write_str("expected a percentage below 100%"),
        }
    }
}

impl std::error::Error for QuantityError {}

/// Reads `IP:PORT`, `IP`, `PORT` or `:PORT`; what is missing is loopback and `port`.
pub fn parse_address(text: &str, port: u16) -> Result<SocketAddr, QuantityError> {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let text = text.trim();
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(address);
    }
    if let Ok(ip) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, port));
    }
    if text == "localhost" {
        return Ok(SocketAddr::new(loopback, port));
    }
    let digits = text
        .strip_prefix("localhost:")
        .or_else(|| text.strip_prefix(':'))
        .unwrap_or(text);
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(QuantityError::Address);
    }
    digits
        .parse()
        .map(|port| SocketAddr::new(loopback, port))
        .map_err(|_| QuantityError::Address)
}

/// Reads a duration such as `30d` or `1h30m`.
pub fn parse_age(text: &str) -> Result<Duration, QuantityError> {
    let nanos = parse_duration(text).map_err(QuantityError::Amount)?;
    Ok(Duration::from_nanos(cast::unsigned(nanos.max(0))))
}

/// Reads a size in bytes, such as `200MB` or `10GiB`.
pub fn parse_bytes(text: &str) -> Result<u64, QuantityError> {
    match parse_size(text).map_err(QuantityError::Amount)? {
        Size::Bytes(bytes) => Ok(bytes),
        Size::Percent(_) => Err(QuantityError::Percent),
    }
}

/// Reads a size, or a percentage of the disk.
pub fn parse_room(text: &str) -> Result<Size, QuantityError> {
    match parse_size(text).map_err(QuantityError::Amount)? {
        Size::Percent(percent) if percent >= 100.0 => Err(QuantityError::WholeDisk),
        room => Ok(room),
    }
}

/// The limit of a line.
pub(super) fn line_bytes(text: &str) -> Result<usize, String> {
    let bytes = parse_bytes(text).map_err(|e| e.to_string())?;
    if (LINE_BYTES_MIN..=LINE_BYTES_MAX as u64).contains(&bytes) {
        Ok(cast::to_usize(bytes))
    } else {
        Err("the limit for lines is from 1KiB to 32MiB".to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let table = [
            (":0", "127.0.0.1:0"),
            ("7650", "127.0.0.1:7650"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("localhost:80", "127.0.0.1:80"),
            ("localhost", "127.0.0.1:9"),
            ("0.0.0.0", "0.0.0.0:9"),
            ("[::1]", "[::1]:9"),
            ("[::1]:5", "[::1]:5"),
        ];
        for (text, want) in table {
            assert_eq!(parse_address(text, 9), Ok(want.parse().unwrap()), "{text}");
        }
        for text in [
            "",
            "x",
            "example.com:80",
            "70000",
            ":",
            "1:2:3",
            "127.0.0.1:x",
        ] {
            assert_eq!(
                parse_address(text, 9),
                Err(QuantityError::Address),
                "{text}"
            );
        }
    }

    #[test]
    fn amounts() {
        assert_eq!(parse_age("1h30m"), Ok(Duration::from_secs(5400)));
        assert!(parse_age("30").is_err());
        assert_eq!(parse_bytes("200MB"), Ok(200_000_000));
        assert_eq!(parse_bytes("20%"), Err(QuantityError::Percent));
        assert_eq!(parse_room("20%"), Ok(Size::Percent(20.0)));
        assert_eq!(parse_room("10GiB"), Ok(Size::Bytes(10 << 30)));
        assert_eq!(parse_room("100%"), Err(QuantityError::WholeDisk));
    }
}

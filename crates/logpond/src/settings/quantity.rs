//! Addresses, durations and sizes as people write them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::Room;

/// Why a text is no address, duration or size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuantityError {
    /// Not an address.
    Address,
    /// Not a duration.
    Duration,
    /// Not a size.
    Size,
    /// A percentage above 99.
    Percent,
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            QuantityError::Address => {
                "expected an address such as 127.0.0.1:7650, [::1]:7650, 7650 or :0, or 'off'"
            }
            QuantityError::Duration => "expected a duration such as 90s, 1h30m, 30d or 4w",
            QuantityError::Size => "expected a size such as 200MB or 10GiB",
            QuantityError::Percent => {
                "expected a percentage from 0% to 99%, or a size such as 10GiB"
            }
        })
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

/// Reads a duration of whole numbers with units, at most some ten thousand years.
pub fn parse_age(text: &str) -> Result<Duration, QuantityError> {
    let mut total: u64 = 0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(QuantityError::Duration);
    }
    while !rest.is_empty() {
        let (number, after) = split_number(rest).ok_or(QuantityError::Duration)?;
        let end = after
            .find(|c: char| c.is_ascii_digit() || c == ' ')
            .unwrap_or(after.len());
        let seconds = match &after[..end] {
            "s" | "sec" => 1,
            "m" | "min" => 60,
            "h" => 3600,
            "d" => 86_400,
            "w" => 7 * 86_400,
            "y" => 365 * 86_400,
            _ => return Err(QuantityError::Duration),
        };
        total = number
            .checked_mul(seconds)
            .and_then(|part| total.checked_add(part))
            .filter(|&seconds| seconds <= i64::MAX as u64 / 1_000_000_000)
            .ok_or(QuantityError::Duration)?;
        rest = after[end..].trim_start();
    }
    Ok(Duration::from_secs(total))
}

/// Reads a size in bytes, with a unit or without.
pub fn parse_bytes(text: &str) -> Result<u64, QuantityError> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let unit: f64 = match text[end..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "ki" | "kib" => 1024.0,
        "mi" | "mib" => 1_048_576.0,
        "gi" | "gib" => 1_073_741_824.0,
        "ti" | "tib" => 1_099_511_627_776.0,
        _ => return Err(QuantityError::Size),
    };
    let number: f64 = text[..end].parse().map_err(|_| QuantityError::Size)?;
    let bytes = number * unit;
    // 2^53: above it a float no longer counts single bytes.
    if bytes <= 9_007_199_254_740_992.0 {
        Ok(bytes.round() as u64)
    } else {
        Err(QuantityError::Size)
    }
}

/// Reads a size, or a whole percentage of the disk.
pub fn parse_room(text: &str) -> Result<Room, QuantityError> {
    match text.trim().strip_suffix('%') {
        Some(percent) => match percent.trim().parse::<u8>() {
            Ok(percent) if percent < 100 => Ok(Room::Percent(percent)),
            _ => Err(QuantityError::Percent),
        },
        None => parse_bytes(text).map(Room::Bytes),
    }
}

fn split_number(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    Some((text[..end].parse().ok()?, text[end..].trim_start()))
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
    fn durations() {
        let table = [
            ("90s", 90),
            ("1h30m", 5400),
            ("1h 30m", 5400),
            ("30d", 2_592_000),
            ("4w", 2_419_200),
        ];
        for (text, seconds) in table {
            assert_eq!(parse_age(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in [
            "",
            "d",
            "30",
            "30x",
            "99999999999999999999d",
            "-1d",
            "1000y",
        ] {
            assert_eq!(parse_age(text), Err(QuantityError::Duration), "{text}");
        }
    }

    #[test]
    fn sizes() {
        let table = [
            ("0", 0),
            ("200MB", 200_000_000),
            ("10GiB", 10 << 30),
            ("1.5 kib", 1536),
            ("7b", 7),
        ];
        for (text, bytes) in table {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "MB", "1..2", "1 x", "99999999TB", "-1", "ä"] {
            assert_eq!(parse_bytes(text), Err(QuantityError::Size), "{text}");
        }
        assert_eq!(parse_room("20%"), Ok(Room::Percent(20)));
        assert_eq!(parse_room("1KB"), Ok(Room::Bytes(1000)));
        assert_eq!(parse_room("100%"), Err(QuantityError::Percent));
        assert_eq!(Room::Percent(20).bytes_of(u64::MAX), u64::MAX / 5);
    }
}

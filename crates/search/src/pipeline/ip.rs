//! Addresses in text: one, a range of them, or a network; of IPv4 and of IPv6.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses that are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The first and the last one. Invariant: of one family.
    first: IpAddr,
    last: IpAddr,
}

impl Addresses {
    /// Reads `10.0.0.1`, `10.0.0.1-10.0.0.9`, `10.0.0.0/8` and the same of IPv6.
    ///
    /// # Errors
    /// When the text is none of these.
    pub fn parse(text: &str) -> Result<Addresses, String> {
        let wrong = || format!("ip: invalid pattern: {text:?}");
        let text_of = |part: &str| part.trim().parse::<IpAddr>().map_err(|_| wrong());
        if let Some((network, bits)) = text.split_once('/') {
            let bits = bits.trim().parse().map_err(|_| wrong())?;
            return network_of(text_of(network)?, bits).ok_or_else(wrong);
        }
        let (first, last) = match text.split_once('-') {
            Some((first, last)) => (text_of(first)?, text_of(last)?),
            None => (text_of(text)?, text_of(text)?),
        };
        let is_one_family = first.is_ipv4() == last.is_ipv4();
        if is_one_family && first <= last {
            Ok(Addresses { first, last })
        } else {
            Err(wrong())
        }
    }

    /// Whether an address is one of these.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.first.is_ipv4() && self.first <= address && address <= self.last
    }

    /// Whether a text holds one of these.
    pub fn is_in(&self, text: &[u8]) -> bool {
        let is_part = |b: &u8| b.is_ascii_hexdigit() || matches!(b, b':' | b'.');
        let runs = text.split(|b| !is_part(b)).filter(|run| run.len() > 1);
        runs.filter_map(|run| std::str::from_utf8(run).ok())
            .any(|run| self.is_in_run(run))
    }

    /// Whether a run of hexadecimal digits, colons and dots holds one of these.
    fn is_in_run(&self, run: &str) -> bool {
        let ends = ['.', ':'];
        if run.bytes().filter(|b| *b == b':').count() > 1 {
            // A full stop or a colon behind an address is none of its parts.
            let trimmed = run.trim_end_matches('.');
            for candidate in [trimmed, trimmed.trim_end_matches(':')] {
                if let Ok(address) = candidate.parse::<Ipv6Addr>() {
                    return self.contains(address.into());
                }
            }
        }
        let numbers = run.split(|c: char| !c.is_ascii_digit() && c != '.');
        let numbers = numbers.map(|number| number.trim_matches(ends));
        numbers
            .filter_map(|number| number.parse::<Ipv4Addr>().ok())
            .any(|address| self.contains(address.into()))
    }
}

fn network_of(address: IpAddr, bits: u32) -> Option<Addresses> {
    let (first, last): (IpAddr, IpAddr) = match address {
        IpAddr::V4(address) => {
            let free = 32u32.checked_sub(bits)?;
            let mask = u32::MAX.checked_shl(free).unwrap_or(0);
            let number = address.to_bits();
            let (first, last) = (number & mask, number | !mask);
            (Ipv4Addr::from(first).into(), Ipv4Addr::from(last).into())
        }
        IpAddr::V6(address) => {
            let free = 128u32.checked_sub(bits)?;
            let mask = u128::MAX.checked_shl(free).unwrap_or(0);
            let number = address.to_bits();
            let (first, last) = (number & mask, number | !mask);
            (Ipv6Addr::from(first).into(), Ipv6Addr::from(last).into())
        }
    };
    Some(Addresses { first, last })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_text() {
        let table = [
            ("10.0.0.1", "from 10.0.0.1.", true),
            ("10.0.0.1", "10.0.0.1:8080", true),
            ("10.0.0.1", "10.0.0.11", false),
            ("10.0.0.0/8", "a=10.255.3.4,b", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("0.0.0.0/0", "x 1.2.3.4", true),
            ("192.168.4.5-192.168.4.20", "192.168.4.20", true),
            ("192.168.4.5-192.168.4.20", "192.168.4.21", false),
            ("2001:db8::/32", "[2001:db8::1]:443", true),
            ("2001:db8::1", "peer 2001:db8:0:0::1: down", true),
            ("::1", "at ::1", true),
            ("::1", "12:30:00", false),
            ("1.2.3.4", "1.2.3.4.5", false),
            ("1.2.3.4", "", false),
        ];
        for (pattern, text, expected) in table {
            let addresses = Addresses::parse(pattern).unwrap();
            assert_eq!(
                addresses.is_in(text.as_bytes()),
                expected,
                "{pattern} {text}"
            );
        }
        for wrong in [
            "",
            "10.0.0",
            "10.0.0.0/33",
            "10.0.0.2-10.0.0.1",
            "::1-10.0.0.1",
            "x",
        ] {
            assert!(Addresses::parse(wrong).is_err(), "{wrong}");
        }
    }
}

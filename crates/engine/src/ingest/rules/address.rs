//! Addresses of which the part is taken away that names a single customer.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The text with each of its addresses as a network: IPv4 as /24, IPv6 as /48, without ports. Lists with
/// commas are taken apart, as `X-Forwarded-For` has them. `None` where something is no address.
pub(super) fn anonymised(text: &str) -> Option<String> {
    let parts: Option<Vec<String>> = text.split(',').map(|part| network(part.trim())).collect();
    parts.map(|parts| parts.join(", "))
}

fn network(text: &str) -> Option<String> {
    let inside = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    // An interface is a name of the machine that saw the address.
    let inside = inside.unwrap_or(text);
    let without_zone = inside
        .split_once('%')
        .map_or(inside, |(address, _)| address);
    let address = without_zone
        .parse::<IpAddr>()
        .or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()))
        .ok()?;
    Some(match address.to_canonical() {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            IpAddr::from([a, b, c, 0]).to_string()
        }
        IpAddr::V6(address) => {
            let [a, b, c, ..] = address.segments();
            Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0).to_string()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_networks() {
        let table = [
            ("192.0.2.77", Some("192.0.2.0")),
            ("192.0.2.77:443", Some("192.0.2.0")),
            ("2001:db8:1:2::3", Some("2001:db8:1::")),
            ("[2001:db8:1:2::3]:80", Some("2001:db8:1::")),
            ("[2001:db8:1:2::3]", Some("2001:db8:1::")),
            ("fe80::1%eth0", Some("fe80::")),
            ("::ffff:192.0.2.77", Some("192.0.2.0")),
            ("192.0.2.77, 10.1.2.3", Some("192.0.2.0, 10.1.2.0")),
            ("192.0.2.77, unknown", None),
            ("example.org", None),
            ("192.0.2", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(anonymised(text).as_deref(), expected, "{text}");
        }
    }
}

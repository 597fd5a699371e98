//! Zones of times that say none: `ZONE` for all, `PLACE=ZONE` for some, a line each.

use std::fmt;
use std::net::IpAddr;

use logpond_host::clock;
use logpond_host::timezone::{self, LOCAL};

/// The most zones; each peer may be looked for among all.
const ZONES_MAX: usize = 64;

/// Zones by the networks of those who send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timezones {
    /// The name of that of all others.
    pub all: String,
    /// Networks with the names of theirs; the first that holds an address counts.
    pub networks: Vec<(Network, String)>,
}

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl Network {
    /// Reads `ADDRESS` or `ADDRESS/BITS`.
    pub fn parse(text: &str) -> Option<Network> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Some(most), |bits| bits.parse().ok())?;
        (bits <= most).then_some(Network { address, bits })
    }

    /// Whether an address begins with these bits.
    pub fn contains(&self, address: IpAddr) -> bool {
        let bits_of = |address: IpAddr| match address {
            IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, true),
            IpAddr::V6(address) => (address.to_bits(), false),
        };
        let ((own, own_kind), (other, kind)) = (bits_of(self.address), bits_of(address));
        let differing = (own ^ other).checked_shr(128 - self.bits).unwrap_or(0);
        own_kind == kind && differing == 0
    }
}

/// The zone for all, if one is named, and others with what they are for.
pub type Named<'a> = (Option<&'a str>, Vec<(&'a str, &'a str)>);

/// Reads `ZONE` and `PLACE=ZONE`, a line each, and looks whether there are such zones.
///
/// # Errors
/// What is wrong with which, in words.
pub fn named_zones(text: &str) -> Result<Named<'_>, String> {
    let mut all = None;
    let mut places = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let zone = match line.rsplit_once('=') {
            Some((place, zone)) => {
                places.push((place, zone));
                zone
            }
            None if all.is_some() => {
                return Err(format!(
                    "'{line}' is a second zone for everything: say what it is for by PLACE={line}"
                ));
            }
            None => *all.insert(line),
        };
        timezone::rule(zone, clock::now()).map_err(|error| error.to_string())?;
    }
    match places.len() {
        0..=ZONES_MAX => Ok((all, places)),
        _ => Err(format!("there are more than {ZONES_MAX} zones")),
    }
}

/// Reads `ZONE` and `NETWORK=ZONE`.
pub(super) fn timezones(text: &str) -> Result<Timezones, String> {
    let (all, places) = named_zones(text)?;
    let network = |(place, zone): (&str, &str)| {
        let network = Network::parse(place).ok_or_else(|| {
            format!("'{place}' is no network: expected ADDRESS=ZONE or ADDRESS/BITS=ZONE")
        })?;
        Ok((network, zone.to_owned()))
    };
    Ok(Timezones {
        all: all.unwrap_or(LOCAL).to_owned(),
        networks: places
            .into_iter()
            .map(network)
            .collect::<Result<_, String>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_hold_addresses() {
        let table = [
            ("10.1.0.0/16", "10.1.255.1", true),
            ("10.1.0.0/16", "10.2.0.1", false),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "10.1.2.2", false),
            ("0.0.0.0/0", "255.1.2.3", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "fe80::1", true),
            ("fe80::/10", "fe80::1", true),
            ("fe80::/10", "2001:db8::1", false),
            ("2001:db8::1", "2001:db8::1", true),
            ("2001:db8::1", "2001:db8::", false),
            ("10.1.2.128/25", "10.1.2.127", false),
        ];
        for (network, address, holds) in table {
            let network = Network::parse(network).unwrap();
            let address = address.parse().unwrap();
            assert_eq!(network.contains(address), holds, "{network:?} {address}");
        }
        for text in [
            "",
            "x",
            "10.1.0.0/33",
            "::/129",
            "10.1.0.0/",
            "10.1.0.0/-1",
            "/8",
        ] {
            assert_eq!(Network::parse(text), None, "{text}");
        }
    }

    #[test]
    fn zones_are_told_apart() {
        let read = timezones("10.1.0.0/16=+02:00\n  JST-9\n::1=UTC\n").unwrap();
        assert_eq!(read.all, "JST-9");
        expect_test::expect![[r#"[(10.1.0.0/16, "+02:00"), (::1/128, "UTC")]"#]]
            .assert_eq(&format!("{:?}", read.networks));
        assert_eq!(timezones("::1=UTC").unwrap().all, "local");
    }

    #[test]
    fn what_is_none_is_refused() {
        let many = "::1=UTC\n".repeat(ZONES_MAX + 1);
        let table = [
            (
                "UTC\n+01:00",
                "'+01:00' is a second zone for everything: say what it is for",
            ),
            ("web=UTC", "'web' is no network: expected ADDRESS=ZONE"),
            (
                "10.0.0.0/8=Mars/Phobos",
                "the zone 'Mars/Phobos' is not known: expected",
            ),
            (&many, "there are more than 64 zones"),
        ];
        for (text, why) in table {
            let error = timezones(text).unwrap_err();
            assert!(error.starts_with(why), "{error}");
        }
    }
}

//! Which zone the lines of a peer are written in.

use std::net::IpAddr;

use logpond_protocol::intake::timezone::LABEL;
use logpond_record::{Labels, Timestamp};

use logpond_host::timezone::{self, TimezoneError, UTC};
use logpond_settings::{Network, Timezones};

/// Rules of zones, by who sends.
#[derive(Debug, Default)]
pub struct Zones {
    all: Option<Box<str>>,
    networks: Vec<(Network, Box<str>)>,
}

impl Zones {
    /// The rules of named zones.
    ///
    /// # Errors
    /// When a zone cannot be read any more.
    pub fn new(names: &Timezones, now: Timestamp) -> Result<Zones, TimezoneError> {
        let rule = |name: &str| timezone::rule(name, now).map(String::into_boxed_str);
        let networks = names.networks.iter();
        let networks = networks.map(|(network, name)| Ok((*network, rule(name)?)));
        Ok(Zones {
            all: Some(rule(&names.all)?).filter(|rule| **rule != *UTC),
            networks: networks.collect::<Result<_, _>>()?,
        })
    }

    /// What is declared of lines whose sender has no zone of its own.
    pub fn label(&self) -> Option<(Box<str>, Box<str>)> {
        Some((LABEL.into(), self.all.clone()?))
    }

    /// Adds what is declared of a peer's lines.
    pub(super) fn add_to(&self, labels: &mut Labels, peer: IpAddr) {
        let mut networks = self.networks.iter();
        let found = networks.find(|(network, _)| network.contains(peer));
        labels.extend(found.map(|(_, rule)| (LABEL.into(), rule.clone())));
    }
}

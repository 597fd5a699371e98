//! Where the clients of records are: fields beside the line, by their addresses.

use std::net::IpAddr;
use std::sync::Arc;

use logpond_protocol::intake::rewrite::Draft;
use logpond_record::{Record, Value};

use crate::geoip::{Geoip, Places};

/// Looks addresses up.
#[derive(Debug)]
pub(super) struct Locator {
    pub(super) geoip: Arc<Geoip>,
    /// The field that has the address.
    pub(super) field: Box<str>,
}

impl Locator {
    /// Whether there is an address to look up.
    pub(super) fn address_of(&self, record: &Record<'_>) -> Option<IpAddr> {
        match record.field(&self.field)? {
            Value::Str(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// Adds what is known of an address, where the record does not say it itself.
    pub(super) fn run(&self, address: IpAddr, draft: &mut Draft<'_>, places: &mut Places) {
        let place = places.of(address.to_canonical(), &self.geoip);
        for (name, value) in place.fields() {
            if draft.record().field(name).is_none() {
                draft.add(name, value);
            }
        }
    }
}

//! Places of which one address may have a half, so that nobody alone can keep others out.

use std::net::IpAddr;
use std::sync::Arc;

use logpond_proxy::{Admission, AdmissionGuard, Limits};

use super::connections_per_address_max;

/// A number of places.
#[derive(Clone, Debug)]
pub struct SharedPlaces {
    admission: Arc<Admission>,
    limits: Limits,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceRefusal {
    /// All are taken; so many there are.
    All(usize),
    /// The address has as many as it may.
    OfAddress(usize),
}

impl SharedPlaces {
    /// So many places.
    pub fn new(places_max: usize) -> SharedPlaces {
        SharedPlaces {
            admission: Arc::new(Admission::default()),
            limits: Limits {
                connections_max: places_max,
                connections_per_address_max: connections_per_address_max(places_max),
                ..Limits::default()
            },
        }
    }

    /// A place for this address, until the guard is dropped.
    ///
    /// # Errors
    /// When there is none.
    pub fn take(&self, peer: IpAddr) -> Result<AdmissionGuard, PlaceRefusal> {
        let limits = &self.limits;
        let place = self.admission.admit(limits);
        let mut place = place.ok_or(PlaceRefusal::All(limits.connections_max))?;
        if place.admit_address(peer, limits) {
            Ok(place)
        } else {
            let most = limits.connections_per_address_max;
            Err(PlaceRefusal::OfAddress(most))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_has_a_half() {
        let places = SharedPlaces::new(4);
        let address = |last: u8| IpAddr::from([10, 0, 0, last]);
        let mut taken = vec![
            places.take(address(1)).unwrap(),
            places.take(address(1)).unwrap(),
        ];
        let refused = |last| places.take(address(last)).err();
        assert_eq!(refused(1), Some(PlaceRefusal::OfAddress(2)));
        taken.push(places.take(address(2)).unwrap());
        taken.push(places.take(address(3)).unwrap());
        assert_eq!(refused(4), Some(PlaceRefusal::All(4)));
        taken.remove(0);
        assert_eq!(refused(1), None);
    }
}

//! How many connections there may be, and how long each of their parts may take.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Bounds of connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the accepted connection to the end of the handshake, with the header of another proxy.
    pub handshake_time: Duration,
    /// For each upstream that is tried.
    pub connect_time: Duration,
    /// Without a byte either way, while both sides are open.
    pub idle_time: Duration,
    /// Without a byte after one side has ended.
    pub half_close_time: Duration,
    /// Connections at a time, those in their handshake too.
    pub connections_max: usize,
    /// Of these from one address; of IPv6 from one network of 64 bits.
    pub connections_per_address_max: usize,
    /// Handshakes of one address a second, after twice as many at once.
    pub handshakes_per_address_per_second_max: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            handshake_time: Duration::from_secs(10),
            connect_time: Duration::from_secs(5),
            idle_time: Duration::from_secs(3600),
            half_close_time: Duration::from_secs(60),
            connections_max: 10_000,
            connections_per_address_max: 1_000,
            handshakes_per_address_per_second_max: 2_000,
        }
    }
}

/// The bytes in all connections that wait for slow sides, and their limit.
#[derive(Debug)]
pub(crate) struct BufferBudget {
    bytes: AtomicUsize,
    bytes_max: usize,
}

impl BufferBudget {
    pub(crate) fn new(bytes_max: usize) -> BufferBudget {
        BufferBudget {
            bytes: AtomicUsize::new(0),
            bytes_max,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// The part of one connection. It counts until this is dropped.
#[derive(Debug)]
pub(crate) struct Share<'a> {
    waiting: &'a BufferBudget,
    bytes: usize,
}

impl<'a> Share<'a> {
    pub(crate) fn new(waiting: &'a BufferBudget) -> Share<'a> {
        Share { waiting, bytes: 0 }
    }

    /// So many bytes wait now; false if that is more than before, and too much in all.
    pub(crate) fn set(&mut self, bytes: usize) -> bool {
        let before = std::mem::replace(&mut self.bytes, bytes);
        if bytes <= before {
            if bytes < before {
                self.waiting
                    .bytes
                    .fetch_sub(before - bytes, Ordering::Relaxed);
            }
            return true;
        }
        let more = bytes - before;
        let all = self.waiting.bytes.fetch_add(more, Ordering::Relaxed) + more;
        all <= self.waiting.bytes_max
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Counts connections, in all and by address.
#[derive(Debug, Default)]
pub struct Admission {
    all: AtomicUsize,
    /// Only addresses that have connections.
    by_address: Mutex<HashMap<IpAddr, usize>>,
}

/// A connection that is counted until this is dropped.
#[derive(Debug)]
pub struct AdmissionGuard {
    admission: Arc<Admission>,
    address: Option<IpAddr>,
}

impl Admission {
    /// Counts one more connection, unless there are as many as there may be.
    pub fn admit(self: &Arc<Admission>, limits: &Limits) -> Option<AdmissionGuard> {
        let before = self.all.fetch_add(1, Ordering::Relaxed);
        // Made before the check: dropped, it takes the count back.
        let admitted = AdmissionGuard {
            admission: self.clone(),
            address: None,
        };
        (before < limits.connections_max).then_some(admitted)
    }
}

impl AdmissionGuard {
    /// Counts the connection for its client; false if that has as many as it may.
    pub fn admit_address(&mut self, address: IpAddr, limits: &Limits) -> bool {
        let address = counted_as(address);
        let by_address = &self.admission.by_address;
        let mut by_address = by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let count = by_address.entry(address).or_default();
        if *count >= limits.connections_per_address_max {
            if *count == 0 {
                by_address.remove(&address);
            }
            return false;
        }
        *count += 1;
        self.address = Some(address);
        true
    }
}

impl Drop for AdmissionGuard {
    fn drop(&mut self) {
        self.admission.all.fetch_sub(1, Ordering::Relaxed);
        let Some(address) = self.address else { return };
        let by_address = &self.admission.by_address;
        let mut by_address = by_address.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                by_address.remove(&address);
            }
        }
    }
}

/// Whom limits and counters see: who has an IPv6 address has a network of 64 bits.
pub fn counted_as(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() & !u128::from(u64::MAX);
            Ipv6Addr::from_bits(network).into()
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_counted_while_they_last() {
        let limits = Limits {
            connections_max: 3,
            connections_per_address_max: 1,
            ..Limits::default()
        };
        let admission = Arc::new(Admission::default());
        let mut first = admission.admit(&limits).unwrap();
        let mut second = admission.admit(&limits).unwrap();
        let third = admission.admit(&limits).unwrap();
        assert!(admission.admit(&limits).is_none());
        assert!(first.admit_address("2001:db8::1".parse().unwrap(), &limits));
        // The same network, another one, and the same again once it is free.
        assert!(!second.admit_address("2001:db8::2".parse().unwrap(), &limits));
        assert!(second.admit_address("2001:db8:0:1::2".parse().unwrap(), &limits));
        drop((first, third));
        let mut again = admission.admit(&limits).unwrap();
        assert!(again.admit_address("2001:db8::2".parse().unwrap(), &limits));
        drop((second, again));
        assert_eq!(admission.all.load(Ordering::Relaxed), 0);
        assert!(admission.by_address.lock().unwrap().is_empty());
    }

    #[test]
    fn what_waits_is_counted_over_all_connections() {
        let waiting = BufferBudget::new(100);
        let mut first = Share::new(&waiting);
        let mut second = Share::new(&waiting);
        assert!(first.set(60) && second.set(40));
        assert!(!second.set(41), "more, and too much");
        assert!(second.set(41), "no more than before");
        assert!(first.set(10) && second.set(90));
        assert_eq!(waiting.bytes(), 100);
        drop((first, second));
        assert_eq!(waiting.bytes(), 0);
    }

    #[test]
    fn addresses_within_addresses_are_the_same() {
        let v4: IpAddr = "192.0.2.1".parse().unwrap();
        assert_eq!(counted_as("::ffff:192.0.2.1".parse().unwrap()), v4);
        assert_eq!(counted_as(v4), v4);
    }
}

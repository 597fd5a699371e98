//! What is counted of connections: each worker on its own, without waiting for others.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use logpond_record::cast;
use serde::Serialize;

use crate::record::CloseReason;
use crate::session::HandshakeResult;

/// A number that one thread raises and all may read.
#[derive(Debug, Default)]
struct Count(AtomicU64);

impl Count {
    fn add(&self, more: u64) {
        // Nobody else writes, so that nothing gets lost in between.
        let now = self.0.load(Ordering::Relaxed);
        self.0.store(now + more, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Bounds of what is counted as taking no longer, in microseconds.
const BOUNDS_US: [u64; 12] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000,
];

/// Times, by how long they are.
#[derive(Debug, Default)]
pub(crate) struct Times {
    /// The last one is of those beyond all bounds.
    counts: [Count; BOUNDS_US.len() + 1],
    sum_us: Count,
}

impl Times {
    pub(crate) fn add(&self, time: Duration) {
        let us = time.as_micros().try_into().unwrap_or(u64::MAX);
        self.counts[BOUNDS_US.partition_point(|bound| *bound < us)].add(1);
        self.sum_us.add(us);
    }

    fn add_to(&self, sum: &mut TimesStatus) {
        for (sum, count) in sum.counts.iter_mut().zip(&self.counts) {
            *sum += count.get();
        }
        sum.sum_us += self.sum_us.get();
    }
}

/// Times, by how long they are, of all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimesStatus {
    counts: [u64; BOUNDS_US.len() + 1],
    sum_us: u64,
}

impl TimesStatus {
    /// Bounds in seconds, each with how many were no longer.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut seen = 0;
        BOUNDS_US
            .iter()
            .zip(&self.counts)
            .map(move |(bound_us, count)| {
                seen += count;
                (cast::float(*bound_us) / 1e6, seen)
            })
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How long they were in all, in seconds.
    pub fn sum_s(&self) -> f64 {
        cast::float(self.sum_us) / 1e6
    }
}

/// What a worker counts of a frontend's connections. On lines of its own, as the caches of
/// processors have them.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    accepted: Count,
    closed: [Count; CloseReason::ALL.len()],
    /// By version, and whether the session was resumed.
    handshakes: [[Count; 2]; VERSIONS.len()],
    handshake_times: Times,
    bytes_from_client: Count,
    bytes_to_client: Count,
}

/// The versions of TLS.
const VERSIONS: [&str; 2] = ["TLSv1.2", "TLSv1.3"];

impl Counters {
    pub(crate) fn accepted(&self) {
        self.accepted.add(1);
    }

    pub(crate) fn closed(&self, reason: CloseReason) {
        self.closed[reason as usize].add(1);
    }

    /// A handshake went through.
    pub(crate) fn agreed(&self, agreed: &HandshakeResult, time: Duration) {
        let version = VERSIONS
            .iter()
            .position(|name| agreed.version == Some(name));
        if let Some(version) = version {
            self.handshakes[version][usize::from(agreed.is_resumed)].add(1);
        }
        self.handshake_times.add(time);
    }

    pub(crate) fn moved(&self, from_client: u64, to_client: u64) {
        self.bytes_from_client.add(from_client);
        self.bytes_to_client.add(to_client);
    }

    pub(crate) fn add_to(&self, sum: &mut TrafficStatus) {
        sum.accepted += self.accepted.get();
        let closed = sum.closed.iter_mut().zip(&self.closed);
        closed.for_each(|((_, sum), count)| *sum += count.get());
        let handshakes = self.handshakes.iter().flatten();
        let handshakes = sum.handshakes.iter_mut().zip(handshakes);
        handshakes.for_each(|(sum, count)| sum.count += count.get());
        self.handshake_times.add_to(&mut sum.handshake_times);
        sum.bytes_from_client += self.bytes_from_client.get();
        sum.bytes_to_client += self.bytes_to_client.get();
    }
}

/// What was counted of a frontend's connections, since the proxy began.
#[derive(Clone, Debug)]
pub struct TrafficStatus {
    /// Connections.
    pub accepted: u64,
    /// Connections that have ended, by why: all reasons, as records have them.
    pub closed: Vec<(&'static str, u64)>,
    /// Handshakes that went through.
    pub handshakes: Vec<HandshakesStatus>,
    /// How long those took.
    pub handshake_times: TimesStatus,
    /// Decrypted bytes that came from clients.
    pub bytes_from_client: u64,
    /// Bytes for clients, before they were encrypted.
    pub bytes_to_client: u64,
}

/// Handshakes that went through, of a kind.
#[derive(Clone, Debug, Serialize)]
pub struct HandshakesStatus {
    /// As records have it.
    pub version: &'static str,
    /// Whether the session was resumed.
    pub is_resumed: bool,
    /// How many.
    pub count: u64,
}

impl Default for TrafficStatus {
    fn default() -> TrafficStatus {
        let kinds = VERSIONS
            .into_iter()
            .flat_map(|version| [(version, false), (version, true)]);
        TrafficStatus {
            accepted: 0,
            closed: CloseReason::ALL.map(|reason| (reason.name(), 0)).into(),
            handshakes: kinds
                .map(|(version, is_resumed)| HandshakesStatus {
                    version,
                    is_resumed,
                    count: 0,
                })
                .collect(),
            handshake_times: TimesStatus::default(),
            bytes_from_client: 0,
            bytes_to_client: 0,
        }
    }
}

impl TrafficStatus {
    /// Connections that are open.
    pub fn active(&self) -> u64 {
        let closed: u64 = self.closed.iter().map(|(_, count)| count).sum();
        // An end may be seen before its beginning.
        self.accepted.saturating_sub(closed)
    }
}

/// How late an event loop was for what was due.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Lateness(Times);

impl Lateness {
    pub(crate) fn add(&self, time: Duration) {
        self.0.add(time);
    }

    pub(crate) fn status(&self) -> TimesStatus {
        let mut sum = TimesStatus::default();
        self.0.add_to(&mut sum);
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_by_their_length() {
        let times = Times::default();
        for us in [0, 250, 251, 5_000_000, 5_000_001] {
            times.add(Duration::from_micros(us));
        }
        let mut sum = TimesStatus::default();
        times.add_to(&mut sum);
        times.add_to(&mut sum);
        let cumulative: Vec<(f64, u64)> = sum.cumulative().collect();
        assert_eq!(cumulative[..2], [(0.00025, 4), (0.0005, 6)]);
        assert_eq!((cumulative[11], sum.count()), ((5.0, 8), 10));
        assert!((sum.sum_s() - 20.001_004).abs() < 1e-9);
    }

    #[test]
    fn workers_are_added() {
        let workers: [Counters; 2] = Default::default();
        let agreed = HandshakeResult {
            version: Some("TLSv1.3"),
            is_resumed: true,
            ..HandshakeResult::default()
        };
        for (counters, bytes) in workers.iter().zip([5, 7]) {
            counters.accepted();
            counters.accepted();
            counters.agreed(&agreed, Duration::from_millis(1));
            counters.moved(bytes, 1);
        }
        workers[0].closed(CloseReason::Idle);
        let mut sum = TrafficStatus::default();
        workers.iter().for_each(|one| one.add_to(&mut sum));
        assert_eq!((sum.accepted, sum.active()), (4, 3));
        assert!(sum.closed.contains(&("idle", 1)));
        let counts: Vec<u64> = sum.handshakes.iter().map(|one| one.count).collect();
        assert_eq!(counts, [0, 0, 0, 2]);
        assert_eq!((sum.bytes_from_client, sum.bytes_to_client), (12, 2));
        assert_eq!(sum.handshake_times.count(), 2);
    }
}

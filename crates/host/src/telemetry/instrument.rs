//! Counters, gauges and histograms of powers of two.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A count that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    /// The count, clamped to what an exposition can say.
    pub fn get(&self) -> i64 {
        i64::try_from(self.0.load(Relaxed)).unwrap_or(i64::MAX)
    }
}

/// A number that goes up and down.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    /// Adds one until the guard is dropped.
    pub fn hold(&self) -> GaugeGuard<'_> {
        self.0.fetch_add(1, Relaxed);
        GaugeGuard(self)
    }

    /// Replaces the number.
    pub fn set(&self, value: i64) {
        self.0.store(value, Relaxed);
    }

    /// The number now.
    pub fn get(&self) -> i64 {
        self.0.load(Relaxed)
    }
}

/// Keeps a gauge one higher until it is dropped.
#[derive(Debug)]
pub struct GaugeGuard<'a>(&'a Gauge);

impl Drop for GaugeGuard<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Relaxed);
    }
}

/// Room for every power of two that any histogram here uses.
const BUCKETS_MAX: usize = 32;

/// Counts of values in buckets whose upper bounds are powers of two.
#[derive(Debug)]
pub struct Histogram {
    first_power: u32,
    last_power: u32,
    /// One for each power, one for what lies above the last.
    buckets: [AtomicU64; BUCKETS_MAX],
    sum: AtomicU64,
}

impl Histogram {
    /// With upper bounds from `2^first` to `2^last`, both included.
    pub fn new((first_power, last_power): (u32, u32)) -> Histogram {
        debug_assert!(((last_power - first_power) as usize) < BUCKETS_MAX - 1);
        Histogram {
            first_power,
            last_power,
            buckets: Default::default(),
            sum: AtomicU64::new(0),
        }
    }

    /// Counts one value.
    pub fn observe(&self, value: u64) {
        // The smallest power whose bound is not below the value.
        let power = u64::BITS - value.saturating_sub(1).leading_zeros();
        let index = power.clamp(self.first_power, self.last_power + 1) - self.first_power;
        self.buckets[index as usize].fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
    }

    /// Counts one duration in nanoseconds.
    pub fn observe_duration(&self, duration: Duration) {
        self.observe(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Number of values counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|b| b.load(Relaxed)).sum()
    }

    /// Sum of the values counted.
    pub(crate) fn sum(&self) -> u64 {
        self.sum.load(Relaxed)
    }

    /// Upper bounds and the counts of values not above them, without the last, unbounded bucket.
    pub(crate) fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut below = 0;
        (self.first_power..=self.last_power)
            .zip(&self.buckets)
            .map(move |(power, bucket)| {
                below += bucket.load(Relaxed);
                (1u64 << power, below)
            })
    }
}

//! How fast data is handed on: rates over the last minute, and what making segments takes.

use std::collections::VecDeque;

use logpond_record::cast;

use crate::cluster::ServiceTimes;

/// Rates are of so much time.
const WINDOW_MS: u64 = 60_000;

/// A sample is kept this often.
const SAMPLE_MS: u64 = 5_000;

/// Claims that averages are of.
const CLAIMS_MAX: usize = 256;

/// Totals at a time.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    at_ms: u64,
    offered_bytes: u64,
    consumed_bytes: u64,
}

/// A claim that was carried out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClaimStats {
    pub(super) began_ms: u64,
    /// From the claim until all copies were synced.
    pub(super) seconds: f64,
    pub(super) journal_bytes: u64,
    /// Bytes of lines in it.
    pub(super) raw_bytes: u64,
    /// Bytes of the segment.
    pub(super) stored_bytes: u64,
}

/// What is known of the pace.
#[derive(Debug, Default)]
pub(super) struct Pace {
    offered_bytes: u64,
    samples: VecDeque<Sample>,
    claims: VecDeque<ClaimStats>,
}

/// Bytes a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rates {
    pub(super) offered: f64,
    pub(super) consumed: f64,
}

impl Pace {
    /// Notes that a closed file is offered.
    pub(super) fn offer(&mut self, bytes: u64) {
        self.offered_bytes += bytes;
    }

    /// Journal bytes offered so far.
    pub(super) fn offered_bytes(&self) -> u64 {
        self.offered_bytes
    }

    /// Keeps a sample, if one is due.
    pub(super) fn sample(&mut self, waiting_bytes: u64, now_ms: u64) {
        let last = self.samples.back().map(|sample| sample.at_ms);
        if last.is_some_and(|at_ms| now_ms < at_ms + SAMPLE_MS) {
            return;
        }
        self.samples.push_back(self.now(waiting_bytes, now_ms));
        // The one before the window is its beginning.
        while self.samples.len() > 2 && self.samples[1].at_ms + WINDOW_MS <= now_ms {
            self.samples.pop_front();
        }
    }

    fn now(&self, waiting_bytes: u64, at_ms: u64) -> Sample {
        Sample {
            at_ms,
            offered_bytes: self.offered_bytes,
            consumed_bytes: self.offered_bytes.saturating_sub(waiting_bytes),
        }
    }

    /// The rates over the last minute, or since the start.
    pub(super) fn rates(&self, waiting_bytes: u64, now_ms: u64) -> Rates {
        let now = self.now(waiting_bytes, now_ms);
        let first = self.samples.front().copied().unwrap_or_default();
        let seconds = cast::float(now_ms.saturating_sub(first.at_ms)) / 1000.0;
        if seconds <= 0.0 {
            return Rates::default();
        }
        let rate = |now: u64, first: u64| cast::float(now.saturating_sub(first)) / seconds;
        Rates {
            offered: rate(now.offered_bytes, first.offered_bytes),
            consumed: rate(now.consumed_bytes, first.consumed_bytes),
        }
    }

    /// Notes a claim that was carried out.
    pub(super) fn serve(&mut self, claim: ClaimStats) {
        if self.claims.len() == CLAIMS_MAX {
            self.claims.pop_front();
        }
        self.claims.push_back(claim);
    }

    /// What the last claims took.
    pub(super) fn service(&self) -> ServiceTimes {
        let of =
            |value: fn(&ClaimStats) -> f64| self.claims.iter().map(value).collect::<Vec<f64>>();
        let seconds = of(|claim| claim.seconds);
        let journal = of(|claim| cast::float(claim.journal_bytes));
        let raw = of(|claim| cast::float(claim.raw_bytes));
        let begun = of(|claim| cast::float(claim.began_ms));
        let gaps: Vec<f64> = begun.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let (fixed, per_byte) = line(&journal, &seconds);
        let beside: Vec<f64> = seconds
            .iter()
            .zip(&journal)
            .map(|(seconds, bytes)| seconds - per_byte * (bytes - mean(&journal)))
            .collect();
        ServiceTimes {
            claims: self.claims.len() as u64,
            claim_bytes: mean(&journal),
            seconds: mean(&seconds),
            fixed_seconds: fixed,
            variation: variation(&beside),
            arrival_variation: variation(&gaps),
            raw_per_journal_byte: ratio(mean(&raw), mean(&journal)),
            stored_per_raw_byte: ratio(
                mean(&of(|claim| cast::float(claim.stored_bytes))),
                mean(&raw),
            ),
        }
    }
}

/// What is left of `y` where `x` is 0, and how much of it comes with each `x`, by least squares;
/// neither is negative. If all `x` are the same, everything comes with it.
fn line(x: &[f64], y: &[f64]) -> (f64, f64) {
    let (x_mean, y_mean) = (mean(x), mean(y));
    let spread: f64 = x.iter().map(|x| (x - x_mean).powi(2)).sum();
    let common: f64 = x
        .iter()
        .zip(y)
        .map(|(x, y)| (x - x_mean) * (y - y_mean))
        .sum();
    let slope = if spread > 0.0 {
        (common / spread).max(0.0)
    } else {
        ratio(y_mean, x_mean)
    };
    let slope = slope.min(ratio(y_mean, x_mean));
    (y_mean - slope * x_mean, slope)
}

/// 0 if there is nothing to divide by.
fn ratio(above: f64, below: f64) -> f64 {
    if below > 0.0 { above / below } else { 0.0 }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / cast::float(values.len().max(1))
}

/// The squared coefficient of variation: variance over squared mean.
fn variation(values: &[f64]) -> f64 {
    let mean = mean(values);
    if mean == 0.0 {
        return 0.0;
    }
    let squares = values.iter().map(|value| (value - mean).powi(2));
    squares.sum::<f64>() / cast::float(values.len()) / mean.powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_the_last_minute() {
        let mut pace = Pace::default();
        assert_eq!(pace.rates(0, 0), Rates::default());
        // 100 bytes a second are offered, and all but the last ten seconds' consumed.
        for second in 0..=300u64 {
            pace.offer(100);
            pace.sample(1000.min(100 * second), 1000 * second);
        }
        let rates = pace.rates(1000, 300_000);
        assert!((rates.offered - 100.0).abs() < 2.0, "{rates:?}");
        assert!((rates.consumed - 100.0).abs() < 2.0, "{rates:?}");
        assert!(pace.samples.len() <= 14);
        // Nothing more comes; the rest is consumed.
        for second in 301..=400 {
            pace.sample(0, 1000 * second);
        }
        let rates = pace.rates(0, 400_000);
        assert_eq!((rates.offered, rates.consumed), (0.0, 0.0));
    }

    #[test]
    fn claims_have_means_and_variations() {
        let mut pace = Pace::default();
        assert_eq!(pace.service(), ServiceTimes::default());
        // A second each, and one for each 100 bytes.
        for claim in 0..CLAIMS_MAX as u64 + 10 {
            let hundreds = 1 + 2 * (claim % 2);
            pace.serve(ClaimStats {
                began_ms: 1000 * claim,
                seconds: 1.0 + hundreds as f64,
                journal_bytes: 100 * hundreds,
                raw_bytes: 500 * hundreds,
                stored_bytes: 50 * hundreds,
            });
        }
        let service = pace.service();
        let near =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{service:?}");
        assert_eq!(service.claims, CLAIMS_MAX as u64);
        near(service.claim_bytes, 200.0);
        near(service.seconds, 3.0);
        near(service.fixed_seconds, 1.0);
        near(service.variation, 0.0);
        near(service.arrival_variation, 0.0);
        near(service.raw_per_journal_byte, 5.0);
        near(service.stored_per_raw_byte, 0.1);
    }

    #[test]
    fn lines_are_never_negative() {
        let table = [
            ([1.0, 2.0], [3.0, 5.0], (1.0, 2.0)),
            // The larger, the faster: chance.
            ([1.0, 2.0], [5.0, 3.0], (4.0, 0.0)),
            // It would begin below 0.
            ([1.0, 3.0], [1.0, 7.0], (0.0, 2.0)),
            ([2.0, 2.0], [4.0, 4.0], (0.0, 2.0)),
        ];
        for (x, y, expected) in table {
            assert_eq!(line(&x, &y), expected);
        }
    }
}

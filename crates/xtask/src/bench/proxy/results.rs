//! What was measured: samples of rounds, and what is made of them.

use super::message::Exchange;
use crate::bench::table::median;
use crate::run::Outcome;

/// A load of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    /// CPU for a request.
    pub(super) cpu_us: f64,
    pub(super) per_second: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
}

/// A load of connections with a request each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ConnectionRates {
    /// CPU for a connection.
    pub(super) cpu_us: f64,
    pub(super) per_second: f64,
    /// The part that had resumed a session, of 1.
    pub(super) resumed: f64,
}

/// Memory of a process with all of its children.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct IdleMemory {
    pub(super) before_bytes: u64,
    /// What came to it with idle connections, of which there are fewer first.
    pub(super) more_bytes: [u64; 2],
}

/// Samples of one kind by rounds.
#[derive(Clone, Debug)]
pub(super) struct Series<T> {
    pub(super) samples: Vec<T>,
    /// Why there are no more.
    pub(super) failed: Option<String>,
}

/// Samples of all candidates and sizes.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    pub(super) exchanges: Vec<Exchange>,
    pub(super) rows: Vec<Row>,
}

/// Samples of a candidate.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) name: String,
    /// For each size.
    pub(super) series: Vec<Series<Sample>>,
}

/// New connections of one kind, by candidate.
#[derive(Clone, Debug)]
pub(super) struct Openings {
    /// What is made in the handshake.
    pub(super) kind: &'static str,
    pub(super) rows: Vec<(String, Series<ConnectionRates>)>,
}

/// The best of rounds, and the middle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) best: f64,
    pub(super) median: f64,
}

impl Sample {
    /// Of what a load took; latencies are of its answers.
    ///
    /// # Errors
    ///
    /// If there were none.
    pub(super) fn new(cpu_s: f64, seconds: f64, mut latencies_us: Vec<u32>) -> Outcome<Sample> {
        latencies_us.sort_unstable();
        let count = latencies_us.len() as f64;
        let ms = |share| -> Outcome<f64> {
            let us = percentile(&latencies_us, share).ok_or("no answer came in time")?;
            Ok(f64::from(us) / 1e3)
        };
        Ok(Sample {
            cpu_us: cpu_s * 1e6 / count,
            per_second: count / seconds,
            p50_ms: ms(0.5)?,
            p99_ms: ms(0.99)?,
        })
    }
}

/// The least value that at least this share of all is not above; values are sorted.
fn percentile(sorted: &[u32], share: f64) -> Option<u32> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

impl<T> Series<T> {
    fn new() -> Series<T> {
        Series {
            samples: Vec::new(),
            failed: None,
        }
    }

    /// The least, where less is better; none without samples, or where a round failed.
    pub(super) fn least(&self, of: impl Fn(&T) -> f64) -> Option<Spread> {
        self.spread(of, f64::min)
    }

    /// The most, where more is better.
    pub(super) fn most(&self, of: impl Fn(&T) -> f64) -> Option<Spread> {
        self.spread(of, f64::max)
    }

    fn spread(&self, of: impl Fn(&T) -> f64, better: fn(f64, f64) -> f64) -> Option<Spread> {
        let mut values: Vec<f64> = self.samples.iter().map(of).collect();
        let best = values.iter().copied().reduce(better)?;
        self.failed.is_none().then(|| Spread {
            best,
            median: median(&mut values),
        })
    }
}

impl Grid {
    /// Without samples.
    pub(super) fn new<'n>(names: impl Iterator<Item = &'n str>, exchanges: &[Exchange]) -> Grid {
        let rows = names.map(|name| Row {
            name: name.to_owned(),
            series: exchanges.iter().map(|_| Series::new()).collect(),
        });
        Grid {
            exchanges: exchanges.to_vec(),
            rows: rows.collect(),
        }
    }

    /// The samples of a candidate for the size with this number.
    pub(super) fn series(&self, name: &str, column: usize) -> Option<&Series<Sample>> {
        let row = self.rows.iter().find(|row| row.name == name)?;
        row.series.get(column)
    }
}

impl Openings {
    /// Without samples.
    pub(super) fn new<'n>(kind: &'static str, names: impl Iterator<Item = &'n str>) -> Openings {
        Openings {
            kind,
            rows: names.map(|name| (name.to_owned(), Series::new())).collect(),
        }
    }

    /// The samples of a candidate.
    pub(super) fn series(&self, name: &str) -> Option<&Series<ConnectionRates>> {
        let found = self.rows.iter().find(|(known, _)| known == name);
        found.map(|(_, series)| series)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_there() {
        let hundred: Vec<u32> = (1..=100).collect();
        assert_eq!(percentile(&hundred, 0.5), Some(50));
        assert_eq!(percentile(&hundred, 0.99), Some(99));
        assert_eq!(percentile(&hundred, 1.0), Some(100));
        assert_eq!(percentile(&hundred, 0.0), Some(1));
        assert_eq!(percentile(&[7], 0.99), Some(7));
        assert_eq!(percentile(&[], 0.5), None);
    }

    #[test]
    fn a_sample_is_of_requests() {
        let sample = Sample::new(0.5, 2.0, vec![3_000, 1_000, 2_000, 4_000]).unwrap();
        let expected = Sample {
            cpu_us: 125_000.0,
            per_second: 2.0,
            p50_ms: 2.0,
            p99_ms: 4.0,
        };
        assert_eq!(sample, expected);
        assert!(Sample::new(0.5, 2.0, Vec::new()).is_err());
    }

    #[test]
    fn the_best_is_the_least_or_the_most() {
        let mut series = Series::new();
        assert_eq!(series.least(|v: &f64| *v), None);
        series.samples.extend([3.0, 1.0, 2.0]);
        let [least, most] = [1.0, 3.0].map(|best| Some(Spread { best, median: 2.0 }));
        assert_eq!(series.least(|v| *v), least);
        assert_eq!(series.most(|v| *v), most);
        series.failed = Some("it broke".into());
        assert_eq!(series.least(|v| *v), None);
    }
}

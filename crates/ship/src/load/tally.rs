//! What became of the records of a load.

use std::time::Duration;

use logpond_record::cast;

/// Counts and times of a while.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Records that were sent.
    pub sent: u64,
    /// Those that were acknowledged.
    pub acknowledged: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Those that were refused: the server is busy, full or stopping.
    pub refused: u64,
    /// Those of which nothing was heard.
    pub failed: u64,
    /// The last thing that went wrong.
    pub last_error: Option<String>,
    /// From when a batch's first record was due until it was acknowledged.
    latencies: Vec<Duration>,
}

/// What became of a batch.
pub(super) enum Outcome {
    Acknowledged,
    Refused(String),
    Failed(String),
}

impl Tally {
    /// Notes a batch.
    pub(super) fn note(&mut self, count: u64, bytes: u64, outcome: Outcome, took: Duration) {
        self.sent += count;
        match outcome {
            Outcome::Acknowledged => {
                self.acknowledged += count;
                self.bytes += bytes;
                self.latencies.push(took);
            }
            Outcome::Refused(why) => {
                self.refused += count;
                self.last_error = Some(why);
            }
            Outcome::Failed(why) => {
                self.failed += count;
                self.last_error = Some(why);
            }
        }
    }

    /// Adds what another has.
    pub(super) fn add(&mut self, other: Tally) {
        self.sent += other.sent;
        self.acknowledged += other.acknowledged;
        self.bytes += other.bytes;
        self.refused += other.refused;
        self.failed += other.failed;
        self.latencies.extend(other.latencies);
        self.last_error = other.last_error.or(self.last_error.take());
    }

    /// Times from when a record was due to its acknowledgement: what each of these shares of the
    /// batches were within. None where nothing was acknowledged.
    pub fn latencies<const N: usize>(&self, shares: [f64; N]) -> Option<[Duration; N]> {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let longest = sorted.last().copied()?;
        Some(shares.map(|share| {
            let rank = cast::whole_usize((share * cast::float(sorted.len())).ceil());
            let within = sorted.get(rank.saturating_sub(1));
            within.copied().unwrap_or(longest)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_times() {
        let mut tally = Tally::default();
        assert_eq!(tally.latencies([0.5]), None);
        for ms in (1..=100).rev() {
            tally.note(2, 20, Outcome::Acknowledged, Duration::from_millis(ms));
        }
        let within = tally.latencies([0.5, 0.99, 1.0, 0.0]);
        let ms = within.map(|times| times.map(|time| time.as_millis()));
        assert_eq!(ms, Some([50, 99, 100, 1]));
    }

    #[test]
    fn what_is_not_acknowledged_has_no_time() {
        let mut all = Tally::default();
        let mut tally = Tally::default();
        let took = Duration::from_secs(1);
        tally.note(3, 30, Outcome::Refused("busy".to_owned()), took);
        tally.note(2, 20, Outcome::Failed("gone".to_owned()), took);
        all.add(tally);
        all.add(Tally::default());
        assert_eq!((all.sent, all.refused, all.failed, all.bytes), (5, 3, 2, 0));
        assert_eq!(all.latencies([1.0]), None);
        assert_eq!(all.last_error.as_deref(), Some("gone"));
    }
}

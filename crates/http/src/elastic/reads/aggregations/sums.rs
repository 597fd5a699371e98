//! Sums of numbers, with the smallest and the largest.

use logpond_record::cast;
use logpond_search::metric::Sum;

/// Numbers, added up with twice the digits of a float, so that their order does not show.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) count: u64,
    pub(super) min: f64,
    pub(super) max: f64,
    sum: Sum,
    squares: Sum,
}

impl Sums {
    /// Adds a number.
    pub(super) fn add(&mut self, number: f64) {
        if self.count == 0 {
            (self.min, self.max) = (number, number);
        }
        self.count += 1;
        self.min = self.min.min(number);
        self.max = self.max.max(number);
        self.sum.add(number);
        self.squares.merge(Sum::product(number, number));
    }

    /// Adds the numbers of others.
    pub(super) fn merge(&mut self, other: &Sums) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *other;
            return;
        }
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum.merge(other.sum);
        self.squares.merge(other.squares);
    }

    /// The sum.
    pub(super) fn sum(&self) -> f64 {
        self.sum.value()
    }

    /// The sum of the squares.
    pub(super) fn squares(&self) -> f64 {
        self.squares.value()
    }

    /// A value, if there are numbers.
    pub(super) fn some(&self, value: f64) -> Option<f64> {
        (self.count > 0).then_some(value)
    }

    /// The mean.
    pub(super) fn mean(&self) -> Option<f64> {
        self.some(self.sum() / cast::float(self.count))
    }

    /// The variance of all numbers, unless it is beyond a float.
    pub(super) fn variance(&self) -> Option<f64> {
        self.spread_over(self.count)
    }

    /// The variance of a sample, unless it is beyond a float.
    pub(super) fn sampling_variance(&self) -> Option<f64> {
        self.spread_over(self.count.saturating_sub(1))
    }

    /// The sum of the squares of the differences from the mean, over so many.
    fn spread_over(&self, count: u64) -> Option<f64> {
        let spread = self.sum.spread(self.squares, cast::float(self.count));
        let variance = spread.max(0.0) / cast::float(count);
        (count > 0 && spread.is_finite()).then_some(variance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(numbers: &[f64]) -> Sums {
        let mut sums = Sums::default();
        numbers.iter().for_each(|number| sums.add(*number));
        sums
    }

    #[test]
    fn variances_of_large_numbers_are_those_of_their_differences() {
        for (numbers, variance) in [
            (&[1.0, 2.0, 3.0][..], 2.0 / 3.0),
            (
                &[1_000_000_001.0, 1_000_000_002.0, 1_000_000_003.0],
                2.0 / 3.0,
            ),
            (
                &[
                    1_796_034_000_000.0,
                    1_796_034_001_000.0,
                    1_796_034_002_000.0,
                ],
                2_000_000.0 / 3.0,
            ),
            (&[0.5, 0.5, 0.5], 0.0),
            (&[7.0], 0.0),
        ] {
            let found = sums(numbers).variance().unwrap();
            assert!(
                (found - variance).abs() <= variance * 1e-12,
                "{numbers:?}: {found}"
            );
            let mut parts = sums(&numbers[..1]);
            parts.merge(&sums(&numbers[1..]));
            assert_eq!(parts.variance(), Some(found), "{numbers:?}");
        }
        let sample = sums(&[1.0, 2.0, 3.0]).sampling_variance();
        assert_eq!(sample, Some(1.0));
    }

    #[test]
    fn some_numbers_have_no_variance() {
        assert_eq!(sums(&[1e200, 3e200, 5e200]).variance(), None);
        assert_eq!(sums(&[]).variance(), None);
        assert_eq!(sums(&[7.0]).sampling_variance(), None);
    }
}

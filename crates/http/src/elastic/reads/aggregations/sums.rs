//! Sums of numbers, with the smallest and the largest.

/// Numbers, added up. The sums are compensated (Neumaier), so that their order hardly matters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) count: u64,
    pub(super) min: f64,
    pub(super) max: f64,
    sum: Compensated,
    squares: Compensated,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Compensated {
    sum: f64,
    lost: f64,
}

impl Compensated {
    fn add(&mut self, number: f64) {
        let sum = self.sum + number;
        self.lost += if self.sum.abs() >= number.abs() {
            (self.sum - sum) + number
        } else {
            (number - sum) + self.sum
        };
        self.sum = sum;
    }

    fn merge(&mut self, other: Compensated) {
        self.add(other.sum);
        self.lost += other.lost;
    }

    fn value(self) -> f64 {
        self.sum + self.lost
    }
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
        self.squares.add(number * number);
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
        self.some(self.sum() / self.count as f64)
    }

    /// The variance of all numbers.
    pub(super) fn variance(&self) -> Option<f64> {
        let count = self.count as f64;
        let variance = (self.squares() - self.sum() * self.sum() / count) / count;
        self.some(variance.max(0.0))
    }

    /// The variance of a sample.
    pub(super) fn sampling_variance(&self) -> Option<f64> {
        let count = self.count as f64;
        let variance = (self.squares() - self.sum() * self.sum() / count) / (count - 1.0);
        (self.count > 1).then_some(variance.max(0.0))
    }
}

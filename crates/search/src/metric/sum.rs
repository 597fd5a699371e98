//! Sums with twice the digits of a float, so that the order of their parts does not show (Dekker,
//! "A floating-point technique for extending the available precision", 1971; Knuth, TAOCP 2, 4.2.2).

use logpond_record::cast;
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

/// A sum of floats: a float, and what it lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    high: f64,
    low: f64,
}

impl Sum {
    /// The exact product of two floats.
    pub fn product(a: f64, b: f64) -> Sum {
        let high = a * b;
        Sum {
            high,
            low: if high.is_finite() {
                a.mul_add(b, -high)
            } else {
                0.0
            },
        }
    }

    /// Adds a float.
    pub fn add(&mut self, value: f64) {
        self.merge(Sum {
            high: value,
            low: 0.0,
        });
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: Sum) {
        let high = self.high + other.high;
        if !high.is_finite() {
            // There is nothing to lack; without this an infinity would become none.
            (self.high, self.low) = (high, 0.0);
            return;
        }
        let part = high - self.high;
        let lost = (self.high - (high - part)) + (other.high - part);
        let low = lost + self.low + other.low;
        self.high = high + low;
        self.low = low - (self.high - high);
    }

    /// The nearest float.
    pub fn value(self) -> f64 {
        self.high
    }

    /// The sum of the squares of the differences from the mean: of so many numbers with this sum and these squares. It is
    /// no number where one of the sums is none, or beyond a float.
    pub fn spread(self, squares: Sum, count: f64) -> f64 {
        squares.minus(self.divided(count).squared().times(count))
    }

    /// The nearest float of the difference.
    pub(super) fn minus(mut self, other: Sum) -> f64 {
        self.merge(Sum {
            high: -other.high,
            low: -other.low,
        });
        self.high
    }

    /// The sum divided by a number, with the digits of a sum.
    pub(super) fn divided(self, by: f64) -> Sum {
        let high = self.high / by;
        if !high.is_finite() {
            return Sum { high, low: 0.0 };
        }
        let mut rest = self;
        let back = Sum::product(high, by);
        rest.merge(Sum {
            high: -back.high,
            low: -back.low,
        });
        Sum {
            high,
            low: rest.high / by,
        }
    }

    /// The square, with the digits of a sum.
    pub(super) fn squared(self) -> Sum {
        let mut square = Sum::product(self.high, self.high);
        square.add(2.0 * self.high * self.low);
        square
    }

    /// The sum multiplied by a number, with the digits of a sum.
    pub(super) fn times(self, by: f64) -> Sum {
        let mut product = Sum::product(self.high, by);
        product.add(self.low * by);
        product
    }

    pub(super) fn encode(self, out: &mut Encoder) {
        encode_float(self.high, out);
        encode_float(self.low, out);
    }

    pub(super) fn decode(from: &mut Decoder<'_>) -> Result<Sum, DecodeError> {
        Ok(Sum {
            high: decode_float(from)?,
            low: decode_float(from)?,
        })
    }
}

/// Appends a float as its bits.
pub(super) fn encode_float(value: f64, out: &mut Encoder) {
    out.time(logpond_record::Timestamp(cast::signed(value.to_bits())));
}

/// Reads what [`encode_float`] wrote.
pub(super) fn decode_float(from: &mut Decoder<'_>) -> Result<f64, DecodeError> {
    Ok(f64::from_bits(cast::unsigned(from.time("a number")?.0)))
}

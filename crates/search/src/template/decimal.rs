//! Decimal arithmetic for `addf`, `subf`, `mulf` and `divf`: `mulf 0.1 3` is `0.3`.
//!
//! Invariant: a number is the decimal that it is printed as. Quotients have [`DIVISION_PLACES`] places, as
//! those of Loki have. What has more digits than fit is computed in binary.

/// Places of a quotient behind the point.
const DIVISION_PLACES: i32 = 16;

/// `digits` times ten to the power of `exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decimal {
    digits: i128,
    exponent: i32,
}

/// An operation on two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// Computes from left to right.
///
/// # Errors
/// A division by zero.
pub(super) fn fold(
    operation: Operation,
    first: f64,
    rest: impl Iterator<Item = f64> + Clone,
) -> Result<f64, String> {
    if operation == Operation::Divide && rest.clone().any(|divisor| divisor == 0.0) {
        return Err("decimal division by 0".to_owned());
    }
    let exact = Decimal::of(first).and_then(|first| {
        let mut rest = rest.clone();
        rest.try_fold(first, |left, right| {
            left.with(operation, Decimal::of(right)?)
        })
    });
    Ok(match exact.and_then(Decimal::to_float) {
        Some(number) => number,
        None => rest.fold(first, |left, right| operation.of_floats(left, right)),
    })
}

impl Operation {
    fn of_floats(self, left: f64, right: f64) -> f64 {
        match self {
            Operation::Add => left + right,
            Operation::Subtract => left - right,
            Operation::Multiply => left * right,
            Operation::Divide => left / right,
        }
    }
}

impl Decimal {
    /// The shortest decimal that is read as this number; there is none for what is no number.
    fn of(number: f64) -> Option<Decimal> {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e')?;
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let places = i32::try_from(fraction.len()).ok()?;
        Some(Decimal {
            digits: format!("{whole}{fraction}").parse().ok()?,
            exponent: exponent.parse::<i32>().ok()? - places,
        })
    }

    fn to_float(self) -> Option<f64> {
        format!("{}e{}", self.digits, self.exponent).parse().ok()
    }

    /// Nothing where there are too many digits.
    fn with(self, operation: Operation, other: Decimal) -> Option<Decimal> {
        let lower = self.exponent.min(other.exponent);
        match operation {
            Operation::Add | Operation::Subtract => {
                let (left, right) = (self.digits_at(lower)?, other.digits_at(lower)?);
                let digits = match operation {
                    Operation::Add => left.checked_add(right)?,
                    _ => left.checked_sub(right)?,
                };
                Some(Decimal {
                    digits,
                    exponent: lower,
                })
            }
            Operation::Multiply => Some(Decimal {
                digits: self.digits.checked_mul(other.digits)?,
                exponent: self.exponent + other.exponent,
            }),
            Operation::Divide => self.divided(other),
        }
    }

    /// Rounded half away from zero.
    fn divided(self, by: Decimal) -> Option<Decimal> {
        let shift = self.exponent - by.exponent + DIVISION_PLACES;
        let (dividend, divisor) = if shift >= 0 {
            (self.digits.checked_mul(power(shift)?)?, by.digits)
        } else {
            (self.digits, by.digits.checked_mul(power(-shift)?)?)
        };
        let (quotient, rest) = (
            dividend.checked_div(divisor)?,
            dividend.checked_rem(divisor)?,
        );
        let is_half = rest.unsigned_abs().checked_mul(2)? >= divisor.unsigned_abs();
        let away = (dividend.signum() * divisor.signum()) * i128::from(is_half);
        Some(Decimal {
            digits: quotient.checked_add(away)?,
            exponent: -DIVISION_PLACES,
        })
    }

    /// The digits with another, lower exponent.
    fn digits_at(self, exponent: i32) -> Option<i128> {
        self.digits.checked_mul(power(self.exponent - exponent)?)
    }
}

fn power(exponent: i32) -> Option<i128> {
    10i128.checked_pow(u32::try_from(exponent).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_what_they_are_printed_as() {
        use Operation::{Add, Divide, Multiply, Subtract};
        let table = [
            (Multiply, 0.1, &[3.0][..], 0.3),
            (Add, 0.1, &[0.2, 1e-3], 0.301),
            (Subtract, 0.3, &[0.1], 0.2),
            (Divide, 10.0, &[4.0], 2.5),
            (Divide, 1.0, &[3.0], 0.3333333333333333),
            (Divide, 2.0, &[3.0], 0.6666666666666667),
            (Divide, -2.0, &[3.0], -0.6666666666666667),
            (Divide, 1e-10, &[3e10], 0.0),
            (Multiply, 1e300, &[1e-300, 2.0], 2.0),
            (Multiply, 1.1e200, &[1e200], f64::INFINITY),
            (Add, 1e300, &[1.0], 1e300),
        ];
        for (operation, first, rest, expected) in table {
            let found = fold(operation, first, rest.iter().copied());
            assert_eq!(found, Ok(expected), "{operation:?} {first} {rest:?}");
        }
        assert!(fold(Divide, 1.0, [0.0].into_iter()).is_err());
    }
}

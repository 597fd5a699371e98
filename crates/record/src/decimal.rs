//! Decimal numbers as they are written, compared exactly whatever their size.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::cast;

/// A decimal number: 0.DIGITS × 10^exponent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decimal<'t> {
    is_negative: bool,
    /// The digits without zeros at either end; none for zero.
    digits: Cow<'t, [u8]>,
    /// 0 for zero. Far larger ones than memory has digits for count as one that is.
    exponent: i64,
}

/// Exponents beyond this are one: no line has as many digits.
const EXPONENT_MAX: i64 = 1 << 40;

impl<'t> Decimal<'t> {
    /// Reads `[+-]digits[.digits][e[+-]digits]`, with a digit before or behind the point; `None` if the
    /// text is anything else.
    pub fn parse(text: &'t [u8]) -> Option<Decimal<'t>> {
        let (is_negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            text => (false, text),
        };
        let end = text.iter().position(|b| matches!(b, b'e' | b'E'));
        let (mantissa, exponent) = match end {
            Some(end) => (&text[..end], exponent_of(&text[end + 1..])?),
            None => (text, 0),
        };
        let (whole, fraction) = match mantissa.iter().position(|b| *b == b'.') {
            Some(point) => (&mantissa[..point], &mantissa[point + 1..]),
            None => (mantissa, &b""[..]),
        };
        let mut all = whole.iter().chain(fraction);
        if whole.len() + fraction.len() == 0 || !all.all(u8::is_ascii_digit) {
            return None;
        }
        let (digits, zeros) = significant(whole, fraction);
        if digits.is_empty() {
            return Some(Decimal {
                is_negative: false,
                digits,
                exponent: 0,
            });
        }
        Some(Decimal {
            is_negative,
            digits,
            exponent: (cast::low_i64(whole.len()) - cast::low_i64(zeros)).saturating_add(exponent),
        })
    }

    /// The shortest decimal that reads back as this float, which is finite.
    pub fn of_float(float: f64) -> Decimal<'static> {
        Decimal::of_written(&format!("{float:e}"))
    }

    fn of_written(text: &str) -> Decimal<'static> {
        let zero = Decimal {
            is_negative: false,
            digits: Cow::Borrowed(b""),
            exponent: 0,
        };
        // The standard library writes numbers as this reads them.
        Decimal::parse(text.as_bytes()).map_or(zero, Decimal::into_owned)
    }

    /// The same number without borrowed parts.
    pub fn into_owned(self) -> Decimal<'static> {
        Decimal {
            is_negative: self.is_negative,
            digits: Cow::Owned(self.digits.into_owned()),
            exponent: self.exponent,
        }
    }

    /// Whether programs write this float so: with as few digits as read back as the same one, or with 17.
    /// Any other number that is nearest to a float is not the float.
    pub fn is_written_float(&self, float: f64) -> bool {
        float.is_finite()
            && (*self == Decimal::of_float(float)
                || *self == Decimal::of_written(&format!("{float:.16e}")))
    }

    /// Bytes that have the order of the numbers, and are equal for equal ones.
    ///
    /// Layout: 0 for a negative number, 1 for zero, 2 for a positive one; then the exponent, large bytes
    /// first, and the digits. A negative number has the complement of these, and 0xff behind them, so that a
    /// number with more digits is before the one with fewer.
    pub fn sort_key(&self) -> Vec<u8> {
        if self.digits.is_empty() {
            return vec![1];
        }
        let exponent = (cast::unsigned(self.exponent) ^ 1 << 63).to_be_bytes();
        let magnitude = exponent.iter().chain(&*self.digits);
        if self.is_negative {
            let complement = magnitude.map(|byte| !byte);
            [0].into_iter().chain(complement).chain([0xff]).collect()
        } else {
            [2].into_iter().chain(magnitude.copied()).collect()
        }
    }

    /// The order of two numbers.
    pub fn compare(&self, other: &Decimal<'_>) -> Ordering {
        let sign = |number: &Decimal<'_>| match (number.digits.is_empty(), number.is_negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let magnitude = || {
            let exponents = self.exponent.cmp(&other.exponent);
            exponents.then_with(|| self.digits.cmp(&other.digits))
        };
        sign(self).cmp(&sign(other)).then_with(|| match sign(self) {
            0 => Ordering::Equal,
            1 => magnitude(),
            _ => magnitude().reverse(),
        })
    }
}

/// The digits without zeros at either end, and how many zeros are before them.
fn significant<'t>(whole: &'t [u8], fraction: &'t [u8]) -> (Cow<'t, [u8]>, usize) {
    let is_digit = |b: &u8| *b != b'0';
    let first = whole.iter().chain(fraction).position(is_digit);
    let Some(zeros) = first else {
        return (Cow::Borrowed(b""), 0);
    };
    let last_of = |digits: &[u8]| digits.iter().rposition(is_digit).map_or(0, |last| last + 1);
    let fraction = &fraction[..last_of(fraction)];
    if fraction.is_empty() {
        return (Cow::Borrowed(&whole[zeros..last_of(whole)]), zeros);
    }
    if zeros >= whole.len() {
        return (Cow::Borrowed(&fraction[zeros - whole.len()..]), zeros);
    }
    (Cow::Owned([&whole[zeros..], fraction].concat()), zeros)
}

/// What stands behind the `e`.
fn exponent_of(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        text => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0i64, |value, digit| {
        (value * 10 + i64::from(digit - b'0')).min(EXPONENT_MAX)
    });
    Some(if is_negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(a: &str, b: &str) -> Ordering {
        let read = |text: &'static str| Decimal::parse(text.as_bytes()).unwrap();
        let leak = |text: &str| -> &'static str { Box::leak(text.to_owned().into()) };
        let (a, b) = (read(leak(a)), read(leak(b)));
        assert_eq!(a.compare(&b), b.compare(&a).reverse());
        assert_eq!(a == b, a.compare(&b).is_eq());
        assert_eq!(a.sort_key().cmp(&b.sort_key()), a.compare(&b));
        a.compare(&b)
    }

    #[test]
    fn decimals_are_compared_by_value() {
        let in_order = [
            "-1e400",
            "-18446744073709551616",
            "-18446744073709551615.5",
            "-10",
            "-9.55",
            "-9.5",
            "-0.001",
            "0",
            "1e-400",
            "0.1",
            "0.10000000000000000001",
            "1",
            "9007199254740992",
            "9007199254740993",
            "18446744073709551613",
            "18446744073709551615",
            "18446744073709551615.000000000000000000001",
            "1e20",
            "1e99999999999999999999999",
        ];
        for (at, a) in in_order.iter().enumerate() {
            for (other, b) in in_order.iter().enumerate() {
                assert_eq!(compare(a, b), at.cmp(&other), "{a} {b}");
            }
        }
        for (a, b) in [
            ("500", "5e2"),
            ("500", "+500.000"),
            ("0.05", "5E-2"),
            (".5", "0.50"),
            ("5.", "5"),
            ("-0", "0.0e7"),
            ("100000000000000000000", "1e20"),
            ("0012.50", "12.5"),
        ] {
            assert_eq!(compare(a, b), Ordering::Equal, "{a} {b}");
        }
        for text in [
            "", "-", ".", "e5", "1e", "1e+", "0x10", "1_0", "inf", "nan", "1.2.3", " 1",
        ] {
            assert_eq!(Decimal::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn floats_are_what_programs_write_for_them() {
        let table = [
            ("0.1", true),
            ("0.10000000000000001", true),
            ("0.10000000000000002", true),
            ("0.100000000000000021", false),
            ("2.70", true),
            ("1e22", true),
            ("0.30000000000000004", true),
            ("9007199254740993.0", false),
            ("1700000000.123456789", false),
            ("0.12345678901234567890", false),
            ("1e-400", false),
            ("1e400", false),
            ("-0.0", true),
        ];
        for (text, expected) in table {
            let decimal = Decimal::parse(text.as_bytes()).unwrap();
            let float: f64 = text.parse().unwrap();
            assert_eq!(decimal.is_written_float(float), expected, "{text}");
        }
    }
}

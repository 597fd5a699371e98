//! Durations and amounts of bytes as LogQL writes them.

use std::fmt::Write;

use logpond_record::cast;

use crate::number::Number;

/// Units of durations, longer names first where one begins like another.
const DURATION_UNITS: [(&str, f64); 11] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("μs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
    ("d", 86_400e9),
    ("w", 604_800e9),
    ("y", 31_536_000e9),
];

/// Units of bytes, in any case.
const BYTE_UNITS: [(&str, u64); 21] = [
    ("", 1),
    ("b", 1),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("pib", 1 << 50),
    ("ki", 1 << 10),
    ("mi", 1 << 20),
    ("gi", 1 << 30),
    ("ti", 1 << 40),
    ("pi", 1 << 50),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("pb", 1_000_000_000_000_000),
    ("k", 1_000),
    ("g", 1_000_000_000),
    ("t", 1_000_000_000_000),
    ("m", 1_000_000),
];

/// Nanoseconds of a duration such as `1h30m`, `1.5h`, `100ms`, `1d`, `-5m` or `0`.
pub fn duration_ns(text: &str) -> Option<i64> {
    let (is_negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let digits = rest
            .bytes()
            .take_while(|b| b.is_ascii_digit() || *b == b'.');
        let (number, after) = rest.split_at(digits.count());
        let letters = after
            .bytes()
            .take_while(|b| !b.is_ascii_digit() && *b != b'.');
        let (unit, after) = after.split_at(letters.count());
        let (_, scale) = DURATION_UNITS.iter().find(|(name, _)| *name == unit)?;
        let part = match number.parse::<u32>() {
            Ok(whole) => i128::from(whole) * cast::whole_i128(*scale),
            Err(_) => cast::whole_i128(number.parse::<f64>().ok()? * scale),
        };
        total = total.checked_add(part)?;
        rest = after;
    }
    let total = if is_negative { -total } else { total };
    i64::try_from(total).ok()
}

/// A number of bytes such as `5KB`, `1.5MiB`, `42 kb` or `12`.
pub fn bytes_of(text: &str) -> Option<u64> {
    let digits = text
        .bytes()
        .take_while(|b| b.is_ascii_digit() || matches!(b, b'.' | b','));
    let (number, unit) = text.split_at(digits.count());
    let unit = unit.trim();
    let (_, scale) = BYTE_UNITS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    let number = number.replace(',', "");
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(*scale);
    }
    let bytes = number.parse::<f64>().ok()? * cast::float(*scale);
    (bytes < cast::float(u64::MAX)).then_some(cast::whole_u64(bytes))
}

/// A number as Go's `strconv.ParseFloat` reads it: decimal, hexadecimal with an exponent of two
/// (`0x1p3`), or a word for infinity or for no number.
pub fn number_of(text: &str) -> Option<f64> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    let hexadecimal = digits.strip_prefix("0x").or(digits.strip_prefix("0X"));
    if let Some(hexadecimal) = hexadecimal {
        return Some(sign * hexadecimal_float(hexadecimal)?);
    }
    // One sign is enough, which the standard library would read again.
    let number: f64 = match digits.bytes().next()? {
        b'+' | b'-' => return None,
        _ => digits.parse().ok()?,
    };
    let is_word = digits
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic());
    (number.is_finite() || is_word).then_some(sign * number)
}

/// The finite number that [`number_of`] reads, with all digits that are written. Hexadecimal ones are floats.
///
/// Equal numbers that floats can be are equal trees (`5` and `5.0`), so that a query parses back from its text.
pub(crate) fn exact_number_of(text: &str) -> Option<Number> {
    let float = number_of(text).filter(|float| float.is_finite())?;
    match Number::parse(text.as_bytes()) {
        Some(Number::Float(float)) => Number::parse(float.to_string().as_bytes()),
        None if float.fract() == 0.0 => Number::parse(format!("{float:.0}").as_bytes()),
        None => Number::parse(float.to_string().as_bytes()),
        exact => exact,
    }
}

/// The number with the other sign.
pub(super) fn negated(number: &Number) -> Option<Number> {
    let text = number.to_string();
    let negated = match text.strip_prefix('-') {
        Some(positive) => positive.to_owned(),
        None => format!("-{text}"),
    };
    exact_number_of(&negated)
}

fn hexadecimal_float(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let exponent: i32 = exponent.parse().ok()?;
    let places = i32::try_from(fraction.len()).ok()?;
    if value == 0.0 {
        return Some(value);
    }
    let number = value * 2f64.powi(exponent.saturating_sub(places.saturating_mul(4)));
    number.is_finite().then_some(number)
}

/// A duration as it is written: `1h30m`, `-5m`, `0s`.
pub fn write_duration(nanoseconds: i64) -> String {
    const UNITS: [(&str, u64); 6] = [
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ];
    let mut text = String::new();
    if nanoseconds < 0 {
        text.push('-');
    }
    let mut rest = nanoseconds.unsigned_abs();
    for (unit, scale) in UNITS {
        if rest >= scale {
            // Writing to a string cannot fail.
            let _ = write!(text, "{}{unit}", rest / scale);
            rest %= scale;
        }
    }
    if nanoseconds == 0 {
        text.push_str("0s");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        let table = [
            ("5m", Some(300_000_000_000)),
            (
                "6922337272036854775808104835y246.036854775808104835y246ns",
                None,
            ),
            ("1h30m", Some(5_400_000_000_000)),
            ("1.5h", Some(5_400_000_000_000)),
            ("1d2h", Some(93_600_000_000_000)),
            ("1w", Some(604_800_000_000_000)),
            ("1y", Some(31_536_000_000_000_000)),
            ("100us", Some(100_000)),
            ("3µs", Some(3_000)),
            ("-5m", Some(-300_000_000_000)),
            ("0", Some(0)),
            ("1ns", Some(1)),
            ("5", None),
            ("m", None),
            ("", None),
            ("5x", None),
            ("5m3", None),
            ("400y", None),
        ];
        for (text, expected) in table {
            assert_eq!(duration_ns(text), expected, "{text}");
            if let Some(nanoseconds) = expected {
                assert_eq!(
                    duration_ns(&write_duration(nanoseconds)),
                    expected,
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn bytes_are_read() {
        let table = [
            ("5KB", Some(5_000)),
            ("5kib", Some(5_120)),
            ("1.5MiB", Some(1_572_864)),
            ("42 MB", Some(42_000_000)),
            ("1PiB", Some(1 << 50)),
            ("12", Some(12)),
            ("12B", Some(12)),
            ("1,024B", Some(1024)),
            ("KB", None),
            ("5XB", None),
            ("", None),
            ("99999999999PB", None),
        ];
        for (text, expected) in table {
            assert_eq!(bytes_of(text), expected, "{text}");
        }
    }

    #[test]
    fn numbers_keep_their_digits() {
        let table = [
            ("18446744073709551614", "18446744073709551614"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("9007199254740993", "9007199254740993"),
            ("9007199254740993.0", "9007199254740993.0"),
            ("0.1234567890123456789", "0.1234567890123456789"),
            ("5.0", "5"),
            ("-0.0", "0"),
            ("1e3", "1000"),
            ("0.10", "0.1"),
            ("1e-999", "1e-999"),
            ("0x1p3", "8"),
            ("0x1.8p0", "1.5"),
            ("0x1p70", "1180591620717411303424"),
        ];
        for (text, expected) in table {
            let number = exact_number_of(text).unwrap();
            assert_eq!(number.to_string(), expected, "{text}");
            assert_eq!(exact_number_of(expected).as_ref(), Some(&number), "{text}");
            let back = negated(&negated(&number).unwrap());
            assert_eq!(back, Some(number), "{text}");
        }
        for text in ["inf", "NaN", "1e999", "1_000", "0x", "0x1A", "5 ", ""] {
            assert_eq!(exact_number_of(text), None, "{text}");
        }
        let least = exact_number_of("9223372036854775808").unwrap();
        assert_eq!(negated(&least), Some(Number::Int(i64::MIN)));
    }

    #[test]
    fn numbers_are_read_as_go_does() {
        let table = [
            ("5", Some(5.0)),
            ("-5.5e3", Some(-5500.0)),
            ("0x1p3", Some(8.0)),
            ("0x1.8p1", Some(3.0)),
            ("0x1A", None),
            ("0x1p5000", None),
            ("0x0p5000", Some(0.0)),
            ("0o17", None),
            ("+-5", None),
            ("Inf", Some(f64::INFINITY)),
            ("-inf", Some(f64::NEG_INFINITY)),
            ("5 ", None),
            ("", None),
            ("-", None),
        ];
        for (text, expected) in table {
            assert_eq!(number_of(text), expected, "{text}");
        }
        assert!(number_of("NaN").is_some_and(f64::is_nan));
    }
}

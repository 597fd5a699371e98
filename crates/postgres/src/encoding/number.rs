//! Numbers in the forms of Postgres.

use super::put_shown;

/// Decimal digits of a digit of a number in binary.
const GROUP: usize = 4;

/// Appends a number with as many digits as tell it from others. Of a short one, they are its own.
pub(super) fn put_float(out: &mut Vec<u8>, number: f64, short: Option<f32>) {
    if number.is_nan() {
        return out.extend_from_slice(b"NaN");
    }
    if number.is_infinite() {
        let text = if number > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        };
        return out.extend_from_slice(text.as_bytes());
    }
    let is_plain = number == 0.0 || (1e-5..1e15).contains(&number.abs());
    match (short, is_plain) {
        (Some(short), true) => put_shown(out, short),
        (Some(short), false) => put_shown(out, format_args!("{short:e}")),
        (None, true) => put_shown(out, number),
        (None, false) => put_shown(out, format_args!("{number:e}")),
    }
}

/// Appends a number that is written in decimal digits, as digits of four of them each.
pub(super) fn put_decimal(out: &mut Vec<u8>, text: &str) {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (0x4000_u16, rest),
        None => (0, text),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole = whole.trim_start_matches('0');
    let pad = whole.len().next_multiple_of(GROUP) - whole.len();
    let mut decimal = "0".repeat(pad);
    decimal.push_str(whole);
    let groups_before = decimal.len() / GROUP;
    decimal.push_str(fraction);
    let length = decimal.len().next_multiple_of(GROUP);
    decimal.push_str(&"0".repeat(length - decimal.len()));
    let digit = |group: &[u8]| {
        let add = |sum: u16, byte: &u8| sum * 10 + u16::from(byte.wrapping_sub(b'0'));
        group.iter().fold(0, add)
    };
    let mut digits: Vec<u16> = decimal.as_bytes().chunks(GROUP).map(digit).collect();
    let leading = digits.iter().take_while(|digit| **digit == 0).count();
    digits.drain(..leading);
    while digits.last() == Some(&0) {
        digits.pop();
    }
    let weight =
        i64::try_from(groups_before).unwrap_or(0) - i64::try_from(leading).unwrap_or(0) - 1;
    let weight = if digits.is_empty() { 0 } else { weight };
    let sign = if digits.is_empty() { 0 } else { sign };
    let count = u16::try_from(digits.len()).unwrap_or(u16::MAX);
    let scale = u16::try_from(fraction.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&count.to_be_bytes());
    out.extend_from_slice(&i16::try_from(weight).unwrap_or(0).to_be_bytes());
    out.extend_from_slice(&sign.to_be_bytes());
    out.extend_from_slice(&scale.to_be_bytes());
    for digit in digits {
        out.extend_from_slice(&digit.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_digits_of_four() {
        let table: [(&str, &[u16]); 6] = [
            ("0", &[0, 0, 0, 0]),
            ("0.00", &[0, 0, 0, 2]),
            ("-12.50", &[2, 0, 0x4000, 2, 12, 5000]),
            ("10000", &[1, 1, 0, 0, 1]),
            ("0.00012", &[2, 0xffff, 0, 5, 1, 2000]),
            ("123456789.1", &[4, 2, 0, 1, 1, 2345, 6789, 1000]),
        ];
        for (text, expected) in table {
            let mut out = Vec::new();
            put_decimal(&mut out, text);
            let words: Vec<u16> = out
                .chunks(2)
                .map(|word| u16::from(word[0]) << 8 | u16::from(word[1]))
                .collect();
            assert_eq!(words, expected, "{text}");
        }
    }

    #[test]
    fn fractions_are_short() {
        for (number, expected) in [
            (0.1, "0.1"),
            (3.0, "3"),
            (1e300, "1e300"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
            (-0.0, "-0"),
        ] {
            let mut out = Vec::new();
            put_float(&mut out, number, None);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
        let mut out = Vec::new();
        put_float(&mut out, f64::from(0.1_f32), Some(0.1));
        assert_eq!(out, b"0.1");
    }
}

//! Numbers as people read them.

use std::time::Duration;

/// A count with a comma between thousands: `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Bytes with a unit of powers of 1000: `412 MB`, `3.1 GB`.
pub fn bytes(number: u64) -> String {
    const UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = number as f64;
    let mut unit = 0;
    // 999.5 would round to 1000.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 || value >= 99.5 {
        format!("{value:.0} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// A time span: `31 ms`, `2.4 s`, `3 min 20 s`.
pub fn span(duration: Duration) -> String {
    let ms = duration.as_millis();
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{:.1} s", duration.as_secs_f64()),
        _ => format!("{} min {} s", ms / 60_000, ms / 1000 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1,234,567");
        let table = [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (99_499, "99.5 kB"),
            (412_000_000, "412 MB"),
            (999_900, "1.0 MB"),
            (u64::MAX, "18.4 EB"),
        ];
        for (number, text) in table {
            assert_eq!(bytes(number), text);
        }
        assert_eq!(span(Duration::from_millis(31)), "31 ms");
        assert_eq!(span(Duration::from_millis(2400)), "2.4 s");
        assert_eq!(span(Duration::from_secs(200)), "3 min 20 s");
    }
}

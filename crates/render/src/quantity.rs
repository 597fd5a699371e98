//! Numbers as people read them.

use std::time::Duration;

use logpond_record::cast;

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
    let mut value = cast::float(number);
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

/// A count with its noun: `1 record`, `2 records`.
pub fn counted(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        n => format!("{} {noun}s", count(n)),
    }
}

/// A time span in its two largest units: `31 ms`, `2.4 s`, `3 min 20 s`, `1 h 30 min`, `30 d`.
pub fn span(duration: Duration) -> String {
    let ms = duration.as_millis();
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{:.1} s", duration.as_secs_f64()),
        _ => {
            let seconds = duration.as_secs();
            let (big, small) = match seconds {
                0..3600 => ((60, "min"), (1, "s")),
                3600..86_400 => ((3600, "h"), (60, "min")),
                _ => ((86_400, "d"), (3600, "h")),
            };
            let rest = seconds % big.0 / small.0;
            let whole = format!("{} {}", seconds / big.0, big.1);
            match rest {
                0 => whole,
                rest => format!("{whole} {rest} {}", small.1),
            }
        }
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
        assert_eq!(span(Duration::from_secs(180)), "3 min");
        assert_eq!(span(Duration::from_secs(5400)), "1 h 30 min");
        assert_eq!(span(Duration::from_secs(30 * 86_400)), "30 d");
        assert_eq!(counted(1, "record"), "1 record");
        assert_eq!(counted(1234, "record"), "1,234 records");
    }
}

//! Times in the forms of Postgres.

use logpond_record::Civil;

use super::put_shown;
use crate::values::EPOCH_S;

/// Microseconds from 1970 to 2000, where times of Postgres begin.
pub(super) const EPOCH_US: i64 = EPOCH_S * 1_000_000;

/// The same in days.
pub(super) const EPOCH_DAYS: i32 = 10_957;

const DAY_S: i64 = 86_400;
const SECOND_US: i64 = 1_000_000;

/// A span of time.
pub(super) struct Interval {
    pub(super) months: i32,
    pub(super) days: i32,
    pub(super) ns: i64,
}

impl Interval {
    pub(super) fn of_ns(ns: i64) -> Interval {
        Interval {
            months: 0,
            days: 0,
            ns,
        }
    }

    pub(super) fn put_binary(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.ns / 1000).to_be_bytes());
        out.extend_from_slice(&self.days.to_be_bytes());
        out.extend_from_slice(&self.months.to_be_bytes());
    }

    /// As the style `postgres` has it: `1 year 2 mons 3 days 04:05:06.789`.
    pub(super) fn put_text(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        let parts = [
            (self.months / 12, "year"),
            (self.months % 12, "mon"),
            (self.days, "day"),
        ];
        for (count, name) in parts.into_iter().filter(|(count, _)| *count != 0) {
            let plural = if count == 1 { "" } else { "s" };
            put_shown(out, format_args!("{count} {name}{plural} "));
        }
        if self.ns / 1000 != 0 || out.len() == begin {
            if self.ns < 0 {
                out.push(b'-');
            }
            let us = self.ns.unsigned_abs() / 1000;
            let us = i64::try_from(us).unwrap_or(i64::MAX);
            put_time(out, us);
        } else {
            out.pop();
        }
    }
}

/// Appends a time of day, or a longer one, of microseconds.
pub(super) fn put_time(out: &mut Vec<u8>, us: i64) {
    let seconds = us / SECOND_US;
    let (hours, rest) = (seconds / 3600, seconds % 3600);
    put_shown(
        out,
        format_args!("{hours:02}:{:02}:{:02}", rest / 60, rest % 60),
    );
    put_fraction(out, us % SECOND_US);
}

fn put_fraction(out: &mut Vec<u8>, us: i64) {
    if us != 0 {
        let digits = format!("{us:06}");
        put_shown(out, format_args!(".{}", digits.trim_end_matches('0')));
    }
}

/// Appends a date of days since 1970.
pub(super) fn put_date(out: &mut Vec<u8>, days: i32) {
    let day = Civil::from_seconds(i64::from(days) * DAY_S);
    put_shown(
        out,
        format_args!("{:04}-{:02}-{:02}", day.year, day.month, day.day),
    );
}

/// Appends a time of microseconds since 1970, with its zone if it has one.
pub(super) fn put_timestamp(out: &mut Vec<u8>, us: i64, has_zone: bool) {
    let time = Civil::from_seconds(us.div_euclid(SECOND_US));
    put_shown(
        out,
        format_args!(
            "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
            time.year, time.month, time.day, time.hour, time.minute, time.second
        ),
    );
    put_fraction(out, us.rem_euclid(SECOND_US));
    if has_zone {
        out.extend_from_slice(b"+00");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_texts() {
        for (months, days, ns, expected) in [
            (0, 0, 0, "00:00:00"),
            (14, 3, 4_000_000_000, "1 year 2 mons 3 days 00:00:04"),
            (0, 1, 0, "1 day"),
            (0, 0, -90_500_000_000, "-00:01:30.5"),
            (0, 0, 360_000_000_000_000, "100:00:00"),
        ] {
            let mut out = Vec::new();
            Interval { months, days, ns }.put_text(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}

//! Instants as arrays of numbers.
//!
//! | numbers | writer |
//! | --- | --- |
//! | year, month, day, hour, minute, second or none, nanoseconds or milliseconds or none | Jackson, of Java's `LocalDateTime` |
//! | year, day of the year, hour, minute, second, nanoseconds | Rust's `time`, of `PrimitiveDateTime` |
//! | the same, and hours, minutes and seconds of the offset | Rust's `time`, of `OffsetDateTime` |
//! | year, month, day, hour, minute, second, weekday, day of the year, summer time | Python's `struct_time` |
//!
//! Invariant: an array is no instant unless each of its numbers is in its range.

use logpond_record::{Assumption, Civil, Timestamp};

use super::instant;

/// The most numbers of an array.
const NUMBERS_MAX: usize = 9;

/// The most bytes of an array that is looked at.
const ARRAY_BYTES_MAX: usize = 96;

/// Seconds of a day.
const DAY_SECONDS: i64 = 86_400;

/// Nanoseconds of a millisecond.
const MILLISECOND: u32 = 1_000_000;

/// Reads the whole of a text as an array that is an instant.
pub(super) fn read(text: &[u8]) -> Option<(Timestamp, Assumption)> {
    let inside = text.strip_prefix(b"[")?.strip_suffix(b"]")?;
    if text.len() > ARRAY_BYTES_MAX {
        return None;
    }
    let mut numbers = [0; NUMBERS_MAX];
    let mut count = 0;
    for part in inside.split(|byte| *byte == b',') {
        *numbers.get_mut(count)? = number(part.trim_ascii())?;
        count += 1;
    }
    match numbers[..count] {
        [year, month, day, hour, minute] => local(&civil([year, month, day, hour, minute, 0])?, 0),
        [year, month, day, hour, minute, second] if second < 60 && month <= 12 => {
            local(&civil([year, month, day, hour, minute, second])?, 0)
        }
        [year, day, hour, minute, second, nanos] => {
            local(&of_day(year, day, [hour, minute, second])?, nano(nanos)?)
        }
        [year, month, day, hour, minute, second, fraction] => {
            let nanos = nano(fraction)?;
            // Clocks do not tick by the nanosecond.
            let nanos = if nanos < 1000 {
                nanos * MILLISECOND
            } else {
                nanos
            };
            local(&civil([year, month, day, hour, minute, second])?, nanos)
        }
        [
            year,
            month,
            day,
            hour,
            minute,
            second,
            0..=6,
            day_of_year,
            -1..=1,
        ] if day_of_year > 0 => {
            let civil = civil([year, month, day, hour, minute, second])?;
            let is_same = of_day(year, day_of_year, [hour, minute, second]) == Some(civil);
            local(&Some(civil).filter(|_| is_same)?, 0)
        }
        [
            year,
            day,
            hour,
            minute,
            second,
            nanos,
            hours @ -23..=23,
            minutes @ -59..=59,
            0,
        ] => {
            let civil = of_day(year, day, [hour, minute, second])?;
            let time = instant(&civil, nano(nanos)?, hours * 60 + minutes)?;
            Some((time, Assumption::Nothing))
        }
        _ => None,
    }
}

/// An integer, as JSON writes it.
fn number(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_number = (1..=10).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text)
        .ok()
        .filter(|_| is_number)?
        .parse()
        .ok()
}

fn nano(number: i64) -> Option<u32> {
    u32::try_from(number)
        .ok()
        .filter(|nanos| *nanos < 1_000_000_000)
}

fn local(civil: &Civil, nanos: u32) -> Option<(Timestamp, Assumption)> {
    Some((instant(civil, nanos, 0)?, Assumption::Zone))
}

/// The date and time of year, month, day, hour, minute and second.
fn civil([year, month, day, hour, minute, second]: [i64; 6]) -> Option<Civil> {
    let part = |number: i64, most: u32| u32::try_from(number).ok().filter(|n| *n <= most);
    let civil = Civil {
        year: Some(year).filter(|year| (1970..=2100).contains(year))?,
        month: part(month, 12)?,
        day: part(day, 31)?,
        hour: part(hour, 23)?,
        minute: part(minute, 59)?,
        second: part(second, 59)?,
    };
    civil.to_seconds().map(|_| civil)
}

/// The date and time of a day of a year, from 1 on.
fn of_day(year: i64, day: i64, [hour, minute, second]: [i64; 3]) -> Option<Civil> {
    let start = civil([year, 1, 1, hour, minute, second])?.to_seconds()?;
    let days = Some(day).filter(|day| (1..=366).contains(day))? - 1;
    let civil = Civil::from_seconds(start + days * DAY_SECONDS);
    (civil.year == year).then_some(civil)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds, nanoseconds, and the part that is assumed.
    type Expected = Option<(i64, u32, Assumption)>;

    #[test]
    fn arrays_are_instants() {
        let table: [(&str, Expected); 20] = [
            (
                "[2026,11,27,0,51,25,818426000]",
                Some((1_795_740_685, 818_426_000, Assumption::Zone)),
            ),
            (
                "[2026, 11, 27, 0, 51, 25, 818]",
                Some((1_795_740_685, 818_000_000, Assumption::Zone)),
            ),
            (
                "[2026,11,27,0,51,25]",
                Some((1_795_740_685, 0, Assumption::Zone)),
            ),
            (
                "[2026,11,27,0,51]",
                Some((1_795_740_660, 0, Assumption::Zone)),
            ),
            (
                "[2026,331,0,51,25,818426000]",
                Some((1_795_740_685, 818_426_000, Assumption::Zone)),
            ),
            (
                "[2026,331,0,51,25,7]",
                Some((1_795_740_685, 7, Assumption::Zone)),
            ),
            (
                "[2026,7,0,51,25,818426000]",
                Some((1_767_747_085, 818_426_000, Assumption::Zone)),
            ),
            (
                "[2026,331,1,51,25,818426000,1,0,0]",
                Some((1_795_740_685, 818_426_000, Assumption::Nothing)),
            ),
            (
                "[2026,330,21,21,25,0,-3,-30,0]",
                Some((1_795_740_685, 0, Assumption::Nothing)),
            ),
            (
                "[2026,11,27,0,51,25,4,331,0]",
                Some((1_795_740_685, 0, Assumption::Zone)),
            ),
            ("[2026,13,27,0,51]", None),
            ("[2026,2,30,0,51]", None),
            ("[2026,366,0,51,25,818426000]", None),
            ("[2026,11,27,24,51]", None),
            ("[2026,11,27]", None),
            ("[26,11,27,0,51,25]", None),
            ("[2026,11,27,0,51,25,818426000,0]", None),
            ("[2026,11,27,0,51,\"25\"]", None),
            ("[1,2,3,4,5,6,7,8,9,10]", None),
            ("[]", None),
        ];
        for (text, expected) in table {
            let expected = expected.map(|(seconds, nanos, assumed)| {
                (Timestamp::from_seconds(seconds, nanos).unwrap(), assumed)
            });
            assert_eq!(read(text.as_bytes()), expected, "{text}");
        }
    }
}

//! Times as JSON values of others: numbers of seconds down to nanoseconds, or text of RFC 3339.

use logpond_record::Timestamp;

use crate::intake::timestamps;

/// Numbers below these are seconds, milliseconds and microseconds; larger ones are nanoseconds. Each is a time
/// after 2200 in its unit, and before 1974 in the next.
const UNITS: [(i64, i64); 3] = [
    (100_000_000_000, 1_000_000_000),
    (100_000_000_000_000, 1_000_000),
    (100_000_000_000_000_000, 1_000),
];

/// The time that a JSON value is, if it is one.
pub(super) fn of_json(json: &str) -> Option<Timestamp> {
    let text = json
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(json);
    match text.parse::<i64>() {
        Ok(number) => of_number(number),
        Err(_) => timestamps::rfc3339(text.as_bytes()),
    }
}

fn of_number(number: i64) -> Option<Timestamp> {
    let unit = UNITS.iter().find(|(end, _)| number < *end);
    let unit_ns = unit.map_or(1, |(_, unit_ns)| *unit_ns);
    // A number without a sign: times before 1970 are none of logs.
    let number = (number > 0).then_some(number)?;
    number.checked_mul(unit_ns).map(Timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_known_by_their_size() {
        let table = [
            ("1763805600", Some(1_763_805_600_000_000_000)),
            ("1763805600123", Some(1_763_805_600_123_000_000)),
            ("1763805600123456", Some(1_763_805_600_123_456_000)),
            ("1763805600123456789", Some(1_763_805_600_123_456_789)),
            ("\"1763805600123\"", Some(1_763_805_600_123_000_000)),
            (
                "\"2025-11-22T10:00:00.5Z\"",
                Some(1_763_805_600_500_000_000),
            ),
            ("0", None),
            ("-5", None),
            ("null", None),
            ("\"noon\"", None),
        ];
        for (json, time) in table {
            assert_eq!(of_json(json), time.map(Timestamp), "{json}");
        }
    }
}

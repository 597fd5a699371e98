//! Unix time in seconds, milliseconds, microseconds and nanoseconds.

use logpond_record::Timestamp;

use super::{Form, Layout, Offset, Written, read_fraction};

/// Fewer digits than this are no Unix time but a duration or a count: nine reach back to 1973.
const EPOCH_DIGITS_MIN: usize = 9;

/// Numbers whose instant lies outside of 1990 to 2100 are no Unix time unless a field says so: a
/// record in the far future would never be in a range that anybody asks for.
const EPOCH_PLAUSIBLE: std::ops::Range<Timestamp> =
    Timestamp(631_152_000_000_000_000)..Timestamp(4_102_444_800_000_000_000);

/// Reads Unix time: the whole of `text` is digits, or digits and a fraction of seconds.
pub(super) fn epoch(text: &[u8], certain: bool) -> Option<Written> {
    let digits = text
        .iter()
        .take(20)
        .take_while(|b| b.is_ascii_digit())
        .count();
    if digits == 0 || (digits > 1 && text[0] == b'0') {
        return None;
    }
    let number: i64 = std::str::from_utf8(&text[..digits]).ok()?.parse().ok()?;
    let (letter, unit) = match digits {
        1..=10 if certain || digits >= EPOCH_DIGITS_MIN => (b's', 1_000_000_000),
        13 => (b'L', 1_000_000),
        16 => (b'U', 1_000),
        19 => (b'N', 1),
        _ => return None,
    };
    let (nanos, fraction_digits) = match &text[digits..] {
        [] => (0, 0),
        [b'.', fraction @ ..] if letter == b's' => {
            read_fraction(fraction).filter(|(_, count)| usize::from(*count) == fraction.len())?
        }
        _ => return None,
    };
    let time = Timestamp(number.checked_mul(unit)?.checked_add(i64::from(nanos))?);
    if !certain && !EPOCH_PLAUSIBLE.contains(&time) {
        return None;
    }
    Some(Written {
        time,
        bytes: text.len(),
        form: Form {
            layout: Layout::Epoch(letter),
            fraction_digits,
            offset: Offset::default(),
            zone_name: None,
            zone_minutes: 0,
        },
        exact: true,
    })
}

/// Unix seconds with or without a fraction.
pub(crate) fn unix_time(text: &[u8]) -> Option<Timestamp> {
    let found = epoch(text, false)?;
    (found.form.layout == Layout::Epoch(b's')).then_some(found.time)
}

/// Unix seconds with or without a fraction, up to a space.
pub(crate) fn unix_seconds(text: &[u8]) -> Option<Written> {
    let end = text.iter().take(32).position(|byte| *byte == b' ')?;
    epoch(&text[..end], false).filter(|found| found.form.layout == Layout::Epoch(b's'))
}

/// Unix time at the start of a line: ten digits and a fraction, or ten or more digits alone.
pub(super) fn leading_epoch(text: &[u8]) -> Option<Timestamp> {
    let end = text
        .iter()
        .take(32)
        .take_while(|b| b.is_ascii_digit() || **b == b'.')
        .count();
    let ends = text
        .get(end)
        .is_none_or(|b| matches!(b, b' ' | b'\t' | b']' | b':' | b'|' | b',' | b';'));
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    if !ends || digits < 10 {
        return None;
    }
    epoch(&text[..end], false).map(|found| found.time)
}

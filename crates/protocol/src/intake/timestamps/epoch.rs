//! Unix time in seconds, milliseconds, microseconds and nanoseconds.
//!
//! The unit is that which the number of digits before the point tells: nine or ten for seconds, 13, 16
//! and 19 for the others.

use logpond_record::{Timestamp, cast};

use super::{Form, Layout, Offset, TimestampText, read_fraction};

/// Fewer digits than this are no Unix time but a duration or a count: nine reach back to 1973.
const EPOCH_DIGITS_MIN: usize = 9;

/// Numbers whose instant lies outside of 1990 to 2100 are no Unix time unless a field says so: a
/// record in the far future would never be in a range that anybody asks for.
const EPOCH_PLAUSIBLE: std::ops::Range<Timestamp> =
    Timestamp(631_152_000_000_000_000)..Timestamp(4_102_444_800_000_000_000);

/// The most bytes of a decimal number that is looked at.
const DECIMAL_BYTES_MAX: usize = 40;

/// The TAI64 label of 1970-01-01T00:00:00Z.
const TAI64_EPOCH: u64 = (1 << 62) + 10;

/// Reads Unix time: the whole of `text` is digits, or digits and a fraction of seconds.
pub(super) fn epoch(text: &[u8], certain: bool) -> Option<TimestampText> {
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
    Some(TimestampText {
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

/// Reads the whole of a text as Unix time that no pattern renders: a decimal number in any unit, with an
/// exponent or not (`1764204685818.426`, `1.764204685818E9`), or .NET's `/Date(1764204685818)/`.
pub(super) fn decimal_epoch(text: &[u8], certain: bool) -> Option<Timestamp> {
    if let Some(inside) = without_date(text) {
        return epoch(inside, true).map(|found| found.time);
    }
    let (mantissa, exponent) = match text.iter().position(|b| matches!(b, b'e' | b'E')) {
        Some(at) => (&text[..at], exponent(&text[at + 1..])?),
        None => (text, 0),
    };
    let point = mantissa.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = match point {
        Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
        None => (mantissa, &[][..]),
    };
    let mut digits = whole.iter().chain(fraction);
    let has_digits = !whole.is_empty() && (point.is_none() || !fraction.is_empty());
    let is_number = has_digits && digits.clone().all(u8::is_ascii_digit);
    if !is_number || text.len() > DECIMAL_BYTES_MAX || whole[0] == b'0' {
        return None;
    }
    // Digits before the point, and the power of ten that makes nanoseconds of them.
    let count = cast::low_i32(whole.len()) + exponent;
    let zeros = match count {
        9..=10 => 9,
        13 => 6,
        16 => 3,
        19 => 0,
        _ => return None,
    };
    let mut nanos: i64 = 0;
    for _ in 0..count + zeros {
        let digit = digits.next().map_or(0, |digit| i64::from(digit - b'0'));
        nanos = nanos.checked_mul(10)?.checked_add(digit)?;
    }
    let time = Timestamp(nanos);
    (certain || EPOCH_PLAUSIBLE.contains(&time)).then_some(time)
}

/// The number in `/Date(1764204685818+0100)/`, also with escaped slashes. The offset is for display.
fn without_date(text: &[u8]) -> Option<&[u8]> {
    let text = text.strip_prefix(b"\\").unwrap_or(text);
    let inside = text.strip_prefix(b"/Date(")?;
    let inside = inside.strip_suffix(b"/")?;
    let inside = inside.strip_suffix(b"\\").unwrap_or(inside);
    let inside = inside.strip_suffix(b")")?;
    let end = inside.iter().position(|b| matches!(b, b'+' | b'-'));
    Some(&inside[..end.unwrap_or(inside.len())])
}

fn exponent(text: &[u8]) -> Option<i32> {
    let text = text.strip_prefix(b"+").unwrap_or(text);
    let is_number = matches!(text.len(), 1..=2) && text.iter().all(u8::is_ascii_digit);
    is_number.then(|| {
        text.iter()
            .fold(0, |value, digit| value * 10 + i32::from(digit - b'0'))
    })
}

/// Reads a label of TAI64 (`@` and 16, 24 or 32 hexadecimal digits) as daemontools and runit write it:
/// ten seconds ahead of UTC.
pub(super) fn tai64(text: &[u8]) -> Option<(Timestamp, usize)> {
    let digits = text.strip_prefix(b"@")?;
    let count = digits
        .iter()
        .take(33)
        .take_while(|b| b.is_ascii_hexdigit())
        .count();
    if !matches!(count, 16 | 24 | 32) {
        return None;
    }
    let hex =
        |from, to| u64::from_str_radix(std::str::from_utf8(digits.get(from..to)?).ok()?, 16).ok();
    let seconds = hex(0, 16)?.checked_sub(TAI64_EPOCH)?;
    let nanos = if count > 16 { hex(16, 24)? } else { 0 };
    let nanos = u32::try_from(nanos)
        .ok()
        .filter(|nanos| *nanos < 1_000_000_000)?;
    let time = Timestamp::from_seconds(i64::try_from(seconds).ok()?, nanos)?;
    Some((time, 1 + count))
}

/// Seconds and nanoseconds as OpenLDAP writes them, in eight hexadecimal digits each: `6b08f8cd.30f8ab12 0x7f…`; and the
/// bytes of both. Before version 2.6 it wrote seconds alone: `6b08f8cd conn=17 …`.
pub(super) fn hexadecimal(text: &[u8]) -> Option<(Timestamp, usize)> {
    const DIGITS: usize = 8;
    const BYTES: usize = 2 * DIGITS + 1;
    let head = text.get(..BYTES)?;
    let is_alone = [&b" conn="[..], b" slapd "]
        .iter()
        .any(|mark| text[DIGITS..].starts_with(mark));
    if is_alone && head[..DIGITS].iter().all(u8::is_ascii_hexdigit) {
        let digits = std::str::from_utf8(&head[..DIGITS]).ok()?;
        let seconds = i64::from(u32::from_str_radix(digits, 16).ok()?);
        let time = Timestamp::from_seconds(seconds, 0)?;
        return EPOCH_PLAUSIBLE.contains(&time).then_some((time, DIGITS));
    }
    if head[DIGITS] != b'.' || !text[BYTES..].starts_with(b" 0x") {
        return None;
    }
    let number = |part: &[u8]| {
        let is_number = part.iter().all(u8::is_ascii_hexdigit);
        let part = std::str::from_utf8(part).ok().filter(|_| is_number)?;
        u32::from_str_radix(part, 16).ok()
    };
    let (seconds, nanos) = (number(&head[..DIGITS])?, number(&head[DIGITS + 1..])?);
    let time =
        Timestamp::from_seconds(i64::from(seconds), nanos).filter(|_| nanos < 1_000_000_000)?;
    EPOCH_PLAUSIBLE.contains(&time).then_some((time, BYTES))
}

/// Unix seconds with or without a fraction.
pub(crate) fn unix_time(text: &[u8]) -> Option<Timestamp> {
    let found = epoch(text, false)?;
    (found.form.layout == Layout::Epoch(b's')).then_some(found.time)
}

/// Unix time in a unit that its digits tell, with or without a fraction.
pub(crate) fn unix_instant(text: &[u8]) -> Option<Timestamp> {
    epoch(text, false).map(|found| found.time)
}

/// Unix seconds with or without a fraction, up to a space.
pub(crate) fn unix_seconds(text: &[u8]) -> Option<TimestampText> {
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

//! Times of the day of times of any form, see [`general`](super::general).

use logpond_record::{Civil, cast};

use super::cursor::Cursor;

/// Digits of a second's fraction that are looked at; those behind the ninth do not count.
const FRACTION_DIGITS_MAX: usize = 12;

/// Marks of hour, minute and second in Japanese and Chinese, and in Korean.
const MARKS: [[&str; 3]; 3] = [["時", "分", "秒"], ["时", "分", "秒"], ["시", "분", "초"]];

/// Halves of the day that stand before the hour; true for the afternoon.
const HALVES: [(&str, bool); 6] = [
    ("上午", false),
    ("下午", true),
    ("午前", false),
    ("午後", true),
    ("오전", false),
    ("오후", true),
];

/// A time of the day as it is written.
#[derive(Clone, Copy, Default)]
pub(super) struct Clock {
    pub(super) hour: u32,
    pub(super) minute: u32,
    pub(super) second: u32,
    pub(super) nanos: u32,
    pub(super) fraction_digits: usize,
    pub(super) has_seconds: bool,
    pub(super) separator: u8,
    pub(super) half: Option<Half>,
}

/// AM or PM.
#[derive(Clone, Copy)]
pub(super) struct Half {
    is_afternoon: bool,
    pub(super) is_upper_case: bool,
}

/// Reads the time of the day that comes next.
pub(super) fn clock(cursor: &mut Cursor<'_>, may_be_compact: bool) -> Option<Clock> {
    let half_before = half_before(cursor);
    let mut clock = match cursor.digits() {
        6 | 9 if may_be_compact => Clock {
            hour: cursor.number(2)?,
            minute: cursor.number(2)?,
            second: cursor.number(2)?,
            has_seconds: true,
            separator: b':',
            ..Clock::default()
        },
        digits @ 1..=2 => separated_clock(cursor, digits)?,
        _ => return None,
    };
    if clock.has_seconds {
        fraction(cursor, &mut clock)?;
    }
    clock.half = match half_before {
        Some(half) => Some(half),
        None => half(cursor),
    };
    if let Some(half) = clock.half {
        clock.hour = half.hour(clock.hour);
    }
    let is_right = clock.hour < 24 && clock.minute < 60 && clock.second <= 60;
    is_right.then_some(clock)
}

/// `12:51:25` and the like, `12時51分25秒`.
fn separated_clock(cursor: &mut Cursor<'_>, digits: usize) -> Option<Clock> {
    let hour = cursor.number(digits)?;
    if cursor.peek()? >= 0x80 {
        return marked_clock(cursor, hour);
    }
    let separator = cursor.peek().filter(|b| matches!(b, b':' | b'.' | b'-'))?;
    cursor.at += 1;
    if cursor.digits() != 2 {
        return None;
    }
    let minute = cursor.number(2)?;
    let mut clock = Clock {
        hour,
        minute,
        separator,
        ..Clock::default()
    };
    if cursor.peek() == Some(separator) && cursor.is_digit_at(1) {
        cursor.at += 1;
        if cursor.digits() != 2 {
            return None;
        }
        clock.second = cursor.number(2)?;
        clock.has_seconds = true;
    }
    let is_whole = clock.has_seconds && (separator != b'-' || digits == 2);
    (is_whole || separator == b':').then_some(clock)
}

/// Reads what is behind the hour with the marks of Chinese, Japanese and Korean.
fn marked_clock(cursor: &mut Cursor<'_>, hour: u32) -> Option<Clock> {
    let marks = MARKS
        .iter()
        .find(|marks| cursor.eat_text(marks[0].as_bytes()))?;
    let mut number = |mark: &str| {
        cursor.eat_spaces(1);
        let number = cursor.number(cursor.digits().min(2))?;
        cursor.eat_text(mark.as_bytes()).then_some(number)
    };
    Some(Clock {
        hour,
        minute: number(marks[1])?,
        second: number(marks[2])?,
        has_seconds: true,
        separator: b':',
        ..Clock::default()
    })
}

/// Reads the fraction of a second, if there is any. `None` if it has too many digits.
fn fraction(cursor: &mut Cursor<'_>, clock: &mut Clock) -> Option<()> {
    let digits = |from: usize| {
        let ahead = (from..=from + FRACTION_DIGITS_MAX).take_while(|at| cursor.is_digit_at(*at));
        ahead.count()
    };
    let count = match cursor.peek() {
        // Right behind the second.
        Some(b'0'..=b'9') if digits(0) == 3 => {
            clock.nanos = cursor.number(3)? * 1_000_000;
            clock.fraction_digits = 3;
            return Some(());
        }
        Some(b'.') => digits(1),
        // More digits are the next column.
        Some(b',') => Some(digits(1)).filter(|count| *count <= 9).unwrap_or(0),
        // WebSphere, SSSD.
        Some(b':') if digits(1) == 3 && cursor.peek_at(4) != Some(b':') => 3,
        Some(b':') if digits(1) == 6 && clock.separator == b':' => 6,
        _ => 0,
    };
    if count == 0 {
        return Some(());
    }
    if count > FRACTION_DIGITS_MAX {
        return None;
    }
    cursor.at += 1;
    let read = count.min(9);
    clock.nanos = cursor.number(read)? * 10u32.pow(9 - cast::low_u32(read));
    clock.fraction_digits = read;
    cursor.at += count - read;
    Some(())
}

impl Half {
    /// The hour of the day that an hour of the half is. One beyond 12 is right as it is.
    fn hour(self, hour: u32) -> u32 {
        match hour {
            12 if !self.is_afternoon => 0,
            1..=11 if self.is_afternoon => hour + 12,
            hour => hour,
        }
    }
}

/// Reads AM or PM in Chinese, Japanese or Korean, which stand before the hour.
fn half_before(cursor: &mut Cursor<'_>) -> Option<Half> {
    if cursor.peek()? < 0x80 {
        return None;
    }
    let (_, is_afternoon) = HALVES
        .iter()
        .find(|(text, _)| cursor.eat_text(text.as_bytes()))?;
    cursor.eat(b' ');
    Some(Half {
        is_afternoon: *is_afternoon,
        is_upper_case: false,
    })
}

/// Reads AM or PM.
fn half(cursor: &mut Cursor<'_>) -> Option<Half> {
    let mut ahead = *cursor;
    eat_space(&mut ahead);
    let first = ahead.peek()?;
    let is_afternoon = match first {
        b'A' | b'a' => false,
        b'P' | b'p' => true,
        _ => return None,
    };
    ahead.at += 1;
    let is_dotted = ahead.eat(b'.');
    if is_dotted {
        // Spanish.
        eat_space(&mut ahead);
    }
    if !ahead.eat(b'M') && !ahead.eat(b'm') {
        return None;
    }
    if is_dotted {
        ahead.eat(b'.');
    }
    if ahead.peek().is_some_and(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    *cursor = ahead;
    Some(Half {
        is_afternoon,
        is_upper_case: first.is_ascii_uppercase(),
    })
}

/// Reads a space, also of the kinds that newer versions of ICU write.
fn eat_space(cursor: &mut Cursor<'_>) {
    let _ = cursor.eat_text("\u{202f}".as_bytes())
        || cursor.eat_text("\u{a0}".as_bytes())
        || cursor.eat(b' ');
}

/// Reads a clock that stands alone, with seconds or a half of the day: its hour, minute and second in a date that is
/// none, its nanoseconds, and its bytes. Falco has nanoseconds and a colon behind them.
pub(super) fn read_clock(text: &[u8]) -> Option<(Civil, u32, usize)> {
    let mut cursor = Cursor::new(text);
    let clock = clock(&mut cursor, false)?;
    let is_whole = (clock.has_seconds || clock.half.is_some()) && clock.separator == b':';
    let ends = matches!(
        cursor.peek(),
        None | Some(b' ' | b']' | b')' | b'|' | b'\t' | 0x1b)
    ) || clock.fraction_digits == 9 && cursor.rest().starts_with(b": ");
    let civil = Civil {
        year: 0,
        month: 1,
        day: 1,
        hour: clock.hour,
        minute: clock.minute,
        second: clock.second,
    };
    (is_whole && ends).then_some((civil, clock.nanos, cursor.at))
}

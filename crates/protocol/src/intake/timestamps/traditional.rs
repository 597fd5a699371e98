//! Times of traditional syslog (RFC 3164, section 4.1.2), with or without what senders add.

use logpond_record::{Civil, Timestamp};

use super::{
    Form, Layout, Offset, TimestampText, digit, in_latest_year, instant, month, read_fraction, two,
};

/// The parts of `Mmm dd hh:mm:ss`, in no year.
struct SyslogTime {
    civil: Civil,
    nanos: u32,
    fraction_digits: u8,
    /// Of the day.
    day_bytes: usize,
    /// Of all.
    bytes: usize,
}

fn syslog_time(text: &[u8]) -> Option<SyslogTime> {
    let name: &[u8; 4] = text.first_chunk().filter(|name| name[3] == b' ')?;
    let month = month([name[0], name[1], name[2]])?;
    let (day, day_bytes) = match text[name.len()..] {
        [b' ', day, b' ', ..] => (digit(day)?, 2),
        [day, b' ', ..] => (digit(day)?, 1),
        [_, _, b' ', ..] => (two(text, name.len())?, 2),
        _ => return None,
    };
    let mut at = name.len() + day_bytes + 1;
    let clock: &[u8; 8] = text[at..].first_chunk()?;
    if clock[2] != b':' || clock[5] != b':' {
        return None;
    }
    let civil = Civil {
        year: 0,
        month,
        day,
        hour: two(clock, 0)?,
        minute: two(clock, 3)?,
        second: two(clock, 6)?,
    };
    at += clock.len();
    let (mut nanos, mut fraction_digits) = (0, 0);
    if let [b'.', digit, ..] = text[at..]
        && digit.is_ascii_digit()
    {
        (nanos, fraction_digits) = read_fraction(&text[at + 1..])?;
        at += 1 + usize::from(fraction_digits);
    }
    Some(SyslogTime {
        civil,
        nanos,
        fraction_digits,
        day_bytes,
        bytes: at,
    })
}

/// The date, in no year, and the fraction of `Mmm dd hh:mm:ss` in nanoseconds.
pub(super) fn syslog_civil(text: &[u8]) -> Option<(Civil, u32)> {
    syslog_time(text).map(|read| (read.civil, read.nanos))
}

/// Reads `Mmm dd hh:mm:ss`, also without padding of the day, with a fraction or not, with a year
/// after it or not.
pub(super) fn syslog(text: &[u8], received: Timestamp) -> Option<TimestampText> {
    let SyslogTime {
        mut civil,
        nanos,
        fraction_digits,
        day_bytes,
        bytes: mut at,
    } = syslog_time(text)?;
    let year = year_after(&text[at..]);
    let time = match year {
        Some(written) => {
            civil.year = written;
            at += 5;
            instant(&civil, nanos, 0)?
        }
        None => in_latest_year(&mut civil, nanos, 0, received)?,
    };
    let layout = Layout::Syslog {
        zero: text[4] == b'0',
        year: year.is_some(),
    };
    Some(TimestampText {
        time,
        bytes: at,
        form: Form {
            layout,
            fraction_digits,
            offset: Offset::default(),
            zone_name: None,
            zone_minutes: 0,
        },
        // No pattern renders a day of one digit without padding.
        exact: civil.second < 60 && day_bytes == 2,
    })
}

/// Reads ` 19dd` or ` 20dd`.
pub(super) fn year_after(text: &[u8]) -> Option<i64> {
    let head: &[u8; 5] = text.first_chunk()?;
    let century = two(head, 1).filter(|c| head[0] == b' ' && matches!(c, 19 | 20))?;
    let year = century * 100 + two(head, 3)?;
    // An address of version 6 may begin like a year.
    let ends = matches!(text[5..], [] | [b' ', ..] | [b':'] | [b':', b' ', ..]);
    ends.then_some(i64::from(year))
}

//! Clocks that stand without a date, as logback, Serilog, Elixir and zerolog's console write them by default.
//!
//! The day is the latest on which the clock is not in the future, and it is said to be assumed. If that is more than
//! [`AGE_NS_MAX`] before the arrival, the line may be of any day, and has no time. So files of other days, and clocks of
//! a zone that is not known, get none that is wrong by much.

use logpond_record::{Assumption, Civil, Timestamp};

use super::cursor::Cursor;
use super::time_of_day;
use super::{DAY_NS, TimeReader, TimestampText, instant, other};

/// How old a line may be when it arrives.
const AGE_NS_MAX: i64 = DAY_NS / 2;

/// How far the sender's clock may be ahead.
const AHEAD_NS_MAX: i64 = 60_000_000_000;

/// The most bytes of a colour before the clock.
const COLOUR_BYTES_MAX: usize = 16;

/// The most bytes of a level, or of the name of a part of VirtualBox.
const LEVEL_BYTES_MAX: usize = 12;

/// Days of a year, counted from 0.
const DAYS_MAX: u32 = 366;

impl TimeReader {
    /// The instant of a line that says a level: of the clock that it begins with, in brackets or a colour or not.
    pub(crate) fn of_clock(
        &self,
        line: &[u8],
        received: Timestamp,
    ) -> Option<(Timestamp, Assumption)> {
        let found = match line.first()? {
            b'0'..=b'9' if is_since_start(line) => None,
            b'0'..=b'9' => self.clock(line, received),
            b'[' | b'(' => {
                let in_year = || of_year(line, received);
                let clock = self.clock(&line[1..], received);
                let behind = || self.clock(behind_bracket(line)?, received);
                let letter = || self.clock(behind_letter(line)?, received);
                clock
                    .or_else(behind)
                    .or_else(letter)
                    .or_else(|| Some(self.placed(in_year()?, received)))
            }
            0x1b => {
                let head = &line[..line.len().min(COLOUR_BYTES_MAX)];
                let end = memchr::memchr(b'm', head)?;
                self.clock(&line[end + 1..], received)
            }
            b'A'..=b'Z' | b'a'..=b'z' => self.clock(behind_level(line)?, received),
            _ => None,
        }?;
        Some((found.time, found.form.assumed()))
    }

    /// The instant of a line that says no level: of the clock in brackets that it begins with. One without them may be how
    /// long something took.
    pub(crate) fn of_bracketed_clock(
        &self,
        line: &[u8],
        received: Timestamp,
    ) -> Option<(Timestamp, Assumption)> {
        let text = line.strip_prefix(b"[")?;
        let is_clock = matches!(
            text,
            [
                b'0'..=b'9',
                b'0'..=b'9',
                b':',
                b'0'..=b'9',
                b'0'..=b'9',
                b':',
                ..
            ]
        );
        let found = self.clock(text, received).filter(|_| is_clock)?;
        let is_ended = text[found.bytes..].starts_with(b"] ");
        is_ended.then(|| (found.time, found.form.assumed()))
    }

    /// The instant of a clock that a text begins with.
    pub(crate) fn clock(&self, text: &[u8], received: Timestamp) -> Option<TimestampText> {
        // Few texts begin so.
        if !matches!(
            text,
            [b'0'..=b'9', b':', ..] | [b'0'..=b'9', b'0'..=b'9', b':', ..]
        ) {
            return None;
        }
        let (civil, nanos, bytes) = time_of_day::read_clock(text)?;
        let (received_s, _) = received.seconds();
        // The day of the arrival may be another one in the zone of the clock.
        let days = [86_400, 0, -86_400];
        let mut times = days.into_iter().filter_map(|ahead| {
            let day = Civil::from_seconds(received_s + ahead);
            let civil = Civil {
                year: day.year,
                month: day.month,
                day: day.day,
                ..civil
            };
            let found = other(instant(&civil, nanos, 0)?, bytes, Assumption::DayAndZone);
            Some(self.placed(found, received))
        });
        let found = times.find(|found| found.time <= received.saturating_add(AHEAD_NS_MAX))?;
        (found.time >= received.saturating_add(-AGE_NS_MAX)).then_some(found)
    }
}

/// Parts of VirtualBox, which write their names behind the clock.
const MACHINE_PARTS: [&[u8]; 20] = [
    b"AIOMgr",
    b"APIC",
    b"Audio",
    b"CPUM",
    b"Console",
    b"EM",
    b"GIM",
    b"GUI",
    b"HM",
    b"NAT",
    b"NEM",
    b"PDM",
    b"PGM",
    b"SUP",
    b"TM",
    b"VD",
    b"VM",
    b"VMM",
    b"VMMDev",
    b"VMSetError",
];

/// True for `00:00:02.234567 ERROR [COM]: …`, `00:00:02.234567 VMMDev: …` and `00:00:01.123456 main     …` of
/// VirtualBox, whose clock counts from its start.
pub(crate) fn is_since_start(line: &[u8]) -> bool {
    const CLOCK_BYTES: usize = 15;
    let Some((clock, [b' ', behind @ ..])) = line.split_at_checked(CLOCK_BYTES) else {
        return false;
    };
    if clock[2] != b':' || clock[5] != b':' || clock[8] != b'.' {
        return false;
    }
    let word = behind.iter().take(LEVEL_BYTES_MAX);
    let word = word.take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let (word, behind) = behind.split_at(word);
    match word {
        b"main" => behind.starts_with(b"     "),
        _ if behind.starts_with(b" [COM]: ") => true,
        _ => behind.starts_with(b": ") && MACHINE_PARTS.contains(&word),
    }
}

/// How many bytes of a text are a clock, of any day.
pub(crate) fn clock_bytes(text: &[u8]) -> Option<usize> {
    if !matches!(text, [b'0'..=b'9', b'0'..=b'9', b':', ..]) {
        return None;
    }
    let (_, _, bytes) = time_of_day::read_clock(text)?;
    Some(bytes)
}

/// The text behind a word in brackets, as the level of `[info] 00:51:25.818 …` and `[INFO] [00:51:25] …`.
fn behind_bracket(line: &[u8]) -> Option<&[u8]> {
    let head = &line[..line.len().min(COLOUR_BYTES_MAX)];
    let close = memchr::memchr(b']', head)?;
    let is_word = line[1..close].iter().all(u8::is_ascii_alphabetic);
    let behind = line[close + 1..].strip_prefix(b" ").filter(|_| is_word)?;
    Some(behind.strip_prefix(b"[").unwrap_or(behind))
}

/// The clock behind a level, as of `ERROR 00:51:25,818 …`, `INFO  [00:51:25.818] …` and `info: 00:51:25.818 …`. Without a
/// fraction or brackets it may be how long something took.
fn behind_level(line: &[u8]) -> Option<&[u8]> {
    const BLANKS_MAX: usize = 4;
    const CLOCK_BYTES: usize = 8;
    let head = &line[..line.len().min(COLOUR_BYTES_MAX)];
    let letters = head.iter().take_while(|b| b.is_ascii_alphabetic()).count();
    let behind = &line[letters..];
    let behind = behind.strip_prefix(b":").unwrap_or(behind);
    let blanks = behind.iter().take_while(|byte| **byte == b' ').count();
    if !(1..=BLANKS_MAX).contains(&blanks) {
        return None;
    }
    let clock = &behind[blanks..];
    let inside = clock.strip_prefix(b"[");
    let (clock, is_bracketed) = (inside.unwrap_or(clock), inside.is_some());
    let is_marked = match clock.get(CLOCK_BYTES)? {
        b'.' | b',' => clock.get(CLOCK_BYTES + 1).is_some_and(u8::is_ascii_digit),
        b']' => is_bracketed,
        _ => false,
    };
    (is_marked && super::is_level(&line[..letters])).then_some(clock)
}

/// The text behind the letter of a level, as of Jupyter's `[I 00:51:25.818 NotebookApp] …`.
fn behind_letter(line: &[u8]) -> Option<&[u8]> {
    match line {
        [b'[', b'A'..=b'Z', b' ', rest @ ..] => Some(rest),
        _ => None,
    }
}

/// `[WARNING] 330/005125 (77)`: days since the year began, hours, minutes and seconds, as HAProxy's starts write them.
fn of_year(line: &[u8], received: Timestamp) -> Option<TimestampText> {
    let close = memchr::memchr(b']', &line[..line.len().min(COLOUR_BYTES_MAX)])?;
    let mut cursor = Cursor::new(&line[close + 1..]);
    cursor.eat_spaces(COLOUR_BYTES_MAX);
    if cursor.digits() != 3 {
        return None;
    }
    let day = cursor.number(3).filter(|day| *day < DAYS_MAX)?;
    if !cursor.eat(b'/') || cursor.digits() != 6 {
        return None;
    }
    let (hour, minute, second) = (cursor.number(2)?, cursor.number(2)?, cursor.number(2)?);
    if !cursor.rest().starts_with(b" (") || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let latest = received.saturating_add(DAY_NS);
    let year = Civil::from_seconds(latest.seconds().0).year;
    let in_year = |year| {
        let first = Civil {
            year,
            month: 1,
            day: 1,
            hour,
            minute,
            second,
        };
        let time = instant(&first, 0, 0)?;
        Some(time.saturating_add(i64::from(day) * DAY_NS))
    };
    let mut times = [year, year - 1].into_iter().filter_map(in_year);
    let time = times.find(|time| *time <= latest)?;
    Some(other(time, cursor.at, Assumption::YearAndZone))
}

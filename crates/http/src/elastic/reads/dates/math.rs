//! Date math: `now-1h/d`, `2026-11-21||+1M/d`.

use jiff::ToSpan;
use jiff::civil::DateTime;
use logpond_record::{TimeRange, Timestamp};

use super::read::{Unit, WrittenDate};
use super::{DateReader, MS_NS, clamp, instant_ns};

/// The most steps of an expression.
const STEPS_MAX: usize = 32;

/// The instants that a text stands for.
pub(super) fn span(text: &str, reader: &DateReader) -> Result<TimeRange, String> {
    let (anchor, steps) = match (text.strip_prefix("now"), text.split_once("||")) {
        (Some(steps), _) => {
            let now = reader.now.0.div_euclid(MS_NS).saturating_mul(MS_NS);
            (Anchor::of_instant(now, Unit::Millisecond), steps)
        }
        // Only a step such as `/d` makes a span of what has steps.
        (None, Some((date, steps))) => {
            let date = anchor(date, reader)?;
            (Anchor::of_instant(date.start_ns, Unit::Millisecond), steps)
        }
        (None, None) => (anchor(text, reader)?, ""),
    };
    let anchor = apply(anchor, steps, reader)?;
    Ok(anchor.range(reader))
}

/// A date on its way through steps.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    start_ns: i64,
    unit: Unit,
}

impl Anchor {
    fn of_instant(start_ns: i64, unit: Unit) -> Anchor {
        Anchor { start_ns, unit }
    }

    fn range(self, reader: &DateReader) -> TimeRange {
        let from = Timestamp(self.start_ns);
        let to = match self.unit {
            Unit::Nanosecond => from.saturating_add(1),
            Unit::Millisecond => from.saturating_add(MS_NS),
            unit => {
                let local = local(self.start_ns, reader);
                Timestamp(instant_ns(
                    moved(local, unit, 1).unwrap_or(DateTime::MAX),
                    &reader.zone,
                ))
            }
        };
        TimeRange { from, to }
    }
}

fn anchor(text: &str, reader: &DateReader) -> Result<Anchor, String> {
    for format in &reader.formats {
        let Some(date) = format.read(text) else {
            continue;
        };
        return Ok(match date {
            super::java::ReadDate::Instant(ns, unit) => Anchor::of_instant(ns, unit),
            super::java::ReadDate::Written(date) => of_written(date, reader),
        });
    }
    let names: Vec<_> = reader.formats.iter().map(|f| f.name().to_owned()).collect();
    Err(format!(
        "it is neither date math, such as now-1h/d, nor a date of the format [{}]",
        names.join("||")
    ))
}

fn of_written(date: WrittenDate, reader: &DateReader) -> Anchor {
    let start_ns = match date.offset {
        None => instant_ns(date.local, &reader.zone),
        Some(seconds) => {
            let zone = jiff::tz::Offset::from_seconds(seconds).unwrap_or(jiff::tz::Offset::UTC);
            instant_ns(date.local, &zone.to_time_zone())
        }
    };
    // A month or a day that is not written is the first one.
    let unit = match date.unit {
        Unit::Year | Unit::Month => Unit::Day,
        unit => unit,
    };
    Anchor::of_instant(start_ns, unit)
}

fn local(ns: i64, reader: &DateReader) -> DateTime {
    let instant = jiff::Timestamp::from_nanosecond(i128::from(ns)).unwrap_or_default();
    instant.to_zoned(reader.zone.clone()).datetime()
}

fn apply(mut anchor: Anchor, steps: &str, reader: &DateReader) -> Result<Anchor, String> {
    let mut rest = steps;
    let mut count = 0;
    while let Some(sign) = rest.chars().next() {
        count += 1;
        if count > STEPS_MAX {
            return Err(format!("it has more than {STEPS_MAX} steps"));
        }
        rest = rest.get(1..).unwrap_or_default();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, behind) = rest.split_at_checked(digits).unwrap_or(("", rest));
        let letter = behind.chars().next().unwrap_or(' ');
        let unit = unit_of(letter).ok_or_else(|| format!("there is no unit [{letter}]"))?;
        rest = behind.get(letter.len_utf8()..).unwrap_or_default();
        let amount: i64 = match number {
            "" => 1,
            number => number
                .parse()
                .map_err(|_| "a number is too large".to_owned())?,
        };
        anchor = match sign {
            '+' => step(anchor, unit, amount, reader)?,
            '-' => step(anchor, unit, -amount, reader)?,
            '/' if number.is_empty() => {
                let start = floor(local(anchor.start_ns, reader), unit);
                Anchor::of_instant(instant_ns(start, &reader.zone), unit)
            }
            _ => return Err(format!("[{sign}] is none of + - /")),
        };
    }
    Ok(anchor)
}

fn unit_of(letter: char) -> Option<Unit> {
    Some(match letter {
        'y' => Unit::Year,
        'M' => Unit::Month,
        'w' => Unit::Week,
        'd' => Unit::Day,
        'h' | 'H' => Unit::Hour,
        'm' => Unit::Minute,
        's' => Unit::Second,
        _ => return None,
    })
}

fn step(anchor: Anchor, unit: Unit, amount: i64, reader: &DateReader) -> Result<Anchor, String> {
    let seconds = match unit {
        Unit::Hour => Some(3600),
        Unit::Minute => Some(60),
        Unit::Second => Some(1),
        _ => None,
    };
    let start_ns = match seconds {
        Some(seconds) => {
            let ns = i128::from(amount) * i128::from(seconds) * 1_000_000_000;
            clamp(i128::from(anchor.start_ns) + ns)
        }
        None => {
            let moved = moved(local(anchor.start_ns, reader), unit, amount);
            instant_ns(moved.ok_or("the date is too far away")?, &reader.zone)
        }
    };
    Ok(Anchor::of_instant(start_ns, anchor.unit))
}

/// So many units later.
pub(super) fn moved(local: DateTime, unit: Unit, amount: i64) -> Option<DateTime> {
    let span = jiff::Span::new();
    let span = match unit {
        Unit::Year => span.try_years(amount),
        Unit::Quarter => span.try_months(amount.checked_mul(3)?),
        Unit::Month => span.try_months(amount),
        Unit::Week => span.try_weeks(amount),
        Unit::Day => span.try_days(amount),
        Unit::Hour => span.try_hours(amount),
        Unit::Minute => span.try_minutes(amount),
        Unit::Second => span.try_seconds(amount),
        Unit::Millisecond => span.try_milliseconds(amount),
        Unit::Nanosecond => span.try_nanoseconds(amount),
    };
    local.checked_add(span.ok()?).ok()
}

/// The start of the unit that a date is in; weeks begin on Monday.
pub(super) fn floor(local: DateTime, unit: Unit) -> DateTime {
    let date = local.date();
    let (hour, minute, second) = (local.hour(), local.minute(), local.second());
    match unit {
        Unit::Year => date.first_of_year().at(0, 0, 0, 0),
        Unit::Quarter => {
            let months = i64::from((date.month() - 1) % 3);
            let first = date.first_of_month();
            first.saturating_sub(months.months()).at(0, 0, 0, 0)
        }
        Unit::Month => date.first_of_month().at(0, 0, 0, 0),
        Unit::Week => {
            let days = i64::from(date.weekday().to_monday_zero_offset());
            date.saturating_sub(days.days()).at(0, 0, 0, 0)
        }
        Unit::Day => date.at(0, 0, 0, 0),
        Unit::Hour => date.at(hour, 0, 0, 0),
        Unit::Minute => date.at(hour, minute, 0, 0),
        Unit::Second => date.at(hour, minute, second, 0),
        Unit::Millisecond => {
            let ms = local.subsec_nanosecond() / 1_000_000 * 1_000_000;
            date.at(hour, minute, second, ms)
        }
        Unit::Nanosecond => local,
    }
}

//! Formats of dates: names such as `epoch_millis`, and patterns such as `yyyy-MM-dd`.

use std::fmt::Write as _;

use jiff::tz::TimeZone;
use logpond_record::cast;

use super::super::json::bad;
use super::MS_NS;
use super::read::{Parts, Unit, WrittenDate, digits, iso, offset};
use crate::error::ApiError;

/// The most formats of a clause.
const FORMATS_MAX: usize = 16;

/// The longest pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 128;

/// A format of dates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct DateFormat {
    name: Box<str>,
    form: Form,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    Iso { has_nanoseconds: bool },
    Milliseconds,
    Seconds,
    Pattern(Vec<Piece>),
}

/// A piece of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Year,
    Month(usize),
    Day(usize),
    Hour(usize),
    Minute(usize),
    Second(usize),
    Fraction(usize),
    /// An offset, with a colon or without.
    Offset {
        has_colon: bool,
        has_z: bool,
    },
}

/// A date that a format has read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ReadDate {
    /// Nanoseconds since 1970, and the unit in which they were written.
    Instant(i64, Unit),
    Written(WrittenDate),
}

impl DateFormat {
    /// The formats of dates where a clause names none.
    pub(super) fn defaults() -> Vec<DateFormat> {
        vec![DateFormat::iso(), DateFormat::milliseconds()]
    }

    /// The default format.
    pub(in super::super) fn iso() -> DateFormat {
        let form = Form::Iso {
            has_nanoseconds: false,
        };
        DateFormat {
            name: "strict_date_optional_time".into(),
            form,
        }
    }

    /// Milliseconds since 1970.
    pub(in super::super) fn milliseconds() -> DateFormat {
        DateFormat {
            name: "epoch_millis".into(),
            form: Form::Milliseconds,
        }
    }

    /// The formats of a text with `||` between.
    ///
    /// # Errors
    /// With the format that is not known.
    pub(in super::super) fn list(text: &str) -> Result<Vec<DateFormat>, ApiError> {
        let names: Vec<&str> = text.split("||").collect();
        if names.len() > FORMATS_MAX {
            return Err(bad(format!("[format] has more than {FORMATS_MAX} formats")));
        }
        names.into_iter().map(DateFormat::of).collect()
    }

    /// The format of a name or a pattern.
    ///
    /// # Errors
    /// When it is not known.
    pub(in super::super) fn of(text: &str) -> Result<DateFormat, ApiError> {
        let iso = |has_nanoseconds| Form::Iso { has_nanoseconds };
        let form = match text {
            "strict_date_optional_time" | "date_optional_time" | "iso8601" => iso(false),
            "strict_date_optional_time_nanos" => iso(true),
            "epoch_millis" => Form::Milliseconds,
            "epoch_second" => Form::Seconds,
            "strict_date_time" | "date_time" => pattern("yyyy-MM-dd'T'HH:mm:ss.SSSXXX")?,
            "strict_date_time_no_millis" | "date_time_no_millis" => {
                pattern("yyyy-MM-dd'T'HH:mm:ssXXX")?
            }
            "strict_date" | "date" => pattern("yyyy-MM-dd")?,
            "strict_date_hour_minute_second" | "date_hour_minute_second" => {
                pattern("yyyy-MM-dd'T'HH:mm:ss")?
            }
            "strict_year_month" | "year_month" => pattern("yyyy-MM")?,
            "strict_year" | "year" => pattern("yyyy")?,
            "basic_date" => pattern("yyyyMMdd")?,
            text => pattern(text)?,
        };
        Ok(DateFormat {
            name: text.into(),
            form,
        })
    }

    /// The name as it was given.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// True if instants are numbers in it.
    pub(in super::super) fn is_number(&self) -> bool {
        matches!(self.form, Form::Milliseconds | Form::Seconds)
    }

    /// Reads a date of this format.
    pub(super) fn read(&self, text: &str) -> Option<ReadDate> {
        let number = |unit_ns: f64, unit: Unit| {
            let number: f64 = text.parse().ok()?;
            let whole: Option<i64> = text.parse().ok();
            let exact = whole.and_then(|whole| whole.checked_mul(cast::whole_i64(unit_ns)));
            let ns = exact.unwrap_or(cast::whole_i64(number * unit_ns));
            let unit = match exact {
                Some(_) => unit,
                None => Unit::Millisecond,
            };
            number.is_finite().then_some(ReadDate::Instant(ns, unit))
        };
        match &self.form {
            Form::Iso { .. } => iso(text).map(ReadDate::Written),
            Form::Milliseconds => number(cast::float(MS_NS), Unit::Millisecond),
            Form::Seconds => number(1e9, Unit::Second),
            Form::Pattern(pieces) => read_pieces(pieces, text).map(ReadDate::Written),
        }
    }

    /// Writes an instant of so many nanoseconds.
    pub(in super::super) fn write(&self, ns: i64, zone: &TimeZone) -> String {
        let ms = ns.div_euclid(MS_NS);
        match &self.form {
            Form::Milliseconds => ms.to_string(),
            Form::Seconds => ms.div_euclid(1000).to_string(),
            Form::Iso { has_nanoseconds } => {
                let fraction = if *has_nanoseconds { 9 } else { 3 };
                let pieces = [
                    Piece::Year,
                    Piece::Text("-".to_owned()),
                    Piece::Month(2),
                    Piece::Text("-".to_owned()),
                    Piece::Day(2),
                    Piece::Text("T".to_owned()),
                    Piece::Hour(2),
                    Piece::Text(":".to_owned()),
                    Piece::Minute(2),
                    Piece::Text(":".to_owned()),
                    Piece::Second(2),
                    Piece::Text(".".to_owned()),
                    Piece::Fraction(fraction),
                    Piece::Offset {
                        has_colon: true,
                        has_z: true,
                    },
                ];
                write_pieces(&pieces, ns, zone)
            }
            Form::Pattern(pieces) => write_pieces(pieces, ns, zone),
        }
    }
}

/// Reads a pattern of Java.
fn pattern(text: &str) -> Result<Form, ApiError> {
    if text.is_empty() || text.len() > PATTERN_BYTES_MAX {
        let message = format!("[format] has from 1 to {PATTERN_BYTES_MAX} bytes");
        return Err(bad(message));
    }
    let mut pieces = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\'' {
            let quoted: String = chars.by_ref().take_while(|c| *c != '\'').collect();
            let quoted = if quoted.is_empty() {
                "'".to_owned()
            } else {
                quoted
            };
            pieces.push(Piece::Text(quoted));
            continue;
        }
        if !c.is_ascii_alphabetic() {
            pieces.push(Piece::Text(c.to_string()));
            continue;
        }
        let mut count = 1;
        while chars.next_if_eq(&c).is_some() {
            count += 1;
        }
        pieces.push(piece(c, count).ok_or_else(|| {
            bad(format!(
                "[format] [{text}]: there is no [{c}] of {count} letters; supported are yyyy, MM, dd, HH, mm, \
                 ss, SSS, X, XXX and Z, and names such as strict_date_optional_time and epoch_millis"
            ))
        })?);
    }
    Ok(Form::Pattern(pieces))
}

fn piece(letter: char, count: usize) -> Option<Piece> {
    Some(match (letter, count) {
        ('y' | 'u', 1 | 4) => Piece::Year,
        ('M' | 'L', 1 | 2) => Piece::Month(count),
        ('d', 1 | 2) => Piece::Day(count),
        ('H', 1 | 2) => Piece::Hour(count),
        ('m', 1 | 2) => Piece::Minute(count),
        ('s', 1 | 2) => Piece::Second(count),
        ('S', 1..=9) => Piece::Fraction(count),
        ('X', 1..=3) => Piece::Offset {
            has_colon: count == 3,
            has_z: true,
        },
        ('x', 1..=3) | ('Z', 1..=5) => Piece::Offset {
            has_colon: count == 3 && letter == 'x' || count == 5,
            has_z: count == 5,
        },
        _ => return None,
    })
}

fn read_pieces(pieces: &[Piece], text: &str) -> Option<WrittenDate> {
    let mut rest = text;
    let mut parts = Parts::new();
    for piece in pieces {
        let mut small = |least: usize, unit: Unit, parts: &mut Parts| -> Option<i8> {
            parts.note(unit);
            digits(&mut rest, least, 2)?.parse().ok()
        };
        match piece {
            Piece::Text(expected) => rest = rest.strip_prefix(expected.as_str())?,
            Piece::Year => parts.year = digits(&mut rest, 4, 4)?.parse().ok()?,
            Piece::Month(least) => parts.month = small(*least, Unit::Month, &mut parts)?,
            Piece::Day(least) => parts.day = small(*least, Unit::Day, &mut parts)?,
            Piece::Hour(least) => parts.hour = small(*least, Unit::Hour, &mut parts)?,
            Piece::Minute(least) => parts.minute = small(*least, Unit::Minute, &mut parts)?,
            Piece::Second(least) => parts.second = small(*least, Unit::Second, &mut parts)?,
            Piece::Fraction(count) => {
                let found = digits(&mut rest, *count, *count)?;
                parts.fraction(found)?;
            }
            Piece::Offset { .. } => {
                let end = rest.find(|c: char| !"Z+-:0123456789".contains(c));
                let (written, behind) = rest.split_at_checked(end.unwrap_or(rest.len()))?;
                parts.offset = Some(offset(written)?);
                rest = behind;
            }
        }
    }
    if rest.is_empty() { parts.date() } else { None }
}

fn write_pieces(pieces: &[Piece], ns: i64, zone: &TimeZone) -> String {
    let instant = jiff::Timestamp::from_nanosecond(i128::from(ns)).unwrap_or_default();
    let zoned = instant.to_zoned(zone.clone());
    let local = zoned.datetime();
    let mut out = String::new();
    for piece in pieces {
        // Writing to a text cannot fail.
        let _ = match piece {
            Piece::Text(text) => out.write_str(text),
            Piece::Year => write!(out, "{:04}", local.year()),
            Piece::Month(width) => write!(out, "{:0width$}", local.month()),
            Piece::Day(width) => write!(out, "{:0width$}", local.day()),
            Piece::Hour(width) => write!(out, "{:0width$}", local.hour()),
            Piece::Minute(width) => write!(out, "{:0width$}", local.minute()),
            Piece::Second(width) => write!(out, "{:0width$}", local.second()),
            Piece::Fraction(count) => {
                let digits = format!("{:09}", local.subsec_nanosecond());
                out.write_str(digits.get(..*count).unwrap_or_default())
            }
            Piece::Offset { has_colon, has_z } => {
                let seconds = zoned.offset().seconds();
                let (hours, minutes) = (seconds.abs() / 3600, seconds.abs() / 60 % 60);
                let sign = if seconds < 0 { '-' } else { '+' };
                let colon = if *has_colon { ":" } else { "" };
                if seconds == 0 && *has_z {
                    out.write_char('Z')
                } else {
                    write!(out, "{sign}{hours:02}{colon}{minutes:02}")
                }
            }
        };
    }
    out
}

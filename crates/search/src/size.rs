//! Durations and sizes as people write them in settings and on the command line.

use std::fmt;

use logpond_record::cast;

const SECOND_NS: i128 = 1_000_000_000;
const DAY_NS: i128 = 86_400 * SECOND_NS;

/// Units of durations. A month is 30 days and a year 365, always. `M` is refused, as it means
/// minutes to some and months to others.
const DURATION_UNITS: [(&[&str], i128); 10] = [
    (&["ns", "nsec", "nanosecond", "nanoseconds"], 1),
    (
        &["us", "µs", "μs", "usec", "microsecond", "microseconds"],
        1_000,
    ),
    (&["ms", "msec", "millisecond", "milliseconds"], 1_000_000),
    (&["s", "sec", "secs", "second", "seconds"], SECOND_NS),
    (&["m", "min", "mins", "minute", "minutes"], 60 * SECOND_NS),
    (&["h", "hr", "hrs", "hour", "hours"], 3600 * SECOND_NS),
    (&["d", "day", "days"], DAY_NS),
    (&["w", "week", "weeks"], 7 * DAY_NS),
    (&["mo", "month", "months"], 30 * DAY_NS),
    (&["y", "yr", "yrs", "year", "years"], 365 * DAY_NS),
];

/// Units of sizes, in any case. Letters alone are powers of 1024, as everywhere in system tools. A
/// number alone is refused: ten bytes are never meant where ten gigabytes may be.
const SIZE_UNITS: [(&[&str], u64); 9] = [
    (&["b", "byte", "bytes"], 1),
    (&["kb"], 1000),
    (&["mb"], 1_000_000),
    (&["gb"], 1_000_000_000),
    (&["tb"], 1_000_000_000_000),
    (&["k", "kib"], 1 << 10),
    (&["m", "mib"], 1 << 20),
    (&["g", "gib"], 1 << 30),
    (&["t", "tib"], 1 << 40),
];

/// The most digits of a fraction that count; all that a nanosecond of a year needs.
const FRACTION_DIGITS_MAX: usize = 18;

/// An amount of storage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// So many bytes.
    Bytes(u64),
    /// So many percent of the whole, from 0 to 100.
    Percent(f64),
}

impl Size {
    /// The bytes that this is of a whole of `total_bytes`.
    pub fn of(self, total_bytes: u64) -> u64 {
        match self {
            Size::Bytes(bytes) => bytes,
            Size::Percent(percent) => cast::whole_u64(cast::float(total_bytes) * percent / 100.0),
        }
    }
}

/// Why a text is not a duration or a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AmountError {
    /// A number is expected where this text is.
    NoNumber(String),
    /// The unit is not known, or there is none where one is needed.
    Unit {
        /// What was written.
        written: String,
        /// Units that are known.
        known: &'static str,
    },
    /// A size is a number alone.
    SizeUnit {
        /// The number as it was written.
        number: String,
    },
    /// The amount is larger than can be counted, or more than 100 %.
    TooLarge,
}

impl fmt::Display for AmountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AmountError::NoNumber(rest) if rest.is_empty() => f.write_str("a number is missing"),
            AmountError::NoNumber(rest) => write!(f, "a number is missing before `{rest}`"),
            AmountError::Unit { written, known } if written.is_empty() => {
                write!(f, "the unit is missing; units are {known}")
            }
            AmountError::Unit { written, known } => {
                write!(f, "unknown unit `{written}`; units are {known}")
            }
            AmountError::SizeUnit { number } => {
                write!(
                    f,
                    "the unit is missing; write `{number}GiB`, `{number}MiB` or `{number}B`"
                )
            }
            AmountError::TooLarge => f.write_str("the amount is too large"),
        }
    }
}

impl std::error::Error for AmountError {}

/// Parses a duration (`30d`, `90s`, `1h30m`, `1.5 hours`, `1 hour 30 min`); gives nanoseconds,
/// never negative.
pub fn parse_duration(text: &str) -> Result<i64, AmountError> {
    let mut rest = text.trim();
    let mut total: i128 = 0;
    loop {
        let (number, after) = number(rest)?;
        let unit_end = after
            .find(|c: char| !c.is_alphabetic())
            .unwrap_or(after.len());
        let unit = &after[..unit_end];
        let unit_ns = duration_unit(unit).ok_or_else(|| AmountError::Unit {
            written: unit.to_owned(),
            known: "ns us ms s m h d w month y",
        })?;
        total = number
            .times(unit_ns)
            .and_then(|ns| ns.checked_add(total))
            .ok_or(AmountError::TooLarge)?;
        rest = after[unit_end..].trim_start();
        if rest.is_empty() {
            return i64::try_from(total).map_err(|_| AmountError::TooLarge);
        }
    }
}

fn duration_unit(written: &str) -> Option<i128> {
    let lower = written.to_lowercase();
    let (_, unit_ns) = DURATION_UNITS
        .iter()
        .find(|(names, _)| names.contains(&&*lower) && written != "M")?;
    Some(*unit_ns)
}

/// Parses a size (`200MB`, `10GiB`, `10 G`, `20%`). `MB` is a million bytes, `MiB` and `M` are
/// 2^20.
pub fn parse_size(text: &str) -> Result<Size, AmountError> {
    let text = text.trim();
    let (number, unit) = number(text)?;
    if unit == "%" {
        let percent =
            cast::float(number.digits) / 10f64.powi(cast::low_i32(number.fraction_digits));
        return if percent <= 100.0 {
            Ok(Size::Percent(percent))
        } else {
            Err(AmountError::TooLarge)
        };
    }
    if unit.is_empty() {
        return Err(AmountError::SizeUnit {
            number: text.to_owned(),
        });
    }
    let lower = unit.to_lowercase();
    let (_, unit_bytes) = SIZE_UNITS
        .iter()
        .find(|(names, _)| names.contains(&&*lower))
        .ok_or_else(|| AmountError::Unit {
            written: unit.to_owned(),
            known: "B kB MB GB TB KiB MiB GiB TiB and %",
        })?;
    number
        .times(i128::from(*unit_bytes))
        .and_then(|bytes| u64::try_from(bytes).ok())
        .map(Size::Bytes)
        .ok_or(AmountError::TooLarge)
}

/// A decimal number: digits without the point, and how many of them stand behind it.
struct Decimal {
    digits: i128,
    fraction_digits: usize,
}

impl Decimal {
    fn times(&self, unit: i128) -> Option<i128> {
        let product = self.digits.checked_mul(unit)?;
        Some(product / 10i128.pow(cast::low_u32(self.fraction_digits)))
    }
}

/// Reads a decimal number; gives what follows it and white space.
fn number(text: &str) -> Result<(Decimal, &str), AmountError> {
    let missing = || AmountError::NoNumber(text.chars().take(20).collect());
    let whole_end = digits_end(text);
    let (whole, mut rest) = text.split_at(whole_end);
    let mut fraction = "";
    if let Some(after_point) = rest.strip_prefix('.') {
        (fraction, rest) = after_point.split_at(digits_end(after_point));
    }
    if whole.is_empty() {
        return Err(missing());
    }
    let kept = &fraction[..fraction.len().min(FRACTION_DIGITS_MAX)];
    // Nothing that can be counted has more digits; they would only overflow.
    if whole.len() > FRACTION_DIGITS_MAX + 2 {
        return Err(AmountError::TooLarge);
    }
    let digits = format!("{whole}{kept}")
        .parse()
        .map_err(|_| AmountError::TooLarge)?;
    let decimal = Decimal {
        digits,
        fraction_digits: kept.len(),
    };
    Ok((decimal, rest.trim_start()))
}

fn digits_end(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_read() {
        let table = [
            ("30d", Some(2_592_000_000_000_000)),
            ("90s", Some(90_000_000_000)),
            ("1h30m", Some(5_400_000_000_000)),
            ("1 hour 30 min", Some(5_400_000_000_000)),
            ("1.5H", Some(5_400_000_000_000)),
            ("250ms", Some(250_000_000)),
            ("2µs", Some(2_000)),
            ("0s", Some(0)),
            ("1M", None),
            ("5", None),
            ("", None),
            ("h", None),
            ("1h x", None),
            ("-1h", None),
            ("99999999y", None),
            ("999999999999999999999999999999999999999999s", None),
        ];
        for (text, expected) in table {
            assert_eq!(parse_duration(text).ok(), expected, "{text}");
        }
        assert_eq!(
            parse_duration("3 fortnights").unwrap_err().to_string(),
            "unknown unit `fortnights`; units are ns us ms s m h d w month y"
        );
    }

    #[test]
    fn sizes_are_read() {
        let table = [
            ("200MB", Some(Size::Bytes(200_000_000))),
            ("10GiB", Some(Size::Bytes(10 << 30))),
            ("10 g", Some(Size::Bytes(10 << 30))),
            ("1.5k", Some(Size::Bytes(1536))),
            ("4096B", Some(Size::Bytes(4096))),
            ("4096 bytes", Some(Size::Bytes(4096))),
            ("4096", None),
            ("10", None),
            ("0", None),
            ("1.5 ", None),
            ("20%", Some(Size::Percent(20.0))),
            ("12.5 %", Some(Size::Percent(12.5))),
            ("101%", None),
            ("1 PB", None),
            ("MB", None),
            ("99999999999T", None),
        ];
        for (text, expected) in table {
            assert_eq!(parse_size(text).ok(), expected, "{text}");
        }
        assert_eq!(Size::Percent(20.0).of(1000), 200);
    }

    #[test]
    fn a_number_alone_is_refused_with_what_to_write() {
        assert_eq!(
            parse_size(" 10 ").unwrap_err().to_string(),
            "the unit is missing; write `10GiB`, `10MiB` or `10B`"
        );
        assert_eq!(
            parse_duration("1h 30").unwrap_err().to_string(),
            "the unit is missing; units are ns us ms s m h d w month y"
        );
        assert_eq!(
            parse_size("3 PB").unwrap_err().to_string(),
            "unknown unit `PB`; units are B kB MB GB TB KiB MiB GiB TiB and %"
        );
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "[0-9.]{0,30} ?[a-zA-Zµ% ]{0,8}[0-9a-z]{0,5}") {
            let _ = (parse_duration(&text), parse_size(&text));
        }
    }
}

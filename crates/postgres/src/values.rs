//! The values of parameters, as constants of a statement.
//!
//! Invariant: a value becomes one constant, whatever it has in it: texts are quoted, numbers are checked.

use logpond_record::Civil;

use crate::failure::{Code, Failure};

/// The number of the type of texts, which parameters have whose type is not known.
pub(crate) const TEXT_OID: u32 = 25;

/// Seconds from 1970 to 2000, where times of Postgres begin.
pub(crate) const EPOCH_S: i64 = 946_684_800;

/// Numbers of types of parameters.
mod oid {
    pub(super) const BOOL: u32 = 16;
    pub(super) const BYTEA: u32 = 17;
    pub(super) const INT8: u32 = 20;
    pub(super) const INT2: u32 = 21;
    pub(super) const INT4: u32 = 23;
    pub(super) const OID: u32 = 26;
    pub(super) const FLOAT4: u32 = 700;
    pub(super) const FLOAT8: u32 = 701;
    pub(super) const DATE: u32 = 1082;
    pub(super) const TIMESTAMP: u32 = 1114;
    pub(super) const TIMESTAMPTZ: u32 = 1184;
    pub(super) const NUMERIC: u32 = 1700;
    pub(super) const UUID: u32 = 2950;
}

/// Types of lists, with the types of their items.
const LISTS: [(u32, u32); 13] = [
    (1000, oid::BOOL),
    (1005, oid::INT2),
    (1007, oid::INT4),
    (1009, TEXT_OID),
    (1015, 1043),
    (1016, oid::INT8),
    (1021, oid::FLOAT4),
    (1022, oid::FLOAT8),
    (1028, oid::OID),
    (1115, oid::TIMESTAMP),
    (1185, oid::TIMESTAMPTZ),
    (1231, oid::NUMERIC),
    (2951, oid::UUID),
];

/// The most items of a list.
const ITEMS_MAX: usize = 10_000;

/// The constant of a value in this type and form.
///
/// # Errors
/// When it is no value of the type.
pub(crate) fn constant(value: Option<&[u8]>, oid: u32, is_binary: bool) -> Result<String, Failure> {
    let Some(bytes) = value else {
        return Ok(match name_of(oid) {
            Some(name) => format!("CAST(NULL AS {name})"),
            None => "NULL".to_owned(),
        });
    };
    let item = LISTS.iter().find(|(list, _)| *list == oid);
    match (item, is_binary) {
        (Some((_, item)), true) => list_of_bytes(bytes, *item),
        (Some((_, item)), false) => list_of_text(text(bytes)?, *item),
        (None, true) => of_bytes(bytes, oid),
        (None, false) => of_text(text(bytes)?, oid),
    }
}

/// The name of a type in a cast; none of texts, and of types that are not known.
pub(crate) fn name_of(oid: u32) -> Option<&'static str> {
    Some(match oid {
        oid::BOOL => "BOOLEAN",
        oid::BYTEA => "BYTEA",
        oid::INT8 | oid::OID => "BIGINT",
        oid::INT2 => "SMALLINT",
        oid::INT4 => "INT",
        oid::FLOAT4 => "REAL",
        oid::FLOAT8 => "DOUBLE",
        oid::DATE => "DATE",
        oid::TIMESTAMP => "TIMESTAMP",
        oid::TIMESTAMPTZ => "TIMESTAMP WITH TIME ZONE",
        TEXT_OID | 1043 | 1042 | 19 => "VARCHAR",
        _ => return None,
    })
}

fn text(bytes: &[u8]) -> Result<&str, Failure> {
    let invalid = |_| Failure::new(Code::InvalidText, "a parameter is not UTF-8");
    std::str::from_utf8(bytes).map_err(invalid)
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn of_text(text: &str, oid: u32) -> Result<String, Failure> {
    let invalid = |what: &str| {
        let message = format!("invalid input syntax for type {what}: \"{text}\"");
        Err(Failure::new(Code::InvalidText, message))
    };
    let trimmed = text.trim();
    match oid {
        oid::INT2 | oid::INT4 | oid::INT8 | oid::OID => match trimmed.parse::<i64>() {
            Ok(number) => Ok(of_number(number)),
            Err(_) => invalid("bigint"),
        },
        oid::FLOAT4 | oid::FLOAT8 => match trimmed.parse::<f64>() {
            Ok(number) => Ok(of_float(number)),
            Err(_) => invalid("double precision"),
        },
        oid::NUMERIC => of_decimal(trimmed).map_or_else(|| invalid("numeric"), Ok),
        oid::BOOL => match &*trimmed.to_ascii_lowercase() {
            "t" | "true" | "y" | "yes" | "on" | "1" => Ok("TRUE".to_owned()),
            "f" | "false" | "n" | "no" | "off" | "0" => Ok("FALSE".to_owned()),
            _ => invalid("boolean"),
        },
        oid::DATE | oid::TIMESTAMP | oid::TIMESTAMPTZ => {
            let name = name_of(oid).unwrap_or("TIMESTAMP");
            Ok(format!("CAST({} AS {name})", quoted(trimmed)))
        }
        oid::BYTEA => {
            let digits = trimmed.strip_prefix("\\x");
            let digits =
                digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
            digits.map_or_else(|| invalid("bytea"), |digits| Ok(format!("X'{digits}'")))
        }
        _ => Ok(quoted(text)),
    }
}

fn of_number(number: i64) -> String {
    if number < 0 {
        // The least one is no number with a sign.
        format!("CAST('{number}' AS BIGINT)")
    } else {
        number.to_string()
    }
}

fn of_float(number: f64) -> String {
    format!("CAST('{number}' AS DOUBLE)")
}

/// A number in digits, if it is one.
fn of_decimal(text: &str) -> Option<String> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = digits
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let has_digit = digits.bytes().any(|byte| byte.is_ascii_digit());
    let points = digits.bytes().filter(|byte| *byte == b'.').count();
    if !is_plain || !has_digit || points > 1 {
        return None;
    }
    let number = if text.starts_with('-') {
        format!("(-{digits})")
    } else {
        digits.to_owned()
    };
    Some(number)
}

fn of_bytes(bytes: &[u8], oid: u32) -> Result<String, Failure> {
    let wrong = || {
        let message = format!("invalid binary form of a parameter of type {oid}");
        Failure::new(Code::InvalidBinary, message)
    };
    let number = || -> Result<i64, Failure> {
        match *bytes {
            [a, b] => Ok(i64::from(i16::from_be_bytes([a, b]))),
            [a, b, c, d] if oid == oid::OID => Ok(i64::from(u32::from_be_bytes([a, b, c, d]))),
            [a, b, c, d] => Ok(i64::from(i32::from_be_bytes([a, b, c, d]))),
            [a, b, c, d, e, f, g, h] => Ok(i64::from_be_bytes([a, b, c, d, e, f, g, h])),
            _ => Err(wrong()),
        }
    };
    match oid {
        oid::BOOL => match bytes {
            [0] => Ok("FALSE".to_owned()),
            [1] => Ok("TRUE".to_owned()),
            _ => Err(wrong()),
        },
        oid::INT2 | oid::INT4 | oid::INT8 | oid::OID => number().map(of_number),
        oid::FLOAT4 => {
            let bytes = bytes.try_into().map_err(|_| wrong())?;
            Ok(of_float(f64::from(f32::from_be_bytes(bytes))))
        }
        oid::FLOAT8 => {
            let bytes = bytes.try_into().map_err(|_| wrong())?;
            Ok(of_float(f64::from_be_bytes(bytes)))
        }
        oid::TIMESTAMP | oid::TIMESTAMPTZ => time(number()?, oid).ok_or_else(wrong),
        oid::DATE => {
            let days = number()?
                .checked_mul(86_400)
                .and_then(|s| s.checked_add(EPOCH_S));
            let day = Civil::from_seconds(days.ok_or_else(wrong)?);
            Ok(format!(
                "CAST('{:04}-{:02}-{:02}' AS DATE)",
                day.year, day.month, day.day
            ))
        }
        oid::BYTEA => {
            let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            Ok(format!("X'{}'", digits.concat()))
        }
        oid::NUMERIC => numeric(bytes).ok_or_else(wrong),
        oid::UUID => uuid(bytes).ok_or_else(wrong),
        0 | 19 | TEXT_OID | 114 | 705 | 1042 | 1043 => Ok(quoted(text(bytes)?)),
        _ => {
            let message = format!("parameters of type {oid} are not supported in binary form");
            Err(Failure::new(Code::FeatureNotSupported, message))
        }
    }
}

/// A time of microseconds since 2000.
fn time(us: i64, oid: u32) -> Option<String> {
    let seconds = us.div_euclid(1_000_000).checked_add(EPOCH_S)?;
    let day = Civil::from_seconds(seconds);
    let (fraction, name) = (us.rem_euclid(1_000_000), name_of(oid)?);
    let zone = if oid == oid::TIMESTAMPTZ { "Z" } else { "" };
    Some(format!(
        "CAST('{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{fraction:06}{zone}' AS {name})",
        day.year, day.month, day.day, day.hour, day.minute, day.second
    ))
}

fn uuid(bytes: &[u8]) -> Option<String> {
    let bytes: [u8; 16] = bytes.try_into().ok()?;
    let digits = format!("{:032x}", u128::from_be_bytes(bytes));
    let (a, rest) = digits.split_at_checked(8)?;
    let (b, rest) = rest.split_at_checked(4)?;
    let (c, rest) = rest.split_at_checked(4)?;
    let (d, e) = rest.split_at_checked(4)?;
    Some(format!("'{a}-{b}-{c}-{d}-{e}'"))
}

/// Takes the first bytes.
fn split<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

/// A number in digits of four decimal ones.
fn numeric(mut bytes: &[u8]) -> Option<String> {
    let count = usize::from(u16::from_be_bytes(split(&mut bytes)?));
    let weight = i16::from_be_bytes(split(&mut bytes)?);
    let sign = u16::from_be_bytes(split(&mut bytes)?);
    let scale = usize::from(u16::from_be_bytes(split(&mut bytes)?));
    // As many digits as a statement has room for; others are no number of it.
    if count > 64 || scale > 256 || !(-64..=64).contains(&weight) || sign & 0x8000 != 0 {
        return None;
    }
    let mut digits = Vec::with_capacity(count);
    for _ in 0..count {
        digits.push(u16::from_be_bytes(split(&mut bytes)?));
    }
    let digit = |at: i16| {
        let place = usize::try_from(weight - at).ok();
        place
            .and_then(|place| digits.get(place))
            .copied()
            .unwrap_or(0)
    };
    let whole: String = (0..=weight.max(0))
        .rev()
        .map(|at| format!("{:04}", digit(at)))
        .collect();
    let whole = whole.trim_start_matches('0');
    let groups = i16::try_from(scale.div_ceil(4)).ok()?;
    let fraction: String = (1..=groups)
        .map(|at| format!("{:04}", digit(-at)))
        .collect();
    let fraction = fraction.get(..scale)?;
    let whole = if whole.is_empty() { "0" } else { whole };
    let number = if scale == 0 {
        whole.to_owned()
    } else {
        format!("{whole}.{fraction}")
    };
    let sign = if sign == 0x4000 { "-" } else { "" };
    of_decimal(&format!("{sign}{number}"))
}

fn list(items: &[String]) -> String {
    format!("ARRAY[{}]", items.join(", "))
}

fn list_of_bytes(mut bytes: &[u8], item: u32) -> Result<String, Failure> {
    let wrong = || Failure::new(Code::InvalidBinary, "invalid binary form of a list");
    let next = |bytes: &mut &[u8]| split::<4>(bytes).map(i32::from_be_bytes).ok_or_else(wrong);
    let dimensions = next(&mut bytes)?;
    let (_, _) = (next(&mut bytes)?, next(&mut bytes)?);
    if dimensions == 0 {
        return Ok(list(&[]));
    }
    let count = usize::try_from(next(&mut bytes)?).map_err(|_| wrong())?;
    let _ = next(&mut bytes)?;
    if dimensions != 1 || count > ITEMS_MAX {
        return Err(wrong());
    }
    let mut items = Vec::new();
    for _ in 0..count {
        let value = match usize::try_from(next(&mut bytes)?) {
            Ok(length) => {
                let (value, rest) = bytes.split_at_checked(length).ok_or_else(wrong)?;
                bytes = rest;
                Some(value)
            }
            Err(_) => None,
        };
        items.push(constant(value, item, true)?);
    }
    Ok(list(&items))
}

/// A list such as `{a,"b c",NULL}`.
fn list_of_text(text: &str, item: u32) -> Result<String, Failure> {
    let wrong = || {
        let message = format!("malformed array literal: \"{text}\"");
        Failure::new(Code::InvalidText, message)
    };
    let inner = text
        .trim()
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'));
    let mut chars = inner.ok_or_else(wrong)?.chars().peekable();
    let mut items = Vec::new();
    while chars.peek().is_some() {
        let mut value = String::new();
        let is_quoted = chars.next_if_eq(&'"').is_some();
        loop {
            match chars.next() {
                Some('\\') => value.extend(chars.next()),
                Some('"') if is_quoted => {
                    if chars.next().is_some_and(|next| next != ',') {
                        return Err(wrong());
                    }
                    break;
                }
                Some(',') if !is_quoted => break,
                Some('{' | '}') if !is_quoted => return Err(wrong()),
                Some(char) => value.push(char),
                None if is_quoted => return Err(wrong()),
                None => break,
            }
        }
        let is_null = !is_quoted && value.eq_ignore_ascii_case("null");
        let value = (!is_null).then_some(value.as_bytes());
        items.push(constant(value, item, false)?);
        if items.len() > ITEMS_MAX {
            return Err(wrong());
        }
    }
    Ok(list(&items))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_constants() {
        for (text, oid, expected) in [
            ("it's", 0, Some("'it''s'")),
            ("7", 25, Some("'7'")),
            ("7", oid::INT4, Some("7")),
            ("-7", oid::INT8, Some("CAST('-7' AS BIGINT)")),
            ("7; DROP", oid::INT8, None),
            ("1.50", oid::NUMERIC, Some("1.50")),
            ("-1.5", oid::NUMERIC, Some("(-1.5)")),
            ("1.5.2", oid::NUMERIC, None),
            ("1e3", oid::FLOAT8, Some("CAST('1000' AS DOUBLE)")),
            ("t", oid::BOOL, Some("TRUE")),
            ("maybe", oid::BOOL, None),
            (
                "2026-03-02 01:00:00+01",
                oid::TIMESTAMPTZ,
                Some("CAST('2026-03-02 01:00:00+01' AS TIMESTAMP WITH TIME ZONE)"),
            ),
            ("\\x00ff", oid::BYTEA, Some("X'00ff'")),
            (
                "{1,2,NULL}",
                1016,
                Some("ARRAY[1, 2, CAST(NULL AS BIGINT)]"),
            ),
            ("{a,\"b,'c\\\"\"}", 1009, Some("ARRAY['a', 'b,''c\"']")),
            ("{1,2", 1016, None),
        ] {
            let found = constant(Some(text.as_bytes()), oid, false).ok();
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn binary_values_become_constants() {
        let numeric = [0, 2, 0, 0, 0x40, 0, 0, 2, 0, 12, 0x13, 0x88];
        let list: Vec<u8> = [1_i32, 0, 23, 1, 1, 4, 5]
            .iter()
            .flat_map(|n| n.to_be_bytes())
            .collect();
        let table: [(&[u8], u32, Option<&str>); 9] = [
            (&[0, 5], oid::INT2, Some("5")),
            (&[0xff; 4], oid::INT4, Some("CAST('-1' AS BIGINT)")),
            (&[0xff; 4], oid::OID, Some("4294967295")),
            (&[1], oid::BOOL, Some("TRUE")),
            (&[0; 3], oid::INT8, None),
            (&numeric, oid::NUMERIC, Some("(-12.50)")),
            (
                &[0; 8],
                oid::TIMESTAMPTZ,
                Some("CAST('2000-01-01T00:00:00.000000Z' AS TIMESTAMP WITH TIME ZONE)"),
            ),
            (&list, 1007, Some("ARRAY[5]")),
            (b"it's", 25, Some("'it''s'")),
        ];
        for (bytes, oid, expected) in table {
            let found = constant(Some(bytes), oid, true).ok();
            assert_eq!(found.as_deref(), expected, "{bytes:?}");
        }
        for length in 0..numeric.len() {
            assert!(constant(numeric.get(..length), oid::NUMERIC, true).is_err());
        }
        for length in 0..list.len() {
            assert!(constant(list.get(..length), 1007, true).is_err());
        }
    }
}

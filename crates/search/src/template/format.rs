//! `printf`: verbs with flags, width and precision.

use logpond_record::cast;

use super::text::check_growth;
use super::value::Value;

/// The widest field; wider ones would fill memory.
const WIDTH_MAX: usize = 4096;

/// The most significant digits that are asked for in vain: a float has seventeen.
const DIGITS_MAX: usize = 40;

/// Appends a float as Go prints it: the shortest form, with an exponent from a million on and for small
/// ones.
pub(super) fn write_float(float: f64, out: &mut Vec<u8>) {
    let text = match float {
        f if f.is_nan() => "NaN".to_owned(),
        f if f.is_infinite() => if f > 0.0 { "+Inf" } else { "-Inf" }.to_owned(),
        0.0 => if float.is_sign_negative() { "-0" } else { "0" }.to_owned(),
        f if (1e-4..1e6).contains(&f.abs()) => f.to_string(),
        f => exponential(f, None),
    };
    out.extend_from_slice(text.as_bytes());
}

/// `1e+06`
fn exponential(float: f64, precision: Option<usize>) -> String {
    let text = match precision {
        Some(precision) => format!("{float:.precision$e}"),
        None => format!("{float:e}"),
    };
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return text;
    };
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// So many significant digits, without zeros at their end: `%.4g`.
pub(super) fn general(float: f64, digits: usize) -> String {
    if !float.is_finite() || float == 0.0 {
        let mut text = Vec::new();
        write_float(float, &mut text);
        return String::from_utf8_lossy(&text).into_owned();
    }
    // More digits than a float has only show how it is stored.
    let digits = digits.clamp(1, DIGITS_MAX);
    let text = exponential(float, Some(digits - 1));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let power: i32 = exponent.parse().unwrap_or(0);
    let without_zeros = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    match usize::try_from(power + 4) {
        Ok(_) if power < cast::low_i32(digits) => {
            let places = usize::try_from(cast::low_i32(digits) - 1 - power).unwrap_or(0);
            without_zeros(&format!("{float:.places$}"))
        }
        _ => format!("{}e{exponent}", without_zeros(mantissa)),
    }
}

/// What a format is filled with.
struct Arguments<'v> {
    all: &'v [Value],
    /// The next one.
    at: usize,
    /// Whether some were asked for by number, and so none is left over.
    are_numbered: bool,
    /// Whether the number that was asked for is there.
    is_good: bool,
}

impl<'v> Arguments<'v> {
    fn next(&mut self) -> Option<&'v Value> {
        let value = self.all.get(self.at)?;
        self.at += 1;
        Some(value)
    }

    /// Reads `[n]`, if it stands there: that argument is the next one.
    fn take_number(&mut self, rest: &mut &[u8]) {
        let Some(inside) = rest.strip_prefix(b"[") else {
            return;
        };
        self.are_numbered = true;
        let Some(end) = inside.iter().position(|b| *b == b']') else {
            *rest = inside;
            self.is_good = false;
            return;
        };
        let number = std::str::from_utf8(&inside[..end]).ok();
        let number = number.and_then(|number| number.parse::<usize>().ok());
        let at = number.and_then(|number| number.checked_sub(1));
        match at.filter(|at| *at < self.all.len()) {
            Some(at) => self.at = at,
            None => self.is_good = false,
        }
        *rest = &inside[end + 1..];
    }
}

#[derive(Default)]
struct Verb {
    is_left: bool,
    has_sign: bool,
    has_space: bool,
    has_zeros: bool,
    is_alternate: bool,
    width: usize,
    precision: Option<usize>,
}

/// Fills a format.
///
/// # Errors
/// When that becomes too long.
pub(super) fn printf(format: &[u8], arguments: &[Value]) -> Result<Vec<u8>, String> {
    let given: usize = arguments.iter().map(Value::bytes).sum();
    let mut out = Vec::new();
    let mut rest = format;
    let mut arguments = Arguments {
        all: arguments,
        at: 0,
        are_numbered: false,
        is_good: true,
    };
    while let Some(at) = memchr::memchr(b'%', rest) {
        // An argument may stand in many places.
        check_growth(out.len(), format.len() + given)?;
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        arguments.is_good = true;
        let verb = flags(&mut rest, &mut arguments, &mut out);
        let Some((&letter, behind)) = rest.split_first() else {
            out.extend_from_slice(b"%!(NOVERB)");
            break;
        };
        rest = behind;
        if letter == b'%' {
            out.push(b'%');
            continue;
        }
        if !arguments.is_good {
            out.extend_from_slice(format!("%!{}(BADINDEX)", char::from(letter)).as_bytes());
            continue;
        }
        match arguments.next() {
            Some(value) => verb.write(letter, value, &mut out),
            None => out.extend_from_slice(format!("%!{}(MISSING)", char::from(letter)).as_bytes()),
        }
    }
    out.extend_from_slice(rest);
    let extra = arguments.all.get(arguments.at..).unwrap_or_default();
    if !extra.is_empty() && !arguments.are_numbered {
        out.extend_from_slice(b"%!(EXTRA ");
        for (at, value) in extra.iter().enumerate() {
            if at > 0 {
                out.extend_from_slice(b", ");
            }
            out.extend_from_slice(value.kind().as_bytes());
            out.push(b'=');
            value.write(&mut out);
        }
        out.push(b')');
    }
    check_growth(out.len(), format.len() + given)?;
    Ok(out)
}

fn bounded(width: usize) -> usize {
    width.min(WIDTH_MAX)
}

/// Reads what stands between `%` and the letter; a `*` stands for the next argument, and `[n]` says which
/// one that is.
fn flags(rest: &mut &[u8], arguments: &mut Arguments<'_>, out: &mut Vec<u8>) -> Verb {
    let mut verb = Verb::default();
    while let Some((&flag, behind)) = rest.split_first() {
        match flag {
            b'-' => verb.is_left = true,
            b'+' => verb.has_sign = true,
            b' ' => verb.has_space = true,
            b'0' => verb.has_zeros = true,
            b'#' => verb.is_alternate = true,
            _ => break,
        }
        *rest = behind;
    }
    let number = |rest: &mut &[u8]| {
        let mut number = 0usize;
        while let Some((digit @ b'0'..=b'9', behind)) = rest.split_first() {
            number = (number * 10 + usize::from(digit - b'0')).min(WIDTH_MAX);
            *rest = behind;
        }
        number
    };
    arguments.take_number(rest);
    if let Some(behind) = rest.strip_prefix(b"*") {
        *rest = behind;
        match arguments.next() {
            Some(Value::Int(width)) => {
                verb.is_left |= *width < 0;
                verb.width = usize::try_from(width.unsigned_abs()).map_or(WIDTH_MAX, bounded);
            }
            _ => out.extend_from_slice(b"%!(BADWIDTH)"),
        }
    } else {
        verb.width = number(rest);
    }
    if let Some(behind) = rest.strip_prefix(b".") {
        *rest = behind;
        arguments.take_number(rest);
        match rest.strip_prefix(b"*") {
            Some(behind) => {
                *rest = behind;
                verb.precision = precision(arguments.next(), out);
            }
            None => verb.precision = Some(number(rest)),
        }
    }
    arguments.take_number(rest);
    verb
}

/// The precision that an argument says; a negative one is none.
fn precision(argument: Option<&Value>, out: &mut Vec<u8>) -> Option<usize> {
    match argument {
        Some(Value::Int(precision)) if *precision < 0 => None,
        Some(Value::Int(precision)) => Some(usize::try_from(*precision).map_or(WIDTH_MAX, bounded)),
        _ => {
            out.extend_from_slice(b"%!(BADPREC)");
            None
        }
    }
}

/// A number as a character in quotes.
fn quoted_char(number: i64) -> String {
    let c = u32::try_from(number).ok().and_then(char::from_u32);
    let mut out = String::from("'");
    match c.unwrap_or(char::REPLACEMENT_CHARACTER) {
        '\'' => out.push_str("\\'"),
        '"' => out.push('"'),
        c => quote(c, &mut out),
    }
    out.push('\'');
    out
}

/// A text in quotes, with the escapes of Go.
fn quoted(text: &[u8]) -> String {
    let mut out = String::from("\"");
    for chunk in text.utf8_chunks() {
        chunk.valid().chars().for_each(|c| quote(c, &mut out));
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out.push('"');
    out
}

fn quote(c: char, out: &mut String) {
    let short = match c {
        '"' | '\\' => Some(c),
        '\x07' => Some('a'),
        '\x08' => Some('b'),
        '\x0b' => Some('v'),
        '\x0c' => Some('f'),
        '\n' => Some('n'),
        '\r' => Some('r'),
        '\t' => Some('t'),
        _ => None,
    };
    // Marks that combine are shown, other than where Rust escapes a character alone.
    let is_shown =
        c == '\'' || ('\u{300}'..='\u{36f}').contains(&c) || c.escape_debug().count() == 1;
    match (short, u32::from(c)) {
        (Some(letter), _) => out.extend(['\\', letter]),
        (None, _) if is_shown => out.push(c),
        (None, number @ (..0x20 | 0x7f)) => out.push_str(&format!("\\x{number:02x}")),
        (None, number @ ..0x1_0000) => out.push_str(&format!("\\u{number:04x}")),
        (None, number) => out.push_str(&format!("\\U{number:08x}")),
    }
}

impl Verb {
    fn write(&self, letter: u8, value: &Value, out: &mut Vec<u8>) {
        let text = match (letter, value) {
            (b's' | b'v', Value::Text(text)) => match self.precision {
                Some(precision) if letter == b's' => {
                    let text = String::from_utf8_lossy(text);
                    text.chars()
                        .take(precision)
                        .collect::<String>()
                        .into_bytes()
                }
                _ => text.clone(),
            },
            (b'v', value) => value.printed(),
            (b's', Value::Int(_) | Value::Float(_) | Value::Bool(_)) => self.wrong(letter, value),
            (b's', value) => value.printed(),
            (b'T', value) => match value {
                Value::Nil => b"<nil>".to_vec(),
                value => value.kind().as_bytes().to_vec(),
            },
            (b'q', Value::Text(text)) => quoted(text).into_bytes(),
            (b'q', Value::Int(int)) => quoted_char(*int).into_bytes(),
            (b't', Value::Bool(is_true)) => is_true.to_string().into_bytes(),
            (b'd', Value::Int(int)) => self.signed(int.to_string(), *int >= 0),
            (b'x', Value::Int(int)) => format!("{int:x}").into_bytes(),
            (b'X', Value::Int(int)) => format!("{int:X}").into_bytes(),
            (b'o', Value::Int(int)) => format!("{int:o}").into_bytes(),
            (b'U', Value::Int(int)) => format!("U+{int:04X}").into_bytes(),
            (b'b', Value::Int(int)) => format!("{int:b}").into_bytes(),
            (b'c', Value::Int(int)) => {
                let c = u32::try_from(*int).ok().and_then(char::from_u32);
                c.unwrap_or(char::REPLACEMENT_CHARACTER)
                    .to_string()
                    .into_bytes()
            }
            (b'x', Value::Text(text)) => text
                .iter()
                .map(|b| format!("{b:02x}"))
                .collect::<String>()
                .into_bytes(),
            (b'f' | b'F', Value::Float(float)) => {
                let precision = self.precision.unwrap_or(6);
                self.signed(format!("{float:.precision$}"), *float >= 0.0)
            }
            (b'e', Value::Float(float)) => {
                let text = exponential(*float, Some(self.precision.unwrap_or(6)));
                self.signed(text, *float >= 0.0)
            }
            (b'g', Value::Float(float)) => match self.precision {
                Some(precision) => self.signed(general(*float, precision), *float >= 0.0),
                None => value.printed(),
            },
            _ => self.wrong(letter, value),
        };
        self.pad(
            &text,
            !matches!(letter, b's' | b'q' | b'v' | b't' | b'T'),
            out,
        );
    }

    fn signed(&self, text: String, is_positive: bool) -> Vec<u8> {
        match (is_positive, self.has_sign, self.has_space) {
            (true, true, _) => format!("+{text}").into_bytes(),
            (true, false, true) => format!(" {text}").into_bytes(),
            _ => text.into_bytes(),
        }
    }

    fn wrong(&self, letter: u8, value: &Value) -> Vec<u8> {
        let mut text = format!("%!{}({}=", char::from(letter), value.kind()).into_bytes();
        value.write(&mut text);
        text.push(b')');
        text
    }

    fn pad(&self, text: &[u8], is_number: bool, out: &mut Vec<u8>) {
        let missing = self
            .width
            .saturating_sub(String::from_utf8_lossy(text).chars().count());
        let fill = |byte: u8, out: &mut Vec<u8>| out.extend(std::iter::repeat_n(byte, missing));
        if self.is_left {
            out.extend_from_slice(text);
            fill(b' ', out);
        } else if self.has_zeros && is_number {
            let signs = text
                .iter()
                .take_while(|b| matches!(b, b'+' | b'-' | b' '))
                .count();
            out.extend_from_slice(&text[..signs]);
            fill(b'0', out);
            out.extend_from_slice(&text[signs..]);
        } else {
            fill(b' ', out);
            out.extend_from_slice(text);
        }
    }
}

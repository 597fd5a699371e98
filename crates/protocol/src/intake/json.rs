//! JSON objects, as RFC 8259 defines them and nothing else.
//!
//! Invariants:
//! - Nothing recurses. Objects nest at most `JSON_DEPTH_MAX` levels, and so does all that an array
//!   holds, which is not flattened. Of a line that nests deeper, what is deeper is text.
//! - Every byte is looked at once, in order, and an error names the first byte that cannot be.
//!
//! [`validate`] is what a push is checked with. `flatten` makes a record of any object, `learned`
//! does the same faster for objects whose names and kinds were seen before.

mod edit;
mod elements;
mod flatten;
mod learned;

pub(crate) use edit::{JsonChange, edit, edit_list};
pub(crate) use elements::elements;
pub(crate) use flatten::{flatten_line, is_object};
pub(crate) use learned::Outlines;

use std::borrow::Cow;
use std::fmt;

use logpond_record::limits::JSON_DEPTH_MAX;
use logpond_record::{Value, cast, json_on_one_line};

/// Why a text is not a JSON object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// Byte at which the text stops being JSON, counted from 0.
    pub at: usize,
    /// What is wrong there.
    pub reason: JsonReason,
}

/// What is wrong with a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonReason {
    /// Something else must stand there.
    Expected(&'static str),
    /// A string holds a control character, which must be escaped.
    ControlCharacter,
    /// Nesting is deeper than `JSON_DEPTH_MAX`.
    TooDeep,
    /// The text is not UTF-8.
    NotUtf8,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            JsonReason::Expected(what) => write!(f, "expected {what}")?,
            JsonReason::ControlCharacter => f.write_str("control character in a string")?,
            JsonReason::TooDeep => write!(f, "nested deeper than {JSON_DEPTH_MAX} levels")?,
            JsonReason::NotUtf8 => f.write_str("not UTF-8")?,
        }
        write!(f, " at byte {}", self.at)
    }
}

impl std::error::Error for JsonError {}

/// The name of what must stand behind an object.
pub(crate) const END_OF_LINE: &str = "the end of the line";

/// Checks that `raw` is one JSON object, with white space around it or not.
pub fn validate(raw: &[u8]) -> Result<(), JsonError> {
    let text = std::str::from_utf8(raw).map_err(|error| JsonError {
        at: error.valid_up_to(),
        reason: JsonReason::NotUtf8,
    })?;
    let mut scanner = Scanner::new(text);
    scanner.space();
    scanner.byte(b'{', "'{'")?;
    scanner.space();
    match scanner.peek() {
        Some(b'}') => scanner.at += 1,
        _ => check_members(&mut scanner)?,
    }
    scanner.end()
}

/// Checks the members of an object that is not empty, and its closing brace, as `flatten` reads
/// them.
fn check_members(scanner: &mut Scanner<'_>) -> Result<(), JsonError> {
    let mut depth = 1;
    loop {
        scanner.name()?;
        match scanner.peek() {
            Some(b'"') => {
                scanner.at += 1;
                scanner.string_rest()?;
            }
            Some(b'{') => {
                let start = scanner.at;
                scanner.at += 1;
                scanner.space();
                if scanner.peek() == Some(b'}') {
                    scanner.at += 1;
                } else {
                    scanner.nest(&mut depth, start)?;
                    continue;
                }
            }
            Some(b'[') => scanner.skip_value()?,
            _ => scanner.skip_bare()?,
        }
        if !scanner.next_member(&mut depth)? {
            return Ok(());
        }
    }
}

/// A position in a text that is read as JSON.
#[derive(Clone, Copy)]
pub(crate) struct Scanner<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
    /// Whether values may nest deeper than `JSON_DEPTH_MAX`.
    pub(crate) is_deep: bool,
}

/// The escapes in a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Escapes {
    /// There are none: the text is the value.
    None,
    /// All are what rendering the value gives.
    Canonical,
    /// Rendering the value gives another text.
    Other,
}

/// A scalar or an array, as a slot holds it.
pub(crate) struct Token<'a> {
    pub(crate) value: Value<'a>,
    /// Letter of the kind of slot.
    pub(crate) kind: u8,
    /// First byte of the slot and the first after it; without the quotes of a string.
    pub(crate) span: (usize, usize),
    /// Whether rendering the value gives the text back.
    pub(crate) canonical: bool,
}

impl<'a> Scanner<'a> {
    /// At the start of `text`.
    pub(crate) fn new(text: &'a str) -> Scanner<'a> {
        Scanner {
            text,
            at: 0,
            is_deep: false,
        }
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes().get(self.at).copied()
    }

    #[cold]
    pub(crate) fn expected(&self, what: &'static str) -> JsonError {
        JsonError {
            at: self.at,
            reason: JsonReason::Expected(what),
        }
    }

    /// Skips white space.
    #[inline]
    pub(crate) fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// Checks that nothing but white space follows.
    pub(crate) fn end(&mut self) -> Result<(), JsonError> {
        self.space();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.expected(END_OF_LINE)),
        }
    }

    /// Skips `byte`, which is called `name`.
    #[inline]
    pub(crate) fn byte(&mut self, byte: u8, name: &'static str) -> Result<(), JsonError> {
        if self.peek() != Some(byte) {
            return Err(self.expected(name));
        }
        self.at += 1;
        Ok(())
    }

    /// Goes one level deeper, for the value that begins at `start`.
    #[inline]
    fn nest(&self, depth: &mut usize, start: usize) -> Result<(), JsonError> {
        if *depth == JSON_DEPTH_MAX {
            return Err(JsonError {
                at: start,
                reason: JsonReason::TooDeep,
            });
        }
        *depth += 1;
        Ok(())
    }

    /// Skips what follows a member's value up to the next member: the braces of the objects that
    /// end there, each one level less, and the comma. Whether there is a next member; there is
    /// none behind the brace of the outermost object.
    #[inline]
    fn next_member(&mut self, depth: &mut usize) -> Result<bool, JsonError> {
        loop {
            self.space();
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    self.space();
                    return Ok(true);
                }
                Some(b'}') => {
                    self.at += 1;
                    *depth -= 1;
                    if *depth == 0 {
                        return Ok(false);
                    }
                }
                _ => return Err(self.expected("',' or '}'")),
            }
        }
    }

    /// Skips a member's name and the colon after it; gives the inside of the name's quotes.
    #[inline]
    pub(crate) fn name(&mut self) -> Result<(&'a str, Escapes), JsonError> {
        self.byte(b'"', "a name in quotes")?;
        let start = self.at;
        let escapes = self.string_rest()?;
        let name = &self.text[start..self.at - 1];
        self.space();
        self.byte(b':', "':'")?;
        self.space();
        Ok((name, escapes))
    }

    /// Skips the rest of a string, behind its opening quote, with the closing one.
    #[inline]
    pub(crate) fn string_rest(&mut self) -> Result<Escapes, JsonError> {
        let mut escapes = Escapes::None;
        loop {
            self.at = special(self.bytes(), self.at);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escapes);
                }
                Some(b'\\') => escapes = escapes.max(self.escape()?),
                Some(_) => {
                    return Err(JsonError {
                        at: self.at,
                        reason: JsonReason::ControlCharacter,
                    });
                }
                None => return Err(self.expected("'\"'")),
            }
        }
    }

    /// Skips an escape.
    fn escape(&mut self) -> Result<Escapes, JsonError> {
        let wrong = self.expected("an escape of JSON");
        let after = &self.bytes()[self.at + 1..];
        let (length, escapes) = match after.first() {
            Some(b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't') => (2, Escapes::Canonical),
            Some(b'/') => (2, Escapes::Other),
            Some(b'u') => {
                let hex: &[u8; 4] = after[1..].first_chunk().ok_or_else(|| wrong.clone())?;
                if !hex.iter().all(u8::is_ascii_hexdigit) {
                    return Err(wrong);
                }
                (6, hex_escapes(*hex))
            }
            _ => return Err(wrong),
        };
        self.at += length;
        Ok(escapes)
    }

    /// Skips `true`, `false` or `null`.
    #[inline]
    fn word(&mut self, word: &'static str) -> Result<(), JsonError> {
        if !self.bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.expected("a value"));
        }
        self.at += word.len();
        Ok(())
    }

    /// Skips a number; gives whether it has a fraction or an exponent.
    #[inline]
    fn number(&mut self) -> Result<bool, JsonError> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(self.expected("a digit")),
        }
        let whole_end = self.at;
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.some_digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.some_digits()?;
        }
        Ok(self.at > whole_end)
    }

    #[inline]
    fn digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    fn some_digits(&mut self) -> Result<(), JsonError> {
        let before = self.at;
        self.digits();
        if self.at > before {
            Ok(())
        } else {
            Err(self.expected("a digit"))
        }
    }

    /// Skips a scalar that is no string.
    #[inline]
    fn skip_bare(&mut self) -> Result<(), JsonError> {
        match self.peek() {
            Some(b'-' | b'0'..=b'9') => self.number().map(|_| ()),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            _ => Err(self.expected("a value")),
        }
    }

    /// Skips an array, or any other value. The nesting is kept in the bits of one word: 1 for an object;
    /// words of outer levels are kept beside it.
    pub(crate) fn skip_value(&mut self) -> Result<(), JsonError> {
        const _: () = assert!(JSON_DEPTH_MAX <= u64::BITS as usize);
        let mut objects = 0u64;
        let mut outer: Vec<u64> = Vec::new();
        let mut depth = 0;
        loop {
            // A value begins here.
            let open = self.peek();
            match open {
                Some(b'"') => {
                    self.at += 1;
                    self.string_rest()?;
                }
                Some(b'{' | b'[') => {
                    let start = self.at;
                    self.at += 1;
                    self.space();
                    let object = open == Some(b'{');
                    if self.peek() == Some(if object { b'}' } else { b']' }) {
                        self.at += 1;
                    } else {
                        if self.is_deep && depth == JSON_DEPTH_MAX {
                            outer.push(objects);
                            (objects, depth) = (0, 0);
                        }
                        self.nest(&mut depth, start)?;
                        objects = objects << 1 | u64::from(object);
                        if object {
                            self.name()?;
                        }
                        continue;
                    }
                }
                _ => self.skip_bare()?,
            }
            // A value ended here.
            loop {
                if depth == 0 {
                    match outer.pop() {
                        Some(levels) => (objects, depth) = (levels, JSON_DEPTH_MAX),
                        None => return Ok(()),
                    }
                }
                self.space();
                let object = objects & 1 == 1;
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        self.space();
                        if object {
                            self.name()?;
                        }
                        break;
                    }
                    Some(b'}') if object => {}
                    Some(b']') if !object => {}
                    _ if object => return Err(self.expected("',' or '}'")),
                    _ => return Err(self.expected("',' or ']'")),
                }
                self.at += 1;
                objects >>= 1;
                depth -= 1;
            }
        }
    }

    /// Reads a value that fills a slot: anything but an object that has members. An object is
    /// given as `None` and is not skipped.
    #[inline]
    pub(crate) fn token(&mut self) -> Result<Option<Token<'a>>, JsonError> {
        let start = self.at;
        let (value, kind) = match self.peek() {
            Some(b'"') => {
                self.at += 1;
                let escapes = self.string_rest()?;
                return Ok(Some(self.string_token(start + 1, escapes)));
            }
            Some(b'-' | b'0'..=b'9') => return self.number_token().map(Some),
            Some(b't') => {
                self.word("true")?;
                (Value::Bool(true), b'b')
            }
            Some(b'f') => {
                self.word("false")?;
                (Value::Bool(false), b'b')
            }
            Some(b'n') => {
                self.word("null")?;
                (Value::Null, b'n')
            }
            Some(b'[') if self.is_deep => return self.deep_token().map(Some),
            Some(b'[') => {
                self.skip_value()?;
                return Ok(Some(self.json_token(start)));
            }
            Some(b'{') => {
                self.at += 1;
                self.space();
                if self.peek() != Some(b'}') {
                    self.at = start;
                    return Ok(None);
                }
                self.at += 1;
                return Ok(Some(self.json_token(start)));
            }
            _ => return Err(self.expected("a value")),
        };
        Ok(Some(Token {
            value,
            kind,
            span: (start, self.at),
            canonical: true,
        }))
    }

    /// Reads a list or an object as one value: as a text if it nests deeper than is allowed.
    fn deep_token(&mut self) -> Result<Token<'a>, JsonError> {
        let start = self.at;
        let mut strict = Scanner {
            is_deep: false,
            ..*self
        };
        if strict.skip_value().is_ok() {
            self.at = strict.at;
            return Ok(self.json_token(start));
        }
        self.skip_value()?;
        Ok(Token {
            value: Value::Str(Cow::Borrowed(&self.text[start..self.at])),
            kind: b't',
            span: (start, self.at),
            canonical: true,
        })
    }

    /// The list or the empty object that began at `start` and was just skipped. Its value is one line, also
    /// of an indented document.
    fn json_token(&self, start: usize) -> Token<'a> {
        let text = json_on_one_line(&self.text[start..self.at]);
        Token {
            canonical: matches!(text, Cow::Borrowed(_)),
            value: Value::Json(text),
            kind: b'r',
            span: (start, self.at),
        }
    }

    /// The string whose inside began at `start` and whose closing quote was just skipped.
    #[inline]
    pub(crate) fn string_token(&self, start: usize, escapes: Escapes) -> Token<'a> {
        let span = (start, self.at - 1);
        let inside = &self.text[start..self.at - 1];
        let value = match escapes {
            Escapes::None => Cow::Borrowed(inside),
            _ => Cow::Owned(unescape(inside)),
        };
        Token {
            value: Value::Str(value),
            kind: b'j',
            span,
            canonical: escapes != Escapes::Other,
        }
    }

    /// Reads a number.
    #[inline]
    pub(crate) fn number_token(&mut self) -> Result<Token<'a>, JsonError> {
        let start = self.at;
        let is_float = self.number()?;
        let (value, canonical) = number_value(&self.text[start..self.at], is_float);
        let kind = match value {
            Value::Int(_) => b'i',
            Value::Float(_) => b'f',
            _ => b'r',
        };
        Ok(Token {
            value,
            kind,
            span: (start, self.at),
            canonical,
        })
    }
}

/// The value of a number that is written as JSON writes numbers, and whether it renders as that
/// text. One that no integer of 64 bits and no float is stays text: as a float it would be another one.
pub(crate) fn number_value(text: &str, is_float: bool) -> (Value<'_>, bool) {
    if !is_float && text != "-0" {
        if let Some(int) = small_int(text.as_bytes()) {
            return (Value::Int(int), true);
        }
        return (text.parse().map_or(as_written(text), Value::Int), true);
    }
    let decimal = Decimal::read(text.as_bytes());
    if let Some(float) = decimal.exact() {
        return (Value::Float(float), is_float && decimal.canonical);
    }
    let float: f64 = text.parse().unwrap_or(f64::INFINITY);
    let written = logpond_record::Decimal::parse(text.as_bytes());
    if written.is_some_and(|written| written.is_written_float(float)) {
        (Value::Float(float), is_float && decimal.canonical)
    } else {
        (as_written(text), true)
    }
}

fn as_written(text: &str) -> Value<'_> {
    Value::Json(Cow::Borrowed(text))
}

/// A whole number of up to 18 digits.
#[inline]
fn small_int(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.len() > 18 || (negative && digits == b"0") {
        return None;
    }
    let value = digits
        .iter()
        .fold(0i64, |value, digit| value * 10 + i64::from(digit - b'0'));
    Some(if negative { -value } else { value })
}

/// The decimal digits of a number.
struct Decimal {
    negative: bool,
    /// Significant digits as a number; meaningless if there are more than 19.
    mantissa: u64,
    digits: u32,
    exponent: i32,
    /// Whether the shortest text of the float is the text: a fraction without superfluous zeros,
    /// no exponent, and few enough digits that each of them counts.
    canonical: bool,
}

impl Decimal {
    fn read(text: &[u8]) -> Decimal {
        let mut decimal = Decimal {
            negative: text.first() == Some(&b'-'),
            mantissa: 0,
            digits: 0,
            exponent: 0,
            canonical: true,
        };
        let mut in_fraction = false;
        let mut fraction_digits = 0;
        for (at, byte) in text.iter().enumerate() {
            match byte {
                b'0'..=b'9' => {
                    if in_fraction {
                        fraction_digits += 1;
                        decimal.exponent = decimal.exponent.saturating_sub(1);
                    }
                    if decimal.digits > 0 || *byte != b'0' {
                        decimal.digits = decimal.digits.saturating_add(1);
                    }
                    if decimal.digits <= 19 {
                        let digit = u64::from(byte - b'0');
                        decimal.mantissa = decimal.mantissa.wrapping_mul(10).wrapping_add(digit);
                    }
                }
                b'.' => in_fraction = true,
                b'e' | b'E' => {
                    decimal.canonical = false;
                    let exponent = std::str::from_utf8(&text[at + 1..])
                        .ok()
                        .and_then(|e| e.parse::<i32>().ok());
                    // An exponent beyond 32 bits: no small float.
                    let exponent = exponent.unwrap_or(i32::MAX);
                    decimal.exponent = decimal.exponent.saturating_add(exponent);
                    break;
                }
                _ => {}
            }
        }
        let superfluous = fraction_digits > 1 && text.last() == Some(&b'0');
        decimal.canonical &= in_fraction && !superfluous && decimal.digits <= 15;
        decimal
    }

    /// The float, where one multiplication or division by an exact power of ten gives it exactly.
    fn exact(&self) -> Option<f64> {
        const POWERS: [f64; 23] = [
            1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
            1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
        ];
        if self.digits > 15 {
            return None;
        }
        let power = *POWERS.get(self.exponent.unsigned_abs() as usize)?;
        let magnitude = if self.exponent < 0 {
            cast::float(self.mantissa) / power
        } else {
            cast::float(self.mantissa) * power
        };
        Some(if self.negative { -magnitude } else { magnitude })
    }
}

/// What the digits of `\uXXXX` say about canonical form: only control characters without a letter
/// of their own are escaped so, in lower case.
fn hex_escapes(hex: [u8; 4]) -> Escapes {
    let lower = !hex.iter().any(u8::is_ascii_uppercase);
    let control = hex[0] == b'0' && hex[1] == b'0' && matches!(hex[2], b'0' | b'1');
    let lettered = hex[2] == b'0' && matches!(hex[3], b'8' | b'9' | b'a' | b'c' | b'd');
    if lower && control && !lettered {
        Escapes::Canonical
    } else {
        Escapes::Other
    }
}

/// The value of a string's inside, whose escapes were checked. Surrogates without a partner, which
/// JSON allows and UTF-8 does not, become U+FFFD.
pub(crate) fn unescape(inside: &str) -> String {
    let mut out = String::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (letter, length) = match after.as_bytes().first() {
            Some(b'b') => ('\u{8}', 1),
            Some(b'f') => ('\u{c}', 1),
            Some(b'n') => ('\n', 1),
            Some(b'r') => ('\r', 1),
            Some(b't') => ('\t', 1),
            Some(b'u') => unicode(after),
            Some(other) => (char::from(*other), 1),
            None => ('\u{fffd}', 0),
        };
        out.push(letter);
        rest = after.get(length..).unwrap_or("");
    }
    out.push_str(rest);
    out
}

/// The character of `uXXXX` or `uXXXX\uXXXX`, and the length of that.
fn unicode(text: &str) -> (char, usize) {
    let unit = |at: usize| u32::from_str_radix(text.get(at..at + 4)?, 16).ok();
    let Some(first) = unit(1) else {
        return ('\u{fffd}', 1);
    };
    if (0xd800..0xdc00).contains(&first)
        && text.get(5..7) == Some("\\u")
        && let Some(second @ 0xdc00..0xe000) = unit(7)
    {
        let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        return (char::from_u32(code).unwrap_or('\u{fffd}'), 11);
    }
    (char::from_u32(first).unwrap_or('\u{fffd}'), 5)
}

/// Whether a string's inside is its value as it stands.
pub(crate) fn is_plain(inside: &str) -> bool {
    special(inside.as_bytes(), 0) == inside.len()
}

/// The first byte at or after `at` that a string cannot hold as it is: a quote, a backslash or a
/// control character. Eight bytes at a time; the sums borrow only above the first hit.
#[inline]
fn special(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES * 0x80;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let quote = word ^ (ONES * u64::from(b'"'));
        let backslash = word ^ (ONES * u64::from(b'\\'));
        let hits = (quote.wrapping_sub(ONES) & !quote)
            | (backslash.wrapping_sub(ONES) & !backslash)
            | (word.wrapping_sub(ONES * 0x20) & !word);
        let hits = hits & HIGHS;
        if hits != 0 {
            return at + (hits.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while let Some(&byte) = bytes.get(at) {
        if byte < 0x20 || byte == b'"' || byte == b'\\' {
            break;
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests;

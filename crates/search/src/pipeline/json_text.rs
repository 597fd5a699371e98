//! JSON read member by member, without a tree.
//!
//! Values are handed over as they stand in the text. Nesting is bounded by [`DEPTH_MAX`].

use std::borrow::Cow;

/// The deepest nesting; bounds the recursion.
const DEPTH_MAX: usize = 64;

/// A value as it stands in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Json<'t> {
    /// What is between the quotes.
    Text(&'t [u8]),
    /// A number's text.
    Number(&'t [u8]),
    Bool(bool),
    Null,
    /// With its braces.
    Object(&'t [u8]),
    /// With its brackets.
    Array(&'t [u8]),
}

/// Why a text is no JSON: what is expected at this byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JsonError {
    pub(super) expected: &'static str,
    pub(super) at: usize,
}

impl JsonError {
    pub(super) fn describe(self) -> String {
        format!("expected {} at byte {}", self.expected, self.at)
    }
}

type Result<T> = std::result::Result<T, JsonError>;

/// Hands over the members of an object; `visit` says whether to go on.
pub(super) fn each_member<'t>(
    text: &'t [u8],
    mut visit: impl FnMut(&'t [u8], Json<'t>) -> Result<bool>,
) -> Result<()> {
    let mut reader = Reader { text, at: 0 };
    reader.skip_space();
    reader.expect(b'{', "an object")?;
    reader.skip_space();
    if reader.take(b'}') {
        return Ok(());
    }
    loop {
        reader.skip_space();
        let name = reader.text()?;
        reader.skip_space();
        reader.expect(b':', "a colon")?;
        let value = reader.value(0)?;
        if !visit(name, value)? {
            return Ok(());
        }
        reader.skip_space();
        if reader.take(b'}') {
            return Ok(());
        }
        reader.expect(b',', "a comma or a closing brace")?;
    }
}

/// Hands over the elements of an array; `visit` says whether to go on.
pub(super) fn each_element<'t>(
    text: &'t [u8],
    mut visit: impl FnMut(Json<'t>) -> Result<bool>,
) -> Result<()> {
    let mut reader = Reader { text, at: 0 };
    reader.skip_space();
    reader.expect(b'[', "an array")?;
    reader.skip_space();
    if reader.take(b']') {
        return Ok(());
    }
    loop {
        let value = reader.value(0)?;
        if !visit(value)? {
            return Ok(());
        }
        reader.skip_space();
        if reader.take(b']') {
            return Ok(());
        }
        reader.expect(b',', "a comma or a closing bracket")?;
    }
}

/// The value at a place of an array.
pub(super) fn element(text: &[u8], wanted: usize) -> Option<Json<'_>> {
    let (mut at, mut found) = (0, None);
    let read = each_element(text, |value| {
        found = (at == wanted).then_some(value);
        at += 1;
        Ok(found.is_none())
    });
    // What stands behind a fault was not found.
    read.ok().and(found)
}

/// The value that a text is.
pub(super) fn value(text: &[u8]) -> Result<Json<'_>> {
    Reader { text, at: 0 }.value(0)
}

/// The value that all of a text is.
pub(super) fn whole(text: &[u8]) -> Result<Json<'_>> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.skip_space();
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(reader.error("nothing behind the value")),
    }
}

/// The text of what is between quotes. What is not UTF-8, or half of a pair, becomes U+FFFD.
pub(super) fn unescaped(inside: &[u8]) -> Cow<'_, str> {
    if memchr::memchr(b'\\', inside).is_none() {
        return String::from_utf8_lossy(inside);
    }
    let mut out = Vec::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let escape = rest.get(at + 1).copied().unwrap_or(b'\\');
        rest = rest.get(at + 2..).unwrap_or_default();
        match escape {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'u' => {
                let (c, used) = unicode(rest);
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                rest = &rest[used..];
            }
            other => out.push(other),
        }
    }
    out.extend_from_slice(rest);
    Cow::Owned(match String::from_utf8(out) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// The character of `\u`, with a second half if there is one, and how many bytes it is.
fn unicode(rest: &[u8]) -> (char, usize) {
    let unit = |at: usize| {
        let digits = std::str::from_utf8(rest.get(at..at + 4)?).ok()?;
        u32::from_str_radix(digits, 16).ok()
    };
    let Some(first) = unit(0) else {
        return (char::REPLACEMENT_CHARACTER, 0);
    };
    if (0xd800..0xdc00).contains(&first)
        && rest.get(4..6) == Some(b"\\u")
        && let Some(second) = unit(6).filter(|unit| (0xdc00..0xe000).contains(unit))
    {
        let joined = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        return (
            char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER),
            10,
        );
    }
    (
        char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER),
        4,
    )
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<()> {
        if self.take(byte) {
            Ok(())
        } else {
            Err(self.error(expected))
        }
    }

    fn error(&self, expected: &'static str) -> JsonError {
        JsonError {
            expected,
            at: self.at,
        }
    }

    /// What is between quotes.
    fn text(&mut self) -> Result<&'t [u8]> {
        self.expect(b'"', "a text")?;
        let start = self.at;
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let Some(found) = memchr::memchr2(b'"', b'\\', rest) else {
                self.at = self.text.len();
                return Err(self.error("a closing quote"));
            };
            self.at += found;
            if self.take(b'"') {
                return Ok(&self.text[start..self.at - 1]);
            }
            self.at += 2;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Json<'t>> {
        self.skip_space();
        let start = self.at;
        Ok(match self.peek() {
            Some(b'"') => Json::Text(self.text()?),
            Some(b'{') => {
                self.skip(b'}', depth, true)?;
                Json::Object(&self.text[start..self.at])
            }
            Some(b'[') => {
                self.skip(b']', depth, false)?;
                Json::Array(&self.text[start..self.at])
            }
            Some(b't') => self.word(b"true", Json::Bool(true))?,
            Some(b'f') => self.word(b"false", Json::Bool(false))?,
            Some(b'n') => self.word(b"null", Json::Null)?,
            Some(b'-' | b'0'..=b'9') => {
                let is_number = |b: &u8| b.is_ascii_digit() || b"+-.eE".contains(b);
                self.at += self.text[start..]
                    .iter()
                    .take_while(|b| is_number(b))
                    .count();
                Json::Number(&self.text[start..self.at])
            }
            _ => return Err(self.error("a value")),
        })
    }

    fn word(&mut self, word: &'static [u8], value: Json<'t>) -> Result<Json<'t>> {
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(value)
        } else {
            Err(self.error("a value"))
        }
    }

    /// Passes over an object or an array.
    fn skip(&mut self, close: u8, depth: usize, has_names: bool) -> Result<()> {
        if depth >= DEPTH_MAX {
            return Err(self.error("less nesting"));
        }
        self.at += 1;
        self.skip_space();
        if self.take(close) {
            return Ok(());
        }
        loop {
            self.skip_space();
            if has_names {
                self.text()?;
                self.skip_space();
                self.expect(b':', "a colon")?;
            }
            self.value(depth + 1)?;
            self.skip_space();
            if self.take(close) {
                return Ok(());
            }
            self.expect(b',', "a comma or the end of the list")?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_handed_over() {
        let text = br#" {"a" : "x\"\u00e9\ud83d\ude00", "b":{"c":[1,{}]}, "d":[1, "2"],"e":-1.5e3,"f":true,"g":null} "#;
        let mut found = Vec::new();
        each_member(text, |name, value| {
            found.push((String::from_utf8_lossy(name).into_owned(), value));
            Ok(true)
        })
        .unwrap();
        let Json::Text(inside) = found[0].1 else {
            panic!("no text");
        };
        assert_eq!(unescaped(inside), "x\"é😀");
        let expected = [
            ("b", Json::Object(br#"{"c":[1,{}]}"#)),
            ("d", Json::Array(br#"[1, "2"]"#)),
            ("e", Json::Number(b"-1.5e3")),
            ("f", Json::Bool(true)),
            ("g", Json::Null),
        ];
        for ((name, value), (expected_name, expected)) in found[1..].iter().zip(expected) {
            assert_eq!((name.as_str(), *value), (expected_name, expected));
        }
        assert_eq!(element(br#"[1, "2"]"#, 1), Some(Json::Text(b"2")));
        assert_eq!(element(br#"[1, "2"]"#, 2), None);
    }

    #[test]
    fn what_is_no_json_is_told() {
        let deep = "[".repeat(1000);
        let deep = format!("{{\"a\":{deep}");
        for text in [
            "",
            "x",
            "{",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":\"",
            "{\"a\":1",
            "[1]",
            "{\"a\":tru}",
            &deep,
        ] {
            assert!(
                each_member(text.as_bytes(), |_, _| Ok(true)).is_err(),
                "{text}"
            );
        }
        assert_eq!(unescaped(br"\ud800\u12"), "\u{fffd}\u{fffd}12");
    }
}

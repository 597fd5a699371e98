//! The overflow column `_more`: fields without a column, or with a value of another type than
//! their column, as one JSON object per row.
//!
//! Bytes that are no text are `"base64:…"`, with the first letter as an escape: no text is ever
//! written like that, so they are told apart from it, and readers of JSON find a text all the same.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use logpond_record::{Value, write_json_string};
use memchr::memmem;

/// What stands before bytes, as it is written.
pub const BYTES_MARK: &str = r"\u0062ase64:";

/// Appends one field to a row's object. The first field opens the object; the caller closes it
/// with `}` after the last one.
pub fn write_overflow(name: &str, value: &Value<'_>, out: &mut Vec<u8>) {
    out.push(if out.is_empty() { b'{' } else { b',' });
    write_json_string(name, out);
    out.push(b':');
    match value {
        Value::Bytes(bytes) => {
            let text = STANDARD_NO_PAD.encode(bytes);
            for part in ["\"", BYTES_MARK, &text, "\""] {
                out.extend_from_slice(part.as_bytes());
            }
        }
        value => value.write_json(out),
    }
}

/// Reads a row's object field by field.
///
/// It reads what [`write_overflow`] wrote; anything else ends the iteration.
#[derive(Clone, Debug)]
pub struct Overflow<'a> {
    /// All fields.
    all: &'a str,
    /// Those that were not read yet.
    rest: &'a str,
}

/// A field that is looked for in many objects.
#[derive(Clone, Debug)]
pub struct OverflowField {
    name: Box<str>,
    /// As it stands in objects that have it.
    written: memmem::Finder<'static>,
}

impl OverflowField {
    /// The field of this name.
    pub fn new(name: &str) -> OverflowField {
        let mut written = Vec::with_capacity(name.len() + 3);
        write_json_string(name, &mut written);
        written.push(b':');
        OverflowField {
            name: name.into(),
            written: memmem::Finder::new(&written).into_owned(),
        }
    }

    /// Whether an object may have it: it has, or something in it looks so.
    pub fn may_be_in(&self, object: &[u8]) -> bool {
        self.written.find(object).is_some()
    }

    /// Its value in an object.
    pub fn find<'a>(&self, object: &'a [u8]) -> Option<Value<'a>> {
        if self.may_be_in(object) {
            Overflow::find(object, &self.name)
        } else {
            None
        }
    }
}

impl<'a> Overflow<'a> {
    /// The fields of an object; none if the text is no object.
    pub fn new(object: &'a [u8]) -> Overflow<'a> {
        let text = std::str::from_utf8(object).unwrap_or("");
        let all = text.strip_prefix('{').unwrap_or("");
        Overflow { all, rest: all }
    }

    /// The value of one field.
    pub fn find(object: &'a [u8], name: &str) -> Option<Value<'a>> {
        Overflow::new(object).seek(name)
    }

    /// The value of one field, which is looked for behind the last one that was read, and then from the start:
    /// fields that are asked for in the order in which they stand cost one reading.
    pub fn field(&mut self, name: &str) -> Option<Value<'a>> {
        let place = self.rest;
        self.seek(name).or_else(|| {
            self.rest = self.all;
            let found = self.seek(name);
            if found.is_none() {
                self.rest = place;
            }
            found
        })
    }

    /// Goes on to a field, and behind it; its value.
    fn seek(&mut self, name: &str) -> Option<Value<'a>> {
        loop {
            let is_wanted = self.string()? == name;
            self.rest = self.rest.strip_prefix(':')?;
            if is_wanted {
                let value = self.value()?;
                self.rest = self.rest.strip_prefix([',', '}'])?;
                return Some(value);
            }
            let end = end_of_value(self.rest.as_bytes())?;
            self.rest = self.rest[end..].strip_prefix([',', '}'])?;
        }
    }

    fn string(&mut self) -> Option<Cow<'a, str>> {
        let text = self.rest.strip_prefix('"')?;
        let end = end_of_string(text.as_bytes())?;
        self.rest = &text[end + 1..];
        Some(unescape(&text[..end]))
    }

    fn value(&mut self) -> Option<Value<'a>> {
        match self.rest.as_bytes().first()? {
            b'"' => {
                let encoded = self.rest[1..].strip_prefix(BYTES_MARK);
                let encoded = encoded.and_then(|text| text.split_once('"'));
                if let Some((encoded, rest)) = encoded {
                    self.rest = rest;
                    let bytes = STANDARD_NO_PAD.decode(encoded).ok()?;
                    return Some(Value::Bytes(bytes.into()));
                }
                self.string().map(Value::Str)
            }
            b'[' | b'{' => {
                let end = end_of_nested(self.rest.as_bytes())?;
                let (text, rest) = self.rest.split_at(end);
                self.rest = rest;
                Some(Value::Json(Cow::Borrowed(text)))
            }
            _ => {
                let end = self.rest.find([',', '}'])?;
                let (text, rest) = self.rest.split_at(end);
                self.rest = rest;
                scalar(text)
            }
        }
    }
}

/// A number whose text is not what its value renders to was kept as JSON text for that reason
/// (`1e400`, which no float holds), and is given back as such.
fn scalar(text: &str) -> Option<Value<'_>> {
    let value = match text {
        "null" => return Some(Value::Null),
        "true" => return Some(Value::Bool(true)),
        "false" => return Some(Value::Bool(false)),
        _ => match text.parse() {
            Ok(int) => Value::Int(int),
            Err(_) => Value::Float(text.parse().ok()?),
        },
    };
    let mut rendered = Vec::with_capacity(text.len());
    value.write_text(&mut rendered);
    Some(if rendered == text.as_bytes() {
        value
    } else {
        Value::Json(Cow::Borrowed(text))
    })
}

impl<'a> Iterator for Overflow<'a> {
    type Item = (Cow<'a, str>, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let name = self.string()?;
        self.rest = self.rest.strip_prefix(':')?;
        let value = self.value()?;
        self.rest = self.rest.strip_prefix([',', '}'])?;
        Some((name, value))
    }
}

/// Where the value at 0 ends.
fn end_of_value(text: &[u8]) -> Option<usize> {
    match text.first()? {
        b'"' => Some(end_of_string(&text[1..])? + 2),
        b'[' | b'{' => end_of_nested(text),
        _ => memchr::memchr2(b',', b'}', text),
    }
}

/// Where the string that starts at 0 (after its quote) has its closing quote.
fn end_of_string(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', &text[at..])?;
        if text[at] == b'"' {
            return Some(at);
        }
        at += 2;
        if at > text.len() {
            return None;
        }
    }
}

/// Where the array or object at 0 ends.
fn end_of_nested(text: &[u8]) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            b'"' => at += 1 + end_of_string(&text[at + 1..])?,
            _ => {}
        }
        at += 1;
    }
    None
}

fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('u') => {
                let code = chars
                    .by_ref()
                    .take(4)
                    .fold(0, |n, c| n * 16 + c.to_digit(16).unwrap_or(0));
                out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(c) => out.push(c),
            None => {}
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_value() -> impl Strategy<Value = Value<'static>> {
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            (-1e9..1e9f64).prop_map(Value::Float),
            any::<String>().prop_map(|s| Value::Str(s.into())),
            proptest::collection::vec(any::<u8>(), 0..9).prop_map(|b| Value::Bytes(b.into())),
            Just(Value::Str("base64:AAEC".into())),
            Just(Value::Str(r"\u0062ase64:AAEC".into())),
            any::<f64>()
                .prop_filter("no JSON", |f| f.is_finite())
                .prop_map(Value::Float),
            Just(Value::Json(r#"[1,"]}\"",{"a":{}}]"#.into())),
            Just(Value::Json("1e400".into())),
        ]
    }

    proptest! {
        #[test]
        fn fields_come_back(fields in proptest::collection::vec((any::<String>(), any_value()), 1..6)) {
            let mut object = Vec::new();
            fields.iter().for_each(|(name, value)| write_overflow(name, value, &mut object));
            object.push(b'}');
            let again: Vec<_> = Overflow::new(&object).map(|(n, v)| (n.into_owned(), v.into_owned())).collect();
            prop_assert_eq!(&again, &fields);
            // Of several with one name the first counts.
            let first = |name: &str| fields.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone());
            let mut asked = Overflow::new(&object);
            for (name, _) in fields.iter().chain(fields.iter().rev()) {
                let expected = first(name);
                let field = OverflowField::new(name);
                prop_assert!(field.may_be_in(&object));
                prop_assert_eq!(&field.find(&object), &expected);
                prop_assert_eq!(&Overflow::find(&object, name), &expected);
                // Behind a field there may be another one of its name.
                prop_assert!(asked.field(name).is_some());
            }
            prop_assert_eq!(asked.field("no such field"), first("no such field"));
        }

        #[test]
        fn garbage_never_panics(object in proptest::collection::vec(any::<u8>(), 0..60)) {
            Overflow::new(&object).count();
            Overflow::new(&object).field("a");
            let mut text = b"{\"a\":".to_vec();
            text.extend(object);
            Overflow::new(&text).count();
            Overflow::new(&text).field("b");
        }
    }
}

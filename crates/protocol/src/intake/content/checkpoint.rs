//! Check Point's fields: `[name:"value"; name:"value"]`.

use std::borrow::Cow;

use logpond_record::Value;

use crate::intake::outline::Outline;
use crate::intake::sketch::Parts;

/// Reads all fields; `None` if there is anything else. Values hold no quotes.
pub(super) fn read<'a>(text: &'a str, outline: &mut Outline) -> Option<Parts<'a>> {
    outline.clear();
    let mut parts = Parts::new(24);
    let bytes = text.as_bytes();
    let end = text.trim_end().len();
    let mut at = 1;
    loop {
        at += text[at..].len() - text[at..].trim_start_matches(' ').len();
        if bytes.get(at) == Some(&b']') && at + 1 == end && !parts.values.is_empty() {
            return Some(parts);
        }
        let rest = &bytes[at..];
        let is_in_name = |b: &&u8| b.is_ascii_alphanumeric() || matches!(**b, b'_' | b'-');
        let name_bytes = rest.iter().take_while(is_in_name).count();
        if name_bytes == 0 || !rest[name_bytes..].starts_with(b":\"") {
            return None;
        }
        let start = at + name_bytes + 2;
        let stop = start + memchr::memchr(b'"', &bytes[start..])?;
        let value = Value::Str(Cow::Borrowed(&text[start..stop]));
        let (name, read) = (&bytes[at..at + name_bytes], (value, b't', true));
        outline.add(&mut parts, name, text, (start, stop), read);
        at = stop + 1;
        if bytes.get(at) == Some(&b';') {
            at += 1;
        }
    }
}

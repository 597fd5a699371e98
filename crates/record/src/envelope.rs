//! Lines with what their senders said of them: a time and fields beside the line.
//!
//! Protocols that ship records (and not just lines) give each one a time and attributes that are no
//! part of its line. An entry of kind [`EntryKind::Enveloped`] holds all of it. `docs/format/journal.md`
//! has the bytes.
//!
//! Invariants:
//! - The line stands in the entry as it is, at its end.
//! - What [`seal`] wrote, [`open`] gives back; other bytes are refused as a whole, and nothing is
//!   believed before it is checked.

use std::borrow::Cow;

use crate::cast;
use crate::entry::EntryKind;
use crate::limits::{FIELD_NAME_BYTES_MAX, FIELDS_MAX};
use crate::time::Timestamp;
use crate::value::Value;

/// Bytes before the fields.
const HEAD_BYTES: usize = 16;

/// Flag bit: the sender gave a time.
const FLAG_TIME: u8 = 1;

/// What a sender said of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// The record's time.
    pub time: Option<Timestamp>,
    /// Fields, checked.
    fields: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// An envelope that says nothing but a time.
    pub fn of_time(time: Timestamp) -> Envelope<'a> {
        let time = Some(time);
        Envelope { time, fields: &[] }
    }

    /// The fields in the sender's order.
    pub fn fields(&self) -> Fields<'a> {
        Fields(self.fields)
    }
}

/// Iterates over the fields of an envelope.
#[derive(Clone, Debug)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a str, Value<'a>);

    fn next(&mut self) -> Option<(&'a str, Value<'a>)> {
        // A checked envelope has nothing but fields.
        take_field(&mut self.0)
    }
}

/// Appends an entry: a line of this kind, which is not [`EntryKind::Enveloped`], with its time and
/// fields. Fields whose name is empty or longer than [`FIELD_NAME_BYTES_MAX`], and those beyond
/// [`FIELDS_MAX`], are left out; gives how many.
pub fn seal<'f>(
    kind: EntryKind,
    time: Option<Timestamp>,
    fields: impl IntoIterator<Item = (&'f str, &'f Value<'f>)>,
    line: &[u8],
    out: &mut Vec<u8>,
) -> usize {
    debug_assert!(kind != EntryKind::Enveloped);
    let head = out.len();
    out.extend_from_slice(&[0; HEAD_BYTES]);
    let (mut kept, mut left_out) = (0, 0);
    for (name, value) in fields {
        if name.is_empty() || name.len() > FIELD_NAME_BYTES_MAX || kept == FIELDS_MAX {
            left_out += 1;
            continue;
        }
        kept += 1;
        put_field(name, value, out);
    }
    let fields_bytes = cast::low_u32(out.len() - head - HEAD_BYTES);
    let place = &mut out[head..head + HEAD_BYTES];
    place[0] = kind as u8;
    place[1] = if time.is_some() { FLAG_TIME } else { 0 };
    place[4..8].copy_from_slice(&fields_bytes.to_le_bytes());
    place[8..].copy_from_slice(&time.map_or(0, |time| time.0).to_le_bytes());
    out.extend_from_slice(line);
    left_out
}

/// Takes an entry apart: the kind of its line, its envelope and the line. `None` if it is none.
pub fn open(entry: &[u8]) -> Option<(EntryKind, Envelope<'_>, &[u8])> {
    let (head, rest) = entry.split_first_chunk::<HEAD_BYTES>()?;
    let kind = EntryKind::from_u8(head[0]).filter(|kind| *kind != EntryKind::Enveloped)?;
    let given = i64::from_le_bytes(*head.last_chunk()?);
    let time = match (head[1], given) {
        (FLAG_TIME, time) => Some(Timestamp(time)),
        (0, 0) => None,
        _ => return None,
    };
    let fields_bytes = u32::from_le_bytes(*head[4..].first_chunk()?) as usize;
    let (fields, line) = rest.split_at_checked(fields_bytes)?;
    if head[2..4] != [0, 0] {
        return None;
    }
    let mut unchecked = fields;
    let mut count = 0;
    while !unchecked.is_empty() {
        take_field(&mut unchecked)?;
        count += 1;
        if count > FIELDS_MAX {
            return None;
        }
    }
    Some((kind, Envelope { time, fields }, line))
}

fn put_field(name: &str, value: &Value<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&cast::low_u16(name.len()).to_le_bytes());
    out.extend_from_slice(name.as_bytes());
    let (letter, bytes): (u8, &[u8]) = match value {
        Value::Null => return out.push(b'n'),
        Value::Bool(false) => return out.push(b'0'),
        Value::Bool(true) => return out.push(b'1'),
        Value::Int(int) => {
            out.push(b'i');
            return out.extend_from_slice(&int.to_le_bytes());
        }
        Value::Float(float) => {
            out.push(b'f');
            return out.extend_from_slice(&float.to_le_bytes());
        }
        Value::Str(text) => (b't', text.as_bytes()),
        Value::Json(text) => (b'j', text.as_bytes()),
        Value::Bytes(bytes) => (b'b', bytes),
    };
    out.push(letter);
    out.extend_from_slice(&cast::low_u32(bytes.len()).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn take_field<'a>(rest: &mut &'a [u8]) -> Option<(&'a str, Value<'a>)> {
    let length = usize::from(u16::from_le_bytes(take_chunk(rest)?));
    if length == 0 || length > FIELD_NAME_BYTES_MAX {
        return None;
    }
    let name = std::str::from_utf8(take(rest, length)?).ok()?;
    let [letter] = take_chunk(rest)?;
    let value = match letter {
        b'n' => Value::Null,
        b'0' => Value::Bool(false),
        b'1' => Value::Bool(true),
        b'i' => Value::Int(i64::from_le_bytes(take_chunk(rest)?)),
        b'f' => Value::Float(f64::from_le_bytes(take_chunk(rest)?)),
        b't' | b'j' | b'b' => {
            let length = u32::from_le_bytes(take_chunk(rest)?) as usize;
            let bytes = take(rest, length)?;
            match letter {
                b'b' => Value::Bytes(Cow::Borrowed(bytes)),
                b't' => Value::Str(Cow::Borrowed(std::str::from_utf8(bytes).ok()?)),
                _ => Value::Json(Cow::Borrowed(std::str::from_utf8(bytes).ok()?)),
            }
        }
        _ => return None,
    };
    Some((name, value))
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

fn take_chunk<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(time: Option<Timestamp>, fields: &[(&str, Value<'_>)], line: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let each = fields.iter().map(|(name, value)| (*name, value));
        seal(EntryKind::Line, time, each, line, &mut out);
        out
    }

    fn all_values() -> Vec<(&'static str, Value<'static>)> {
        vec![
            ("null", Value::Null),
            ("no", Value::Bool(false)),
            ("yes", Value::Bool(true)),
            ("int", Value::Int(i64::MIN)),
            ("float", Value::Float(-0.5)),
            ("text", Value::Str("ä".into())),
            ("empty", Value::Str("".into())),
            ("json", Value::Json("[1]".into())),
            ("bytes", Value::Bytes(b"\xff".as_slice().into())),
        ]
    }

    #[test]
    fn what_is_sealed_is_opened() {
        let times = [None, Some(Timestamp(0)), Some(Timestamp(-5))];
        for (time, line) in times.into_iter().zip([&b""[..], b"a line", b"\0\xff"]) {
            let entry = sealed(time, &all_values(), line);
            assert!(entry.ends_with(line));
            let (kind, envelope, found) = open(&entry).unwrap();
            assert_eq!((kind, envelope.time, found), (EntryKind::Line, time, line));
            let fields: Vec<_> = envelope.fields().collect();
            assert_eq!(fields, all_values());
        }
        assert_eq!(Envelope::default().fields().count(), 0);
    }

    #[test]
    fn names_that_no_field_has_are_left_out_and_counted() {
        let long = "n".repeat(FIELD_NAME_BYTES_MAX + 1);
        let fields = [("", Value::Null), (&long, Value::Null), ("a", Value::Null)];
        let mut out = Vec::new();
        let each = fields.iter().map(|(name, value)| (*name, value));
        assert_eq!(seal(EntryKind::Json, None, each, b"{}", &mut out), 2);
        let (_, envelope, _) = open(&out).unwrap();
        assert_eq!(envelope.fields().count(), 1);
        let many = vec![("a", Value::Null); FIELDS_MAX + 3];
        let entry = sealed(None, &many, b"x");
        assert_eq!(open(&entry).unwrap().1.fields().count(), FIELDS_MAX);
    }

    /// Wherever it is cut before its line, and whatever its first bytes are: no envelope.
    #[test]
    fn other_bytes_are_refused() {
        let entry = sealed(Some(Timestamp(7)), &all_values(), b"");
        for end in 0..entry.len() {
            assert_eq!(open(&entry[..end]), None, "{end}");
        }
        for (at, byte) in [(0, 3), (0, 9), (1, 2), (2, 1), (3, 1), (7, 255), (18, 0xff)] {
            let mut bad = entry.clone();
            bad[at] = byte;
            assert_eq!(open(&bad), None, "byte {at}");
        }
        let mut time_without_flag = entry.clone();
        time_without_flag[1] = 0;
        assert_eq!(open(&time_without_flag), None);
    }
}

//! Protocol Buffers on the wire, without a schema: fields in their order, nothing copied.
//!
//! A generated decoder makes a tree of the whole message, in which an empty entry of two bytes costs
//! a hundred; here a sender decides over no memory. Source: the Protocol Buffers encoding guide.
//!
//! Invariant: a message is refused where it stops making sense, and what came before it was sound.

/// A field's content, by its wire type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Field<'a> {
    /// Wire type 0.
    Varint(u64),
    /// Wire type 1: `fixed64`, `double`.
    Fixed64(u64),
    /// Wire type 2: `string`, `bytes`, messages.
    Bytes(&'a [u8]),
    /// Wire type 5: `fixed32`, `float`.
    Fixed32(u32),
}

impl<'a> Field<'a> {
    /// The bytes of a field of that wire type.
    /// A field of wire type 2.
    pub(crate) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Field::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The text of a `string`; others are refused.
    pub(crate) fn text(self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}

/// The bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WireError;

/// Iterates over the fields of a message. Ends behind an error.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a>(&'a [u8]);

/// The fields of a message.
pub(crate) fn fields(message: &[u8]) -> Fields<'_> {
    Fields(message)
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Field<'a>), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = take_field(&mut self.0);
        if field.is_none() {
            self.0 = &[];
        }
        Some(field.ok_or(WireError))
    }
}

fn take_field<'a>(rest: &mut &'a [u8]) -> Option<(u64, Field<'a>)> {
    let key = take_varint(rest)?;
    let field = match key & 7 {
        0 => Field::Varint(take_varint(rest)?),
        1 => Field::Fixed64(u64::from_le_bytes(take_chunk(rest)?)),
        2 => {
            let length = usize::try_from(take_varint(rest)?).ok()?;
            let (bytes, after) = rest.split_at_checked(length)?;
            *rest = after;
            Field::Bytes(bytes)
        }
        5 => Field::Fixed32(u32::from_le_bytes(take_chunk(rest)?)),
        // Groups went out of use before any protocol of logs came.
        _ => return None,
    };
    (key >> 3 != 0).then_some((key >> 3, field))
}

fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for (index, &byte) in rest.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        if index == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * index);
        if byte & 0x80 == 0 {
            *rest = &rest[index + 1..];
            return Some(value);
        }
    }
    None
}

fn take_chunk<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (chunk, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*chunk)
}

/// Writes messages: answers, and for tests what is read.
pub(crate) mod write {
    use logpond_record::cast;

    fn varint(mut value: u64, out: &mut Vec<u8>) {
        while value >= 0x80 {
            out.push(cast::low_u8(value) | 0x80);
            value >>= 7;
        }
        out.push(cast::low_u8(value));
    }

    /// A field of wire type 0.
    pub(crate) fn number(field: u64, value: u64, out: &mut Vec<u8>) {
        varint(field << 3, out);
        varint(value, out);
    }

    /// A field of wire type 1.
    #[cfg(test)]
    pub(crate) fn fixed64(field: u64, value: u64, out: &mut Vec<u8>) {
        varint(field << 3 | 1, out);
        out.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn bytes(field: u64, value: &[u8], out: &mut Vec<u8>) {
        varint(field << 3 | 2, out);
        varint(value.len() as u64, out);
        out.extend_from_slice(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wire_type_is_read() {
        // The guide's own examples: field 1 is 150, field 2 is "testing".
        let mut message = vec![0x08, 0x96, 0x01, 0x12, 0x07];
        message.extend_from_slice(b"testing");
        message.extend_from_slice(&[0x19, 1, 0, 0, 0, 0, 0, 0, 0, 0x25, 2, 0, 0, 0]);
        message.extend_from_slice(&[0x28]);
        message.extend_from_slice(&[0xff; 9]);
        message.push(1);
        let found: Vec<_> = fields(&message).map(Result::unwrap).collect();
        let expected = [
            (1, Field::Varint(150)),
            (2, Field::Bytes(b"testing")),
            (3, Field::Fixed64(1)),
            (4, Field::Fixed32(2)),
            (5, Field::Varint(u64::MAX)),
        ];
        assert_eq!(found, expected);
        assert_eq!(found[1].1.text(), Some("testing"));
    }

    #[test]
    fn other_bytes_end_the_message() {
        let table: [&[u8]; 8] = [
            b"\x08",
            b"\x12\x05abc",
            b"\x19\x00",
            b"\x25\x00",
            // Groups, and wire types that there are none of.
            b"\x0b",
            b"\x0f\x00",
            // Field number 0.
            b"\x00\x00",
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
        ];
        for bytes in table {
            let found: Vec<_> = fields(bytes).collect();
            assert_eq!(found, [Err(WireError)], "{bytes:x?}");
        }
        let after_one: Vec<_> = fields(b"\x08\x01\x12\xff").collect();
        assert_eq!(after_one, [Ok((1, Field::Varint(1))), Err(WireError)]);
    }
}

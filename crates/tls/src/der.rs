//! The little of DER (X.690) that is read here: what the verifier's parser has no words for.

/// Tags that are looked for.
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(crate) const UTF8_STRING: u8 = 0x0c;
pub(crate) const PRINTABLE_STRING: u8 = 0x13;
pub(crate) const IA5_STRING: u8 = 0x16;
pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;

/// The first element: its tag, what is in it, and what follows. A length takes four bytes at most,
/// which is 16 MiB.
pub(crate) fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (length, rest) = match der {
        [_, 0x81, length, rest @ ..] => (usize::from(*length), rest),
        [_, 0x82, high, low, rest @ ..] => (usize::from(u16::from_be_bytes([*high, *low])), rest),
        [_, 0x83, a, b, c, rest @ ..] => (u32::from_be_bytes([0, *a, *b, *c]) as usize, rest),
        [_, length, rest @ ..] if *length < 0x80 => (usize::from(*length), rest),
        _ => return None,
    };
    let (inside, after) = rest.split_at_checked(length)?;
    Some((der[0], inside, after))
}

/// What is in the first element, if it has this tag, and what follows it.
pub(crate) fn tagged(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    match element(der)? {
        (found, inside, after) if found == tag => Some((inside, after)),
        _ => None,
    }
}

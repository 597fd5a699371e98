//! Record ids (ULIDs) and the identities they are derived from.

use std::fmt;
use std::str::FromStr;

/// Crockford's base 32, as the ULID specification uses it.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Length of an id's text form.
const TEXT_BYTES: usize = 26;

/// A record's id: a ULID, that is 48 bits of Unix milliseconds and 80 bits of entropy.
///
/// Ids of one incarnation are strictly increasing: the milliseconds are those of the receive time
/// (which never steps back within an incarnation) and the entropy is the incarnation's base plus
/// the record's number. Byte order, number order and text order agree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Id(pub u128);

impl Id {
    /// The smallest id.
    pub const MIN: Id = Id(0);
    /// The largest id.
    pub const MAX: Id = Id(u128::MAX);

    /// The id of record number `n` of `incarnation`, received at `received_ms`.
    pub fn new(received_ms: u64, incarnation: Incarnation, n: u64) -> Id {
        let entropy = (incarnation.entropy_base() + u128::from(n)) & ((1 << 80) - 1);
        Id((u128::from(received_ms & ((1 << 48) - 1)) << 80) | entropy)
    }

    /// The Unix milliseconds in the id: when the record was received.
    pub fn received_ms(self) -> u64 {
        (self.0 >> 80) as u64
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0u8; TEXT_BYTES];
        let mut rest = self.0;
        for place in text.iter_mut().rev() {
            *place = ALPHABET[(rest & 31) as usize];
            rest >>= 5;
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is not an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdParseError {
    /// The text does not have 26 characters.
    Length(usize),
    /// The character at this byte is not of Crockford's alphabet.
    Character(usize),
    /// The value needs more than 128 bits: the first character is above `7`.
    Overflow,
}

impl fmt::Display for IdParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdParseError::Length(n) => write!(f, "an id has 26 characters, not {n}"),
            IdParseError::Character(at) => write!(f, "character {at} is not allowed in an id"),
            IdParseError::Overflow => f.write_str("an id starts with a digit from 0 to 7"),
        }
    }
}

impl std::error::Error for IdParseError {}

impl FromStr for Id {
    type Err = IdParseError;

    fn from_str(text: &str) -> Result<Id, IdParseError> {
        if text.len() != TEXT_BYTES {
            return Err(IdParseError::Length(text.len()));
        }
        let mut value: u128 = 0;
        for (at, byte) in text.bytes().enumerate() {
            let upper = byte.to_ascii_uppercase();
            let digit = ALPHABET
                .iter()
                .position(|&c| c == upper)
                .ok_or(IdParseError::Character(at))?;
            if at == 0 && digit > 7 {
                return Err(IdParseError::Overflow);
            }
            value = (value << 5) | digit as u128;
        }
        Ok(Id(value))
    }
}

/// A random 128-bit name that an ingester process mints at its first append (CLUSTER rule R2).
///
/// Never a counter, an address or a host name: it is never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Incarnation(pub u128);

impl Incarnation {
    /// The base that record numbers are added to: 79 random bits, so that adding never overflows 80.
    pub fn entropy_base(self) -> u128 {
        self.0 & ((1 << 79) - 1)
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Incarnation {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Incarnation, Self::Err> {
        u128::from_str_radix(text, 16).map(Incarnation)
    }
}

/// The unit of provenance: one closed journal segment of one incarnation.
///
/// A record belongs to exactly one source; a source is consumed whole and never split (R4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId {
    /// The ingester process.
    pub incarnation: Incarnation,
    /// Dense number of the journal segment: 0, 1, 2… without holes.
    pub sequence: u64,
}

impl fmt::Display for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.incarnation, self.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_round_trips_and_keeps_the_order() {
        let a = Id::new(1_700_000_000_000, Incarnation(u128::MAX), 7);
        let b = Id::new(1_700_000_000_000, Incarnation(u128::MAX), 8);
        assert!(a < b && a.to_string() < b.to_string());
        assert_eq!(a.to_string().parse(), Ok(a));
        assert_eq!(a.received_ms(), 1_700_000_000_000);
        assert_eq!(Id::MAX.to_string(), "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
    }

    #[test]
    fn garbage_is_refused() {
        assert_eq!(
            "8ZZZZZZZZZZZZZZZZZZZZZZZZZ".parse::<Id>(),
            Err(IdParseError::Overflow)
        );
        assert_eq!(
            "U".repeat(26).parse::<Id>(),
            Err(IdParseError::Character(0))
        );
        assert_eq!("".parse::<Id>(), Err(IdParseError::Length(0)));
    }
}

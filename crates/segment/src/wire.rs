//! Bytes between nodes: numbers, times, names and sets of sources.
//!
//! Invariants: decoding never allocates more than a small multiple of the bytes that are there; a
//! message that was not read to its end, or promises more than it has, is an error; nothing
//! panics. `docs/format/cluster.md` is normative.

use std::fmt;

use crate::sources::{Interval, SourceSet};
use logpond_record::{Incarnation, Timestamp, cast};

/// Why bytes are not the message that they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The message ends in the middle of this.
    Truncated(&'static str),
    /// This is not what it may be.
    Malformed(&'static str),
    /// A message of another version.
    Version {
        /// The version of the message.
        found: u64,
        /// The version that is understood.
        known: u64,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Truncated(what) => write!(f, "the message ends within {what}"),
            DecodeError::Malformed(what) => write!(f, "{what} is malformed"),
            DecodeError::Version { found, known } => write!(
                f,
                "the message has version {found} and this node speaks version {known}: \
                 bring both nodes to the same release"
            ),
        }
    }
}

impl std::error::Error for DecodeError {}

/// Appends values to a message. The default is a part of a message, without a version of its own.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    /// An empty message of a version.
    pub fn new(version: u64) -> Encoder {
        let mut encoder = Encoder::default();
        encoder.number(version);
        encoder
    }

    /// Appends to these bytes.
    pub fn onto(bytes: Vec<u8>) -> Encoder {
        Encoder { bytes }
    }

    /// The message.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// A number: seven bits a byte, low ones first; the top bit says that more follow.
    pub fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(cast::low_u8(value) | 0x80);
            value >>= 7;
        }
        self.bytes.push(cast::low_u8(value));
    }

    /// A length or a count.
    pub fn count(&mut self, value: usize) {
        self.number(value as u64);
    }

    /// Yes or no.
    pub fn flag(&mut self, value: bool) {
        self.bytes.push(u8::from(value));
    }

    /// 128 bits, little-endian.
    pub fn wide(&mut self, value: u128) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// 64 bits, little-endian.
    pub fn time(&mut self, value: Timestamp) {
        self.bytes.extend_from_slice(&value.0.to_le_bytes());
    }

    /// A length and so many bytes.
    pub fn bytes(&mut self, value: &[u8]) {
        self.count(value.len());
        self.bytes.extend_from_slice(value);
    }

    /// Bytes without their length.
    pub fn raw(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
    }

    /// For each incarnation its intervals, each as the gap before it and its length.
    pub fn sources(&mut self, set: &SourceSet) {
        let mut runs: Vec<(Incarnation, Vec<Interval>)> = Vec::new();
        for (incarnation, interval) in set.intervals() {
            match runs.last_mut() {
                Some((last, list)) if *last == incarnation => list.push(interval),
                _ => runs.push((incarnation, vec![interval])),
            }
        }
        self.count(runs.len());
        for (incarnation, intervals) in runs {
            self.wide(incarnation.0);
            self.count(intervals.len());
            let mut next = 0;
            for interval in intervals {
                self.number(interval.from.wrapping_sub(next));
                self.number(interval.to - interval.from);
                next = interval.to.wrapping_add(1);
            }
        }
    }
}

/// Takes values off a message.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// A message that must have this version.
    ///
    /// # Errors
    /// When it has not.
    pub fn new(bytes: &'a [u8], known: u64) -> Result<Decoder<'a>, DecodeError> {
        let mut decoder = Decoder { bytes };
        match decoder.number("the version")? {
            found if found == known => Ok(decoder),
            found => Err(DecodeError::Version { found, known }),
        }
    }

    /// A part of a message, without a version of its own.
    pub fn bare(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { bytes }
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// When something is.
    pub fn finish(self) -> Result<(), DecodeError> {
        match self.bytes {
            [] => Ok(()),
            _ => Err(DecodeError::Malformed("the end of the message")),
        }
    }

    fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let split = self.bytes.split_at_checked(count);
        let (taken, rest) = split.ok_or(DecodeError::Truncated(what))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], DecodeError> {
        let taken = self.take(N, what)?;
        taken.try_into().map_err(|_| DecodeError::Truncated(what))
    }

    /// A number.
    ///
    /// # Errors
    /// See [`DecodeError`]; so for all that follow.
    pub fn number(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array(what)?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::Malformed(what))
    }

    /// A count of things that take at least `bytes_min` bytes each (at least 1), so that no more
    /// can be promised than can be there.
    pub fn count(&mut self, bytes_min: usize, what: &'static str) -> Result<usize, DecodeError> {
        let count = usize::try_from(self.number(what)?).unwrap_or(usize::MAX);
        if count > self.bytes.len() / bytes_min.max(1) {
            Err(DecodeError::Truncated(what))
        } else {
            Ok(count)
        }
    }

    /// Yes or no.
    pub fn flag(&mut self, what: &'static str) -> Result<bool, DecodeError> {
        match self.array(what)? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(DecodeError::Malformed(what)),
        }
    }

    /// 128 bits.
    pub fn wide(&mut self, what: &'static str) -> Result<u128, DecodeError> {
        self.array(what).map(u128::from_le_bytes)
    }

    /// A time.
    pub fn time(&mut self, what: &'static str) -> Result<Timestamp, DecodeError> {
        self.array(what).map(i64::from_le_bytes).map(Timestamp)
    }

    /// Bytes, at most `bytes_max` of them.
    pub fn bytes(&mut self, bytes_max: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let count = self.count(1, what)?;
        if count > bytes_max {
            return Err(DecodeError::Malformed(what));
        }
        self.take(count, what)
    }

    /// So many bytes, whose length was read before.
    pub fn raw(&mut self, bytes: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        self.take(bytes, what)
    }

    /// All that is left.
    pub fn rest(self) -> &'a [u8] {
        self.bytes
    }

    /// Text, at most `bytes_max` bytes of it.
    pub fn text(&mut self, bytes_max: usize, what: &'static str) -> Result<&'a str, DecodeError> {
        let bytes = self.bytes(bytes_max, what)?;
        std::str::from_utf8(bytes).map_err(|_| DecodeError::Malformed(what))
    }

    /// A set of sources.
    pub fn sources(&mut self, what: &'static str) -> Result<SourceSet, DecodeError> {
        let mut set = SourceSet::new();
        for _ in 0..self.count(18, what)? {
            let incarnation = Incarnation(self.wide(what)?);
            let mut next = Some(0u64);
            for _ in 0..self.count(2, what)? {
                let (gap, length) = (self.number(what)?, self.number(what)?);
                let from = next.and_then(|next| next.checked_add(gap));
                let from = from.ok_or(DecodeError::Malformed(what))?;
                let to = from
                    .checked_add(length)
                    .ok_or(DecodeError::Malformed(what))?;
                set.insert_interval(incarnation, Interval { from, to });
                next = to.checked_add(1);
            }
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sets() -> impl Strategy<Value = SourceSet> {
        let sequence = prop_oneof![0u64..40, (u64::MAX - 5)..=u64::MAX];
        let source = (0u128..3, sequence, 0u64..9);
        prop::collection::vec(source, 0..20).prop_map(|list| {
            let mut set = SourceSet::new();
            for (incarnation, from, length) in list {
                let to = from.saturating_add(length);
                set.insert_interval(Incarnation(incarnation), Interval { from, to });
            }
            set
        })
    }

    proptest! {
        #[test]
        fn values_come_back(number: u64, wide: u128, time: i64, flag: bool, bytes: Vec<u8>, set in sets()) {
            let mut encoder = Encoder::new(7);
            encoder.number(number);
            encoder.wide(wide);
            encoder.time(Timestamp(time));
            encoder.flag(flag);
            encoder.bytes(&bytes);
            encoder.sources(&set);
            let message = encoder.finish();
            let mut decoder = Decoder::new(&message, 7).expect("this version");
            prop_assert_eq!(decoder.number("n"), Ok(number));
            prop_assert_eq!(decoder.wide("w"), Ok(wide));
            prop_assert_eq!(decoder.time("t"), Ok(Timestamp(time)));
            prop_assert_eq!(decoder.flag("f"), Ok(flag));
            prop_assert_eq!(decoder.bytes(usize::MAX, "b"), Ok(&bytes[..]));
            prop_assert_eq!(decoder.sources("s"), Ok(set));
            prop_assert_eq!(decoder.finish(), Ok(()));
        }

        #[test]
        fn garbage_is_an_error_or_a_value(bytes: Vec<u8>) {
            let mut decoder = Decoder { bytes: &bytes };
            let _ = decoder.sources("s");
            let _ = decoder.bytes(10, "b");
            let _ = decoder.number("n");
        }
    }

    #[test]
    fn what_is_promised_must_be_there() {
        let mut encoder = Encoder::new(1);
        encoder.number(u64::MAX);
        let message = encoder.finish();
        let decoder = || Decoder::new(&message, 1).expect("this version");
        assert_eq!(
            decoder().sources("a set"),
            Err(DecodeError::Truncated("a set"))
        );
        assert_eq!(
            decoder().count(1, "rows"),
            Err(DecodeError::Truncated("rows"))
        );
        let other = Decoder::new(&message, 2).map(drop);
        assert_eq!(other, Err(DecodeError::Version { found: 1, known: 2 }));
        assert_eq!(
            Decoder { bytes: &[0x80; 11] }.number("n"),
            Err(DecodeError::Malformed("n"))
        );
        assert_eq!(
            Decoder {
                bytes: b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"
            }
            .number("n"),
            Err(DecodeError::Malformed("n"))
        );
    }
}

//! Parquet's value encodings, as this crate writes and reads them.
//!
//! Invariants: what a decoder gives never depends on bytes outside its input; no input makes one
//! panic or allocate more than the `count` it was asked for; every decoder says where its input
//! is too short instead of guessing.
//!
//! Only what segments use is here: the RLE and bit-packing hybrid (definition levels, dictionary
//! codes), DELTA_BINARY_PACKED (integers) and PLAIN. Source: Apache Parquet "Encodings".

pub mod bits;
pub mod delta;
pub mod plain;
pub mod rle;

use std::fmt;

use logpond_record::cast;

/// A page's bytes do not follow their encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedPage(
    /// What is wrong.
    pub &'static str,
);

impl fmt::Display for MalformedPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for MalformedPage {}

/// Appends an unsigned LEB128 number.
pub fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(cast::low_u8(value) | 0x80);
        value >>= 7;
    }
    out.push(cast::low_u8(value));
}

/// Takes an unsigned LEB128 number off the front of `input`.
pub fn read_varint(input: &mut &[u8]) -> Result<u64, MalformedPage> {
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = input
            .split_first()
            .ok_or(MalformedPage("a number ends early"))?;
        *input = rest;
        if shift == 63 && byte > 1 {
            break;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(MalformedPage("a number has more than 64 bits"))
}

/// Maps signed numbers to unsigned ones so that small magnitudes stay small.
pub fn zigzag(value: i64) -> u64 {
    cast::unsigned((value << 1) ^ (value >> 63))
}

/// The inverse of [`zigzag`].
pub fn unzigzag(value: u64) -> i64 {
    cast::signed(value >> 1) ^ -cast::signed(value & 1)
}

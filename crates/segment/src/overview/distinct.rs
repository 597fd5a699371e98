//! How many distinct texts there are: counted while they are few, estimated beyond.
//!
//! Up to [`EXACT_VALUES_MAX`] texts are counted by their fingerprints, which is exact but for collisions
//! of 64-bit hashes. Beyond, HyperLogLog estimates them within about 2 % (Flajolet et al., "HyperLogLog: the
//! analysis of a near-optimal cardinality estimation algorithm", with its correction for small sets).

use std::collections::BTreeSet;

use logpond_record::cast;
use xxhash_rust::xxh3::xxh3_64;

use crate::wire::{DecodeError, Decoder, Encoder};

/// The most distinct texts that are counted exactly.
pub const EXACT_VALUES_MAX: usize = 1024;

/// Registers of the estimate: 2^12 give a standard error of 1.6 %.
const REGISTER_BITS: u32 = 12;

/// The hash that stands for a text, the same in all files and on all nodes.
pub fn fingerprint(text: &[u8]) -> u64 {
    xxh3_64(text)
}

/// A set of fingerprints, or what remains of one that grew too large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distinct {
    /// The fingerprints.
    Exact(BTreeSet<u64>),
    /// The registers of an estimate.
    Estimate(Box<[u8]>),
}

impl Default for Distinct {
    fn default() -> Distinct {
        Distinct::Exact(BTreeSet::new())
    }
}

impl Distinct {
    /// Adds the text of a fingerprint.
    pub fn add(&mut self, fingerprint: u64) {
        match self {
            Distinct::Exact(seen) => {
                seen.insert(fingerprint);
                if seen.len() > EXACT_VALUES_MAX {
                    *self = Distinct::Estimate(self.registers());
                }
            }
            Distinct::Estimate(registers) => register(registers, fingerprint),
        }
    }

    /// About the memory that it takes.
    pub fn bytes(&self) -> usize {
        match self {
            // The nodes of such a set are two thirds full.
            Distinct::Exact(seen) => seen.len() * size_of::<u64>() * 3 / 2,
            Distinct::Estimate(registers) => registers.len(),
        }
    }

    fn registers(&self) -> Box<[u8]> {
        match self {
            Distinct::Exact(seen) => {
                let mut registers = vec![0; 1 << REGISTER_BITS].into_boxed_slice();
                seen.iter().for_each(|f| register(&mut registers, *f));
                registers
            }
            Distinct::Estimate(registers) => registers.clone(),
        }
    }

    /// Adds the texts of another set.
    pub fn merge(&mut self, other: &Distinct) {
        match other {
            Distinct::Exact(seen) => seen.iter().for_each(|f| self.add(*f)),
            Distinct::Estimate(theirs) => {
                if let Distinct::Exact(_) = self {
                    *self = Distinct::Estimate(self.registers());
                }
                if let Distinct::Estimate(mine) = self {
                    for (a, b) in mine.iter_mut().zip(theirs) {
                        *a = (*a).max(*b);
                    }
                }
            }
        }
    }

    /// Appends it to a message.
    pub fn encode(&self, out: &mut Encoder) {
        match self {
            Distinct::Exact(seen) => {
                out.flag(true);
                out.count(seen.len());
                let mut last = 0;
                for fingerprint in seen {
                    out.number(fingerprint.wrapping_sub(last));
                    last = *fingerprint;
                }
            }
            Distinct::Estimate(registers) => {
                out.flag(false);
                out.bytes(registers);
            }
        }
    }

    /// Reads what [`Distinct::encode`] wrote.
    ///
    /// # Errors
    /// When the bytes are something else.
    pub fn decode(from: &mut Decoder<'_>) -> Result<Distinct, DecodeError> {
        if !from.flag("how values were counted")? {
            let registers = from.bytes(1 << REGISTER_BITS, "the registers")?;
            return if registers.len() == 1 << REGISTER_BITS {
                Ok(Distinct::Estimate(registers.into()))
            } else {
                Err(DecodeError::Malformed("the registers"))
            };
        }
        let mut distinct = Distinct::default();
        let mut last = 0u64;
        for _ in 0..from.count(1, "the fingerprints")? {
            last = last.wrapping_add(from.number("a fingerprint")?);
            distinct.add(last);
        }
        Ok(distinct)
    }

    /// Whether the texts are counted rather than estimated.
    pub fn is_exact(&self) -> bool {
        matches!(self, Distinct::Exact(_))
    }

    /// How many texts there are, or about how many.
    pub fn count(&self) -> u64 {
        match self {
            Distinct::Exact(seen) => seen.len() as u64,
            Distinct::Estimate(registers) => estimate(registers),
        }
    }
}

/// Keeps the longest run of leading zeros seen by the register that the hash's last bits choose.
fn register(registers: &mut [u8], fingerprint: u64) {
    let index = (fingerprint & ((1 << REGISTER_BITS) - 1)) as usize;
    let rank = cast::low_u8((fingerprint >> REGISTER_BITS).leading_zeros() - REGISTER_BITS + 1);
    registers[index] = registers[index].max(rank);
}

fn estimate(registers: &[u8]) -> u64 {
    let m = cast::float(registers.len());
    let alpha = 0.7213 / (1.0 + 1.079 / m);
    let sum: f64 = registers.iter().map(|r| 0.5f64.powi(i32::from(*r))).sum();
    let raw = alpha * m * m / sum;
    let empty = registers.iter().filter(|r| **r == 0).count();
    let corrected = match empty {
        1.. if raw <= 2.5 * m => m * (m / cast::float(empty)).ln(),
        _ => raw,
    };
    cast::whole_u64(corrected.round())
}

//! Runs of numbers of a fixed width, packed from the least significant bit on.

use logpond_record::cast;

use super::MalformedPage;

/// Number of bits that `value` needs.
pub fn width(value: u64) -> u32 {
    64 - value.leading_zeros()
}

/// Packs numbers of at most `width` bits and pads the last byte with zeros.
pub fn pack(values: impl IntoIterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    let mut pending: u64 = 0;
    let mut pending_bits = 0;
    for value in values {
        pending |= value << pending_bits;
        pending_bits += width;
        if pending_bits >= 64 {
            out.extend_from_slice(&pending.to_le_bytes());
            pending_bits -= 64;
            // What had no room; shifting by all 64 bits would leave the value as it is.
            pending = value.checked_shr(width - pending_bits).unwrap_or(0);
        }
    }
    let rest = pending_bits.div_ceil(8) as usize;
    out.extend_from_slice(&pending.to_le_bytes()[..rest]);
}

/// Unpacks `count` numbers of `width` bits (64 at most) and hands them over in order.
pub fn unpack(
    input: &[u8],
    width: u32,
    count: usize,
    mut take: impl FnMut(u64),
) -> Result<(), MalformedPage> {
    debug_assert!(width <= 64);
    if (input.len() as u64) * 8 < count as u64 * u64::from(width) {
        return Err(MalformedPage("packed numbers end early"));
    }
    if width == 0 {
        (0..count).for_each(|_| take(0));
        return Ok(());
    }
    let mask = u64::MAX >> (64 - width);
    let mut bit = 0usize;
    for _ in 0..count {
        let (byte, shift) = (bit / 8, bit % 8);
        let mut value = load(input, byte) >> shift;
        if shift + width as usize > 64 {
            value |= u64::from(input[byte + 8]) << (64 - shift);
        }
        take(value & mask);
        bit += width as usize;
    }
    Ok(())
}

/// Appends `count` numbers of `width` bits, 32 at most.
pub fn unpack_codes(
    input: &[u8],
    width: u32,
    count: usize,
    out: &mut Vec<u32>,
) -> Result<(), MalformedPage> {
    // Whole groups of eight with a width that the compiler knows take a third of the time.
    macro_rules! of_width {
        ($($width:literal)*) => {
            match width {
                $($width => groups_of_eight::<$width>(input, count / 8, out),)*
                _ => 0,
            }
        };
    }
    if (input.len() as u64) * 8 < count as u64 * u64::from(width) {
        return Err(MalformedPage("packed numbers end early"));
    }
    out.reserve(count);
    let groups = of_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24);
    unpack(
        &input[groups * width as usize..],
        width,
        count - groups * 8,
        |v| out.push(cast::low_u32(v)),
    )
}

/// Appends the numbers of as many groups as asked for, and returns how many these were.
fn groups_of_eight<const WIDTH: usize>(input: &[u8], groups: usize, out: &mut Vec<u32>) -> usize {
    let mask = (1u64 << WIDTH) - 1;
    let (packed, _) = input.as_chunks::<WIDTH>();
    for group in &packed[..groups] {
        // The last number's eight bytes begin at byte 21 at the latest.
        let mut padded = [0u8; 32];
        padded[..WIDTH].copy_from_slice(group);
        let number = |place: usize| {
            let bytes = padded[place * WIDTH / 8..].first_chunk().copied();
            let word = u64::from_le_bytes(bytes.unwrap_or_default());
            cast::low_u32(word >> (place * WIDTH % 8) & mask)
        };
        out.extend_from_slice(&std::array::from_fn::<u32, 8, _>(number));
    }
    groups
}

/// Eight bytes from `at` on, little-endian; zeros stand for bytes after the end.
fn load(input: &[u8], at: usize) -> u64 {
    match input.get(at..at + 8) {
        Some(bytes) => u64::from_le_bytes(bytes.try_into().unwrap_or_default()),
        None => {
            let mut bytes = [0u8; 8];
            let rest = &input[at.min(input.len())..];
            bytes[..rest.len()].copy_from_slice(rest);
            u64::from_le_bytes(bytes)
        }
    }
}

/// Reads single bits and small numbers one after another, most significant bit first.
///
/// Used by the token index, whose entries have different lengths.
pub struct BitReader<'a> {
    input: &'a [u8],
    bit: usize,
}

impl<'a> BitReader<'a> {
    /// Starts at bit `bit` of `input`.
    pub fn new(input: &'a [u8], bit: usize) -> BitReader<'a> {
        BitReader { input, bit }
    }

    /// Bits consumed since the start of the input.
    pub fn position(&self) -> usize {
        self.bit
    }

    /// The next `count` bits (57 at most) as a number.
    pub fn bits(&mut self, count: u32) -> Result<u64, MalformedPage> {
        if count == 0 {
            return Ok(0);
        }
        if self.bit + count as usize > self.input.len() * 8 {
            return Err(MalformedPage("bits end early"));
        }
        let word = load(self.input, self.bit / 8).swap_bytes() << (self.bit % 8);
        self.bit += count as usize;
        Ok(word >> (64 - count))
    }

    /// The number of one bits before the next zero bit.
    pub fn unary(&mut self) -> Result<u64, MalformedPage> {
        let mut count = 0;
        while self.bits(1)? == 1 {
            count += 1;
        }
        Ok(count)
    }
}

/// Writes what [`BitReader`] reads.
#[derive(Default)]
pub struct BitWriter {
    out: Vec<u8>,
    pending: u64,
    pending_bits: u32,
}

impl BitWriter {
    /// Bits written so far.
    pub fn position(&self) -> usize {
        self.out.len() * 8 + self.pending_bits as usize
    }

    /// Appends the low `count` bits (56 at most) of `value`.
    pub fn bits(&mut self, value: u64, count: u32) {
        debug_assert!(count <= 56 && (count == 64 || value >> count == 0));
        self.pending = (self.pending << count) | value;
        self.pending_bits += count;
        while self.pending_bits >= 8 {
            self.pending_bits -= 8;
            self.out
                .push(cast::low_u8(self.pending >> self.pending_bits));
        }
        self.pending &= (1 << self.pending_bits) - 1;
    }

    /// Appends `count` one bits and a zero bit.
    pub fn unary(&mut self, count: u64) {
        for _ in 0..count {
            self.bits(1, 1);
        }
        self.bits(0, 1);
    }

    /// The bytes, the last one padded with zeros.
    pub fn finish(mut self) -> Vec<u8> {
        if self.pending_bits > 0 {
            self.out
                .push(cast::low_u8(self.pending << (8 - self.pending_bits)));
        }
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packed_numbers_come_back(width in 0u32..=64, seed in proptest::collection::vec(any::<u64>(), 0..300)) {
            let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
            let values: Vec<u64> = seed.iter().map(|v| v & mask).collect();
            let mut packed = Vec::new();
            pack(values.iter().copied(), width, &mut packed);
            let mut again = Vec::new();
            unpack(&packed, width, values.len(), |v| again.push(v)).unwrap();
            prop_assert_eq!(&again, &values);
            if width <= 32 {
                let mut codes = Vec::new();
                unpack_codes(&packed, width, values.len(), &mut codes).unwrap();
                prop_assert!(codes.iter().map(|c| u64::from(*c)).eq(values.iter().copied()));
                let beyond = packed.len() * 8 / (width as usize).max(1) + 1;
                prop_assert!(width == 0 || unpack_codes(&packed, width, beyond, &mut codes).is_err());
            }
            if width > 0 {
                prop_assert!(unpack(&packed, width, packed.len() * 8 / width as usize + 1, |_| ()).is_err());
            }
        }

        #[test]
        fn bit_streams_come_back(parts in proptest::collection::vec((0u32..=56, any::<u64>(), 0u64..40), 0..60)) {
            let mut writer = BitWriter::default();
            for &(count, value, unary) in &parts {
                let value = if count == 0 { 0 } else { value >> (64 - count) };
                writer.bits(value, count);
                writer.unary(unary);
            }
            let bytes = writer.finish();
            let mut reader = BitReader::new(&bytes, 0);
            for &(count, value, unary) in &parts {
                let value = if count == 0 { 0 } else { value >> (64 - count) };
                prop_assert_eq!(reader.bits(count), Ok(value));
                prop_assert_eq!(reader.unary(), Ok(unary));
            }
        }
    }
}

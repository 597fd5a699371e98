//! The RLE and bit-packing hybrid: runs of one value, and groups of eight packed values.

use super::bits;
use super::{MalformedPage, read_varint, write_varint};

/// Repetitions from which on a run is cheaper than packing.
const RUN_MIN: usize = 8;

/// Appends `values`, each of at most `width` bits.
pub fn encode(values: &[u32], width: u32, out: &mut Vec<u8>) {
    let mut packed_from = 0;
    let mut at = 0;
    while at < values.len() {
        let run = values[at..]
            .iter()
            .take_while(|v| **v == values[at])
            .count();
        // Packed groups hold eight values each; a run may begin only where a group ends.
        let misaligned = (8 - (at - packed_from) % 8) % 8;
        if run >= RUN_MIN + misaligned {
            let run_from = at + misaligned;
            encode_packed(&values[packed_from..run_from], width, out);
            encode_run(values[at], run - misaligned, width, out);
            at += run;
            packed_from = at;
        } else {
            at += run;
        }
    }
    encode_packed(&values[packed_from..], width, out);
}

/// Appends `count` times the same value: the bytes that [`encode`] makes of them.
pub fn encode_same(value: u32, count: usize, width: u32, out: &mut Vec<u8>) {
    if count < RUN_MIN {
        encode(&vec![value; count], width, out)
    } else {
        encode_run(value, count, width, out)
    }
}

fn encode_run(value: u32, count: usize, width: u32, out: &mut Vec<u8>) {
    write_varint((count as u64) << 1, out);
    let bytes = width.div_ceil(8) as usize;
    out.extend_from_slice(&value.to_le_bytes()[..bytes]);
}

fn encode_packed(values: &[u32], width: u32, out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    let groups = values.len().div_ceil(8);
    write_varint(((groups as u64) << 1) | 1, out);
    let padding = std::iter::repeat_n(0, groups * 8 - values.len());
    let values = values.iter().map(|v| u64::from(*v));
    bits::pack(values.chain(padding), width, out);
}

/// Appends exactly `count` values of `width` bits (32 at most) to `out`.
pub fn decode(
    mut input: &[u8],
    width: u32,
    count: usize,
    out: &mut Vec<u32>,
) -> Result<(), MalformedPage> {
    if width > 32 {
        return Err(MalformedPage("codes have more than 32 bits"));
    }
    let wanted = out.len() + count;
    while out.len() < wanted {
        let header = read_varint(&mut input)?;
        let left = wanted - out.len();
        if header & 1 == 0 {
            let run = usize::try_from(header >> 1).unwrap_or(usize::MAX).min(left);
            let bytes = width.div_ceil(8) as usize;
            let value = input
                .get(..bytes)
                .ok_or(MalformedPage("a run ends early"))?;
            input = &input[bytes..];
            let mut word = [0u8; 4];
            word[..bytes].copy_from_slice(value);
            if run == 0 {
                return Err(MalformedPage("a run is empty"));
            }
            out.resize(out.len() + run, u32::from_le_bytes(word));
        } else {
            let groups = usize::try_from(header >> 1).unwrap_or(usize::MAX);
            let bytes = groups.saturating_mul(width as usize).min(input.len());
            let values = groups.saturating_mul(8).min(left);
            if values == 0 {
                return Err(MalformedPage("a packed run is empty"));
            }
            bits::unpack_codes(&input[..bytes], width, values, out)?;
            input = &input[bytes..];
        }
    }
    Ok(())
}

/// The value of all `count` values, if they are a single run of a width of up to 8 bits.
pub fn one_run(mut input: &[u8], count: usize) -> Option<u8> {
    let header = read_varint(&mut input).ok()?;
    let is_run = header & 1 == 0 && header >> 1 >= count as u64;
    input.first().copied().filter(|_| is_run && count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_come_back(runs in proptest::collection::vec((0u32..9, 1usize..30), 0..40)) {
            let values: Vec<u32> = runs.iter().flat_map(|&(v, n)| std::iter::repeat_n(v, n)).collect();
            let mut encoded = Vec::new();
            encode(&values, 4, &mut encoded);
            let mut again = Vec::new();
            decode(&encoded, 4, values.len(), &mut again).unwrap();
            prop_assert_eq!(again, values);
        }

        #[test]
        fn single_runs_are_known(value in 0u32..2, length in 1usize..9, count in 1usize..100) {
            let mut encoded = Vec::new();
            encode(&vec![value; length * 8], 1, &mut encoded);
            let expected = (count <= length * 8).then_some(value as u8);
            prop_assert_eq!(one_run(&encoded, count), expected);
        }

        #[test]
        fn garbage_never_panics(input in proptest::collection::vec(any::<u8>(), 0..64), width in 0u32..40, count in 0usize..1000) {
            let mut out = Vec::new();
            if decode(&input, width, count, &mut out).is_ok() {
                prop_assert_eq!(out.len(), count);
            }
        }
    }
}

//! DELTA_BINARY_PACKED for 64-bit integers: differences to the value before, less the smallest
//! one of a block, packed in miniblocks of the width they need.

use logpond_record::cast;

use super::bits;
use super::{MalformedPage, read_varint, unzigzag, write_varint, zigzag};

const BLOCK: usize = 128;
const MINIBLOCKS: usize = 4;
const MINIBLOCK: usize = BLOCK / MINIBLOCKS;

/// Appends `values`.
pub fn encode(values: &[i64], out: &mut Vec<u8>) {
    write_varint(BLOCK as u64, out);
    write_varint(MINIBLOCKS as u64, out);
    write_varint(values.len() as u64, out);
    write_varint(zigzag(values.first().copied().unwrap_or(0)), out);
    let deltas: Vec<i64> = values
        .windows(2)
        .map(|pair| pair[1].wrapping_sub(pair[0]))
        .collect();
    for block in deltas.chunks(BLOCK) {
        encode_block(block, out);
    }
}

fn encode_block(deltas: &[i64], out: &mut Vec<u8>) {
    let least = deltas.iter().copied().min().unwrap_or(0);
    write_varint(zigzag(least), out);
    let above: Vec<u64> = deltas
        .iter()
        .map(|d| cast::unsigned(d.wrapping_sub(least)))
        .collect();
    let widths: Vec<u32> = above
        .chunks(MINIBLOCK)
        .map(|mini| bits::width(mini.iter().fold(0, |all, v| all | v)))
        .collect();
    out.extend((0..MINIBLOCKS).map(|i| cast::low_u8(widths.get(i).copied().unwrap_or(0))));
    for (mini, width) in above.chunks(MINIBLOCK).zip(widths) {
        let mut padded = [0u64; MINIBLOCK];
        padded[..mini.len()].copy_from_slice(mini);
        bits::pack(padded, width, out);
    }
}

/// Appends exactly `count` values to `out`.
pub fn decode(mut input: &[u8], count: usize, out: &mut Vec<i64>) -> Result<(), MalformedPage> {
    let input = &mut input;
    let block = cast::to_usize(read_varint(input)?);
    let miniblocks = cast::to_usize(read_varint(input)?);
    let total = cast::to_usize(read_varint(input)?);
    let first = unzigzag(read_varint(input)?);
    let sane = (1..=1 << 16).contains(&block)
        && (1..=256).contains(&miniblocks)
        && block.is_multiple_of(miniblocks);
    if !sane || total != count {
        return Err(MalformedPage("the header of packed integers is wrong"));
    }
    if count == 0 {
        return Ok(());
    }
    let mini = block / miniblocks;
    let wanted = out.len() + count;
    let mut value = first;
    out.push(value);
    while out.len() < wanted {
        let least = unzigzag(read_varint(input)?);
        let widths = input
            .get(..miniblocks)
            .ok_or(MalformedPage("integer widths end early"))?;
        *input = &input[miniblocks..];
        for &width in widths {
            let left = (wanted - out.len()).min(mini);
            if left == 0 {
                break;
            }
            let width = u32::from(width);
            if width > 64 {
                return Err(MalformedPage("integers have more than 64 bits"));
            }
            let bytes = (mini * width as usize).div_ceil(8);
            let packed = &input[..bytes.min(input.len())];
            bits::unpack(packed, width, left, |above| {
                value = value.wrapping_add(least).wrapping_add(cast::signed(above));
                out.push(value);
            })?;
            *input = &input[packed.len()..];
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(values: &[i64]) {
        let mut encoded = Vec::new();
        encode(values, &mut encoded);
        let mut again = Vec::new();
        decode(&encoded, values.len(), &mut again).unwrap();
        assert_eq!(again, values);
    }

    #[test]
    fn edges_come_back() {
        round_trip(&[]);
        round_trip(&[7]);
        round_trip(&[i64::MIN, i64::MAX, 0, i64::MIN]);
        round_trip(&(0..1000).collect::<Vec<_>>());
        round_trip(&[5; 129]);
    }

    proptest! {
        #[test]
        fn values_come_back(values in proptest::collection::vec(-1_000_000i64..1_000_000, 0..400)) {
            round_trip(&values);
        }

        #[test]
        fn garbage_never_panics(input in proptest::collection::vec(any::<u8>(), 0..64), count in 0usize..1000) {
            let _ = decode(&input, count, &mut Vec::new());
        }
    }
}

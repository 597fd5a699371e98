//! PLAIN: fixed-width numbers in little-endian, bits for booleans, byte arrays with a length.

use logpond_record::cast;

use super::MalformedPage;

/// Appends byte arrays, each after its length in four bytes.
pub fn encode_bytes<'a>(values: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    for value in values {
        out.extend_from_slice(&cast::low_u32(value.len()).to_le_bytes());
        out.extend_from_slice(value);
    }
}

/// Finds `count` byte arrays in `input`: appends where each one starts and ends.
pub fn decode_bytes(
    input: &[u8],
    count: usize,
    out: &mut Vec<(u32, u32)>,
) -> Result<(), MalformedPage> {
    if input.len() > u32::MAX as usize || input.len() / 4 < count {
        return Err(MalformedPage("byte arrays end early"));
    }
    let mut at = 0usize;
    for _ in 0..count {
        let length = input
            .get(at..at + 4)
            .ok_or(MalformedPage("byte arrays end early"))?;
        let length = u32::from_le_bytes(length.try_into().unwrap_or_default()) as usize;
        let from = at + 4;
        let to = from.saturating_add(length);
        if to > input.len() {
            return Err(MalformedPage("a byte array ends early"));
        }
        out.push((cast::low_u32(from), cast::low_u32(to)));
        at = to;
    }
    Ok(())
}

/// Appends floats.
pub fn encode_floats(values: &[f64], out: &mut Vec<u8>) {
    for value in values {
        out.extend_from_slice(&value.to_le_bytes());
    }
}

/// Appends exactly `count` floats of `input` to `out`.
pub fn decode_floats(input: &[u8], count: usize, out: &mut Vec<f64>) -> Result<(), MalformedPage> {
    let (values, _) = input.as_chunks::<8>();
    let values = values
        .get(..count)
        .ok_or(MalformedPage("floats end early"))?;
    out.extend(values.iter().map(|v| f64::from_le_bytes(*v)));
    Ok(())
}

/// Appends booleans as bits.
pub fn encode_bools(values: &[bool], out: &mut Vec<u8>) {
    for group in values.chunks(8) {
        out.push(
            group
                .iter()
                .enumerate()
                .fold(0, |byte, (i, b)| byte | (u8::from(*b) << i)),
        );
    }
}

/// Appends exactly `count` booleans of `input` to `out`.
pub fn decode_bools(input: &[u8], count: usize, out: &mut Vec<bool>) -> Result<(), MalformedPage> {
    if input.len() < count.div_ceil(8) {
        return Err(MalformedPage("booleans end early"));
    }
    out.extend((0..count).map(|i| input[i / 8] >> (i % 8) & 1 == 1));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back() {
        let texts: [&[u8]; 3] = [b"", b"abc", b"\xff"];
        let mut encoded = Vec::new();
        encode_bytes(texts.into_iter(), &mut encoded);
        let mut ranges = Vec::new();
        decode_bytes(&encoded, 3, &mut ranges).unwrap();
        let again: Vec<&[u8]> = ranges
            .iter()
            .map(|&(a, b)| &encoded[a as usize..b as usize])
            .collect();
        assert_eq!(again, texts);
        assert!(decode_bytes(&encoded[..encoded.len() - 1], 3, &mut Vec::new()).is_err());
        assert!(decode_bytes(&encoded, 1 << 30, &mut Vec::new()).is_err());

        let mut bools = Vec::new();
        encode_bools(&[true, false, true], &mut bools);
        let mut again = Vec::new();
        decode_bools(&bools, 3, &mut again).unwrap();
        assert_eq!(again, [true, false, true]);
    }
}

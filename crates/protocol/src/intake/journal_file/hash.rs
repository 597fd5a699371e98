//! The hashes that journal files have of their data: lookup3 (Bob Jenkins, in the public domain), or in
//! newer files SipHash-2-4 (Aumasson and Bernstein, INDOCRYPT 2012) keyed by the id of the file.

use logpond_record::cast;

/// Which hash a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hasher {
    Lookup3,
    /// With the two halves of the key.
    SipHash(u64, u64),
}

impl Hasher {
    /// That of files whose data is hashed with their id as the key.
    pub(super) fn keyed(id: [u8; 16]) -> Hasher {
        let number = u128::from_le_bytes(id);
        Hasher::SipHash(cast::low_u64(number), (number >> 64) as u64)
    }

    pub(super) fn hash(self, bytes: &[u8]) -> u64 {
        match self {
            Hasher::Lookup3 => lookup3(bytes),
            Hasher::SipHash(first, second) => siphash(first, second, bytes),
        }
    }
}

/// The two hashes of 32 bits as one, the better one in front.
pub(super) fn lookup3(bytes: &[u8]) -> u64 {
    // Lengths are taken modulo 2^32, as the function has it.
    let start = 0xdead_beef_u32.wrapping_add(cast::low_u32(bytes.len()));
    let mut words = [start; 3];
    // The last block is mixed in another way, be it a whole one.
    let last = bytes.len().saturating_sub(1) / 12 * 12;
    for block in bytes[..last].chunks_exact(12) {
        add(&mut words, block);
        mix(&mut words);
    }
    if !bytes.is_empty() {
        add(&mut words, &bytes[last..]);
        finish(&mut words);
    }
    u64::from(words[2]) << 32 | u64::from(words[1])
}

/// Adds up to twelve bytes as three numbers; what is missing is zero.
fn add(words: &mut [u32; 3], block: &[u8]) {
    let mut whole = [0; 12];
    whole[..block.len()].copy_from_slice(block);
    for (word, bytes) in words.iter_mut().zip(whole.as_chunks().0) {
        *word = word.wrapping_add(u32::from_le_bytes(*bytes));
    }
}

fn mix(words: &mut [u32; 3]) {
    // Each round works on the words one place further on.
    for (round, rotation) in [4, 6, 8, 16, 19, 4].into_iter().enumerate() {
        let (a, b, c) = (round % 3, (round + 1) % 3, (round + 2) % 3);
        words[a] = words[a].wrapping_sub(words[c]) ^ words[c].rotate_left(rotation);
        words[c] = words[c].wrapping_add(words[b]);
    }
}

fn finish(words: &mut [u32; 3]) {
    for (round, rotation) in [14, 11, 25, 16, 4, 14, 24].into_iter().enumerate() {
        let (to, from) = ((round + 2) % 3, (round + 1) % 3);
        words[to] = (words[to] ^ words[from]).wrapping_sub(words[from].rotate_left(rotation));
    }
}

fn siphash(first: u64, second: u64, bytes: &[u8]) -> u64 {
    let mut state = [
        first ^ 0x736f_6d65_7073_6575,
        second ^ 0x646f_7261_6e64_6f6d,
        first ^ 0x6c79_6765_6e65_7261,
        second ^ 0x7465_6462_7974_6573,
    ];
    let mut take = |number: u64| {
        state[3] ^= number;
        rounds(&mut state, 2);
        state[0] ^= number;
    };
    let (blocks, rest) = bytes.as_chunks();
    for block in blocks {
        take(u64::from_le_bytes(*block));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    last[7] = cast::low_u8(bytes.len());
    take(u64::from_le_bytes(last));
    state[2] ^= 0xff;
    rounds(&mut state, 4);
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

fn rounds(state: &mut [u64; 4], count: usize) {
    let [mut a, mut b, mut c, mut d] = *state;
    for _ in 0..count {
        a = a.wrapping_add(b);
        b = b.rotate_left(13) ^ a;
        a = a.rotate_left(32);
        c = c.wrapping_add(d);
        d = d.rotate_left(16) ^ c;
        a = a.wrapping_add(d);
        d = d.rotate_left(21) ^ a;
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
    }
    *state = [a, b, c, d];
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values that the authors give.
    #[test]
    fn hashes_are_those_of_their_authors() {
        let text = b"Four score and seven years ago";
        assert_eq!(lookup3(text), 0x1777_0551_ce72_26e6);
        assert_eq!(lookup3(b""), 0xdead_beef_dead_beef);
        let key = std::array::from_fn(|at| at as u8);
        let message: [u8; 15] = std::array::from_fn(|at| at as u8);
        let table = [
            (0, 0x726f_db47_dd0e_0e31),
            (8, 0x93f5_f579_9a93_2462),
            (15, 0xa129_ca61_49be_45e5),
        ];
        for (bytes, hash) in table {
            assert_eq!(Hasher::keyed(key).hash(&message[..bytes]), hash, "{bytes}");
        }
    }
}

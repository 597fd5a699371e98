//! Small changes to inputs, drawn from a seeded generator.

/// Numbers that parsers trip over, little-endian in 1, 2, 4 or 8 bytes.
const NUMBERS: [u64; 12] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    u64::MAX,
];

/// Texts that mean something to one of the decoders.
const WORDS: [&[u8]; 46] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b":",
    b",",
    b"null",
    b"true",
    b"-0",
    b"1e999",
    b"0.10",
    b"9223372036854775808",
    b"<34>1 ",
    b"<13>",
    b"<999>",
    b" - ",
    b"[a b=\"",
    b"\\]",
    b"\xef\xbb\xbf",
    b"2026-03-02T00:00:10.345542Z",
    b"Mar  2 00:00:10",
    b"+01:00",
    b"\0",
    b"\xff\xfe",
    b"\r\n",
    b"\n",
    b" AND ",
    b" OR ",
    b"NOT ",
    b"(",
    b")",
    b"/[a-z]+/i",
    b"status>=500",
    b"\"GET / HTTP/1.1\" 200 5",
    b"1048576 ",
    b"\xe2\x9f\xa8_msg:t\xe2\x9f\xa9",
    b"\x93\xa1t\x91\x92\x01\x81\xa3log\xa1x\xc0",
    b"\x93\xa1t\x01\x81\xa3log\xa1x",
    b"\x93\xa1t\xc4\x08\x92\x01\x81\xa3log\xa0\x81\xa5chunk\xa1c",
    b"\xd7\x00\x69\xa4\xd3\x00\x00\x00\x00\x07",
    b"\x81\xaacompressed\xa4gzip",
    b"{\"short_message\":\"x\",\"host\":\"h\"}",
];

/// A small seeded generator (xorshift64*): the same seed gives the same run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`, or 0 if there is none.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % (bound.max(1) as u64)) as usize
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let longest = (length - start).min(1 << self.below(12));
        start..start + self.below(longest + 1)
    }
}

/// Changes `input` in one to four places; `other` is what may be spliced in.
pub(crate) fn mutate(input: &mut Vec<u8>, other: &[u8], bytes_max: usize, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(input.len());
        match random.below(9) {
            0 if !input.is_empty() => input[at] ^= 1 << random.below(8),
            1 if !input.is_empty() => input[at] = random.next() as u8,
            2 => drop(input.drain(random.range(input.len()))),
            3 => {
                let part = input[random.range(input.len())].to_vec();
                insert(input, at, &part);
            }
            4 | 5 => insert(input, at, WORDS[random.below(WORDS.len())]),
            6 => insert(input, at, &other[random.range(other.len())]),
            7 => {
                let number = NUMBERS[random.below(NUMBERS.len())].to_le_bytes();
                let width = 1 << random.below(4);
                overwrite(input, at, &number[..width]);
            }
            _ => {
                let part = &other[random.range(other.len())];
                overwrite(input, at, part);
            }
        }
    }
    input.truncate(bytes_max);
}

fn insert(input: &mut Vec<u8>, at: usize, part: &[u8]) {
    input.splice(at..at, part.iter().copied());
}

fn overwrite(input: &mut [u8], at: usize, part: &[u8]) {
    let room = input.len().saturating_sub(at).min(part.len());
    input[at..at + room].copy_from_slice(&part[..room]);
}

//! The token index: which blocks of a row group can hold a token.
//!
//! A token is a maximal run of `[A-Za-z0-9_]` and bytes from 0x80 on. The index of a row group
//! maps 32-bit fingerprints of its tokens to the blocks they occur in; two tokens with the same
//! fingerprint share an entry, so an answer may name blocks too many but never too few.
//!
//! Layout (normative: `docs/format/segment.md`): a header, a table of bit offsets with one entry
//! per bucket, and the buckets. A bucket holds the fingerprints with the same leading bits, in
//! order: the gap to the one before (Rice code), then either one block number or a bitmap. Behind the buckets are
//! the filters of the parts of ids.

mod grams;
mod words;

use logpond_record::cast;
use xxhash_rust::xxh3::xxh3_64;

use crate::encoding::MalformedPage;
use crate::encoding::bits::{BitReader, BitWriter, width};
use grams::{GRAM_BYTES, GramCollector};
use words::WordCollector;
pub use words::{
    ID_BYTES_SHORT_MAX, LIST_BYTES_MAX, List, ListBuilder, LongIds, WordSet, Words,
    blocks_with_longer_ids, fold, is_id,
};

/// Fingerprints per bucket aimed at: a look-up reads about 60 bytes.
const BUCKET_ENTRIES: usize = 32;

/// Bits of a fingerprint beyond those that number the entries: one absent token in 2^7 seems to
/// be there. Earlier writers had more.
const SPARE_BITS: u32 = 7;

/// The most blocks of a row group; a bitmap in the index is never longer.
pub const BLOCKS_MAX: usize = 1 << 12;

/// Length of the header in bytes: entries (4), blocks (2), fingerprint bits (1), bucket bits (1).
const HEADER_BYTES: usize = 8;

/// Tokens longer than this are cut for the index, in writing and in looking up.
const TOKEN_BYTES_MAX: usize = 256;

const IS_TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_usize;
    while byte < 256 {
        let [b, ..] = byte.to_le_bytes();
        table[byte] = b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80;
        byte += 1;
    }
    table
};

/// Whether a byte is part of a token.
pub fn is_token_byte(byte: u8) -> bool {
    IS_TOKEN[usize::from(byte)]
}

/// The tokens of a text, in order.
pub fn tokens(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    token_ranges(text).map(|(from, to)| &text[from..to])
}

/// Where the tokens of a text begin and end, in order.
pub fn token_ranges(text: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    Tokens {
        text,
        edges: Edges::default(),
    }
}

struct Tokens<'a> {
    text: &'a [u8],
    edges: Edges,
}

impl Iterator for Tokens<'_> {
    type Item = (usize, usize);

    fn next(&mut self) -> Option<(usize, usize)> {
        let from = self.edges.next(self.text)?;
        let to = self.edges.next(self.text).unwrap_or(self.text.len());
        Some((from, to))
    }
}

/// Where tokens begin and end, in turn, found for 64 bytes at a time.
#[derive(Default)]
struct Edges {
    /// Those of the bytes before `next` that were not given yet, a bit each.
    bits: u64,
    /// The bytes that were looked at.
    next: usize,
    /// 1 if the last byte that was looked at is part of a token.
    is_inside: u64,
}

impl Edges {
    fn next(&mut self, text: &[u8]) -> Option<usize> {
        while self.bits == 0 {
            let rest = text.get(self.next..).filter(|rest| !rest.is_empty())?;
            let tokens = token_bits(&rest[..rest.len().min(64)]);
            self.bits = tokens ^ (tokens << 1 | self.is_inside);
            self.is_inside = tokens >> 63;
            self.next += 64;
        }
        let at = self.next - 64 + self.bits.trailing_zeros() as usize;
        self.bits &= self.bits - 1;
        Some(at)
    }
}

/// Which of up to 64 bytes are part of a token, the first one by the lowest bit.
fn token_bits(bytes: &[u8]) -> u64 {
    if let Ok(block) = bytes.try_into() {
        return token_bits_of_block(block);
    }
    let mut block = [0; 64];
    block[..bytes.len()].copy_from_slice(bytes);
    token_bits_of_block(&block)
}

/// The same of 64 bytes. Their classes are found without branches, many at once.
fn token_bits_of_block(block: &[u8; 64]) -> u64 {
    let is_token = |byte: u8| {
        let letters = (byte | 0x20).wrapping_sub(b'a') < 26;
        let digits = byte.wrapping_sub(b'0') < 10;
        u8::from(letters | digits | (byte == b'_') | (byte >= 0x80))
    };
    let classes = block.map(is_token);
    let (eights, _) = classes.as_chunks::<8>();
    let eights = eights.iter().zip((0..64).step_by(8));
    eights.fold(0, |bits, (eight, at)| {
        // Brings the lowest bit of byte n to bit 56 + n.
        let gathered = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        bits | gathered << at
    })
}

/// The fingerprint that stands for a token.
pub fn fingerprint(token: &[u8]) -> u32 {
    (xxh3_64(&token[..token.len().min(TOKEN_BYTES_MAX)]) >> 32) as u32
}

/// Whether a token may be the fraction of a rendered time (`465922Z`). Such tokens are nearly as
/// many as there are rows. They are not indexed: their absence from the index proves nothing.
pub fn may_be_time_fraction(token: &[u8]) -> bool {
    match token.split_last() {
        Some((b'Z', digits)) => {
            (1..=9).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    }
}

/// A set of blocks of one row group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockSet {
    words: Vec<u64>,
    blocks: usize,
}

impl BlockSet {
    /// No block of `blocks`.
    pub fn none(blocks: usize) -> BlockSet {
        BlockSet {
            words: vec![0; blocks.div_ceil(64)],
            blocks,
        }
    }

    /// All of `blocks`.
    pub fn all(blocks: usize) -> BlockSet {
        let mut set = BlockSet::none(blocks);
        (0..blocks).for_each(|b| set.insert(b));
        set
    }

    /// The set of `blocks` blocks whose bits these bytes hold, least significant first.
    pub fn from_bytes(bytes: &[u8], blocks: usize) -> BlockSet {
        let mut set = BlockSet::none(blocks);
        (0..blocks)
            .filter(|block| {
                bytes
                    .get(block / 8)
                    .is_some_and(|b| b >> (block % 8) & 1 == 1)
            })
            .for_each(|block| set.insert(block));
        set
    }

    /// What [`BlockSet::from_bytes`] reads.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.blocks.div_ceil(8)];
        self.iter()
            .for_each(|block| bytes[block / 8] |= 1 << (block % 8));
        bytes
    }

    /// Adds a block.
    pub fn insert(&mut self, block: usize) {
        self.words[block / 64] |= 1 << (block % 64);
    }

    /// Whether the block is in the set.
    pub fn contains(&self, block: usize) -> bool {
        self.words
            .get(block / 64)
            .is_some_and(|w| w >> (block % 64) & 1 == 1)
    }

    /// Keeps the blocks that are in `other` too.
    pub fn intersect(&mut self, other: &BlockSet) {
        self.words
            .iter_mut()
            .zip(&other.words)
            .for_each(|(a, b)| *a &= b);
    }

    /// Adds the blocks of `other`.
    pub fn unite(&mut self, other: &BlockSet) {
        self.words
            .iter_mut()
            .zip(&other.words)
            .for_each(|(a, b)| *a |= b);
    }

    /// The blocks in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.blocks).filter(|b| self.contains(*b))
    }

    /// Whether there is no block.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|w| *w == 0)
    }
}

/// Collects the distinct tokens of one block after another.
pub struct TokenCollector {
    /// Hashes of whole tokens, by open addressing; 0 marks a free place, and hash 0 is kept as 1.
    /// Fingerprints would not do: of the tokens of a large block some share one, and the second
    /// would be missing from the words.
    table: Vec<u64>,
    used: usize,
    block: u32,
    /// Fingerprint and block, the fingerprint in the upper half, of all blocks so far.
    pairs: Vec<u64>,
    words: WordCollector,
    grams: GramCollector,
}

/// The tokens of a row group.
pub struct Index {
    /// The fingerprints and the filters of ids, as they are stored.
    pub bytes: Vec<u8>,
    /// The words; `None` if they were too many.
    pub words: Option<WordSet>,
    /// The lengths of long ids.
    pub long_ids: LongIds,
}

impl Default for TokenCollector {
    fn default() -> TokenCollector {
        TokenCollector {
            table: vec![0; 1 << 12],
            used: 0,
            block: 0,
            pairs: Vec::new(),
            words: WordCollector::default(),
            grams: GramCollector::default(),
        }
    }
}

impl TokenCollector {
    /// Adds all tokens of a text to the current block.
    pub fn add_text(&mut self, text: &[u8]) {
        for token in tokens(text) {
            self.add_token(token);
        }
    }

    /// Adds one token to the current block, unless it is of the kind that is not indexed.
    fn add_token(&mut self, token: &[u8]) {
        if may_be_time_fraction(token) {
            return self.grams.note_fraction(token.len() - 1);
        }
        let hash = xxh3_64(token).max(1);
        if place(&mut self.table, hash) {
            let fingerprint = match token.len() {
                0..=TOKEN_BYTES_MAX => (hash >> 32) as u32,
                _ => fingerprint(token),
            };
            let pair = u64::from(fingerprint.max(1)) << 32 | u64::from(self.block);
            self.pairs.push(pair);
            self.words.add(token, self.block);
            self.grams.add(token);
            self.used += 1;
            if self.used * 2 > self.table.len() {
                self.grow();
            }
        }
    }

    fn grow(&mut self) {
        let mut larger = vec![0; self.table.len() * 2];
        for &hash in self.table.iter().filter(|hash| **hash != 0) {
            place(&mut larger, hash);
        }
        self.table = larger;
    }

    /// Ends the current block; tokens added from here on belong to the next one.
    pub fn end_block(&mut self) {
        self.block += 1;
        self.grams.end_block();
        self.table.fill(0);
        self.used = 0;
    }

    /// The index of all blocks; the collector is empty for the next row group.
    pub fn finish(&mut self) -> Index {
        let blocks = self.block as usize;
        debug_assert!(blocks <= BLOCKS_MAX);
        self.block = 0;
        let mut pairs = std::mem::take(&mut self.pairs);
        pairs.sort_unstable();
        let (words, long_ids) = self.words.finish(blocks);
        let mut bytes = encode(&pairs, blocks);
        bytes.append(&mut self.grams.finish());
        Index {
            bytes,
            words,
            long_ids,
        }
    }
}

/// Puts a hash into a table; `false` if it was there.
fn place(table: &mut [u64], hash: u64) -> bool {
    let mask = table.len() - 1;
    let mut at = cast::to_usize(hash) & mask;
    loop {
        match table[at] {
            0 => {
                table[at] = hash;
                return true;
            }
            found if found == hash => return false,
            _ => at = (at + 1) & mask,
        }
    }
}

/// How the numbers of an index are laid out; derived from its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Geometry {
    entries: u32,
    blocks: u32,
    fingerprint_bits: u32,
    bucket_bits: u32,
}

impl Geometry {
    fn of(entries: usize, blocks: usize) -> Geometry {
        let number_bits = width((entries.max(1) - 1) as u64);
        let bucket_bits = width(((entries / BUCKET_ENTRIES).max(1) - 1) as u64);
        Geometry {
            entries: cast::low_u32(entries),
            blocks: cast::low_u32(blocks),
            fingerprint_bits: (number_bits + SPARE_BITS).min(32),
            bucket_bits,
        }
    }

    fn block_bits(self) -> u32 {
        width(u64::from(self.blocks.max(1)) - 1)
    }

    /// Bits of a gap that are stored as they are.
    fn rice_bits(self) -> u32 {
        let number_bits = width(u64::from(self.entries.max(1)) - 1);
        self.fingerprint_bits.saturating_sub(number_bits)
    }

    fn bucket(self, fingerprint: u32) -> u32 {
        let short = fingerprint >> (32 - self.fingerprint_bits);
        short >> (self.fingerprint_bits - self.bucket_bits)
    }

    /// Position of a fingerprint within its bucket.
    fn in_bucket(self, fingerprint: u32) -> u32 {
        let short = fingerprint >> (32 - self.fingerprint_bits);
        short & cast::low_u32((1u64 << (self.fingerprint_bits - self.bucket_bits)) - 1)
    }

    fn table_bytes(self) -> usize {
        ((1usize << self.bucket_bits) + 1) * 4
    }
}

/// The fingerprint of a pair.
fn fingerprint_of(pair: u64) -> u32 {
    (pair >> 32) as u32
}

/// The block of a pair.
fn block_of(pair: u64) -> u32 {
    cast::low_u32(pair)
}

/// Encodes pairs of fingerprint and block, which are in order.
fn encode(pairs: &[u64], blocks: usize) -> Vec<u8> {
    let short_of = |bits: u32, pair: u64| fingerprint_of(pair) >> (32 - bits);
    // The width depends on the number of entries and merges some of them; one step settles it.
    let distinct = pairs
        .chunk_by(|a, b| fingerprint_of(*a) == fingerprint_of(*b))
        .count();
    let geometry = Geometry::of(distinct, blocks);
    let bits = geometry.fingerprint_bits;
    let mut offsets = Vec::with_capacity((1 << geometry.bucket_bits) + 1);
    let mut writer = BitWriter::default();
    let mut last = 0;
    for group in pairs.chunk_by(|a, b| short_of(bits, *a) == short_of(bits, *b)) {
        let fingerprint = fingerprint_of(group[0]);
        let bucket = geometry.bucket(fingerprint) as usize;
        while offsets.len() <= bucket {
            offsets.push(cast::low_u32(writer.position()));
            last = 0;
        }
        let position = geometry.in_bucket(fingerprint);
        let gap = u64::from(position - last);
        writer.unary(gap >> geometry.rice_bits());
        writer.bits(
            gap & ((1 << geometry.rice_bits()) - 1),
            geometry.rice_bits(),
        );
        last = position;
        write_blocks(group, geometry, &mut writer);
    }
    let end = cast::low_u32(writer.position());
    offsets.resize((1 << geometry.bucket_bits) + 1, end);
    let mut out = Vec::with_capacity(HEADER_BYTES + offsets.len() * 4 + end as usize / 8 + 1);
    out.extend_from_slice(&geometry.entries.to_le_bytes());
    out.extend_from_slice(&cast::low_u16(blocks).to_le_bytes());
    out.extend_from_slice(&[
        cast::low_u8(geometry.fingerprint_bits),
        cast::low_u8(geometry.bucket_bits),
    ]);
    offsets
        .iter()
        .for_each(|o| out.extend_from_slice(&o.to_le_bytes()));
    out.extend_from_slice(&writer.finish());
    out
}

fn write_blocks(group: &[u64], geometry: Geometry, writer: &mut BitWriter) {
    let first = block_of(group[0]);
    if group.iter().all(|pair| block_of(*pair) == first) {
        writer.bits(1, 1);
        writer.bits(u64::from(first), geometry.block_bits());
        return;
    }
    writer.bits(0, 1);
    let mut set = BlockSet::none(geometry.blocks as usize);
    group
        .iter()
        .for_each(|pair| set.insert(block_of(*pair) as usize));
    for block in 0..geometry.blocks as usize {
        writer.bits(u64::from(set.contains(block)), 1);
    }
}

/// Reads parts of a stored index. The bytes it returns have been checked against their checksum.
pub trait IndexBytes {
    /// What goes wrong in reading.
    type Error: From<MalformedPage>;
    /// The bytes from `from` on, `length` of them, of the stored index.
    fn bytes(&mut self, from: usize, length: usize) -> Result<Vec<u8>, Self::Error>;
}

/// The blocks that may hold a token, found with two small reads.
pub fn look_up<B: IndexBytes>(index: &mut B, token: &[u8]) -> Result<BlockSet, B::Error> {
    let header = index.bytes(0, HEADER_BYTES)?;
    let geometry = read_header(&header)?;
    let fingerprint = fingerprint(token).max(1);
    let bucket = geometry.bucket(fingerprint) as usize;
    let offsets = index.bytes(HEADER_BYTES + bucket * 4, 8)?;
    let offset =
        |at: usize| u32::from_le_bytes(offsets[at..at + 4].try_into().unwrap_or_default()) as usize;
    let (from, to) = (offset(0), offset(4));
    if from > to {
        return Err(MalformedPage("token buckets overlap").into());
    }
    let entries_from = HEADER_BYTES + geometry.table_bytes();
    let bytes = index.bytes(entries_from + from / 8, to.div_ceil(8) - from / 8)?;
    Ok(scan_bucket(
        &bytes,
        from % 8,
        to - from / 8 * 8,
        geometry,
        fingerprint,
    )?)
}

fn read_header(header: &[u8]) -> Result<Geometry, MalformedPage> {
    let bytes: [u8; HEADER_BYTES] = header
        .try_into()
        .map_err(|_| MalformedPage("the token index ends early"))?;
    let entries = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let blocks = usize::from(u16::from_le_bytes([bytes[4], bytes[5]]));
    let expected = Geometry::of(entries as usize, blocks);
    let geometry = Geometry {
        fingerprint_bits: u32::from(bytes[6]),
        ..expected
    };
    let are_bits_known = (expected.fingerprint_bits..=32).contains(&geometry.fingerprint_bits);
    if blocks > BLOCKS_MAX || !are_bits_known || u32::from(bytes[7]) != geometry.bucket_bits {
        return Err(MalformedPage("the header of the token index is wrong"));
    }
    Ok(geometry)
}

/// The blocks that may hold a text within an id, or `None` if the index, which has so many bytes, does not say:
/// for a text that is too short or no part of an id, and in files of earlier writers.
pub fn blocks_with_id_part<B: IndexBytes>(
    index: &mut B,
    bytes: usize,
    text: &[u8],
) -> Result<Option<BlockSet>, B::Error> {
    if text.len() < GRAM_BYTES || !is_id(text) {
        return Ok(None);
    }
    let geometry = read_header(&index.bytes(0, HEADER_BYTES)?)?;
    let table_end = HEADER_BYTES + geometry.table_bytes();
    let end = index.bytes(table_end - 4, 4)?;
    let end = u32::from_le_bytes(end.try_into().unwrap_or_default()) as usize;
    let from = table_end + end.div_ceil(8);
    if from >= bytes {
        return Ok(None);
    }
    grams::blocks_with(index, (from, geometry.blocks as usize), text).map(Some)
}

fn scan_bucket(
    bytes: &[u8],
    from: usize,
    to: usize,
    geometry: Geometry,
    fingerprint: u32,
) -> Result<BlockSet, MalformedPage> {
    let mut found = BlockSet::none(geometry.blocks as usize);
    let wanted = u64::from(geometry.in_bucket(fingerprint));
    let mut reader = BitReader::new(bytes, from);
    let mut position = 0;
    while reader.position() < to {
        let high = reader.unary()?;
        let low = reader.bits(geometry.rice_bits())?;
        position += (high << geometry.rice_bits()) | low;
        let here = position == wanted;
        if reader.bits(1)? == 1 {
            let block = cast::to_usize(reader.bits(geometry.block_bits())?);
            if here && block < geometry.blocks as usize {
                found.insert(block);
            }
        } else {
            for block in 0..geometry.blocks as usize {
                if reader.bits(1)? == 1 && here {
                    found.insert(block);
                }
            }
        }
        if position >= wanted {
            break;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Slice<'a>(&'a [u8]);

    impl IndexBytes for Slice<'_> {
        type Error = MalformedPage;
        fn bytes(&mut self, from: usize, length: usize) -> Result<Vec<u8>, MalformedPage> {
            let to = from.saturating_add(length);
            self.0
                .get(from..to)
                .map(<[u8]>::to_vec)
                .ok_or(MalformedPage("short"))
        }
    }

    /// Words that share their fingerprint, or more bytes than it covers, with an earlier token.
    #[test]
    fn no_word_is_lost_to_another_of_the_same_fingerprint() {
        let mut seen = std::collections::HashMap::new();
        let pair = (0u32..).find_map(|n| {
            let word = format!("w{n}x");
            let before = seen.insert(fingerprint(word.as_bytes()), word.clone());
            before.map(|before| (before, word))
        });
        let (first, second) = pair.unwrap();
        let long = "y".repeat(TOKEN_BYTES_MAX);
        let words = [first, second, format!("{long}1"), format!("{long}2")];
        let mut collector = TokenCollector::default();
        words
            .iter()
            .for_each(|word| collector.add_token(word.as_bytes()));
        collector.end_block();
        let mut list = ListBuilder::default();
        list.add(&collector.finish().words.unwrap());
        let found = Words::new(list.finish().unwrap().bytes).unwrap();
        for word in words {
            let holding = found.holding(word.as_bytes(), true, true, false).unwrap();
            assert_eq!(holding, [word.as_bytes()]);
        }
    }

    #[test]
    fn words_are_cut_at_everything_else() {
        let text = "GET /a_b?c=1 \"Zoë-2\" \0x";
        let expected: [&[u8]; 7] = [b"GET", b"a_b", b"c", b"1", "Zoë".as_bytes(), b"2", b"x"];
        assert!(tokens(text.as_bytes()).eq(expected));
    }

    /// Texts whose edges lie around the 8 and the 64 bytes that are looked at together.
    fn text() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![any::<u8>(), Just(b'a'), Just(b' ')];
        proptest::collection::vec((byte, 1usize..20), 0..30)
            .prop_map(|runs| runs.into_iter().flat_map(|(b, n)| vec![b; n]).collect())
    }

    fn build(blocks: &[Vec<String>]) -> Vec<u8> {
        let mut collector = TokenCollector::default();
        for block in blocks {
            block.iter().for_each(|t| collector.add_text(t.as_bytes()));
            collector.end_block();
        }
        collector.finish().bytes
    }

    #[test]
    fn rare_tokens_name_one_block_and_absent_ones_almost_none() {
        let blocks: Vec<Vec<String>> = (0..40)
            .map(|b| (0..3000).map(|i| format!("id{b}x{i} common")).collect())
            .collect();
        let index = build(&blocks);
        assert!(index.len() < 120_000 * 20 / 8, "{} bytes", index.len());
        let mut wrong = 0;
        for i in 0..2000 {
            let set = look_up(&mut Slice(&index), format!("id{}x{i}", i % 40).as_bytes()).unwrap();
            assert!(set.contains(i % 40));
            wrong += set.iter().count() - 1;
            wrong += look_up(&mut Slice(&index), format!("no{i}").as_bytes())
                .unwrap()
                .iter()
                .count();
        }
        assert!(wrong < 60, "{wrong} blocks too many in 4000 look-ups");
        assert_eq!(
            look_up(&mut Slice(&index), b"common").unwrap(),
            BlockSet::all(40)
        );
    }

    #[test]
    fn every_byte_is_of_one_kind_wherever_it_stands() {
        for at in 0..70 {
            let mut text = [b' '; 70];
            for byte in 0..=u8::MAX {
                text[at] = byte;
                let expected = is_token_byte(byte).then(|| vec![byte]);
                assert!(tokens(&text).eq(expected), "{byte} at {at}");
            }
        }
    }

    proptest! {
        #[test]
        fn tokens_are_what_is_between_other_bytes(text in text()) {
            let parts = text.split(|byte| !is_token_byte(*byte));
            let expected: Vec<&[u8]> = parts.filter(|part| !part.is_empty()).collect();
            prop_assert_eq!(tokens(&text).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn no_block_is_missed(blocks in proptest::collection::vec(proptest::collection::vec("[a-c0-2]{1,3}", 0..20), 0..12)) {
            let index = build(&blocks);
            for (number, block) in blocks.iter().enumerate() {
                for token in block {
                    prop_assert!(look_up(&mut Slice(&index), token.as_bytes()).unwrap().contains(number));
                }
            }
        }

        #[test]
        fn garbage_never_panics(index in proptest::collection::vec(any::<u8>(), 0..200), token in "[a-z]{1,4}") {
            let _ = look_up(&mut Slice(&index), token.as_bytes());
        }
    }
}

//! The words of a row group: its tokens as text, for searches within words.
//!
//! Fingerprints answer "which blocks hold this token". A substring is rarely a whole token, so
//! the distinct *words* are kept too, as text: all tokens but *ids*, those of up to 32
//! hexadecimal digits, which are many and different. A search text with any other byte cannot lie within
//! such an id; if no word holds it, no row does. Measured on access logs, JSON and syslog, the
//! words take 0.06 to 0.43 % of the raw size.
//!
//! Layout after decompression: the table of long ids (a count of 16 bits, then for each length
//! of 16 bits a bitmap of the blocks with an id of that length), then a newline and each word
//! followed by a newline, sorted.

use std::borrow::Cow;

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

use super::BlockSet;
use crate::encoding::Malformed;

/// The most bytes of words in a row group. Beyond, none are kept and searches read all blocks.
const WORDS_BYTES_MAX: usize = 2 << 20;

/// Ids longer than this have their lengths kept, so that a search for a whole long id (a trace
/// id, a checksum) reads only the blocks with that id or with longer ones.
pub const ID_BYTES_SHORT_MAX: usize = 16;

/// The longest ids: 128 bits, as traces have. Longer runs of digits (checksums) are rarer, and are
/// words.
const ID_BYTES_MAX: usize = 32;

/// Words that a search may hit before it is not worth looking them all up.
const HITS_MAX: usize = 256;

/// Whether a token consists of up to 32 hexadecimal digits, and is not among the words.
pub fn is_id(token: &[u8]) -> bool {
    token.len() <= ID_BYTES_MAX && token.iter().all(u8::is_ascii_hexdigit)
}

/// Collects the words of a row group.
#[derive(Default)]
pub(super) struct WordCollector {
    bytes: Vec<u8>,
    ranges: Vec<(u32, u32)>,
    known: HashTable<u32>,
    overflowed: bool,
    long_ids: Vec<(u16, Vec<u32>)>,
}

impl WordCollector {
    /// Takes note of a token that is new in its block.
    pub(super) fn add(&mut self, token: &[u8], block: u32) {
        if is_id(token) {
            if token.len() > ID_BYTES_SHORT_MAX {
                self.add_long_id(token.len() as u16, block);
            }
            return;
        }
        if self.overflowed {
            return;
        }
        let (bytes, ranges) = (&self.bytes, &self.ranges);
        let word = |at: &u32| {
            let (from, to) = ranges[*at as usize];
            &bytes[from as usize..to as usize]
        };
        let hash = xxh3_64(token);
        if self.known.find(hash, |at| word(at) == token).is_some() {
            return;
        }
        if self.bytes.len() + token.len() > WORDS_BYTES_MAX {
            *self = WordCollector {
                overflowed: true,
                long_ids: std::mem::take(&mut self.long_ids),
                ..Self::default()
            };
            return;
        }
        let at = self.ranges.len() as u32;
        self.known.insert_unique(hash, at, |at| xxh3_64(word(at)));
        let from = self.bytes.len() as u32;
        self.bytes.extend_from_slice(token);
        self.ranges.push((from, self.bytes.len() as u32));
    }

    fn add_long_id(&mut self, length: u16, block: u32) {
        let at = match self.long_ids.binary_search_by_key(&length, |(l, _)| *l) {
            Ok(at) => at,
            Err(at) => {
                self.long_ids.insert(at, (length, Vec::new()));
                at
            }
        };
        let blocks = &mut self.long_ids[at].1;
        if blocks.last() != Some(&block) {
            blocks.push(block);
        }
    }

    /// The words as they are stored, before compression; nothing if they were too many.
    pub(super) fn finish(&mut self, blocks: usize) -> Vec<u8> {
        let collector = std::mem::take(self);
        if collector.overflowed {
            return Vec::new();
        }
        let mut out = Vec::with_capacity(collector.bytes.len() + collector.ranges.len() + 64);
        out.extend_from_slice(&(collector.long_ids.len() as u16).to_le_bytes());
        for (length, in_blocks) in &collector.long_ids {
            out.extend_from_slice(&length.to_le_bytes());
            let from = out.len();
            out.resize(from + blocks.div_ceil(8), 0);
            in_blocks
                .iter()
                .for_each(|b| out[from + *b as usize / 8] |= 1 << (b % 8));
        }
        let mut words: Vec<&[u8]> = collector
            .ranges
            .iter()
            .map(|(a, b)| &collector.bytes[*a as usize..*b as usize])
            .collect();
        words.sort_unstable();
        out.push(b'\n');
        for word in words {
            out.extend_from_slice(word);
            out.push(b'\n');
        }
        out
    }
}

/// The words of a row group, as read.
pub struct Words {
    bytes: Vec<u8>,
    text_from: usize,
    blocks: usize,
}

impl Words {
    /// Reads what was stored for a row group of `blocks` blocks.
    pub fn new(bytes: Vec<u8>, blocks: usize) -> Result<Words, Malformed> {
        let count = bytes
            .first_chunk::<2>()
            .ok_or(Malformed("the words end early"))?;
        let entry = 2 + blocks.div_ceil(8);
        let text_from = 2 + usize::from(u16::from_le_bytes(*count)) * entry;
        match bytes.get(text_from) {
            Some(b'\n') => Ok(Words {
                bytes,
                text_from,
                blocks,
            }),
            _ => Err(Malformed("the words end early")),
        }
    }

    /// The blocks with ids longer than `bytes`.
    pub fn blocks_with_longer_ids(&self, bytes: usize) -> BlockSet {
        let mut set = BlockSet::none(self.blocks);
        for entry in self.bytes[2..self.text_from].chunks(2 + self.blocks.div_ceil(8)) {
            let length = usize::from(u16::from_le_bytes([entry[0], entry[1]]));
            if length > bytes {
                (0..self.blocks)
                    .filter(|b| entry[2 + b / 8] >> (b % 8) & 1 == 1)
                    .for_each(|b| set.insert(b));
            }
        }
        set
    }

    /// The words that hold `part`, at their start or end if asked for; `None` if they are too
    /// many to be of use. With `folded`, both sides are compared as [`fold`] gives them.
    pub fn holding(
        &self,
        part: &[u8],
        at_start: bool,
        at_end: bool,
        folded: bool,
    ) -> Option<Vec<&[u8]>> {
        let text = &self.bytes[self.text_from..];
        let mut needle = Vec::with_capacity(part.len() + 2);
        needle.extend(at_start.then_some(b'\n'));
        needle.extend_from_slice(part);
        needle.extend(at_end.then_some(b'\n'));
        let folded_text;
        let haystack = match folded {
            true => {
                needle = fold(&needle).into_owned();
                folded_text = fold(text);
                &folded_text[..]
            }
            false => text,
        };
        if haystack.len() != text.len() {
            return self.holding_one_by_one(&needle);
        }
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(at) = memchr::memmem::find(&haystack[from..], &needle) {
            let inside = from + at + usize::from(at_start);
            let start = memchr::memrchr(b'\n', &text[..inside]).map_or(0, |n| n + 1);
            let end = memchr::memchr(b'\n', &text[inside..]).map_or(text.len(), |n| inside + n);
            if found.len() == HITS_MAX {
                return None;
            }
            found.push(&text[start..end]);
            from = end;
        }
        Some(found)
    }

    /// The words that hold a folded needle, newlines around each counted, where folding changes
    /// their lengths.
    fn holding_one_by_one(&self, needle: &[u8]) -> Option<Vec<&[u8]>> {
        let text = &self.bytes[self.text_from + 1..];
        let mut found = Vec::new();
        let mut line = Vec::new();
        for word in text.split(|b| *b == b'\n').filter(|word| !word.is_empty()) {
            line.clear();
            line.push(b'\n');
            line.extend_from_slice(&fold(word));
            line.push(b'\n');
            if memchr::memmem::find(&line, needle).is_some() {
                if found.len() == HITS_MAX {
                    return None;
                }
                found.push(word);
            }
        }
        Some(found)
    }
}

/// A text with letters that differ in case only made the same: ASCII letters, and the two letters
/// beyond that fold to one of them, the long s and the Kelvin sign.
pub fn fold(text: &[u8]) -> Cow<'_, [u8]> {
    const LONG_S: &[u8] = "\u{17f}".as_bytes();
    const KELVIN: &[u8] = "\u{212a}".as_bytes();
    let has = |sign: &[u8]| memchr::memmem::find(text, sign).is_some();
    let may_fold = |b: &u8| b.is_ascii_uppercase() || *b == LONG_S[0] || *b == KELVIN[0];
    if !text.iter().any(may_fold) {
        return Cow::Borrowed(text);
    }
    let mut lower = text.to_ascii_lowercase();
    for (sign, letter) in [(LONG_S, b's'), (KELVIN, b'k')] {
        if has(sign) {
            lower = replace(&lower, sign, letter);
        }
    }
    Cow::Owned(lower)
}

fn replace(text: &[u8], sign: &[u8], letter: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut from = 0;
    for at in memchr::memmem::find_iter(text, sign) {
        out.extend_from_slice(&text[from..at]);
        out.push(letter);
        from = at + sign.len();
    }
    out.extend_from_slice(&text[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(list: &[(&str, u32)]) -> Words {
        let mut collector = WordCollector::default();
        list.iter()
            .for_each(|(word, block)| collector.add(word.as_bytes(), *block));
        Words::new(collector.finish(10), 10).unwrap()
    }

    #[test]
    fn words_are_found_by_their_parts() {
        let words = words(&[
            ("Connection", 0),
            ("connect", 1),
            ("reconnect", 1),
            ("deadbeef", 2),
        ]);
        let found = |part: &str, start, end, folded| -> Vec<String> {
            let hits = words.holding(part.as_bytes(), start, end, folded).unwrap();
            hits.iter()
                .map(|w| String::from_utf8_lossy(w).into_owned())
                .collect()
        };
        assert_eq!(
            found("onnect", false, false, false),
            ["Connection", "connect", "reconnect"]
        );
        assert_eq!(
            found("connect", false, true, false),
            ["connect", "reconnect"]
        );
        assert_eq!(found("connect", true, true, false), ["connect"]);
        assert_eq!(
            found("CONNECT", true, false, true),
            ["Connection", "connect"]
        );
        assert!(found("beef", false, false, false).is_empty());
    }

    #[test]
    fn letters_beyond_ascii_fold() {
        let list = ["Di\u{17f}K", "diſk1", "disc", "\u{212a}elvin", "kelvi"];
        let words = words(&list.map(|word| (word, 0)));
        let found = |part: &str, start, end| words.holding(part.as_bytes(), start, end, true);
        let texts = |hits: Option<Vec<&[u8]>>| -> Vec<String> {
            let hits = hits.unwrap().into_iter();
            hits.map(|w| String::from_utf8_lossy(w).into_owned())
                .collect()
        };
        assert_eq!(texts(found("DISK", false, true)), ["DiſK"]);
        assert_eq!(texts(found("is", false, false)), ["DiſK", "disc", "diſk1"]);
        assert_eq!(
            texts(found("\u{212a}el", true, false)),
            ["kelvi", "\u{212a}elvin"]
        );
        assert!(matches!(fold(b"plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn long_ids_are_known_by_length() {
        let id = "0123456789abcdef0123456789abcdef";
        let words = words(&[(id, 3), (&id[..16], 4), (&id[..20], 5)]);
        assert!(words.blocks_with_longer_ids(20).iter().eq([3]));
        assert!(words.blocks_with_longer_ids(16).iter().eq([3, 5]));
        assert!(words.blocks_with_longer_ids(32).is_empty());
    }

    #[test]
    fn garbage_is_refused() {
        assert!(Words::new(vec![], 1).is_err());
        assert!(Words::new(vec![9, 0, 1], 1).is_err());
    }
}

//! Words: the tokens of row groups as text, for searches within words.
//!
//! Fingerprints answer "which blocks hold this token". A substring is rarely a whole token, so
//! the distinct *words* are kept too, as text: all tokens but *ids*, those of up to 32
//! hexadecimal digits, which are many and different. A search text with any other byte cannot lie
//! within such an id; if no word holds it, no row does. Of long ids the lengths are kept.
//!
//! Neighbouring row groups have most of their frequent words in common, so several of them share
//! one list. Measured on access logs, JSON and syslog, the lists take 0.1 % of the raw size.
//!
//! Layout of a list after decompression: a newline, and each word followed by a newline, sorted.

use std::borrow::Cow;

use hashbrown::HashTable;
use logpond_record::cast;
use xxhash_rust::xxh3::xxh3_64;

use super::BlockSet;
use crate::encoding::MalformedPage;

/// The most bytes of words in a row group. Beyond, none are kept and searches read all blocks.
const WORDS_BYTES_MAX: usize = 2 << 20;

/// A list of words ends with the row group in which it grows beyond this: reading it takes about a
/// millisecond.
const LIST_BYTES: usize = 1 << 20;

/// The largest list of words, newlines included.
pub const LIST_BYTES_MAX: usize = 2 * (LIST_BYTES + WORDS_BYTES_MAX);

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

/// The lengths of the long ids of a row group, ascending, with the blocks they are in.
pub type LongIds = Vec<(u16, BlockSet)>;

/// The blocks with ids longer than `bytes`.
pub fn blocks_with_longer_ids(ids: &LongIds, bytes: usize, blocks: usize) -> BlockSet {
    let mut set = BlockSet::none(blocks);
    let longer = ids
        .iter()
        .filter(|(length, _)| usize::from(*length) > bytes);
    longer.for_each(|(_, blocks)| set.unite(blocks));
    set
}

/// Distinct words.
#[derive(Default)]
pub struct WordSet {
    bytes: Vec<u8>,
    ranges: Vec<(u32, u32)>,
    known: HashTable<u32>,
}

impl WordSet {
    fn get(&self, at: u32) -> &[u8] {
        let (from, to) = self.ranges[at as usize];
        &self.bytes[from as usize..to as usize]
    }

    /// Bytes of all words.
    fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn insert(&mut self, word: &[u8]) {
        let hash = xxh3_64(word);
        if self.known.find(hash, |at| self.get(*at) == word).is_some() {
            return;
        }
        let (bytes, ranges) = (&self.bytes, &self.ranges);
        let hash_of = |at: &u32| {
            let (from, to) = ranges[*at as usize];
            xxh3_64(&bytes[from as usize..to as usize])
        };
        self.known
            .insert_unique(hash, cast::low_u32(self.ranges.len()), hash_of);
        let from = cast::low_u32(self.bytes.len());
        self.bytes.extend_from_slice(word);
        self.ranges.push((from, cast::low_u32(self.bytes.len())));
    }

    fn encode(&self) -> Vec<u8> {
        let mut words: Vec<&[u8]> = (0..cast::low_u32(self.ranges.len()))
            .map(|at| self.get(at))
            .collect();
        words.sort_unstable();
        let mut out = Vec::with_capacity(self.bytes.len() + words.len() + 1);
        out.push(b'\n');
        for word in words {
            out.extend_from_slice(word);
            out.push(b'\n');
        }
        out
    }
}

/// Collects the words of a row group.
#[derive(Default)]
pub(super) struct WordCollector {
    words: WordSet,
    overflowed: bool,
    long_ids: Vec<(u16, Vec<u32>)>,
}

impl WordCollector {
    /// Takes note of a token that is new in its block.
    pub(super) fn add(&mut self, token: &[u8], block: u32) {
        if is_id(token) {
            if token.len() > ID_BYTES_SHORT_MAX {
                self.add_long_id(cast::low_u16(token.len()), block);
            }
        } else if self.words.bytes() + token.len() > WORDS_BYTES_MAX {
            self.overflowed = true;
            self.words = WordSet::default();
        } else if !self.overflowed {
            self.words.insert(token);
        }
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

    /// The words, `None` if they were too many; and the long ids.
    pub(super) fn finish(&mut self, blocks: usize) -> (Option<WordSet>, LongIds) {
        let collector = std::mem::take(self);
        let long_ids = collector.long_ids.into_iter().map(|(length, in_blocks)| {
            let mut set = BlockSet::none(blocks);
            in_blocks
                .iter()
                .for_each(|block| set.insert(*block as usize));
            (length, set)
        });
        let words = (!collector.overflowed).then_some(collector.words);
        (words, long_ids.collect())
    }
}

/// Puts the words of row groups into lists.
#[derive(Default)]
pub struct ListBuilder {
    words: WordSet,
    /// Row groups since the list began.
    groups: u32,
}

/// A list of words, as it is stored before compression.
pub struct List {
    /// The row groups at the end of those so far whose words are in it.
    pub groups: u32,
    /// The list's bytes.
    pub bytes: Vec<u8>,
}

impl ListBuilder {
    /// Adds the words of the next row group; gives the list that ends with it.
    pub fn add(&mut self, words: &WordSet) -> Option<List> {
        (0..cast::low_u32(words.ranges.len())).for_each(|at| self.words.insert(words.get(at)));
        self.groups += 1;
        if self.words.bytes() > LIST_BYTES {
            self.finish()
        } else {
            None
        }
    }

    /// Ends the list, if there is one.
    pub fn finish(&mut self) -> Option<List> {
        let list = std::mem::take(self);
        (list.groups > 0).then(|| List {
            groups: list.groups,
            bytes: list.words.encode(),
        })
    }
}

/// A list of words, as read.
pub struct Words {
    bytes: Vec<u8>,
}

impl Words {
    /// Reads a list.
    pub fn new(bytes: Vec<u8>) -> Result<Words, MalformedPage> {
        match (bytes.first(), bytes.last()) {
            (Some(b'\n'), Some(b'\n')) => Ok(Words { bytes }),
            _ => Err(MalformedPage("the words end early")),
        }
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
        let mut found = Vec::new();
        let is_complete = self.visit_holding(part, (at_start, at_end), folded, |word| {
            found.push(word);
            found.len() <= HITS_MAX
        });
        is_complete.then_some(found)
    }

    /// Hands over the words that hold `part`, as [`Words::holding`] finds them, until `visit` says no;
    /// `false` then.
    pub fn visit_holding<'w>(
        &'w self,
        part: &[u8],
        (at_start, at_end): (bool, bool),
        folded: bool,
        mut visit: impl FnMut(&'w [u8]) -> bool,
    ) -> bool {
        let text = &self.bytes[..];
        let mut needle = Vec::with_capacity(part.len() + 2);
        needle.extend(at_start.then_some(b'\n'));
        needle.extend_from_slice(part);
        needle.extend(at_end.then_some(b'\n'));
        let folded_text;
        let haystack = if folded {
            needle = fold(&needle).into_owned();
            folded_text = fold(text);
            &folded_text[..]
        } else {
            text
        };
        if haystack.len() != text.len() {
            return self.visit_one_by_one(&needle, visit);
        }
        let finder = memchr::memmem::Finder::new(&needle);
        let mut from = 0;
        while let Some(at) = finder.find(&haystack[from..]) {
            let inside = from + at + usize::from(at_start);
            let start = memchr::memrchr(b'\n', &text[..inside]).map_or(0, |n| n + 1);
            let end = memchr::memchr(b'\n', &text[inside..]).map_or(text.len(), |n| inside + n);
            if !visit(&text[start..end]) {
                return false;
            }
            from = end;
        }
        true
    }

    /// The same for a folded needle, newlines around each counted, where folding changes the lengths of
    /// words.
    fn visit_one_by_one<'w>(
        &'w self,
        needle: &[u8],
        mut visit: impl FnMut(&'w [u8]) -> bool,
    ) -> bool {
        let mut line = Vec::new();
        let words = self.bytes.split(|b| *b == b'\n');
        for word in words.filter(|word| !word.is_empty()) {
            line.clear();
            line.push(b'\n');
            line.extend_from_slice(&fold(word));
            line.push(b'\n');
            if memchr::memmem::find(&line, needle).is_some() && !visit(word) {
                return false;
            }
        }
        true
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

    fn collected(list: &[(&str, u32)]) -> (Option<WordSet>, LongIds) {
        let mut collector = WordCollector::default();
        list.iter()
            .for_each(|(word, block)| collector.add(word.as_bytes(), *block));
        collector.finish(10)
    }

    fn words(list: &[(&str, u32)]) -> Words {
        let mut builder = ListBuilder::default();
        assert!(builder.add(&collected(list).0.unwrap()).is_none());
        Words::new(builder.finish().unwrap().bytes).unwrap()
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
        let (_, ids) = collected(&[(id, 3), (&id[..16], 4), (&id[..20], 5)]);
        let longer = |bytes: usize| blocks_with_longer_ids(&ids, bytes, 10);
        assert!(longer(20).iter().eq([3]));
        assert!(longer(16).iter().eq([3, 5]));
        assert!(longer(32).is_empty());
    }

    #[test]
    fn lists_end_when_they_are_long() {
        let mut builder = ListBuilder::default();
        let group = |number: usize| {
            let mut words = WordSet::default();
            words.insert(b"everywhere");
            words.insert(format!("{number}{}", "x".repeat(LIST_BYTES / 3)).as_bytes());
            words
        };
        let lists: Vec<u32> = (0..7)
            .filter_map(|number| builder.add(&group(number)))
            .map(|list| {
                assert!(list.bytes.len() <= LIST_BYTES_MAX);
                list.groups
            })
            .collect();
        assert_eq!(lists, [3, 3]);
        assert_eq!(builder.finish().unwrap().groups, 1);
        assert!(builder.finish().is_none());
    }

    #[test]
    fn too_many_words_are_not_kept() {
        let mut collector = WordCollector::default();
        let long = "y".repeat(WORDS_BYTES_MAX);
        collector.add(long.as_bytes(), 0);
        collector.add(b"more", 0);
        assert!(collector.finish(1).0.is_none());
        collector.add(b"more", 0);
        assert!(collector.finish(1).0.is_some());
    }

    #[test]
    fn garbage_is_refused() {
        assert!(Words::new(vec![]).is_err());
        assert!(Words::new(b"word\n".to_vec()).is_err());
    }
}

//! What of a file is under which checksum.

use super::directory::{Directory, TOKEN_PART_BYTES};

/// Bytes of a segment file that share a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// CRC32C of them; `None` if the directory lacks it, which is damage.
    pub crc: Option<u32>,
    /// What is to be said if they do not have it.
    pub what: &'static str,
}

impl Directory {
    /// All pages, parts of token indexes, lists of words and summaries, in the order of the file.
    pub fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        for group in &self.row_groups {
            let columns = group.columns.iter();
            let pages = columns.flat_map(|column| column.dictionary.iter().chain(&column.pages));
            parts.extend(pages.map(|page| Part {
                offset: page.offset,
                bytes: u64::from(page.bytes),
                crc: Some(page.crc),
                what: "a page has a wrong checksum",
            }));
            let index = &group.tokens;
            let places = (0..index.bytes as usize).step_by(TOKEN_PART_BYTES);
            parts.extend(places.enumerate().map(|(number, from)| Part {
                offset: index.offset.saturating_add(from as u64),
                bytes: TOKEN_PART_BYTES.min(index.bytes as usize - from) as u64,
                crc: index.crcs.get(number).copied(),
                what: "the token index is damaged",
            }));
        }
        parts.extend(self.words.iter().map(|list| Part {
            offset: list.offset,
            bytes: u64::from(list.bytes),
            crc: Some(list.crc),
            what: "the words have a wrong checksum",
        }));
        let derived = [
            (self.overview, "the overview has a wrong checksum"),
            (self.timeline, "the timeline has a wrong checksum"),
            (self.patterns, "the table of patterns has a wrong checksum"),
        ];
        parts.extend(derived.into_iter().filter_map(|(place, what)| {
            let place = place?;
            Some(Part {
                offset: place.offset,
                bytes: place.bytes as u64,
                crc: Some(place.crc),
                what,
            })
        }));
        parts.sort_unstable_by_key(|part| (part.offset, part.bytes));
        parts
    }
}

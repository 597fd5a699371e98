//! The directory of a segment file: where every page lies, and what it must look like.

use logpond_record::cast;

use crate::encoding::{MalformedPage, read_varint, unzigzag, write_varint, zigzag};
use crate::rows::{ColumnSpec, ColumnType, FieldCount, FieldCounts, Schema};
use crate::tokens::{BlockSet, LongIds};

/// The largest directory that is read, in bytes after decompression.
pub(super) const DIRECTORY_BYTES_MAX: usize = 64 << 20;

/// Where a page lies, and its checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageEntry {
    /// First byte of the page's header in the file.
    pub offset: u64,
    /// Bytes of header and body together.
    pub bytes: u32,
    /// Bytes of the header.
    pub header_bytes: u32,
    /// Bytes of the body after decompression.
    pub plain_bytes: u32,
    /// CRC32C of header and body.
    pub crc: u32,
    /// Rows that the page covers; values in a dictionary.
    pub rows: u32,
    /// Of these, rows with a value.
    pub values: u32,
}

/// The pages of one column in one row group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnEntry {
    /// Rows with a value.
    pub values: u32,
    /// The dictionary, if values are stored as codes.
    pub dictionary: Option<PageEntry>,
    /// The data pages in row order; each covers whole blocks.
    pub pages: Vec<PageEntry>,
}

/// A block of rows: the unit of the token index and of scanning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockEntry {
    /// Number of rows.
    pub rows: u32,
    /// Bytes of the lines, line ends included.
    pub line_bytes: u32,
    /// Earliest event time in nanoseconds.
    pub time_min: i64,
    /// Latest event time in nanoseconds.
    pub time_max: i64,
}

/// The token index of a row group, checked in parts of [`TOKEN_PART_BYTES`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokensEntry {
    /// First byte in the file.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// CRC32C of each part.
    pub crcs: Vec<u32>,
    /// The lengths of long ids.
    pub long_ids: LongIds,
}

/// A list of the words of some neighbouring row groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WordsEntry {
    /// The first row group.
    pub groups_from: u32,
    /// The row group behind the last one.
    pub groups_to: u32,
    /// First byte in the file.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// Bytes after decompression.
    pub plain_bytes: u32,
    /// CRC32C of the bytes.
    pub crc: u32,
}

/// The place of a part of a file that is compressed as one, and its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// First byte.
    pub offset: u64,
    /// Its length as it is stored.
    pub bytes: usize,
    /// Its length after decompression.
    pub plain_bytes: usize,
    /// CRC32C of the stored bytes.
    pub crc: u32,
}

/// Bytes of the token index that share a checksum: what a look-up reads at least.
pub(super) const TOKEN_PART_BYTES: usize = 4096;

/// A row group: a slice of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowGroupEntry {
    /// The blocks in row order.
    pub blocks: Vec<BlockEntry>,
    /// The columns in the order of the file: the fixed ones, then those of the schema.
    pub columns: Vec<ColumnEntry>,
    /// The token index.
    pub tokens: TokensEntry,
}

impl RowGroupEntry {
    /// About the memory of all dictionaries, once they are decoded.
    pub fn dictionary_bytes(&self) -> u64 {
        let pages = self.columns.iter().filter_map(|column| column.dictionary);
        let place = size_of::<(u32, u32)>() as u64;
        pages
            .map(|page| u64::from(page.plain_bytes) + u64::from(page.rows) * place)
            .sum()
    }

    /// The memory that the row group takes in a directory.
    fn memory_bytes(&self) -> usize {
        let pages = self.columns.iter().map(|column| column.pages.capacity());
        self.blocks.capacity() * size_of::<BlockEntry>()
            + self.columns.capacity() * size_of::<ColumnEntry>()
            + pages.sum::<usize>() * size_of::<PageEntry>()
            + self.tokens.crcs.capacity() * size_of::<u32>()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.blocks.iter().map(|b| b.rows as usize).sum()
    }

    /// Bytes of the lines, line ends included.
    pub fn line_bytes(&self) -> u64 {
        self.blocks.iter().map(|b| u64::from(b.line_bytes)).sum()
    }

    /// Where the pages lie, as offset and length.
    pub(super) fn pages_range(&self) -> (u64, u64) {
        let columns = self.columns.iter();
        let pages = columns.flat_map(|column| column.dictionary.iter().chain(&column.pages));
        let (from, to) = pages.fold((u64::MAX, 0), |(from, to), page| {
            let end = page.offset.saturating_add(u64::from(page.bytes));
            (from.min(page.offset), to.max(end))
        });
        (from, to.saturating_sub(from))
    }

    /// Earliest and latest event time in nanoseconds.
    pub fn time_bounds(&self) -> (i64, i64) {
        self.blocks
            .iter()
            .fold((i64::MAX, i64::MIN), |(min, max), b| {
                (min.min(b.time_min), max.max(b.time_max))
            })
    }
}

/// Everything a reader must know of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    /// The columns of fields.
    pub schema: Schema,
    /// Types and counts of all fields, those without a column included.
    pub counts: FieldCounts,
    /// The row groups in time order.
    pub row_groups: Vec<RowGroupEntry>,
    /// The lists of words in the order of their row groups. A row group in none of them has its
    /// words nowhere.
    pub words: Vec<WordsEntry>,
    /// The place of the overview, if there is one.
    pub overview: Option<Place>,
    /// The place of the timeline, if there is one.
    pub timeline: Option<Place>,
    /// The place of the pattern table, if there is one.
    pub patterns: Option<Place>,
}

impl Directory {
    /// The memory that it takes, but for the names and shapes of columns.
    pub fn memory_bytes(&self) -> usize {
        let groups = self.row_groups.iter().map(RowGroupEntry::memory_bytes);
        self.row_groups.capacity() * size_of::<RowGroupEntry>()
            + self.words.capacity() * size_of::<WordsEntry>()
            + self.schema.columns.capacity() * size_of::<ColumnSpec>()
            + groups.sum::<usize>()
    }

    /// The number of the list with the words of a row group.
    pub fn words_of(&self, group: usize) -> Option<usize> {
        let holds = |list: &WordsEntry| {
            (list.groups_from as usize..list.groups_to as usize).contains(&group)
        };
        self.words.iter().position(holds)
    }

    /// Where all token indexes lie, as offset and length; `None` if there is something else
    /// between them, as files that were written first have it.
    pub(super) fn tokens_range(&self) -> Option<(u64, u64)> {
        let indexes = self.row_groups.iter().map(|group| &group.tokens);
        joined(indexes.map(|index| (index.offset, u64::from(index.bytes))))
    }

    /// Where all lists of words lie, likewise.
    pub(super) fn words_range(&self) -> Option<(u64, u64)> {
        let lists = self.words.iter();
        joined(lists.map(|list| (list.offset, u64::from(list.bytes))))
    }

    /// The directory as it is stored, before compression.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        write_varint(self.counts.rows, &mut out);
        write_varint(self.counts.fields.len() as u64, &mut out);
        for (name, count) in &self.counts.fields {
            write_field(name, count, &mut out);
        }
        write_varint(self.schema.columns.len() as u64, &mut out);
        for column in &self.schema.columns {
            write_text(&column.name, &mut out);
            let (kind, scale) = kind_code(column.kind);
            out.extend_from_slice(&[kind, scale]);
        }
        write_varint(self.row_groups.len() as u64, &mut out);
        for group in &self.row_groups {
            group.encode(&mut out);
        }
        write_varint(self.words.len() as u64, &mut out);
        for list in &self.words {
            list.encode(&mut out);
        }
        let summaries = [&self.overview, &self.timeline, &self.patterns];
        let count = summaries.iter().rposition(|place| place.is_some());
        for place in &summaries[..count.map_or(0, |last| last + 1)] {
            place.unwrap_or(Place::NOWHERE).encode(&mut out);
        }
        out
    }

    /// Reads what [`Directory::encode`] wrote.
    pub fn decode(mut input: &[u8]) -> Result<Directory, MalformedPage> {
        let input = &mut input;
        let mut directory = Directory::default();
        directory.counts.rows = read_varint(input)?;
        for _ in 0..read_count(input)? {
            let (name, count) = read_field(input)?;
            directory.counts.fields.insert(name, count);
        }
        for _ in 0..read_count(input)? {
            let name = read_text(input)?;
            let code = [read_byte(input)?, read_byte(input)?];
            let kind = kind_of(code).ok_or(MalformedPage("a column has an unknown type"))?;
            directory.schema.columns.push(ColumnSpec { name, kind });
        }
        for _ in 0..read_count(input)? {
            directory.row_groups.push(RowGroupEntry::decode(input)?);
        }
        for _ in 0..read_count(input)? {
            directory.words.push(WordsEntry::decode(input)?);
        }
        // Files of earlier versions have fewer of them.
        let Directory {
            overview,
            timeline,
            patterns,
            ..
        } = &mut directory;
        for place in [overview, timeline, patterns] {
            if !input.is_empty() {
                *place = Some(Place::decode(input)?).filter(|place| *place != Place::NOWHERE);
            }
        }
        if !input.is_empty() {
            return Err(MalformedPage("the directory has bytes after its end"));
        }
        Ok(directory)
    }
}

/// Ranges, each of which begins where the one before ends, as one.
fn joined(mut ranges: impl Iterator<Item = (u64, u64)>) -> Option<(u64, u64)> {
    let first = ranges.next()?;
    ranges.try_fold(first, |(offset, bytes), (next, more)| {
        (offset.checked_add(bytes)? == next).then_some((offset, bytes.checked_add(more)?))
    })
}

impl RowGroupEntry {
    fn encode(&self, out: &mut Vec<u8>) {
        write_varint(self.blocks.len() as u64, out);
        let mut time = 0i64;
        for block in &self.blocks {
            write_varint(u64::from(block.rows), out);
            write_varint(u64::from(block.line_bytes), out);
            write_varint(zigzag(block.time_min.wrapping_sub(time)), out);
            write_varint(zigzag(block.time_max.wrapping_sub(block.time_min)), out);
            time = block.time_min;
        }
        let mut offset = 0;
        write_varint(self.columns.len() as u64, out);
        for column in &self.columns {
            write_varint(u64::from(column.values), out);
            out.push(u8::from(column.dictionary.is_some()));
            if let Some(dictionary) = &column.dictionary {
                write_page(dictionary, &mut offset, out);
            }
            write_varint(column.pages.len() as u64, out);
            column
                .pages
                .iter()
                .for_each(|p| write_page(p, &mut offset, out));
        }
        write_varint(self.tokens.offset, out);
        write_varint(u64::from(self.tokens.bytes), out);
        write_varint(self.tokens.crcs.len() as u64, out);
        self.tokens
            .crcs
            .iter()
            .for_each(|crc| out.extend_from_slice(&crc.to_le_bytes()));
        write_varint(self.tokens.long_ids.len() as u64, out);
        for (length, blocks) in &self.tokens.long_ids {
            write_varint(u64::from(*length), out);
            out.extend_from_slice(&blocks.to_bytes());
        }
    }

    fn decode(input: &mut &[u8]) -> Result<RowGroupEntry, MalformedPage> {
        let mut group = RowGroupEntry::default();
        let mut time = 0i64;
        for _ in 0..read_count(input)? {
            let (rows, line_bytes) = (read_u32(input)?, read_u32(input)?);
            let time_min = time.wrapping_add(unzigzag(read_varint(input)?));
            let time_max = time_min.wrapping_add(unzigzag(read_varint(input)?));
            time = time_min;
            group.blocks.push(BlockEntry {
                rows,
                line_bytes,
                time_min,
                time_max,
            });
        }
        let mut offset = 0;
        for _ in 0..read_count(input)? {
            let mut column = ColumnEntry {
                values: read_u32(input)?,
                ..ColumnEntry::default()
            };
            if read_byte(input)? == 1 {
                column.dictionary = Some(read_page(&mut offset, input)?);
            }
            for _ in 0..read_count(input)? {
                column.pages.push(read_page(&mut offset, input)?);
            }
            group.columns.push(column);
        }
        group.tokens.offset = read_varint(input)?;
        group.tokens.bytes = read_u32(input)?;
        for _ in 0..read_count(input)? {
            group.tokens.crcs.push(read_crc(input)?);
        }
        let blocks = group.blocks.len();
        for _ in 0..read_count(input)? {
            let length = u16::try_from(read_varint(input)?)
                .map_err(|_| MalformedPage("an id in the directory is too long"))?;
            let bits = input
                .split_off(..blocks.div_ceil(8))
                .ok_or(MalformedPage("the directory ends early"))?;
            let blocks = BlockSet::from_bytes(bits, blocks);
            group.tokens.long_ids.push((length, blocks));
        }
        Ok(group)
    }
}

impl WordsEntry {
    /// The place of the list.
    pub(super) fn place(&self) -> Place {
        Place {
            offset: self.offset,
            bytes: self.bytes as usize,
            plain_bytes: self.plain_bytes as usize,
            crc: self.crc,
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        write_varint(u64::from(self.groups_from), out);
        write_varint(u64::from(self.groups_to), out);
        self.place().encode(out);
    }

    fn decode(input: &mut &[u8]) -> Result<WordsEntry, MalformedPage> {
        Ok(WordsEntry {
            groups_from: read_u32(input)?,
            groups_to: read_u32(input)?,
            offset: read_varint(input)?,
            bytes: read_u32(input)?,
            plain_bytes: read_u32(input)?,
            crc: read_crc(input)?,
        })
    }
}

impl Place {
    /// That of a part which there is not.
    const NOWHERE: Place = Place {
        offset: 0,
        bytes: 0,
        plain_bytes: 0,
        crc: 0,
    };

    fn encode(&self, out: &mut Vec<u8>) {
        write_varint(self.offset, out);
        write_varint(self.bytes as u64, out);
        write_varint(self.plain_bytes as u64, out);
        out.extend_from_slice(&self.crc.to_le_bytes());
    }

    fn decode(input: &mut &[u8]) -> Result<Place, MalformedPage> {
        Ok(Place {
            offset: read_varint(input)?,
            bytes: read_u32(input)? as usize,
            plain_bytes: read_u32(input)? as usize,
            crc: read_crc(input)?,
        })
    }
}

fn write_page(page: &PageEntry, offset: &mut u64, out: &mut Vec<u8>) {
    write_varint(zigzag(cast::signed(page.offset.wrapping_sub(*offset))), out);
    let lengths = [page.bytes, page.header_bytes, page.plain_bytes];
    for part in lengths.into_iter().chain([page.rows, page.values]) {
        write_varint(u64::from(part), out);
    }
    out.extend_from_slice(&page.crc.to_le_bytes());
    *offset = page.offset.wrapping_add(u64::from(page.bytes));
}

fn read_page(offset: &mut u64, input: &mut &[u8]) -> Result<PageEntry, MalformedPage> {
    let page = PageEntry {
        offset: offset.wrapping_add(cast::unsigned(unzigzag(read_varint(input)?))),
        bytes: read_u32(input)?,
        header_bytes: read_u32(input)?,
        plain_bytes: read_u32(input)?,
        rows: read_u32(input)?,
        values: read_u32(input)?,
        crc: read_crc(input)?,
    };
    *offset = page.offset.wrapping_add(u64::from(page.bytes));
    Ok(page)
}

fn write_field(name: &str, count: &FieldCount, out: &mut Vec<u8>) {
    write_text(name, out);
    for part in [
        count.text,
        count.json,
        count.int,
        count.float,
        count.bool,
        count.null,
        count.shape_null,
        count.int_max,
    ] {
        write_varint(part, out);
    }
    match count.label_int {
        0 => out.push(count.scale),
        labels => {
            out.push(count.scale | LABEL_INTS);
            write_varint(labels, out);
        }
    }
}

/// Added to the most decimals of a field if the number of whole values beside lines follows.
const LABEL_INTS: u8 = 0x80;

fn read_field(input: &mut &[u8]) -> Result<(Box<str>, FieldCount), MalformedPage> {
    let name = read_text(input)?;
    let mut count = FieldCount {
        text: read_varint(input)?,
        json: read_varint(input)?,
        int: read_varint(input)?,
        float: read_varint(input)?,
        bool: read_varint(input)?,
        null: read_varint(input)?,
        shape_null: read_varint(input)?,
        label_int: 0,
        int_max: read_varint(input)?,
        scale: read_byte(input)?,
    };
    if count.scale & LABEL_INTS != 0 {
        count.scale &= !LABEL_INTS;
        count.label_int = read_varint(input)?;
        if !(1..=count.int).contains(&count.label_int) {
            return Err(MalformedPage(
                "more whole numbers are beside lines than there are",
            ));
        }
    }
    Ok((name, count))
}

fn kind_code(kind: ColumnType) -> (u8, u8) {
    match kind {
        ColumnType::Text => (0, 0),
        ColumnType::Json => (1, 0),
        ColumnType::Bytes => (2, 0),
        ColumnType::Int => (3, 0),
        ColumnType::Float => (4, 0),
        ColumnType::Decimal(scale) => (5, scale),
        ColumnType::Bool => (6, 0),
    }
}

fn kind_of([kind, scale]: [u8; 2]) -> Option<ColumnType> {
    Some(match kind {
        0 => ColumnType::Text,
        1 => ColumnType::Json,
        2 => ColumnType::Bytes,
        3 => ColumnType::Int,
        4 => ColumnType::Float,
        5 if scale <= 18 => ColumnType::Decimal(scale),
        6 => ColumnType::Bool,
        _ => return None,
    })
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    write_varint(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

fn read_text(input: &mut &[u8]) -> Result<Box<str>, MalformedPage> {
    let length = read_count(input)?;
    let (text, rest) = input.split_at(length);
    *input = rest;
    std::str::from_utf8(text)
        .map(Box::from)
        .map_err(|_| MalformedPage("a name is not UTF-8"))
}

/// A number of things that follow, each of which takes a byte at least: so a wrong number cannot
/// make a reader allocate more than the input is long.
fn read_count(input: &mut &[u8]) -> Result<usize, MalformedPage> {
    let count = read_varint(input)?;
    match usize::try_from(count) {
        Ok(count) if count <= input.len() => Ok(count),
        _ => Err(MalformedPage("the directory ends early")),
    }
}

fn read_u32(input: &mut &[u8]) -> Result<u32, MalformedPage> {
    u32::try_from(read_varint(input)?)
        .map_err(|_| MalformedPage("a number in the directory is too large"))
}

fn read_byte(input: &mut &[u8]) -> Result<u8, MalformedPage> {
    let (&byte, rest) = input
        .split_first()
        .ok_or(MalformedPage("the directory ends early"))?;
    *input = rest;
    Ok(byte)
}

fn read_crc(input: &mut &[u8]) -> Result<u32, MalformedPage> {
    let (crc, rest) = input
        .split_first_chunk::<4>()
        .ok_or(MalformedPage("the directory ends early"))?;
    *input = rest;
    Ok(u32::from_le_bytes(*crc))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample() -> Directory {
        let page = |offset| PageEntry {
            offset,
            bytes: 90,
            header_bytes: 20,
            plain_bytes: 400,
            crc: 7,
            rows: 10,
            values: 9,
        };
        let mut directory = Directory::default();
        directory.counts.rows = 10;
        let count = FieldCount {
            text: 3,
            int: 2,
            label_int: 1,
            int_max: 9,
            scale: 2,
            ..FieldCount::default()
        };
        directory.counts.fields.insert("a.b".into(), count);
        directory.schema.columns.push(ColumnSpec {
            name: "a.b".into(),
            kind: ColumnType::Decimal(2),
        });
        directory.row_groups.push(RowGroupEntry {
            blocks: vec![BlockEntry {
                rows: 10,
                line_bytes: 1000,
                time_min: -5,
                time_max: i64::MAX,
            }],
            columns: vec![
                ColumnEntry {
                    values: 10,
                    dictionary: Some(page(4)),
                    pages: vec![page(94), page(184)],
                },
                ColumnEntry::default(),
            ],
            tokens: TokensEntry {
                offset: 300,
                bytes: 5000,
                crcs: vec![1, 2],
                long_ids: vec![(32, BlockSet::all(1))],
            },
        });
        directory.words.push(WordsEntry {
            groups_from: 0,
            groups_to: 1,
            offset: 5300,
            bytes: 900,
            plain_bytes: 4000,
            crc: 8,
        });
        directory
    }

    #[test]
    fn a_directory_comes_back() {
        assert_eq!(Directory::decode(&sample().encode()), Ok(sample()));
    }

    proptest! {
        #[test]
        fn damaged_directories_never_panic(at in 0usize..200, byte in any::<u8>(), cut in 0usize..200) {
            let mut bytes = sample().encode();
            let length = bytes.len();
            bytes[at % length] = byte;
            bytes.truncate(cut.max(1));
            let _ = Directory::decode(&bytes);
        }
    }
}

//! Column chunks: the pages of one column of a row group, encoded and compressed.

use std::borrow::Cow;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use logpond_record::cast;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, OffsetIndexBuilder};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescriptor;

use super::directory::{ColumnEntry, PageEntry};
use super::page::{Layout, Physical, code_bits, write_codes, write_levels, write_same_level};
use crate::encoding::{delta, plain};
use crate::rows::{Column, NULL, Numbers, StringColumn};

/// The largest dictionary of strings in bytes: it is read whole for every block that is scanned.
const DICTIONARY_BYTES_MAX: usize = 1 << 20;

/// The most entries of a dictionary of numbers.
const DICTIONARY_NUMBERS_MAX: usize = 1 << 12;

/// An encoded column chunk.
pub(super) struct Chunk {
    /// The pages, the dictionary first.
    pub(super) bytes: Bytes,
    /// What the Parquet footer says of it; offsets count from the start of `bytes`.
    pub(super) close: ColumnCloseResult,
    /// What our directory says of it; offsets count from the start of `bytes`.
    pub(super) entry: ColumnEntry,
}

/// Encodes and compresses the chunks of a file.
pub(super) struct ChunkEncoder {
    compressor: zstd::bulk::Compressor<'static>,
    level: i32,
    /// A page before it is compressed; kept, as pages are nearly as large as one another.
    body: Vec<u8>,
}

/// A column on its way into the file.
pub(super) struct Input<'a> {
    pub(super) column: &'a Column,
    pub(super) optional: bool,
    pub(super) physical: Physical,
    /// Whether codes have a meaning of their own, so that a dictionary lists all values.
    pub(super) keeps_codes: bool,
    pub(super) rows: usize,
    /// The blocks as ranges of rows.
    pub(super) blocks: &'a [Range<usize>],
}

/// The pages written so far.
struct Pages {
    sink: TrackedWrite<Vec<u8>>,
    entry: ColumnEntry,
    offsets: OffsetIndexBuilder,
    plain_total: i64,
    first_data_page: Option<i64>,
}

impl ChunkEncoder {
    pub(super) fn new(level: i32) -> std::io::Result<ChunkEncoder> {
        Ok(ChunkEncoder {
            compressor: zstd::bulk::Compressor::new(level)?,
            level,
            body: Vec::new(),
        })
    }

    pub(super) fn encode(
        &mut self,
        input: &Input<'_>,
        descriptor: &Arc<ColumnDescriptor>,
    ) -> Result<Chunk, ParquetError> {
        let mut pages = Pages {
            sink: TrackedWrite::new(Vec::new()),
            entry: ColumnEntry::default(),
            offsets: OffsetIndexBuilder::new(),
            plain_total: 0,
            first_data_page: None,
        };
        let dictionary = Codes::choose(input);
        let layout = match &dictionary {
            Some(codes) => {
                self.dictionary_page(codes, &mut pages)?;
                Layout::Codes {
                    bits: code_bits(codes.size),
                }
            }
            None => Layout::Values,
        };
        let all = 0..input.rows;
        let whole = std::slice::from_ref(&all);
        let blocks = if is_uniform(input, dictionary.as_ref()) {
            whole
        } else {
            input.blocks
        };
        for block in blocks {
            self.data_page(
                input,
                dictionary.as_ref(),
                layout,
                block.clone(),
                &mut pages,
            )?;
        }
        self.close(input, descriptor, pages)
    }

    fn dictionary_page(&mut self, codes: &Codes, pages: &mut Pages) -> Result<(), ParquetError> {
        let page = |buf| Page::DictionaryPage {
            buf,
            num_values: cast::low_u32(codes.size),
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        let entry = self.page(&codes.dictionary, (codes.size, codes.size), page, pages)?;
        pages.entry.dictionary = Some(entry);
        Ok(())
    }

    fn data_page(
        &mut self,
        input: &Input<'_>,
        codes: Option<&Codes>,
        layout: Layout,
        block: Range<usize>,
        pages: &mut Pages,
    ) -> Result<(), ParquetError> {
        let rows = block.len();
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        let values = present(input.column, block.clone());
        if input.optional {
            match values {
                // Most columns have a value in all rows or in none.
                0 => write_same_level(0, rows, &mut body),
                all if all == rows => write_same_level(1, rows, &mut body),
                _ => write_levels(&levels(input.column, block.clone()), &mut body),
            }
        }
        match (layout, codes) {
            (Layout::Codes { bits }, Some(codes)) => {
                write_codes(&codes.of_block(block), bits, &mut body);
            }
            _ => write_values(input.column, input.physical, block, &mut body),
        }
        pages.entry.values += cast::low_u32(values);
        let encoding = match (layout, input.physical) {
            (Layout::Codes { .. }, _) => Encoding::RLE_DICTIONARY,
            (Layout::Values, Physical::Ints) => Encoding::DELTA_BINARY_PACKED,
            (Layout::Values, _) => Encoding::PLAIN,
        };
        let page = |buf| Page::DataPage {
            buf,
            num_values: cast::low_u32(rows),
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let entry = self.page(&body, (rows, values), page, pages)?;
        self.body = body;
        pages
            .first_data_page
            .get_or_insert(cast::signed(entry.offset));
        pages.offsets.append_row_count(cast::low_i64(rows));
        pages
            .offsets
            .append_offset_and_size(cast::signed(entry.offset), cast::low_i32(entry.bytes));
        pages.entry.pages.push(entry);
        Ok(())
    }

    fn page(
        &mut self,
        body: &[u8],
        (rows, values): (usize, usize),
        page: impl FnOnce(Bytes) -> Page,
        pages: &mut Pages,
    ) -> Result<PageEntry, ParquetError> {
        let compressed = self.compressor.compress(body)?;
        let body_bytes = compressed.len();
        let compressed = CompressedPage::new(page(Bytes::from(compressed)), body.len());
        let spec = SerializedPageWriter::new(&mut pages.sink).write_page(compressed)?;
        // The sink buffers; the checksum needs the bytes.
        pages.sink.flush()?;
        pages.plain_total += cast::low_i64(spec.uncompressed_size);
        let written = &pages.sink.inner()[cast::to_usize(spec.offset)..];
        Ok(PageEntry {
            offset: spec.offset,
            bytes: cast::low_u32(spec.bytes_written),
            header_bytes: cast::low_u32(spec.bytes_written) - cast::low_u32(body_bytes),
            plain_bytes: cast::low_u32(body.len()),
            crc: crc32c::crc32c(written),
            rows: cast::low_u32(rows),
            values: cast::low_u32(values),
        })
    }

    fn close(
        &self,
        input: &Input<'_>,
        descriptor: &Arc<ColumnDescriptor>,
        pages: Pages,
    ) -> Result<Chunk, ParquetError> {
        let bytes = Bytes::from(pages.sink.into_inner()?);
        let values_encoding = match (&pages.entry.dictionary, input.physical) {
            (Some(_), _) => Encoding::RLE_DICTIONARY,
            (None, Physical::Ints) => Encoding::DELTA_BINARY_PACKED,
            (None, _) => Encoding::PLAIN,
        };
        let mut builder = ColumnChunkMetaData::builder(Arc::clone(descriptor))
            .set_encodings(vec![Encoding::RLE, Encoding::PLAIN, values_encoding])
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(self.level)?))
            .set_num_values(cast::low_i64(input.rows))
            .set_total_compressed_size(cast::low_i64(bytes.len()))
            .set_total_uncompressed_size(pages.plain_total)
            .set_data_page_offset(pages.first_data_page.unwrap_or(0))
            .set_dictionary_page_offset(pages.entry.dictionary.map(|d| cast::signed(d.offset)));
        if let Some(statistics) = statistics(input, &pages.entry) {
            builder = builder.set_statistics(statistics);
        }
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: input.rows as u64,
            metadata: builder.build()?,
            bloom_filter: None,
            column_index: None,
            offset_index: Some(pages.offsets.build()),
        };
        Ok(Chunk {
            bytes,
            close,
            entry: pages.entry,
        })
    }
}

/// Whether one page for the whole row group is best: all rows are alike.
fn is_uniform(input: &Input<'_>, codes: Option<&Codes>) -> bool {
    match present(input.column, 0..input.rows) {
        0 => true,
        values => values == input.rows && codes.is_some_and(|codes| codes.size == 1),
    }
}

/// Whether each row has a number; all have where nothing is said.
fn valid_of(column: &Column) -> Option<&[bool]> {
    let valid = match column {
        Column::Ints(numbers) => &numbers.valid,
        Column::Floats(numbers) => &numbers.valid,
        Column::Bools(numbers) => &numbers.valid,
        Column::Strings(_) | Column::Absent => return None,
    };
    Some(valid)
        .filter(|valid| !valid.is_empty())
        .map(Vec::as_slice)
}

/// For each row 1 if it has a value, 0 otherwise.
fn levels(column: &Column, rows: Range<usize>) -> Vec<u32> {
    match (column, valid_of(column)) {
        (Column::Strings(strings), _) => {
            let codes = strings.codes[rows].iter();
            codes.map(|code| u32::from(*code != NULL)).collect()
        }
        (Column::Absent, _) => vec![0; rows.len()],
        (_, Some(valid)) => valid[rows].iter().copied().map(u32::from).collect(),
        (_, None) => vec![1; rows.len()],
    }
}

/// Rows that have a value.
fn present(column: &Column, rows: Range<usize>) -> usize {
    match (column, valid_of(column)) {
        (Column::Strings(strings), _) => {
            let codes = strings.codes[rows].iter();
            codes.filter(|code| **code != NULL).count()
        }
        (Column::Absent, _) => 0,
        (_, Some(valid)) => valid[rows].iter().filter(|is| **is).count(),
        (_, None) => rows.len(),
    }
}

/// The numbers of rows, of those that have one.
fn numbers_of<T: Copy>(numbers: &Numbers<T>, rows: Range<usize>) -> Cow<'_, [T]> {
    let values = &numbers.values[rows.clone()];
    if numbers.valid.is_empty() {
        return Cow::Borrowed(values);
    }
    let both = values.iter().zip(&numbers.valid[rows]);
    both.filter(|(_, is)| **is)
        .map(|(value, _)| *value)
        .collect()
}

fn write_values(column: &Column, physical: Physical, rows: Range<usize>, out: &mut Vec<u8>) {
    match column {
        Column::Strings(strings) => {
            let codes = strings.codes[rows].iter().filter(|code| **code != NULL);
            plain::encode_bytes(codes.map(|code| strings.values.get(*code)), out);
        }
        Column::Ints(numbers) => delta::encode(&numbers_of(numbers, rows), out),
        Column::Floats(numbers) => plain::encode_floats(&numbers_of(numbers, rows), out),
        Column::Bools(numbers) => plain::encode_bools(&numbers_of(numbers, rows), out),
        // An empty list of packed integers still has a header.
        Column::Absent if physical == Physical::Ints => delta::encode(&[], out),
        Column::Absent => {}
    }
}

/// A dictionary of the values of a row group, and their codes.
struct Codes<'a> {
    rows: RowCodes<'a>,
    size: usize,
    dictionary: Vec<u8>,
}

/// Where the codes of rows are from.
enum RowCodes<'a> {
    /// The column's own codes, and what stands for them in this row group.
    Strings(&'a StringColumn, Vec<u32>),
    /// A code for each row.
    Numbers(Vec<u32>),
}

impl<'a> Codes<'a> {
    /// A dictionary for the column, if one makes it smaller.
    fn choose(input: &Input<'a>) -> Option<Codes<'a>> {
        match input.column {
            Column::Strings(strings) => Codes::of_strings(input, strings),
            Column::Ints(numbers) => {
                let keys = numbers.values.iter().map(|number| number.to_le_bytes());
                Codes::of_numbers(input, keys)
            }
            Column::Floats(numbers) => {
                let keys = numbers.values.iter().map(|number| number.to_le_bytes());
                Codes::of_numbers(input, keys)
            }
            Column::Bools(_) | Column::Absent => None,
        }
    }

    fn of_strings(input: &Input<'_>, strings: &'a StringColumn) -> Option<Codes<'a>> {
        // The column may be that of several row groups.
        let unused = if input.keeps_codes { 0 } else { NULL };
        let mut codes = vec![unused; strings.values.len()];
        let used = strings.codes.iter().filter(|code| **code != NULL);
        used.for_each(|code| codes[*code as usize] = 0);
        let (mut size, mut bytes) = (0u32, 0);
        for (code, text) in codes.iter_mut().zip(strings.values.iter()) {
            if *code != NULL {
                *code = size;
                size += 1;
                bytes += text.len() + 4;
            }
        }
        if size == 0 || size as usize * 2 > input.rows || bytes > DICTIONARY_BYTES_MAX {
            return None;
        }
        let mut dictionary = Vec::with_capacity(bytes);
        let in_use = codes.iter().zip(strings.values.iter());
        let in_use = in_use.filter(|(code, _)| **code != NULL);
        plain::encode_bytes(in_use.map(|(_, text)| text), &mut dictionary);
        Some(Codes {
            rows: RowCodes::Strings(strings, codes),
            size: size as usize,
            dictionary,
        })
    }

    fn of_numbers(input: &Input<'_>, keys: impl Iterator<Item = [u8; 8]>) -> Option<Codes<'a>> {
        let mut known = hashbrown::HashTable::<(u64, u32)>::new();
        let mut dictionary = Vec::new();
        let mut codes = vec![NULL; input.rows];
        let valid = valid_of(input.column);
        let mut last = None;
        for (row, (key, code)) in keys.zip(&mut codes).enumerate() {
            if valid.is_some_and(|valid| !valid[row]) {
                continue;
            }
            let bits = u64::from_le_bytes(key);
            if let Some((_, same)) = last.filter(|(before, _)| *before == bits) {
                *code = same;
                continue;
            }
            let hash = spread(bits);
            let found = known.find(hash, |(b, _)| *b == bits).map(|(_, code)| *code);
            *code = match found {
                Some(code) => code,
                None => {
                    let code = cast::low_u32(known.len());
                    if known.len() >= DICTIONARY_NUMBERS_MAX {
                        return None;
                    }
                    dictionary.extend_from_slice(&key);
                    known.insert_unique(hash, (bits, code), |(b, _)| spread(*b));
                    code
                }
            };
            last = Some((bits, *code));
        }
        let size = known.len();
        let pays = size > 0 && size * 4 <= input.rows;
        pays.then_some(Codes {
            rows: RowCodes::Numbers(codes),
            size,
            dictionary,
        })
    }

    /// The codes of those rows of a block that have a value.
    fn of_block(&self, block: Range<usize>) -> Vec<u32> {
        let present = |code: &&u32| **code != NULL;
        match &self.rows {
            RowCodes::Strings(strings, codes) => {
                let own = strings.codes[block].iter().filter(present);
                own.map(|own| codes[*own as usize]).collect()
            }
            RowCodes::Numbers(codes) => codes[block].iter().filter(present).copied().collect(),
        }
    }
}

/// A hash of a number's bits: its high bits depend on all of them (Fibonacci hashing).
fn spread(bits: u64) -> u64 {
    let product = bits.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ (product >> 29)
}

/// Bounds for foreign readers: of whole numbers only, which is where they prune.
fn statistics(input: &Input<'_>, entry: &ColumnEntry) -> Option<Statistics> {
    let Column::Ints(numbers) = input.column else {
        return None;
    };
    let nulls = input.rows as u64 - u64::from(entry.values);
    let present = numbers_of(numbers, 0..input.rows);
    let (min, max) = (*present.iter().min()?, *present.iter().max()?);
    Some(Statistics::int64(
        Some(min),
        Some(max),
        None,
        Some(nulls),
        false,
    ))
}

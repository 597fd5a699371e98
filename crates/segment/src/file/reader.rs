//! Reading a segment file: its manifest and directory, then page by page.

mod derived;
mod memory;
mod mended;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::Arc;

use logpond_record::cast;
use zstd::bulk::Decompressor;

use super::directory::{
    ColumnEntry, DIRECTORY_BYTES_MAX, Directory, PageEntry, Place, RowGroupEntry, TOKEN_PART_BYTES,
    WordsEntry,
};
use super::footer::{
    FIELDS_FROM, FIXED, KEY_DIRECTORY, KEY_MANIFEST, MORE, TIME_SOURCE, physical, tail_is_whole,
};
use super::manifest::Manifest;
use super::page::{self, Dictionary, Physical};
use crate::disk::ReadAt;
use crate::encoding::{MalformedPage, read_varint};
use crate::rows::{Column, Rows, StringColumn, Strings};
use crate::tokens::{self, BlockSet, IndexBytes, LIST_BYTES_MAX, Words};

/// Bytes read from a file's end at first; enough for the footer of most files.
const TAIL_BYTES: u64 = 64 << 10;

/// The largest footer that is read.
pub(crate) const TAIL_BYTES_MAX: u64 = 64 << 20;

/// The largest page that is decompressed: a block holds at most one line beyond its limit.
const PAGE_BYTES_MAX: usize = 256 << 20;

/// What a Parquet file starts and ends with.
pub(crate) const MAGIC: &[u8; 4] = b"PAR1";

/// Bytes of a file that are not what they should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// First byte.
    pub offset: u64,
    /// Number of bytes; 0 if it is not known where they are.
    pub bytes: u64,
    /// What is wrong with them.
    pub what: &'static str,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.bytes == 0 {
            return f.write_str(self.what);
        }
        write!(
            f,
            "{} (bytes {} to {})",
            self.what,
            self.offset,
            self.offset + self.bytes
        )
    }
}

/// Why a part of a file cannot be read.
#[derive(Debug)]
pub enum ReadError {
    /// The disk failed.
    Disk(io::Error),
    /// The bytes are damaged.
    Damaged(Damage),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Disk(_) => f.write_str("the segment cannot be read"),
            ReadError::Damaged(damage) => write!(f, "the segment is damaged: {damage}"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReadError::Disk(error) => Some(error),
            ReadError::Damaged(_) => None,
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> ReadError {
        match error.kind() {
            // A shorter file than its footer says.
            io::ErrorKind::UnexpectedEof => ReadError::Damaged(Damage {
                offset: 0,
                bytes: 0,
                what: "the file is too short",
            }),
            _ => ReadError::Disk(error),
        }
    }
}

fn damaged(offset: u64, bytes: u64, what: &'static str) -> ReadError {
    ReadError::Damaged(Damage {
        offset,
        bytes,
        what,
    })
}

/// A segment file that was opened: what it is, and where its directory lies.
#[derive(Clone)]
pub struct SegmentFile {
    file: Arc<dyn ReadAt>,
    manifest: Arc<Manifest>,
    bytes: u64,
    directory: Place,
}

impl SegmentFile {
    /// Reads and checks the footer.
    pub fn open(file: Arc<dyn ReadAt>) -> Result<SegmentFile, ReadError> {
        let bytes = file.bytes()?;
        SegmentFile::open_to(file, bytes)
    }

    /// The same of a file that ends before its last byte.
    pub(crate) fn open_to(file: Arc<dyn ReadAt>, bytes: u64) -> Result<SegmentFile, ReadError> {
        let tail = read_tail(&*file, bytes)?;
        let whole = damaged(
            bytes - tail.len() as u64,
            tail.len() as u64,
            "the footer is damaged",
        );
        let found = find_value(&tail, KEY_DIRECTORY).and_then(parse_place);
        let Some(directory) = found.filter(|p| p.offset + p.bytes as u64 <= bytes) else {
            return Err(whole);
        };
        let end = directory.offset + directory.bytes as u64;
        let tail_bytes = bytes - end;
        if tail_bytes > TAIL_BYTES_MAX {
            return Err(whole);
        }
        let tail = if tail.len() as u64 >= tail_bytes {
            tail[tail.len() - cast::to_usize(tail_bytes)..].to_vec()
        } else {
            read(&*file, end, cast::to_usize(tail_bytes))?
        };
        if !tail_is_whole(&tail) {
            return Err(damaged(end, tail_bytes, "the footer has a wrong checksum"));
        }
        let manifest = find_value(&tail, KEY_MANIFEST).and_then(Manifest::from_json);
        let manifest = manifest.ok_or(damaged(
            end,
            tail_bytes,
            "the manifest is of an unknown format",
        ))?;
        Ok(SegmentFile {
            file,
            manifest: Arc::new(manifest),
            bytes,
            directory,
        })
    }

    /// A segment whose footer is lost, or `None` if its directory is, too. The manifest is to be proven
    /// otherwise.
    pub(crate) fn without_footer(
        file: Arc<dyn ReadAt>,
        manifest: Manifest,
        directory: Place,
    ) -> Result<Option<SegmentFile>, ReadError> {
        let bytes = file.bytes()?;
        let segment = SegmentFile {
            file,
            manifest: Arc::new(manifest),
            bytes,
            directory,
        };
        if directory.offset.saturating_add(directory.bytes as u64) > bytes {
            return Ok(None);
        }
        match segment.read_directory() {
            Ok(_) => Ok(Some(segment)),
            Err(ReadError::Damaged(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The same segment, of which this was found out.
    pub(crate) fn with_manifest(self, manifest: Manifest) -> SegmentFile {
        SegmentFile {
            manifest: Arc::new(manifest),
            ..self
        }
    }

    /// The place of the directory.
    pub fn directory_place(&self) -> Place {
        self.directory
    }

    /// Reads and checks the footer again, whatever is known of it.
    ///
    /// # Errors
    /// When it is damaged or the disk fails.
    pub fn reopen(&self) -> Result<SegmentFile, ReadError> {
        SegmentFile::open(Arc::clone(&self.file))
    }

    /// The file that it is read from.
    pub(crate) fn on_disk(&self) -> &dyn ReadAt {
        &*self.file
    }

    /// What the segment is.
    pub fn manifest(&self) -> &Arc<Manifest> {
        &self.manifest
    }

    /// Length of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where the directory begins: from here on the file says what it holds.
    pub fn index_from(&self) -> u64 {
        self.directory.offset
    }

    /// The same segment, read by other means: through a file that counts what it costs, say.
    #[must_use]
    pub fn read_through(&self, file: Arc<dyn ReadAt>) -> SegmentFile {
        SegmentFile {
            file,
            ..self.clone()
        }
    }

    /// Where the directory ends and the Parquet footer with its indexes begins.
    pub fn footer_from(&self) -> u64 {
        self.directory.offset + self.directory.bytes as u64
    }

    /// Reads and checks the directory. One of which a single bit is wrong is read as it was written.
    pub fn read_directory(&self) -> Result<Directory, ReadError> {
        let place = self.directory;
        let packed = read(&*self.file, place.offset, place.bytes)?;
        let directory = if crc32c::crc32c(&packed) == place.crc {
            self.decode_directory(&packed)?
        } else {
            self.mended_directory(packed)?
        };
        let groups = directory.row_groups.iter();
        let regions: Vec<(u64, u64)> = groups.map(RowGroupEntry::pages_range).collect();
        self.file.regions(&regions);
        Ok(directory)
    }

    fn decode_directory(&self, packed: &[u8]) -> Result<Directory, ReadError> {
        let place = self.directory;
        let wrong = |what| damaged(place.offset, place.bytes as u64, what);
        if place.plain_bytes > DIRECTORY_BYTES_MAX {
            return Err(wrong("the directory is too large"));
        }
        let plain = zstd::bulk::decompress(packed, place.plain_bytes);
        let plain = plain.map_err(|_| wrong("the directory does not decompress"))?;
        let directory = Directory::decode(&plain).map_err(|MalformedPage(what)| wrong(what))?;
        let columns = FIELDS_FROM + directory.schema.columns.len();
        // Files of the first version have no templates.
        let columns = columns..=columns + 1;
        let consistent = |group: &RowGroupEntry| {
            columns.contains(&group.columns.len())
                && group.columns.iter().all(|c| covers_blocks(c, group))
        };
        if directory.row_groups.iter().all(consistent) {
            Ok(directory)
        } else {
            Err(wrong("the directory contradicts itself"))
        }
    }

    /// Checks what only other readers look at: the bytes that a Parquet file starts with.
    pub fn check_start(&self) -> Result<(), ReadError> {
        if read(&*self.file, 0, MAGIC.len())? == MAGIC {
            Ok(())
        } else {
            Err(damaged(
                0,
                MAGIC.len() as u64,
                "the file does not start like a segment",
            ))
        }
    }

    /// The ranges between pages, token indexes, directory and footer that nothing describes, as
    /// offset and length. No checksum covers them, and no writer leaves any.
    pub fn gaps(&self, directory: &Directory) -> Vec<(u64, u64)> {
        let mut parts = vec![
            (0, MAGIC.len() as u64),
            // The footer's checksum covers everything behind the directory.
            (self.directory.offset, self.bytes - self.directory.offset),
        ];
        let described = directory.parts();
        parts.extend(described.iter().map(|part| (part.offset, part.bytes)));
        parts.sort_unstable();
        let mut gaps = Vec::new();
        let mut reached = 0;
        for (offset, bytes) in parts {
            if offset > reached {
                gaps.push((reached, offset - reached));
            }
            reached = reached.max(offset.saturating_add(bytes));
        }
        gaps
    }

    /// Reads a list of words, by its number in the directory.
    pub fn words(&self, directory: &Directory, number: usize) -> Result<Words, ReadError> {
        let list: &WordsEntry = &directory.words[number];
        if let Some((offset, bytes)) = directory.words_range() {
            self.file.will_read(offset, bytes);
        }
        let wrong = |what| damaged(list.offset, u64::from(list.bytes), what);
        let plain = self.unpack(
            list.place(),
            LIST_BYTES_MAX,
            [
                "the words have a wrong checksum",
                "the words are too many",
                "the words do not decompress",
            ],
        )?;
        Words::new(plain).map_err(|MalformedPage(what)| wrong(what))
    }

    /// Reads a part that is compressed as one. The texts say that its checksum is wrong, that it is too
    /// large, and that it does not decompress.
    fn unpack(
        &self,
        place: Place,
        plain_bytes_max: usize,
        [checksum, size, packing]: [&'static str; 3],
    ) -> Result<Vec<u8>, ReadError> {
        let wrong = |what| damaged(place.offset, place.bytes as u64, what);
        let packed = read(&*self.file, place.offset, place.bytes)?;
        if crc32c::crc32c(&packed) != place.crc {
            return Err(wrong(checksum));
        }
        if place.plain_bytes > plain_bytes_max {
            return Err(wrong(size));
        }
        zstd::bulk::decompress(&packed, place.plain_bytes).map_err(|_| wrong(packing))
    }

    /// A reader of one row group.
    pub fn row_group<'a>(&'a self, directory: &'a Directory, number: usize) -> RowGroupReader<'a> {
        let group = &directory.row_groups[number];
        RowGroupReader {
            file: &*self.file,
            directory,
            group,
            dictionaries: vec![None; group.columns.len()],
            decompressor: None,
            index_parts: HashMap::new(),
            bytes_read: 0,
        }
    }
}

/// Whether the pages of a column are one for all rows, or one per block.
fn covers_blocks(column: &ColumnEntry, group: &RowGroupEntry) -> bool {
    match &column.pages[..] {
        [page] => page.rows as usize == group.rows(),
        pages => {
            pages.len() == group.blocks.len()
                && pages
                    .iter()
                    .zip(&group.blocks)
                    .all(|(p, b)| p.rows == b.rows)
        }
    }
}

fn read(file: &dyn ReadAt, offset: u64, bytes: usize) -> Result<Vec<u8>, ReadError> {
    let mut buffer = vec![0; bytes];
    file.read_at(offset, &mut buffer)?;
    Ok(buffer)
}

/// The footer and what stands before it.
fn read_tail(file: &dyn ReadAt, bytes: u64) -> Result<Vec<u8>, ReadError> {
    let short = damaged(0, bytes, "the file is too short");
    if bytes < 12 {
        return Err(short);
    }
    let first = bytes.min(TAIL_BYTES);
    let tail = read(file, bytes - first, first as usize)?;
    let (rest, trailer) = tail.split_at(tail.len() - 8);
    let length = u64::from(u32::from_le_bytes(
        trailer[..4].try_into().unwrap_or_default(),
    ));
    if &trailer[4..] != MAGIC || length > TAIL_BYTES_MAX || length + 12 > bytes {
        return Err(damaged(
            bytes - 8,
            8,
            "the file does not end like a segment",
        ));
    }
    if length <= rest.len() as u64 {
        return Ok(tail);
    }
    read(file, bytes - 8 - length, cast::to_usize(length) + 8)
}

/// The place of the directory and the text of the manifest in the last bytes of a damaged file. No checksum
/// proves it.
pub(crate) fn unproven(tail: &[u8]) -> (Option<Place>, Option<&str>) {
    let place = find_value(tail, KEY_DIRECTORY).and_then(parse_place);
    (place, find_value(tail, KEY_MANIFEST))
}

/// The value of a footer key: Thrift's compact protocol puts it behind the key as a string.
fn find_value<'a>(tail: &'a [u8], key: &str) -> Option<&'a str> {
    let at = memchr::memmem::rfind(tail, key.as_bytes())? + key.len();
    let mut rest = tail.get(at..)?.strip_prefix(&[0x18])?;
    let length = usize::try_from(read_varint(&mut rest).ok()?).ok()?;
    std::str::from_utf8(rest.get(..length)?).ok()
}

fn parse_place(text: &str) -> Option<Place> {
    let mut parts = text.split(' ');
    let place = Place {
        offset: parts.next()?.parse().ok().filter(|o: &u64| *o < 1 << 60)?,
        bytes: parts
            .next()?
            .parse()
            .ok()
            .filter(|b: &usize| *b <= DIRECTORY_BYTES_MAX)?,
        plain_bytes: parts.next()?.parse().ok()?,
        crc: u32::from_str_radix(parts.next()?, 16).ok()?,
    };
    parts.next().is_none().then_some(place)
}

/// Reads the columns of one row group, block by block.
pub struct RowGroupReader<'a> {
    file: &'a dyn ReadAt,
    directory: &'a Directory,
    group: &'a RowGroupEntry,
    dictionaries: Vec<Option<Dictionary>>,
    /// Made when it is first needed: its tables are as large as a page.
    decompressor: Option<Decompressor<'static>>,
    /// Parts of the token index that were read and checked.
    index_parts: HashMap<usize, Vec<u8>>,
    bytes_read: u64,
}

impl RowGroupReader<'_> {
    /// Bytes read from the file so far.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// The blocks that may hold a token.
    pub fn look_up(&mut self, token: &[u8]) -> Result<BlockSet, ReadError> {
        tokens::look_up(self, token)
    }

    /// The blocks that may hold a text within an id; `None` if the token index does not say.
    pub fn blocks_with_id_part(&mut self, text: &[u8]) -> Result<Option<BlockSet>, ReadError> {
        let bytes = self.group.tokens.bytes as usize;
        tokens::blocks_with_id_part(self, bytes, text)
    }

    /// Reads the whole token index, to check it.
    pub fn check_tokens(&mut self) -> Result<(), ReadError> {
        let length = self.group.tokens.bytes as usize;
        self.bytes(0, length).map(|_| ())
    }

    /// Reads every page, also those of columns without values, which nobody else reads. Gives what
    /// is damaged.
    ///
    /// # Errors
    /// When the disk fails; damage is no error.
    pub fn check_pages(&mut self) -> io::Result<Vec<Damage>> {
        let group = self.group;
        let mut damages = Vec::new();
        for column in &group.columns {
            for page in column.dictionary.iter().chain(&column.pages) {
                match self.page(page) {
                    Ok(_) => {}
                    Err(ReadError::Damaged(damage)) => damages.push(damage),
                    Err(ReadError::Disk(error)) => return Err(error),
                }
            }
        }
        Ok(damages)
    }

    /// Event times of a block's rows, in nanoseconds.
    pub fn times(&mut self, block: usize) -> Result<Vec<i64>, ReadError> {
        let mut times = self.ints(0, block)?;
        let rests = self.fixed(1, block)?;
        times
            .iter_mut()
            .for_each(|micros| *micros = micros.saturating_mul(1000));
        if let Column::Ints(rests) = rests {
            for (row, time) in times.iter_mut().enumerate() {
                *time = time.saturating_add(rests.get(row).unwrap_or(0));
            }
        }
        Ok(times)
    }

    /// One field's column of a block, by its index in the schema.
    pub fn field(&mut self, column: usize, block: usize) -> Result<Column, ReadError> {
        let kind = self.directory.schema.columns[column].kind;
        self.column(FIELDS_FROM + column, physical(kind), true, block)
    }

    /// Rows of the row group that have a value in a field's column; nothing is read for that.
    pub fn field_values(&self, column: usize) -> u64 {
        u64::from(self.group.columns[FIELDS_FROM + column].values)
    }

    /// Whether all rows of the row group have the same text in a field's column; nothing is read for that.
    pub fn is_uniform(&self, column: usize) -> bool {
        let column = &self.group.columns[FIELDS_FROM + column];
        let is_one = |dictionary: &PageEntry| dictionary.rows == 1;
        column.values as usize == self.group.rows()
            && column.dictionary.as_ref().is_some_and(is_one)
    }

    /// Rows of the row group that have something in the overflow column; nothing is read for that.
    pub fn more_values(&self) -> u64 {
        u64::from(self.group.columns[MORE].values)
    }

    /// The dictionary of a field's column of text, if it has one; it is the same for all blocks.
    pub fn text_dictionary(&mut self, column: usize) -> Result<Option<Arc<Strings>>, ReadError> {
        let kind = physical(self.directory.schema.columns[column].kind);
        self.load_dictionary(FIELDS_FROM + column, kind)?;
        Ok(match &self.dictionaries[FIELDS_FROM + column] {
            Some(Dictionary::Strings(strings)) => Some(Arc::clone(strings)),
            _ => None,
        })
    }

    /// Where the event times of a block's rows are from, as numbers of
    /// [`logpond_record::TimeSource`].
    pub fn time_sources(&mut self, block: usize) -> Result<Vec<u32>, ReadError> {
        Ok(self.fixed_strings(TIME_SOURCE, block)?.codes)
    }

    /// The lines of a block that are kept whole, and the texts of slots that render differently.
    pub fn exceptions(&mut self, block: usize) -> Result<(StringColumn, StringColumn), ReadError> {
        Ok((
            self.fixed_strings(9, block)?,
            self.fixed_strings(10, block)?,
        ))
    }

    /// The overflow column of a block.
    pub fn more(&mut self, block: usize) -> Result<StringColumn, ReadError> {
        let column = self.column(MORE, Physical::Strings, true, block)?;
        Ok(self.strings(column, block))
    }

    /// The shapes of a block.
    pub fn shapes(&mut self, block: usize) -> Result<StringColumn, ReadError> {
        self.fixed_strings(6, block)
    }

    /// The messages of a block: those that are UTF-8, and those that are not.
    pub fn messages(&mut self, block: usize) -> Result<(StringColumn, StringColumn), ReadError> {
        Ok((self.fixed_strings(7, block)?, self.fixed_strings(8, block)?))
    }

    /// For each of a block's rows the place of its source in the manifest's list.
    pub fn sources(&mut self, block: usize) -> Result<Vec<u32>, ReadError> {
        let sources = self.ints(4, block)?;
        Ok(sources.into_iter().map(cast::low_u32).collect())
    }

    /// Receive times in microseconds and numbers of a block's rows.
    pub fn received(&mut self, block: usize) -> Result<(Vec<i64>, Vec<i64>), ReadError> {
        Ok((self.ints(2, block)?, self.ints(3, block)?))
    }

    /// All columns of a block.
    pub fn rows(&mut self, block: usize) -> Result<Rows, ReadError> {
        let fields =
            (0..self.directory.schema.columns.len()).map(|column| self.field(column, block));
        let fields: Vec<Column> = fields.collect::<Result<_, _>>()?;
        let entry = self.group.blocks[block];
        let (message, message_bytes) = self.messages(block)?;
        Ok(Rows {
            time: self.times(block)?,
            received: self.ints(2, block)?,
            number: self.ints(3, block)?,
            source: self.sources(block)?,
            time_source: self.time_sources(block)?,
            shape: self.shapes(block)?,
            message,
            message_bytes,
            whole: self.fixed_strings(9, block)?,
            fix: self.fixed_strings(10, block)?,
            more: self.more(block)?,
            fields,
            line_bytes: spread_evenly(entry.line_bytes, entry.rows),
        })
    }

    fn fixed(&mut self, number: usize, block: usize) -> Result<Column, ReadError> {
        let (_, kind, optional) = FIXED[number];
        self.column(number, physical(kind), optional, block)
    }

    fn fixed_strings(&mut self, number: usize, block: usize) -> Result<StringColumn, ReadError> {
        let column = self.fixed(number, block)?;
        Ok(self.strings(column, block))
    }

    fn strings(&self, column: Column, block: usize) -> StringColumn {
        match column {
            Column::Strings(strings) => strings,
            _ => {
                let rows = self.group.blocks[block].rows as usize;
                StringColumn {
                    codes: vec![crate::rows::NULL; rows],
                    values: Arc::default(),
                }
            }
        }
    }

    fn ints(&mut self, number: usize, block: usize) -> Result<Vec<i64>, ReadError> {
        match self.fixed(number, block)? {
            Column::Ints(numbers) => Ok(numbers.values),
            _ => Err(damaged(0, 0, "a column that every row has is missing")),
        }
    }

    fn column(
        &mut self,
        number: usize,
        physical: Physical,
        optional: bool,
        block: usize,
    ) -> Result<Column, ReadError> {
        let entry = &self.group.columns[number];
        if entry.values == 0 && optional {
            return Ok(Column::Absent);
        }
        let rows = self.group.blocks[block].rows as usize;
        // A single page covers all rows only if they are alike: its first rows are any rows.
        let page = match &entry.pages[..] {
            [page] => page,
            pages => &pages[block],
        };
        if page.values == 0 && optional {
            // A block of other kinds of rows: the dictionary is of no use to it.
            return Ok(Column::Absent);
        }
        let body = self.page(page)?;
        let wrong = |MalformedPage(what)| damaged(page.offset, u64::from(page.bytes), what);
        let decoded = page::Page::new(body, rows, optional).map_err(wrong)?;
        self.load_dictionary(number, physical)?;
        decoded
            .decode(physical, self.dictionaries[number].as_ref())
            .map_err(wrong)
    }

    /// Reads the dictionary of a column, if it has one.
    fn load_dictionary(&mut self, number: usize, physical: Physical) -> Result<(), ReadError> {
        let Some(page) = &self.group.columns[number].dictionary else {
            return Ok(());
        };
        if self.dictionaries[number].is_none() {
            let body = self.page(page)?;
            let dictionary = Dictionary::decode(physical, page.rows as usize, body)
                .map_err(|MalformedPage(what)| damaged(page.offset, u64::from(page.bytes), what))?;
            self.dictionaries[number] = Some(dictionary);
        }
        Ok(())
    }

    /// A page's body, checked and decompressed.
    fn page(&mut self, page: &PageEntry) -> Result<Vec<u8>, ReadError> {
        let wrong = |what| damaged(page.offset, u64::from(page.bytes), what);
        if page.plain_bytes as usize > PAGE_BYTES_MAX || page.bytes as usize > PAGE_BYTES_MAX {
            return Err(wrong("a page is too large"));
        }
        let bytes = read(self.file, page.offset, page.bytes as usize)?;
        self.bytes_read += u64::from(page.bytes);
        if crc32c::crc32c(&bytes) != page.crc {
            return Err(wrong("a page has a wrong checksum"));
        }
        let body = bytes
            .get(page.header_bytes as usize..)
            .ok_or(wrong("a page is too short"))?;
        let plain = self
            .decompress(body, page.plain_bytes as usize)
            .map_err(|_| wrong("a page does not decompress"))?;
        if plain.len() != page.plain_bytes as usize {
            return Err(wrong("a page has a wrong length"));
        }
        Ok(plain)
    }

    /// Says before the first look-up that the token index will be read: those of all row groups
    /// where they lie together, since a search asks one after the other.
    fn will_look_up(&self) {
        let index = &self.group.tokens;
        let all = self.directory.tokens_range();
        let (offset, bytes) = all.unwrap_or((index.offset, u64::from(index.bytes)));
        self.file.will_read(offset, bytes);
    }

    /// A part of the token index, checked.
    fn index_part(&mut self, number: usize) -> Result<&[u8], ReadError> {
        if !self.index_parts.contains_key(&number) {
            if self.index_parts.is_empty() {
                self.will_look_up();
            }
            let index = &self.group.tokens;
            let from = number * TOKEN_PART_BYTES;
            let length = TOKEN_PART_BYTES.min((index.bytes as usize).saturating_sub(from));
            let part = read(self.file, index.offset + from as u64, length)?;
            self.bytes_read += length as u64;
            if length == 0 || index.crcs.get(number) != Some(&crc32c::crc32c(&part)) {
                return Err(damaged(
                    index.offset,
                    u64::from(index.bytes),
                    "the token index is damaged",
                ));
            }
            self.index_parts.insert(number, part);
        }
        Ok(&self.index_parts[&number])
    }

    fn decompress(&mut self, packed: &[u8], plain_bytes: usize) -> io::Result<Vec<u8>> {
        let mut decompressor = match self.decompressor.take() {
            Some(decompressor) => decompressor,
            None => Decompressor::new()?,
        };
        let plain = decompressor.decompress(packed, plain_bytes);
        self.decompressor = Some(decompressor);
        plain
    }
}

impl IndexBytes for RowGroupReader<'_> {
    type Error = ReadError;

    fn bytes(&mut self, from: usize, length: usize) -> Result<Vec<u8>, ReadError> {
        let index = &self.group.tokens;
        let wrong = damaged(
            index.offset,
            u64::from(index.bytes),
            "the token index is damaged",
        );
        let Some(to) = from
            .checked_add(length)
            .filter(|to| *to <= index.bytes as usize)
        else {
            return Err(wrong);
        };
        let mut bytes = Vec::with_capacity(length);
        let mut at = from;
        while at < to {
            let part = self.index_part(at / TOKEN_PART_BYTES)?;
            let within = at % TOKEN_PART_BYTES;
            let part = &part[within..part.len().min(within + to - at)];
            bytes.extend_from_slice(part);
            at += part.len();
        }
        Ok(bytes)
    }
}

impl From<MalformedPage> for ReadError {
    fn from(MalformedPage(what): MalformedPage) -> ReadError {
        damaged(0, 0, what)
    }
}

/// Shares of a total that add up to it: lengths of single lines are not stored.
fn spread_evenly(total: u32, rows: u32) -> Vec<u32> {
    let (share, rest) = (total / rows.max(1), total % rows.max(1));
    (0..rows).map(|row| share + u32::from(row < rest)).collect()
}

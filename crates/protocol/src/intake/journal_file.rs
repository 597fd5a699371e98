//! Journal files, as journald writes them (`system.journal`): their entries, in order.
//!
//! ```text
//! header │ object │ object │ …        header ─▶ entry array ─▶ entry array ─▶ …
//!                                                  └▶ entry ─▶ data: NAME=value
//! ```
//!
//! All numbers are little-endian; objects begin at multiples of 8 bytes with a type, flags and their
//! length. Entries have the offsets of their data; arrays, each pointing to the next one, have those of
//! the entries. Data is compressed with zstd, LZ4 or xz, if at all; in compact files offsets have 32 bits.
//! Source: "Journal File Format", systemd.io/JOURNAL_FILE_FORMAT.
//!
//! Invariants:
//! - Every offset and length is checked against the file before it is used, and nothing is allocated
//!   for more than an entry may have.
//! - Offsets of arrays and of entries only grow, so every walk ends, whatever the file says.
//! - Data that its hash denies is reported once, and taken as it is: a wrong letter is better than no line.
//! - What cannot be read takes nothing else with it and is reported. Where the arrays end too early, as
//!   in a file whose writer was killed, the objects behind the last entry are looked through.

mod hash;
mod object;
mod pages;
mod verify;

use std::collections::HashSet;
use std::fmt;
use std::io;

use super::body::Encoding;
use super::journal_export::{
    ENTRY_BYTES_MAX, ENTRY_FIELDS_MAX, EntryFault, Exported, Fields, Span,
};
use super::unpack::Unpacker;
use super::unpack::lz4::unpack_block;
use logpond_record::cast;
use object::{Header, Kind, Object};
use pages::Pages;

/// The first bytes of a journal file.
pub const MAGIC: &[u8; 8] = b"LPKSHHRH";

/// The most places of one file of which is told that their hashes deny them; then it is known well enough that
/// the file is damaged.
const DOUBTED_MAX: usize = 10_000;

/// Where the bytes are.
pub trait Source {
    /// Fills the buffer with what is at this offset.
    ///
    /// # Errors
    /// What the system says, also if there is less.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
}

impl Source for &[u8] {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let from = usize::try_from(offset).ok();
        let part = from.and_then(|from| self.get(from..)?.get(..buffer.len()));
        buffer.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// Why a file cannot be read.
#[derive(Debug)]
pub enum FileError {
    /// It is no journal file.
    NotAJournal,
    /// Its header makes no sense.
    Header,
    /// It is of a kind that is not known: the flags that are not.
    Unknown(u32),
    /// The system does not give its bytes.
    Read(io::Error),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::NotAJournal => f.write_str("it is no journal file"),
            FileError::Header => f.write_str("the header of the journal file makes no sense"),
            FileError::Unknown(flags) => write!(
                f,
                "the journal file is of a newer kind (flags {flags:#x}); read it with \
                 `journalctl --file FILE -o export`"
            ),
            FileError::Read(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for FileError {}

/// A place of a file that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where, in bytes.
    pub offset: u64,
    /// What is wrong there.
    pub what: &'static str,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.what)
    }
}

/// Something that went wrong with a part of a file.
#[derive(Debug)]
enum Trouble {
    Damage(Damage),
    Read(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Trouble {
        Trouble::Read(error)
    }
}

fn damage<T>(offset: u64, what: &'static str) -> Result<T, Trouble> {
    Err(Trouble::Damage(Damage { offset, what }))
}

/// What is next in a file.
#[derive(Debug)]
pub enum Item<'a> {
    /// An entry, or why it is not taken.
    Entry(Exported<'a>),
    /// A place that cannot be read.
    Damage(Damage),
}

/// Where the next entry is looked for.
#[derive(Clone, Copy, Debug)]
enum Walk {
    /// Place `index` of the array at this offset.
    Array {
        offset: u64,
        index: u64,
        count: u64,
    },
    /// The object at this offset.
    Objects {
        offset: u64,
    },
    End,
}

/// Reads a journal file.
pub struct JournalFile<S> {
    pages: Pages<S>,
    header: Header,
    walk: Walk,
    /// Where the last entry is.
    last: u64,
    entries: u64,
    held: Vec<u8>,
    spans: Vec<Span>,
    unpacker: Option<Unpacker>,
    /// Where data is that its hash denies.
    doubted: HashSet<u64>,
    /// What there is to tell of these before the next entry.
    doubts: Vec<Damage>,
}

impl<S: Source> JournalFile<S> {
    /// Opens a file of this length.
    ///
    /// # Errors
    /// See [`FileError`].
    pub fn open(source: S, length: u64) -> Result<JournalFile<S>, FileError> {
        let mut pages = Pages::new(source, length);
        let header = Header::read(&mut pages)?;
        let mut file = JournalFile {
            pages,
            walk: Walk::End,
            header,
            last: 0,
            entries: 0,
            held: Vec::new(),
            spans: Vec::new(),
            unpacker: None,
            doubted: HashSet::new(),
            doubts: Vec::new(),
        };
        file.walk = match header.entry_array {
            0 => file.behind_arrays(),
            offset => match file.array(offset) {
                Ok(walk) => walk,
                Err(Trouble::Read(error)) => return Err(FileError::Read(error)),
                Err(Trouble::Damage(_)) => file.all_objects(),
            },
        };
        Ok(file)
    }

    /// Whether its writer has closed it: it is not being written, and did not end with a crash.
    pub fn is_closed(&self) -> bool {
        self.header.is_closed
    }

    /// How many entries its header counts.
    pub fn entries_said(&self) -> u64 {
        self.header.entries
    }

    /// The next entry, or the next place that cannot be read; `None` at the end.
    ///
    /// # Errors
    /// What the system says when it does not give the bytes.
    pub fn read_next(&mut self) -> io::Result<Option<Item<'_>>> {
        if let Some(damage) = self.doubts.pop() {
            return Ok(Some(Item::Damage(damage)));
        }
        let offset = match self.next_offset() {
            Ok(Some(offset)) => offset,
            Ok(None) => return Ok(None),
            Err(Trouble::Damage(damage)) => return Ok(Some(Item::Damage(damage))),
            Err(Trouble::Read(error)) => return Err(error),
        };
        self.entries += 1;
        Ok(Some(match self.read_entry(offset) {
            Ok(Ok(())) => Item::Entry(Ok(Fields::new(&self.held, &self.spans))),
            Ok(Err(fault)) => Item::Entry(Err(fault)),
            Err(Trouble::Damage(damage)) => Item::Damage(damage),
            Err(Trouble::Read(error)) => return Err(error),
        }))
    }

    /// Where the next entry is. After damage the walk goes on behind it.
    fn next_offset(&mut self) -> Result<Option<u64>, Trouble> {
        // Each round ends, or goes on at a greater offset or index.
        loop {
            match self.walk {
                Walk::End => return Ok(None),
                Walk::Array {
                    offset,
                    index,
                    count,
                } if index < count => {
                    let entry = self.array_item(offset, index)?;
                    self.walk = Walk::Array {
                        offset,
                        index: index + 1,
                        count,
                    };
                    if entry == 0 {
                        self.walk = self.behind_arrays();
                    } else if entry > self.last {
                        self.last = entry;
                        return Ok(Some(entry));
                    } else {
                        return damage(offset, "an array of entries points back");
                    }
                }
                Walk::Array { offset, .. } => self.walk = self.next_array(offset)?,
                Walk::Objects { offset } => {
                    if let Some(entry) = self.next_object(offset)? {
                        self.last = entry;
                        return Ok(Some(entry));
                    }
                }
            }
        }
    }

    fn array(&mut self, offset: u64) -> Result<Walk, Trouble> {
        let object = Object::read(&mut self.pages, &self.header, offset)?;
        let items = object.bytes.checked_sub(object::ARRAY_HEAD_BYTES);
        match (object.kind, items) {
            (Kind::EntryArray, Some(bytes)) => Ok(Walk::Array {
                offset,
                index: 0,
                count: bytes / self.header.array_item_bytes(),
            }),
            _ => damage(offset, "there is no array of entries"),
        }
    }

    fn array_item(&mut self, offset: u64, index: u64) -> Result<u64, Trouble> {
        let bytes = self.header.array_item_bytes();
        let at = offset + object::ARRAY_HEAD_BYTES + index * bytes;
        match bytes {
            4 => Ok(u64::from(self.pages.u32(at)?)),
            _ => self.pages.u64(at),
        }
    }

    fn next_array(&mut self, offset: u64) -> Result<Walk, Trouble> {
        let next = self.pages.u64(offset + object::HEAD_BYTES)?;
        if next == 0 {
            return Ok(self.behind_arrays());
        }
        let walk = if next > offset {
            self.array(next)
        } else {
            damage(offset, "a list of arrays points back")
        };
        if walk.is_err() {
            self.walk = self.all_objects();
        }
        walk
    }

    /// Where to go on at the end of the arrays: nowhere, if they had all entries that there are.
    fn behind_arrays(&self) -> Walk {
        if self.entries < self.header.entries {
            self.all_objects()
        } else {
            Walk::End
        }
    }

    /// The objects from the last entry on.
    fn all_objects(&self) -> Walk {
        let offset = self.last.max(self.header.bytes);
        Walk::Objects { offset }
    }

    /// Goes past an object; gives its offset if it is an entry that was not read.
    fn next_object(&mut self, offset: u64) -> Result<Option<u64>, Trouble> {
        self.walk = Walk::End;
        if offset >= self.pages.length() {
            return Ok(None);
        }
        // What was never written is zeros.
        if self.pages.u64(offset)? == 0 && self.pages.u64(offset + 8)? == 0 {
            return Ok(None);
        }
        let object = Object::read(&mut self.pages, &self.header, offset)?;
        self.walk = Walk::Objects {
            offset: object.end(),
        };
        let is_new = object.kind == Kind::Entry && offset > self.last;
        Ok(is_new.then_some(offset))
    }

    /// Reads an entry into `held` and `spans`.
    fn read_entry(&mut self, offset: u64) -> Result<Result<(), EntryFault>, Trouble> {
        self.held.clear();
        self.spans.clear();
        let object = Object::read(&mut self.pages, &self.header, offset)?;
        let items = object.bytes.checked_sub(object::ENTRY_HEAD_BYTES);
        let (Kind::Entry, Some(bytes)) = (object.kind, items) else {
            return damage(offset, "there is no entry");
        };
        let item_bytes = self.header.entry_item_bytes();
        let count = bytes / item_bytes;
        if count > ENTRY_FIELDS_MAX as u64 {
            return Ok(Err(EntryFault::TooManyFields));
        }
        self.write_address(offset)?;
        for index in 0..count {
            let at = offset + object::ENTRY_HEAD_BYTES + index * item_bytes;
            let data = match item_bytes {
                4 => u64::from(self.pages.u32(at)?),
                _ => self.pages.u64(at)?,
            };
            if let Err(fault) = self.read_data(data)? {
                return Ok(Err(fault));
            }
        }
        Ok(Ok(()))
    }

    /// What the entry is, as exports say it.
    fn write_address(&mut self, offset: u64) -> Result<(), Trouble> {
        let mut boot = [0; 16];
        let seqnum = self.pages.u64(offset + 16)?;
        let realtime = self.pages.u64(offset + 24)?;
        let monotonic = self.pages.u64(offset + 32)?;
        self.pages.read(offset + 40, &mut boot)?;
        let hash = self.pages.u64(offset + 56)?;
        let boot = u128::from_be_bytes(boot);
        let id = self.header.seqnum_id;
        let cursor = format!(
            "s={id:032x};i={seqnum:x};b={boot:032x};m={monotonic:x};t={realtime:x};x={hash:x}"
        );
        self.push("__CURSOR", cursor.as_bytes());
        self.push("__REALTIME_TIMESTAMP", realtime.to_string().as_bytes());
        self.push("__MONOTONIC_TIMESTAMP", monotonic.to_string().as_bytes());
        self.push("_BOOT_ID", format!("{boot:032x}").as_bytes());
        Ok(())
    }

    fn push(&mut self, name: &str, value: &[u8]) {
        let from = cast::low_u32(self.held.len());
        self.held.extend_from_slice(name.as_bytes());
        let middle = cast::low_u32(self.held.len());
        self.held.extend_from_slice(value);
        self.spans.push(Span {
            name: (from, middle),
            value: (middle, cast::low_u32(self.held.len())),
        });
    }

    /// Reads a field to the end of `held`.
    fn read_data(&mut self, offset: u64) -> Result<Result<(), EntryFault>, Trouble> {
        let object = Object::read(&mut self.pages, &self.header, offset)?;
        let head = self.header.data_head_bytes();
        if object.kind != Kind::Data {
            return damage(offset, "an entry's data is missing");
        }
        let from = self.held.len();
        if let Err(fault) = self.read_payload(&object, head)? {
            return Ok(Err(fault));
        }
        let doubt = self.doubt(offset, from)?;
        self.doubts.extend(doubt);
        let field = &self.held[from..];
        let Some(equals) = memchr::memchr(b'=', field) else {
            return damage(offset, "a field has no name");
        };
        if let Err(fault) = super::journal_export::check_name(&field[..equals]) {
            return Ok(Err(fault));
        }
        // The header of the entry says it, and exports say it once.
        if &field[..equals] == b"_BOOT_ID" {
            self.held.truncate(from);
            return Ok(Ok(()));
        }
        let (from, middle) = (cast::low_u32(from), cast::low_u32(from + equals));
        self.spans.push(Span {
            name: (from, middle),
            value: (middle + 1, cast::low_u32(self.held.len())),
        });
        Ok(Ok(()))
    }

    /// Appends what an object has behind its head to `held`, unpacked.
    fn read_payload(
        &mut self,
        object: &Object,
        head: u64,
    ) -> Result<Result<(), EntryFault>, Trouble> {
        let offset = object.offset;
        let Some(bytes) = object.bytes.checked_sub(head) else {
            return damage(offset, "an entry's data is missing");
        };
        if bytes > (ENTRY_BYTES_MAX - self.held.len()) as u64 {
            return Ok(Err(EntryFault::TooLong));
        }
        let mut payload = vec![0; cast::to_usize(bytes)];
        self.pages.read(offset + head, &mut payload)?;
        let is_whole = match object.flags {
            0 => {
                self.held.extend_from_slice(&payload);
                true
            }
            object::ZSTD => match self.unpack(Encoding::Zstd, &payload) {
                Some(is_whole) => is_whole,
                None => return damage(offset, "an entry's data is not complete zstd"),
            },
            object::LZ4 => match unpack_block(&payload, ENTRY_BYTES_MAX, &mut self.held) {
                Some(is_whole) => is_whole,
                None => return damage(offset, "an entry's data is not complete LZ4"),
            },
            object::XZ => match self.unpack(Encoding::Xz, &payload) {
                Some(is_whole) => is_whole,
                None => return damage(offset, "an entry's data is not complete xz"),
            },
            _ => return damage(offset, "an entry's data is compressed in an unknown way"),
        };
        Ok(if is_whole {
            Ok(())
        } else {
            Err(EntryFault::TooLong)
        })
    }

    /// Appends what is unpacked to `held`; gives whether all of it has room, `None` if it is not what
    /// the encoding says.
    fn unpack(&mut self, encoding: Encoding, payload: &[u8]) -> Option<bool> {
        let held = self.unpacker.take();
        let mut unpacker = match held.filter(|unpacker| unpacker.encoding() == encoding) {
            Some(unpacker) => unpacker,
            None => Unpacker::new(encoding)?,
        };
        let (mut rest, mut out) = (payload, Vec::new());
        while !rest.is_empty() || unpacker.is_pending() {
            let taken = unpacker.step(rest, &mut out).ok()?;
            rest = &rest[taken..];
            if self.held.len() + out.len() > ENTRY_BYTES_MAX {
                return Some(false);
            }
            self.held.extend_from_slice(&out);
        }
        let is_complete = unpacker.is_complete();
        self.unpacker = is_complete.then_some(unpacker);
        is_complete.then_some(true)
    }
}

#[cfg(test)]
mod tests;

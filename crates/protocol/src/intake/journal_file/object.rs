//! The header of a journal file, and those of its objects.

use logpond_record::cast;

use super::hash::Hasher;
use super::pages::Pages;
use super::{FileError, MAGIC, Source, Trouble, damage};

/// Bytes of an object before what is its own.
pub(super) const HEAD_BYTES: u64 = 16;

/// Bytes of an array before its items: its head, and where the next one is.
pub(super) const ARRAY_HEAD_BYTES: u64 = 24;

/// Bytes of an entry before its items.
pub(super) const ENTRY_HEAD_BYTES: u64 = 64;

/// Bytes of data before the field; compact files have the tail of its entries there, too.
const DATA_HEAD_BYTES: u64 = 64;
const DATA_HEAD_BYTES_COMPACT: u64 = 72;

/// Bytes of the name of a field before it.
pub(super) const FIELD_HEAD_BYTES: u64 = 40;

/// How data is compressed.
pub(super) const XZ: u8 = 1;
pub(super) const LZ4: u8 = 2;
pub(super) const ZSTD: u8 = 4;

/// Flags of files that a reader must know: data compressed with XZ, LZ4 or zstd, a hash with a key, and
/// compact.
const KEYED: u32 = 4;
const COMPACT: u32 = 16;
const KNOWN: u32 = 1 | 2 | KEYED | 8 | COMPACT;

/// The shortest header that any version wrote: up to the offset of the entries.
const HEADER_BYTES_MIN: u64 = 208;

/// The state of a file that is being written.
const ONLINE: u8 = 1;

/// Objects begin at multiples of this.
const ALIGNMENT: u64 = 8;

/// What a header says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    is_compact: bool,
    pub(super) is_closed: bool,
    pub(super) hasher: Hasher,
    pub(super) seqnum_id: u128,
    pub(super) bytes: u64,
    /// Where the last object is.
    pub(super) tail_object: u64,
    pub(super) objects: u64,
    pub(super) entries: u64,
    pub(super) entry_array: u64,
}

impl Header {
    pub(super) fn read<S: Source>(pages: &mut Pages<S>) -> Result<Header, FileError> {
        let mut magic = [0; MAGIC.len()];
        let read = pages.read(0, &mut magic);
        if read.is_err() || &magic != MAGIC {
            return Err(FileError::NotAJournal);
        }
        let mut numbers = || -> Result<(u32, Header), Trouble> {
            let (mut file_id, mut id) = ([0; 16], [0; 16]);
            pages.read(24, &mut file_id)?;
            pages.read(72, &mut id)?;
            let flags = pages.u32(12)?;
            let header = Header {
                is_compact: flags & COMPACT != 0,
                is_closed: pages.u8(16)? != ONLINE,
                hasher: match flags & KEYED {
                    0 => Hasher::Lookup3,
                    _ => Hasher::keyed(file_id),
                },
                seqnum_id: u128::from_be_bytes(id),
                bytes: pages.u64(88)?,
                tail_object: pages.u64(136)?,
                objects: pages.u64(144)?,
                entries: pages.u64(152)?,
                entry_array: pages.u64(176)?,
            };
            Ok((flags, header))
        };
        let (flags, header) = match numbers() {
            Ok(read) => read,
            Err(Trouble::Read(error)) => return Err(FileError::Read(error)),
            Err(Trouble::Damage(_)) => return Err(FileError::Header),
        };
        let makes_sense = (HEADER_BYTES_MIN..=pages.length()).contains(&header.bytes)
            && header.bytes.is_multiple_of(ALIGNMENT);
        match flags & !KNOWN {
            0 if makes_sense => Ok(header),
            0 => Err(FileError::Header),
            unknown => Err(FileError::Unknown(unknown)),
        }
    }

    pub(super) fn array_item_bytes(&self) -> u64 {
        if self.is_compact { 4 } else { 8 }
    }

    pub(super) fn entry_item_bytes(&self) -> u64 {
        if self.is_compact { 4 } else { 16 }
    }

    pub(super) fn data_head_bytes(&self) -> u64 {
        if self.is_compact {
            DATA_HEAD_BYTES_COMPACT
        } else {
            DATA_HEAD_BYTES
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Data,
    Field,
    Entry,
    EntryArray,
    Other,
}

/// An object that lies within its file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object {
    pub(super) offset: u64,
    pub(super) kind: Kind,
    pub(super) flags: u8,
    /// Its length, the head included.
    pub(super) bytes: u64,
}

impl Object {
    pub(super) fn read<S: Source>(
        pages: &mut Pages<S>,
        header: &Header,
        offset: u64,
    ) -> Result<Object, Trouble> {
        if offset < header.bytes || !offset.is_multiple_of(ALIGNMENT) {
            return damage(offset, "no object can be there");
        }
        let mut head = [0; cast::to_usize(HEAD_BYTES)];
        pages.read(offset, &mut head)?;
        let kind = match head[0] {
            1 => Kind::Data,
            2 => Kind::Field,
            3 => Kind::Entry,
            6 => Kind::EntryArray,
            4 | 5 | 7 => Kind::Other,
            _ => return damage(offset, "there is no object"),
        };
        let [.., a, b, c, d, e, f, g, h] = head;
        let bytes = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        if bytes < HEAD_BYTES || bytes > pages.length() - offset {
            return damage(
                offset,
                "an object is longer than the file, or has no length",
            );
        }
        Ok(Object {
            offset,
            kind,
            flags: head[1],
            bytes,
        })
    }

    /// Where the next object is.
    pub(super) fn end(&self) -> u64 {
        (self.offset + self.bytes).next_multiple_of(ALIGNMENT)
    }
}

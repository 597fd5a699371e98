//! A file of the cache: some blocks of an object, at their places, with a checksum each.
//!
//! ```text
//! block │ hole │ block │ … │ mark of each block: CRC32C, number │ trailer
//! ```
//!
//! Nothing is synced. After a restart the marks say which blocks there should be; that they are there
//! the checksums prove when they are first used. A file whose trailer is not what it should be is no
//! file of the cache.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::RwLock;
use std::sync::atomic::AtomicU64;

use logpond_record::cast;

use super::blocks::{BLOCK_BYTES, Geometry, Kind};

const MAGIC: &[u8; 8] = b"LPBLOCK1";

/// Magic, length of the object, first block of its tail, CRC32C of these and the object's name.
const TRAILER_BYTES: u64 = 28;

/// Bytes of a block's mark.
const MARK_BYTES: u64 = 8;

/// A file of the cache, whether it is there or not.
pub(crate) struct Part {
    pub(crate) path: PathBuf,
    pub(crate) blocks: Range<u64>,
    /// The file. It is taken away under the exclusive lock only: who holds the shared one may rely on
    /// blocks that are present.
    pub(crate) slot: RwLock<Slot>,
    /// When it was used last, in ticks of the cache.
    pub(crate) used: AtomicU64,
    /// Bytes of blocks that are in the file or are being written; changed under the cache's lock only.
    pub(crate) held: AtomicU64,
}

/// Where a part's file is kept while it is open.
#[derive(Default)]
pub(crate) struct Slot {
    pub(crate) file: Option<File>,
    /// How often the file was taken away: who began to write before that must not go on.
    pub(crate) epoch: u64,
}

impl Part {
    pub(crate) fn new(path: PathBuf, geometry: Geometry, kind: Kind) -> Part {
        Part {
            path,
            blocks: geometry.of(kind),
            slot: RwLock::default(),
            used: AtomicU64::new(0),
            held: AtomicU64::new(0),
        }
    }

    /// Bytes before the marks.
    fn marks_from(&self) -> u64 {
        (self.blocks.end - self.blocks.start) * BLOCK_BYTES
    }

    fn trailer_from(&self) -> u64 {
        self.marks_from() + (self.blocks.end - self.blocks.start) * MARK_BYTES
    }

    /// Makes the file anew, without any block.
    pub(crate) fn create(&self, name: &str, geometry: Geometry) -> io::Result<File> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&self.path)?;
        file.write_all_at(&trailer(name, geometry), self.trailer_from())?;
        Ok(file)
    }

    /// Opens the file, if it is whole and of this object.
    pub(crate) fn open(&self, name: &str, geometry: Geometry) -> Option<File> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&self.path)
            .ok()?;
        let mut found = [0; cast::to_usize(TRAILER_BYTES)];
        file.read_exact_at(&mut found, self.trailer_from()).ok()?;
        let length = file.metadata().ok()?.len();
        let is_whole = length == self.trailer_from() + TRAILER_BYTES;
        (is_whole && found == trailer(name, geometry)).then_some(file)
    }

    /// The blocks that the file has a mark for.
    pub(crate) fn marked(&self, file: &File) -> io::Result<Vec<u64>> {
        let mut marks = vec![0; cast::to_usize(self.trailer_from() - self.marks_from())];
        file.read_exact_at(&mut marks, self.marks_from())?;
        let marks = marks
            .chunks_exact(cast::to_usize(MARK_BYTES))
            .zip(self.blocks.clone());
        let marked = marks.filter(|(mark, block)| mark[4..] == number_of(*block));
        Ok(marked.map(|(_, block)| block).collect())
    }

    /// Reads bytes of blocks that are known to be there.
    pub(crate) fn read(&self, file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        file.read_exact_at(buffer, offset - self.blocks.start * BLOCK_BYTES)
    }

    /// Whether a block has its checksum.
    pub(crate) fn is_sound(&self, file: &File, block: u64, bytes: u64) -> bool {
        let place = block - self.blocks.start;
        let (mut mark, mut found) = (
            [0; cast::to_usize(MARK_BYTES)],
            vec![0; cast::to_usize(bytes)],
        );
        let mark_from = self.marks_from() + place * MARK_BYTES;
        file.read_exact_at(&mut mark, mark_from).is_ok()
            && file.read_exact_at(&mut found, place * BLOCK_BYTES).is_ok()
            && mark == mark_of(block, &found)
    }

    /// Writes neighbouring blocks, from `block` on, and their marks.
    pub(crate) fn write(&self, file: &File, block: u64, bytes: &[u8]) -> io::Result<()> {
        let place = block - self.blocks.start;
        file.write_all_at(bytes, place * BLOCK_BYTES)?;
        let blocks = bytes.chunks(cast::to_usize(BLOCK_BYTES)).zip(block..);
        let marks: Vec<u8> = blocks
            .flat_map(|(bytes, block)| mark_of(block, bytes))
            .collect();
        file.write_all_at(&marks, self.marks_from() + place * MARK_BYTES)
    }
}

/// What says that a block is there: its checksum, and half of its number, with a bit that is never 0.
fn mark_of(block: u64, bytes: &[u8]) -> [u8; cast::to_usize(MARK_BYTES)] {
    let mut mark = [0; cast::to_usize(MARK_BYTES)];
    mark[..4].copy_from_slice(&crc32c::crc32c(bytes).to_le_bytes());
    mark[4..].copy_from_slice(&number_of(block));
    mark
}

fn number_of(block: u64) -> [u8; 4] {
    (cast::low_u32(block) | 1 << 31).to_le_bytes()
}

fn trailer(name: &str, geometry: Geometry) -> [u8; cast::to_usize(TRAILER_BYTES)] {
    let mut trailer = [0; cast::to_usize(TRAILER_BYTES)];
    trailer[..8].copy_from_slice(MAGIC);
    trailer[8..16].copy_from_slice(&geometry.bytes.to_le_bytes());
    trailer[16..24].copy_from_slice(&geometry.tail_block.to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&trailer[..24]), name.as_bytes());
    trailer[24..].copy_from_slice(&crc.to_le_bytes());
    trailer
}

/// How the object of a file is cut, as the file says it; the trailer was not checked.
pub(crate) fn geometry_of(path: &Path) -> Option<Geometry> {
    let file = File::open(path).ok()?;
    let from = file.metadata().ok()?.len().checked_sub(TRAILER_BYTES)?;
    let mut trailer = [0; cast::to_usize(TRAILER_BYTES)];
    file.read_exact_at(&mut trailer, from).ok()?;
    let number = |at: usize| trailer[at..at + 8].try_into().ok().map(u64::from_le_bytes);
    let (bytes, tail_block) = (number(8)?, number(16)?);
    // An object has fewer bytes than 2^48; so a wrong number cannot make many bits.
    let is_sane = &trailer[..8] == MAGIC && bytes < 1 << 48 && tail_block * BLOCK_BYTES <= bytes;
    is_sane.then_some(Geometry { bytes, tail_block })
}

const ENDINGS: [(Kind, &str); 2] = [(Kind::Pages, ".pages"), (Kind::Tail, ".tail")];

/// The longest name of a file.
const FILE_NAME_BYTES_MAX: usize = 255;

/// The name of an object's file; `None` if it would be too long.
pub(crate) fn file_name(object: &str, kind: Kind) -> Option<String> {
    let mut name = String::new();
    for byte in object.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => name.push(byte.into()),
            _ => name.push_str(&format!("%{byte:02X}")),
        }
    }
    name.push_str(ENDINGS[kind as usize].1);
    (name.len() <= FILE_NAME_BYTES_MAX).then_some(name)
}

/// The object and the kind of a file; `None` if it is none of the cache.
pub(crate) fn parse_file_name(name: &str) -> Option<(String, Kind)> {
    let of_kind = |(kind, ending)| Some((name.strip_suffix(ending)?, kind));
    let (stem, kind) = ENDINGS.into_iter().find_map(of_kind)?;
    let mut parts = stem.split('%');
    let mut object = parts.next()?.as_bytes().to_vec();
    for part in parts {
        object.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        object.extend_from_slice(&part.as_bytes()[2..]);
    }
    let object = String::from_utf8(object).ok()?;
    (file_name(&object, kind)? == name).then_some((object, kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_come_back(object in "[a-z%/. ß]{1,20}", tail in any::<bool>()) {
            let kind = if tail { Kind::Tail } else { Kind::Pages };
            let name = file_name(&object, kind).unwrap();
            prop_assert!(!name.contains('/'));
            prop_assert_eq!(parse_file_name(&name), Some((object, kind)));
        }

        #[test]
        fn other_names_are_none(name in ".{0,20}(\\.tail|\\.pages|)") {
            if let Some((object, kind)) = parse_file_name(&name) {
                prop_assert_eq!(file_name(&object, kind), Some(name));
            }
        }
    }
}

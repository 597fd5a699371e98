//! A directory of which one bit is wrong.
//!
//! A checksum of 32 bits tells the place of a single wrong bit: for each place the difference between the checksums is
//! another one (Koopman, "32-bit cyclic redundancy codes for Internet applications", DSN 2002: any two differ in at least
//! four bits up to 2^31 bits). Two wrong bits look like no single one. More of them may by chance, so the directory
//! must besides describe every byte of the file and as many rows as the manifest has.

use super::{Directory, ReadError, RowGroupEntry, SegmentFile, damaged, read};
use crate::file::Damage;

/// CRC-32C's polynomial, with the lowest power in the highest bit.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// The longest part that is mended, in bytes: the longer it is, the likelier is a bit by chance.
const MENDED_BYTES_MAX: usize = 1 << 20;

impl SegmentFile {
    /// The directory as it was before one bit of these bytes was changed.
    pub(super) fn mended_directory(&self, mut packed: Vec<u8>) -> Result<Directory, ReadError> {
        let place = self.directory;
        let wrong = || {
            let what = "the directory has a wrong checksum";
            damaged(place.offset, place.bytes as u64, what)
        };
        let (byte, bit) = wrong_bit(&packed, place.crc).ok_or_else(wrong)?;
        packed[byte] ^= 1 << bit;
        let directory = self.decode_directory(&packed).map_err(|_| wrong())?;
        let rows = directory.row_groups.iter().map(RowGroupEntry::rows);
        let rows = rows.sum::<usize>() as u64;
        let known = self.manifest.sources.iter().map(|source| source.rows);
        if rows == known.sum::<u64>() && self.gaps(&directory).is_empty() {
            Ok(directory)
        } else {
            Err(wrong())
        }
    }

    /// The damage of the directory, which may be read all the same.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn directory_damage(&self) -> Result<Option<Damage>, ReadError> {
        let place = self.directory;
        let packed = read(&*self.file, place.offset, place.bytes)?;
        let is_sound = crc32c::crc32c(&packed) == place.crc;
        Ok((!is_sound).then_some(Damage {
            offset: place.offset,
            bytes: place.bytes as u64,
            what: "a bit of the directory is wrong; it is read as it was",
        }))
    }
}

/// The byte and the bit of it that must be changed for the bytes to have this checksum, if one bit is enough.
fn wrong_bit(bytes: &[u8], crc: u32) -> Option<(usize, u32)> {
    if bytes.len() > MENDED_BYTES_MAX {
        return None;
    }
    let difference = crc32c::crc32c(bytes) ^ crc;
    // From the last bit that the checksum takes in to the first one.
    let mut of_bit = POLYNOMIAL;
    for byte in (0..bytes.len()).rev() {
        for bit in (0..u8::BITS).rev() {
            if of_bit == difference {
                return Some((byte, bit));
            }
            of_bit = (of_bit >> 1) ^ ((of_bit & 1) * POLYNOMIAL);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_one_wrong_bit_is_found() {
        let bytes: Vec<u8> = (0..700_u32).map(|n| (n * 31 % 251) as u8).collect();
        let crc = crc32c::crc32c(&bytes);
        assert_eq!(wrong_bit(&bytes, crc), None);
        for byte in 0..bytes.len() {
            for bit in 0..u8::BITS {
                let mut wrong = bytes.clone();
                wrong[byte] ^= 1 << bit;
                assert_eq!(wrong_bit(&wrong, crc), Some((byte, bit)));
                wrong[(byte * 7 + 1) % 700] ^= 1 << ((bit + 3) % 8);
                let is_same = (byte * 7 + 1) % 700 == byte;
                assert!(is_same || wrong_bit(&wrong, crc).is_none(), "{byte} {bit}");
            }
        }
        assert_eq!(wrong_bit(&[], 1), None);
        assert_eq!(wrong_bit(&vec![0; MENDED_BYTES_MAX + 1], 1), None);
    }
}

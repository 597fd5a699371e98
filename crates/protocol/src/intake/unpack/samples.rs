//! What tests decompress: xz and LZ4 in the forms in which systemd makes them.

use super::LZ4_BLOCK_BYTES_MAX;

/// How a stream of xz says that it wants a dictionary of so many bytes.
pub(crate) const DICTIONARY_4_KIB: u8 = 0;
pub(crate) const DICTIONARY_8_MIB: u8 = 22;
pub(crate) const DICTIONARY_64_MIB: u8 = 28;
pub(crate) const DICTIONARY_128_MIB: u8 = 30;

/// A mebibyte of the letter x, made by `xz -1 --check=none`.
pub(crate) const MEBIBYTE_XZ: &[u8] = include_bytes!("../../../../../testdata/intake/mebibyte.xz");

/// Blocks behind their lengths.
pub(crate) fn lz4(text: &[u8], block_bytes: usize) -> Vec<u8> {
    assert!(block_bytes <= LZ4_BLOCK_BYTES_MAX);
    let mut out = Vec::new();
    for part in text.chunks(block_bytes) {
        out.extend((part.len() as u64).to_le_bytes());
        out.extend(lz4_flex::block::compress(part));
    }
    out
}

/// A stream of xz without a check, whose parts are stored as they are.
pub(crate) fn xz(text: &[u8], dictionary: u8) -> Vec<u8> {
    let flags = [0, 0];
    let mut out = b"\xfd7zXZ\0".to_vec();
    out.extend(flags);
    out.extend(crc32(&flags));
    let head = [2, 0, 0x21, 1, dictionary, 0, 0, 0];
    let mut block = [&head[..], &crc32(&head)].concat();
    for (number, part) in text.chunks(1 << 16).enumerate() {
        block.push(if number == 0 { 1 } else { 2 });
        block.extend((part.len() as u16).wrapping_sub(1).to_be_bytes());
        block.extend(part);
    }
    block.push(0);
    let block_bytes = block.len();
    block.resize(block_bytes.next_multiple_of(4), 0);
    out.extend(block);
    let mut index = vec![0, 1];
    number(block_bytes, &mut index);
    number(text.len(), &mut index);
    index.resize(index.len().next_multiple_of(4), 0);
    index.extend(crc32(&index));
    let backward = (index.len() as u32 / 4 - 1).to_le_bytes();
    out.extend(index);
    let footer = [&backward[..], &flags].concat();
    out.extend(crc32(&footer));
    out.extend(footer);
    out.extend(b"YZ");
    out
}

fn crc32(bytes: &[u8]) -> [u8; 4] {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum().to_le_bytes()
}

fn number(mut value: usize, out: &mut Vec<u8>) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

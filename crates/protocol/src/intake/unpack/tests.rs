//! Bodies of every encoding, cut anywhere, cut short, and damaged.

use proptest::collection::vec;
use proptest::prelude::*;

use super::samples::{
    DICTIONARY_4_KIB, DICTIONARY_8_MIB, DICTIONARY_64_MIB, DICTIONARY_128_MIB, MEBIBYTE_XZ, lz4, xz,
};
use super::*;

fn packed(encoding: Encoding, text: &[u8]) -> Vec<u8> {
    match encoding {
        Encoding::Gzip => {
            let mut writer = flate2::write::GzEncoder::new(Vec::new(), Default::default());
            writer.write_all(text).unwrap();
            writer.finish().unwrap()
        }
        Encoding::Deflate => {
            let mut writer = flate2::write::ZlibEncoder::new(Vec::new(), Default::default());
            writer.write_all(text).unwrap();
            writer.finish().unwrap()
        }
        Encoding::Zstd => zstd::encode_all(text, 3).unwrap(),
        Encoding::Xz => xz(text, DICTIONARY_8_MIB),
        Encoding::Lz4Blocks => lz4(text, 64 << 10),
        _ => text.to_vec(),
    }
}

fn unpacked(encoding: Encoding, chunks: &[&[u8]]) -> Result<Vec<u8>, BodyError> {
    let mut unpacker = Unpacker::new(encoding).unwrap();
    let (mut all, mut out) = (Vec::new(), Vec::new());
    for chunk in chunks {
        let mut rest = *chunk;
        while !rest.is_empty() || unpacker.is_pending() {
            let taken = unpacker.step(rest, &mut out)?;
            assert!(out.len() <= STEP_BYTES_MAX);
            rest = &rest[taken..];
            all.extend_from_slice(&out);
        }
    }
    all.extend(unpacker.finish()?);
    Ok(all)
}

const ALL: [Encoding; 6] = [
    Encoding::Identity,
    Encoding::Gzip,
    Encoding::Deflate,
    Encoding::Zstd,
    Encoding::Xz,
    Encoding::Lz4Blocks,
];

#[test]
fn what_was_packed_is_unpacked_however_it_is_cut() {
    let text = "a line of a journal that repeats "
        .repeat(100_000)
        .into_bytes();
    for encoding in ALL {
        // Two bodies one behind the other are one, where the encoding allows it.
        let mut body = packed(encoding, &text);
        let mut wanted = text.clone();
        if encoding != Encoding::Deflate {
            body.extend(packed(encoding, b"end"));
            wanted.extend(b"end");
        }
        for size in [1, 7, 1000, body.len()] {
            let chunks: Vec<&[u8]> = body.chunks(size).collect();
            assert!(
                unpacked(encoding, &chunks).unwrap() == wanted,
                "{encoding:?} {size}"
            );
        }
        assert_eq!(unpacked(encoding, &[]), Ok(Vec::new()));
    }
}

#[test]
fn what_ends_early_or_is_something_else_is_refused() {
    let text = b"some text that is long enough".repeat(9);
    for encoding in &ALL[1..] {
        let body = packed(*encoding, &text);
        let corrupt = Err(BodyError::Corrupt(*encoding));
        assert_eq!(unpacked(*encoding, &[&body[..body.len() - 1]]), corrupt);
        assert_eq!(unpacked(*encoding, &[&body[..1]]), corrupt);
        assert_eq!(
            unpacked(*encoding, &[b"no such thing, but some text"]),
            corrupt
        );
    }
}

/// What a client of systemd sends: a stream or a block for each piece that it read.
#[test]
fn streams_and_blocks_follow_each_other_without_end() {
    let piece = b"MESSAGE=one of many entries of a journal\n\n".repeat(90);
    let streams = [
        xz(&piece, DICTIONARY_64_MIB),
        xz(&piece, DICTIONARY_4_KIB),
        xz(&piece, DICTIONARY_64_MIB),
    ];
    let wanted = piece.repeat(3);
    for size in [1, 7, 5000, 1 << 20] {
        let body = streams.concat();
        let chunks: Vec<&[u8]> = body.chunks(size).collect();
        assert!(unpacked(Encoding::Xz, &chunks).unwrap() == wanted, "{size}");
        let body = lz4(&wanted, piece.len());
        let chunks: Vec<&[u8]> = body.chunks(size).collect();
        assert!(
            unpacked(Encoding::Lz4Blocks, &chunks).unwrap() == wanted,
            "{size}"
        );
    }
    assert_eq!(
        unpacked(Encoding::Xz, &[MEBIBYTE_XZ, MEBIBYTE_XZ]).unwrap(),
        vec![b'x'; 2 << 20]
    );
    // Short ones, which are literals alone.
    assert_eq!(
        unpacked(Encoding::Lz4Blocks, &[&lz4(b"abc", 1)]).unwrap(),
        b"abc"
    );
}

#[test]
fn dictionaries_of_xz_have_a_limit() {
    let long = vec![7; XZ_DICTIONARY_BYTES_MAX + 1];
    let short = &long[..1000];
    let table = [
        (short, DICTIONARY_64_MIB, None),
        (short, DICTIONARY_128_MIB, Some(128 << 20)),
        (&long, DICTIONARY_8_MIB, None),
        (&long[1..], DICTIONARY_64_MIB, None),
        (&long, DICTIONARY_64_MIB, Some(64 << 20)),
    ];
    for (text, dictionary, refused) in table {
        let body = xz(text, dictionary);
        for size in [100, body.len()] {
            let chunks: Vec<&[u8]> = body.chunks(size).collect();
            let found = unpacked(Encoding::Xz, &chunks);
            match refused {
                Some(bytes) => assert_eq!(found, Err(BodyError::Dictionary(bytes))),
                None => assert!(found.as_deref() == Ok(text), "{dictionary} {size}"),
            }
        }
    }
    // A small one is not made larger in the middle of a stream.
    let mut streams = xz(&long, DICTIONARY_8_MIB);
    streams.extend(xz(short, DICTIONARY_64_MIB));
    assert_eq!(
        unpacked(Encoding::Xz, &[&streams]).unwrap().len(),
        long.len() + 1000
    );
    let error = BodyError::Dictionary(128 << 20).to_string();
    assert!(
        error.contains("134217728") && error.contains("8388608"),
        "{error}"
    );
}

#[test]
fn blocks_of_lz4_that_lie_are_refused() {
    let block = |length: u64, rest: &[u8]| [&length.to_le_bytes()[..], rest].concat();
    let long = LZ4_BLOCK_BYTES_MAX as u64;
    let table = [
        // Nothing, too much, and LZ4's own framing.
        block(0, b"\0"),
        block(long + 1, b"\x10a"),
        b"\x04\x22\x4d\x18\x64\x40\xa7\x05\0\0\x80abcde\0\0\0\0".to_vec(),
        // More literals than the block has.
        block(1, b"\x20ab"),
        block(300, b"\xf0\xff\xff\xff"),
        // A copy to the end of the block, beyond it, and from before its begin.
        block(5, b"\x10a\x01\0"),
        block(6, b"\x1fa\x01\0\0"),
        block(300, b"\x1fa\x01\0\xff\xff"),
        block(6, b"\x10a\x05\0\x10b"),
        block(6, b"\x10a\0\0\x10b"),
    ];
    for (number, body) in table.iter().enumerate() {
        let found = unpacked(Encoding::Lz4Blocks, &[body]);
        assert_eq!(
            found,
            Err(BodyError::Corrupt(Encoding::Lz4Blocks)),
            "{number}"
        );
    }
    assert_eq!(
        unpacked(Encoding::Lz4Blocks, &[&block(6, b"\x10a\x01\0\x10b")]).unwrap(),
        b"aaaaab"
    );
}

/// Steps give little, whatever their input becomes.
#[test]
fn bombs_come_out_in_pieces() {
    let mebibytes = 200;
    let body = MEBIBYTE_XZ.repeat(mebibytes);
    let mut unpacker = Unpacker::new(Encoding::Xz).unwrap();
    let (mut rest, mut out, mut bytes) = (&body[..], Vec::new(), 0);
    while !rest.is_empty() || unpacker.is_pending() {
        let taken = unpacker.step(rest, &mut out).unwrap();
        assert!(out.capacity() <= STEP_BYTES_MAX);
        (rest, bytes) = (&rest[taken..], bytes + out.len());
    }
    assert_eq!(
        (bytes, unpacker.finish()),
        (mebibytes << 20, Ok(Vec::new()))
    );
}

proptest! {
    #[test]
    fn bodies_are_the_same_however_they_are_cut(
        text in vec(prop_oneof![Just(b'a'), Just(b'b'), any::<u8>()], 1..3000),
        times in 1..40_usize,
        block in 1..4000_usize,
        cuts in vec(1..900_usize, 1..20),
    ) {
        let text = text.repeat(times);
        let streams = text.chunks(block.max(200)).map(|part| xz(part, DICTIONARY_4_KIB));
        for (encoding, body) in [
            (Encoding::Xz, streams.collect::<Vec<_>>().concat()),
            // More parts with as little in them are refused.
            (Encoding::Lz4Blocks, lz4(&text, block.max(text.len().div_ceil(MEMBERS_MAX)))),
        ] {
            let (mut rest, mut chunks) = (&body[..], Vec::new());
            for cut in cuts.iter().cycle() {
                let (chunk, behind) = rest.split_at((*cut).min(rest.len()));
                chunks.push(chunk);
                rest = behind;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert!(unpacked(encoding, &chunks) == Ok(text.clone()));
        }
    }

    /// Whatever is done to it, a body ends, and it is not longer than it can be.
    #[test]
    fn damaged_bodies_are_read_or_refused(
        text in vec(prop_oneof![Just(b'a'), any::<u8>()], 1..500),
        which in 0..3_usize,
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        end in any::<prop::sample::Index>(),
    ) {
        let (encoding, mut body) = match which {
            0 => (Encoding::Xz, xz(&text, DICTIONARY_4_KIB)),
            1 => (Encoding::Xz, MEBIBYTE_XZ.to_vec()),
            _ => (Encoding::Lz4Blocks, lz4(&text, 100)),
        };
        for (index, byte) in damage {
            let at = index.index(body.len());
            body[at] = byte;
        }
        let cut = &body[..end.index(body.len()) + 1];
        for bytes in [&body[..], cut] {
            match unpacked(encoding, &[bytes]) {
                Ok(found) => prop_assert!(found.len() <= STEP_BYTES_MAX * 2),
                Err(error) => prop_assert!(matches!(
                    error,
                    BodyError::Corrupt(_) | BodyError::Dictionary(_)
                )),
            }
        }
    }

    #[test]
    fn whole_bodies_that_are_cut_short_are_refused(
        text in vec(any::<u8>(), 1..500),
        end in any::<prop::sample::Index>(),
    ) {
        for encoding in [Encoding::Xz, Encoding::Lz4Blocks] {
            let body = packed(encoding, &text);
            let cut = &body[..1 + end.index(body.len() - 1)];
            prop_assert_eq!(unpacked(encoding, &[cut]), Err(BodyError::Corrupt(encoding)));
        }
    }
}

/// Each costs time, also without content: the memory of a step is cleared for each.
#[test]
fn parts_without_content_are_bounded_and_parts_of_entries_are_not() {
    let entry =
        b"__CURSOR=s=1;i=2\n_BOOT_ID=b\n__REALTIME_TIMESTAMP=1700000000000000\nMESSAGE=x\n\n";
    for encoding in [Encoding::Gzip, Encoding::Zstd, Encoding::Xz] {
        let (empty, full) = (packed(encoding, b""), packed(encoding, entry));
        let empties = empty.repeat(MEMBERS_MAX + 1);
        let refused = unpacked(encoding, &[&empties]);
        assert_eq!(refused, Err(BodyError::Crumbs), "{encoding:?}");
        let many = full.repeat(MEMBERS_MAX + 1000);
        let taken = unpacked(encoding, &[&many]).map(|text| text.len());
        assert_eq!(
            taken,
            Ok(entry.len() * (MEMBERS_MAX + 1000)),
            "{encoding:?}"
        );
    }
}

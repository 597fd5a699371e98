use std::io::Write;

use super::*;
use crate::intake::unpack::samples;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn snappy(bytes: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(bytes).unwrap()
}

fn decode(encoding: Encoding, body: &[u8], max: usize, chunk: usize) -> Result<Vec<u8>, BodyError> {
    let mut decoder = Decoder::new(encoding, max)?;
    for part in body.chunks(chunk) {
        decoder.write(part)?;
    }
    decoder.finish()
}

#[test]
fn bodies_come_out_as_they_went_in() {
    let text: Vec<u8> = (0..200_000u32).flat_map(|i| i.to_le_bytes()).collect();
    let halves = text.split_at(text.len() / 3);
    for (encoding, body) in [
        (Encoding::Identity, text.clone()),
        (Encoding::Gzip, gzip(&text)),
        (Encoding::Gzip, [gzip(halves.0), gzip(halves.1)].concat()),
        (Encoding::Zstd, zstd(&text)),
        (Encoding::Zstd, [zstd(halves.0), zstd(halves.1)].concat()),
        (Encoding::Deflate, deflate(&text)),
        (Encoding::SnappyBlock, snappy(&text)),
        (Encoding::Xz, samples::xz(&text, samples::DICTIONARY_8_MIB)),
        (Encoding::Lz4Blocks, samples::lz4(&text, 64 << 10)),
    ] {
        for chunk in [1 << 20, 1000, 7] {
            let decoded = decode(encoding, &body, BODY_BYTES_MAX, chunk);
            assert!(
                decoded.as_ref() == Ok(&text),
                "{encoding:?} in chunks of {chunk}"
            );
        }
        let too_long = decode(encoding, &body, text.len() - 1, 4096);
        assert_eq!(
            too_long,
            Err(BodyError::TooLong(text.len() - 1)),
            "{encoding:?}"
        );
        assert_eq!(decode(encoding, b"", 10, 1), Ok(Vec::new()), "{encoding:?}");
    }
}

#[test]
fn broken_bodies_are_errors() {
    let text = b"some text that is long enough".repeat(50);
    for (encoding, body) in [
        (Encoding::Gzip, gzip(&text)),
        (Encoding::Zstd, zstd(&text)),
        (Encoding::Deflate, deflate(&text)),
        (Encoding::SnappyBlock, snappy(&text)),
    ] {
        for cut in [1, 4, body.len() / 2, body.len() - 1] {
            let decoded = decode(encoding, &body[..cut], BODY_BYTES_MAX, 16);
            assert_eq!(
                decoded,
                Err(BodyError::Corrupt(encoding)),
                "{encoding:?} cut at {cut}"
            );
        }
        let mut flipped = body.clone();
        flipped[0] ^= 1;
        let decoded = decode(encoding, &flipped, BODY_BYTES_MAX, 1 << 20);
        assert_eq!(decoded, Err(BodyError::Corrupt(encoding)));
        let decoded = decode(encoding, b"plain text", BODY_BYTES_MAX, 1 << 20);
        assert_eq!(decoded, Err(BodyError::Corrupt(encoding)));
    }
}

#[test]
fn bombs_are_stopped() {
    let bomb = zstd(&vec![b'x'; 60 << 20]);
    let decoded = decode(Encoding::Zstd, &bomb, BODY_BYTES_MAX, 1 << 20);
    assert_eq!(decoded, Err(BodyError::TooDense));
    // It says that it is 4 GiB long.
    let huge = b"\xff\xff\xff\xff\x0f\x00";
    let decoded = decode(Encoding::SnappyBlock, huge, BODY_BYTES_MAX, 1 << 20);
    assert_eq!(decoded, Err(BodyError::TooLong(BODY_BYTES_MAX)));
    let dense = b"\x80\x80\x80\x10\x00";
    let decoded = decode(Encoding::SnappyBlock, dense, BODY_BYTES_MAX, 1 << 20);
    assert_eq!(decoded, Err(BodyError::TooDense));
    let long = gzip(&vec![b'x'; BODY_BYTES_MAX + 1]);
    let decoded = decode(Encoding::Gzip, &long, usize::MAX, 1 << 20);
    assert_eq!(decoded, Err(BodyError::TooLong(BODY_BYTES_MAX)));
}

/// Each costs time, also without content.
#[test]
fn members_of_gzip_are_bounded() {
    let member = gzip(b"");
    let (few, many) = (member.repeat(1000), member.repeat(MEMBERS_MAX + 1));
    assert_eq!(decode(Encoding::Gzip, &few, 100, 64 << 10), Ok(Vec::new()));
    // Also where each begins in one chunk and ends in the next.
    for chunk in [64 << 10, 1, 2, 19] {
        let refused = decode(Encoding::Gzip, &many, 100, chunk);
        assert_eq!(refused, Err(BodyError::Members), "chunks of {chunk}");
    }
}

#[test]
fn headers_name_encodings() {
    assert_eq!(Encoding::from_header(" GZIP "), Some(Encoding::Gzip));
    assert_eq!(Encoding::from_header("zstd"), Some(Encoding::Zstd));
    assert_eq!(Encoding::from_header("identity"), Some(Encoding::Identity));
    assert_eq!(Encoding::from_header("deflate"), Some(Encoding::Deflate));
    assert_eq!(Encoding::from_header("br"), None);
    // Only journals are uploaded with these.
    let upload = Encoding::from_upload_header;
    for (name, encoding) in [("XZ", Encoding::Xz), ("lz4", Encoding::Lz4Blocks)] {
        assert_eq!(
            (Encoding::from_header(name), upload(name)),
            (None, Some(encoding))
        );
    }
    assert_eq!((upload("gzip"), upload("br")), (Some(Encoding::Gzip), None));
}

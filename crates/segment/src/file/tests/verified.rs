//! No byte of a segment file can change without notice.

use super::*;
use crate::verify;

/// The samples in two files: one with many row groups and blocks, one at rest.
fn files() -> Vec<Vec<u8>> {
    let records = samples(1200);
    [(Profile::Hot, 500), (Profile::Cold, 1200)]
        .map(|(profile, rows_per_group)| {
            let (file, _) = write(&records, profile, rows_per_group);
            file.0.lock().unwrap().clone()
        })
        .to_vec()
}

fn check(bytes: Vec<u8>) -> verify::VerifyReport {
    let file = Memory(Arc::new(Mutex::new(bytes)));
    verify::file(Arc::new(file), None).unwrap()
}

/// What a comparison with checksums finds in a file that was sound when it was opened, and has these
/// bytes now.
fn compare(sound: &[u8], bytes: Vec<u8>) -> Vec<Damage> {
    let file = Memory(Arc::new(Mutex::new(sound.to_vec())));
    let segment = SegmentFile::open(Arc::new(file.clone())).unwrap();
    *file.0.lock().unwrap() = bytes;
    let mut checksums = verify::Checksums::new(&segment);
    while checksums.step().unwrap().is_some() {}
    checksums.into_damages()
}

#[test]
fn whole_files_have_no_damage() {
    for bytes in files() {
        assert_eq!(compare(&bytes, bytes.clone()), []);
        let checked = check(bytes);
        assert_eq!((checked.damages, checked.rows), (vec![], 1200));
        assert_eq!(checked.id, Some(Id(9)));
    }
}

/// One wrong bit in the directory costs no row, and is damage all the same.
#[test]
fn a_wrong_bit_of_the_directory_costs_no_row() {
    let records = samples(300);
    let (file, _) = write(&records, Profile::Hot, 300);
    let place = SegmentFile::open(Arc::new(file.clone()))
        .unwrap()
        .directory_place();
    let sound = file.0.lock().unwrap().clone();
    let lines = |file: &Memory| {
        let read = read_all(file)?.into_iter();
        Ok::<Vec<Vec<u8>>, ReadError>(read.map(|(line, _)| line).collect())
    };
    let expected = lines(&file).unwrap();
    let (from, to) = (place.offset as usize, place.offset as usize + place.bytes);
    for at in (from..to).step_by(3) {
        let mut bytes = sound.clone();
        bytes[at] ^= 1 << (at % 8);
        let file = Memory(Arc::new(Mutex::new(bytes.clone())));
        assert_eq!(lines(&file).unwrap(), expected, "byte {at}");
        let checked = check(bytes.clone());
        let expected = "a bit of the directory is wrong; it is read as it was";
        assert_eq!((checked.rows, checked.damages.len()), (300, 1), "byte {at}");
        assert_eq!(checked.damages[0].what, expected);
        assert_eq!(compare(&sound, bytes.clone())[0].what, expected);
        // Two bits are too many.
        bytes[if at > from { from } else { to - 1 }] ^= 1;
        let file = Memory(Arc::new(Mutex::new(bytes)));
        assert!(read_all(&file).is_err(), "byte {at}");
    }
}

#[test]
fn a_byte_that_belongs_to_nothing_is_damage() {
    let records = samples(300);
    let (file, _) = write(&records, Profile::Hot, 300);
    let segment = SegmentFile::open(Arc::new(file)).unwrap();
    let mut directory = segment.read_directory().unwrap();
    assert_eq!(segment.gaps(&directory), []);
    let page = &mut directory.row_groups[0].columns[3].pages[0];
    page.bytes -= 2;
    let gap = (page.offset + u64::from(page.bytes), 2);
    assert_eq!(segment.gaps(&directory), [gap]);
}

/// A segment whose rows are sound but not those that its manifest promises.
#[test]
fn rows_of_another_source_are_damage() {
    let checked = check(write_with_hash(&samples(50), 5));
    assert_eq!(
        checked.damages[0].what,
        "the rows are not those of the source"
    );
}

fn write_with_hash(records: &[Record<'_>], hash: u128) -> Vec<u8> {
    let mut builder = RowsBuilder::new();
    for (number, record) in records.iter().enumerate() {
        builder.push(record, number as u64, 0, line(record).len());
    }
    let counts = builder.counts();
    let schema = counts.schema();
    let file = Memory::default();
    let source = SourceEntry {
        source: SourceId {
            incarnation: INCARNATION,
            sequence: 3,
        },
        rows: records.len() as u64,
        hash,
        retry: None,
    };
    let sink = Box::new(file.clone());
    let mut writer = SegmentWriter::new(
        sink,
        Id(9),
        Profile::Hot,
        counts,
        schema.clone(),
        vec![source],
    )
    .unwrap();
    writer.write(&builder.take(&schema)).unwrap();
    writer.finish().unwrap();
    file.0.lock().unwrap().clone()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_changed_byte_is_found(which in 0usize..2, place in 0.0..1.0f64, flip in 1u8..=255) {
        let mut bytes = FILES.with(|files| files[which].clone());
        let at = (place * bytes.len() as f64) as usize;
        let sound = bytes.clone();
        bytes[at] ^= flip;
        for damages in [compare(&sound, bytes.clone()), check(bytes).damages] {
            prop_assert!(
                damages.iter().any(|d| (d.offset..d.offset + d.bytes).contains(&(at as u64))),
                "byte {at} is not in {damages:?}"
            );
        }
    }

    #[test]
    fn any_shorter_file_is_found(which in 0usize..2, place in 0.0..1.0f64) {
        let mut bytes = FILES.with(|files| files[which].clone());
        let sound = bytes.clone();
        bytes.truncate((place * bytes.len() as f64) as usize);
        prop_assert!(!compare(&sound, bytes.clone()).is_empty());
        prop_assert!(!check(bytes).damages.is_empty());
    }
}

thread_local! {
    static FILES: Vec<Vec<u8>> = files();
}

/// The bytes around every seam, where a checksum could end too early or begin too late.
#[test]
fn the_bytes_at_every_seam_are_covered() {
    let bytes = FILES.with(|files| files[0].clone());
    let file = Memory(Arc::new(Mutex::new(bytes.clone())));
    let segment = SegmentFile::open(Arc::new(file)).unwrap();
    let directory = segment.read_directory().unwrap();
    let mut seams = vec![0, 3, 4, bytes.len() - 1, bytes.len() - 8];
    for group in &directory.row_groups {
        for column in &group.columns {
            for page in column.dictionary.iter().chain(&column.pages) {
                let end = page.offset + u64::from(page.bytes);
                seams.extend([page.offset, end - 1].map(|at| at as usize));
            }
        }
        let end = group.tokens.offset + u64::from(group.tokens.bytes);
        seams.extend([group.tokens.offset, end - 1, end].map(|at| at as usize));
    }
    seams.sort_unstable();
    seams.dedup();
    for at in seams {
        let mut changed = bytes.clone();
        changed[at] ^= 0x20;
        assert!(!compare(&bytes, changed.clone()).is_empty(), "byte {at}");
        assert!(!check(changed).damages.is_empty(), "byte {at}");
    }
}

/// Pages that are longer than a piece, and a piece with the ends of many.
#[test]
fn pieces_are_bounded_and_cover_the_file() {
    let mut records = samples(40);
    let words = (0..200_000u64).map(|n| xxhash_rust::xxh3::xxh3_64(&n.to_le_bytes()));
    let noise: String = words.map(|word| format!("{word:016x} ")).collect();
    records[20].whole = Some(noise.into_bytes().into());
    let (file, _) = write(&records, Profile::Cold, 40);
    let bytes = file.0.lock().unwrap().clone();
    let segment = SegmentFile::open(Arc::new(file)).unwrap();
    let longest = segment.read_directory().unwrap().parts();
    let longest = longest.iter().map(|part| part.bytes).max().unwrap();
    assert!(longest > 1 << 20, "{longest} bytes");
    let mut checksums = verify::Checksums::new(&segment);
    let (mut read, mut most) = (4, 0);
    while let Some(piece) = checksums.step().unwrap() {
        (read, most) = (read + piece, most.max(piece));
    }
    assert_eq!(checksums.into_damages(), []);
    assert_eq!(most, 1 << 20);
    assert!(read >= segment.bytes(), "{read} of {}", segment.bytes());
    for at in (4..bytes.len()).step_by(bytes.len() / 50) {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(!compare(&bytes, changed).is_empty(), "byte {at}");
    }
}

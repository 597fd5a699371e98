//! Damaged files, copies and files that are gone at a start.

use std::collections::BTreeMap;

use super::tests::{build, journals, lines, names, once};
use super::*;
use crate::file::Summary;
use crate::inventory::{self, Inventory};
use crate::mem_disk::MemDisk;
use crate::verify::{Finding, data_directory};

/// A segment of 300 rows, with its bytes.
fn segment(disk: &MemDisk) -> (SegmentFile, Vec<u8>) {
    let files = journals(disk, &[200, 100]);
    let segment = build(disk, 1, &files);
    for file in &files {
        disk.remove(&file.path).unwrap();
    }
    let bytes = disk.read(&path(Id(1), SUFFIX_LIVE)).unwrap();
    (segment, bytes)
}

fn known(segment: &SegmentFile) -> BTreeMap<Id, Summary> {
    [(segment.manifest().id, Summary::of(segment))].into()
}

/// Opens the one segment that there is, in which every row must be.
fn all_rows(disk: &MemDisk, known: &BTreeMap<Id, Summary>, what: &str) -> String {
    let found = open_known(disk, known).unwrap();
    assert_eq!(found.quarantined, [], "{what}");
    let [live] = &found.live[..] else {
        panic!("{what}: {} segments", found.live.len());
    };
    assert_eq!(lines(live), once(0..300), "{what}");
    let [(Id(1), damage)] = &found.salvaged[..] else {
        panic!("{what}: {:?}", found.salvaged);
    };
    damage.clone()
}

#[test]
fn bytes_behind_a_segment_cost_nothing() {
    let disk = MemDisk::new();
    let (_, whole) = segment(&disk);
    let mut other = whole.clone();
    other.truncate(whole.len() - 1);
    let garbage: [&[u8]; 6] = [
        b"\n",
        &[0; 4096],
        b"PAR1",
        &b"PAR1".repeat(300),
        &vec![0x5a; 3 << 20],
        &other,
    ];
    for garbage in garbage {
        let what = format!("{} bytes", garbage.len());
        let bytes = [&whole, garbage].concat();
        disk.write(&path(Id(1), SUFFIX_LIVE), &bytes);
        let damage = all_rows(&disk, &BTreeMap::new(), &what);
        assert!(damage.contains("belong to nothing"), "{damage}");
        let mut said = Vec::new();
        let totals = data_directory(&disk, &mut |finding| said.push(finding)).unwrap();
        assert_eq!((totals.rows, totals.damages), (300, 1), "{what}");
        let Finding::Damage { from, to, .. } = said[0] else {
            panic!("{said:?}");
        };
        assert_eq!((from, to), (whole.len() as u64, bytes.len() as u64));
    }
}

#[test]
fn a_lost_footer_costs_nothing_while_its_rows_are_known() {
    let disk = MemDisk::new();
    let (segment, whole) = segment(&disk);
    let (footer, known) = (segment.footer_from() as usize, known(&segment));
    // A byte of Parquet's own part.
    let mut flipped = whole.clone();
    flipped[footer + 5] ^= 0x20;
    disk.write(&path(Id(1), SUFFIX_LIVE), &flipped);
    all_rows(&disk, &known, "a changed byte");
    // All of it, down to the directory.
    for cut in (footer..whole.len()).step_by(97) {
        disk.write(&path(Id(1), SUFFIX_LIVE), &whole[..cut]);
        let damage = all_rows(&disk, &known, &format!("cut at {cut}"));
        assert!(damage.contains("footer"), "{damage}");
    }
    // The known hash is another one.
    let mut wrong = known;
    wrong.get_mut(&Id(1)).unwrap().hash ^= 1;
    disk.write(&path(Id(1), SUFFIX_LIVE), &whole[..footer]);
    let found = open_known(&disk, &wrong).unwrap();
    assert_eq!((found.live.len(), found.quarantined.len()), (0, 1));
}

#[test]
fn no_changed_byte_makes_rows_up() {
    let disk = MemDisk::new();
    let (segment, whole) = segment(&disk);
    let known = known(&segment);
    for known in [&known, &BTreeMap::new()] {
        for at in (segment.footer_from() as usize..whole.len()).step_by(7) {
            let mut changed = whole.clone();
            changed[at] ^= 0x55;
            disk.write(&path(Id(1), SUFFIX_LIVE), &changed);
            let found = open_known(&disk, known).unwrap();
            for live in &found.live {
                assert_eq!(lines(live), once(0..300), "byte {at}");
                assert_eq!(live.manifest().sources, segment.manifest().sources);
            }
            for (aside, _) in &found.quarantined {
                assert!(known.is_empty(), "byte {at}");
                disk.remove(aside).unwrap();
            }
        }
    }
}

#[test]
fn a_sound_copy_under_another_name_takes_the_place_of_a_damaged_file() {
    let own = path(Id(1), SUFFIX_LIVE);
    let aside = "segments/a copy.superseded";
    // Sound, with a damaged page, and not readable at all.
    for damage in [None, Some(40), Some(usize::MAX)] {
        let disk = MemDisk::new();
        let (segment, whole) = segment(&disk);
        disk.write("segments/a copy.parquet", &whole);
        let mut bytes = whole.clone();
        match damage {
            None => {}
            Some(usize::MAX) => bytes.truncate(segment.index_from() as usize),
            Some(at) => bytes[at] ^= 1,
        }
        disk.write(&own, &bytes);
        for _ in 0..2 {
            let found = open_all(&disk).unwrap();
            assert_eq!(found.quarantined, []);
            let [live] = &found.live[..] else {
                panic!("{damage:?}: {} segments", found.live.len());
            };
            assert_eq!(lines(live), once(0..300), "{damage:?}");
        }
        assert_eq!(disk.read(&own), Some(whole), "{damage:?}");
        assert_eq!(disk.read(aside).is_some(), damage.is_none());
        assert_eq!(names(&disk).len(), 2, "nothing is removed");
    }
}

#[test]
fn sound_inputs_count_before_a_damaged_merge() {
    let disk = MemDisk::new();
    let files = journals(&disk, &[100, 200]);
    let inputs = [build(&disk, 1, &files[..1]), build(&disk, 2, &files[1..])];
    merge(&disk, Id(9), &inputs, Profile::Hot, &|| false).unwrap();
    let mut bytes = disk.read(&path(Id(9), SUFFIX_LIVE)).unwrap();
    bytes[50] ^= 1;
    disk.write(&path(Id(9), SUFFIX_LIVE), &bytes);
    let settled = settle(&disk, open_all(&disk).unwrap().live);
    let live: Vec<Id> = settled.live.iter().map(|s| s.manifest().id).collect();
    assert_eq!(live, [Id(1), Id(2)]);
    assert_eq!(settled.damaged, [Id(9)]);
    assert_eq!(settled.covered.len(), 1);
    // Without one of them the rest is read from the damaged one, and nothing is retired.
    let disk = MemDisk::new();
    let files = journals(&disk, &[100, 200]);
    let inputs = [build(&disk, 1, &files[..1]), build(&disk, 2, &files[1..])];
    merge(&disk, Id(9), &inputs, Profile::Hot, &|| false).unwrap();
    disk.write(&path(Id(9), SUFFIX_LIVE), &bytes);
    disk.remove(&path(Id(2), SUFFIX_LIVE)).unwrap();
    let settled = settle(&disk, open_all(&disk).unwrap().live);
    assert_eq!((settled.live.len(), settled.covered.len()), (2, 0));
}

#[test]
fn what_is_listed_and_gone_is_damage() {
    let disk = MemDisk::new();
    let files = journals(&disk, &[100, 200, 50]);
    let segments = [build(&disk, 1, &files[..1]), build(&disk, 2, &files[1..2])];
    let mut listed = Inventory::default();
    for segment in &segments {
        listed
            .segments
            .insert(segment.manifest().id, Summary::of(segment));
    }
    let entry = inventory::JournalEntry::new(&files[2].summary, false);
    listed.journal.insert(files[2].source, entry);
    disk.write(inventory::PATH, &listed.to_bytes());
    let check = || {
        let mut said = Vec::new();
        let totals = data_directory(&disk, &mut |finding| said.push(finding)).unwrap();
        (totals.absent, totals.damages, said)
    };
    for file in &files[..2] {
        disk.remove(&file.path).unwrap();
    }
    assert_eq!(check().0, 0);
    // Merged meanwhile, and not listed yet.
    merge(&disk, Id(9), &segments, Profile::Hot, &|| false).unwrap();
    retire(&disk, &[Id(1), Id(2)]).unwrap();
    assert_eq!(check().0, 0);
    disk.remove(&path(Id(9), SUFFIX_LIVE)).unwrap();
    disk.remove(&files[2].path).unwrap();
    let (absent, damages, said) = check();
    assert_eq!((absent, damages), (3, 3), "{said:?}");
    let texts = format!("{said:?}");
    assert!(texts.contains("with 200 records"), "{texts}");
    // A list that is damaged says nothing.
    let mut bytes = listed.to_bytes();
    bytes[30] ^= 1;
    disk.write(inventory::PATH, &bytes);
    let (absent, damages, said) = check();
    assert_eq!((absent, damages, said.len()), (0, 0, 1), "{said:?}");
}

//! Journal files that are made here, whole, damaged and cut. Those of systemd are read in the tests
//! with real processes.

use super::super::unpack::samples::{
    DICTIONARY_8_MIB, DICTIONARY_128_MIB, MEBIBYTE_XZ, xz as packed_xz,
};
use super::*;

/// Writes journal files.
struct Maker {
    bytes: Vec<u8>,
    is_compact: bool,
    entries: Vec<u64>,
    data: Vec<(u64, u64)>,
}

const HEADER_BYTES: usize = 272;

impl Maker {
    fn new(flags: u32) -> Maker {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[12..16].copy_from_slice(&flags.to_le_bytes());
        bytes[72..88].copy_from_slice(&0xabu128.to_be_bytes());
        bytes[88..96].copy_from_slice(&(HEADER_BYTES as u64).to_le_bytes());
        let (is_compact, entries) = (flags & 16 != 0, Vec::new());
        Maker {
            bytes,
            is_compact,
            entries,
            data: Vec::new(),
        }
    }

    fn object(&mut self, kind: u8, flags: u8, rest: &[u8]) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let offset = self.bytes.len() as u64;
        self.bytes.extend([kind, flags, 0, 0, 0, 0, 0, 0]);
        self.bytes.extend((16 + rest.len() as u64).to_le_bytes());
        self.bytes.extend(rest);
        offset
    }

    fn data(&mut self, flags: u8, payload: &[u8]) -> u64 {
        self.packed(flags, payload, payload)
    }

    /// Data that is a text once it is unpacked.
    fn packed(&mut self, flags: u8, payload: &[u8], text: &[u8]) -> u64 {
        let hasher = Header::read(&mut Pages::new(&self.bytes[..], self.bytes.len() as u64));
        let hash = hasher.unwrap().hasher.hash(text);
        let head = if self.is_compact { 72 } else { 64 };
        let rest = [&hash.to_le_bytes()[..], &vec![0; head - 24], payload].concat();
        let offset = self.object(1, flags, &rest);
        self.data.push((offset, hash));
        offset
    }

    /// Writes the table of data with two lists, and what the header counts.
    fn finish(&mut self) {
        let mut lists = [(0, 0); 2];
        for (offset, hash) in std::mem::take(&mut self.data) {
            let (first, last) = &mut lists[(hash % 2) as usize];
            match *last {
                0 => *first = offset,
                last => self.set(last as usize + 24, offset),
            }
            *last = offset;
        }
        let numbers = lists.iter().flat_map(|(first, last)| [*first, *last]);
        let table: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
        let offset = self.object(4, 0, &table);
        self.set(104, offset + 16);
        self.set(112, table.len() as u64);
        self.set(136, offset);
        let (mut objects, mut at) = (0, HEADER_BYTES);
        while at < self.bytes.len() {
            let length = self.bytes[at + 8..at + 16].try_into().unwrap();
            at = (at + u64::from_le_bytes(length) as usize).next_multiple_of(8);
            objects += 1;
        }
        self.set(144, objects);
    }

    fn set(&mut self, at: usize, number: u64) {
        self.bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
    }

    fn entry(&mut self, seqnum: u64, data: &[u64]) {
        let mut rest = Vec::new();
        for number in [seqnum, 1_700_000_000_000_000 + seqnum, 5] {
            rest.extend(number.to_le_bytes());
        }
        rest.extend(0xb0u128.to_be_bytes());
        rest.extend(7u64.to_le_bytes());
        for offset in data {
            if self.is_compact {
                rest.extend((*offset as u32).to_le_bytes())
            } else {
                rest.extend([offset.to_le_bytes(), [0; 8]].concat())
            }
        }
        let offset = self.object(3, 0, &rest);
        self.entries.push(offset);
    }

    /// Links the entries that are not linked, by an array with room for some more.
    fn array(&mut self, previous: Option<u64>) -> u64 {
        let mut rest = vec![0; 8];
        for offset in std::mem::take(&mut self.entries).into_iter().chain([0, 0]) {
            if self.is_compact {
                rest.extend((offset as u32).to_le_bytes())
            } else {
                rest.extend(offset.to_le_bytes())
            }
        }
        let offset = self.object(6, 0, &rest);
        let place = previous.map_or(176, |array| array as usize + 16);
        self.bytes[place..place + 8].copy_from_slice(&offset.to_le_bytes());
        offset
    }

    fn count(&mut self, entries: u64) {
        self.bytes[152..160].copy_from_slice(&entries.to_le_bytes());
    }
}

/// What is in a file: entries as text, faults and damage.
fn read(bytes: &[u8]) -> Result<Vec<String>, FileError> {
    let mut file = JournalFile::open(bytes, bytes.len() as u64)?;
    let mut found = Vec::new();
    while let Some(item) = file.read_next().unwrap() {
        found.push(match item {
            Item::Entry(Ok(fields)) => {
                let fields = fields.iter().skip(4);
                let each = fields.map(|(name, value)| format!("{name}={}", value.escape_ascii()));
                each.collect::<Vec<_>>().join(" ")
            }
            Item::Entry(Err(fault)) => format!("{fault:?}"),
            Item::Damage(damage) => format!("damage: {}", damage.what),
        });
        assert!(found.len() <= bytes.len(), "it does not end");
    }
    Ok(found)
}

/// Two entries in each of two arrays.
fn sample(flags: u32) -> Maker {
    let mut file = Maker::new(flags);
    let shared = file.data(0, b"_PID=7");
    let boot = file.data(0, b"_BOOT_ID=x");
    let mut array = None;
    for half in 0..2 {
        for number in 0..2 {
            let text = format!("MESSAGE=number {}", 2 * half + number);
            let message = file.data(0, text.as_bytes());
            file.entry(2 * half + number, &[message, shared, boot]);
        }
        // An array ends where it is full: without the room behind.
        array = Some(match array {
            None => {
                let first = file.array(None);
                file.bytes
                    .truncate(file.bytes.len() - if flags & 16 != 0 { 8 } else { 16 });
                let bytes = file.bytes.len() as u64 - first;
                file.bytes[first as usize + 8..first as usize + 16]
                    .copy_from_slice(&bytes.to_le_bytes());
                first
            }
            Some(first) => file.array(Some(first)),
        });
    }
    file.count(4);
    file
}

const WANTED: [&str; 4] = [
    "MESSAGE=number 0 _PID=7",
    "MESSAGE=number 1 _PID=7",
    "MESSAGE=number 2 _PID=7",
    "MESSAGE=number 3 _PID=7",
];

#[test]
fn entries_come_in_order_from_both_forms() {
    for flags in [0, 4, 4 | 8 | 16] {
        assert_eq!(read(&sample(flags).bytes).unwrap(), WANTED, "{flags}");
    }
    let file = sample(0).bytes;
    let mut file = JournalFile::open(&file[..], file.len() as u64).unwrap();
    assert!(file.is_closed() && file.entries_said() == 4);
    let Some(Item::Entry(Ok(fields))) = file.read_next().unwrap() else {
        panic!("no entry");
    };
    let address: Vec<_> = fields
        .iter()
        .take(4)
        .map(|(n, v)| (n, v.escape_ascii().to_string()))
        .collect();
    let cursor = "s=000000000000000000000000000000ab;i=0;b=000000000000000000000000000000b0;m=5;t=60a24181e4000;x=7";
    assert_eq!(
        address,
        [
            ("__CURSOR", cursor.to_owned()),
            ("__REALTIME_TIMESTAMP", "1700000000000000".to_owned()),
            ("__MONOTONIC_TIMESTAMP", "5".to_owned()),
            ("_BOOT_ID", "000000000000000000000000000000b0".to_owned()),
        ]
    );
}

const CUT_ZSTD: &str = "damage: an entry's data is not complete zstd";
const CUT_LZ4: &str = "damage: an entry's data is not complete LZ4";
const CUT_XZ: &str = "damage: an entry's data is not complete xz";

#[test]
fn compressed_data_is_unpacked_within_bounds() {
    let text = [b"MESSAGE=", &vec![b'x'; 5000][..]].concat();
    let zstd = |text: &[u8]| zstd::encode_all(text, 3).unwrap();
    let lz4 = |text: &[u8]| {
        let mut packed = (text.len() as u64).to_le_bytes().to_vec();
        packed.extend(lz4_flex::block::compress(text));
        packed
    };
    let xz = |text: &[u8]| packed_xz(text, DICTIONARY_8_MIB);
    let xz_bomb = MEBIBYTE_XZ.repeat((ENTRY_BYTES_MAX >> 20) + 1);
    let bomb = [b"MESSAGE=", &vec![b'x'; ENTRY_BYTES_MAX][..]].concat();
    let mut lying = lz4(&text);
    lying[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    let whole = String::from_utf8(text.clone()).unwrap();
    // What cannot be unpacked is as good with any hash.
    let unpacked = |wanted: &str| {
        if wanted == whole {
            text.clone()
        } else {
            b"A".to_vec()
        }
    };
    let table: [(u8, Vec<u8>, &str); 15] = [
        (object::ZSTD, zstd(&text), &whole),
        (object::LZ4, lz4(&text), &whole),
        (object::XZ, xz(&text), &whole),
        (object::ZSTD, zstd(&bomb), "TooLong"),
        (object::XZ, [xz(b"MESSAGE="), xz_bomb].concat(), "TooLong"),
        (object::LZ4, lz4(&bomb), "TooLong"),
        (object::LZ4, lying, "TooLong"),
        (object::ZSTD, zstd(&text)[..20].to_vec(), CUT_ZSTD),
        (object::LZ4, lz4(&text)[..20].to_vec(), CUT_LZ4),
        (object::LZ4, b"short".to_vec(), CUT_LZ4),
        (object::XZ, xz(&text)[..200].to_vec(), CUT_XZ),
        (object::XZ, packed_xz(&text, DICTIONARY_128_MIB), CUT_XZ),
        (object::XZ, b"short".to_vec(), CUT_XZ),
        (
            8,
            b"A=1".to_vec(),
            "damage: an entry's data is compressed in an unknown way",
        ),
        (0, b"A".to_vec(), "damage: a field has no name"),
    ];
    for (flags, payload, wanted) in table {
        let mut file = Maker::new(2 | 8);
        let data = file.packed(flags, &payload, &unpacked(wanted));
        let good = file.packed(object::ZSTD, &zstd(b"A=good"), b"A=good");
        file.entry(1, &[data]);
        file.entry(2, &[good]);
        file.array(None);
        file.count(2);
        assert_eq!(read(&file.bytes).unwrap(), [wanted, "A=good"]);
    }
}

#[test]
fn files_that_are_none_are_refused() {
    assert!(matches!(read(b""), Err(FileError::NotAJournal)));
    assert!(matches!(
        read(b"text of some length"),
        Err(FileError::NotAJournal)
    ));
    let whole = sample(0).bytes;
    assert!(matches!(read(&whole[..100]), Err(FileError::Header)));
    let mut newer = whole.clone();
    newer[12] = 64;
    assert!(matches!(read(&newer), Err(FileError::Unknown(64))));
    let mut short = whole;
    short[88..96].copy_from_slice(&8u64.to_le_bytes());
    assert!(matches!(read(&short), Err(FileError::Header)));
}

/// What a crash leaves: arrays that end early, entries that none lists, an end that is missing.
#[test]
fn files_that_nobody_closed_are_read_as_far_as_they_go() {
    let whole = sample(0);
    let mut unlinked = sample(0);
    let data = unlinked.data(0, b"MESSAGE=number 4");
    unlinked.entry(4, &[data]);
    unlinked.count(5);
    unlinked.bytes[16] = 1;
    unlinked.bytes.extend([0; 1000]);
    let found = read(&unlinked.bytes).unwrap();
    assert_eq!(
        (&found[..4], &*found[4]),
        (&WANTED.map(str::to_owned)[..], "MESSAGE=number 4")
    );
    // The list of arrays is gone: the objects are looked through.
    let mut lost = whole.bytes.clone();
    lost[176..184].copy_from_slice(&12345u64.to_le_bytes());
    assert_eq!(read(&lost).unwrap(), WANTED);
    for end in HEADER_BYTES..whole.bytes.len() {
        let found = read(&whole.bytes[..end]).unwrap();
        let entries = found.iter().filter(|text| text.starts_with("MESSAGE"));
        assert!(entries.count() < 5, "{end}: {found:?}");
    }
    let found = read(&whole.bytes[..whole.bytes.len() - 50]).unwrap();
    let entries: Vec<_> = found
        .iter()
        .filter(|text| text.starts_with("MESSAGE"))
        .collect();
    assert_eq!(entries, WANTED.iter().collect::<Vec<_>>(), "{found:?}");
}

/// What is wrong with a file beyond what its entries show.
fn verified(bytes: &[u8]) -> Vec<&'static str> {
    let mut file = JournalFile::open(bytes, bytes.len() as u64).unwrap();
    let mut found = Vec::new();
    while let Some(item) = file.read_next().unwrap() {
        match item {
            Item::Damage(damage) => found.push(damage.what),
            Item::Entry(entry) => assert!(entry.is_ok()),
        }
    }
    file.verify(&mut |damage| found.push(damage.what)).unwrap();
    found
}

#[test]
fn a_letter_that_changed_is_reported_once_and_loses_nothing() {
    for flags in [0, 4, 4 | 8 | 16] {
        let mut file = sample(flags);
        // No entry has it.
        file.data(0, b"MESSAGE=unlinked");
        file.finish();
        assert_eq!(verified(&file.bytes), [""; 0], "{flags}");
        let denied = "what is there is not what its hash says";
        for (text, wanted) in [("_PID=7", 4), ("number 2", 4), ("unlinked", 0)] {
            let at = memchr::memmem::find(&file.bytes, text.as_bytes()).unwrap();
            let mut damaged = file.bytes.clone();
            damaged[at + text.len() - 1] ^= 4;
            assert_eq!(verified(&damaged), [denied], "{flags} {text}");
            let read = read(&damaged).unwrap();
            let entries = read.iter().filter(|text| text.starts_with("MESSAGE"));
            assert_eq!(entries.count(), 4);
            assert_eq!(read.contains(&format!("damage: {denied}")), wanted > 0);
        }
    }
}

#[test]
fn tables_and_counts_that_changed_are_reported() {
    let mut file = sample(4);
    file.finish();
    let number = |at: usize| {
        let bytes = file.bytes[at..at + 8].try_into().unwrap();
        u64::from_le_bytes(bytes) as usize
    };
    let (table, tail) = (number(104), number(136) as u64);
    let table_of = [
        (
            table,
            0,
            "a list of objects with one hash does not end where it says",
        ),
        (
            table + 8,
            1,
            "a list of objects with one hash does not end where it says",
        ),
        (
            table,
            number(table + 16) as u64,
            "an object is in the list of another hash",
        ),
        (
            number(table) + 24,
            8,
            "a list of objects with one hash points back",
        ),
        (112, 0, "there is no table of hashes"),
        (
            136,
            tail + 8,
            "the last object is not where the header says",
        ),
        (144, 3, "the header counts other objects than there are"),
    ];
    for (at, number, wanted) in table_of {
        let mut damaged = file.bytes.clone();
        damaged[at..at + 8].copy_from_slice(&number.to_le_bytes());
        assert_eq!(verified(&damaged), [wanted], "{at}");
    }
}

/// Every byte of a file, changed in some ways: it ends, and what is read is bounded.
#[test]
fn damage_is_reported_and_ends() {
    let mut whole = sample(16);
    whole.finish();
    let whole = whole.bytes;
    for at in 8..whole.len() {
        for byte in [0, 1, 0x7f, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] = byte;
            let _ = read(&damaged);
            if let Ok(mut file) = JournalFile::open(&damaged[..], damaged.len() as u64) {
                let mut found = 0;
                file.verify(&mut |_| found += 1).unwrap();
                assert!(found <= damaged.len());
            }
        }
    }
}

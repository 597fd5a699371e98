//! Damaged files under a running server: what is left is answered, what is not is named.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};

use logpond_protocol::intake::Parser;
use logpond_record::{Batch, EntryKind, Id, Incarnation, Timestamp};
use logpond_segment::build;
use logpond_segment::disk::Disk;
use logpond_segment::journal::{self, JournalFile, Writer};
use proptest::prelude::*;
use tempfile::TempDir;

use super::super::Server;
use super::client::{get, request};
use super::settings;
use logpond_host::disk::RealDisk;

/// Parts of the data; each is in a file of its own: two segments, then journal files.
const PARTS: usize = 4;

/// Parts that are in segments.
const PARTS_STORED: usize = 2;

/// Records in each part.
const ROWS: usize = 600;

/// Panics of the product's own threads: nobody else would notice them.
static PANICS: AtomicU64 = AtomicU64::new(0);

fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let name = std::thread::current().name().map(str::to_owned);
            if name.is_some_and(|name| name.starts_with("lp-")) {
                PANICS.fetch_add(1, Ordering::Relaxed);
            }
            before(panic);
        }));
    });
}

fn message(part: usize, row: usize) -> String {
    format!("part {part} record {row} of many")
}

fn line(part: usize, row: usize) -> String {
    let (message, second) = (message(part, row), row % 60);
    match row % 3 {
        0 => message,
        1 => format!(
            r#"{{"msg":"{message}","n":{row},"took":{}.5,"user":"u{}"}}"#,
            row / 7,
            row % 9
        ),
        _ => format!(
            r#"{{"time":"2026-03-02T00:{part:02}:{second:02}Z","msg":"{message}","ok":true}}"#
        ),
    }
}

/// Writes the data; gives for each part the file that it is in.
fn fill(data: &Path) -> Vec<String> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::create(data).unwrap());
    disk.create_directory(journal::DIRECTORY).unwrap();
    disk.create_directory(build::DIRECTORY).unwrap();
    let mut writer = Writer::new(disk.clone(), journal::Settings::default());
    let mut files = Vec::new();
    let mut parser = Parser::new();
    for part in 0..PARTS {
        for first in (0..ROWS).step_by(50) {
            let mut batch = Batch::new(EntryKind::Line, Vec::new());
            (first..first + 50).for_each(|row| batch.push(line(part, row).as_bytes()));
            let now = Timestamp(1_772_409_600_000_000_000 + part as i64 * 1_000_000_000);
            writer.append(&batch, now, || Incarnation(77)).unwrap();
        }
        writer.close().unwrap();
        let closed = writer.visible().snapshot().closed.last().cloned().unwrap();
        if part >= PARTS_STORED {
            files.push(closed.path);
            continue;
        }
        let id = Id(1000 + part as u128);
        let closed = [closed];
        build::from_journal(&*disk, id, &closed, |entry| parser.parse(entry)).unwrap();
        disk.remove(&closed[0].path).unwrap();
        files.push(build::path(id, build::SUFFIX_LIVE));
    }
    files
}

#[derive(Clone, Copy, Debug)]
enum Damage {
    Flip,
    Zero,
    Truncate,
}

fn inflict(file: &Path, damage: Damage, place: f64, length: usize) {
    let mut bytes = fs::read(file).unwrap();
    let from = (place * bytes.len() as f64) as usize;
    let to = (from + length).min(bytes.len());
    match damage {
        Damage::Flip => bytes[from..to].iter_mut().for_each(|byte| *byte ^= 0x55),
        Damage::Zero => bytes[from..to].fill(0),
        Damage::Truncate => bytes.truncate(from),
    }
    fs::write(file, &bytes).unwrap();
}

/// Where frames of a journal file end; nowhere for other files.
fn frame_ends(data: &Path, path: &str) -> Vec<usize> {
    let disk = RealDisk::open(data).unwrap();
    let Ok(journal) = JournalFile::open(&disk, path) else {
        return Vec::new();
    };
    let mut frames = journal.frames();
    let mut ends = Vec::new();
    while let Some(frame) = frames.next().unwrap() {
        ends.push((frame.offset() + frame.bytes()) as usize);
    }
    ends
}

/// Asks for everything in every way; what comes must be true, and what does not be named.
fn ask(server: &Server, damaged: &str, part: usize) -> Result<(), TestCaseError> {
    let http = server.addresses().http;
    let (rows, trailer) = get(http, "/api/v1/query?from=@0").rows();
    let mut found = BTreeSet::new();
    for row in &rows {
        let text = row["_msg"].as_str().unwrap_or_default().to_owned();
        prop_assert!(text.starts_with("part "), "invented: {row}");
        prop_assert!(found.insert(text), "twice: {row}");
    }
    let all: BTreeSet<String> = (0..PARTS)
        .flat_map(|part| (0..ROWS).map(move |row| message(part, row)))
        .collect();
    prop_assert!(found.is_subset(&all), "invented");
    let own = format!("part {part} ");
    let lost: Vec<&String> = all.difference(&found).collect();
    prop_assert!(
        lost.iter().all(|m| m.starts_with(&own)),
        "undamaged rows are lost"
    );
    let (_, stem) = damaged.split_once('/').unwrap();
    let stem = stem.split('.').next().unwrap();
    let mut trailers = vec![trailer];
    for table in ["top?field=ok", "fields?", "query?count=true"] {
        let (rows, trailer) = get(http, &format!("/api/v1/{table}&from=@0")).rows();
        // A table may be right although other columns, which it does not need, are damaged.
        if table.starts_with("top") && trailer["complete"] == true {
            prop_assert_eq!(&rows[0]["count"], PARTS * ROWS / 3);
        }
        trailers.push(trailer);
    }
    let whole = PARTS * ROWS;
    for trailer in trailers.iter().filter(|t| t["rows"] != whole) {
        prop_assert_eq!(
            &trailer["complete"],
            false,
            "{} rows are lost: {}",
            lost.len(),
            trailer
        );
        prop_assert!(
            trailer["missing"].to_string().contains(stem),
            "{trailer} and {damaged}"
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn damage_costs_only_what_was_there_and_is_named(
        part in 0usize..PARTS,
        damage in prop_oneof![Just(Damage::Flip), Just(Damage::Zero), Just(Damage::Truncate)],
        place in 0.0..1.0f64,
        length in prop_oneof![Just(1usize), 1usize..6000],
    ) {
        count_panics();
        let directory = TempDir::new().unwrap();
        let files = fill(directory.path());
        inflict(&directory.path().join(&files[part]), damage, place, length);
        let server = Server::start(&settings(directory.path())).unwrap();
        ask(&server, &files[part], part)?;
        // Journals go into segments, and segments into one where that is possible.
        let http = server.addresses().http;
        request(http, "POST", "/api/v1/compact?wait", &[], b"");
        ask(&server, &files[part], part)?;
        server.stop();
        server.join().unwrap();
        let server = Server::start(&settings(directory.path())).unwrap();
        ask(&server, &files[part], part)?;
        server.stop();
        server.join().unwrap();
        prop_assert_eq!(PANICS.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn a_file_that_was_put_aside_is_missing_until_it_is_removed() {
    let directory = TempDir::new().unwrap();
    let files = fill(directory.path());
    inflict(&directory.path().join(&files[0]), Damage::Truncate, 0.9, 0);
    inflict(&directory.path().join(&files[2]), Damage::Zero, 0.5, 2000);
    for life in 0..2 {
        let server = Server::start(&settings(directory.path())).unwrap();
        let http = server.addresses().http;
        request(http, "POST", "/api/v1/compact?wait", &[], b"");
        let (_, trailer) = get(http, "/api/v1/query?from=@0&q=nothing").rows();
        assert_eq!(trailer["complete"], false, "life {life}");
        assert_eq!(trailer["missing"].as_array().unwrap().len(), 2, "{trailer}");
        let metrics = get(http, "/metrics").body;
        let metrics = String::from_utf8(metrics).unwrap();
        assert!(metrics.contains("logpond_files_put_aside 2\n"), "{metrics}");
        if life == 1 {
            for entry in ["journal", "segments"] {
                for file in fs::read_dir(directory.path().join(entry)).unwrap() {
                    let path = file.unwrap().path();
                    if path.to_string_lossy().ends_with(".quarantined") {
                        fs::remove_file(path).unwrap();
                    }
                }
            }
            let (_, trailer) = get(http, "/api/v1/query?from=@0&q=nothing").rows();
            assert_eq!(trailer["complete"], true, "{trailer}");
        }
        server.stop();
        server.join().unwrap();
    }
}

/// Each cut leaves a file of whole frames.
#[test]
fn a_journal_file_that_was_cut_between_frames_is_named() {
    let directory = TempDir::new().unwrap();
    let files = fill(directory.path());
    let (part, damaged) = (PARTS - 1, &files[PARTS - 1]);
    let file = directory.path().join(damaged);
    let ends = frame_ends(directory.path(), damaged);
    assert_eq!(ends.len(), ROWS / 50);
    for (cut, end) in ends.iter().enumerate().rev().step_by(5) {
        let bytes = fs::read(&file).unwrap();
        fs::write(&file, &bytes[..*end]).unwrap();
        let server = Server::start(&settings(directory.path())).unwrap();
        ask(&server, damaged, part).unwrap();
        let (_, trailer) = get(server.addresses().http, "/api/v1/query?from=@0&count=true").rows();
        assert_eq!(trailer["complete"], false, "{cut}: {trailer}");
        assert_eq!(trailer["rows"], PARTS * ROWS - (ROWS - 50 * (cut + 1)));
        if cut < 5 {
            // In a segment it is as before, and the file is put aside.
            let http = server.addresses().http;
            request(http, "POST", "/api/v1/compact?wait", &[], b"");
            ask(&server, damaged, part).unwrap();
            assert!(!file.exists());
        }
        server.stop();
        server.join().unwrap();
    }
}

/// As after a crash between writing a merge and retiring its inputs.
#[test]
fn rows_of_a_merge_and_its_inputs_count_once() {
    let directory = TempDir::new().unwrap();
    let files = fill(directory.path());
    let disk = RealDisk::open(directory.path()).unwrap();
    let found = build::open_all(&disk).unwrap();
    assert_eq!(found.live.len(), PARTS_STORED);
    let profile = logpond_segment::file::Profile::Hot;
    build::merge(&disk, Id(9999), &found.live, profile, &|| false).unwrap();
    let server = Server::start(&settings(directory.path())).unwrap();
    let (_, trailer) = get(server.addresses().http, "/api/v1/query?count=true&from=@0").rows();
    assert_eq!(trailer["rows"], PARTS * ROWS);
    assert_eq!(trailer["complete"], true);
    assert!(!directory.path().join(&files[0]).exists());
    server.stop();
    server.join().unwrap();
}

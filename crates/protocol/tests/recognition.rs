//! A count of what is not recognised in real logs. Its numbers may only fall.

mod real_logs;
#[allow(dead_code, reason = "other tests use the rest")]
mod records;

use std::collections::BTreeMap;
use std::path::Path;

use logpond_protocol::intake::Parser;
use logpond_record::{Entry, EntryKind, Envelope, Id, Labels, TimeSource, Timestamp};

use real_logs::{files_below, shared};

/// 2026-11-27T00:00:00Z: behind all lines that have a year.
const RECEIVED: Timestamp = Timestamp(1_795_737_600_000_000_000);

/// Folders of the fixtures that hold logs; others hold data, texts and tests of parsers. Of each, the most
/// lines without a time of their own, without a level, and without a field.
const COUNTS_MAX: [(&str, [usize; 3]); 9] = [
    ("cloudtrail", [0, 1128, 0]),
    ("crowdsec-hub", [34, 1239, 726]),
    ("elastic-examples", [17129, 34910, 17803]),
    ("json-benches", [0, 0, 0]),
    ("lnav", [4428, 6844, 4908]),
    ("mtools", [0, 2493, 2493]),
    ("nezha", [1, 12429, 12059]),
    ("pgbadger", [0, 25, 0]),
    ("rootly", [0, 23295, 0]),
];

/// Counts of the lines of a folder that lack a time, a level and a field.
fn count(folder: &Path) -> [usize; 3] {
    let mut files = Vec::new();
    files_below(folder, &mut files);
    files.retain(|path| !path.components().any(|part| part.as_os_str() == "_LICENCE"));
    assert!(!files.is_empty(), "no files in {}", folder.display());
    let labels = Labels::new();
    let mut lacking = [0; 3];
    for path in files {
        let data = std::fs::read(&path).unwrap();
        let mut parser = Parser::new();
        let lines = data.split(|byte| *byte == b'\n');
        for raw in lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line)) {
            if raw.trim_ascii().is_empty() {
                continue;
            }
            let record = parser.parse(&Entry {
                id: Id::MIN,
                received: RECEIVED,
                kind: EntryKind::Line,
                labels: &labels,
                envelope: Envelope::default(),
                raw,
            });
            lacking[0] += usize::from(record.time_source == TimeSource::Received);
            lacking[1] += usize::from(records::severity(&record).is_none());
            lacking[2] += usize::from(record.fields().next().is_none());
        }
    }
    lacking
}

/// A count that falls is written into the table.
#[test]
fn what_is_not_recognised_only_falls() {
    let Some(shared) = shared("what_is_not_recognised_only_falls") else {
        return;
    };
    let found: BTreeMap<&str, [usize; 3]> = COUNTS_MAX
        .iter()
        .map(|(folder, _)| (*folder, count(&shared.join("fixtures").join(folder))))
        .collect();
    for (folder, counts) in &found {
        println!("    (\"{folder}\", {counts:?}),");
    }
    let names = ["times", "levels", "fields"];
    for (folder, most) in COUNTS_MAX {
        for ((name, most), lacking) in names.iter().zip(most).zip(found[folder]) {
            assert!(
                lacking <= most,
                "{folder}: {lacking} lines without {name}, it was {most}"
            );
        }
    }
}

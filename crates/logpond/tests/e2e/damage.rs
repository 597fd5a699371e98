//! Damaged files: the server starts, answers what is left, says what is not, and never panics.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::pond::{Scratch, TestServer, files_below};
use crate::surroundings::{program, say};

/// Damaged copies that are tried.
const CASES: u64 = 48;

/// Records in each part of the data.
const PART: usize = 3_000;

/// What is done to a range of a file.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Flip,
    Zero,
    Truncate,
    /// Journal files are cut between two frames.
    Between,
}

#[test]
fn damaged_files_cost_only_what_was_in_them() {
    let scratch = Scratch::new("damage").unwrap();
    let whole = scratch.path().join("whole");
    let originals = fill(&whole);
    let mut random = 0x5eed_u64;
    let (mut lost, mut reported) = (0, 0);
    for case in 0..CASES {
        let data = scratch.path().join(format!("case{case}"));
        copy_directory(&whole, &data);
        let mut files = files_below(&data, ".parquet");
        assert!(!files.is_empty(), "no segment");
        let segment_count = files.len();
        files.extend(files_below(&data, ".journal"));
        assert!(files.len() > segment_count, "no journal");
        let file = &files[(case as usize) % files.len()];
        let damages = [
            Damage::Flip,
            Damage::Zero,
            Damage::Truncate,
            Damage::Between,
        ];
        let damage = damages[(case / 3) as usize % damages.len()];
        let context = inflict(file, damage, &mut random);
        let untouched = rows_of_others(&originals, file, &whole);
        let outcome = look(&data, &originals, &untouched, &context);
        lost += outcome.lost;
        reported += u64::from(outcome.is_reported);
        fs::remove_dir_all(&data).unwrap();
    }
    say(&format!(
        "damage: {CASES} damaged copies, {lost} records lost with them, {reported} reported"
    ));
}

/// A data directory with segments and a closed journal file, and all messages in it. The number
/// in a message says which part it belongs to.
fn fill(data: &Path) -> BTreeSet<String> {
    let server = TestServer::start(program(), data, &[]).unwrap();
    let mut originals = BTreeSet::new();
    for part in 0..3 {
        let body: String = (0..PART)
            .map(|n| {
                format!(
                    "{{\"_msg\":\"part {part} record {n} of many\",\"n\":{n},\"user\":\"u{}\"}}\n",
                    n % 97
                )
            })
            .collect();
        let pushed = server
            .push("application/x-ndjson", body.as_bytes())
            .unwrap();
        assert_eq!(pushed.accepted(), PART as u64, "{}", pushed.body);
        originals.extend((0..PART).map(|n| format!("part {part} record {n} of many")));
        if part == 0 {
            let output = Command::new(program())
                .args(["compact", "--wait", "--addr", &server.url()])
                .stdin(Stdio::null())
                .output()
                .unwrap();
            assert!(output.status.success(), "{output:?}");
        }
        if part == 1 {
            // Another incarnation, so that there are two journal files.
            assert_eq!(server.terminate().unwrap().code(), Some(0));
            return fill_last(data, originals);
        }
    }
    originals
}

/// The last part, in many frames of a journal file that nobody has consumed yet.
fn fill_last(data: &Path, mut originals: BTreeSet<String>) -> BTreeSet<String> {
    const BATCH: usize = 100;
    let server = TestServer::start(program(), data, &[]).unwrap();
    crate::pond::wait_until("the second part is in a segment", || {
        files_below(data, ".journal").is_empty()
    })
    .unwrap();
    for first in (0..PART).step_by(BATCH) {
        let messages = (first..first + BATCH).map(|n| format!("part 2 record {n} of many"));
        let messages: Vec<String> = messages.collect();
        let pushed = server.push("text/plain", messages.join("\n").as_bytes());
        assert_eq!(pushed.unwrap().accepted(), BATCH as u64);
        originals.extend(messages);
    }
    assert_eq!(server.terminate().unwrap().code(), Some(0));
    originals
}

/// Damages a range of a file and describes it.
fn inflict(file: &Path, damage: Damage, random: &mut u64) -> String {
    let mut draw = |bound: usize| {
        *random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (*random >> 33) as usize % bound.max(1)
    };
    let mut bytes = fs::read(file).unwrap();
    let start = draw(bytes.len());
    let end = (start + 1 + draw(4096)).min(bytes.len());
    match damage {
        Damage::Flip => bytes[start..end].iter_mut().for_each(|b| *b ^= 0x55),
        Damage::Zero => bytes[start..end].fill(0),
        Damage::Truncate => bytes.truncate(start),
        Damage::Between => {
            const FRAME_MARKER: &[u8] = b"\xF5LP\xFA";
            let next = bytes[start..].windows(4).position(|w| w == FRAME_MARKER);
            bytes.truncate(next.map_or(start, |at| start + at));
        }
    }
    fs::write(file, &bytes).unwrap();
    format!("{damage:?} {start}..{end} of {}", file.display())
}

/// The messages that cannot be in this file: other parts live in other files. Which parts are in
/// which file is not known from outside, so a part counts as untouched when its words are absent.
fn rows_of_others(originals: &BTreeSet<String>, file: &Path, whole: &Path) -> BTreeSet<String> {
    let name = file.file_name().unwrap();
    let pristine: PathBuf = files_below(whole, "")
        .into_iter()
        .find(|path| path.file_name() == Some(name))
        .unwrap();
    let bytes = fs::read(pristine).unwrap();
    let is_journal = name.to_string_lossy().ends_with(".journal");
    let holds = |part: usize| {
        let word = format!("part {part} record 5");
        bytes.windows(word.len()).any(|w| w == word.as_bytes())
    };
    // Journals hold their text as it came. Segments are compressed; only part 0 is in one unless
    // the store has consumed more, so everything in a journal elsewhere counts as untouched.
    let in_file = |part: usize| {
        if is_journal {
            holds(part)
        } else {
            !journals_hold(whole, part)
        }
    };
    let parts: Vec<usize> = (0..3).filter(|part| !in_file(*part)).collect();
    originals
        .iter()
        .filter(|m| parts.iter().any(|p| m.starts_with(&format!("part {p} "))))
        .cloned()
        .collect()
}

fn journals_hold(whole: &Path, part: usize) -> bool {
    let word = format!("part {part} record 5");
    let mut journals = files_below(whole, ".journal");
    journals.extend(files_below(whole, ".open"));
    journals.iter().any(|path| {
        let bytes = fs::read(path).unwrap();
        bytes.windows(word.len()).any(|w| w == word.as_bytes())
    })
}

struct DamageReport {
    lost: usize,
    is_reported: bool,
}

/// Verifies, starts and queries a damaged directory.
fn look(
    data: &Path,
    originals: &BTreeSet<String>,
    untouched: &BTreeSet<String>,
    context: &str,
) -> DamageReport {
    let verify = Command::new(program())
        .args(["verify", "--data"])
        .arg(data)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&verify.stdout).into_owned()
        + &String::from_utf8_lossy(&verify.stderr);
    let code = verify.status.code();
    assert!(
        matches!(code, Some(0 | 1)),
        "{context}: verify gave {code:?}: {said}"
    );
    let server =
        TestServer::start(program(), data, &[]).unwrap_or_else(|e| panic!("{context}: {e}"));
    let (rows, trailer) = server
        .query("")
        .unwrap_or_else(|e| panic!("{context}: {e}"));
    let mut found = BTreeSet::new();
    for row in &rows {
        let message = row["_msg"].as_str().unwrap_or_default().to_string();
        assert!(originals.contains(&message), "{context}: invented {row}");
        assert!(found.insert(message), "{context}: twice {row}");
    }
    let missing = untouched.difference(&found).count();
    assert_eq!(missing, 0, "{context}: records of undamaged files are lost");
    let lost = originals.len() - found.len();
    // A torn tail of an open journal is no damage; anything else that costs records must show.
    let is_reported = code == Some(1) || trailer["complete"] == false;
    assert!(
        lost == 0 || is_reported,
        "{context}: {lost} records lost in silence: {said}"
    );
    assert!(
        !server.stderr().contains("panicked"),
        "{context}: {}",
        server.stderr()
    );
    assert_eq!(server.terminate().unwrap().code(), Some(0), "{context}");
    DamageReport { lost, is_reported }
}

/// Copies the files of a directory, and the directories that they are in.
pub(crate) fn copy_directory(from: &Path, to: &Path) {
    for file in files_below(from, "") {
        let target = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(&file, &target).unwrap();
    }
}

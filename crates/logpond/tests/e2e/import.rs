//! `logpond import` and `logpond forward --journal` with files and programs of systemd: what journalctl
//! shows of a journal is here, field by field and once.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::journal_upload::{
    assert_same, entries_of, export, export_with, make_journal, stored, tool,
};
use crate::pond::{Scratch, TestServer, signal, wait_until};
use crate::surroundings::{has_program, program, say, shared, skip};

/// How journald writes files: what compresses data, and whether files are compact. Versions of systemd
/// before 253 know the names of LZ4 and xz not, and take zstd.
const FORMS: [[(&str, &str); 2]; 5] = [
    [
        ("SYSTEMD_JOURNAL_COMPRESS", "zstd"),
        ("SYSTEMD_JOURNAL_COMPACT", "1"),
    ],
    [
        ("SYSTEMD_JOURNAL_COMPRESS", "zstd"),
        ("SYSTEMD_JOURNAL_COMPACT", "0"),
    ],
    [
        ("SYSTEMD_JOURNAL_COMPRESS", "LZ4"),
        ("SYSTEMD_JOURNAL_COMPACT", "1"),
    ],
    [
        ("SYSTEMD_JOURNAL_COMPRESS", "XZ"),
        ("SYSTEMD_JOURNAL_COMPACT", "1"),
    ],
    UNCOMPRESSED,
];

const UNCOMPRESSED: [(&str, &str); 2] = [
    ("SYSTEMD_JOURNAL_COMPRESS", "0"),
    ("SYSTEMD_JOURNAL_COMPACT", "0"),
];

/// Compresses what is long in a journal file with xz, as journald did before it had LZ4. Objects stay where
/// they are; what they no longer need is left behind them.
const COMPRESS_WITH_XZ: &str = r#"
import lzma, struct, sys

file = bytearray(open(sys.argv[1], "rb").read())
number = lambda at: struct.unpack_from("<Q", file, at)[0]
at, last, packed = number(88), number(136), 0
while at <= last:
    kind, flags, length = file[at], file[at + 1], number(at + 8)
    text = bytes(file[at + 64:at + length])
    if kind == 1 and flags == 0 and len(text) > 400:
        data = lzma.compress(text, check=lzma.CHECK_NONE)
        file[at + 1] = 1
        file[at + 64:at + 64 + len(data)] = data
        struct.pack_into("<Q", file, at + 8, 64 + len(data))
        packed += 1
    at = (at + length + 7) & ~7
file[12] |= 1
open(sys.argv[1], "wb").write(file)
print(packed)
"#;

fn import(server: &TestServer, inputs: &[&Path]) -> Output {
    let mut command = Command::new(program());
    command
        .args(["import", "--addr", &server.url()])
        .args(inputs);
    command.stdin(Stdio::null()).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn start(scratch: &Scratch) -> TestServer {
    TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap()
}

/// A journal file from an export.
fn journal(
    remote: &Path,
    scratch: &Scratch,
    export: &Path,
    number: usize,
    form: &[(&str, &str)],
) -> PathBuf {
    let path = scratch.path().join(format!("{number}.journal"));
    make_journal(remote, export, &path, form);
    path
}

#[test]
fn journal_files_of_every_form_are_imported_field_by_field() {
    let Some(remote) = tool("systemd-journal-remote") else {
        return;
    };
    let scratch = Scratch::new("import-forms").unwrap();
    let made = scratch.path().join("export");
    fs::write(&made, export(700)).unwrap();
    let mut exports = vec![made];
    if let Some(shared) = shared("journals of real machines") {
        let names = ["OpenSUSE15", "Ubuntu16", "Ubuntu22user"];
        exports.extend(names.map(|name| shared.join(format!("fixtures/journald/{name}.export"))));
    }
    let server = start(&scratch);
    let (mut wanted, mut number, mut flags) = (Vec::new(), 0, BTreeSet::new());
    for form in FORMS {
        for export in &exports {
            number += 1;
            let path = journal(&remote, &scratch, export, number, &form);
            flags.insert(fs::read(&path).unwrap()[12]);
            let entries = entries_of(&path);
            assert!(!entries.is_empty(), "{}", export.display());
            let output = import(&server, &[&path]);
            let said = said(&output);
            assert!(
                output.status.success(),
                "{form:?} {}: {said}",
                export.display()
            );
            wanted.extend(entries);
        }
    }
    // Whether there are xz (1) and LZ4 (2) among them is up to the version of systemd; zstd is 8,
    // compact 16.
    say(&format!("imported journal files with the flags {flags:?}"));
    assert!(flags.iter().any(|f| f & 16 != 0) && flags.iter().any(|f| f & 16 == 0));
    assert_same(&stored(&server), &wanted);
    // A directory, all of whose files are there already.
    let output = import(&server, &[scratch.path()]);
    assert!(output.status.success() && said(&output).contains("more were there already"));
    assert_same(&stored(&server), &wanted);
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

#[test]
fn journal_files_of_old_versions_are_imported_field_by_field() {
    let Some(remote) = tool("systemd-journal-remote") else {
        return;
    };
    if !has_program("python3") {
        return skip("journals with xz", "there is no python3 to make one");
    }
    let scratch = Scratch::new("import-xz").unwrap();
    let source = scratch.path().join("export");
    // Shorter than what systemd compresses itself.
    fs::write(
        &source,
        export_with(700, "long enough to be compressed ".repeat(15).trim()),
    )
    .unwrap();
    let file = journal(&remote, &scratch, &source, 0, &UNCOMPRESSED);
    let wanted = entries_of(&file);
    let mut command = Command::new("python3");
    let output = command.args(["-c", COMPRESS_WITH_XZ]).arg(&file).output();
    let output = output.unwrap();
    assert_eq!(output.stdout, b"100\n", "{output:?}");
    assert_eq!(entries_of(&file), wanted, "systemd reads it, too");
    let server = start(&scratch);
    let output = import(&server, &[&file]);
    assert!(output.status.success(), "{}", said(&output));
    assert_same(&stored(&server), &wanted);
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

#[test]
fn exports_and_json_are_imported_like_the_file_that_they_are_of() {
    let Some(remote) = tool("systemd-journal-remote") else {
        return;
    };
    let scratch = Scratch::new("import-texts").unwrap();
    let source = scratch.path().join("export");
    fs::write(&source, export(300)).unwrap();
    let file = journal(&remote, &scratch, &source, 0, &FORMS[0]);
    let wanted = entries_of(&file);
    for form in ["export", "json", "json-seq", "json-sse"] {
        let printed = Command::new("journalctl")
            .arg("--file")
            .arg(&file)
            .args(["--all", "-o", form])
            .output()
            .unwrap();
        let path = scratch.path().join(form);
        fs::write(&path, printed.stdout).unwrap();
        let own = Scratch::new("import-text").unwrap();
        let server = start(&own);
        let output = import(&server, &[&path]);
        assert!(output.status.success(), "{form}: {}", said(&output));
        assert_same(&stored(&server), &wanted);
        // The file has the same entries.
        let output = import(&server, &[&file]);
        assert!(
            said(&output).contains("0 entries"),
            "{form}: {}",
            said(&output)
        );
        assert_same(&stored(&server), &wanted);
        assert_eq!(server.terminate().unwrap().code(), Some(0));
    }
}

#[test]
fn what_is_damaged_or_no_journal_is_said() {
    let Some(remote) = tool("systemd-journal-remote") else {
        return;
    };
    let scratch = Scratch::new("import-damage").unwrap();
    let source = scratch.path().join("export");
    fs::write(&source, export(300)).unwrap();
    let file = journal(&remote, &scratch, &source, 0, &FORMS[0]);
    let server = start(&scratch);
    let path = scratch.path().join("input");
    let table: [(Vec<u8>, &str); 4] = [
        (
            b"some lines\nof text\nthat are no journal\n".to_vec(),
            "no journal in export format",
        ),
        (
            b"MESSAGE=a\n\nMESSAGE=b\n".to_vec(),
            "the input ends within it",
        ),
        (
            b"{\"MESSAGE\":\"c\",\"LARGE\":null}\n{\"MESSAGE\":true}\n".to_vec(),
            "LARGE was left out",
        ),
        (
            b"LPKSHHRH but nothing else".to_vec(),
            "header of the journal file",
        ),
    ];
    for (bytes, reason) in table {
        fs::write(&path, bytes).unwrap();
        let output = import(&server, &[&path]);
        assert_eq!(output.status.code(), Some(2), "{reason}");
        assert!(said(&output).contains(reason), "{}", said(&output));
    }
    assert_eq!(
        stored(&server).len(),
        2,
        "the entries before and beside what is bad"
    );
    // The end of a file is missing, as after a crash: what is there of it is imported.
    let bytes = fs::read(&file).unwrap();
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    // The header says where the first list of entries is, and the last object.
    let (first, last) = (number(176), number(136));
    fs::write(&path, &bytes[..first + (last - first) * 3 / 4]).unwrap();
    let output = import(&server, &[&path]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("entries could not be read"),
        "{}",
        said(&output)
    );
    let found = stored(&server).len() - 2;
    assert!((100..300).contains(&found), "{found}: {}", said(&output));
    let output = import(&server, &[&file]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(stored(&server).len(), 302);
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

/// A journal that grows: journalctl follows it, and the forwarder remembers how far it is.
#[test]
fn a_journal_is_followed_through_restarts_of_both() {
    let Some(remote) = tool("systemd-journal-remote") else {
        return;
    };
    let scratch = Scratch::new("forward-journal").unwrap();
    let directory = scratch.path().join("journals");
    fs::create_dir(&directory).unwrap();
    let all = export(900);
    let ends: Vec<usize> = [300, 600, 900]
        .map(|entries| export(entries).len())
        .to_vec();
    let grow = |from: usize, to: usize| {
        let part = scratch.path().join("part");
        fs::write(&part, &all[from..to]).unwrap();
        make_journal(&remote, &part, &directory.join("a.journal"), &[]);
    };
    grow(0, ends[0]);
    let data = scratch.path().join("data");
    let mut server = TestServer::start(program(), &data, &[]).unwrap();
    let forward = |server: &TestServer| {
        Command::new(program())
            .args(["forward", "--journal", "--quiet", "--addr", &server.url()])
            .arg(format!(
                "--journal-args=--directory={}",
                directory.display()
            ))
            .arg("--state")
            .arg(scratch.path().join("cursor.json"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let wait = |server: &TestServer, entries: usize| {
        wait_until("the entries are here", || stored(server).len() >= entries).unwrap();
    };
    let mut forwarder = forward(&server);
    wait(&server, 300);
    // New entries arrive while it runs.
    grow(ends[0], ends[1]);
    wait(&server, 600);
    forwarder.kill().unwrap();
    forwarder.wait().unwrap();
    grow(ends[1], ends[2]);
    server.kill();
    server = TestServer::start(program(), &data, &[]).unwrap();
    let mut forwarder = forward(&server);
    wait(&server, 900);
    signal("TERM", forwarder.id()).unwrap();
    assert!(forwarder.wait().unwrap().success());
    assert_same(&stored(&server), &entries_of(&directory.join("a.journal")));
    let sent = server.metric("logpond_ingest_records_total").unwrap();
    let known = server.metric("logpond_ingest_resends_known_total").unwrap();
    assert!(
        sent + known < 900.0,
        "it goes on where it was: {sent} sent, {known} known"
    );
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

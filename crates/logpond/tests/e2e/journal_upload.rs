//! systemd's own programs send journals here: what they have acknowledged is here, field by field,
//! and what they send again is here once.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::pond::{Scratch, TestServer, wait_until};
use crate::proxy::Proxy;
use crate::surroundings::{has_program, program, say, skip};

/// Where the programs are.
const DIRECTORY: &str = "/usr/lib/systemd";

/// Entries that are uploaded through kills and cuts: enough for seconds.
const ENTRIES: usize = 30_000;

/// How often the server is killed meanwhile.
const KILLS: usize = 3;

/// Packs standard input as senders since systemd 258 do: what they read at a time becomes a stream of xz
/// without a check, or a block of LZ4 behind its length.
const PACK: &str = r#"
import ctypes, lzma, struct, sys

def lz4(part, _):
    library = ctypes.CDLL("liblz4.so.1")
    out = ctypes.create_string_buffer(library.LZ4_compressBound(len(part)))
    made = library.LZ4_compress_default(part, out, len(part), len(out))
    return struct.pack("<Q", len(part)) + out.raw[:made]

def xz(part, level):
    return lzma.compress(part, check=lzma.CHECK_NONE, preset=level)

form, level, text = sys.argv[1], int(sys.argv[2]), open(sys.argv[3], "rb").read()
pack = {"lz4": lz4, "xz": xz}[form]
for at in range(0, len(text), 65524):
    sys.stdout.buffer.write(pack(text[at:at + 65524], level))
"#;

/// Names and values of an entry, sorted.
pub(crate) type Entry = Vec<(String, Vec<u8>)>;

/// The path of a program of systemd that ships journals; none where it is not installed.
pub(crate) fn tool(name: &str) -> Option<PathBuf> {
    let path = Path::new(DIRECTORY).join(name);
    let works = |path: &Path| {
        let mut command = Command::new(path);
        command
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success())
    };
    if works(&path) && works(Path::new("journalctl")) {
        return Some(path);
    }
    skip(
        name,
        "systemd-journal-remote is not installed (./test does it)",
    );
    None
}

/// Appends an entry in export format.
pub(crate) fn write_entry(fields: &[(&str, &[u8])], out: &mut Vec<u8>) {
    for (name, value) in fields {
        out.extend_from_slice(name.as_bytes());
        // What the journal itself says of an entry is only read in this form.
        if value.iter().all(|byte| (b' '..=b'~').contains(byte)) {
            out.push(b'=');
        } else {
            out.push(b'\n');
            out.extend_from_slice(&(value.len() as u64).to_le_bytes());
        }
        out.extend_from_slice(value);
        out.push(b'\n');
    }
    out.push(b'\n');
}

/// The entries of an export, without what is of the journal file that they were in.
pub(crate) fn read_export(bytes: &[u8]) -> Vec<Entry> {
    let (mut entries, mut entry, mut rest) = (Vec::new(), Entry::new(), bytes);
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (line, after) = (&rest[..end], &rest[end + 1..]);
        rest = after;
        if line.is_empty() {
            entry.sort();
            entries.push(std::mem::take(&mut entry));
            continue;
        }
        let (name, value) = match line.iter().position(|byte| *byte == b'=') {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => {
                let (length, after) = rest.split_first_chunk().unwrap();
                let (value, after) = after.split_at(u64::from_le_bytes(*length) as usize);
                rest = &after[1..];
                (line, value)
            }
        };
        entry.push((String::from_utf8(name.to_vec()).unwrap(), value.to_vec()));
    }
    assert!(rest.is_empty() && entry.is_empty());
    entries
}

/// A journal file with the entries of an export, made by systemd.
pub(crate) fn make_journal(
    remote: &Path,
    export: &Path,
    journal: &Path,
    environment: &[(&str, &str)],
) {
    let mut command = Command::new(remote);
    command
        .arg("-o")
        .arg(journal)
        .arg(export)
        .envs(environment.iter().copied());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// What journalctl says is in a journal file.
pub(crate) fn entries_of(journal: &Path) -> Vec<Entry> {
    let mut command = Command::new("journalctl");
    let output = command
        .arg("--file")
        .arg(journal)
        .args(["-o", "export"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    read_export(&output.stdout)
}

/// The entry that a record was made of.
fn entry_of(row: &serde_json::Value) -> Entry {
    use base64::Engine as _;
    let mut entry = Entry::new();
    for (name, value) in row.as_object().unwrap() {
        if name.bytes().any(|byte| byte.is_ascii_lowercase()) {
            continue;
        }
        let values = match value {
            serde_json::Value::Array(list) if !list.iter().all(serde_json::Value::is_u64) => {
                list.iter().map(bytes_of).collect()
            }
            one => vec![bytes_of(one)],
        };
        entry.extend(values.into_iter().map(|value| (name.clone(), value)));
    }
    let line = match (row.get("_line"), row.get("_line_b64")) {
        (Some(line), _) => line.as_str().unwrap().as_bytes().to_vec(),
        (None, line) => {
            let line = line.unwrap().as_str().unwrap();
            base64::engine::general_purpose::STANDARD
                .decode(line)
                .unwrap()
        }
    };
    if !line.is_empty() && !entry.iter().any(|(name, _)| name == "MESSAGE") {
        entry.push(("MESSAGE".to_owned(), line));
    }
    entry.sort();
    entry
}

fn bytes_of(value: &serde_json::Value) -> Vec<u8> {
    match value {
        serde_json::Value::String(text) => text.clone().into_bytes(),
        serde_json::Value::Array(bytes) => bytes
            .iter()
            .map(|byte| byte.as_u64().unwrap() as u8)
            .collect(),
        number => number.to_string().into_bytes(),
    }
}

/// All entries of a server, in the order of their cursors or, without them, of themselves.
pub(crate) fn stored(server: &TestServer) -> Vec<Entry> {
    let target = "/api/v1/query?from=1970-01-01&limit=0&fields=raw";
    let text = server.get(target).unwrap();
    let mut entries = Vec::new();
    for line in text.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        match row.get("_trailer") {
            Some(trailer) => assert_eq!(trailer["complete"], true, "{trailer}"),
            None => entries.push(entry_of(&row)),
        }
    }
    entries.sort();
    entries
}

/// Entries as they differ in practice: text, several lines, bytes, names that repeat, no message,
/// messages with a structure, and what pretends to be of the journal.
pub(crate) fn export(entries: usize) -> Vec<u8> {
    export_with(entries, &"long enough to be compressed ".repeat(40))
}

/// The same with another text in the longest messages.
pub(crate) fn export_with(entries: usize, long: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for number in 0..entries {
        let realtime = (1_700_000_000_000_000 + 250_000 * number as u64).to_string();
        let monotonic = (1_000_000 + 250_000 * number).to_string();
        let message = match number % 7 {
            0 => format!("plain text number {number}"),
            1 => format!("{{\"level\":\"info\",\"n\":{number},\"UNIT\":\"mine\"}}"),
            2 => format!("several\nlines, number {number}\n"),
            3 => format!("_PID=1 status=ok number={number}"),
            4 => format!("level=info status=ok number={number}"),
            5 => format!("{number} {long}"),
            _ => String::new(),
        };
        let bytes = [b"\x00\xff\xfe", number.to_string().as_bytes()].concat();
        let mut fields: Vec<(&str, &[u8])> = vec![
            ("__REALTIME_TIMESTAMP", realtime.as_bytes()),
            ("__MONOTONIC_TIMESTAMP", monotonic.as_bytes()),
            ("_BOOT_ID", b"9c7f833031f94777aedd645a8789e450"),
            ("_MACHINE_ID", b"f4e4621cbd954e73a519d0ca3e0d82c3"),
            ("_HOSTNAME", b"ash"),
            ("_PID", b"731"),
            ("PRIORITY", b"6"),
            ("SYSLOG_IDENTIFIER", b"upload"),
            ("_SYSTEMD_UNIT", b"upload.service"),
        ];
        if number % 7 != 6 {
            fields.push(("MESSAGE", message.as_bytes()));
        }
        if number % 5 == 0 {
            fields.push(("BINARY", &bytes));
            fields.push(("TAG", b"first"));
            fields.push(("TAG", b"second"));
            fields.push(("TAG", &bytes));
        }
        write_entry(&fields, &mut out);
    }
    out
}

struct Journal {
    upload: PathBuf,
    file: PathBuf,
    state: PathBuf,
    entries: Vec<Entry>,
}

impl Journal {
    /// A journal of so many entries; none where the programs are not installed.
    fn make(scratch: &Scratch, entries: usize) -> Option<Journal> {
        let (upload, remote) = (
            tool("systemd-journal-upload")?,
            tool("systemd-journal-remote")?,
        );
        let (source, file) = (
            scratch.path().join("export"),
            scratch.path().join("a.journal"),
        );
        fs::write(&source, export(entries)).unwrap();
        make_journal(&remote, &source, &file, &[]);
        let made = entries;
        let mut entries = entries_of(&file);
        assert_eq!(entries.len(), made);
        entries.sort();
        let state = scratch.path().join("state");
        Some(Journal {
            upload,
            file,
            state,
            entries,
        })
    }

    fn start(&self, url: &str) -> Child {
        let mut command = Command::new(&self.upload);
        command
            .args(["--follow=no", "-u", url])
            .arg(format!("--file={}", self.file.display()))
            .arg(format!("--save-state={}", self.state.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().unwrap()
    }

    fn upload(&self, url: &str) -> bool {
        self.start(url).wait().unwrap().success()
    }
}

/// A part of the entries by which a difference is told.
pub(crate) fn assert_same(found: &[Entry], wanted: &[Entry]) {
    let mut counts: BTreeMap<&Entry, i64> = BTreeMap::new();
    for (entries, sign) in [(found, 1), (wanted, -1)] {
        entries
            .iter()
            .for_each(|entry| *counts.entry(entry).or_default() += sign);
    }
    counts.retain(|_, count| *count != 0);
    let some: Vec<_> = counts.iter().take(3).collect();
    assert!(
        counts.is_empty(),
        "{} entries differ, such as {some:?}",
        counts.len()
    );
}

#[test]
fn an_uploaded_journal_is_here_field_by_field_and_once() {
    let scratch = Scratch::new("journal-upload").unwrap();
    let Some(journal) = Journal::make(&scratch, 500) else {
        return;
    };
    let data = scratch.path().join("data");
    let mut server = TestServer::start(program(), &data, &[]).unwrap();
    assert!(journal.upload(&server.url()));
    assert_same(&stored(&server), &journal.entries);
    let state = fs::read_to_string(&journal.state).unwrap();
    assert!(state.contains("LAST_CURSOR=s="), "{state}");
    // Without its state it sends everything again: to the journal, to a segment, after a restart.
    for round in 0..3 {
        fs::remove_file(&journal.state).unwrap();
        assert!(journal.upload(&server.url()));
        assert_same(&stored(&server), &journal.entries);
        match round {
            0 => {
                let mut client = server.client().unwrap();
                client
                    .send("POST", "/api/v1/compact?wait", &[], b"")
                    .unwrap();
            }
            _ => {
                server.kill();
                server = TestServer::start(program(), &data, &[]).unwrap();
            }
        }
    }
    let found = |q: &str| server.query(q).unwrap().0.len();
    assert_eq!(
        found("hostname=ash app=upload severity=6 unit=upload.service procid=731"),
        500
    );
    assert_eq!(
        found("_PID=731"),
        500,
        "no message pretends to be of another process"
    );
    assert_eq!(found("level=info status=ok"), 500 / 7);
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

#[test]
fn killed_servers_and_cut_connections_lose_and_repeat_nothing() {
    let scratch = Scratch::new("journal-kills").unwrap();
    let Some(journal) = Journal::make(&scratch, ENTRIES) else {
        return;
    };
    let data = scratch.path().join("data");
    let mut server = TestServer::start(program(), &data, &[]).unwrap();
    let proxy = Proxy::start(&server.address("http"));
    let (mut known, mut kills, mut uploads) = (0.0, 0, 0);
    loop {
        uploads += 1;
        let mut upload = journal.start(&proxy.url());
        let mut is_done = None;
        let before = server.metric("logpond_ingest_records_total").unwrap();
        wait_until("some entries are here, or the upload is over", || {
            is_done = upload.try_wait().unwrap();
            let records = server.metric("logpond_ingest_records_total").unwrap();
            is_done.is_some() || (kills < KILLS && records > before + 3000.0)
        })
        .unwrap();
        match is_done {
            // The proxy cuts the connection: when the answer comes, or before.
            Some(status) if !status.success() => {}
            Some(_) => break,
            None => {
                kills += 1;
                known += server.metric("logpond_ingest_resends_known_total").unwrap();
                server = proxy.replace(server, "http", || {
                    assert!(!upload.wait().unwrap().success());
                    assert!(!journal.state.exists(), "nothing was acknowledged");
                    TestServer::start(program(), &data, &[]).unwrap()
                });
            }
        }
        // Every other connection of the proxy lets more through; the last one goes without it.
        if uploads == 3 * KILLS {
            assert!(journal.upload(&server.url()));
            break;
        }
    }
    known += server.metric("logpond_ingest_resends_known_total").unwrap();
    say(&format!(
        "journal upload: {ENTRIES} entries, {uploads} uploads, {kills} kills, {known} entries sent \
         again and known"
    ));
    assert!(kills == KILLS && known >= 3000.0);
    assert_same(&stored(&server), &journal.entries);
    let mut client = server.client().unwrap();
    client
        .send("POST", "/api/v1/compact?wait", &[], b"")
        .unwrap();
    assert_same(&stored(&server), &journal.entries);
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

/// Bodies as a sender's libraries make them, in the order in which it looks for an encoding.
#[test]
fn bodies_that_systemd_compresses_are_taken() {
    let what = "uploads that are compressed with xz and LZ4";
    if !has_program("python3") {
        return skip(what, "there is no python3 to compress them");
    }
    let scratch = Scratch::new("journal-packed").unwrap();
    let source = scratch.path().join("export");
    fs::write(&source, export(2000)).unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let mut client = server.client().unwrap();
    let mut send = |encoding: &str, body: &[u8]| {
        let headers = [
            ("content-type", "application/vnd.fdo.journal"),
            ("content-encoding", encoding),
        ];
        let answer = client.send("POST", "/upload", &headers, body).unwrap();
        assert_eq!(answer.status, 202, "{encoding}");
        assert_eq!(answer.text().unwrap(), "OK.\n");
    };
    send("identity", &export(2000));
    let once = stored(&server);
    assert_eq!(once.len(), 2000);
    let mut wanted = once.clone();
    for (form, level) in [("xz", "1"), ("xz", "9"), ("lz4", "0")] {
        let mut command = Command::new("python3");
        let output = command
            .args(["-c", PACK, form, level])
            .arg(&source)
            .output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("liblz4.so.1: cannot open") {
            skip(what, "liblz4 is not installed");
            continue;
        }
        assert!(output.status.success(), "{said}");
        send(form, &output.stdout);
        // Entries of an export that was never in a journal are records each time.
        wanted.extend(once.iter().cloned());
        assert_same(&stored(&server), &wanted);
    }
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

//! `logpond journal` beside `journalctl`: what that prints of a journal file, this prints of the records
//! that were imported from it.
//!
//! Different on purpose, and so not compared or compared after putting both in one order: the order of
//! entries is that of the times that are shown, and fields are in the order of their names; that there
//! is nothing is said on standard error and by the status; colours have no empty ones between them;
//! `--all` prints values beyond a zero byte, where journalctl ends; `-n` with `--since` is of the newest, as
//! in journalctl from 255 on; further lines of messages of unknown programs are below the first one; chosen fields of `cat` come in the order in which they were named.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::journal_upload::{Entry, make_journal, read_export, tool, write_entry};
use crate::nodes::node;
use crate::pond::{Scratch, TestServer, wait_until};
use crate::surroundings::{program, shared};

/// Formats whose lines are compared byte by byte.
const LINES: [&str; 11] = [
    "short",
    "short-full",
    "short-iso",
    "short-iso-precise",
    "short-precise",
    "short-monotonic",
    "short-unix",
    "with-unit",
    "cat",
    "verbose",
    "export",
];

/// Formats of objects.
pub(crate) const OBJECTS: [&str; 4] = ["json", "json-pretty", "json-sse", "json-seq"];

/// Choices that both programs are given.
const CHOICES: [&str; 49] = [
    "",
    "-a",
    "--no-hostname",
    "-r",
    "-n 7",
    "-n 7 -r",
    "-n 0",
    "-u NetworkManager",
    "-u systemd-journald.service -u ssh",
    "-u *journal*",
    "-t kernel",
    "-t sshd -t systemd",
    "-p err",
    "-p warning..notice",
    "-p 3..3",
    "-p debug",
    "-p 7..0",
    "-n 3 -n 7",
    "-r -r -q",
    "-b -b",
    "--no-hostname --no-hostname --since=@1 --since=2023-12-15",
    "-o cat -o export",
    "--facility=kern,daemon",
    "--facility=3",
    "--facility=4",
    "-u said",
    "-t said",
    "_HOSTNAME=said",
    "_PID=1",
    "SYSLOG_PID=1",
    "_PID=01",
    "--namespace=+nope",
    "-k",
    "-b",
    "-b -1",
    "-g network",
    "-g Network",
    "-g network --case-sensitive=yes",
    "-g NETWORK --case-sensitive=no",
    "_TRANSPORT=kernel",
    "_TRANSPORT=syslog _COMM=systemd",
    "_TRANSPORT=syslog _TRANSPORT=stdout _UID=0",
    "_COMM=sshd + _COMM=systemd _PID=1",
    "/usr/lib/systemd/systemd",
    "A=2",
    "PRIORITY=3 SYSLOG_IDENTIFIER=two",
    "MESSAGE=multi",
    "--since=@1702617280 --until=@1702617286",
    "--since=2023-12-15 --until=2023-12-16",
];

pub(crate) fn program_of(name: &str) -> Command {
    let mut command = Command::new(name);
    command
        .env("TZ", "UTC")
        .env("LC_ALL", "C.UTF-8")
        .env_remove("SYSTEMD_COLORS")
        .stdin(Stdio::null());
    command
}

pub(crate) fn journalctl(file: &Path, arguments: &str) -> Output {
    let mut command = program_of("journalctl");
    command
        .arg("--file")
        .arg(file)
        .args(["--no-pager", "--quiet"])
        .args(arguments.split_whitespace())
        .output()
        .unwrap()
}

fn journal(server: &TestServer, arguments: &str) -> Output {
    let mut command = program_of(&program().display().to_string());
    command
        .args(["journal", "--no-pager", "--quiet", "--addr", &server.url()])
        .args(arguments.split_whitespace())
        .output()
        .unwrap()
}

pub(crate) fn journal_of_file(file: &Path, arguments: &str) -> Output {
    let mut command = program_of(&program().display().to_string());
    command
        .args(["journal", "--no-pager", "--quiet", "--file"])
        .arg(file)
        .args(arguments.split_whitespace())
        .output()
        .unwrap()
}

pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn value<'e>(entry: &'e Entry, name: &str) -> Option<&'e [u8]> {
    let found = entry.iter().find(|(n, _)| n == name);
    found.map(|(_, value)| value.as_slice())
}

/// When the journal took an entry, in microseconds.
fn taken_us(entry: &Entry) -> u64 {
    let taken = value(entry, "__REALTIME_TIMESTAMP").unwrap();
    std::str::from_utf8(taken).unwrap().parse().unwrap()
}

/// An entry of a moment and a boot that no machine had.
fn odd_entry(at: usize, fields: &[(&str, &[u8])]) -> Entry {
    let us = 1_700_000_000_000_000 + at as u64 * 1_000_003;
    let mut entry: Entry = vec![
        ("__REALTIME_TIMESTAMP".into(), us.to_string().into()),
        ("__MONOTONIC_TIMESTAMP".into(), (at + 5).to_string().into()),
        ("_BOOT_ID".into(), "0123456789abcdef0123456789abcdef".into()),
    ];
    entry.extend(fields.iter().map(|(n, v)| ((*n).to_owned(), v.to_vec())));
    entry
}

/// Entries with messages that no machine writes every day.
pub(crate) fn odd_messages() -> Vec<Entry> {
    let table: [&[(&str, &[u8])]; 9] = [
        &[
            ("MESSAGE", b"two\nlines\n"),
            ("SYSLOG_IDENTIFIER", b"prog"),
            ("SYSLOG_PID", b"7"),
        ],
        &[
            ("MESSAGE", b"two\n\nlines\n\n"),
            ("SYSLOG_IDENTIFIER", b"p"),
        ],
        &[("MESSAGE", b"\n"), ("_COMM", b"c")],
        &[("MESSAGE", b""), ("_COMM", b"c")],
        &[("CODE_LINE", b"5"), ("_COMM", b"c")],
        &[
            ("MESSAGE", b"tab\there \x1b[1;31mred\x1b[0m x\r\ny\r"),
            ("_COMM", b"c"),
            ("_PID", b"9"),
        ],
        &[("MESSAGE", b"bad \xff"), ("_HOSTNAME", b"h")],
        &[(
            "MESSAGE",
            b"esc \x1b] \x1b[x \x1b]8;;http://a\x07link\x1b]8;;\x07",
        )],
        &[("MESSAGE", b"cr\rmid\r")],
    ];
    let entries = table.iter().enumerate();
    entries.map(|(at, fields)| odd_entry(at, fields)).collect()
}

/// Entries with fields that no machine writes every day.
pub(crate) fn odd_fields() -> Vec<Entry> {
    let long = "y".repeat(4091);
    let longer = "y".repeat(4092);
    let name = "i".repeat(300);
    // What a program says is not what the journal knows of it.
    let pretends = br#"{"procid":1,"unit":"said.service","hostname":"said","severity":3,"app":"said","facility":4}"#;
    let table: [&[(&str, &[u8])]; 11] = [
        &[("MESSAGE", pretends), ("_TRANSPORT", b"journal")],
        &[
            ("MESSAGE", b"of another process"),
            ("SYSLOG_PID", b"1"),
            ("UNIT", b"said.service"),
        ],
        &[
            ("A", b"1"),
            ("A", b"2"),
            ("A", b"x\ny"),
            ("B", b"\xff\x01"),
            ("B", b"t"),
            ("MESSAGE", b"multi"),
            ("PRIORITY", b"3"),
            ("PRIORITY", b"6"),
            ("SYSLOG_IDENTIFIER", b"one"),
            ("SYSLOG_IDENTIFIER", b"two"),
        ],
        &[
            ("MESSAGE", b"long"),
            ("FIVE", long.as_bytes()),
            ("SEVEN", longer.as_bytes()),
        ],
        &[("MESSAGE", b"edge"), ("SYSLOG_IDENTIFIER", name.as_bytes())],
        &[
            ("MESSAGE", b"edge"),
            ("SYSLOG_IDENTIFIER", &name.as_bytes()[1..]),
            ("_HOSTNAME", b"h\x02"),
        ],
        &[
            ("MESSAGE", b"unit"),
            ("_SYSTEMD_UNIT", b"a.service"),
            ("_SYSTEMD_USER_UNIT", b"b.service"),
        ],
        &[
            ("MESSAGE", b"user unit"),
            ("_SYSTEMD_USER_UNIT", b"b.service"),
            ("SYSLOG_PID", b"4"),
        ],
        &[
            ("MESSAGE", br#"{"level":"info","msg":"x","a":1}"#),
            ("PRIORITY", b"5"),
        ],
        &[
            ("MESSAGE", "ümlaut ✓ \u{200b}".as_bytes()),
            ("UNI", "ü\n".as_bytes()),
        ],
        &[("MESSAGE", "del \u{7f} \u{85}".as_bytes())],
    ];
    let entries = table.iter().enumerate();
    let entry = |(at, fields): (usize, &&[(&str, &[u8])])| odd_entry(100 + at, fields);
    entries.map(entry).collect()
}

/// A journal file of odd entries and those of real machines, one machine behind the other.
pub(crate) fn ordered_journal(remote: &Path, scratch: &Scratch) -> PathBuf {
    let mut entries = odd_messages();
    entries.extend(odd_fields());
    if let Some(shared) = shared("journals of real machines") {
        for name in ["OpenSUSE15", "Ubuntu16", "Ubuntu22user"] {
            let path = shared.join(format!("fixtures/journald/{name}.export"));
            entries.extend(read_export(&fs::read(path).unwrap()));
        }
    }
    entries.sort_by_key(taken_us);
    let mut export = Vec::new();
    for entry in &entries {
        let us = taken_us(entry).to_string();
        let head = [("__REALTIME_TIMESTAMP", us.as_bytes())];
        let rest = entry.iter().map(|(name, value)| (&**name, &**value));
        let rest =
            rest.filter(|(name, _)| !name.starts_with("__") || *name == "__MONOTONIC_TIMESTAMP");
        let fields: Vec<(&str, &[u8])> = head.into_iter().chain(rest).collect();
        write_entry(&fields, &mut export);
    }
    let source = scratch.path().join("ordered.export");
    fs::write(&source, export).unwrap();
    let file = scratch.path().join("ordered.journal");
    make_journal(remote, &source, &file, &[]);
    file
}

pub(crate) fn import(server: &TestServer, file: &Path) {
    let mut command = Command::new(program());
    command.args(["import", "--quiet", "--addr", &server.url()]);
    let output = command.arg(file).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

/// An output with what has no order in one.
pub(crate) fn in_order(format: &str, output: &[u8]) -> Vec<u8> {
    let sorted = |mut parts: Vec<Vec<u8>>| {
        parts.sort();
        parts.concat()
    };
    match format {
        "export" => {
            let entries = read_export(output);
            let mut out = Vec::new();
            for entry in &entries {
                let fields: Vec<_> = entry.iter().map(|(n, v)| (&**n, &**v)).collect();
                write_entry(&fields, &mut out);
            }
            out
        }
        "verbose" => {
            let (mut out, mut fields) = (Vec::new(), Vec::<Vec<u8>>::new());
            for line in output.split_inclusive(|byte| *byte == b'\n') {
                let is_field = line.starts_with(b"    ") && line.get(4) != Some(&b' ');
                match (is_field, fields.last_mut()) {
                    (true, _) => fields.push(line.to_vec()),
                    (false, Some(last)) if line.starts_with(b"    ") => last.extend(line),
                    _ => {
                        out.extend(sorted(std::mem::take(&mut fields)));
                        out.extend(line);
                    }
                }
            }
            out.extend(sorted(fields));
            out
        }
        _ => output.to_vec(),
    }
}

pub(crate) fn objects(format: &str, output: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(output).into_owned();
    let text = match format {
        "json-sse" => text.replace("data: {", "{"),
        "json-seq" => text.replace('\u{1e}', ""),
        _ => text,
    };
    serde_json::Deserializer::from_str(&text)
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap()
}

/// Says where two texts part.
pub(crate) fn assert_text(found: &[u8], wanted: &[u8], what: &str) {
    if found == wanted {
        return;
    }
    let (a, b) = (
        String::from_utf8_lossy(found),
        String::from_utf8_lossy(wanted),
    );
    let pairs = a.lines().zip(b.lines()).enumerate();
    let parted = pairs.filter(|(_, (a, b))| a != b).take(3);
    let parted: Vec<_> = parted
        .map(|(at, (a, b))| format!("{at}:\n  {a:?}\n  {b:?}"))
        .collect();
    panic!(
        "{what}: {} and {} lines\n{}",
        a.lines().count(),
        b.lines().count(),
        parted.join("\n")
    );
}

fn compare(wanted: &Output, found: &Output, format: &str, what: &str) {
    let error = said(found);
    assert!(
        matches!(found.status.code(), Some(0 | 1)),
        "{what}: {error}"
    );
    assert_eq!(
        found.stdout.is_empty(),
        found.status.code() == Some(1),
        "{what}"
    );
    if OBJECTS.contains(&format) {
        let (wanted, found) = (
            objects(format, &wanted.stdout),
            objects(format, &found.stdout),
        );
        assert_eq!(found.len(), wanted.len(), "{what}");
        for (found, wanted) in found.iter().zip(&wanted) {
            assert_eq!(found, wanted, "{what}");
        }
        return;
    }
    assert_text(
        &in_order(format, &found.stdout),
        &in_order(format, &wanted.stdout),
        what,
    );
}

pub(crate) fn start(scratch: &Scratch) -> TestServer {
    TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap()
}

#[test]
fn every_format_is_journalctls() {
    let Some(remote) = tool("systemd-journal-remote") else {
        return;
    };
    let scratch = Scratch::new("journal-formats").unwrap();
    let file = ordered_journal(&remote, &scratch);
    let server = start(&scratch);
    import(&server, &file);
    for format in LINES.into_iter().chain(OBJECTS) {
        for more in ["", "-a", "--output-fields=MESSAGE,PRIORITY,A,_PID"] {
            let arguments = format!("-o {format} {more}");
            // It prints them in the order of a hash.
            if format == "cat" && more.contains("fields") {
                continue;
            }
            let wanted = journalctl(&file, &arguments);
            assert!(!wanted.stdout.is_empty());
            compare(&wanted, &journal(&server, &arguments), format, &arguments);
            let what = format!("--file {arguments}");
            compare(&wanted, &journal_of_file(&file, &arguments), format, &what);
        }
    }
    // The same from segments.
    server.compact().unwrap();
    for format in ["short", "verbose", "export", "json"] {
        let arguments = format!("-o {format}");
        let wanted = journalctl(&file, &arguments);
        compare(&wanted, &journal(&server, &arguments), format, &arguments);
    }
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

#[test]
fn every_choice_is_journalctls() {
    let Some(remote) = tool("systemd-journal-remote") else {
        return;
    };
    let scratch = Scratch::new("journal-choices").unwrap();
    let file = ordered_journal(&remote, &scratch);
    let server = start(&scratch);
    import(&server, &file);
    let check = |place: &str| {
        for choice in CHOICES {
            let arguments = format!("-o export {choice}");
            let wanted = journalctl(&file, &arguments);
            let what = format!("{place}: {choice}");
            compare(&wanted, &journal(&server, &arguments), "export", &what);
        }
    };
    check("journal");
    server.compact().unwrap();
    check("segments");
    for choice in CHOICES {
        let arguments = format!("-o export {choice}");
        let wanted = journalctl(&file, &arguments);
        let what = format!("files: {choice}");
        compare(
            &wanted,
            &journal_of_file(&file, &arguments),
            "export",
            &what,
        );
    }
    let lines = |output: &Output| {
        let text = text(output);
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    for field in [
        "_TRANSPORT",
        "PRIORITY",
        "A",
        "_BOOT_ID",
        "_COMM",
        "_PID",
        "SYSLOG_IDENTIFIER",
        "MESSAGE",
        "NOPE",
    ] {
        let arguments = format!("-F {field}");
        let wanted = lines(&journalctl(&file, &arguments));
        assert_eq!(lines(&journal(&server, &arguments)), wanted, "{arguments}");
        assert_eq!(
            lines(&journal_of_file(&file, &arguments)),
            wanted,
            "{arguments}"
        );
    }
    let wanted = lines(&journalctl(&file, "-N"));
    assert_eq!(lines(&journal(&server, "-N")), wanted);
    assert_eq!(lines(&journal_of_file(&file, "-N")), wanted);
    check_boots(&server, &file);
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

/// Lists of boots, in all forms.
fn check_boots(server: &TestServer, file: &Path) {
    for form in [
        "",
        "-o json",
        "-o json-pretty -r",
        "-o json-sse",
        "-o json-seq",
        "-o cat",
    ] {
        let arguments = format!("--list-boots {form}");
        let wanted = text(&journalctl(file, &arguments));
        assert_eq!(text(&journal(server, &arguments)), wanted, "{form}");
        assert_eq!(text(&journal_of_file(file, &arguments)), wanted, "{form}");
    }
}

/// Entries of one program, so many and in order.
fn some_entries(count: usize) -> Vec<u8> {
    let mut export = Vec::new();
    for at in 0..count {
        let us = (1_700_000_000_000_000 + at as u64 * 1000).to_string();
        let message = format!("entry {at}");
        let fields: [(&str, &[u8]); 5] = [
            ("__REALTIME_TIMESTAMP", us.as_bytes()),
            ("_BOOT_ID", b"0123456789abcdef0123456789abcdef"),
            ("_COMM", b"sshd"),
            ("_TRANSPORT", b"journal"),
            ("MESSAGE", message.as_bytes()),
        ];
        write_entry(&fields, &mut export);
    }
    export
}

fn upload(server: &TestServer, export: &[u8]) {
    let headers = [("content-type", "application/vnd.fdo.journal")];
    let mut client = server.client().unwrap();
    let answer = client.send("POST", "/upload", &headers, export).unwrap();
    assert_eq!(answer.status, 202);
}

#[test]
fn the_lines_that_people_know_work() {
    let scratch = Scratch::new("journal-lines").unwrap();
    let server = start(&scratch);
    upload(&server, &some_entries(3));
    let run = |line: &str| {
        let mut command = program_of(&program().display().to_string());
        let words = line.split_whitespace();
        command
            .arg("journal")
            .args(words)
            .env("LOGPOND_ADDR", server.url());
        let output = command.output().unwrap();
        (output.status.code(), text(&output), said(&output))
    };
    let (code, out, _) = run("_COMM=sshd");
    assert_eq!((code, out.lines().count()), (Some(0), 3));
    assert!(out.starts_with("Nov 14 22:13:20 sshd: entry 0\n"), "{out}");
    let nothing = (Some(1), String::new(), "-- No entries --\n".to_owned());
    assert_eq!(run("-S yesterday  _COMM=sshd"), nothing);
    assert_eq!(run("_TRANSPORT=syslog _COMM=autosshd"), nothing);
    assert_eq!(
        run("-o verbose -S yesterday _COMM=sshd + _COMM=autossh"),
        nothing
    );
    let (code, out, _) = run("-o verbose -S 2023-11-14 _COMM=sshd + _COMM=autossh");
    assert_eq!((code, out.lines().count()), (Some(0), 15));
    assert_eq!(run("--field=_TRANSPORT").1, "journal\n");
    for refused in [
        "--vacuum-time=1d -u nginx",
        "--vacuum-size=0",
        "--vacuum-time=soon",
        "--list-catalog",
        "nginx",
        "-p x",
        "-S x",
        "+",
    ] {
        let (code, out, said) = run(refused);
        assert_eq!((code, &*out), (Some(2), ""), "{refused}");
        assert!(said.starts_with("logpond: "), "{said}");
    }
    assert_eq!(run("--sync").0, Some(0));
    let listed = program_of("journalctl").arg("--facility=help").output();
    assert_eq!(run("--facility=help").1, text(&listed.unwrap()));
    let (code, out, _) = run("--disk-usage");
    assert_eq!(code, Some(0));
    assert!(
        out.starts_with("Archived and active journals take up "),
        "{out}"
    );
    let addr = server.url();
    assert_eq!(server.terminate().unwrap().code(), Some(0));
    let mut command = program_of(&program().display().to_string());
    let output = command.args(["journal", "--addr", &addr]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn cursors_outlive_compaction_and_restarts() {
    let scratch = Scratch::new("journal-cursors").unwrap();
    let mut server = start(&scratch);
    upload(&server, &some_entries(10));
    let file = scratch.path().join("cursor");
    let next = |server: &TestServer, count: usize| {
        let arguments = format!("-o cat -n {count} --cursor-file {}", file.display());
        text(&journal(server, &arguments))
    };
    assert_eq!(next(&server, 0), "");
    // The first time, the newest.
    let output = journal(&server, "-o cat -n +3 --show-cursor");
    let out = text(&output);
    let (lines, cursor) = out.split_once("-- cursor: ").unwrap();
    assert_eq!(lines, "entry 0\nentry 1\nentry 2\n");
    let cursor = cursor.trim();
    assert!(cursor.starts_with("t=60a24181e"), "{cursor}");
    fs::write(&file, cursor).unwrap();
    assert_eq!(next(&server, 2), "entry 3\nentry 4\n");
    server.compact().unwrap();
    assert_eq!(next(&server, 2), "entry 5\nentry 6\n");
    assert_eq!(server.terminate().unwrap().code(), Some(0));
    server = start(&scratch);
    let from = format!("-o cat -n 2 --cursor {cursor}");
    assert_eq!(text(&journal(&server, &from)), "entry 2\nentry 3\n");
    let back = format!("-o cat -n 2 -r --cursor {cursor}");
    assert_eq!(text(&journal(&server, &back)), "entry 2\nentry 1\n");
    assert_eq!(next(&server, 9), "entry 7\nentry 8\nentry 9\n");
    assert_eq!(next(&server, 9), "");
    let bad = journal(&server, "--cursor x");
    assert_eq!(bad.status.code(), Some(2));
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

/// A command that prints what comes.
struct PrintingCommand {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl PrintingCommand {
    fn start(mut command: Command) -> PrintingCommand {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        PrintingCommand { child, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line
    }
}

impl Drop for PrintingCommand {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_comes_is_printed_behind_the_newest() {
    let scratch = Scratch::new("journal-follow").unwrap();
    let server = start(&scratch);
    upload(&server, &some_entries(20));
    let follow = |arguments: &[&str]| {
        let mut command = program_of(&program().display().to_string());
        command.args(["journal", "-f", "-o", "cat", "--addr", &server.url()]);
        command.args(arguments);
        PrintingCommand::start(command)
    };
    let mut newest = follow(&["-n", "2"]);
    assert_eq!(newest.line() + &newest.line(), "entry 18\nentry 19\n");
    let mut all = follow(&["--no-tail"]);
    for at in 0..20 {
        assert_eq!(all.line(), format!("entry {at}\n"));
    }
    let mut ten = follow(&["_COMM=sshd"]);
    for at in 10..20 {
        assert_eq!(ten.line(), format!("entry {at}\n"));
    }
    let pushed = server.push(
        "text/plain",
        b"<11>1 2024-01-01T10:00:00Z web1 sshd 77 - - from syslog\n",
    );
    assert_eq!(pushed.unwrap().status, 200);
    upload(&server, &some_entries(21)[some_entries(20).len()..]);
    for printing in [&mut newest, &mut all] {
        let mut lines = [printing.line(), printing.line()];
        lines.sort();
        assert_eq!(lines, ["entry 20\n", "from syslog\n"]);
    }
    assert_eq!(ten.line(), "entry 20\n");
    drop((newest, all, ten));
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

#[test]
fn records_of_other_origin_are_entries_that_systemd_reads() {
    let Some(remote) = tool("systemd-journal-remote") else {
        return;
    };
    let scratch = Scratch::new("journal-others").unwrap();
    let server = start(&scratch);
    let lines = "<11>1 2024-01-01T10:00:00Z web1 sshd 77 - - from syslog\n\
                 {\"time\":\"2024-01-01T10:00:01Z\",\"level\":\"warn\",\"msg\":\"hot\",\"http.status\":500}\n";
    assert_eq!(
        server.push("text/plain", lines.as_bytes()).unwrap().status,
        200
    );
    let found = |arguments: &str| text(&journal(&server, &format!("-o cat {arguments}")));
    assert_eq!(found(""), "from syslog\nhot\n");
    for choice in [
        "-t sshd",
        "-p err",
        "_HOSTNAME=web1",
        "SYSLOG_PID=77",
        "_PID=77",
        "--facility user",
    ] {
        assert_eq!(found(choice), "from syslog\n", "{choice}");
    }
    for choice in [
        "-p warning..warning",
        "http.status=500",
        "-g HOT --case-sensitive=no",
        "MESSAGE=hot",
    ] {
        assert_eq!(found(choice), "hot\n", "{choice}");
    }
    assert_eq!(found("SYSLOG_IDENTIFIER!=sshd"), "hot\n");
    for choice in ["HTTP_STATUS=500", "LEVEL=warn", "PRIORITY=4"] {
        assert_eq!(found(choice), "hot\n", "{choice}");
    }
    for (field, values) in [
        ("HTTP_STATUS", "500\n"),
        ("LEVEL", "warn\n"),
        ("PRIORITY", "3\n4\n"),
        ("SYSLOG_IDENTIFIER", "sshd\n"),
        ("MESSAGE", "from syslog\nhot\n"),
    ] {
        assert_eq!(found(&format!("-F {field}")), values, "{field}");
        let body = server.get(&format!("/fields/{field}")).unwrap();
        let mut lines: Vec<&str> = body.split_inclusive('\n').collect();
        lines.sort_unstable();
        assert_eq!(lines.concat(), values, "{field}");
    }
    let body = server.get("/entries?HTTP_STATUS=500").unwrap();
    assert_eq!(body.lines().count(), 1, "{body}");
    assert_eq!(found("SYSLOG_IDENTIFIER=~^ss"), "from syslog\n");
    let short = text(&journal(&server, "-t sshd"));
    assert!(
        short.ends_with(" 10:00:00 web1 sshd[77]: from syslog\n"),
        "{short}"
    );
    let export = scratch.path().join("export");
    fs::write(&export, journal(&server, "-o export").stdout).unwrap();
    let file = scratch.path().join("made.journal");
    make_journal(&remote, &export, &file, &[]);
    let read = journalctl(&file, "-o json");
    let objects = objects("json", &read.stdout);
    assert_eq!(objects[0]["SYSLOG_IDENTIFIER"], "sshd");
    assert_eq!(objects[0]["PRIORITY"], "3");
    assert_eq!(objects[1]["MESSAGE"], "hot");
    assert_eq!(objects[1]["HTTP_STATUS"], "500");
    assert_eq!(objects[1]["PRIORITY"], "4");
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

#[test]
fn an_answer_that_lacks_a_node_says_so() {
    let scratch = Scratch::new("journal-cluster").unwrap();
    let first = node(&scratch, 0, None).unwrap();
    let second = node(&scratch, 1, Some(&first)).unwrap();
    let body = b"<11>1 2024-01-01T10:00:00Z web1 sshd 77 - - here\n";
    wait_until("the node takes records", || {
        second
            .push("text/plain", body)
            .is_ok_and(|pushed| pushed.status == 200)
    })
    .unwrap();
    wait_until("the other node finds it", || {
        text(&journal(&first, "-o cat")) == "here\n"
    })
    .unwrap();
    let output = journal(&first, "-o cat -t sshd -n 5");
    assert_eq!((output.status.code(), &*text(&output)), (Some(0), "here\n"));
    second.kill();
    let output = journal(&first, "-o cat");
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("the answer is not complete"));
    // There is no place for that in what gatewayd says.
    let mut client = first.client().unwrap();
    let answer = client.send("GET", "/entries", &[], b"").unwrap();
    assert_eq!(answer.status, 503);
}

//! `-o raw` gives back the bytes that came in: fixtures of every encoding and line ending.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::pond::{Scratch, TestServer, files_below, wait_until};
use crate::surroundings::{program, say, shared};

/// The longest line that the server takes; fixtures with longer ones are cut there by design.
const LINE_BYTES_MAX: usize = 1 << 20;

/// What `-o raw` must print for these bytes: every line, ended by a newline. Empty lines are
/// records as well.
fn expected(bytes: &[u8]) -> Vec<u8> {
    let mut text = bytes.to_vec();
    if !text.is_empty() && !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    text
}

/// Lines in an order of their own, because records are sorted by their event time.
fn sorted_lines(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
    lines.sort_unstable();
    lines
}

/// Own samples that hold everything that is hard to keep.
fn hard_samples() -> Vec<(&'static str, Vec<u8>)> {
    let utf16: Vec<u8> = "zwei Zeilen\n\u{4e2d}\u{6587}\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let long = |length: usize| [vec![b'x'; length], b"\n".to_vec()].concat();
    vec![
        (
            "invalid UTF-8",
            b"\xff\xfe bad \xc3\x28\n\xed\xa0\x80\n".to_vec(),
        ),
        ("CRLF and CR", b"one\r\ntwo\rthree\r\n\r\n".to_vec()),
        ("NUL", b"a\0b\0\n\0\n".to_vec()),
        ("UTF-16", [b"\xff\xfe".to_vec(), utf16].concat()),
        ("1 MB line", long(LINE_BYTES_MAX)),
        ("empty lines", b"\n\n\nx\n\n".to_vec()),
        ("no newline at the end", b"first\nlast".to_vec()),
        (
            "slots as text",
            "⟨_msg:t⟩ ⟨a:j⟩ %d %s {} {\"a\":\"⟨b⟩\"}\n"
                .as_bytes()
                .to_vec(),
        ),
        (
            "odd JSON",
            b"{\"a\":1.0,\"a\":2,\"b\\u00e9\":1e5, \"c\" : -0}\n{\"time\":\"12\",\"msg\":null}\n"
                .to_vec(),
        ),
    ]
}

#[test]
fn what_is_hard_to_keep_comes_back() {
    let scratch = Scratch::new("hard").unwrap();
    for (index, (name, bytes)) in hard_samples().into_iter().enumerate() {
        let data = scratch.path().join(format!("data{index}"));
        round_trip(&data, name, &bytes);
    }
}

#[test]
fn fixtures_come_back_byte_for_byte() {
    let Some(shared) = shared("the fixtures as original bytes") else {
        return;
    };
    let scratch = Scratch::new("original").unwrap();
    let groups: Vec<PathBuf> = fs::read_dir(shared.join("fixtures"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    let mut total = 0;
    for (index, group) in groups.iter().enumerate() {
        let mut bytes = Vec::new();
        for file in files_below(group, "") {
            let content = fs::read(&file).unwrap();
            let fits = content
                .split(|b| *b == b'\n')
                .all(|line| line.len() <= LINE_BYTES_MAX);
            if fits {
                bytes.extend(expected(&content));
            }
        }
        total += bytes.len();
        let name = group.file_name().unwrap().to_string_lossy().into_owned();
        round_trip(&scratch.path().join(format!("data{index}")), &name, &bytes);
    }
    say(&format!(
        "original: {} groups, {total} bytes came back as they were",
        groups.len()
    ));
    assert!(total > 20_000_000, "too few fixtures: {total} bytes");
}

/// Sends bytes through the raw TCP listener and compares what `-o raw` gives: first from the
/// journal, then from segments.
fn round_trip(data: &Path, name: &str, bytes: &[u8]) {
    let wanted = expected(bytes);
    let lines = sorted_lines(&wanted);
    let server = TestServer::start(program(), data, &[]).unwrap();
    let answer = server.send_tcp("durable", bytes).unwrap();
    let acknowledged: usize = answer
        .lines()
        .map(|line| line.trim_start_matches("OK ").parse::<usize>().unwrap())
        .sum();
    assert_eq!(acknowledged, lines.len(), "{name}: acknowledged");
    compare(&server, name, "journal", &lines);
    let compacted = Command::new(program())
        .args(["compact", "--wait", "--addr", &server.url()])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(compacted.status.success(), "{name}: {compacted:?}");
    wait_until("the journal is consumed", || {
        !files_below(&data.join("segments"), ".parquet").is_empty()
    })
    .unwrap();
    compare(&server, name, "segments", &lines);
}

fn compare(server: &TestServer, name: &str, place: &str, lines: &[&[u8]]) {
    let output = Command::new(program())
        .args(["query", "", "-n", "0", "-o", "raw", "--since", "@0"])
        .args(["--until", "2100-01-01", "--addr", &server.url()])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{name} from the {place}: {output:?}"
    );
    let found = sorted_lines(&output.stdout);
    assert_eq!(
        found.len(),
        lines.len(),
        "{name}: number of lines from the {place}"
    );
    for (found, wanted) in found.iter().zip(lines) {
        assert!(
            found == wanted,
            "{name} from the {place}: {:?} is not {:?}",
            String::from_utf8_lossy(found),
            String::from_utf8_lossy(wanted)
        );
    }
}

//! Files that are followed and are no plain text: other encodings, holes, and files that were filled anew.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};

use super::*;

impl Bench {
    fn append_bytes(&self, name: &str, bytes: &[u8]) {
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).open(self.path(name));
        file.unwrap().write_all(bytes).unwrap();
    }
}

fn utf16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(to_bytes).collect()
}

#[test]
fn other_encodings_are_followed() {
    type Unit = fn(u16) -> [u8; 2];
    let table: [(&str, &[u8], Unit); 3] = [
        ("marked-le.log", b"\xff\xfe", u16::to_le_bytes),
        ("marked-be.log", b"\xfe\xff", u16::to_be_bytes),
        ("unmarked.log", b"", u16::to_le_bytes),
    ];
    for (name, mark, to_bytes) in table {
        let mut bench = Bench::new();
        bench.append_bytes(name, mark);
        let mut tail = bench.start(name);
        assert_eq!(bench.poll(&mut tail), "", "{name}");
        let first = utf16("Logon\nLogin failed for é\u{a0d}😀\nand half of", to_bytes);
        bench.append_bytes(name, &first[..first.len() - 1]);
        assert_eq!(
            bench.poll(&mut tail),
            "Logon\nLogin failed for é\u{a0d}😀\n"
        );
        drop(tail);
        bench.append_bytes(name, &first[first.len() - 1..]);
        bench.append_bytes(name, &utf16(" a line\nlast\n", to_bytes));
        let mut tail = bench.start(name);
        assert_eq!(
            bench.poll(&mut tail),
            "and half of a line\nlast\n",
            "{name}"
        );
    }
    let mut bench = Bench::new();
    bench.append_bytes("utf8.log", b"\xef\xbb\xbfmarked\nnext\n");
    let mut tail = bench.start("utf8.log");
    assert_eq!(bench.poll(&mut tail), "marked\nnext\n");
}

/// Places of lines within a record of several lines are those of the file.
#[test]
fn records_of_several_lines_are_whole_in_other_encodings() {
    let mut bench = Bench::new();
    bench.read_options.rule = Some(Rule::stacktrace());
    bench.read_options.record_wait = Duration::from_secs(600);
    bench.append_bytes("a.log", b"\xff\xfe");
    let mut text = String::new();
    for line in [
        "première",
        "failed",
        "java.lang.Error: x",
        "\tat a.b(c:1)",
        "next",
    ] {
        bench.append_bytes("a.log", &utf16(&format!("{line}\n"), u16::to_le_bytes));
        let mut tail = bench.start("a.log");
        text += &bench.poll(&mut tail);
    }
    assert_eq!(
        text,
        // Entries are shown with their bytes escaped.
        "premi\\xc3\\xa8re\nfailed\\njava.lang.Error: x\\n\\tat a.b(c:1)\n"
    );
}

#[test]
fn holes_are_skipped_and_the_line_behind_them_is_kept() {
    let mut bench = Bench::new();
    bench.append("a.log", "before the truncation\n");
    let mut tail = bench.start("a.log");
    assert_eq!(bench.poll(&mut tail), "before the truncation\n");
    // A program goes on at its old place after the file was emptied.
    let mut file = OpenOptions::new()
        .write(true)
        .open(bench.path("a.log"))
        .unwrap();
    let place = file.seek(SeekFrom::End(0)).unwrap() + (3 << 20);
    File::create(bench.path("a.log")).unwrap();
    file.seek(SeekFrom::Start(place)).unwrap();
    file.write_all(b"first behind the hole\nsecond\n").unwrap();
    assert_eq!(bench.poll(&mut tail), "first behind the hole\nsecond\n");
    assert_eq!(bench.totals.rejected, 0);
    drop(tail);
    bench.append("a.log", "third\n");
    let mut tail = bench.start("a.log");
    assert_eq!(bench.poll(&mut tail), "third\n");
}

/// The beginning is that of the file before, and it is as long: only what is right before the place tells.
#[test]
fn a_file_that_was_filled_with_the_same_beginning_is_read_anew() {
    let header = format!("{}\n", "# header ".repeat(200));
    let old = format!("{header}old one\nold two\n");
    let new = format!("{header}new one\nnew two\nnew three\n");
    for is_restarted in [false, true] {
        let mut bench = Bench::new();
        bench.append("a.log", &old);
        let mut tail = bench.start("a.log");
        assert_eq!(bench.poll(&mut tail), old);
        fs::write(bench.path("a.log"), &new).unwrap();
        if is_restarted {
            drop(tail);
            tail = bench.start("a.log");
        }
        assert_eq!(bench.poll(&mut tail), new, "{is_restarted}");
    }
}

#[test]
fn long_lines_are_cut_as_those_of_containers_are() {
    let mut bench = Bench::new();
    let long = "x".repeat((2 << 20) + 5);
    bench.append("a.log", &format!("before\n{long}\nbehind\n"));
    let mut tail = bench.start("a.log");
    let text = bench.poll(&mut tail);
    let lines: Vec<&str> = text.lines().collect();
    let field = "_truncated_bytes=2097157 ";
    let kept = format!("{field}{}", &long[..1 << 20]);
    assert_eq!(lines, ["before", &kept, "behind"]);
    let totals = &bench.totals;
    assert_eq!((totals.accepted, totals.rejected, totals.cut), (3, 0, 1));
    assert_eq!(bench.poll(&mut tail), "");
}

/// A line that no server takes is kept as those are that a server would cut, also if its end comes later.
#[test]
fn lines_beyond_the_hard_limit_are_cut() {
    const MIB: usize = 1 << 20;
    let kept = |bytes: usize| format!("_truncated_bytes={bytes} {}", "x".repeat(MIB));
    let half = "x".repeat(17 * MIB);
    let mut bench = Bench::new();
    bench.append("a.log", &format!("before\n{half}"));
    let mut tail = bench.start("a.log");
    assert_eq!(bench.poll(&mut tail), "before\n");
    bench.append("a.log", &half);
    assert_eq!(bench.poll(&mut tail), "");
    // Its start is read anew.
    drop(tail);
    let mut tail = bench.start("a.log");
    assert_eq!(bench.poll(&mut tail), "");
    bench.append("a.log", &format!("{half}\nbehind\n"));
    let mut text = String::new();
    // Each turn reads some batches.
    for _ in 0..8 {
        text += &bench.poll(&mut tail);
    }
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines, [&*kept(51 * MIB), "behind"]);
    assert_eq!((bench.totals.rejected, bench.totals.cut), (0, 1));
}

#[test]
fn compressed_files_of_other_encodings_are_decoded() {
    let text = "Logon\nLogin failed for é\u{a0d}😀\nlast";
    let raw = [b"\xff\xfe".as_slice(), &utf16(text, u16::to_le_bytes)].concat();
    let mut bench = Bench::new();
    bench.append_bytes("plain", &raw);
    bench.compress("plain", "a.log.gz");
    // Another content: a file that was sent is not sent again.
    let next: Vec<u8> = "next in UTF-32, é😀\n"
        .chars()
        .flat_map(|c| u32::from(c).to_be_bytes())
        .collect();
    let zstd = zstd::encode_all(&next[..], 1).unwrap();
    fs::write(bench.path("b.log.zst"), zstd).unwrap();
    let mut tail = bench.start("*.log*");
    let found = bench.poll_long(&mut tail).replace("lastnext", "last\nnext");
    let mut lines: Vec<&str> = found.lines().collect();
    lines.sort_unstable();
    let expected = [
        "Login failed for é\u{a0d}😀",
        "Logon",
        "last",
        "next in UTF-32, é😀",
    ];
    assert_eq!(lines, expected);
}

/// The place up to which a plain file was sent is one in its bytes, also once it is compressed.
#[test]
fn a_file_of_another_encoding_goes_on_when_it_is_compressed() {
    let mut bench = Bench::new();
    bench.append_bytes("a.log", b"\xff\xfe");
    bench.append_bytes("a.log", &utf16("première\nsecond\n", u16::to_le_bytes));
    let mut tail = bench.start("*.log*");
    assert_eq!(bench.poll(&mut tail), "première\nsecond\n");
    drop(tail);
    bench.append_bytes("a.log", &utf16("third\n", u16::to_le_bytes));
    bench.compress("a.log", "a.log.1.gz");
    let mut tail = bench.start("*.log*");
    assert_eq!(bench.poll_long(&mut tail), "third\n");
}

//! Lines of containers, and records of several lines, from their files to the store: each is there
//! once, byte for byte, with the labels of its container, whatever happens to files and forwarders
//! meanwhile.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::pond::{ALL_TIME, Scratch, TestServer, signal, wait_until};
use crate::resends::{assert_each_once, line};
use crate::surroundings::{program, say, shared};

/// Follows the files of a pattern.
fn follow(server: &TestServer, scratch: &Path, pattern: &Path, extra: &[&str]) -> Child {
    let path = |name: &str| scratch.join(name).display().to_string();
    Command::new(program())
        .args(["forward", "--tail", "--addr", &server.url()])
        .args(["--spool", &path("spool"), "--state", &path("state.json")])
        .args(extra)
        .arg(pattern)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

fn end(mut forwarder: Child) {
    signal("TERM", forwarder.id()).unwrap();
    assert!(forwarder.wait().unwrap().success());
}

fn count(server: &TestServer) -> usize {
    let target = format!("/api/v1/query?{ALL_TIME}&count=true");
    let trailer: Value = serde_json::from_str(server.get(&target).unwrap().trim()).unwrap();
    trailer["_trailer"]["rows"].as_u64().unwrap() as usize
}

/// All records with their lines, in the order of their times.
fn rows(server: &TestServer) -> Vec<Value> {
    let target = format!("/api/v1/query?{ALL_TIME}&limit=0&fields=raw");
    let text = server.get(&target).unwrap();
    let mut rows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let trailer = rows.pop().unwrap();
    assert_eq!(trailer["_trailer"]["complete"], true, "{trailer}");
    rows
}

/// What is known of a record: namespace, pod, uid, container, stream, time, line.
type Known = [String; 7];

/// The records that the file of a pod holds, read by a parser of JSON.
fn records_of(file: &Path, labels: [&str; 4]) -> Vec<Known> {
    let text = fs::read_to_string(file).unwrap();
    let record = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let of = |name: &str| line[name].as_str().unwrap().to_owned();
        let time = of("time");
        let (seconds, nanos) = time.trim_end_matches('Z').split_once('.').unwrap();
        let time = format!("{seconds}.{nanos:0<9}Z");
        let text = of("log").strip_suffix('\n').unwrap().to_owned();
        let [namespace, pod, uid, container] = labels.map(str::to_owned);
        [namespace, pod, uid, container, of("stream"), time, text]
    };
    text.lines().map(record).collect()
}

#[test]
fn pods_are_there_line_by_line_with_their_labels() {
    let Some(shared) = shared("pods_are_there_line_by_line_with_their_labels") else {
        return;
    };
    let scratch = Scratch::new("pods").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let logs = scratch.path().join("pods");
    let mut expected = Vec::new();
    let pods = fs::read_dir(shared.join("fixtures/nezha/pods_2022-08-23")).unwrap();
    for (number, pod) in pods.map(|pod| pod.unwrap().path()).enumerate() {
        let name = pod.file_name().unwrap().to_str().unwrap();
        let uid = format!("0c5cd3b8-6d2c-4ac2-8b4c-{number:012x}");
        let own = logs.join(format!("{name}_{uid}/server"));
        fs::create_dir_all(&own).unwrap();
        fs::copy(pod.join("server/0.log"), own.join("0.log")).unwrap();
        let (namespace, pod) = name.split_once('_').unwrap();
        let labels = [namespace, pod, &uid, "server"];
        expected.extend(records_of(&own.join("0.log"), labels));
    }
    expected.sort();
    let forwarder = follow(&server, scratch.path(), &logs.join("*/*/*.log"), &[]);
    wait_until("all lines are there", || count(&server) >= expected.len()).unwrap();
    end(forwarder);
    for is_stored in [false, true] {
        if is_stored {
            server.compact().unwrap();
        }
        let names = [
            "namespace",
            "pod",
            "pod_uid",
            "container",
            "stream",
            "_time",
            "_line",
        ];
        let known = |row: &Value| names.map(|name| row[name].as_str().unwrap_or("").to_owned());
        let mut found: Vec<Known> = rows(&server).iter().map(known).collect();
        found.sort();
        assert_eq!(found.len(), expected.len());
        let differs = found.iter().zip(&expected).find(|(a, b)| a != b);
        assert_eq!(differs, None);
    }
    say(&format!("pods: {} lines of 10 containers", expected.len()));
}

fn compress(file: &Path, to: &Path) {
    let content = fs::read(file).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    encoder.write_all(&content).unwrap();
    fs::write(to, encoder.finish().unwrap()).unwrap();
    fs::remove_file(file).unwrap();
}

/// A forwarder is killed while it reads; then the file gets more lines, is rotated and compressed.
#[test]
fn compressed_files_give_their_rest_once() {
    let scratch = Scratch::new("compressed").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let path = |name: &str| scratch.path().join(name);
    let write = |name: &str, numbers: std::ops::Range<usize>| {
        let text: String = numbers.map(line).collect();
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).open(path(name));
        file.unwrap().write_all(text.as_bytes()).unwrap();
    };
    // Of one file nothing is known.
    write("app.log.2", 0..1000);
    compress(&path("app.log.2"), &path("app.log.2.gz"));
    write("app.log", 1000..9000);
    let start = || follow(&server, scratch.path(), &path("app.log*"), &[]);
    let mut forwarder = start();
    wait_until("some lines are there", || count(&server) > 0).unwrap();
    forwarder.kill().unwrap();
    forwarder.wait().unwrap();
    write("app.log", 9000..10_000);
    compress(&path("app.log"), &path("app.log.1.gz"));
    write("app.log", 10_000..11_000);
    let forwarder = start();
    wait_until("all lines are there", || count(&server) >= 11_000).unwrap();
    end(forwarder);
    write("app.log", 11_000..11_010);
    let forwarder = start();
    wait_until("the last lines are there", || count(&server) >= 11_010).unwrap();
    end(forwarder);
    assert_each_once(&server, 11_010);
}

/// A program that writes records with numbers in parts, into a file that it begins anew now and then.
struct Runtime {
    directory: PathBuf,
    format: &'static str,
    lines: usize,
    /// What of the last line is to be written yet.
    rest: Vec<String>,
    rotations: usize,
}

/// Bytes of a line that a runtime writes at once.
const PART_BYTES: usize = 16 << 10;

impl Runtime {
    fn path(&self) -> PathBuf {
        self.directory.join("0.log")
    }

    /// The line with this number; some are long, and have bytes that JSON escapes.
    fn line(number: usize) -> String {
        let length = [30, 100, 20_000, 50_000][[0, 1, 0, 1, 2, 0, 3, 1][number % 8]];
        format!("n={number} \"<é\\>\" {}", "xyz ".repeat(length / 4))
    }

    /// The record with this number: a line, or some with a trace.
    fn record(&self, number: usize) -> String {
        match (self.format, number % 3) {
            ("lines", 1) => {
                let frame = format!("\tat a.b(c:{number})\n");
                let frames = frame.repeat(1 + number % 7);
                format!("n={number} failed\njava.lang.Error: x\n{frames}Caused by: y\n{frame}")
                    .trim_end()
                    .to_owned()
            }
            _ => Runtime::line(number),
        }
    }

    fn stream(&self, number: usize) -> &'static str {
        match self.format {
            "lines" => "",
            _ => ["stdout", "stderr"][number / 3 % 2],
        }
    }

    fn write(&self, text: &str) {
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).open(self.path());
        file.unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn part(&self, number: usize, part: &str, is_last: bool) -> String {
        let stream = self.stream(number);
        let time = format!(
            "2026-03-02T00:{:02}:{:02}.5Z",
            number / 600 % 60,
            number / 10 % 60
        );
        match self.format {
            "cri" => {
                let tag = if is_last { "F" } else { "P" };
                format!("{time} {stream} {tag} {part}\n")
            }
            _ => {
                let end = if is_last { "\n" } else { "" };
                let log = Value::from(format!("{part}{end}")).to_string();
                format!("{{\"log\":{log},\"stream\":\"{stream}\",\"time\":\"{time}\"}}\n")
            }
        }
    }

    /// Parts of the next line.
    fn next(&mut self) -> Vec<String> {
        let number = self.lines;
        self.lines += 1;
        if self.format == "lines" {
            let record = self.record(number);
            return record.lines().map(|line| format!("{line}\n")).collect();
        }
        let line = Runtime::line(number);
        let mut parts = Vec::new();
        let mut rest = &line[..];
        while rest.len() > PART_BYTES {
            let end = (0..=PART_BYTES)
                .rev()
                .find(|end| rest.is_char_boundary(*end));
            let (part, after) = rest.split_at(end.unwrap());
            parts.push(self.part(number, part, false));
            rest = after;
        }
        parts.push(self.part(number, rest, true));
        parts
    }

    /// Writes what is left of the last line, and some more.
    fn write_lines(&mut self, lines: usize) {
        let mut text = std::mem::take(&mut self.rest).concat();
        for _ in 0..lines {
            text += &self.next().concat();
        }
        self.write(&text);
    }

    /// Writes the first part of a line that has several.
    fn begin_long_line(&mut self) {
        let mut parts = self.next();
        while parts.len() < 3 {
            self.write(&parts.concat());
            parts = self.next();
        }
        self.write(&parts[0]);
        self.rest = parts.split_off(1);
    }

    fn rotate(&mut self) {
        self.rotations += 1;
        let old = self.directory.join(format!("0.log.{}", self.rotations));
        fs::rename(self.path(), old).unwrap();
    }
}

/// Forwarders that are killed at any time, and files that are rotated, mostly in the middle of a line.
fn kill_and_rotate(format: &'static str) {
    let scratch = Scratch::new("kills").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let mut runtime = Runtime {
        directory: scratch.path().join("logs"),
        format,
        lines: 0,
        rest: Vec::new(),
        rotations: 0,
    };
    fs::create_dir(&runtime.directory).unwrap();
    // A record of several lines is held until the next one begins.
    let (extra, held) = match format {
        "lines" => (
            &["--multiline", "stacktrace", "--multiline-wait", "1h"][..],
            1,
        ),
        _ => (&[][..], 0),
    };
    let start = |runtime: &Runtime| follow(&server, scratch.path(), &runtime.path(), extra);
    const ROUNDS: usize = 8;
    for round in 0..ROUNDS {
        runtime.write_lines(50);
        runtime.begin_long_line();
        let mut forwarder = start(&runtime);
        let whole = runtime.lines - 1;
        wait_until("the whole lines are there", || count(&server) >= whole).unwrap();
        if round % 2 == 0 {
            runtime.rotate();
        }
        runtime.write_lines(3);
        let whole = runtime.lines - held;
        wait_until("the joined line is there", || count(&server) >= whole).unwrap();
        runtime.write_lines(700);
        runtime.begin_long_line();
        if round % 3 == 0 {
            wait_until("some lines are there", || count(&server) > whole).unwrap();
        }
        forwarder.kill().unwrap();
        forwarder.wait().unwrap();
        if round % 4 == 1 {
            runtime.rotate();
        }
    }
    runtime.write_lines(1);
    let forwarder = start(&runtime);
    let whole = runtime.lines - held;
    wait_until("all lines are there", || count(&server) >= whole).unwrap();
    end(forwarder);
    server.compact().unwrap();
    let mut found: Vec<(usize, String, String)> = rows(&server)
        .iter()
        .map(|row| {
            let line = row["_line"].as_str().unwrap().to_owned();
            let number = line.split([' ', '=']).nth(1).unwrap().parse().unwrap();
            let stream = row["stream"].as_str().unwrap_or_default();
            (number, stream.to_owned(), line)
        })
        .collect();
    found.sort();
    let expected = (0..whole).map(|n| (n, runtime.stream(n).to_owned(), runtime.record(n)));
    let expected: Vec<_> = expected.collect();
    assert_eq!(found.len(), expected.len());
    let differs = found.iter().zip(&expected).find(|(a, b)| a != b);
    assert_eq!(differs, None);
    say(&format!(
        "{format}: {} lines, {ROUNDS} kills, {} rotations",
        runtime.lines, runtime.rotations
    ));
}

#[test]
fn killed_forwarders_join_lines_of_docker_once() {
    kill_and_rotate("docker");
}

#[test]
fn killed_forwarders_join_lines_of_kubernetes_once() {
    kill_and_rotate("cri");
}

#[test]
fn killed_forwarders_keep_records_of_several_lines() {
    kill_and_rotate("lines");
}

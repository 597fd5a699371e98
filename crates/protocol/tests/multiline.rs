//! The tables of records of several lines in `testdata/multiline/`: each text, by each rule, read at once, by
//! readers that are stopped, with other line ends, and from files of containers.
//!
//! ```toml
//! family = "Go"            # one file a family
//! [[shape]]
//! name = "Panic"           # heading of the page
//! source = "…"             # its specification
//! text = '''…'''           # lines; a line of `~` stands between two records
//! rules = ["auto"]         # `auto` and `stacktrace` if absent; also `timestamp`
//! ```

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "tests cast numbers that they know"
)]

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use logpond_protocol::intake::assembly::{AssembledRecord, Assembler, Settings};
use logpond_protocol::intake::container::Format;
use logpond_protocol::intake::multiline::Rule;
use toml::{Table, Value as Toml};

/// A line that stands between two records.
const BORDER: &str = "~";

/// A shape by one rule.
struct Case {
    name: String,
    rule: Rule,
    records: Vec<String>,
}

fn rule(name: &str) -> Rule {
    match name {
        "auto" => Rule::auto(),
        "stacktrace" => Rule::stacktrace(),
        "timestamp" => Rule::timestamp(),
        other => panic!("no rule {other}"),
    }
}

fn text<'t>(shape: &'t Table, name: &str) -> &'t str {
    let value = shape.get(name).and_then(Toml::as_str);
    value.unwrap_or_else(|| panic!("{name} in {shape:?}"))
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/multiline");
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let table: Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
        let family = text(&table, "family");
        for shape in table["shape"].as_array().unwrap() {
            let shape = shape.as_table().unwrap();
            let mut records = vec![String::new()];
            let mut is_first = true;
            for line in text(shape, "text").lines() {
                if line == BORDER {
                    records.push(String::new());
                    is_first = true;
                    continue;
                }
                let record = records.last_mut().unwrap();
                if !is_first {
                    record.push('\n');
                }
                record.push_str(line);
                is_first = false;
            }
            let rules = shape.get("rules").and_then(Toml::as_array).cloned();
            let both = || vec![Toml::from("auto"), Toml::from("stacktrace")];
            for name in rules.unwrap_or_else(both) {
                let name = name.as_str().unwrap();
                cases.push(Case {
                    name: format!("{family}: {} by {name}", text(shape, "name")),
                    rule: rule(name),
                    records: records.clone(),
                });
            }
        }
    }
    assert!(cases.len() > 50, "{} cases", cases.len());
    cases
}

fn settings(rule: &Rule, format: Format) -> Settings {
    Settings {
        rule: Some(rule.clone()),
        ..Settings::of(format)
    }
}

/// The records of a file, with the name of their stream. The reader is stopped after each `stops` lines.
fn read(
    rule: &Rule,
    format: Format,
    file: &str,
    stops: usize,
) -> Vec<(Option<&'static str>, String)> {
    let mut found = Vec::new();
    let mut take = |record: AssembledRecord<'_>| {
        let line = String::from_utf8(record.line.to_vec()).unwrap();
        found.push((record.stream.name(), line));
    };
    let lines: Vec<&str> = file.split_inclusive('\n').collect();
    let ends: Vec<usize> = (1..=lines.len())
        .filter(|end| end % stops == 0 || *end == lines.len())
        .collect();
    let (mut offset, mut held) = (0, [None; 3]);
    for end in ends {
        let until: usize = lines[..end].iter().map(|line| line.len()).sum();
        let mut assembler = Assembler::resume(settings(rule, format), offset as u64, held);
        assembler.learn(file.as_bytes());
        let mut at = assembler.reads_from() as usize;
        for line in file[at..until].split_inclusive('\n') {
            let text = line.strip_suffix('\n').unwrap_or(line);
            assembler.push(text.as_bytes(), at as u64, Duration::ZERO, &mut take);
            at += line.len();
        }
        (offset, held) = (until, assembler.held());
        if end == lines.len() {
            assembler.finish(&mut take);
        }
    }
    found
}

fn lines_of(records: &[String]) -> String {
    records.join("\n") + "\n"
}

/// Texts that were not read as expected.
#[derive(Default)]
struct Failures(String);

impl Failures {
    fn compare(&mut self, case: &Case, found: &[(Option<&str>, String)], expected: &[String]) {
        let found = found.iter().map(|(_, record)| record);
        let mut pairs = found
            .map(Some)
            .chain(std::iter::once(None))
            .zip(expected.iter().map(Some).chain([None]));
        if let Some((found, expected)) = pairs.find(|(found, expected)| found != expected) {
            let name = &case.name;
            let _ = writeln!(self.0, "{name}\nexpected {expected:#?}\nfound {found:#?}\n");
        }
    }

    #[track_caller]
    fn assert_none(&self) {
        assert!(self.0.is_empty(), "\n{}", self.0);
    }
}

#[test]
fn records_are_put_together() {
    let mut failures = Failures::default();
    for case in cases() {
        let file = lines_of(&case.records);
        let found = read(&case.rule, Format::Lines, &file, usize::MAX);
        failures.compare(&case, &found, &case.records);
    }
    failures.assert_none();
}

#[test]
fn stops_do_not_matter() {
    let mut failures = Failures::default();
    for case in cases() {
        let file = lines_of(&case.records);
        for stops in [1, 2, 3, 7] {
            let found = read(&case.rule, Format::Lines, &file, stops);
            failures.compare(&case, &found, &case.records);
        }
    }
    failures.assert_none();
}

#[test]
fn carriage_returns_stay_where_they_are() {
    let mut failures = Failures::default();
    for case in cases() {
        let file = lines_of(&case.records).replace('\n', "\r\n");
        let found = read(&case.rule, Format::Lines, &file, usize::MAX);
        let records = case.records.iter();
        let expected: Vec<String> = records
            .map(|record| record.replace('\n', "\r\n") + "\r")
            .collect();
        failures.compare(&case, &found, &expected);
    }
    failures.assert_none();
}

/// Each line in two parts, between those of another stream.
#[test]
fn streams_of_containers_are_apart() {
    let mut failures = Failures::default();
    for case in cases() {
        let mut file = String::new();
        for line in lines_of(&case.records).lines() {
            let mut middle = line.len() * 7 / 8;
            while !line.is_char_boundary(middle) {
                middle -= 1;
            }
            let (first, second) = line.split_at(middle);
            file += &format!("2026-03-02T00:00:06Z stderr P {first}\n");
            file += "2026-03-02T00:00:06Z stdout F 2026-11-27 00:00:00 INFO between\n";
            file += &format!("2026-03-02T00:00:06Z stderr F {second}\n");
        }
        let found = read(&case.rule, Format::Cri, &file, usize::MAX);
        let (own, others): (Vec<_>, Vec<_>) = found
            .into_iter()
            .partition(|(stream, _)| *stream == Some("stderr"));
        assert!(others.iter().all(|(_, line)| line.ends_with(" between")));
        failures.compare(&case, &own, &case.records);
    }
    failures.assert_none();
}

/// Nothing is lost, and no two lines that begin with a time are in one record.
#[test]
fn all_lines_of_all_texts_are_there() {
    let all = cases();
    let texts: Vec<String> = all.iter().map(|case| lines_of(&case.records)).collect();
    let file = texts.concat();
    for rule in [Rule::auto(), Rule::stacktrace()] {
        let found = read(&rule, Format::Lines, &file, usize::MAX);
        let lines: Vec<String> = found.into_iter().map(|(_, record)| record).collect();
        assert!(lines_of(&lines) == file);
        for record in &lines {
            let times = record
                .lines()
                .filter(|line| line.starts_with("2026-11-27 00:51:"));
            assert!(times.count() < 2, "{record}");
        }
    }
}

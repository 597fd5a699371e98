//! Formats of logs: each line of `testdata/formats/*.toml` has the time, level, message and fields that
//! stand beside it. The same tables are the source of `docs/formats.md`.
//!
//! A file is a family of formats:
//!
//! ```toml
//! family = "Web servers"                  # heading of the page
//! [[format]]
//! name = "nginx, combined"                # formats of one name are cases of one
//! source = "nginx, ngx_http_log_module"   # the specification
//! kind = "line"                           # line (default), json, syslog or text
//! received = "2026-11-27T12:00:00Z"       # this one if absent
//! labels = { "_timezone" = "…" }          # labels of the batch
//! line = '''…'''
//! time = "2026-11-27T00:51:25.818Z"       # if absent, the record has the time of its arrival
//! source_of_time = "line"                 # as `_time_source` shows it; not checked if absent
//! level = "error"                         # if absent, the record has none
//! message = "…"                           # not checked if absent
//! fields = { status = 200, x = "-none-" } # value and type; `-none-` is a field that is not there
//! also = ['''…''']                        # lines with the same time, level and fields
//! [[format.case]]                         # lines with values of their own; what is absent is as above
//! line = '''…'''
//! ```

mod records;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use expect_test::expect_file;
use jiff::Timestamp as Instant;
use logpond_protocol::intake::Parser;
use logpond_record::{
    Entry, EntryKind, Envelope, Id, Labels, Record, Severity, TimeSource, Timestamp, Value,
};
use records::{message, severity};
use toml::{Table, Value as Toml};

/// When lines are received that say nothing of it.
const RECEIVED: &str = "2026-11-27T12:00:00Z";

/// A field that must not be there.
const NO_FIELD: &str = "-none-";

/// Members that a format may have.
const FORMAT_MEMBERS: [&str; 3] = ["name", "source", "case"];

/// Members that a format and each of its cases may have.
const CASE_MEMBERS: [&str; 10] = [
    "kind",
    "received",
    "labels",
    "line",
    "time",
    "source_of_time",
    "level",
    "message",
    "fields",
    "also",
];

/// Members of a case that are not taken from its format: they say what is in the line.
const OWN_MEMBERS: [&str; 5] = ["line", "time", "level", "message", "also"];

/// A file of formats.
struct Family {
    heading: String,
    formats: Vec<Table>,
}

/// The files of formats, by name.
fn families() -> Vec<Family> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/formats");
    let entries = std::fs::read_dir(&folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "toml")
    });
    paths.sort();
    assert!(!paths.is_empty(), "no formats in {}", folder.display());
    paths.iter().map(|path| family(path)).collect()
}

fn family(path: &Path) -> Family {
    let name = path.display();
    let text = std::fs::read_to_string(path).unwrap();
    let mut table: Table = text.parse().unwrap_or_else(|e| panic!("{name}: {e}"));
    let heading = table.remove("family");
    let formats = table.remove("format");
    assert!(table.is_empty(), "{name}: unknown members {table:?}");
    let (Some(Toml::String(heading)), Some(Toml::Array(formats))) = (heading, formats) else {
        panic!("{name} needs a family and formats");
    };
    let formats = formats.into_iter().map(|format| match format {
        Toml::Table(format) => format,
        other => panic!("{name}: {other:?} is no format"),
    });
    Family {
        heading,
        formats: formats.collect(),
    }
}

/// The lines of a format with what is expected of each: its own, and those of its cases.
fn cases(format: &Table) -> Vec<Table> {
    let known = |name: &&String| {
        FORMAT_MEMBERS.contains(&name.as_str()) || CASE_MEMBERS.contains(&name.as_str())
    };
    let unknown: Vec<&String> = format.keys().filter(|name| !known(name)).collect();
    assert!(unknown.is_empty(), "unknown members {unknown:?}");
    let mut cases = vec![format.clone()];
    let own = format.get("case").and_then(Toml::as_array);
    for case in own.into_iter().flatten().filter_map(Toml::as_table) {
        let mut whole = format.clone();
        OWN_MEMBERS
            .iter()
            .for_each(|name| drop(whole.remove(*name)));
        for (name, value) in case {
            assert!(
                CASE_MEMBERS.contains(&name.as_str()),
                "unknown member {name}"
            );
            whole.insert(name.clone(), value.clone());
        }
        cases.push(whole);
    }
    let mut all = Vec::new();
    for case in cases {
        let also = case.get("also").and_then(Toml::as_array).cloned();
        for line in also.into_iter().flatten() {
            let mut other = case.clone();
            other.remove("message");
            other.insert("line".to_owned(), line);
            all.push(other);
        }
        all.push(case);
    }
    all
}

fn text<'t>(case: &'t Table, name: &str) -> Option<&'t str> {
    let value = case.get(name)?;
    let text = value.as_str();
    assert!(text.is_some(), "{name} is no text: {value:?}");
    text
}

fn kind(case: &Table) -> EntryKind {
    match text(case, "kind") {
        None | Some("line") => EntryKind::Line,
        Some("json") => EntryKind::Json,
        Some("syslog") => EntryKind::Syslog,
        Some("text") => EntryKind::Text,
        Some(other) => panic!("no kind {other}"),
    }
}

fn instant(text: &str) -> Timestamp {
    let instant: Instant = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    Timestamp(i64::try_from(instant.as_nanosecond()).unwrap())
}

fn shown(time: Timestamp) -> String {
    Instant::from_nanosecond(time.0.into()).unwrap().to_string()
}

/// Reads a line; `look` sees its record.
fn read<T>(parser: &mut Parser, case: &Table, look: impl FnOnce(&Record<'_>) -> T) -> T {
    let line = text(case, "line").expect("a line");
    let labels = case.get("labels").and_then(Toml::as_table);
    let labels = labels.into_iter().flatten();
    let labels: Labels = labels
        .map(|(name, value)| (name.as_str().into(), value.as_str().unwrap().into()))
        .collect();
    let record = parser.parse(&Entry {
        id: Id::MIN,
        received: instant(text(case, "received").unwrap_or(RECEIVED)),
        kind: kind(case),
        labels: &labels,
        envelope: Envelope::default(),
        raw: line.as_bytes(),
    });
    let mut rebuilt = Vec::new();
    record.write_line(&mut rebuilt);
    assert!(rebuilt == line.as_bytes(), "not rebuilt: {line}");
    look(&record)
}

fn is_equal(expected: &Toml, got: &Value<'_>) -> bool {
    match (expected, got) {
        (Toml::Integer(expected), Value::Int(got)) => expected == got,
        (Toml::Float(expected), Value::Float(got)) => expected == got,
        (Toml::Boolean(expected), Value::Bool(got)) => expected == got,
        (Toml::String(expected), Value::Str(got) | Value::Json(got)) => *expected == **got,
        _ => false,
    }
}

/// Compares a record with what is expected of it; gives the differences.
fn differences(case: &Table, record: &Record<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |name: &str, expected: &str, got: &str| {
        if expected != got {
            found.push(format!("{name}: expected {expected}, got {got}"));
        }
    };
    let got = match record.time_source {
        TimeSource::Received => "none".to_owned(),
        _ => shown(record.time),
    };
    let expected = text(case, "time").map_or("none".to_owned(), |time| shown(instant(time)));
    compare("time", &expected, &got);
    let source = record.time_source.as_str();
    if text(case, "time").is_some() {
        compare(
            "source of time",
            text(case, "source_of_time").unwrap_or(source),
            source,
        );
    }
    let got = severity(record).map_or("none", Severity::name);
    compare("level", text(case, "level").unwrap_or("none"), got);
    if let Some(expected) = text(case, "message") {
        compare("message", expected, &message(record));
    }
    let fields = case.get("fields").and_then(Toml::as_table);
    for (name, expected) in fields.into_iter().flatten() {
        let is_none = expected.as_str() == Some(NO_FIELD);
        match record.field(name) {
            None if is_none => {}
            Some(got) if !is_none && is_equal(expected, got) => {}
            got => found.push(format!("{name}: expected {expected:?}, got {got:?}")),
        }
    }
    found
}

#[test]
fn lines_are_recognised() {
    let mut failures = String::new();
    let mut parser = Parser::new();
    let mut lines = 0;
    for family in families() {
        for format in &family.formats {
            let name = text(format, "name").expect("a name");
            for case in cases(format) {
                lines += 1;
                // One parser reads all lines, and each is read by one that has seen nothing. An outline
                // that repeats is learned, and must not be read otherwise.
                for _ in 0..2 {
                    read(&mut parser, &case, |_| ());
                }
                let found = read(&mut parser, &case, |record| differences(&case, record));
                let fresh = read(&mut Parser::new(), &case, |record| {
                    differences(&case, record)
                });
                assert_eq!(found, fresh, "{name}: what was read before matters");
                if found.is_empty() {
                    continue;
                }
                let line = text(&case, "line").unwrap_or_default();
                let _ = writeln!(failures, "{}: {name}\n  {line}", family.heading);
                for difference in found {
                    let _ = writeln!(failures, "    {difference}");
                }
            }
        }
    }
    println!("{lines} lines");
    assert!(failures.is_empty(), "\n{failures}");
}

/// Lines that are almost of a format: bytes that mean something to a reader are put in, or bytes are left out.
#[test]
fn damaged_lines_are_rebuilt() {
    const MUTATIONS: usize = 200;
    const SPECIAL: [&str; 24] = [
        "\"", "\\", " ", "  ", "=", "[", "]", "{", "}", ",", ":", "/", "-", "-1", "0", "00", "+",
        "\t", "\r", "|", "é", "⟨", "⟩", ":60",
    ];
    // A fixed seed: the same lines are tried each time.
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % below.max(1)
    };
    let formats = families().into_iter().flat_map(|family| family.formats);
    let mut parser = Parser::new();
    for case in formats.flat_map(|format| cases(&format)) {
        let line: Vec<char> = text(&case, "line").unwrap_or_default().chars().collect();
        for _ in 0..MUTATIONS {
            let mut damaged = line.clone();
            for _ in 0..1 + random(3) {
                let at = random(damaged.len());
                let until = damaged.len().min(at + random(3));
                let put = SPECIAL.get(random(SPECIAL.len() * 2)).unwrap_or(&"");
                damaged.splice(at..until, put.chars());
            }
            let mut other = case.clone();
            let damaged: String = damaged.into_iter().collect();
            other.insert("line".to_owned(), Toml::String(damaged));
            read(&mut parser, &other, |_| ());
        }
    }
}

/// A format on the page.
#[derive(Default)]
struct FormatEntry {
    source: String,
    line: String,
    has_time: bool,
    has_level: bool,
    has_message: bool,
    fields: Vec<String>,
}

impl FormatEntry {
    fn add(&mut self, format: &Table) {
        if self.line.is_empty() {
            self.source = text(format, "source").unwrap_or_default().to_owned();
            self.line = text(format, "line").unwrap_or_default().to_owned();
        }
        for case in cases(format) {
            self.has_time |= case.contains_key("time");
            self.has_level |= case.contains_key("level");
            self.has_message |= case.contains_key("message");
            let fields = case.get("fields").and_then(Toml::as_table);
            for (name, value) in fields.into_iter().flatten() {
                if value.as_str() != Some(NO_FIELD) && !self.fields.contains(name) {
                    self.fields.push(name.clone());
                }
            }
        }
    }

    fn write(&self, name: &str, page: &mut String) {
        let _ = writeln!(page, "### {name}\n");
        if !self.source.is_empty() {
            let _ = writeln!(page, "- Source: {}", self.source);
        }
        let said = [
            (self.has_time, "time"),
            (self.has_level, "level"),
            (self.has_message, "message"),
        ];
        let said = said.iter().filter(|(is_there, _)| *is_there);
        let said: Vec<&str> = said.map(|(_, name)| *name).collect();
        if !said.is_empty() {
            let _ = writeln!(page, "- Recognised: {}", said.join(", "));
        }
        if !self.fields.is_empty() {
            let _ = writeln!(page, "- Fields: `{}`", self.fields.join("`, `"));
        }
        page.push_str("\n```text\n");
        for line in self.line.lines() {
            let _ = writeln!(page, "{}", visible(line));
        }
        page.push_str("```\n\n");
    }
}

/// A line as the page shows it: characters that cannot be seen are escaped.
fn visible(line: &str) -> String {
    let mut visible = String::with_capacity(line.len());
    for letter in line.chars() {
        if letter.is_control() || letter == '\u{feff}' {
            visible.extend(letter.escape_default());
        } else {
            visible.push(letter);
        }
    }
    visible
}

/// The page of the formats.
fn page() -> String {
    let mut page = String::from(
        "# Formats\n\nGenerated by `cargo xtask docs` from `testdata/formats/`, whose lines are tests. \
         Each format is recognised\nwithout settings, in files and from all listeners, unless its entry \
         says otherwise. [sources.md](sources.md) has\nthe rules behind them.\n\n",
    );
    for family in families() {
        let _ = writeln!(page, "## {}\n", family.heading);
        let mut order = Vec::new();
        let mut described: BTreeMap<String, FormatEntry> = BTreeMap::new();
        for format in &family.formats {
            let name = text(format, "name").expect("a name").to_owned();
            if !order.contains(&name) {
                order.push(name.clone());
            }
            described.entry(name).or_default().add(format);
        }
        for name in &order {
            described[name].write(name, &mut page);
        }
    }
    write_shapes(&mut page);
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

/// The shapes of records of several lines, whose texts are the tests of `multiline.rs`.
fn write_shapes(page: &mut String) {
    page.push_str(
        "## Records of several lines\n\n`forward --multiline auto` and `--multiline stacktrace` join their lines, see \
         [forward.md](forward.md#records-of-several-lines).\n\n| records | shape | source |\n| --- | --- | --- |\n",
    );
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/multiline");
    let entries = std::fs::read_dir(&folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let table: Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
        let family = text(&table, "family").expect("a family");
        let shapes = table.get("shape").and_then(Toml::as_array);
        for shape in shapes.into_iter().flatten().filter_map(Toml::as_table) {
            let (name, source) = (text(shape, "name"), text(shape, "source"));
            let (name, source) = (name.expect("a name"), source.expect("a source"));
            let _ = writeln!(page, "| {family} | {name} | {source} |");
        }
    }
}

#[test]
fn the_reference_page_is_up_to_date() {
    expect_file!["../../../docs/formats.md"].assert_eq(&page());
}

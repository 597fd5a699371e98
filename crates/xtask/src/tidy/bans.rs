//! Calls and names that some or all crates do without.

use super::sources::{Source, repository};

/// The crates without side effects: what they need to know of the world is an argument.
const PURE: [&str; 5] = ["record", "protocol", "segment", "search", "cluster"];

/// What the pure crates must not say, and what to do instead.
const BANNED_IN_PURE: [(&str, &str); 22] = [
    ("Instant::now", "take `now` as an argument"),
    ("SystemTime::now", "take `now` as an argument"),
    ("Timestamp::now(", "take `now` as an argument"),
    ("Zoned::now(", "take `now` as an argument"),
    ("UNIX_EPOCH", "take a record::Timestamp"),
    ("std::fs", "use segment::disk::Disk"),
    ("File::open", "use segment::disk::Disk"),
    ("File::create", "use segment::disk::Disk"),
    ("std::net", "sockets belong to the product"),
    ("TcpStream", "sockets belong to the product"),
    ("UdpSocket", "sockets belong to the product"),
    ("std::env", "settings come as arguments"),
    ("env::var", "settings come as arguments"),
    ("std::process", "processes belong to the product"),
    ("thread::spawn", "threads belong to the product"),
    ("thread::scope", "threads belong to the product"),
    ("thread::sleep", "time belongs to the caller"),
    ("println!", "return what there is to say"),
    ("print!(", "return what there is to say"),
    ("async fn", "state machines are driven by the caller"),
    (".await", "state machines are driven by the caller"),
    ("RandomState", "order and seeds must be the caller's"),
];

/// What no code says.
const BANNED_EVERYWHERE: [(&str, &str); 3] = [
    ("todo!(", "finish it or leave it out"),
    ("unimplemented!(", "finish it or leave it out"),
    ("dbg!(", "remove it"),
];

/// Module and file names that say nothing.
const EMPTY_NAMES: [&str; 8] = [
    "common", "util", "utils", "helpers", "helper", "types", "misc", "shared",
];

fn crate_of(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.split('/').next()
}

fn in_pure_crate(source: &Source) -> bool {
    crate_of(&source.path).is_some_and(|name| PURE.contains(&name))
}

/// Whether this is the module that spells the banned words out.
fn spells_the_rules(source: &Source) -> bool {
    source.path.starts_with("crates/xtask/src/tidy/")
}

/// Whether code names this, rather than something that ends so.
fn names(code: &str, banned: &str) -> bool {
    code.match_indices(banned).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

fn assert_none(findings: Vec<String>, rule: &str) {
    assert!(findings.is_empty(), "{rule}:\n{}", findings.join("\n"));
}

#[test]
fn pure_crates_know_nothing_of_the_world() {
    let mut findings = Vec::new();
    for source in repository().iter().filter(|s| s.is_rust()) {
        if !in_pure_crate(source) || source.is_test_only() {
            continue;
        }
        for (number, line) in source.shipped_lines() {
            let code = line.split(" // ").next().unwrap_or(line);
            for (banned, instead) in BANNED_IN_PURE {
                if names(code, banned) {
                    findings.push(format!("{}:{number}: {banned}: {instead}", source.path));
                }
            }
        }
    }
    assert_none(findings, "the lower crates take the world as arguments");
}

#[test]
fn nothing_is_left_undone() {
    let markers = [
        ["TO", "DO"].concat(),
        ["FIX", "ME"].concat(),
        ["XX", "X:"].concat(),
    ];
    let mut findings = Vec::new();
    for source in repository() {
        for (number, line) in (1..).zip(source.text.lines()) {
            for marker in &markers {
                if line.contains(marker.as_str()) {
                    findings.push(format!("{}:{number}: {marker}", source.path));
                }
            }
            for (banned, instead) in BANNED_EVERYWHERE {
                if source.is_rust() && !spells_the_rules(&source) && line.contains(banned) {
                    findings.push(format!("{}:{number}: {banned}: {instead}", source.path));
                }
            }
        }
    }
    assert_none(
        findings,
        "what is not done is in the issue tracker, not in the code",
    );
}

#[test]
fn tests_neither_sleep_nor_hide() {
    let banned = [
        ["#[ign", "ore"].concat(),
        ["should_", "panic"].concat(),
        ["sle", "ep("].concat(),
    ];
    let mut findings = Vec::new();
    for source in repository().iter().filter(|s| s.is_rust()) {
        if spells_the_rules(source) {
            continue;
        }
        for (number, line) in source.test_lines() {
            for word in &banned {
                if line.contains(word.as_str()) {
                    findings.push(format!("{}:{number}: {word}", source.path));
                }
            }
        }
    }
    assert_none(
        findings,
        "a test waits for a condition, runs always, and asserts what it expects",
    );
}

#[test]
fn names_say_something() {
    let mut findings = Vec::new();
    for source in repository().iter().filter(|s| s.is_rust()) {
        let path = source.path.trim_end_matches(".rs");
        for part in path.split('/') {
            let versioned = part
                .rsplit_once("_v")
                .is_some_and(|(_, n)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
            if EMPTY_NAMES.contains(&part) || versioned {
                findings.push(format!("{}: {part}", source.path));
            }
        }
        for (number, line) in source.shipped_lines() {
            let inline = line.trim().trim_start_matches("pub ").strip_prefix("mod ");
            let name = inline.map(|rest| rest.trim_end_matches([';', '{', ' ']));
            if name.is_some_and(|name| EMPTY_NAMES.contains(&name)) {
                findings.push(format!("{}:{number}: {}", source.path, line.trim()));
            }
        }
    }
    assert_none(findings, "a module is named after what it does");
}

#[test]
fn names_are_whole() {
    assert!(names("let f = File::open(path);", "File::open"));
    assert!(!names("let f = JournalFile::open(disk);", "File::open"));
}

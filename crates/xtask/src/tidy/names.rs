//! Names of types, and branches on a bool.

use super::sources::{Source, repository};

/// The most types, of 1,000, whose name is a bare participle. A few are the term of a standard or of a library.
const PARTICIPLES_PER_MILLE_MAX: usize = 10;

/// Participles that a suffix does not give away.
const IRREGULAR: [&str; 75] = [
    "Beaten",
    "Begun",
    "Bent",
    "Born",
    "Bought",
    "Bound",
    "Broken",
    "Brought",
    "Built",
    "Caught",
    "Chosen",
    "Cut",
    "Done",
    "Drawn",
    "Driven",
    "Fallen",
    "Felt",
    "Forgotten",
    "Found",
    "Frozen",
    "Given",
    "Gone",
    "Got",
    "Grown",
    "Heard",
    "Held",
    "Hidden",
    "Hung",
    "Kept",
    "Known",
    "Laid",
    "Left",
    "Lent",
    "Lost",
    "Made",
    "Meant",
    "Met",
    "Paid",
    "Proven",
    "Put",
    "Read",
    "Rebuilt",
    "Resent",
    "Rewritten",
    "Said",
    "Seen",
    "Sent",
    "Set",
    "Shown",
    "Shut",
    "Sold",
    "Sought",
    "Spent",
    "Split",
    "Spoken",
    "Stolen",
    "Stood",
    "Stuck",
    "Swept",
    "Taken",
    "Thrown",
    "Told",
    "Torn",
    "Understood",
    "Undone",
    "Unknown",
    "Unmet",
    "Unread",
    "Unseen",
    "Unsent",
    "Withheld",
    "Woken",
    "Won",
    "Worn",
    "Written",
];

/// Nouns that end like participles.
const NOUNS: [&str; 18] = [
    "Coding", "Crossing", "Embed", "Encoding", "Feed", "Finding", "Framing", "Grouping", "Heading",
    "Listing", "Mapping", "Matching", "Need", "Ping", "Ring", "Seed", "Setting", "String",
];

/// The name of the type that a line defines.
fn type_name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| {
        word.starts_with("pub") || word.starts_with("crate::") || *word == "unsafe"
    });
    if !matches!(words.next()?, "struct" | "enum" | "trait" | "union") {
        return None;
    }
    let name = words.next()?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
    Some(&name[..end.unwrap_or(name.len())])
}

/// Whether a name is one word, and that word a participle.
fn is_participle(name: &str) -> bool {
    let is_one_word = name.chars().skip(1).all(|c| c.is_ascii_lowercase());
    let is_regular = name.ends_with("ed") || name.ends_with("ing");
    let is_listed = IRREGULAR.binary_search(&name).is_ok();
    is_one_word && (is_listed || is_regular && NOUNS.binary_search(&name).is_err())
}

/// Whether a line is an arm for `true` or `false` alone.
fn is_bool_arm(line: &str) -> bool {
    let line = line.trim_start();
    let pattern = line
        .strip_prefix("true ")
        .or_else(|| line.strip_prefix("false "));
    pattern.is_some_and(|rest| rest.starts_with("=>") || rest.starts_with("if "))
}

fn code_lines(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(source.text.lines());
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

#[test]
fn types_are_nouns() {
    let mut findings = Vec::new();
    let mut count = 0;
    for source in repository().iter().filter(|s| s.is_rust()) {
        for (number, line) in code_lines(source) {
            let Some(name) = type_name(line) else {
                continue;
            };
            count += 1;
            if is_participle(name) {
                findings.push(format!("{}:{number}: {name}", source.path));
            }
        }
    }
    assert!(count > 1_000, "only {count} types were found");
    assert!(
        findings.len() * 1_000 <= count * PARTICIPLES_PER_MILLE_MAX,
        "a type is named by a noun: {} of {count} are bare participles:\n{}",
        findings.len(),
        findings.join("\n")
    );
}

#[test]
fn branches_on_a_bool_are_ifs() {
    let mut findings = Vec::new();
    for source in repository().iter().filter(|s| s.is_rust()) {
        for (number, line) in code_lines(source) {
            if is_bool_arm(line) {
                findings.push(format!("{}:{number}: {}", source.path, line.trim()));
            }
        }
    }
    assert!(
        findings.is_empty(),
        "a branch on a bool is an `if`:\n{}",
        findings.join("\n")
    );
}

#[test]
fn type_names_are_read_from_definitions() {
    assert_eq!(type_name("pub struct Cache<K, V> {"), Some("Cache"));
    assert_eq!(type_name("    enum Kept {"), Some("Kept"));
    let restricted = "pub(in crate::net::local) struct StreamNote {";
    assert_eq!(type_name(restricted), Some("StreamNote"));
    assert_eq!(type_name("pub trait Sink: Send {"), Some("Sink"));
    assert_eq!(type_name("struct Guard(Arc<State>);"), Some("Guard"));
    assert_eq!(type_name("let union = a.union(b);"), None);
    assert_eq!(type_name("impl Kept {"), None);
}

#[test]
fn participles_are_recognised() {
    assert!(IRREGULAR.is_sorted() && NOUNS.is_sorted());
    for name in ["Kept", "Opened", "Waiting", "Unread"] {
        assert!(is_participle(name), "{name}");
    }
    for name in ["Encoding", "KeptColumns", "Token", "Setting", "Request"] {
        assert!(!is_participle(name), "{name}");
    }
}

#[test]
fn only_arms_of_a_bool_alone_are_refused() {
    assert!(is_bool_arm("    true => 1,"));
    assert!(is_bool_arm("false if is_last => {"));
    assert!(!is_bool_arm("(true, false) => 1,"));
    assert!(!is_bool_arm("Some(true) => 1,"));
    assert!(!is_bool_arm("true"));
}

//! Flags that operators are told to set are flags of the program.

use std::collections::BTreeSet;
use std::fs;

use crate::run::root;

/// The flags in a text: `--` and letters, as in `--retain-size`.
fn flags(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("--").filter_map(|(at, _)| {
        let is_inside = text[..at].ends_with(|c: char| c == '-' || c.is_alphanumeric());
        let name = &text[at + 2..];
        let is_of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let end = name.find(|c| !is_of_name(c)).unwrap_or(name.len());
        let name = name[..end].trim_end_matches('-');
        (!is_inside && name.starts_with(|c: char| c.is_ascii_lowercase())).then_some(name)
    })
}

#[test]
fn flags_in_alerts_and_in_tables_of_guides_exist() {
    let reference = fs::read_to_string(root().join("docs/reference/cli.md")).unwrap();
    let known: BTreeSet<&str> = flags(&reference).collect();
    assert!(
        known.contains("retain-size") && known.len() > 50,
        "{known:?}"
    );
    let rules = root().join("contrib/prometheus/logpond.rules.yml");
    let mut texts = vec![(rules.clone(), fs::read_to_string(rules).unwrap())];
    for entry in fs::read_dir(root().join("docs/guides")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        // Commands of other programs stand in blocks and in sentences.
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        texts.push((path, rows.join("\n")));
    }
    let mut seen = 0;
    for (path, text) in &texts {
        for flag in flags(text) {
            seen += 1;
            let name = path.display();
            assert!(known.contains(flag), "{name}: there is no flag --{flag}");
        }
    }
    assert!(seen > 20, "{seen} flags");
}

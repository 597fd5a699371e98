//! Sizes of files, and what no text of the repository mentions.

use super::sources::{Source, repository};

/// The longest Rust file in lines; a `tests.rs` beside the module may be longer.
const FILE_LINES_MAX: usize = 800;

/// The longest line in characters, outside of tables and links.
const LINE_CHARS_MAX: usize = 160;

#[test]
fn files_are_readable_in_one_sitting() {
    let findings: Vec<String> = repository()
        .iter()
        .filter(|s| s.is_rust() && !s.path.ends_with("/tests.rs"))
        .map(|s| (s.text.lines().count(), &s.path))
        .filter(|(lines, _)| *lines > FILE_LINES_MAX)
        .map(|(lines, path)| format!("{path}: {lines} lines"))
        .collect();
    assert!(
        findings.is_empty(),
        "at most {FILE_LINES_MAX} lines a file: {findings:#?}"
    );
}

#[test]
fn lines_are_bounded() {
    let mut findings = Vec::new();
    for source in repository().iter().filter(|s| s.is_rust()) {
        if source.is_test_only() {
            continue;
        }
        for (number, line) in (1..).zip(source.text.lines()) {
            let literal = line.contains('"');
            if line.chars().count() > LINE_CHARS_MAX && !literal {
                findings.push(format!("{}:{number}", source.path));
            }
        }
    }
    assert!(findings.is_empty(), "lines too long: {findings:#?}");
}

#[test]
fn texts_mention_no_machine_and_no_registry() {
    // Assembled, so that this file does not mention them either.
    let homes = ["root", "home", "work", "Users"].map(|d| format!("/{d}/"));
    let registries = [
        ("crates", "io"),
        ("pypi", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
    ]
    .map(|(name, domain)| format!("{name}.{domain}"));
    let mut findings = Vec::new();
    for source in repository() {
        for (number, line) in (1..).zip(source.text.lines()) {
            for registry in &registries {
                if line.contains(registry.as_str()) {
                    findings.push(format!("{}:{number}: {registry}", source.path));
                }
            }
            for home in &homes {
                if is_absolute_mention(line, home) && !source.path.contains("/src/") {
                    findings.push(format!("{}:{number}: {home}", source.path));
                }
            }
        }
    }
    assert!(
        findings.is_empty(),
        "paths of a machine or registry hosts: {findings:#?}"
    );
}

/// Whether a line names this directory at the root of a path, as against within an URL or path.
fn is_absolute_mention(line: &str, directory: &str) -> bool {
    line.match_indices(directory).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| c.is_whitespace() || "\"'`(=:".contains(c))
    })
}

#[test]
fn text_files_end_with_one_newline_and_have_no_trailing_space() {
    // Rust is left to rustfmt, which knows literals.
    let kinds = [".md", ".toml", ".html", ".css", ".js", ".sh", ".py"];
    let mut findings = Vec::new();
    for source in repository() {
        if !kinds.iter().any(|kind| source.path.ends_with(kind)) {
            continue;
        }
        if !source.text.is_empty()
            && (!source.text.ends_with('\n') || source.text.ends_with("\n\n"))
        {
            findings.push(format!("{}: the end of the file", source.path));
        }
        for (number, line) in (1..).zip(source.text.lines()) {
            if line.ends_with([' ', '\t']) {
                findings.push(format!("{}:{number}: trailing space", source.path));
            }
        }
    }
    assert!(findings.is_empty(), "{findings:#?}");
}

/// CI runs no tests of documentation, so a block without a language would be code that nobody compiles.
#[test]
fn blocks_in_documentation_comments_name_their_language() {
    let mut findings = Vec::new();
    for source in repository().into_iter().filter(Source::is_rust) {
        let mut is_inside = false;
        for (number, line) in (1..).zip(source.text.lines()) {
            let line = line.trim_start();
            let comment = line.strip_prefix("///").or(line.strip_prefix("//!"));
            let Some(comment) = comment else {
                is_inside = false;
                continue;
            };
            if let Some(language) = comment.trim_start().strip_prefix("```") {
                is_inside = !is_inside;
                if is_inside && (language.is_empty() || language == "rust") {
                    findings.push(format!("{}:{number}", source.path));
                }
            }
        }
    }
    assert!(findings.is_empty(), "{findings:#?}");
}

//! Documents: links lead somewhere, formats have golden files, the map names every crate.

use std::path::Path;

use super::sources::{repository, root};
use crate::site::normal;

/// Targets of the links of a Markdown text, with line numbers; code blocks are left out.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        let mut rest = line;
        while let Some(at) = rest.find("](") {
            rest = &rest[at + 2..];
            if let Some(end) = rest.find(')') {
                found.push((number, &rest[..end]));
                rest = &rest[end..];
            }
        }
    }
    found
}

#[test]
fn links_lead_somewhere() {
    let root = root();
    let mut findings = Vec::new();
    for source in repository().iter().filter(|s| s.path.ends_with(".md")) {
        let directory = Path::new(&source.path).parent().unwrap_or(Path::new(""));
        for (number, link) in links(&source.text) {
            let target = link.split(['#', ' ']).next().unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            if !root.join(normal(&directory.join(target))).exists() {
                findings.push(format!("{}:{number}: {link}", source.path));
            }
        }
    }
    assert!(findings.is_empty(), "links to nowhere: {findings:#?}");
}

#[test]
fn paths_of_sources_exist() {
    let mut wrong = Vec::new();
    for page in repository()
        .iter()
        .filter(|file| file.path.ends_with(".md"))
    {
        for (number, line) in (1..).zip(page.text.lines()) {
            for code in line.split('`').skip(1).step_by(2) {
                let is_path = code.starts_with("crates/") && !code.contains([' ', '*', '<', '{']);
                if is_path && !root().join(code).exists() {
                    wrong.push(format!("{}:{number}: {code}", page.path));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "no such files: {wrong:#?}");
}

#[test]
fn every_format_names_a_golden_file() {
    let root = root();
    for source in repository() {
        if !source.path.starts_with("docs/format/") || source.path.ends_with("README.md") {
            continue;
        }
        let golden = source
            .text
            .split(['`', '(', ')', ' ', '\n'])
            .map(|word| word.trim_start_matches("../"))
            .filter(|word| word.starts_with("testdata/") && word.len() > "testdata/".len())
            .collect::<Vec<_>>();
        assert!(
            !golden.is_empty(),
            "{} names no file in testdata/",
            source.path
        );
        for file in golden {
            assert!(
                root.join(file).exists(),
                "{}: no such file {file}",
                source.path
            );
        }
    }
}

#[test]
fn the_documents_are_there() {
    let documents = [
        "README.md",
        "ARCHITECTURE.md",
        "DESIGN.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "LICENSE",
        "docs/format/journal.md",
        "docs/format/segment.md",
    ];
    for document in documents {
        assert!(root().join(document).is_file(), "no {document}");
    }
}

#[test]
fn the_site_has_every_page() {
    let sources = repository();
    let summary = sources.iter().find(|s| s.path == "docs/SUMMARY.md");
    let summary = &summary.expect("a summary").text;
    let named: Vec<&str> = links(summary).into_iter().map(|(_, link)| link).collect();
    let pages = sources.iter().filter_map(|source| {
        let page = source.path.strip_prefix("docs/")?;
        (page.ends_with(".md") && page != "SUMMARY.md").then_some(page)
    });
    let missing: Vec<&str> = pages.filter(|page| !named.contains(page)).collect();
    assert!(
        missing.is_empty(),
        "docs/SUMMARY.md does not name {missing:?}"
    );
}

#[test]
fn the_map_names_every_crate() {
    let sources = repository();
    let map = sources
        .iter()
        .find(|s| s.path == "ARCHITECTURE.md")
        .expect("a map");
    for source in &sources {
        let Some(name) = source.path.strip_prefix("crates/") else {
            continue;
        };
        let Some(name) = name.strip_suffix("/Cargo.toml") else {
            continue;
        };
        let named = map.text.contains(&format!("crates/{name}"));
        assert!(named, "ARCHITECTURE.md does not name crates/{name}");
    }
}

#[test]
fn the_one_test_command_is_what_ci_runs() {
    let sources = repository();
    let text = |path: &str| {
        let found = sources.iter().find(|s| s.path == path);
        &found.unwrap_or_else(|| panic!("no {path}")).text
    };
    let commands: Vec<&str> = text(".ci/run")
        .lines()
        .filter(|l| !l.starts_with('#') && !l.starts_with("cd ") && !l.trim().is_empty())
        .collect();
    assert_eq!(commands.len(), 1, ".ci/run has one command: {commands:?}");
    let command = commands[0].trim_start_matches("exec ");
    assert!(
        text("README.md").lines().any(|l| l.trim() == command),
        "README.md lacks {command}"
    );
}

#[test]
fn every_fuzz_entry_has_a_target() {
    let sources = repository();
    let targets: String = sources
        .iter()
        .filter(|s| s.path.starts_with("crates/fuzz/src/"))
        .map(|s| s.text.as_str())
        .collect();
    for source in sources
        .iter()
        .filter(|s| s.is_rust() && s.path.starts_with("crates/"))
    {
        for (number, line) in source.shipped_lines() {
            let Some(rest) = line.trim_start().strip_prefix("pub fn fuzz_") else {
                continue;
            };
            let name = rest.split('(').next().unwrap_or(rest);
            assert!(
                targets.contains(&format!("fuzz_{name}")),
                "{}:{number}: crates/fuzz has no target for fuzz_{name}",
                source.path
            );
        }
    }
}

#[test]
fn links_are_found() {
    let text = "[a](b.md) and [c](d/e.md#f)\n```\n[x](y)\n```\n";
    assert_eq!(links(text), [(1, "b.md"), (1, "d/e.md#f")]);
    assert_eq!(
        normal(Path::new("docs/format/../../a.md")),
        Path::new("a.md")
    );
}

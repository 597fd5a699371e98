//! The files of the repository and the parts of a Rust file that ship.

use std::fs;
use std::path::{Path, PathBuf};

/// The most files that are looked at; more means that a build directory slipped in.
const FILES_MAX: usize = 5_000;

/// Directories that hold no source of the project.
const SKIPPED: [&str; 7] = [
    "target",
    ".git",
    ".venv",
    "node_modules",
    "dist",
    "__pycache__",
    "corpus",
];

/// A text file of the repository.
pub(super) struct Source {
    /// Path relative to the repository, with `/`.
    pub(super) path: String,
    /// What is in it.
    pub(super) text: String,
}

impl Source {
    /// Whether this is Rust.
    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether the whole file exists for tests only.
    pub(super) fn is_test_only(&self) -> bool {
        self.path.ends_with("/tests.rs")
            || self.path.ends_with("_tests.rs")
            || self.path.contains("/tests/")
            || self.path.contains("/examples/")
    }

    /// The lines that ship, with their numbers: no comments, no `#[cfg(test)]` items.
    pub(super) fn shipped_lines(&self) -> Vec<(usize, &str)> {
        let mut lines = Vec::new();
        let mut numbered = (1..).zip(self.text.lines());
        while let Some((number, line)) = numbered.next() {
            if line.trim_start().starts_with("#[cfg(test)]") {
                skip_item(&mut numbered, line);
            } else if !line.trim_start().starts_with("//") {
                lines.push((number, line));
            }
        }
        lines
    }

    /// The lines that exist for tests only, with their numbers and without comments.
    pub(super) fn test_lines(&self) -> Vec<(usize, &str)> {
        let shipped: Vec<usize> = if self.is_test_only() {
            Vec::new()
        } else {
            self.shipped_lines().iter().map(|(n, _)| *n).collect()
        };
        (1..)
            .zip(self.text.lines())
            .filter(|(n, line)| {
                shipped.binary_search(n).is_err() && !line.trim_start().starts_with("//")
            })
            .collect()
    }
}

/// Skips the item after an attribute: up to a line with the attribute's indentation that ends it.
fn skip_item<'a>(lines: &mut impl Iterator<Item = (usize, &'a str)>, attribute: &str) {
    let indent = attribute.len() - attribute.trim_start().len();
    for (_, line) in lines {
        let trimmed = line.trim_start();
        let same_indent = line.len() - trimmed.len() == indent;
        if same_indent && (trimmed.ends_with(';') || trimmed.starts_with('}')) {
            return;
        }
    }
}

/// The root of the repository.
pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("the crate is in crates/xtask")
        .to_path_buf()
}

/// All text files of the repository, sorted by path. Lock files and test data are left out.
pub(super) fn repository() -> Vec<Source> {
    let root = root();
    let mut found = Vec::new();
    let mut directories = vec![root.clone()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("a directory of the repository") {
            let entry = entry.expect("a directory entry");
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = entry.path();
            let is_data = path.strip_prefix(&root) == Ok(Path::new("testdata"));
            if is_data || SKIPPED.contains(&&*name) {
                continue;
            }
            if path.is_dir() {
                directories.push(path);
            } else if let Some(source) = read(&root, &path, &name) {
                found.push(source);
            }
        }
        assert!(found.len() <= FILES_MAX, "too many files below {root:?}");
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Reads a file if it is text of ours.
fn read(root: &Path, path: &Path, name: &str) -> Option<Source> {
    if name.ends_with(".lock") || name == "LICENSE" {
        return None;
    }
    let text = String::from_utf8(fs::read(path).ok()?).ok()?;
    let path = path.strip_prefix(root).ok()?.to_string_lossy().into_owned();
    Some(Source { path, text })
}

#[test]
fn test_items_do_not_ship() {
    let text = "fn a() {}\n#[cfg(test)]\nuse x;\n// c\nfn b() {}\n#[cfg(test)]\nmod tests {\n    fn c() {\n    }\n}\nfn d() {}\n";
    let source = Source {
        path: "crates/x/src/a.rs".into(),
        text: text.into(),
    };
    let numbers = |lines: Vec<(usize, &str)>| lines.iter().map(|(n, _)| *n).collect::<Vec<_>>();
    assert_eq!(numbers(source.shipped_lines()), [1, 5, 11]);
    assert_eq!(numbers(source.test_lines()), [2, 3, 6, 7, 8, 9, 10]);
}

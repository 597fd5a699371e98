//! `cargo xtask site`: the documentation as a site below `target/site`, by mdBook.
//!
//! The site has the pages of `docs/` and those at the root of the repository. A page `README.md` is the index of its
//! directory. Links to other files of the repository become text, since the site does not have them.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use crate::run::{Outcome, root, target_directory};

/// Pages at the root of the repository.
const ROOT_PAGES: [&str; 6] = [
    "README.md",
    "UPGRADING.md",
    "CHANGELOG.md",
    "ARCHITECTURE.md",
    "DESIGN.md",
    "CONTRIBUTING.md",
];

/// The variable with the path of mdBook.
const MDBOOK: &str = "LOGPOND_MDBOOK";

/// Builds the site.
pub(crate) fn run(rest: &[String]) -> Outcome<()> {
    if let Some(unknown) = rest.first() {
        return Err(format!("site takes no argument '{unknown}'"));
    }
    let site = target_directory().join("site");
    let source = site.join("src");
    let _ = fs::remove_dir_all(&site);
    let pages = pages()?;
    for page in &pages {
        let to = source.join(site_path(page));
        let directory = to.parent().unwrap_or(&source);
        fs::create_dir_all(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
        let text = read(&root().join(page))?;
        let text = with_site_links(&text, page, &pages);
        fs::write(&to, text).map_err(|e| format!("{}: {e}", to.display()))?;
    }
    let summary = summary(&read(&root().join("docs/SUMMARY.md"))?);
    fs::write(source.join("SUMMARY.md"), summary).map_err(|e| e.to_string())?;
    fs::copy(root().join("docs/book.toml"), site.join("book.toml")).map_err(|e| e.to_string())?;
    let program = std::env::var_os(MDBOOK).unwrap_or_else(|| "mdbook".into());
    let status = Command::new(&program).arg("build").arg(&site).status();
    let status = status.map_err(|error| {
        format!(
            "mdbook cannot be run ({error}): install it by 'cargo install mdbook', or set {MDBOOK}"
        )
    })?;
    if !status.success() {
        return Err("mdbook failed".to_owned());
    }
    println!("{}", site.join("book/index.html").display());
    Ok(())
}

/// The pages and pictures of the site, by their paths in the repository.
fn pages() -> Outcome<Vec<PathBuf>> {
    let mut pages: Vec<PathBuf> = ROOT_PAGES.iter().map(PathBuf::from).collect();
    for directory in ["docs", "docs/guides", "docs/format", "docs/reference"] {
        let entries = fs::read_dir(root().join(directory));
        for entry in entries.map_err(|e| format!("{directory}: {e}"))? {
            let name = entry.map_err(|e| e.to_string())?.file_name();
            let name = name.to_string_lossy().into_owned();
            let is_shown = name.ends_with(".md") || name.ends_with(".svg");
            if is_shown && name != "SUMMARY.md" {
                pages.push(Path::new(directory).join(name));
            }
        }
    }
    Ok(pages)
}

/// The path of a page in the site.
fn site_path(page: &Path) -> PathBuf {
    if page.ends_with("README.md") {
        page.with_file_name("index.md")
    } else {
        page.to_path_buf()
    }
}

/// The text of a page, whose links lead to pages of the site or are text.
fn with_site_links(text: &str, page: &Path, pages: &[PathBuf]) -> String {
    let directory = page.parent().unwrap_or(Path::new(""));
    let mut out = String::with_capacity(text.len());
    let mut in_code = false;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            out.push_str(line);
        } else {
            write_line(line, directory, pages, &mut out);
        }
    }
    out
}

fn write_line(line: &str, directory: &Path, pages: &[PathBuf], out: &mut String) {
    let mut rest = line;
    while let Some(at) = rest.find("](") {
        let (before, link) = (&rest[..at], &rest[at + 2..]);
        let (Some(open), Some(end)) = (before.rfind('['), link.find(')')) else {
            out.push_str(&rest[..at + 2]);
            rest = link;
            continue;
        };
        let (target, after) = (&link[..end], &link[end + 1..]);
        let (path, anchor) = target.split_at(target.find('#').unwrap_or(target.len()));
        let is_other = path.is_empty() || path.contains("://");
        let page = normal(&directory.join(path));
        if is_other || pages.contains(&page) {
            out.push_str(before);
            out.push_str("](");
            out.push_str(&path.replace("README.md", "index.md"));
            out.push_str(anchor);
            out.push(')');
        } else {
            out.push_str(&before[..open]);
            out.push_str(&before[open + 1..]);
        }
        rest = after;
    }
    out.push_str(rest);
}

/// The path without `.` and `..`.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(result.pop()),
            Component::CurDir => {}
            other => result.push(other),
        }
    }
    result
}

/// The summary of the site, from that of `docs/`.
fn summary(of_docs: &str) -> String {
    let of_docs = of_docs
        .replace("](", "](docs/")
        .replace("README.md", "index.md");
    let title = "# Summary\n";
    let start = "\n[Logpond](index.md)\n[Upgrading](UPGRADING.md)\n[Changes](CHANGELOG.md)";
    let of_docs = of_docs.replacen(title, &format!("{title}{start}"), 1);
    let internals = "# Internals\n\n- [Architecture](ARCHITECTURE.md)\n- [Design](DESIGN.md)\n- [Contributing](CONTRIBUTING.md)\n";
    of_docs.replacen("# Internals\n\n", internals, 1)
}

fn read(path: &Path) -> Outcome<String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_pages_of_the_site_or_are_text() {
        let pages = ["README.md", "docs/README.md", "docs/a.md"].map(PathBuf::from);
        let text = "[a](a.md#x), [docs](README.md) and [root](../README.md#y); [code](../crates/x), \
                    [web](https://example.org/), [here](#z) [1]\n```\n[a](b)\n```\n";
        assert_eq!(
            with_site_links(text, Path::new("docs/b.md"), &pages),
            "[a](a.md#x), [docs](index.md) and [root](../index.md#y); code, \
             [web](https://example.org/), [here](#z) [1]\n```\n[a](b)\n```\n"
        );
    }

    #[test]
    fn the_summary_has_all_pages() {
        let summary = summary(&read(&root().join("docs/SUMMARY.md")).unwrap());
        let is_page = |page: &PathBuf| page.extension().is_some_and(|is| is == "md");
        for page in pages().unwrap().into_iter().filter(is_page) {
            let link = format!("]({})", site_path(&page).display());
            assert!(summary.contains(&link), "{link}");
        }
    }
}

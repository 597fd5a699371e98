//! The language of the pages: sentences are short and do not open as questions (CONTRIBUTING.md,
//! "Language").
//!
//! The checks cover paragraphs, items of lists, headings and cells of tables, but no code blocks. A
//! span of code is one word, and so is a list of them.

use super::sources::{Source, repository};

/// The most words of a sentence.
const WORDS_MAX: usize = 30;

/// Words that open only questions.
const OPENINGS: [&str; 7] = [
    "What", "Who", "Which", "Whether", "Where", "Whoever", "Whatever",
];

/// Words that end with a full stop within a sentence.
const ABBREVIATIONS: [&str; 5] = ["e.g.", "i.e.", "etc.", "vs.", "cf."];

/// Replaces a span of code.
const CODE: char = '\u{fffc}';

/// The pages that pass, sorted. Add each page that passes; never remove one.
const PAGES: &[&str] = &[
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "README.md",
    "UPGRADING.md",
    "docs/README.md",
    "docs/SUMMARY.md",
    "docs/alerts.md",
    "docs/backup.md",
    "docs/benchmarks-cluster.md",
    "docs/benchmarks-dashboard.md",
    "docs/benchmarks-listener.md",
    "docs/benchmarks-proxy.md",
    "docs/benchmarks-sources.md",
    "docs/benchmarks.md",
    "docs/bucket.md",
    "docs/cluster-planning.md",
    "docs/cluster.md",
    "docs/elasticsearch.md",
    "docs/format/alerts.md",
    "docs/format/backup.md",
    "docs/format/bucket.md",
    "docs/format/cluster.md",
    "docs/format/inventory.md",
    "docs/format/journal.md",
    "docs/format/open-table.md",
    "docs/format/queries.md",
    "docs/format/resends.md",
    "docs/format/retention.md",
    "docs/format/scrub.md",
    "docs/format/segment.md",
    "docs/formats.md",
    "docs/forward.md",
    "docs/grafana.md",
    "docs/guides/collect.md",
    "docs/guides/from-elasticsearch.md",
    "docs/guides/from-loki.md",
    "docs/guides/from-rsyslog-and-journald.md",
    "docs/guides/from-splunk-and-graylog.md",
    "docs/guides/from-victorialogs.md",
    "docs/guides/operate.md",
    "docs/guides/start.md",
    "docs/http.md",
    "docs/install.md",
    "docs/kafka.md",
    "docs/logql.md",
    "docs/mcp.md",
    "docs/memory.md",
    "docs/open-tables.md",
    "docs/postgres.md",
    "docs/proxy.md",
    "docs/query.md",
    "docs/reference/cli.md",
    "docs/rules.md",
    "docs/security.md",
    "docs/sources.md",
    "docs/sql.md",
    "docs/systemd-journal.md",
];

/// True if the rules are for this file.
fn is_page(source: &Source) -> bool {
    let roots = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "UPGRADING.md",
    ];
    let path = &source.path;
    roots.contains(&&**path) || path.starts_with("docs/") && path.ends_with(".md")
}

/// Headings, paragraphs, items and cells of a Markdown text, with the numbers of their first lines.
fn blocks(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, String)> = None;
    let (mut in_fence, mut in_code, mut in_list, mut after_blank) = (false, false, false, true);
    for (number, line) in (1..).zip(text.lines()) {
        let trimmed = line.trim();
        let indent = line.len() - line.trim_start().len();
        if trimmed.starts_with("```") {
            in_fence = !in_fence;
        }
        if in_fence || trimmed.is_empty() || trimmed.starts_with("```") {
            found.extend(open.take());
            after_blank = true;
            continue;
        }
        let item = item_of(trimmed);
        if indent == 0 {
            in_list = item.is_some() || in_list && !after_blank;
        }
        let code_indent = if in_list { 6 } else { 4 };
        in_code = indent >= code_indent && open.is_none() && (in_code || after_blank);
        after_blank = false;
        if in_code {
            continue;
        }
        let is_row = trimmed.starts_with('|');
        if is_row || item.is_some() || trimmed.starts_with('#') {
            found.extend(open.take());
        }
        if is_row {
            found.extend(cells(trimmed).map(|cell| (number, cell)));
        } else if trimmed.starts_with('#') {
            found.push((number, trimmed.trim_start_matches('#').trim().to_owned()));
        } else {
            let block = &mut open.get_or_insert_with(|| (number, String::new())).1;
            block.push_str(item.unwrap_or(trimmed));
            block.push(' ');
        }
    }
    found.extend(open);
    found
}

/// The text of an item of a list.
fn item_of(line: &str) -> Option<&str> {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = (digits.len() < line.len()).then(|| digits.strip_prefix(". "));
    line.strip_prefix("- ").or(numbered.flatten())
}

/// The parts of the cells of a row, between semicolons.
fn cells(row: &str) -> impl Iterator<Item = String> {
    let row = plain(row).replace("\\|", " ");
    let parts: Vec<String> = row.split(['|', ';']).map(|c| c.trim().to_owned()).collect();
    parts.into_iter()
}

/// The text without marks and targets of links, with a character for each span of code.
fn plain(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '[', ']', '*']) {
        result.push_str(&rest[..at]);
        let mark = &rest[at..];
        let ticks = mark.len() - mark.trim_start_matches('`').len();
        rest = &mark[ticks.max(1)..];
        if ticks > 0 {
            let fence = &mark[..ticks];
            rest = rest.split_once(fence).map_or("", |(_, behind)| behind);
            result.push(CODE);
        } else if mark.starts_with("](") {
            rest = rest.split_once(')').map_or("", |(_, behind)| behind);
        }
    }
    result.push_str(rest);
    result
}

/// The sentences of a plain text, as words.
fn sentences(text: &str) -> Vec<Vec<&str>> {
    let mut found = vec![Vec::new()];
    for word in text.split_whitespace() {
        found.last_mut().expect("never empty").push(word);
        let bare = word.trim_end_matches([')', '"', '\'']);
        if bare.ends_with(['.', '?', '!']) && !ABBREVIATIONS.contains(&bare) {
            found.push(Vec::new());
        }
    }
    found.retain(|sentence| !sentence.is_empty());
    found
}

/// The number of words; spans of code between which there are only commas, "and" and "or" are one.
fn word_count(sentence: &[&str]) -> usize {
    let (mut count, mut joining, mut in_codes) = (0, 0, false);
    for word in sentence {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric() && c != CODE);
        if bare.is_empty() {
            continue;
        }
        if in_codes && matches!(bare, "and" | "or") {
            joining += 1;
        } else if bare.trim_matches(CODE).is_empty() {
            count += usize::from(!in_codes);
            (joining, in_codes) = (0, true);
        } else {
            count += 1 + joining;
            (joining, in_codes) = (0, false);
        }
    }
    count + joining
}

/// Violations in a page: the line, the rule and the sentence.
fn findings(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, block) in blocks(text) {
        for sentence in sentences(&plain(&block)) {
            let count = word_count(&sentence);
            let first = sentence[0].trim_start_matches('(');
            let opening = first.split(|c: char| !c.is_alphabetic()).next();
            let asks = sentence.last().is_some_and(|word| word.contains('?'));
            if opening.is_some_and(|word| OPENINGS.contains(&word)) && !asks {
                found.push(format!(
                    "{number}: opens with {first}: {}",
                    sentence.join(" ")
                ));
            }
            if count > WORDS_MAX {
                found.push(format!("{number}: {count} words: {}", sentence.join(" ")));
            }
        }
    }
    found
}

#[test]
fn listed_pages_are_plain() {
    assert!(PAGES.is_sorted_by(|a, b| a < b), "sorted, each page once");
    let sources = repository();
    let mut found = Vec::new();
    for page in PAGES {
        let source = sources.iter().find(|s| s.path == *page && is_page(s));
        let source = source.unwrap_or_else(|| panic!("no page {page}"));
        let of_page = findings(&source.text);
        found.extend(of_page.iter().map(|finding| format!("{page}:{finding}")));
    }
    assert!(
        found.is_empty(),
        "CONTRIBUTING.md, \"Language\": {found:#?}"
    );
}

#[test]
fn plain_pages_are_listed() {
    let mut missing = Vec::new();
    for source in repository().iter().filter(|s| is_page(s)) {
        let path = &*source.path;
        if !PAGES.contains(&path) && findings(&source.text).is_empty() {
            missing.push(path.to_owned());
        }
    }
    assert!(
        missing.is_empty(),
        "pages that pass; add them to PAGES: {missing:#?}"
    );
}

#[test]
fn plain_text_passes() {
    let long = "word ".repeat(WORDS_MAX - 1);
    let codes = "`a`, ".repeat(WORDS_MAX);
    let good = [
        "# Tokens\n\nThe server requires tokens. It reads them at the start.\n".to_owned(),
        "What is a segment? Which file has it?\n".to_owned(),
        "An option, e.g. a flag, overrides it. See [What is kept](a.md#what-is-kept).\n".to_owned(),
        "The program prints `What` and \"Where it is\".\n".to_owned(),
        format!("{long}end. {long}end.\n"),
        format!("- {long}end\n- {long}end\n1. {long}end\n"),
        format!("| {long} | {long} |\n| --- | --- |\n| {long}; {long} | `a\\|b` |\n"),
        format!("{long}\n\n    What {long} {long}\n\n```text\nWho {long} {long}\n```\n"),
        format!("- Item\n\n      What {long} {long}\n"),
        format!("The fields are {codes}`b` and `c`.\n"),
    ];
    for text in good {
        assert_eq!(findings(&text), [""; 0], "{text}");
    }
}

#[test]
fn other_text_is_found() {
    let long = "word ".repeat(WORDS_MAX);
    let bad = [
        "What asks Loki asks here.\n".to_owned(),
        "It stops. **Whoever** connects waits.\n".to_owned(),
        "- Kept: all\n- Where it is not, it waits\n".to_owned(),
        "## Who is told\n".to_owned(),
        "| a | b |\n| --- | --- |\n| x | Which of them; y |\n".to_owned(),
        "Yes. (What is left is sent.)\n".to_owned(),
        "`a` is it. [Whether](b.md) it is so, is said.\n".to_owned(),
        format!("{long}end.\n"),
        format!("word\n{long}\n"),
        format!("A list:\n\n- item\n  {long}\n"),
        format!("| {long}end |\n"),
        format!("{}`a` end.\n", "word `a`, ".repeat(WORDS_MAX / 2)),
    ];
    for text in bad {
        assert_eq!(findings(&text).len(), 1, "{text}");
    }
    let text = "Text.\n\n    code\n\nWho is it, was said\nbefore. What now, was not.\n";
    let lines: Vec<String> = findings(text);
    assert_eq!(
        lines,
        [
            "5: opens with Who: Who is it, was said before.",
            "5: opens with What: What now, was not."
        ]
    );
}

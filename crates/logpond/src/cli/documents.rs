//! Commands in the documentation: the parser accepts every line of a code block that runs this program.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;

use super::help;

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages with commands: those at the root, of the documentation and of its guides.
fn pages() -> Vec<PathBuf> {
    let directories = ["", "docs", "docs/guides"];
    let entries = directories.iter().flat_map(|directory| {
        let directory = root().join(directory);
        fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
    });
    let mut pages: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.retain(|path| !path.ends_with("CONTRIBUTING.md"));
    pages.sort_unstable();
    pages
}

/// Lines of code blocks, continued ones joined, with the numbers of their first lines.
fn code_lines(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let (mut in_fence, mut is_continued) = (false, false);
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
            continue;
        }
        if !(in_fence || line.starts_with("    ")) {
            is_continued = false;
            continue;
        }
        let part = line.trim().trim_end_matches('\\').trim_end();
        match found.last_mut() {
            Some((_, last)) if is_continued => {
                last.push(' ');
                last.push_str(part);
            }
            _ => found.push((number, part.to_owned())),
        }
        is_continued = line.ends_with('\\');
    }
    found
}

/// The commands of a line as a shell splits them: words without quotation marks, up to a remark.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let (mut word, mut quote) = (None::<String>, None);
    let mut letters = line.chars().peekable();
    while let Some(c) = letters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('"'), '\\') => word.get_or_insert_default().extend(letters.next()),
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '\\') => word.get_or_insert_default().extend(letters.next()),
            (None, '#') if word.is_none() => break,
            (None, c) if c.is_whitespace() => {
                commands.last_mut().unwrap().extend(word.take());
            }
            (None, '|' | ';' | '&' | '<' | '>') => {
                commands.last_mut().unwrap().extend(word.take());
                // The file of a redirection becomes a command that is not ours.
                commands.push(Vec::new());
            }
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    commands.last_mut().unwrap().extend(word);
    commands
}

/// The words from the name of this program on, if the command runs it.
fn own(command: &[String]) -> Option<&[String]> {
    let is_prefix = |word: &String| {
        ["sudo", "exec", "time", "native", "$"].contains(&word.as_str())
            || word
                .split_once('=')
                .is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
    };
    let start = command.iter().position(|word| !is_prefix(word))?;
    let own = command.get(start..)?;
    let is_program = own
        .first()
        .is_some_and(|word| word == "logpond" || word.ends_with("/logpond"));
    is_program.then_some(own)
}

/// Commands between grave accents outside of code blocks, with the numbers of their lines.
fn code_spans(text: &str) -> Vec<(usize, String)> {
    let lines = (1..).zip(text.lines());
    let lines = lines.filter(|(_, line)| !line.starts_with("    "));
    let spans = lines.flat_map(|(number, line)| {
        let spans = line.split('`').skip(1).step_by(2);
        spans.map(move |span| (number, span.to_owned()))
    });
    spans.collect()
}

/// The reason why the parser refuses a command.
fn refusal(words: &[String], may_lack_arguments: bool) -> Option<String> {
    // Variables of the shell have several words.
    let words = words.iter().filter(|word| !word.starts_with('$'));
    let error = help::read(words.map(OsString::from)).err()?;
    let is_short = may_lack_arguments
        && matches!(
            error.kind(),
            ErrorKind::MissingRequiredArgument
                | ErrorKind::MissingSubcommand
                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        );
    let is_refused = error.use_stderr() && !is_short;
    is_refused.then(|| {
        error
            .to_string()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    })
}

#[test]
fn commands_of_the_documentation_are_accepted() {
    let (mut count, mut refused) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let blocks = code_lines(&text).into_iter().map(|line| (line, false));
        let is_guide = page
            .parent()
            .is_some_and(|directory| directory.ends_with("guides"));
        let spans = code_spans(&text).into_iter().filter(|_| is_guide);
        for ((number, line), is_span) in blocks.chain(spans.map(|span| (span, true))) {
            for command in commands(&line) {
                // Some commands are shown in part.
                let is_whole = !command.iter().any(|word| word == "…");
                let Some(words) = own(&command).filter(|_| is_whole) else {
                    continue;
                };
                count += 1;
                if let Some(reason) = refusal(words, is_span) {
                    let page = page.file_name().unwrap().to_string_lossy();
                    refused.push(format!("{page}:{number}: {line}: {reason}"));
                }
            }
        }
    }
    assert!(count > 200, "only {count} commands were found");
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn lines_are_split_as_by_a_shell() {
    let table: [(&str, &[&[&str]]); 4] = [
        (
            r#"tail -F x | logpond forward -l 'a=b c' # all"#,
            &[&["tail", "-F", "x"], &["logpond", "forward", "-l", "a=b c"]],
        ),
        (
            r#"logpond sql "SELECT \"a\"" > out.csv"#,
            &[&["logpond", "sql", "SELECT \"a\""], &["out.csv"]],
        ),
        ("logpond query ''", &[&["logpond", "query", ""]]),
        (
            "LOGPOND_ADDR=x logpond tail &",
            &[&["LOGPOND_ADDR=x", "logpond", "tail"], &[]],
        ),
    ];
    for (line, wanted) in table {
        assert_eq!(commands(line), wanted, "{line}");
    }
    let words: Vec<String> = ["A=b", "logpond", "tail"].map(str::to_owned).to_vec();
    assert_eq!(own(&words), Some(&words[1..]));
    assert_eq!(own(&["curl".to_owned()]), None);
}

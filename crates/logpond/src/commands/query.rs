//! `logpond query`: prints the records that match, from a server or from files.

pub(super) mod sink;
mod local;
mod page;
pub(super) mod remote;
pub(super) mod follow;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use logpond_search::Matcher;
use logpond_search::hints::shell_word;

use self::sink::Sink;
use super::ending::AnswerFooter;
use super::listing::{lacks, note_nothing};
use super::selection::{ResolvedSelection, meaning, range_of};
use super::{Exit, Failure, variable};
use crate::cli::Query;
use logpond_client::Trailer;
use logpond_host::terminal::{self, note};
use logpond_render::Format;
use logpond_render::{Style, html, quantity};

/// Records printed on a terminal unless another number is asked for.
const LIMIT_ON_TERMINAL: u64 = 1000;

/// Records printed before those that are followed.
const LIMIT_BEFORE_FOLLOWING: u64 = 10;

/// Bytes that may be held to print the newest records oldest first.
pub(super) const HELD_BYTES_MAX: usize = 256 << 20;

/// What was asked for, apart from where.
struct Question {
    meaning: ResolvedSelection,
    matcher: Matcher,
    /// Newest records only; 0 is all.
    limit: u64,
    /// Whether the limit is ours and not the user's.
    is_limit_default: bool,
    before: u32,
    after: u32,
    format: Format,
}

/// Where records come from.
enum Origin {
    Server,
    /// `-` is standard input.
    Files(Vec<PathBuf>),
}

pub(super) fn run(mut args: Query) -> Result<Exit, Failure> {
    // A number is something to print, too.
    args.count &= !args.quiet;
    let (text, origin) = split_words(&args.words, &args.files)?;
    let lists = [&args.access_log, &args.time_field, &args.message_field];
    let declares = lists.iter().any(|list| !list.is_empty()) || args.timezone.is_some();
    if matches!(origin, Origin::Server) && declares {
        return Err(
            "--access-log, --time-field, --message-field and --timezone are for files (--file FILE); a \
             server has read its records by its own"
                .into(),
        );
    }
    if args.output == Some(Format::Html) {
        page::refuse_other_flags(&args)?;
    }
    let meaning = meaning(text.as_deref(), &args.selection)?;
    let matcher = Matcher::new(&meaning.filter).map_err(|error| error.to_string())?;
    let is_terminal = terminal::is_output();
    let is_page = args.output == Some(Format::Html);
    let limit_default = match (args.follow, is_terminal && !args.count) {
        (true, _) => LIMIT_BEFORE_FOLLOWING,
        (false, _) if is_page => html::ROWS_DEFAULT,
        (false, true) => LIMIT_ON_TERMINAL,
        (false, false) => 0,
    };
    let format_default = if is_terminal {
        Format::Pretty
    } else {
        Format::Line
    };
    let question = Question {
        meaning,
        matcher,
        limit: if args.quiet {
            1
        } else {
            args.limit.unwrap_or(limit_default)
        },
        is_limit_default: args.limit.is_none() && !args.quiet,
        before: args.before_context.or(args.context).unwrap_or(0),
        after: args.after_context.or(args.context).unwrap_or(0),
        format: args.output.unwrap_or(format_default),
    };
    let mut sink = open_sink(&args, &question, is_terminal);
    let asked = page::source(&args, &origin);
    let mut trailer = match (origin, args.follow) {
        (Origin::Server, false) => remote::run(&args, &question, &mut sink),
        (Origin::Server, true) => follow::run(&args, &question, &mut sink),
        (Origin::Files(_), true) => {
            Err("--follow asks a server; for a file: tail -F FILE | logpond query -".into())
        }
        (Origin::Files(files), false) => local::run(&args, &question, &files, &mut sink),
    };
    if let Ok(trailer) = &mut trailer
        && question.format == Format::Html
    {
        sink.conclude(page::facts(&args, &question, asked, trailer)?);
    }
    // Half a page would pass for a whole one.
    let is_shown = trailer.is_ok() || question.format != Format::Html;
    let closed = if is_shown { sink.close() } else { Ok(()) };
    let trailer = trailer?;
    closed?;
    Ok(report(&args, &question, &trailer))
}

/// `logpond tail`: a query that is followed.
pub(super) fn tail(mut args: Query) -> Result<Exit, Failure> {
    let wrong = [
        (args.count, "--count"),
        (args.reverse, "--reverse"),
        (args.selection.strict, "--strict"),
        (args.quiet, "--quiet"),
    ];
    if let Some((_, flag)) = wrong.into_iter().find(|(is_given, _)| *is_given) {
        return Err(format!(
            "tail goes on with what arrives, so {flag} means nothing; see 'logpond query'"
        )
        .into());
    }
    if let Some(file) = args.words.iter().find(|word| PathBuf::from(word).is_file()) {
        let file = file.to_string_lossy();
        note(&format!(
            "logpond: '{file}' is searched for as text; 'logpond forward --tail {file}' sends the \
             file's records to a server"
        ));
    }
    args.follow = true;
    run(args)
}

/// Tells TEXT from files among the arguments: with `--file`, names of existing files are files.
fn split_words(
    words: &[OsString],
    files: &[PathBuf],
) -> Result<(Option<OsString>, Origin), Failure> {
    let is_file =
        |word: &OsStr| word == "-" || (!files.is_empty() && PathBuf::from(word).is_file());
    let (more, texts): (Vec<&OsString>, Vec<&OsString>) =
        words.iter().partition(|word| is_file(word));
    if texts.len() > 1 {
        let joined: Vec<_> = texts.iter().map(|text| text.to_string_lossy()).collect();
        let named = texts
            .iter()
            .rev()
            .find(|text| PathBuf::from(text).is_file());
        let error = if !files.is_empty() {
            format!("no such files, or several texts: {}", joined.join(", "))
        } else if named.is_some() {
            // As with grep.
            format!(
                "several texts: {}; to search a file instead of a server, name it by --file",
                joined.join(", ")
            )
        } else {
            let text = joined.join(" ");
            format!("several texts: quote them to search for one: '{text}'")
        };
        return Err(error.into());
    }
    let files: Vec<PathBuf> = files
        .iter()
        .cloned()
        .chain(more.into_iter().map(PathBuf::from))
        .collect();
    let origin = if files.is_empty() {
        Origin::Server
    } else {
        Origin::Files(files)
    };
    Ok((texts.first().map(|text| (*text).clone()), origin))
}

fn open_sink(args: &Query, question: &Question, is_terminal: bool) -> Sink {
    let colour = terminal::colours(args.color, is_terminal, &variable);
    let zone = if args.utc {
        jiff::tz::TimeZone::UTC
    } else {
        question.meaning.zone.clone()
    };
    let spans = question.matcher.clone();
    let style = Style {
        colour,
        zone,
        spans: Some(Box::new(move |text| spans.spans(text))),
        defuses_formulas: args.defuse,
    };
    let is_whole = question.format == Format::Html;
    let paging = if args.follow || args.count || args.quiet || is_whole {
        logpond_host::terminal::When::Never
    } else {
        args.paging
    };
    let has_colours = style.colour && question.format == Format::Pretty;
    let hands = terminal::hands(args.control_characters, has_colours);
    Sink::open(question.format, style, &args.only_fields, (paging, hands))
}

/// Says on standard error what belongs to the answer but is no data; gives the exit code.
fn report(args: &Query, question: &Question, trailer: &Trailer) -> Exit {
    let named = args.files.iter().map(|file| {
        let file = file.to_string_lossy();
        format!(" --file {}", shell_word(&file))
    });
    let ending = AnswerFooter {
        command: format!("query{}", named.collect::<String>()),
        selection: &args.selection,
        stats: args.stats,
    };
    ending.note_stats(trailer);
    if trailer.more && question.is_limit_default && !args.count {
        let shown = quantity::count(trailer.rows);
        note(&format!("-- {shown} shown, more exist: add -n 0 --"));
    }
    if let Some(lacking) = lacks(trailer) {
        return lacking;
    }
    if trailer.rows > 0 {
        if !args.quiet {
            ending.note_range(trailer.from.as_deref());
        }
        return Exit::Found;
    }
    if !args.quiet {
        // Files are searched from their beginning.
        let is_server = args.files.is_empty() && !args.words.iter().any(|word| word == "-");
        let range = if is_server {
            range_of(&args.selection)
        } else {
            ""
        };
        let none = format!("no records match{range}");
        note_nothing(&none, trailer.newest.as_deref());
        ending.note_hints(&trailer.hints);
    }
    Exit::None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_files_are_told_apart() {
        let here = tempfile::NamedTempFile::new().unwrap();
        let here = here.path().as_os_str().to_owned();
        let split = |words: &[&OsStr], files: &[&OsStr]| {
            let words: Vec<OsString> = words.iter().map(|w| w.to_os_string()).collect();
            let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
            split_words(&words, &files).map(|(text, origin)| {
                let files = match origin {
                    Origin::Server => 0,
                    Origin::Files(files) => files.len(),
                };
                (text.map(|t| t.to_string_lossy().into_owned()), files)
            })
        };
        let text = OsStr::new("text");
        let dash = OsStr::new("-");
        assert_eq!(split(&[], &[]).unwrap(), (None, 0));
        assert_eq!(split(&[text], &[]).unwrap(), (Some("text".into()), 0));
        assert_eq!(split(&[text, dash], &[]).unwrap(), (Some("text".into()), 1));
        assert_eq!(
            split(&[&here, text], &[&here]).unwrap(),
            (Some("text".into()), 2)
        );
        assert_eq!(split(&[&here], &[]).unwrap().1, 0);
        assert!(split(&[text, text], &[]).is_err());
        assert!(split(&[text, text], &[&here]).is_err());
    }
}

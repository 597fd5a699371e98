//! What is asked: options as a filter, a range, a place and a number.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use jiff::tz::TimeZone;
use logpond_record::{TimeRange, Timestamp};
use logpond_search::Matcher;
use logpond_search::journal::{self, Cursor, Term};
use logpond_search::query::{Comparison, FieldTest, Filter};

use crate::cli::Journal;
use crate::commands::Failure;
use crate::commands::selection::{instant, now};
use logpond_client::Parameters;

/// Records that a follower prints first, and that `-n` without a number means.
const LINES_DEFAULT: u64 = 10;

/// Records that the pager begins at the end of.
const LINES_BEFORE_END: u64 = 1000;

/// A scripts' first line is looked for in so many bytes.
const SCRIPT_BYTES_MAX: usize = 256;

/// The earliest time that servers take.
const EARLIEST: &str = "1678-01-01T00:00:00Z";

/// The longest name of a program as the kernel keeps it.
const COMM_BYTES_MAX: usize = 15;

/// The first user id of people.
const PEOPLE_FROM: &[u8] = b"1000";

/// How many records are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    All,
    Newest(u64),
    Oldest(u64),
}

/// Which boot is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Boot {
    /// This one, or the one so many after it; without it those are counted from the last or first.
    pub(super) id: Option<String>,
    pub(super) offset: i64,
}

/// What is asked, apart from where.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) filter: Filter,
    /// What of the matches says which machine is meant: boots are counted among its.
    pub(super) machine: Filter,
    pub(super) since: Option<Timestamp>,
    /// Excluded.
    pub(super) until: Option<Timestamp>,
    pub(super) boot: Option<Boot>,
    pub(super) lines: Lines,
    pub(super) is_reversed: bool,
    /// Where to begin, and whether behind it.
    pub(super) cursor: Option<(Cursor, bool)>,
    pub(super) is_quiet: bool,
    pub(super) zone: TimeZone,
    /// What is highlighted.
    pub(super) grep: Option<Matcher>,
}

impl Question {
    pub(super) fn new(args: &Journal) -> Result<Question, Failure> {
        let mut words = args.matches.clone();
        let lines = lines(args, &mut words)?;
        let boot = boot(args, &mut words);
        let grep = grep(args)?;
        let terms = words.iter().map(|word| term(word));
        let terms: Vec<Term> = terms.collect::<Result<_, _>>()?;
        let mut parts = vec![journal::matches(&terms)?];
        parts.extend(conditions(args)?);
        let highlight = grep.as_ref().map(|(source, is_insensitive)| {
            parts.push(journal::grep(source, *is_insensitive));
            Matcher::new(&Filter::regex(source, *is_insensitive))
        });
        let highlight = highlight.transpose().map_err(|error| error.to_string())?;
        let zone = if args.looks.utc {
            TimeZone::UTC
        } else {
            TimeZone::system()
        };
        let since = time("--since", args.since.as_deref(), &zone)?;
        // The time itself is wanted, too, with all that is in its microsecond.
        let until = time("--until", args.until.as_deref(), &zone)?;
        let until = until.map(|until| until.saturating_add(1000));
        if let (Some(since), Some(until)) = (since, until)
            && since > until
        {
            return Err("--since is after --until".into());
        }
        let is_of_newest = matches!(lines, Lines::Newest(_));
        let machine = machine(args);
        parts.push(machine.clone());
        Ok(Question {
            filter: Filter::and(parts),
            machine: Filter::and([machine, machines(&terms)]),
            since,
            until,
            boot,
            lines,
            is_reversed: args.reverse || (grep.is_some() && is_of_newest && !args.follow),
            cursor: cursor(args)?,
            is_quiet: args.looks.quiet,
            zone,
            grep: highlight,
        })
    }

    /// Event times.
    pub(super) fn range(&self) -> TimeRange {
        TimeRange {
            from: self.since.unwrap_or(Timestamp::MIN),
            to: self.until.unwrap_or(Timestamp::MAX),
        }
    }

    /// What a server is asked.
    pub(super) fn parameters(&self) -> Parameters {
        parameters(&self.filter, self.range())
    }
}

/// What a server is asked for these records.
pub(super) fn parameters(filter: &Filter, range: TimeRange) -> Parameters {
    let from = match range.from {
        // Servers take the last hour if none is named.
        Timestamp::MIN => EARLIEST.to_owned(),
        from => from.to_string(),
    };
    let mut parameters = vec![("from", from)];
    if range.to != Timestamp::MAX {
        parameters.push(("to", range.to.to_string()));
    }
    if *filter != Filter::All {
        parameters.push(("q", filter.to_string()));
    }
    parameters
}

/// How many; a word that is no number is a match that was typed behind `-n`.
fn lines(args: &Journal, words: &mut Vec<OsString>) -> Result<Lines, Failure> {
    let number = |text: &str| {
        let error = || format!("--lines: `{text}` is no number; write N, +N or all");
        text.parse::<u64>().map_err(|_| error())
    };
    let default = match (args.follow, args.pager_end) {
        (true, _) if args.no_tail => Lines::All,
        (true, _) => Lines::Newest(LINES_DEFAULT),
        (_, true) => Lines::Newest(LINES_BEFORE_END),
        _ => Lines::All,
    };
    let Some(given) = &args.lines else {
        return Ok(default);
    };
    let text = given.to_string_lossy();
    Ok(match &*text {
        "" => Lines::Newest(LINES_DEFAULT),
        "all" => Lines::All,
        text if is_word(text) => {
            words.insert(0, given.clone());
            Lines::Newest(LINES_DEFAULT)
        }
        text => match text.strip_prefix('+') {
            Some(text) => Lines::Oldest(number(text)?),
            None => Lines::Newest(number(text)?),
        },
    })
}

/// Whether an argument is a match rather than the number or boot of the option before it.
fn is_word(text: &str) -> bool {
    text.contains('=') || text.contains("!~") || text.starts_with('/') || text == "+"
}

fn boot(args: &Journal, words: &mut Vec<OsString>) -> Option<Boot> {
    let last = Boot {
        id: None,
        offset: 0,
    };
    let Some(given) = &args.boot else {
        return args.dmesg.then_some(last);
    };
    let text = given.to_string_lossy();
    match parse_boot(&text) {
        _ if text == "all" => None,
        Some(boot) => Some(boot),
        None => {
            words.insert(0, given.clone());
            Some(last)
        }
    }
}

/// `ID`, `ID+N`, `ID-N`, `N`; nothing is the last one.
fn parse_boot(text: &str) -> Option<Boot> {
    let whole = |text: &str| match text {
        "" => Some(0),
        text => text.strip_prefix('+').unwrap_or(text).parse().ok(),
    };
    let plain: String = text.chars().filter(|c| *c != '-').collect();
    let is_id = |text: &str| text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
    // Ids may be written as UUIDs.
    if is_id(&plain) {
        return Some(Boot {
            id: Some(plain.to_ascii_lowercase()),
            offset: 0,
        });
    }
    if let Some((id, rest)) = text.split_at_checked(32)
        && is_id(id)
    {
        return Some(Boot {
            id: Some(id.to_ascii_lowercase()),
            offset: whole(rest)?,
        });
    }
    Some(Boot {
        id: None,
        offset: whole(text)?,
    })
}

fn grep(args: &Journal) -> Result<Option<(String, bool)>, Failure> {
    let Some(source) = &args.grep else {
        return Ok(None);
    };
    let is_insensitive = match args.case_sensitive.as_deref() {
        None => journal::is_case_insensitive(source),
        Some("1" | "yes" | "y" | "true" | "t" | "on") => false,
        Some("0" | "no" | "n" | "false" | "f" | "off") => true,
        Some(other) => return Err(format!("--case-sensitive is yes or no, not '{other}'").into()),
    };
    if let Err(error) = Matcher::new(&Filter::regex(source, is_insensitive)) {
        return Err(format!(
            "--grep: {error}\n  {}\n  (look-around and back references are not available)",
            error.underline(source).replace('\n', "\n  ")
        )
        .into());
    }
    Ok(Some((source.clone(), is_insensitive)))
}

/// A match, or what a path stands for.
fn term(word: &OsStr) -> Result<Term, Failure> {
    let bytes = word.as_bytes();
    let is_path = bytes.first() == Some(&b'/');
    if is_path {
        Ok(Term::Filter(path(Path::new(word))))
    } else {
        Ok(journal::term(bytes)?)
    }
}

/// Records of a program or about a device, as far as this machine tells what the path is.
fn path(path: &Path) -> Filter {
    let path = &*std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let bytes = path.as_os_str().as_bytes();
    let metadata = std::fs::metadata(path);
    if let Ok(metadata) = &metadata
        && let Some(kind) = match metadata.file_type() {
            kind if kind.is_block_device() => Some('b'),
            kind if kind.is_char_device() => Some('c'),
            _ => None,
        }
    {
        let device = metadata.rdev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let number = format!("{kind}{major}:{minor}");
        return Filter::or([
            journal::equal("_KERNEL_DEVICE", number.as_bytes()),
            journal::equal("_UDEV_DEVNODE", bytes),
        ]);
    }
    let Some(interpreter) = interpreter(path) else {
        return journal::equal("_EXE", bytes);
    };
    let name = path.file_name().unwrap_or_default().as_bytes();
    let comm = journal::equal("_COMM", &name[..name.len().min(COMM_BYTES_MAX)]);
    let is_link = |path: &Path| path.is_symlink();
    if is_link(Path::new(&interpreter)) {
        comm
    } else {
        Filter::and([comm, journal::equal("_EXE", interpreter.as_bytes())])
    }
}

/// The program that runs a script.
fn interpreter(path: &Path) -> Option<OsString> {
    use std::io::Read;
    let mut start = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut start_of = file.take(SCRIPT_BYTES_MAX as u64);
    start_of.read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?.trim_ascii();
    let program = line.split(u8::is_ascii_whitespace).next()?;
    (!program.is_empty()).then(|| OsString::from_vec(program.to_vec()))
}

/// What the options say beside matches.
fn conditions(args: &Journal) -> Result<Vec<Filter>, Failure> {
    let mut parts = Vec::new();
    let units = args.units.iter().map(|name| journal::unit(name));
    let user_units = args.user_units.iter().map(|name| journal::user_unit(name));
    let any_of = |filters: Vec<Filter>| {
        if filters.is_empty() {
            Filter::All
        } else {
            Filter::or(filters)
        }
    };
    parts.push(any_of(units.chain(user_units).collect()));
    let identifier = |name: &String| journal::equal("SYSLOG_IDENTIFIER", name.as_bytes());
    parts.push(any_of(args.identifiers.iter().map(identifier).collect()));
    let excluded = args.excluded.iter().map(identifier);
    parts.extend(excluded.map(Filter::negate));
    if let Some(level) = &args.priority {
        parts.push(journal::levels(level).map_err(|error| format!("--priority: {error}"))?);
    }
    let mut facilities = Vec::new();
    for name in &args.facilities {
        let number = journal::facility(name).map_err(|error| format!("--facility: {error}"))?;
        facilities.push(journal::equal(
            "SYSLOG_FACILITY",
            number.to_string().as_bytes(),
        ));
    }
    parts.push(any_of(facilities));
    if args.dmesg {
        let (name, value) = journal::KERNEL;
        parts.push(journal::equal(name, value));
    }
    parts.push(namespace(args.looks.namespace.as_deref().unwrap_or("*")));
    let people = FieldTest::Compare(Comparison::GreaterOrEqual, PEOPLE_FROM.into());
    if args.looks.system {
        parts.push(Filter::negate(Filter::field("_UID", people)));
    }
    if args.looks.user {
        let user = rustix::process::getuid().as_raw().to_string();
        parts.push(journal::equal("_UID", user.as_bytes()));
    }
    Ok(parts)
}

/// Records of a namespace; with a plus in front those of none, too, and `*` is all.
fn namespace(text: &str) -> Filter {
    let of = |name: &str| journal::equal("_NAMESPACE", name.as_bytes());
    match text.strip_prefix('+') {
        _ if text == "*" => Filter::All,
        Some(name) => Filter::or([of(name), Filter::negate(journal::exists("_NAMESPACE"))]),
        None => of(text),
    }
}

fn machine(args: &Journal) -> Filter {
    match args.looks.machine.as_deref() {
        Some(name) if name != ".host" => journal::equal("_HOSTNAME", name.as_bytes()),
        _ => Filter::All,
    }
}

/// What of the matches says which machine is meant.
fn machines(terms: &[Term]) -> Filter {
    let is_machine = |term: &&Term| matches!(term, Term::Equal(name, _) if matches!(&**name, "_HOSTNAME" | "_MACHINE_ID"));
    let has_alternatives = terms.contains(&Term::Or);
    let of_machine: Vec<Term> = terms.iter().filter(is_machine).cloned().collect();
    if has_alternatives {
        Filter::All
    } else {
        journal::matches(&of_machine).unwrap_or(Filter::All)
    }
}

/// A time, perhaps with the name of a zone behind it.
fn time(
    flag: &'static str,
    text: Option<&str>,
    zone: &TimeZone,
) -> Result<Option<Timestamp>, Failure> {
    let named = text.and_then(|text| {
        let (text, zone) = text.trim().rsplit_once(' ')?;
        let is_name = zone.contains('/');
        Some((text, TimeZone::get(zone).ok().filter(|_| is_name)?))
    });
    match named {
        Some((text, zone)) => instant(flag, Some(text), now(), &zone),
        None => instant(flag, text, now(), zone),
    }
}

/// Where to begin, and whether behind it.
fn cursor(args: &Journal) -> Result<Option<(Cursor, bool)>, Failure> {
    let stored = match &args.cursor_file {
        None => None,
        Some(path) => match std::fs::read_to_string(path) {
            Ok(text) => Some(text).filter(|text| !text.trim().is_empty()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                return Err(format!("{} cannot be read: {error}", path.display()).into());
            }
        },
    };
    let (text, is_behind) = match (&args.cursor, &args.after_cursor, &stored) {
        (Some(text), ..) => (text, false),
        (_, Some(text), _) | (.., Some(text)) => (text, true),
        _ => return Ok(None),
    };
    match Cursor::parse(text) {
        Some(cursor) => Ok(Some((cursor, is_behind))),
        None => Err(format!("`{}` is no cursor", text.trim()).into()),
    }
}

#[cfg(test)]
mod tests;

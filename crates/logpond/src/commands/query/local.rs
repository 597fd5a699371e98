//! `logpond query --file` and `-`: the same filters over files, without a server.
//!
//! Records come in the order of the input, file by file. A line is a record, or an entry of a journal. Nothing is
//! held but the newest ones where only these are wanted.

mod entries;

use std::collections::{BTreeSet, VecDeque};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use logpond_protocol::intake::Parser;
use logpond_protocol::intake::headers::FileHeaders;
use logpond_protocol::intake::lines::{Line, LineSplitter};
use logpond_protocol::intake::timezone::LABEL;
use logpond_record::limits::LINE_BYTES_MAX;
use logpond_record::{
    Entry, EntryKind, Envelope, Id, Incarnation, Labels, Record, TimeRange, Timestamp, cast,
};
use logpond_search::context::{Context, ContextItem};
use logpond_search::hints::{HintRequest, Outside, hints, in_any_case};
use logpond_search::{Matcher, Scratch};

use super::sink::Sink;
use super::{HELD_BYTES_MAX, Question};
use crate::cli::Query;
use crate::commands::Failure;
use crate::commands::selection::now;
use logpond_client as client;
use logpond_client::Trailer;
use logpond_host::terminal::note;
use logpond_host::timezone;
use logpond_render::Format;
use logpond_render::Row;
use logpond_settings::{access_logs, flagged_fields};
use logpond_ship::input;

/// Bytes read at once.
const CHUNK_BYTES: usize = 256 << 10;

/// Records that are looked at for matches with upper and lower case alike.
const ANY_CASE_RECORDS_MAX: u64 = 100_000;

/// Records whose fields are remembered to say what was meant, and names of fields that are.
const NAMED_RECORDS_MAX: u64 = 10_000;
const NAMES_MAX: usize = 2048;

pub(super) fn run(
    args: &Query,
    question: &Question,
    files: &[PathBuf],
    sink: &mut Sink,
) -> Result<Trailer, Failure> {
    let started = Instant::now();
    let mut search = Search::new(args, question, files.len() > 1)?;
    let lengths: Option<u64> = files.iter().map(|path| input::plain_length(path)).sum();
    search.bytes_total = lengths.unwrap_or(0);
    for path in files {
        if let Err(error) = search.read(path, sink) {
            match error.downcast::<UnreadableFile>() {
                Ok(unreadable) => {
                    note(&format!("logpond: {unreadable}"));
                    search.unreadable += 1;
                }
                Err(error) => return Err(error),
            }
        }
        if search.is_done {
            break;
        }
    }
    let unreadable = search.unreadable;
    let trailer = search.finish(args, sink)?;
    if unreadable > 0 && trailer.rows == 0 {
        return Err("nothing was found, but not everything could be read".into());
    }
    Ok(Trailer {
        elapsed_ms: started.elapsed().as_secs_f64() * 1000.0,
        complete: unreadable == 0,
        ..trailer
    })
}

/// The labels that say how lines are read.
fn declared(args: &Query) -> Result<Labels, Failure> {
    let formats = access_logs(&args.access_log.join("\n"));
    let mut labels = formats.map_err(|error| format!("--access-log: {error}"))?;
    labels.extend(flagged_fields(&args.time_field, &args.message_field)?);
    let rule = timezone::rule(args.timezone.as_deref().unwrap_or(timezone::LOCAL), now());
    let rule = rule.map_err(|error| format!("--timezone: {error}"))?;
    if rule != timezone::UTC {
        labels.push((LABEL.into(), rule.into()));
    }
    Ok(labels)
}

/// A file that cannot be read.
#[derive(Debug)]
struct UnreadableFile(String, std::io::Error);

impl std::fmt::Display for UnreadableFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} cannot be read: {}", self.0, self.1)
    }
}

impl std::error::Error for UnreadableFile {}

/// A search through files.
struct Search<'a> {
    question: &'a Question,
    /// The same question with upper and lower case alike, if that is another one.
    in_any_case: Option<Matcher>,
    range: TimeRange,
    parser: Parser,
    scratch: Scratch,
    context: Option<Context<Record<'static>>>,
    /// The newest matches, where only those are wanted or the order is reversed.
    tail: Option<Tail>,
    is_silent: bool,
    is_quiet: bool,
    labels_files: bool,
    /// How lines are read.
    declared: Labels,
    with_line: bool,
    received: Timestamp,
    number: u64,
    rows: u64,
    bytes: u64,
    /// Bytes of all files; 0 if that is not known.
    bytes_total: u64,
    newest: Option<Timestamp>,
    /// What is known as long as nothing was found.
    seen: HintData,
    unreadable: usize,
    is_done: bool,
    failure: Option<Failure>,
}

/// Facts of the lines for a hint if nothing matches.
#[derive(Default)]
struct HintData {
    /// Names of fields of the first records.
    names: BTreeSet<String>,
    /// Matches with upper and lower case alike.
    any_case: u64,
    before: Option<Outside>,
    behind: Option<Outside>,
}

/// The labels of a file's lines: those that were declared for all, and what the file's own headers declare.
struct FileLabels {
    own: Labels,
    headers: FileHeaders,
    labels: Labels,
}

impl FileLabels {
    fn new(own: Labels) -> FileLabels {
        FileLabels {
            labels: own.clone(),
            own,
            headers: FileHeaders::default(),
        }
    }

    /// The labels of the next line.
    fn labels_of(&mut self, line: &[u8]) -> &Labels {
        if self.headers.take_line(line) {
            self.labels.clone_from(&self.own);
            self.labels.extend(self.headers.labels());
        }
        &self.labels
    }
}

impl<'a> Search<'a> {
    fn new(
        args: &Query,
        question: &'a Question,
        labels_files: bool,
    ) -> Result<Search<'a>, Failure> {
        let context = Context::new(question.before as usize, question.after as usize);
        let is_silent = args.quiet || args.count;
        let is_held = (question.limit > 0 || args.reverse) && !is_silent;
        let in_any_case = in_any_case(&question.meaning.filter);
        Ok(Search {
            declared: declared(args)?,
            question,
            in_any_case: in_any_case.and_then(|filter| Matcher::new(&filter).ok()),
            range: TimeRange {
                from: question.meaning.since.unwrap_or(Timestamp::MIN),
                to: question.meaning.until.unwrap_or(Timestamp::MAX),
            },
            parser: Parser::new(),
            scratch: Scratch::new(),
            context: (question.before + question.after > 0 && !is_silent).then_some(context),
            tail: is_held.then(|| Tail::new(question.before as usize)),
            is_silent,
            is_quiet: args.quiet,
            labels_files,
            with_line: question.format == Format::Raw,
            received: now(),
            number: 0,
            rows: 0,
            bytes: 0,
            bytes_total: 0,
            newest: None,
            seen: HintData::default(),
            unreadable: 0,
            is_done: false,
            failure: None,
        })
    }

    fn read(&mut self, path: &Path, sink: &mut Sink) -> Result<(), Failure> {
        let is_standard = path.as_os_str() == "-";
        let name = path.display().to_string();
        let unreadable = |error| UnreadableFile(name.clone(), error);
        let mut declared = self.declared.clone();
        if self.labels_files {
            declared.push(("file".into(), name.as_str().into()));
        }
        if !is_standard && entries::is_journal(path) {
            entries::read(self, path, &declared, sink);
            return self.check();
        }
        let mut reader = if is_standard {
            input::standard_text()
        } else {
            input::open_text(path).map_err(unreadable)?
        };
        let mut file = FileLabels::new(declared);
        let mut splitter = LineSplitter::new(LINE_BYTES_MAX);
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let bytes = match reader.read(&mut chunk) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    splitter.finish(|line| self.line(line, &mut file, sink));
                    return Err(unreadable(error).into());
                }
            };
            if bytes == 0 {
                break;
            }
            self.bytes += bytes as u64;
            splitter.feed(&chunk[..bytes], |line| self.line(line, &mut file, sink));
            self.check()?;
            if self.is_done {
                return Ok(());
            }
            // A pipe that pauses must not keep back what was found.
            if bytes < CHUNK_BYTES {
                sink.flush()?;
            }
            sink.show_progress(client::Progress {
                bytes: self.bytes,
                bytes_total: self.bytes_total,
                rows: self.rows,
            });
        }
        splitter.finish(|line| self.line(line, &mut file, sink));
        self.check()
    }

    fn check(&mut self) -> Result<(), Failure> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Takes one line; a failure waits in `failure`, since the splitter cannot be stopped.
    fn line(&mut self, line: Line<'_>, file: &mut FileLabels, sink: &mut Sink) {
        if self.failure.is_some() || self.is_done {
            return;
        }
        let labels = file.labels_of(line.bytes);
        let entry = Entry {
            id: Id::new(
                cast::unsigned(self.received.unix_ms().max(0)),
                Incarnation(0),
                self.number,
            ),
            received: self.received,
            kind: EntryKind::Line,
            labels,
            envelope: Envelope::default(),
            raw: line.bytes,
        };
        self.number += 1;
        let record = self.parser.parse(&entry);
        if let Err(failure) = self.record(record, sink) {
            self.failure = Some(failure);
        }
    }

    fn record(&mut self, record: Record<'_>, sink: &mut Sink) -> Result<(), Failure> {
        self.newest = self.newest.max(Some(record.time));
        let is_inside = self.range.contains(record.time);
        let is_match = is_inside && self.question.matcher.matches(&record, &mut self.scratch);
        self.rows += u64::from(is_match);
        if self.rows == 0 {
            self.note_unmatched(&record, is_inside);
        }
        self.is_done = is_match && self.is_quiet;
        if self.is_silent {
            return Ok(());
        }
        let Some(context) = &mut self.context else {
            return if is_match {
                self.show(&record, true, sink)
            } else {
                Ok(())
            };
        };
        let mut shown = Vec::new();
        context.push(record.into_owned(), is_match, |item| shown.push(item));
        for item in shown {
            match item {
                ContextItem::Match(record) => self.show(&record, true, sink)?,
                ContextItem::Context(record) => self.show(&record, false, sink)?,
                ContextItem::Separator => match &mut self.tail {
                    Some(tail) => tail.push(None, false, self.question.limit)?,
                    None => sink.gap()?,
                },
            }
        }
        Ok(())
    }

    /// Takes note of a record that is no match, before any is.
    fn note_unmatched(&mut self, record: &Record<'_>, is_inside: bool) {
        if self.number <= NAMED_RECORDS_MAX {
            for (name, _) in record.fields() {
                if self.seen.names.len() < NAMES_MAX && !self.seen.names.contains(name) {
                    self.seen.names.insert(name.to_owned());
                }
            }
        }
        if is_inside && self.number <= ANY_CASE_RECORDS_MAX {
            let folded = self.in_any_case.as_ref();
            let is_match = folded.is_some_and(|m| m.matches(record, &mut self.scratch));
            self.seen.any_case += u64::from(is_match);
        }
        if is_inside || !self.question.matcher.matches(record, &mut self.scratch) {
            return;
        }
        let is_before = record.time < self.range.from;
        let side = if is_before {
            &mut self.seen.before
        } else {
            &mut self.seen.behind
        };
        let side = side.get_or_insert(Outside {
            count: 0,
            is_all: true,
            nearest: record.time,
        });
        side.count += 1;
        side.nearest = if is_before {
            side.nearest.max(record.time)
        } else {
            side.nearest.min(record.time)
        };
    }

    /// What was probably meant, if nothing was found.
    fn hints(&self) -> Vec<client::Hint> {
        if self.rows > 0 || self.unreadable > 0 {
            return Vec::new();
        }
        let names: Vec<&str> = self.seen.names.iter().map(|name| &**name).collect();
        let are_all = self.number <= NAMED_RECORDS_MAX && names.len() < NAMES_MAX;
        let hints = hints(&HintRequest {
            filter: &self.question.meaning.filter,
            // Of the command line's text the filter has all.
            written: None,
            field: None,
            names: are_all.then_some(&names),
            values: &[],
            any_case: Some((self.seen.any_case, self.number <= ANY_CASE_RECORDS_MAX)),
            any_separator: None,
            before: self.seen.before,
            behind: self.seen.behind,
        });
        let of_client = hints.into_iter().map(|hint| client::Hint {
            message: hint.message,
            command: hint.command,
            from: hint.from.map(|time| time.to_string()),
            to: hint.to.map(|time| time.to_string()),
        });
        of_client.collect()
    }

    fn show(
        &mut self,
        record: &Record<'_>,
        is_match: bool,
        sink: &mut Sink,
    ) -> Result<(), Failure> {
        let row = Row::from_record(record, self.with_line);
        match &mut self.tail {
            Some(tail) => tail.push(Some(row.into_owned()), is_match, self.question.limit),
            None => Ok(sink.row(row)?),
        }
    }

    fn finish(self, args: &Query, sink: &mut Sink) -> Result<Trailer, Failure> {
        let hints = self.hints();
        let mut rows = self.rows;
        let mut has_more = false;
        if let Some(tail) = self.tail {
            has_more = tail.matches < rows;
            rows = tail.matches;
            tail.print(args.reverse, sink)?;
        }
        let is_refused = args.selection.strict && self.unreadable > 0;
        if args.count && !is_refused {
            let limit = args.limit.filter(|&limit| limit > 0).unwrap_or(u64::MAX);
            rows = rows.min(limit);
            sink.bytes(format!("{rows}\n").as_bytes())?;
        }
        Ok(Trailer {
            rows,
            bytes_scanned: self.bytes,
            newest: self.newest.map(|time| time.to_string()),
            more: has_more,
            hints,
            ..Trailer::default()
        })
    }
}

/// The last rows, gaps between groups among them.
struct Tail {
    items: VecDeque<(Option<Row<'static>>, bool)>,
    bytes: usize,
    matches: u64,
    /// Rows of context before each match.
    before: usize,
}

impl Tail {
    fn new(before: usize) -> Tail {
        Tail {
            items: VecDeque::new(),
            bytes: 0,
            matches: 0,
            before,
        }
    }

    /// Adds a row or a gap; forgets the oldest ones beyond `limit` matches.
    fn push(
        &mut self,
        row: Option<Row<'static>>,
        is_match: bool,
        limit: u64,
    ) -> Result<(), Failure> {
        self.bytes += row.as_ref().map_or(0, Row::bytes);
        self.matches += u64::from(is_match);
        self.items.push_back((row, is_match));
        while limit > 0 && self.matches > limit {
            self.forget_oldest();
        }
        if self.bytes > HELD_BYTES_MAX {
            return Err(
                "the records take more than 256 MB, too much to print them in another \
                        order; ask for fewer (-n) or leave out -r"
                    .into(),
            );
        }
        Ok(())
    }

    /// The oldest match is none any more. It stays as context if it is near the next one; of all others
    /// before that what is its context stays.
    fn forget_oldest(&mut self) {
        if let Some((_, is_match)) = self.items.iter_mut().find(|(_, is_match)| *is_match) {
            *is_match = false;
            self.matches -= 1;
        }
        let next = self.items.iter().position(|(_, is_match)| *is_match);
        let next = next.unwrap_or(self.items.len());
        let near = next.saturating_sub(self.before);
        // Beyond a gap nothing is near.
        let gap = self
            .items
            .range(near..next)
            .rposition(|(row, _)| row.is_none());
        let left_out = gap.map_or(near, |gap| near + gap + 1);
        for (row, _) in self.items.drain(..left_out) {
            self.bytes -= row.as_ref().map_or(0, Row::bytes);
        }
    }

    fn print(self, is_reversed: bool, sink: &mut Sink) -> std::io::Result<()> {
        let mut print = |row: Option<Row<'static>>| match row {
            Some(row) => sink.row(row),
            None => sink.gap(),
        };
        let mut items = self.items.into_iter().map(|(row, _)| row);
        if is_reversed {
            items.rev().try_for_each(&mut print)
        } else {
            items.try_for_each(&mut print)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows that are left of these, of which those in capitals match.
    fn left(rows: &str, before: usize, after: usize, limit: u64) -> String {
        let mut context = Context::new(before, after);
        let mut tail = Tail::new(before);
        for (at, name) in rows.chars().enumerate() {
            let row = Row {
                id: at.to_string().into(),
                message: Some(name.to_string().into_bytes().into()),
                ..Row::default()
            };
            let mut shown = Vec::new();
            context.push(row, name.is_uppercase(), |item| shown.push(item));
            for item in shown {
                match item {
                    ContextItem::Match(row) => tail.push(Some(row), true, limit).unwrap(),
                    ContextItem::Context(row) => tail.push(Some(row), false, limit).unwrap(),
                    ContextItem::Separator => tail.push(None, false, limit).unwrap(),
                }
            }
        }
        let bytes = tail.items.iter().filter_map(|(row, _)| row.as_ref());
        assert_eq!(tail.bytes, bytes.map(Row::bytes).sum::<usize>());
        let text = |row: &Option<Row<'_>>| match row {
            None => "|".to_owned(),
            Some(row) => String::from_utf8_lossy(row.message.as_deref().unwrap()).into_owned(),
        };
        tail.items.iter().map(|(row, _)| text(row)).collect()
    }

    #[test]
    fn the_newest_matches_have_their_context() {
        let table = [
            ("aBCDe", 3, 0, 1, "aBCD"),
            ("aBCDe", 1, 1, 1, "CDe"),
            ("aBCDe", 0, 1, 2, "CDe"),
            ("aBcdeFg", 1, 0, 1, "eF"),
            ("aBcdeFg", 2, 0, 1, "deF"),
            ("aBcdeFg", 4, 0, 1, "BcdeF"),
            ("aBcdeFg", 1, 2, 1, "eFg"),
            ("aBcdeFg", 1, 2, 2, "aBcdeFg"),
            ("aBcdefFg", 1, 1, 2, "aBc|fFg"),
            ("aBcdefFgH", 1, 1, 2, "fFgH"),
            ("aBcdefFgH", 9, 0, 1, "aBcdefFgH"),
        ];
        for (rows, before, after, limit, expected) in table {
            let found = left(rows, before, after, limit);
            assert_eq!(found, expected, "{rows} -B{before} -A{after} -n{limit}");
        }
    }
}

//! Printing records: all, some from an end, from a cursor on, and those that come.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use logpond_record::{Id, TimeRange, Timestamp};
use logpond_search::journal::{self, Cursor};
use logpond_search::order::{Direction, Key};

use super::ask::{Lines, Question};
use super::environment;
use super::source::{RecordQuery, Source};
use crate::cli::Journal as Args;
use crate::commands::listing::lacks;
use crate::commands::query::follow::{Backlog, FollowOptions, follow};
use crate::commands::query::remote::RowStack;
use crate::commands::query::sink::Sink;
use crate::commands::{Exit, Failure, variable};
use logpond_client::{Client, Item, Trailer};
use logpond_host::terminal::When;
use logpond_host::terminal::{self, note};
use logpond_render::journal::{Journal, LastCursor, Spans, Style, key_of};

/// Columns where no terminal says how many.
const COLUMNS_DEFAULT: usize = 80;

pub(super) fn run(args: &Args, question: &Question, source: &mut Source) -> Result<Exit, Failure> {
    let last = LastCursor::default();
    let style = style(args, question, matches!(source, Source::Files(_)));
    let has_colours = style.colour && style.escapes && style.format.is_for_people();
    let hands = terminal::hands(args.looks.control_characters, has_colours);
    let renderer = Box::new(Journal::new(style, Arc::clone(&last)));
    let paging = if args.looks.no_pager || args.follow {
        When::Never
    } else {
        When::Auto
    };
    let pagers = environment::pagers(args.pager_end, &variable);
    let mut sink = Sink::of(renderer, (paging, hands), pagers);
    let printed = match (&*source, args.follow) {
        (Source::Server(client), true) => followed(question, source, client, &mut sink),
        (Source::Files(_), true) => Err(
            "--follow asks a server, not files; `logpond forward --journal` brings the journal \
                 of a machine to one"
                .into(),
        ),
        (_, false) => shown(question, source, &mut sink),
    };
    let cursor = last.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let (Ok(_), Some(cursor), true) = (&printed, &cursor, args.show_cursor) {
        sink.bytes(format!("-- cursor: {cursor}\n").as_bytes())?;
    }
    let closed = sink.close();
    let trailer = printed?;
    closed?;
    if let (Some(path), Some(cursor)) = (&args.cursor_file, cursor) {
        keep(path, &cursor)?;
    }
    Ok(report(args, &trailer))
}

fn style(args: &Args, question: &Question, are_files: bool) -> Style {
    let is_terminal = terminal::is_output();
    let spans = question
        .grep
        .clone()
        .map(|matcher| -> Spans { Arc::new(move |text| matcher.spans(text)) });
    let mut only: Vec<String> = args.output_fields.clone();
    only.retain(|name| !name.is_empty());
    Style {
        format: args.output,
        zone: question.zone.clone(),
        all: args.looks.all,
        columns: match (args.looks.no_full, is_terminal) {
            (false, _) => 0,
            (true, true) => terminal::width(),
            (true, false) => COLUMNS_DEFAULT,
        },
        no_hostname: args.looks.no_hostname,
        only,
        colour: environment::colours(args.looks.color, is_terminal, &variable),
        escapes: is_terminal && !args.looks.control_characters,
        marks_boots: !args.looks.quiet && !args.output.is_data(),
        has_own_cursors: !are_files,
        spans,
    }
}

/// Which rows, and whether they come in the other order than they are printed.
struct Plan {
    direction: Direction,
    is_turned: bool,
    limit: Option<u64>,
    behind: Option<Key>,
}

fn plan(question: &Question, source: &Source) -> Result<Plan, Failure> {
    let forward = if question.is_reversed {
        Direction::Backward
    } else {
        Direction::Forward
    };
    let behind = match &question.cursor {
        None => None,
        Some((cursor, is_behind)) => Some(place(cursor, *is_behind, forward, source)?),
    };
    let (direction, limit) = match question.lines {
        Lines::All => (forward, None),
        Lines::Oldest(count) => (Direction::Forward, Some(count)),
        // From a cursor on, it is the first ones.
        Lines::Newest(count) if behind.is_some() => (forward, Some(count)),
        Lines::Newest(count) => (Direction::Backward, Some(count)),
    };
    Ok(Plan {
        is_turned: direction != forward,
        direction,
        limit,
        behind,
    })
}

/// The place right before the first row that is wanted.
fn place(
    cursor: &Cursor,
    is_behind: bool,
    direction: Direction,
    source: &Source,
) -> Result<Key, Failure> {
    let found = match cursor {
        Cursor::Place(key) => Some(*key),
        Cursor::Entry { text, .. } => {
            let filter = journal::equal("__CURSOR", text.as_bytes());
            let (row, _) = source.first(&filter, TimeRange::ALL, Direction::Forward)?;
            row.as_ref().and_then(key_of)
        }
    };
    match (found, cursor) {
        (Some(key), _) if is_behind => Ok(key),
        (Some(key), _) => Ok(next_to(key, direction)),
        // The entry is gone: as journalctl, go on at its time.
        (
            None,
            Cursor::Entry {
                time: Some(time), ..
            },
        ) => Ok(next_to(
            Key {
                time: *time,
                id: Id::MIN,
            },
            direction,
        )),
        (None, _) => Err("there is no record with this cursor".into()),
    }
}

/// The place next to this one, on the side where rows come from.
fn next_to(key: Key, direction: Direction) -> Key {
    match direction {
        Direction::Forward => match key.id.0.checked_sub(1) {
            Some(id) => Key {
                time: key.time,
                id: Id(id),
            },
            None => Key {
                time: Timestamp(key.time.0.saturating_sub(1)),
                id: Id::MAX,
            },
        },
        Direction::Backward => match key.id.0.checked_add(1) {
            Some(id) => Key {
                time: key.time,
                id: Id(id),
            },
            None => Key {
                time: key.time.saturating_add(1),
                id: Id::MIN,
            },
        },
    }
}

/// Prints what there is.
fn shown(question: &Question, source: &Source, sink: &mut Sink) -> Result<Trailer, Failure> {
    let plan = plan(question, source)?;
    if plan.limit == Some(0) {
        return Ok(Trailer {
            complete: true,
            ..Trailer::default()
        });
    }
    match source {
        Source::Server(client) => from_server(question, &plan, client, sink),
        Source::Files(_) => {
            let mut rows = Vec::new();
            let trailer = source.rows(&wanted(question, &plan), &mut |row| {
                rows.push(row.into_owned());
                Ok(())
            })?;
            if plan.is_turned {
                rows.reverse();
            }
            for row in rows {
                sink.row(row)?;
            }
            Ok(trailer)
        }
    }
}

fn wanted<'q>(question: &'q Question, plan: &Plan) -> RecordQuery<'q> {
    RecordQuery {
        filter: &question.filter,
        range: question.range(),
        direction: plan.direction,
        behind: plan.behind,
        limit: plan.limit,
    }
}

fn from_server(
    question: &Question,
    plan: &Plan,
    client: &Client,
    sink: &mut Sink,
) -> Result<Trailer, Failure> {
    let mut asked = wanted(question, plan).parameters();
    if sink.progress.is_enabled() {
        asked.push(("progress", "true".into()));
    }
    let mut held = plan.is_turned.then(RowStack::default);
    let mut answer = client.get("/api/v1/query", &asked)?;
    let trailer = loop {
        match answer.next_item()? {
            Item::Row(line) => match &mut held {
                Some(held) => held.push(line)?,
                None => sink.line(line)?,
            },
            Item::Progress(progress) => sink.show_progress(progress),
            Item::Gap | Item::Notice(_) | Item::Position(_) => {}
            Item::Trailer(trailer) => break trailer,
        }
        if !answer.is_more_at_hand() {
            sink.flush()?;
        }
    };
    if let Some(held) = held {
        held.print(sink)?;
    }
    Ok(trailer)
}

/// Prints some of what there is, then what comes.
fn followed(
    question: &Question,
    source: &Source,
    client: &Client,
    sink: &mut Sink,
) -> Result<Trailer, Failure> {
    sink.progress.disable();
    let plan = plan(question, source)?;
    let mut base = question.parameters();
    base.push(("fields", "raw".into()));
    let backlog = match (plan.behind, question.lines) {
        (Some(key), _) => Backlog::From(vec![("cursor", format!("{}_{}", key.time, key.id))]),
        // Records that arrive are new, whatever their times are.
        (None, Lines::Newest(0)) => Backlog::None,
        (None, Lines::Newest(count)) => Backlog::Newest(count),
        (None, Lines::All) => Backlog::From(Vec::new()),
        (None, Lines::Oldest(count)) => Backlog::From(vec![("limit", count.to_string())]),
    };
    let following = FollowOptions {
        base,
        backlog,
        until: question.until,
    };
    let rows = follow(client, following, sink)?;
    Ok(Trailer {
        rows,
        complete: true,
        ..Trailer::default()
    })
}

/// Writes the cursor so that the file always has a whole one.
fn keep(path: &Path, cursor: &str) -> Result<(), Failure> {
    let said = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = Path::new(&name);
    std::fs::write(new, format!("{cursor}\n")).map_err(said)?;
    Ok(std::fs::rename(new, path).map_err(said)?)
}

fn report(args: &Args, trailer: &Trailer) -> Exit {
    if let Some(lacking) = lacks(trailer) {
        return lacking;
    }
    if trailer.rows > 0 {
        return Exit::Found;
    }
    if !args.looks.quiet {
        note("-- No entries --");
    }
    Exit::None
}

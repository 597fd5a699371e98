//! `logpond query --follow`: the newest records, then those that arrive, across a server's restart.
//!
//! What has been printed is known by the largest id: ids grow in the order of arrival, so that
//! coming back with it neither loses nor repeats a record.

use std::time::Duration;

use super::remote::{Held, parameters};
use super::sink::Sink;
use super::{Outcome, Question};
use crate::cli::Query;
use crate::client::{Client, ClientError, Item, Parameters};
use crate::commands::{Failure, client};
use crate::output::Row;
use crate::terminal::note;

/// The first wait before asking again.
const WAIT_FIRST: Duration = Duration::from_millis(200);

/// The longest wait before asking again.
const WAIT_LONGEST: Duration = Duration::from_secs(5);

/// Follows until the process is ended, or the end of the range is over.
pub(super) fn run(args: &Query, question: &Question, sink: &mut Sink) -> Result<Outcome, Failure> {
    let client = client(&args.server)?;
    sink.progress.disable();
    let base = parameters(question, sink);
    let mut newest = Newest::default();
    let mut rows = 0;
    if question.limit > 0 {
        rows += backlog(&client, &base, question.limit, &mut newest, sink)?;
    }
    let mut wait = WAIT_FIRST;
    let mut is_lost = false;
    loop {
        let mut asked = base.clone();
        asked.push(("follow", "true".into()));
        if let Some(cursor) = newest.cursor() {
            asked.push(("cursor", cursor));
        }
        let before = rows;
        let ended = match client.get("/api/v1/query", &asked) {
            Ok(mut answer) => {
                if is_lost {
                    note("-- reconnected --");
                }
                is_lost = false;
                listen(&mut answer, &mut newest, &mut rows, sink)
            }
            Err(
                error
                @ (ClientError::Unreachable { .. } | ClientError::Refused { status: 503, .. }),
            ) => Err(error.into()),
            Err(error) => return Err(error.into()),
        };
        let is_over = question
            .meaning
            .until
            .is_some_and(|until| until < crate::commands::selection::now());
        match ended {
            Ok(()) if is_over => break,
            Ok(()) => {}
            Err(error) if error.is::<ClientError>() => {
                if !is_lost {
                    note(&format!("-- {error}; trying again --"));
                }
                is_lost = true;
            }
            Err(error) => return Err(error),
        }
        if rows > before {
            wait = WAIT_FIRST;
        }
        std::thread::sleep(wait);
        wait = (wait * 2).min(WAIT_LONGEST);
    }
    Ok(Outcome {
        rows,
        ..Outcome::default()
    })
}

/// Prints the newest records, oldest first.
fn backlog(
    client: &Client,
    base: &Parameters,
    limit: u64,
    newest: &mut Newest,
    sink: &mut Sink,
) -> Result<u64, Failure> {
    let mut asked = base.clone();
    asked.push(("limit", limit.to_string()));
    asked.push(("direction", "backward".into()));
    let mut answer = client.get("/api/v1/query", &asked)?;
    let mut held = Held::default();
    let rows = loop {
        match answer.next_item()? {
            Item::Row(line) => {
                newest.see(line)?;
                held.push(line)?;
            }
            Item::Gap => held.push(b"")?,
            Item::Progress(_) => {}
            Item::Trailer(trailer) => break trailer.rows,
        }
    };
    held.print(sink)?;
    sink.flush()?;
    Ok(rows)
}

/// Prints what arrives until the connection ends.
fn listen(
    answer: &mut crate::client::Answer,
    newest: &mut Newest,
    rows: &mut u64,
    sink: &mut Sink,
) -> Result<(), Failure> {
    loop {
        match answer.next_item()? {
            Item::Row(line) => {
                newest.see(line)?;
                *rows += 1;
                sink.line(line)?;
            }
            Item::Gap => sink.gap()?,
            Item::Progress(_) => {}
            Item::Trailer(_) => return Ok(()),
        }
        if !answer.is_more_at_hand() {
            sink.flush()?;
        }
    }
}

/// The record with the largest id so far.
#[derive(Default)]
struct Newest {
    id: String,
    time: String,
}

impl Newest {
    fn see(&mut self, line: &[u8]) -> Result<(), Failure> {
        let row = Row::from_json(line)?;
        if *row.id > *self.id {
            self.id = row.id.into_owned();
            self.time = row.time.map(|time| time.to_string()).unwrap_or_default();
        }
        Ok(())
    }

    /// The text that names a record to a server: its time and its id.
    fn cursor(&self) -> Option<String> {
        (!self.id.is_empty()).then(|| format!("{}_{}", self.time, self.id))
    }
}

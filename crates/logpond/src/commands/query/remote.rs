//! `logpond query` against a server.

use super::sink::Sink;
use super::{HELD_BYTES_MAX, Question};
use crate::cli::Query;
use crate::commands::{Failure, client};
use logpond_client::{Client, Item, Parameters, Trailer};
use logpond_render::Format;

pub(super) fn run(args: &Query, question: &Question, sink: &mut Sink) -> Result<Trailer, Failure> {
    let client = client(&args.server)?;
    let mut parameters = parameters(question, sink);
    if args.count {
        parameters.push(("count", "true".into()));
        if args.limit.is_some_and(|limit| limit > 0) {
            parameters.push(("limit", question.limit.to_string()));
        }
        return count(&client, &parameters, sink);
    }
    if question.limit > 0 {
        parameters.push(("limit", question.limit.to_string()));
    }
    // The newest ones are found from the newest end, and then turned round.
    if args.reverse || question.limit > 0 {
        parameters.push(("direction", "backward".into()));
    }
    let mut held = (question.limit > 0 && !args.reverse).then(RowStack::default);
    let mut answer = client.get("/api/v1/query", &parameters)?;
    let trailer = loop {
        match answer.next_item()? {
            Item::Row(_) | Item::Gap if args.quiet => {}
            Item::Row(line) => match &mut held {
                Some(held) => held.push(line)?,
                None => sink.line(line)?,
            },
            Item::Gap => match &mut held {
                Some(held) => held.push(b"")?,
                None => sink.gap()?,
            },
            Item::Progress(progress) => sink.show_progress(progress),
            Item::Notice(_) | Item::Position(_) => {}
            Item::Trailer(trailer) => break trailer,
        }
        // What has arrived is shown before waiting for more.
        if !answer.is_more_at_hand() {
            sink.flush()?;
        }
    };
    if let Some(held) = held.filter(|_| trailer.complete || !question.meaning.is_strict) {
        held.print(sink)?;
    }
    Ok(trailer)
}

/// What every request for rows says.
pub(super) fn parameters(question: &Question, sink: &Sink) -> Parameters {
    let mut parameters = question.meaning.parameters();
    if question.format == Format::Raw {
        parameters.push(("fields", "raw".into()));
    }
    for (name, rows) in [("before", question.before), ("after", question.after)] {
        if rows > 0 {
            parameters.push((name, rows.to_string()));
        }
    }
    if sink.progress.is_enabled() {
        parameters.push(("progress", "true".into()));
    }
    parameters
}

fn count(client: &Client, parameters: &Parameters, sink: &mut Sink) -> Result<Trailer, Failure> {
    let mut answer = client.get("/api/v1/query", parameters)?;
    loop {
        match answer.next_item()? {
            Item::Progress(progress) => sink.show_progress(progress),
            Item::Trailer(trailer) => {
                sink.bytes(format!("{}\n", trailer.rows).as_bytes())?;
                return Ok(trailer);
            }
            Item::Row(_) | Item::Gap | Item::Notice(_) | Item::Position(_) => {}
        }
    }
}

/// Rows that came newest first and are printed oldest first; an empty one is a gap.
#[derive(Default)]
pub(in crate::commands) struct RowStack {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl RowStack {
    pub(in crate::commands) fn push(&mut self, line: &[u8]) -> Result<(), Failure> {
        if self.bytes.len() + line.len() > HELD_BYTES_MAX {
            return Err(
                "the newest records take more than 256 MB, too much to turn them round; \
                        ask for fewer (-n), for the newest first (-r), or for all of a range \
                        (-n 0 --since …)"
                    .into(),
            );
        }
        self.bytes.extend_from_slice(line);
        self.ends.push(self.bytes.len());
        Ok(())
    }

    pub(in crate::commands) fn print(self, sink: &mut Sink) -> Result<(), Failure> {
        for (at, &end) in self.ends.iter().enumerate().rev() {
            let start = if at == 0 { 0 } else { self.ends[at - 1] };
            match &self.bytes[start..end] {
                b"" => sink.gap()?,
                line => sink.line(line)?,
            }
        }
        Ok(())
    }
}

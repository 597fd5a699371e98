//! `logpond query --follow`: the newest records, then those that arrive, across a server's restart.
//!
//! A node alone knows what has been printed by the largest id: ids grow in the order of arrival. A
//! cluster tells now and then where it could go on, and what has been printed since is known by name.
//! So coming back neither loses nor repeats a record.

use std::collections::HashSet;
use std::time::Duration;

use logpond_record::Timestamp;

use super::Question;
use super::remote::{RowStack, parameters};
use super::sink::Sink;
use crate::cli::Query;
use crate::commands::listing::lacks;
use crate::commands::{Failure, client};
use logpond_client::{Client, ClientError, Item, Parameters, Trailer};
use logpond_host::terminal::note;
use logpond_render::Row;

/// The first wait before asking again.
const WAIT_FIRST: Duration = Duration::from_millis(200);

/// The longest wait before asking again.
const WAIT_LONGEST: Duration = Duration::from_secs(5);

/// The parameters of a follower.
pub(in crate::commands) struct FollowOptions {
    /// What every request says.
    pub(in crate::commands) base: Parameters,
    /// What is printed first.
    pub(in crate::commands) backlog: Backlog,
    /// The end of the range, excluded.
    pub(in crate::commands) until: Option<Timestamp>,
}

/// What is printed before what arrives.
pub(in crate::commands) enum Backlog {
    /// Nothing.
    None,
    /// So many of the newest records.
    Newest(u64),
    /// All that these say, oldest first.
    From(Parameters),
}

pub(super) fn run(args: &Query, question: &Question, sink: &mut Sink) -> Result<Trailer, Failure> {
    let client = client(&args.server)?;
    sink.progress.disable();
    let following = FollowOptions {
        base: parameters(question, sink),
        backlog: match question.limit {
            0 => Backlog::None,
            limit => Backlog::Newest(limit),
        },
        until: question.meaning.until,
    };
    Ok(Trailer {
        rows: follow(&client, following, sink)?,
        complete: true,
        ..Trailer::default()
    })
}

/// Follows until the process is ended, or the end of the range is over; gives how many were printed.
pub(in crate::commands) fn follow(
    client: &Client,
    following: FollowOptions,
    sink: &mut Sink,
) -> Result<u64, Failure> {
    let base = following.base;
    let mut place = Place::default();
    let mut rows = match following.backlog {
        Backlog::None => 0,
        Backlog::Newest(limit) => backlog(client, &base, limit, &mut place, sink)?,
        Backlog::From(more) => all_from(client, &base, more, &mut place, sink)?,
    };
    let mut wait = WAIT_FIRST;
    let mut is_lost = false;
    loop {
        let mut asked = base.clone();
        asked.push(("follow", "true".into()));
        asked.push(("positions", "true".into()));
        asked.extend(place.parameter());
        let before = rows;
        let ended = match client.get("/api/v1/query", &asked) {
            Ok(mut answer) => {
                if is_lost {
                    note("-- reconnected --");
                }
                is_lost = false;
                listen(&mut answer, following.until, &mut place, &mut rows, sink)
            }
            Err(
                error
                @ (ClientError::Unreachable { .. } | ClientError::Refused { status: 503, .. }),
            ) => Err(error.into()),
            Err(error) => return Err(error.into()),
        };
        let is_over = following
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
    Ok(rows)
}

/// Prints all that `more` says, oldest first.
fn all_from(
    client: &Client,
    base: &Parameters,
    more: Parameters,
    place: &mut Place,
    sink: &mut Sink,
) -> Result<u64, Failure> {
    let mut asked = base.clone();
    asked.extend(more);
    asked.push(("positions", "true".into()));
    let mut answer = client.get("/api/v1/query", &asked)?;
    loop {
        match answer.next_item()? {
            Item::Row(line) => {
                place.see(line)?;
                sink.line(line)?;
            }
            Item::Gap => sink.gap()?,
            Item::Progress(_) | Item::Notice(_) | Item::Position(_) => {}
            Item::Trailer(trailer) => {
                sink.flush()?;
                lacks(&trailer);
                trailer.position.into_iter().for_each(|at| place.go_on(at));
                return Ok(trailer.rows);
            }
        }
    }
}

/// Prints the newest records, oldest first.
fn backlog(
    client: &Client,
    base: &Parameters,
    limit: u64,
    place: &mut Place,
    sink: &mut Sink,
) -> Result<u64, Failure> {
    let mut asked = base.clone();
    asked.push(("limit", limit.to_string()));
    asked.push(("direction", "backward".into()));
    asked.push(("positions", "true".into()));
    let mut answer = client.get("/api/v1/query", &asked)?;
    let mut held = RowStack::default();
    let mut trailer = loop {
        match answer.next_item()? {
            Item::Row(line) => {
                place.see(line)?;
                held.push(line)?;
            }
            Item::Gap => held.push(b"")?,
            Item::Progress(_) | Item::Notice(_) | Item::Position(_) => {}
            Item::Trailer(trailer) => break trailer,
        }
    };
    let position = trailer.position.take();
    position.into_iter().for_each(|at| place.go_on(at));
    held.print(sink)?;
    sink.flush()?;
    // It goes on all the same, and what is missing may come.
    lacks(&trailer);
    Ok(trailer.rows)
}

/// Prints what arrives until the connection ends, or something comes behind the end of the range.
fn listen(
    answer: &mut logpond_client::Answer,
    until: Option<Timestamp>,
    place: &mut Place,
    rows: &mut u64,
    sink: &mut Sink,
) -> Result<(), Failure> {
    loop {
        let item = answer.next_item()?;
        // The server shows what arrives, whatever its time.
        if until.is_some_and(|until| until < crate::commands::selection::now()) {
            return Ok(());
        }
        match item {
            Item::Row(line) => {
                if place.see(line)? {
                    *rows += 1;
                    sink.line(line)?;
                }
            }
            Item::Gap => sink.gap()?,
            Item::Notice(notice) => {
                sink.flush()?;
                note(&format!("-- {notice} --"));
            }
            Item::Position(at) => place.go_on(at),
            Item::Progress(_) => {}
            Item::Trailer(_) => return Ok(()),
        }
        if !answer.is_more_at_hand() {
            sink.flush()?;
        }
    }
}

/// What has been printed, so far as it tells where to go on.
#[derive(Default)]
struct Place {
    /// The largest id, and its record's time.
    id: String,
    time: String,
    /// Where a cluster said that it could go on.
    position: Option<String>,
    /// Ids of what it sent after it said so.
    since: HashSet<String>,
    /// Ids of what came after that over connections that broke: it comes again.
    again: HashSet<String>,
}

impl Place {
    /// Takes note of a record; says whether it is not printed yet.
    fn see(&mut self, line: &[u8]) -> Result<bool, Failure> {
        let row = Row::from_json(line)?;
        if *row.id > *self.id {
            self.id = row.id.clone().into_owned();
            self.time = row.time.map(|time| time.to_string()).unwrap_or_default();
        }
        let is_new = !self.again.remove(&*row.id);
        if self.position.is_some() {
            self.since.insert(row.id.into_owned());
        }
        Ok(is_new)
    }

    /// Takes note of where a cluster could go on after all that it has sent.
    fn go_on(&mut self, position: String) {
        self.position = Some(position);
        self.since.clear();
    }

    /// Says a server where to go on: a cluster where it said, a node alone behind the largest id.
    fn parameter(&mut self) -> Option<(&'static str, String)> {
        self.again.extend(self.since.drain());
        match &self.position {
            Some(position) => Some(("position", position.clone())),
            None => (!self.id.is_empty()).then(|| ("cursor", format!("{}_{}", self.time, self.id))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: u32) -> Vec<u8> {
        format!("{{\"_time\":\"2026-03-02T00:00:00Z\",\"_id\":\"{id:026}\"}}").into_bytes()
    }

    #[test]
    fn what_comes_again_is_not_printed_again() {
        let mut place = Place::default();
        assert_eq!(place.parameter(), None);
        assert!(place.see(&line(1)).unwrap());
        assert_eq!(place.parameter().unwrap().0, "cursor");
        place.go_on("a".into());
        assert!(place.see(&line(2)).unwrap() && place.see(&line(3)).unwrap());
        assert_eq!(place.parameter(), Some(("position", "a".into())));
        // It says where it is before it sends again what came after that.
        place.go_on("a".into());
        assert!(!place.see(&line(3)).unwrap());
        place.go_on("b".into());
        assert!(place.see(&line(4)).unwrap());
        assert_eq!(place.parameter(), Some(("position", "b".into())));
        assert!(!place.see(&line(2)).unwrap() && !place.see(&line(4)).unwrap());
        assert!(place.see(&line(5)).unwrap());
    }
}

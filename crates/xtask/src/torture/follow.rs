//! Followers: they follow the cluster from the beginning to the end, through whatever becomes of the
//! nodes, as a program would that must neither miss nor repeat a record.
//!
//! They do so over HTTP, since that is where a client may go on at another node than the one that it
//! followed through (the command knows one address), and where positions, notices and trailers show.
//! When a node breaks off or falls silent, a follower goes on at another one from the position that
//! it was told last. There are two, who differ in where they are and how they begin:
//!
//! - the loyal one asks for all that there is and for what comes (`follow`), stays until it has
//!   to go, and always goes to the node that is to be killed, stopped or restarted next;
//! - the restless one asks first for all that there is, and follows from the position in the trailer of
//!   that; and it leaves soon, in the midst of rows.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, ErrorKind};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Run;
use super::history::{self, AnswerEnd, Event, FollowerEvent, Micros, Place, Row};
use super::load::value;
use super::plan::PlannedFault;
use super::questions::{self, Trailer};
use crate::draw::Draw;
use crate::e2e::http::{self, encode};
use crate::run::Outcome;

/// How many there are.
pub(super) const FOLLOWERS: usize = 2;

/// The one that leaves by itself.
const RESTLESS: history::Follower = 1;

/// How long a node may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a follower hears nothing until it goes elsewhere: longer than nodes wait for each other,
/// shorter than many faults, so that it meets both nodes that went on and nodes that did not.
const SILENCE: Duration = Duration::from_secs(3);

/// How long a follower waits before it asks another node.
const PAUSE: Duration = Duration::from_millis(50);

/// The longest time for which the restless one stays at a node.
const STAY_MS_MAX: u64 = 3_000;

/// How long before a fault a follower may still come for it, in milliseconds.
const BEFORE_FAULT_MS: u64 = 300;

/// The filter of followers. A line that was cut with its connection has no client.
const FILTER: &str = "torture client:*";

/// Rows of one entry of the history.
const ROWS_NOTED_MAX: usize = 500;

/// What a follower was shown so far, by client.
pub(super) type Shown = Vec<BTreeSet<u64>>;

/// Follows until [`Run::is_followed_to_the_end`] says so.
pub(super) fn follow(run: &Run, number: history::Follower, plan: &[PlannedFault]) {
    let mut follower = Follower {
        run,
        number,
        plan,
        draw: Draw::new(run.seed, 400 + number as u64),
        nodes: run.nodes(),
        began: run.history.now(),
        place: Place::MAX,
        position: None,
        has_all: number != RESTLESS,
        rows: Vec::new(),
    };
    while !run.is_followed_to_the_end.load(Ordering::SeqCst) {
        follower.go();
        thread::sleep(PAUSE);
    }
}

/// Has followers come to their end, once they were shown everything that they ever will be.
pub(super) fn end(run: &Run) {
    run.is_followed_to_the_end.store(true, Ordering::SeqCst);
    for follower in 0..FOLLOWERS {
        let (what, at) = (FollowerEvent::Over, run.history.now());
        run.history.note(Event::Followed { follower, what, at });
    }
}

/// A line that a follower is sent.
enum Line {
    Row(Row),
    Position(String),
    Notice(String, bool),
    Trailer(Trailer),
}

struct Follower<'a> {
    run: &'a Run,
    number: history::Follower,
    plan: &'a [PlannedFault],
    draw: Draw,
    nodes: Vec<Place>,
    /// When it began to be there.
    began: Micros,
    /// The node that was asked last.
    place: Place,
    /// Where it goes on.
    position: Option<String>,
    /// Whether it has what there was before, so that it can follow.
    has_all: bool,
    /// Rows that are not in the history yet.
    rows: Vec<Row>,
}

impl Follower<'_> {
    fn note(&self, what: FollowerEvent) {
        let (follower, at) = (self.number, self.run.history.now());
        self.run
            .history
            .note(Event::Followed { follower, what, at });
    }

    /// Notes the rows that came: before everything else that is noted.
    fn note_rows(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return;
        }
        let mut shown = self.run.shown[self.number]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for row in &rows {
            shown[row.client].insert(row.number);
        }
        drop(shown);
        self.note(FollowerEvent::Shown(rows));
    }

    /// Asks a node once, and listens to the end of the answer.
    fn go(&mut self) {
        self.place = self.choose();
        let (place, is_first) = (self.place, !self.has_all);
        let goes_on = self.position.is_some();
        self.note(FollowerEvent::Asked {
            place,
            is_first,
            goes_on,
        });
        let began = self.run.history.now();
        let ended = self.listen();
        self.note_rows();
        let how = match ended {
            Ok(how) => how,
            Err(why) => AnswerEnd::Broken { why },
        };
        self.note(FollowerEvent::Ended { place, began, how });
    }

    /// Whom it follows through next: not who was it before.
    fn choose(&mut self) -> Place {
        let others = self.nodes.iter().filter(|node| **node != self.place);
        let others: Vec<Place> = others.copied().collect();
        let drawn = *self.draw.one(&others);
        if self.number == RESTLESS {
            return drawn;
        }
        // The plan began about when this follower did.
        let now_ms = self.run.history.now().saturating_sub(self.began) / 1_000;
        let is_due = |planned: &&PlannedFault| {
            let place = planned.fault.place();
            let is_ahead = planned.from_ms > now_ms + BEFORE_FAULT_MS;
            is_ahead && planned.fault.ends_a_process() && others.contains(&place)
        };
        let next = self.plan.iter().filter(is_due).min_by_key(|p| p.from_ms);
        next.map_or(drawn, |planned| planned.fault.place())
    }

    /// The parameters of the next request: they are sent in its body, as positions can be longer than an address.
    fn form(&self) -> String {
        let follow = if self.has_all { "&follow=true" } else { "" };
        let position = self.position.as_deref().unwrap_or_default();
        format!(
            "q={}&from=@0&positions=true{follow}&position={}",
            encode(FILTER),
            encode(position)
        )
    }

    fn listen(&mut self) -> Outcome<AnswerEnd> {
        let address = self.run.processes[self.place].http();
        let failed = |e: std::io::Error| format!("{address}: {e}");
        let client = http::Client::connect_within(&address, CONNECT_TIMEOUT, SILENCE);
        let mut client = client.map_err(failed)?;
        let form = [("content-type", "application/x-www-form-urlencoded")];
        let answer = client.send("POST", "/api/v1/query", &form, self.form().as_bytes());
        let answer = match answer {
            Err(error) if is_silence(&error) => return Ok(AnswerEnd::Silent),
            other => other.map_err(failed)?,
        };
        if answer.status != 200 {
            let status = answer.status;
            return Err(format!(
                "status {status}: {}",
                answer.text().map_err(failed)?
            ));
        }
        let stay = Duration::from_millis(self.draw.within(1, STAY_MS_MAX));
        let since = Instant::now();
        for line in BufReader::new(answer).lines() {
            let line = match line {
                Err(error) if is_silence(&error) => return Ok(AnswerEnd::Silent),
                other => other.map_err(failed)?,
            };
            let read = self
                .read(&line)
                .map_err(|e| format!("{address}: {e}: {line}"));
            let read = read.inspect_err(|what| self.run.history.wrong("WRONG FORM", what));
            match read? {
                Line::Row(row) => {
                    self.rows.push(row);
                    if self.rows.len() >= ROWS_NOTED_MAX {
                        self.note_rows();
                    }
                }
                Line::Position(position) => self.go_on(position),
                Line::Notice(node, answers) => {
                    self.note_rows();
                    self.note(FollowerEvent::Noticed { node, answers });
                }
                Line::Trailer(trailer) => return Ok(self.end(trailer)),
            }
            let is_over = self.run.is_load_over();
            if self.number == RESTLESS && self.has_all && !is_over && since.elapsed() > stay {
                return Ok(AnswerEnd::Left);
            }
        }
        Err(format!("{address}: it breaks off"))
    }

    fn go_on(&mut self, position: String) {
        self.note_rows();
        self.note(FollowerEvent::Told(position.clone()));
        self.position = Some(position);
    }

    fn end(&mut self, trailer: Trailer) -> AnswerEnd {
        trailer.position.into_iter().for_each(|at| self.go_on(at));
        if std::mem::replace(&mut self.has_all, true) {
            AnswerEnd::Stopped {
                missing: trailer.missing,
            }
        } else {
            AnswerEnd::First {
                is_complete: trailer.is_complete,
            }
        }
    }

    fn read(&self, line: &str) -> Outcome<Line> {
        let value: Value = serde_json::from_str(line).map_err(|e| e.to_string())?;
        if let Some(position) = value["_position"].as_str() {
            return Ok(Line::Position(position.to_owned()));
        }
        if let Some(trailer) = value.get("_trailer") {
            return Ok(Line::Trailer(questions::read_trailer(trailer)));
        }
        if let Some(notice) = value.get("_notice") {
            let (node, answers) = (notice["node"].as_str(), notice["answers"].as_bool());
            let notice = node.zip(answers);
            let (node, answers) = notice.ok_or("a notice of another form")?;
            return Ok(Line::Notice(node.to_owned(), answers));
        }
        self.row(&value).map(Line::Row)
    }

    fn row(&self, row: &Value) -> Outcome<Row> {
        let clients = &self.run.clients;
        let client = clients
            .iter()
            .position(|c| row["client"] == c.name.as_str());
        let client = client.ok_or("it is of nobody")?;
        let number = row["n"].as_u64().ok_or("it has no number")?;
        let id = row["_id"].as_str().and_then(|id| id.parse().ok());
        Ok(Row {
            client,
            number,
            id: id.ok_or("it has no name")?,
            is_altered: row["v"] != value(client, number) || row["_msg"] != "torture",
        })
    }
}

/// Whether nothing came for the time that is waited.
fn is_silence(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// What each follower has not been shown of what is expected of each client.
pub(super) fn unshown(run: &Run, expected: &[Vec<u64>]) -> Vec<Vec<u64>> {
    let absent = |(client, number): (usize, &u64), shown: &Shown| {
        (!shown[client].contains(number)).then_some(*number)
    };
    let of = run.shown.iter().map(|shown| {
        let shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        let all = expected.iter().enumerate();
        all.flat_map(|(client, numbers)| numbers.iter().map(move |number| (client, number)))
            .filter_map(|one| absent(one, &shown))
            .collect()
    });
    of.collect()
}

//! What was sent, acknowledged, asked, answered and broken, in the order in which it was noted.
//!
//! Invariants:
//! - One monotonic clock stamps everything, in microseconds since the run began.
//! - A time is taken on the careful side: before sending and asking, after an acknowledgement and
//!   the last byte of an answer. So "acknowledged before it was asked" is true whenever it is said.
//!
//! On disk it is a line of JSON for each event, for people and their tools.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use logpond_record::{Id, Timestamp};
use serde_json::{Value, json};

use crate::run::Outcome;

/// Microseconds since the run began.
pub(super) type Micros = u64;

/// Who sent: an index into the names of the clients.
pub(super) type Client = usize;

/// A process: an index into the places of the topology.
pub(super) type Place = usize;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// How many records there are of a client.
    Count(Client),
    /// How many there are of each client.
    Top,
    /// The records of a client with these numbers.
    Rows(Client, Range<u64>),
    /// The same, a page at a time from several nodes.
    Pages(Client, Range<u64>),
    /// The same through another interface, or the number of all records of the client.
    Through(InterfaceQuestion),
}

/// A question through another interface than the native one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InterfaceQuestion {
    /// The name of the interface.
    pub(super) interface: &'static str,
    /// True if one request gives all rows.
    pub(super) is_one_view: bool,
    pub(super) client: Client,
    pub(super) range: Range<u64>,
}

impl Question {
    /// The client and the numbers of the records, if rows were asked for.
    pub(super) fn rows(&self) -> Option<(Client, &Range<u64>)> {
        match self {
            Question::Count(_) | Question::Top => None,
            Question::Rows(client, range) | Question::Pages(client, range) => {
                Some((*client, range))
            }
            Question::Through(question) => Some((question.client, &question.range)),
        }
    }

    /// True if all rows of an answer are of one moment, so that none may be there twice.
    pub(super) fn is_one_view(&self) -> bool {
        match self {
            Question::Through(question) => question.is_one_view,
            _ => matches!(self, Question::Rows(..)),
        }
    }
}

/// The result of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum QueryResult {
    /// A number of records of each client; one that is absent has none.
    Counts(BTreeMap<Client, u64>),
    /// The numbers of the rows, in the order in which they came, and of those that are not as they
    /// were sent.
    Rows {
        numbers: Vec<u64>,
        altered: Vec<u64>,
    },
}

/// An answer to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) question: Question,
    /// Who was asked last.
    pub(super) place: Place,
    pub(super) began: Micros,
    pub(super) ended: Micros,
    pub(super) found: QueryResult,
    /// Whether it said so; of pages, whether all of them did.
    pub(super) is_complete: bool,
    /// What it said was missing.
    pub(super) missing: Vec<String>,
    /// Whether it left some of that out.
    pub(super) is_missing_cut: bool,
}

/// Who follows: an index into the followers.
pub(super) type Follower = usize;

/// A row that a follower was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) client: Client,
    pub(super) number: u64,
    /// The name that a node gave the record; another sending of it has another one.
    pub(super) id: Id,
    pub(super) is_altered: bool,
}

/// An event of a follower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FollowerEvent {
    /// It asks a node: for all that there is, and unless `is_first` for what comes; or, if it was
    /// told one, to go on at the last position.
    Asked {
        place: Place,
        is_first: bool,
        goes_on: bool,
    },
    /// It was sent rows, in this order.
    Shown(Vec<Row>),
    /// It was told where it can go on.
    Told(String),
    /// It was told that a node, named as nodes do, does not answer, or does so again.
    Noticed { node: String, answers: bool },
    /// What it asked for is over.
    Ended {
        place: Place,
        began: Micros,
        how: AnswerEnd,
    },
    /// It does not go on any more, and everything was healed long enough before.
    Over,
}

/// The end of an answer to a follower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AnswerEnd {
    /// What there was when it began, to the trailer.
    First { is_complete: bool },
    /// The follower went to another node.
    Left,
    /// Nothing came for a while.
    Silent,
    /// A trailer, and what it said was missing.
    Stopped { missing: Vec<String> },
    /// There was no answer, or no end of it.
    Broken { why: String },
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Records are about to be sent.
    Sent {
        client: Client,
        numbers: Range<u64>,
        at: Micros,
    },
    /// A node has said that it has them.
    Acknowledged {
        client: Client,
        numbers: Range<u64>,
        place: Place,
        is_replicated: bool,
        at: Micros,
    },
    /// A node has said that it kept nothing of them, and they were not sent again.
    Refused {
        client: Client,
        numbers: Range<u64>,
        at: Micros,
    },
    /// A question was answered.
    Answered(Answer),
    /// A question was not answered to its end.
    Unanswered {
        question: Question,
        place: Place,
        began: Micros,
        ended: Micros,
        why: String,
    },
    /// A fault begins.
    Broken {
        fault: String,
        kind: &'static str,
        /// Processes that are not running from now on.
        down: Vec<Place>,
        at: Micros,
    },
    /// It is over, and who was down runs again.
    Healed {
        fault: String,
        down: Vec<Place>,
        at: Micros,
    },
    /// The clock of a node is wrong by so many days from now on; 0 if it is right again.
    Clock { place: Place, days: i64, at: Micros },
    /// Something befell a follower.
    Followed {
        follower: Follower,
        what: FollowerEvent,
        at: Micros,
    },
    /// Something that must not happen was seen beside all answers.
    Wrong {
        kind: &'static str,
        text: String,
        at: Micros,
    },
}

/// The events of a run.
#[derive(Debug)]
pub(super) struct History {
    start: Instant,
    /// The system's time at the start.
    start_time: Timestamp,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    events: Vec<Event>,
    file: BufWriter<File>,
}

impl History {
    /// An empty one that is also written to this file.
    pub(super) fn create(path: &Path) -> Outcome<History> {
        let file = File::create(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let nanos = since_1970
            .map_err(|e| format!("the clock: {e}"))?
            .as_nanos();
        Ok(History {
            start: Instant::now(),
            start_time: Timestamp(i64::try_from(nanos).map_err(|e| format!("the clock: {e}"))?),
            state: Mutex::new(State {
                events: Vec::new(),
                file: BufWriter::new(file),
            }),
        })
    }

    /// Now.
    pub(super) fn now(&self) -> Micros {
        self.start.elapsed().as_micros() as Micros
    }

    /// What the system's clock said when the run began.
    pub(super) fn start_time(&self) -> Timestamp {
        self.start_time
    }

    /// Adds an event.
    pub(super) fn note(&self, event: Event) {
        let line = to_json(&event);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // What cannot be written down is still checked.
        let _ = writeln!(state.file, "{line}");
        if !matches!(
            event,
            Event::Sent { .. } | Event::Acknowledged { .. } | Event::Followed { .. }
        ) {
            let _ = state.file.flush();
        }
        state.events.push(event);
    }

    /// Notes something that must not happen.
    pub(super) fn wrong(&self, kind: &'static str, text: impl Into<String>) {
        let (text, at) = (text.into(), self.now());
        self.note(Event::Wrong { kind, text, at });
    }

    /// Everything so far.
    pub(super) fn events(&self) -> Vec<Event> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.events.clone()
    }
}

fn question(question: &Question) -> Value {
    match question {
        Question::Count(client) => json!({"count": client}),
        Question::Top => json!("top"),
        Question::Rows(client, n) => json!({"rows": client, "from": n.start, "to": n.end}),
        Question::Pages(client, n) => json!({"pages": client, "from": n.start, "to": n.end}),
        Question::Through(through) => json!({
            "through": through.interface, "client": through.client, "from": through.range.start,
            "to": through.range.end
        }),
    }
}

/// Numbers in their order as runs from and to.
pub(super) fn runs(numbers: &[u64]) -> Vec<(u64, u64)> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for number in sorted {
        match runs.last_mut() {
            Some((_, to)) if *to + 1 == number => *to = number,
            _ => runs.push((number, number)),
        }
    }
    runs
}

fn followed(what: &FollowerEvent) -> Value {
    match what {
        FollowerEvent::Asked {
            place,
            is_first,
            goes_on,
        } => json!({"asked": place, "first": is_first, "goes_on": goes_on}),
        FollowerEvent::Shown(rows) => {
            let rows = rows.iter().map(|row| {
                if row.is_altered {
                    json!([row.client, row.number, row.id.to_string(), "altered"])
                } else {
                    json!([row.client, row.number, row.id.to_string()])
                }
            });
            json!({"shown": rows.collect::<Vec<Value>>()})
        }
        FollowerEvent::Told(position) => json!({"position": position}),
        FollowerEvent::Noticed { node, answers } => json!({"node": node, "answers": answers}),
        FollowerEvent::Ended { place, began, how } => json!({
            "ended": place, "began": began, "how": match how {
                AnswerEnd::First { is_complete } => json!({"complete": is_complete}),
                AnswerEnd::Left => json!("left"),
                AnswerEnd::Silent => json!("silent"),
                AnswerEnd::Stopped { missing } => json!({"missing": missing}),
                AnswerEnd::Broken { why } => json!({"broken": why}),
            }
        }),
        FollowerEvent::Over => json!("over"),
    }
}

fn to_json(event: &Event) -> Value {
    match event {
        Event::Sent {
            client,
            numbers,
            at,
        } => json!({
            "event": "sent", "at": at, "client": client, "from": numbers.start, "to": numbers.end
        }),
        Event::Acknowledged {
            client,
            numbers,
            place,
            is_replicated,
            at,
        } => json!({
            "event": "acknowledged", "at": at, "client": client, "from": numbers.start,
            "to": numbers.end, "place": place, "replicated": is_replicated
        }),
        Event::Refused {
            client,
            numbers,
            at,
        } => json!({
            "event": "refused", "at": at, "client": client, "from": numbers.start,
            "to": numbers.end
        }),
        Event::Answered(answer) => json!({
            "event": "answered", "at": answer.ended, "began": answer.began,
            "question": question(&answer.question), "place": answer.place,
            "complete": answer.is_complete, "missing": answer.missing,
            "found": match &answer.found {
                QueryResult::Counts(counts) => json!(counts),
                QueryResult::Rows { numbers, altered } => {
                    json!({"rows": numbers.len(), "runs": runs(numbers), "altered": altered})
                }
            }
        }),
        Event::Unanswered {
            question: asked,
            place,
            began,
            ended,
            why,
        } => json!({
            "event": "unanswered", "at": ended, "began": began, "question": question(asked),
            "place": place, "why": why
        }),
        Event::Broken {
            fault,
            kind,
            down,
            at,
        } => json!({
            "event": "broken", "at": at, "kind": kind, "fault": fault, "down": down
        }),
        Event::Healed { fault, down, at } => json!({
            "event": "healed", "at": at, "fault": fault, "down": down
        }),
        Event::Clock { place, days, at } => json!({
            "event": "clock", "at": at, "place": place, "days": days
        }),
        Event::Followed { follower, what, at } => json!({
            "event": "followed", "at": at, "follower": follower, "what": followed(what)
        }),
        Event::Wrong { kind, text, at } => json!({
            "event": "wrong", "at": at, "kind": kind, "text": text
        }),
    }
}

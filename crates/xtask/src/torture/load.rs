//! Clients: numbered records at a steady pace, by themselves or through a forwarder.
//!
//! Kinds, which promise different things:
//! - named: a batch has a name and is sent again, to any node, until one has acknowledged it;
//! - plain: a batch is sent once; without an answer nobody knows, and after a refusal it is gone;
//! - lines: lines of a file that a forwarder with a spool sends; all of them arrive in the end;
//! - a protocol of another product, with the promise of [`super::sources`]: a batch is sent again to the same
//!   node until it is acknowledged, if the protocol promises that this stores it once.

use std::fs::OpenOptions;
use std::io::Write;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::history::{self, Event, Place};
use super::patience::patient;
use super::sources::Source;
use super::{Run, deliver};
use crate::draw::{Draw, mixed};
use crate::e2e::http;
use crate::run::Outcome;

/// Records of a push.
const BATCH_RECORDS: u64 = 20;

/// The clients that a run has at least: with more of them each one sends less often.
const CLIENTS_AT_FULL_PACE: u32 = 5;

/// How often a client pushes, and how often lines are appended.
pub(super) const PACE: Duration = Duration::from_millis(100);

/// How long a client waits for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a client waits for an answer before it takes it as lost: longer than a node takes for a
/// sync, shorter than most faults, so that batches are sent again while the first is on its way.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// How long after all was healed a named batch may be on its way: a node waits for two seconds for
/// room, a client for three for an answer.
pub(super) const FLUSH_DEADLINE: Duration = Duration::from_secs(60);

/// How a client sends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Named,
    Plain,
    /// By this forwarder.
    Lines(Place),
    /// By this protocol.
    Protocol(&'static Source),
}

/// A client.
#[derive(Debug)]
pub(super) struct Producer {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// The number of the next record: all below were sent.
    pub(super) next: AtomicU64,
}

impl Producer {
    pub(super) fn new(index: usize, kind: Kind) -> Producer {
        let name = match kind {
            Kind::Named => "named",
            Kind::Plain => "plain",
            Kind::Lines(_) => "lines",
            Kind::Protocol(source) => source.name,
        };
        Producer {
            name: format!("{name}-{index}"),
            kind,
            next: AtomicU64::new(0),
        }
    }
}

/// How often a client sends: the clients of a run send as much together, however many they are.
pub(super) fn pace(run: &Run) -> Duration {
    let clients = u32::try_from(run.clients.len()).unwrap_or(u32::MAX);
    PACE * clients.max(CLIENTS_AT_FULL_PACE) / CLIENTS_AT_FULL_PACE
}

/// The value that a record must have.
pub(super) fn value(client: history::Client, number: u64) -> String {
    format!("{:016x}", mixed(mixed(client as u64 + 1) ^ number))
}

/// Text that makes records of different lengths.
pub(super) fn pad(number: u64) -> String {
    "x".repeat((mixed(number) % 200) as usize)
}

/// A record as a line. Some clients say when their records happened: long ago, one a second.
fn record(run: &Run, client: history::Client, number: u64) -> String {
    let (name, value) = (&run.clients[client].name, value(client, number));
    let pad = pad(number);
    let time = match client % 2 {
        0 => String::new(),
        _ => format!("\"time\":{},", 1_750_000_000 + number),
    };
    format!(
        "{{{time}\"_msg\":\"torture\",\"client\":\"{name}\",\"n\":{number},\"v\":\"{value}\",\
         \"pad\":\"{pad}\"}}\n"
    )
}

/// Takes the next numbers of a client, and notes that they are about to be sent.
fn draw_numbers(run: &Run, client: history::Client) -> (Range<u64>, String) {
    let numbers = take_numbers(run, client, BATCH_RECORDS);
    let records = numbers.clone().map(|number| record(run, client, number));
    let body = records.collect();
    (numbers, body)
}

/// Takes so many numbers of a client, and notes that their records are about to be sent.
pub(super) fn take_numbers(run: &Run, client: history::Client, count: u64) -> Range<u64> {
    let from = run.clients[client].next.load(Ordering::SeqCst);
    let numbers = from..from + count;
    let at = run.history.now();
    run.history.note(Event::Sent {
        client,
        numbers: numbers.clone(),
        at,
    });
    run.clients[client]
        .next
        .store(numbers.end, Ordering::SeqCst);
    numbers
}

/// Sends as a client until the load stops.
pub(super) fn produce(run: &Run, client: history::Client) -> Outcome<()> {
    match run.clients[client].kind {
        Kind::Lines(place) => append_lines(run, client, place),
        Kind::Named | Kind::Plain => push(run, client),
        Kind::Protocol(source) => deliver::deliver(run, client, source),
    }
}

fn append_lines(run: &Run, client: history::Client, place: Place) -> Outcome<()> {
    let path = run.processes[place].input();
    let file = OpenOptions::new().append(true).open(&path);
    let mut file = file.map_err(|e| format!("{}: {e}", path.display()))?;
    while !run.is_load_over() {
        let (_, lines) = draw_numbers(run, client);
        file.write_all(lines.as_bytes())
            .map_err(|e| format!("{}: {e}", path.display()))?;
        thread::sleep(pace(run));
    }
    Ok(())
}

/// The outcome of a push.
enum PushOutcome {
    Taken {
        is_replicated: bool,
    },
    /// Nothing of it was kept.
    Refused,
    /// It did not even leave.
    Unsent,
    /// Nobody knows.
    Unknown,
}

/// The connection of a client, and whom it is to.
struct Connection {
    to: Place,
    http: Option<http::Client>,
}

fn push(run: &Run, client: history::Client) -> Outcome<()> {
    let mut draw = Draw::new(run.seed, 100 + client as u64);
    let intakes = run.intakes();
    let mut connection = Connection {
        to: *draw.one(&intakes),
        http: None,
    };
    let epoch = format!("{:016x}{:016x}", draw.next(), draw.next());
    let is_named = matches!(run.clients[client].kind, Kind::Named);
    for sequence in 0.. {
        if run.is_load_over() {
            return Ok(());
        }
        let (numbers, body) = draw_numbers(run, client);
        let first = run.history.start_time().unix_ms() + (run.history.now() / 1_000) as i64;
        let (mut attempt, mut over_since) = (0, None);
        loop {
            let name = is_named.then(|| format!("{epoch}-{sequence}-{attempt}@{first}"));
            let pushed = send(run, &mut connection, name, &body)?;
            let (client, numbers, at) = (client, numbers.clone(), run.history.now());
            let place = connection.to;
            match pushed {
                PushOutcome::Taken { is_replicated } => {
                    let event = Event::Acknowledged {
                        client,
                        numbers,
                        place,
                        is_replicated,
                        at,
                    };
                    run.history.note(event);
                    break;
                }
                PushOutcome::Refused if !is_named => {
                    run.history.note(Event::Refused {
                        client,
                        numbers,
                        at,
                    });
                    break;
                }
                PushOutcome::Unknown if !is_named => break,
                PushOutcome::Unknown => attempt += 1,
                PushOutcome::Refused | PushOutcome::Unsent => {}
            }
            connection = Connection {
                to: *draw.one(&intakes),
                http: None,
            };
            thread::sleep(PACE);
            if run.is_load_over() {
                let since = *over_since.get_or_insert_with(Instant::now);
                if since.elapsed() > patient(FLUSH_DEADLINE) {
                    return Err(format!(
                        "no node took {name} in time",
                        name = run.clients[client].name
                    ));
                }
            }
        }
        if draw.below(20) == 0 {
            connection = Connection {
                to: *draw.one(&intakes),
                http: None,
            };
        }
        thread::sleep(pace(run));
    }
    Ok(())
}

/// Sends a body once. An answer that no node may give is an error.
fn send(
    run: &Run,
    connection: &mut Connection,
    name: Option<String>,
    body: &str,
) -> Outcome<PushOutcome> {
    let address = run.processes[connection.to].http();
    if connection.http.is_none() {
        connection.http =
            http::Client::connect_within(&address, CONNECT_TIMEOUT, ANSWER_TIMEOUT).ok();
    }
    let Some(client) = &mut connection.http else {
        return Ok(PushOutcome::Unsent);
    };
    let mut headers = vec![("content-type", "application/x-ndjson")];
    headers.extend(name.as_ref().map(|name| ("logpond-batch", name.as_str())));
    let answer = client.send("POST", "/api/v1/push", &headers, body.as_bytes());
    let answer = answer.and_then(|answer| Ok((answer.status, answer.text()?)));
    let Ok((status, text)) = answer else {
        connection.http = None;
        return Ok(PushOutcome::Unknown);
    };
    let said: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    match status {
        200 if said["accepted"] == BATCH_RECORDS && said["durable"] == true => {
            Ok(PushOutcome::Taken {
                is_replicated: said["replicated"] == true,
            })
        }
        429 | 503 | 507 => Ok(PushOutcome::Refused),
        _ => Err(format!("{address} answered a push by {status}: {text}")),
    }
}

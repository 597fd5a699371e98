//! A client of a protocol of another product: batches to a node, and again as its protocol promises.

use std::thread;
use std::time::Instant;

use logpond_record::Timestamp;

use super::Run;
use super::history::{self, Event, Place};
use super::load::{self, FLUSH_DEADLINE};
use super::patience::patient;
use super::sources::{Others, Promise, Record, Reply, Session, Source};
use crate::draw::Draw;
use crate::run::Outcome;

/// Records of a batch.
const BATCH_RECORDS: u64 = 10;

/// The time of the first record; each next one is a second later.
const TIME_START_NS: i64 = 1_750_000_000_123_456_000;

/// Nanoseconds of a second.
const SECOND_NS: i64 = 1_000_000_000;

/// Of so many batches, one begins with a new connection, to any node.
const BATCHES_PER_CONNECTION: usize = 20;

/// A client, with its connection.
struct Deliverer<'a> {
    run: &'a Run,
    client: history::Client,
    source: &'static Source,
    draw: Draw,
    intakes: Vec<Place>,
    to: Place,
    session: Option<Box<dyn Session>>,
}

/// Sends until the load stops.
pub(super) fn deliver(run: &Run, client: history::Client, source: &'static Source) -> Outcome<()> {
    let mut draw = Draw::new(run.seed, 100 + client as u64);
    let intakes = run.intakes();
    let to = *draw.one(&intakes);
    let mut deliverer = Deliverer {
        run,
        client,
        source,
        draw,
        intakes,
        to,
        session: None,
    };
    while !run.is_load_over() {
        deliverer.send_batch()?;
        if deliverer.draw.below(BATCHES_PER_CONNECTION) == 0 {
            deliverer.go_elsewhere();
        }
        thread::sleep(load::pace(run));
    }
    Ok(())
}

impl Deliverer<'_> {
    fn go_elsewhere(&mut self) {
        self.session = None;
        self.to = *self.draw.one(&self.intakes);
    }

    /// Sends a batch until all of it is acknowledged, or its fate may stay unknown.
    fn send_batch(&mut self) -> Outcome<()> {
        let run = self.run;
        let numbers = load::take_numbers(run, self.client, BATCH_RECORDS);
        let mut next = numbers.start;
        let records: Vec<Record> = numbers.map(|number| self.record(number)).collect();
        let (mut has_left, mut over_since) = (false, None);
        loop {
            let rest =
                &records[records.len() - (records[0].number + BATCH_RECORDS - next) as usize..];
            let reply = self.send(rest)?;
            let acknowledged = reply.map_or(0, |reply| reply.acknowledged as u64);
            self.note_acknowledged(next..next + acknowledged);
            next += acknowledged;
            if acknowledged == rest.len() as u64 {
                return Ok(());
            }
            match (reply.map(|reply| reply.others), self.source.promise) {
                (Some(Others::Sent), _) => return Ok(()),
                (Some(Others::Unknown), Promise::Nothing | Promise::Durable) => {
                    self.session = None;
                    return Ok(());
                }
                (Some(Others::Unknown), Promise::Once) => {
                    self.session = None;
                    has_left = true;
                }
                // Only this node knows whether it has stored them.
                (Some(Others::Refused) | None, _) if has_left => self.session = None,
                (Some(Others::Refused) | None, _) => self.go_elsewhere(),
            }
            thread::sleep(load::PACE);
            if run.is_load_over() {
                let since = *over_since.get_or_insert_with(Instant::now);
                if since.elapsed() > patient(FLUSH_DEADLINE) {
                    let name = &run.clients[self.client].name;
                    return Err(format!("no node took {name} in time"));
                }
            }
        }
    }

    /// Sends records once; nothing is returned if there is no connection.
    fn send(&mut self, records: &[Record]) -> Outcome<Option<Reply>> {
        let process = &self.run.processes[self.to];
        let address = match self.source.listener {
            Some(listener) => process.address(listener.port),
            None => process.http(),
        };
        if self.session.is_none() {
            self.session = (self.source.open)(&address).ok();
        }
        let Some(session) = &mut self.session else {
            return Ok(None);
        };
        let reply = session.send(records).map(Some);
        reply.map_err(|error| format!("{} to {address}: {error}", self.source.name))
    }

    fn note_acknowledged(&self, numbers: std::ops::Range<u64>) {
        if !numbers.is_empty() {
            self.run.history.note(Event::Acknowledged {
                client: self.client,
                numbers,
                place: self.to,
                is_replicated: false,
                at: self.run.history.now(),
            });
        }
    }

    fn record(&self, number: u64) -> Record {
        let seconds = i64::try_from(number).unwrap_or(i64::MAX);
        Record {
            client: self.run.clients[self.client].name.clone(),
            number,
            value: load::value(self.client, number),
            pad: load::pad(number),
            time: Timestamp(TIME_START_NS).saturating_add(seconds.saturating_mul(SECOND_NS)),
        }
    }
}

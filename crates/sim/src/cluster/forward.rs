//! Forwarders: batches that are sent until they are acknowledged, and kept until stores have them.

use std::collections::BTreeMap;

use logpond_record::SourceId;

use super::disk::{Batch, Frame};
use super::message::{FORWARDERS, Place, Reply, ReplyTarget, Request, Timer};
use super::world::World;

/// An acknowledged batch is sent again if its ingester has not said for so long that stores have
/// it.
const KEEP_MS: u64 = 15_000;

/// The most batches that are not done; more are not made.
const SPOOL_MAX: usize = 40;

/// The most batches that are sent at a time.
const SENDS_MAX: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// To be sent, as this attempt.
    Ready { attempt: u32 },
    /// Sent; it may have arrived.
    Sent { attempt: u32 },
    /// Acknowledged as durable.
    Durable {
        attempt: u32,
        ingester: Place,
        source: SourceId,
        since_ms: u64,
    },
}

/// A forwarder. What it has spooled survives it.
pub(super) struct Forwarder {
    epoch: u64,
    /// Whether it keeps batches until stores have them.
    waits: bool,
    next: u64,
    spool: BTreeMap<u64, (u64, State)>,
    target: Place,
    pub(super) waiting: BTreeMap<u64, ReplyTarget>,
}

impl Forwarder {
    pub(super) fn new(epoch: u64, waits: bool) -> Forwarder {
        Forwarder {
            epoch,
            waits,
            next: 0,
            spool: BTreeMap::new(),
            target: 0,
            waiting: BTreeMap::new(),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.spool.is_empty()
    }

    pub(super) fn keeps(&self) -> bool {
        self.waits
    }

    fn batch(&self, sequence: u64) -> Batch {
        Batch {
            epoch: self.epoch,
            sequence,
        }
    }

    /// It was killed: what it had sent may have arrived or not.
    pub(super) fn restart(&mut self) {
        self.waiting.clear();
        for (_, state) in self.spool.values_mut() {
            if let State::Sent { attempt } = *state {
                *state = State::Ready {
                    attempt: attempt + 1,
                };
            }
        }
    }
}

impl World {
    fn forwarder(&mut self, place: Place) -> &mut Forwarder {
        &mut self.forwarders[place - FORWARDERS]
    }

    /// Makes a batch now and then, sends what is to be sent, and asks for what stores have.
    pub(super) fn forward(&mut self, place: Place) {
        let after_ms = 100 + self.random.below(200);
        self.timer(place, after_ms, Timer::Send);
        let (is_new, rows) = (self.random.one_in(2), 1 + self.random.below(9));
        let is_over = self.is_healing();
        let forwarder = self.forwarder(place);
        if is_new && !is_over && forwarder.spool.len() < SPOOL_MAX {
            let sequence = forwarder.next;
            forwarder.next += 1;
            let ready = State::Ready { attempt: 0 };
            forwarder.spool.insert(sequence, (rows, ready));
            let batch = forwarder.batch(sequence);
            self.ledger.sent(batch, rows);
            self.report.batches += 1;
        }
        let spool: Vec<(u64, u64, State)> = self
            .forwarder(place)
            .spool
            .iter()
            .map(|(sequence, (rows, state))| (*sequence, *rows, *state))
            .collect();
        let mut sends = 0;
        for (sequence, rows, state) in spool {
            match state {
                State::Ready { .. } if sends == SENDS_MAX => {}
                State::Ready { attempt } => {
                    sends += 1;
                    self.send_batch(place, sequence, rows, attempt);
                }
                State::Sent { .. } => {}
                State::Durable { .. } => self.ask_replicated(place, sequence, state),
            }
        }
    }

    fn send_batch(&mut self, place: Place, sequence: u64, rows: u64, attempt: u32) {
        let target = self.forwarder(place).target;
        let is_able = self
            .nodes
            .get(target)
            .is_some_and(|n| n.takes_in && !n.is_gone);
        if !is_able {
            return self.turn(place);
        }
        let frame = Frame {
            batch: self.forwarder(place).batch(sequence),
            attempt,
            rows,
        };
        let sent = State::Sent { attempt };
        self.forwarder(place).spool.insert(sequence, (rows, sent));
        self.request(
            place,
            target,
            Request::Append(frame),
            ReplyTarget::Batch(sequence),
        );
    }

    /// Goes to another ingester.
    fn turn(&mut self, place: Place) {
        let count = self.nodes.len() as u64;
        self.forwarder(place).target = self.random.below(count) as usize;
    }

    fn ask_replicated(&mut self, place: Place, sequence: u64, state: State) {
        let State::Durable {
            attempt,
            ingester,
            source,
            since_ms,
        } = state
        else {
            return;
        };
        if since_ms + KEEP_MS < self.now_ms {
            // Its disk may be lost.
            let attempt = attempt + 1;
            if let Some((_, state)) = self.forwarder(place).spool.get_mut(&sequence) {
                *state = State::Ready { attempt };
            }
            self.report.retries += 1;
            return;
        }
        let is_busy = self.forwarder(place).waiting.values();
        let mut is_busy = is_busy.filter(|w| matches!(w, ReplyTarget::Batch(s) if *s == sequence));
        if is_busy.next().is_none() && self.random.one_in(3) {
            let request = Request::IsReplicated(source);
            self.request(place, ingester, request, ReplyTarget::Batch(sequence));
        }
    }

    /// An ingester has replied.
    pub(super) fn batch_heard(&mut self, place: Place, sequence: u64, reply: &Reply) {
        let (now_ms, ingester) = (self.now_ms, self.forwarder(place).target);
        let forwarder = self.forwarder(place);
        let (batch, waits) = (forwarder.batch(sequence), forwarder.waits);
        let Some((_, state)) = forwarder.spool.get_mut(&sequence) else {
            return;
        };
        match (*state, reply) {
            (State::Sent { attempt }, Reply::Acked(source)) => {
                *state = State::Durable {
                    attempt,
                    ingester,
                    source: *source,
                    since_ms: now_ms,
                };
                if !waits {
                    forwarder.spool.remove(&sequence);
                }
            }
            (State::Sent { attempt }, Reply::Refused) => {
                // It was surely not taken.
                *state = State::Ready { attempt };
                self.turn(place);
            }
            (State::Durable { .. }, Reply::Replicated(true)) => {
                forwarder.spool.remove(&sequence);
                self.ledger.replicated(batch);
                self.report.replicated += 1;
            }
            _ => {}
        }
    }

    /// Nothing was heard of a batch: it may have arrived.
    pub(super) fn batch_failed(&mut self, place: Place, sequence: u64) {
        let forwarder = self.forwarder(place);
        if let Some((_, state)) = forwarder.spool.get_mut(&sequence)
            && let State::Sent { attempt } = *state
        {
            *state = State::Ready {
                attempt: attempt + 1,
            };
            self.report.retries += 1;
            self.turn(place);
        }
    }
}

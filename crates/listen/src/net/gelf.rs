//! GELF over UDP and TCP: messages are put together and decoded here, where their senders are told
//! nothing.
//!
//! Invariant: of everything that came there is a record, or it is counted as lost.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use logpond_protocol::intake::push::gelf::{self, Chunks};
use logpond_record::Batch;

use super::Context;
use logpond_settings::Form;

/// Messages that come in several datagrams.
pub(super) struct Assembly {
    chunks: Chunks,
    started: Instant,
}

impl Assembly {
    pub(super) fn new() -> Assembly {
        Assembly {
            chunks: Chunks::default(),
            started: Instant::now(),
        }
    }

    /// Takes a datagram; passes the message on that it is or completes.
    pub(super) fn take(&mut self, peer: IpAddr, datagram: &[u8], message: impl FnOnce(&[u8])) {
        let sender = match peer {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        let now = self.started.elapsed();
        if let Some(whole) = self.chunks.take(sender.to_bits(), datagram, now) {
            message(&whole);
        }
    }

    /// When something is given up next.
    pub(super) fn deadline(&self) -> Option<Instant> {
        Some(self.started + self.chunks.deadline()?)
    }

    /// Gives up what is too old, at the end everything; counts it.
    pub(super) fn expire(&mut self, is_end: bool, context: &Context) {
        if is_end {
            self.chunks.abandon()
        } else {
            self.chunks.expire(self.started.elapsed())
        }
        let lost = self.chunks.take_lost();
        let metrics = context.metrics.intake(context.intake);
        metrics.lost.add(lost);
        metrics.malformed.add(lost);
    }
}

/// Batches of an intake on their way to the journal: those of GELF are decoded, on a thread for that,
/// a bounded part at a time; others are what they are.
pub(super) struct BatchDecoder {
    batches: std::vec::IntoIter<Arc<Batch>>,
    form: Form,
    current: Option<Arc<Batch>>,
    /// Messages of the current one that are decoded.
    taken: usize,
}

impl BatchDecoder {
    pub(super) fn of(batches: Vec<Arc<Batch>>, form: Form) -> BatchDecoder {
        BatchDecoder {
            batches: batches.into_iter(),
            form,
            current: None,
            taken: 0,
        }
    }

    /// The next batch for the journal.
    pub(super) async fn next(&mut self, context: &Context) -> Option<Arc<Batch>> {
        match self.form {
            Form::Line | Form::Syslog => return self.batches.next(),
            Form::Gelf => {}
        }
        loop {
            let messages = match self.current.take() {
                Some(current) => current,
                None => self.batches.next()?,
            };
            let (from, line_bytes_max) = (self.taken, context.line_bytes_max);
            let work = {
                let messages = messages.clone();
                move || gelf::decode(&messages, from, line_bytes_max)
            };
            let Ok(decoded) = tokio::task::spawn_blocking(work).await else {
                // Blocking work is only thrown away when the process ends.
                context.count_lost(messages.len() - from);
                return None;
            };
            let metrics = context.metrics.intake(context.intake);
            metrics.malformed.add(decoded.malformed as u64);
            metrics.truncated.add(decoded.truncated as u64);
            metrics.lost.add(decoded.lost as u64);
            self.taken += decoded.taken;
            if self.taken < messages.len() {
                self.current = Some(messages);
            } else {
                self.taken = 0
            }
            if !decoded.batch.is_empty() {
                return Some(Arc::new(decoded.batch));
            }
        }
    }
}

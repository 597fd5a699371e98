//! Entries of the journal's own protocols as batches of records.

use std::sync::Arc;

use logpond_protocol::intake::journal_entry::Sealer;
use logpond_record::limits::TRUNCATED_FIELD;
use logpond_record::{Batch, EntryKind, Labels, Timestamp};

use super::queue::QueueSender;
use crate::net::{BATCH_BYTES, Context};

/// The field that says why the others of an entry were left out.
const REJECTED: &str = "_rejected";

/// Fields that are kept of an entry that cannot be kept whole.
const KEPT: [&str; 4] = [
    "MESSAGE",
    "PRIORITY",
    "SYSLOG_FACILITY",
    "SYSLOG_IDENTIFIER",
];

/// A field's name and value.
pub(super) type Field<'a> = (&'a str, &'a [u8]);

/// Collects entries.
///
/// Invariant: every entry becomes a record; what of it cannot be kept is said in it and counted.
pub(super) struct Entries {
    sealer: Sealer,
    batch: Batch,
    context: Context,
}

impl Entries {
    pub(super) fn new(context: Context) -> Entries {
        Entries::sealed_by(Sealer::new(context.line_bytes_max), context)
    }

    /// Of the kernel itself.
    pub(super) fn of_kernel(context: Context) -> Entries {
        Entries::sealed_by(Sealer::of_kernel(context.line_bytes_max), context)
    }

    fn sealed_by(sealer: Sealer, context: Context) -> Entries {
        Entries {
            sealer,
            batch: Batch::new(EntryKind::Enveloped, Labels::new()),
            context,
        }
    }

    /// Adds an entry: what its sender says, and what is known of the sender. `is_whole` is false if
    /// some of it is missing already.
    pub(super) fn add(&mut self, said: &[Field<'_>], known: &Labels, is_whole: bool) {
        let limit = self.context.line_bytes_max;
        let mut fields: Vec<Field<'_>> = said.to_vec();
        // The names that other intakes use are made of the journal's.
        let is_told = |name: &str| name.starts_with('_') || name == "container_id";
        let known = known.iter().filter(|(name, _)| is_told(name));
        let known = known.map(|(name, value)| (&**name, value.as_bytes()));
        let mut sent = None;
        for (_, value) in fields.iter_mut().filter(|(name, _)| *name == "MESSAGE") {
            if value.len() > limit {
                sent = Some(value.len().to_string());
                *value = &value[..limit];
            }
        }
        fields.extend(known);
        if !said.iter().any(|(name, _)| *name == "PRIORITY") {
            fields.push(("PRIORITY", b"6"));
        }
        fields.extend(sent.iter().map(|sent| (TRUNCATED_FIELD, sent.as_bytes())));
        if sent.is_some() || !is_whole {
            self.metrics().truncated.add(1);
        }
        if let Err(reason) = self.sealer.seal(fields.iter().copied(), &mut self.batch) {
            self.metrics().rejected.add(1);
            let reason = reason.to_string();
            fields.retain(|(name, _)| KEPT.contains(name) || name.starts_with('_'));
            fields.push((REJECTED, reason.as_bytes()));
            if self
                .sealer
                .seal(fields.iter().copied(), &mut self.batch)
                .is_err()
            {
                self.context.count_lost(1);
            }
        }
    }

    fn metrics(&self) -> &logpond_host::telemetry::IntakeMetrics {
        self.context.metrics.intake(self.context.intake)
    }

    /// Whether they are worth a batch.
    pub(super) fn is_full(&self) -> bool {
        self.batch.payload().len() >= BATCH_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Queues what was collected, if there is anything.
    pub(super) fn push_to(&mut self, filling: &mut QueueSender, now: Timestamp) {
        if !self.is_empty() {
            filling.push(self.take(), now);
        }
    }

    /// What was collected.
    pub(super) fn take(&mut self) -> Arc<Batch> {
        let next = Batch::new(EntryKind::Enveloped, Labels::new());
        Arc::new(std::mem::replace(&mut self.batch, next))
    }
}

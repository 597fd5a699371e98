//! The rules and quotas of one file, applied to batches.

use std::collections::BTreeMap;
use std::sync::Arc;

use logpond_protocol::intake::Parser;
use logpond_protocol::intake::rewrite::Draft;
use logpond_record::{Batch, Entry, Id, Timestamp, line_of};
use logpond_search::Scratch;

use super::file::Definition;
use super::locating::Locator;
use super::losses::Loss;
use super::output::Output;
use super::quota::{Place, Quota, RetiredQuota, Usage};
use super::rule::{Action, Rule, note_rate};
use super::sample::SampleCounts;
use crate::geoip::Places;
use logpond_host::telemetry::Exposition;

/// What a thread uses again for each batch.
#[derive(Default)]
pub(super) struct Worker {
    pub(super) parser: Parser,
    scratch: Scratch,
    places: Places,
}

/// The rules and quotas of one file.
#[derive(Debug)]
pub struct Stage {
    rules: Vec<Rule>,
    quotas: Vec<Quota>,
    locator: Option<Locator>,
    /// Files besides that of the rules that are read.
    pub(super) files: Vec<std::path::PathBuf>,
}

/// What is kept of a batch, and what is to be counted once that is accepted.
pub(super) struct Outcome {
    pub(super) batch: Arc<Batch>,
    pub(super) tally: Tally,
}

/// What a batch takes of quotas and adds to counters.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    rules: Vec<RuleTally>,
    /// By the number of the quota.
    quotas: BTreeMap<(usize, Place), QuotaTally>,
    pub(super) dropped: Usage,
    pub(super) sampled: Usage,
    pub(super) fields_left_out: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RuleTally {
    dropped: u64,
    changed: u64,
    sampled: SampleCounts,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct QuotaTally {
    taken: Usage,
    lost: Usage,
}

impl Tally {
    /// What quotas did not let in.
    pub(super) fn over_quota(&self) -> Usage {
        let mut sum = Usage::default();
        self.quotas.values().for_each(|tally| sum.add(tally.lost));
        sum
    }
}

/// An entry on its way: read once a rule wants to see it.
struct InFlight<'a> {
    entry: Entry<'a>,
    /// As it stands in its batch.
    held: &'a [u8],
    draft: Option<Draft<'a>>,
}

impl<'a> InFlight<'a> {
    fn draft(&mut self, worker: &mut Worker) -> &mut Draft<'a> {
        self.draft
            .get_or_insert_with(|| Draft::new(&self.entry, &mut worker.parser))
    }

    /// Bytes that it takes in the journal.
    fn bytes(&self) -> u64 {
        let line = match &self.draft {
            Some(draft) if draft.is_changed() => draft.line_bytes(),
            _ => self.entry.raw.len(),
        };
        (self.held.len() - self.entry.raw.len() + line) as u64
    }
}

impl Stage {
    /// The rules of a file; those that the file before it had, too, go on counting.
    pub(super) fn new(definition: Definition, before: Option<&Stage>) -> Stage {
        let rule_before = |name: &str| {
            let mut rules = before?.rules.iter();
            rules.find(|rule| *rule.definition.name == *name)
        };
        let quota_before = |name: &str| {
            let mut quotas = before?.quotas.iter();
            quotas.find(|quota| *quota.definition.name == *name)
        };
        let rules = definition.rules.into_iter().map(|rule| {
            let before = rule_before(&rule.name);
            Rule::new(rule, before)
        });
        let quotas = definition.quotas.into_iter().map(|quota| {
            let before = quota_before(&quota.name);
            Quota::new(quota, before)
        });
        Stage {
            rules: rules.collect(),
            quotas: quotas.collect(),
            locator: definition.locator,
            files: definition.files,
        }
    }

    /// Whether it leaves everything as it is.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.quotas.is_empty() && self.locator.is_none()
    }

    /// Quotas that no other of the next file goes on with.
    pub(super) fn retired_by(&self, next: &Stage) -> Vec<RetiredQuota> {
        let is_continued =
            |quota: &&Quota| next.quotas.iter().any(|other| quota.is_continued_by(other));
        let retired = self.quotas.iter().filter(|quota| !is_continued(quota));
        retired.map(Quota::retired).collect()
    }

    /// Applies rules and quotas to a batch that came at `now`. What it takes of quotas and samples is
    /// taken at once, and counted by [`Stage::commit`] or given back by [`Stage::give_back`].
    pub(super) fn apply(&self, batch: &Arc<Batch>, worker: &mut Worker, now: Timestamp) -> Outcome {
        let mut tally = Tally {
            rules: vec![RuleTally::default(); self.rules.len()],
            ..Tally::default()
        };
        let active = self.active(batch);
        let mut output = Output::new(batch);
        for held in batch.iter() {
            let (kind, envelope, raw) = line_of(batch.kind, held);
            let entry = Entry {
                id: Id::MIN,
                received: now,
                kind,
                labels: &batch.labels,
                envelope,
                raw,
            };
            let mut flight = InFlight {
                entry,
                held,
                draft: None,
            };
            self.locate(&mut flight, worker);
            let is_kept = self.run_rules(&active, &mut flight, worker, &mut tally)
                && self.run_quotas(&mut flight, worker, &mut tally, now);
            match &flight.draft {
                _ if !is_kept => output.leave_out(),
                Some(draft) if draft.is_changed() => output.keep_changed(draft),
                _ => output.keep(held),
            }
        }
        let (batch, fields_left_out) = output.finish();
        tally.fields_left_out = fields_left_out;
        Outcome { batch, tally }
    }

    /// The rules that may hold for a record of the batch: most do not, if they look for a text.
    fn active(&self, batch: &Batch) -> Vec<usize> {
        let mut are_lines_as_received = true;
        let mut active = Vec::with_capacity(self.rules.len());
        for (index, rule) in self.rules.iter().enumerate() {
            let matcher = rule.definition.matcher.as_ref();
            let prefilter = matcher.and_then(|matcher| matcher.raw_prefilter());
            let may_match = prefilter.is_none_or(|p| p.may_match(batch.payload()));
            if may_match || !are_lines_as_received {
                are_lines_as_received &= !rule.changes_lines();
                active.push(index);
            }
        }
        active
    }

    /// Adds the place of the entry's address.
    fn locate(&self, flight: &mut InFlight<'_>, worker: &mut Worker) {
        let Some(locator) = &self.locator else {
            return;
        };
        let draft = flight.draft(worker);
        if let Some(address) = locator.address_of(draft.record()) {
            locator.run(address, draft, &mut worker.places);
        }
    }

    /// Whether the entry is kept.
    fn run_rules<'a>(
        &self,
        active: &[usize],
        flight: &mut InFlight<'a>,
        worker: &mut Worker,
        tally: &mut Tally,
    ) -> bool {
        for index in active {
            let rule = &self.rules[*index];
            if let Some(matcher) = &rule.definition.matcher {
                let prefilter = matcher.raw_prefilter().filter(|_| flight.draft.is_none());
                if prefilter.is_some_and(|p| !p.may_match(flight.entry.raw)) {
                    continue;
                }
                flight.draft(worker);
                let Some(draft) = &flight.draft else { continue };
                if !matcher.matches(draft.record(), &mut worker.scratch) {
                    continue;
                }
            }
            let counted = &mut tally.rules[*index];
            let received = Usage {
                records: 1,
                bytes: flight.held.len() as u64,
            };
            let changes = match &rule.definition.action {
                Action::Drop => {
                    counted.dropped += 1;
                    tally.dropped.add(received);
                    return false;
                }
                Action::Change(changes) => changes,
            };
            if let Some(sampler) = &rule.sampler {
                let is_kept = sampler.take();
                counted.sampled.seen += 1;
                counted.sampled.kept += u64::from(is_kept);
                if !is_kept {
                    tally.sampled.add(received);
                    return false;
                }
                note_rate(flight.draft(worker), sampler.every);
            }
            if changes.has_any() {
                flight.draft(worker);
                if let Some(draft) = &mut flight.draft {
                    counted.changed += u64::from(changes.run(draft, worker));
                }
            }
        }
        if let Some(draft) = &mut flight.draft {
            draft.settle(&mut worker.parser);
        }
        true
    }

    /// Whether all quotas let the entry in.
    fn run_quotas<'a>(
        &self,
        flight: &mut InFlight<'a>,
        worker: &mut Worker,
        tally: &mut Tally,
        now: Timestamp,
    ) -> bool {
        if self.quotas.is_empty() {
            return true;
        }
        let bytes = flight.bytes();
        let usage = Usage { records: 1, bytes };
        let mut taken: Vec<(usize, Place)> = Vec::new();
        for (index, quota) in self.quotas.iter().enumerate() {
            flight.draft(worker);
            let Some(draft) = &flight.draft else { continue };
            let matcher = quota.definition.matcher.as_ref();
            if matcher.is_some_and(|m| !m.matches(draft.record(), &mut worker.scratch)) {
                continue;
            }
            let (place, has_room) = quota.take(quota.source_of(draft.record()), bytes, now);
            if has_room {
                taken.push((index, place));
                continue;
            }
            let lost = &mut tally.quotas.entry((index, place)).or_default().lost;
            lost.add(usage);
            // It is of no use to the other quotas that it would have been let in.
            for (index, place) in taken {
                self.quotas[index].give_back(&place, usage);
            }
            return false;
        }
        for place in taken {
            tally.quotas.entry(place).or_default().taken.add(usage);
        }
        true
    }

    /// Counts what a batch did, once it is accepted.
    pub(super) fn commit(&self, tally: &Tally) {
        for (rule, counted) in self.rules.iter().zip(&tally.rules) {
            let SampleCounts { seen, kept } = counted.sampled;
            rule.counters.dropped.add(counted.dropped);
            rule.counters.sampled.add(seen - kept);
            rule.counters.changed.add(counted.changed);
        }
        for ((index, place), counted) in &tally.quotas {
            if counted.lost.records > 0 {
                self.quotas[*index].lose(place, counted.lost);
            }
        }
    }

    /// Gives back what a batch took that is not accepted.
    pub(super) fn give_back(&self, tally: &Tally) {
        for (rule, counted) in self.rules.iter().zip(&tally.rules) {
            if let Some(sampler) = &rule.sampler {
                sampler.give_back(counted.sampled);
            }
        }
        for ((index, place), counted) in &tally.quotas {
            self.quotas[*index].give_back(place, counted.taken);
        }
    }

    /// Moves what quotas did not let in.
    pub(super) fn take_losses(&self, now: Timestamp, is_end: bool, losses: &mut Vec<Loss>) {
        for quota in &self.quotas {
            quota.take_losses(now, is_end, losses);
        }
    }

    pub(super) fn expose(&self, out: &mut Exposition) {
        let name = "logpond_rule_records_total";
        out.family(
            name,
            "counter",
            "Records that a rule dropped, left out of a sample, or changed.",
        );
        for rule in &self.rules {
            let actions = [
                ("dropped", &rule.counters.dropped),
                ("sampled", &rule.counters.sampled),
                ("changed", &rule.counters.changed),
            ];
            for (action, counter) in actions {
                let labels = [("rule", &*rule.definition.name), ("action", action)];
                out.sample(name, &labels, counter.get());
            }
        }
        let name = "logpond_quota_lost_records_total";
        out.family(name, "counter", "Records that a quota did not let in.");
        for quota in &self.quotas {
            out.sample(
                name,
                &[("quota", &*quota.definition.name)],
                quota.counters.records.get(),
            );
        }
        let name = "logpond_quota_lost_bytes_total";
        out.family(
            name,
            "counter",
            "Bytes of records that a quota did not let in.",
        );
        for quota in &self.quotas {
            out.sample(
                name,
                &[("quota", &*quota.definition.name)],
                quota.counters.bytes.get(),
            );
        }
    }
}

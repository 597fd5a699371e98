//! A rule: which records it holds for, and what it does with them.

use std::sync::Arc;

use logpond_protocol::intake::rewrite::Draft;
use logpond_record::Value;
use logpond_search::Matcher;

use super::changes::{Redactor, Replace, strip_ansi};
use super::counters::RuleCounters;
use super::sample::Sampler;
use super::stage::Worker;

/// The field that says of a record that was kept for how many it stands.
pub(super) const SAMPLE_RATE: &str = "_sample_rate";

/// A rule as its file says it.
#[derive(Debug)]
pub(super) struct RuleDefinition {
    pub(super) name: Box<str>,
    /// `None` holds for all records.
    pub(super) matcher: Option<Matcher>,
    pub(super) action: Action,
}

/// What a rule does with records.
#[derive(Debug)]
pub(super) enum Action {
    /// They are not kept.
    Drop,
    /// They are kept, or one in so many of them, with changes.
    Change(Box<Changes>),
}

/// Changes, in the order in which they are made.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) sample: Option<u64>,
    pub(super) strips_ansi: bool,
    pub(super) replace: Vec<Replace>,
    pub(super) redactor: Redactor,
    pub(super) add: Vec<(Box<str>, Value<'static>)>,
}

/// A rule that is applied.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) definition: RuleDefinition,
    pub(super) counters: Arc<RuleCounters>,
    pub(super) sampler: Option<Arc<Sampler>>,
}

impl Rule {
    /// The rule with the counters of the one of its name before it, if there is one.
    pub(super) fn new(definition: RuleDefinition, before: Option<&Rule>) -> Rule {
        let every = match &definition.action {
            Action::Drop => None,
            Action::Change(changes) => changes.sample,
        };
        let known = before.and_then(|before| before.sampler.clone());
        let known = known.filter(|known| Some(known.every) == every);
        Rule {
            counters: before
                .map(|before| before.counters.clone())
                .unwrap_or_default(),
            sampler: every.map(|every| known.unwrap_or_else(|| Arc::new(Sampler::new(every)))),
            definition,
        }
    }

    /// Whether it may change what stands in a line, so that what others look for need not stand in it
    /// as it was received.
    pub(super) fn changes_lines(&self) -> bool {
        match &self.definition.action {
            Action::Drop => false,
            Action::Change(changes) => {
                changes.strips_ansi
                    || !changes.replace.is_empty()
                    || !changes.redactor.fields.is_empty()
            }
        }
    }
}

impl Changes {
    /// Whether there are any but the sampling.
    pub(super) fn has_any(&self) -> bool {
        let hides = !self.replace.is_empty() || !self.redactor.fields.is_empty();
        self.strips_ansi || hides || !self.add.is_empty()
    }

    /// Makes them, but for the sampling. Gives whether the record is another one now.
    pub(super) fn run(&self, draft: &mut Draft<'_>, worker: &mut Worker) -> bool {
        let parser = &mut worker.parser;
        let mut is_changed = self.strips_ansi && strip_ansi(draft, parser);
        for replace in &self.replace {
            is_changed |= replace.run(draft, parser);
        }
        if !self.redactor.fields.is_empty() {
            is_changed |= draft.edit(&mut &self.redactor, parser);
        }
        for (name, value) in &self.add {
            if draft.record().field(name).is_none() {
                draft.add(name, value.clone());
                is_changed = true;
            }
        }
        is_changed
    }
}

/// Says of a record that it stands for so many; also for those that other rules left out before.
pub(super) fn note_rate(draft: &mut Draft<'_>, every: u64) {
    let rate = i64::try_from(every).unwrap_or(i64::MAX);
    let multiplied = draft.replace_added(SAMPLE_RATE, |before| match before {
        Value::Int(before) => Value::Int(before.saturating_mul(rate)),
        _ => Value::Int(rate),
    });
    if !multiplied {
        draft.add(SAMPLE_RATE, Value::Int(rate));
    }
}

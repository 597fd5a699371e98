//! What a file of rules says, ready to be evaluated.

use std::sync::Arc;

use logpond_record::Timestamp;
use xxhash_rust::xxh3::xxh3_128;

use crate::logql::Metric;
use crate::metric::SeriesLabels;
use crate::template::{AlertData, Scratch, Template};

/// Rules that are evaluated one after the other, at the same instants.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its name, unlike any other of its file.
    pub name: Box<str>,
    /// How often it is evaluated, in nanoseconds; that of the server if the file does not say.
    pub interval_ns: Option<i64>,
    /// How far before the instant of an evaluation its queries end, in nanoseconds: what arrives late
    /// is then there.
    pub query_offset_ns: i64,
    /// The most alerts or series of a rule; 0 is as many as there may be at all.
    pub limit: usize,
    /// The rules, in order.
    pub rules: Vec<Arc<Rule>>,
}

/// A rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// What its alerts, or its records, are called.
    pub name: Box<str>,
    /// The query.
    pub query: Metric,
    /// The query as it is shown.
    pub text: Box<str>,
    /// Labels that are added.
    pub labels: Vec<(Box<str>, Words)>,
    /// What becomes of its numbers.
    pub action: Action,
    /// Line of the file where it begins, from 1.
    pub line: usize,
}

/// What becomes of the numbers of a rule.
#[derive(Clone, Debug)]
pub enum Action {
    /// Each is an alert.
    Alert {
        /// How long there must be one until it fires, in nanoseconds.
        hold_ns: i64,
        /// How long it goes on firing without a number, in nanoseconds.
        keep_firing_ns: i64,
        /// What is said beside the labels.
        annotations: Vec<(Box<str>, Words)>,
    },
    /// Each is written down as a record.
    Record,
}

/// A text that may be a template.
#[derive(Clone, Debug)]
pub struct Words {
    /// As it is in the file.
    pub source: Box<str>,
    template: Template,
}

impl Words {
    /// Reads a text.
    ///
    /// # Errors
    /// When it is no template, or one that names what is never there.
    pub fn new(source: &str) -> Result<Words, String> {
        let words = Words {
            source: source.into(),
            template: Template::of_alerts(source)?,
        };
        // What depends on labels and numbers may fail with these; what is unknown always does.
        let labels = SeriesLabels::default();
        let data = AlertData {
            labels: &labels,
            value: 0.0,
            external_url: "",
            now_ns: 0,
        };
        match words.fill(&data, &mut Scratch::default()) {
            Err(error) if error.contains("undefined variable") => Err(format!("template: {error}")),
            Err(error) if error.contains("cannot query") => Err(format!("template: {error}")),
            _ => Ok(words),
        }
    }

    /// The filled text.
    ///
    /// # Errors
    /// What could not be done.
    pub fn fill(&self, data: &AlertData<'_>, scratch: &mut Scratch) -> Result<String, String> {
        let mut out = Vec::new();
        self.template.fill_alert(data, scratch, &mut out)?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    /// The filled text, or instead of it what could not be done, as Prometheus has it.
    pub(super) fn fill_or_tell(&self, data: &AlertData<'_>, scratch: &mut Scratch) -> Box<str> {
        match self.fill(data, scratch) {
            Ok(text) => text.into(),
            Err(error) => format!("<error expanding template: {error}>").into(),
        }
    }
}

impl Rule {
    /// What tells this rule from others, also after a restart: its name, query and labels. How long it
    /// waits and what it says may change.
    pub fn key(&self) -> String {
        let kind = match self.action {
            Action::Alert { .. } => "alert",
            Action::Record => "record",
        };
        let mut all = format!("{kind}\n{}\n{}", self.name, self.text);
        for (name, words) in &self.labels {
            all.push_str(&format!("\n{name}={:?}", words.source));
        }
        format!("{} {:032x}", self.name, xxh3_128(all.as_bytes()))
    }

    /// Whether its numbers are alerts.
    pub fn is_alert(&self) -> bool {
        matches!(self.action, Action::Alert { .. })
    }
}

impl Group {
    /// The instant of which queries are that belong to an evaluation.
    pub fn query_time(&self, at: Timestamp) -> Timestamp {
        at.saturating_add(-self.query_offset_ns)
    }
}

//! What became of a rule's numbers: its alerts, from evaluation to evaluation.
//!
//! ```text
//!            number            for `for`              none, for `keep_firing_for`
//! inactive ─────────▶ pending ──────────▶ firing ───────────────────────────────▶ resolved ─▶ gone
//!                        └─ none ─▶ gone     ▲ └── number again ──┘                (15 min)
//! ```
//!
//! As Prometheus does it, but for two things: an answer that is not complete resolves nothing, and a
//! notice is repeated when the time for it has come, not one evaluation later.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use logpond_record::Timestamp;

use super::rule::{Action, Rule};
use crate::metric::{Answer, SeriesLabels};
use crate::template::{AlertData, Scratch};

/// The most alerts of a rule, whatever its group says: each is sent every minute.
pub const ALERTS_MAX: usize = 10_000;

/// How long resolved alerts are told and shown.
const RESOLVED_KEPT_NS: i64 = 15 * 60 * 1_000_000_000;

/// How often it is said again that an alert fires.
pub const RESEND_NS: i64 = 60 * 1_000_000_000;

/// How often those who are told changes only are told again that an alert still fires.
const REPEAT_NS: i64 = 4 * 3600 * 1_000_000_000;

/// How many times [`RESEND_NS`], or an interval, an alert is said to fire without being said again: so many
/// notices may be lost.
const VALID_REPEATS: i64 = 4;

/// The label with the rule's name.
pub(super) const ALERT_NAME: &str = "alertname";

/// The label with a metric's name, which alerts do not have.
const METRIC_NAME: &str = "__name__";

/// Where an alert is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// There is a number, not for long enough yet.
    Pending,
    /// It was told.
    Firing,
    /// It has fired, and does not any more.
    Resolved,
}

/// An alert.
#[derive(Clone, Debug, PartialEq)]
pub struct Alert {
    /// What is said beside its labels.
    pub annotations: Vec<(Box<str>, Box<str>)>,
    /// The number of the last evaluation that had one.
    pub value: f64,
    /// Where it is.
    pub stage: Stage,
    /// The first evaluation that had a number.
    pub active_at: Timestamp,
    /// When it began to fire.
    pub fired_at: Option<Timestamp>,
    /// When it ended.
    pub resolved_at: Option<Timestamp>,
    /// The first evaluation without a number, while it goes on firing all the same.
    pub kept_since: Option<Timestamp>,
    /// When it was sent last to those who are told every minute.
    pub sent_at: Option<Timestamp>,
    /// When those who are told changes only had taken the last one.
    pub told_at: Option<Timestamp>,
}

/// How the last evaluation went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// There was none.
    #[default]
    Unknown,
    /// Well.
    Good,
    /// It failed, or its answer was not complete; why, in words.
    Bad(Box<str>),
}

/// What is known of a rule between its evaluations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleState {
    /// Its alerts by their labels.
    pub alerts: BTreeMap<Arc<SeriesLabels>, Alert>,
    /// How the last evaluation went.
    pub health: Health,
    /// Of which instant it was.
    pub evaluated_at: Option<Timestamp>,
    /// How long it took, in nanoseconds.
    pub took_ns: i64,
}

/// The result of an evaluation.
#[derive(Clone, Debug)]
pub struct EvaluationResult {
    /// The numbers.
    pub answer: Answer,
    /// What the answer lacks, in words, if it is not complete.
    pub missing: Option<Box<str>>,
}

/// What is to be told of an alert.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// Its labels.
    pub labels: Arc<SeriesLabels>,
    /// What is said beside them.
    pub annotations: Vec<(Box<str>, Box<str>)>,
    /// The query of its rule.
    pub query: Box<str>,
    /// When it began to fire.
    pub starts_at: Timestamp,
    /// When it ended, or when it may be taken to have ended if nobody says more.
    pub ends_at: Timestamp,
    /// Whether it has ended.
    pub is_resolved: bool,
    /// The number of the last evaluation that had one.
    pub value: f64,
    /// Whether it is for those, too, who are told changes only.
    pub is_news: bool,
    /// Who was told changes of it at this time or later need not be told.
    pub news_since: Timestamp,
    /// Whether it is for those who are told every minute.
    pub is_due: bool,
}

impl RuleState {
    /// Takes in an evaluation of the instant `at`; at most `limit` alerts may be the outcome (0 is
    /// [`ALERTS_MAX`]). What a rule cannot do is its health, not an error: alerts stay as they were.
    pub fn advance(
        &mut self,
        rule: &Rule,
        evaluated: Result<EvaluationResult, String>,
        (limit, external_url): (usize, &str),
        at: Timestamp,
    ) {
        self.evaluated_at = Some(at);
        let outcome = evaluated.and_then(|evaluated| {
            let found = found_of(rule, &evaluated.answer, external_url, at)?;
            self.take(rule, found, evaluated.missing.is_none(), at);
            self.check_limit(limit)?;
            Ok(evaluated.missing)
        });
        self.health = match outcome {
            Ok(None) => Health::Good,
            Ok(Some(missing)) => {
                Health::Bad(format!("the answer is not complete: {missing}").into())
            }
            Err(error) => Health::Bad(error.into()),
        };
    }

    fn take(&mut self, rule: &Rule, found: Found, is_complete: bool, at: Timestamp) {
        let Action::Alert {
            hold_ns,
            keep_firing_ns,
            ..
        } = rule.action
        else {
            return;
        };
        let present: BTreeSet<Arc<SeriesLabels>> = found.keys().cloned().collect();
        for (labels, (value, annotations)) in found {
            match self.alerts.get_mut(&labels) {
                Some(alert) if alert.stage != Stage::Resolved => {
                    (alert.value, alert.annotations) = (value, annotations);
                    alert.kept_since = None;
                }
                _ => drop(self.alerts.insert(labels, pending(value, annotations, at))),
            }
        }
        self.alerts.retain(|labels, alert| {
            if present.contains(labels) {
                alert.fire_if_due(hold_ns, at);
                return true;
            }
            // A source that did not answer may have the records that keep it active.
            let is_kept = !is_complete && alert.stage != Stage::Resolved;
            is_kept || alert.is_kept_without_number(keep_firing_ns, at)
        });
    }

    /// Too many alerts are a mistake of the rule: none of them is told.
    fn check_limit(&mut self, limit: usize) -> Result<(), String> {
        let limit = match limit {
            0 => ALERTS_MAX,
            limit => limit.min(ALERTS_MAX),
        };
        let active = self.alerts.values().filter(|a| a.stage != Stage::Resolved);
        let active = active.count();
        if active <= limit {
            return Ok(());
        }
        self.alerts.clear();
        Err(format!("exceeded limit of {limit} with {active} alerts"))
    }

    /// What becomes of the alerts of a rule that is gone: what fired has ended, and stays to be told as long as
    /// what ended otherwise. Gives whether there is any.
    pub fn end(&mut self, at: Timestamp) -> bool {
        self.alerts
            .retain(|_, alert| alert.is_kept_without_number(0, at));
        !self.alerts.is_empty()
    }

    /// What is to be told after the evaluation of `at` of a rule with this query. What is due each minute counts
    /// as told; what is news stays so until [`RuleState::told`]. `interval_ns` is that of the evaluations.
    pub fn notices(&mut self, query: &str, at: Timestamp, interval_ns: i64) -> Vec<Notice> {
        let valid_ns = RESEND_NS.max(interval_ns).saturating_mul(VALID_REPEATS);
        let mut notices = Vec::new();
        for (labels, alert) in &mut self.alerts {
            let (is_due, is_news) = (alert.is_due(at), alert.is_news(at));
            let Some(starts_at) = alert.fired_at.filter(|_| is_due || is_news) else {
                continue;
            };
            if is_due {
                alert.sent_at = Some(at);
            }
            notices.push(Notice {
                labels: labels.clone(),
                annotations: alert.annotations.clone(),
                query: query.into(),
                starts_at,
                ends_at: alert.resolved_at.unwrap_or(at.saturating_add(valid_ns)),
                is_resolved: alert.stage == Stage::Resolved,
                value: alert.value,
                is_news,
                news_since: alert.news_since(starts_at),
                is_due,
            });
        }
        notices
    }

    /// Takes over what another node knows: alerts that this one does not have, and of those that both
    /// have the one that was active first. What has ended meanwhile ends with the next evaluation.
    pub fn adopt(&mut self, other: &RuleState) {
        let is_there = |alert: &Alert| alert.stage != Stage::Resolved;
        for (labels, theirs) in &other.alerts {
            match self.alerts.get_mut(labels) {
                None => drop(self.alerts.insert(labels.clone(), theirs.clone())),
                Some(own) if is_there(own) && is_there(theirs) => {
                    if theirs.active_at < own.active_at {
                        *own = theirs.clone();
                    }
                }
                Some(_) => {}
            }
        }
        if other.evaluated_at > self.evaluated_at {
            self.health = other.health.clone();
            (self.evaluated_at, self.took_ns) = (other.evaluated_at, other.took_ns);
        }
    }

    /// Notes that all who are told changes only know of this one since `at`.
    pub fn told(&mut self, labels: &SeriesLabels, is_resolved: bool, at: Timestamp) {
        let alert = self.alerts.get_mut(labels);
        if let Some(alert) = alert.filter(|a| (a.stage == Stage::Resolved) == is_resolved) {
            alert.told_at = Some(at);
        }
    }

    /// Whether both would go on in the same way, whatever their numbers are.
    pub fn is_like(&self, other: &RuleState) -> bool {
        let of = |state: &RuleState| {
            let alerts = state.alerts.iter();
            let alerts = alerts.map(|(labels, alert)| {
                let times = [
                    Some(alert.active_at),
                    alert.fired_at,
                    alert.resolved_at,
                    alert.kept_since,
                    alert.sent_at,
                    alert.told_at,
                ];
                (labels.clone(), alert.stage, times)
            });
            alerts.collect::<Vec<_>>()
        };
        of(self) == of(other)
    }

    /// Whether the alert with these labels fires.
    pub fn is_firing(&self, labels: &SeriesLabels) -> bool {
        let alert = self.alerts.get(labels);
        alert.is_some_and(|alert| alert.stage == Stage::Firing)
    }

    /// Where the rule is: at the foremost of its alerts; `None` is inactive.
    pub fn stage(&self) -> Option<Stage> {
        let mut stages = self.alerts.values().map(|alert| alert.stage);
        let mut others = stages.clone();
        if stages.any(|stage| stage == Stage::Firing) {
            Some(Stage::Firing)
        } else {
            others.find(|stage| *stage == Stage::Pending)
        }
    }
}

impl Alert {
    fn fire_if_due(&mut self, hold_ns: i64, at: Timestamp) {
        let held_ns = at.0.saturating_sub(self.active_at.0);
        if self.stage == Stage::Pending && held_ns >= hold_ns {
            self.stage = Stage::Firing;
            self.fired_at = Some(at);
        }
    }

    /// What becomes of an alert that has no number; whether it is still one.
    fn is_kept_without_number(&mut self, keep_firing_ns: i64, at: Timestamp) -> bool {
        let since = |then: Timestamp| at.0.saturating_sub(then.0);
        match self.stage {
            Stage::Pending => false,
            Stage::Resolved => self
                .resolved_at
                .is_some_and(|resolved| since(resolved) <= RESOLVED_KEPT_NS),
            Stage::Firing => {
                let kept_since = *self.kept_since.get_or_insert(at);
                if keep_firing_ns == 0 || since(kept_since) >= keep_firing_ns {
                    self.stage = Stage::Resolved;
                    self.resolved_at = Some(at);
                    self.kept_since = None;
                }
                true
            }
        }
    }

    /// Whether it is to be told, or told again.
    fn is_due(&self, at: Timestamp) -> bool {
        if self.stage == Stage::Pending {
            return false;
        }
        let Some(sent) = self.sent_at else {
            return true;
        };
        self.resolved_at.is_some_and(|resolved| resolved > sent)
            || at.0.saturating_sub(sent.0) >= RESEND_NS
    }
}

impl Alert {
    /// Whether those who are told changes only do not know of this one.
    fn is_news(&self, at: Timestamp) -> bool {
        match (self.stage, self.told_at) {
            (Stage::Pending, _) => false,
            (_, None) => true,
            (Stage::Resolved, Some(told)) => self.resolved_at.is_some_and(|at| at > told),
            (Stage::Firing, Some(told)) => at.0.saturating_sub(told.0) >= REPEAT_NS,
        }
    }

    fn news_since(&self, starts_at: Timestamp) -> Timestamp {
        match (self.resolved_at, self.told_at) {
            (Some(resolved), _) => resolved,
            (None, None) => starts_at,
            (None, Some(told)) => told.saturating_add(REPEAT_NS),
        }
    }
}

fn pending(value: f64, annotations: Vec<(Box<str>, Box<str>)>, at: Timestamp) -> Alert {
    Alert {
        annotations,
        value,
        stage: Stage::Pending,
        active_at: at,
        fired_at: None,
        resolved_at: None,
        kept_since: None,
        sent_at: None,
        told_at: None,
    }
}

type Found = BTreeMap<Arc<SeriesLabels>, (f64, Vec<(Box<str>, Box<str>)>)>;

/// The alerts that an answer means, with their numbers and annotations.
fn found_of(
    rule: &Rule,
    answer: &Answer,
    external_url: &str,
    at: Timestamp,
) -> Result<Found, String> {
    let Action::Alert { annotations, .. } = &rule.action else {
        return Ok(Found::new());
    };
    let mut scratch = Scratch::default();
    let mut found = Found::new();
    for (labels, value) in samples(answer)? {
        let data = AlertData {
            labels,
            value,
            external_url,
            now_ns: at.0,
        };
        let mut all = labels.without(&[METRIC_NAME.into()]);
        for (name, words) in &rule.labels {
            all = all.with(name, &words.fill_or_tell(&data, &mut scratch));
        }
        let all = Arc::new(all.with(ALERT_NAME, &rule.name));
        let said = annotations.iter();
        let said = said.map(|(name, words)| {
            let text = words.fill_or_tell(&data, &mut scratch);
            (name.clone(), text)
        });
        if found.insert(all, (value, said.collect())).is_some() {
            return Err(
                "several series have the same labels once the rule's are applied".to_owned(),
            );
        }
    }
    Ok(found)
}

/// The numbers of an instant with their labels; a number alone has none.
pub(super) fn samples(answer: &Answer) -> Result<Vec<(&SeriesLabels, f64)>, String> {
    static NONE: LazyLock<SeriesLabels> = LazyLock::new(SeriesLabels::default);
    match answer {
        Answer::Scalar(value) => Ok(vec![(&NONE, *value)]),
        Answer::Vector(samples) => {
            let samples = samples.iter();
            Ok(samples.map(|s| (&*s.labels, s.value)).collect())
        }
        Answer::Matrix(_) => Err("the answer is of a range of time, not of an instant".to_owned()),
    }
}

/// What a recording rule writes down of an answer: each number with the labels of its series and the
/// rule's; at most `limit` of them (0 is [`ALERTS_MAX`]).
///
/// # Errors
/// When there are more, or several have the same labels.
pub fn recorded(
    rule: &Rule,
    answer: &Answer,
    limit: usize,
) -> Result<Vec<(SeriesLabels, f64)>, String> {
    let found = samples(answer)?;
    let limit = match limit {
        0 => ALERTS_MAX,
        limit => limit.min(ALERTS_MAX),
    };
    if found.len() > limit {
        let count = found.len();
        return Err(format!("exceeded limit of {limit} with {count} series"));
    }
    let mut all = BTreeMap::new();
    for (labels, value) in found {
        let mut labels = labels.without(&[METRIC_NAME.into()]);
        for (name, words) in &rule.labels {
            labels = labels.with(name, &words.source);
        }
        if all.insert(labels, value).is_some() {
            return Err(
                "several series have the same labels once the rule's are applied".to_owned(),
            );
        }
    }
    Ok(all.into_iter().collect())
}

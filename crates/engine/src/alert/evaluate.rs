//! `lp-alerts`: evaluates groups when they are due.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use logpond_record::{Timestamp, cast};
use logpond_search::alert::{
    Action, EvaluationResult, GroupState, Health, Notice, Rule, RuleState, recorded,
};
use logpond_search::metric::Plan;
use logpond_segment::disk::Disk;

use super::notify::QueuedNotice;
use super::state_file::StateFile;
use super::{Alerts, GroupStatus, LoadedGroup, Peers, Recorder, RuleSet, Source, matched, parted};
use logpond_host::panics::caught;
use logpond_host::shutdown::Shutdown;
use logpond_host::telemetry::warn;

/// The longest time between two looks at what is due: changed rules are seen by the next one.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The least time between two looks, so that a clock that jumps does not make this turn in vain.
const LOOK_MIN: Duration = Duration::from_millis(5);

/// How often another node is asked what it knows: so old is what is shown of its groups, and what others
/// go on with when it is gone.
const COPY_EVERY: Duration = Duration::from_millis(900);

/// When what a node said is forgotten that nobody asked again.
const COPY_KEPT: Duration = Duration::from_secs(60);

/// What evaluations need.
pub struct Parts {
    /// The rules, and where their states are shown.
    pub alerts: Arc<Alerts>,
    /// What answers queries.
    pub source: Box<dyn Source>,
    /// What writes results of recording rules down.
    pub recorder: Box<dyn Recorder>,
    /// Other nodes with the same rules.
    pub peers: Box<dyn Peers>,
    /// Where the state is kept.
    pub disk: Arc<dyn Disk>,
    /// What time it is.
    pub clock: fn() -> Timestamp,
}

/// What a node says that was never asked.
static NOTHING: Result<Vec<GroupState>, String> = Ok(Vec::new());

/// A node's answer with its group states, and its time.
struct StateCopy {
    states: Result<Vec<GroupState>, String>,
    at: Instant,
}

/// How long nothing is evaluated after a panic, so that none follows upon the other.
const PANIC_PAUSE: Duration = Duration::from_secs(5);

/// A notice, and the rule that it is of, as the waiting ones have it.
type ToTell = (Arc<str>, Notice);

struct Evaluator {
    parts: Parts,
    file: StateFile,
    /// When each group is due next that this node evaluates.
    due: BTreeMap<String, Timestamp>,
    /// Other nodes that may evaluate the same groups, as of the last look.
    others: Vec<String>,
    /// What other nodes said last.
    copied: BTreeMap<String, StateCopy>,
    /// Whether the last write of the file failed.
    is_failing: bool,
    stop: Shutdown,
}

/// Starts the thread and those that tell receivers. They end after the stop, this one last.
///
/// # Errors
/// When the system gives no thread, or the directory for the state cannot be made.
pub fn start(parts: Parts, stop: &Shutdown) -> io::Result<JoinHandle<()>> {
    let file = StateFile::open(parts.disk.clone())?;
    let targets = parts.alerts.targets.iter().enumerate();
    let url = parts.alerts.external_url();
    let tellers: io::Result<Vec<_>> = targets
        .map(|(number, target)| target.start(number, url, stop))
        .collect();
    let (tellers, stop) = (tellers?, stop.clone());
    let thread = thread::Builder::new().name("lp-alerts".to_owned());
    // Until a group is evaluated, it is as it was, for whoever asks first.
    for (key, state) in file.read((parts.clock)()) {
        let known = GroupStatus {
            state,
            ..GroupStatus::default()
        };
        parts.alerts.note(&key, known);
    }
    thread.spawn(move || {
        let mut evaluator = Evaluator {
            file,
            parts,
            due: BTreeMap::new(),
            others: Vec::new(),
            copied: BTreeMap::new(),
            is_failing: false,
            stop,
        };
        while let Err(panicked) = caught(|| evaluator.run()) {
            warn(&format!(
                "alert rules are not evaluated for now: {panicked}"
            ));
            evaluator.stop.wait_at_most(PANIC_PAUSE);
        }
        for teller in tellers {
            // One that panicked has said so.
            let _ = teller.join();
        }
        evaluator.end();
    })
}

impl Evaluator {
    fn run(&mut self) {
        let stop = self.stop.clone();
        while !stop.is_stopping() {
            let loaded = self.parts.alerts.loaded();
            self.parts.peers.say(loaded.digest);
            self.forget_all_but(&loaded);
            self.meet(loaded.digest);
            self.copied
                .retain(|_, copied| copied.at.elapsed() < COPY_KEPT);
            let mut next =
                (self.parts.clock)().saturating_add(cast::low_i64(LOOK_EVERY.as_nanos()));
            for group in &loaded.groups {
                if stop.is_stopping() {
                    return;
                }
                next = next.min(self.look_at(group, loaded.digest));
            }
            let wait_ns = next.0.saturating_sub((self.parts.clock)().0).max(0);
            let wait = Duration::from_nanos(wait_ns.unsigned_abs());
            stop.wait_at_most(wait.clamp(LOOK_MIN, LOOK_EVERY));
        }
    }

    /// Another node may know what this one does not: groups begin as if they were this node's just now.
    fn meet(&mut self, digest: u64) {
        let others = self.parts.peers.others(digest);
        let is_new = |name: &String| !self.others.contains(name);
        if others.iter().any(is_new) {
            self.due.clear();
        }
        self.others = others;
    }

    /// Groups that no file has any more leave nothing but what is to be told of their end.
    fn forget_all_but(&mut self, loaded: &RuleSet) {
        let is_there = |key: &String| loaded.groups.iter().any(|group| group.key == *key);
        self.due.retain(|key, _| is_there(key));
        let at = (self.parts.clock)();
        let mut has_changed = false;
        for (key, before) in self.parts.alerts.known_beside(loaded) {
            if before.owner.is_some() {
                // Its node tells of the end.
                self.parts.alerts.forget(&key);
                continue;
            }
            let mut state = before.state.clone();
            let told = self.end_rules(&key, &mut state.rules, at);
            has_changed |= !are_alike(&state.rules, &before.state.rules);
            if state.rules.is_empty() {
                self.parts.alerts.forget(&key)
            } else {
                let known = GroupStatus {
                    state,
                    ..GroupStatus::default()
                };
                self.parts.alerts.note(&key, known);
            }
            self.tell(told, at);
        }
        if has_changed {
            self.write();
        }
    }

    /// Has the alerts of rules that are gone end; gives what is to be told. Rules of which nothing is are left
    /// out.
    fn end_rules(
        &self,
        group: &str,
        rules: &mut Vec<(String, RuleState)>,
        at: Timestamp,
    ) -> Vec<ToTell> {
        let mut told = Vec::new();
        rules.retain_mut(|(key, state)| {
            let is_left = state.end(at);
            // Their query is not known any more.
            let notices = state.notices("", at, 0);
            told.extend(self.take_notices(group, key, state, notices, at));
            is_left
        });
        told
    }

    /// Notices of a rule on their way; what all who are told changes know counts as told.
    fn take_notices(
        &self,
        group: &str,
        key: &str,
        state: &mut RuleState,
        notices: Vec<Notice>,
        at: Timestamp,
    ) -> Vec<ToTell> {
        let rule: Arc<str> = format!("{group};{key}").into();
        self.note_known(state, &notices, at);
        let each = notices.into_iter();
        each.map(|notice| (rule.clone(), notice)).collect()
    }

    /// Evaluates a group if it is due and this node's; gives when it is to be looked at again.
    fn look_at(&mut self, group: &LoadedGroup, digest: u64) -> Timestamp {
        let now = (self.parts.clock)();
        let first = group.schedule.next(now);
        if let Some(owner) = self.parts.peers.owner(&group.key, digest) {
            self.copy(group, owner);
            self.due.remove(&group.key);
            return first;
        }
        let due = match self.due.get(&group.key) {
            Some(due) => *due,
            None => {
                // It is this node's from now on.
                self.adopt(group);
                self.due.insert(group.key.clone(), first);
                first
            }
        };
        // After a clock was set back it is not waited for what it said before.
        if now < due && due <= first {
            return due;
        }
        let at = group.schedule.last(now);
        let missed = group.schedule.missed(due, at);
        self.parts.alerts.counters.missed.add(missed);
        self.evaluate(group, at);
        let next = group.schedule.next(at);
        self.due.insert(group.key.clone(), next);
        next
    }

    /// What another node knows, as of now or of a moment ago.
    fn ask_node(&mut self, name: &str) -> &Result<Vec<GroupState>, String> {
        let is_old = |copied: &StateCopy| copied.at.elapsed() >= COPY_EVERY;
        if self.copied.get(name).is_none_or(is_old) {
            let states = self.parts.peers.states_of(name);
            let at = Instant::now();
            self.copied
                .insert(name.to_owned(), StateCopy { states, at });
        }
        match self.copied.get(name) {
            Some(copied) => &copied.states,
            None => &NOTHING,
        }
    }

    /// Shows what the node knows that evaluates a group.
    fn copy(&mut self, group: &LoadedGroup, owner: String) {
        let before = self.parts.alerts.known(&group.key);
        let mut known = GroupStatus {
            state: before.state.clone(),
            ..GroupStatus::default()
        };
        match self.ask_node(&owner) {
            Ok(states) => {
                let found = states.iter().find(|state| state.key == group.key);
                let found = found.filter(|state| state.evaluated_at >= known.state.evaluated_at);
                if let Some(state) = found {
                    known.state = state.clone();
                }
            }
            Err(why) => known.silence = Some(why.clone()),
        }
        known.owner = Some(owner);
        self.parts.alerts.note(&group.key, known);
    }

    /// Goes on with what other nodes know of a group that is this node's from now on.
    fn adopt(&mut self, group: &LoadedGroup) {
        let before = self.parts.alerts.known(&group.key);
        let mut state = before.state.clone();
        state.key.clone_from(&group.key);
        let (mut rules, gone) = parted(&group.group, &state);
        for name in self.others.clone() {
            // Who does not answer now is asked again when it is there again.
            let Ok(states) = self.ask_node(&name) else {
                continue;
            };
            for theirs in states.iter().filter(|state| state.key == group.key) {
                let found = matched(&group.group, theirs);
                for (own, theirs) in rules.iter_mut().zip(&found) {
                    own.adopt(theirs);
                }
                state.evaluated_at = state.evaluated_at.max(theirs.evaluated_at);
            }
        }
        let keys = group.group.rules.iter().map(|rule| rule.key());
        state.rules = keys.zip(rules).chain(gone).collect();
        let known = GroupStatus {
            state,
            ..GroupStatus::default()
        };
        self.parts.alerts.note(&group.key, known);
    }

    fn evaluate(&mut self, group: &LoadedGroup, at: Timestamp) {
        let started = Instant::now();
        let before = self.parts.alerts.known(&group.key);
        let (mut rules, mut gone) = parted(&group.group, &before.state);
        let mut told = Vec::new();
        for (rule, state) in group.group.rules.iter().zip(&mut rules) {
            self.evaluate_rule(group, rule, state, at);
            let notices = state.notices(&rule.text, at, group.schedule.interval_ns());
            told.extend(self.take_notices(&group.key, &rule.key(), state, notices, at));
        }
        for (_, state) in &mut gone {
            // A rule that was changed may go on with the alert: then it has not ended.
            let alerts = &mut state.alerts;
            alerts.retain(|labels, _| !rules.iter().any(|rule| rule.is_firing(labels)));
        }
        told.extend(self.end_rules(&group.key, &mut gone, at));
        if self.stop.is_stopping() {
            // Answers may have been broken off: it is as if there was no evaluation.
            return;
        }
        let took = started.elapsed();
        self.parts.alerts.counters.seconds.observe_duration(took);
        let keys = group.group.rules.iter().map(|rule| rule.key());
        let state = GroupState {
            key: group.key.clone(),
            evaluated_at: Some(at),
            took_ns: cast::low_i64(took.as_nanos()),
            rules: keys.zip(rules).chain(gone).collect(),
        };
        let is_as_before = are_alike(&state.rules, &before.state.rules);
        self.parts.alerts.note(
            &group.key,
            GroupStatus {
                state,
                ..GroupStatus::default()
            },
        );
        if !is_as_before {
            self.write();
        }
        self.tell(told, at);
    }

    fn evaluate_rule(
        &self,
        group: &LoadedGroup,
        rule: &Arc<Rule>,
        state: &mut RuleState,
        at: Timestamp,
    ) {
        let counters = &self.parts.alerts.counters;
        let started = Instant::now();
        let limit = group.group.limit;
        let mut evaluated = self.ask(group, rule, at);
        if let Ok(found) = &evaluated
            && is_recorded(&rule.action, found)
            && let Err(error) = self.record(rule, found, limit, at)
        {
            evaluated = Err(error);
        }
        let url = self.parts.alerts.external_url();
        state.advance(rule, evaluated, (limit, url), at);
        state.took_ns = cast::low_i64(started.elapsed().as_nanos());
        counters.evaluations.add(1);
        counters
            .failures
            .add(u64::from(matches!(state.health, Health::Bad(_))));
    }

    fn ask(
        &self,
        group: &LoadedGroup,
        rule: &Rule,
        at: Timestamp,
    ) -> Result<EvaluationResult, String> {
        let of = group.group.query_time(at);
        let plan = Plan::instant(rule.query.clone(), of, at.0);
        let plan = plan.map_err(|error| error.to_string())?;
        self.parts.source.numbers(&plan)
    }

    fn record(
        &self,
        rule: &Rule,
        found: &EvaluationResult,
        limit: usize,
        at: Timestamp,
    ) -> Result<(), String> {
        let series = recorded(rule, &found.answer, limit)?;
        if series.is_empty() {
            return Ok(());
        }
        let counters = &self.parts.alerts.counters;
        let outcome = self.parts.recorder.record(&rule.name, at, &series);
        match outcome {
            Ok(()) => counters.recorded.add(series.len() as u64),
            Err(_) => counters.unrecorded.add(series.len() as u64),
        }
        outcome
    }

    fn tell(&self, notices: Vec<ToTell>, at: Timestamp) {
        for (rule, notice) in notices {
            let generator_url = self.parts.alerts.generator_url(&notice.query);
            let waiting = QueuedNotice {
                notice,
                rule,
                generator_url: generator_url.into(),
                at,
            };
            for target in &self.parts.alerts.targets {
                target.tell(waiting.clone());
            }
        }
    }

    fn write(&mut self) {
        let states = self.parts.alerts.states();
        match self.file.write(&states) {
            Ok(()) => self.is_failing = false,
            Err(error) => {
                self.parts.alerts.counters.unwritten.add(1);
                if !std::mem::replace(&mut self.is_failing, true) {
                    warn(&format!(
                        "the state of alerts cannot be written, a restart would forget it: {error}"
                    ));
                }
            }
        }
    }

    /// Notes what receivers have taken last, and writes everything down.
    fn end(&mut self) {
        let loaded = self.parts.alerts.loaded();
        let there = loaded.groups.iter().map(|group| group.key.clone());
        let beside = self.parts.alerts.known_beside(&loaded);
        let keys: Vec<String> = there
            .chain(beside.into_iter().map(|(key, _)| key))
            .collect();
        let at = (self.parts.clock)();
        for key in &keys {
            let known = self.parts.alerts.known(key);
            if known.owner.is_some() {
                continue;
            }
            let mut known = GroupStatus::clone(&known);
            for (_, state) in &mut known.state.rules {
                self.note_taken(state, at);
            }
            self.parts.alerts.note(key, known);
        }
        if !keys.is_empty() {
            self.write();
        }
    }

    /// Notes what all receivers have taken of a rule's changes.
    fn note_taken(&self, state: &mut RuleState, at: Timestamp) {
        // A copy, so that nothing counts as sent; when it would be sent again does not matter.
        let notices = state.clone().notices("", at, 0);
        self.note_known(state, &notices, at);
    }

    /// Changes that all who are told know count as told.
    fn note_known(&self, state: &mut RuleState, notices: &[Notice], at: Timestamp) {
        let targets = &self.parts.alerts.targets;
        for notice in notices.iter().filter(|notice| notice.is_news) {
            if targets.iter().all(|target| target.knows(notice)) {
                state.told(&notice.labels, notice.is_resolved, at);
            }
        }
    }
}

/// Whether the states of a group's rules are of the same rules and would go on in the same way.
fn are_alike(now: &[(String, RuleState)], before: &[(String, RuleState)]) -> bool {
    let mut pairs = now.iter().zip(before);
    now.len() == before.len()
        && pairs.all(|((key, now), (was_key, was))| key == was_key && now.is_like(was))
}

/// True if numbers are written down. One that lacks something would be there for ever, and nothing would say so.
pub(super) fn is_recorded(action: &Action, found: &EvaluationResult) -> bool {
    matches!(action, Action::Record) && found.missing.is_none()
}

//! Alert rules: read from files, evaluated on their intervals, told to an Alertmanager or a webhook.
//!
//! ```text
//! files ─▶ Loaded ─▶ lp-alerts: each group on its interval ─▶ Source (queries)
//! lp-watch ┘              │ states ─▶ DATA/alerts/state       └▶ Recorder (results of recordings)
//!                         └ notices ─▶ lp-notify-N: one for each receiver
//! ```
//!
//! Invariants:
//! - What becomes of an alert is decided in `logpond_search::alert`, without a clock; this brings the
//!   time, the answers and the disk.
//! - State is on the disk before anybody is told of it, so that a restart neither delays nor resolves
//!   anything.
//! - In a cluster each group is evaluated by one of the nodes that have it, by a hash over those that are
//!   thought to be alive. Nobody agrees on anything: two that think differently tell the same twice.
//! - A receiver that does not answer holds up nothing: its notices wait, the latest of each alert only.
//! - Addresses of receivers may hold secrets; of these only scheme, host and port are ever shown.

mod error;
mod evaluate;
mod files;
mod metrics;
mod notify;
mod state_file;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use logpond_record::Timestamp;
pub use logpond_search::alert::{EvaluationResult, owner};
use logpond_search::alert::{Group, GroupState, Rule, RuleState, Schedule};
use logpond_search::metric::{Plan, SeriesLabels};
use xxhash_rust::xxh3::Xxh3;

use logpond_settings::Receiver;

pub use error::AlertRulesError;
pub use evaluate::{Parts, start};
pub use files::read;
use metrics::Counters;
pub use watch::WatchedAlertRules;

/// How often a group is evaluated that does not say it: as in Prometheus and Loki.
const INTERVAL_DEFAULT_NS: i64 = 60 * 1_000_000_000;

/// Answers the queries of rules. Blocks.
pub trait Source: Send {
    /// The numbers of a query, with what they lack.
    ///
    /// # Errors
    /// Why there are none, in words.
    fn numbers(&self, plan: &Plan) -> Result<EvaluationResult, String>;
}

/// Writes results of recording rules down. Blocks.
pub trait Recorder: Send {
    /// Writes the numbers of a rule at an instant; returns once they are on the disk.
    ///
    /// # Errors
    /// Why they could not be, in words.
    fn record(
        &self,
        name: &str,
        at: Timestamp,
        series: &[(SeriesLabels, f64)],
    ) -> Result<(), String>;
}

/// The other nodes that were given the same rules. Calls block, each for a bounded time.
pub trait Peers: Send {
    /// The node that evaluates a group of rules with this digest; `None` is this one.
    fn owner(&self, key: &str, digest: u64) -> Option<String>;

    /// The other nodes that may have evaluated groups of rules with this digest.
    fn others(&self, digest: u64) -> Vec<String>;

    /// What a node knows of groups, its own and others'.
    ///
    /// # Errors
    /// Why it does not say, in words.
    fn states_of(&self, name: &str) -> Result<Vec<GroupState>, String>;

    /// Tells the others which rules this node has.
    fn say(&self, digest: u64);
}

/// A node without others.
pub struct SoleNode;

impl Peers for SoleNode {
    fn owner(&self, _: &str, _: u64) -> Option<String> {
        None
    }

    fn others(&self, _: u64) -> Vec<String> {
        Vec::new()
    }

    fn states_of(&self, _: &str) -> Result<Vec<GroupState>, String> {
        Ok(Vec::new())
    }

    fn say(&self, _: u64) {}
}

/// A group, and where it comes from.
#[derive(Debug)]
pub struct LoadedGroup {
    /// What it is known by, here and on other nodes: its file's name and its own.
    pub key: String,
    /// The name of its file.
    pub namespace: String,
    /// The path of its file.
    pub file: String,
    /// What the file says.
    pub group: Group,
    /// When it is evaluated.
    pub schedule: Schedule,
}

impl LoadedGroup {
    fn new(namespace: &str, file: &str, group: Group) -> LoadedGroup {
        let key = format!("{namespace};{}", group.name);
        let interval_ns = group.interval_ns.unwrap_or(INTERVAL_DEFAULT_NS);
        LoadedGroup {
            schedule: Schedule::new(&key, interval_ns),
            key,
            namespace: namespace.to_owned(),
            file: file.to_owned(),
            group,
        }
    }
}

/// All rules that apply.
#[derive(Debug, Default)]
pub struct RuleSet {
    /// The groups, by file and then in their order there.
    pub groups: Vec<Arc<LoadedGroup>>,
    /// A number that differs where the rules do; 0 is none.
    pub digest: u64,
}

impl RuleSet {
    fn new(groups: Vec<Arc<LoadedGroup>>) -> RuleSet {
        let mut hash = Xxh3::new();
        for group in &groups {
            hash.update(group.key.as_bytes());
            hash.update(&group.schedule.interval_ns().to_le_bytes());
            for rule in &group.group.rules {
                hash.update(rule.key().as_bytes());
            }
        }
        RuleSet {
            digest: if groups.is_empty() {
                0
            } else {
                hash.digest().max(1)
            },
            groups,
        }
    }
}

/// The state of a group and its evaluating node.
#[derive(Clone, Debug, Default)]
pub struct GroupStatus {
    /// Its state after the last evaluation.
    pub state: GroupState,
    /// The node that evaluates it, if it is another one.
    pub owner: Option<String>,
    /// Why that node's state is not the newest.
    pub silence: Option<String>,
}

/// The rules of a server and what became of them. One per process.
pub struct Alerts {
    loaded: Mutex<Arc<RuleSet>>,
    known: Mutex<BTreeMap<String, Arc<GroupStatus>>>,
    /// Where people reach the server, once it is known.
    external_url: OnceLock<String>,
    targets: Vec<Arc<notify::Target>>,
    counters: Counters,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Alerts {
    /// These rules, nothing known of them yet.
    pub fn new(loaded: RuleSet, receivers: &[Receiver]) -> Alerts {
        let targets = receivers.iter().cloned();
        Alerts {
            loaded: Mutex::new(Arc::new(loaded)),
            known: Mutex::default(),
            external_url: OnceLock::new(),
            targets: targets
                .map(|receiver| Arc::new(notify::Target::new(receiver)))
                .collect(),
            counters: Counters::default(),
        }
    }

    /// Says where people reach the server; the first time counts.
    pub fn reached_at(&self, external_url: String) {
        let _ = self.external_url.set(external_url);
    }

    fn external_url(&self) -> &str {
        self.external_url.get().map_or("", String::as_str)
    }

    /// The rules that apply now.
    pub fn loaded(&self) -> Arc<RuleSet> {
        locked(&self.loaded).clone()
    }

    fn replace(&self, loaded: RuleSet) {
        *locked(&self.loaded) = Arc::new(loaded);
    }

    /// What is known of a group.
    pub fn known(&self, key: &str) -> Arc<GroupStatus> {
        locked(&self.known).get(key).cloned().unwrap_or_default()
    }

    fn note(&self, key: &str, known: GroupStatus) {
        locked(&self.known).insert(key.to_owned(), Arc::new(known));
    }

    /// What is known of all groups, whoever evaluates them.
    pub fn states(&self) -> Vec<GroupState> {
        let known = locked(&self.known);
        known.values().map(|known| known.state.clone()).collect()
    }

    /// What is known of groups that are not there.
    fn known_beside(&self, loaded: &RuleSet) -> Vec<(String, Arc<GroupStatus>)> {
        let known = locked(&self.known);
        let is_there = |key: &str| loaded.groups.iter().any(|group| group.key == key);
        let gone = known.iter().filter(|(key, _)| !is_there(key));
        gone.map(|(key, known)| (key.clone(), known.clone()))
            .collect()
    }

    fn forget(&self, key: &str) {
        locked(&self.known).remove(key);
    }

    /// Why notices do not reach somebody, in words, if they do not.
    pub fn undelivered(&self) -> Option<String> {
        self.targets.iter().find_map(|target| target.last_error())
    }

    /// The address with which people look at a query: the page, which asks it.
    pub fn generator_url(&self, query: &str) -> String {
        let mut url = format!("{}/?logql=", self.external_url());
        logpond_client::encode(query.as_bytes(), &mut url);
        url
    }
}

/// The states of a group's rules, in the order of its rules: each with its own of before, or a new one.
pub fn matched(group: &Group, state: &GroupState) -> Vec<RuleState> {
    parted(group, state).0
}

/// The same, and the states of rules that the group does not have any more, by their keys.
fn parted(group: &Group, state: &GroupState) -> (Vec<RuleState>, Vec<(String, RuleState)>) {
    let mut left: BTreeMap<&str, Vec<&RuleState>> = BTreeMap::new();
    for (key, rule) in state.rules.iter().rev() {
        left.entry(key).or_default().push(rule);
    }
    let of = |rule: &Arc<Rule>| {
        let same = left.get_mut(&*rule.key()).and_then(Vec::pop);
        same.cloned().unwrap_or_default()
    };
    let own = group.rules.iter().map(of).collect();
    let gone = left.into_iter().flat_map(|(key, rules)| {
        let rules = rules.into_iter().rev();
        rules.map(|rule| (key.to_owned(), rule.clone()))
    });
    (own, gone.collect())
}

//! Tells one receiver of alerts: `lp-notify-N`.
//!
//! Invariants:
//! - What waits is bounded: the latest notice of each alert, and of these at most [`WAITING_MAX`]. One
//!   that finds no room comes again with a later evaluation.
//! - A notice leaves only when the receiver took it, or refused it for good.
//! - A receiver of changes only takes each once, as long as this process runs.

pub(super) mod alertmanager;
pub(super) mod webhook;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use logpond_record::Timestamp;
use logpond_search::alert::Notice;
use logpond_search::metric::SeriesLabels;

use super::locked;
use logpond_client as client;
use logpond_client::Access;
use logpond_host::shutdown::Shutdown;
use logpond_host::telemetry::{Counter, say, warn};
use logpond_settings::{Receiver, ReceiverForm};

/// Notices that wait for a receiver; ten times what one that is well takes in a minute.
const WAITING_MAX: usize = 20_000;

/// Notices of one request, as Prometheus has it.
const BATCH_MAX: usize = 256;

/// How long a receiver may take for a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// The first wait after a failure; it doubles with each further one.
const AGAIN_MIN: Duration = Duration::from_millis(500);

/// The longest wait: a receiver that is there again is told soon.
const AGAIN_MAX: Duration = Duration::from_secs(30);

/// How long it is remembered what a receiver was told; longer than any alert is told again.
const DONE_KEPT_NS: i64 = 24 * 3600 * 1_000_000_000;

/// What is waited for at a time, so that a stop is seen.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A notice on its way.
#[derive(Clone, Debug)]
pub(super) struct QueuedNotice {
    pub(super) notice: Notice,
    /// The rule, as other notices of it have it.
    pub(super) rule: Arc<str>,
    /// The address with which people look at it.
    pub(super) generator_url: Arc<str>,
    /// The evaluation that it is of.
    pub(super) at: Timestamp,
}

/// What tells a notice from others: the rule, so that those of one are side by side, and the alert.
type Key = (Arc<str>, u64);

/// A receiver, and what it is to be told.
pub(super) struct Target {
    receiver: Receiver,
    waiting: Mutex<BTreeMap<Key, QueuedNotice>>,
    arrived: Condvar,
    /// What it has taken, of changes: the alert and whether it had ended, with its evaluation.
    done: Mutex<BTreeMap<(u64, bool), Timestamp>>,
    last_error: Mutex<Option<String>>,
    taken: Counter,
    failures: Counter,
    dropped: Counter,
}

/// How a request went.
enum Outcome {
    Taken,
    /// It will never be taken.
    Refused(String),
    /// It may be taken later.
    Failed(String),
}

impl Target {
    pub(super) fn new(receiver: Receiver) -> Target {
        Target {
            receiver,
            waiting: Mutex::default(),
            arrived: Condvar::new(),
            done: Mutex::default(),
            last_error: Mutex::default(),
            taken: Counter::default(),
            failures: Counter::default(),
            dropped: Counter::default(),
        }
    }

    /// The name of its form.
    pub(super) fn form(&self) -> &'static str {
        self.receiver.form.as_str()
    }

    /// Notices taken, attempts failed, notices dropped.
    pub(super) fn counts(&self) -> [i64; 3] {
        [self.taken.get(), self.failures.get(), self.dropped.get()]
    }

    /// Why it was not told the last time, if so.
    pub(super) fn last_error(&self) -> Option<String> {
        locked(&self.last_error).clone()
    }

    /// Hands a notice over, if it is for this receiver.
    pub(super) fn tell(&self, waiting: QueuedNotice) {
        let is_wanted = match self.receiver.form {
            ReceiverForm::Alertmanager => waiting.notice.is_due,
            ReceiverForm::Webhook => waiting.notice.is_news && !self.knows(&waiting.notice),
        };
        if !is_wanted {
            return;
        }
        let key = (waiting.rule.clone(), fingerprint(&waiting.notice.labels));
        let mut all = locked(&self.waiting);
        if all.len() >= WAITING_MAX && !all.contains_key(&key) {
            return self.dropped.add(1);
        }
        all.insert(key, waiting);
        self.arrived.notify_all();
    }

    /// Whether it needs to be told no more: others than those of changes never do.
    pub(super) fn knows(&self, notice: &Notice) -> bool {
        if self.receiver.form == ReceiverForm::Alertmanager {
            return true;
        }
        let key = (fingerprint(&notice.labels), notice.is_resolved);
        let done = locked(&self.done).get(&key).copied();
        // An earlier one of the same alert may have begun and ended before.
        done.is_some_and(|done| done >= notice.news_since)
    }

    /// Starts its thread. It ends after the stop.
    ///
    /// # Errors
    /// When the system gives no thread, or trusts nobody to encrypt with.
    pub(super) fn start(
        self: &Arc<Target>,
        number: usize,
        external_url: &str,
        stop: &Shutdown,
    ) -> io::Result<JoinHandle<()>> {
        let mut access = Access::default();
        if self.receiver.is_encrypted() {
            access.trust(None).map_err(io::Error::other)?;
        }
        let agent = client::agent(Some(REQUEST_TIMEOUT), &access);
        let (target, stop) = (self.clone(), stop.clone());
        let external_url = external_url.to_owned();
        let thread = thread::Builder::new().name(format!("lp-notify-{number}"));
        thread.spawn(move || target.run(&agent, &external_url, &stop))
    }

    fn run(&self, agent: &ureq::Agent, external_url: &str, stop: &Shutdown) {
        let mut again = AGAIN_MIN;
        while let Some(batch) = self.next(stop) {
            let body = match self.receiver.form {
                ReceiverForm::Alertmanager => alertmanager::body(&batch),
                ReceiverForm::Webhook => webhook::body(&batch, external_url),
            };
            match self.post(agent, &body) {
                Outcome::Taken => {
                    self.taken.add(batch.len() as u64);
                    self.finish(&batch);
                    self.note_well();
                    again = AGAIN_MIN;
                }
                Outcome::Refused(why) => {
                    self.failures.add(1);
                    self.dropped.add(batch.len() as u64);
                    self.finish(&batch);
                    self.note_error(why);
                }
                Outcome::Failed(why) => {
                    self.failures.add(1);
                    self.note_error(why);
                    stop.wait_at_most(again);
                    again = (again * 2).min(AGAIN_MAX);
                }
            }
        }
    }

    /// Waits for notices; of a webhook those of one rule. `None` at the stop.
    pub(super) fn next(&self, stop: &Shutdown) -> Option<Vec<QueuedNotice>> {
        let mut all = locked(&self.waiting);
        loop {
            if stop.is_stopping() {
                return None;
            }
            if let Some(first) = all.values().next() {
                let rule = first.rule.clone();
                let is_batched = |waiting: &&QueuedNotice| {
                    self.receiver.form == ReceiverForm::Alertmanager || waiting.rule == rule
                };
                let batch = all.values().filter(is_batched).take(BATCH_MAX);
                return Some(batch.cloned().collect());
            }
            let waited = self.arrived.wait_timeout(all, LOOK_EVERY);
            all = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn post(&self, agent: &ureq::Agent, body: &str) -> Outcome {
        let mut request = agent.post(self.receiver.url());
        request = request.header("content-type", "application/json");
        if let Some(authorization) = self.receiver.authorization() {
            request = request.header("authorization", authorization);
        }
        let request = request.config().timeout_global(Some(REQUEST_TIMEOUT));
        match request.build().send(body) {
            // The text of an error may name the address.
            Err(ureq::Error::BadUri(_)) => Outcome::Refused("its address is none".to_owned()),
            Err(error) => Outcome::Failed(error.to_string().replace(self.receiver.url(), "…")),
            Ok(response) => match response.status().as_u16() {
                200..=299 => Outcome::Taken,
                status @ (408 | 429 | 500..=599) => Outcome::Failed(format!("status {status}")),
                status => Outcome::Refused(format!("status {status}")),
            },
        }
    }

    /// Takes notices away that were not replaced by later ones meanwhile. A later evaluation may have said the same
    /// change again while the receiver took it.
    pub(super) fn finish(&self, batch: &[QueuedNotice]) {
        let is_of_changes = self.receiver.form == ReceiverForm::Webhook;
        let mut all = locked(&self.waiting);
        let mut done = locked(&self.done);
        for waiting in batch {
            let alert = fingerprint(&waiting.notice.labels);
            let key = (waiting.rule.clone(), alert);
            let is_resolved = waiting.notice.is_resolved;
            let is_finished = |now: &QueuedNotice| {
                let is_same_change =
                    now.notice.is_resolved == is_resolved && now.notice.news_since <= waiting.at;
                now.at == waiting.at || is_of_changes && is_same_change
            };
            if all.get(&key).is_some_and(is_finished) {
                all.remove(&key);
            }
            if is_of_changes {
                done.insert((alert, is_resolved), waiting.at);
            }
        }
        if let Some(last) = batch.last() {
            done.retain(|_, at| last.at.0.saturating_sub(at.0) < DONE_KEPT_NS);
        }
    }

    fn note_well(&self) {
        if locked(&self.last_error).take().is_some() {
            say(&format!("{} is told of alerts again", self.receiver));
        }
    }

    /// Says so once, not for each attempt.
    fn note_error(&self, why: String) {
        let text = format!("{} cannot be told of alerts: {why}", self.receiver);
        let mut last = locked(&self.last_error);
        if last.is_none() {
            warn(&text);
        }
        *last = Some(text);
    }
}

/// What tells alerts apart, as an Alertmanager has it: 64-bit FNV-1a of names and values in their order,
/// 255 behind each.
pub(super) fn fingerprint(labels: &SeriesLabels) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x100_0000_01b3;
    let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    let mut hash = OFFSET;
    for (name, value) in labels.iter() {
        for text in [name, value] {
            hash = text.bytes().fold(hash, add);
            hash = add(hash, 255);
        }
    }
    hash
}

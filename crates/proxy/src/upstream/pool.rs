//! Upstreams among which connections are divided.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use logpond_record::cast;
use serde::Serialize;

use super::{Stream, Target};
use crate::settings::Upstream;

/// How long an upstream that did not take a connection is tried only after all others.
const EJECTED_TIME: Duration = Duration::from_secs(10);

/// What is known of an upstream; all workers have the same, and all routes that lead there.
#[derive(Debug)]
pub(crate) struct State {
    target: Target,
    /// As records have it.
    name: Arc<str>,
    /// Moments are counted from here.
    since: Instant,
    /// Until when it is tried last, in milliseconds since `since`.
    ejected_until_ms: AtomicU64,
    /// Whether it did not answer when it was last checked.
    is_down: AtomicBool,
    active: AtomicUsize,
    connected: AtomicU64,
    failed: AtomicU64,
    connecting_us: AtomicU64,
}

/// How an upstream is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UpstreamStatus {
    /// As it is written in settings.
    pub upstream: String,
    /// Whether connections are brought to it before others that failed.
    pub is_up: bool,
    /// Connections that are open.
    pub active: usize,
    /// Connections that it took, checks not among them.
    pub connected: u64,
    /// Connections that it did not take.
    pub failed: u64,
    /// What connecting took in all, of those that it took.
    pub connecting_us: u64,
}

impl State {
    fn new(target: Target, since: Instant) -> State {
        State {
            name: target.to_string().into(),
            target,
            since,
            ejected_until_ms: AtomicU64::new(0),
            is_down: AtomicBool::new(false),
            active: AtomicUsize::new(0),
            connected: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            connecting_us: AtomicU64::new(0),
        }
    }

    fn is_good(&self) -> bool {
        let now_ms = millis(self.since.elapsed());
        !self.is_down.load(Ordering::Relaxed)
            && self.ejected_until_ms.load(Ordering::Relaxed) <= now_ms
    }

    async fn connect(&self, time: Duration) -> io::Result<Stream> {
        let connected = tokio::time::timeout(time, self.target.connect()).await;
        connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Connects for a client.
    async fn serve(self: &Arc<State>, time: Duration) -> io::Result<UpstreamConnection> {
        let begun = Instant::now();
        match self.connect(time).await {
            Ok(stream) => {
                self.ejected_until_ms.store(0, Ordering::Relaxed);
                self.connected.fetch_add(1, Ordering::Relaxed);
                let took_us = begun.elapsed().as_micros().try_into().unwrap_or(u64::MAX);
                self.connecting_us.fetch_add(took_us, Ordering::Relaxed);
                self.active.fetch_add(1, Ordering::Relaxed);
                let held = ConnectionGuard(self.clone());
                Ok(UpstreamConnection { stream, held })
            }
            Err(error) => {
                let until = self.since.elapsed() + EJECTED_TIME;
                self.ejected_until_ms
                    .store(millis(until), Ordering::Relaxed);
                self.failed.fetch_add(1, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    /// Finds out whether it takes connections. Gives whether that is another answer than before.
    pub(super) async fn check(&self, time: Duration) -> bool {
        let is_down = self.connect(time).await.is_err();
        if !is_down {
            self.ejected_until_ms.store(0, Ordering::Relaxed);
        }
        self.is_down.swap(is_down, Ordering::Relaxed) != is_down
    }

    /// Nobody checks it any more.
    pub(super) fn is_not_checked(&self) {
        self.is_down.store(false, Ordering::Relaxed);
    }

    fn status(&self) -> UpstreamStatus {
        UpstreamStatus {
            upstream: self.name.to_string(),
            is_up: self.is_good(),
            active: self.active.load(Ordering::Relaxed),
            connected: self.connected.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            connecting_us: self.connecting_us.load(Ordering::Relaxed),
        }
    }
}

/// A connection that an upstream took.
#[derive(Debug)]
pub(crate) struct UpstreamConnection {
    pub(crate) stream: Stream,
    pub(crate) held: ConnectionGuard,
}

/// A connection is counted for its upstream until this is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionGuard(Arc<State>);

impl ConnectionGuard {
    pub(crate) fn name(&self) -> Arc<str> {
        self.0.name.clone()
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::Relaxed);
    }
}

/// All upstreams: what is known of them outlives the settings that name them.
#[derive(Debug)]
pub(crate) struct Upstreams {
    by_name: Mutex<HashMap<String, Arc<State>>>,
    since: Instant,
}

impl Upstreams {
    pub(crate) fn new() -> Upstreams {
        Upstreams {
            by_name: Mutex::default(),
            since: Instant::now(),
        }
    }

    fn of(&self, target: &Target) -> Arc<State> {
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        let state = by_name.entry(target.to_string());
        let state = state.or_insert_with(|| State::new(target.clone(), self.since).into());
        state.clone()
    }

    /// Forgets those that no settings name and no connection goes to.
    pub(crate) fn forget_unused(&self) {
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        by_name.retain(|_, state| Arc::strong_count(state) > 1);
    }

    /// How they are, by name.
    pub(crate) fn status(&self) -> Vec<UpstreamStatus> {
        let by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        let mut status: Vec<_> = by_name.values().map(|state| state.status()).collect();
        status.sort_unstable_by(|a, b| a.upstream.cmp(&b.upstream));
        status
    }
}

/// The upstreams of a route.
#[derive(Debug)]
pub(crate) struct Pool {
    all: Vec<Arc<State>>,
    /// Places in `all` in the order of turns, each as often as its weight says.
    turns: Vec<u16>,
    turn: AtomicUsize,
}

impl Pool {
    pub(crate) fn new(upstreams: &[Upstream], known: &Upstreams) -> Pool {
        let weights: Vec<u16> = upstreams.iter().map(|upstream| upstream.weight).collect();
        let states = upstreams.iter().map(|upstream| known.of(&upstream.target));
        Pool {
            all: states.collect(),
            turns: turns(&weights),
            turn: AtomicUsize::new(0),
        }
    }

    pub(super) fn states(&self) -> &[Arc<State>] {
        &self.all
    }

    /// Connects to one of them: they take turns, and those that failed lately come last.
    ///
    /// # Errors
    /// What the last one said that was tried; its name is given, too.
    pub(crate) async fn connect(
        &self,
        time: Duration,
    ) -> Result<UpstreamConnection, (io::Error, Arc<str>)> {
        let mut failed = None;
        for state in self.in_turn(self.turn.fetch_add(1, Ordering::Relaxed)) {
            match state.serve(time).await {
                Ok(connected) => return Ok(connected),
                Err(error) => failed = Some((error, state.name.clone())),
            }
        }
        Err(failed.unwrap_or_else(|| (io::ErrorKind::NotFound.into(), "".into())))
    }

    /// All of them, each once: first the good ones, and of these first those with a weight.
    fn in_turn(&self, turn: usize) -> Vec<&Arc<State>> {
        let count = self.turns.len();
        let in_turn = (0..count).map(|at| usize::from(self.turns[(turn % count + at) % count]));
        let mut order = Vec::with_capacity(self.all.len());
        for at in in_turn.chain(0..self.all.len()) {
            if !order.contains(&at) {
                order.push(at);
            }
            if order.len() == self.all.len() {
                break;
            }
        }
        let (mut good, bad): (Vec<_>, Vec<_>) = order
            .into_iter()
            .map(|at| &self.all[at])
            .partition(|state| state.is_good());
        good.extend(bad);
        good
    }
}

/// Places in the order of turns: each as often as its weight, spread as evenly as can be. In each step
/// all gain their weight, and who has most loses what all gained (nginx's smooth weighted round robin).
fn turns(weights: &[u16]) -> Vec<u16> {
    let divisor = weights
        .iter()
        .copied()
        .fold(0, greatest_common_divisor)
        .max(1);
    let weights: Vec<i64> = weights
        .iter()
        .map(|weight| i64::from(weight / divisor))
        .collect();
    let sum: i64 = weights.iter().sum();
    let mut gained = vec![0_i64; weights.len()];
    let next = |_| {
        for (gained, weight) in gained.iter_mut().zip(&weights) {
            *gained += weight;
        }
        let most = (0..gained.len())
            .rev()
            .max_by_key(|at| gained[*at])
            .unwrap_or(0);
        gained[most] -= sum;
        cast::low_u16(most)
    };
    (0..sum).map(next).collect()
}

fn greatest_common_divisor(a: u16, b: u16) -> u16 {
    match b {
        0 => a,
        b => greatest_common_divisor(b, a % b),
    }
}

fn millis(time: Duration) -> u64 {
    time.as_millis().try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_follow_weights() {
        for (weights, expected) in [
            (&[1, 1, 1][..], "abc"),
            (&[5, 1, 1], "aabacaa"),
            (&[2, 4], "bab"),
            (&[3, 0], "a"),
            (&[0, 0], ""),
        ] {
            let letter = |at: u16| char::from(b'a' + at as u8);
            let turns: String = turns(weights).into_iter().map(letter).collect();
            assert_eq!(turns, expected, "{weights:?}");
        }
    }

    fn pool(known: &Upstreams, weights: &[u16]) -> Pool {
        let upstream = |(at, weight): (usize, &u16)| Upstream {
            target: Target::Tcp(char::from(b'a' + at as u8).to_string(), 1),
            weight: *weight,
        };
        let upstreams: Vec<Upstream> = weights.iter().enumerate().map(upstream).collect();
        Pool::new(&upstreams, known)
    }

    fn order(pool: &Pool, turn: usize) -> String {
        let states = pool.in_turn(turn);
        states.iter().map(|state| &state.name[4..5]).collect()
    }

    #[test]
    fn upstreams_take_turns_and_failed_ones_come_last() {
        let pool = pool(&Upstreams::new(), &[1, 1, 1]);
        let all = [0, 1, 2, 3].map(|turn| order(&pool, turn));
        assert_eq!(all, ["abc", "bca", "cab", "abc"]);
        let ejected = &pool.all[1].ejected_until_ms;
        ejected.store(u64::MAX, Ordering::Relaxed);
        assert_eq!(
            [0, 1, 2].map(|turn| order(&pool, turn)),
            ["acb", "cab", "cab"]
        );
        pool.all[2].is_down.store(true, Ordering::Relaxed);
        assert_eq!(order(&pool, 0), "abc");
    }

    #[test]
    fn upstreams_without_weight_come_behind_those_with_one() {
        let pool = pool(&Upstreams::new(), &[1, 0, 2]);
        assert_eq!(
            [0, 1, 2].map(|turn| order(&pool, turn)),
            ["cab", "acb", "cab"]
        );
        pool.all[2].is_down.store(true, Ordering::Relaxed);
        assert_eq!(order(&pool, 0), "abc");
    }

    #[test]
    fn what_is_known_outlives_settings() {
        let known = Upstreams::new();
        let before = pool(&known, &[1, 1]);
        before.all[1].failed.store(3, Ordering::Relaxed);
        let after = pool(&known, &[1, 1]);
        drop(before);
        known.forget_unused();
        assert_eq!(known.status()[1].failed, 3);
        drop(after);
        known.forget_unused();
        assert_eq!(known.status(), []);
    }
}

//! Which of the listeners that are on could be had.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use super::BindError;
use logpond_host::telemetry::Metrics;

/// A listener that is on by default, and could not be had so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingListener {
    /// Its setting.
    pub name: &'static str,
    /// Where it was to listen.
    pub address: SocketAddr,
    /// Why it does not.
    pub reason: String,
}

impl PendingListener {
    /// What is said of a listener after such an error.
    pub fn new(name: &'static str, error: &BindError) -> PendingListener {
        PendingListener {
            name,
            address: error.address,
            reason: error.reason(),
        }
    }
}

/// The listeners that are on. Shared between who binds them and who says so.
#[derive(Debug, Default)]
pub struct ListenerStatus {
    /// By their settings, with where each listens or is to listen.
    all: Vec<(&'static str, SocketAddr)>,
    off: Mutex<Vec<PendingListener>>,
}

impl ListenerStatus {
    /// Listeners of these settings, of which some could not be had.
    pub fn new(all: Vec<(&'static str, SocketAddr)>, off: Vec<PendingListener>) -> ListenerStatus {
        let off = Mutex::new(off);
        ListenerStatus { all, off }
    }

    /// All that are on by their settings, with where they listen and whether they do.
    pub fn all(&self) -> Vec<(&'static str, SocketAddr, bool)> {
        let off = self.locked();
        let is_up = |name: &str| !off.iter().any(|off| off.name == name);
        let all = self.all.iter();
        all.map(|(name, address)| (*name, *address, is_up(name)))
            .collect()
    }

    /// The listeners that could not be had so far.
    pub fn off(&self) -> Vec<PendingListener> {
        self.locked().clone()
    }

    /// This one could be had at last.
    pub fn note_on(&self, name: &str) {
        self.locked().retain(|off| off.name != name);
    }

    /// A line for each that could not be had.
    pub fn lines(&self) -> String {
        let mut text = String::new();
        for PendingListener {
            name,
            address,
            reason,
        } in &*self.locked()
        {
            // Writing to text cannot fail.
            let _ = writeln!(
                text,
                "off: {name} at {address}: {reason}; it is tried again"
            );
        }
        text
    }

    /// Shows all of them in the metrics.
    pub fn expose_in(self: &Arc<ListenerStatus>, metrics: &Metrics) {
        let listening = self.clone();
        metrics.register(Box::new(move |out| {
            let name = "logpond_listener_up";
            let help = "Whether a listener that is on listens; 0 if its port was not to be had.";
            out.family(name, "gauge", help);
            for (listener, _, is_up) in listening.all() {
                out.sample(name, &[("listener", listener)], u8::from(is_up));
            }
        }));
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Vec<PendingListener>> {
        self.off.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

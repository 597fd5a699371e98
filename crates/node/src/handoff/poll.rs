//! Waits at the other nodes for journal files to make segments of: one long poll each.
//!
//! A poll claims nothing: it only says that there is something, so that what several nodes offer at
//! once is claimed one after the other, when there is time for it.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use logpond_cluster::NodeId;

use super::Handoff;
use logpond_host::shutdown::Shutdown;

/// The most nodes that are polled at a time, each by a thread.
const POLLS_MAX: usize = 256;

/// How often it is looked for new nodes.
const ROUND: Duration = Duration::from_millis(250);

/// A node that did not answer, or that nobody had time for, is polled again after this.
const AGAIN: Duration = Duration::from_millis(500);

/// Nodes that have offered something and were not found empty since.
#[derive(Default)]
pub(super) struct OfferingNodes {
    nodes: Mutex<BTreeSet<NodeId>>,
    taken_back: Condvar,
}

impl OfferingNodes {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<NodeId>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// They.
    pub(super) fn nodes(&self) -> Vec<NodeId> {
        self.lock().iter().copied().collect()
    }

    /// Notes that a node had nothing.
    pub(super) fn take_back(&self, node: NodeId) {
        self.lock().remove(&node);
        self.taken_back.notify_all();
    }

    /// Notes that a node offers something.
    fn offer(&self, node: NodeId) {
        self.lock().insert(node);
    }

    /// Waits until a node was found empty, at most a while.
    fn wait(&self, node: NodeId, wait_max: Duration) {
        let nodes = self.lock();
        let is_there = |nodes: &mut BTreeSet<NodeId>| nodes.contains(&node);
        drop(
            self.taken_back
                .wait_timeout_while(nodes, wait_max, is_there),
        );
    }
}

impl Handoff {
    /// Sees to it that each node that is there is polled, until the stop.
    pub(super) fn poll_all(self: &Arc<Handoff>, stop: &Shutdown) {
        let mut polled: BTreeSet<NodeId> = BTreeSet::new();
        let ended: Arc<Mutex<Vec<NodeId>>> = Arc::default();
        while !stop.is_stopping() {
            for node in ended
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .drain(..)
            {
                polled.remove(&node);
            }
            for node in self.parts.member.live_others() {
                if polled.len() < POLLS_MAX && polled.insert(node) {
                    // Without a thread it is tried again in the next round.
                    if self.poll(node, stop, &ended).is_err() {
                        polled.remove(&node);
                    }
                }
            }
            stop.wait_at_most(ROUND);
        }
    }

    /// Polls a node as long as it is there, on a thread of its own. The end of the process does not
    /// wait for it: it holds nothing but a question.
    fn poll(
        self: &Arc<Handoff>,
        node: NodeId,
        stop: &Shutdown,
        ended: &Arc<Mutex<Vec<NodeId>>>,
    ) -> io::Result<()> {
        let (handoff, stop, ended) = (Arc::clone(self), stop.clone(), Arc::clone(ended));
        let polling = move || {
            while !stop.is_stopping() && handoff.is_there(node) {
                match handoff.parts.member.wait_for_offer(node) {
                    Ok(true) => {
                        handoff.offering.offer(node);
                        handoff.parts.changes.notify();
                        handoff.offering.wait(node, AGAIN);
                    }
                    Ok(false) => {}
                    Err(_) => stop.wait_at_most(AGAIN),
                }
            }
            let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
            ended.push(node);
        };
        let thread = thread::Builder::new().name("lp-offer".to_owned());
        thread.spawn(polling).map(drop)
    }

    fn is_there(&self, node: NodeId) -> bool {
        self.parts.member.keeps() && self.parts.member.live_others().contains(&node)
    }
}

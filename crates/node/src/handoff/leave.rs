//! A node that leaves: first as an ingester, then as a store, see [`logpond_cluster::drain`].

use std::sync::Arc;

use logpond_cluster::drain::{DrainState, Step};

use super::{Handoff, Tools};
use logpond_engine::store::local;
use logpond_host::telemetry::warn;

impl Handoff {
    /// Goes on leaving, as far as it goes now. Ends the process once nothing is left here.
    pub(super) fn leave(&self, tools: &Tools) {
        match self.leave_as_ingester(tools) {
            Ok(true) => {}
            Ok(false) => return,
            Err(why) => return warn(&format!("this node cannot leave yet: {why}")),
        }
        if local(&self.parts.live.snapshot()).next().is_some() {
            return;
        }
        match self.parts.member.forget_itself() {
            Ok(()) => {
                warn("this node has left its cluster, others have all it had; it ends");
                tools.stopper.stop();
            }
            Err(why) => warn(&format!("this node cannot leave yet: {why}")),
        }
    }

    /// True once stores have everything that this node took in.
    fn leave_as_ingester(&self, tools: &Tools) -> Result<bool, String> {
        let member = &self.parts.member;
        loop {
            match self.leaving(tools).next() {
                Step::Refuse => tools.gate.set_leaving(true),
                Step::Close | Step::Seal => {
                    // What is taken in after all, if the node stays, belongs to a life of its own.
                    if !tools.closer.end_incarnation() {
                        return Err("its journal file cannot be closed".to_owned());
                    }
                    let sealed = member.seal_lives();
                    sealed.map_err(|error| format!("the registry cannot be written: {error}"))?;
                }
                Step::Publish => {
                    member.publish_seals()?;
                    self.state().is_published = true;
                }
                Step::Wait => return Ok(false),
                Step::Done => return Ok(true),
            }
        }
    }

    fn leaving(&self, tools: &Tools) -> DrainState {
        let journal = self.parts.visible.snapshot();
        DrainState {
            takes_in: tools.gate.check().is_ok(),
            has_open: !journal.open.is_empty(),
            is_sealed: self.parts.member.is_sealed(),
            is_published: self.state().is_published,
            has_files: !journal.closed.is_empty(),
        }
    }

    /// Stays after all: takes records in again, if it did, and counts as a holder.
    pub(super) fn stay(&self, tools: &Tools) {
        tools.gate.set_leaving(false);
        self.state().is_published = false;
    }

    /// Begins to leave, or stays after all; returns once that is on disk.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn set_leaving(self: &Arc<Handoff>, is_leaving: bool) -> std::io::Result<()> {
        self.parts.member.set_leaving(is_leaving)?;
        self.look_now();
        Ok(())
    }
}

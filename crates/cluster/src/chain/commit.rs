//! A change on its way into a chain.

use logpond_record::Timestamp;

use super::link::{Change, Link, NoWriteReason, Verdict};

/// How often a change is tried again because another writer was faster, before its writer is told.
pub const ROUNDS_MAX: u32 = 64;

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write this link under its name, if that is free; then, whatever came of it, read the head of
    /// the chain again and give it to [`Commit::on_head`].
    Create(Link),
    /// It has come to an end.
    End(Outcome),
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is in the chain, by this link.
    Written(Link),
    /// Nothing had to be written, or could be; the head that says so.
    Settled(NoWriteReason, Link),
    /// Others were faster [`ROUNDS_MAX`] times in a row; to be tried later.
    Contended,
}

/// A change, what has been tried of it, and when it was asked for.
#[derive(Clone, Debug)]
pub struct Commit {
    change: Change,
    now: Timestamp,
    proposed: Option<(u64, u128)>,
    rounds: u32,
}

impl Commit {
    /// A change that is asked for at `now`. To begin with, the head of the chain is to be read.
    pub fn new(change: Change, now: Timestamp) -> Commit {
        Commit {
            change,
            now,
            proposed: None,
            rounds: 0,
        }
    }

    /// Learns what the head of the chain is, the empty link if there is none, read after whatever was done
    /// last; `nonce` is random and fresh.
    ///
    /// That a link could be written says nothing: names become free again below the head, when
    /// old links are removed. That it is the head, or that a head lists what was wanted, does.
    pub fn on_head(&mut self, head: &Link, nonce: u128) -> Step {
        if self.proposed == Some((head.number, head.nonce)) {
            return Step::End(Outcome::Written(head.clone()));
        }
        match head.decide(&self.change, self.now) {
            Verdict::Settled(settled) => Step::End(Outcome::Settled(settled, head.clone())),
            Verdict::Write(_) if self.rounds == ROUNDS_MAX => Step::End(Outcome::Contended),
            Verdict::Write(mut link) => {
                link.nonce = nonce;
                self.rounds += 1;
                self.proposed = Some((link.number, nonce));
                Step::Create(link)
            }
        }
    }
}

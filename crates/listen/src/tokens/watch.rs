//! Takes a changed file of tokens in.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Guard, Tokens, read};
use logpond_engine::audit::Audit;
use logpond_host::telemetry::{Metrics, ReloadTarget, warn};
use logpond_host::terminal::with_causes;
use logpond_host::watch::{Stamp, WatchTarget};

/// The file of a guard's tokens.
pub struct WatchedTokens {
    guard: Arc<Guard>,
    path: PathBuf,
    /// State of the file whose tokens the guard has, or which was reported as bad.
    stamp: Stamp,
    metrics: Arc<Metrics>,
    audit: Audit,
}

impl WatchedTokens {
    /// Watches the file from which the guard's tokens were read when it had this `stamp`.
    pub fn new(
        guard: Arc<Guard>,
        path: PathBuf,
        stamp: Stamp,
        metrics: Arc<Metrics>,
        audit: Audit,
    ) -> WatchedTokens {
        WatchedTokens {
            guard,
            path,
            stamp,
            metrics,
            audit,
        }
    }
}

impl WatchTarget for WatchedTokens {
    fn look(&mut self, is_asked: bool) {
        let stamp = Stamp::of(&self.path);
        if stamp == self.stamp && !is_asked {
            return;
        }
        self.stamp = stamp;
        match read(&self.path) {
            Ok(tokens) => {
                if tokens.entries().is_empty() && !self.guard.tokens().entries().is_empty() {
                    warn(&format!(
                        "{} has no tokens any more: every request that needs one is refused",
                        self.path.display()
                    ));
                }
                let what = changes(&self.guard.tokens(), &tokens);
                if !what.is_empty() {
                    self.audit.note("tokens", &what);
                }
                self.guard.replace(tokens);
                self.metrics
                    .access
                    .reloads(ReloadTarget::Tokens)
                    .done
                    .add(1);
            }
            Err(error) => {
                self.metrics
                    .access
                    .reloads(ReloadTarget::Tokens)
                    .failed
                    .add(1);
                let error = with_causes(&error);
                warn(&format!("{error}; the tokens stay as they were"));
            }
        }
    }
}

/// The changes that are named at most; the others are counted.
const CHANGES_MAX: usize = 20;

/// The difference of two files of tokens, in words.
fn changes(old: &Tokens, new: &Tokens) -> String {
    let mut all = Vec::new();
    for entry in new.entries() {
        let said = |verb: &str| {
            let mut text = format!("{verb} {} of role {}", entry.label(), entry.role.as_str());
            if let Some(only) = entry.bounds.only() {
                text.push_str(&format!(" only {only}"));
            }
            let labels = entry.bounds.labels_text();
            if !labels.is_empty() {
                text.push_str(&format!(" with {labels}"));
            }
            text
        };
        match old.find(&entry.id) {
            None => all.push(said("created")),
            Some(known) if known != entry => all.push(said("changed")),
            Some(_) => {}
        }
    }
    let gone = old.entries().iter();
    let gone = gone.filter(|entry| new.find(&entry.id).is_none());
    all.extend(gone.map(|entry| format!("revoked {}", entry.label())));
    let others = all.len().saturating_sub(CHANGES_MAX);
    all.truncate(CHANGES_MAX);
    if others > 0 {
        all.push(format!("and {others} others"));
    }
    all.join("; ")
}

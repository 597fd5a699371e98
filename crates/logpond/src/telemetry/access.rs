//! Who was let in, and what was read again for it.

use super::exposition::Exposition;
use super::instrument::Counter;

/// What is taken in again when its files change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reloaded {
    /// The file of tokens.
    Tokens,
}

/// Everything that is taken in again, in the order of its numbers.
const RELOADED: [Reloaded; 1] = [Reloaded::Tokens];

impl Reloaded {
    /// The name in labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Reloaded::Tokens => "tokens",
        }
    }
}

/// How often files were taken in again.
#[derive(Debug, Default)]
pub struct ReloadMetrics {
    /// Taken in.
    pub done: Counter,
    /// Bad, so that the earlier state was kept.
    pub failed: Counter,
}

/// Counters of access.
#[derive(Debug, Default)]
pub struct AccessMetrics {
    /// Requests refused because they showed no token.
    pub no_token: Counter,
    /// Requests refused because their token is not known.
    pub unknown_token: Counter,
    /// Requests refused because their token has expired.
    pub expired_token: Counter,
    /// Requests refused because their token is for something else.
    pub role: Counter,
    reloads: [ReloadMetrics; RELOADED.len()],
}

impl AccessMetrics {
    /// The counters of what is taken in again.
    pub fn reloads(&self, what: Reloaded) -> &ReloadMetrics {
        &self.reloads[what as usize]
    }

    pub(super) fn expose(&self, out: &mut Exposition) {
        let name = "logpond_http_refused_requests_total";
        out.family(
            name,
            "counter",
            "Requests refused for want of a token, by reason.",
        );
        let reasons = [
            ("no_token", &self.no_token),
            ("unknown_token", &self.unknown_token),
            ("expired_token", &self.expired_token),
            ("role", &self.role),
        ];
        for (reason, counter) in reasons {
            out.sample(name, &[("reason", reason)], counter.get());
        }
        let name = "logpond_reloads_total";
        out.family(
            name,
            "counter",
            "Changed files taken in, or bad and so left as before.",
        );
        for what in RELOADED {
            let reloads = self.reloads(what);
            for (result, counter) in [("done", &reloads.done), ("failed", &reloads.failed)] {
                let labels = [("what", what.as_str()), ("result", result)];
                out.sample(name, &labels, counter.get());
            }
        }
    }
}

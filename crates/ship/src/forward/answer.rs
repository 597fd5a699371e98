//! What a server says of a batch or an upload.

use serde::Deserialize;

use super::attempts::Attempt;
use logpond_client::ClientError;

/// A server's answer to a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchAnswer {
    /// Records it holds durably.
    pub accepted: u64,
    /// Lines it will never take, as far as it named them: number in the batch from 1, and reason.
    pub rejected: Vec<(u64, String)>,
    /// How many it will never take. Invariant: at least as many as are named.
    pub rejected_total: u64,
    /// Whether as many servers as configured have copies of what it holds.
    pub is_replicated: bool,
    /// Whether the server asks senders to go elsewhere.
    pub is_busy: bool,
}

/// Reads an answer that may be of success: also a refusal names the lines where they are its
/// reason.
pub(super) fn judge(status: u16, text: &[u8]) -> Attempt {
    #[derive(Deserialize)]
    struct Answer {
        accepted: u64,
        #[serde(default)]
        rejected: Vec<RejectedLine>,
        rejected_total: Option<u64>,
        /// A server that does not say has one copy.
        replicated: Option<bool>,
    }
    #[derive(Deserialize)]
    struct RejectedLine {
        line: u64,
        #[serde(default)]
        reason: String,
    }
    match serde_json::from_slice::<Answer>(text) {
        Ok(answer) => {
            let named = answer.rejected.len() as u64;
            let rejected = answer.rejected.into_iter().map(|r| (r.line, r.reason));
            Attempt::Taken(BatchAnswer {
                accepted: answer.accepted,
                rejected: rejected.collect(),
                rejected_total: answer.rejected_total.unwrap_or(named).max(named),
                is_replicated: answer.replicated.unwrap_or(true),
                is_busy: false,
            })
        }
        Err(_) if status == 400 => Attempt::refused(status, text),
        // A success without a count acknowledges nothing.
        Err(error) => Attempt::Foreign {
            error: ClientError::Nonsense(Box::new(error)),
            may_be_there: true,
        },
    }
}

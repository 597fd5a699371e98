//! The server that tools ask: over HTTP, or within the same process.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The longest answer that a tool reads. A row can be as long as a record; tools ask for few rows.
pub const ANSWER_BYTES_MAX: usize = 8 << 20;

/// Calls of tools at a time. Together their answers take at most 64 MiB.
pub const CALLS_MAX: usize = 8;

/// How long a call waits for one of the others.
const CALL_WAIT_MAX: Duration = Duration::from_secs(10);

/// A question of a tool.
#[derive(Clone, Debug)]
pub struct Question {
    /// The path of the HTTP API.
    pub path: &'static str,
    /// Its parameters.
    pub parameters: Vec<(String, String)>,
}

/// An answer as it came.
#[derive(Debug, Default)]
pub struct RawAnswer {
    /// Its bytes, at most [`ANSWER_BYTES_MAX`].
    pub bytes: Vec<u8>,
    /// True if more came, or if it broke off.
    pub is_cut: bool,
}

/// A question that was not answered.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The stable name of the reason, such as `bad_query`; empty without one.
    pub code: String,
    /// The reason, which may hold text of records.
    pub message: String,
}

/// An answer that is on its way.
pub type Asking = Pin<Box<dyn Future<Output = Result<RawAnswer, Refusal>> + Send>>;

/// A server that answers questions.
pub trait Server: Send + Sync + 'static {
    /// Asks a question.
    fn ask(&self, question: Question) -> Asking;
}

/// The calls that run now.
#[derive(Clone, Debug)]
pub struct Calls(Arc<Semaphore>);

impl Default for Calls {
    fn default() -> Calls {
        Calls(Arc::new(Semaphore::new(CALLS_MAX)))
    }
}

impl Calls {
    /// Waits for room for a call; `None` if none ended in time.
    pub(crate) async fn begin(&self) -> Option<OwnedSemaphorePermit> {
        let room = Arc::clone(&self.0).acquire_owned();
        tokio::time::timeout(CALL_WAIT_MAX, room).await.ok()?.ok()
    }
}

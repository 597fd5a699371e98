//! The files of the store, for operators.

use serde_json::Value;

use super::{QueryError, Trailer};

/// Looks after the files of the store. Methods block; each call runs on a thread of its own.
pub trait Maintenance: Send + Sync + 'static {
    /// The files of the store, each as an object; the trailer names nodes that did not say what they have.
    fn files(&self) -> (Vec<Value>, Trailer);

    /// Closes, merges and, if `cold`, recompresses everything, and waits for the end of it as long as it is wanted.
    ///
    /// # Errors
    /// When it is not done, with why.
    fn compact(&self, cold: bool, is_wanted: &mut dyn FnMut() -> bool) -> Result<(), QueryError>;
}

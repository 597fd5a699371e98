//! The completeness of an answer: parts that could not be read.

use logpond_engine::query::{Output, Trailer};
use serde_json::{Value as Json, json};

use crate::App;
use crate::error::ApiError;
use crate::rows::incomplete;

/// The parts that the reads of a search lack, together.
#[derive(Debug, Default)]
pub(super) struct Completeness {
    missing: Vec<String>,
}

impl Completeness {
    /// Notes what a read says of itself. Losses are kept for the header of the answer.
    ///
    /// # Errors
    /// When something is missing, unless a partial answer is wanted.
    pub(super) fn note(
        &mut self,
        app: &App,
        mut trailer: Trailer,
        may_be_partial: bool,
        out: &mut Output,
    ) -> Result<(), ApiError> {
        app.metrics.query_bytes.add(trailer.bytes_scanned);
        out.note_lost(std::mem::take(&mut trailer.lost));
        if trailer.missing_count == 0 {
            return Ok(());
        }
        let error = incomplete(&trailer);
        if !may_be_partial {
            return Err(error);
        }
        if !self.missing.contains(&error.message) {
            self.missing.push(error.message);
        }
        Ok(())
    }

    /// True if nothing is missing.
    pub(super) fn is_whole(&self) -> bool {
        self.missing.is_empty()
    }

    /// The member `_shards`.
    pub(super) fn shards(&self) -> Json {
        if self.missing.is_empty() {
            return json!({ "total": 1, "successful": 1, "skipped": 0, "failed": 0 });
        }
        let failure = |what: &String| {
            let reason = json!({ "type": "incomplete_exception", "reason": what });
            json!({ "shard": 0, "index": "logpond", "node": "logpond", "reason": reason })
        };
        let failures: Vec<Json> = self.missing.iter().map(failure).collect();
        json!({ "total": 2, "successful": 1, "skipped": 0, "failed": 1, "failures": failures })
    }
}

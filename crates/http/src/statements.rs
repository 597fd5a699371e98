//! Statements that other protocols than HTTP run: on the threads of queries, within the same bounds.

use std::sync::Arc;

use logpond_engine::query::{Cancellation, Chunks, Output, QueryError};
use logpond_listen::tokens::Admission;
use logpond_sql::Memory;

use super::sql::run::StatementLease;
use super::{ApiError, App, authorization};

impl App {
    /// A part of the memory for queries, and no more than so many bytes: for what other protocols keep beside their
    /// statements.
    pub fn memory_share(&self, share: usize, bytes_max: usize) -> usize {
        let budget = self.threads.budget();
        budget.map_or(bytes_max, |budget| budget.share(share, bytes_max))
    }
}

/// A statement that runs on a thread of queries.
pub struct StatementRun {
    app: Arc<App>,
    out: Output,
}

impl StatementRun {
    /// Runs `work` on a thread, as soon as there is room for one; gives what it sends. It ends when the admission does.
    ///
    /// # Errors
    /// When there is no thread.
    pub async fn start(
        app: &Arc<App>,
        admission: Option<Admission>,
        work: impl FnOnce(StatementRun) + Send + 'static,
    ) -> Result<Chunks, ApiError> {
        let app_there = Arc::clone(app);
        let work = move |out: Output| {
            if let Some(reader) = out.reader() {
                app_there.sql_readers.watch(reader);
            }
            let app = app_there;
            work(StatementRun { app, out });
        };
        authorization::admitted(admission, app.threads.start(work)).await
    }

    /// The state that the endpoints share.
    pub fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// The answer on its way out.
    pub fn output(&mut self) -> &mut Output {
        &mut self.out
    }

    /// Takes the memory that a query needs to begin.
    ///
    /// # Errors
    /// When there is none, or nobody waits any more.
    pub fn begin(&mut self) -> Result<(), QueryError> {
        let budget = self.app.threads.budget().cloned();
        budget.map_or(Ok(()), |budget| self.out.begin(&budget))
    }

    /// Checks that the work is not in vain, while the statement waits for another one: a reader that does not read is given up.
    ///
    /// # Errors
    /// When nobody waits any more.
    pub fn wait(&mut self) -> Result<(), Cancellation> {
        self.app.sql_readers.give_up_slowest(&self.app.metrics);
        self.out.check()
    }

    /// The memory of the statement, once it has begun.
    pub fn memory(&self) -> Option<Arc<dyn Memory>> {
        let lease = self.out.lease()?;
        Some(Arc::new(StatementLease(Arc::clone(lease))))
    }

    /// The reason for which the statement was cancelled, if it is the want of memory.
    pub fn want_of_memory(&self) -> Option<String> {
        let refusal = self.out.lease()?.refusal()?;
        Some(refusal.to_string())
    }
}

//! Runs a query on a thread of the pool and streams what it emits.
//!
//! Invariants: an error that is found before the first row decides the status; a later one is named in the trailer,
//! and the answer is not complete then.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hyper::Response;
use tokio::sync::oneshot;

use super::body::Body;
use super::error::{ApiError, Kind};
use super::logql::run::failed;
use super::params::Params;
use super::running::Running;
use super::{App, authorization, hints};
use logpond_engine::ingest::IngestError;
pub use logpond_engine::query::QUERIES_MAX;
use logpond_engine::query::{Chunks, NoThread, Output, QueryError, QueryPool, Scope, Trailer};
use logpond_host::clock;
use logpond_host::memory::Budget;
use logpond_host::shutdown::Shutdown;
use logpond_host::telemetry::{Metrics, warn};
use logpond_record::{TimeRange, Timestamp};

/// The range of a query that names none: an hour before now or before its end.
pub(super) const RANGE_DEFAULT_NS: i64 = 3_600_000_000_000;

/// Parameters that every query takes; `strict` refuses what is not complete.
pub(super) const SCOPE_PARAMS: [&str; 4] = ["q", "from", "to", "strict"];

/// When it is known whether there is an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begins {
    /// At once: what is missing is said at its end.
    AtOnce,
    /// With its first bytes, which come late: until then it may turn out that there is no memory for it.
    WithBytes,
    /// With its first rows, if until then nothing is missing.
    WithRows,
    /// At its end, if nothing is missing.
    AtEnd,
}

/// Things that the refusal of an incomplete answer lists; it counts the others.
const LISTED_MAX: usize = 10;

/// The threads for the queries of requests.
#[derive(Clone)]
pub struct QueryThreads {
    pool: QueryPool,
    /// True if these are for followers.
    is_for_followers: bool,
    /// Those that run, for operators.
    running: Running,
    metrics: Arc<Metrics>,
    shutdown: Shutdown,
    /// The memory from which queries take some to begin.
    budget: Option<Arc<Budget>>,
}

impl QueryThreads {
    /// Threads whose names begin so, at most so many.
    pub fn new(
        name: &'static str,
        count_max: usize,
        metrics: Arc<Metrics>,
        shutdown: Shutdown,
    ) -> QueryThreads {
        QueryThreads {
            pool: QueryPool::new(name, count_max, metrics.clone(), shutdown.clone()),
            is_for_followers: false,
            running: Running::default(),
            metrics,
            shutdown,
            budget: None,
        }
    }

    /// The same, whose queries take memory to begin, or are refused before their answer begins.
    #[must_use]
    pub(super) fn within(self, budget: Arc<Budget>) -> QueryThreads {
        QueryThreads {
            budget: Some(budget),
            ..self
        }
    }

    /// The memory from which queries take some to begin.
    #[cfg(feature = "sql")]
    pub(super) fn budget(&self) -> Option<&Arc<Budget>> {
        self.budget.as_ref()
    }

    /// The queries that run.
    pub(super) fn running(&self) -> &Running {
        &self.running
    }

    /// The same threads, for a follower.
    #[must_use]
    pub(super) fn for_followers(&self, is_followed: bool) -> QueryThreads {
        QueryThreads {
            is_for_followers: is_followed,
            ..self.clone()
        }
    }

    /// Runs `prepare`, then `run`, on a thread; answers when it is known whether there is an
    /// answer. The trailer goes out behind the rest.
    pub(super) async fn stream<P: 'static>(
        &self,
        begins: Begins,
        prepare: impl FnOnce() -> Result<P, ApiError> + Send + 'static,
        run: impl FnOnce(P, &mut Output) -> Result<Trailer, QueryError> + Send + 'static,
    ) -> Result<Response<Body>, ApiError> {
        let metrics = self.metrics.clone();
        let run = move |parts, mut out: Output, prepared: Prepared| {
            let started = Instant::now();
            let prepared = Arc::new(Mutex::new(Some(prepared)));
            if begins == Begins::AtOnce {
                tell(&prepared, Ok(()));
            } else {
                let prepared = prepared.clone();
                out.on_begin(move || tell(&prepared, Ok(())));
            }
            if begins == Begins::AtEnd {
                out.hold();
            }
            let result = run(parts, &mut out);
            finish(result, (out, begins), &prepared, started, &metrics);
        };
        self.run(prepare, run).await
    }

    /// Runs `prepare`, then `run`, on a thread; answers when it is known whether `prepare` went
    /// well.
    ///
    /// # Errors
    /// Those of `prepare`; and when there is no thread.
    pub async fn spawn<P: 'static>(
        &self,
        prepare: impl FnOnce() -> Result<P, ApiError> + Send + 'static,
        run: impl FnOnce(P, Output) + Send + 'static,
    ) -> Result<Response<Body>, ApiError> {
        let run = |parts, out, prepared: Prepared| {
            let _ = prepared.send(Ok(()));
            run(parts, out);
        };
        self.run(prepare, run).await
    }

    /// Runs `gather` on a thread and answers when it is known how that went; `write` then sends what
    /// was gathered.
    pub(super) async fn gathered<T: 'static>(
        &self,
        gather: impl FnOnce(&mut Output) -> Result<T, ApiError> + Send + 'static,
        write: impl FnOnce(T, &mut Output) -> io::Result<()> + Send + 'static,
    ) -> Result<Response<Body>, ApiError> {
        let run = |(), mut out: Output, prepared: Prepared| match gather(&mut out) {
            Err(error) => drop(prepared.send(Err(refused(&out).unwrap_or(error)))),
            Ok(gathered) => {
                let _ = prepared.send(Ok(()));
                // A reader that is gone needs nothing.
                if write(gathered, &mut out).is_ok() {
                    let _ = out.flush();
                }
            }
        };
        self.run(|| Ok(()), run).await
    }

    /// Begins work on a thread, as soon as there is room for one; gives what it sends.
    pub(super) async fn start(
        &self,
        work: impl FnOnce(Output) + Send + 'static,
    ) -> Result<Chunks, ApiError> {
        let place = self.pool.place(self.is_for_followers).await?;
        let (mut out, reader, chunks) = Output::watched(self.shutdown.clone());
        self.pool.readers().watch(&reader);
        out.wait_among(self.pool.readers().clone(), self.metrics.clone());
        let listed = self.running.list(&reader, self.is_for_followers);
        let metrics = self.metrics.clone();
        if let Some(admission) = authorization::admission() {
            let ended = metrics.clone();
            out.refused_by(Box::new(move || {
                let refusal = admission.refusal(clock::now())?;
                ended.access.ended.add(1);
                // Some forms of an answer have no place for it, so that it is said here, too.
                warn(&format!("an answer was ended: {refusal}"));
                Some(refusal.to_string())
            }));
        }
        let work = move || {
            let _listed = listed;
            let _active = metrics.queries_active.hold();
            work(out);
        };
        place.run(work)?;
        Ok(chunks)
    }

    /// Runs `prepare`, then `run`, on a thread; answers when `run` says so.
    pub(super) async fn run<P: 'static>(
        &self,
        prepare: impl FnOnce() -> Result<P, ApiError> + Send + 'static,
        run: impl FnOnce(P, Output, Prepared) + Send + 'static,
    ) -> Result<Response<Body>, ApiError> {
        let (prepared, is_prepared) = oneshot::channel();
        let is_broken = Arc::<AtomicBool>::default();
        let breaks = Arc::clone(&is_broken);
        let budget = self.budget.clone();
        let work = move |mut out: Output| {
            out.breaks_by(breaks);
            let begin = |parts| {
                let begun = budget.map(|budget| out.begin(&budget)).transpose();
                begun.map(|_| parts).map_err(failed)
            };
            let parts = match prepare().and_then(begin) {
                Ok(parts) => parts,
                Err(e) => return drop(prepared.send(Err(e))),
            };
            run(parts, out, prepared);
        };
        let chunks = self.start(work).await?;
        match is_prepared.await {
            Ok(Ok(())) => Ok(Body::rows(chunks, is_broken)),
            Ok(Err(e)) => Err(e),
            Err(_) => Err(ApiError::new(Kind::Internal, "the query's thread panicked")),
        }
    }
}

impl From<NoThread> for ApiError {
    fn from(error: NoThread) -> ApiError {
        let kind = match error {
            NoThread::Busy(..) | NoThread::Followers => Kind::TooManyQueries,
            NoThread::Stopping => return IngestError::Stopping.into(),
            NoThread::System(_) => Kind::Busy,
        };
        ApiError::new(kind, error.to_string())
    }
}

/// Says whether there is an answer.
pub(super) type Prepared = oneshot::Sender<Result<(), ApiError>>;

/// Says whether there is an answer, if that was not said.
pub(super) fn tell(prepared: &Mutex<Option<Prepared>>, result: Result<(), ApiError>) {
    let prepared = prepared
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    // If nobody waits, nobody reads the answer either.
    let _ = prepared.map(|prepared| prepared.send(result));
}

/// The refusal of an answer whose reader may not have it any more.
pub(super) fn refused(out: &Output) -> Option<ApiError> {
    out.refusal()
        .map(|why| ApiError::new(Kind::TokenRefused, why))
}

/// The refusal of an answer that is not complete.
pub(super) fn incomplete(trailer: &Trailer) -> ApiError {
    let mut message = "the answer is not complete".to_owned();
    let listed = trailer.missing.iter().take(LISTED_MAX);
    for (at, what) in listed.clone().enumerate() {
        message.push_str(if at == 0 { ": " } else { "; " });
        message.push_str(what);
    }
    let others = trailer.missing_count - listed.len() as u64;
    if others > 0 {
        message.push_str(&format!("; and {others} more"));
    }
    ApiError::new(Kind::Incomplete, message)
}

/// Why an answer ends that an operator has ended.
pub(super) const STOPPED: &str = "the rest: an operator stopped the query";

/// Why an answer ends that its reader did not read.
pub(super) const SLOW_READER: &str =
    "the rest: the reader took nothing for some time while other queries waited";

fn finish(
    result: Result<Trailer, QueryError>,
    (mut out, begins): (Output, Begins),
    prepared: &Mutex<Option<Prepared>>,
    started: Instant,
    metrics: &Metrics,
) {
    let elapsed = started.elapsed();
    metrics.query_ns.observe_duration(elapsed);
    let is_begun = prepared.lock().is_ok_and(|prepared| prepared.is_none());
    if out.is_stopped() && !is_begun {
        return tell(prepared, Err(ApiError::new(Kind::Incomplete, STOPPED)));
    }
    let result = match result {
        Err(error @ QueryError::Memory(_)) if !is_begun => {
            return tell(prepared, Err(failed(error)));
        }
        result => result,
    };
    let mut trailer = match result {
        Ok(trailer) => trailer,
        Err(e) => {
            let mut trailer = Trailer {
                is_cancelled: matches!(e, QueryError::Cancelled),
                ..Trailer::default()
            };
            trailer.miss(e);
            trailer
        }
    };
    metrics
        .queries_cancelled
        .add(u64::from(trailer.is_cancelled));
    metrics.query_bytes.add(trailer.bytes_scanned);
    if let Some(error) = refused(&out) {
        if !is_begun {
            return tell(prepared, Err(error));
        }
        trailer.miss(error.message);
    }
    if !is_begun && begins != Begins::WithBytes && trailer.missing_count > 0 {
        return tell(prepared, Err(incomplete(&trailer)));
    }
    out.release();
    if !out.has_trailer() {
        // Most forms have no other way to say that something is missing.
        if trailer.missing_count > 0 {
            let why = out.refusal().map(str::to_owned);
            out.break_off_because(&why.unwrap_or_else(|| incomplete(&trailer).message));
        }
        let _ = out.flush();
        return tell(prepared, Ok(()));
    }
    if out.is_given_up() {
        trailer.is_cancelled = false;
        trailer.miss(if out.is_stopped() {
            STOPPED
        } else {
            SLOW_READER
        });
        let last = trailer.to_json(elapsed.as_secs_f64() * 1000.0).to_string();
        out.leave_if_given_up(&last);
        return;
    }
    // A reader that is gone needs no trailer.
    let _ = out
        .aside(&trailer.to_json(elapsed.as_secs_f64() * 1000.0))
        .and_then(|()| out.flush());
}

/// Which records are meant: `q`, `from` and `to`.
pub(super) fn scope(params: &Params, now: Timestamp) -> Result<Scope, ApiError> {
    scope_in(params, range(params, now)?)
}

/// Records of a range that `q` means.
pub(super) fn scope_in(params: &Params, range: TimeRange) -> Result<Scope, ApiError> {
    let text = params.one("q")?.unwrap_or_default();
    Scope::new(text, range).map_err(|e| ApiError {
        kind: Kind::BadQuery,
        message: e.message,
        span: Some((e.start_char, e.end_char)),
        hint: e.hint,
    })
}

pub(super) fn range(params: &Params, now: Timestamp) -> Result<TimeRange, ApiError> {
    let to = time(params, "to", now)?;
    let from = time(params, "from", now)?;
    let default = || to.unwrap_or(now).saturating_add(-RANGE_DEFAULT_NS);
    let from = from.unwrap_or_else(default);
    let to = to.unwrap_or(Timestamp::MAX);
    if from > to {
        let message = format!("the range is empty: from {from} is after to {to}");
        return Err(ApiError::bad_request(message));
    }
    Ok(TimeRange { from, to })
}

pub(super) fn time(
    params: &Params,
    name: &str,
    now: Timestamp,
) -> Result<Option<Timestamp>, ApiError> {
    let Some(text) = params.one(name)? else {
        return Ok(None);
    };
    match logpond_search::when::parse(text, now, &jiff::tz::TimeZone::UTC) {
        Ok(time) => Ok(Some(time)),
        Err(e) => Err(ApiError::bad_request(format!("parameter '{name}': {e}"))),
    }
}

/// A query that gives a table: `q`, `from`, `to` and what `read` reads beside them.
pub(super) async fn table<P: Send + 'static>(
    app: &Arc<App>,
    params: Params,
    read: impl FnOnce(&Params) -> Result<P, ApiError> + Send + 'static,
    run: impl FnOnce(&App, &Scope, P, &mut Output) -> Result<Trailer, QueryError> + Send + 'static,
) -> Result<Response<Body>, ApiError> {
    let begins = if params.flag("strict", false)? {
        Begins::AtEnd
    } else {
        Begins::WithBytes
    };
    let app_there = app.clone();
    let prepare = move || {
        let scope = scope(&params, clock::now())?;
        let extra = read(&params)?;
        Ok((scope, extra))
    };
    let run = move |(scope, extra): (Scope, P), out: &mut Output| {
        let answered = run(&app_there, &scope, extra, out);
        let mut trailer = answered.map_err(|error| out.explained(error))?;
        if trailer.range.is_none() {
            let is_empty = trailer.rows == 0;
            hints::note(&app_there, &scope, None, is_empty, &mut trailer);
        }
        Ok(trailer)
    };
    app.threads.stream(begins, prepare, run).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use logpond_engine::query::{CHUNK_BYTES, CHUNKS_MAX};
    use logpond_host::shutdown;

    fn one_thread() -> (QueryThreads, shutdown::Stopper) {
        let (stopper, shutdown) = shutdown::pair();
        let threads = QueryThreads::new("lp-test", 1, Arc::default(), shutdown);
        (threads, stopper)
    }

    /// Takes the thread until the sender is dropped.
    async fn occupy(threads: &QueryThreads) -> std::sync::mpsc::Sender<()> {
        let (held, hold) = std::sync::mpsc::channel::<()>();
        let work = move |_: Output| {
            let _ = hold.recv();
        };
        threads.start(work).await.map(drop).unwrap();
        held
    }

    async fn refusal(threads: &QueryThreads) -> ApiError {
        threads.start(|_| ()).await.map(drop).unwrap_err()
    }

    #[tokio::test]
    async fn a_query_waits_for_one_that_ends() {
        let (threads, _stopper) = one_thread();
        // The answer of the one before has come to its end a moment before its thread has.
        for _ in 0..100 {
            let mut answer = threads.start(|_| ()).await.unwrap();
            assert!(answer.recv().await.is_none());
        }
        let held = occupy(&threads).await;
        let next = tokio::spawn({
            let threads = threads.clone();
            async move { threads.start(|_| ()).await.map(drop) }
        });
        while threads.metrics.queries_waiting.get() == 0 {
            tokio::task::yield_now().await;
        }
        assert!(!next.is_finished());
        drop(held);
        next.await.unwrap().unwrap();
        assert_eq!(threads.metrics.queries_waiting.get(), 0);
    }

    #[tokio::test]
    async fn a_reader_that_does_not_read_makes_room() {
        let (threads, _stopper) = one_thread();
        let work = |mut out: Output| {
            while out.append(|chunk| chunk.resize(CHUNK_BYTES, b'x')).is_ok() {}
            assert!(out.leave_if_given_up("why"));
        };
        let mut unread = threads.start(work).await.unwrap();
        // It waits for nobody but the one that does not read.
        threads.start(|_| ()).await.map(drop).unwrap();
        assert_eq!(threads.metrics.queries_given_up.get(), 1);
        let (mut chunks, mut last) = (0, None);
        while let Some(chunk) = unread.recv().await {
            chunks += 1;
            last = Some(chunk);
        }
        assert_eq!(
            (chunks, &last.unwrap()[..]),
            (CHUNKS_MAX + 1, &b"why\n"[..])
        );
        assert!(!unread.is_broken_off());
        // Who has no word for it breaks off.
        let work =
            |mut out: Output| while out.append(|chunk| chunk.resize(CHUNK_BYTES, b'x')).is_ok() {};
        let mut unread = threads.start(work).await.unwrap();
        threads.start(|_| ()).await.map(drop).unwrap();
        while unread.recv().await.is_some() {}
        assert!(unread.is_broken_off());
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_is_bounded() {
        let (threads, stopper) = one_thread();
        let _held = occupy(&threads).await;
        let error = refusal(&threads).await;
        assert_eq!(error.kind, Kind::TooManyQueries);
        assert!(
            error.message.contains("none ended in 10 s"),
            "{}",
            error.message
        );
        stopper.stop();
        assert_eq!(refusal(&threads).await.kind, Kind::Stopping);
    }
}

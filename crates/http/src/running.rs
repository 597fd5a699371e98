//! `/api/v1/running`: the queries that run on this server, and the end of one.
//!
//! Invariants: a query is listed as long as its thread works for it, so there are no more than threads; a query that
//! is stopped says so in its answer, which counts as incomplete.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use hyper::{Response, StatusCode};
use serde_json::{Value, json};

use super::App;
use super::body::Body;
use super::error::{ApiError, Kind};
use super::params::Params;
use logpond_engine::query::Reader;
use logpond_host::clock;
use logpond_record::Timestamp;

/// Bytes of a query's text that are listed: it is shown in one row of a table.
const TEXT_BYTES_MAX: usize = 2048;

/// Parameters that have the text of a query, the first that is given counts.
const TEXT_PARAMS: [&str; 2] = ["q", "query"];

/// The request that a query is for.
#[derive(Debug, Default)]
struct QueryOrigin {
    path: String,
    text: Mutex<String>,
}

tokio::task_local! {
    static ORIGIN: Arc<QueryOrigin>;
}

/// Answers a request whose queries are listed by its path.
pub(super) async fn listed<T>(path: &str, answering: impl Future<Output = T>) -> T {
    let origin = QueryOrigin {
        path: path.to_owned(),
        text: Mutex::default(),
    };
    ORIGIN.scope(Arc::new(origin), answering).await
}

/// Says which query the request that this task answers has.
pub(super) fn describe(params: &Params) {
    let _ = ORIGIN.try_with(|origin| {
        let given = TEXT_PARAMS.iter().find_map(|name| params.all(name).next());
        let text = given.unwrap_or_default();
        let shown = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
        *locked(&origin.text) = shown.to_owned();
    });
}

/// The queries that run.
#[derive(Clone, Debug, Default)]
pub(super) struct Running(Arc<Mutex<RunningQueries>>);

#[derive(Debug, Default)]
struct RunningQueries {
    next: u64,
    queries: BTreeMap<u64, RunningQuery>,
}

#[derive(Debug)]
struct RunningQuery {
    origin: Arc<QueryOrigin>,
    started: Instant,
    started_at: Timestamp,
    is_follower: bool,
    reader: Arc<Reader>,
}

/// Lists a query until it is dropped.
#[derive(Debug)]
pub(super) struct RunningGuard {
    id: u64,
    running: Running,
}

impl Drop for RunningGuard {
    fn drop(&mut self) {
        locked(&self.running.0).queries.remove(&self.id);
    }
}

impl Running {
    /// Lists a query from here on.
    pub(super) fn list(&self, reader: &Arc<Reader>, is_follower: bool) -> RunningGuard {
        let query = RunningQuery {
            origin: ORIGIN.try_with(Arc::clone).unwrap_or_default(),
            started: Instant::now(),
            started_at: clock::now(),
            is_follower,
            reader: Arc::clone(reader),
        };
        let mut running = locked(&self.0);
        running.next += 1;
        let id = running.next;
        running.queries.insert(id, query);
        RunningGuard {
            id,
            running: self.clone(),
        }
    }

    /// The queries, oldest first.
    fn shown(&self) -> Vec<Value> {
        let running = locked(&self.0);
        let shown = running.queries.iter().map(|(id, query)| {
            let (bytes, bytes_total) = query.reader.bytes();
            json!({
                "id": id,
                "path": query.origin.path,
                "query": *locked(&query.origin.text),
                "started": query.started_at.to_string(),
                "elapsed_ms": u64::try_from(query.started.elapsed().as_millis()).unwrap_or(u64::MAX),
                "rows": query.reader.rows(),
                "bytes": bytes,
                "bytes_total": bytes_total,
                "follows": query.is_follower,
                "stopped": query.reader.is_stopped(),
            })
        });
        shown.collect()
    }

    /// Ends a query; false if there is none.
    fn stop(&self, id: u64) -> bool {
        let running = locked(&self.0);
        let query = running.queries.get(&id);
        query.inspect(|query| query.reader.stop()).is_some()
    }
}

/// Lists the queries.
pub(super) fn answer(app: &App, params: &Params) -> Result<Response<Body>, ApiError> {
    params.only(&[])?;
    let queries = app.threads.running().shown();
    Ok(Body::json(StatusCode::OK, &json!({ "queries": queries })))
}

/// Stops the query of this number.
pub(super) fn stop(app: &App, name: &str, params: &Params) -> Result<Response<Body>, ApiError> {
    params.only(&[])?;
    let is_there = name.parse().is_ok_and(|id| app.threads.running().stop(id));
    if !is_there {
        let message = format!("no query with the id {name:?} is running; it may have ended");
        return Err(ApiError::new(Kind::NotFound, message));
    }
    Ok(Body::whole(StatusCode::NO_CONTENT, "text/plain", ""))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use logpond_engine::query::{CHUNK_BYTES, Output};
    use logpond_host::shutdown;

    use super::super::rows::QueryThreads;
    use super::*;

    #[tokio::test]
    async fn a_query_is_listed_until_it_is_stopped() {
        let (_stopper, shutdown) = shutdown::pair();
        let threads = QueryThreads::new("lp-test", 1, Arc::default(), shutdown);
        let mut params = Params::default();
        params.read(b"from=1h&q=level%3Derror").unwrap();
        // It ends only because it is stopped: nobody reads it.
        let work = |mut out: Output| {
            while out.line(|chunk| chunk.resize(CHUNK_BYTES, b'x')).is_ok() {}
            assert!(out.is_stopped());
        };
        let answering = async {
            describe(&params);
            threads.start(work).await
        };
        let mut chunks = listed("/api/v1/query", answering).await.unwrap();
        let shown = threads.running().shown();
        let [query] = &shown[..] else {
            panic!("{shown:?}");
        };
        assert_eq!(query["path"], "/api/v1/query");
        assert_eq!(query["query"], "level=error");
        assert_eq!(
            (&query["follows"], &query["stopped"]),
            (&false.into(), &false.into())
        );
        let id = query["id"].as_u64().unwrap();
        assert!(!threads.running().stop(id + 1));
        assert!(threads.running().stop(id));
        while chunks.recv().await.is_some() {}
        assert!(chunks.is_broken_off());
        // Its thread is free again once it is listed no more.
        threads.start(|_| ()).await.map(drop).unwrap();
        assert!(!threads.running().stop(id));
    }
}

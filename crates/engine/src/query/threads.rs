//! Threads that run queries.
//!
//! Invariants: there are at most so many threads as there are places; for a place at most [`QUERIES_WAITING_MAX`]
//! queries wait, in the order in which they came; a thread runs one query at a time, and one without work ends after
//! [`IDLE_TIME_MAX`].

use std::fmt;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::reader::Reader;
use logpond_host::shutdown::Shutdown;
use logpond_host::telemetry::Metrics;

/// Queries at a time, followers included. Each has a window of rows, its chunks and a stack.
pub const QUERIES_MAX: usize = 64;

/// Of these, how many may be followers, which end when their readers want: the others are left to queries.
pub const FOLLOWERS_MAX: usize = 48;

/// Queries that wait until one of them ends. A page of panels asks all its questions at once.
pub const QUERIES_WAITING_MAX: usize = 1024;

/// How long one waits at most.
pub const QUERY_WAIT_MAX: Duration = Duration::from_secs(10);

/// How long a reader has taken nothing that was ready for it before it is given up for those who wait: it
/// reads less than 32 KB/s then.
pub const STALLED_MIN: Duration = Duration::from_secs(2);

/// How often readers are looked at while a query waits.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// How long a thread waits for another query.
const IDLE_TIME_MAX: Duration = Duration::from_secs(10);

/// The threads that run queries, for example `lp-query-0` and on.
#[derive(Clone)]
pub struct QueryPool(Arc<Shared>);

struct Shared {
    name: &'static str,
    count_max: usize,
    /// Places for queries, and for those who wait for one.
    room: Arc<Semaphore>,
    waiting: Semaphore,
    /// Places of followers.
    followers: Arc<Semaphore>,
    threads: Mutex<Threads>,
    /// The readers of the answers of those that run; no more than threads.
    readers: Readers,
    metrics: Arc<Metrics>,
    shutdown: Shutdown,
}

struct Threads {
    /// Those without work, the one that had some last at the end.
    idle: Vec<IdleThread>,
    /// Numbers of threads that do not exist now, the smallest last.
    free: Vec<usize>,
}

struct IdleThread {
    number: usize,
    sender: SyncSender<Job>,
}

/// A query and its place, which is free again once the query has run.
struct Job {
    work: Box<dyn FnOnce() + Send>,
    place: QueryPlace,
}

/// The place of a query among those that run.
pub struct QueryPlace {
    pool: QueryPool,
    _follower: Option<OwnedSemaphorePermit>,
    _room: OwnedSemaphorePermit,
}

/// Why a query does not run.
#[derive(Debug)]
pub enum NoThread {
    /// So many run, and for how long none has ended, or nothing if as many wait as may.
    Busy(usize, Option<Duration>),
    /// As many followers run as may.
    Followers,
    /// The process stops.
    Stopping,
    /// The system gives no thread.
    System(io::Error),
}

impl fmt::Display for NoThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoThread::Busy(count, waited) => {
                write!(f, "{count} queries are running, ")?;
                match waited {
                    Some(waited) => write!(f, "and none ended in {} s", waited.as_secs())?,
                    None => f.write_str("and as many wait as may")?,
                }
                f.write_str("; try again later")
            }
            NoThread::Followers => {
                write!(f, "{FOLLOWERS_MAX} followers are running; try again later")
            }
            NoThread::Stopping => f.write_str("the server is stopping"),
            NoThread::System(error) => {
                write!(f, "the system gives no thread for the query: {error}")
            }
        }
    }
}

impl std::error::Error for NoThread {}

impl QueryPool {
    /// Threads whose names begin so, at most so many.
    pub fn new(
        name: &'static str,
        count_max: usize,
        metrics: Arc<Metrics>,
        shutdown: Shutdown,
    ) -> QueryPool {
        QueryPool(Arc::new(Shared {
            name,
            count_max,
            room: Arc::new(Semaphore::new(count_max)),
            waiting: Semaphore::new(QUERIES_WAITING_MAX),
            followers: Arc::new(Semaphore::new(FOLLOWERS_MAX.min(count_max))),
            threads: Mutex::new(Threads {
                idle: Vec::new(),
                free: (0..count_max).rev().collect(),
            }),
            readers: Readers::default(),
            metrics,
            shutdown,
        }))
    }

    /// The readers of the answers of those that run.
    pub fn readers(&self) -> &Readers {
        &self.0.readers
    }

    /// A place for a query, or for a follower, as soon as there is one.
    ///
    /// # Errors
    /// When there is none in time.
    pub async fn place(&self, is_follower: bool) -> Result<QueryPlace, NoThread> {
        let Shared {
            room, followers, ..
        } = &*self.0;
        let follower = is_follower.then(|| Arc::clone(followers).try_acquire_owned());
        let follower = follower.transpose().map_err(|_| NoThread::Followers)?;
        let room = match Arc::clone(room).try_acquire_owned() {
            Ok(room) => room,
            Err(_) => self.wait().await?,
        };
        Ok(QueryPlace {
            pool: self.clone(),
            _follower: follower,
            _room: room,
        })
    }

    /// Waits for a place, in turn.
    async fn wait(&self) -> Result<OwnedSemaphorePermit, NoThread> {
        let Shared {
            count_max,
            room,
            waiting,
            readers,
            metrics,
            shutdown,
            ..
        } = &*self.0;
        let waiting = waiting.try_acquire();
        let _waiting = waiting.map_err(|_| NoThread::Busy(*count_max, None))?;
        let _counted = metrics.queries_waiting.hold();
        let mut shutdown = shutdown.clone();
        let looking = async {
            loop {
                readers.give_up_slowest(metrics);
                tokio::time::sleep(LOOK_INTERVAL).await;
            }
        };
        tokio::select! {
            // The semaphore is never closed.
            room = Arc::clone(room).acquire_owned() => room.map_err(|_| NoThread::Stopping),
            () = tokio::time::sleep(QUERY_WAIT_MAX) => {
                Err(NoThread::Busy(*count_max, Some(QUERY_WAIT_MAX)))
            }
            () = looking => Err(NoThread::Stopping),
            () = shutdown.stopping() => Err(NoThread::Stopping),
        }
    }

    fn threads(&self) -> MutexGuard<'_, Threads> {
        let threads = self.0.threads.lock();
        threads.unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs jobs until none has come for a while.
    fn work(&self, number: usize, mut job: Job) {
        loop {
            let Job { work, place } = job;
            work();
            let (sender, jobs) = sync_channel(1);
            // Before its place is free: whoever has that finds this thread, and makes none that is too many.
            self.threads().idle.push(IdleThread { number, sender });
            drop(place);
            match self.next(number, &jobs) {
                Some(next) => job = next,
                None => return,
            }
        }
    }

    fn next(&self, number: usize, jobs: &Receiver<Job>) -> Option<Job> {
        match jobs.recv_timeout(IDLE_TIME_MAX) {
            Ok(job) => return Some(job),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let is_idle = {
            let mut threads = self.threads();
            let at = threads.idle.iter().position(|idle| idle.number == number);
            at.map(|at| threads.idle.remove(at)).is_some()
        };
        // Otherwise somebody has taken it at this moment, and sends a job.
        (!is_idle).then(|| jobs.recv().ok()).flatten()
    }
}

impl QueryPlace {
    /// Runs a query on a thread: one that has no work, or a new one.
    ///
    /// # Errors
    /// When the system gives none.
    pub fn run(self, work: impl FnOnce() + Send + 'static) -> Result<(), NoThread> {
        let pool = self.pool.clone();
        let mut job = Job {
            work: Box::new(work),
            place: self,
        };
        let number = {
            let mut threads = pool.threads();
            if let Some(idle) = threads.idle.pop() {
                match idle.sender.try_send(job) {
                    Ok(()) => return Ok(()),
                    // It has ended.
                    Err(TrySendError::Full(returned) | TrySendError::Disconnected(returned)) => {
                        job = returned;
                    }
                }
            }
            let number = threads.free.pop();
            ThreadNumber {
                number: number.unwrap_or(pool.0.count_max),
                pool: pool.clone(),
            }
        };
        let name = format!("{}-{}", pool.0.name, number.number);
        let run = move || {
            let number = number;
            pool.work(number.number, job);
        };
        let thread = thread::Builder::new().name(name).spawn(run);
        thread.map(drop).map_err(NoThread::System)
    }
}

/// Gives the number back when the thread ends, however it ends.
struct ThreadNumber {
    number: usize,
    pool: QueryPool,
}

impl Drop for ThreadNumber {
    fn drop(&mut self) {
        let mut threads = self.pool.threads();
        threads.free.push(self.number);
        threads.free.sort_unstable_by(|a, b| b.cmp(a));
    }
}

/// The readers of answers that share a number of places.
#[derive(Clone, Debug, Default)]
pub struct Readers(Arc<Mutex<ReaderRegistry>>);

/// The readers that are checked for progress.
#[derive(Debug, Default)]
struct ReaderRegistry {
    /// No more than places, and those that ended a moment ago.
    readers: Vec<Weak<Reader>>,
    /// When they were looked at last.
    looked_at: Option<Instant>,
}

impl Readers {
    /// Watches a reader from here on.
    pub fn watch(&self, reader: &Arc<Reader>) {
        let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watched.readers.retain(|reader| reader.strong_count() > 0);
        watched.readers.push(Arc::downgrade(reader));
    }

    /// Ends the query whose reader has taken nothing for the longest time, if that is long. Looks at them at
    /// most once in [`LOOK_INTERVAL`], however many queries wait: each look frees one place.
    pub fn give_up_slowest(&self, metrics: &Metrics) {
        let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = |looked_at: Instant| looked_at.elapsed() >= LOOK_INTERVAL;
        if !watched.looked_at.is_none_or(is_due) {
            return;
        }
        watched.looked_at = Some(Instant::now());
        let readers = watched.readers.iter().filter_map(Weak::upgrade);
        let stalled = readers.filter_map(|reader| Some((reader.stalled_for()?, reader)));
        let stalled =
            stalled.filter(|(time, reader)| *time >= STALLED_MIN && !reader.is_given_up());
        if let Some((_, reader)) = stalled.max_by_key(|(time, _)| *time) {
            reader.give_up();
            metrics.queries_given_up.add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::mpsc::channel;
    use std::thread::ThreadId;

    use logpond_host::shutdown;

    use super::*;

    fn pool(count_max: usize) -> (QueryPool, shutdown::Stopper) {
        let (stopper, shutdown) = shutdown::pair();
        let pool = QueryPool::new("lp-test", count_max, Arc::default(), shutdown);
        (pool, stopper)
    }

    #[tokio::test]
    async fn a_thread_runs_one_query_after_another() {
        let (pool, _stopper) = pool(1);
        let (sender, ran) = channel();
        for _ in 0..50 {
            let sender = sender.clone();
            let place = pool.place(false).await.unwrap();
            let name = move || thread::current().name().map(str::to_owned);
            place
                .run(move || drop(sender.send((name(), thread::current().id()))))
                .unwrap();
        }
        let ran: HashSet<(Option<String>, ThreadId)> = ran.iter().take(50).collect();
        assert_eq!(ran.len(), 1, "{ran:?}");
        assert_eq!(ran.into_iter().next().unwrap().0.unwrap(), "lp-test-0");
    }

    #[tokio::test]
    async fn there_are_no_more_threads_than_places() {
        let (pool, _stopper) = pool(3);
        let (sender, ran) = channel();
        for round in 0..90 {
            let sender = sender.clone();
            let place = pool.place(false).await.unwrap();
            let work = move || {
                let _ = sender.send(thread::current().id());
                assert!(round % 10 != 3, "a query that panics");
            };
            place.run(work).unwrap();
        }
        // A thread whose query panics ends, and another one takes its place.
        let ran: HashSet<ThreadId> = ran.iter().take(90).collect();
        assert!((10..=3 + 9).contains(&ran.len()), "{}", ran.len());
        let all = [pool.place(false).await, pool.place(false).await];
        assert!(all.iter().all(Result::is_ok));
        let place = pool.place(false).await.unwrap();
        // Each has one place, so all threads are idle now or have ended.
        let threads = pool.threads();
        let idle: HashSet<usize> = threads.idle.iter().map(|idle| idle.number).collect();
        assert!(idle.len() == threads.idle.len() && idle.len() <= 3);
        drop((all, threads, place));
    }

    #[tokio::test(start_paused = true)]
    async fn who_finds_no_place_is_told_why() {
        let (pool, _stopper) = pool(1);
        let place = pool.place(true).await.unwrap();
        assert!(matches!(pool.place(true).await, Err(NoThread::Followers)));
        let refused = pool.place(false).await.err().unwrap();
        let expected = "1 queries are running, and none ended in 10 s; try again later";
        assert_eq!(refused.to_string(), expected);
        let all = u32::try_from(QUERIES_WAITING_MAX).unwrap();
        let others = pool.0.waiting.acquire_many(all).await.unwrap();
        let refused = pool.place(false).await.err().unwrap();
        let expected = "1 queries are running, and as many wait as may; try again later";
        assert_eq!(refused.to_string(), expected);
        drop(others);
        drop(place);
        assert!(pool.place(false).await.is_ok());
    }
}

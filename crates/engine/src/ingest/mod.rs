//! Makes records durable: one journal, written by one thread.
//!
//! ```text
//!  listeners ──submit──▶ queue (bounded bytes) ──▶ lp-journal: append, group sync ──▶ visible
//!      ◀──────────── accepted / refused ───────────────┘                        (for queries)
//! ```
//!
//! Invariants:
//! - A durable submission is accepted only after the sync that covers it returned.
//! - A fast submission is accepted after the write, and is synced within
//!   [`UNSYNCED_TIME_MAX`].
//! - Queries see synced bytes only, and see them before the durable submitter learns of them.
//! - The memory of everything queued is at most that of its pool; beyond it submitters wait,
//!   and after [`ROOM_WAIT_MAX`] they are refused.
//! - No async thread touches a file.
//! - Every batch of a sender goes through the rules, if there are any, before it is queued; see
//!   [`rules`]. Only what the server says itself does not.
//! - No batch of a sender has the label [`RULE_FIELD`].

mod backlog;
mod changes;
mod durability;
mod gate;
mod journal;
mod load;
mod lost;
mod reply;
pub mod rules;
mod stamp;
mod usage;
mod writer;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, thread};

use logpond_protocol::intake::declared::{MESSAGE_FIELDS, TIME_FIELDS};
use logpond_protocol::intake::timezone;
use logpond_record::{Batch, Id, LABEL_SUFFIX, Labels, RULE_FIELD, SourceId, Timestamp};
use logpond_segment::batches::BatchId;
use logpond_segment::disk::Space;
use logpond_segment::journal::{AppendReceipt, Visible, WriteError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use backlog::Backlog;
pub use changes::{Changes, News};
pub use durability::{Durability, OneCopy, Replication, States};
pub use gate::Gate;
pub use journal::{DiskJournal, IncarnationListener};
pub use load::{Load, LoadState};
use logpond_host::panics::StopAtPanic;
use logpond_host::telemetry::Metrics;
use reply::Reply;
use rules::Rules;
pub use stamp::Stamp;
use usage::TenantUsage;

/// How long a submission waits for room in the queue before it is refused. Shorter than the
/// timeouts of usual HTTP clients, longer than a disk's hiccup.
pub const ROOM_WAIT_MAX: Duration = Duration::from_secs(2);

/// How long written data may stay unsynced. Half of the 100 ms promised for fast records, so that
/// a slow sync still keeps the promise, and what is promised for the most severe priorities.
pub const UNSYNCED_TIME_MAX: Duration = Duration::from_millis(50);

/// Bookkeeping of one queued batch beside its payload, so that tiny batches are bounded too.
const BATCH_OVERHEAD_BYTES: usize = 512;

/// What the writer thread writes to: the journal, or a stand-in in tests.
pub trait Journal: Send {
    /// Appends one batch, with the name that its producer gave it, if it did; it is durable once
    /// [`Journal::durable_mark`] has reached its mark.
    ///
    /// # Errors
    /// After an error (but one of the batch's labels) every batch above the durable mark has
    /// failed.
    fn append(
        &mut self,
        batch: &Batch,
        id: Option<BatchId>,
        now: Timestamp,
    ) -> Result<AppendReceipt, WriteError>;

    /// Makes everything appended durable and visible. Cheap if nothing is unsynced.
    ///
    /// # Errors
    /// After an error every batch above the durable mark has failed.
    fn sync(&mut self) -> Result<(), WriteError>;

    /// Batches with marks up to this are durable.
    fn durable_mark(&self) -> u64;

    /// Closes the open file if its age or size says so.
    ///
    /// # Errors
    /// As for [`Journal::sync`].
    fn rotate_if_due(&mut self, now: Timestamp) -> Result<(), WriteError>;

    /// Whether a file waits to be closed, so that [`Journal::rotate_if_due`] must be called.
    fn needs_attention(&self) -> bool;

    /// Closes the open file whatever its age, synced.
    ///
    /// # Errors
    /// When a file could not be closed; what is below the durable mark is safe all the same.
    fn close(&mut self) -> Result<(), WriteError>;

    /// Closes the open file and ends the incarnation; the next append begins another one.
    ///
    /// # Errors
    /// As for [`Journal::close`]; the incarnation goes on then.
    fn end_incarnation(&mut self) -> Result<(), WriteError>;

    /// What readers may read, kept up to date.
    fn visible(&self) -> Arc<Visible>;

    /// Room on the disk.
    ///
    /// # Errors
    /// When the file system does not answer.
    fn space(&self) -> io::Result<Space>;
}

/// A batch was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Id of the batch's first record; those of the others follow. [`Id::MIN`] if the batch was
    /// there already.
    pub first_id: Id,
    /// Number of records that were sent, also of those that rules leave out.
    pub count: u64,
    /// The source that has them; `None` if there are none.
    pub source: Option<SourceId>,
}

/// A batch was not taken. Nothing of it will ever be seen.
#[derive(Clone, Debug)]
pub enum IngestError {
    /// The queue stayed full for [`ROOM_WAIT_MAX`]; try again later.
    Busy,
    /// The disk is full; what is missing, in words.
    Full(Arc<str>),
    /// The batch itself cannot be written; why, in words.
    Invalid(Arc<str>),
    /// The journal could not be written or synced; the disk's words.
    Failed(Arc<str>),
    /// Too few other nodes of the cluster know of this one; why, in words.
    NotJoined(Arc<str>),
    /// The process is stopping.
    Stopping,
    /// The node leaves its cluster and takes nothing more.
    Leaving,
    /// The node's clock is behind those of the others: what it took in would expire early.
    ClockBehind,
    /// The node never takes records: its role is another.
    NoIngester,
}

impl fmt::Display for IngestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IngestError::Busy => f.write_str(
                "as many records wait for the disk as there is memory for; send slower or try again",
            ),
            IngestError::Full(what) => write!(
                f,
                "the disk is full ({what}); free some space or lower --retain-size, \
                 then records are taken again"
            ),
            IngestError::Invalid(what) => f.write_str(what),
            IngestError::Failed(what) => write!(f, "the journal could not be written: {what}"),
            IngestError::NotJoined(why) => f.write_str(why),
            IngestError::Stopping => f.write_str("the server is stopping; try again later"),
            IngestError::Leaving => f.write_str(
                "this node leaves its cluster and takes nothing more; send to another one",
            ),
            IngestError::ClockBehind => f.write_str(
                "this node's clock is so far behind the other nodes' that records would be removed \
                 long before their time: set it right, or send to another node",
            ),
            IngestError::NoIngester => f.write_str(
                "this node takes no records in; send to one that was started by `logpond ingest` \
                 or `logpond serve`",
            ),
        }
    }
}

impl std::error::Error for IngestError {}

impl From<&WriteError> for IngestError {
    fn from(error: &WriteError) -> IngestError {
        let mut text = error.to_string();
        if let Some(source) = std::error::Error::source(error) {
            text.push_str(&format!(" ({source})"));
        }
        match error {
            WriteError::Full { .. } => IngestError::Full(text.into()),
            WriteError::Unsettled { .. } => IngestError::Failed(text.into()),
            WriteError::Unannounced { .. } => IngestError::NotJoined(text.into()),
            _ if error.is_refusal() => IngestError::Invalid(text.into()),
            _ => IngestError::Failed(text.into()),
        }
    }
}

struct Submission {
    batch: Arc<Batch>,
    id: Option<BatchId>,
    durable: bool,
    queued_at: Instant,
    reply: Reply,
    /// Held until the batch is written.
    room: OwnedSemaphorePermit,
}

/// What the writer thread is sent.
enum Message {
    /// A batch to append.
    Batch(Submission),
    /// The open file is to be closed; the sender learns when it is, or why it is not.
    Close(oneshot::Sender<Result<(), String>>),
    /// So is the incarnation; the sender learns whether it has ended.
    End(mpsc::Sender<bool>),
}

/// Has the open journal file closed, so that all its records can go into a segment.
#[derive(Clone)]
pub struct Closer(mpsc::Sender<Message>);

impl Closer {
    /// One of a writer that has ended.
    #[cfg(test)]
    pub(crate) fn of_nobody() -> Closer {
        Closer(mpsc::channel().0)
    }

    /// Waits until the file that is open now is closed. Blocks for a sync.
    ///
    /// # Errors
    /// The disk's, in words; the file is closed later then.
    pub fn close(&self) -> Result<(), String> {
        // The writer answers, or has ended and closed the file.
        self.ask().blocking_recv().unwrap_or(Ok(()))
    }

    /// Asks for it; what this gives comes once it is done, or fails if the writer has ended.
    fn ask(&self) -> oneshot::Receiver<Result<(), String>> {
        let (done, waiting) = oneshot::channel();
        // What cannot be sent is dropped, and whoever waits for it learns that.
        let _ = self.0.send(Message::Close(done));
        waiting
    }

    /// Closes the open file and ends the incarnation: what is taken in later belongs to another
    /// one. False if that failed, or the writer has ended; then it may go on. Blocks for a sync.
    pub fn end_incarnation(&self) -> bool {
        let (done, waiting) = mpsc::channel();
        self.0.send(Message::End(done)).is_ok() && waiting.recv() == Ok(true)
    }
}

/// Hands batches to the writer thread. Cheap to clone; the thread ends when all are dropped.
#[derive(Clone)]
pub struct Ingest {
    queue: mpsc::Sender<Message>,
    queue_bytes_max: u32,
    room: Arc<Semaphore>,
    backlog: Backlog,
    metrics: Arc<Metrics>,
    durability: Durability,
    load_inputs: Arc<LoadInputs>,
    gate: Gate,
    /// Labels for every batch.
    declared: Arc<Labels>,
    clock: fn() -> Timestamp,
    rules: Option<Arc<Rules>>,
    /// The labels that records have over whatever their sender says.
    stamp: Arc<Stamp>,
    usage: Arc<TenantUsage>,
}

/// Where the outcome of a queued batch arrives.
type Answer = oneshot::Receiver<Result<Acknowledgement, IngestError>>;

/// The inputs of the load.
struct LoadInputs {
    started: Instant,
    /// How full the disk is, in percent, as the writer saw it last.
    disk_percent: AtomicU8,
    state: Mutex<LoadState>,
}

/// The writer thread.
pub struct Writer(JoinHandle<Result<(), WriteError>>);

/// What the writer thread could not do in order at its end.
#[derive(Debug)]
pub enum EndError {
    /// A file could not be closed; the next start closes it.
    Close(WriteError),
    /// The thread panicked: a defect of this program.
    Panic,
}

impl fmt::Display for EndError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EndError::Close(_) => f.write_str("the journal could not be closed in order"),
            EndError::Panic => f.write_str("the journal thread panicked"),
        }
    }
}

impl std::error::Error for EndError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            EndError::Close(source) => Some(source),
            EndError::Panic => None,
        }
    }
}

impl Writer {
    /// Waits until the last handle is gone, the queue is written and the journal is closed.
    ///
    /// # Errors
    /// When the journal could not be closed in order; what was acknowledged as durable is safe.
    pub fn join(self) -> Result<(), EndError> {
        match self.0.join() {
            Ok(closed) => closed.map_err(EndError::Close),
            Err(_) => Err(EndError::Panic),
        }
    }
}

/// The parts of an [`Ingest`] beside its journal.
pub struct Parts {
    /// Readers that wait for records and files.
    pub news: News,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// The time.
    pub clock: fn() -> Timestamp,
    /// The copies on other nodes.
    pub replication: Arc<dyn Replication>,
    /// The gate that each append passes.
    pub gate: Gate,
    /// Labels for every batch: how its lines are read.
    pub declared: Labels,
    /// Rules for all records, if there are any.
    pub rules: Option<Arc<Rules>>,
    /// Memory of all batches that wait for the writer, in bytes. A disk that writes 100 MB/s and stalls for 300 ms (a
    /// common worst case of consumer SSDs) fills 32 MiB; anything longer is back-pressure.
    pub queue_bytes: usize,
}

/// Starts the writer thread `lp-journal`; without it nothing is taken.
///
/// # Errors
/// When the system gives no thread.
pub fn start(
    journal: impl Journal + 'static,
    parts: Parts,
    at_panic: StopAtPanic,
) -> io::Result<(Ingest, Writer)> {
    let Parts {
        news,
        metrics,
        clock,
        replication,
        gate,
        declared,
        rules,
        queue_bytes,
    } = parts;
    let durability = Durability::new(journal.visible(), replication);
    // Bounded by the semaphore: nothing is sent without a permit.
    let (queue, receiver) = mpsc::channel();
    let load_inputs = Arc::new(LoadInputs {
        started: Instant::now(),
        disk_percent: AtomicU8::new(0),
        state: Mutex::default(),
    });
    let sides = (Arc::clone(&load_inputs), gate.clone());
    let driver = writer::Driver::new(journal, receiver, news, metrics.clone(), clock, sides);
    let thread = thread::Builder::new()
        .name("lp-journal".to_owned())
        .spawn(move || {
            let _at_panic = at_panic;
            driver.run()
        })?;
    let queue_bytes_max = u32::try_from(queue_bytes).unwrap_or(u32::MAX);
    let room = Arc::new(Semaphore::new(queue_bytes_max as usize));
    let usage: Arc<TenantUsage> = Arc::default();
    let exposed = Arc::clone(&usage);
    metrics.register(Box::new(move |out| exposed.expose(out)));
    let ingest = Ingest {
        queue,
        queue_bytes_max,
        room,
        backlog: Backlog::default(),
        metrics,
        durability,
        load_inputs,
        gate,
        declared: Arc::new(declared),
        clock,
        rules,
        stamp: Arc::default(),
        usage,
    };
    Ok((ingest, Writer(thread)))
}

impl Ingest {
    /// The same, with these rules.
    #[cfg(test)]
    fn ruled_by(self, rules: Option<Arc<Rules>>) -> Ingest {
        Ingest { rules, ..self }
    }

    /// The same for a sender all of whose records have these labels, over whatever it says.
    #[must_use]
    pub fn stamped(&self, labels: Labels) -> Ingest {
        Ingest {
            stamp: Arc::new(Stamp::new(labels)),
            ..self.clone()
        }
    }

    /// The labels that records have over whatever their sender says.
    pub fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    /// What closes the journal's open file. Like the handle itself it keeps the writer running.
    pub fn closer(&self) -> Closer {
        Closer(self.queue.clone())
    }

    /// Waits until the file that is open now is closed, so that it can be handed on. If it cannot be, it is later.
    pub async fn close_file(&self) {
        let _ = self.closer().ask().await;
    }

    /// How busy this server is: by what waits for the disk, and by the room on the disk.
    pub fn load(&self) -> Load {
        let free = self.room.available_permits() as u64;
        let waiting = u64::from(self.queue_bytes_max).saturating_sub(free);
        let queue = load::percent(waiting, u64::from(self.queue_bytes_max));
        let disk = self.load_inputs.disk_percent.load(Ordering::Relaxed);
        let state = self.load_inputs.state.lock();
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.update(queue.max(disk), self.load_inputs.started.elapsed())
    }

    /// Waits until no more bytes of batches wait for room in the queue than the queue has: who makes further
    /// ones before would have memory for them, and no bound.
    ///
    /// # Errors
    /// When that takes too long.
    pub async fn until_room(&self) -> Result<(), IngestError> {
        let settled = self.backlog.until_below(self.queue_bytes_max as usize);
        self.while_busy(settled).await
    }

    /// Waits for room, but not for long.
    async fn while_busy<T>(&self, waiting: impl Future<Output = T>) -> Result<T, IngestError> {
        let waited = tokio::time::timeout(ROOM_WAIT_MAX, waiting).await;
        waited.map_err(|_| {
            self.metrics.refused_busy.add(1);
            IngestError::Busy
        })
    }

    /// True if nobody would wait in [`Ingest::until_room`].
    pub fn has_room(&self) -> bool {
        self.backlog.bytes() <= self.queue_bytes_max as usize
    }

    /// What says whether records are taken at all.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// What tells what has become of batches.
    pub fn durability(&self) -> &Durability {
        &self.durability
    }

    /// Submits a batch and waits until it is written (and synced, if `durable`).
    ///
    /// An empty batch is accepted at once. If the future is dropped, the batch may be kept or not.
    ///
    /// # Errors
    /// See [`IngestError`]; in every case nothing of the batch is kept.
    pub async fn submit(
        &self,
        batch: impl Into<Arc<Batch>>,
        durable: bool,
    ) -> Result<Acknowledgement, IngestError> {
        self.submit_named(batch, None, durable).await
    }

    /// [`Ingest::submit`] of a batch that its producer may have named. One that the journal has
    /// already, or is about to have, is accepted with that and not written again.
    ///
    /// # Errors
    /// As for [`Ingest::submit`]; but of a batch that was sent before, that may have been kept.
    pub async fn submit_named(
        &self,
        batch: impl Into<Arc<Batch>>,
        id: Option<BatchId>,
        durable: bool,
    ) -> Result<Acknowledgement, IngestError> {
        let batch = batch.into();
        if batch.is_empty() {
            let first_id = Id::MIN;
            return Ok(Acknowledgement {
                first_id,
                count: 0,
                source: None,
            });
        }
        let size = (batch.len(), batch.payload().len());
        let queued = self.enqueue(batch, id, durable).await?;
        let taken = self.outcome(queued).await?;
        self.note_usage(size);
        Ok(taken)
    }

    /// Counts what was taken of a tenant.
    fn note_usage(&self, (records, bytes): (usize, usize)) {
        if let Some(tenant) = self.stamp.tenant() {
            self.usage.add(tenant, records as u64, bytes as u64);
        }
    }

    /// Submits batches in their order and waits until all are synced: they share syncs.
    ///
    /// # Errors
    /// The first refusal; what the others have become is then not known.
    pub async fn submit_all(
        &self,
        batches: impl IntoIterator<Item = (Batch, Option<BatchId>)>,
    ) -> Result<(), IngestError> {
        let mut queued = Vec::new();
        let mut refused = None;
        let mut size = (0, 0);
        for (batch, id) in batches {
            size = (size.0 + batch.len(), size.1 + batch.payload().len());
            match self.enqueue(Arc::new(batch), id, true).await {
                Ok(answer) => queued.push(answer),
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            }
        }
        for answer in queued {
            if let Err(error) = self.outcome(answer).await {
                refused.get_or_insert(error);
            }
        }
        match refused {
            Some(refused) => Err(refused),
            None => {
                self.note_usage(size);
                Ok(())
            }
        }
    }

    /// Submits what the server itself has to say, and waits until it is synced: no rule applies to it.
    ///
    /// # Errors
    /// As for [`Ingest::submit`].
    pub async fn submit_own(&self, batch: Batch) -> Result<Acknowledgement, IngestError> {
        self.gate.check()?;
        let queued = self.queue(Arc::new(batch), None, true, None).await?;
        self.outcome(queued).await
    }

    /// Applies the rules to a batch and queues what they leave of it; gives where its outcome arrives.
    async fn enqueue(
        &self,
        mut batch: Arc<Batch>,
        id: Option<BatchId>,
        durable: bool,
    ) -> Result<Answer, IngestError> {
        self.gate.check()?;
        if batch.labels.iter().any(|(name, _)| **name == *RULE_FIELD) {
            rename_forged(&mut Arc::make_mut(&mut batch).labels);
        }
        if !self.stamp.is_empty() {
            self.stamp.apply(Arc::make_mut(&mut batch));
        }
        if !self.declared.is_empty() {
            let labels = &mut Arc::make_mut(&mut batch).labels;
            // A sender may know the zone and the names of fields better.
            let is_one =
                |name: &str| [timezone::LABEL, TIME_FIELDS, MESSAGE_FIELDS].contains(&name);
            let own: Vec<Box<str>> = labels.iter().map(|(name, _)| name.clone()).collect();
            let declared = self.declared.iter();
            let declared = declared.filter(|(name, _)| !(is_one(name) && own.contains(name)));
            labels.extend(declared.cloned());
        }
        let Some(rules) = self.rules.clone().filter(|rules| !rules.is_empty()) else {
            return self.queue(batch, id, durable, None).await;
        };
        if let Some(id) = id.filter(|id| rules.has_dropped(id)) {
            self.metrics.resends.add(u64::from(id.is_retry()));
            self.metrics.resends_known.add(1);
            return Ok(reply::answered(batch.len() as u64));
        }
        let now = (self.clock)();
        let applied = tokio::task::spawn_blocking(move || rules.apply(&batch, id, now)).await;
        let applied = applied.map_err(|error| {
            if error.is_panic() {
                IngestError::Failed("the rules could not be applied; please report it".into())
            } else {
                // Blocking work is only thrown away when the process ends.
                IngestError::Stopping
            }
        })?;
        if applied.batch.is_empty() {
            let sent = applied.reservation.sent;
            applied.reservation.commit();
            return Ok(reply::answered(sent));
        }
        let reservation = Some(applied.reservation);
        self.queue(applied.batch, id, durable, reservation).await
    }

    /// Hands a batch to the writer, once there is room for it; gives where its outcome arrives.
    async fn queue(
        &self,
        batch: Arc<Batch>,
        id: Option<BatchId>,
        durable: bool,
        reservation: Option<rules::Reservation>,
    ) -> Result<Answer, IngestError> {
        let waiting = self.backlog.add(batch.payload().len());
        let room = self.room_for(&batch).await?;
        drop(waiting);
        let (reply, answer) = Reply::new(reservation);
        let submission = Submission {
            batch,
            id,
            durable,
            queued_at: Instant::now(),
            reply,
            room,
        };
        let sent = self.queue.send(Message::Batch(submission));
        sent.map_err(|_| IngestError::Stopping)?;
        Ok(answer)
    }

    async fn outcome(&self, queued: Answer) -> Result<Acknowledgement, IngestError> {
        let result = queued.await.map_err(|_| IngestError::Stopping)?;
        match &result {
            Err(IngestError::Full(_)) => self.metrics.refused_full.add(1),
            Err(IngestError::Failed(_)) => self.metrics.refused_failed.add(1),
            Err(IngestError::NotJoined(_)) => self.metrics.refused_not_joined.add(1),
            _ => {}
        }
        result
    }

    async fn room_for(&self, batch: &Batch) -> Result<OwnedSemaphorePermit, IngestError> {
        let bytes = batch.payload().len() + 4 * batch.len() + BATCH_OVERHEAD_BYTES;
        let bytes = u32::try_from(bytes)
            .unwrap_or(u32::MAX)
            .min(self.queue_bytes_max);
        let waiting = self.room.clone().acquire_many_owned(bytes);
        // The semaphore is never closed.
        let room = self.while_busy(waiting).await?;
        room.map_err(|_| IngestError::Stopping)
    }
}

/// Renames labels that would make records pass for results of recording rules, which queries leave out.
fn rename_forged(labels: &mut Labels) {
    let forged = labels.iter_mut().filter(|(name, _)| **name == *RULE_FIELD);
    for (name, _) in forged {
        *name = [RULE_FIELD, LABEL_SUFFIX].concat().into();
    }
}

//! The answer on its way out: chunks of lines into a bounded channel.
//!
//! Invariant: what waits for the reader is [`CHUNKS_MAX`] chunks at most, and together [`WAITING_BYTES_MAX`] or
//! one chunk: a line may be as long as lines may be.

mod in_flight;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::QueryError;
use super::reader::{Chunks, Reader};
use super::threads::Readers;
use in_flight::InFlight;
use logpond_host::memory::{Budget, Charge, Lease};
use logpond_host::shutdown::Shutdown;
use logpond_host::telemetry::Metrics;

/// Size at which a chunk is sent.
pub const CHUNK_BYTES: usize = 64 << 10;

/// Chunks that wait for the reader. With the socket's own buffers enough that scan and sending
/// overlap; more would only be memory that a stalled reader holds.
pub const CHUNKS_MAX: usize = 8;

/// Bytes that wait for the reader, but for a single chunk that has more.
pub(super) const WAITING_BYTES_MAX: usize = CHUNKS_MAX * CHUNK_BYTES;

/// The reader is gone.
#[derive(Clone, Copy, Debug)]
pub struct Cancellation;

/// Writes rows in another form, or not at all.
pub(super) type Rewrite = Box<dyn FnMut(&[u8], &mut Vec<u8>) -> RewriteStatus + Send>;

/// Appends why an answer breaks off, as its form says something that is no row.
pub type Farewell = fn(&str, &mut Vec<u8>);

/// The answer of a rewrite: more lines may follow, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewriteStatus {
    /// There may.
    GoOn,
    /// What was wanted is there: the work ends as if nobody read any more.
    Done,
}

/// Gathers lines into chunks.
pub struct Output {
    chunk: Vec<u8>,
    sender: mpsc::Sender<Bytes>,
    shutdown: Shutdown,
    heartbeat: Option<Heartbeat>,
    /// Told when the first chunk is sent.
    on_begin: Option<Box<dyn FnOnce() + Send>>,
    /// Whether everything is kept until it is known to be worth sending.
    is_held: bool,
    /// Takes the lines instead of the reader.
    tap: Option<Box<dyn Tap>>,
    rewrite: Option<Rewrite>,
    /// True if lines come that are no rows; the last of them says how complete the answer is.
    has_trailer: bool,
    /// How the other form says why it ends, if it can.
    farewell: Option<Farewell>,
    line: Vec<u8>,
    is_done: bool,
    /// Lines that were written so far.
    lines: u64,
    /// True once anything was sent.
    has_sent: bool,
    is_broken: Arc<AtomicBool>,
    /// Who reads, if that is watched.
    reader: Option<Arc<Reader>>,
    /// The readers of all answers, of which the slowest is given up while this query waits for memory.
    readers: Option<(Readers, Arc<Metrics>)>,
    /// Whether the work is wanted beside what the reader says.
    is_wanted: Option<Box<dyn Fn() -> bool + Send>>,
    /// Says why the reader may have no more, and when it was asked last.
    refuses: Option<(Refuses, Instant)>,
    refusal: Option<String>,
    /// The memory of the query, once it has begun.
    lease: Option<Arc<Lease>>,
    in_flight: Arc<InFlight>,
    /// Losses that are to be said beside the answer.
    lost: BTreeSet<String>,
}

/// Says why a reader may have no more, once that is so.
pub type Refuses = Box<dyn Fn() -> Option<String> + Send>;

/// How often that is asked.
const REFUSAL_INTERVAL: Duration = Duration::from_millis(500);

/// Takes the rows of an answer and makes messages of them.
pub trait Tap: Send {
    /// Takes a row, without its end; says whether a message is due.
    fn line(&mut self, line: &[u8]) -> bool;

    /// The message of the lines since the last one, if there is one.
    fn message(&mut self) -> Option<Vec<u8>>;
}

/// What is sent when there was nothing else to send.
struct Heartbeat {
    bytes: &'static [u8],
    every: Duration,
    sent_at: Instant,
}

impl Output {
    /// Keeps what a read found to be lost for good, for forms of answers without a trailer.
    pub fn note_lost(&mut self, lost: Vec<String>) {
        self.lost.extend(lost);
    }

    /// Losses that were kept.
    pub fn lost(&self) -> impl Iterator<Item = &str> {
        self.lost.iter().map(String::as_str)
    }

    /// An output and its reading end.
    pub fn new(shutdown: Shutdown) -> (Output, mpsc::Receiver<Bytes>) {
        let (sender, receiver) = mpsc::channel(CHUNKS_MAX);
        let chunk = Vec::new();
        let output = Output {
            chunk,
            sender,
            shutdown,
            heartbeat: None,
            on_begin: None,
            is_held: false,
            tap: None,
            rewrite: None,
            has_trailer: true,
            farewell: None,
            line: Vec::new(),
            is_done: false,
            lines: 0,
            has_sent: false,
            is_broken: Arc::default(),
            reader: None,
            readers: None,
            is_wanted: None,
            refuses: None,
            refusal: None,
            lease: None,
            in_flight: Arc::default(),
            lost: BTreeSet::new(),
        };
        (output, receiver)
    }

    /// An output whose reader may be given up, with its reading end.
    pub fn watched(shutdown: Shutdown) -> (Output, Arc<Reader>, Chunks) {
        let (mut output, receiver) = Output::new(shutdown);
        let reader = Reader::new(receiver);
        output.reader = Some(reader.clone());
        (output, reader.clone(), Chunks::of(reader))
    }

    /// While the query waits for memory, ends others whose readers take nothing.
    pub fn wait_among(&mut self, readers: Readers, metrics: Arc<Metrics>) {
        self.readers = Some((readers, metrics));
    }

    /// To be asked every few milliseconds while the query waits for memory.
    fn check_waiting(&mut self) -> Result<(), Cancellation> {
        if let Some((readers, metrics)) = &self.readers {
            readers.give_up_slowest(metrics);
        }
        self.check()
    }

    /// Whether the reader was given up; what is written then reaches it behind all that was sent before.
    ///
    /// The last line is without its end.
    pub fn leave_if_given_up(&mut self, last: &str) -> bool {
        let reader = self.reader.as_ref();
        let given_up = reader.filter(|reader| reader.is_given_up());
        if let Some(reader) = given_up {
            reader.leave(format!("{last}\n").into());
        }
        given_up.is_some()
    }

    /// The reader, if it may be given up.
    #[cfg(feature = "sql")]
    pub fn reader(&self) -> Option<&Arc<Reader>> {
        self.reader.as_ref()
    }

    /// Whether the reader was given up for others, because it did not read.
    pub fn is_given_up(&self) -> bool {
        self.reader
            .as_ref()
            .is_some_and(|reader| reader.is_given_up())
    }

    /// True once an operator has ended the work.
    pub fn is_stopped(&self) -> bool {
        self.reader
            .as_ref()
            .is_some_and(|reader| reader.is_stopped())
    }

    /// Takes the memory that a query needs to begin, if it has none; waits until there is some.
    ///
    /// # Errors
    /// When there is none in time, with why; or when nobody waits any more.
    pub fn begin(&mut self, budget: &Arc<Budget>) -> Result<(), QueryError> {
        if self.lease.is_none() {
            self.begin_anew(budget, 0)?;
            self.in_flight.count_in(Lease::of_reader(budget));
        }
        Ok(())
    }

    /// Takes memory for a query that has none, or gives back what it has because it was refused more before it had
    /// written anything: at once the bytes that it is known to need, so that it need not ask for them while others do.
    ///
    /// # Errors
    /// As [`Output::begin`].
    pub(super) fn begin_anew(
        &mut self,
        budget: &Arc<Budget>,
        bytes: usize,
    ) -> Result<(), QueryError> {
        self.lease = None;
        let lease = Lease::of_query(budget, bytes, &mut || self.check_waiting().is_ok());
        self.lease = Some(lease.map_err(|refusal| match refusal {
            Some(refusal) => QueryError::Memory(refusal.to_string()),
            None => QueryError::Cancelled,
        })?);
        Ok(())
    }

    /// True if nothing of the answer was written yet.
    pub(super) fn is_unwritten(&self) -> bool {
        self.lines == 0 && self.chunk.is_empty() && !self.has_sent
    }

    /// The memory of the query.
    pub fn lease(&self) -> Option<&Arc<Lease>> {
        self.lease.as_ref()
    }

    /// A part of the memory for queries and caches, and no more than so many bytes.
    pub(super) fn share(&self, share: usize, bytes_max: usize) -> usize {
        let lease = self.lease.as_ref();
        lease.map_or(bytes_max, |lease| lease.share(share, bytes_max))
    }

    /// Something of the query that will take memory.
    pub(super) fn charge(&self) -> Charge {
        Charge::new(self.lease.as_ref())
    }

    /// Takes so many bytes for something; waits until there are as many.
    ///
    /// # Errors
    /// When there are none, or nobody waits any more.
    pub(super) fn take(&mut self, charge: &mut Charge, bytes: usize) -> Result<(), Cancellation> {
        charge
            .set_while(bytes, &mut || self.check_waiting().is_ok())
            .map_err(|_| Cancellation)
    }

    /// Gives back what the query took to begin, but for a little: it waits for something to come.
    pub(super) fn idle(&self) {
        if let Some(lease) = &self.lease {
            lease.idle();
        }
    }

    /// Why a query came to its end: that it was cancelled may be for want of memory.
    pub fn explained(&self, error: QueryError) -> QueryError {
        match (error, self.lease.as_ref().and_then(|lease| lease.refusal())) {
            (QueryError::Cancelled, Some(refusal)) => QueryError::Memory(refusal.to_string()),
            (error, _) => error,
        }
    }

    /// Sends these bytes between two others whenever nothing was sent for so long, as long as
    /// [`Output::check`] is called.
    pub fn stay_alive(&mut self, bytes: &'static [u8], every: Duration) {
        self.heartbeat = Some(Heartbeat {
            bytes,
            every,
            sent_at: Instant::now(),
        });
    }

    /// Tells when the first chunk is sent.
    pub fn on_begin(&mut self, tell: impl FnOnce() + Send + 'static) {
        self.on_begin = Some(Box::new(tell));
    }

    /// Has somebody take all further lines and make messages of them, one chunk each.
    pub fn tap(&mut self, tap: Box<dyn Tap>) {
        self.tap = Some(tap);
    }

    /// Keeps everything until [`Output::release`]: for answers that are small, however much they
    /// were made from.
    pub fn hold(&mut self) {
        self.is_held = true;
    }

    /// Ends what [`Output::hold`] began.
    pub fn release(&mut self) {
        self.is_held = false;
    }

    /// Has each row written in another form from here on, with its end.
    pub(super) fn rewrite(&mut self, rewrite: Rewrite) {
        self.rewrite = Some(rewrite);
        self.is_done = false;
    }

    /// Ends what [`Output::rewrite`] began.
    pub(super) fn end_rewrite(&mut self) {
        self.rewrite = None;
    }

    /// The answer has a form that has no trailer.
    pub fn leave_out_trailer(&mut self) {
        self.has_trailer = false;
    }

    /// True if the answer ends by its trailer.
    pub fn has_trailer(&self) -> bool {
        self.has_trailer
    }

    /// Whether the other form wants no more lines.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Notes for those who list queries how many bytes were read so far, and how many there are.
    pub(super) fn note_bytes(&self, bytes: u64, bytes_total: u64) {
        if let Some(reader) = &self.reader {
            reader.note_bytes(bytes, bytes_total);
        }
    }

    /// How many lines were written so far.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Sets this if the answer ends where it should not.
    pub fn breaks_by(&mut self, is_broken: Arc<AtomicBool>) {
        self.is_broken = is_broken;
    }

    /// Goes on only as long as this says so.
    pub fn wanted_while(&mut self, is_wanted: impl Fn() -> bool + Send + 'static) {
        self.is_wanted = Some(Box::new(is_wanted));
    }

    /// Ends the answer once this says why the reader may have no more.
    pub fn refused_by(&mut self, refuses: Refuses) {
        self.refuses = Some((refuses, Instant::now()));
    }

    /// Why the reader may have no more. Only the end of the answer is still to be sent then.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Asks whether the reader may have more, if that is due.
    fn look_for_refusal(&mut self) {
        let due = self.refuses.as_mut();
        let Some((refuses, asked_at)) = due.filter(|(_, at)| at.elapsed() >= REFUSAL_INTERVAL)
        else {
            return;
        };
        *asked_at = Instant::now();
        self.refusal = refuses();
        if self.refusal.is_some() {
            self.refuses = None;
        }
    }

    /// Lets the reader know that the answer is not whole.
    pub fn break_off(&mut self) {
        self.is_broken.store(true, Ordering::Release);
    }

    /// Sets how the other form says why it ends. Forms of rows alone cannot.
    pub fn part_by(&mut self, farewell: Farewell) {
        self.farewell = Some(farewell);
    }

    /// Lets the reader know that the answer is not whole, with why if its form can say that.
    pub fn break_off_because(&mut self, why: &str) {
        if let Some(farewell) = self.farewell {
            farewell(why, &mut self.chunk);
        }
        self.break_off();
    }

    /// Appends one row; `write` gives it without its end. Blocks while the reader is behind.
    ///
    /// # Errors
    /// When the reader is gone.
    pub fn line(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Cancellation> {
        self.lines += 1;
        if let Some(reader) = &self.reader {
            reader.note_rows(self.lines);
        }
        if let Some(tap) = &mut self.tap {
            write(&mut self.chunk);
            let is_due = tap.line(&self.chunk);
            self.chunk.clear();
            return if is_due { self.flush() } else { Ok(()) };
        }
        if let Some(rewrite) = &mut self.rewrite {
            if self.is_done {
                return Err(Cancellation);
            }
            self.line.clear();
            self.line.shrink_to(CHUNK_BYTES);
            write(&mut self.line);
            self.is_done = rewrite(&self.line, &mut self.chunk) == RewriteStatus::Done;
            return if self.is_done {
                self.flush().and(Err(Cancellation))
            } else {
                self.append(|_| ())
            };
        }
        self.append(|chunk| {
            write(chunk);
            chunk.push(b'\n');
        })
    }

    /// Appends bytes. Blocks while the reader is behind.
    ///
    /// # Errors
    /// As for [`Output::line`].
    pub fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Cancellation> {
        write(&mut self.chunk);
        if self.chunk.len() >= CHUNK_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Appends a line that is no row, such as a notice or the trailer. A tap or another form gets rows only, so
    /// neither has to tell rows from other lines.
    ///
    /// # Errors
    /// As for [`Output::line`].
    pub fn aside(&mut self, value: &serde_json::Value) -> Result<(), Cancellation> {
        if self.tap.is_some() || !self.has_trailer {
            return Ok(());
        }
        self.append(|chunk| {
            chunk.extend_from_slice(value.to_string().as_bytes());
            chunk.push(b'\n');
        })
    }

    /// Appends one JSON value as a row.
    ///
    /// # Errors
    /// As for [`Output::line`].
    pub fn json(&mut self, value: &serde_json::Value) -> Result<(), Cancellation> {
        self.line(|out| out.extend_from_slice(value.to_string().as_bytes()))
    }

    /// Sends what was gathered.
    ///
    /// # Errors
    /// As for [`Output::line`].
    pub fn flush(&mut self) -> Result<(), Cancellation> {
        if let Some(tap) = &mut self.tap {
            let message = tap.message();
            return message.map_or(Ok(()), |message| self.send(message));
        }
        if self.chunk.is_empty() || self.is_held {
            return Ok(());
        }
        // Once that is known, what is still sent is the end of the answer.
        if self.refusal.is_none() {
            self.look_for_refusal();
            if self.refusal.is_some() {
                return Err(Cancellation);
            }
        }
        if let Some(tell) = self.on_begin.take() {
            tell();
        }
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.sent_at = Instant::now();
        }
        let chunk = std::mem::take(&mut self.chunk);
        self.send(chunk)
    }

    /// Sends a chunk. Blocks while the reader is behind.
    fn send(&mut self, chunk: Vec<u8>) -> Result<(), Cancellation> {
        self.has_sent = true;
        let is_stalled = Cell::new(false);
        let stall = || {
            if let Some(reader) = self.reader.as_ref().filter(|_| !is_stalled.replace(true)) {
                reader.note_stalled(true);
            }
        };
        let goes_on = || {
            stall();
            !self.sender.is_closed()
        };
        let chunk = self.in_flight.begin(chunk, WAITING_BYTES_MAX, goes_on);
        let sent = match chunk.map(|chunk| self.sender.try_send(chunk)) {
            Some(Ok(())) => Ok(()),
            Some(Err(TrySendError::Full(chunk))) => {
                stall();
                self.sender.blocking_send(chunk).map_err(|_| Cancellation)
            }
            None | Some(Err(TrySendError::Closed(_))) => Err(Cancellation),
        };
        if let Some(reader) = self.reader.as_ref().filter(|_| is_stalled.get()) {
            reader.note_stalled(false);
        }
        sent
    }

    /// Whether the work is in vain: to be asked every few milliseconds of it.
    ///
    /// # Errors
    /// When the reader is gone, the process stops, or there is no more memory for the query.
    pub fn check(&mut self) -> Result<(), Cancellation> {
        let is_wanted = self.is_wanted.as_ref().is_none_or(|is_wanted| is_wanted());
        self.look_for_refusal();
        let has_memory = self.lease.as_ref().is_none_or(|lease| lease.watch());
        let is_over = self.shutdown.is_stopping() || self.refusal.is_some();
        if self.sender.is_closed() || is_over || !is_wanted || !has_memory {
            return Err(Cancellation);
        }
        let due = self.heartbeat.as_ref();
        match due.filter(|heartbeat| heartbeat.sent_at.elapsed() >= heartbeat.every) {
            Some(heartbeat) => {
                self.chunk.extend_from_slice(heartbeat.bytes);
                self.flush()
            }
            None => Ok(()),
        }
    }
}

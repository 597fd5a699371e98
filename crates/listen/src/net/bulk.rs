//! One TCP connection of uploads: whole journal files, each answered once as many nodes as
//! configured have copies. `docs/format/journal.md` is normative.
//!
//! ```text
//! read: header, frame, frame, … end ─▶ durable, one by one ─▶ waits ─▶ replicated: a line of JSON
//!   └──────────── goes on with the next upload ───────────────┘
//! ```
//!
//! Invariants:
//! - A success says that every record of the upload that it counts is durable on as many nodes as
//!   configured; whatever else happened is an error, and the connection ends behind it.
//! - Answers come in the order of the uploads.
//! - Frames are submitted as they come: of an upload that breaks off some may be kept. They have
//!   names, so the same upload sent again counts once.
//! - Bodies and what is decoded from them have room in [`ROOM_BYTES`] before they are read.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use logpond_protocol::intake::foreign::{Foreign, OpeningLook, OpeningVerdict};
use logpond_protocol::intake::push::{self, DecodedBody, REJECTIONS_MAX};
use logpond_segment::batches::BatchId;
use logpond_segment::journal::{
    END_MARK_BYTES, FILE_HEADER_BYTES, FILE_MAGIC, FRAME_BODY_BYTES_MAX, FRAME_HEADER_BYTES,
    FRAME_PAYLOAD_BYTES_MAX, FileHeaderError, UploadError, UploadPart, UploadReader,
};
use logpond_segment::sources::SourceSet;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::opening::{self, UNDECIDED_BYTES_MAX};
use super::{Context, RETRY_PAUSE};
use logpond_engine::ingest::IngestError;

/// Connections of uploads at a time; further ones wait in the kernel's queue. Who hands whole
/// segments over is a batch job, not every program of a fleet.
pub const CONNECTIONS_MAX: usize = 128;

/// Memory of all bodies that are being read or decoded: two frames of the largest kind, so that one
/// slow sender does not stop the others, or some dozens of the usual kind.
const ROOM_BYTES: usize = 2 * (FRAME_BODY_BYTES_MAX + FRAME_PAYLOAD_BYTES_MAX);

/// Uploads of a connection that wait for their copies while the next one is read: enough to keep
/// the stores busy, which take half a second to gather data, and few to be sent again.
const UPLOADS_WAITING_MAX: usize = 8;

/// The largest part that is no body.
const HEADER_BYTES_MAX: usize = FRAME_HEADER_BYTES;
const _: () = assert!(FILE_HEADER_BYTES <= HEADER_BYTES_MAX && END_MARK_BYTES <= HEADER_BYTES_MAX);

/// How long the body of a frame may take: its room is held meanwhile. The largest one comes in
/// time at 140 kB/s.
const BODY_TIME_MAX: Duration = Duration::from_secs(300);

/// How long nothing of it may come. Others wait for its room.
const BODY_IDLE_MAX: Duration = Duration::from_secs(10);

/// How long copies may take. The stores need about a second; after so long a node is missing, and
/// the client does better to know it.
const REPLICATION_TIME_MAX: Duration = Duration::from_secs(60);

/// How long a client that began with something else may take to show what it speaks.
const LOOK_TIME_MAX: Duration = Duration::from_secs(1);

/// How long, and with how many bytes, a client may go on sending after its connection was ended by
/// an error, so that it gets to read it: were it closed with something unread, the system would
/// take the answer back.
const LINGER_TIME_MAX: Duration = Duration::from_secs(5);
const LINGER_BYTES_MAX: u64 = 64 << 20;

/// Room for bodies, of one listener.
#[derive(Clone)]
pub struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Room {
        Room(Arc::new(Semaphore::new(ROOM_BYTES)))
    }
}

/// The reason why an upload is not answered by success.
#[derive(Debug)]
enum UploadFailure {
    /// It is none.
    Upload(UploadError),
    /// The connection speaks another protocol.
    Foreign(Foreign),
    /// It broke off.
    Torn,
    /// A body came too slowly.
    Slow,
    /// The journal did not take it.
    Refused(IngestError),
    /// It is durable here, and too few nodes have copies of it.
    NotReplicated,
}

impl UploadFailure {
    /// Whether the same upload may be taken later, or by another server.
    fn may_pass(&self) -> bool {
        !matches!(
            self,
            UploadFailure::Upload(_)
                | UploadFailure::Foreign(_)
                | UploadFailure::Refused(IngestError::Invalid(_))
        )
    }

    fn to_json(&self) -> Value {
        json!({ "error": { "message": self.to_string() }, "retry": self.may_pass() })
    }
}

impl fmt::Display for UploadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UploadFailure::Upload(error) => write!(f, "{error}"),
            UploadFailure::Foreign(_) => f.write_str("the connection is none of uploads"),
            UploadFailure::Torn => f.write_str("the connection ended within an upload"),
            UploadFailure::Slow => write!(
                f,
                "a frame came too slowly: nothing of it for {} s, or not all of it in {} s",
                BODY_IDLE_MAX.as_secs(),
                BODY_TIME_MAX.as_secs()
            ),
            UploadFailure::Refused(refused) => write!(f, "{refused}"),
            UploadFailure::NotReplicated => write!(
                f,
                "the records are durable here, but after {} s too few nodes have copies of them",
                REPLICATION_TIME_MAX.as_secs()
            ),
        }
    }
}

/// An upload whose records are durable here.
#[derive(Debug, Default)]
struct Upload {
    /// Entries so far, taken or not.
    entries: u64,
    accepted: u64,
    rejected: Vec<(u64, String)>,
    rejected_total: u64,
    /// Where the records are.
    sources: SourceSet,
}

impl Upload {
    /// The form of the answer to a push, with `line` counting all entries of the upload.
    fn to_json(&self, load: &str) -> Value {
        let rejected = self.rejected.iter();
        let rejected = rejected.map(|(line, reason)| json!({ "line": line, "reason": reason }));
        json!({
            "accepted": self.accepted,
            "durable": true,
            "replicated": true,
            "rejected": rejected.collect::<Vec<_>>(),
            "rejected_total": self.rejected_total,
            "load": load,
        })
    }

    fn add_rejected(&mut self, pushed: &DecodedBody) {
        let room = REJECTIONS_MAX - self.rejected.len();
        let named = pushed.rejected.iter().take(room);
        let named = named.map(|r| (self.entries + r.line as u64, r.reason.to_string()));
        self.rejected.extend(named);
        self.rejected_total += pushed.rejected_total as u64;
        self.entries += (pushed.accepted + pushed.rejected_total) as u64;
    }
}

/// Serves one connection to its end.
pub async fn serve_bulk(stream: TcpStream, context: Context, room: Room) {
    let (reading, writing) = stream.into_split();
    let (durable, waiting) = mpsc::channel(UPLOADS_WAITING_MAX);
    let inflow = Inflow {
        stream: reading,
        context: context.clone(),
        room,
        reader: UploadReader::default(),
        is_new: true,
        durable,
    };
    let (unread, ()) = tokio::join!(inflow.run(), answer_all(writing, &context, waiting));
    let discarding = async {
        let mut rest = unread.take(LINGER_BYTES_MAX);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    // It is over in any case.
    let _ = tokio::time::timeout(LINGER_TIME_MAX, discarding).await;
}

/// The reading side.
struct Inflow {
    stream: OwnedReadHalf,
    context: Context,
    room: Room,
    reader: UploadReader,
    /// Nothing of it was understood so far.
    is_new: bool,
    durable: mpsc::Sender<Result<Upload, UploadFailure>>,
}

impl Inflow {
    /// Takes uploads until the client ends, the process stops, or one cannot be answered by
    /// success. Gives back what may hold unread bytes.
    async fn run(mut self) -> OwnedReadHalf {
        loop {
            let mut shutdown = self.context.shutdown.clone();
            let nobody_waits = self.durable.clone();
            let next = tokio::select! {
                biased;
                () = shutdown.stopping() => Err(UploadFailure::Refused(IngestError::Stopping)),
                () = nobody_waits.closed() => break,
                upload = self.next() => upload,
            };
            let next = match next {
                Ok(None) => break,
                Ok(Some(upload)) => Ok(upload),
                Err(trouble) => Err(trouble),
            };
            let is_over = next.is_err();
            if self.durable.send(next).await.is_err() || is_over {
                break;
            }
        }
        self.stream
    }

    /// The next upload, once all of it is durable; `None` at the end.
    async fn next(&mut self) -> Result<Option<Upload>, UploadFailure> {
        let mut upload = Upload::default();
        loop {
            let Some((part, _room)) = self.part().await? else {
                return Ok(None);
            };
            match part {
                Part::Header => {}
                Part::End => return Ok(Some(upload)),
                Part::Frame(pushed, id) => self.submit(&mut upload, pushed, id).await?,
            }
        }
    }

    /// The next part, with the room that it takes; `None` where the connection ends in order.
    async fn part(
        &mut self,
    ) -> Result<Option<(Part, Option<OwnedSemaphorePermit>)>, UploadFailure> {
        if !self.reader.is_before_body() {
            let part = self.header().await?;
            return Ok(part.map(|part| (part, None)));
        }
        let memory = u32::try_from(self.reader.memory_bytes()).unwrap_or(u32::MAX);
        let room = self.room.0.clone().acquire_many_owned(memory).await;
        let room = room.map_err(|_| UploadFailure::Refused(IngestError::Stopping))?;
        let mut body = vec![0; self.reader.wanted_bytes()];
        let received = receive(&mut self.stream, &mut body);
        match tokio::time::timeout(BODY_TIME_MAX, received).await {
            Ok(received) => received?,
            Err(_) => return Err(UploadFailure::Slow),
        }
        let part = self.decode(body).await?;
        Ok(Some((part, Some(room))))
    }

    /// A part that is no body; `None` where the connection ends in order.
    async fn header(&mut self) -> Result<Option<Part>, UploadFailure> {
        let mut bytes = [0; HEADER_BYTES_MAX];
        let bytes = &mut bytes[..self.reader.wanted_bytes()];
        let is_first = self.reader.is_between_uploads();
        let mut filled = 0;
        while filled < bytes.len() {
            match self.stream.read(&mut bytes[filled..]).await {
                Ok(0) if is_first && filled == 0 => return Ok(None),
                Ok(0) | Err(_) => return Err(UploadFailure::Torn),
                Ok(read) => filled += read,
            }
            // Who sends something else, and waits, is told before there is enough of it.
            let begin = &bytes[..filled.min(FILE_MAGIC.len())];
            if is_first && !FILE_MAGIC.starts_with(begin) {
                let foreign = if self.is_new {
                    self.foreign(&bytes[..filled]).await
                } else {
                    None
                };
                let damaged = UploadError::Header(FileHeaderError::Damaged);
                return Err(foreign.map_or(UploadFailure::Upload(damaged), UploadFailure::Foreign));
            }
        }
        self.is_new = false;
        let part = self.reader.take(bytes).map_err(UploadFailure::Upload)?;
        Ok(Some(Part::of(part, self.context.line_bytes_max)))
    }

    /// What a connection speaks that began with these bytes, and that is none of uploads.
    async fn foreign(&mut self, begin: &[u8]) -> Option<Foreign> {
        let mut look = OpeningLook::default();
        let mut opening = look.look(begin);
        let mut bytes = [0; UNDECIDED_BYTES_MAX];
        let more = async {
            let mut filled = 0;
            while opening == OpeningVerdict::Undecided && filled < bytes.len() {
                match self.stream.read(&mut bytes[filled..]).await {
                    Ok(0) | Err(_) => break,
                    Ok(read) => {
                        opening = look.look(&bytes[filled..filled + read]);
                        filled += read;
                    }
                }
            }
        };
        // Who says nothing more has said what there is to know.
        let _ = tokio::time::timeout(LOOK_TIME_MAX, more).await;
        match opening {
            OpeningVerdict::Foreign(foreign) => {
                opening::count(&self.context);
                // To others it is said as to anybody who sends something else.
                Some(foreign).filter(|foreign| *foreign == Foreign::Http)
            }
            _ => None,
        }
    }

    async fn decode(&mut self, body: Vec<u8>) -> Result<Part, UploadFailure> {
        let mut reader = std::mem::take(&mut self.reader);
        let line_bytes_max = self.context.line_bytes_max;
        let work = move || {
            let part = reader.take(&body);
            (reader, part.map(|part| Part::of(part, line_bytes_max)))
        };
        let decoded = tokio::task::spawn_blocking(work).await;
        // Blocking work is only thrown away when the process ends.
        let (reader, part) = decoded.map_err(|_| UploadFailure::Refused(IngestError::Stopping))?;
        self.reader = reader;
        part.map_err(UploadFailure::Upload)
    }

    /// Has a batch made durable.
    async fn submit(
        &mut self,
        upload: &mut Upload,
        pushed: DecodedBody,
        id: BatchId,
    ) -> Result<(), UploadFailure> {
        upload.add_rejected(&pushed);
        let metrics = self.context.metrics.intake(self.context.intake);
        metrics.rejected.add(pushed.rejected_total as u64);
        let batch = Arc::new(pushed.batch);
        loop {
            let ingest = &self.context.ingest;
            match ingest.submit_named(batch.clone(), Some(id), true).await {
                Ok(accepted) => {
                    self.context.count_accepted(&batch);
                    upload.accepted += batch.len() as u64;
                    accepted
                        .source
                        .into_iter()
                        .for_each(|source| upload.sources.insert(source));
                    return Ok(());
                }
                Err(IngestError::Busy) => tokio::time::sleep(RETRY_PAUSE).await,
                Err(refused) => return Err(UploadFailure::Refused(refused)),
            }
        }
    }
}

/// Fills a body with what comes.
async fn receive(stream: &mut OwnedReadHalf, body: &mut [u8]) -> Result<(), UploadFailure> {
    let mut filled = 0;
    while filled < body.len() {
        let next = stream.read(&mut body[filled..]);
        match tokio::time::timeout(BODY_IDLE_MAX, next).await {
            Ok(Ok(0) | Err(_)) => return Err(UploadFailure::Torn),
            Ok(Ok(read)) => filled += read,
            Err(_) => return Err(UploadFailure::Slow),
        }
    }
    Ok(())
}

/// A part of an upload, its records checked.
enum Part {
    Header,
    Frame(DecodedBody, BatchId),
    End,
}

impl Part {
    fn of(part: UploadPart, line_bytes_max: usize) -> Part {
        match part {
            UploadPart::Header => Part::Header,
            UploadPart::Frame(batch, id) => Part::Frame(push::screen(batch, line_bytes_max), id),
            UploadPart::End => Part::End,
        }
    }
}

/// The protocol, for clients of other protocols.
const SPEAKS: &str = "journal files";

/// Answers uploads in turn, each once it is replicated. Ends with the first that is not.
async fn answer_all(
    mut stream: OwnedWriteHalf,
    context: &Context,
    mut waiting: mpsc::Receiver<Result<Upload, UploadFailure>>,
) {
    while let Some(next) = waiting.recv().await {
        let outcome = match next {
            Ok(upload) => wait_for_copies(upload, context).await,
            Err(trouble) => Err(trouble),
        };
        let answer = match &outcome {
            Ok(upload) => line_of(&upload.to_json(context.ingest.load().as_str())),
            Err(UploadFailure::Foreign(foreign)) => opening::answer(*foreign, SPEAKS),
            Err(trouble) => line_of(&trouble.to_json()),
        };
        let written = stream.write_all(&answer).await;
        if written.is_err() || outcome.is_err() {
            break;
        }
    }
    let _ = stream.shutdown().await;
}

fn line_of(answer: &Value) -> Vec<u8> {
    format!("{answer}\n").into_bytes()
}

async fn wait_for_copies(upload: Upload, context: &Context) -> Result<Upload, UploadFailure> {
    let durability = context.ingest.durability();
    let is_replicated = |source| durability.is_replicated(source);
    if upload.sources.iter().all(is_replicated) {
        return Ok(upload);
    }
    let mut shutdown = context.shutdown.clone();
    // What is in the open file is not handed on before it is closed.
    let copies = async {
        context.ingest.close_file().await;
        durability.replicated(&upload.sources).await;
    };
    tokio::select! {
        () = copies => {}
        () = tokio::time::sleep(REPLICATION_TIME_MAX) => return Err(UploadFailure::NotReplicated),
        () = shutdown.stopping() => return Err(UploadFailure::Refused(IngestError::Stopping)),
    }
    Ok(upload)
}

#[cfg(test)]
#[path = "bulk_tests.rs"]
mod tests;

//! `POST /upload`: systemd's journals, as `systemd-journal-upload` sends them.
//!
//! ```text
//! body ─▶ what is at hand ─▶ parts of entries ─▶ known ones left out ─▶ journal, synced ─┐
//!   ▲                                                                                    │
//!   └────────────────────────────── goes on reading ─────────────────────────────────────┘
//! ```
//!
//! The sender keeps the cursor of the last entry only once the request has succeeded, which may be
//! hours after it began. So after anything else it sends entries again that are here. Each entry is a
//! named batch of its own: its journal's counter, boot and hour are the epoch, its number is the
//! sequence. What the journal or a segment of this node holds under such a name is not taken again.
//!
//! Invariants:
//! - 202 says that every entry of the body is durable, but those that the answer lists.
//! - Entries are durable and found while the body still comes, and the memory that a body takes does
//!   not grow with it.
//! - An entry with a cursor counts once on the node that it is sent to, whatever broke off.

use std::collections::HashSet;
use std::sync::Arc;

use hyper::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Request, Response, StatusCode};
use logpond_protocol::intake::body::Encoding;
use logpond_protocol::intake::journal_entry::Position;
use logpond_protocol::intake::journal_upload::{Part, SealedEntry, UploadError, UploadReader};
use logpond_protocol::intake::push::Rejection;
use logpond_record::{Batch, EntryKind, Timestamp};
use logpond_segment::batches::{BatchId, BatchSet};
use serde_json::json;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use xxhash_rust::xxh3::xxh3_128;

use super::bodies::BodyGuard;
use super::body::{self, Body};
use super::error::{ApiError, Kind};
use super::inflow::Inflow;
use super::intake;
use super::params::Params;
use super::push;
use super::{App, authorization};
use logpond_engine::ingest::IngestError;
use logpond_host::telemetry::Intake;

/// Parameters of an upload.
pub(super) const PARAMS: [&str; 1] = ["label"];

/// The content type of the export format.
const EXPORT: &str = "application/vnd.fdo.journal";

/// What a body may be compressed with. Senders since systemd 258 look at it in every answer, and compress
/// their next request with the first that they know and may use. They split it at commas and leave
/// blanks where they are: with a blank before it, a name is none that they know.
const ENCODINGS: &str = "zstd,lz4,gzip,xz,deflate";

/// So much of a body is taken at once, if it is there: a sync is shared by all of its entries.
const GATHER_BYTES_MAX: usize = 1 << 20;

/// Parts of all uploads that are decoded or written at a time. Each takes a few MiB.
const PARTS_MAX: usize = 16;

/// What may be held of an unfinished entry without a share of the memory for bodies.
const HELD_BYTES_FREE: usize = 64 << 10;

/// Locks among which journals are spread.
const LOCKS: usize = 16;

/// Rejected entries that an answer lists.
const REJECTIONS_MAX: usize = 16;

/// What all uploads share.
pub(super) struct Uploads {
    parts: Arc<Semaphore>,
    /// Held from the look for entries that are here until the others are, so that two requests never
    /// both take an entry.
    locks: [Mutex<()>; LOCKS],
}

impl Default for Uploads {
    fn default() -> Uploads {
        Uploads {
            parts: Arc::new(Semaphore::new(PARTS_MAX)),
            locks: Default::default(),
        }
    }
}

/// Takes a journal in.
pub(super) async fn answer(app: &Arc<App>, request: Request<Inflow>) -> Response<Body> {
    let wants_json = wants_json(request.headers());
    let mut response = match upload(app, request).await {
        Ok(outcome) if wants_json => Body::json(StatusCode::ACCEPTED, &outcome.to_json()),
        Ok(outcome) => text(StatusCode::ACCEPTED, outcome.said()),
        Err(UploadFailure::Partial(said)) => text(StatusCode::EXPECTATION_FAILED, said),
        Err(UploadFailure::Error(error)) => {
            let (status, _, _) = error.kind.row();
            error.kind.dress(text(status, error.message))
        }
    };
    let encodings = HeaderValue::from_static(ENCODINGS);
    response.headers_mut().insert(ACCEPT_ENCODING, encodings);
    response
}

fn text(status: StatusCode, said: String) -> Response<Body> {
    Body::whole(status, "text/plain; charset=utf-8", said + "\n")
}

/// The reason why an upload fails.
enum UploadFailure {
    /// The body ends within an entry. What came before is durable.
    Partial(String),
    Error(ApiError),
}

impl From<ApiError> for UploadFailure {
    fn from(error: ApiError) -> UploadFailure {
        UploadFailure::Error(error)
    }
}

impl From<IngestError> for UploadFailure {
    fn from(refused: IngestError) -> UploadFailure {
        UploadFailure::Error(refused.into())
    }
}

impl From<UploadError> for UploadFailure {
    fn from(error: UploadError) -> UploadFailure {
        let said = error.to_string();
        match error {
            UploadError::Partial(_) => UploadFailure::Partial(said),
            _ => UploadFailure::Error(ApiError::bad_request(said)),
        }
    }
}

async fn upload(app: &Arc<App>, request: Request<Inflow>) -> Result<Outcome, UploadFailure> {
    let headers = request.headers();
    let given = intake::text_of(headers, CONTENT_TYPE)?;
    if given.split(';').next().map(str::trim) != Some(EXPORT) {
        let message = format!("content type '{given}' is not taken; send `Content-Type: {EXPORT}`");
        return Err(ApiError::new(Kind::UnsupportedMediaType, message).into());
    }
    let read = Encoding::from_upload_header;
    let encoding = intake::encoding_among(headers, read, ENCODINGS)?;
    let params = Params::of(request.uri())?;
    params.only(&PARAMS)?;
    let reader = UploadReader::new(encoding, app.line_bytes_max, push::labels(&params)?);
    let internal = || ApiError::new(Kind::Internal, "there is no memory to decompress with");
    let reader = reader.ok_or_else(internal)?;
    // Before the body is sent for nothing.
    app.ingest.gate().check()?;
    let mut upload = Upload {
        app,
        reader: Some(reader),
        receiving: app.bodies.begin(),
        outcome: Outcome::default(),
    };
    let taken = upload.take(request.into_body()).await;
    upload.note_rejected();
    taken.map(|()| upload.outcome)
}

fn wants_json(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("application/json"))
}

/// What became of the entries of a request.
#[derive(Default)]
struct Outcome {
    accepted: u64,
    known: u64,
    rejected: Vec<Rejection>,
    rejected_total: usize,
}

/// One request.
struct Upload<'a> {
    app: &'a Arc<App>,
    /// Away only while a part is read.
    reader: Option<UploadReader>,
    /// The share of the memory for bodies that an unfinished entry has.
    receiving: BodyGuard<'a>,
    outcome: Outcome,
}

impl Upload<'_> {
    async fn take(&mut self, mut body: Inflow) -> Result<(), UploadFailure> {
        let mut shutdown = self.app.shutdown.clone();
        let mut refused = std::pin::pin!(authorization::refused());
        loop {
            let gathered = tokio::select! {
                biased;
                () = shutdown.stopping() => return Err(IngestError::Stopping.into()),
                refusal = refused.as_mut() => return Err(refusal.into()),
                // While it holds memory for an entry it does not stand still for long.
                gathered = self.receiving.while_waiting(gather(&mut body)) => gathered??,
            };
            self.take_bytes(gathered.bytes).await?;
            match gathered.end {
                None => {}
                Some(Ok(())) => return self.finish().await,
                Some(Err(error)) => return Err(error.into()),
            }
        }
    }

    async fn take_bytes(&mut self, bytes: Vec<u8>) -> Result<(), UploadFailure> {
        if let Some(reader) = &mut self.reader {
            reader.give(bytes);
        }
        // Each round reads a part of what came.
        loop {
            let permit = self.permit().await?;
            let mut reader = self.reader.take().ok_or_else(lost)?;
            let work = move || {
                let part = reader.read();
                (reader, part)
            };
            let (reader, part) = tokio::task::spawn_blocking(work)
                .await
                .map_err(|_| lost())?;
            let (is_drained, held_bytes) = (reader.is_drained(), reader.held_bytes());
            self.reader = Some(reader);
            self.store(part?).await?;
            drop(permit);
            self.hold(held_bytes).await?;
            if is_drained {
                return Ok(());
            }
        }
    }

    async fn finish(&mut self) -> Result<(), UploadFailure> {
        let _permit = self.permit().await?;
        // Each round reads a part of the rest.
        loop {
            let mut reader = self.reader.take().ok_or_else(lost)?;
            let work = move || {
                let part = reader.finish();
                (reader, part)
            };
            let finished = tokio::task::spawn_blocking(work).await;
            let (reader, part) = finished.map_err(|_| lost())?;
            self.reader = Some(reader);
            match part? {
                Some(part) => self.store(part).await?,
                None => return Ok(()),
            }
        }
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit, UploadFailure> {
        let permit = self.app.uploads.parts.clone().acquire_owned().await;
        permit.map_err(|_| IngestError::Stopping.into())
    }

    /// Adjusts the share of the memory for bodies to what is held of an unfinished entry.
    async fn hold(&mut self, bytes: usize) -> Result<(), UploadFailure> {
        let wanted = bytes.saturating_sub(HELD_BYTES_FREE);
        Ok(self.receiving.hold(wanted).await?)
    }

    /// Makes the entries of a part durable that are not here yet.
    async fn store(&mut self, part: Part) -> Result<(), UploadFailure> {
        let outcome = &mut self.outcome;
        let room = REJECTIONS_MAX - outcome.rejected.len();
        outcome
            .rejected
            .extend(part.rejected.into_iter().take(room));
        outcome.rejected_total += part.rejected_total;
        let app = self.app;
        let mut locks: Vec<usize> = part
            .entries
            .iter()
            .filter_map(|e| e.position)
            .map(lock_of)
            .collect();
        locks.sort_unstable();
        locks.dedup();
        let mut guards = Vec::with_capacity(locks.len());
        // Always in the same order, so that nobody waits in a circle.
        for lock in locks {
            guards.push(app.uploads.locks[lock].lock().await);
        }
        let held = self.held_of(&part.entries);
        let mut batches = Vec::with_capacity(part.entries.len());
        let (mut known, mut records, mut bytes) = (0, 0, 0);
        let mut seen = HashSet::new();
        for SealedEntry { batch, position } in part.entries {
            let id = position.map(|position| self.name(position));
            let is_known = |id: BatchId| {
                held.contains(id.epoch, id.sequence) || !seen.insert((id.epoch, id.sequence))
            };
            if id.is_some_and(is_known) {
                known += 1;
                continue;
            }
            records += 1;
            bytes += batch.payload().len();
            add(&mut batches, batch, id);
        }
        app.metrics.resends_known.add(known);
        app.ingest.submit_all(batches).await?;
        self.outcome.known += known;
        self.outcome.accepted += records;
        let metrics = app.metrics.intake(Intake::JournalUpload);
        metrics.records.add(records);
        metrics.bytes.add(bytes as u64);
        Ok(())
    }

    /// The name of the batch of an entry: each sender with labels of its own has its own.
    fn name(&self, position: Position) -> BatchId {
        let id = name_of(position);
        BatchId {
            epoch: self.app.ingest.stamp().identity(id.epoch),
            ..id
        }
    }

    /// What of these entries is here.
    fn held_of(&self, entries: &[SealedEntry]) -> BatchSet {
        let positions = entries.iter().filter_map(|entry| entry.position);
        let names = positions.map(|position| self.name(position));
        let wanted: BatchSet = names.map(|id| (id.epoch, id.sequence)).collect();
        // Files of the journal first: what leaves them meanwhile is in a segment by then.
        let mut held = self.app.ingest.durability().states(&wanted).durable;
        for epoch in wanted.epochs() {
            held.union_with(&self.app.store.batches_of(epoch).intersection(&wanted));
        }
        held
    }

    fn note_rejected(&self) {
        let metrics = self.app.metrics.intake(Intake::JournalUpload);
        metrics.rejected.add(self.outcome.rejected_total as u64);
        if let Some(first) = self.outcome.rejected.first() {
            logpond_host::telemetry::warn(&format!(
                "of an uploaded journal {} entries were not taken; entry {}: {}",
                self.outcome.rejected_total, first.line, first.reason
            ));
        }
    }
}

impl Outcome {
    /// For `systemd-journal-upload`, which shows it to people.
    fn said(&self) -> String {
        if self.rejected_total == 0 {
            return "OK.".to_owned();
        }
        let mut said = format!(
            "OK, but {} of {} entries were not taken:",
            self.rejected_total,
            self.accepted + self.known + self.rejected_total as u64
        );
        for rejection in &self.rejected {
            said += &format!("\nentry {}: {}", rejection.line, rejection.reason);
        }
        said
    }

    fn to_json(&self) -> serde_json::Value {
        let rejected = self.rejected.iter();
        let rejected = rejected.map(|r| json!({ "entry": r.line, "reason": r.reason.to_string() }));
        json!({
            "accepted": self.accepted,
            "known": self.known,
            "rejected": rejected.collect::<Vec<_>>(),
            "rejected_total": self.rejected_total,
        })
    }
}

/// A reader that did not come back: a defect.
fn lost() -> ApiError {
    ApiError::new(Kind::Internal, "the upload got lost")
}

/// The received part of a body.
struct BodyBuffer {
    bytes: Vec<u8>,
    /// How it ended, if it has.
    end: Option<Result<(), ApiError>>,
}

/// Waits for more of a body, and takes all that is there. A journal may have nothing new for hours:
/// who is gone is found out by the connection.
async fn gather(body: &mut Inflow) -> Result<BodyBuffer, ApiError> {
    let mut bytes = Vec::new();
    let mut next = Some(body::next_chunk_ever(body).await);
    let end = loop {
        match next {
            None => break None,
            Some(Ok(None)) => break Some(Ok(())),
            Some(Err(error)) if bytes.is_empty() => return Err(error),
            Some(Err(error)) => break Some(Err(error)),
            Some(Ok(Some(chunk))) => bytes.extend_from_slice(&chunk),
        }
        if bytes.len() >= GATHER_BYTES_MAX {
            break None;
        }
        next = body::chunk_at_hand(body).await;
    };
    Ok(BodyBuffer { bytes, end })
}

/// Adds an entry: as a batch of its own if it has a name, else to the others without one.
fn add(batches: &mut Vec<(Batch, Option<BatchId>)>, entry: Batch, id: Option<BatchId>) {
    match batches.last_mut() {
        Some((last, None)) if id.is_none() => entry.iter().for_each(|held| last.push(held)),
        _ if id.is_none() => {
            let mut batch = Batch::new(EntryKind::Enveloped, entry.labels.clone());
            entry.iter().for_each(|held| batch.push(held));
            batches.push((batch, None));
        }
        _ => batches.push((entry, id)),
    }
}

/// The name of an entry. Numbers are dense within a journal, so what a node holds of it are few runs.
/// The hour (of 2^32 µs) is in it for machines that are put back to an earlier state: what they write
/// then has numbers that were given before.
fn name_of(position: Position) -> BatchId {
    let mut epoch = [0; 36];
    epoch[..16].copy_from_slice(&position.seqnum_id.to_le_bytes());
    epoch[16..32].copy_from_slice(&position.boot_id.to_le_bytes());
    epoch[32..].copy_from_slice(&((position.realtime_us >> 32) as u32).to_le_bytes());
    BatchId {
        epoch: xxh3_128(&epoch),
        sequence: position.seqnum,
        attempt: 0,
        first_sent: Timestamp(0),
        more: 0,
    }
}

fn lock_of(position: Position) -> usize {
    (position.seqnum_id % LOCKS as u128) as usize
}

//! Whole segments: batches are gathered into uploads and handed over one behind the other; each is
//! answered once as many servers as configured have copies.
//!
//! ```text
//! lines ─▶ named batches ─▶ upload (16 MiB) ─▶ up to 4 on their way, kept in memory ─▶ server
//!                                                   └ answered: forgotten
//! ```
//!
//! Invariants:
//! - An upload is kept until it is answered. When a connection breaks, all that were on their way
//!   are sent again under their names, as retries, to the next server; so they count once.
//! - Answers come in the order of the uploads.
//! - Memory is at most that of [`UPLOADS_MAX`] uploads, and of one that is gathered.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use logpond_record::{Batch, SourceId};
use logpond_segment::batches::BatchId;
use logpond_segment::journal::UploadWriter;
use serde::Deserialize;

use super::answer::{BatchAnswer, judge};
use super::attempts::{Attempt, Attempts, Failure};
use super::producer::Producer;
use super::records::Records;
use super::sender::{Origin, Outlet, SendError, labels_of};
use super::{FileZones, Pause, Settings, Totals};
use logpond_client::{ClientError, HostPort};
use logpond_host::clock;

/// Bytes of lines in an upload: as much as a server's journal puts into one file.
const UPLOAD_BYTES: usize = 16 << 20;

/// Uploads on their way: enough that the network, the disks and the copying of stores work at the
/// same time.
const UPLOADS_MAX: usize = 4;

/// How long lines wait for others to share their upload.
const LINGER: Duration = Duration::from_secs(1);

/// How long a server may take to accept a connection; one that needs longer is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a server may take in none of the bytes that are sent.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// How long an answer may take: a server waits a minute for copies, and takes the records in before.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// The longest answer that is read: a list of 100 rejections with their reasons fits many times.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// Lines that are handed over together.
#[derive(Default)]
struct Upload {
    batches: Vec<NamedBatch>,
    /// Whether all of it was sent over the connection that is open now.
    is_sent: bool,
}

struct NamedBatch {
    batch: Batch,
    id: BatchId,
    /// The input that the lines come from, and the number of the first in it.
    input: String,
    first_line: u64,
}

impl Upload {
    /// Counts an answer, which numbers all lines of the upload from 1.
    fn count(&self, taken: &BatchAnswer, totals: &mut Totals) {
        let bytes: usize = self.batches.iter().map(|named| named.bytes()).sum();
        totals.accepted += taken.accepted;
        totals.bytes += bytes as u64;
        for (number, reason) in &taken.rejected {
            let mut index = number.saturating_sub(1);
            for named in &self.batches {
                let lines = named.batch.len() as u64;
                if index < lines {
                    totals.reject(&named.input, named.first_line + index, reason);
                    break;
                }
                index -= lines;
            }
        }
        totals.rejected += taken.rejected_total - taken.rejected.len() as u64;
    }
}

impl NamedBatch {
    /// Bytes of the lines with their ends.
    fn bytes(&self) -> usize {
        self.batch.payload().len() + self.batch.len()
    }
}

/// A connection to one of the servers.
struct Connection {
    server: usize,
    stream: BufReader<TcpStream>,
}

/// Hands over segments.
pub(super) struct Bulk {
    addresses: Vec<HostPort>,
    attempts: Attempts,
    producer: Producer,
    labels: Vec<(String, String)>,
    zones: FileZones,
    gathered: Upload,
    /// Uploads that are not answered, the oldest first.
    waiting: VecDeque<Upload>,
    connection: Option<Connection>,
    totals: Totals,
}

impl Bulk {
    /// An outlet to these servers, of which there is at least one.
    pub(super) fn new(
        addresses: &[HostPort],
        settings: &Settings,
        pause: Pause,
        producer: Producer,
    ) -> Bulk {
        let names = addresses.iter().map(HostPort::to_string).collect();
        Bulk {
            addresses: addresses.to_vec(),
            attempts: Attempts::new(names, settings.backoff, pause),
            producer,
            labels: settings.labels.clone(),
            zones: settings.zones.clone(),
            gathered: Upload::default(),
            waiting: VecDeque::new(),
            connection: None,
            totals: Totals::default(),
        }
    }

    /// The server that was sent to last.
    pub(super) fn name(&self) -> &str {
        self.attempts.name()
    }

    /// What was answered so far.
    pub(super) fn totals(&self) -> Totals {
        self.totals
    }

    /// Waits until everything is answered.
    pub(super) fn finish(&mut self) -> Result<(), SendError> {
        self.flush()?;
        self.settle(0)
    }

    /// Waits for answers until at most so many uploads are on their way.
    fn settle(&mut self, most: usize) -> Result<(), SendError> {
        while self.waiting.len() > most {
            let started = Instant::now();
            let Bulk {
                addresses,
                attempts,
                waiting,
                connection,
                ..
            } = self;
            let taken = attempts.until_taken(&|| Some(started.elapsed()), |server| {
                let outcome = exchange(server, &addresses[server], connection, waiting);
                if !matches!(outcome, Attempt::Taken(_)) {
                    *connection = None;
                }
                outcome
            })?;
            if let Some(upload) = self.waiting.pop_front() {
                upload.count(&taken, &mut self.totals);
            }
        }
        Ok(())
    }
}

impl Outlet for Bulk {
    /// Gathers records; they count when they are answered.
    fn send(
        &mut self,
        records: Records<'_>,
        origin: &Origin<'_>,
    ) -> Result<BatchAnswer, SendError> {
        self.gathered.batches.push(NamedBatch {
            batch: records.to_batch(labels_of(&self.labels, &self.zones, origin)),
            id: self.producer.name(),
            input: origin.file.unwrap_or("standard input").to_owned(),
            first_line: origin.first_line,
        });
        Ok(BatchAnswer::default())
    }

    /// Hands over what was gathered, and waits until there is room for another upload.
    fn flush(&mut self) -> Result<(), SendError> {
        if self.gathered.batches.is_empty() {
            return Ok(());
        }
        self.waiting.push_back(std::mem::take(&mut self.gathered));
        // What fails is tried again, with patience, when the answer is waited for.
        let server = self.attempts.current();
        let sent = send_all(
            server,
            &self.addresses[server],
            &mut self.connection,
            &mut self.waiting,
        );
        if sent.is_err() {
            self.connection = None;
        }
        self.settle(UPLOADS_MAX - 1)
    }

    fn pause(&self) -> &Pause {
        self.attempts.pause()
    }

    fn batch_bytes(&self) -> usize {
        UPLOAD_BYTES
    }

    fn linger(&self) -> Duration {
        LINGER
    }
}

/// Sends what was not sent over this connection yet, and waits for the answer to the oldest upload.
fn exchange(
    server: usize,
    address: &HostPort,
    connection: &mut Option<Connection>,
    waiting: &mut VecDeque<Upload>,
) -> Attempt {
    let failed = |reason: String| {
        Attempt::Failed(Failure {
            reason,
            ..Failure::default()
        })
    };
    let sent = send_all(server, address, connection, waiting);
    let Some(connection) = connection else {
        let reason = sent.err().map(|error| error.to_string());
        return failed(reason.unwrap_or_default());
    };
    // A server that ends the connection while it is sent to has said why.
    match (read_line(&mut connection.stream), sent) {
        (Ok(line), _) if !line.is_empty() => judge_line(&line),
        (_, Err(error)) | (Err(error), Ok(())) => failed(error.to_string()),
        (Ok(_), Ok(())) => failed("the server ended the connection without an answer".to_owned()),
    }
}

/// Sends what was not sent over this connection yet; makes one first where there is none to this
/// server.
fn send_all(
    server: usize,
    address: &HostPort,
    connection: &mut Option<Connection>,
    waiting: &mut VecDeque<Upload>,
) -> io::Result<()> {
    if connection.as_ref().is_none_or(|open| open.server != server) {
        *connection = None;
        let stream = BufReader::new(connect(address)?);
        for upload in waiting.iter_mut().filter(|upload| upload.is_sent) {
            upload.is_sent = false;
        }
        *connection = Some(Connection { server, stream });
    }
    let Some(open) = connection else {
        return Ok(());
    };
    for upload in waiting.iter_mut().filter(|upload| !upload.is_sent) {
        write_upload(open.stream.get_mut(), upload)?;
        upload.is_sent = true;
    }
    Ok(())
}

fn connect(address: &HostPort) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for resolved in address.as_str().to_socket_addrs()? {
        match TcpStream::connect_timeout(&resolved, CONNECT_TIMEOUT) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(SEND_TIMEOUT))?;
                stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Writes an upload; from its first frame on, each batch may be at the server.
fn write_upload(stream: &mut TcpStream, upload: &mut Upload) -> io::Result<()> {
    let incarnation = clock::mint_incarnation().map_err(|e| io::Error::other(e.to_string()))?;
    let source = SourceId {
        incarnation,
        sequence: 0,
    };
    let (mut writer, header) = UploadWriter::begin(source, clock::now());
    stream.write_all(&header)?;
    for named in &mut upload.batches {
        let id = named.id;
        named.id.attempt += 1;
        let frame = writer.frame(&named.batch, id, clock::now());
        stream.write_all(frame.map_err(|error| io::Error::other(error.to_string()))?)?;
    }
    stream.write_all(&writer.end())
}

/// One line of an answer; empty at the end of the connection.
fn read_line(stream: &mut BufReader<TcpStream>) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_until(b'\n', &mut line)?;
    Ok(line)
}

fn judge_line(line: &[u8]) -> Attempt {
    #[derive(Deserialize)]
    struct BulkError {
        retry: bool,
    }
    #[derive(Deserialize)]
    struct Hint {
        load: String,
    }
    if let Ok(trouble) = serde_json::from_slice::<BulkError>(line) {
        let error = ClientError::refused(0, line);
        return if trouble.retry {
            Attempt::Failed(Failure {
                reason: error.to_string(),
                ..Failure::default()
            })
        } else {
            Attempt::Refused(error)
        };
    }
    let hint = serde_json::from_slice::<Hint>(line);
    match judge(200, line) {
        Attempt::Taken(taken) => Attempt::Taken(BatchAnswer {
            is_busy: hint.is_ok_and(|hint| hint.load != "green"),
            ..taken
        }),
        other => other,
    }
}

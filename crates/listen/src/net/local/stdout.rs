//! journald's stream socket: what services print.
//!
//! A service blocks where its output is not read; so a connection is read as fast as it comes, into the
//! queue of all of them. Empty lines are no records, as in journald.
//!
//! A restart is no end of a stream: see [`super::keeper`].

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use logpond_protocol::intake::journal_stdout::{HEADER_BYTES_MAX, StreamHeader, level};
use logpond_protocol::intake::lines::{Line, LineSplitter};
use logpond_record::Labels;
use logpond_record::limits::TRUNCATED_FIELD;
use rustix::net::RecvFlags;
use tokio::io::Interest;
use tokio::net::{UnixListener, UnixStream};

use super::entries::Entries;
use super::keeper::{Keeper, KeptStream, LeftStream, State, StreamNote};
use super::process;
use super::queue::QueueSender;
use super::receive::LAST_MAX;
use super::streams;
use crate::net::{Context, look_once_more};
use logpond_host::clock;

/// Read buffer of a stream.
const READ_BYTES: usize = 16 << 10;

/// The state that all streams share.
struct StreamEnvironment {
    filling: Mutex<QueueSender>,
    machine: Labels,
    keeper: Option<Arc<Keeper>>,
    context: Context,
}

/// A stream, and what outlives this server of it.
struct AcceptedStream {
    stream: UnixStream,
    kept: Option<KeptStream>,
    noted: Option<StreamNote>,
}

/// Goes on with the streams that were left, and accepts others until the stop; what the open ones hold
/// then is still taken.
pub(super) async fn serve(
    listener: UnixListener,
    filling: QueueSender,
    context: Context,
    keeper: Option<Arc<Keeper>>,
    left: Vec<LeftStream>,
) {
    let machine = process::machine(&context.hostname, "stdout");
    let shared = Arc::new(StreamEnvironment {
        filling: Mutex::new(filling),
        machine,
        keeper,
        context,
    });
    let left = left.into_iter().filter_map(|left| go_on(left).ok());
    let begin = |stream| begin(stream, &shared);
    let each = |accepted| serve_stream(accepted, shared.clone());
    streams::accept(listener, &shared.context, left.collect(), begin, each).await;
    if let Some(keeper) = &shared.keeper {
        keeper.settle().await;
    }
}

async fn begin(stream: UnixStream, shared: &StreamEnvironment) -> AcceptedStream {
    let kept = match &shared.keeper {
        Some(keeper) => keeper.keep(&stream).await,
        None => None,
    };
    let noted = None;
    AcceptedStream {
        stream,
        kept,
        noted,
    }
}

fn go_on(left: LeftStream) -> io::Result<AcceptedStream> {
    left.stream.set_nonblocking(true)?;
    Ok(AcceptedStream {
        stream: UnixStream::from_std(left.stream)?,
        kept: Some(left.kept),
        noted: left.noted,
    })
}

async fn serve_stream(accepted: AcceptedStream, shared: Arc<StreamEnvironment>) {
    let AcceptedStream {
        stream,
        kept,
        mut noted,
    } = accepted;
    let peer = streams::peer_of(&stream);
    // What was known at first is kept: the number may be another process's by now.
    let labels = match noted.as_mut().and_then(|noted| noted.state.labels.take()) {
        Some(labels) => Arc::new(labels),
        None => match streams::labels_of(peer, &shared.machine).await {
            Some(labels) => labels,
            None => return,
        },
    };
    let connection = Connection {
        lines: LineSplitter::new(shared.context.line_bytes_max),
        header: StreamHeader::default(),
        entries: Entries::new(shared.context.clone()),
        is_root: peer.is_some_and(|peer| peer.uid == 0),
        labels,
        kept,
        shared: &shared,
    };
    connection.run(stream, noted).await;
}

/// The next step of a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StreamStep {
    /// There are lines.
    Lines,
    /// This server stops.
    Stop,
    /// It has ended, or is none of this protocol.
    End,
}

struct Connection<'s> {
    header: StreamHeader,
    lines: LineSplitter,
    entries: Entries,
    is_root: bool,
    labels: Arc<Labels>,
    kept: Option<KeptStream>,
    shared: &'s StreamEnvironment,
}

impl Connection<'_> {
    async fn run(mut self, stream: UnixStream, noted: Option<StreamNote>) {
        let begun = match noted {
            Some(noted) => self.resume(&stream, noted),
            None => self.begin(&stream).await,
        };
        let next = match begun {
            Ok(StreamStep::Lines) => self.read(&stream).await,
            Ok(next) => next,
            Err(_) => StreamStep::End,
        };
        match (next, self.kept.take()) {
            (StreamStep::Stop, Some(kept)) => {
                kept.leave(self.lines.take_unfinished().as_ref());
                self.hand_over();
            }
            (_, kept) => {
                self.finish();
                drop(stream);
                if let Some(kept) = kept {
                    kept.end().await;
                }
            }
        }
    }

    /// Goes on where an earlier server was.
    fn resume(&mut self, stream: &UnixStream, noted: StreamNote) -> io::Result<StreamStep> {
        self.header = noted.state.header;
        if let Some(line) = &noted.unfinished {
            self.lines.resume(line);
        }
        if noted.is_header_there {
            // Unless it was taken out after all, just before the end.
            let mut buffer = [0; HEADER_BYTES_MAX];
            let seen = match peek(stream, &mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                seen => seen?,
            };
            if let Ok(Some((header, length))) = StreamHeader::read(&buffer[..seen])
                && header == self.header
            {
                take(stream, &mut buffer[..length])?;
            }
            if let Some(kept) = &self.kept {
                kept.take();
            }
        }
        Ok(StreamStep::Lines)
    }

    /// Waits for the header, notes it, and takes it out of the stream.
    async fn begin(&mut self, stream: &UnixStream) -> io::Result<StreamStep> {
        let mut shutdown = self.shared.context.shutdown.clone();
        let mut buffer = [0; HEADER_BYTES_MAX];
        loop {
            let readable = stream.ready(Interest::READABLE);
            let ready = if shutdown.is_stopping() {
                look_once_more(readable).await
            } else {
                tokio::select! {
                    ready = readable => Some(ready),
                    () = shutdown.stopping() => continue,
                }
            };
            let Some(ready) = ready.transpose()? else {
                return Ok(StreamStep::Stop);
            };
            // What is seen again is nothing new: the next of it is waited for.
            let read = stream.try_io(Interest::READABLE, || {
                let seen = peek(stream, &mut buffer)?;
                match StreamHeader::read(&buffer[..seen]) {
                    Ok(None) if seen < buffer.len() => Err(io::ErrorKind::WouldBlock.into()),
                    Ok(Some(read)) => Ok(read),
                    _ => Err(io::ErrorKind::InvalidData.into()),
                }
            });
            match read {
                Ok((header, length)) => {
                    let labels = Some(Labels::clone(&self.labels));
                    let state = State { header, labels };
                    if let Some(kept) = &self.kept {
                        kept.see(&state);
                    }
                    take(stream, &mut buffer[..length])?;
                    if let Some(kept) = &self.kept {
                        kept.take();
                    }
                    self.header = state.header;
                    return Ok(StreamStep::Lines);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if ready.is_read_closed() {
                        return Ok(StreamStep::End);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads lines; at the stop those that the kernel holds.
    async fn read(&mut self, stream: &UnixStream) -> StreamStep {
        let mut shutdown = self.shared.context.shutdown.clone();
        let mut until = None;
        let mut buffer = vec![0; READ_BYTES];
        loop {
            if shutdown.is_stopping() {
                if until.is_none() {
                    look_once_more(stream.readable()).await;
                }
                let until = *until.get_or_insert_with(|| Instant::now() + LAST_MAX);
                if Instant::now() >= until {
                    return StreamStep::Stop;
                }
            }
            match stream.try_read(&mut buffer) {
                Ok(0) => return StreamStep::End,
                Ok(bytes) => {
                    self.feed(&buffer[..bytes]);
                    // A service that prints without end must not hold up the others.
                    tokio::task::yield_now().await;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.hand_over(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return StreamStep::End,
            }
            if until.is_some() {
                return StreamStep::Stop;
            }
            tokio::select! {
                _ = stream.readable() => {}
                () = shutdown.stopping() => {}
            }
        }
    }

    fn feed(&mut self, bytes: &[u8]) {
        let mut lines = Vec::new();
        self.lines.feed(bytes, |line| lines.push(own(&line)));
        for (line, truncated_bytes) in lines {
            self.add(&line, truncated_bytes, "");
        }
        if self.entries.is_full() {
            self.hand_over();
        }
    }

    fn finish(&mut self) {
        let mut last = None;
        self.lines.finish(|line| last = Some(own(&line)));
        if let Some((line, truncated_bytes)) = last {
            self.add(&line, truncated_bytes, "eof");
        }
        self.hand_over();
    }

    fn add(&mut self, line: &[u8], truncated_bytes: usize, line_break: &str) {
        let header = &self.header;
        let (severity, message) = level(line, header);
        if message.is_empty() {
            return;
        }
        let severity = severity.to_string();
        let facility = (header.priority >> 3).to_string();
        let sent = (line.len() + truncated_bytes).to_string();
        let has_unit = self
            .labels
            .iter()
            .any(|(name, _)| &**name == "_SYSTEMD_UNIT");
        let unit = if self.is_root && !has_unit {
            &*header.unit
        } else {
            ""
        };
        let mut fields = vec![
            ("MESSAGE", message),
            ("PRIORITY", severity.as_bytes()),
            ("SYSLOG_FACILITY", facility.as_bytes()),
        ];
        let others = [
            ("SYSLOG_IDENTIFIER", &*header.identifier),
            ("_SYSTEMD_UNIT", unit),
            ("_LINE_BREAK", line_break),
            (
                TRUNCATED_FIELD,
                if truncated_bytes > 0 { &*sent } else { "" },
            ),
        ];
        let said = others.into_iter().filter(|(_, value)| !value.is_empty());
        fields.extend(said.map(|(name, value)| (name, value.as_bytes())));
        self.entries
            .add(&fields, &self.labels, truncated_bytes == 0);
    }

    fn hand_over(&mut self) {
        // Others are not kept from the queue for nothing.
        if !self.entries.is_empty() {
            let filling = &self.shared.filling;
            let mut filling = filling.lock().unwrap_or_else(PoisonError::into_inner);
            self.entries.push_to(&mut filling, clock::now());
        }
    }
}

/// Looks at what a stream holds, and leaves it there.
fn peek(stream: &UnixStream, buffer: &mut [u8]) -> io::Result<usize> {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    let (_, bytes) = rustix::net::recv(stream, buffer, flags)?;
    Ok(bytes)
}

/// Takes as much out of a stream as the buffer is long; it was seen there.
fn take(stream: &UnixStream, buffer: &mut [u8]) -> io::Result<()> {
    let mut taken = 0;
    while taken < buffer.len() {
        let (_, bytes) = rustix::net::recv(stream, &mut buffer[taken..], RecvFlags::DONTWAIT)?;
        if bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        taken += bytes;
    }
    Ok(())
}

fn own(line: &Line<'_>) -> (Vec<u8>, usize) {
    (line.bytes.to_vec(), line.truncated_bytes)
}

//! Inputs that end: standard input and files, one after the other.

use std::io::Read;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use logpond_protocol::intake::headers::FileHeaders;

use super::cutter::{Cutter, Pushed, first_batch};
use super::form::{Form, ReadOptions};
use super::labels;
use super::lines::LongLine;
use super::records::{self, Records};
use super::sender::{Origin, Outlet};
use super::{ForwardError, Settings, Stream, Totals};
use crate::input;
use crate::input::text::Encoding;

/// Bytes read at once.
const CHUNK_BYTES: usize = 256 << 10;

/// Chunks between reader and sender: enough to read on while a batch is on its way, and few, since
/// they are all memory there is.
const CHUNKS_QUEUED: usize = 4;

/// How long to wait for a chunk when no line waits; nothing happens when it is over.
const IDLE_WAIT: Duration = Duration::from_secs(3600);

/// How often it is looked whether parts of lines have waited for too long.
const HELD_WAIT: Duration = Duration::from_millis(250);

/// Forwards all inputs to their ends.
pub(super) fn run(
    settings: &Settings,
    sender: &mut dyn Outlet,
    totals: &mut Totals,
) -> Result<(), ForwardError> {
    let standard_input = [Path::new("-").to_path_buf()];
    let inputs = match settings.inputs.as_slice() {
        [] => &standard_input[..],
        inputs => inputs,
    };
    for path in inputs {
        let is_standard = path.as_os_str() == "-";
        let name = if is_standard {
            "standard input".to_string()
        } else {
            path.display().to_string()
        };
        let unreadable = |source| ForwardError::Input {
            name: name.clone(),
            source,
        };
        let (reader, file, labels) = if is_standard {
            (input::standard_text(), None, Vec::new())
        } else {
            let absolute = std::path::absolute(path).map_err(unreadable)?;
            let label = absolute.to_string_lossy().into_owned();
            let target = std::fs::canonicalize(path).ok();
            let labels = labels::of(&absolute, target.as_deref());
            (
                input::open_text(path).map_err(unreadable)?,
                Some(label),
                labels,
            )
        };
        let input = Input {
            name: &name,
            file: file.as_deref(),
            labels: &labels,
            read_options: &settings.read_options,
        };
        forward(reader, input, sender, totals)?;
    }
    Ok(())
}

/// Forwards an input that another part of the process writes.
pub(super) fn run_one(
    stream: Stream,
    settings: &Settings,
    sender: &mut dyn Outlet,
    totals: &mut Totals,
) -> Result<(), ForwardError> {
    let input = Input {
        name: stream.name,
        file: None,
        labels: &[],
        read_options: &settings.read_options,
    };
    forward(stream.reader, input, sender, totals)
}

/// An input that ends.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    /// Its name in messages.
    pub(super) name: &'a str,
    /// Its name for the records.
    pub(super) file: Option<&'a str>,
    /// What its path says of the records.
    pub(super) labels: &'a [(String, String)],
    /// How it is read.
    pub(super) read_options: &'a ReadOptions,
}

/// Forwards one input to its end. An input that fails is forwarded up to where it does.
pub(super) fn forward(
    reader: Box<dyn Read + Send>,
    input: Input<'_>,
    sender: &mut dyn Outlet,
    totals: &mut Totals,
) -> Result<(), ForwardError> {
    let (chunks, received) = sync_channel(CHUNKS_QUEUED);
    std::thread::Builder::new()
        .name("lp-reader".to_string())
        .spawn(move || read(reader, &chunks))
        .map_err(|source| ForwardError::Input {
            name: input.name.to_string(),
            source,
        })?;
    let mut batches = Batches {
        cutter: Cutter::new(Encoding::Bytes),
        waiting_since: None,
        lines: 0,
        form: Form::new(input.read_options, Instant::now()),
        headers: FileHeaders::default(),
        declared: Vec::new(),
        offset: 0,
        input,
        sender,
        totals,
    };
    match batches.take_in(&received)? {
        None => Ok(()),
        Some(source) => Err(ForwardError::Input {
            name: input.name.to_string(),
            source,
        }),
    }
}

/// The reader thread: ends with the input, or when nobody wants more.
fn read(mut reader: Box<dyn Read + Send>, chunks: &SyncSender<std::io::Result<Vec<u8>>>) {
    loop {
        let mut chunk = vec![0; CHUNK_BYTES];
        match reader.read(&mut chunk) {
            Ok(0) => return,
            Ok(bytes) => {
                chunk.truncate(bytes);
                if chunks.send(Ok(chunk)).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                let _ = chunks.send(Err(error));
                return;
            }
        }
    }
}

/// Chunks on their way to become batches.
struct Batches<'a> {
    cutter: Cutter,
    /// When the oldest whole line that was not sent came.
    waiting_since: Option<Instant>,
    /// Lines of the input before those in the cutter, or records made of them.
    lines: u64,
    form: Form,
    /// The input's own headers, and the labels that they declare for the lines that are sent next.
    headers: FileHeaders,
    declared: Vec<(String, String)>,
    /// Bytes of the input that went through the form.
    offset: u64,
    input: Input<'a>,
    sender: &'a mut dyn Outlet,
    totals: &'a mut Totals,
}

impl Batches<'_> {
    /// Sends everything up to the end of the input; gives the error that ended it, if one did.
    fn take_in(
        &mut self,
        chunks: &Receiver<std::io::Result<Vec<u8>>>,
    ) -> Result<Option<std::io::Error>, ForwardError> {
        loop {
            let wait = match self.waiting_since {
                Some(since) => self.sender.linger().saturating_sub(since.elapsed()),
                None if self.form.is_holding() => HELD_WAIT,
                None => IDLE_WAIT,
            };
            let failure = match chunks.recv_timeout(wait) {
                Ok(Ok(chunk)) => {
                    self.add(&chunk)?;
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {
                    let batch = self.cutter.take();
                    self.send(&batch)?;
                    continue;
                }
                Ok(Err(error)) => Some(error),
                Err(RecvTimeoutError::Disconnected) => None,
            };
            if let Some(long) = self.cutter.take_long() {
                self.send_long(&long)?;
            }
            let rest = self.cutter.take_rest();
            self.send(&rest)?;
            self.send_held(true)?;
            self.sender.flush().map_err(ForwardError::Send)?;
            return Ok(failure);
        }
    }

    fn add(&mut self, chunk: &[u8]) -> Result<(), ForwardError> {
        match self.cutter.push(chunk) {
            Pushed::Lines => {}
            Pushed::LongBegins => {
                let batch = self.cutter.take();
                self.send(&batch)?;
            }
            Pushed::LongEnds(long) => self.send_long(&long)?,
        }
        if self.cutter.is_full(self.sender.batch_bytes()) {
            let batch = self.cutter.take();
            self.send(&batch)?;
        } else if self.cutter.has_lines() {
            self.waiting_since.get_or_insert_with(Instant::now);
        }
        Ok(())
    }

    fn send(&mut self, mut lines: &[u8]) -> Result<(), ForwardError> {
        self.waiting_since = None;
        if !self.form.is_decided() && !lines.is_empty() {
            self.form.decide(lines);
        }
        self.declared = self.headers.declare(lines);
        while !lines.is_empty() {
            let taken = if self.form.assembler().is_some() {
                self.assemble(lines)?
            } else {
                let taken = first_batch(lines);
                let batch = &lines[..taken];
                let cut = records::cut(batch, self.totals);
                self.send_batch(Records::of(batch, &cut))?;
                taken
            };
            lines = &lines[taken..];
        }
        self.send_held(false)?;
        self.sender.flush().map_err(ForwardError::Send)
    }

    /// Sends the beginning of a line that is longer than any server takes.
    fn send_long(&mut self, long: &LongLine) -> Result<(), ForwardError> {
        if !self.form.is_decided() {
            self.form.decide(&long.head);
        }
        let batch = self
            .form
            .cut(long, self.offset, Instant::now(), self.totals);
        self.offset += long.raw_bytes;
        self.send_batch(Records::Entries(&batch))
    }

    /// Sends the records that end with the first of these lines; gives how many bytes were taken.
    fn assemble(&mut self, lines: &[u8]) -> Result<usize, ForwardError> {
        let now = Instant::now();
        let from = self.offset;
        let place = |within: usize| from + within as u64;
        let (taken, batch) = self.form.fill(lines, &place, now, self.totals);
        self.offset += taken as u64;
        self.form.say_choice(self.input.name);
        self.send_batch(Records::Entries(&batch))?;
        Ok(taken)
    }

    /// Sends what is held and has waited for too long, or all that is held.
    fn send_held(&mut self, all: bool) -> Result<(), ForwardError> {
        let batch = self.form.flush(all, Instant::now(), self.totals);
        self.send_batch(Records::Entries(&batch))
    }

    fn send_batch(&mut self, records: Records<'_>) -> Result<(), ForwardError> {
        if records.count() == 0 {
            return Ok(());
        }
        let labels = [self.input.labels, &self.declared[..]].concat();
        let origin = Origin {
            file: self.input.file,
            labels: &labels,
            first_line: self.lines + 1,
            position: None,
        };
        let taken = self
            .sender
            .send(records, &origin)
            .map_err(ForwardError::Send)?;
        let name = self.input.name;
        self.totals
            .add(&taken, records.bytes(), name, self.lines + 1);
        self.lines += records.count();
        Ok(())
    }
}

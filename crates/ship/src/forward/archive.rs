//! A compressed file that rotation has left: read once, from where its lines were sent up to.
//!
//! Its text may have any encoding that a plain file may have.
//!
//! Which file it was is told by its decompressed start, since compressing gives it another inode. Its
//! position is one in the decompressed bytes; after a restart they are decompressed again up to there.

use std::fs::Metadata;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use logpond_protocol::intake::headers::FileHeaders;
use logpond_record::cast;

use super::cutter::{BATCH_BYTES, Cutter, Pushed, first_batch};
use super::form::{Form, ReadOptions};
use super::labels;
use super::lines::{Lines, LongLine};
use super::position::{FINGERPRINT_BYTES_MAX, Fingerprint, Identity, Position};
use super::records::{self, Records};
use super::sender::{Origin, Outlet};
use super::{ForwardError, Totals};
use crate::input;
use crate::input::text::Encoding;

/// Bytes decompressed at once.
const CHUNK_BYTES: usize = 256 << 10;

/// Bytes decompressed before other files have their turn.
const TURN_BYTES: usize = 16 * BATCH_BYTES;

/// What a compressed file was when it was looked at: its length, and when it was written to.
pub(super) type Seen = (u64, i64, i64);

/// What changes when a file is written to.
pub(super) fn seen(metadata: &Metadata) -> Seen {
    (metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

/// The first bytes of a compressed file's content, as many as tell it from others.
pub(super) fn start(path: &Path) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    let content = input::open(path)?;
    content
        .take(FINGERPRINT_BYTES_MAX)
        .read_to_end(&mut start)?;
    Ok(start)
}

/// What reading has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// There may be more.
    More,
    /// All of it was sent.
    Done,
    /// It ends early: it may be that it is still being written.
    Incomplete,
}

/// A compressed file that is being read.
pub(super) struct Archive {
    /// Where it is.
    pub(super) path: PathBuf,
    /// Which file it is.
    pub(super) identity: Identity,
    /// What it was when it was opened.
    pub(super) seen: Seen,
    /// The name that its records are known by: that of the file before it was rotated, if it is known.
    name: String,
    labels: Vec<(String, String)>,
    /// The file's own headers, and the labels that they declare for the lines that are sent next.
    headers: FileHeaders,
    declared: Vec<(String, String)>,
    reader: Box<dyn Read + Send>,
    /// The first bytes of its content.
    start: Vec<u8>,
    cutter: Cutter,
    encoding: Encoding,
    form: Form,
    /// Bytes of content that went into the cutter, or were sent before.
    pushed: u64,
    /// Bytes of content that became records, or parts of some.
    offset: u64,
    /// Content that is decompressed again and was sent.
    to_skip: u64,
    /// The beginning of that content, as far as the form wants it.
    skipped: Vec<u8>,
    lines: u64,
    position: Position,
}

impl Archive {
    /// Opens a compressed file. `known` is how far its content was sent, under whatever name.
    pub(super) fn open(
        path: &Path,
        start: Vec<u8>,
        known: Option<&Position>,
        read_options: &ReadOptions,
        now: Instant,
    ) -> io::Result<Archive> {
        let metadata = std::fs::metadata(path)?;
        let identity = Identity::of(&metadata);
        let mut form = Form::new(read_options, now);
        let none = Fingerprint::of_start(&[], 0);
        let mut position = Position::start(path.to_path_buf(), identity, none);
        let mut offset = 0;
        let origin = known.map_or(path, |known| &known.path);
        if let Some(known) = known {
            position.go_on(known);
            if let Some(format) = read_options.format.or(known.format()) {
                form.resume(format, known.offset, known.held());
            }
            offset = form.reads_from(known.offset);
        }
        let (encoding, mark_bytes) = Encoding::detect(&start);
        offset = offset.max(mark_bytes as u64);
        Ok(Archive {
            path: path.to_path_buf(),
            identity,
            seen: seen(&metadata),
            name: origin.to_string_lossy().into_owned(),
            labels: labels::of(origin, position.target.as_deref()),
            headers: FileHeaders::default(),
            declared: Vec::new(),
            reader: input::open(path)?,
            start,
            cutter: Cutter::new(encoding),
            encoding,
            form,
            pushed: offset,
            offset,
            to_skip: offset,
            skipped: Vec::new(),
            lines: 0,
            position,
        })
    }

    /// How far it was sent.
    pub(super) fn position(&self) -> &Position {
        &self.position
    }

    /// Reads and sends for a while.
    pub(super) fn follow(
        &mut self,
        now: Instant,
        sender: &mut dyn Outlet,
        totals: &mut Totals,
    ) -> Result<Outcome, ForwardError> {
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut read = 0;
        while read < TURN_BYTES {
            match self.reader.read(&mut chunk) {
                Ok(0) => {
                    self.finish(now, sender, totals)?;
                    return Ok(Outcome::Done);
                }
                Ok(bytes) => {
                    read += bytes;
                    self.take_in(&chunk[..bytes], now, sender, totals)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    // What there is of it is sent; the last line may not be whole.
                    let lines = self.cutter.take();
                    self.send_lines(&lines, now, sender, totals)?;
                    return match source.kind() {
                        io::ErrorKind::UnexpectedEof => Ok(Outcome::Incomplete),
                        _ => Err(self.unreadable(source)),
                    };
                }
            }
        }
        Ok(Outcome::More)
    }

    fn unreadable(&self, source: io::Error) -> ForwardError {
        ForwardError::Input {
            name: self.path.display().to_string(),
            source,
        }
    }

    /// Sends what is left at the end. Nothing follows, so nothing is held back.
    fn finish(
        &mut self,
        now: Instant,
        sender: &mut dyn Outlet,
        totals: &mut Totals,
    ) -> Result<(), ForwardError> {
        if let Some(long) = self.cutter.take_long() {
            self.send_long(&long, now, sender, totals)?;
        }
        let rest = self.cutter.take_rest();
        self.send_lines(&rest, now, sender, totals)?;
        let held = self.form.flush(true, now, totals);
        self.position.archive = Some(self.seen.0);
        self.send(Records::Entries(&held), sender, totals)
    }

    fn take_in(
        &mut self,
        chunk: &[u8],
        now: Instant,
        sender: &mut dyn Outlet,
        totals: &mut Totals,
    ) -> Result<(), ForwardError> {
        let skipped = self.to_skip.min(chunk.len() as u64);
        self.to_skip -= skipped;
        let wanted = self.form.wants_start().saturating_sub(self.skipped.len());
        let learned = &chunk[..wanted.min(cast::to_usize(skipped))];
        self.skipped.extend_from_slice(learned);
        if skipped > 0 && self.to_skip == 0 {
            let skipped = std::mem::take(&mut self.skipped);
            let (_, mark_bytes) = Encoding::detect(&skipped);
            let lines = Lines::of(&skipped[mark_bytes..], self.encoding, 0);
            self.form.learn(&lines.text);
        }
        let chunk = &chunk[cast::to_usize(skipped)..];
        self.pushed += chunk.len() as u64;
        let is_full = match self.cutter.push(chunk) {
            Pushed::Lines => self.cutter.is_full(BATCH_BYTES),
            Pushed::LongBegins => true,
            Pushed::LongEnds(long) => {
                self.send_long(&long, now, sender, totals)?;
                self.cutter.is_full(BATCH_BYTES)
            }
        };
        if is_full {
            let lines = self.cutter.take();
            self.send_lines(&lines, now, sender, totals)?;
        }
        Ok(())
    }

    /// Sends the beginning of a line that is longer than any server takes.
    fn send_long(
        &mut self,
        long: &LongLine,
        now: Instant,
        sender: &mut dyn Outlet,
        totals: &mut Totals,
    ) -> Result<(), ForwardError> {
        if !self.form.is_decided() {
            self.form.decide(&long.head);
        }
        self.offset = self.pushed - self.cutter.bytes() - long.raw_bytes;
        let batch = self.form.cut(long, self.offset, now, totals);
        self.offset += long.raw_bytes;
        self.send(Records::Entries(&batch), sender, totals)
    }

    fn send_lines(
        &mut self,
        raw: &[u8],
        now: Instant,
        sender: &mut dyn Outlet,
        totals: &mut Totals,
    ) -> Result<(), ForwardError> {
        self.offset = self.pushed - self.cutter.bytes() - raw.len() as u64;
        let mut left = raw;
        while !left.is_empty() {
            let lines = Lines::of(left, self.encoding, self.offset);
            left = &left[cast::to_usize(lines.end() - self.offset)..];
            self.send_text(&lines, now, sender, totals)?;
        }
        Ok(())
    }

    fn send_text(
        &mut self,
        lines: &Lines<'_>,
        now: Instant,
        sender: &mut dyn Outlet,
        totals: &mut Totals,
    ) -> Result<(), ForwardError> {
        if !self.form.is_decided() {
            self.form.decide(&lines.text);
        }
        self.declared = self.headers.declare(&lines.text);
        let mut at = 0;
        while at < lines.text.len() {
            let rest = &lines.text[at..];
            if self.form.assembler().is_some() {
                let place = |within: usize| lines.place(at + within);
                let (taken, batch) = self.form.fill(rest, &place, now, totals);
                self.form.say_choice(&self.name);
                at += taken;
                self.offset = lines.place(at);
                self.send(Records::Entries(&batch), sender, totals)?;
            } else {
                let batch = &rest[..first_batch(rest)];
                at += batch.len();
                self.offset = lines.place(at);
                let cut = records::cut(batch, totals);
                self.send(Records::of(batch, &cut), sender, totals)?;
            }
        }
        Ok(())
    }

    fn send(
        &mut self,
        records: Records<'_>,
        sender: &mut dyn Outlet,
        totals: &mut Totals,
    ) -> Result<(), ForwardError> {
        let mut position = self.position.clone();
        position.offset = self.offset;
        position.set_format(self.form.format());
        position.set_held(self.form.held(), [false; 3]);
        position.fingerprint = Fingerprint::of_start(&self.start, self.offset);
        if records.count() > 0 {
            let labels = [&self.labels[..], &self.declared[..]].concat();
            let origin = Origin {
                first_line: 0,
                file: Some(&self.name),
                labels: &labels,
                position: Some(&position),
            };
            let taken = sender.send(records, &origin).map_err(ForwardError::Send)?;
            totals.add(&taken, records.bytes(), &self.name, self.lines + 1);
            self.lines += records.count();
        }
        // Decompressing again what was held by an earlier run is no step back.
        if records.count() > 0 || position.offset >= self.position.offset {
            self.position = position;
        }
        Ok(())
    }
}

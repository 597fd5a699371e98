//! One file that is followed.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use logpond_protocol::intake::assembly::Held;
use logpond_protocol::intake::headers::FileHeaders;
use logpond_record::limits::LINE_BYTES_MAX;
use logpond_record::{Batch, cast};

use super::archive::{Seen, seen};
use super::cutter::{BATCH_BYTES, first_batch};
use super::form::{DETECTION_BYTES, Form, ReadOptions};
use super::labels;
use super::lines::{Lines, LongLine};
use super::position::{Fingerprint, Identity, Position, hash_before};
use super::records::{self, Records};
use super::sender::{Origin, Outlet};
use super::{ForwardError, Totals};
use crate::input;
use crate::input::text::{self, Encoding, HOLE_BYTES_MIN, SAMPLE_BYTES};
use logpond_host::terminal::note;

/// Batches sent of one file before the next file has its turn.
const BATCHES_IN_TURN: usize = 16;

/// A file that is followed by its handle, so that it may be renamed or removed.
pub(super) struct WatchedFile {
    /// The name it is known by to the server: its own, before any rotation.
    pub(super) path: PathBuf,
    /// Which file it is.
    pub(super) identity: Identity,
    file: File,
    /// What the path and what is beside it say of the records.
    labels: Vec<(String, String)>,
    /// The file's own headers, and the labels that they declare for the lines that are sent next.
    headers: FileHeaders,
    declared: Vec<(String, String)>,
    form: Form,
    /// How its characters are bytes, once there are some.
    encoding: Option<Encoding>,
    /// How far it is read.
    offset: u64,
    /// What was acknowledged, or refused for good.
    position: Position,
    /// Streams whose unfinished lines begin in the file before, which is read again for them.
    awaits: [bool; 3],
    /// What is held here and was given to the file behind this one.
    lent: Held,
    /// Length and change time at which no whole line was left to send; nothing is read until they
    /// change.
    idle_at: Option<Seen>,
    /// The line that begins at `offset`, if it is longer than any server takes and its end was not read.
    long: Option<LongLine>,
    /// Lines, or records made of them, since reading began.
    lines: u64,
    /// When the file was last seen to change, for files that lost their name.
    pub(super) changed: Instant,
}

impl WatchedFile {
    /// Opens a file; it is read from its remembered position, if it is the same file still.
    pub(super) fn open(
        path: &Path,
        reading: &ReadOptions,
        remembered: &[Position],
        now: Instant,
    ) -> io::Result<WatchedFile> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let identity = Identity::of(&metadata);
        let start = Fingerprint::of(&file, 0)?;
        let mut position = Position::start(path.to_path_buf(), identity, start);
        let mut form = Form::new(reading, now);
        let mut offset = 0;
        if let Some(known) = known(path, &file, identity, remembered)? {
            let start = std::mem::replace(&mut position, known);
            (position.path, position.target) = (start.path, start.target);
            offset = position.offset;
            position.fingerprint = Fingerprint::of(&file, offset)?;
            if let Some(format) = reading.format.or(position.format()) {
                form.resume(format, offset, position.held());
            }
            offset = form.reads_from(offset);
            form.learn(&start_text(&file, form.wants_start())?);
        }
        let mut headers = FileHeaders::default();
        if offset > 0 {
            headers.declare(&start_text(
                &file,
                DETECTION_BYTES.min(cast::to_usize(offset)),
            )?);
        }
        Ok(WatchedFile {
            headers,
            declared: Vec::new(),
            labels: labels::of(path, position.target.as_deref()),
            path: path.to_path_buf(),
            identity,
            file,
            form,
            encoding: None,
            offset,
            position,
            awaits: [false; 3],
            lent: [None; 3],
            idle_at: None,
            long: None,
            lines: 0,
            changed: now,
        })
    }

    /// The first bytes of the file, as many as tell whether it is compressed.
    pub(super) fn start(&self) -> io::Result<Vec<u8>> {
        let mut start = vec![0; input::START_BYTES];
        let bytes = self.file.read_at(&mut start, 0)?;
        start.truncate(bytes);
        Ok(start)
    }

    /// Whether the content of a compressed file that starts like this is of this file.
    pub(super) fn starts_like(&self, start: &[u8]) -> bool {
        let mut own = vec![0; start.len()];
        let filled = read_fully_at(&self.file, &mut own, 0);
        filled.is_ok_and(|filled| filled == start.len()) && own == start
    }

    /// Gives it the name that it had before it was renamed.
    pub(super) fn rename(&mut self, of: &Position) {
        self.path = of.path.clone();
        self.position.path = of.path.clone();
        self.position.target = of.target.clone();
        self.labels = labels::of(&of.path, of.target.as_deref());
    }

    /// How far it was sent.
    pub(super) fn position(&self) -> &Position {
        &self.position
    }

    /// Whether parts of lines wait for their rest, or will once they are read again.
    pub(super) fn is_holding(&self) -> bool {
        self.form.is_holding() || self.offset < self.position.offset
    }

    /// Whether there is anything in it.
    pub(super) fn has_bytes(&self) -> bool {
        self.file
            .metadata()
            .is_ok_and(|metadata| metadata.len() > 0)
    }

    /// Whether all whole lines in it were read.
    pub(super) fn is_read(&self) -> bool {
        let metadata = self.file.metadata();
        metadata.is_ok_and(|metadata| self.idle_at == Some(seen(&metadata)))
    }

    /// Whether lines that the file before this one has left unfinished are to be gone on with: nothing
    /// of this one was read yet, or an earlier run had begun with that.
    pub(super) fn awaits(&self) -> bool {
        let is_new = self.offset == 0 && self.position.offset == 0;
        is_new || self.awaits != [false; 3]
    }

    /// Nothing of the file before this one is gone on with.
    pub(super) fn await_nothing(&mut self) {
        self.awaits = [false; 3];
    }

    /// Goes on with lines that the file before this one has left unfinished: its name is this one's
    /// now, and nothing follows in it. What is held in it still counts as held until it was sent with
    /// this one.
    pub(super) fn carry_on(&mut self, before: &mut WatchedFile) {
        if let (false, Some(format)) = (self.form.is_decided(), before.form.format()) {
            self.form.resume(format, 0, [None; 3]);
        }
        let streams = match self.position.offset {
            0 => [true; 3],
            _ => self.awaits,
        };
        self.await_nothing();
        if let (Some(own), Some(other)) = (self.form.assembler(), before.form.assembler())
            && own.format() == other.format()
        {
            let held = other.held();
            own.carry_on(other, streams);
            for (at, from) in other.held().into_iter().enumerate() {
                before.lent[at] = held[at].filter(|_| from.is_none()).or(before.lent[at]);
            }
        }
    }

    /// Goes back to what an earlier run held of this file and the file behind it, `next`, has not gone
    /// on with yet; the rest was sent.
    pub(super) fn held_for(&mut self, next: &mut WatchedFile) {
        let carried = next.position.carried();
        next.awaits = carried;
        let mut held = self.position.held();
        for (from, is_carried) in held.iter_mut().zip(carried) {
            *from = from.filter(|_| is_carried);
        }
        self.position.set_held(held, [false; 3]);
        if let Some(format) = self.form.format() {
            self.form.resume(format, self.position.offset, held);
        }
        self.offset = self.form.reads_from(self.position.offset);
        // Without its start the file is read all the same; its lines decide again.
        let start = start_text(&self.file, self.form.wants_start());
        self.form.learn(&start.unwrap_or_default());
    }

    /// The position once everything that was read and is not held was sent.
    fn position_now(&mut self) -> Position {
        let mut position = self.position.clone();
        position.offset = self.offset;
        position.set_format(self.form.format());
        let mut held = self.form.held();
        for (from, lent) in held.iter_mut().zip(self.lent) {
            *from = lent.or(*from);
        }
        position.set_held(held, self.form.carried());
        if !position.fingerprint.is_whole() {
            // The file may have been emptied meanwhile; the next turn sees to that.
            if let Ok(fingerprint) = Fingerprint::of(&self.file, self.offset) {
                position.fingerprint = fingerprint;
            }
        }
        position.near = hash_before(&self.file, self.offset).ok();
        position
    }

    /// Sends what is new, up to the last whole line or, `to_the_end`, all of it. True if anything
    /// was read or sent.
    pub(super) fn follow(
        &mut self,
        to_the_end: bool,
        now: Instant,
        sender: &mut dyn Outlet,
        totals: &mut Totals,
    ) -> Result<bool, ForwardError> {
        let mut moved = false;
        for _ in 0..BATCHES_IN_TURN {
            let metadata = self.file.metadata().map_err(|e| self.unreadable(e))?;
            let seen = seen(&metadata);
            if self.idle_at == Some(seen) && !to_the_end {
                break;
            }
            if !moved {
                self.notice_truncation(seen.0, now, sender, totals)?;
                self.changed = if to_the_end { self.changed } else { now };
            }
            let bytes = self
                .next_lines(seen.0, to_the_end)
                .map_err(|e| self.unreadable(e))?;
            if bytes.is_empty() {
                self.idle_at = Some(seen);
                if let Some(long) = self.long.take_if(|_| to_the_end) {
                    self.take_long(&long, now, sender, totals)?;
                    moved = true;
                }
                break;
            }
            let is_all = to_the_end && self.is_read_up_to(bytes.len(), seen.0);
            self.take_in(&bytes, is_all, now, sender, totals)?;
            moved = true;
        }
        let is_all = to_the_end && !moved;
        moved |= self.flush(is_all, now, sender, totals)?;
        Ok(moved)
    }

    /// Starts anew if the file was emptied, or emptied and filled with something else.
    fn notice_truncation(
        &mut self,
        length: u64,
        now: Instant,
        sender: &mut dyn Outlet,
        totals: &mut Totals,
    ) -> Result<(), ForwardError> {
        let is_same = length >= self.offset
            && self
                .position
                .is_in(&self.file)
                .map_err(|e| self.unreadable(e))?;
        if is_same {
            return Ok(());
        }
        note(&format!(
            "logpond: {} was truncated, reading from its start",
            self.path.display()
        ));
        self.offset = 0;
        self.encoding = None;
        self.idle_at = None;
        self.long = None;
        self.lines = 0;
        let start = Fingerprint::of(&self.file, 0).map_err(|e| self.unreadable(e))?;
        self.position.fingerprint = start;
        // What was held of what is gone is all that there will be of it.
        self.flush(true, now, sender, totals)?;
        self.form.reset();
        self.headers = FileHeaders::default();
        self.lent = [None; 3];
        self.position = self.position_now();
        Ok(())
    }

    /// True if nothing is behind so many bytes that were read.
    fn is_read_up_to(&self, bytes: usize, length: u64) -> bool {
        let before = self.offset + self.long.as_ref().map_or(0, |line| line.raw_bytes);
        before + bytes as u64 >= length
    }

    /// The next whole lines, behind the byte order mark and behind a hole: as many as one batch takes.
    fn next_lines(&mut self, length: u64, to_the_end: bool) -> io::Result<Vec<u8>> {
        let Some(encoding) = self.encoding(to_the_end)? else {
            return Ok(Vec::new());
        };
        if encoding == Encoding::Bytes {
            self.skip_hole(length)?;
        }
        let mut bytes = self.read(encoding, length, to_the_end)?;
        if encoding == Encoding::Bytes {
            bytes.truncate(first_batch(&bytes));
            bytes.truncate(before_hole(&bytes));
        }
        Ok(bytes)
    }

    /// Recognises the encoding, once enough of the file is there, and passes its byte order mark.
    fn encoding(&mut self, to_the_end: bool) -> io::Result<Option<Encoding>> {
        if self.encoding.is_none() {
            let mut start = vec![0; SAMPLE_BYTES];
            let filled = read_fully_at(&self.file, &mut start, 0)?;
            start.truncate(filled);
            if start.is_empty() || Encoding::may_be_mark(&start) && !to_the_end {
                return Ok(None);
            }
            let (encoding, mark_bytes) = Encoding::detect(&start);
            self.encoding = Some(encoding);
            self.offset = self.offset.max(mark_bytes as u64);
        }
        Ok(self.encoding)
    }

    /// Passes NUL bytes at the beginning of a line, if they are a hole and something is behind them.
    fn skip_hole(&mut self, length: u64) -> io::Result<()> {
        if self.long.is_some() {
            return Ok(());
        }
        let mut chunk = vec![0; 1];
        let mut nuls = 0;
        while self.offset + nuls < length {
            let filled = read_fully_at(&self.file, &mut chunk, self.offset + nuls)?;
            let run = chunk[..filled]
                .iter()
                .take_while(|byte| **byte == 0)
                .count();
            nuls += run as u64;
            if run < filled && nuls >= HOLE_BYTES_MIN {
                text::say_hole(&self.path.to_string_lossy(), nuls);
                self.offset += nuls;
            }
            if run < filled || filled == 0 {
                break;
            }
            // Nearly all lines begin with another byte.
            chunk.resize(BATCH_BYTES, 0);
        }
        Ok(())
    }

    /// The next whole lines: about a batch of them, or one line that is longer.
    ///
    /// Of a line beyond the hard limit it gives one piece after the other.
    fn read(&self, encoding: Encoding, length: u64, to_the_end: bool) -> io::Result<Vec<u8>> {
        let offset = self.offset + self.long.as_ref().map_or(0, |line| line.raw_bytes);
        let left = length.saturating_sub(offset);
        let mut wanted = BATCH_BYTES as u64;
        loop {
            let mut bytes = vec![0; cast::to_usize(wanted.min(left))];
            let filled = read_fully_at(&self.file, &mut bytes, offset)?;
            bytes.truncate(filled);
            let is_all = filled as u64 == left;
            match encoding.whole_lines(&bytes) {
                _ if self.long.is_some() => {
                    let part = filled - encoding.unfinished(&bytes);
                    bytes.truncate(encoding.first_line(&bytes).unwrap_or(part));
                }
                _ if is_all && to_the_end => {}
                Some(end) => bytes.truncate(end),
                None if filled > LINE_BYTES_MAX => {
                    bytes.truncate(filled - encoding.unfinished(&bytes));
                }
                None if is_all => bytes.clear(),
                None if (filled as u64) < wanted => bytes.clear(),
                None => {
                    wanted = (wanted * 4).min(LINE_BYTES_MAX as u64 + 8);
                    continue;
                }
            }
            return Ok(bytes);
        }
    }

    /// Takes whole lines in: as records, or on the way to be some.
    fn take_in(
        &mut self,
        bytes: &[u8],
        is_all: bool,
        now: Instant,
        sender: &mut dyn Outlet,
        totals: &mut Totals,
    ) -> Result<(), ForwardError> {
        let encoding = self.encoding.unwrap_or(Encoding::Bytes);
        let is_ended = encoding.whole_lines(bytes) == Some(bytes.len());
        let is_one = || {
            let end = encoding.first_line(bytes);
            end.is_none_or(|end| end == bytes.len())
        };
        if let Some(long) = &mut self.long {
            long.go_on(bytes, encoding);
        } else if bytes.len() > LINE_BYTES_MAX && is_one() {
            self.long = Some(LongLine::of(bytes, encoding));
        }
        if let Some(long) = self.long.take() {
            // Its end may be what is still to be read, so it is read anew after a restart.
            self.idle_at = None;
            if !is_ended && !is_all {
                self.long = Some(long);
                return Ok(());
            }
            return self.take_long(&long, now, sender, totals);
        }
        let mut left = bytes;
        while !left.is_empty() {
            let lines = Lines::of(left, encoding, self.offset);
            left = &left[cast::to_usize(lines.end() - self.offset)..];
            self.take_lines(&lines, now, sender, totals)?;
        }
        Ok(())
    }

    /// Takes a line in that is longer than any server takes: its beginning.
    fn take_long(
        &mut self,
        long: &LongLine,
        now: Instant,
        sender: &mut dyn Outlet,
        totals: &mut Totals,
    ) -> Result<(), ForwardError> {
        if !self.form.is_decided() {
            self.decide().map_err(|e| self.unreadable(e))?;
        }
        let batch = self.form.cut(long, self.offset, now, totals);
        self.offset += long.raw_bytes;
        self.send(Records::Entries(&batch), sender, totals)
    }

    /// Takes lines of UTF-8 in.
    fn take_lines(
        &mut self,
        lines: &Lines<'_>,
        now: Instant,
        sender: &mut dyn Outlet,
        totals: &mut Totals,
    ) -> Result<(), ForwardError> {
        if !self.form.is_decided() {
            self.decide().map_err(|e| self.unreadable(e))?;
        }
        self.declared = self.headers.declare(&lines.text);
        if self.form.assembler().is_none() {
            self.offset = lines.end();
            let cut = records::cut(&lines.text, totals);
            return self.send(Records::of(&lines.text, &cut), sender, totals);
        }
        let mut at = 0;
        while at < lines.text.len() {
            let rest = &lines.text[at..];
            let place = |within: usize| lines.place(at + within);
            let (taken, batch) = self.form.fill(rest, &place, now, totals);
            self.form.say_choice(&self.path.to_string_lossy());
            at += taken;
            self.offset = lines.place(at);
            self.send(Records::Entries(&batch), sender, totals)?;
        }
        Ok(())
    }

    /// Sends what is held and has waited for too long, or all that is held. True if there was any.
    fn flush(
        &mut self,
        all: bool,
        now: Instant,
        sender: &mut dyn Outlet,
        totals: &mut Totals,
    ) -> Result<bool, ForwardError> {
        let batch: Batch = self.form.flush(all, now, totals);
        if batch.is_empty() {
            return Ok(false);
        }
        self.send(Records::Entries(&batch), sender, totals)?;
        Ok(true)
    }

    /// Recognises the format by the start of the file.
    fn decide(&mut self) -> io::Result<()> {
        self.form.decide(&start_text(&self.file, DETECTION_BYTES)?);
        Ok(())
    }

    /// Sends the records of what was read since the last time, if there are any.
    fn send(
        &mut self,
        records: Records<'_>,
        sender: &mut dyn Outlet,
        totals: &mut Totals,
    ) -> Result<(), ForwardError> {
        let position = self.position_now();
        self.idle_at = None;
        if records.count() > 0 {
            let name = self.path.to_string_lossy().into_owned();
            let labels = [&self.labels[..], &self.declared[..]].concat();
            let origin = Origin {
                first_line: 0,
                file: Some(&name),
                labels: &labels,
                position: Some(&position),
            };
            let taken = sender.send(records, &origin).map_err(ForwardError::Send)?;
            totals.add(&taken, records.bytes(), &name, self.lines + 1);
            self.lines += records.count();
        }
        // Reading again what was held by an earlier run is no step back.
        if records.count() > 0 || position.offset >= self.position.offset {
            self.position = position;
        }
        Ok(())
    }

    fn unreadable(&self, source: io::Error) -> ForwardError {
        ForwardError::Input {
            name: self.path.display().to_string(),
            source,
        }
    }
}

/// The farthest position that is remembered of a file, if it is the same file still.
fn known(
    path: &Path,
    file: &File,
    identity: Identity,
    remembered: &[Position],
) -> io::Result<Option<Position>> {
    let mut farthest: Option<&Position> = None;
    let mut is_other = false;
    for position in remembered.iter().filter(|p| p.identity == identity) {
        if !position.is_in(file)? {
            is_other |= position.fingerprint.matches(file)?;
            continue;
        }
        if farthest.is_none_or(|known| known.progress() <= position.progress()) {
            farthest = Some(position);
        }
    }
    if farthest.is_none() && is_other {
        note(&format!(
            "logpond: {} begins as before and goes on otherwise: it was truncated and filled again, \
             reading from its start",
            path.display()
        ));
    }
    Ok(farthest.cloned())
}

/// The bytes of the lines before a hole, which is skipped once it is what comes next.
fn before_hole(bytes: &[u8]) -> usize {
    let mut start = vec![b'\n'];
    start.resize(1 + cast::to_usize(HOLE_BYTES_MIN), 0);
    let found = memchr::memmem::find(bytes, &start);
    found.map_or(bytes.len(), |at| at + 1)
}

/// The text of so many bytes at the start of a file, as UTF-8, without a byte order mark.
fn start_text(file: &File, bytes: usize) -> io::Result<Vec<u8>> {
    let mut start = vec![0; bytes];
    let filled = read_fully_at(file, &mut start, 0)?;
    let (encoding, mark_bytes) = Encoding::detect(&start[..filled]);
    Ok(Lines::of(&start[mark_bytes..filled], encoding, 0)
        .text
        .into_owned())
}

/// Fills the buffer as far as the file reaches.
fn read_fully_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

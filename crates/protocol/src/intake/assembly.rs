//! Records from the lines of a file: unwrapped as its format says, long lines joined again.
//!
//! ```text
//! line of the file ─▶ docker, cri ─▶ parts ─▶ joiner, for each stream ─▶ record
//! ```
//!
//! Invariants:
//! - How a stream's parts lie between those of others, and at which of them reading is interrupted and
//!   resumed, does not change its records.
//! - A line that does not fit the format is a record as it is, and counted.
//! - What is behind [`Assembler::held`] is all that must be read again; each byte before was given out.
//! - Memory is at most a line for each stream.

use std::borrow::Cow;
use std::time::Duration;

use logpond_record::limits::{LINE_BYTES_DEFAULT, LINE_BYTES_MAX};
use logpond_record::{Batch, EntryKind, Timestamp, Value};

use super::container::{Format, Part, Stream};
use super::joiner::{Head, Joiner};
use super::lines::character_end;
use super::{cri, docker};

/// How long the rest of a line is waited for. Runtimes write the parts of a line as they read them, so
/// the rest of a long line comes at once, unless its process is held up: starved, stopped, at a full
/// disk. What has no end after this is a prompt or a progress bar, which somebody wants to see.
pub const PART_WAIT: Duration = Duration::from_secs(10);

/// The field that marks a record that was cut; its value is the length that it had.
const TRUNCATED_FIELD: &str = "_truncated_bytes";

/// How lines become records.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What the lines are.
    pub format: Format,
    /// Bytes of a record's line that are kept, at most [`LINE_BYTES_MAX`].
    pub line_bytes_max: usize,
}

impl Settings {
    /// The usual ones for a format.
    pub fn of(format: Format) -> Settings {
        Settings {
            format,
            line_bytes_max: LINE_BYTES_DEFAULT,
        }
    }
}

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assembled<'a> {
    /// Where it was written to.
    pub stream: Stream,
    /// The time that the runtime gave its first part.
    pub time: Option<Timestamp>,
    /// What the runtime was told to add.
    pub attributes: &'a [(Cow<'a, str>, Cow<'a, str>)],
    /// Its line, or what is kept of it.
    pub line: &'a [u8],
    /// Bytes that were cut off.
    pub truncated_bytes: usize,
}

impl Assembled<'_> {
    /// Adds it to a batch of kind [`EntryKind::Enveloped`]. Attributes that are more than a record has
    /// fields, or whose name is too long for one, are left out.
    pub fn push_to(&self, batch: &mut Batch) {
        let attributes = self.attributes.iter();
        let mut fields: Vec<(&str, Value<'_>)> = attributes
            .map(|(name, value)| (&**name, Value::Str(Cow::Borrowed(value))))
            .collect();
        if self.truncated_bytes > 0 {
            let bytes = (self.line.len() + self.truncated_bytes).to_string();
            fields.insert(0, (TRUNCATED_FIELD, Value::Str(bytes.into())));
        }
        if let Some(name) = self.stream.name() {
            fields.insert(0, ("stream", Value::Str(name.into())));
        }
        let fields = fields.iter().map(|(name, value)| (*name, value));
        batch.push_enveloped(EntryKind::Line, self.time, fields, self.line);
    }
}

/// Where the parts begin that were read and not given out, for each of [`Stream::ALL`].
pub type Held = [Option<u64>; 3];

/// What happened to lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines that did not fit the format and were kept as they are.
    pub unfit: u64,
    /// Records that were too long and were cut.
    pub cut: u64,
    /// Lines whose end did not come.
    pub unfinished: u64,
}

#[derive(Debug, Default)]
struct Source {
    /// Parts that begin before were given out by an earlier reading.
    from: u64,
    joiner: Joiner,
    /// When the last part came.
    changed: Duration,
}

/// Makes records of the lines of one file.
///
/// Times that are passed in are of any clock that does not go back.
#[derive(Debug)]
pub struct Assembler {
    settings: Settings,
    /// Everything before, but for what was held then, was given out by an earlier reading.
    resumed_at: u64,
    sources: [Source; 3],
    counts: Counts,
}

impl Assembler {
    /// An assembler for a file that is read from its start.
    pub fn new(settings: Settings) -> Assembler {
        Assembler::resume(settings, 0, [None; 3])
    }

    /// An assembler for a file that was read up to `offset` before, with this held back then. It wants
    /// the lines from [`Assembler::reads_from`] on.
    pub fn resume(settings: Settings, offset: u64, held: Held) -> Assembler {
        let line_bytes_max = settings.line_bytes_max.clamp(1, LINE_BYTES_MAX);
        Assembler {
            settings: Settings {
                line_bytes_max,
                ..settings
            },
            resumed_at: offset,
            sources: held.map(|from| Source {
                from: from.unwrap_or(offset).min(offset),
                ..Source::default()
            }),
            counts: Counts::default(),
        }
    }

    /// What the lines are.
    pub fn format(&self) -> Format {
        self.settings.format
    }

    /// Where lines are wanted from after [`Assembler::resume`].
    pub fn reads_from(&self) -> u64 {
        let each = self.sources.iter().map(|source| source.from);
        each.min().unwrap_or(0)
    }

    /// Takes the line, without its LF, that begins at `start`; gives each record that ends with it.
    pub fn push(
        &mut self,
        line: &[u8],
        start: u64,
        now: Duration,
        take: &mut impl FnMut(Assembled<'_>),
    ) {
        let part = match self.settings.format {
            Format::Lines => Some(Part::of_line(line)),
            Format::Docker => docker::parse(line),
            Format::Cri => cri::parse(line),
        };
        let Some(part) = part else {
            return self.give_unfit(line, start, take);
        };
        let source = &mut self.sources[part.stream as usize];
        if start < source.from {
            return;
        }
        source.changed = now;
        if source.joiner.is_strange(part.time, PART_WAIT) {
            self.counts.unfinished += 1;
            self.give_joined(part.stream, take);
        }
        let source = &mut self.sources[part.stream as usize];
        if part.is_last && source.joiner.start().is_none() {
            return self.give_whole(part, start, take);
        }
        let stream = part.stream;
        if source.joiner.add(part, start, self.settings.line_bytes_max) {
            self.give_joined(stream, take);
        }
    }

    /// Where what is held begins.
    pub fn held(&self) -> Held {
        [0, 1, 2].map(|at: usize| self.sources[at].joiner.start())
    }

    /// Whether anything is held.
    pub fn is_holding(&self) -> bool {
        self.held().iter().any(Option::is_some)
    }

    /// For each stream, whether its unfinished line began in the file before.
    pub fn carried(&self) -> [bool; 3] {
        [0, 1, 2].map(|at: usize| self.sources[at].joiner.is_carried())
    }

    /// Takes over what is held of these streams of the file before this one, of which nothing was read
    /// yet: a runtime that begins a new file may do so in the middle of a line.
    pub fn carry_on(&mut self, before: &mut Assembler, streams: [bool; 3]) {
        let sources = self.sources.iter_mut().zip(&mut before.sources);
        for ((source, before), is_carried) in sources.zip(streams) {
            if is_carried && before.joiner.start().is_some() {
                source.joiner = std::mem::take(&mut before.joiner);
                source.joiner.carry();
                source.changed = before.changed;
            }
        }
    }

    /// Gives what has waited for its rest for too long.
    pub fn flush_due(&mut self, now: Duration, take: &mut impl FnMut(Assembled<'_>)) {
        for stream in Stream::ALL {
            let source = &self.sources[stream as usize];
            let is_due = now.saturating_sub(source.changed) >= PART_WAIT;
            if is_due && source.joiner.start().is_some() {
                self.counts.unfinished += 1;
                self.give_joined(stream, take);
            }
        }
    }

    /// Gives all that is held: nothing follows.
    pub fn finish(&mut self, take: &mut impl FnMut(Assembled<'_>)) {
        self.flush_due(Duration::MAX, take);
    }

    /// What happened to lines since this was asked last.
    pub fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }

    /// Gives a line that is none of the format. Such a line is never held.
    fn give_unfit(&mut self, line: &[u8], start: u64, take: &mut impl FnMut(Assembled<'_>)) {
        if start >= self.resumed_at {
            self.counts.unfit += 1;
            self.give_whole(Part::of_line(line), start, take);
        }
    }

    fn give_whole(&mut self, part: Part<'_>, start: u64, take: &mut impl FnMut(Assembled<'_>)) {
        let head = Head {
            start,
            time: part.time,
            attributes: part.attributes,
        };
        let bytes = part.text.len();
        let kept = match bytes > self.settings.line_bytes_max {
            true => character_end(&part.text[..self.settings.line_bytes_max]),
            false => bytes,
        };
        self.give(part.stream, &head, &part.text[..kept], bytes - kept, take);
    }

    fn give_joined(&mut self, stream: Stream, take: &mut impl FnMut(Assembled<'_>)) {
        let mut joiner = std::mem::take(&mut self.sources[stream as usize].joiner);
        joiner.finish(|head, line, cut_bytes| self.give(stream, &head, line, cut_bytes, take));
        self.sources[stream as usize].joiner = joiner;
    }

    fn give(
        &mut self,
        stream: Stream,
        head: &Head<'_>,
        line: &[u8],
        truncated_bytes: usize,
        take: &mut impl FnMut(Assembled<'_>),
    ) {
        self.counts.cut += u64::from(truncated_bytes > 0);
        take(Assembled {
            stream,
            time: head.time,
            attributes: &head.attributes,
            line,
            truncated_bytes,
        });
    }
}

#[cfg(test)]
mod tests;

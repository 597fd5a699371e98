//! Records from the lines of a file: unwrapped as its format says, long lines joined again, and lines
//! that a rule takes for one record put together.
//!
//! ```text
//! line of the file ─▶ docker, cri ─▶ part ─▶ joiner ─▶ line ─▶ group ─▶ record
//!                                            └─ for each stream ─┘
//! ```
//!
//! Invariants:
//! - How a stream's parts lie between those of others, and at which of them reading is interrupted and
//!   resumed, does not change its records.
//! - A line that does not fit the format is a record as it is, and counted.
//! - What is behind [`Assembler::held`] is all that must be read again; each byte before was given out.
//! - Memory is at most a line and a record for each stream.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Duration;

use logpond_record::limits::{LINE_BYTES_DEFAULT, LINE_BYTES_MAX, TRUNCATED_FIELD};
use logpond_record::{Batch, EntryKind, Timestamp, Value, cast};

use super::container::{Format, Part, Stream};
use super::group::{Group, HeldLine, LineOutcome};
use super::joiner::{Head, Joiner};
use super::lines::character_end;
use super::multiline::{Choice, EVIDENCE_BYTES_MAX, Evidence, Rule};
use super::{cri, docker};

/// How long the rest of a line is waited for. Runtimes write the parts of a line as they read them, so
/// the rest of a long line comes at once, unless its process is held up: starved, stopped, at a full
/// disk. What has no end after this is a prompt or a progress bar, which somebody wants to see.
pub const PART_WAIT: Duration = Duration::from_secs(10);

/// How long more lines of a record are waited for, unless told otherwise: programs write the lines of
/// a trace at once.
pub const RECORD_WAIT: Duration = Duration::from_secs(1);

/// How lines become records.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What the lines are.
    pub format: Format,
    /// Bytes of a record's line that are kept, at most [`LINE_BYTES_MAX`].
    pub line_bytes_max: usize,
    /// Which lines belong together, if any do.
    pub rule: Option<Rule>,
    /// How long more lines of a record are waited for.
    pub record_wait: Duration,
}

impl Settings {
    /// The usual ones for a format.
    pub fn of(format: Format) -> Settings {
        Settings {
            format,
            line_bytes_max: LINE_BYTES_DEFAULT,
            rule: None,
            record_wait: RECORD_WAIT,
        }
    }
}

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssembledRecord<'a> {
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

impl AssembledRecord<'_> {
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
    /// Records that had more lines or bytes than a record may have, and became several.
    pub split: u64,
}

#[derive(Debug, Default)]
struct Source {
    /// Parts that begin before were given out by an earlier reading.
    from: u64,
    joiner: Joiner,
    group: Group,
    /// The evidence of its lines in this file.
    evidence: Evidence,
    /// The same before the last line of which a part was read.
    evidence_before: Evidence,
    /// True behind a part of a line that is not the last one, of all that was read in this file.
    is_within: bool,
    /// When the last part came.
    changed: Duration,
    /// The time that it has.
    time: Option<Timestamp>,
}

impl Source {
    /// What is known of the record that is held.
    fn head(&self) -> Option<&Head<'static>> {
        self.group.head().or(self.joiner.head())
    }

    /// Whether a part of this time cannot go on with what is held of the file before: too much time
    /// lies between, so that a file in between was not seen.
    fn is_strange(&self, time: Option<Timestamp>) -> bool {
        let is_carried = self.head().is_some_and(|head| head.is_carried);
        let (Some(last), Some(time)) = (self.time, time) else {
            return false;
        };
        is_carried && time.0.saturating_sub(last.0) > cast::low_i64(PART_WAIT.as_nanos())
    }
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
        take: &mut impl FnMut(AssembledRecord<'_>),
    ) {
        let Some(part) = self.part(line) else {
            return self.give_unfit(line, start, take);
        };
        let evidence = self.learn_part(&part, start);
        let source = &mut self.sources[part.stream as usize];
        if start < source.from {
            return;
        }
        source.changed = now;
        if source.is_strange(part.time) {
            self.give_held(part.stream, take);
        }
        let source = &mut self.sources[part.stream as usize];
        source.time = part.time;
        if part.is_last && source.joiner.head().is_none() {
            return self.give_whole(part, start, &evidence, take);
        }
        let stream = part.stream;
        if source.joiner.add(part, start, self.settings.line_bytes_max) {
            self.give_joined(stream, &evidence, take);
        }
    }

    /// Takes the beginning of a line that was too long to be read whole, and the number of bytes behind that. No format
    /// of a runtime has such lines.
    pub fn push_cut(
        &mut self,
        line: &[u8],
        cut_bytes: usize,
        start: u64,
        now: Duration,
        take: &mut impl FnMut(AssembledRecord<'_>),
    ) {
        let is_unfit = self.settings.format != Format::Lines;
        let source = &mut self.sources[Stream::Unnamed as usize];
        if start < source.from.max(if is_unfit { self.resumed_at } else { 0 }) {
            return;
        }
        self.counts.unfit += u64::from(is_unfit);
        source.changed = now;
        let kept = self.kept_of(line);
        let cut_bytes = cut_bytes.saturating_add(line.len() - kept);
        let head = Head {
            start,
            ..Head::default()
        };
        if is_unfit {
            return self.give(Stream::Unnamed, &head, &line[..kept], cut_bytes, take);
        }
        let evidence = self.sources[Stream::Unnamed as usize].evidence;
        let line = (head, &line[..kept], cut_bytes);
        self.add_line(Stream::Unnamed, line, &evidence, take);
    }

    /// Takes the lines that the file begins with into the evidence for the rule, after
    /// [`Assembler::resume`]: those before [`Assembler::reads_from`], at most [`EVIDENCE_BYTES_MAX`].
    pub fn learn(&mut self, text: &[u8]) {
        let mut start = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            if start >= self.reads_from() || line.last() != Some(&b'\n') {
                break;
            }
            if let Some(part) = self.part(&line[..line.len() - 1]) {
                self.learn_part(&part, start);
            }
            start += line.len() as u64;
        }
    }

    /// The rule that the lines of each stream have shown, if it is decided by them.
    pub fn choices(&self) -> [Option<Choice>; 3] {
        let is_auto = self.settings.rule.as_ref().is_some_and(Rule::is_auto);
        let each = [0, 1, 2].map(|at: usize| self.sources[at].evidence.choice());
        if is_auto { each } else { [None; 3] }
    }

    /// Where what is held begins.
    pub fn held(&self) -> Held {
        [0, 1, 2].map(|at: usize| self.sources[at].head().map(|head| head.start))
    }

    /// Whether anything is held.
    pub fn is_holding(&self) -> bool {
        self.held().iter().any(Option::is_some)
    }

    /// For each stream, whether what is held began in the file before.
    pub fn carried(&self) -> [bool; 3] {
        [0, 1, 2].map(|at: usize| self.sources[at].head().is_some_and(|head| head.is_carried))
    }

    /// Takes over what is held of these streams of the file before this one, of which nothing was read
    /// yet: a runtime that begins a new file may do so in the middle of a line.
    pub fn carry_on(&mut self, before: &mut Assembler, streams: [bool; 3]) {
        let sources = self.sources.iter_mut().zip(&mut before.sources);
        for ((source, before), is_carried) in sources.zip(streams) {
            if is_carried && before.head().is_some() {
                source.joiner = std::mem::take(&mut before.joiner);
                source.group = std::mem::take(&mut before.group);
                source.joiner.head_mut().into_iter().for_each(Head::carry);
                source.group.carry();
                (source.changed, source.time) = (before.changed, before.time);
            }
        }
    }

    /// Gives what has waited for its rest for too long.
    pub fn flush_due(&mut self, now: Duration, take: &mut impl FnMut(AssembledRecord<'_>)) {
        for stream in Stream::ALL {
            let source = &self.sources[stream as usize];
            let wait = match source.joiner.head() {
                Some(_) => PART_WAIT,
                None => self.settings.record_wait,
            };
            if now.saturating_sub(source.changed) >= wait {
                self.give_held(stream, take);
            }
        }
    }

    /// Gives all that is held: nothing follows.
    pub fn finish(&mut self, take: &mut impl FnMut(AssembledRecord<'_>)) {
        for stream in Stream::ALL {
            self.give_held(stream, take);
        }
    }

    /// What happened to lines since this was asked last.
    pub fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }

    fn part<'l>(&self, line: &'l [u8]) -> Option<Part<'l>> {
        match self.settings.format {
            Format::Lines => Some(Part::of_line(line)),
            Format::Docker => docker::parse(line),
            Format::Cri => cri::parse(line),
        }
    }

    /// Takes the line that begins with a part into the evidence; gives the evidence before it.
    fn learn_part(&mut self, part: &Part<'_>, start: u64) -> Evidence {
        let source = &mut self.sources[part.stream as usize];
        if !source.is_within {
            source.evidence_before = source.evidence;
            if let Some(rule) = &self.settings.rule
                && start < EVIDENCE_BYTES_MAX
            {
                rule.learn(&mut source.evidence, &part.text);
            }
        }
        source.is_within = !part.is_last;
        source.evidence_before
    }

    /// Gives a line that is none of the format. Such a line is never held, nor part of another record.
    fn give_unfit(&mut self, line: &[u8], start: u64, take: &mut impl FnMut(AssembledRecord<'_>)) {
        if start < self.resumed_at {
            return;
        }
        self.counts.unfit += 1;
        let kept = self.kept_of(line);
        let cut_bytes = line.len() - kept;
        self.give(
            Stream::Unnamed,
            &Head::default(),
            &line[..kept],
            cut_bytes,
            take,
        );
    }

    /// How much of a line is kept.
    fn kept_of(&self, line: &[u8]) -> usize {
        let bytes_max = self.settings.line_bytes_max;
        if line.len() > bytes_max {
            character_end(&line[..bytes_max])
        } else {
            line.len()
        }
    }

    fn give_whole(
        &mut self,
        part: Part<'_>,
        start: u64,
        evidence: &Evidence,
        take: &mut impl FnMut(AssembledRecord<'_>),
    ) {
        let head = Head {
            start,
            time: part.time,
            attributes: part.attributes,
            is_carried: false,
        };
        let kept = self.kept_of(&part.text);
        let line = &part.text[..kept];
        let cut_bytes = part.text.len() - kept;
        self.add_line(part.stream, (head, line, cut_bytes), evidence, take);
    }

    fn give_joined(
        &mut self,
        stream: Stream,
        evidence: &Evidence,
        take: &mut impl FnMut(AssembledRecord<'_>),
    ) {
        let mut joiner = std::mem::take(&mut self.sources[stream as usize].joiner);
        joiner.finish(|head, line, cut_bytes| {
            self.add_line(stream, (head, line, cut_bytes), evidence, take);
        });
        self.sources[stream as usize].joiner = joiner;
    }

    /// Gives all that is held of a stream.
    fn give_held(&mut self, stream: Stream, take: &mut impl FnMut(AssembledRecord<'_>)) {
        if self.sources[stream as usize].joiner.head().is_some() {
            self.counts.unfinished += 1;
            let evidence = self.sources[stream as usize].evidence_before;
            self.give_joined(stream, &evidence, take);
        }
        self.give_groups(stream, take);
    }

    /// Gives the record of a stream, and those of the lines that are held behind it.
    fn give_groups(&mut self, stream: Stream, take: &mut impl FnMut(AssembledRecord<'_>)) {
        // Each turn gives a line at least.
        loop {
            let held = self.give_group(stream, take);
            if held.is_empty() {
                return;
            }
            self.add_lines(stream, held, take);
        }
    }

    /// Gives the record of a stream, and returns the lines that are held behind it.
    fn give_group(
        &mut self,
        stream: Stream,
        take: &mut impl FnMut(AssembledRecord<'_>),
    ) -> Vec<HeldLine> {
        let mut group = std::mem::take(&mut self.sources[stream as usize].group);
        let takes_empty = self.settings.rule.as_ref().is_some_and(Rule::is_auto);
        let held = group.finish(takes_empty, |head, text| {
            self.give(stream, &head, text, 0, take);
        });
        self.sources[stream as usize].group = group;
        held
    }

    /// Takes a line in, with the bytes that were cut off: as a record, or as one of several.
    fn add_line(
        &mut self,
        stream: Stream,
        (head, line, cut_bytes): (Head<'_>, &[u8], usize),
        evidence: &Evidence,
        take: &mut impl FnMut(AssembledRecord<'_>),
    ) {
        let wait = self.settings.record_wait;
        let group = &mut self.sources[stream as usize].group;
        let rule = self.settings.rule.as_ref();
        // A record is not continued behind a line that was cut.
        let Some(rule) = rule.filter(|_| cut_bytes == 0).cloned() else {
            self.give_groups(stream, take);
            return self.give(stream, &head, line, cut_bytes, take);
        };
        if group.is_late(head.time, wait) {
            self.give_groups(stream, take);
        }
        let group = &mut self.sources[stream as usize].group;
        match group.add(&rule, evidence, &head, line, self.settings.line_bytes_max) {
            LineOutcome::Taken => return,
            LineOutcome::Other => {}
            LineOutcome::Full => self.counts.split += 1,
        }
        let mut held = self.give_group(stream, take);
        if held.is_empty() {
            let group = &mut self.sources[stream as usize].group;
            return group.begin(&rule, evidence, head.into_owned(), line);
        }
        held.push(HeldLine {
            head: head.into_owned(),
            text: line.to_vec(),
            evidence: *evidence,
        });
        self.add_lines(stream, held, take);
    }

    /// Takes lines in that were held behind a record, which was given.
    fn add_lines(
        &mut self,
        stream: Stream,
        lines: Vec<HeldLine>,
        take: &mut impl FnMut(AssembledRecord<'_>),
    ) {
        let Some(rule) = self.settings.rule.clone() else {
            return;
        };
        let mut lines = VecDeque::from(lines);
        // Each turn adds a line, or gives a record whose first line was among them.
        while let Some(line) = lines.pop_front() {
            let bytes_max = self.settings.line_bytes_max;
            let group = &mut self.sources[stream as usize].group;
            let added = group.add(&rule, &line.evidence, &line.head, &line.text, bytes_max);
            if added == LineOutcome::Taken {
                continue;
            }
            self.counts.split += u64::from(added == LineOutcome::Full);
            let held = self.give_group(stream, take);
            if held.is_empty() {
                let group = &mut self.sources[stream as usize].group;
                group.begin(&rule, &line.evidence, line.head, &line.text);
                continue;
            }
            lines.push_front(line);
            held.into_iter()
                .rev()
                .for_each(|held| lines.push_front(held));
        }
    }

    fn give(
        &mut self,
        stream: Stream,
        head: &Head<'_>,
        line: &[u8],
        truncated_bytes: usize,
        take: &mut impl FnMut(AssembledRecord<'_>),
    ) {
        self.counts.cut += u64::from(truncated_bytes > 0);
        take(AssembledRecord {
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

//! What the lines of an input are, and how they become records.
//!
//! Lines that are records go out as they are. Others go through an [`Assembler`], which holds parts
//! until their lines are whole, and lines until their records are.

use std::time::{Duration, Instant};

use logpond_protocol::intake::assembly::{self, Assembler, Held};
use logpond_protocol::intake::container::{Format, Stream};
use logpond_protocol::intake::multiline::{Choice, EVIDENCE_BYTES_MAX, Rule};
use logpond_record::{Batch, EntryKind, Labels};
use logpond_segment::journal::FRAME_ENTRIES_MAX;

use super::Totals;
use super::cutter::BATCH_BYTES;
use super::lines::LongLine;
use logpond_host::terminal::note;

/// Bytes at the start of a file that its format is recognised in: a runtime's line is at most 16 KiB,
/// six times as long where every byte is escaped.
pub(super) const DETECTION_BYTES: usize = 256 << 10;

/// Records that one line may end: what was held, and its own.
const RECORDS_OF_LINE_MAX: usize = 8;

/// How often it is said which rule an input has: once, unless its lines change.
const CHOICES_SAID_MAX: usize = 4;

/// The options for reading inputs.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// The format of all inputs; without one each is recognised.
    pub format: Option<Format>,
    /// Which lines belong to one record, if not each is one.
    pub rule: Option<Rule>,
    /// How long more lines of a record are waited for.
    pub record_wait: Duration,
    /// True to say which rule each input has, if its lines decide it.
    pub says_choices: bool,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions {
            format: None,
            rule: None,
            record_wait: assembly::RECORD_WAIT,
            says_choices: false,
        }
    }
}

/// How the lines of one input become records.
pub(super) struct Form {
    read_options: ReadOptions,
    state: State,
    started: Instant,
    /// The rules that were said last, and how often they were.
    said: ([Option<Choice>; 3], usize),
}

enum State {
    /// There was no whole line yet.
    Undecided,
    Lines,
    Assembled(Box<Assembler>),
}

impl Form {
    pub(super) fn new(read_options: &ReadOptions, started: Instant) -> Form {
        Form {
            read_options: read_options.clone(),
            state: State::Undecided,
            started,
            said: ([None; 3], 0),
        }
    }

    /// Bytes at the start of the input that [`Form::learn`] wants before it goes on as an earlier run did.
    pub(super) fn wants_start(&self) -> usize {
        match &self.state {
            State::Assembled(assembler) if self.is_auto() => {
                assembler.reads_from().min(EVIDENCE_BYTES_MAX) as usize
            }
            _ => 0,
        }
    }

    /// Takes what the input begins with into the evidence for its rule.
    pub(super) fn learn(&mut self, start: &[u8]) {
        if let State::Assembled(assembler) = &mut self.state {
            assembler.learn(start);
        }
    }

    fn is_auto(&self) -> bool {
        self.read_options.rule.as_ref().is_some_and(Rule::is_auto)
    }

    /// Says which rule the lines of this input have shown, if it is another one than before.
    pub(super) fn say_choice(&mut self, name: &str) {
        let State::Assembled(assembler) = &self.state else {
            return;
        };
        let choices = assembler.choices();
        let (said, times) = &mut self.said;
        if !self.read_options.says_choices || *said == choices || *times >= CHOICES_SAID_MAX {
            return;
        }
        (*said, *times) = (choices, *times + 1);
        note(&format!("logpond: {name}: {}", choice_text(&choices)));
    }

    /// Whether the format is known.
    pub(super) fn is_decided(&self) -> bool {
        !matches!(self.state, State::Undecided)
    }

    /// The format, once it is decided.
    pub(super) fn format(&self) -> Option<Format> {
        match &self.state {
            State::Undecided => None,
            State::Lines => Some(Format::Lines),
            State::Assembled(assembler) => Some(assembler.format()),
        }
    }

    /// Decides by the start of the input, unless the format was given. Without a whole line there it
    /// is lines, since no runtime writes such long ones.
    pub(super) fn decide(&mut self, start: &[u8]) {
        let detected = || Format::detect(start).unwrap_or(Format::Lines);
        let format = self.read_options.format.unwrap_or_else(detected);
        self.resume(format, 0, [None; 3]);
    }

    /// Goes on as an earlier run did.
    pub(super) fn resume(&mut self, format: Format, offset: u64, held: Held) {
        self.state = match (format, &self.read_options.rule) {
            (Format::Lines, None) => State::Lines,
            (format, rule) => {
                let settings = assembly::Settings {
                    rule: rule.clone(),
                    record_wait: self.read_options.record_wait,
                    ..assembly::Settings::of(format)
                };
                State::Assembled(Box::new(Assembler::resume(settings, offset, held)))
            }
        };
    }

    /// Begins anew, with another input.
    pub(super) fn reset(&mut self) {
        self.state = State::Undecided;
    }

    /// What makes records, if lines are none as they are.
    pub(super) fn assembler(&mut self) -> Option<&mut Assembler> {
        match &mut self.state {
            State::Assembled(assembler) => Some(assembler),
            _ => None,
        }
    }

    /// What is held; also `None` of all streams if lines are sent as they are.
    pub(super) fn held(&self) -> Held {
        match &self.state {
            State::Assembled(assembler) => assembler.held(),
            _ => [None; 3],
        }
    }

    /// For each stream, whether what is held began in the file before.
    pub(super) fn carried(&self) -> [bool; 3] {
        match &self.state {
            State::Assembled(assembler) => assembler.carried(),
            _ => [false; 3],
        }
    }

    /// Where an input that was read up to `offset` is read from.
    pub(super) fn reads_from(&self, offset: u64) -> u64 {
        match &self.state {
            State::Assembled(assembler) => assembler.reads_from(),
            _ => offset,
        }
    }

    /// Whether anything is held.
    pub(super) fn is_holding(&self) -> bool {
        self.held().iter().any(Option::is_some)
    }

    /// Takes lines until there is a batch; `place` says where in its input a line is that begins at a place
    /// of `lines`. Gives how many bytes were taken, and the records that ended with them.
    pub(super) fn fill(
        &mut self,
        lines: &[u8],
        place: &dyn Fn(usize) -> u64,
        now: Instant,
        totals: &mut Totals,
    ) -> (usize, Batch) {
        let now = self.clock(now);
        let mut batch = Batch::new(EntryKind::Enveloped, Labels::new());
        let State::Assembled(assembler) = &mut self.state else {
            return (0, batch);
        };
        let mut taken = 0;
        while taken < lines.len() && !is_full(&batch) {
            let rest = &lines[taken..];
            let end = memchr::memchr(b'\n', rest);
            let line = &rest[..end.unwrap_or(rest.len())];
            assembler.push(line, place(taken), now, &mut |record| {
                record.push_to(&mut batch)
            });
            taken += end.map_or(rest.len(), |end| end + 1);
        }
        totals.count(&assembler.take_counts());
        (taken, batch)
    }

    /// The records that end with a line that is longer than any server takes, of which the beginning is kept.
    pub(super) fn cut(
        &mut self,
        line: &LongLine,
        place: u64,
        now: Instant,
        totals: &mut Totals,
    ) -> Batch {
        let now = self.clock(now);
        let mut batch = Batch::new(EntryKind::Enveloped, Labels::new());
        let mut lines = Assembler::new(assembly::Settings::of(Format::Lines));
        let (assembler, place) = match &mut self.state {
            State::Assembled(assembler) => (&mut **assembler, place),
            _ => (&mut lines, 0),
        };
        assembler.push_cut(&line.head, line.cut_bytes(), place, now, &mut |record| {
            record.push_to(&mut batch);
        });
        totals.count(&assembler.take_counts());
        batch
    }

    /// What is held and has waited for too long, or all that is held.
    pub(super) fn flush(&mut self, all: bool, now: Instant, totals: &mut Totals) -> Batch {
        let now = self.clock(now);
        let mut batch = Batch::new(EntryKind::Enveloped, Labels::new());
        if let State::Assembled(assembler) = &mut self.state {
            let take = &mut |record: assembly::AssembledRecord<'_>| record.push_to(&mut batch);
            if all {
                assembler.finish(take)
            } else {
                assembler.flush_due(now, take)
            }
            totals.count(&assembler.take_counts());
        }
        batch
    }

    fn clock(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.started)
    }
}

/// `--multiline auto chose timestamp (…)`, for each stream if they differ.
fn choice_text(choices: &[Option<Choice>; 3]) -> String {
    let streams = Stream::ALL.into_iter().zip(choices);
    let chosen = streams.filter_map(|(stream, choice)| Some((stream.name(), (*choice)?)));
    let chosen: Vec<(Option<&str>, Choice)> = chosen.collect();
    let is_same = chosen.windows(2).all(|pair| pair[0].1 == pair[1].1);
    let each = chosen.iter().take(if is_same { 1 } else { chosen.len() });
    let each = each.map(|(stream, choice)| {
        let of = match stream {
            Some(stream) if !is_same => format!(" for {stream}"),
            _ => String::new(),
        };
        format!("{}{of} ({})", choice.name(), choice.meaning())
    });
    format!(
        "--multiline auto chose {}",
        each.collect::<Vec<_>>().join(", ")
    )
}

/// Whether one more line may be too much for a batch.
fn is_full(batch: &Batch) -> bool {
    batch.payload().len() >= BATCH_BYTES || batch.len() + RECORDS_OF_LINE_MAX > FRAME_ENTRIES_MAX
}

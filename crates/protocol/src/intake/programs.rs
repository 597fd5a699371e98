//! Logs of servers, daemons and loggers: lines that begin as only one program or logger writes them.
//!
//! | lines | room |
//! | --- | --- |
//! | heads of lines: time, process, thread, component, and the message behind them | [`rows`], found by [`starts`] and drawn by [`pattern`] |
//! | values that stand behind a message, in the product's own way | [`tails`], [`pairs`], [`columns`] |
//! | prefixes of PostgreSQL, which each server sets | [`postgres`] |
//! | names within messages of servers | [`facts`] |
//! | lines that their first words tell: OpenVPN, Exim, Dovecot, the kernel | [`named`] |
//! | lines of frameworks about requests | [`requests`] |
//! | sentences of daemons, whose fields are made beside the message | [`sentences`], [`daemons`] |
//! | packets of firewalls, and queries of BIND, likewise | [`firewalls`] |
//!
//! Invariants:
//! - A row fits a line as a whole, or the line is none of the row's. The first row that fits counts.
//! - The level of a line is no slot: its words are few and stay literal. It is read as that of any line.
//! - What is drawn gives the line back.

mod columns;
mod daemons;
mod facts;
mod firewalls;
mod named;
mod pairs;
mod pattern;
mod postgres;
mod requests;
mod rows;
mod sentences;
mod starts;
mod tails;

use logpond_record::{Assumption, TimeSource, Timestamp, Value};

use super::Beside;
use super::access_format::Times;
use super::sketch::Sketch;
use super::timestamps::{self, TimestampText};

pub(crate) use sentences::{fields as fields_of_sentence, is_daemon};
pub(crate) use starts::is_firebird;

/// Lines that are longer are not looked at. Heads are short, but tails are searched from their end.
const LINE_BYTES_MAX: usize = 64 << 10;

/// The field of a time in a line that is not that of the record.
const TIME_FIELD: &str = "time_local";

/// A line while it is drawn.
struct Pen<'p, 's, 'a> {
    sketch: &'p mut Sketch<'s, 'a>,
    /// True if the line stands behind a header, whose fields keep their names.
    is_within: bool,
    /// The level by a letter or a word that says it in no usual place.
    level: Option<&'static str>,
    /// True if a pair of a line that is nothing else says it.
    has_level_field: bool,
    /// The level that the line has by its words.
    line_level: Option<&'static str>,
    beside: Beside<'a>,
    times: Times<'p>,
}

/// The rows that a line may fit.
#[derive(Clone, Copy)]
pub(crate) struct Candidate {
    /// The text before the time of these rows.
    start: &'static str,
    group: &'static starts::Group,
}

/// The rows of lines that begin as this one does, if there are some.
pub(crate) fn candidate(line: &[u8]) -> Option<Candidate> {
    if line.len() > LINE_BYTES_MAX {
        return None;
    }
    let (start, group) = starts::candidates(line)?;
    Some(Candidate { start, group })
}

/// Draws a line of which the level is known; `None` if it fits none of the rows, and the sketch is then as it was.
pub(crate) fn draw<'a>(
    candidate: Candidate,
    line: &'a str,
    level: Option<&'static str>,
    times: Times<'_>,
    sketch: &mut Sketch<'_, 'a>,
) -> Option<Beside<'a>> {
    draw_candidate(candidate, line, level, times, sketch).or_else(|| {
        let group = starts::prefixed(line.as_bytes())?;
        let candidate = Candidate { start: "", group };
        draw_candidate(candidate, line, level, times, sketch)
    })
}

fn draw_candidate<'a>(
    Candidate { start, group }: Candidate,
    line: &'a str,
    level: Option<&'static str>,
    times: Times<'_>,
    sketch: &mut Sketch<'_, 'a>,
) -> Option<Beside<'a>> {
    let has_level = level.is_some();
    if !has_level && !starts::may_lack_level(line.as_bytes()) {
        return None;
    }
    let is_within = !sketch.parts.values.is_empty();
    let mark = sketch.mark();
    let text = line.get(start.len()..)?;
    let (time, rest) = if group.has_time {
        let (written, bytes) = match times.reader.program(text.as_bytes(), times.received) {
            Some(written) => {
                let bytes = written.bytes;
                (Some(written), bytes)
            }
            // A clock without a day that is known is the head of a line, too.
            None => (None, timestamps::clock_bytes(text.as_bytes())?),
        };
        let (time, rest) = text.split_at_checked(bytes)?;
        (Some((written, time)), rest)
    } else {
        (None, text)
    };
    let ahead = pattern::Ahead::new(rest);
    for row in group.likely(&ahead) {
        if !has_level && row.has_level() || !row.may_fit(&ahead) {
            continue;
        }
        let mut pen = Pen {
            sketch: &mut *sketch,
            is_within,
            level: None,
            has_level_field: false,
            line_level: level,
            beside: Beside::default(),
            times,
        };
        if pen.row(row, start, time.as_ref(), rest, times).is_some() {
            let mut beside = pen.beside;
            // The place in the head is certain, words of a message are not.
            beside.level = pen.level.or(level).filter(|_| !pen.has_level_field);
            if beside.fields.is_empty()
                && let Some(message) = sketch.message_text()
            {
                let mut fields = fields_of_sentence(None, message);
                // The mark of a head tells some of them.
                if fields.is_empty() && message.len() < text.len() {
                    fields = requests::of_text(text);
                }
                fields.retain(|(name, _)| !sketch.has_slot(name.as_bytes()));
                beside.fields = fields;
            }
            return Some(beside);
        }
        sketch.rewind(mark);
    }
    None
}

impl<'a> Pen<'_, '_, 'a> {
    fn row(
        &mut self,
        row: &pattern::Row,
        start: &'static str,
        time: Option<&(Option<TimestampText>, &'a str)>,
        rest: &'a str,
        times: Times<'_>,
    ) -> Option<()> {
        self.sketch.literal(start);
        match time {
            Some((Some(written), text)) => self.time(written, text),
            Some((None, text)) => self.text(TIME_FIELD, text),
            None => {}
        }
        let rest = self.steps(&row.steps, rest, times)?;
        rest.is_empty().then_some(())
    }

    /// Draws the time, which is the record's unless a header had one.
    fn time(&mut self, written: &TimestampText, text: &'a str) {
        let assumed = written.form.assumed();
        match self.sketch.parts.time {
            None => self.sketch.time(written, text.as_bytes(), TimeSource::Line),
            Some(_) => {
                self.beside.time = Some((written.time, assumed));
                self.text(TIME_FIELD, text);
            }
        }
    }

    fn slot(&mut self, name: &str, kind: &str, value: Value<'a>) {
        let is_taken = self.is_within && self.sketch.has_slot(name.as_bytes());
        let prefix = if is_taken {
            super::outline::BODY_PREFIX
        } else {
            ""
        };
        self.sketch.prefixed_slot(prefix, name, kind, value);
    }

    fn text(&mut self, name: &str, value: &'a str) {
        self.slot(name, "t", Value::Str(value.into()));
    }

    /// Adds a field that is made of the line, unless it has one of this name.
    fn make(&mut self, name: &'static str, value: Value<'a>) {
        let is_made = self.beside.fields.iter().any(|(known, _)| known == name);
        let is_there = || self.is_within && self.sketch.has_slot(name.as_bytes());
        if !(is_made || is_there()) {
            self.beside.fields.push((name.into(), value));
        }
    }

    fn make_text(&mut self, name: &'static str, value: &'a str) {
        if !value.is_empty() {
            self.make(name, Value::Str(value.into()));
        }
    }
}

/// The time of a line that a header's counts more than: one that leaves nothing open.
pub(crate) fn certain(time: Option<(Timestamp, Assumption)>) -> Option<(Timestamp, Assumption)> {
    time.filter(|(_, assumed)| *assumed == Assumption::Nothing)
}

#[cfg(test)]
mod tests;

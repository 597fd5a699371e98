//! What a header looks like, as data, and how a text is fitted to it.
//!
//! Invariant: a part that does not fit leaves the sketch as it found it.

use logpond_record::{TimeSource, Timestamp};

use super::{rfc3164, rfc5424};
use crate::intake::sketch::Sketch;
use crate::intake::timestamps::{self, TimeReader};

/// How far into a text [`Mark::Within`] looks, in bytes: headers are shorter.
const HEADER_BYTES_MAX: usize = 160;

/// A dialect's header.
pub(super) struct Rule {
    /// What every text of the dialect has; all others are not looked at twice.
    pub(super) mark: Mark,
    /// The header from its start to the message.
    pub(super) parts: &'static [Part],
}

/// Tells most texts that a rule cannot fit at once.
pub(super) enum Mark {
    /// This stands near the start.
    Within(&'static str),
    /// The text begins with one of these.
    Begins(&'static [&'static str]),
}

/// A part of a header.
pub(super) enum Part {
    /// Just this.
    Text(&'static str),
    /// The first of these that fits. What follows does not make it try the next.
    OneOf(&'static [&'static [Part]]),
    /// These, or nothing.
    Maybe(&'static [Part]),
    /// A field: the slot, and its text.
    Field(&'static str, Class),
    /// The record's time, in any known form.
    Time,
    /// The record's time as Unix seconds.
    UnixTime,
    /// A time that is not the record's: the slot.
    OtherTime(&'static str),
    /// `name:` or `name[process]:`, and a space.
    Tag,
    /// Nothing, if one of these follows.
    Ahead(&'static [&'static str]),
    /// All of a message of RFC 5424 but the priority.
    Rfc5424,
    /// All that is left.
    Message,
}

/// Which text a field takes: as many of these bytes as there are.
#[derive(Clone, Copy)]
pub(super) struct Class {
    /// The bytes.
    pub(super) holds: fn(u8) -> bool,
    /// The one that it begins with, if it must.
    pub(super) first: Option<u8>,
    /// One of these must be in it, if any is given.
    pub(super) some: fn(u8) -> bool,
    /// The most bytes.
    pub(super) bytes_max: usize,
}

impl Class {
    fn read<'a>(&self, text: &'a [u8]) -> Option<(&'a str, &'a [u8])> {
        let read = text.iter().take(self.bytes_max + 1);
        let mut length = read.take_while(|byte| (self.holds)(**byte)).count();
        // A colon at the end is the header's.
        length -= usize::from(text[..length].ends_with(b":"));
        let (taken, rest) = text.split_at(length);
        let fits = (1..=self.bytes_max).contains(&length)
            && self.first.is_none_or(|first| taken[0] == first)
            && taken.iter().any(|byte| (self.some)(*byte));
        let taken = std::str::from_utf8(taken).ok()?;
        fits.then_some((taken, rest))
    }
}

/// What fitting needs to know.
#[derive(Clone, Copy)]
pub(super) struct Context<'t> {
    pub(super) times: &'t TimeReader,
    pub(super) received: Timestamp,
}

impl Rule {
    /// Draws a text, or leaves the sketch as it is.
    pub(super) fn draw<'a>(
        &self,
        text: &'a [u8],
        context: Context<'_>,
        sketch: &mut Sketch<'_, 'a>,
    ) -> Option<()> {
        let is_likely = match self.mark {
            Mark::Within(mark) => {
                let head = &text[..text.len().min(HEADER_BYTES_MAX)];
                memchr::memmem::find(head, mark.as_bytes()).is_some()
            }
            Mark::Begins(starts) => starts.iter().any(|s| text.starts_with(s.as_bytes())),
        };
        if !is_likely {
            return None;
        }
        fit(self.parts, text, context, sketch).map(|_| ())
    }
}

/// Draws the parts; gives what follows them.
fn fit<'a>(
    parts: &[Part],
    text: &'a [u8],
    context: Context<'_>,
    sketch: &mut Sketch<'_, 'a>,
) -> Option<&'a [u8]> {
    let before = sketch.mark();
    let mut rest = text;
    for part in parts {
        match part.fit(rest, context, sketch) {
            Some(after) => rest = after,
            None => {
                sketch.rewind(before);
                return None;
            }
        }
    }
    Some(rest)
}

impl Part {
    fn fit<'a>(
        &self,
        text: &'a [u8],
        context: Context<'_>,
        sketch: &mut Sketch<'_, 'a>,
    ) -> Option<&'a [u8]> {
        match self {
            Part::Text(literal) => {
                let rest = text.strip_prefix(literal.as_bytes())?;
                sketch.literal(literal);
                Some(rest)
            }
            Part::OneOf(choices) => choices
                .iter()
                .find_map(|parts| fit(parts, text, context, sketch)),
            Part::Maybe(parts) => fit(parts, text, context, sketch).or(Some(text)),
            Part::Field(slot, class) => {
                let (value, rest) = class.read(text)?;
                sketch.text(slot, value);
                Some(rest)
            }
            Part::Time => {
                let written = context.times.header(text, context.received)?;
                let (time, rest) = text.split_at(written.bytes);
                sketch.time(&written, time, TimeSource::Header);
                Some(rest)
            }
            Part::UnixTime => {
                let written = timestamps::unix_seconds(text)?;
                let (time, rest) = text.split_at(written.bytes);
                sketch.time(&written, time, TimeSource::Header);
                Some(rest)
            }
            Part::OtherTime(slot) => {
                let written = context.times.header(text, context.received)?;
                let (time, rest) = text.split_at(written.bytes);
                sketch.text(slot, std::str::from_utf8(time).ok()?);
                Some(rest)
            }
            Part::Tag => rfc3164::draw_tag(text, sketch),
            Part::Rfc5424 => rfc5424::draw(text, context, sketch).map(|()| &text[text.len()..]),
            Part::Ahead(starts) => {
                let mut starts = starts.iter();
                let is_it = starts.any(|start| text.starts_with(start.as_bytes()));
                is_it.then_some(text)
            }
            Part::Message => {
                sketch.message(text);
                Some(&text[text.len()..])
            }
        }
    }
}

//! Lines with the colours of a terminal, read as they are seen.
//!
//! Loggers colour the words of a line by escape sequences, in containers, too. The line is read without them, and they
//! become literals of its shape, so that it is given back as it was. Within a value they are kept as its text beside the
//! value, which has none. Text without fields stays as it is, but its time and its level are those that are seen.

use std::borrow::Cow;

use logpond_record::limits::SHAPE_BYTES_MAX;
use logpond_record::{Entry, EntryKind, Fix, Shape};

use super::nested::{pieces, write_slot};
use super::{ParsedLine, Parser};

/// The byte that begins a sequence.
const ESCAPE: u8 = 0x1b;

/// The most sequences of a line; one with more is read as it is.
const SEQUENCES_MAX: usize = 128;

/// The most bytes of a sequence.
const SEQUENCE_BYTES_MAX: usize = 32;

/// The longest line that is read without its sequences.
const LINE_BYTES_MAX: usize = 64 << 10;

/// A line without its sequences, and these with the places where they stood.
struct Plain<'t> {
    text: String,
    sequences: Vec<(usize, &'t str)>,
}

/// True for a line with a sequence.
pub(super) fn is_coloured(line: &[u8]) -> bool {
    memchr::memchr(ESCAPE, line).is_some()
}

impl Parser {
    /// Reads a line without its colours; `None` if nothing is known of it.
    pub(super) fn coloured<'a>(&mut self, entry: &Entry<'a>) -> Option<ParsedLine<'a>> {
        let plain = plain(std::str::from_utf8(entry.raw).ok()?)?;
        let inner = Entry {
            raw: plain.text.as_bytes(),
            ..*entry
        };
        let read = self.unmarked_line(&inner);
        let is_text = |read: &ParsedLine<'_>| read.shape.as_str() == Shape::TEXT;
        match read.filter(|read| !is_text(read)) {
            Some(read) => {
                let read = read.into_owned();
                Some(self.with_colours(entry, read, &plain))
            }
            None if self.depth == 0 && entry.kind == EntryKind::Line => {
                let read = self.plain_text(&inner).into_owned();
                let mut parsed = self.unread(entry);
                parsed.parts.time = read.parts.time;
                parsed.parts.time_source = read.parts.time_source;
                (parsed.level, parsed.derived) = (read.level, read.derived);
                Some(parsed)
            }
            None => None,
        }
    }

    /// Puts the sequences into the shape, or keeps the line whole.
    fn with_colours<'a>(
        &mut self,
        entry: &Entry<'a>,
        read: ParsedLine<'static>,
        plain: &Plain<'_>,
    ) -> ParsedLine<'a> {
        let woven = if read.whole {
            None
        } else {
            weave(&read, plain).filter(|woven| woven.line == entry.raw)
        };
        let shape = woven.as_ref().and_then(|woven| {
            let found = self.shapes.find(&woven.shape)?;
            Some(found.shape)
        });
        let mut parsed = ParsedLine {
            whole: true,
            ..read
        };
        if let (Some(shape), Some(woven)) = (shape, woven) {
            (parsed.shape, parsed.parts.fixes, parsed.whole) = (shape, woven.fixes, false);
        }
        parsed
    }
}

/// A line without its sequences; `None` if it has others than those for colours, or too many.
fn plain(line: &str) -> Option<Plain<'_>> {
    if line.len() > LINE_BYTES_MAX {
        return None;
    }
    let mut plain = Plain {
        text: String::with_capacity(line.len()),
        sequences: Vec::new(),
    };
    let mut rest = line;
    while let Some(at) = memchr::memchr(ESCAPE, rest.as_bytes()) {
        let (before, from) = rest.split_at(at);
        let (sequence, behind) = from.split_at(sequence_bytes(from.as_bytes())?);
        plain.text.push_str(before);
        if plain.sequences.len() == SEQUENCES_MAX {
            return None;
        }
        plain.sequences.push((plain.text.len(), sequence));
        rest = behind;
    }
    plain.text.push_str(rest);
    Some(plain)
}

/// The length of a sequence that sets colours or clears a line.
fn sequence_bytes(text: &[u8]) -> Option<usize> {
    let inside = text.strip_prefix(b"\x1b[")?;
    let mut head = inside.iter().take(SEQUENCE_BYTES_MAX);
    let end = head.position(|byte| !(byte.is_ascii_digit() || matches!(byte, b';' | b':')))?;
    matches!(inside[end], b'm' | b'K').then_some(2 + end + 1)
}

/// A shape with the sequences, the fixes that belong to it, and the line that both give.
struct Woven {
    shape: Vec<u8>,
    fixes: Vec<Fix<'static>>,
    line: Vec<u8>,
}

fn weave(read: &ParsedLine<'static>, plain: &Plain<'_>) -> Option<Woven> {
    let mut woven = Woven {
        shape: Vec::with_capacity(read.shape.as_str().len() * 2),
        fixes: Vec::new(),
        line: Vec::with_capacity(plain.text.len() * 2),
    };
    let mut sequences = plain.sequences.iter().peekable();
    let mut at = 0;
    let mut text = Vec::new();
    for (index, piece) in pieces(read.shape.as_str()) {
        text.clear();
        match index {
            None => text.extend_from_slice(piece.as_bytes()),
            Some(index) => write_slot(&read.shape, &read.parts, index, &mut text),
        }
        let end = at + text.len();
        let mut coloured = Vec::with_capacity(text.len());
        let mut done = 0;
        while let Some((place, sequence)) = sequences.next_if(|(place, _)| *place < end) {
            let offset = place.checked_sub(at)?;
            coloured.extend_from_slice(&text[done..offset]);
            // Before a slot they are literals.
            let is_before = index.is_some() && coloured.is_empty();
            let out = if is_before {
                woven.line.extend_from_slice(sequence.as_bytes());
                &mut woven.shape
            } else {
                &mut coloured
            };
            out.extend_from_slice(sequence.as_bytes());
            done = offset;
        }
        let is_within = done > 0;
        coloured.extend_from_slice(&text[done..]);
        match index {
            None => woven.shape.extend_from_slice(&coloured),
            Some(index) => {
                for part in ["⟨", piece, "⟩"] {
                    woven.shape.extend_from_slice(part.as_bytes());
                }
                woven.fix(read, index, is_within.then(|| coloured.clone()))?;
            }
        }
        woven.line.extend_from_slice(&coloured);
        at = end;
    }
    for (_, sequence) in sequences {
        woven.shape.extend_from_slice(sequence.as_bytes());
        woven.line.extend_from_slice(sequence.as_bytes());
    }
    (woven.shape.len() <= SHAPE_BYTES_MAX).then_some(woven)
}

impl Woven {
    /// Keeps the text of a slot that has sequences, or the text that it had before.
    fn fix(
        &mut self,
        read: &ParsedLine<'static>,
        index: usize,
        coloured: Option<Vec<u8>>,
    ) -> Option<()> {
        let slot = u16::try_from(index).ok()?;
        let mut known = read.parts.fixes.iter();
        let text = match (coloured, known.find(|fix| fix.slot == slot)) {
            (Some(text), _) => Cow::Owned(text),
            (None, Some(fix)) => fix.text.clone(),
            (None, None) => return Some(()),
        };
        self.fixes.push(Fix { slot, text });
        Some(())
    }
}

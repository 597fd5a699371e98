//! A filter compiled to decide record by record.
//!
//! Text patterns look at the line and at the decoded message; the line is rendered at most once
//! per record, and only if a pattern asks for it.

use std::ops::Range;

use logpond_record::{Message, Piece, Record, SlotKind, Value};

use crate::field::{FieldError, FieldMatcher, Target};
use crate::pattern::{Finder, RegexError};
use crate::prefilter::RawPrefilter;
use crate::query::{FieldFilter, FieldTest, Filter, Pattern, SyntaxError};

/// The most spans that are highlighted in one line; more help nobody.
const SPANS_MAX: usize = 1000;

/// A compiled filter. It is cheap to share between threads; each needs its own [`Scratch`].
#[derive(Clone, Debug)]
pub struct Matcher {
    root: Node,
    prefilter: Option<RawPrefilter>,
    highlights: Vec<Finder>,
}

#[derive(Clone, Debug)]
enum Node {
    All,
    And(Box<[Node]>),
    Or(Box<[Node]>),
    Not(Box<Node>),
    Text(Finder),
    Field(FieldMatcher),
}

/// Memory that is used again for each record.
#[derive(Debug, Default)]
pub struct Scratch {
    line: Vec<u8>,
    line_is_rendered: bool,
}

impl Scratch {
    /// Empty scratch memory.
    pub fn new() -> Scratch {
        Scratch::default()
    }

    /// Forgets the line of the record before.
    pub(crate) fn start_record(&mut self) {
        self.line_is_rendered = false;
    }
}

impl Matcher {
    /// Compiles a filter. Filters that were parsed always compile; for others the error's span is
    /// that of the regular expression at fault, counted within it.
    pub fn new(filter: &Filter) -> Result<Matcher, SyntaxError> {
        let mut highlights = Vec::new();
        Ok(Matcher {
            root: node(filter)?,
            prefilter: RawPrefilter::new(filter),
            highlights: {
                collect_highlights(filter, &mut highlights)?;
                highlights
            },
        })
    }

    /// Whether the filter wants this record.
    pub fn matches(&self, record: &Record<'_>, scratch: &mut Scratch) -> bool {
        scratch.start_record();
        self.root.matches(record, scratch)
    }

    /// Whether the filter wants every record, so that none needs to be looked at.
    pub fn is_all(&self) -> bool {
        matches!(self.root, Node::All)
    }

    /// A cheap necessary condition on raw bytes; `None` if there is no useful one.
    pub fn raw_prefilter(&self) -> Option<&RawPrefilter> {
        self.prefilter.as_ref()
    }

    /// What to highlight in a text: matches of the text patterns that are not negated, in order,
    /// overlapping ones merged. At most a thousand per pattern.
    pub fn spans(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        for finder in &self.highlights {
            collect_spans(finder, text, &mut spans);
        }
        spans.sort_unstable_by_key(|s| (s.start, s.end));
        let mut merged: Vec<Range<usize>> = Vec::with_capacity(spans.len());
        for span in spans {
            match merged.last_mut() {
                Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
                _ => merged.push(span),
            }
        }
        merged
    }
}

fn node(filter: &Filter) -> Result<Node, SyntaxError> {
    let nodes = |parts: &[Filter]| parts.iter().map(node).collect::<Result<_, _>>();
    Ok(match filter {
        Filter::All => Node::All,
        Filter::And(parts) => Node::And(nodes(parts)?),
        Filter::Or(parts) => Node::Or(nodes(parts)?),
        Filter::Not(inner) => Node::Not(Box::new(node(inner)?)),
        Filter::Text(pattern) => Node::Text(finder(pattern)?),
        Filter::Field(field) => Node::Field(FieldMatcher::new(field).map_err(|error| {
            let span = match &error {
                FieldError::Regex(regex) => regex.span.clone(),
                _ => 0..0,
            };
            syntax_error(&field.test, span, error.to_string())
        })?),
    })
}

fn finder(pattern: &Pattern) -> Result<Finder, SyntaxError> {
    Finder::new(pattern).map_err(|error: RegexError| {
        let text = source(pattern);
        SyntaxError::new(text, error.span.clone(), error.to_string())
    })
}

fn syntax_error(test: &FieldTest, span: Range<usize>, message: String) -> SyntaxError {
    let text = match test {
        FieldTest::Contains(pattern) => source(pattern),
        _ => "",
    };
    SyntaxError::new(text, span, message)
}

fn source(pattern: &Pattern) -> &str {
    match pattern {
        Pattern::Regex { source, .. } => source,
        Pattern::Substring { .. } => "",
    }
}

fn collect_highlights(filter: &Filter, out: &mut Vec<Finder>) -> Result<(), SyntaxError> {
    match filter {
        Filter::And(parts) | Filter::Or(parts) => {
            for part in parts {
                collect_highlights(part, out)?;
            }
        }
        Filter::Text(pattern) => out.push(finder(pattern)?),
        Filter::Field(FieldFilter {
            name,
            test: FieldTest::Contains(pattern),
        }) if matches!(Target::new(name), Target::Message | Target::Line) => {
            out.push(finder(pattern)?);
        }
        Filter::All | Filter::Not(_) | Filter::Field(_) => {}
    }
    Ok(())
}

fn collect_spans(finder: &Finder, text: &[u8], spans: &mut Vec<Range<usize>>) {
    let mut start = 0;
    for _ in 0..SPANS_MAX {
        let Some(found) = finder.find(text, start) else {
            return;
        };
        // After an empty match the search must move on by itself.
        start = found.end.max(found.start + usize::from(found.is_empty()));
        if !found.is_empty() {
            spans.push(found);
        }
    }
}

impl Node {
    fn matches(&self, record: &Record<'_>, scratch: &mut Scratch) -> bool {
        match self {
            Node::All => true,
            Node::And(parts) => parts.iter().all(|p| p.matches(record, scratch)),
            Node::Or(parts) => parts.iter().any(|p| p.matches(record, scratch)),
            Node::Not(inner) => !inner.matches(record, scratch),
            Node::Text(finder) => text_matches(finder, record, scratch),
            Node::Field(field) => field.matches(record, scratch),
        }
    }
}

fn text_matches(finder: &Finder, record: &Record<'_>, scratch: &mut Scratch) -> bool {
    if finder.is_match(line(record, scratch)) {
        return true;
    }
    match &record.message {
        Message::Absent | Message::Line => false,
        Message::Part(message) => {
            let seen = line_is_message(record)
                || (finder.ignores_ends() && line_holds_message_as_it_is(record));
            !seen && finder.is_match(&message.to_text())
        }
    }
}

/// The original line of a record: borrowed where the record has it whole, otherwise rendered
/// into the scratch memory once.
pub(crate) fn line<'r>(record: &'r Record<'_>, scratch: &'r mut Scratch) -> &'r [u8] {
    if let Some(whole) = &record.whole {
        return whole;
    }
    if line_is_message(record) {
        match &record.message {
            Message::Part(Value::Str(text)) => return text.as_bytes(),
            Message::Part(Value::Bytes(bytes)) => return bytes,
            _ => {}
        }
    }
    if !scratch.line_is_rendered {
        scratch.line.clear();
        record.write_line(&mut scratch.line);
        scratch.line_is_rendered = true;
    }
    &scratch.line
}

fn line_is_message(record: &Record<'_>) -> bool {
    matches!(record.shape.pieces(), [Piece::Slot(_)]) && line_holds_message_as_it_is(record)
}

fn line_holds_message_as_it_is(record: &Record<'_>) -> bool {
    let Some(slot) = record.shape.message_slot() else {
        return false;
    };
    let fixed = || record.fixes.iter().any(|f| usize::from(f.slot) == slot);
    record.whole.is_none() && record.shape.slots()[slot].kind == SlotKind::Text && !fixed()
}

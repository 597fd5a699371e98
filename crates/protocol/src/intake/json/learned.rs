//! Objects whose names and kinds were seen before.
//!
//! Log lines of one program repeat a few outlines. They are kept as a tree: each node stands for
//! all that precedes a slot, each edge for literal text and the kind of value that fills the slot
//! behind it. Walking down costs one comparison of text a slot; names are not looked at, nothing
//! is hashed.
//!
//! Invariants:
//! - A walk that succeeds gives what `flatten` gives: edges hold whole tokens, values are read by
//!   the same functions, and a field that could have been the time and was none must be none again. So a
//!   record does not depend on what was learned before it.
//! - The tree is bounded by `NODES_MAX` and `EDGES_MAX`; a full tree starts anew.

use std::sync::Arc;

use logpond_record::{Message, Shape, Timestamp, Value, cast};

use super::flatten::fix;
use super::{Scanner, Token};
use crate::intake::outline::{
    ChosenTime, Outcome, Outline, Place, RequestPlan, Summary, take_time, without_message,
};
use crate::intake::sketch::Parts;
use crate::intake::timestamps::{Form, Reading, TimeReader};

/// Slots of all known outlines together. A node takes about a hundred bytes: a few MB in all.
const NODES_MAX: usize = 1 << 15;

/// Ways on from one node. More means that names are data (ids as keys), and trying them all would
/// cost more than reading the line without the tree.
const EDGES_MAX: usize = 12;

/// Literal text of all edges together, in bytes.
const LITERAL_BYTES_MAX: usize = 4 << 20;

/// Outlines of JSON objects.
pub(crate) struct Outlines {
    nodes: Vec<Vec<Edge>>,
    literal_bytes: usize,
    /// Slots of the last object: how many values to make room for.
    pub(crate) slots_hint: usize,
}

struct Edge {
    literal: Box<[u8]>,
    expect: Expect,
    to: u32,
}

/// What follows the literal text of an edge.
#[derive(Clone, PartialEq)]
enum Expect {
    /// A value that fills a slot of this kind.
    Value(u8),
    /// A string that is the message.
    Message(Place),
    /// The record's time, in a slot of this kind.
    Time {
        kind: u8,
        form: Form,
        reading: Reading,
        place: Place,
    },
    /// A value of this kind that is no instant.
    NoTime { kind: u8, reading: Reading },
    /// The end of the line.
    End(Arc<Shape>, Summary, Option<Arc<RequestPlan>>),
}

impl Outlines {
    /// An empty tree.
    pub(crate) fn new() -> Outlines {
        Outlines {
            nodes: vec![Vec::new()],
            literal_bytes: 0,
            slots_hint: 8,
        }
    }

    /// Reads an object whose outline is known; `None` if it is not.
    pub(crate) fn read<'a>(
        &mut self,
        text: &'a str,
        received: Timestamp,
        times: &TimeReader,
    ) -> Option<(Arc<Shape>, Parts<'a>, Summary)> {
        if self.nodes[0].is_empty() {
            return None;
        }
        let mut parts = Parts::new(self.slots_hint);
        parts.message = without_message(true);
        let mut scanner = Scanner::new(text);
        let mut node = 0;
        // Each round follows an edge away from the root, and the tree has no cycle.
        loop {
            let edges = &mut self.nodes[node];
            let taken = edges
                .iter()
                .position(|edge| follow(edge, &mut scanner, &mut parts, received, times))?;
            let edge = &edges[taken];
            if let Expect::End(shape, summary, request) = &edge.expect {
                let (shape, summary) = (Arc::clone(shape), *summary);
                if let Some(request) = request {
                    parts.beside = request.fields(&parts.values);
                }
                summary.complete(&mut parts, received, times);
                self.slots_hint = parts.values.len();
                if taken > 0 {
                    edges.swap(taken, taken - 1);
                }
                return Some((shape, parts, summary));
            }
            node = edge.to as usize;
            if taken > 0 {
                edges.swap(taken, taken - 1);
            }
        }
    }

    /// Adds the outline of `text`, which was read into `outline` and ended in `outcome`.
    pub(crate) fn learn(&mut self, text: &str, outline: &Outline, outcome: &Outcome) {
        let Some(shape) = outcome.shape.as_ref().filter(|_| outcome.repeats) else {
            return;
        };
        let slots = outline.slots();
        if self.nodes.len() + slots.len() + 1 > NODES_MAX
            || self.literal_bytes + text.len() > LITERAL_BYTES_MAX
        {
            *self = Outlines::new();
        }
        let raw = text.as_bytes();
        let mut node = 0;
        let mut after = 0;
        for (index, slot) in slots.iter().enumerate() {
            let expect = expect(cast::low_u32(index), slot.kind, outcome);
            let literal = &raw[after..slot.span.0 as usize];
            after = slot.span.1 as usize;
            node = self.grow(node, literal, expect);
        }
        self.grow(
            node,
            &raw[after..],
            Expect::End(Arc::clone(shape), outcome.summary, outcome.request.clone()),
        );
    }

    /// The node behind an edge of `node`, which is made if there is none.
    fn grow(&mut self, node: usize, literal: &[u8], expect: Expect) -> usize {
        let known = self.nodes[node]
            .iter()
            .find(|edge| *edge.literal == *literal && edge.expect == expect);
        if let Some(edge) = known {
            return edge.to as usize;
        }
        let to = self.nodes.len();
        self.nodes.push(Vec::new());
        self.literal_bytes += literal.len();
        let edge = Edge {
            literal: literal.into(),
            expect,
            to: cast::low_u32(to),
        };
        let edges = &mut self.nodes[node];
        // The last edge is the one that was followed least; what it led to stays until the tree
        // starts anew.
        if edges.len() == EDGES_MAX {
            edges.pop();
        }
        edges.push(edge);
        to
    }
}

/// The expectation for a slot of this number and kind, in lines like the one with this outcome.
fn expect(slot: u32, kind: u8, outcome: &Outcome) -> Expect {
    if let Some(time) = outcome.time.filter(|time| time.slot == slot) {
        return Expect::Time {
            kind,
            form: time.form,
            reading: time.reading,
            place: time.place,
        };
    }
    let mut no_times = outcome.no_times.iter();
    if let Some(none) = no_times.find(|none| none.slot == slot) {
        let reading = none.reading;
        return Expect::NoTime { kind, reading };
    }
    match outcome.message.filter(|message| message.slot == slot) {
        Some(message) => Expect::Message(message.place),
        None => Expect::Value(kind),
    }
}

/// Moves over an edge's text and value; gives false, and does not move, if the line differs.
#[inline]
fn follow<'a>(
    edge: &Edge,
    scanner: &mut Scanner<'a>,
    parts: &mut Parts<'a>,
    received: Timestamp,
    times: &TimeReader,
) -> bool {
    let bytes = scanner.bytes();
    let rest = &bytes[scanner.at..];
    if rest.len() < edge.literal.len() || rest[..edge.literal.len()] != *edge.literal {
        return false;
    }
    let before = scanner.at;
    let at = before + edge.literal.len();
    scanner.at = at;
    let Some(token) = expected(&edge.expect, scanner) else {
        let ended = matches!(edge.expect, Expect::End(..)) && at == bytes.len();
        if !ended {
            scanner.at = before;
        }
        return ended;
    };
    let slot = parts.values.len();
    let text = &bytes[token.span.0..token.span.1];
    match &edge.expect {
        Expect::Time {
            form,
            reading,
            place,
            ..
        } => {
            let written = times.read(text, received, *reading);
            let Some(written) = written.filter(|w| w.form == *form) else {
                scanner.at = before;
                return false;
            };
            if *place == Place::Field && !token.canonical {
                parts.fixes.push(fix(slot, token.span, scanner));
            }
            parts.values.push(token.value);
            let chosen = ChosenTime {
                slot: cast::low_u32(slot),
                form: *form,
                reading: *reading,
                place: *place,
            };
            take_time(parts, &chosen, &written, text);
            return true;
        }
        Expect::NoTime { reading, .. } if times.read(text, received, *reading).is_some() => {
            scanner.at = before;
            return false;
        }
        _ => {}
    }
    if !token.canonical {
        parts.fixes.push(fix(slot, token.span, scanner));
    }
    match &edge.expect {
        Expect::Message(Place::Own) => {
            parts.message = Message::Part(token.value);
            parts.values.push(Value::Null);
        }
        Expect::Message(Place::Field) => {
            parts.message = Message::Part(token.value.clone());
            parts.values.push(token.value);
        }
        _ => parts.values.push(token.value),
    }
    true
}

/// Reads the value that is expected; the quote that closes a string is left to the next edge.
#[inline]
fn expected<'a>(expect: &Expect, scanner: &mut Scanner<'a>) -> Option<Token<'a>> {
    let kind = match expect {
        Expect::Value(kind) | Expect::Time { kind, .. } | Expect::NoTime { kind, .. } => *kind,
        Expect::Message(_) => b'j',
        Expect::End(..) => return None,
    };
    if kind == b'j' {
        let start = scanner.at;
        let escapes = scanner.string_rest().ok()?;
        let token = scanner.string_token(start, escapes);
        scanner.at -= 1;
        return Some(token);
    }
    // A quote here belongs to a literal: strings are read above.
    if scanner.peek() == Some(b'"') {
        return None;
    }
    scanner.token().ok()?.filter(|token| token.kind == kind)
}

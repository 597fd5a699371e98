//! A document of YAML as a tree that knows its places.
//!
//! Bounds: [`DEPTH_MAX`] for nesting and [`NODES_MAX`] for all that a document has, what its aliases
//! repeat included.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

use super::file::RuleFileError;

/// The deepest nesting; files of rules have six levels.
const DEPTH_MAX: usize = 24;

/// The most nodes: those of the longest file are fewer unless aliases repeat them.
const NODES_MAX: usize = 1 << 18;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) kind: Kind,
}

/// A place in a text, both counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A text; one without quotes may mean something else.
    Scalar(String, bool),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

impl Node {
    /// Whether it is no value.
    pub(super) fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Scalar(text, true) if matches!(&**text, "" | "~" | "null"))
    }

    /// How many values it has, with itself.
    fn count(&self) -> usize {
        match &self.kind {
            Kind::Scalar(..) => 1,
            Kind::List(list) => 1 + list.iter().map(Node::count).sum::<usize>(),
            Kind::Map(map) => {
                let pairs = map.iter();
                1 + pairs.map(|(k, v)| k.count() + v.count()).sum::<usize>()
            }
        }
    }
}

/// What is being read: a list, or a map with the key that waits for its value.
struct Open {
    place: Place,
    anchor: usize,
    list: Vec<Node>,
    is_map: bool,
}

/// Reads the one document of a text; `None` if there is nothing in it.
pub(super) fn read(text: &str) -> Result<Option<Node>, RuleFileError> {
    let mut reader = Reader::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event
            .map_err(|error| RuleFileError::new(place(error.marker()), error.info().to_owned()))?;
        reader.take(event, place(&span.start))?;
    }
    Ok(reader.root.filter(|root| !root.is_null()))
}

fn place(marker: &Marker) -> Place {
    Place {
        line: marker.line(),
        column: marker.col() + 1,
    }
}

#[derive(Default)]
struct Reader {
    root: Option<Node>,
    open: Vec<Open>,
    anchors: BTreeMap<usize, Node>,
    nodes: usize,
}

impl Reader {
    fn take(&mut self, event: Event<'_>, at: Place) -> Result<(), RuleFileError> {
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let kind = Kind::Scalar(text.into_owned(), style == ScalarStyle::Plain);
                self.add(Node { place: at, kind }, anchor)
            }
            Event::SequenceStart(anchor, _) => self.begin(at, anchor, false),
            Event::MappingStart(anchor, _) => self.begin(at, anchor, true),
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => {
                let node = self.anchors.get(&anchor).cloned();
                let mut node = node.ok_or_else(|| {
                    RuleFileError::new(at, "this alias stands within what it names".to_owned())
                })?;
                node.place = at;
                self.nodes += node.count();
                self.add(node, 0)
            }
            Event::DocumentStart(_) if self.root.is_some() => Err(RuleFileError::new(
                at,
                "a file of rules is one document; put its groups into the first one".to_owned(),
            )),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, place: Place, anchor: usize, is_map: bool) -> Result<(), RuleFileError> {
        if self.open.len() >= DEPTH_MAX {
            let message = format!("it nests deeper than {DEPTH_MAX} levels");
            return Err(RuleFileError::new(place, message));
        }
        self.open.push(Open {
            place,
            anchor,
            list: Vec::new(),
            is_map,
        });
        Ok(())
    }

    fn end(&mut self) -> Result<(), RuleFileError> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let kind = if open.is_map {
            let mut pairs = Vec::with_capacity(open.list.len() / 2);
            let mut nodes = open.list.into_iter();
            while let (Some(key), Some(value)) = (nodes.next(), nodes.next()) {
                pairs.push((key, value));
            }
            Kind::Map(pairs)
        } else {
            Kind::List(open.list)
        };
        let place = open.place;
        self.add(Node { place, kind }, open.anchor)
    }

    fn add(&mut self, node: Node, anchor: usize) -> Result<(), RuleFileError> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            let message = format!("it has more than {NODES_MAX} values, with those of aliases");
            return Err(RuleFileError::new(node.place, message));
        }
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            Some(open) => open.list.push(node),
            None => self.root = Some(node),
        }
        Ok(())
    }
}

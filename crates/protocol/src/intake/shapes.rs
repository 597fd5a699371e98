//! The shapes that lines had lately.
//!
//! Invariants: at most `SHAPES_MAX` shapes are kept, and shapes longer than `SHAPE_BYTES_MAX` only as
//! long as they are below `LISTINGS_BYTES_MAX` together; a full table starts anew, so a record never
//! depends on what was seen before it. Lines of few shapes are found without hashing.

use std::collections::HashMap;
use std::sync::Arc;

use logpond_record::limits::{SHAPE_BYTES_MAX, SHAPES_MAX};
use logpond_record::{Shape, ShapeTable};

/// Shapes that are compared before the table is asked. Access logs and syslog have about this many
/// shapes in use at once; a comparison that fails mostly ends at the length.
const RECENT_MAX: usize = 12;

/// The text of all long shapes that are kept. Compiled, they take about five times as much.
const LISTINGS_BYTES_MAX: usize = 4 << 20;

/// Shapes by their text.
pub(crate) struct Shapes {
    table: ShapeTable,
    /// Long shapes, and the bytes of their texts.
    listings: HashMap<Box<[u8]>, Arc<Shape>>,
    listings_bytes: usize,
    recent: Vec<Arc<Shape>>,
    text: Arc<Shape>,
}

/// A shape and whether it had been asked for before.
pub(crate) struct ShapeLookup {
    pub(crate) shape: Arc<Shape>,
    pub(crate) known: bool,
}

impl Shapes {
    /// No shapes but that of text.
    pub(crate) fn new() -> Shapes {
        let table = ShapeTable::new();
        Shapes {
            text: table.text(),
            table,
            listings: HashMap::new(),
            listings_bytes: 0,
            recent: Vec::with_capacity(RECENT_MAX),
        }
    }

    /// The shape of a line that is its message.
    pub(crate) fn text(&self) -> Arc<Shape> {
        Arc::clone(&self.text)
    }

    /// The shape with this text, which lists fields and may be long; `None` if it does not compile.
    pub(crate) fn find_listing(&mut self, text: &[u8]) -> Option<Arc<Shape>> {
        if text.len() <= SHAPE_BYTES_MAX {
            return self.find(text).map(|found| found.shape);
        }
        if let Some(known) = self.listings.get(text) {
            return Some(Arc::clone(known));
        }
        let shape = Arc::new(Shape::new(std::str::from_utf8(text).ok()?).ok()?);
        if self.listings_bytes + text.len() > LISTINGS_BYTES_MAX {
            (self.listings, self.listings_bytes) = (HashMap::new(), 0);
        }
        if text.len() <= LISTINGS_BYTES_MAX {
            self.listings_bytes += text.len();
            self.listings.insert(text.into(), Arc::clone(&shape));
        }
        Some(shape)
    }

    /// The shape with this text; `None` if it does not compile.
    pub(crate) fn find(&mut self, text: &[u8]) -> Option<ShapeLookup> {
        if let Some(at) = self
            .recent
            .iter()
            .position(|shape| shape.as_str().as_bytes() == text)
        {
            if at > 0 {
                self.recent.swap(at, at - 1);
            }
            let shape = Arc::clone(&self.recent[at.saturating_sub(1)]);
            return Some(ShapeLookup { shape, known: true });
        }
        if self.table.len() >= SHAPES_MAX {
            self.table = ShapeTable::new();
        }
        let before = self.table.len();
        let shape = self.table.intern(text)?;
        if self.recent.len() == RECENT_MAX {
            self.recent.pop();
        }
        self.recent.push(Arc::clone(&shape));
        Some(ShapeLookup {
            shape,
            known: self.table.len() == before,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_starts_anew() {
        let mut shapes = Shapes::new();
        for i in 0..SHAPES_MAX + 100 {
            let text = format!("{i}⟨_msg:t⟩");
            let found = shapes.find(text.as_bytes()).unwrap();
            assert!(!found.known && found.shape.as_str() == text);
            assert!(shapes.find(text.as_bytes()).unwrap().known);
        }
        assert!(shapes.table.len() <= SHAPES_MAX);
        assert!(shapes.find("⟨".as_bytes()).is_none());
    }

    #[test]
    fn long_shapes_are_kept_as_long_as_they_have_room() {
        let mut shapes = Shapes::new();
        for number in 0..5 {
            let name = "n".repeat(1 << 20);
            let text = format!("{{⟨{name}{number}:i⟩}}");
            let found = shapes.find_listing(text.as_bytes()).unwrap();
            assert_eq!(found.slots().len(), 1);
            let again = shapes.find_listing(text.as_bytes()).unwrap();
            assert!(Arc::ptr_eq(&found, &again));
            assert!(shapes.listings_bytes <= LISTINGS_BYTES_MAX);
        }
        assert!(shapes.find_listing(b"{}").is_some());
    }
}

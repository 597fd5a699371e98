//! The shapes that lines had lately.
//!
//! Invariants: at most `SHAPES_MAX` shapes are kept; a full table starts anew, so a record never
//! depends on what was seen before it. Lines of few shapes are found without hashing.

use std::sync::Arc;

use logpond_record::limits::SHAPES_MAX;
use logpond_record::{Shape, ShapeTable};

/// Shapes that are compared before the table is asked. Access logs and syslog have about this many
/// shapes in use at once; a comparison that fails mostly ends at the length.
const RECENT_MAX: usize = 12;

/// Shapes by their text.
pub(crate) struct Shapes {
    table: ShapeTable,
    recent: Vec<Arc<Shape>>,
    text: Arc<Shape>,
}

/// A shape and whether it had been asked for before.
pub(crate) struct Found {
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
            recent: Vec::with_capacity(RECENT_MAX),
        }
    }

    /// The shape of a line that is its message.
    pub(crate) fn text(&self) -> Arc<Shape> {
        Arc::clone(&self.text)
    }

    /// The shape with this text; `None` if it does not compile.
    pub(crate) fn find(&mut self, text: &[u8]) -> Option<Found> {
        if let Some(at) = self
            .recent
            .iter()
            .position(|shape| shape.as_str().as_bytes() == text)
        {
            if at > 0 {
                self.recent.swap(at, at - 1);
            }
            let shape = Arc::clone(&self.recent[at.saturating_sub(1)]);
            return Some(Found { shape, known: true });
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
        Some(Found {
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
}

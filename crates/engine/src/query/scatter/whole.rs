//! Holds the rows of a named batch back until all of them are there.
//!
//! A batch of which a part was shown when its node was lost could not be shown to its end: its copy, sent
//! again to another node, yields to what was shown. So it is shown as a whole or not at all. Rows of no
//! named batch are not held.
//!
//! Invariant: at most [`HELD_BYTES_MAX`] are held and one row; of a batch that does not fit in there the
//! first part is shown as if it were the whole.

use std::collections::BTreeMap;

use logpond_cluster::NodeId;

use super::super::frames::Block;
use super::super::journal_rows::Row;

/// Rows that are held, of all nodes: several times the largest batch that a sender makes.
const HELD_BYTES_MAX: usize = 64 << 20;

/// Rows that are shown together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) block: Block,
    pub(super) rows: Vec<Row>,
    bytes: usize,
}

impl Part {
    fn new(block: Block) -> Part {
        Part {
            block,
            rows: Vec::new(),
            bytes: 0,
        }
    }
}

/// For each stream the batch that is not whole yet.
#[derive(Debug, Default)]
pub(super) struct Whole {
    parts: BTreeMap<NodeId, Part>,
    bytes: usize,
}

impl Whole {
    /// The following rows of a node are in this block; gives what has become whole by that.
    pub(super) fn enter(&mut self, node: NodeId, block: Block) -> Option<Part> {
        let is_same = self.parts.get(&node).is_some_and(|p| p.block == block);
        if is_same {
            return None;
        }
        let part = self.parts.insert(node, Part::new(block))?;
        self.release(part)
    }

    /// A row of the block; gives what is to be shown now.
    pub(super) fn add(&mut self, node: NodeId, row: Row) -> Option<Part> {
        let part = self.parts.get_mut(&node)?;
        let block = part.block;
        part.bytes += row.1.len();
        self.bytes += row.1.len();
        part.rows.push(row);
        let is_due = block.batch.is_none() || self.bytes > HELD_BYTES_MAX;
        is_due.then(|| self.end(node)).flatten()
    }

    /// A node has sent all there is; gives what has become whole by that. Rows may follow in the same
    /// block.
    pub(super) fn end(&mut self, node: NodeId) -> Option<Part> {
        let part = self.parts.get_mut(&node)?;
        let part = std::mem::replace(part, Part::new(part.block));
        self.release(part)
    }

    fn release(&mut self, part: Part) -> Option<Part> {
        self.bytes -= part.bytes;
        (!part.rows.is_empty()).then_some(part)
    }

    /// A node's stream has ended: what was held of it comes again with the next one.
    pub(super) fn forget(&mut self, node: NodeId) {
        if let Some(part) = self.parts.remove(&node) {
            self.release(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use logpond_record::{Id, Incarnation, SourceId, Timestamp};
    use logpond_search::order::Key;

    use super::*;

    const NODE: NodeId = NodeId(1);

    fn block(sequence: u64, batch: Option<u64>) -> Block {
        Block {
            source: SourceId {
                incarnation: Incarnation(7),
                sequence,
            },
            batch: batch.map(|batch| (5, batch)),
        }
    }

    fn row(bytes: usize) -> Row {
        let key = Key {
            time: Timestamp(1),
            id: Id(1),
        };
        (key, vec![b'x'; bytes].into(), true)
    }

    fn counts(parts: &[Option<Part>]) -> Vec<usize> {
        let count = |part: &Option<Part>| part.as_ref().map_or(0, |part| part.rows.len());
        parts.iter().map(count).collect()
    }

    #[test]
    fn a_batch_leaves_when_the_next_block_begins_or_all_is_sent() {
        let mut whole = Whole::default();
        let parts = [
            whole.enter(NODE, block(0, Some(1))),
            whole.add(NODE, row(3)),
            whole.add(NODE, row(3)),
            whole.enter(NODE, block(0, Some(1))),
            whole.enter(NODE, block(0, Some(2))),
            whole.add(NODE, row(3)),
            whole.end(NODE),
            whole.end(NODE),
        ];
        assert_eq!(counts(&parts), [0, 0, 0, 0, 2, 0, 1, 0]);
        assert_eq!(parts[4].as_ref().map(|p| p.block), Some(block(0, Some(1))));
    }

    #[test]
    fn rows_without_a_batch_leave_at_once() {
        let mut whole = Whole::default();
        let parts = [
            whole.enter(NODE, block(0, None)),
            whole.add(NODE, row(3)),
            whole.add(NODE, row(3)),
        ];
        assert_eq!(counts(&parts), [0, 1, 1]);
    }

    #[test]
    fn rows_may_follow_in_the_block_whose_rows_all_left() {
        let mut whole = Whole::default();
        whole.enter(NODE, block(0, None));
        let parts = [
            whole.add(NODE, row(3)),
            whole.end(NODE),
            whole.add(NODE, row(3)),
        ];
        assert_eq!(counts(&parts), [1, 0, 1]);
    }

    #[test]
    fn what_a_lost_stream_had_begun_is_forgotten() {
        let mut whole = Whole::default();
        whole.enter(NODE, block(0, Some(1)));
        whole.add(NODE, row(3));
        whole.forget(NODE);
        assert_eq!(counts(&[whole.enter(NODE, block(0, Some(2)))]), [0]);
        assert_eq!(whole.bytes, 0);
    }

    #[test]
    fn too_much_is_not_held() {
        let mut whole = Whole::default();
        whole.enter(NODE, block(0, Some(1)));
        whole.enter(NodeId(2), block(1, Some(3)));
        let parts = [
            whole.add(NODE, row(HELD_BYTES_MAX - 5)),
            whole.add(NodeId(2), row(5)),
            whole.add(NodeId(2), row(5)),
            whole.add(NodeId(2), row(5)),
            whole.end(NODE),
        ];
        assert_eq!(counts(&parts), [0, 0, 2, 0, 1]);
        assert_eq!(whole.bytes, 5);
    }
}

//! The answers of nodes to their tasks, row by row once they have begun.

use std::io::BufReader;

use logpond_cluster::NodeId;
use logpond_cluster::question::{Task, TaskId};
use logpond_record::{Id, SourceId};
use logpond_search::order::Key;
use logpond_segment::batches::BatchSet;
use logpond_segment::sources::SourceSet;

use super::super::frames::{Frame, Frames, Receipt};
use super::super::journal_rows::Row;
use super::Reader;
use super::calls::AnswerHead;

/// What a node says to its task.
pub(super) struct Stream {
    pub(super) task: TaskId,
    pub(super) node: NodeId,
    /// What it is to count.
    pub(super) sources: SourceSet,
    /// The last row of it that has left.
    pub(super) last: Option<Key>,
    /// The next one.
    pub(super) head: Option<Row>,
    /// The row behind which it began.
    pub(super) behind: Option<Key>,
    /// Of its sources those that grew, each with the last row that it could read.
    pub(super) growing: Vec<(SourceId, Id)>,
    /// Its batches as they were first sent.
    pub(super) batches: BatchSet,
    /// Its end, if that came with the beginning.
    receipt: Option<Box<Receipt>>,
    frames: Frames<BufReader<Reader>>,
}

/// A part of an answer that was not done.
pub(super) struct Remainder {
    pub(super) sources: SourceSet,
    /// The last row of it that has left.
    pub(super) last: Option<Key>,
    /// Of its sources those that grew, each with the last row that could be read.
    pub(super) growing: Vec<(SourceId, Id)>,
    /// Its batches as they were first sent, if rows of it may have left.
    pub(super) batches: BatchSet,
}

/// The next step of a stream.
pub(super) enum StreamStep {
    Row(Row),
    Done(Box<Receipt>),
    Undone,
}

impl Stream {
    /// The stream of an answer that begins behind a row.
    pub(super) fn new(task: Task, opening: AnswerHead, behind: Option<Key>) -> Stream {
        Stream {
            task: task.id,
            node: task.node,
            sources: task.share.sources,
            last: behind,
            head: opening.head,
            behind,
            growing: opening.growing,
            batches: opening.batches,
            receipt: opening.receipt,
            frames: opening.frames,
        }
    }

    /// The next part of the answer, behind its head.
    pub(super) fn next(&mut self) -> StreamStep {
        if let Some(receipt) = self.receipt.take() {
            return StreamStep::Done(receipt);
        }
        loop {
            return match self.frames.next() {
                Ok(Frame::Row(row)) => StreamStep::Row(row),
                Ok(Frame::Receipt(receipt)) => StreamStep::Done(receipt),
                Ok(Frame::Block(_)) => continue,
                Ok(_) | Err(_) => StreamStep::Undone,
            };
        }
    }

    pub(super) fn undone(self) -> Remainder {
        Remainder {
            sources: self.sources,
            last: self.last,
            growing: self.growing,
            batches: if self.last == self.behind {
                BatchSet::default()
            } else {
                self.batches
            },
        }
    }
}

//! The answers of nodes to their shares, asked for all at once and read one after the other.

use std::io::{BufReader, Read};

use logpond_cluster::{NodeId, Share};
use logpond_record::{Id, SourceId, TimeRange};
use logpond_search::order::Key;
use logpond_segment::batches::BatchSet;
use logpond_segment::sources::SourceSet;

use super::super::frames::{Frame, Frames, Receipt};
use super::super::journal_rows::Row;
use super::super::question::{self, Asked};
use super::gather::Gathered;
use super::local;
use crate::side_by_side::side_by_side;

/// How often what failed is planned anew in one reading: once for each of a few nodes that die or
/// merge under it.
pub(super) const REPLANS_MAX: usize = 8;

/// Read at a time from a node.
const READ_BYTES: usize = 64 << 10;

/// What a node says to its share.
pub(super) struct Stream {
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
    /// What of it were batches as they were first sent.
    pub(super) batches: BatchSet,
    frames: Frames<BufReader<Box<dyn Read + Send>>>,
}

/// A share that was not done.
pub(super) struct Undone {
    pub(super) sources: SourceSet,
    /// The last row of it that has left.
    pub(super) last: Option<Key>,
    /// Of its sources those that grew, each with the last row that could be read.
    pub(super) growing: Vec<(SourceId, Id)>,
}

/// How a stream goes on.
pub(super) enum Next {
    Row(Row),
    Table(Vec<u8>),
    Ranges(Option<Vec<TimeRange>>),
    Done(Box<Receipt>),
    Undone,
}

impl Stream {
    /// The next part of the answer. If there is none, the node is taken note of, or asked anew
    /// what it holds.
    pub(super) fn next(&mut self, gathered: &Gathered<'_>) -> Next {
        let frame = loop {
            match self.frames.next() {
                Ok(Frame::Passed(passed)) => {
                    self.growing = passed.growing;
                    self.batches = passed.batches;
                }
                Ok(Frame::Block(_)) => {}
                frame => break frame,
            }
        };
        match frame {
            Ok(Frame::Row(row)) => Next::Row(row),
            Ok(Frame::Table(table)) => Next::Table(table),
            Ok(Frame::Ranges(ranges)) => Next::Ranges(ranges),
            Ok(Frame::Receipt(receipt)) => Next::Done(receipt),
            Ok(Frame::Gone) => {
                gathered.refresh_all();
                Next::Undone
            }
            Ok(Frame::Failed(_) | Frame::Passed(_) | Frame::Block(_)) | Err(_) => {
                gathered.fail(self.node);
                Next::Undone
            }
        }
    }

    pub(super) fn undone(self) -> Undone {
        Undone {
            sources: self.sources,
            last: self.last,
            growing: self.growing,
        }
    }
}

/// Asks every node of a cover for its share; gives the answers that begin, and the shares of those
/// that do not.
pub(super) fn open(
    gathered: &Gathered<'_>,
    shares: impl IntoIterator<Item = (NodeId, Share)>,
    asked: &Asked<'_>,
) -> (Vec<Stream>, SourceSet) {
    let shares: Vec<(NodeId, Share)> = shares.into_iter().collect();
    let cluster = gathered.cluster;
    let answers = side_by_side(&shares, |(node, share)| {
        let question = question::encode(share, asked);
        match *node == cluster.nodes.own() {
            true => local::ask(&cluster.pond, question, cluster.shutdown.clone()),
            false => cluster.nodes.ask(*node, &question),
        }
    });
    let (mut streams, mut unasked) = (Vec::new(), SourceSet::new());
    for ((node, share), answer) in answers {
        match answer {
            Some(Ok(reader)) => streams.push(Stream {
                node: *node,
                sources: share.sources.clone(),
                last: None,
                head: None,
                behind: None,
                growing: Vec::new(),
                batches: BatchSet::default(),
                frames: Frames::new(BufReader::with_capacity(READ_BYTES, reader)),
            }),
            _ => {
                gathered.fail(*node);
                unasked.union_with(&share.sources);
            }
        }
    }
    (streams, unasked)
}

//! What nodes and forwarders say to each other, and what they wait for.

use std::collections::BTreeMap;
use std::sync::Arc;

use logpond_cluster::give_up::{Attempt, HoldingsReply, WhoHolds};
use logpond_cluster::offers::{Claim, ClaimId};
use logpond_cluster::question::TaskId;
use logpond_cluster::{IndexedInventory, NodeId, Registry, Share};
use logpond_record::{Id, SourceId, Timestamp};
use logpond_segment::sources::SourceSet;

use super::bucket::{Ask, BucketReply};
use super::disk::{Contents, Frame, Rows};

/// A node, or beyond [`FORWARDERS`] a forwarder.
pub(super) type Place = usize;

/// Forwarders have numbers from this on.
pub(super) const FORWARDERS: Place = 1000;

/// Where the object store is.
pub(super) const BUCKET: Place = 2000;

/// An inventory with the batches in its sources, which in the product are in the files' footers.
#[derive(Debug)]
pub(super) struct InventoryView {
    pub(super) indexed: Arc<IndexedInventory>,
    /// The same of what is on its own disk, which repair goes by.
    pub(super) stored: Arc<IndexedInventory>,
    pub(super) batches: BTreeMap<SourceId, Rows>,
    /// Whether the node is leaving, which in the product gossip says.
    pub(super) is_leaving: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Request {
    Append(Frame),
    IsReplicated(SourceId),
    Claim,
    Fetch(SourceSet),
    WhoHolds(WhoHolds),
    Put {
        id: Id,
        contents: Contents,
        received: Timestamp,
    },
    Report {
        claim: ClaimId,
        sources: SourceSet,
    },
    Record(Arc<Registry>),
    Inventory,
    Scan {
        share: Share,
        open: BTreeMap<SourceId, u64>,
    },
    Bucket(Ask),
}

#[derive(Clone, Debug)]
pub(super) enum Reply {
    Bucket(BucketReply),
    Acked(SourceId),
    Refused,
    Replicated(bool),
    Claimed(Option<Claim>),
    Fetched(Contents, Timestamp),
    Held(HoldingsReply),
    Stored,
    Recorded {
        node: NodeId,
        known: Arc<Registry>,
        has_joined: bool,
    },
    Inventory(Arc<InventoryView>),
    Scanned {
        counted: SourceSet,
        frames: Vec<(SourceId, Frame)>,
        /// Whether the bucket was asked for it.
        is_remote: bool,
    },
}

/// The receiver of the result of a request.
#[derive(Clone, Debug)]
pub(super) enum ReplyTarget {
    Batch(u64),
    Claim {
        ingester: Place,
    },
    Consume {
        number: u64,
        node: NodeId,
    },
    Fetch {
        number: u64,
    },
    GiveUp {
        attempt: Attempt,
        node: NodeId,
    },
    Put {
        number: u64,
        segment: Id,
        node: NodeId,
    },
    Repair {
        segment: Id,
        node: NodeId,
    },
    Record,
    Look {
        node: NodeId,
    },
    Collect {
        query: u64,
        node: NodeId,
    },
    Scan {
        query: u64,
        task: TaskId,
    },
    /// The one who works with the bucket.
    Bucket,
    /// One who reads a segment of it for a question.
    Remote {
        name: u64,
        segment: Id,
    },
    /// Nobody waits.
    Nothing,
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    Request { number: u64, request: Request },
    Reply { number: u64, reply: Reply },
}

/// What happens at a moment.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Deliver {
        from: Place,
        to: Place,
        body: Body,
    },
    /// No reply to a request has come.
    Timeout {
        at: Place,
        process: u64,
        number: u64,
    },
    Timer {
        at: Place,
        process: u64,
        timer: Timer,
    },
    Fault,
    /// The other cluster's store does something.
    Foreign,
    Restart(Place),
    Uncut(Place, Place),
}

/// What a node does by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// Closes old journal files, hands over, gives up, tells of births.
    Ingest,
    /// Takes claims.
    Consume,
    /// Merges segments.
    Merge,
    /// Looks at what all hold, and repairs.
    Look,
    /// Tells another node of its registry.
    Gossip,
    /// Asks a question.
    Ask,
    /// A forwarder sends.
    Send,
    /// A journal file has been synced so far.
    Synced { source: SourceId, count: usize },
    /// A segment's bytes have been synced.
    Written(Id),
    /// The directories have been synced; a segment may be new.
    Named(Option<Id>),
    /// The registry has been synced.
    Recorded,
    /// The inputs of a merge are to retire.
    Retire(Id),
    /// What is retired is to be removed.
    Purge,
    /// Works with the bucket.
    Offload,
    /// Takes over what is listed in the bucket.
    Follow,
}

//! The calls between nodes: paths, headers, and the bodies that are messages of their own.

use std::time::Duration;

use logpond_cluster::NodeId;
use logpond_cluster::offers::ClaimId;
use logpond_cluster::wire::{DecodeError, Decoder, Encoder};
use logpond_segment::sources::SourceSet;

/// Membership messages.
pub(crate) const PATH_GOSSIP: &str = "/cluster/v1/gossip";
/// The registry that the node has, and the news that it is to note.
pub(crate) const PATH_REGISTRY: &str = "/cluster/v1/registry";
/// The saved queries that the node has.
pub(crate) const PATH_SAVED: &str = "/cluster/v1/saved-queries";
/// The inventory of the node.
pub(crate) const PATH_INVENTORY: &str = "/cluster/v1/inventory";
/// The inventory of its segments only.
pub(crate) const PATH_STORED: &str = "/cluster/v1/stored";
/// A question about a share of it.
pub(crate) const PATH_QUESTION: &str = "/cluster/v1/question";
/// A question whose answer goes on with what the node takes in.
pub(crate) const PATH_FOLLOW: &str = "/cluster/v1/follow";

/// An offer of journal files for a store; the answer waits until there are some.
pub(crate) const PATH_OFFER: &str = "/cluster/v1/offer";
/// Journal files for a store.
pub(crate) const PATH_CLAIM: &str = "/cluster/v1/claim";
/// The outcome of a claim.
pub(crate) const PATH_REPORT: &str = "/cluster/v1/report";
/// The sources that the node holds.
pub(crate) const PATH_HOLDS: &str = "/cluster/v1/holds";
/// The batches that the node holds as they were first sent.
pub(crate) const PATH_ORIGINALS: &str = "/cluster/v1/originals";
/// The batches that the node has ingested itself, as far as its journal says.
pub(crate) const PATH_TAKEN: &str = "/cluster/v1/taken";
/// A closed journal file.
pub(crate) const PATH_JOURNAL: &str = "/cluster/v1/journal";
/// A copy of a segment.
pub(crate) const PATH_SEGMENT: &str = "/cluster/v1/segment";

/// The status of the node.
pub(crate) const PATH_STATUS: &str = "/cluster/v1/status";
/// The state of alerts that the node knows.
pub(crate) const PATH_ALERTS: &str = "/cluster/v1/alerts";
/// A canary record, and the answer if the node's answers have it.
pub(crate) const PATH_CANARY: &str = "/cluster/v1/canary";
/// The node is to leave, or to stay after all.
pub(crate) const PATH_LEAVE: &str = "/cluster/v1/leave";

/// The answer about a canary record that is found.
pub(crate) const FOUND: &[u8] = b"found";

/// The header by which an asker says that it takes an inventory's changes for it (RFC 3229).
pub(crate) const A_IM: &str = "a-im";
/// Its value, and that of [`IM`] for an answer that has only changes.
pub(crate) const RECENT: &str = "recent";
/// The header of such an answer.
pub(crate) const IM: &str = "im";

/// The body for a node that is to leave.
pub(crate) const LEAVES: &[u8] = b"leave";
/// The body for one that is to stay.
pub(crate) const STAYS: &[u8] = b"stay";

/// How long a store's question whether there is something for it is held. Long enough that idle
/// nodes do not talk all the time, short enough that one that has gone is noticed.
pub(crate) const OFFER_WAIT_MAX: Duration = Duration::from_secs(10);

/// The header with the xxh3-128 of a copy, in hexadecimal digits.
pub(crate) const HASH: &str = "logpond-xxh3";

/// The header of a membership message that says where its sender is reached.
pub(crate) const FROM: &str = "logpond-from";

/// The header of a call that names the node that it is for, and of each answer that names the node which
/// gives it: who is at an address changes.
pub(crate) const NODE: &str = "logpond-node";

/// Version of a report's encoding.
const REPORT_VERSION: u64 = 1;

/// The outcome of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) claim: ClaimId,
    /// Sources that are where they should be; without any the claim has failed.
    pub(crate) sources: Option<SourceSet>,
}

impl Report {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Encoder::new(REPORT_VERSION);
        out.wide(self.claim.0);
        out.flag(self.sources.is_some());
        out.sources(self.sources.as_ref().unwrap_or(&SourceSet::new()));
        out.finish()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Report, DecodeError> {
        let mut from = Decoder::new(bytes, REPORT_VERSION)?;
        let claim = ClaimId(from.wide("the claim")?);
        let is_done = from.flag("whether it is done")?;
        let sources = from.sources("its sources")?;
        from.finish()?;
        let sources = is_done.then_some(sources);
        Ok(Report { claim, sources })
    }
}

/// Version of the encoding of [`NewsReceipt`].
const NOTED_VERSION: u64 = 1;

/// A node that has written the news to its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewsReceipt {
    pub(crate) node: NodeId,
    /// True if it has joined its cluster.
    pub(crate) has_joined: bool,
}

impl NewsReceipt {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut out = Encoder::new(NOTED_VERSION);
        out.wide(self.node.0);
        out.flag(self.has_joined);
        out.finish()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<NewsReceipt, DecodeError> {
        let mut from = Decoder::new(bytes, NOTED_VERSION)?;
        let noted = NewsReceipt {
            node: NodeId(from.wide("the node")?),
            has_joined: from.flag("whether it has joined")?,
        };
        from.finish()?;
        Ok(noted)
    }
}

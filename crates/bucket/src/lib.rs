//! Segments in an object store that all nodes share (CLUSTER R14): where a bucket is, how its objects are
//! read and written, who of several writers wins, and what of it is kept on the local disk.

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "tests cast numbers that they know"
    )
)]

mod cache;
mod chains;
mod delta;
mod location;
mod objects;
mod probe;
mod reconcile;
mod rejected;
mod remote_file;
mod store;
mod sweep;
mod transport;
mod vendors;

pub use cache::{Cache, Counters as CacheCounters};
pub use chains::{Chains, HeadFault, Heads};
pub use delta::{Columns, ColumnsOf, LOG, OpenTable, PublishReport, SkippedDay};
pub use location::{Location, LocationError, Vendor};
pub use objects::{BucketError, CreateOutcome, FailureKind, ObjectEntry, Objects};
pub use probe::probe;
pub use reconcile::{ReconcileReport, reconcile, segment_objects};
pub use remote_file::{Costs, RemoteFile};
pub use store::{Store, StoreCounters};
pub use sweep::{GRACE, SweepReport, store_time, sweep};

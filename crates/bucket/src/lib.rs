//! Segments in an object store that all nodes share (CLUSTER R14): where a bucket is, how its objects are
//! read and written, who of several writers wins, and what of it is kept on the local disk.

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
pub use chains::{Broken, Chains, Heads};
pub use delta::{Columns, ColumnsOf, LOG, OpenTable, Published, Skipped};
pub use location::{Location, LocationError, Vendor};
pub use objects::{BucketError, Created, FailureKind, ObjectEntry, Objects};
pub use probe::probe;
pub use reconcile::{Reconciled, reconcile, segment_objects};
pub use remote_file::{Costs, RemoteFile};
pub use store::{Store, StoreCounters};
pub use sweep::{GRACE, Swept, store_time, sweep};

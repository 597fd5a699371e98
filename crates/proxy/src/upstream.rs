//! Where connections go: what upstreams are called, which of them is next, and how they are.

mod check;
mod pool;
mod stream;
mod target;

pub(crate) use check::check;
pub use pool::UpstreamStatus;
pub(crate) use pool::{ConnectionGuard, Pool, UpstreamConnection, Upstreams};
pub(crate) use stream::Stream;
pub use target::{Target, TargetError};

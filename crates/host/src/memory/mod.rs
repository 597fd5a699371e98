//! How much memory there is, who may have how much of it, and when it is given back.
//!
//! ```text
//! machine, container, limits ─▶ Budget ◀─ measured: allocator
//!                                │  ▲
//!                  leases: queries  caches: they give way
//!
//! size of the budget ─▶ incoming: pools of what comes in
//! ```

mod allocator;
mod machine;
mod budget;
pub mod incoming;
mod lease;

pub use allocator::{Usage, begin};
pub use budget::CacheRoom;
pub use budget::GivesWay;
pub use budget::{BUDGET_BYTES_MIN, Budget, Refusal};
pub use lease::{Charge, Lease, LeaseStopped};
pub use machine::{
    AddressSpaceError, address_room, begin_within_limits, bytes, check_address_space,
};

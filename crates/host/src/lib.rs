//! The machine: clocks, disks, memory, names, the terminal, the process, and its metrics.
//!
//! Invariants: nothing here knows a record, a query or a node; whoever waits can be shut down.

pub mod clock;
pub mod terminal;
pub mod telemetry;
pub mod shutdown;
pub mod panics;
pub mod disk;
pub mod state_lock;
pub mod private_file;
pub mod watch;
pub mod memory;
pub mod open_files;
pub mod descriptors;
pub mod service_manager;
pub mod host_name;
pub mod hostname;
pub mod timezone;
pub mod recent;
pub mod side_by_side;

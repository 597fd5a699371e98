//! Layer 2: what is on disk.
//!
//! No sockets, no clock, no async, no direct file access: all IO goes through [`disk::Disk`].

pub mod disk;

//! Layer 2: what is on disk.
//!
//! No sockets, no clock, no async, no direct file access: all IO goes through [`disk::Disk`].

pub mod disk;
pub mod encoding;
pub mod rows;
pub mod file;
pub mod tokens;

//! Layer 5: the product. The only crate with sockets, threads, a clock and an async runtime.
//!
//! ```text
//! producers ─▶ forward ─▶ net, http ─▶ ingest ─▶ store ◀─ query ◀─ http ◀─ client ◀─ people
//!                                      journal   segments  search          output
//! ```

pub mod cli;
pub mod settings;
pub mod commands;
pub mod forward;
pub mod input;
pub mod client;
pub mod output;
pub mod terminal;
pub mod disk;

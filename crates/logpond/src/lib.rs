//! Layer 5: the product. The only crate with sockets, threads, a clock and an async runtime.
//!
//! ```text
//!  producers ─▶ forward ─▶ net, http ─▶ ingest ─▶ store ◀─ query ◀─ http ◀─ people
//!                                       journal   segments search
//! ```
//!
//! Threads, by name: `lp-runtime` runs everything async and touches no file; `lp-journal` writes
//! the journal; `lp-query-N` run queries; `lp-blocking` decode request bodies.

pub mod clock;
pub mod ingest;
pub mod net;
pub mod shutdown;
pub mod telemetry;

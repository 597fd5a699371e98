//! The product, composed: command line, commands, and the server's threads and listeners.
//!
//! ```text
//! producers ─▶ ship ─▶ listen, http ─▶ engine ◀─ http ◀─ client ◀─ people
//!                                        ▲                render
//!                                       node ◀─▶ other nodes
//! ```
//!
//! Threads of the server, by name: `lp-runtime` runs everything async and touches no file;
//! `lp-journal` writes the journal; `lp-store` makes, merges and retires segments; `lp-query-N` run
//! queries, and `lp-scan-N` help them; `lp-blocking` decode request bodies; `lp-watch` notices files
//! that change under the server: tokens, certificates, rules and saved queries; `lp-alerts` evaluates
//! alert rules and `lp-notify-N` tell receivers of alerts; `lp-kafka` reads topics of Kafka.

pub mod cli;
pub mod demo;
pub mod serve;
pub mod commands;

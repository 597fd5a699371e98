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

pub mod cli;
pub mod demo;
pub mod serve;
pub mod commands;

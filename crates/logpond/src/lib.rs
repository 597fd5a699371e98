//! Layer 6: the product: command line, settings, roles, listeners, threads, real files.
//!
//! ```text
//! producers ─▶ forward ─▶ net, http ─▶ ingest ─▶ store ◀─ query ◀─ http ◀─ client ◀─ people
//!                                      journal   segments  search          output
//! ```
//!
//! Threads of the server, by name: `lp-runtime` runs everything async and touches no file;
//! `lp-journal` writes the journal; `lp-store` makes, merges and retires segments; `lp-query-N` run
//! queries, and `lp-scan-N` help them; `lp-blocking` decode request bodies; `lp-watch` notices files
//! that change under the server: tokens, certificates, rules and saved queries; `lp-alerts` evaluates
//! alert rules and `lp-notify-N` tell receivers of alerts; `lp-kafka` reads topics of Kafka.

pub mod cli;
pub mod settings;
pub mod commands;
pub mod forward;
pub mod load;
pub mod input;
pub mod net;
pub mod import;
pub mod ingest;
#[cfg(feature = "kafka")]
pub mod kafka;
pub mod store;
pub mod query;
pub mod operate;
pub mod backup;
pub mod alert;
pub mod cluster;
pub mod handoff;
pub mod serve;
pub mod service_manager;
pub mod http;
pub mod client;
pub mod output;
pub mod terminal;
pub mod telemetry;
pub mod tokens;
pub mod saved;
pub mod watch;
pub mod disk;
pub mod memory;
mod open_files;
pub mod panics;
mod private_file;
mod state_lock;
mod recent;
pub mod resends;
mod step_mark;
mod descriptors;
pub mod clock;
pub mod geoip;
pub mod host_name;
pub mod hostname;
pub mod timezone;
pub mod shutdown;
pub mod side_by_side;

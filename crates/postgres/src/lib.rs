//! The protocol of Postgres: a listener whose clients ask in SQL.
//!
//! ```text
//! socket ─▶ wire ─▶ session ─▶ script ─▶ statement ─▶ the engine of SQL, on a thread of queries
//!    ▲                 │                     │
//!    └── frames ◀──────┴──── encoding ◀──────┘
//! ```
//!
//! Invariants:
//! - Statements run in the engine of SQL as those of HTTP do, with the same memory, turns, checks and threads.
//! - Rows are sent as they come. A client that does not read holds as much memory as a reader of HTTP.
//! - An answer that is not complete ends with an error, unless the session asks for a warning.
//! - A session ends within two seconds after its token was revoked or has expired.
#![cfg(feature = "sql")]

mod wire;
mod failure;
mod scram;
mod script;
mod settings;
mod values;
mod encoding;
mod registry;
mod texts;
mod statement;
mod session;
mod login;
mod admit;
mod serve;

pub use serve::{PostgresServer, SESSIONS_MAX, serve_accepted};

//! The listeners that are not HTTP, TLS of all listeners, and tokens.

pub mod tokens;
pub mod net;

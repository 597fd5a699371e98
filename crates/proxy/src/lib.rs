//! A proxy that ends TLS for any application over TCP: it decrypts what clients send, passes it on to
//! an upstream, and encrypts what comes back, without a look at either.
//!
//! Invariants:
//! - A worker is a thread with an event loop and a listener of its own; workers share the
//!   certificates, the counters of [`Limits`], what is known of upstreams, and nothing on the way of
//!   bytes. A listener is closed only when the proxy ends.
//! - `session` and `pump` know of no socket and no clock; `connection` moves their bytes.
//! - A connection owns memory for a part of a record and for what one side would not take, and for
//!   nothing else; while one side would not take something, the other is not read.
//! - An upstream is connected to after the handshake, and another is tried only before a byte went
//!   to it. Orderly ends are passed on as orderly ends, and resets as resets.
//! - Each connection that was accepted gives one record when it ends, for whatever reason.

mod buffer;
mod certificates;
mod connection;
mod limits;
mod pump;
mod record;
mod server;
mod session;
mod sink;
mod upstream;
mod worker;

pub use certificates::{Certificates, SniRule};
pub use limits::Limits;
pub use server::{Replacer, Running, Settings, StartError, Stopper, Trust, start};
pub use upstream::{Target, TargetError};

/// The header that upstreams are sent before a connection's first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyHeader {
    /// The line of version 1: addresses.
    V1,
    /// Version 2: addresses, and what TLS agreed on.
    V2,
}

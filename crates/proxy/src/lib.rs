//! A proxy that ends TLS for any application over TCP: it decrypts what clients send, passes it on to
//! an upstream, and encrypts what comes back, without a look at either.
//!
//! Invariants:
//! - A worker is a thread with an event loop and listeners of its own; workers share what settings
//!   say, the counters of [`Limits`], what is known of upstreams, and nothing on the way of bytes. A
//!   listener is closed only when the proxy ends.
//! - A connection is treated by the settings that held when it came, until it ends.
//! - `session` and `pump` know of no socket and no clock; `connection` moves their bytes.
//! - A connection owns memory for a part of a record and for what one side would not take, and for
//!   nothing else; while one side would not take something, the other is not read.
//! - An upstream is connected to after the handshake, for a client whose certificate was judged if it needs
//!   one, and another is tried only before a byte went to it. Orderly ends are passed on as orderly ends,
//!   and resets as resets.
//! - A handshake by which an authority asks whether this proxy answers for a name (RFC 8737) ends with itself:
//!   it meets no client's certificate, route or upstream.
//! - Each connection that was accepted gives one record when it ends, for whatever reason.

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

mod balance;
mod buffer;
mod certificates;
mod client_rules;
mod client_table;
mod clients;
mod connection;
mod counters;
mod frontend;
mod limits;
mod listen;
mod ordered;
mod pump;
mod record;
mod server;
mod session;
mod settings;
mod sink;
mod state_record;
mod upstream;
mod worker;

pub use certificates::{CertificateStatus, Certificates, SniRule, TlsSettings};
pub use client_rules::{ClientRule, ClientRuleError};
pub use client_table::{ClientOrder, ClientStatus, ClientsStatus};
pub use clients::ClientAuth;
pub use counters::{HandshakesStatus, TimesStatus, TrafficStatus};
pub use frontend::FrontendStatus;
pub use limits::{Admission, AdmissionGuard, Limits, counted_as};
pub use listen::ListenSockets;
pub use ordered::OrderedCertificate;
pub use server::{Control, ReplaceError, RunningProxy, StartError, Status, Stopper, bind, start};
pub use settings::{
    Frontend, NameError, NamePattern, ProxyHeader, Route, Settings, Trust, Upstream,
};
pub use upstream::{Target, TargetError, UpstreamStatus};

//! The proxy with real sockets, between real clients and upstreams.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "tests cast numbers that they know"
)]

mod bytes;
mod client_certificates;
mod ends;
mod headers;
mod ordered;
mod peers;
mod refusals;
mod routes;
mod setting;
mod stapling;
mod status;
mod replacing;

//! The proxy with real sockets, between real clients and upstreams.

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

//! The feature `acme`, end to end with pebble, Let's Encrypt's server for tests: built apart, since all other tests
//! run with the program as most users build it.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "tests cast numbers that they know"
)]

#[path = "../e2e/http.rs"]
#[allow(dead_code, reason = "the end-to-end tests use the rest")]
mod http;
#[path = "../e2e/pond.rs"]
#[allow(dead_code, reason = "the end-to-end tests use the rest")]
mod pond;
#[path = "../e2e/surroundings.rs"]
#[allow(dead_code, reason = "the end-to-end tests use the rest")]
mod surroundings;
#[path = "../e2e/unpacked.rs"]
mod unpacked;

mod orders;
mod pebble;

//! The feature `sql`, end to end: built apart, since all other tests run with the program as most users
//! build it.

#[path = "../e2e/http.rs"]
#[allow(dead_code, reason = "the end-to-end tests use the rest")]
mod http;
#[path = "../e2e/nodes.rs"]
#[allow(dead_code, reason = "the end-to-end tests use the rest")]
mod nodes;
#[path = "../e2e/pond.rs"]
#[allow(dead_code, reason = "the end-to-end tests use the rest")]
mod pond;
#[path = "../e2e/surroundings.rs"]
#[allow(dead_code, reason = "the end-to-end tests use the rest")]
mod surroundings;

mod answers;
mod duckdb;
mod postgres;
mod tables;

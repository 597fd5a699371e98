//! The `logpond` program.
fn main() {}

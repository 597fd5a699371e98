//! What the end-to-end tests, the benchmark and the torture share: real servers, and an HTTP client
//! that hides nothing.

#[path = "../../logpond/tests/e2e/http.rs"]
#[allow(dead_code, reason = "the end-to-end tests use the rest")]
pub(crate) mod http;
#[path = "../../logpond/tests/e2e/pond.rs"]
#[allow(dead_code, reason = "the end-to-end tests use the rest")]
pub(crate) mod pond;
#[path = "../../logpond/tests/e2e/unpacked.rs"]
pub(crate) mod unpacked;

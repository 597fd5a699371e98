//! What the operator must know: lines on standard error.

use std::io::Write;

/// Says that something is wrong that the operator can do something about.
pub fn warn(text: &str) {
    say(&format!("warning: {text}"));
}

/// Says what was done that the operator should know of.
pub fn say(text: &str) {
    // A closed standard error must not end the server.
    let _ = writeln!(std::io::stderr().lock(), "logpond: {text}");
}

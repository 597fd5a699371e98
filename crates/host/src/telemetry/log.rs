//! What the operator must know: lines on standard error.
//!
//! Those of a server have the time and the level: `logpond: 2026-11-27T02:49:17.123Z warning: …`.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use logpond_record::Timestamp;

use crate::clock;
use crate::terminal::guard::clean;

/// True if this process is a server, whose lines are a log. Commands that somebody waits for say no times.
static IS_SERVER: AtomicBool = AtomicBool::new(false);

/// Has the lines from now on begin with the time and the level.
pub fn begin_log() {
    IS_SERVER.store(true, Ordering::Relaxed);
}

/// Says that something is wrong that the operator can do something about.
pub fn warn(text: &str) {
    write(Level::Warning, text);
}

/// Says what was done that the operator should know of.
pub fn say(text: &str) {
    write(Level::Info, text);
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Info,
    Warning,
}

fn write(level: Level, text: &str) {
    let time = IS_SERVER.load(Ordering::Relaxed).then(clock::now);
    // A closed standard error must not end the server.
    let line = line(time, level, &clean(text));
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

fn line(time: Option<Timestamp>, level: Level, text: &str) -> String {
    match (time, level) {
        (None, Level::Info) => format!("logpond: {text}"),
        (None, Level::Warning) => format!("logpond: warning: {text}"),
        (Some(time), Level::Info) => format!("logpond: {} info: {text}", stamp(time)),
        (Some(time), Level::Warning) => format!("logpond: {} warning: {text}", stamp(time)),
    }
}

/// A time with milliseconds, in UTC.
pub fn stamp(time: Timestamp) -> String {
    let whole = jiff::Timestamp::from_millisecond(time.unix_ms());
    whole.map_or_else(|_| time.to_string(), |time| format!("{time:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_server_have_a_time_and_a_level() {
        let time = Timestamp(1_795_747_757_005_000_000);
        assert_eq!(
            line(Some(time), Level::Warning, "x"),
            "logpond: 2026-11-27T02:49:17.005Z warning: x"
        );
        assert_eq!(
            line(Some(time), Level::Info, "x"),
            "logpond: 2026-11-27T02:49:17.005Z info: x"
        );
        assert_eq!(line(None, Level::Warning, "x"), "logpond: warning: x");
        assert_eq!(line(None, Level::Info, "x"), "logpond: x");
    }
}

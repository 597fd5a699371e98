//! A line on standard error that says how far something long is; for terminals only.

use std::io::Write;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use logpond_host::terminal;
use logpond_record::cast;
use logpond_render::quantity::{bytes, span};

/// Nothing is said before: most questions are answered by then.
const QUIET_FOR: Duration = Duration::from_millis(500);

/// How often the line changes.
const DRAW_EVERY: Duration = Duration::from_millis(100);

/// See the module.
pub(in crate::commands) struct Progress {
    is_enabled: bool,
    is_shown: bool,
    started: Instant,
    drawn: Option<Instant>,
}

impl Progress {
    pub(in crate::commands) fn new() -> Progress {
        Progress {
            is_enabled: terminal::is_error(),
            is_shown: false,
            started: Instant::now(),
            drawn: None,
        }
    }

    /// Whether it is worth telling how far it is.
    pub(in crate::commands) fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    /// Says nothing any more.
    pub(in crate::commands) fn disable(&mut self) {
        self.clear();
        self.is_enabled = false;
    }

    /// Shows how far it is; `line` is given the time that it has taken.
    pub(in crate::commands) fn show(&mut self, line: impl FnOnce(Duration) -> String) {
        let is_due = self.drawn.is_none_or(|at| at.elapsed() >= DRAW_EVERY);
        let elapsed = self.started.elapsed();
        if !self.is_enabled || elapsed < QUIET_FOR || !is_due {
            return;
        }
        self.drawn = Some(Instant::now());
        self.is_shown = true;
        let text = line(elapsed);
        let _ = write!(std::io::stderr().lock(), "\r\x1b[K{text}");
    }

    /// Removes the line.
    pub(in crate::commands) fn clear(&mut self) {
        if self.is_shown {
            self.is_shown = false;
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}

/// Does something, and shows meanwhile how far it is.
pub(in crate::commands) fn watched<T>(
    line: impl Fn(Duration) -> String + Send,
    work: impl FnOnce() -> T,
) -> T {
    let mut progress = Progress::new();
    if !progress.is_enabled() {
        return work();
    }
    let (working, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            while ended.recv_timeout(DRAW_EVERY) == Err(RecvTimeoutError::Timeout) {
                progress.show(&line);
            }
            progress.clear();
        });
        // It is dropped with the end of the work, however that comes.
        let _working = working;
        work()
    })
}

/// `3.1 GB of 8.4 GB · 1.6 GB/s · 4.0 s left`; the total is 0 if it is not known.
pub(in crate::commands) fn amount(read: u64, total: u64, elapsed: Duration) -> String {
    let rate = cast::float(read) / elapsed.as_secs_f64().max(0.001);
    let mut text = bytes(read);
    if total > 0 {
        text.push_str(&format!(" of {}", bytes(total)));
    }
    text.push_str(&format!(" · {}/s", bytes(cast::whole_u64(rate))));
    let left = total.saturating_sub(read);
    if total > 0 && rate > 0.0 {
        let seconds = (cast::float(left) / rate).min(1e9);
        text.push_str(&format!(
            " · {} left",
            span(Duration::from_secs_f64(seconds.ceil()))
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_it_is() {
        assert_eq!(
            amount(3_100_000_000, 8_400_000_000, Duration::from_secs(2)),
            "3.1 GB of 8.4 GB · 1.6 GB/s · 4.0 s left"
        );
        assert_eq!(amount(0, 0, Duration::from_secs(1)), "0 B · 0 B/s");
    }

    #[test]
    fn what_is_watched_gives_what_it_came_to() {
        assert_eq!(watched(|_| String::new(), || 7), 7);
    }
}

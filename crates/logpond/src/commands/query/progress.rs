//! A line on standard error that says how far a long question is; for terminals only.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::client;
use crate::output::quantity::{bytes, count, span};
use crate::terminal;

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

    /// Shows how far it is.
    pub(in crate::commands) fn update(&mut self, progress: client::Progress) {
        let is_due = self.drawn.is_none_or(|at| at.elapsed() >= DRAW_EVERY);
        let elapsed = self.started.elapsed();
        if !self.is_enabled || elapsed < QUIET_FOR || !is_due {
            return;
        }
        self.drawn = Some(Instant::now());
        self.is_shown = true;
        let text = line(progress, elapsed);
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

/// `3.1 GB of 8.4 GB · 1.9 GB/s · 3 s left · 17 found`
fn line(progress: client::Progress, elapsed: Duration) -> String {
    let rate = progress.bytes as f64 / elapsed.as_secs_f64().max(0.001);
    let mut text = bytes(progress.bytes);
    if progress.bytes_total > 0 {
        text.push_str(&format!(" of {}", bytes(progress.bytes_total)));
    }
    text.push_str(&format!(" · {}/s", bytes(rate as u64)));
    let left = progress.bytes_total.saturating_sub(progress.bytes);
    if progress.bytes_total > 0 && rate > 0.0 {
        let seconds = (left as f64 / rate).min(1e9);
        text.push_str(&format!(
            " · {} left",
            span(Duration::from_secs_f64(seconds.ceil()))
        ));
    }
    text.push_str(&format!(" · {} found", count(progress.rows)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_it_is() {
        let progress = client::Progress {
            bytes: 3_100_000_000,
            bytes_total: 8_400_000_000,
            rows: 17,
        };
        assert_eq!(
            line(progress, Duration::from_secs(2)),
            "3.1 GB of 8.4 GB · 1.6 GB/s · 4.0 s left · 17 found"
        );
        let unknown = client::Progress::default();
        assert_eq!(
            line(unknown, Duration::from_secs(1)),
            "0 B · 0 B/s · 0 found"
        );
    }
}

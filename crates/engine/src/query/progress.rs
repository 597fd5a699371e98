//! How far a query is, for those who want to know.

use std::time::{Duration, Instant};

use serde_json::json;

use super::output::{Cancellation, Output};

/// How often a query that wants it says how far it is.
const INTERVAL: Duration = Duration::from_millis(100);

/// Says how far a query is, now and then.
pub(super) struct Progress {
    said_at: Instant,
    bytes_total: u64,
    is_wanted: bool,
}

impl Progress {
    pub(super) fn new(is_wanted: bool, bytes_total: u64) -> Progress {
        Progress {
            said_at: Instant::now(),
            bytes_total,
            is_wanted,
        }
    }

    /// To be called every few milliseconds of work: ends it when nobody reads any more.
    pub(super) fn step(
        &mut self,
        bytes: u64,
        rows: u64,
        out: &mut Output,
    ) -> Result<(), Cancellation> {
        out.check()?;
        out.note_bytes(bytes, self.bytes_total);
        if self.is_wanted && self.said_at.elapsed() >= INTERVAL {
            self.said_at = Instant::now();
            let total = self.bytes_total.max(bytes);
            out.aside(
                &json!({ "_progress": { "bytes": bytes, "bytes_total": total, "rows": rows } }),
            )?;
            out.flush()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use logpond_host::shutdown;

    use super::*;

    #[test]
    fn who_lists_queries_sees_what_was_read() {
        let (_stopper, shutdown) = shutdown::pair();
        let (mut out, reader, _chunks) = Output::watched(shutdown);
        assert_eq!(reader.bytes(), (0, 0));
        let mut progress = Progress::new(false, 100);
        progress.step(40, 1, &mut out).unwrap();
        assert_eq!(reader.bytes(), (40, 100));
        progress.step(140, 2, &mut out).unwrap();
        assert_eq!(reader.bytes(), (140, 140), "row groups may be read again");
    }
}

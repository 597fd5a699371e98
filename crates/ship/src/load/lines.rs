//! The lines of a load: most of each is made beforehand, so that making them costs next to nothing.

use std::io::Write;

use jiff::Timestamp;
use logpond_record::cast;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Words of the lines, about as long as words are.
const WORDS: [&str; 48] = [
    "accepted",
    "after",
    "at",
    "before",
    "bytes",
    "cache",
    "closed",
    "connection",
    "context",
    "cookie",
    "deadline",
    "denied",
    "disk",
    "done",
    "error",
    "failed",
    "fetch",
    "file",
    "flush",
    "for",
    "from",
    "handler",
    "header",
    "host",
    "in",
    "index",
    "job",
    "key",
    "limit",
    "lookup",
    "missing",
    "of",
    "on",
    "opened",
    "peer",
    "queue",
    "read",
    "refused",
    "request",
    "retry",
    "server",
    "session",
    "slow",
    "timeout",
    "token",
    "user",
    "worker",
    "write",
];

/// Different texts; more of them would compress no worse.
const TEXTS: u64 = 1024;

/// Where a line's text begins: behind its time, its load's name and its number.
pub(super) struct Lines {
    id: String,
    texts: Vec<String>,
    size: usize,
}

impl Lines {
    /// Lines of so many bytes, but never shorter than their beginning. The same name makes the same
    /// texts.
    pub(super) fn new(id: &str, size: usize) -> Lines {
        let texts = (0..TEXTS).map(|number| text(id, number, size));
        Lines {
            id: id.to_owned(),
            texts: texts.collect(),
            size,
        }
    }

    /// Appends line `number` of a connection, with its end.
    pub(super) fn append(&self, connection: usize, number: u64, now: Timestamp, to: &mut Vec<u8>) {
        let start = to.len();
        // Writing into memory does not fail.
        let _ = write!(to, "{now:.3} {} {connection}-{number} ", self.id);
        let left = self.size.saturating_sub(to.len() - start);
        let at = usize::try_from(number % TEXTS).unwrap_or(0);
        let text = self.texts[at].as_bytes();
        to.extend_from_slice(&text[..left.min(text.len())]);
        to.push(b'\n');
    }
}

fn text(id: &str, number: u64, size: usize) -> String {
    let mut text = String::with_capacity(size + 16);
    let mut word = 0u64;
    while text.len() < size {
        let random = xxh3_64_with_seed(id.as_bytes(), number << 32 | word);
        word += 1;
        text.push_str(WORDS[cast::to_usize(random % WORDS.len() as u64)]);
        // Some numbers, as in most lines.
        if random >> 61 == 0 {
            text.push_str(&format!("={}", (random >> 32) % 100_000));
        }
        text.push(' ');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_size_and_say_which_they_are() {
        let now = Timestamp::from_second(1_772_409_600).unwrap();
        let lines = Lines::new("a", 100);
        let mut all = Vec::new();
        lines.append(3, 0, now, &mut all);
        lines.append(3, 1, now, &mut all);
        let found: Vec<&[u8]> = all.split(|byte| *byte == b'\n').collect();
        assert_eq!(found.len(), 3, "two ends");
        assert!(found[..2].iter().all(|line| line.len() == 100));
        assert!(found[0].starts_with(b"2026-03-02T00:00:00.000Z a 3-0 "));
        assert!(found[1].starts_with(b"2026-03-02T00:00:00.000Z a 3-1 "));
        assert_ne!(found[0][40..], found[1][40..]);
        let mut short = Vec::new();
        Lines::new("a", 1).append(0, 7, now, &mut short);
        assert_eq!(short, b"2026-03-02T00:00:00.000Z a 0-7 \n");
    }
}

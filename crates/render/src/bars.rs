//! A histogram as lines: time, count and, on a terminal, a bar; then counts by value, if there are any.

use super::quantity;
use logpond_host::terminal::text::write_safe;

/// Parts of a full cell: a bar is as exact as an eighth of a character.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// One bucket.
pub struct Bar {
    /// Its time, as it is shown.
    pub label: String,
    /// Records in it.
    pub count: u64,
    /// How many of them have each value of a field.
    pub by: Vec<(String, u64)>,
}

/// Buckets to print.
pub struct Bars {
    buckets: Vec<Bar>,
}

impl Bars {
    /// Buckets in the order of time.
    pub fn new(buckets: Vec<Bar>) -> Bars {
        Bars { buckets }
    }

    /// Appends one line a bucket, none longer than `width` characters; without a width, no bars
    /// and plain numbers.
    pub fn write(&self, width: Option<usize>, out: &mut Vec<u8>) {
        let most = self.buckets.iter().map(|b| b.count).max().unwrap_or(0);
        let most = most.max(1);
        let count_width = quantity::count(most).len();
        let separator = if width.is_some() { "  " } else { "\t" };
        let by: Vec<String> = self
            .buckets
            .iter()
            .map(|b| by_value(&b.by, separator))
            .collect();
        let by_width = by.iter().map(|by| by.chars().count()).max().unwrap_or(0);
        for (Bar { label, count, .. }, by) in self.buckets.iter().zip(&by) {
            let Some(width) = width else {
                out.extend_from_slice(format!("{label}\t{count}{by}\n").as_bytes());
                continue;
            };
            let count_text = quantity::count(*count);
            let head = format!("{label}  {count_text:>count_width$}{by:<by_width$}  ");
            let room = width.saturating_sub(head.chars().count()).max(1) as u128;
            let eighths = (u128::from(*count) * room * 8 / u128::from(most)) as usize;
            let line = format!("{head}{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8]);
            out.extend_from_slice(line.trim_end().as_bytes());
            out.push(b'\n');
        }
    }
}

/// `VALUE=N` for each value, each behind a separator.
fn by_value(by: &[(String, u64)], separator: &str) -> String {
    let mut text = String::new();
    for (value, count) in by {
        let mut safe = Vec::new();
        write_safe(value.as_bytes(), false, &mut safe);
        text += &format!("{separator}{}={count}", String::from_utf8_lossy(&safe));
    }
    text
}

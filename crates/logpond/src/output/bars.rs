//! A histogram as lines: time, count and, on a terminal, a bar.

use super::quantity;

/// Parts of a full cell: a bar is as exact as an eighth of a character.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// Buckets to print.
pub struct Bars {
    buckets: Vec<(String, u64)>,
}

impl Bars {
    /// Buckets by label, in the order of time.
    pub fn new(buckets: Vec<(String, u64)>) -> Bars {
        Bars { buckets }
    }

    /// Appends one line a bucket, none longer than `width` characters; without a width, no bars
    /// and plain numbers.
    pub fn write(&self, width: Option<usize>, out: &mut Vec<u8>) {
        let most = self.buckets.iter().map(|b| b.1).max().unwrap_or(0).max(1);
        let count_width = quantity::count(most).len();
        for (label, count) in &self.buckets {
            let Some(width) = width else {
                out.extend_from_slice(format!("{label}\t{count}\n").as_bytes());
                continue;
            };
            let head = format!("{label}  {:>count_width$}  ", quantity::count(*count));
            let room = width.saturating_sub(head.chars().count()).max(1) as u128;
            let eighths = (u128::from(*count) * room * 8 / u128::from(most)) as usize;
            let line = format!("{head}{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8]);
            out.extend_from_slice(line.trim_end().as_bytes());
            out.push(b'\n');
        }
    }
}

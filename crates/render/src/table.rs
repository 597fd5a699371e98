//! Columns of text for people: left or right aligned, with a header.

use logpond_host::terminal::text::write_safe;

/// A cell wider than this is not padded to, so that one long value does not push all others away.
const CELL_CHARS_MAX: usize = 60;

/// A table that is printed once it is complete.
pub struct Table {
    /// Header and whether the column is a number.
    columns: Vec<(String, bool)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table; columns of numbers are aligned to the right.
    pub fn new(columns: &[(&str, bool)]) -> Table {
        let columns = columns.iter();
        Table {
            columns: columns
                .map(|(name, is_number)| (safe(name), *is_number))
                .collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row with one cell a column.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows
            .push(cells.iter().map(|cell| safe(cell)).collect());
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Appends header and rows.
    pub fn write(&self, out: &mut Vec<u8>) {
        let header: Vec<String> = self.columns.iter().map(|c| c.0.clone()).collect();
        let mut widths = vec![0; self.columns.len()];
        for row in self.rows.iter().chain([&header]) {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell
                    .chars()
                    .count()
                    .clamp(*width, CELL_CHARS_MAX.max(*width));
            }
        }
        for row in std::iter::once(&header).chain(&self.rows) {
            let mut line = String::new();
            for ((cell, &width), (_, is_number)) in row.iter().zip(&widths).zip(&self.columns) {
                if *is_number {
                    line.push_str(&format!("{cell:>width$}  "));
                } else {
                    line.push_str(&format!("{cell:<width$}  "));
                }
            }
            out.extend_from_slice(line.trim_end().as_bytes());
            out.push(b'\n');
        }
    }
}

/// A cell without what would change a terminal.
fn safe(cell: &str) -> String {
    let mut out = Vec::with_capacity(cell.len());
    write_safe(cell.as_bytes(), false, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

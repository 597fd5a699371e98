//! `-o raw`: the original bytes of each line, and a line end.

use super::{Render, Row};

/// See the module.
pub(super) struct Raw;

impl Render for Raw {
    fn row(&mut self, row: &Row<'_>, out: &mut Vec<u8>) {
        let line = row.line.as_ref().or(row.message.as_ref());
        out.extend_from_slice(line.map_or(b"", |line| line));
        out.push(b'\n');
    }
}

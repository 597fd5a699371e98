//! Bytes of a connection to records, whichever framing the intake has.

use logpond_record::EntryKind;

use super::Context;
use super::gather::Gather;

pub(super) struct Framing {
    partial: Vec<u8>,
    cut_bytes: u64,
    line_bytes_max: usize,
}

impl Framing {
    pub(super) fn new(_kind: EntryKind, line_bytes_max: usize) -> Framing {
        Framing {
            partial: Vec::new(),
            cut_bytes: 0,
            line_bytes_max,
        }
    }

    pub(super) fn feed(&mut self, bytes: &[u8], gather: &mut Gather, context: &Context) {
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            let line = piece.strip_suffix(b"\n").unwrap_or(piece);
            let room = self.line_bytes_max - self.partial.len();
            let kept = line.len().min(room);
            self.partial.extend_from_slice(&line[..kept]);
            self.cut_bytes += (line.len() - kept) as u64;
            if piece.ends_with(b"\n") {
                self.end(gather, context);
            }
        }
    }

    pub(super) fn finish(&mut self, gather: &mut Gather, context: &Context) {
        if !self.partial.is_empty() {
            self.end(gather, context);
        }
    }

    fn end(&mut self, gather: &mut Gather, context: &Context) {
        if self.cut_bytes > 0 {
            context.metrics.intake(context.intake).truncated.add(1);
            gather.push_cut(&self.partial, self.partial.len() as u64 + self.cut_bytes);
        } else {
            gather.push(&self.partial);
        }
        self.partial.clear();
        self.cut_bytes = 0;
    }
}

//! Bytes of a connection to records, whichever framing the intake has.

use logpond_protocol::intake::frames::FrameSplitter;
use logpond_protocol::intake::lines::LineSplitter;
use logpond_record::EntryKind;

use super::Context;
use super::gather::Gather;

/// A splitter and where its records go.
pub(super) enum Framing {
    /// A record a line.
    Lines(LineSplitter),
    /// Octet counting or lines, frame by frame.
    Frames(FrameSplitter),
}

impl Framing {
    pub(super) fn new(kind: EntryKind, line_bytes_max: usize) -> Framing {
        match kind {
            EntryKind::Syslog => Framing::Frames(FrameSplitter::new(line_bytes_max)),
            _ => Framing::Lines(LineSplitter::new(line_bytes_max)),
        }
    }

    pub(super) fn feed(&mut self, bytes: &[u8], gather: &mut Gather, context: &Context) {
        match self {
            Framing::Lines(lines) => lines.feed(bytes, |line| {
                add(line.bytes, line.truncated_bytes, gather, context);
            }),
            Framing::Frames(frames) => frames.feed(bytes, |frame| {
                add(frame.bytes, frame.truncated_bytes, gather, context);
            }),
        }
    }

    /// Takes what the stream ended with as the last record.
    pub(super) fn finish(&mut self, gather: &mut Gather, context: &Context) {
        match self {
            Framing::Lines(lines) => lines.finish(|line| {
                add(line.bytes, line.truncated_bytes, gather, context);
            }),
            Framing::Frames(frames) => frames.finish(|frame| {
                add(frame.bytes, frame.truncated_bytes, gather, context);
            }),
        }
    }
}

fn add(raw: &[u8], truncated_bytes: usize, gather: &mut Gather, context: &Context) {
    if truncated_bytes == 0 {
        return gather.push(raw);
    }
    context.metrics.intake(context.intake).truncated.add(1);
    gather.push_cut(raw, (raw.len() + truncated_bytes) as u64);
}

//! Bytes of a connection to records, whichever framing the intake has.

use logpond_protocol::intake::frames::FrameSplitter;
use logpond_protocol::intake::lines::LineSplitter;
use logpond_protocol::intake::push::gelf;

use super::Context;
use super::gather::Gather;
use super::relp::RelpSession;
use logpond_engine::ingest::IngestError;
use logpond_settings::{self as settings, Form, StreamProtocol};

/// A splitter and where its records go.
pub(super) enum Framer {
    /// A record a line.
    Lines(LineSplitter),
    /// Octet counting or lines, frame by frame.
    Frames(FrameSplitter),
    /// A session in which each message is acknowledged.
    Relp(RelpSession),
}

impl Framer {
    /// The framing of a protocol whose records are not acknowledged one by one.
    pub(super) fn of(protocol: StreamProtocol, line_bytes_max: usize) -> Framer {
        let record_bytes_max = match protocol.form {
            Form::Line | Form::Syslog => line_bytes_max,
            Form::Gelf => gelf::message_bytes_max(line_bytes_max),
        };
        match protocol.framing {
            settings::Framing::Lines => Framer::Lines(LineSplitter::new(record_bytes_max)),
            settings::Framing::Frames => Framer::frames(record_bytes_max),
        }
    }

    /// Octet counting or lines, with frames of at most so many bytes.
    pub(super) fn frames(bytes_max: usize) -> Framer {
        Framer::Frames(FrameSplitter::new(bytes_max))
    }

    /// Waits for what comes before the first byte: earlier sessions of the same client.
    pub(super) async fn wait_for_earlier(&mut self) {
        if let Framer::Relp(session) = self {
            session.wait_for_earlier().await;
        }
    }

    /// Returns when somebody waits for this connection to read on.
    pub(super) async fn awaited(&self) {
        match self {
            Framer::Relp(session) => session.awaited().await,
            Framer::Lines(_) | Framer::Frames(_) => std::future::pending().await,
        }
    }

    /// Records are on their way to the disk, until they are answered.
    pub(super) fn note_storing(&self) {
        if let Framer::Relp(session) = self {
            session.note_storing();
        }
    }

    /// There is nothing to read, and nothing waits.
    pub(super) fn note_idle(&self) {
        if let Framer::Relp(session) = self {
            session.note_idle();
        }
    }

    /// Whether something is to be answered that has no records.
    pub(super) fn has_waiting(&self) -> bool {
        matches!(self, Framer::Relp(session) if session.has_waiting())
    }

    /// True if enough is to be answered to do so now.
    pub(super) fn is_full(&self) -> bool {
        matches!(self, Framer::Relp(session) if session.is_full())
    }

    /// Bytes of a record that is not whole yet.
    pub(super) fn held_bytes(&self) -> usize {
        match self {
            Framer::Lines(lines) => lines.held_bytes(),
            Framer::Frames(frames) => frames.held_bytes(),
            Framer::Relp(session) => session.held_bytes(),
        }
    }

    /// Whether the connection ends once everything is answered.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Framer::Relp(session) if session.is_over())
    }

    /// What a sender is told that waits for its records: so many are durable, and perhaps the next
    /// ones never will be.
    pub(super) fn answer(&mut self, durable: u64, failed: Option<&IngestError>) -> Vec<u8> {
        if let Framer::Relp(session) = self {
            let reason = failed.map_or(String::new(), IngestError::to_string);
            return session.answers(durable, &reason);
        }
        let mut answer = String::new();
        if durable > 0 {
            answer = format!("OK {durable}\n");
        }
        if let Some(refused) = failed {
            answer.push_str(&format!("ERR {refused}\n"));
        }
        answer.into_bytes()
    }

    pub(super) fn feed(&mut self, bytes: &[u8], gather: &mut Gather, context: &Context) {
        match self {
            Framer::Lines(lines) => lines.feed(bytes, |line| {
                gather.add(line.bytes, line.truncated_bytes, context);
            }),
            Framer::Frames(frames) => frames.feed(bytes, |frame| {
                gather.add(frame.bytes, frame.truncated_bytes, context);
            }),
            // What is no RELP ends the session, which `is_over` says.
            Framer::Relp(session) => {
                let taken = session.feed(bytes, gather).unwrap_or_default();
                let metrics = context.metrics.intake(context.intake);
                metrics.truncated.add(taken.cut);
                metrics.resent.add(taken.resent);
            }
        }
    }

    /// The connection has ended.
    pub(super) fn end(&mut self) {
        if let Framer::Relp(session) = self {
            session.end();
        }
    }

    /// Takes what the stream ended with as the last record.
    pub(super) fn finish(&mut self, gather: &mut Gather, context: &Context) {
        match self {
            Framer::Lines(lines) => lines.finish(|line| {
                gather.add(line.bytes, line.truncated_bytes, context);
            }),
            Framer::Frames(frames) => frames.finish(|frame| {
                gather.add(frame.bytes, frame.truncated_bytes, context);
            }),
            // Its sender was told nothing of it, and sends it again.
            Framer::Relp(_) => {}
        }
    }
}

//! Messages of senders that cannot be told anything: all are kept, one way or another.

use std::borrow::Cow;

use logpond_record::limits::{LINE_BYTES_MAX, TRUNCATED_FIELD};
use logpond_record::{Batch, EntryKind, Value};

use super::{HOSTNAME, decompress, message_bytes_max, read};
use crate::intake::frames::trim_end;

/// Decoded bytes after which a batch ends: small bodies can become large ones, and what is decoded
/// at a time is to stay small whatever is sent.
const DECODED_BYTES_MAX: usize = 4 << 20;

/// Some of the messages, as records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedMessages {
    /// The records.
    pub batch: Batch,
    /// How many messages these are, and those that were lost.
    pub taken: usize,
    /// Messages that are no GELF: kept as lines of text, or lost.
    pub malformed: usize,
    /// Messages that were cut to the limit of a line.
    pub truncated: usize,
    /// Messages that could not be decompressed: there is nothing to keep.
    pub lost: usize,
}

/// Decodes messages from number `from` on, in the order of `messages`, whose labels say what is known
/// of the sender. At least one is taken, if there is one.
pub fn decode(messages: &Batch, from: usize, line_bytes_max: usize) -> DecodedMessages {
    let line_bytes_max = line_bytes_max.min(LINE_BYTES_MAX);
    let (peer, labels): (Vec<_>, Vec<_>) = messages.labels.iter().partition(|l| *l.0 == *HOSTNAME);
    let labels = labels.into_iter().cloned().collect();
    let mut decoded = DecodedMessages {
        batch: Batch::new(EntryKind::Enveloped, labels),
        taken: 0,
        malformed: 0,
        truncated: 0,
        lost: 0,
    };
    let peer = peer.first().map(|(_, name)| &**name);
    for raw in messages.iter().skip(from) {
        decoded.taken += 1;
        match decompress(raw, message_bytes_max(line_bytes_max)) {
            Ok(message) => decoded.put(trim_end(&message), peer, line_bytes_max),
            Err(_) => {
                decoded.malformed += 1;
                decoded.lost += 1;
            }
        }
        if decoded.batch.payload().len() >= DECODED_BYTES_MAX {
            break;
        }
    }
    decoded
}

impl DecodedMessages {
    /// Keeps a message, which is of this peer if it does not say so itself.
    fn put(&mut self, raw: &[u8], peer: Option<&str>, line_bytes_max: usize) {
        let (time, mut fields, line) = match read(raw) {
            Ok(message) => {
                let line = match message.line {
                    Cow::Borrowed(line) => Cow::Borrowed(line.as_bytes()),
                    Cow::Owned(line) => Cow::Owned(line.into_bytes()),
                };
                (message.time, message.fields, line)
            }
            Err(_) => {
                self.malformed += 1;
                (None, Vec::new(), Cow::Borrowed(raw))
            }
        };
        if let Some(peer) = peer
            && !fields.iter().any(|(name, _)| name == HOSTNAME)
        {
            fields.push((HOSTNAME.into(), Value::Str(peer.into())));
        }
        let mut kept = &line[..];
        if line.len() > line_bytes_max {
            kept = &line[..line_bytes_max];
            let is_marked = self.batch.labels.iter().any(|l| *l.0 == *TRUNCATED_FIELD);
            if !is_marked {
                self.truncated += 1;
                let sent = Value::Str(line.len().to_string().into());
                fields.push((TRUNCATED_FIELD.into(), sent));
            }
        }
        let each = fields.iter().map(|(name, value)| (&**name, value));
        self.batch.push_enveloped(EntryKind::Line, time, each, kept);
    }
}

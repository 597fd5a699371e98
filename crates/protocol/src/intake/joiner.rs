//! Parts of one stream's lines, joined.
//!
//! Invariants: a line is its parts in their order, nothing between them; its time and attributes are
//! those of the first part. Memory is at most the limit of a line. What does not fit is cut off and
//! counted.

use logpond_record::Timestamp;
use logpond_record::limits::LINE_BYTES_MAX;

use super::container::{Attributes, Part};
use super::lines::{character_end, clear};

/// What is known of a line from where it begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head<'a> {
    /// Where its first part begins in the input.
    pub(super) start: u64,
    /// The time of its first part.
    pub(super) time: Option<Timestamp>,
    /// What the runtime was told to add.
    pub(super) attributes: Attributes<'a>,
    /// Whether it begins before the input does, and is gone on with there.
    pub(super) is_carried: bool,
}

impl Head<'_> {
    /// Has it begin before the input does.
    pub(super) fn carry(&mut self) {
        self.start = 0;
        self.is_carried = true;
    }

    /// The same, for longer than its input.
    pub(super) fn into_owned(self) -> Head<'static> {
        let owned = |(name, value): (std::borrow::Cow<'_, str>, std::borrow::Cow<'_, str>)| {
            (name.into_owned().into(), value.into_owned().into())
        };
        Head {
            start: self.start,
            time: self.time,
            is_carried: self.is_carried,
            attributes: self.attributes.into_iter().map(owned).collect(),
        }
    }
}

/// The line of one stream whose end has not come yet.
#[derive(Debug, Default)]
pub(super) struct Joiner {
    head: Option<Head<'static>>,
    kept: Vec<u8>,
    cut_bytes: usize,
}

impl Joiner {
    /// What is known of the unfinished line, if there is one.
    pub(super) fn head(&self) -> Option<&Head<'static>> {
        self.head.as_ref()
    }

    /// What is known of the unfinished line, if there is one.
    pub(super) fn head_mut(&mut self) -> Option<&mut Head<'static>> {
        self.head.as_mut()
    }

    /// Adds a part that begins at `start`, and keeps `bytes_max` of its line. True if the line ends
    /// with it, or is as long as any line may be: what follows is another one then, so that a stream
    /// without line ends is not held for ever.
    pub(super) fn add(&mut self, part: Part<'_>, start: u64, bytes_max: usize) -> bool {
        self.head.get_or_insert_with(|| {
            let head = Head {
                start,
                time: part.time,
                attributes: part.attributes,
                is_carried: false,
            };
            head.into_owned()
        });
        let room = bytes_max - self.kept.len();
        let kept = match self.cut_bytes {
            0 => part.text.len().min(room),
            _ => 0,
        };
        self.kept.extend_from_slice(&part.text[..kept]);
        self.cut_bytes += part.text.len() - kept;
        part.is_last || self.kept.len() + self.cut_bytes >= LINE_BYTES_MAX
    }

    /// Gives the line as far as it has come, with the number of bytes that were cut off.
    pub(super) fn finish(&mut self, take: impl FnOnce(Head<'static>, &[u8], usize)) {
        let Some(head) = self.head.take() else {
            return;
        };
        let kept = match self.cut_bytes {
            0 => self.kept.len(),
            _ => character_end(&self.kept),
        };
        let cut_bytes = self.cut_bytes + self.kept.len() - kept;
        take(head, &self.kept[..kept], cut_bytes);
        self.cut_bytes = 0;
        clear(&mut self.kept);
    }
}

//! Frames that were read before, so that a later reading can pass over them.

use super::frame::EndMark;
use super::read::Frame;

/// Sound frames of one file that follow each other without a gap.
///
/// What is synced of a file never changes (R1, R2), so they are there for as long as the file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    from: u64,
    to: u64,
    last_at: u64,
    pub(super) counts: EndMark,
}

impl Span {
    /// One frame.
    pub fn of(frame: &Frame<'_>) -> Span {
        let mut span = Span {
            from: frame.offset(),
            to: frame.offset(),
            last_at: frame.offset(),
            counts: EndMark::default(),
        };
        span.add(frame);
        span
    }

    /// Adds the frame that begins where the last one ends; says whether it does.
    pub fn add(&mut self, frame: &Frame<'_>) -> bool {
        if frame.offset() != self.to {
            return false;
        }
        self.last_at = self.to;
        self.to += frame.bytes();
        self.counts.add(frame.count() as u64);
        self.counts.note_synced(frame.synced_bytes());
        true
    }

    /// Where the first frame begins.
    pub fn from(&self) -> u64 {
        self.from
    }

    /// Where the last frame ends.
    pub fn to(&self) -> u64 {
        self.to
    }

    /// Where the last frame begins.
    pub fn last_at(&self) -> u64 {
        self.last_at
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use logpond_record::{Batch, EntryKind, Incarnation, Labels, Timestamp};

    use super::super::{JournalFile, Settings, Writer};
    use super::*;
    use crate::mem_disk::MemDisk;

    /// A closed file of so many frames.
    fn closed(frames: usize) -> (MemDisk, JournalFile) {
        let disk = MemDisk::new();
        let mut writer = Writer::new(Arc::new(disk.clone()), Settings::default());
        for number in 0..frames {
            let mut batch = Batch::new(EntryKind::Line, Labels::new());
            (0..=number).for_each(|row| batch.push(format!("row {row} of {number}").as_bytes()));
            let minted = || Incarnation(9);
            writer.append(&batch, Timestamp(5), minted).unwrap();
            writer.sync().unwrap();
        }
        writer.close().unwrap();
        let closed = &writer.visible().snapshot().closed[0];
        let file = JournalFile::from_closed(&disk, closed).unwrap();
        (disk, file)
    }

    fn offsets(file: &JournalFile, passed: Option<&Span>) -> (Vec<u64>, usize) {
        let mut frames = file.frames();
        let mut offsets = Vec::new();
        loop {
            if let Some(span) = passed {
                frames.pass_span(span);
            }
            match frames.next().unwrap() {
                Some(frame) => offsets.push(frame.offset()),
                None => return (offsets, frames.into_damages().listed.len()),
            }
        }
    }

    fn span(file: &JournalFile, range: std::ops::Range<usize>) -> Span {
        let mut frames = file.frames();
        let mut span: Option<Span> = None;
        for number in 0..range.end {
            let frame = frames.next().unwrap().unwrap();
            match &mut span {
                _ if number < range.start => {}
                None => span = Some(Span::of(&frame)),
                Some(span) => assert!(span.add(&frame)),
            }
        }
        span.unwrap()
    }

    #[test]
    fn a_span_is_passed_over_and_its_frames_count_for_the_end_mark() {
        let (_disk, file) = closed(6);
        let (all, _) = offsets(&file, None);
        assert_eq!(all.len(), 6);
        for range in [0..1, 0..6, 1..4, 5..6] {
            let span = span(&file, range.clone());
            assert_eq!(
                (span.from(), span.last_at()),
                (all[range.start], all[range.end - 1])
            );
            let left = [&all[..range.start], &all[range.end..]].concat();
            // An end mark that counts other frames would be a damage.
            assert_eq!(offsets(&file, Some(&span)), (left, 0), "{range:?}");
        }
    }

    #[test]
    fn a_gap_is_told() {
        let (_disk, file) = closed(3);
        let mut span = span(&file, 0..1);
        let before = span;
        let mut frames = file.frames_from(span.to());
        frames.next().unwrap().unwrap();
        let third = frames.next().unwrap().unwrap();
        assert!(!span.add(&third));
        assert_eq!(span, before);
    }

    #[test]
    fn what_does_not_begin_here_or_ends_behind_the_limit_is_not_passed_over() {
        let (_disk, file) = closed(4);
        let (all, _) = offsets(&file, None);
        let later = span(&file, 2..4);
        let mut frames = file.frames();
        assert!(!frames.pass_span(&later));
        assert_eq!(frames.next().unwrap().unwrap().offset(), all[0]);
        let short = file.synced_to(all[3]);
        let mut frames = short.frames_from(all[2]);
        assert!(!frames.pass_span(&later));
        assert_eq!(frames.next().unwrap().unwrap().offset(), all[2]);
    }
}

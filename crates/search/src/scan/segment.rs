//! What the scans of one segment's row groups share.

use std::sync::{Arc, Mutex, PoisonError};

use logpond_segment::file::{Directory, ReadError, SegmentFile};

use super::evaluate::Evaluator;
use crate::literal::TokenPart;

/// A segment in one search. Its row groups may be scanned by several threads.
pub struct SegmentScan<'a> {
    pub(super) file: &'a SegmentFile,
    pub(super) directory: &'a Directory,
    pub(super) evaluator: &'a Evaluator,
    /// For each list of words what it says of the search, once it was read.
    lists: Vec<Mutex<Option<Arc<PartHits>>>>,
}

/// The words of a list that hold each part of a token that a search looks for.
pub(super) struct PartHits(Vec<(TokenPart, Option<Hits>)>);

/// Words, as they are in the list.
type Hits = Vec<Box<[u8]>>;

impl PartHits {
    /// The words that hold a part; `None` if they are too many to be of use.
    pub(super) fn of(&self, part: &TokenPart) -> Option<&[Box<[u8]>]> {
        let (_, words) = self.0.iter().find(|(known, _)| known == part)?;
        words.as_deref()
    }
}

impl<'a> SegmentScan<'a> {
    /// A scan of this segment.
    pub fn new(
        file: &'a SegmentFile,
        directory: &'a Directory,
        evaluator: &'a Evaluator,
    ) -> SegmentScan<'a> {
        SegmentScan {
            file,
            directory,
            evaluator,
            lists: directory.words.iter().map(|_| Mutex::default()).collect(),
        }
    }

    /// The words of a row group that hold the search's parts, with the bytes read for it; `None`
    /// if the row group's words are not kept. Who comes second waits for the first.
    pub(super) fn hits(&self, group: usize) -> Result<Option<(Arc<PartHits>, u64)>, ReadError> {
        let Some(number) = self.directory.words_of(group) else {
            return Ok(None);
        };
        let mut known = self.lists[number]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(hits) = &*known {
            return Ok(Some((Arc::clone(hits), 0)));
        }
        let list = &self.directory.words[number];
        let words = self.file.words(list)?;
        let parts = self.evaluator.token_parts();
        let holding = |part: &TokenPart| {
            let words = words.holding(&part.text, part.at_start, part.at_end, part.folded);
            words.map(|words| words.into_iter().map(Box::from).collect())
        };
        let hits = parts.iter().map(|part| (part.clone(), holding(part)));
        let hits = Arc::new(PartHits(hits.collect()));
        *known = Some(Arc::clone(&hits));
        Ok(Some((hits, u64::from(list.bytes))))
    }
}

//! What the scans of one segment's row groups share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use logpond_record::Shape;
use logpond_segment::file::{Directory, ReadError, SegmentFile};
use logpond_segment::rows::may_vary;
use logpond_segment::sources::SourceSet;
use logpond_segment::tokens::Words;

use super::evaluate::Evaluator;
use super::excluded::ExcludedSources;
use super::kept_columns::{ColumnCache, KeptGroup};
use crate::literal::TokenPart;

/// A segment in one search. Its row groups may be scanned by several threads.
pub struct SegmentScan<'a> {
    pub(super) file: &'a SegmentFile,
    pub(super) directory: &'a Directory,
    pub(super) evaluator: &'a Evaluator,
    pub(super) excluded: Option<ExcludedSources>,
    kept: Option<&'a ColumnCache>,
    /// For each list of words what it says of the search, once it was read.
    lists: Vec<Mutex<Option<Arc<PartHits>>>>,
    /// Shapes that were compiled, by their text: row groups have most of them in common.
    shapes: Mutex<KnownShapes>,
}

/// Compiled shapes, and the bytes of their texts.
type KnownShapes = (HashMap<Box<[u8]>, Arc<Shape>>, usize);

/// Compiled shapes that are kept; beyond, every row group compiles its own.
const SHAPES_MAX: usize = 1 << 12;

/// The bytes of their texts, likewise: some list thousands of fields. They take about five times as much.
const SHAPES_BYTES_MAX: usize = 8 << 20;

/// The words of a list that hold each part of a token that a search looks for.
pub(super) struct PartHits(Vec<(TokenPart, Hits)>);

/// Words, as they are in the list; `None` if they are too many to be of use.
#[derive(Default)]
struct Hits {
    all: Option<Vec<Box<[u8]>>>,
    /// Those that templates leave out.
    varying: Option<Vec<Box<[u8]>>>,
}

/// The most words with a part that are looked up in the token index.
const HITS_MAX: usize = 256;

/// The most words that templates leave out, likewise: what they do not tell, messages do.
const VARYING_MAX: usize = 64;

impl Hits {
    fn of(words: &Words, part: &TokenPart) -> Hits {
        let (mut all, mut varying) = (Some(Vec::new()), Some(Vec::new()));
        let ends = (part.at_start, part.at_end);
        words.visit_holding(&part.text, ends, part.folded, |word| {
            keep(&mut all, word, HITS_MAX);
            if may_vary(word) {
                keep(&mut varying, word, VARYING_MAX);
            }
            all.is_some() || varying.is_some()
        });
        Hits { all, varying }
    }
}

/// Keeps a word, or none if they become more than `count_max`.
fn keep(words: &mut Option<Vec<Box<[u8]>>>, word: &[u8], count_max: usize) {
    match words {
        Some(words) if words.len() < count_max => words.push(word.into()),
        _ => *words = None,
    }
}

impl PartHits {
    /// The words that hold a part; `None` if they are too many to be of use.
    pub(super) fn of(&self, part: &TokenPart) -> Option<&[Box<[u8]>]> {
        self.hits(part)?.all.as_deref()
    }

    /// Of these words those that templates leave out; `None` if they are too many.
    pub(super) fn varying(&self, part: &TokenPart) -> Option<&[Box<[u8]>]> {
        self.hits(part)?.varying.as_deref()
    }

    fn hits(&self, part: &TokenPart) -> Option<&Hits> {
        let (_, hits) = self.0.iter().find(|(known, _)| known == part)?;
        Some(hits)
    }
}

impl<'a> SegmentScan<'a> {
    /// A scan of this segment, without the rows of excluded sources. It may be any set: what of it
    /// the segment does not list is of no account, and if it lists none, no source is read.
    pub fn new(
        file: &'a SegmentFile,
        directory: &'a Directory,
        evaluator: &'a Evaluator,
        excluded: &SourceSet,
    ) -> SegmentScan<'a> {
        SegmentScan {
            file,
            directory,
            evaluator,
            excluded: ExcludedSources::of(file.manifest(), excluded),
            kept: None,
            lists: directory.words.iter().map(|_| Mutex::default()).collect(),
            shapes: Mutex::default(),
        }
    }

    /// The same scan, which takes columns from those that are kept and leaves there what it reads.
    #[must_use]
    pub fn keeping(mut self, kept: &'a ColumnCache) -> SegmentScan<'a> {
        self.kept = Some(kept);
        self
    }

    /// What is kept of a row group.
    pub(super) fn kept(&self, group: usize) -> Option<KeptGroup<'a>> {
        let segment = self.file.manifest().id;
        Some(self.kept?.of_group(segment, group))
    }

    /// A shape by its text.
    pub(super) fn shape(&self, text: &[u8]) -> Arc<Shape> {
        let mut known = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        let (shapes, bytes) = &mut *known;
        if let Some(shape) = shapes.get(text) {
            return Arc::clone(shape);
        }
        let compiled = std::str::from_utf8(text).ok().map(Shape::new);
        let shape = Arc::new(match compiled {
            Some(Ok(shape)) => shape,
            // Only a damaged file that passed its checksum would have a shape that does not.
            _ => Shape::text(),
        });
        if shapes.len() < SHAPES_MAX && *bytes + text.len() <= SHAPES_BYTES_MAX {
            *bytes += text.len();
            shapes.insert(text.into(), Arc::clone(&shape));
        }
        shape
    }

    /// The words of a row group that hold the search's parts, with the bytes read for it; `None`
    /// if the row group's words are not kept.
    pub(super) fn hits(&self, group: usize) -> Result<Option<(Arc<PartHits>, u64)>, ReadError> {
        let Some(number) = self.directory.words_of(group) else {
            return Ok(None);
        };
        let mut bytes_read = 0;
        if matches!(self.lists[number].try_lock(), Err(TryLockError::WouldBlock)) {
            // Another thread reads it: meanwhile, one that is needed soon.
            bytes_read += self.read_beside(number)?;
        }
        let mut known = self.lists[number]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let hits = match &*known {
            Some(hits) => Arc::clone(hits),
            None => {
                bytes_read += u64::from(self.directory.words[number].bytes);
                Arc::clone(known.insert(self.read(number)?))
            }
        };
        Ok(Some((hits, bytes_read)))
    }

    /// Reads a list next to this one that nobody has read or is reading; gives its length.
    fn read_beside(&self, number: usize) -> Result<u64, ReadError> {
        for beside in [number.checked_sub(1), number.checked_add(1)] {
            let list = beside.and_then(|beside| Some((beside, self.lists.get(beside)?)));
            if let Some((beside, list)) = list
                && let Ok(mut known) = list.try_lock()
                && known.is_none()
            {
                *known = Some(self.read(beside)?);
                return Ok(u64::from(self.directory.words[beside].bytes));
            }
        }
        Ok(0)
    }

    fn read(&self, number: usize) -> Result<Arc<PartHits>, ReadError> {
        let words = self.file.words(self.directory, number)?;
        let parts = self.evaluator.token_parts().into_iter();
        let hits = parts.map(|part| {
            let hits = Hits::of(&words, &part);
            (part, hits)
        });
        Ok(Arc::new(PartHits(hits.collect())))
    }
}

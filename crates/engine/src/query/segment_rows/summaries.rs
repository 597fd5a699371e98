//! Segments that a scope wants all records of, and what counts these.

use logpond_search::scan::Extent;
use logpond_segment::overview::Overview;
use logpond_segment::patterns::PatternTable;
use logpond_segment::timeline::Timeline;

use super::{OpenSegment, OpenSegments, Scope, Trailer, note_damage};

impl OpenSegments<'_> {
    /// The segments that a scope wants all records of.
    pub(in crate::query) fn whole_segments(&self, scope: &Scope) -> Vec<usize> {
        let extent = Extent::of(&scope.filter);
        let is_whole = |reading: &OpenSegment<'_>| {
            let manifest = reading.file.manifest();
            let excluded = &reading.viewed.excluded;
            let mut sources = reading.viewed.segment.sources().iter();
            scope.range.covers(manifest.time_min, manifest.time_max)
                && extent.is_all(&reading.directory)
                && (excluded.is_empty() || !sources.any(|source| excluded.contains(source)))
        };
        let segments = self.segments.iter().enumerate();
        let whole = segments.filter(|(_, reading)| is_whole(reading));
        whole.map(|(number, _)| number).collect()
    }

    /// A summary of a segment; `None` if it has none that can be read, so that its rows tell.
    pub(in crate::query) fn summary(
        &self,
        segment: usize,
        kind: SummaryKind,
        trailer: &mut Trailer,
    ) -> Option<Summary> {
        let OpenSegment {
            file,
            directory,
            viewed,
            ..
        } = &self.segments[segment];
        let (place, read) = match kind {
            SummaryKind::Overview => {
                let overview = file.overview(directory);
                (
                    directory.overview,
                    overview.map(|read| read.map(Summary::Overview)),
                )
            }
            SummaryKind::Timeline => {
                let timeline = file.timeline(directory);
                (
                    directory.timeline,
                    timeline.map(|read| read.map(Summary::Timeline)),
                )
            }
            SummaryKind::Patterns => {
                let patterns = file.patterns(directory);
                (
                    directory.patterns,
                    patterns.map(|read| read.map(Summary::Patterns)),
                )
            }
        };
        match read {
            Ok(summary) => {
                trailer.bytes_scanned += place.map_or(0, |place| place.bytes as u64);
                summary
            }
            Err(error) => {
                note_damage(&viewed.segment, &error);
                None
            }
        }
    }
}

/// A part of a segment that counts all of its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryKind {
    /// Fields and values.
    Overview,
    /// Times and severities.
    Timeline,
    /// Patterns of messages.
    Patterns,
}

/// One that was read.
#[derive(Clone, Debug)]
pub enum Summary {
    /// Fields and values.
    Overview(Overview),
    /// Times and severities.
    Timeline(Timeline),
    /// Patterns of messages.
    Patterns(PatternTable),
}

impl Summary {
    /// The records that it counts.
    pub(in crate::query) fn rows(&self) -> u64 {
        match self {
            Summary::Overview(overview) => overview.rows,
            Summary::Timeline(timeline) => timeline.rows(),
            Summary::Patterns(table) => table.rows(),
        }
    }
}

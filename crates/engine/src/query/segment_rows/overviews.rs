//! Segments that a scope wants all records of, and their overviews.

use logpond_search::scan::Extent;
use logpond_segment::overview::Overview;

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

    /// The overview of a segment; `None` if it has none that can be read, so that its rows tell.
    pub(in crate::query) fn overview(
        &self,
        segment: usize,
        trailer: &mut Trailer,
    ) -> Option<Overview> {
        let reading = &self.segments[segment];
        let entry = reading.directory.overview?;
        match reading.file.overview(&reading.directory) {
            Ok(overview) => {
                trailer.bytes_scanned += entry.bytes as u64;
                overview
            }
            Err(error) => {
                note_damage(&reading.viewed.segment, &error);
                None
            }
        }
    }
}

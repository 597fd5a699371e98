//! Sources whose rows a scan leaves out, because they are counted elsewhere.

use logpond_segment::file::Manifest;
use logpond_segment::sources::SourceSet;

/// The sources of one segment that are left out.
pub(super) struct ExcludedSources {
    /// For each place in the segment's list of sources.
    places: Vec<bool>,
}

impl ExcludedSources {
    /// What of a segment is left out; `None` if nothing is, so that sources need not be read.
    pub(super) fn of(manifest: &Manifest, excluded: &SourceSet) -> Option<ExcludedSources> {
        if excluded.is_empty() {
            return None;
        }
        let sources = manifest.sources.iter();
        let places: Vec<bool> = sources.map(|s| excluded.contains(s.source)).collect();
        places.contains(&true).then_some(ExcludedSources { places })
    }

    /// Whether rows of the source at this place are left out.
    pub(super) fn has(&self, place: u32) -> bool {
        self.places.get(place as usize).copied().unwrap_or_default()
    }
}

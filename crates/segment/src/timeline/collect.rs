//! The timeline of rows.

use std::collections::BTreeMap;

use super::Timeline;
use super::kinds::RowKinds;

/// Makes the timeline of a segment, row group by row group.
#[derive(Default)]
pub struct TimelineBuilder {
    timeline: Timeline,
}

impl TimelineBuilder {
    /// Adds rows of these times; without their kinds if these are too many.
    pub(crate) fn add(&mut self, times: &[i64], kinds: Option<&RowKinds>) {
        let numbers: Vec<u32> = match kinds {
            Some(kinds) => {
                let kinds = kinds.kinds.iter().cloned();
                kinds.map(|kind| self.timeline.number_of(kind)).collect()
            }
            None => {
                self.timeline.join_kinds();
                Vec::new()
            }
        };
        let step_ns = self.timeline.step_ns();
        let mut pending: BTreeMap<(i64, u32), u64> = BTreeMap::new();
        // Neighbouring rows are mostly of one step and kind.
        let mut last = ((i64::MIN, 0), 0);
        for (row, time) in times.iter().enumerate() {
            let kind = kinds.map_or(0, |kinds| numbers[kinds.of_rows[row] as usize]);
            let start = time.div_euclid(step_ns).saturating_mul(step_ns);
            if last.0 != (start, kind) {
                let (key, rows) = std::mem::replace(&mut last, ((start, kind), 0));
                add_rows(&mut pending, key, rows);
            }
            last.1 += 1;
        }
        add_rows(&mut pending, last.0, last.1);
        for ((start, kind), rows) in pending {
            self.timeline.add(start, kind, rows);
        }
    }

    /// Adds the timeline of other rows.
    pub(crate) fn merge(&mut self, other: &Timeline) {
        self.timeline.merge(other);
    }

    /// The timeline; `None` if it has too many steps.
    pub(crate) fn finish(self) -> Option<Timeline> {
        Some(self.timeline).filter(Timeline::is_bounded)
    }
}

fn add_rows(pending: &mut BTreeMap<(i64, u32), u64>, key: (i64, u32), rows: u64) {
    if rows > 0 {
        *pending.entry(key).or_default() += rows;
    }
}

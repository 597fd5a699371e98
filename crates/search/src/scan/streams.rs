//! Streams of a block: how many of its rows have which labels, and how long their lines are.

use logpond_record::{Timestamp, cast};
use logpond_segment::file::ReadError;

use super::codes::{Codes, Groups};
use super::group::{GroupScan, SelectedRows};
use super::labels::Source;
use crate::aggregate::{StreamTally, Streams};

/// Lines of a stream in a block that are looked at for their length, where a block has several streams.
const LINES_MEASURED_MAX: u64 = 64;

impl GroupScan<'_> {
    /// Collects the streams of the selected rows of the block at hand.
    ///
    /// # Errors
    /// When the block cannot be read.
    pub fn add_to_streams(
        &mut self,
        selected: &SelectedRows,
        streams: &mut Streams,
    ) -> Result<(), ReadError> {
        let by = streams.asked().by.clone();
        let sources = self.sources(by.as_deref())?;
        let all: Vec<&Source> = sources.iter().collect();
        let (plain, odd) = self.split(&selected.rows, &all, by.is_none())?;
        let (block, rows) = (selected.block, odd);
        self.each_record(&SelectedRows { block, rows }, |record| streams.add(record))?;
        if plain.is_empty() {
            return Ok(());
        }
        let mut groups = Groups::one(plain.len());
        for source in &sources {
            groups.refine(&self.codes_of(source, &plain)?);
        }
        let line_bytes = self.line_bytes_of(block, &plain, &groups)?;
        let line_bytes: Vec<f64> = groups
            .of_rows
            .iter()
            .map(|g| line_bytes[*g as usize])
            .collect();
        let mut steps = Vec::new();
        if streams.asked().steps.is_some() {
            let times = self.times()?;
            let step = |row: &u32| streams.step_of(Timestamp(times[*row as usize]));
            steps = plain.iter().map(step).collect();
            let mut codes = Codes::none(plain.len());
            codes.number(steps.iter().map(|step| Some(cast::unsigned(*step))));
            groups.refine(&codes);
        }
        for (first, rows) in groups.firsts.iter().zip(groups.rows()) {
            let labels = self.labels_of(&sources, plain[*first])?;
            let step = steps.get(*first).copied().unwrap_or_default();
            let bytes = cast::whole_u64((line_bytes[*first] * cast::float(rows)).round());
            streams.add_stream(step, labels, StreamTally { rows, bytes });
        }
        Ok(())
    }

    /// The bytes that a line of each group has on average. What a block has in all is known; how its streams
    /// share it is told by some lines of each. Lines that are not selected tell nothing.
    fn line_bytes_of(
        &mut self,
        block: usize,
        rows: &[u32],
        groups: &Groups,
    ) -> Result<Vec<f64>, ReadError> {
        let entry = self.entry().blocks[block];
        let total = f64::from(entry.line_bytes.saturating_sub(entry.rows));
        let is_whole = rows.len() == entry.rows as usize;
        if groups.firsts.len() == 1 && is_whole {
            return Ok(vec![total / f64::from(entry.rows.max(1))]);
        }
        let counts = groups.rows();
        let (places, measured): (Vec<u32>, Vec<u32>) = some_of_each(rows, groups, &counts).unzip();
        let mut sums = vec![(0u64, 0u64); counts.len()];
        self.with_lines(&measured, |view| {
            let mut line = Vec::new();
            for (group, row) in places.iter().zip(&measured) {
                line.clear();
                view.write_line(*row as usize, &mut line);
                let (lines, bytes) = &mut sums[*group as usize];
                (*lines, *bytes) = (*lines + 1, *bytes + line.len() as u64);
            }
        })?;
        let mean = |(lines, bytes): &(u64, u64)| cast::float(*bytes) / cast::float((*lines).max(1));
        let mut means: Vec<f64> = sums.iter().map(mean).collect();
        if is_whole {
            let guessed: f64 = means
                .iter()
                .zip(&counts)
                .map(|(mean, rows)| mean * cast::float(*rows))
                .sum();
            if guessed > 0.0 {
                means.iter_mut().for_each(|mean| *mean *= total / guessed);
            }
        }
        Ok(means)
    }
}

/// Rows of each group with the group's number, evenly spread over it.
fn some_of_each<'a>(
    rows: &'a [u32],
    groups: &'a Groups,
    counts: &'a [u64],
) -> impl Iterator<Item = (u32, u32)> + 'a {
    let mut seen = vec![0u64; counts.len()];
    let of_rows = groups.of_rows.iter().zip(rows);
    of_rows.filter_map(move |(group, row)| {
        let seen = &mut seen[*group as usize];
        let apart = counts[*group as usize].div_ceil(LINES_MEASURED_MAX);
        let is_one = seen.is_multiple_of(apart);
        *seen += 1;
        is_one.then_some((*group, *row))
    })
}

//! Checking files down to the last byte.
//!
//! Invariants:
//! - There is no byte of a segment file whose change [`file`] or [`Checksums`] would not notice: each
//!   is in a range with a checksum, in the magic, or in a gap, and a gap is damage.
//! - Nothing is changed, whatever is found.

mod checksums;
mod pond;
mod salvage;

use std::io;
use std::sync::Arc;

use logpond_record::{Id, cast};

use crate::disk::ReadAt;
use crate::file::{Damage, Directory, ReadError, RowGroupReader, SegmentFile, Summary};
use crate::rows::{Plans, RowsView};
use crate::sources::SourceSet;
use crate::tally::Tally;
pub use checksums::Checksums;
pub use pond::{Finding, Totals, data_directory};
pub use salvage::{SalvagedSegment, salvage};

/// Most damages of one file that are listed.
pub const DAMAGES_MAX: usize = 1000;

/// The result of the verification of a segment file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// The segment's id; `None` if not even the footer can be read.
    pub id: Option<Id>,
    /// Rows that can be read.
    pub rows: u64,
    /// The sources that it lists; none if nothing says which they are.
    pub sources: SourceSet,
    /// What is damaged, at most [`DAMAGES_MAX`] places.
    pub damages: Vec<Damage>,
}

/// Checks a whole segment file: everything that [`deep`] does, and the footer. `known` is what is known of
/// it from elsewhere: with it rows can be read of a file whose footer is lost.
///
/// # Errors
/// When the disk fails; damage is no error.
pub fn file(file: Arc<dyn ReadAt>, known: Option<&Summary>) -> io::Result<VerifyReport> {
    let bytes = file.bytes()?;
    let (segment, mut damages) = match SegmentFile::open(Arc::clone(&file)) {
        Ok(segment) => (Some(segment), Vec::new()),
        Err(error) => match salvage(&file, known)? {
            Some(SalvagedSegment { segment, damage }) => (Some(segment), vec![damage]),
            None => {
                let mut damages = Vec::new();
                note(error, &mut damages)?;
                (None, damages)
            }
        },
    };
    let mut checked = VerifyReport::default();
    if let Some(segment) = segment {
        checked = check(&segment, true)?;
        let manifest = segment.manifest();
        checked.id = Some(manifest.id);
        checked.sources = manifest.sources.iter().map(|entry| entry.source).collect();
    }
    damages.append(&mut checked.damages);
    damages.truncate(DAMAGES_MAX);
    checked.damages = damages;
    // Where no range is known it is the whole file.
    for damage in checked.damages.iter_mut().filter(|d| d.bytes == 0) {
        (damage.offset, damage.bytes) = (0, bytes);
    }
    Ok(checked)
}

/// Reads every page of a segment: all checksums, all encodings. Gives what is damaged.
///
/// # Errors
/// When the disk fails; damage is no error.
pub fn pages(segment: &SegmentFile) -> io::Result<Vec<Damage>> {
    check(segment, false).map(|checked| checked.damages)
}

/// Like [`pages`], and besides rebuilds every line and compares each source with what the
/// manifest says of it: rows and the sum of their hashes.
///
/// # Errors
/// When the disk fails; damage is no error.
pub fn deep(segment: &SegmentFile) -> io::Result<Vec<Damage>> {
    check(segment, true).map(|checked| checked.damages)
}

/// Rebuilds every line of a segment and compares each source with what the manifest says of it, as
/// [`deep`] does, but reads only what that takes.
///
/// # Errors
/// When the segment is damaged, or its rows are not those of its sources; when the disk fails.
pub fn lines(segment: &SegmentFile) -> Result<(), ReadError> {
    let directory = segment.read_directory()?;
    let mut lines = Lines::new(segment, true);
    for (number, group) in directory.row_groups.iter().enumerate() {
        let mut reader = segment.row_group(&directory, number);
        for block in 0..group.blocks.len() {
            lines.add_block(&mut reader, &directory, block)?;
        }
    }
    match lines.compare() {
        Some(damage) => Err(ReadError::Damaged(damage)),
        None => Ok(()),
    }
}

fn check(segment: &SegmentFile, lines: bool) -> io::Result<VerifyReport> {
    let mut checked = VerifyReport::default();
    let damages = &mut checked.damages;
    if let Err(error) = segment.check_start() {
        note(error, damages)?;
    }
    let directory = match segment.read_directory() {
        Ok(directory) => directory,
        Err(error) => return note(error, damages).map(|()| checked),
    };
    note_directory(segment, damages)?;
    note_gaps(segment, &directory, damages)?;
    let mut lines = Lines::new(segment, lines);
    for group in 0..directory.row_groups.len() {
        let mut reader = segment.row_group(&directory, group);
        if let Err(error) = reader.check_tokens() {
            note(error, damages)?;
        }
        for damage in reader.check_pages()? {
            note(ReadError::Damaged(damage), damages)?;
        }
        for block in 0..directory.row_groups[group].blocks.len() {
            match lines.add_block(&mut reader, &directory, block) {
                Ok(rows) => checked.rows += rows,
                Err(error) => note(error, damages)?,
            }
        }
    }
    for number in 0..directory.words.len() {
        if let Err(error) = segment.words(&directory, number) {
            note(error, damages)?;
        }
    }
    if let Err(error) = segment.overview(&directory) {
        note(error, damages)?;
    }
    if let Err(error) = segment.timeline(&directory) {
        note(error, damages)?;
    }
    if let Err(error) = segment.patterns(&directory) {
        note(error, damages)?;
    }
    if damages.is_empty() {
        damages.extend(lines.compare());
    }
    Ok(checked)
}

/// The lines of a segment, counted by source.
struct Lines<'a> {
    segment: &'a SegmentFile,
    /// One for each source; `None` if lines do not matter.
    tallies: Option<Vec<Tally>>,
    plans: Plans,
    line: Vec<u8>,
}

impl<'a> Lines<'a> {
    fn new(segment: &'a SegmentFile, counts_lines: bool) -> Lines<'a> {
        let sources = segment.manifest().sources.len();
        Lines {
            segment,
            tallies: counts_lines.then(|| vec![Tally::default(); sources]),
            plans: Plans::default(),
            line: Vec::new(),
        }
    }

    /// Reads a block; gives its rows.
    fn add_block(
        &mut self,
        reader: &mut RowGroupReader<'_>,
        directory: &Directory,
        block: usize,
    ) -> Result<u64, ReadError> {
        let rows = reader.rows(block)?;
        let Some(tallies) = &mut self.tallies else {
            return Ok(rows.len() as u64);
        };
        let sources = &self.segment.manifest().sources;
        let view = RowsView::new(&rows, &directory.schema, &mut self.plans);
        for row in 0..rows.len() {
            let at = rows.source[row] as usize;
            // A row of no source is missing from its own, which the comparison finds.
            let Some(source) = sources.get(at) else {
                continue;
            };
            let received_ms = cast::unsigned(rows.received[row].div_euclid(1000));
            let number = cast::unsigned(rows.number[row]);
            let id = Id::new(received_ms, source.source.incarnation, number);
            self.line.clear();
            view.write_line(row, &mut self.line);
            tallies[at].add_row(id, &self.line);
        }
        Ok(rows.len() as u64)
    }

    /// Compares every source with the manifest.
    fn compare(&self) -> Option<Damage> {
        let sources = &self.segment.manifest().sources;
        let tallies = self.tallies.iter().flatten();
        let differs = sources
            .iter()
            .zip(tallies)
            .any(|(source, tally)| (source.rows, source.hash) != (tally.rows, tally.hash_sum));
        differs.then(|| Damage {
            offset: 0,
            bytes: self.segment.bytes(),
            what: "the rows are not those of the source",
        })
    }
}

fn note_directory(segment: &SegmentFile, damages: &mut Vec<Damage>) -> io::Result<()> {
    match segment.directory_damage() {
        Ok(None) => Ok(()),
        Ok(Some(damage)) => note(ReadError::Damaged(damage), damages),
        Err(error) => note(error, damages),
    }
}

fn note_gaps(
    segment: &SegmentFile,
    directory: &Directory,
    damages: &mut Vec<Damage>,
) -> io::Result<()> {
    for (offset, bytes) in segment.gaps(directory) {
        let what = "bytes that belong to nothing";
        let damage = Damage {
            offset,
            bytes,
            what,
        };
        note(ReadError::Damaged(damage), damages)?;
    }
    Ok(())
}

fn note(error: ReadError, damages: &mut Vec<Damage>) -> io::Result<()> {
    match error {
        ReadError::Disk(error) => Err(error),
        ReadError::Damaged(damage) => {
            if damages.len() < DAMAGES_MAX && !damages.contains(&damage) {
                damages.push(damage);
            }
            Ok(())
        }
    }
}

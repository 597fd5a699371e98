//! Checking segment files down to the last byte.

use crate::file::{Damage, ReadError, SegmentFile};
use crate::rows::{Plans, RowsView};
use crate::tally::Tally;
use logpond_record::Id;

/// Most damages of one file that are listed.
const DAMAGES_MAX: usize = 1000;

/// Reads every page of a segment: all checksums, all encodings. Gives what is damaged.
///
/// # Errors
/// When the disk fails; damage is no error.
pub fn pages(segment: &SegmentFile) -> std::io::Result<Vec<Damage>> {
    check(segment, false)
}

/// Like [`pages`], and besides rebuilds every line and compares each source with what the
/// manifest says of it: rows and the sum of their hashes.
///
/// # Errors
/// When the disk fails; damage is no error.
pub fn deep(segment: &SegmentFile) -> std::io::Result<Vec<Damage>> {
    check(segment, true)
}

fn check(segment: &SegmentFile, lines: bool) -> std::io::Result<Vec<Damage>> {
    let mut damages = Vec::new();
    let directory = match segment.read_directory() {
        Ok(directory) => directory,
        Err(error) => return note(error, &mut damages).map(|()| damages),
    };
    let sources = &segment.manifest().sources;
    let mut tallies = vec![Tally::default(); sources.len()];
    let mut plans = Plans::default();
    let mut line = Vec::new();
    for group in 0..directory.row_groups.len() {
        let mut reader = segment.row_group(&directory, group);
        if let Err(error) = reader.check_tokens() {
            note(error, &mut damages)?;
        }
        for block in 0..directory.row_groups[group].blocks.len() {
            let rows = match reader.rows(block) {
                Ok(rows) => rows,
                Err(error) => {
                    note(error, &mut damages)?;
                    continue;
                }
            };
            if !lines {
                continue;
            }
            let view = RowsView::new(&rows, &directory.schema, &mut plans);
            for row in 0..rows.len() {
                let Some(source) = sources.get(rows.source[row] as usize) else {
                    continue;
                };
                let received_ms = rows.received[row].div_euclid(1000) as u64;
                let id = Id::new(
                    received_ms,
                    source.source.incarnation,
                    rows.number[row] as u64,
                );
                line.clear();
                view.write_line(row, &mut line);
                tallies[rows.source[row] as usize].add_row(id, &line);
            }
        }
    }
    if lines && damages.is_empty() {
        for (source, tally) in sources.iter().zip(&tallies) {
            if (source.rows, source.hash) != (tally.rows, tally.hash_sum) {
                damages.push(Damage {
                    offset: 0,
                    bytes: segment.bytes(),
                    what: "the rows are not those of the source",
                });
            }
        }
    }
    Ok(damages)
}

fn note(error: ReadError, damages: &mut Vec<Damage>) -> std::io::Result<()> {
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

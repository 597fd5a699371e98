//! The segments of a simulated pond: the steps of the product's store, one at a time.
//!
//! Invariants, which the product's store has as well: a journal file goes only when a live segment
//! lists its source; inputs of a merge retire only when the others list their sources; what a
//! failed attempt has left is removed before the next one; nothing is read before
//! [`build::settle`].

use std::borrow::Cow;

use logpond_record::{
    Assumption, Entry, Id, Incarnation, Message, Record, ShapeTable, SourceId, TimeSource,
    Timestamp, Value,
};
use logpond_segment::build::{self, BuildError, DIRECTORY};
use logpond_segment::compact::{self, Job, Live, Settings};
use logpond_segment::disk::Disk;
use logpond_segment::file::{Manifest, Profile, ReadError, SegmentFile};
use logpond_segment::journal::{ClosedFile, Visible};
use logpond_segment::mem_disk::{MemDisk, SeededRandom};
use logpond_segment::rows::{Plans, RowsView};
use logpond_segment::verify;

use crate::ledger::Row;

const SECOND_NS: i64 = 1_000_000_000;

/// Small and soon, so that a short run merges often and across several sizes.
const COMPACT: Settings = Settings {
    target_raw_bytes: 64 << 10,
    fan_in_min: 2,
    fan_in_max: 4,
    pack_in_max: 8,
    bucket_ns: 100 * SECOND_NS,
    cold_age_ns: 200 * SECOND_NS,
};

/// The most journal files that go into one segment.
const FILES_MAX: u64 = 3;

/// What a step has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// So many journal files were put into a segment.
    Consumed(u64),
    /// So many segments became one.
    Merged(u64),
    /// A segment was retired.
    Retired,
    /// There was nothing to do.
    Nothing,
    /// The disk failed.
    Failed(String),
}

/// The live segments, and what is on its way.
pub struct Segments {
    disk: MemDisk,
    live: Vec<SegmentFile>,
    trash: Vec<Id>,
    /// Failed attempts of which something may be left on disk.
    failed: Vec<Id>,
    shapes: ShapeTable,
}

impl Segments {
    /// Opens what is on the disk, as a start does.
    ///
    /// # Errors
    /// When the disk fails; a start ends with it.
    pub fn open(disk: &MemDisk) -> std::io::Result<Segments> {
        disk.create_directory(DIRECTORY)?;
        let found = build::open_all(disk)?;
        assert_eq!(found.quarantined, [], "a crash damages no segment");
        assert_eq!(found.salvaged, [], "a crash damages no segment");
        let settled = build::settle(disk, found.live);
        let mut trash: Vec<Id> = found.trash.iter().map(|(id, _)| *id).collect();
        trash.extend(settled.covered.iter().map(|(id, _)| *id));
        Ok(Segments {
            disk: disk.clone(),
            live: settled.live,
            trash,
            failed: Vec::new(),
            shapes: ShapeTable::new(),
        })
    }

    /// Whether a live segment lists this source.
    pub fn holds(&self, source: SourceId) -> bool {
        let listed = |m: &Manifest| m.sources.iter().any(|entry| entry.source == source);
        self.live.iter().any(|segment| listed(segment.manifest()))
    }

    /// The manifests of the live segments.
    pub fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        self.live.iter().map(|segment| &**segment.manifest())
    }

    /// Puts the oldest journal files into a segment.
    pub fn consume(&mut self, visible: &Visible, random: &mut SeededRandom) -> Step {
        let result = self.try_consume(visible, random);
        result.unwrap_or_else(Step::Failed)
    }

    fn try_consume(
        &mut self,
        visible: &Visible,
        random: &mut SeededRandom,
    ) -> Result<Step, String> {
        let mut files = Vec::new();
        let count = 1 + random.below(FILES_MAX);
        for file in visible.snapshot().closed.iter() {
            if self.holds(file.source) {
                self.drop_journal(visible, file);
            } else if (files.len() as u64) < count {
                files.push(file.clone());
            }
        }
        if files.is_empty() {
            return Ok(Step::Nothing);
        }
        self.discard_failed()?;
        let id = new_id(random);
        let shapes = &mut self.shapes;
        let built = build::from_journal(&self.disk, id, &files, |entry| decode(entry, shapes));
        let built = built.map_err(|error| self.failed(id, &error))?;
        let segment = build::open(&self.disk, id).map_err(|error| self.failed(id, &error))?;
        self.live.push(segment);
        assert_eq!(built.damages.listed, [], "a crash damages no journal file");
        for file in &files {
            self.drop_journal(visible, file);
        }
        Ok(Step::Consumed(files.len() as u64))
    }

    fn drop_journal(&self, visible: &Visible, file: &ClosedFile) {
        visible.remove_closed(file.source);
        // It may come back in a crash; then a segment lists its source.
        let _ = self.disk.remove(&file.path);
    }

    /// Carries out the first thing that is due; now and then plans as on request.
    pub fn compact(&mut self, now: Timestamp, random: &mut SeededRandom) -> Step {
        let live: Vec<Live> = self.describe();
        let jobs = if random.one_in(6) {
            compact::plan_all(&live, random.one_in(2), &COMPACT)
        } else {
            compact::plan(&live, now, &COMPACT)
        };
        let result = match jobs.into_iter().next() {
            None => Ok(Step::Nothing),
            Some(Job::Retire(id)) => {
                assert!(compact::is_covered(id, &live));
                self.retire(&[id]).map(|()| Step::Retired)
            }
            Some(Job::Merge { inputs, cold, .. }) => self.merge(&inputs, cold, random),
        };
        result.unwrap_or_else(Step::Failed)
    }

    fn describe(&self) -> Vec<Live> {
        let each = self.live.iter();
        each.map(|segment| Live::new(segment.manifest(), segment.bytes()))
            .collect()
    }

    fn merge(&mut self, ids: &[Id], cold: bool, random: &mut SeededRandom) -> Result<Step, String> {
        self.discard_failed()?;
        let find = |id: &Id| {
            let found = self.live.iter().find(|s| s.manifest().id == *id);
            found.cloned().expect("plans name live segments")
        };
        let inputs: Vec<SegmentFile> = ids.iter().map(find).collect();
        let id = new_id(random);
        let profile = if cold { Profile::Cold } else { Profile::Hot };
        let merged = build::merge(&self.disk, id, &inputs, profile, &|| false);
        if let Err(BuildError::Input(ReadError::Damaged(damage))) = &merged {
            panic!("a crash damages no segment: {damage}");
        }
        merged.map_err(|error| self.failed(id, &error))?;
        let segment = build::open(&self.disk, id).map_err(|error| self.failed(id, &error))?;
        self.live.push(segment);
        self.retire(ids)?;
        Ok(Step::Merged(ids.len() as u64))
    }

    fn retire(&mut self, ids: &[Id]) -> Result<(), String> {
        self.live
            .retain(|segment| !ids.contains(&segment.manifest().id));
        self.trash.extend(ids);
        build::retire(&self.disk, ids).map_err(|error| error.to_string())
    }

    /// Removes what was retired.
    pub fn purge(&mut self) -> Step {
        match build::purge(&self.disk, &self.trash) {
            Ok(()) => {
                self.trash.clear();
                Step::Nothing
            }
            Err(error) => Step::Failed(error.to_string()),
        }
    }

    fn failed(&mut self, id: Id, error: &dyn std::error::Error) -> String {
        self.failed.push(id);
        // If this fails too, the next attempt begins with it.
        let _ = self.discard_failed();
        error.to_string()
    }

    fn discard_failed(&mut self) -> Result<(), String> {
        while let Some(id) = self.failed.last() {
            build::discard(&self.disk, *id).map_err(|error| error.to_string())?;
            self.failed.pop();
        }
        Ok(())
    }

    /// The rows of the live segments; `None` if the disk fails.
    pub fn rows(&self) -> Option<Vec<Row>> {
        let mut rows = Vec::new();
        for segment in &self.live {
            match read(segment, &mut rows) {
                Ok(()) => {}
                Err(ReadError::Damaged(damage)) => panic!("a crash damages no segment: {damage}"),
                Err(ReadError::Disk(_)) => return None,
            }
        }
        Some(rows)
    }

    /// Checks every byte of every live segment; the disk must be without faults.
    pub fn verify(&self) {
        for segment in &self.live {
            let damages = verify::deep(segment).expect("without faults");
            assert_eq!(damages, [], "{}", segment.manifest().id);
        }
    }
}

fn new_id(random: &mut SeededRandom) -> Id {
    Id((u128::from(random.draw() >> 1) << 64) | u128::from(random.draw()))
}

/// Every other row has fields, the rest is text.
fn decode<'e>(entry: &Entry<'e>, shapes: &mut ShapeTable) -> Record<'e> {
    let text = std::str::from_utf8(entry.raw).expect("the workload writes text");
    let parts = text
        .strip_prefix("row ")
        .and_then(|rest| rest.split_once(' '));
    let parts = parts.and_then(|(n, rest)| Some((n.parse::<i64>().ok()?, rest)));
    let (shape, message, values) = match parts {
        Some((n, rest)) if n % 2 == 0 => (
            shapes.intern("row ⟨n:i⟩ ⟨_msg:t⟩".as_bytes()),
            Message::Part(Value::Str(Cow::Borrowed(rest))),
            vec![Value::Int(n), Value::Null],
        ),
        _ => (
            Some(shapes.text()),
            Message::Part(Value::Str(Cow::Borrowed(text))),
            vec![Value::Null],
        ),
    };
    let labels = entry.labels.iter();
    Record {
        id: entry.id,
        // Event times overlap between files and repeat within them.
        time: Timestamp(entry.received.0 - (entry.raw.len() as i64 % 7) * 10 * SECOND_NS),
        time_source: TimeSource::Line(Assumption::Nothing),
        received: entry.received,
        message,
        shape: shape.expect("a shape"),
        values,
        fixes: Vec::new(),
        labels: labels
            .map(|(name, value)| (Cow::Borrowed(&**name), Value::Str(Cow::Borrowed(&**value))))
            .collect(),
        whole: None,
    }
}

fn read(segment: &SegmentFile, out: &mut Vec<Row>) -> Result<(), ReadError> {
    let directory = segment.read_directory()?;
    let sources: Vec<Incarnation> = segment
        .manifest()
        .sources
        .iter()
        .map(|entry| entry.source.incarnation)
        .collect();
    let mut plans = Plans::default();
    for group in 0..directory.row_groups.len() {
        let mut reader = segment.row_group(&directory, group);
        for block in 0..directory.row_groups[group].blocks.len() {
            let rows = reader.rows(block)?;
            let view = RowsView::new(&rows, &directory.schema, &mut plans);
            for row in 0..rows.len() {
                let ms = rows.received[row].div_euclid(1000) as u64;
                let incarnation = sources[rows.source[row] as usize];
                let id = Id::new(ms, incarnation, rows.number[row] as u64);
                let mut raw = Vec::new();
                view.write_line(row, &mut raw);
                out.push(Row { id, raw });
            }
        }
    }
    Ok(())
}

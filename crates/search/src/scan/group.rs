//! The scan of one row group.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::Arc;

use logpond_record::{Id, Incarnation, Record, Shape, SlotKind, Timestamp, cast};
use logpond_segment::file::{
    Damage, Directory, Manifest, ReadError, RowGroupEntry, RowGroupReader,
};
use logpond_segment::patterns::LineTemplates;
use logpond_segment::rows::{Plans, Rows, RowsView, Strings, memory_bytes};
use logpond_segment::tokens::{self, BlockSet};

use super::block::Block;
use super::by_column::Decisions;
use super::evaluate::Evaluator;
use super::labels::LabelColumn;
use super::members::KnownMembers;
use super::patterns::KnownPatterns;
use super::segment::{PartHits, SegmentScan};
use super::templates::TemplateDecisions;
use super::values::TextDecisions;
use crate::label::ComputedLabel;

/// The place of a row in the total order, and where it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Event time.
    pub time: Timestamp,
    /// The record's id.
    pub id: Id,
    /// The block in the row group.
    pub block: u32,
    /// The row in the block.
    pub row: u32,
}

/// A block of a row group, and when its rows were.
#[derive(Clone, Copy, Debug)]
pub struct BlockSpan {
    /// The block in the row group.
    pub number: usize,
    /// Event time of its first row.
    pub min: Timestamp,
    /// Event time of its last row.
    pub max: Timestamp,
}

/// Rows of one block that were selected.
#[derive(Clone, Debug)]
pub struct SelectedRows {
    /// The block in the row group.
    pub block: usize,
    /// The rows in the block, in order.
    pub rows: Vec<u32>,
}

/// About the memory of a decoded block of a row group.
fn block_bytes(directory: &Directory, group: usize, block: usize) -> u64 {
    let block = directory.row_groups[group].blocks[block];
    let row_bytes = directory.schema.row_bytes();
    let (rows, line_bytes) = (u64::from(block.rows), u64::from(block.line_bytes));
    memory_bytes(rows, row_bytes, line_bytes)
}

/// About the memory of the largest block of a row group, once it is decoded, and of the dictionaries that all blocks
/// share.
pub fn block_bytes_max(directory: &Directory, group: usize) -> u64 {
    let entry = &directory.row_groups[group];
    let blocks = 0..entry.blocks.len();
    let each = blocks.map(|block| block_bytes(directory, group, block));
    each.max().unwrap_or(0) + entry.dictionary_bytes()
}

/// Makes ids of stored rows.
#[derive(Clone, Debug)]
pub(super) struct Ids {
    incarnations: Vec<Incarnation>,
}

impl Ids {
    /// For the rows of a segment.
    fn new(manifest: &Manifest) -> Ids {
        Ids {
            incarnations: manifest
                .sources
                .iter()
                .map(|s| s.source.incarnation)
                .collect(),
        }
    }

    /// The id of a row.
    pub(super) fn of_row(&self, rows: &Rows, row: usize) -> Id {
        let source = rows.source[row] as usize;
        let incarnation = self.incarnations.get(source).copied().unwrap_or_default();
        let received_ms = rows.received[row].div_euclid(1000);
        Id::new(
            cast::unsigned(received_ms),
            incarnation,
            cast::unsigned(rows.number[row]),
        )
    }
}

/// The compiled shapes of one table of texts.
#[derive(Default)]
struct Shapes {
    texts: Option<Arc<Strings>>,
    compiled: HashMap<u32, Arc<Shape>>,
}

impl Shapes {
    /// Those of this table; what is known of another one is forgotten.
    fn of(&mut self, texts: &Arc<Strings>) -> &mut HashMap<u32, Arc<Shape>> {
        let known = self.texts.as_ref();
        if !known.is_some_and(|known| Arc::ptr_eq(known, texts)) {
            self.texts = Some(Arc::clone(texts));
            self.compiled.clear();
        }
        &mut self.compiled
    }
}

/// Selects rows of one row group and gives their records.
pub struct GroupScan<'a> {
    pub(super) reader: RowGroupReader<'a>,
    pub(super) directory: &'a Directory,
    number: usize,
    pub(super) evaluator: &'a Evaluator,
    ids: Ids,
    plans: Plans,
    /// The block at hand.
    block: Block<'a>,
    decisions: Vec<Decisions>,
    shapes: Shapes,
    text_decisions: TextDecisions,
    pub(super) template_decisions: TemplateDecisions,
    pub(super) known_patterns: KnownPatterns,
    pub(super) line_templates: LineTemplates,
    /// Blocks with selected rows, with the columns that were read so far.
    kept: HashMap<usize, Block<'a>>,
    damages: Vec<Damage>,
    /// Blocks whose records cannot be read: each of their rows would be tried again otherwise.
    unreadable: BTreeSet<usize>,
    /// False once a part was damaged that is derived from others, such as the list of words: rows are decided
    /// without any of them then.
    uses_derived: bool,
    /// The columns with labels, once they were asked for.
    pub(super) label_columns: Option<Arc<[LabelColumn]>>,
    pub(super) known_members: KnownMembers,
    /// The fields that say what computed labels are, once they were asked for.
    pub(super) computed: Vec<(ComputedLabel, Arc<[&'a str]>)>,
    segment: &'a SegmentScan<'a>,
    /// Bytes read of what row groups share.
    shared_bytes_read: u64,
}

impl<'a> GroupScan<'a> {
    /// A scan of row group `number`.
    pub fn new(segment: &'a SegmentScan<'a>, number: usize) -> GroupScan<'a> {
        let SegmentScan {
            file,
            directory,
            evaluator,
            ..
        } = segment;
        GroupScan {
            reader: file.row_group(directory, number),
            directory,
            number,
            evaluator,
            ids: Ids::new(file.manifest()),
            plans: Plans::default(),
            block: Block::new(0, directory, None),
            decisions: evaluator.new_decisions(),
            shapes: Shapes::default(),
            text_decisions: TextDecisions::default(),
            template_decisions: TemplateDecisions::default(),
            known_patterns: KnownPatterns::new(),
            line_templates: LineTemplates::default(),
            kept: HashMap::new(),
            damages: Vec::new(),
            unreadable: BTreeSet::new(),
            uses_derived: true,
            label_columns: None,
            known_members: KnownMembers::new(),
            computed: Vec::new(),
            segment,
            shared_bytes_read: 0,
        }
    }

    /// What could not be read; its rows are not in any result.
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    /// Bytes read from the file so far.
    pub fn bytes_read(&self) -> u64 {
        self.reader.bytes_read() + self.shared_bytes_read
    }

    /// Whether rows of the segment are left out for their source.
    pub fn excludes_some(&self) -> bool {
        self.segment.excluded.is_some()
    }

    /// The segment that the row group is of.
    pub fn segment_id(&self) -> Id {
        self.segment.file.manifest().id
    }

    /// The texts of the templates of the row group; `None` if they are not to be used.
    ///
    /// # Errors
    /// When they are damaged or the disk fails.
    pub(super) fn template_texts(&mut self) -> Result<Option<Arc<Strings>>, ReadError> {
        if !self.uses_derived {
            return Ok(None);
        }
        self.reader.template_texts()
    }

    pub(super) fn entry(&self) -> &'a RowGroupEntry {
        &self.directory.row_groups[self.number]
    }

    /// The blocks with ids longer than `bytes`.
    pub(super) fn blocks_with_longer_ids(&self, bytes: usize) -> BlockSet {
        let ids = &self.entry().tokens.long_ids;
        tokens::blocks_with_longer_ids(ids, bytes, self.blocks_count())
    }

    pub(super) fn blocks_count(&self) -> usize {
        self.entry().blocks.len()
    }

    /// The words of the row group that hold the search's parts; `None` if they are not kept.
    pub(super) fn hits(&mut self) -> Result<Option<Arc<PartHits>>, ReadError> {
        if !self.uses_derived {
            return Ok(None);
        }
        Ok(self.segment.hits(self.number)?.map(|(hits, bytes_read)| {
            self.shared_bytes_read += bytes_read;
            hits
        }))
    }

    /// The blocks that may have rows that are wanted, as far as their times and the token index tell.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn blocks(&mut self) -> io::Result<Vec<BlockSpan>> {
        let evaluator = self.evaluator;
        let blocks = match evaluator.candidates(self) {
            Ok(blocks) => blocks,
            Err(error) => {
                // Without its index the row group is searched whole.
                self.note(error)?;
                BlockSet::all(self.blocks_count())
            }
        };
        let entries = &self.directory.row_groups[self.number].blocks;
        let span = |number: usize| BlockSpan {
            number,
            min: Timestamp(entries[number].time_min),
            max: Timestamp(entries[number].time_max),
        };
        let range = evaluator.range();
        let spans = blocks.iter().map(span);
        Ok(spans
            .filter(|block| range.overlaps(block.min, block.max))
            .collect())
    }

    /// Hands over the selected rows of a block, if there are any; `visit` may look at its columns. Gives
    /// what `visit` says; true if it was not asked. Damage is noted.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn visit_block(
        &mut self,
        number: usize,
        visit: impl FnOnce(&mut GroupScan<'a>, SelectedRows) -> Result<bool, ReadError>,
    ) -> io::Result<bool> {
        let selected = match self.select_block(number) {
            Err(ReadError::Damaged(damage)) if self.uses_derived => {
                // Its rows may be sound all the same.
                self.damages.push(damage);
                self.uses_derived = false;
                self.template_decisions.clear();
                self.select_block(number)
            }
            other => other,
        };
        let visited = selected.and_then(|selected| match selected {
            Some(selected) => visit(self, selected),
            None => Ok(true),
        });
        // No more is asked of it; what is kept for records is kept elsewhere.
        self.block = Block::new(0, self.directory, None);
        visited.or_else(|error| self.note(error).map(|()| true))
    }

    /// The selected rows, block by block; `visit` may look at columns of the block at hand.
    /// It says whether to go on.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn for_each_block(
        &mut self,
        mut visit: impl FnMut(&mut GroupScan<'a>, SelectedRows) -> Result<bool, ReadError>,
    ) -> io::Result<()> {
        for block in self.blocks()? {
            if !self.visit_block(block.number, &mut visit)? {
                break;
            }
        }
        Ok(())
    }

    fn select_block(&mut self, number: usize) -> Result<Option<SelectedRows>, ReadError> {
        let entry = self.directory.row_groups[self.number].blocks[number];
        let range = self.evaluator.range();
        let (min, max) = (Timestamp(entry.time_min), Timestamp(entry.time_max));
        self.block = Block::new(number, self.directory, self.segment.kept(self.number));
        let mut rows: Vec<u32> = (0..entry.rows).collect();
        if !range.covers(min, max) {
            let times = self.times()?;
            rows.retain(|row| range.contains(Timestamp(times[*row as usize])));
        }
        let evaluator = self.evaluator;
        let mut rows = evaluator.select(self, rows)?;
        // Last, so that sources are read of blocks with rows that are wanted, and of no others.
        if let Some(excluded) = &self.segment.excluded
            && !rows.is_empty()
        {
            let sources = self.block.sources(&mut self.reader)?;
            rows.retain(|row| !excluded.has(sources[*row as usize]));
        }
        Ok((!rows.is_empty()).then_some(SelectedRows {
            block: number,
            rows,
        }))
    }

    fn note(&mut self, error: ReadError) -> Result<(), std::io::Error> {
        match error {
            ReadError::Damaged(damage) => {
                self.damages.push(damage);
                Ok(())
            }
            // A store of objects that cannot be reached costs its own part of an answer; a disk that
            // fails ends it.
            ReadError::Disk(error) => {
                let what = of_store(&error).ok_or(error)?;
                self.damages.push(Damage {
                    offset: 0,
                    bytes: 0,
                    what,
                });
                Ok(())
            }
        }
    }

    /// What was read of the block at hand.
    pub(super) fn known_rows(&self) -> &Rows {
        self.block.known_rows()
    }

    /// The block at hand, the reader, and the memory of decisions.
    pub(super) fn parts(&mut self) -> (&mut Block<'a>, &mut RowGroupReader<'a>, &mut [Decisions]) {
        (&mut self.block, &mut self.reader, &mut self.decisions)
    }

    /// The block at hand, the reader, and the decisions about texts.
    pub(super) fn text_parts(
        &mut self,
    ) -> (&mut Block<'a>, &mut RowGroupReader<'a>, &mut TextDecisions) {
        (&mut self.block, &mut self.reader, &mut self.text_decisions)
    }

    /// The ids of rows of the block at hand.
    ///
    /// # Errors
    /// When the block cannot be read.
    pub(super) fn ids(&mut self, rows: &[u32]) -> Result<Vec<Id>, ReadError> {
        self.block.read_identities(&mut self.reader)?;
        let known = self.block.known_rows();
        let ids = rows.iter().map(|row| self.ids.of_row(known, *row as usize));
        Ok(ids.collect())
    }

    /// The first and the last event time of a block, in nanoseconds.
    pub(crate) fn block_span(&self, selected: &SelectedRows) -> (i64, i64) {
        let entry = self.entry().blocks[selected.block];
        (entry.time_min, entry.time_max)
    }

    /// Event times of the block at hand, in nanoseconds, one for each row.
    ///
    /// # Errors
    /// When the block cannot be read.
    pub fn block_times(&mut self) -> Result<&[i64], ReadError> {
        self.times()
    }

    /// Event times of the block at hand.
    pub(super) fn times(&mut self) -> Result<&[i64], ReadError> {
        let (block, reader, _) = self.parts();
        block.times(reader)
    }

    /// Reads all columns of the block at hand and hands over a view of them.
    pub(super) fn with_view<T>(
        &mut self,
        visit: impl FnOnce(&RowsView<'_>, &Ids) -> T,
    ) -> Result<T, ReadError> {
        let rows = self.block.rows(&mut self.reader)?;
        let view = RowsView::new(rows, &self.directory.schema, &mut self.plans);
        Ok(visit(&view, &self.ids))
    }

    /// Reads what the lines of some rows of the block at hand are rendered from, and hands over a
    /// view that shows lines and messages, but not fields and ids.
    pub(super) fn with_lines<T>(
        &mut self,
        rows: &[u32],
        visit: impl FnOnce(&RowsView<'_>) -> T,
    ) -> Result<T, ReadError> {
        let (values, mut codes) = {
            let shapes = self.block.shapes(&mut self.reader)?;
            let codes: Vec<u32> = rows.iter().map(|row| shapes.codes[*row as usize]).collect();
            (Arc::clone(&shapes.values), codes)
        };
        codes.sort_unstable();
        codes.dedup();
        let shapes: Vec<Arc<Shape>> = codes
            .iter()
            .map(|code| self.shape(&values, *code))
            .collect();
        let shapes = shapes.iter().map(|shape| &**shape);
        let rows = self.block.lines(shapes, self.directory, &mut self.reader)?;
        let view = RowsView::new(rows, &self.directory.schema, &mut self.plans);
        Ok(visit(&view))
    }

    /// Of some rows of the block at hand, those whose shape has this name in a null slot.
    pub(super) fn rows_with_null(
        &mut self,
        name: &str,
        rows: &[u32],
    ) -> Result<Vec<u32>, ReadError> {
        let count = self.directory.counts.fields.get(name);
        if count.is_none_or(|count| count.shape_null == 0) {
            return Ok(Vec::new());
        }
        let has_null = self.test_shapes(rows, |shape| {
            let mut slots = shape.slots().iter();
            slots.any(|slot| slot.kind == SlotKind::Null && &*slot.name == name)
        })?;
        let found = rows.iter().zip(has_null).filter(|(_, has_null)| *has_null);
        Ok(found.map(|(row, _)| *row).collect())
    }

    /// For each of some rows of the block at hand what the test says of its shape.
    pub(super) fn test_shapes(
        &mut self,
        rows: &[u32],
        test: impl Fn(&Shape) -> bool,
    ) -> Result<Vec<bool>, ReadError> {
        let shapes = self.block.shapes(&mut self.reader)?;
        let values = Arc::clone(&shapes.values);
        let codes: Vec<u32> = rows.iter().map(|row| shapes.codes[*row as usize]).collect();
        let mut known: Vec<Option<bool>> = vec![None; values.len()];
        let mut says = |code: u32| {
            let known = &mut known[code as usize];
            *known.get_or_insert_with(|| test(&self.shape(&values, code)))
        };
        Ok(codes.into_iter().map(&mut says).collect())
    }

    /// A shape of the row group, compiled once.
    pub(super) fn shape(&mut self, values: &Arc<Strings>, code: u32) -> Arc<Shape> {
        let segment = self.segment;
        self.shapes
            .of(values)
            .entry(code)
            .or_insert_with(|| segment.shape(values.get(code)))
            .clone()
    }

    /// The keys of selected rows of the block at hand, appended to `out`. What was read of the
    /// block is kept for [`GroupScan::record`].
    pub fn keys(&mut self, selected: &SelectedRows, out: &mut Vec<Key>) -> Result<(), ReadError> {
        self.block.times(&mut self.reader)?;
        self.block.read_identities(&mut self.reader)?;
        let rows = self.block.known_rows();
        out.extend(selected.rows.iter().map(|&row| Key {
            time: Timestamp(rows.time[row as usize]),
            id: self.ids.of_row(rows, row as usize),
            block: cast::low_u32(selected.block),
            row,
        }));
        let block = std::mem::replace(&mut self.block, Block::new(0, self.directory, None));
        self.kept.insert(selected.block, block);
        Ok(())
    }

    /// Hands over the record of a row. A block that cannot be read is noted once, and `visit` is not called for its
    /// rows.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn record<T>(
        &mut self,
        key: Key,
        visit: impl FnOnce(&Record<'_>) -> T,
    ) -> Result<Option<T>, std::io::Error> {
        let number = key.block as usize;
        if self.unreadable.contains(&number) {
            return Ok(None);
        }
        let directory = self.directory;
        let block = self
            .kept
            .entry(number)
            .or_insert_with(|| Block::new(number, directory, None));
        match block.rows(&mut self.reader) {
            Ok(rows) => {
                let view = RowsView::new(rows, &directory.schema, &mut self.plans);
                Ok(Some(visit(&view.record(key.row as usize, key.id))))
            }
            Err(error) => {
                self.kept.remove(&number);
                self.unreadable.insert(number);
                self.note(error)?;
                Ok(None)
            }
        }
    }

    /// About the memory of the blocks that are kept for records, and of what all blocks share.
    pub fn kept_bytes(&self) -> u64 {
        let kept = self.kept.keys();
        let blocks = kept.map(|number| block_bytes(self.directory, self.number, *number));
        blocks.sum::<u64>() + self.reader.memory_bytes()
    }

    /// True if the block of a row is kept.
    pub fn is_kept(&self, key: &Key) -> bool {
        self.kept.contains_key(&(key.block as usize))
    }

    /// Forgets all that was read, which is read again when it is needed. Damages stay known, and with them the blocks
    /// that cannot be read.
    pub fn forget(&mut self) {
        *self = GroupScan {
            damages: std::mem::take(&mut self.damages),
            unreadable: std::mem::take(&mut self.unreadable),
            uses_derived: self.uses_derived,
            label_columns: self.label_columns.take(),
            computed: std::mem::take(&mut self.computed),
            shared_bytes_read: self.bytes_read(),
            ..GroupScan::new(self.segment, self.number)
        };
    }
}

/// Why a store of objects does not give a file, if an error is from one: open files of a disk are always there.
fn of_store(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::HostUnreachable => Some("the bucket cannot be read now"),
        io::ErrorKind::NotFound => Some("the bucket does not have it"),
        io::ErrorKind::PermissionDenied => Some("the bucket refuses it"),
        _ => None,
    }
}

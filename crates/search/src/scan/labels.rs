//! Labels of selected rows without making records of them.
//!
//! A label is a field that is no slot of its row's shape. Which columns hold some is known from
//! counts: where a column has as many values in a row group as there are rows whose shape has its
//! slot, all of them are of lines, and the column is not read.
//!
//! What the overflow column holds is rare, and the rows that have a label there are looked at as
//! records.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use logpond_record::{Shape, SlotKind, Timestamp, Value};
use logpond_segment::file::ReadError;
use logpond_segment::rows::{Column, NULL, Overflow};

use super::block::column_value;
use super::group::{GroupScan, Selected};
use crate::aggregate::{FieldStats, LabelSet, LabelValues, StreamTally, Streams};
use crate::label;

/// A column that has labels of some rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct LabelColumn {
    /// Its place in the schema.
    number: usize,
    /// Whether it has values of lines, too.
    is_mixed: bool,
}

/// Where the values of a label are.
struct Source {
    /// The label's name.
    name: Box<str>,
    /// The columns, the first with a value counts.
    columns: Vec<LabelColumn>,
    /// What the label is where no column has a value.
    default: Option<&'static str>,
    /// The labels that say what it is, the first with a text counts; itself, if there are none.
    said_by: &'static [&'static str],
}

impl Source {
    fn means(&self, field: &str) -> bool {
        let said = self.said_by.iter();
        label::means(&self.name, field) || said.into_iter().any(|name| label::means(name, field))
    }

    /// What a value of a column says of the label.
    fn text<'v>(&self, value: &'v Value<'_>) -> Cow<'v, [u8]> {
        let text = value.to_text();
        match &*self.name {
            label::DETECTED_LEVEL => {
                let level = label::level_of(&String::from_utf8_lossy(&text));
                Cow::Borrowed(level.as_bytes())
            }
            _ => text,
        }
    }
}

/// A value of a label among those of a block: which column has it, and what tells it from others
/// of that column.
type ValueKey = Option<(u32, u64)>;

/// Rows by their labels; the same labels may stand more than once.
pub(crate) type LabelledRows = Vec<(LabelSet, Vec<u32>)>;

/// Rows of a block that have the same labels.
struct Groups {
    /// For each selected row the number of its group.
    of_rows: Vec<u32>,
    count: u32,
}

impl GroupScan<'_> {
    /// Collects the streams of the selected rows of the block at hand.
    ///
    /// # Errors
    /// When the block cannot be read.
    pub fn add_to_streams(
        &mut self,
        selected: &Selected,
        streams: &mut Streams,
    ) -> Result<(), ReadError> {
        let by = streams.asked().by.clone();
        let sources = self.sources(by.as_deref())?;
        let (plain, odd) = self.split(&selected.rows, &sources, by.is_none())?;
        let (block, rows) = (selected.block, odd);
        self.each_record(&Selected { block, rows }, |record| streams.add(record))?;
        if plain.is_empty() {
            return Ok(());
        }
        let mut groups = Groups {
            of_rows: vec![0; plain.len()],
            count: 1,
        };
        for source in &sources {
            let keys = self.keys_of(source, &plain)?;
            groups.refine(&keys);
        }
        let mut steps = Vec::new();
        if streams.asked().steps.is_some() {
            let times = self.times()?;
            let step = |row: &u32| streams.step_of(Timestamp(times[*row as usize]));
            steps = plain.iter().map(step).collect();
            let keys: Vec<ValueKey> = steps.iter().map(|s| Some((0, *s as u64))).collect();
            groups.refine(&keys);
        }
        let entry = self.entry().blocks[selected.block];
        let line_bytes = u64::from(entry.line_bytes.saturating_sub(entry.rows));
        for (first, rows) in groups.first_rows() {
            let labels = self.labels_of(&sources, plain[first])?;
            let step = steps.get(first).copied().unwrap_or_default();
            let bytes = line_bytes * rows / u64::from(entry.rows.max(1));
            streams.add_stream(step, labels, StreamTally { rows, bytes });
        }
        Ok(())
    }

    /// The selected rows of the block at hand by some labels, of which any field may be one, and the
    /// rows whose labels only their records tell.
    ///
    /// # Errors
    /// When the block cannot be read.
    pub(crate) fn rows_by_labels(
        &mut self,
        selected: &Selected,
        by: &[Box<str>],
    ) -> Result<(LabelledRows, Vec<u32>), ReadError> {
        let sources = self.sources(Some(by))?;
        let schema = &self.directory.schema;
        let mut columns = sources.iter().flat_map(|source| &source.columns);
        if columns.any(|column| self.mixes_numbers(&schema.columns[column.number].name)) {
            // How such a number is written is known to its record alone.
            return Ok((Vec::new(), selected.rows.clone()));
        }
        let (plain, odd) = self.split(&selected.rows, &sources, false)?;
        let mut groups = Groups {
            of_rows: vec![0; plain.len()],
            count: 1,
        };
        for source in &sources {
            let keys = self.keys_of(source, &plain)?;
            groups.refine(&keys);
        }
        let mut rows = vec![Vec::new(); groups.count as usize];
        for (row, group) in plain.iter().zip(&groups.of_rows) {
            rows[*group as usize].push(*row);
        }
        let mut labelled = Vec::new();
        for rows in rows {
            if let Some(first) = rows.first() {
                labelled.push((self.labels_of(&sources, *first)?, rows));
            }
        }
        Ok((labelled, odd))
    }

    /// Counts the labels of the selected rows of the block at hand, by their names as LogQL has
    /// them.
    ///
    /// # Errors
    /// When the block cannot be read.
    pub fn add_to_labels(
        &mut self,
        selected: &Selected,
        stats: &mut FieldStats,
    ) -> Result<(), ReadError> {
        stats.add_rows(selected.rows.len() as u64);
        let sources = self.sources(None)?;
        let (plain, odd) = self.split(&selected.rows, &sources, true)?;
        let (block, rows) = (selected.block, odd);
        self.each_record(&Selected { block, rows }, |record| {
            stats.add_labels(record);
        })?;
        for source in &sources {
            let without = self.visit_source(source, &plain, |value, rows| {
                stats.add_value(&source.name, &Value::text(&value.to_text()), rows);
            })?;
            if let Some(default) = source.default
                && !without.is_empty()
            {
                let value = Value::Str(default.into());
                stats.add_value(&source.name, &value, without.len() as u64);
            }
        }
        Ok(())
    }

    /// Collects the values of a label that the selected rows of the block at hand have.
    ///
    /// # Errors
    /// When the block cannot be read.
    pub fn add_to_label_values(
        &mut self,
        selected: &Selected,
        values: &mut LabelValues,
    ) -> Result<(), ReadError> {
        let by = [values.label().into()];
        let sources = self.sources(Some(&by))?;
        let (plain, odd) = self.split(&selected.rows, &sources, false)?;
        let (block, rows) = (selected.block, odd);
        self.each_record(&Selected { block, rows }, |record| values.add(record))?;
        for source in &sources {
            let without = self.visit_source(source, &plain, |value, _| {
                values.add_text(&source.text(value))
            })?;
            if let Some(default) = source.default
                && !without.is_empty()
            {
                values.add_text(default.as_bytes());
            }
        }
        Ok(())
    }

    /// Where labels are: of the declared ones, and of the service, if none are named.
    fn sources(&mut self, by: Option<&[Box<str>]>) -> Result<Vec<Source>, ReadError> {
        let schema = &self.directory.schema;
        let whole = |number| LabelColumn {
            number,
            is_mixed: false,
        };
        let meaning = |name: &str| -> Vec<LabelColumn> {
            let columns = schema.columns.iter().enumerate();
            let meant = columns.filter(|(_, spec)| label::means(name, &spec.name));
            let mut meant: Vec<_> = meant.collect();
            // Columns are in the order of their names; the label's own comes first.
            meant.sort_by_key(|(_, spec)| *spec.name != *name);
            meant.into_iter().map(|(number, _)| whole(number)).collect()
        };
        let said = |name: &'static str, said_by: &'static [&'static str], default| {
            let names = std::iter::once(name).chain(said_by.iter().copied());
            Source {
                name: name.into(),
                columns: names.flat_map(meaning).collect(),
                default: Some(default),
                said_by,
            }
        };
        let service = || {
            let default = label::UNKNOWN_SERVICE;
            said(label::SERVICE_NAME, &label::SERVICE_LABELS, default)
        };
        let Some(by) = by else {
            let mut named: BTreeMap<Box<str>, Vec<LabelColumn>> = BTreeMap::new();
            for column in self.label_columns()?.iter() {
                let name = label::sanitised(&schema.columns[column.number].name);
                if name != label::SERVICE_NAME {
                    named.entry(name.into()).or_default().push(*column);
                }
            }
            let own_first = |name: &str, columns: &mut Vec<LabelColumn>| {
                columns.sort_by_key(|column| *schema.columns[column.number].name != *name);
            };
            let declared = named.into_iter().map(|(name, mut columns)| {
                own_first(&name, &mut columns);
                Source {
                    name,
                    columns,
                    default: None,
                    said_by: &[],
                }
            });
            return Ok(declared.chain([service()]).collect());
        };
        let source = |name: &str| match name {
            label::SERVICE_NAME => service(),
            label::DETECTED_LEVEL => {
                let default = label::UNKNOWN_LEVEL;
                said(label::DETECTED_LEVEL, &label::LEVEL_LABELS, default)
            }
            _ => Source {
                name: name.into(),
                columns: meaning(name),
                default: None,
                said_by: &[],
            },
        };
        Ok(by.iter().map(|name| source(name)).collect())
    }

    /// The columns with labels.
    fn label_columns(&mut self) -> Result<Arc<[LabelColumn]>, ReadError> {
        if let Some(known) = &self.label_columns {
            return Ok(Arc::clone(known));
        }
        let slots = match self.rows_with_slots() {
            Ok(slots) => Some(slots),
            // A damaged block costs only itself: without counts every column may have labels.
            Err(ReadError::Damaged(_)) => None,
            Err(error) => return Err(error),
        };
        let directory = self.directory;
        let columns = directory.schema.columns.iter().enumerate();
        let columns = columns.filter_map(|(number, spec)| {
            let values = self.reader.field_values(number);
            let is_mixed = |rows: u64| LabelColumn {
                number,
                is_mixed: rows > 0,
            };
            let Some(slots) = &slots else {
                return Some(is_mixed(1));
            };
            let in_lines = slots.get(&spec.name).copied().unwrap_or(0);
            let count = directory.counts.fields.get(&spec.name);
            // Values of lines that are elsewhere are not among those of the column.
            let may_be_elsewhere = count.is_none_or(|count| count.beside(spec.kind) > 0);
            let has_labels = values > in_lines || values > 0 && may_be_elsewhere;
            has_labels.then(|| is_mixed(in_lines))
        });
        let columns: Arc<[LabelColumn]> = columns.collect();
        self.label_columns = Some(Arc::clone(&columns));
        Ok(columns)
    }

    /// For each name of a slot the number of rows in the row group whose shape has a value for it.
    fn rows_with_slots(&mut self) -> Result<BTreeMap<Box<str>, u64>, ReadError> {
        let mut slots: BTreeMap<Box<str>, u64> = BTreeMap::new();
        for block in 0..self.blocks_count() {
            let shapes = self.reader.shapes(block)?;
            let mut rows = vec![0u64; shapes.values.len()];
            for code in &shapes.codes {
                if let Some(rows) = rows.get_mut(*code as usize) {
                    *rows += 1;
                }
            }
            for (code, rows) in rows.iter().enumerate().filter(|(_, rows)| **rows > 0) {
                let shape = self.shape(&shapes.values, code as u32);
                let fields = shape.slots().iter();
                let fields = fields.filter(|slot| slot.is_field() && slot.kind != SlotKind::Null);
                let names: BTreeSet<&str> = fields.map(|slot| &*slot.name).collect();
                for name in names {
                    match slots.get_mut(name) {
                        Some(known) => *known += rows,
                        None => _ = slots.insert(name.into(), *rows),
                    }
                }
            }
        }
        Ok(slots)
    }

    /// Parts rows into those whose labels are in columns, and those that have some in the overflow
    /// column.
    fn split(
        &mut self,
        rows: &[u32],
        sources: &[Source],
        has_declared: bool,
    ) -> Result<(Vec<u32>, Vec<u32>), ReadError> {
        if self.reader.more_values() == 0 {
            return Ok((rows.to_vec(), Vec::new()));
        }
        let is_meant = |name: &str| sources.iter().any(|source| source.means(name));
        let mut odd = Vec::new();
        let mut declared = Vec::new();
        let (block, reader, _) = self.parts();
        let more = block.more(reader)?;
        for &row in rows {
            let Some(object) = more.get(row as usize) else {
                continue;
            };
            let names: Vec<_> = Overflow::new(object).map(|(name, _)| name).collect();
            if names.iter().any(|name| is_meant(name)) {
                odd.push(row);
            } else if has_declared {
                declared.push((
                    row,
                    names.into_iter().map(Box::<str>::from).collect::<Vec<_>>(),
                ));
            }
        }
        for (row, names) in declared {
            let is_declared = |shape: &Shape| {
                let is_slot = |name: &str| shape.slots().iter().any(|s| *s.name == *name);
                !names.iter().all(|name| is_slot(name))
            };
            if self.test_shapes(&[row], is_declared)? == [true] {
                odd.push(row);
            }
        }
        odd.sort_unstable();
        let is_plain = |row: &&u32| odd.binary_search(row).is_err();
        Ok((rows.iter().filter(is_plain).copied().collect(), odd))
    }

    /// Of some rows those for which a column holds a label.
    fn rows_with_label(
        &mut self,
        column: LabelColumn,
        rows: &[u32],
    ) -> Result<Vec<bool>, ReadError> {
        if !column.is_mixed {
            return Ok(vec![true; rows.len()]);
        }
        let name = &self.directory.schema.columns[column.number].name;
        self.test_shapes(rows, |shape| !shape.slots().iter().any(|s| s.name == *name))
    }

    /// Hands over the distinct values of a label with how many of some rows have each, and gives
    /// the rows without.
    fn visit_source(
        &mut self,
        source: &Source,
        rows: &[u32],
        mut visit: impl FnMut(&Value<'_>, u64),
    ) -> Result<Vec<u32>, ReadError> {
        let mut left = rows.to_vec();
        for column in &source.columns {
            if left.is_empty() {
                break;
            }
            let has_label = self.rows_with_label(*column, &left)?;
            let part = |wanted: bool| {
                let rows = left.iter().zip(&has_label);
                rows.filter(move |(_, has)| **has == wanted)
                    .map(|(row, _)| *row)
            };
            let mut without: Vec<u32> = part(false).collect();
            let with: Vec<u32> = part(true).collect();
            // An empty text is no value: another column may have one.
            let (block, reader, _) = self.parts();
            let values = block.field(column.number, reader)?;
            let has_value = |row: &u32| value_key(values, *row as usize).is_some();
            let (with, empty): (Vec<u32>, Vec<u32>) = with.into_iter().partition(has_value);
            without.extend(empty);
            self.count_field(column.number, &with, &mut without, |value, rows| {
                visit(value, rows);
            })?;
            without.sort_unstable();
            left = without;
        }
        Ok(left)
    }

    /// For each of some rows what tells its value of a label from those of others.
    fn keys_of(&mut self, source: &Source, rows: &[u32]) -> Result<Vec<ValueKey>, ReadError> {
        let mut keys: Vec<ValueKey> = vec![None; rows.len()];
        for (place, column) in source.columns.iter().enumerate() {
            let has_label = self.rows_with_label(*column, rows)?;
            let (block, reader, _) = self.parts();
            let values = block.field(column.number, reader)?;
            let wanted = keys.iter_mut().zip(rows).zip(&has_label);
            for ((key, row), _) in wanted.filter(|((key, _), has)| key.is_none() && **has) {
                *key = value_key(values, *row as usize).map(|value| (place as u32, value));
            }
            if keys.iter().all(Option::is_some) {
                break;
            }
        }
        Ok(keys)
    }

    /// The labels of a row, whose columns were read.
    fn labels_of(&mut self, sources: &[Source], row: u32) -> Result<LabelSet, ReadError> {
        let mut labels = Vec::new();
        for source in sources {
            let mut found = None;
            for column in &source.columns {
                if self.rows_with_label(*column, &[row])? != [true] {
                    continue;
                }
                let kind = self.directory.schema.columns[column.number].kind;
                let (block, reader, _) = self.parts();
                let values = block.field(column.number, reader)?;
                found = column_value(values, kind, row as usize)
                    .map(|value| source.text(&value).into_owned())
                    .filter(|text| !text.is_empty());
                if found.is_some() {
                    break;
                }
            }
            let value = found.or_else(|| source.default.map(|text| text.as_bytes().to_vec()));
            labels.extend(value.map(|value| ((&*source.name).into(), value.into())));
        }
        Ok(LabelSet::new(labels))
    }
}

impl Groups {
    /// Tells rows of a group apart that differ in this, too.
    fn refine(&mut self, keys: &[ValueKey]) {
        let Some(first) = keys.first() else { return };
        if keys.iter().all(|key| key == first) {
            return;
        }
        let mut known: HashMap<(u32, ValueKey), u32> = HashMap::new();
        let mut last = None;
        for (group, key) in self.of_rows.iter_mut().zip(keys) {
            let now = (*group, *key);
            // Rows are sorted by what has few values, so the next is mostly like the last.
            *group = match last {
                Some((same, number)) if same == now => number,
                _ => {
                    let next = known.len() as u32;
                    *known.entry(now).or_insert(next)
                }
            };
            last = Some((now, *group));
        }
        self.count = known.len() as u32;
    }

    /// Of each group the place of its first row and the number of its rows.
    fn first_rows(&self) -> Vec<(usize, u64)> {
        let mut groups = vec![(usize::MAX, 0); self.count as usize];
        for (place, group) in self.of_rows.iter().enumerate() {
            let (first, rows) = &mut groups[*group as usize];
            *first = place.min(*first);
            *rows += 1;
        }
        groups
    }
}

fn value_key(column: &Column, row: usize) -> Option<u64> {
    match column {
        Column::Absent => None,
        Column::Strings(strings) => match strings.codes[row] {
            NULL => None,
            // An empty text is no value.
            code if strings.values.get(code).is_empty() => None,
            code => Some(u64::from(code)),
        },
        Column::Ints(numbers) => numbers.get(row).map(|number| number as u64),
        Column::Floats(numbers) => numbers.get(row).map(f64::to_bits),
        Column::Bools(numbers) => numbers.get(row).map(u64::from),
    }
}

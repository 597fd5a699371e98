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

use logpond_record::{Shape, SlotKind, Value, cast};
use logpond_segment::file::ReadError;
use logpond_segment::rows::{
    Column, ColumnType, NULL, Overflow, StringColumn, column_value, number_value,
};

use super::block::has_value;
use super::codes::{Codes, Groups};
use super::group::{GroupScan, SelectedRows};
use crate::aggregate::{FieldStats, LabelSet, LabelValues};
use crate::label::{self, ComputedLabel};
use crate::logql::number_of;
use crate::pipeline::StageError;

/// A column that has labels of some rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct LabelColumn {
    /// Its place in the schema.
    pub(super) number: usize,
    /// Whether it has values of lines, too.
    is_mixed: bool,
}

impl LabelColumn {
    /// A column of which all values count.
    pub(super) fn whole(number: usize) -> LabelColumn {
        LabelColumn {
            number,
            is_mixed: false,
        }
    }
}

/// Where the values of a label are.
pub(super) struct Source {
    /// The label's name.
    pub(super) name: Box<str>,
    /// The columns, the first with a value counts.
    pub(super) columns: Vec<LabelColumn>,
    /// What the label is where no column has a value.
    pub(super) default: Option<Cow<'static, str>>,
    /// The labels that say what it is, the first with a text counts; itself, if there are none.
    pub(super) said_by: &'static [&'static str],
}

impl Source {
    /// Whether other labels say what it is.
    fn is_computed(&self) -> bool {
        !self.said_by.is_empty()
    }

    fn means(&self, field: &str) -> bool {
        let said = self.said_by.iter();
        label::means(&self.name, field) || said.into_iter().any(|name| label::means(name, field))
    }

    /// What a value of a column of this field says of the label.
    pub(super) fn text<'v>(&self, field: &str, value: &'v Value<'_>) -> Cow<'v, [u8]> {
        match ComputedLabel::named(&self.name) {
            Some(label) => label.said_by(field, value),
            None => value.to_text(),
        }
    }
}

/// Labels that rows are told apart by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GroupLabels {
    /// These, of which any field may be one.
    Named(Vec<Box<str>>),
    /// All that a line has before a stage: what was declared, these fields, the service and the level.
    All(Vec<Box<str>>),
}

/// The places where a label with an empty text is told from one that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EmptyTexts {
    /// Conditions or numbers of labels are asked for.
    Matter,
    /// Labels tell groups apart, so it is where a further column may have a text.
    BeforeOthers,
    /// It is not.
    AreNone,
}

/// Rows of a block by some of their labels.
#[derive(Debug, Default)]
pub(crate) struct LabelledRows {
    /// What labels there are; the same may stand more than once.
    pub(crate) sets: Vec<LabelSet>,
    /// The rows, in order.
    pub(crate) rows: Vec<u32>,
    /// For each row the place of its labels.
    pub(crate) of_rows: Vec<u32>,
    /// For each row the number of a label; empty if none was asked for.
    pub(crate) numbers: Vec<f64>,
    /// What the parser could not do with the rows' lines.
    pub(crate) error: Option<StageError>,
}

impl GroupScan<'_> {
    /// The selected rows of the block at hand by some labels, of which any field may be one, with the
    /// number of another one, and the rows whose labels only their records tell. Rows without the number
    /// are not there.
    ///
    /// # Errors
    /// When the block cannot be read.
    pub(crate) fn rows_by_labels(
        &mut self,
        selected: &SelectedRows,
        by: &GroupLabels,
        number: Option<&str>,
        empty_texts: EmptyTexts,
    ) -> Result<(LabelledRows, Vec<u32>), ReadError> {
        let sources = match by {
            GroupLabels::Named(names) => self.sources(Some(names))?,
            GroupLabels::All(named) => {
                let mut names = named.clone();
                names.push(label::DETECTED_LEVEL.into());
                let mut sources = self.sources(Some(&names))?;
                // The level is computed, whatever was declared.
                let is_other = |name: &str| !names.iter().any(|known| **known == *name);
                let declared = self.sources(None)?.into_iter();
                sources.extend(declared.filter(|source| is_other(&source.name)));
                if let Some(number) = number {
                    sources.retain(|source| *source.name != *number);
                }
                sources
            }
        };
        let has_declared = matches!(by, GroupLabels::All(_));
        let number = number.map(|name| self.sources(Some(&[name.into()])));
        let number = number.transpose()?;
        let all = || sources.iter().chain(number.iter().flatten());
        let (mut rows, mut odd) = match all().next() {
            None => (selected.rows.clone(), Vec::new()),
            Some(_) => {
                let all: Vec<&Source> = all().collect();
                self.split(&selected.rows, &all, has_declared)?
            }
        };
        let number = number.as_ref().and_then(|number| number.first());
        self.take_empty(&sources, empty_texts, (&mut rows, &mut odd))?;
        let labelled = self.label_rows(sources, number, rows, &mut odd)?;
        odd.sort_unstable();
        Ok((labelled, odd))
    }

    /// The values of a label in the block at hand, if those of the selected rows are all in one column of
    /// texts. If that has a dictionary, it is the same one for all blocks of the row group.
    ///
    /// # Errors
    /// When the block cannot be read.
    pub(crate) fn text_label(
        &mut self,
        selected: &SelectedRows,
        name: &str,
    ) -> Result<Option<&StringColumn>, ReadError> {
        let sources = self.sources(Some(&[name.into()]))?;
        let [source] = &sources[..] else {
            return Ok(None);
        };
        let [column] = &source.columns[..] else {
            return Ok(None);
        };
        let (is_computed, number) = (source.is_computed(), column.number);
        let field = &self.directory.schema.columns[number].name;
        if is_computed || self.mixes_numbers(field) {
            return Ok(None);
        }
        if self.reader.more_values() > 0 {
            let (_, odd) = self.split(&selected.rows, &[source], false)?;
            if !odd.is_empty() {
                return Ok(None);
            }
        }
        let (block, reader, _) = self.parts();
        match block.field(number, reader)? {
            Column::Strings(strings) => Ok(Some(strings)),
            _ => Ok(None),
        }
    }

    /// Makes rows odd in which a label has an empty text, where that is not the same as no label: a condition on numbers
    /// fails with the one and is false without the other, and a later column counts only without.
    pub(super) fn take_empty(
        &mut self,
        sources: &[Source],
        empty_texts: EmptyTexts,
        (rows, odd): (&mut Vec<u32>, &mut Vec<u32>),
    ) -> Result<(), ReadError> {
        let matters = |source: &&Source| match empty_texts {
            EmptyTexts::Matter => true,
            EmptyTexts::BeforeOthers => source.columns.len() > 1,
            EmptyTexts::AreNone => false,
        };
        for source in sources.iter().filter(matters) {
            for column in &source.columns {
                let (block, reader, _) = self.parts();
                let Column::Strings(strings) = block.field(column.number, reader)? else {
                    continue;
                };
                if !strings.values.iter().any(<[u8]>::is_empty) {
                    continue;
                }
                rows.retain(|row| {
                    let is_empty = strings.get(*row as usize).is_some_and(<[u8]>::is_empty);
                    odd.extend(is_empty.then_some(*row));
                    !is_empty
                });
            }
        }
        Ok(())
    }

    /// Rows of the block at hand by labels that are in columns. Those whose labels only their records tell
    /// become odd.
    pub(super) fn label_rows(
        &mut self,
        mut sources: Vec<Source>,
        number: Option<&Source>,
        mut rows: Vec<u32>,
        odd: &mut Vec<u32>,
    ) -> Result<LabelledRows, ReadError> {
        sources.sort_by(|a, b| a.name.cmp(&b.name));
        sources.dedup_by(|a, b| a.name == b.name);
        let schema = &self.directory.schema;
        let mut columns = sources.iter().flat_map(|source| &source.columns);
        if columns.any(|column| self.mixes_numbers(&schema.columns[column.number].name)) {
            // How such a number is written is known to its record alone.
            odd.append(&mut rows);
        }
        let numbers = match number {
            Some(source) => self.take_numbers(source, &mut rows, odd)?,
            None => Vec::new(),
        };
        let mut groups = Groups::one(rows.len());
        for source in &sources {
            groups.refine(&self.codes_of(source, &rows)?);
        }
        let firsts = groups.firsts.iter().map(|first| rows[*first]);
        let sets = self.sets_of(&sources, firsts)?;
        Ok(LabelledRows {
            sets,
            rows,
            of_rows: groups.of_rows,
            numbers,
            error: None,
        })
    }

    /// The numbers that a label is in rows of the block at hand. Rows without the label are taken away;
    /// those in which it is no number, or one that only their records tell, become odd.
    fn take_numbers(
        &mut self,
        source: &Source,
        rows: &mut Vec<u32>,
        odd: &mut Vec<u32>,
    ) -> Result<Vec<f64>, ReadError> {
        if source.columns.len() > 1 || source.is_computed() {
            odd.append(rows);
        }
        let Some(column) = source.columns.first() else {
            rows.clear();
            return Ok(Vec::new());
        };
        let kind = self.directory.schema.columns[column.number].kind;
        let (block, reader, _) = self.parts();
        let values = block.field(column.number, reader)?;
        if let Some(numbers) = whole_numbers(values, kind, rows) {
            return Ok(numbers);
        }
        let mut found = Vec::with_capacity(rows.len());
        read_numbers(values, kind, rows, &mut found);
        let mut numbers = Vec::with_capacity(rows.len());
        let mut found = found.into_iter();
        rows.retain(|row| match found.next() {
            Some(NumberCell::Number(number)) => {
                numbers.push(number);
                true
            }
            Some(NumberCell::Odd) => {
                odd.push(*row);
                false
            }
            Some(NumberCell::Nothing) | None => false,
        });
        Ok(numbers)
    }

    /// Counts the labels of the selected rows of the block at hand, by their names as LogQL has
    /// them.
    ///
    /// # Errors
    /// When the block cannot be read.
    pub fn add_to_labels(
        &mut self,
        selected: &SelectedRows,
        stats: &mut FieldStats,
    ) -> Result<(), ReadError> {
        stats.add_rows(selected.rows.len() as u64);
        let sources = self.sources(None)?;
        let (plain, odd) = self.split(&selected.rows, &sources.iter().collect::<Vec<_>>(), true)?;
        let (block, rows) = (selected.block, odd);
        self.each_record(&SelectedRows { block, rows }, |record| {
            stats.add_labels(record);
        })?;
        for source in &sources {
            let without = self.visit_source(source, &plain, |_, value, rows| {
                stats.add_value(&source.name, &Value::text(&value.to_text()), rows);
            })?;
            if let Some(default) = &source.default
                && !without.is_empty()
            {
                let value = Value::Str(Cow::Borrowed(default));
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
        selected: &SelectedRows,
        values: &mut LabelValues,
    ) -> Result<(), ReadError> {
        let by = [values.label().into()];
        let sources = self.sources(Some(&by))?;
        let (plain, odd) =
            self.split(&selected.rows, &sources.iter().collect::<Vec<_>>(), false)?;
        let (block, rows) = (selected.block, odd);
        self.each_record(&SelectedRows { block, rows }, |record| values.add(record))?;
        for source in &sources {
            let without = self.visit_source(source, &plain, |field, value, _| {
                values.add_text(&source.text(field, value))
            })?;
            if let Some(default) = &source.default
                && !without.is_empty()
            {
                values.add_text(default.as_bytes());
            }
        }
        Ok(())
    }

    /// Where labels are: of the declared ones, and of the service, if none are named.
    pub(super) fn sources(&mut self, by: Option<&[Box<str>]>) -> Result<Vec<Source>, ReadError> {
        let declared = match by {
            None => self.label_columns()?,
            Some(_) => Arc::default(),
        };
        let schema = &self.directory.schema;
        let meaning = |name: &str| self.columns_of_label(name);
        let computed = |label: ComputedLabel| Source {
            name: label.name().into(),
            columns: label.names().flat_map(meaning).collect(),
            default: Some(label.unknown())
                .filter(|text| !text.is_empty())
                .map(Cow::Borrowed),
            said_by: label.others(),
        };
        let Some(by) = by else {
            let mut named: BTreeMap<Box<str>, Vec<LabelColumn>> = BTreeMap::new();
            for column in declared.iter() {
                let name = label::of_field(&schema.columns[column.number].name);
                if name != label::SERVICE_NAME {
                    named.entry(name.into()).or_default().push(*column);
                }
            }
            let declared = named.into_iter().map(|(name, mut columns)| {
                columns
                    .sort_by_key(|column| label::place(&name, &schema.columns[column.number].name));
                Source {
                    name,
                    columns,
                    default: None,
                    said_by: &[],
                }
            });
            return Ok(declared.chain([computed(ComputedLabel::Service)]).collect());
        };
        let source = |name: &str| match ComputedLabel::named(name) {
            Some(label) => computed(label),
            None => Source {
                name: name.into(),
                columns: meaning(name),
                default: None,
                said_by: &[],
            },
        };
        Ok(by.iter().map(|name| source(name)).collect())
    }

    /// The columns that have values of a label in the row group, in the order in which they count. If each
    /// row has one that is apart from the line, no other column counts.
    pub(super) fn columns_of_label(&self, name: &str) -> Vec<LabelColumn> {
        let columns = self.directory.schema.columns.iter().enumerate();
        let meant = columns.filter_map(|(number, spec)| {
            let place = label::place(name, &spec.name)?;
            (self.reader.field_values(number) > 0).then_some((place, number))
        });
        let mut meant: Vec<_> = meant.collect();
        meant.sort_unstable();
        let rows = self.entry().rows() as u64;
        let is_full = |(place, number): &(label::Place<'_>, usize)| {
            place.is_apart() && self.reader.field_values(*number) == rows
        };
        if let Some(last) = meant.iter().position(is_full) {
            meant.truncate(last + 1);
        }
        let meant = meant.into_iter();
        meant
            .map(|(_, number)| LabelColumn::whole(number))
            .collect()
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
        let columns = columns.filter(|(_, spec)| label::is_declared(&spec.name));
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
                let shape = self.shape(&shapes.values, cast::low_u32(code));
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
    pub(super) fn split(
        &mut self,
        rows: &[u32],
        sources: &[&Source],
        has_declared: bool,
    ) -> Result<(Vec<u32>, Vec<u32>), ReadError> {
        let is_meant = |name: &str| sources.iter().any(|source| source.means(name));
        let may_be_meant = || {
            let mut fields = self.directory.counts.fields.keys();
            fields.any(|name| is_meant(name) && self.may_be_elsewhere(name))
        };
        if self.reader.more_values() == 0 || !(has_declared || may_be_meant()) {
            return Ok((rows.to_vec(), Vec::new()));
        }
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
                let names = names.into_iter().filter(|name| label::is_declared(name));
                declared.push((row, names.map(Box::<str>::from).collect::<Vec<_>>()));
            }
        }
        for (row, names) in declared {
            let is_slot = |shape: &Shape, name: &str| shape.field_slot(name).is_some();
            let is_declared = |shape: &Shape| !names.iter().all(|name| is_slot(shape, name));
            if self.test_shapes(&[row], is_declared)? == [true] {
                odd.push(row);
            }
        }
        if odd.is_empty() {
            return Ok((rows.to_vec(), odd));
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
        self.test_shapes(rows, |shape| shape.field_slot(name).is_none())
    }

    /// Hands over the distinct values of a label with their field and how many of some rows have each, and
    /// gives the rows without.
    fn visit_source(
        &mut self,
        source: &Source,
        rows: &[u32],
        mut visit: impl FnMut(&str, &Value<'_>, u64),
    ) -> Result<Vec<u32>, ReadError> {
        let directory = self.directory;
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
            let has_value = |row: &u32| has_value(values, *row as usize);
            let (with, empty): (Vec<u32>, Vec<u32>) = with.into_iter().partition(has_value);
            without.extend(empty);
            let field = &directory.schema.columns[column.number].name;
            self.count_field(column.number, &with, &mut without, |value, rows| {
                visit(field, value, rows);
            })?;
            without.sort_unstable();
            left = without;
        }
        Ok(left)
    }

    /// What tells the values of a label in some rows from each other.
    pub(super) fn codes_of(&mut self, source: &Source, rows: &[u32]) -> Result<Codes, ReadError> {
        let mut codes = Codes::none(rows.len());
        for column in &source.columns {
            let has_label = if column.is_mixed {
                Some(self.rows_with_label(*column, rows)?)
            } else {
                None
            };
            let (block, reader, _) = self.parts();
            let values = block.field(column.number, reader)?;
            codes.add(values, rows, has_label.as_deref());
            if codes.of_rows.iter().all(|code| *code != 0) {
                break;
            }
        }
        Ok(codes)
    }

    /// The labels of some rows, whose columns were read as far as they have the labels; sources are in the
    /// order of their names.
    fn sets_of(
        &mut self,
        sources: &[Source],
        rows: impl Iterator<Item = u32>,
    ) -> Result<Vec<LabelSet>, ReadError> {
        let mut columns = sources.iter().flat_map(|source| &source.columns);
        if columns.any(|column| column.is_mixed) {
            return rows.map(|row| self.labels_of(sources, row)).collect();
        }
        let schema = &self.directory.schema;
        let fields = &self.known_rows().fields;
        let mut bytes = Vec::new();
        let set = |row: u32| {
            bytes.clear();
            for source in sources {
                let mut columns = source.columns.iter();
                // The first text counts, also one that says nothing of a computed label.
                let is_said = columns.any(|column| {
                    let spec = &schema.columns[column.number];
                    let value = column_value(&fields[column.number], spec.kind, row as usize);
                    let Some(value) = value.filter(has_text) else {
                        return false;
                    };
                    let text = source.text(&spec.name, &value);
                    LabelSet::write(&source.name, &text, &mut bytes);
                    true
                });
                if let Some(default) = source.default.as_ref().filter(|_| !is_said) {
                    LabelSet::write(&source.name, default.as_bytes(), &mut bytes);
                }
            }
            LabelSet::written(&bytes)
        };
        Ok(rows.map(set).collect())
    }

    /// The labels of a row, whose columns were read.
    pub(super) fn labels_of(
        &mut self,
        sources: &[Source],
        row: u32,
    ) -> Result<LabelSet, ReadError> {
        let mut labels = Vec::new();
        for source in sources {
            let mut found = None;
            for column in &source.columns {
                if self.rows_with_label(*column, &[row])? != [true] {
                    continue;
                }
                let spec = &self.directory.schema.columns[column.number];
                let (block, reader, _) = self.parts();
                let values = block.field(column.number, reader)?;
                found = column_value(values, spec.kind, row as usize)
                    .filter(has_text)
                    .map(|value| source.text(&spec.name, &value).into_owned());
                if found.is_some() {
                    break;
                }
            }
            let value =
                found.or_else(|| source.default.as_ref().map(|text| text.as_bytes().to_vec()));
            labels.extend(value.map(|value| ((&*source.name).into(), value.into())));
        }
        Ok(LabelSet::new(labels))
    }
}

/// True if a value has a text: an empty one is no label.
fn has_text(value: &Value<'_>) -> bool {
    !value.to_text().is_empty()
}

/// The number of a row, if it has one.
#[derive(Clone, Copy)]
enum NumberCell {
    Nothing,
    Number(f64),
    /// Something that is none.
    Odd,
}

/// The whole numbers of a column in which all rows have one.
fn whole_numbers(values: &Column, kind: ColumnType, rows: &[u32]) -> Option<Vec<f64>> {
    match (values, kind) {
        (Column::Ints(numbers), ColumnType::Int) if numbers.valid.is_empty() => {
            let number = |row: &u32| cast::float(numbers.values[*row as usize]);
            Some(rows.iter().map(number).collect())
        }
        _ => None,
    }
}

/// Reads rows of a column as numbers.
fn read_numbers(values: &Column, kind: ColumnType, rows: &[u32], out: &mut Vec<NumberCell>) {
    let read = |number: Option<f64>| number.map_or(NumberCell::Nothing, NumberCell::Number);
    let rows = rows.iter().map(|row| *row as usize);
    match values {
        Column::Absent => out.extend(rows.map(|_| NumberCell::Nothing)),
        Column::Ints(numbers) => out.extend(rows.map(|row| {
            read(numbers.get(row).map(|int| match number_value(kind, int) {
                Value::Float(number) => number,
                _ => cast::float(int),
            }))
        })),
        Column::Floats(numbers) => out.extend(rows.map(|row| read(numbers.get(row)))),
        Column::Strings(strings) => {
            let mut known: HashMap<u32, NumberCell> = HashMap::new();
            let parse = |code: u32| {
                let text = std::str::from_utf8(strings.values.get(code)).ok();
                text.and_then(number_of)
                    .map_or(NumberCell::Odd, NumberCell::Number)
            };
            out.extend(rows.map(|row| match strings.codes[row] {
                NULL => NumberCell::Nothing,
                code => *known.entry(code).or_insert_with(|| parse(code)),
            }));
        }
        Column::Bools(numbers) => {
            out.extend(rows.map(|row| {
                numbers
                    .get(row)
                    .map_or(NumberCell::Nothing, |_| NumberCell::Odd)
            }));
        }
    }
}

//! Counting messages by their patterns: by the templates that segments store, so that messages are read only
//! where a sample may be among them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use logpond_record::{Severity, Timestamp};
use logpond_segment::file::{ReadError, RowGroupReader};
use logpond_segment::patterns::{LineColumns, LineTemplates, ODD, message_is_part, write_pattern};
use logpond_segment::rows::{Column, NULL, VARIABLE};

use super::block::Block;
use super::group::{GroupScan, SelectedRows};
use super::labels::{EmptyTexts, GroupLabels};
use crate::aggregate::{LabelSet, Patterns};
use crate::label;

/// The patterns of a row group by the codes of its templates.
pub(super) type KnownPatterns = HashMap<u32, Arc<[u8]>>;

/// Rows without a message by the templates of their lines.
#[derive(Default)]
pub(super) struct LineRows {
    /// Rows in order, each with its step of [`LineTemplates`].
    pub(super) found: Vec<(u32, u32)>,
    /// Rows, in order, of which only their lines tell.
    pub(super) odd: Vec<u32>,
}

/// The columns of a block, which are read when they are asked for.
struct BlockColumns<'b, 'a> {
    block: &'b mut Block<'a>,
    reader: &'b mut RowGroupReader<'a>,
}

impl LineColumns for BlockColumns<'_, '_> {
    type Error = ReadError;

    fn times(&mut self) -> Result<&[i64], ReadError> {
        self.block.times(self.reader)
    }

    fn field(&mut self, column: usize) -> Result<(&Column, bool), ReadError> {
        let is_shared = self.reader.text_dictionary(column)?.is_some();
        Ok((self.block.field(column, self.reader)?, is_shared))
    }
}

/// Rows of one template, or one step of [`LineTemplates`], and level.
struct TemplateRows {
    template: u32,
    level: u32,
    is_part: bool,
    /// Records by the start of their bucket, one after another.
    buckets: Vec<(i64, u64)>,
    newest: i64,
    rows: Vec<u32>,
}

/// Rows of a block with a template, by template and level. Neighbours are mostly alike.
#[derive(Default)]
struct ByTemplate {
    group_rows: Vec<TemplateRows>,
    places: HashMap<(u32, u32, bool), usize>,
    last: Option<((u32, u32, bool), usize)>,
}

impl ByTemplate {
    fn add(&mut self, key: (u32, u32, bool), row: u32, (time, bucket): (i64, i64)) {
        let place = match self.last {
            Some((last, place)) if last == key => place,
            _ => *self.places.entry(key).or_insert_with(|| {
                let (template, level, is_part) = key;
                self.group_rows.push(TemplateRows {
                    template,
                    level,
                    is_part,
                    buckets: Vec::new(),
                    newest: i64::MIN,
                    rows: Vec::new(),
                });
                self.group_rows.len() - 1
            }),
        };
        self.last = Some((key, place));
        let group_rows = &mut self.group_rows[place];
        group_rows.newest = group_rows.newest.max(time);
        group_rows.rows.push(row);
        match group_rows.buckets.last_mut() {
            Some((last, count)) if *last == bucket => *count += 1,
            _ => group_rows.buckets.push((bucket, 1)),
        }
    }
}

impl GroupScan<'_> {
    /// Counts the messages of the selected rows of the block at hand by their patterns.
    ///
    /// # Errors
    /// When the block cannot be read.
    pub fn add_to_patterns(
        &mut self,
        selected: &SelectedRows,
        patterns: &mut Patterns,
    ) -> Result<(), ReadError> {
        let by = GroupLabels::Named(vec![label::DETECTED_LEVEL.into()]);
        let (labelled, mut without) =
            self.rows_by_labels(selected, &by, None, EmptyTexts::AreNone)?;
        let level = |set: &LabelSet| {
            let word = set.iter().next();
            let severity = word.and_then(|(_, word)| Severity::of_word(word.as_bytes()));
            severity.map_or(label::UNKNOWN_LEVEL, label::level_of)
        };
        let levels: Vec<&str> = labelled.sets.iter().map(level).collect();
        let times = self.times()?.to_vec();
        let are_parts = self.test_shapes(&labelled.rows, message_is_part)?;
        let (block, reader, _) = self.parts();
        let templates = block.templates(reader)?.clone();
        block.exceptions(reader)?;
        let whole = &block.known_rows().whole;
        let mut by_template = ByTemplate::default();
        let mut by_message = Vec::new();
        let rows = labelled.rows.iter().zip(&labelled.of_rows).zip(are_parts);
        for ((&row, &level), is_part) in rows {
            let at = row as usize;
            let is_part = is_part || whole.get(at).is_some();
            match templates.codes[at] {
                NULL => by_message.push((row, level, is_part)),
                template => {
                    let bucket = patterns.bucket_of(Timestamp(times[at]));
                    by_template.add((template, level, is_part), row, (times[at], bucket));
                }
            }
        }
        self.add_kin(by_template.group_rows, (&levels, &times), patterns)?;
        let by_line = self.add_messages_to_patterns(by_message, (&levels, &times), patterns)?;
        self.add_lines_to_patterns(by_line, (&levels, &times), patterns, &mut without)?;
        without.sort_unstable();
        let (block, rows) = (selected.block, without);
        self.each_record(&SelectedRows { block, rows }, |record| patterns.add(record))
    }

    fn add_kin(
        &mut self,
        group_rows: Vec<TemplateRows>,
        (levels, times): (&[&str], &[i64]),
        patterns: &mut Patterns,
    ) -> Result<(), ReadError> {
        for group_rows in group_rows {
            let pattern = self.pattern_of(group_rows.template)?;
            let key = (levels[group_rows.level as usize], &*pattern);
            let newest = Timestamp(group_rows.newest);
            if !patterns.add_counts(key, &group_rows.buckets, newest, group_rows.is_part) {
                continue;
            }
            let texts = self.reader.template_texts()?.unwrap_or_default();
            let text = texts.get(group_rows.template);
            if memchr::memmem::find(text, VARIABLE).is_none() {
                // All messages are alike.
                patterns.add_sample(key, newest, text);
                continue;
            }
            let (block, reader, _) = self.parts();
            let [messages, _] = block.messages(reader)?;
            for row in group_rows.rows {
                let at = row as usize;
                if let Some(message) = messages.get(at) {
                    patterns.add_sample(key, Timestamp(times[at]), message);
                }
            }
        }
        Ok(())
    }

    /// Counts messages; gives the rows that have none, with their levels.
    fn add_messages_to_patterns(
        &mut self,
        rows: Vec<(u32, u32, bool)>,
        (levels, times): (&[&str], &[i64]),
        patterns: &mut Patterns,
    ) -> Result<Vec<(u32, u32)>, ReadError> {
        let mut without = Vec::new();
        if rows.is_empty() {
            return Ok(without);
        }
        let (block, reader, _) = self.parts();
        let [texts, others] = block.messages(reader)?;
        for (row, level, is_part) in rows {
            let at = row as usize;
            match texts.get(at).or_else(|| others.get(at)) {
                Some(message) => {
                    let level = levels[level as usize];
                    patterns.add_message(level, Timestamp(times[at]), message, is_part);
                }
                None => without.push((row, level)),
            }
        }
        Ok(without)
    }

    /// Counts lines without a message; adds the rows of which only their records tell.
    fn add_lines_to_patterns(
        &mut self,
        rows: Vec<(u32, u32)>,
        (levels, times): (&[&str], &[i64]),
        patterns: &mut Patterns,
        odd: &mut Vec<u32>,
    ) -> Result<(), ReadError> {
        let (numbers, of_rows): (Vec<u32>, Vec<u32>) = rows.into_iter().unzip();
        let LineRows { found, odd: rest } = self.rows_by_line_template(&numbers)?;
        odd.extend(rest);
        let mut by_template = ByTemplate::default();
        let mut known = numbers.iter().zip(&of_rows);
        for (row, step) in found {
            let level = known.find(|(number, _)| **number == row);
            let level = level.map_or(0, |(_, level)| *level);
            let time = times[row as usize];
            let bucket = patterns.bucket_of(Timestamp(time));
            by_template.add((step, level, false), row, (time, bucket));
        }
        for group_rows in by_template.group_rows {
            let pattern = self.line_templates.pattern_of(group_rows.template);
            let key = (levels[group_rows.level as usize], &*pattern);
            let newest = Timestamp(group_rows.newest);
            if !patterns.add_counts(key, &group_rows.buckets, newest, false) {
                continue;
            }
            self.with_lines(&group_rows.rows, |view| {
                let mut line = Vec::new();
                for row in &group_rows.rows {
                    line.clear();
                    view.write_line(*row as usize, &mut line);
                    patterns.add_sample(key, Timestamp(times[*row as usize]), &line);
                }
            })?;
        }
        Ok(())
    }

    /// Tells rows of the block at hand that have no message apart by the templates of their lines.
    ///
    /// # Errors
    /// When the block cannot be read.
    pub(super) fn rows_by_line_template(&mut self, rows: &[u32]) -> Result<LineRows, ReadError> {
        // Steps that were given before stay what they are, also if this block cannot be read.
        let mut templates = std::mem::take(&mut self.line_templates);
        let told_apart = self.tell_apart(rows, &mut templates);
        self.line_templates = templates;
        told_apart
    }

    fn tell_apart(
        &mut self,
        rows: &[u32],
        templates: &mut LineTemplates,
    ) -> Result<LineRows, ReadError> {
        let LineRows { mut found, mut odd } = LineRows::default();
        if rows.is_empty() {
            return Ok(LineRows { found, odd });
        }
        let (block, reader, _) = self.parts();
        let shapes = block.shapes(reader)?.clone();
        block.exceptions(reader)?;
        let known = block.known_rows();
        let mut by_shape: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &row in rows {
            let at = row as usize;
            match known.whole.get(at).or_else(|| known.fix.get(at)) {
                Some(_) => odd.push(row),
                None => by_shape.entry(shapes.codes[at]).or_default().push(row),
            }
        }
        let schema = &self.directory.schema;
        for (code, rows) in by_shape {
            let shape = self.shape(&shapes.values, code);
            let shape = (&shape, shapes.values.get(code));
            let (block, reader, _) = self.parts();
            let columns = &mut BlockColumns { block, reader };
            let steps = templates.steps_of(shape, schema, &rows, columns)?;
            for (row, step) in rows.into_iter().zip(steps) {
                if step == ODD {
                    odd.push(row);
                } else {
                    found.push((row, step));
                }
            }
        }
        found.sort_unstable();
        odd.sort_unstable();
        Ok(LineRows { found, odd })
    }

    /// The pattern of a template of the row group, made once.
    fn pattern_of(&mut self, template: u32) -> Result<Arc<[u8]>, ReadError> {
        if let Some(known) = self.known_patterns.get(&template) {
            return Ok(Arc::clone(known));
        }
        let texts = self.reader.template_texts()?.unwrap_or_default();
        let mut pattern = Vec::new();
        write_pattern(texts.get(template), &mut pattern);
        let pattern: Arc<[u8]> = pattern.into();
        self.known_patterns.insert(template, Arc::clone(&pattern));
        Ok(pattern)
    }
}

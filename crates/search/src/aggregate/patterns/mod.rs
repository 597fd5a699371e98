//! Which kinds of messages there are: templates with their counts over time and samples.
//!
//! Every message is counted by its template ([`write_message_pattern`]); at the end templates that differ in few
//! words become one. As long as templates have room the answer does not depend on the order of records or
//! of merging. Beyond that, those counted so far become fewer first; no record is left out.

use std::collections::BTreeMap;

use logpond_record::{Message, Record, TimeRange, Timestamp, cast};
pub use logpond_segment::patterns::Sample;
use logpond_segment::patterns::{
    PatternTable, SAMPLE_BYTES_MAX, Samples, Template, TemplateCounts, WILDCARD, cluster,
    message_is_part, write_message_pattern, write_request,
};
use logpond_segment::timeline::Kind;
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use super::FixedMap;
use super::histogram::{Histogram, HistogramError};
use crate::label::{self, ComputedLabel};

/// The most templates that are kept apart.
const TEMPLATES_MAX: usize = 1 << 14;

/// The most memory that templates take, with their counts over time and samples.
const BYTES_MAX: usize = 64 << 20;

/// What one template costs beside its text, samples and counts over time.
const TEMPLATE_OVERHEAD_BYTES: usize = 160;

/// What one count of a bucket costs.
const BUCKET_BYTES: usize = 24;

/// The most bytes of a level.
const LEVEL_BYTES_MAX: usize = 32;

/// Counts messages by template.
#[derive(Clone, Debug)]
pub struct Patterns {
    range: TimeRange,
    step_ns: i64,
    /// By the length of the level, the level and the template.
    found: FixedMap<Box<[u8]>, TemplateStats>,
    bytes: usize,
    is_coarse: bool,
    key: Vec<u8>,
}

/// The counts and samples of one template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct TemplateStats {
    count: u64,
    /// Whether a message is a part of its line.
    is_part: bool,
    /// Counts by the start of the bucket.
    buckets: BTreeMap<i64, u64>,
    samples: Samples,
}

/// One pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The words that its messages share, `<_>` for those that differ.
    pub text: Box<[u8]>,
    /// The level of its records, see [`ComputedLabel::Level`]; empty if it is not known.
    pub level: Box<[u8]>,
    /// Records.
    pub count: u64,
    /// Whether messages are parts of their lines, as those of objects are.
    pub is_part: bool,
    /// Records by the start of their bucket, in order, those without any left out.
    pub buckets: Vec<(Timestamp, u64)>,
    /// The newest of its messages that are not the same, newest first.
    pub samples: Vec<Sample>,
}

/// The finished answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternsAnswer {
    /// The most frequent patterns, most frequent first, equal ones by their text and level.
    pub patterns: Vec<Pattern>,
    /// Patterns that there are, shown or not.
    pub distinct: u64,
    /// Whether there were so many templates that some were put together sooner than they would be.
    pub is_coarse: bool,
}

impl Patterns {
    /// About the memory that it takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts over a range with buckets as those of a [`Histogram`].
    ///
    /// # Errors
    /// As there.
    pub fn new(range: TimeRange, step_ns: i64) -> Result<Patterns, HistogramError> {
        Histogram::new(range, step_ns, 0)?;
        Ok(Patterns {
            range,
            step_ns,
            found: FixedMap::default(),
            bytes: 0,
            is_coarse: false,
            key: Vec::new(),
        })
    }

    /// The range that is counted.
    pub fn range(&self) -> TimeRange {
        self.range
    }

    /// The width of a bucket.
    pub fn step_ns(&self) -> i64 {
        self.step_ns
    }

    /// Counts a record: its message, or its line without what tells of a client if it has none.
    pub fn add(&mut self, record: &Record<'_>) {
        let (mut text, mut request) = (Vec::new(), Vec::new());
        let kind = match &record.message {
            Message::Absent | Message::Line => {
                record.write_line(&mut text);
                write_request(record, &mut request);
                &request
            }
            Message::Part(_) => {
                record.write_message(&mut text);
                &text
            }
        };
        let is_part = matches!(record.message, Message::Part(_))
            && (record.whole.is_some() || message_is_part(&record.shape));
        let level = ComputedLabel::Level.of(record);
        let level = String::from_utf8_lossy(&level);
        self.add_text(&level, record.time, (kind, &text), is_part);
    }

    /// Counts a message; `level` is a name of [`label::level_of`] or [`label::UNKNOWN_LEVEL`]. `is_part` says whether
    /// there is more in its line.
    pub fn add_message(&mut self, level: &str, time: Timestamp, message: &[u8], is_part: bool) {
        self.add_text(level, time, (message, message), is_part);
    }

    /// Counts a text by the template of another one.
    fn add_text(
        &mut self,
        level: &str,
        time: Timestamp,
        (kind, message): (&[u8], &[u8]),
        is_part: bool,
    ) {
        let mut key = std::mem::take(&mut self.key);
        write_key(level_text(level), &mut key);
        write_message_pattern(kind, &mut key);
        let bucket = self.bucket_of(time);
        self.change(&key, |found| {
            found.count += 1;
            found.is_part |= is_part;
            *found.buckets.entry(bucket).or_default() += 1;
            found.samples.add(time, message);
        });
        self.key = key;
    }

    /// Counts messages of one pattern by the starts of their buckets, see [`Patterns::bucket_of`]; gives whether
    /// one as new as `newest` may be a sample. It is for [`Patterns::add_sample`] then.
    pub(crate) fn add_counts(
        &mut self,
        (level, pattern): (&str, &[u8]),
        buckets: &[(i64, u64)],
        newest: Timestamp,
        is_part: bool,
    ) -> bool {
        let mut key = std::mem::take(&mut self.key);
        write_key(level_text(level), &mut key);
        key.extend_from_slice(pattern);
        let mut is_sample = false;
        self.change(&key, |found| {
            found.is_part |= is_part;
            found.add_buckets(buckets.iter().copied());
            is_sample = found.samples.may_have(newest);
        });
        self.key = key;
        is_sample
    }

    /// Keeps a message of a pattern that was counted, if it is one of the newest.
    pub(crate) fn add_sample(
        &mut self,
        (level, pattern): (&str, &[u8]),
        time: Timestamp,
        message: &[u8],
    ) {
        let mut key = std::mem::take(&mut self.key);
        write_key(level_text(level), &mut key);
        key.extend_from_slice(pattern);
        if self.found.contains_key(&*key) {
            self.change(&key, |found| found.samples.add(time, message));
        }
        self.key = key;
    }

    /// True if pattern tables of segments may tell it.
    pub fn may_be_of_tables(&self) -> bool {
        self.step_ns % PatternTable::STEP_NS_MIN == 0
    }

    /// Counts all records of a segment; `false` if its table does not tell enough.
    pub fn add_table(&mut self, table: &PatternTable) -> bool {
        let Some(entries) = table.entries() else {
            return false;
        };
        if self.step_ns % table.step_ns() != 0 {
            return false;
        }
        self.is_coarse |= table.is_coarse();
        let level = |kind: &Kind| {
            let text = ComputedLabel::Level.of_kind(kind);
            String::from_utf8_lossy(&text).into_owned()
        };
        let levels: Vec<String> = table.kinds().iter().map(level).collect();
        let mut key = std::mem::take(&mut self.key);
        for entry in entries {
            write_key(level_text(&levels[entry.kind as usize]), &mut key);
            key.extend_from_slice(&entry.pattern);
            let counts = table.counts(entry);
            let counts = counts.map(|(start, rows)| (self.bucket_of(Timestamp(start)), rows));
            let counts: Vec<(i64, u64)> = counts.collect();
            self.change(&key, |found| {
                found.is_part |= entry.is_part;
                found.add_buckets(counts);
                found.samples.merge(&entry.samples);
            });
        }
        self.key = key;
        true
    }

    /// The start of the bucket of a time, in nanoseconds.
    pub(crate) fn bucket_of(&self, time: Timestamp) -> i64 {
        time.0.div_euclid(self.step_ns).saturating_mul(self.step_ns)
    }

    fn change(&mut self, key: &[u8], change: impl FnOnce(&mut TemplateStats)) {
        if !self.found.contains_key(key) {
            self.make_room(key.len());
        }
        let found = match self.found.get_mut(key) {
            Some(found) => found,
            None => self.found.entry(key.into()).or_default(),
        };
        let before = found.bytes();
        change(found);
        // A shorter message may take the place of a longer one.
        self.bytes = (self.bytes + found.bytes()).saturating_sub(before);
    }

    /// Puts templates together if there is no room for another one.
    fn make_room(&mut self, key_bytes: usize) {
        if self.found.len() >= TEMPLATES_MAX || self.bytes > BYTES_MAX {
            self.is_coarse = true;
            self.shrink();
        }
        self.bytes += key_bytes + TEMPLATE_OVERHEAD_BYTES;
    }

    fn shrink(&mut self) {
        let mut templates = cluster(templates(std::mem::take(&mut self.found)));
        templates.sort_unstable_by(Template::by_count);
        self.bytes = 0;
        for (at, template) in templates.into_iter().enumerate() {
            let is_rare = at >= TEMPLATES_MAX / 2 || self.bytes > BYTES_MAX / 2;
            let text = if is_rare { WILDCARD } else { &*template.text };
            let mut key = Vec::new();
            write_key(&template.level, &mut key);
            key.extend_from_slice(text);
            self.add_found(key.into(), template.found);
        }
    }

    fn add_found(&mut self, key: Box<[u8]>, more: TemplateStats) {
        let key_bytes = key.len() + TEMPLATE_OVERHEAD_BYTES;
        let before = self.found.len();
        let found = self.found.entry(key).or_default();
        let bytes = found.bytes();
        found.merge(more);
        self.bytes = (self.bytes + found.bytes()).saturating_sub(bytes);
        if self.found.len() > before {
            self.bytes += key_bytes;
        }
    }

    /// Adds what another counted of the same range and step.
    pub fn merge(&mut self, other: Patterns) {
        self.is_coarse |= other.is_coarse;
        let mut all: Vec<_> = other.found.into_iter().collect();
        all.sort_unstable_by(|a, b| b.1.count.cmp(&a.1.count).then_with(|| a.0.cmp(&b.0)));
        for (key, found) in all {
            self.merge_found(key, found);
        }
    }

    fn merge_found(&mut self, key: Box<[u8]>, found: TemplateStats) {
        if !self.found.contains_key(&key) && self.found.len() >= TEMPLATES_MAX {
            self.is_coarse = true;
            self.shrink();
        }
        self.add_found(key, found);
    }

    /// Appends what was counted to a message between nodes.
    pub fn encode(&self, out: &mut Encoder) {
        out.flag(self.is_coarse);
        out.count(self.found.len());
        let mut all: Vec<_> = self.found.iter().collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        for (key, found) in all {
            out.bytes(key);
            out.number(found.count);
            out.flag(found.is_part);
            out.count(found.buckets.len());
            for (start, count) in &found.buckets {
                out.time(Timestamp(*start));
                out.number(*count);
            }
            out.count(found.samples.list().len());
            for sample in found.samples.list() {
                out.time(sample.time);
                out.bytes(&sample.text);
            }
        }
    }

    /// Adds what another node counted of the same range and step, as [`Patterns::encode`] wrote it.
    ///
    /// # Errors
    /// When the bytes are something else; a part may have been added then.
    pub fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        self.is_coarse |= from.flag("whether patterns are coarse")?;
        for _ in 0..from.count(4, "the templates")? {
            let key = from.bytes(usize::MAX, "a template")?;
            let level_bytes = key.first().copied().map_or(usize::MAX, usize::from);
            if level_bytes >= key.len() {
                return Err(DecodeError::Malformed("a template"));
            }
            let mut found = TemplateStats {
                count: from.number("the records of a template")?,
                is_part: from.flag("whether messages are parts of lines")?,
                ..TemplateStats::default()
            };
            for _ in 0..from.count(2, "the buckets")? {
                let start = from.time("a bucket")?.0;
                found.buckets.insert(start, from.number("a count")?);
            }
            for _ in 0..from.count(2, "the samples")? {
                let time = from.time("a sample")?;
                found
                    .samples
                    .add(time, from.bytes(SAMPLE_BYTES_MAX, "a sample")?);
            }
            self.merge_found(key.into(), found);
        }
        Ok(())
    }

    /// The `n` most frequent patterns; all for 0.
    pub fn finish(self, n: usize) -> PatternsAnswer {
        let mut clustered = cluster(templates(self.found));
        clustered.sort_unstable_by(Template::by_count);
        let distinct = clustered.len() as u64;
        if n > 0 {
            clustered.truncate(n);
        }
        let patterns = clustered.into_iter().map(|template| {
            let Template { level, text, found } = template;
            Pattern {
                text,
                level,
                count: found.count,
                is_part: found.is_part,
                buckets: found
                    .buckets
                    .into_iter()
                    .map(|(start, count)| (Timestamp(start), count))
                    .collect(),
                samples: found.samples.into_list(),
            }
        });
        PatternsAnswer {
            patterns: patterns.collect(),
            distinct,
            is_coarse: self.is_coarse,
        }
    }
}

fn level_text(level: &str) -> &[u8] {
    match level {
        label::UNKNOWN_LEVEL => b"",
        level => level.as_bytes(),
    }
}

/// The key of a level, to be followed by the template.
fn write_key(level: &[u8], key: &mut Vec<u8>) {
    let level = &level[..level.len().min(LEVEL_BYTES_MAX)];
    key.clear();
    key.push(cast::low_u8(level.len()));
    key.extend_from_slice(level);
}

fn templates(found: FixedMap<Box<[u8]>, TemplateStats>) -> Vec<Template<TemplateStats>> {
    let template = |(key, found): (Box<[u8]>, TemplateStats)| {
        let (level, text) = key[1..].split_at(usize::from(key[0]));
        Template {
            level: level.into(),
            text: text.into(),
            found,
        }
    };
    found.into_iter().map(template).collect()
}

impl TemplateStats {
    fn bytes(&self) -> usize {
        self.buckets.len() * BUCKET_BYTES + self.samples.bytes()
    }

    /// Counts records by the starts of their buckets.
    fn add_buckets(&mut self, buckets: impl IntoIterator<Item = (i64, u64)>) {
        for (start, count) in buckets {
            self.count += count;
            *self.buckets.entry(start).or_default() += count;
        }
    }
}

impl TemplateCounts for TemplateStats {
    fn count(&self) -> u64 {
        self.count
    }

    fn merge(&mut self, other: TemplateStats) {
        self.is_part |= other.is_part;
        self.add_buckets(other.buckets);
        self.samples.merge(&other.samples);
    }
}

#[cfg(test)]
mod tests;

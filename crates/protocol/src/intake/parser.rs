//! Entries of the journal as records.
//!
//! Invariants: [`Parser::parse`] never fails, and the record's `write_line` gives the entry's bytes
//! back. What a parser remembers makes it faster and never changes a record. A panic on the way, which
//! is a defect of this program, costs the entry its fields and nothing else: an entry that is in the
//! journal would otherwise end whoever reads it, at each start again.
//!
//! A line is tried in the access-log formats that its batch declares, then as JSON, syslog, access
//! log and logfmt, each only if it begins like one; what is none of them is text, whose time is a timestamp that it begins with. Text that is not UTF-8 is
//! kept as bytes. The message of a JSON object is read as a line is, too, see [`nested`].

mod colours;
mod formats;
mod held;
mod joints;
mod labels;
mod nested;
mod stamps;
mod stated;

use std::borrow::Cow;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use logpond_record::limits::{SHAPE_BYTES_MAX, UNLISTED_FIELD};
use logpond_record::{
    Assumption, Entry, EntryKind, Fix, Message, RULE_FIELD, Record, Shape, SlotKind, TimeSource,
    Timestamp, Value, cast, is_severity_field, split_label_name,
};

use super::access_format::Times;
use super::declared::{LastNames, is_default, is_line_time_first};
use super::journal_entry::is_alias;
use super::json::{self, Outlines};
use super::outline::{DocumentLevel, Outcome, Outline, SaidLevel, Summary};
use super::shapes::Shapes;
use super::sketch::{Parts, Sketch};
use super::timestamps::TimeReader;
use super::timezone::Zones;
use super::{
    BYTE_ORDER_MARK, Beside, access, audit, content, csvlog, headers, levels, logfmt, ltsv,
    programs, slowlog, syslog,
};
use formats::Formats;
pub(crate) use held::holder_of;
use joints::Joints;
use labels::{labels_as_sent, labels_of_batch, own_labels, set_apart};

/// The field that says which process sent an entry.
const SENDER_FIELD: &str = "_PID";

/// The field of a level that no field of the line says.
const LEVEL_FIELD: &str = "level";

/// The field of a level that a field of the line would say otherwise; it comes before all others.
const DETECTED_LEVEL_FIELD: &str = "detected_level";

/// Fields that a line has beside those that it is made of.
type Derived<'a> = Vec<(Cow<'a, str>, Value<'a>)>;

/// Makes records of entries. It keeps what lines have in common, so one parser should see many
/// lines of the same senders.
pub struct Parser {
    times: TimeReader,
    shapes: Shapes,
    outline: Outline,
    learned: Outlines,
    names: LastNames,
    formats: Formats,
    zones: Zones,
    met: ParserStats,
    joints: Joints,
    /// How many messages deep the text is that is read.
    depth: usize,
    /// How many lists deep the object is that is read.
    lists: usize,
    scratch: Vec<u8>,
}

/// What a parser has met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParserStats {
    /// Lines that were text though their batch declared formats of access logs.
    pub unfit: u64,
    /// Entries that are without fields since reading them panicked.
    pub panicked: u64,
}

impl Default for Parser {
    fn default() -> Parser {
        Parser::new()
    }
}

/// What became of a line: its shape, its parts, and whether it is kept whole.
struct ParsedLine<'a> {
    shape: Arc<Shape>,
    parts: Parts<'a>,
    whole: bool,
    derived: Derived<'a>,
    /// The level that stands in its text, or that its product writes in its own way.
    level: Option<&'static str>,
    /// True if a field of it would be read as another level.
    beats_level: bool,
    /// True if a field of it says the level.
    has_level: bool,
    /// A time that counts more than that of the shape.
    time: Option<(Timestamp, Assumption)>,
}

impl<'a> ParsedLine<'a> {
    fn new(shape: Arc<Shape>, parts: Parts<'a>) -> ParsedLine<'a> {
        ParsedLine {
            shape,
            parts,
            whole: false,
            derived: Vec::new(),
            level: None,
            beats_level: false,
            has_level: false,
            time: None,
        }
    }

    /// Notes the level that a document says.
    fn say_level(&mut self, summary: Summary, level: Option<DocumentLevel>) {
        self.has_level = summary.level != SaidLevel::Nothing;
        self.beats_level = level.is_some_and(|level| level.beats);
        self.level = level.map(|level| level.severity.name());
    }

    /// Says how many fields of the line the shape does not list.
    fn lacking(mut self, unlisted: usize) -> ParsedLine<'a> {
        if unlisted > 0 {
            let count = Value::Int(cast::low_i64(unlisted));
            self.derived.push((Cow::Borrowed(UNLISTED_FIELD), count));
        }
        self
    }
}

impl ParsedLine<'_> {
    /// The same without borrowed parts.
    fn into_owned(self) -> ParsedLine<'static> {
        let derived = self.derived.into_iter();
        let owned = |(name, value): (Cow<'_, str>, Value<'_>)| {
            (Cow::Owned(name.into_owned()), value.into_owned())
        };
        ParsedLine {
            parts: self.parts.into_owned(),
            derived: derived.map(owned).collect(),
            shape: self.shape,
            whole: self.whole,
            level: self.level,
            beats_level: self.beats_level,
            has_level: self.has_level,
            time: self.time,
        }
    }
}

impl Parser {
    /// A parser that has seen nothing. It grows to a few MB at most.
    pub fn new() -> Parser {
        Parser {
            times: TimeReader::new(),
            shapes: Shapes::new(),
            outline: Outline::new(),
            learned: Outlines::new(),
            names: LastNames::default(),
            formats: Formats::default(),
            zones: Zones::default(),
            met: ParserStats::default(),
            joints: Joints::default(),
            depth: 0,
            lists: 0,
            scratch: Vec::with_capacity(SHAPE_BYTES_MAX),
        }
    }

    /// What it has met since this was last asked.
    pub fn take_met(&mut self) -> ParserStats {
        std::mem::take(&mut self.met)
    }

    /// The record that an entry is.
    pub fn parse<'a>(&mut self, entry: &Entry<'a>) -> Record<'a> {
        self.guarded(entry, Parser::parse_stored)
    }

    /// The same with labels under their own names, also if fields of the line have them: what is sealed
    /// again must be what was sent.
    pub(crate) fn parse_as_sent<'a>(&mut self, entry: &Entry<'a>) -> Record<'a> {
        self.guarded(entry, Parser::parse_sent)
    }

    /// Reads an entry, or keeps it as text without fields if that panics.
    fn guarded<'a>(
        &mut self,
        entry: &Entry<'a>,
        parse: impl FnOnce(&mut Parser, &Entry<'a>) -> Record<'a>,
    ) -> Record<'a> {
        let mut record = None;
        let parsed = panic::catch_unwind(AssertUnwindSafe(|| record = Some(parse(self, entry))));
        match (parsed, record) {
            (Ok(()), Some(record)) => record,
            _ => self.give_up(entry),
        }
    }

    /// The entry as text without fields. What was learned is given up with what was under way.
    #[cold]
    fn give_up<'a>(&mut self, entry: &Entry<'a>) -> Record<'a> {
        let met = ParserStats {
            panicked: self.met.panicked + 1,
            ..self.met
        };
        *self = Parser {
            met,
            ..Parser::new()
        };
        self.record(entry, self.unread(entry), labels_as_sent(entry))
    }

    fn parse_stored<'a>(&mut self, entry: &Entry<'a>) -> Record<'a> {
        let parsed = self.read(entry);
        let mut labels = own_labels(entry);
        set_apart(&mut labels, &parsed.shape, |name, value| {
            is_alias(name, value, &entry.envelope)
        });
        let own = labels.len();
        labels.extend(labels_of_batch(entry));
        set_apart(&mut labels[own..], &parsed.shape, |name, _| {
            // That of senders has another name before a batch is taken.
            name == RULE_FIELD || is_default(name)
        });
        self.record(entry, parsed, labels)
    }

    fn parse_sent<'a>(&mut self, entry: &Entry<'a>) -> Record<'a> {
        let parsed = self.read(entry);
        self.record(entry, parsed, labels_as_sent(entry))
    }

    fn read<'a>(&mut self, entry: &Entry<'a>) -> ParsedLine<'a> {
        self.times.set_zone(self.zones.of(entry.labels));
        if let (names, true) = self.names.of(entry.labels) {
            self.outline.set_declared(names);
            self.learned = Outlines::new();
        }
        match entry.raw.strip_suffix(b"\r") {
            Some(raw) if entry.kind != EntryKind::Text => self.read_returned(entry, raw),
            _ => self.read_line(entry),
        }
    }

    fn read_line<'a>(&mut self, entry: &Entry<'a>) -> ParsedLine<'a> {
        self.recognise(entry)
            .unwrap_or_else(|| self.plain_text(entry))
    }

    /// A line that a carriage return ends, read without it. It is part of no value.
    fn read_returned<'a>(&mut self, entry: &Entry<'a>, raw: &'a [u8]) -> ParsedLine<'a> {
        let mut parsed = self.read_line(&Entry { raw, ..*entry });
        if !parsed.whole {
            let text = [parsed.shape.as_str(), "\r"].concat();
            match self.shapes.find(text.as_bytes()) {
                Some(found) => parsed.shape = found.shape,
                None => parsed.whole = true,
            }
        }
        parsed
    }

    fn record<'a>(
        &self,
        entry: &Entry<'a>,
        parsed: ParsedLine<'a>,
        mut labels: Vec<(Cow<'a, str>, Value<'a>)>,
    ) -> Record<'a> {
        let has_own_time = parsed.parts.time.is_some() || parsed.time.is_some();
        labels.extend(parsed.derived);
        // A label of the sender comes before a field that says again what the line says.
        let said = labels.len();
        labels.reserve(parsed.parts.beside.len() + 1);
        for (name, value) in parsed.parts.beside {
            let (own, suffixes) = split_label_name(&name);
            // With a suffix it would pass for a label of the sender whose name the line has taken.
            let passes_for =
                |known: &str| suffixes > 0 && split_label_name(known).0 == own || known == name;
            if !labels[..said].iter().any(|(known, _)| passes_for(known)) {
                labels.push((name, value));
            }
        }
        if let Some(stated) = stated::overruling(entry, &parsed.shape, &parsed.parts.values) {
            let level = Value::Str(Cow::Borrowed(stated.name()));
            labels.push((Cow::Borrowed(DETECTED_LEVEL_FIELD), level));
        }
        if let Some(level) = parsed.level {
            let name = if parsed.beats_level {
                DETECTED_LEVEL_FIELD
            } else {
                LEVEL_FIELD
            };
            let says_it = |said: &str| {
                if parsed.beats_level {
                    said == name
                } else {
                    is_severity_field(split_label_name(said).0)
                }
            };
            if !labels.iter().any(|(said, _)| says_it(said)) {
                let level = Value::Str(Cow::Borrowed(level));
                labels.push((Cow::Borrowed(name), level));
            }
        }
        let mut record = Record {
            id: entry.id,
            time: parsed.parts.time.unwrap_or(entry.received),
            time_source: parsed.parts.time_source,
            received: entry.received,
            message: match parsed.parts.message {
                Message::Part(message) => Message::Part(message),
                // As readers of segments see it, which have the shape only.
                _ if parsed.shape.message_is_line() => Message::Line,
                _ => Message::Absent,
            },
            shape: parsed.shape,
            values: parsed.parts.values,
            fixes: parsed.parts.fixes,
            labels,
            whole: parsed.whole.then_some(Cow::Borrowed(entry.raw)),
        };
        let given = entry.envelope.time;
        if let Some(time) = given.filter(|_| !(has_own_time && is_line_time_first(entry.labels))) {
            set_time(&mut record, time, TimeSource::Header(Assumption::Nothing));
        } else if let Some((time, assumed)) = parsed.time {
            set_time(&mut record, time, TimeSource::Field(assumed));
        }
        debug_assert!(
            rebuilds(&record, entry.raw),
            "{:?}",
            entry.raw.escape_ascii().to_string()
        );
        record
    }

    fn recognise<'a>(&mut self, entry: &Entry<'a>) -> Option<ParsedLine<'a>> {
        match entry.kind {
            EntryKind::Json => self.json(entry),
            EntryKind::Syslog => self.syslog(entry, true).or_else(|| self.line(entry)),
            EntryKind::Text => None,
            // Entries have been taken out of their envelopes.
            EntryKind::Line | EntryKind::Enveloped => self.line(entry),
        }
    }

    /// A line, which may begin with the mark of byte order of its file. A priority behind it is syslog's.
    fn line<'a>(&mut self, entry: &Entry<'a>) -> Option<ParsedLine<'a>> {
        if colours::is_coloured(entry.raw)
            && let Some(parsed) = self.coloured(entry)
        {
            return Some(parsed);
        }
        match entry.raw.strip_prefix(BYTE_ORDER_MARK.as_bytes()) {
            Some(raw) if raw.first() != Some(&b'<') => {
                let behind = Entry { raw, ..*entry };
                let parsed = self.unmarked_line(&behind)?;
                Some(ParsedLine {
                    whole: true,
                    ..parsed
                })
            }
            _ => self.unmarked_line(entry),
        }
    }

    fn unmarked_line<'a>(&mut self, entry: &Entry<'a>) -> Option<ParsedLine<'a>> {
        if let Some(parsed) = self.declared(entry) {
            return Some(parsed);
        }
        if stamps::is_candidate(entry.raw)
            && let Some(parsed) = self.stamped(entry)
        {
            return Some(parsed);
        }
        if let Some(reader) = access::reader(entry.raw)
            && let Some(parsed) = self.access(entry, reader)
        {
            return Some(parsed);
        }
        let parsed = match entry.raw {
            [b'{' | b' ' | b'\t', ..] => return self.json(entry).or_else(|| self.program(entry)),
            [b'[', b'{', ..] => self.list(entry),
            raw if syslog::is_candidate(raw) => self.syslog(entry, false),
            raw if slowlog::is_candidate(raw) => self.slowlog(entry),
            raw if csvlog::is_candidate(raw) => self.csvlog(entry),
            raw if content::is_candidate(raw) => self.fields(entry, content::read),
            raw if content::is_windows_event(raw) => self.windows_event(entry),
            raw if audit::is_candidate(raw) => self.audit(entry),
            raw if ltsv::is_candidate(raw) => self.fields(entry, ltsv::read),
            raw if logfmt::is_candidate(raw) => self.fields(entry, logfmt::read),
            _ => None,
        };
        parsed.or_else(|| self.program(entry))
    }

    fn json<'a>(&mut self, entry: &Entry<'a>) -> Option<ParsedLine<'a>> {
        if entry.raw.trim_ascii_start().first() != Some(&b'{') {
            return None;
        }
        let text = std::str::from_utf8(entry.raw).ok()?;
        let learned = self.learned.read(text, entry.received, &self.times);
        if let Some((shape, parts, summary)) = learned {
            let level = summary.level(&parts);
            let mut parsed = ParsedLine::new(shape, parts);
            parsed.say_level(summary, level);
            return Some(self.read_held(entry, parsed));
        }
        let capacity = self.learned.slots_hint;
        let mut parts = match json::flatten_line(text, &mut self.outline, capacity) {
            Ok(parts) => parts,
            Err(error) => return self.object_before(entry, &error),
        };
        let outcome = self.finish(entry, &mut parts);
        self.learned.learn(text, &self.outline, &outcome);
        let parsed = self.parsed(parts, outcome, Message::Absent);
        Some(self.read_held(entry, parsed))
    }

    /// A line that is made of fields and is no JSON.
    fn fields<'a>(
        &mut self,
        entry: &Entry<'a>,
        read: fn(&'a str, &mut Outline) -> Option<Parts<'a>>,
    ) -> Option<ParsedLine<'a>> {
        let text = std::str::from_utf8(entry.raw).ok()?;
        let mut parts = read(text, &mut self.outline)?;
        let outcome = self.finish(entry, &mut parts);
        let message = Message::Part(Value::text(entry.raw));
        let time = match parts.time {
            None => content::of_event(text, &self.times, entry.received),
            Some(_) if parts.time_source == TimeSource::Field(Assumption::Zone) => {
                content::of_zone(text, &self.times, entry.received)
            }
            Some(_) => None,
        };
        Some(ParsedLine {
            time,
            ..self.parsed(parts, outcome, message)
        })
    }

    /// An event of Windows, whose level and time stand in elements of their own.
    fn windows_event<'a>(&mut self, entry: &Entry<'a>) -> Option<ParsedLine<'a>> {
        let mut parsed = self.fields(entry, content::read)?;
        parsed.level = levels::of_line(entry.raw);
        self.take_time_of_text(entry, &mut parsed);
        Some(parsed)
    }

    fn slowlog<'a>(&mut self, entry: &Entry<'a>) -> Option<ParsedLine<'a>> {
        let text = std::str::from_utf8(entry.raw).ok()?;
        let mut sketch = Sketch::new(&mut self.scratch, 12);
        let time = slowlog::draw(text, &self.times, entry.received, &mut sketch)?;
        let shape = self.shapes.find(sketch.shape())?.shape;
        Some(ParsedLine {
            time,
            ..ParsedLine::new(shape, sketch.parts)
        })
    }

    /// A line that begins as only one program or logger writes it. Other lines are text.
    fn program<'a>(&mut self, entry: &Entry<'a>) -> Option<ParsedLine<'a>> {
        let candidate = programs::candidate(entry.raw)?;
        let text = std::str::from_utf8(entry.raw).ok()?;
        let mut sketch = Sketch::new(&mut self.scratch, 12);
        let times = Times {
            reader: &self.times,
            received: entry.received,
        };
        let level = levels::of_line(entry.raw);
        let Some(beside) = programs::draw(candidate, text, level, times, &mut sketch) else {
            // Its level is known then, and is not looked for again.
            return (self.depth == 0).then(|| self.text_of_level(entry, level));
        };
        let shape = self.shapes.find(sketch.shape())?.shape;
        let mut parsed = ParsedLine {
            derived: beside.fields,
            level: beside.level,
            ..ParsedLine::new(shape, sketch.parts)
        };
        // A head without a time may stand before a message with one.
        if parsed.parts.time.is_none() {
            self.take_time_of_text(entry, &mut parsed);
        }
        Some(parsed)
    }

    /// Takes the time that the whole of a line shows, if it shows one.
    fn take_time_of_text<'a>(&self, entry: &Entry<'a>, parsed: &mut ParsedLine<'a>) {
        let found = self.time_of_text(entry.raw, entry.received, parsed.level);
        if let Some((time, assumed)) = found {
            parsed.parts.time = Some(time);
            parsed.parts.time_source = TimeSource::Line(assumed);
        }
    }

    fn csvlog<'a>(&mut self, entry: &Entry<'a>) -> Option<ParsedLine<'a>> {
        let text = std::str::from_utf8(entry.raw).ok()?;
        let mut sketch = Sketch::new(&mut self.scratch, 26);
        let times = Times {
            reader: &self.times,
            received: entry.received,
        };
        csvlog::draw(text, times, &mut sketch)?;
        let shape = self.shapes.find(sketch.shape())?.shape;
        Some(ParsedLine::new(shape, sketch.parts))
    }

    /// A record of the audit system. Who sent it may be known by the kernel's word, and is not to be
    /// mistaken for whom it is about.
    fn audit<'a>(&mut self, entry: &Entry<'a>) -> Option<ParsedLine<'a>> {
        let in_envelope = entry.envelope.fields().map(|(name, _)| name);
        let in_batch = entry.labels.iter().map(|(name, _)| &**name);
        let is_sender_known = in_envelope.chain(in_batch).any(|name| name == SENDER_FIELD);
        let parsed = if is_sender_known {
            self.fields(entry, audit::read_of_sender)
        } else {
            self.fields(entry, audit::read)
        };
        let derived = audit::beside(std::str::from_utf8(entry.raw).ok()?).fields;
        let mut parsed = parsed?;
        parsed.derived.extend(derived);
        Some(parsed)
    }

    /// Ends the line that the outline holds.
    fn finish<'a>(&mut self, entry: &Entry<'a>, parts: &mut Parts<'a>) -> Outcome {
        self.outline.finish(
            entry.raw,
            parts,
            entry.received,
            &self.times,
            &mut self.shapes,
            &mut self.scratch,
        )
    }

    /// A line without even a shape that lists its fields is kept whole, without fields and with this message.
    fn parsed<'a>(
        &self,
        mut parts: Parts<'a>,
        outcome: Outcome,
        message: Message<'a>,
    ) -> ParsedLine<'a> {
        let Outcome {
            whole,
            unlisted,
            summary,
            level,
            ..
        } = outcome;
        let Some(shape) = outcome.shape else {
            parts.values = vec![Value::Null];
            parts.fixes.clear();
            parts.message = message;
            return ParsedLine {
                whole: true,
                ..ParsedLine::new(self.shapes.text(), parts)
            };
        };
        debug_assert_eq!(shape.slots().len(), parts.values.len());
        let mut parsed = ParsedLine {
            whole,
            ..ParsedLine::new(shape, parts)
        };
        parsed.say_level(summary, level);
        parsed.lacking(unlisted)
    }

    fn syslog<'a>(&mut self, entry: &Entry<'a>, anything: bool) -> Option<ParsedLine<'a>> {
        let received = entry.received;
        let scratch = &mut self.scratch;
        let mut sketch = syslog::draw(entry.raw, received, anything, &self.times, scratch)?;
        let behind = self.formats.draw_message(entry, &mut sketch, &self.times);
        let Beside {
            fields,
            time,
            level,
            beats_level,
        } = behind.unwrap_or_else(|| {
            content::draw(&mut sketch, &mut self.outline, &self.times, received)
        });
        let stated = stated::of_product(entry.raw, &sketch);
        let beating = stated.or(level.filter(|_| beats_level));
        let level = beating.or_else(|| level_of_message(&sketch, level));
        let beside = Beside {
            fields,
            time,
            level,
            beats_level: beating.is_some(),
        };
        behind_header(sketch, beside, &mut self.shapes)
    }

    fn access<'a>(&mut self, entry: &Entry<'a>, reader: access::Reader) -> Option<ParsedLine<'a>> {
        let text = std::str::from_utf8(entry.raw).ok()?;
        let mut sketch = Sketch::new(&mut self.scratch, 14);
        let times = Times {
            reader: &self.times,
            received: entry.received,
        };
        let drawn = access::draw(reader, text, times, &mut sketch)?;
        let shape = self.shapes.find(sketch.shape())?.shape;
        Some(ParsedLine {
            derived: formats::derived(&drawn, None),
            ..ParsedLine::new(shape, sketch.parts)
        })
    }

    /// A line of a format that was declared for it.
    fn declared<'a>(&mut self, entry: &Entry<'a>) -> Option<ParsedLine<'a>> {
        if !formats::is_declared(entry) {
            return None;
        }
        let mut sketch = Sketch::new(&mut self.scratch, 16);
        let beside = self.formats.draw_line(entry, &mut sketch, &self.times)?;
        let shape = self.shapes.find(sketch.shape())?.shape;
        Some(ParsedLine {
            derived: beside.fields,
            time: beside.time,
            ..ParsedLine::new(shape, sketch.parts)
        })
    }

    fn plain_text<'a>(&mut self, entry: &Entry<'a>) -> ParsedLine<'a> {
        // Of text whose sender says what counts, the words do not.
        let level = match entry.kind {
            EntryKind::Text => None,
            _ => levels::of_line(entry.raw),
        };
        self.text_of_level(entry, level)
    }

    /// A line that is text, of which the level is known.
    fn text_of_level<'a>(
        &mut self,
        entry: &Entry<'a>,
        level: Option<&'static str>,
    ) -> ParsedLine<'a> {
        let is_unfit = entry.kind == EntryKind::Line
            && formats::is_declared(entry)
            && !headers::is_remark(entry.raw);
        self.met.unfit += u64::from(is_unfit);
        let mut parsed = self.unread(entry);
        parsed.level = level;
        self.take_time_of_text(entry, &mut parsed);
        if let Message::Part(Value::Str(Cow::Borrowed(text))) = parsed.parts.message
            && entry.kind != EntryKind::Text
        {
            parsed.derived = programs::fields_of_sentence(None, text);
        }
        parsed
    }

    /// The time that a text shows. Many forms of a clock without a date are one only if a level says that the text is of a
    /// log.
    fn time_of_text(
        &self,
        text: &[u8],
        received: Timestamp,
        level: Option<&'static str>,
    ) -> Option<(Timestamp, Assumption)> {
        let found = self.times.of_line(text, received);
        found.or_else(|| match level {
            Some(_) => self.times.of_clock(text, received),
            None => self.times.of_bracketed_clock(text, received),
        })
    }

    /// Text of which nothing is known.
    fn unread<'a>(&self, entry: &Entry<'a>) -> ParsedLine<'a> {
        let mut parts = Parts::new(1);
        parts.message = Message::Part(Value::text(entry.raw));
        parts.values.push(Value::Null);
        ParsedLine::new(self.shapes.text(), parts)
    }
}

/// The line of a header and a content that were drawn, with what the content says beside the line.
fn behind_header<'a>(
    sketch: Sketch<'_, 'a>,
    beside: Beside<'a>,
    shapes: &mut Shapes,
) -> Option<ParsedLine<'a>> {
    let shape = if sketch.is_listing() {
        shapes.find_listing(sketch.shape())?
    } else {
        shapes.find(sketch.shape())?.shape
    };
    let (parts, unlisted) = sketch.finish();
    let parsed = ParsedLine {
        derived: beside.fields,
        level: beside.level,
        beats_level: beside.beats_level,
        time: beside.time,
        whole: unlisted.is_some(),
        ..ParsedLine::new(shape, parts)
    };
    Some(parsed.lacking(unlisted.unwrap_or(0)))
}

/// The level that the message of a syslog record says it has. Files of daemons have no priority; where there
/// is one, it counts.
fn level_of_message(
    sketch: &Sketch<'_, '_>,
    of_head: Option<&'static str>,
) -> Option<&'static str> {
    // A priority begins a line.
    if sketch.shape().first() == Some(&b'<') {
        return None;
    }
    let of_message = || levels::of_line(sketch.message_text()?.as_bytes());
    // Cisco's devices write it into what is the name of their program.
    let of_name = || match sketch.value(b"app") {
        Some(Value::Str(name)) => levels::of_mnemonic(name.as_bytes()),
        _ => None,
    };
    let level = of_head.or_else(of_message).or_else(of_name)?;
    (!sketch.has_slot(b"severity")).then_some(level)
}

/// Gives a record another time than that of its line, which stays there, as text.
fn set_time(record: &mut Record<'_>, time: Timestamp, source: TimeSource) {
    let slots = record.shape.slots().iter();
    let is_time = |slot: &logpond_record::Slot| matches!(slot.kind, SlotKind::Time(_));
    let in_line = slots.enumerate().find(|(_, slot)| is_time(slot));
    if let Some((index, _)) = in_line.filter(|_| record.time != time && record.whole.is_none()) {
        let at = record
            .fixes
            .partition_point(|fix| usize::from(fix.slot) < index);
        let is_fixed = record
            .fixes
            .get(at)
            .is_some_and(|fix| usize::from(fix.slot) == index);
        if !is_fixed {
            let mut text = Vec::new();
            let shape = &record.shape;
            shape.render_slot(index, record.time, &Value::Null, &mut text);
            let (slot, text) = (cast::low_u16(index), Cow::Owned(text));
            record.fixes.insert(at, Fix { slot, text });
        }
    }
    record.time = time;
    record.time_source = source;
}

/// Whether the record's line is `raw`.
pub(crate) fn rebuilds(record: &Record<'_>, raw: &[u8]) -> bool {
    let mut line = Vec::with_capacity(raw.len());
    record.write_line(&mut line);
    line == raw
}

#[cfg(test)]
pub(crate) mod tests;

//! The labels of a line on its way through a pipeline.
//!
//! Names and values lie in one buffer that is used again for each line.
//!
//! Invariants: no name stands twice; what a parser finds never replaces what a stream or a sender
//! said, but gets the suffix `_extracted`; of what parsers find under one name, the first counts.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use logpond_record::cast;

/// What a name gets behind it that is there already when a parser finds it.
pub(crate) const DUPLICATE_SUFFIX: &str = "_extracted";

/// The most labels of a line: each is compared with all before it.
pub const LABELS_MAX: usize = 2000;

/// The label that says that a stage could not do its work.
pub const ERROR: &str = "__error__";

/// The label that says why.
pub const ERROR_DETAILS: &str = "__error_details__";

/// Where a label comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The stream.
    Stream,
    /// What the sender said of this line alone.
    Metadata,
    /// A field of the record that the query names.
    Field,
    /// The line, or another stage.
    Parsed,
}

/// What a stage could not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StageError {
    /// The line is no JSON object.
    Json,
    /// The line is no logfmt.
    Logfmt,
    /// A label is no number.
    SampleExtraction,
    /// A label cannot be compared with what it should be.
    LabelFilter,
    /// A template cannot be filled.
    TemplateFormat,
}

impl StageError {
    /// All of them.
    pub const ALL: [StageError; 5] = [
        StageError::Json,
        StageError::Logfmt,
        StageError::SampleExtraction,
        StageError::LabelFilter,
        StageError::TemplateFormat,
    ];

    /// The value of [`ERROR`].
    pub fn as_str(self) -> &'static str {
        match self {
            StageError::Json => "JSONParserErr",
            StageError::Logfmt => "LogfmtParserErr",
            StageError::SampleExtraction => "SampleExtractionErr",
            StageError::LabelFilter => "LabelFilterErr",
            StageError::TemplateFormat => "TemplateFormatErr",
        }
    }
}

/// The labels of a line.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    text: String,
    labels: Vec<Label>,
    error: Option<StageError>,
    /// True if a parser found more than [`LABELS_MAX`]; conditions on the others find nothing.
    is_cut: bool,
    /// What a stage wrote over [`ERROR`].
    error_details: String,
    /// Number of the parser that is at work, counted from 1.
    parser: u32,
    /// The names of those that matter; all do without it.
    wanted: Option<Arc<[Box<str>]>>,
}

#[derive(Clone, Debug)]
struct Label {
    name: Range<u32>,
    value: Range<u32>,
    origin: Origin,
    /// Whether the stream or the sender has it, even if it was taken away.
    is_base: bool,
    /// Whether a parser found it, and which one.
    is_extracted: bool,
    parser: u32,
    is_removed: bool,
}

impl Labels {
    /// No labels.
    pub fn new() -> Labels {
        Labels::default()
    }

    /// No labels, among which only some names are going to be. Whoever asks for fewer gets them with less
    /// work; nothing may look at others.
    pub(crate) fn among(wanted: Option<Arc<[Box<str>]>>) -> Labels {
        Labels {
            wanted,
            ..Labels::default()
        }
    }

    /// Whether a label of this name matters.
    pub(super) fn wants(&self, name: &str) -> bool {
        let wanted = self.wanted.as_deref();
        wanted.is_none_or(|wanted| wanted.iter().any(|known| **known == *name))
    }

    /// Forgets all labels and keeps the memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.labels.clear();
        self.parser = 0;
        self.error = None;
        self.is_cut = false;
        self.error_details.clear();
    }

    /// Adds a label that the line comes with; of several of one name, the first counts. What is said of
    /// a line alone does not replace what its stream says, but gets the suffix.
    pub fn add_base(&mut self, origin: Origin, name: &str, value: &str) {
        match self.find(name).map(|place| self.labels[place].origin) {
            None if self.wants(name) => self.push(origin, name, value, true),
            Some(Origin::Stream) if origin == Origin::Metadata => {
                let name = format!("{name}{DUPLICATE_SUFFIX}");
                if self.find(&name).is_none() && self.wants(&name) {
                    self.push(origin, &name, value, true);
                }
            }
            None | Some(_) => {}
        }
    }

    /// Adds a field of the record that the query names, if there is no label of this name.
    pub fn refer(&mut self, name: &str, value: &str) {
        if self.find(name).is_none() && self.wants(name) {
            self.push(Origin::Field, name, value, false);
        }
    }

    /// How many labels there may be to look at; for loops with [`Labels::at`].
    pub fn places(&self) -> usize {
        self.labels.len()
    }

    /// The label at a place, if there still is one.
    pub fn at(&self, place: usize) -> Option<(&str, &str, Origin)> {
        let label = self.labels.get(place).filter(|label| !label.is_removed)?;
        Some((
            self.slice(&label.name),
            self.slice(&label.value),
            label.origin,
        ))
    }

    /// All labels with where they come from, errors aside, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, Origin)> {
        (0..self.labels.len()).filter_map(|place| self.at(place))
    }

    /// The value of a label, those of errors included.
    pub fn get(&self, name: &str) -> Option<&str> {
        match name {
            ERROR => self.error.map(StageError::as_str),
            ERROR_DETAILS => {
                let has_details = self.error.is_some() && !self.error_details.is_empty();
                has_details.then_some(&*self.error_details)
            }
            name => self.own(name),
        }
    }

    /// The value of a label, without those of errors.
    pub fn own(&self, name: &str) -> Option<&str> {
        let label = &self.labels[self.find(name)?];
        (!label.is_removed).then(|| self.slice(&label.value))
    }

    /// What a stage could not do, and why.
    pub fn error(&self) -> Option<(StageError, &str)> {
        self.error.map(|error| (error, &*self.error_details))
    }

    /// True if labels were left out since there were more than [`LABELS_MAX`], also if a later stage forgot
    /// the error.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Notes that a stage could not do its work; the last one counts.
    pub fn fail(&mut self, error: StageError, details: impl AsRef<str>) {
        self.error = Some(error);
        details.as_ref().clone_into(&mut self.error_details);
    }

    /// Forgets that a stage could not do its work.
    pub fn forgive(&mut self) {
        self.error = None;
        self.error_details.clear();
    }

    /// Forgets why a stage could not do its work.
    pub fn forget_details(&mut self) {
        self.error_details.clear();
    }

    /// Says that another parser is at work from now on. Of what it finds several times the last one counts,
    /// as with fields of records, where Loki takes the first.
    pub(super) fn begin_parser(&mut self) {
        self.parser += 1;
    }

    /// Sets a label that a parser found, unless one before it has.
    pub fn extract(&mut self, name: &str, value: &str) {
        self.extracted(name, value, false);
    }

    /// Sets a label that a parser was asked for, whatever was found before.
    pub fn extract_again(&mut self, name: &str, value: &str) {
        self.extracted(name, value, true);
    }

    fn extracted(&mut self, name: &str, value: &str, is_forced: bool) {
        let name = self.name_of_parsed(name);
        let name = &*name;
        let place = match self.find(name) {
            Some(place) if self.is_of_other_parser(place) && !is_forced => return,
            Some(place) => {
                self.replace(place, value);
                place
            }
            None if !self.wants(name) => return,
            None if self.labels.len() >= LABELS_MAX => {
                self.is_cut = true;
                let details = format!("the line has more than {LABELS_MAX} labels");
                return self.fail(StageError::Json, details);
            }
            None => {
                self.push(Origin::Parsed, name, value, false);
                self.labels.len() - 1
            }
        };
        self.labels[place].is_extracted = true;
        self.labels[place].parser = self.parser;
        self.labels[place].origin = Origin::Parsed;
    }

    /// Takes back what this parser found: a later value of the same name is none.
    pub(super) fn retract(&mut self, name: &str) {
        let found = self.find(&self.name_of_parsed(name));
        if let Some(place) = found.filter(|place| self.labels[*place].is_extracted)
            && !self.is_of_other_parser(place)
        {
            self.labels[place].is_removed = true;
        }
    }

    /// The name of a label that a parser finds: another one where the stream or the sender has it.
    fn name_of_parsed<'n>(&self, name: &'n str) -> Cow<'n, str> {
        if self.is_base(name) {
            format!("{name}{DUPLICATE_SUFFIX}").into()
        } else {
            name.into()
        }
    }

    fn is_of_other_parser(&self, place: usize) -> bool {
        let label = &self.labels[place];
        let is_own = self.parser > 0 && label.parser == self.parser;
        label.is_extracted && !label.is_removed && !is_own
    }

    /// Whether the stream or the sender has, or had, this label.
    pub fn is_base(&self, name: &str) -> bool {
        self.find(name)
            .is_some_and(|place| self.labels[place].is_base)
    }

    /// Sets a label, whatever it was. A parser behind finds it no more, as in Loki.
    pub fn set(&mut self, name: &str, value: &str) {
        let place = match self.find(name) {
            Some(place) => {
                self.replace(place, value);
                place
            }
            None => {
                self.push(Origin::Parsed, name, value, false);
                self.labels.len() - 1
            }
        };
        self.labels[place].is_extracted = true;
        self.labels[place].origin = Origin::Parsed;
    }

    /// Takes a label away.
    pub fn remove(&mut self, name: &str) {
        if let Some(place) = self.find(name) {
            self.labels[place].is_removed = true;
        }
    }

    /// Takes the label at a place away.
    pub fn remove_at(&mut self, place: usize) {
        if let Some(label) = self.labels.get_mut(place) {
            label.is_removed = true;
        }
    }

    /// Gives a label another name, in the place of one that has it.
    pub fn rename(&mut self, from: &str, to: &str) -> bool {
        let Some(value) = self.get(from).map(str::to_owned) else {
            return false;
        };
        self.set(to, &value);
        self.remove(from);
        true
    }

    fn find(&self, name: &str) -> Option<usize> {
        let mut labels = self.labels.iter();
        labels.position(|label| self.slice(&label.name) == name)
    }

    fn slice(&self, range: &Range<u32>) -> &str {
        &self.text[range.start as usize..range.end as usize]
    }

    fn append(&mut self, text: &str) -> Range<u32> {
        let start = cast::low_u32(self.text.len());
        self.text.push_str(text);
        start..cast::low_u32(self.text.len())
    }

    fn push(&mut self, origin: Origin, name: &str, value: &str, is_base: bool) {
        let (name, value) = (self.append(name), self.append(value));
        self.labels.push(Label {
            name,
            value,
            origin,
            is_base,
            is_extracted: false,
            parser: 0,
            is_removed: false,
        });
    }

    fn replace(&mut self, place: usize, value: &str) {
        self.labels[place].value = self.append(value);
        self.labels[place].is_removed = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(labels: &Labels) -> Vec<String> {
        let mut all: Vec<String> = labels.iter().map(|(n, v, _)| format!("{n}={v}")).collect();
        all.sort();
        all
    }

    #[test]
    fn what_a_stream_says_stays() {
        let mut labels = Labels::new();
        labels.add_base(Origin::Stream, "app", "a");
        labels.add_base(Origin::Metadata, "app", "b");
        labels.extract("app", "c");
        labels.extract("x", "1");
        labels.extract("x", "2");
        assert_eq!(shown(&labels), ["app=a", "app_extracted=c", "x=1"]);
        labels.extract_again("x", "3");
        labels.set("app", "d");
        labels.remove("app_extracted");
        assert_eq!(shown(&labels), ["app=d", "x=3"]);
        labels.remove("app");
        labels.extract("app", "e");
        assert_eq!(shown(&labels), ["app_extracted=e", "x=3"]);
        assert!(labels.rename("x", "y") && !labels.rename("x", "y"));
        assert_eq!(labels.get("y"), Some("3"));
        labels.fail(StageError::Json, "why");
        assert_eq!(labels.get(ERROR), Some("JSONParserErr"));
        assert_eq!(labels.get(ERROR_DETAILS), Some("why"));
        labels.clear();
        assert_eq!((labels.get("y"), labels.get(ERROR)), (None, None));
    }

    #[test]
    fn what_a_parser_finds_last_counts() {
        let mut labels = Labels::new();
        labels.begin_parser();
        labels.extract("x", "1");
        labels.extract("x", "2");
        assert_eq!(shown(&labels), ["x=2"]);
        labels.set("y", "1");
        labels.begin_parser();
        labels.extract("x", "3");
        labels.extract("y", "3");
        assert_eq!(shown(&labels), ["x=2", "y=1"]);
    }

    #[test]
    fn only_some_names_are_there() {
        let names = ["app_extracted", "app", "x"].map(Into::into);
        let mut labels = Labels::among(Some(Arc::new(names)));
        labels.add_base(Origin::Stream, "app", "a");
        labels.add_base(Origin::Metadata, "app", "b");
        labels.add_base(Origin::Stream, "env", "prod");
        labels.refer("status", "500");
        labels.extract("env", "c");
        labels.extract_again("x", "1");
        assert_eq!(shown(&labels), ["app=a", "app_extracted=b", "x=1"]);
    }

    #[test]
    fn what_a_parser_finds_takes_the_place_of_a_field() {
        let mut labels = Labels::new();
        labels.add_base(Origin::Stream, "app", "a");
        labels.refer("app", "b");
        labels.refer("status", "500");
        assert_eq!(shown(&labels), ["app=a", "status=500"]);
        labels.extract("status", "200");
        labels.extract("status", "300");
        assert_eq!(shown(&labels), ["app=a", "status=200"]);
    }
}

//! What LogQL does with each line: a stage takes a line and its labels, and yields the same, others, or
//! nothing.
//!
//! One file for each stage, so that what one does is in one place. A stage that cannot do its work
//! notes that in the labels `__error__` and `__error_details__`, and the line goes on.

mod base;
mod choose;
mod decolorize;
pub mod ip;
mod json;
mod json_text;
mod json_tree;
mod label_filter;
mod label_format;
mod labels;
pub mod like;
mod line_filter;
mod line_format;
mod logfmt;
mod regexp;
mod text_match;
mod unpack;
mod unwrap;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub use base::{add_base_labels, add_named_labels};
pub use labels::{ERROR, ERROR_DETAILS, LABELS_MAX, Labels, Origin, StageError};
pub use unwrap::Unwrap;

pub(crate) use labels::DUPLICATE_SUFFIX;

use crate::logql::{Stage, StageKind};
use crate::template::Scratch;
pub(crate) use json_tree::json_value;

/// A line on its way through a pipeline.
#[derive(Debug)]
pub struct Work<'l> {
    /// The line's time, in nanoseconds since the epoch.
    pub time_ns: i64,
    /// The line.
    pub line: Cow<'l, [u8]>,
    /// Its labels.
    pub labels: Labels,
    /// Memory that is used again for each line.
    pub scratch: Scratch,
}

impl Work<'_> {
    /// Nothing yet.
    pub fn new() -> Work<'static> {
        Work::with(Labels::new())
    }

    /// No line, and these labels.
    pub(crate) fn with(labels: Labels) -> Work<'static> {
        Work {
            time_ns: 0,
            line: Cow::Borrowed(b""),
            labels,
            scratch: Scratch::default(),
        }
    }
}

impl Default for Work<'_> {
    fn default() -> Self {
        Work::new()
    }
}

/// Compiled stages. They are cheap to share between threads; each needs its own [`Work`].
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    steps: Vec<Step>,
    now_ns: i64,
}

#[derive(Clone, Debug)]
enum Step {
    LineFilter(line_filter::LineFilter),
    Json,
    JsonPaths(json::Paths),
    Logfmt(logfmt::Logfmt),
    Regexp(Box<regexp::Regexp>),
    Pattern(like::LikePattern),
    Unpack,
    LabelFilter(label_filter::LabelFilter),
    LineFormat(line_format::LineFormat),
    LabelFormat(label_format::LabelFormats),
    Decolorize,
    Drop(choose::Choices),
    Keep(choose::Choices),
}

impl Pipeline {
    /// Compiles stages; `now_ns` is the time of the query, for templates.
    ///
    /// # Errors
    /// What is wrong with one; stages that were parsed always compile.
    pub fn new(stages: &[Stage], now_ns: i64) -> Result<Pipeline, String> {
        let steps = stages.iter().map(|stage| step(&stage.kind));
        Ok(Pipeline {
            steps: steps.collect::<Result<_, _>>()?,
            now_ns,
        })
    }

    /// Whether lines and labels come out as they go in.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Runs a line through; says whether it is let through.
    pub fn run(&self, work: &mut Work<'_>) -> bool {
        self.steps.iter().all(|step| self.run_step(step, work))
    }

    fn run_step(&self, step: &Step, work: &mut Work<'_>) -> bool {
        match step {
            Step::LineFilter(filter) => return filter.accepts(&work.line),
            Step::LabelFilter(filter) => return filter.accepts(&mut work.labels),
            Step::Json => json::all(work),
            Step::JsonPaths(paths) => paths.run(work),
            Step::Logfmt(logfmt) => logfmt.run(work),
            Step::Regexp(regexp) => regexp.run(work),
            Step::Pattern(like) => {
                let labels = &mut work.labels;
                like.captures(&work.line, |name, text| {
                    labels.extract(name, &String::from_utf8_lossy(text));
                });
            }
            Step::Unpack => unpack::run(work),
            Step::LineFormat(format) => format.run(work, self.now_ns),
            Step::LabelFormat(formats) => formats.run(work, self.now_ns),
            Step::Decolorize => decolorize::run(work),
            Step::Drop(choices) => choices.drop(&mut work.labels),
            Step::Keep(choices) => choices.keep(&mut work.labels),
        }
        true
    }
}

fn step(stage: &StageKind) -> Result<Step, String> {
    Ok(match stage {
        StageKind::LineFilter(filter) => Step::LineFilter(line_filter::LineFilter::new(filter)?),
        StageKind::Json(paths) if paths.is_empty() => Step::Json,
        StageKind::Json(paths) => Step::JsonPaths(json::Paths::new(paths)?),
        StageKind::Logfmt(logfmt) => Step::Logfmt(logfmt::Logfmt::new(logfmt)?),
        StageKind::Regexp(source) => Step::Regexp(Box::new(regexp::Regexp::new(source)?)),
        StageKind::Pattern(pattern) => Step::Pattern(like::LikePattern::parse_stage(pattern)?),
        StageKind::Unpack => Step::Unpack,
        StageKind::LabelFilter(filter) => {
            Step::LabelFilter(label_filter::LabelFilter::new(filter)?)
        }
        StageKind::LineFormat(text) => Step::LineFormat(line_format::LineFormat::new(text)?),
        StageKind::LabelFormat(formats) => {
            Step::LabelFormat(label_format::LabelFormats::new(formats)?)
        }
        StageKind::Decolorize => Step::Decolorize,
        StageKind::Drop(choices) => Step::Drop(choose::Choices::new(choices)?),
        StageKind::Keep(choices) => Step::Keep(choose::Choices::new(choices)?),
    })
}

/// Checks that a stage compiles: its expressions, patterns and templates.
///
/// # Errors
/// What is wrong with it.
pub fn check(stage: &StageKind) -> Result<(), String> {
    step(stage).map(|_| ())
}

//! `| line_format`: another line, made by a template.

use std::borrow::Cow;

use super::Work;
use super::labels::{ERROR, ERROR_DETAILS, Labels, StageError};
use crate::template::{Data, Template};

/// A compiled template of lines.
#[derive(Clone, Debug)]
pub(super) struct LineFormat(Template);

impl LineFormat {
    pub(super) fn new(text: &str) -> Result<LineFormat, String> {
        let template = Template::new(text);
        template
            .map(LineFormat)
            .map_err(|error| format!("invalid line template: {error}"))
    }

    /// A template that cannot be filled leaves the line as it is.
    pub(super) fn run(&self, work: &mut Work<'_>, now_ns: i64) {
        if let Some(name) = self.0.only_field() {
            let line = work.labels.get(name).unwrap_or_default();
            work.line = Cow::Owned(line.as_bytes().to_vec());
            return;
        }
        let mut line = Vec::new();
        let seen = TemplateInput {
            labels: &work.labels,
            line: &work.line,
            time_ns: work.time_ns,
            now_ns,
        };
        match self.0.fill(&seen, &mut work.scratch, &mut line) {
            Ok(()) => work.line = Cow::Owned(line),
            Err(error) => work.labels.fail(StageError::TemplateFormat, error),
        }
    }
}

/// The input of a template: a line with its labels.
pub(super) struct TemplateInput<'w> {
    pub(super) labels: &'w Labels,
    pub(super) line: &'w [u8],
    pub(super) time_ns: i64,
    pub(super) now_ns: i64,
}

impl Data for TemplateInput<'_> {
    fn field(&self, name: &str) -> Option<&str> {
        self.labels.get(name)
    }

    fn fields(&self) -> Vec<(String, String)> {
        let labels = self.labels.iter().map(|(name, value, _)| (name, value));
        let errors = [ERROR, ERROR_DETAILS].into_iter();
        let errors = errors.filter_map(|name| Some((name, self.labels.get(name)?)));
        let all = labels.chain(errors);
        let mut all: Vec<_> = all.map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
        all.sort();
        all
    }

    fn line(&self) -> &[u8] {
        self.line
    }

    fn time_ns(&self) -> i64 {
        self.time_ns
    }

    fn now_ns(&self) -> i64 {
        self.now_ns
    }
}

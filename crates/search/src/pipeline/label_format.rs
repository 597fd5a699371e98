//! `| label_format`: other labels, made of others or by templates.
//!
//! Invariant: all templates of a stage see the labels as they are before the first of them; renaming
//! is seen by what stands behind it.

use super::Work;
use super::labels::{Labels, StageError};
use super::line_format::TemplateInput;
use crate::logql::{LabelFormat, LabelSource};
use crate::template::Template;

/// Compiled label formats, in order.
#[derive(Clone, Debug)]
pub(super) struct LabelFormats(Vec<(Box<str>, ValueSource)>);

#[derive(Clone, Debug)]
enum ValueSource {
    Label(Box<str>),
    Template(Template),
}

impl LabelFormats {
    pub(super) fn new(formats: &[LabelFormat]) -> Result<LabelFormats, String> {
        let formats = formats.iter().map(|format| {
            let from = match &format.from {
                LabelSource::Label(name) => ValueSource::Label(name.clone()),
                LabelSource::Template(text) => {
                    let template = Template::new(text).map_err(|error| {
                        format!("invalid template for label '{}': {error}", format.label)
                    })?;
                    ValueSource::Template(template)
                }
            };
            Ok((format.label.clone(), from))
        });
        formats.collect::<Result<_, String>>().map(LabelFormats)
    }

    pub(super) fn run(&self, work: &mut Work<'_>, now_ns: i64) {
        let is_template =
            |(_, from): &&(Box<str>, ValueSource)| matches!(from, ValueSource::Template(_));
        let has_several = self.0.iter().filter(is_template).count() > 1;
        let mut before: Option<Labels> = None;
        for (label, from) in &self.0 {
            let template = match from {
                ValueSource::Label(source) => {
                    work.labels.rename(source, label);
                    continue;
                }
                ValueSource::Template(template) => template,
            };
            if has_several && before.is_none() {
                before = Some(work.labels.clone());
            }
            let mut value = Vec::new();
            let seen = TemplateInput {
                labels: before.as_ref().unwrap_or(&work.labels),
                line: &work.line,
                time_ns: work.time_ns,
                now_ns,
            };
            match template.fill(&seen, &mut work.scratch, &mut value) {
                Ok(()) => work.labels.set(label, &String::from_utf8_lossy(&value)),
                Err(error) => work.labels.fail(StageError::TemplateFormat, error),
            }
        }
    }
}

//! `| label_format`: other labels, made of others or by templates.

use super::Work;
use super::labels::StageError;
use super::line_format::Seen;
use crate::logql::{LabelFormat, LabelSource};
use crate::template::Template;

/// Compiled label formats, in order.
#[derive(Clone, Debug)]
pub(super) struct LabelFormats(Vec<(Box<str>, From)>);

#[derive(Clone, Debug)]
enum From {
    Label(Box<str>),
    Template(Template),
}

impl LabelFormats {
    pub(super) fn new(formats: &[LabelFormat]) -> Result<LabelFormats, String> {
        let formats = formats.iter().map(|format| {
            let from = match &format.from {
                LabelSource::Label(name) => From::Label(name.clone()),
                LabelSource::Template(text) => {
                    let template = Template::new(text).map_err(|error| {
                        format!("invalid template for label '{}': {error}", format.label)
                    })?;
                    From::Template(template)
                }
            };
            Ok((format.label.clone(), from))
        });
        formats.collect::<Result<_, String>>().map(LabelFormats)
    }

    pub(super) fn run(&self, work: &mut Work<'_>, now_ns: i64) {
        for (label, from) in &self.0 {
            let template = match from {
                From::Label(source) => {
                    work.labels.rename(source, label);
                    continue;
                }
                From::Template(template) => template,
            };
            let mut value = Vec::new();
            let seen = Seen {
                labels: &work.labels,
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

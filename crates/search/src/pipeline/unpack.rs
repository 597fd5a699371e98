//! `| unpack`: what Promtail's stage `pack` made: an object of texts, one of them the line.

use std::borrow::Cow;

use super::Work;
use super::json_text::{Json, each_member, unescaped};
use super::labels::StageError;
use crate::label::sanitised;

/// The member that is the line.
const LINE_MEMBER: &str = "_entry";

/// Makes labels of the members and takes the line out; an object without one stays as it is.
pub(super) fn run(work: &mut Work<'_>) {
    if work.line.is_empty() {
        return;
    }
    let mut found: Vec<(String, String)> = Vec::new();
    let mut line = None;
    let read = each_member(&work.line, |name, value| {
        if let Json::Text(inside) = value {
            let (name, value) = (unescaped(name), unescaped(inside).into_owned());
            if name == LINE_MEMBER {
                line = Some(value);
            } else {
                found.push((sanitised(&name).into_owned(), value))
            }
        }
        Ok(true)
    });
    if let Err(error) = read {
        return work.labels.fail(StageError::Json, error.describe());
    }
    let Some(line) = line else { return };
    work.labels.begin_parser();
    for (name, value) in &found {
        work.labels.extract(name, value);
    }
    work.line = Cow::Owned(line.into_bytes());
}

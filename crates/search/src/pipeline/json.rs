//! `| json`: labels of an object's members, or of some paths into it.

use super::Work;
use super::json_text::{self, Json, JsonError, each_member, unescaped};
use super::labels::{Labels, StageError};
use crate::label::sanitised;
use crate::logql::Extraction;

/// Makes labels of all members; nested ones are called `outer_inner`, arrays and nulls are none.
pub(super) fn all(work: &mut Work<'_>) {
    let mut prefix = String::new();
    work.labels.begin_parser();
    if let Err(error) = members(&work.line, &mut prefix, &mut work.labels) {
        work.labels.fail(StageError::Json, error.describe());
    }
}

fn members(text: &[u8], prefix: &mut String, labels: &mut Labels) -> Result<(), JsonError> {
    each_member(text, |name, value| {
        let length = prefix.len();
        let name = unescaped(name);
        let name = name.trim();
        if name.is_empty() && (length == 0 || !matches!(value, Json::Object(_))) {
            return Ok(true);
        }
        match length {
            0 => prefix.push_str(&sanitised(name)),
            _ => {
                prefix.push('_');
                prefix.extend(name.chars().map(|c| match c {
                    c if c.is_ascii_alphanumeric() => c,
                    _ => '_',
                }));
            }
        }
        match value {
            Json::Object(inner) => members(inner, prefix, labels)?,
            Json::Text(inside) => labels.extract(prefix, &unescaped(inside)),
            Json::Number(number) => labels.extract(prefix, &String::from_utf8_lossy(number)),
            Json::Bool(is_true) => labels.extract(prefix, if is_true { "true" } else { "false" }),
            Json::Null | Json::Array(_) => labels.retract(prefix),
        }
        prefix.truncate(length);
        Ok(true)
    })
}

/// Paths into an object, each for a label.
#[derive(Clone, Debug)]
pub(super) struct Paths(Vec<(Box<str>, Vec<Step>)>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Member(Box<str>),
    Element(usize),
}

impl Paths {
    /// Compiles `a.b[0]["c d"]`.
    pub(super) fn new(extractions: &[Extraction]) -> Result<Paths, String> {
        let paths = extractions.iter().map(|extraction| {
            let path = path_of(&extraction.expression)
                .ok_or_else(|| format!("cannot parse expression [{}]", extraction.expression))?;
            Ok((extraction.label.clone(), path))
        });
        paths.collect::<Result<_, String>>().map(Paths)
    }

    /// Makes labels of what the paths lead to; of nothing, an empty one.
    pub(super) fn run(&self, work: &mut Work<'_>) {
        let line = work.line.trim_ascii_start();
        match line.first() {
            None => return,
            Some(b'{' | b'[' | b'"') => {}
            Some(_) => {
                return work
                    .labels
                    .fail(StageError::Json, "expected a value of JSON");
            }
        }
        let root = match json_text::value(line) {
            Ok(root) => root,
            Err(error) => return work.labels.fail(StageError::Json, error.describe()),
        };
        for (label, path) in &self.0 {
            let labels = &mut work.labels;
            match follow(root, path) {
                Some(Json::Text(inside)) => labels.extract_again(label, &unescaped(inside)),
                Some(Json::Bool(true)) => labels.extract_again(label, "true"),
                Some(Json::Bool(false)) => labels.extract_again(label, "false"),
                Some(Json::Number(text) | Json::Object(text) | Json::Array(text)) => {
                    labels.extract_again(label, &String::from_utf8_lossy(text));
                }
                Some(Json::Null) => labels.extract_again(label, ""),
                None if labels.get(label).is_none() => labels.extract_again(label, ""),
                None => {}
            }
        }
    }
}

fn follow<'t>(root: Json<'t>, path: &[Step]) -> Option<Json<'t>> {
    path.iter()
        .try_fold(root, |value, step| match (value, step) {
            (Json::Object(text), Step::Member(wanted)) => {
                let mut found = None;
                let read = each_member(text, |name, value| {
                    // Of several with one name the last one counts.
                    if unescaped(name) == **wanted {
                        found = Some(value);
                    }
                    Ok(true)
                });
                // What stands behind a fault was not found.
                read.ok().and(found)
            }
            (Json::Array(text), Step::Element(wanted)) => json_text::element(text, *wanted),
            _ => None,
        })
}

fn path_of(expression: &str) -> Option<Vec<Step>> {
    let mut path = Vec::new();
    let mut rest = expression.trim();
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let (step, behind) = match inside.strip_prefix('"') {
                Some(quoted) => {
                    let end = end_of_text(quoted)?;
                    let name = unescaped(&quoted.as_bytes()[..end]).into_owned();
                    (Step::Member(name.into()), quoted.get(end + 1..)?)
                }
                None => {
                    let end = inside.find(']')?;
                    (
                        Step::Element(inside[..end].trim().parse().ok()?),
                        &inside[end..],
                    )
                }
            };
            path.push(step);
            rest = behind.strip_prefix(']')?;
            continue;
        }
        if !path.is_empty() {
            rest = rest.strip_prefix('.')?;
        }
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        if end == 0 || rest.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        path.push(Step::Member(rest[..end].into()));
        rest = &rest[end..];
    }
    (!path.is_empty()).then_some(path)
}

/// Where the quote stands that ends a text.
fn end_of_text(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|b| {
        let ends = b == b'"' && !is_escaped;
        is_escaped = b == b'\\' && !is_escaped;
        ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read() {
        let member = |name: &str| Step::Member(name.into());
        let table = [
            ("a", Some(vec![member("a")])),
            (
                "a.b[0].c",
                Some(vec![
                    member("a"),
                    member("b"),
                    Step::Element(0),
                    member("c"),
                ]),
            ),
            (
                r#"["a b"]["c.\"d"]"#,
                Some(vec![member("a b"), member("c.\"d")]),
            ),
            ("[1][2]", Some(vec![Step::Element(1), Step::Element(2)])),
            ("", None),
            ("a.", None),
            (".a", None),
            ("a..b", None),
            ("a[x]", None),
            ("a[0", None),
            ("a-b", None),
            ("1a", None),
            (r#"["a"#, None),
        ];
        for (text, expected) in table {
            assert_eq!(path_of(text), expected, "{text}");
        }
    }
}

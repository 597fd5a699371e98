//! The text of the file of saved queries; nodes of a cluster tell each other the same.
//!
//! ```toml
//! [[query]]
//! name = "errors"
//! changed = "2026-11-22T03:00:00.125Z"      # who adds one by hand may leave it out
//! query = "sum by (app) (count_over_time({app=~\"$app\", detected_level=\"error\"}[$__interval]))"
//! description = "Errors of each service"    # may be absent, as all below
//! language = "logql"                         # or native, or sql
//! view = "?from=1h&cols=app"
//! legend = "{{app}}"
//! format = "time_series"
//! variables = { app = ".+" }
//!
//! [[removed]]
//! name = "old"
//! changed = "2026-11-22T03:00:00Z"
//! ```

use logpond_record::Timestamp;
use toml::de::{DeTable, DeValue};

use super::catalog::{Catalog, Entry};
use super::query::{Language, SavedError, SavedQuery, is_name};

/// The first lines of the file.
const HEAD: &str = "\
# Saved queries of Logpond, as `logpond saved` lists and sets them. Servers notice changes that are\n\
# made here by themselves, and write the file anew then: comments are not kept.\n";

/// The text of a catalog.
pub(super) fn render(catalog: &Catalog) -> String {
    let mut text = HEAD.to_owned();
    for (name, entry) in catalog.entries() {
        let heading = match entry.query {
            Some(_) => "query",
            None => "removed",
        };
        text.push_str(&format!("\n[[{heading}]]\n"));
        line(&mut text, "name", name);
        line(&mut text, "changed", &time_text(entry.changed));
        if let Some(query) = &entry.query {
            line(&mut text, "query", &query.query);
            let language = Some(query.language).filter(|language| *language != Language::LogQl);
            let optional = [
                ("language", language.map_or("", Language::as_str)),
                ("view", &*query.view),
                ("description", &*query.description),
                ("legend", &*query.legend),
                ("format", query.format.as_str()),
            ];
            for (key, value) in optional {
                if !value.is_empty() {
                    line(&mut text, key, value);
                }
            }
            if !query.variables.is_empty() {
                let pairs = query.variables.iter();
                let pairs: Vec<_> = pairs
                    .map(|(name, value)| format!("{name} = {}", quoted(value)))
                    .collect();
                text.push_str(&format!("variables = {{ {} }}\n", pairs.join(", ")));
            }
        }
    }
    text
}

fn line(text: &mut String, key: &str, value: &str) {
    text.push_str(&format!("{key} = {}\n", quoted(value)));
}

/// A basic string of TOML: what JSON escapes, and the character that only TOML wants escaped.
fn quoted(value: &str) -> String {
    let mut text = Vec::new();
    logpond_record::write_json_string(value, &mut text);
    String::from_utf8_lossy(&text).replace('\u{7f}', "\\u007F")
}

/// RFC 3339 in UTC, in milliseconds.
pub(super) fn time_text(time: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(time.unix_ms())
        .map_or_else(|_| time.to_string(), |time| time.to_string())
}

/// Reads the text of a catalog; entries that do not say when they were changed were so `now`.
///
/// # Errors
/// With the line, if the text is not TOML of the form above. Unknown keys are errors: they were meant
/// to do something.
pub(super) fn parse(text: &str, now: Timestamp) -> Result<Catalog, SavedError> {
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        wrong(text, at, error.message())
    })?;
    let mut catalog = Catalog::default();
    for (key, value) in table.get_ref().iter() {
        let is_removed = match (&**key.get_ref(), value.get_ref()) {
            ("query", DeValue::Array(_)) => false,
            ("removed", DeValue::Array(_)) => true,
            _ => {
                let what = "expected [[query]] or [[removed]]";
                return Err(wrong(text, key.span().start, what));
            }
        };
        let DeValue::Array(entries) = value.get_ref() else {
            continue;
        };
        for entry in entries.iter() {
            let at = entry.span().start;
            let DeValue::Table(members) = entry.get_ref() else {
                return Err(wrong(text, at, "expected a table"));
            };
            let (name, entry) =
                parse_entry(members, is_removed, now).map_err(|what| wrong(text, at, &what))?;
            let twice = format!("there are two entries of the name '{name}'");
            if !catalog.insert(name, entry) {
                return Err(wrong(text, at, &twice));
            }
        }
    }
    Ok(catalog)
}

fn wrong(text: &str, at: usize, what: &str) -> SavedError {
    let before = &text.as_bytes()[..at.min(text.len())];
    SavedError::File {
        line: before.iter().filter(|&&byte| byte == b'\n').count() + 1,
        what: what.to_owned(),
    }
}

fn parse_entry(
    members: &DeTable<'_>,
    is_removed: bool,
    now: Timestamp,
) -> Result<(String, Entry), String> {
    let mut name = String::new();
    let mut changed = Timestamp(now.unix_ms().saturating_mul(1_000_000));
    let mut query = SavedQuery::default();
    for (key, value) in members.iter() {
        let key = &**key.get_ref();
        let is_known = match (key, value.get_ref()) {
            ("name", DeValue::String(text)) => {
                name = text.to_string();
                true
            }
            ("changed", DeValue::String(text)) => {
                changed = parse_time(text).ok_or("'changed' is no RFC 3339 time")?;
                true
            }
            ("variables", DeValue::Table(variables)) if !is_removed => {
                for (name, value) in variables.iter() {
                    let DeValue::String(value) = value.get_ref() else {
                        return Err(format!("the default of '{}' is no text", name.get_ref()));
                    };
                    let name = name.get_ref().to_string();
                    query.variables.insert(name, value.to_string());
                }
                true
            }
            (key, DeValue::String(text)) if !is_removed => {
                query.set(key, text).map_err(|error| error.to_string())?
            }
            _ => false,
        };
        if !is_known {
            return Err(format!("'{key}' is unknown here, or has no text in quotes"));
        }
    }
    if !is_name(&name) {
        return Err(SavedError::Name(name).to_string());
    }
    if is_removed {
        let entry = Entry {
            changed,
            query: None,
        };
        return Ok((name, entry));
    }
    query.check(&name).map_err(|error| error.to_string())?;
    let entry = Entry {
        changed,
        query: Some(query),
    };
    Ok((name, entry))
}

fn parse_time(text: &str) -> Option<Timestamp> {
    let time: jiff::Timestamp = text.parse().ok()?;
    let ms = time.as_millisecond();
    ms.checked_mul(1_000_000).map(Timestamp)
}

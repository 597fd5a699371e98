//! Records as documents: `_source`, `fields`, and what is left of them by a request.
//!
//! A record whose line is a JSON object has it as its source, with what the record has beside it. Any other has its
//! fields. Both have `@timestamp`, and `message` if there is one.

use logpond_client::exact;
use logpond_record::Timestamp;
use logpond_render::Row;
use logpond_search::order::Key;
use serde_json::{Map, Value as Json};

use super::dates::DateFormat;
use super::json::{Object, bad, list, object, only, optional, texts};
use super::names::{self, fits};
use crate::error::ApiError;

/// The most fields that a request names.
const FIELDS_MAX: usize = 1000;

/// Names that rows have beside fields.
const OWN: [&str; 8] = [
    "_time",
    "_id",
    "_msg",
    "_msg_bin",
    "_line",
    "_line_b64",
    "_received",
    "_time_source",
];

/// A record as a document.
#[derive(Clone, Debug)]
pub(super) struct Document {
    /// Its place in the order of all records.
    pub(super) key: Key,
    pub(super) id: String,
    pub(super) index: String,
    source: Object,
    /// Fields by name, with dots between the names of objects.
    fields: Object,
}

impl Document {
    /// The document of a row.
    pub(super) fn of(row: &Row<'_>) -> Option<Document> {
        let id = row.id.to_string();
        let key = Key {
            time: row.time?,
            id: id.parse().ok()?,
        };
        let message = row.message.as_deref().map(String::from_utf8_lossy);
        let message = message.map(|message| Json::from(&*message));
        let line = row.line.as_deref();
        let line = line.and_then(|line| std::str::from_utf8(line).ok());
        let fields = row
            .fields
            .iter()
            .filter(|(name, _)| !OWN.contains(&&**name));
        let fields = fields.map(|(name, value)| (name.to_string(), exact::of_value(value)));
        let mut row: Object = fields.collect();
        let index = row.remove(names::INDEX);
        let index = index.and_then(|index| super::json::text_of(&index));
        let original = line.filter(|line| line.trim_start().starts_with('{'));
        let original = original.and_then(|line| exact::from_slice::<Object>(line.as_bytes()).ok());
        let mut source = original.unwrap_or_default();
        let mut known = Map::new();
        flatten("", &source, &mut known);
        let mut fields = Object::new();
        for (name, value) in row {
            let shown = names::of_field(&name);
            let is_apart = shown != name;
            if is_apart {
                // Not what the record says or when it was, which has this name.
                source.remove(&name);
            }
            if is_object(source.get(shown)) && !value.is_null() && !is_object(Some(&value)) {
                // A member of this name that another one, which is an object, follows in the record.
                let object = source.remove(shown).unwrap_or_default();
                flatten(
                    "",
                    &Object::from_iter([(shown.to_owned(), object)]),
                    &mut source,
                );
            }
            if (is_apart || !known.contains_key(&name)) && !source.contains_key(shown) {
                source.insert(shown.to_owned(), value.clone());
            }
            fields.insert(shown.to_owned(), value);
        }
        source
            .entry(names::TIME)
            .or_insert_with(|| iso(key.time).into());
        if let Some(message) = message {
            source
                .entry(names::MESSAGE)
                .or_insert_with(|| message.clone());
            fields.insert(names::MESSAGE.to_owned(), message);
        }
        Some(Document {
            key,
            id,
            index: index.unwrap_or_else(|| names::DEFAULT_INDEX.to_owned()),
            source,
            fields,
        })
    }
}

fn is_object(value: Option<&Json>) -> bool {
    value.is_some_and(Json::is_object)
}

/// An instant as documents have it.
pub(super) fn iso(time: Timestamp) -> String {
    let text = time.to_string();
    // Nanoseconds only where there are some.
    match text.strip_suffix("000000Z") {
        Some(short) => format!("{short}Z"),
        None => text,
    }
}

fn flatten(prefix: &str, members: &Object, out: &mut Object) {
    for (name, value) in members {
        let path = match prefix {
            "" => name.clone(),
            prefix => format!("{prefix}.{name}"),
        };
        match value {
            Json::Object(inner) if !inner.is_empty() => flatten(&path, inner, out),
            value => {
                out.insert(path, value.clone());
            }
        }
    }
}

/// The part of the source that a hit has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceFilter {
    is_wanted: bool,
    includes: Vec<String>,
    excludes: Vec<String>,
}

impl SourceFilter {
    /// Reads `_source`.
    ///
    /// # Errors
    /// When it is no such filter.
    pub(super) fn read(given: Option<&Json>) -> Result<SourceFilter, ApiError> {
        let mut filter = SourceFilter {
            is_wanted: true,
            includes: Vec::new(),
            excludes: Vec::new(),
        };
        match given {
            None | Some(Json::Null) => {}
            Some(Json::Bool(flag)) => filter.is_wanted = *flag,
            Some(Json::String(text)) if text == "false" || text == "true" => {
                filter.is_wanted = text == "true";
            }
            Some(Json::Object(members)) => {
                let known = ["includes", "include", "excludes", "exclude"];
                only(members, &known, "_source")?;
                let names = |both: [&str; 2]| {
                    let given = both.iter().find_map(|name| members.get(*name));
                    given.map_or(Ok(Vec::new()), |given| texts(given, "_source"))
                };
                filter.includes = names(["includes", "include"])?;
                filter.excludes = names(["excludes", "exclude"])?;
            }
            Some(names) => filter.includes = texts(names, "_source")?,
        }
        if filter.includes.len() + filter.excludes.len() > FIELDS_MAX {
            return Err(bad(format!("[_source] has more than {FIELDS_MAX} names")));
        }
        Ok(filter)
    }

    /// No source.
    pub(super) fn none() -> SourceFilter {
        SourceFilter {
            is_wanted: false,
            includes: Vec::new(),
            excludes: Vec::new(),
        }
    }

    /// The source that is wanted.
    pub(super) fn source(&self, document: &Document) -> Option<Json> {
        if !self.is_wanted {
            return None;
        }
        if self.includes.is_empty() && self.excludes.is_empty() {
            return Some(Json::Object(document.source.clone()));
        }
        Some(Json::Object(self.part("", &document.source)))
    }

    fn part(&self, prefix: &str, members: &Object) -> Object {
        let mut out = Object::new();
        for (name, value) in members {
            let path = match prefix {
                "" => name.clone(),
                prefix => format!("{prefix}.{name}"),
            };
            match value {
                Json::Object(inner) => {
                    let inner = self.part(&path, inner);
                    if !inner.is_empty() {
                        out.insert(name.clone(), Json::Object(inner));
                    }
                }
                value if self.has(&path) => {
                    out.insert(name.clone(), value.clone());
                }
                _ => {}
            }
        }
        out
    }

    fn has(&self, path: &str) -> bool {
        let is_named = |names: &[String]| names.iter().any(|name| is_at_or_below(name, path));
        (self.includes.is_empty() || is_named(&self.includes)) && !is_named(&self.excludes)
    }
}

/// True if a pattern fits a path, or an object that it is in.
fn is_at_or_below(pattern: &str, path: &str) -> bool {
    let ends = path.match_indices('.').map(|(at, _)| at);
    let mut above = ends.filter_map(|end| path.get(..end));
    fits(pattern, path) || above.any(|outer| fits(pattern, outer))
}

/// Fields that a hit shows beside its source.
#[derive(Clone, Debug, Default)]
pub(super) struct FieldList {
    fields: Vec<(String, Option<DateFormat>)>,
}

impl FieldList {
    /// Adds those of `fields` or `docvalue_fields`.
    ///
    /// # Errors
    /// When a name or a format is none.
    pub(super) fn add(&mut self, given: Option<&Json>) -> Result<(), ApiError> {
        let given = given.map_or(&[][..], list);
        for one in given {
            let field = match one {
                Json::String(name) => (name.clone(), None),
                one => {
                    let members = object(one, "fields")?;
                    only(members, &["field", "format", "include_unmapped"], "fields")?;
                    let name = optional(members, "field")?;
                    let name = name.ok_or_else(|| bad("[fields] needs [field]"))?;
                    let format = optional(members, "format")?;
                    // The format of the mapping.
                    let format = format.filter(|format| format != "use_field_mapping");
                    (name, format.as_deref().map(DateFormat::of).transpose()?)
                }
            };
            self.fields.push(field);
        }
        if self.fields.len() > FIELDS_MAX {
            return Err(bad(format!("there are more than {FIELDS_MAX} [fields]")));
        }
        Ok(())
    }

    /// The values of a document, each in a list.
    pub(super) fn of(&self, document: &Document) -> Option<Json> {
        let mut out = Object::new();
        for (pattern, format) in &self.fields {
            if fits(pattern, names::TIME) {
                let time = match format {
                    Some(format) => format.write(document.key.time.0, &jiff::tz::TimeZone::UTC),
                    None => iso(document.key.time),
                };
                out.insert(names::TIME.to_owned(), Json::from(vec![time]));
            }
            for (name, value) in &document.fields {
                let short = pattern.strip_suffix(".keyword");
                let shown = match short {
                    _ if fits(pattern, name) => name,
                    Some(short) if short == name => pattern,
                    _ => continue,
                };
                let mut values = Vec::new();
                push_values(value, &mut values);
                if !values.is_empty() {
                    out.insert(shown.clone(), Json::from(values));
                }
            }
        }
        (!out.is_empty()).then_some(Json::Object(out))
    }
}

/// The values of a field: those of a list, and of lists within it, each.
fn push_values(value: &Json, values: &mut Vec<Json>) {
    match value {
        Json::Null => {}
        Json::Array(elements) => elements
            .iter()
            .for_each(|element| push_values(element, values)),
        value => values.push(value.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ROW: &str = r#"{"_time":"2026-11-21T10:00:00.000000000Z","_id":"01M80EWMK404HVRCR54AQ55Q0V","_msg":"hi","host.name":"w","app":"a","_index":"logs-a","_line":"{\"message\":\"hi\",\"host\":{\"name\":\"w\",\"os\":{\"v\":1}}}"}"#;

    fn document_of(row: &str) -> Document {
        Document::of(&Row::from_json(row.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn rows_are_documents() {
        let document = document_of(ROW);
        assert_eq!(document.index, "logs-a");
        let source = SourceFilter::read(None).unwrap().source(&document).unwrap();
        let expected = json!({
            "@timestamp": "2026-11-21T10:00:00.000Z", "message": "hi", "app": "a",
            "host": {"name": "w", "os": {"v": 1}},
        });
        assert_eq!(source, expected);
        let plain = r#"{"_time":"2026-11-21T10:00:00.000000001Z","_id":"01M80EWMK404HVRCR54AQ55Q0V","_msg":"x y","a":1,"_line":"x y"}"#;
        let document = document_of(plain);
        assert_eq!(document.index, "logpond");
        let source = SourceFilter::read(None).unwrap().source(&document).unwrap();
        assert_eq!(
            source,
            json!({"@timestamp": "2026-11-21T10:00:00.000000001Z", "message": "x y", "a": 1})
        );
    }

    #[test]
    fn an_object_hides_no_value_of_its_name() {
        let row = r#"{"_time":"2026-11-21T10:00:00.000000000Z","_id":"01M80EWMK404HVRCR54AQ55Q0V","a":7,"a.x":1,"a.y.z":2,"b":null,"b.x":3,"_line":"{\"a\":7,\"a\":{\"x\":1,\"y\":{\"z\":2}},\"b\":null,\"b\":{\"x\":3}}"}"#;
        let document = document_of(row);
        let source = SourceFilter::read(None).unwrap().source(&document).unwrap();
        let expected = json!({
            "@timestamp": "2026-11-21T10:00:00.000Z", "a": 7, "a.x": 1, "a.y.z": 2, "b": {"x": 3},
        });
        assert_eq!(source, expected);
    }

    #[test]
    fn labels_hide_neither_the_time_nor_the_message() {
        let row = r#"{"_time":"2026-11-21T10:00:00.000000000Z","_id":"01M80EWMK404HVRCR54AQ55Q0V","_msg":"real","message":"declared","@timestamp":"1999","_line":"real"}"#;
        let document = document_of(row);
        let source = SourceFilter::read(None).unwrap().source(&document).unwrap();
        let expected = json!({
            "@timestamp": "2026-11-21T10:00:00.000Z", "message": "real",
            "message@label": "declared", "@timestamp@label": "1999",
        });
        assert_eq!(source, expected);
        assert_eq!(names::of_record("message@label"), "message");
        assert_eq!(names::of_record("@timestamp@label.keyword"), "@timestamp");
    }

    #[test]
    fn members_hide_neither_the_time_nor_the_message() {
        let row = r#"{"_time":"2026-11-21T10:00:00.000000000Z","_id":"01M80EWMK404HVRCR54AQ55Q0V","_msg":"real","message":"own","@timestamp":"1999","_line":"{\"_msg\":\"real\",\"message\":\"own\",\"@timestamp\":\"1999\"}"}"#;
        let document = document_of(row);
        let source = SourceFilter::read(None).unwrap().source(&document).unwrap();
        let shown = ["@timestamp", "message", "message@label", "@timestamp@label"];
        let shown = shown.map(|name| source[name].as_str().unwrap().to_owned());
        let expected = ["2026-11-21T10:00:00.000Z", "real", "own", "1999"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn sources_are_filtered() {
        let document = document_of(ROW);
        let table = [
            (
                json!(true),
                Some(
                    json!({"@timestamp": "2026-11-21T10:00:00.000Z", "message": "hi", "app": "a", "host": {"name": "w", "os": {"v": 1}}}),
                ),
            ),
            (json!(false), None),
            (
                json!("host"),
                Some(json!({"host": {"name": "w", "os": {"v": 1}}})),
            ),
            (
                json!(["host.n*", "app"]),
                Some(json!({"host": {"name": "w"}, "app": "a"})),
            ),
            (
                json!({"excludes": ["host.os", "@*"]}),
                Some(json!({"message": "hi", "app": "a", "host": {"name": "w"}})),
            ),
            (
                json!([]),
                Some(
                    json!({"@timestamp": "2026-11-21T10:00:00.000Z", "message": "hi", "app": "a", "host": {"name": "w", "os": {"v": 1}}}),
                ),
            ),
        ];
        for (given, expected) in table {
            let filter = SourceFilter::read(Some(&given)).unwrap();
            assert_eq!(filter.source(&document), expected, "{given}");
        }
        assert!(SourceFilter::read(Some(&json!({"x": 1}))).is_err());
    }

    #[test]
    fn fields_are_lists() {
        let document = document_of(ROW);
        let mut fields = FieldList::default();
        let given =
            json!(["host.*", {"field": "@timestamp", "format": "epoch_millis"}, "app.keyword"]);
        fields.add(Some(&given)).unwrap();
        let expected =
            json!({"host.name": ["w"], "@timestamp": ["1795255200000"], "app.keyword": ["a"]});
        assert_eq!(fields.of(&document), Some(expected));
        assert_eq!(FieldList::default().of(&document), None);
    }
}

//! The bulk API of Elasticsearch: lines of an action and of a document, in turns.
//!
//! ```text
//! {"create":{"_index":"logs-app"}}
//! {"@timestamp":"2026-11-22T10:00:00Z","message":"started"}
//! ```
//!
//! Documents are JSON records as they are; the index that they name is the field `_index`, an id that they
//! are given `_document_id`. Those of the Elastic Common Schema name their machine `host.name`, which is the
//! field `hostname`, too. Logs are never changed: `update` and `delete` are refused one by one.
//!
//! Invariants: there is one item for each action, in order; a bad document takes no other with it,
//! a bad action line takes all, and nothing was taken then.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use logpond_record::limits::LINE_BYTES_MAX;
use logpond_record::{Batch, EntryKind, Labels, Value, write_json_string};
use memchr::{memchr, memmem};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use xxhash_rust::xxh3::{Xxh3, xxh3_128_with_seed};

use super::members::text_of;
use super::{Lines, RejectReason, TooLarge, check, without_cr};

/// The most actions of one request: a thousand times what clients send, and what an answer may name
/// one by one.
pub const ACTIONS_MAX: usize = 262_144;

/// The field that names the index of a document.
const INDEX_FIELD: &str = "_index";

/// The field with the id that its sender gave a document; `_id` is that of a record.
const ID_FIELD: &str = "_document_id";

/// The longest id that Elasticsearch takes, in bytes.
pub const ID_BYTES_MAX: usize = 512;

const HOSTNAME: &str = "hostname";

/// What is to be done with a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Store it.
    Create,
    /// Store it; of one that is there already, replace it. Without ids that is the same.
    Index,
    /// Change it.
    Update,
    /// Remove it.
    Delete,
}

impl Action {
    /// The name in requests and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Create => "create",
            Action::Index => "index",
            Action::Update => "update",
            Action::Delete => "delete",
        }
    }
}

/// Why a document is not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemError {
    /// It is to be changed or removed.
    Unsupported(Action),
    /// It is none that can be stored.
    Document(RejectReason),
}

impl fmt::Display for ItemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ItemError::Unsupported(action) => write!(
                f,
                "{} is not supported: logs are stored and never changed",
                action.as_str()
            ),
            ItemError::Document(reason) => write!(f, "{reason}"),
        }
    }
}

/// What became of one action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The action.
    pub action: Action,
    /// The index that it named, or that of the request. Actions behind each other share it.
    pub index: Arc<str>,
    /// The id that it gave. A document that was stored without one has one made of its bytes: typed
    /// clients want one, and the same document sent again has the same.
    pub id: Option<Box<str>>,
    /// Success if the document is in the batch. The error is in a box, because a request may have very many items.
    pub outcome: Result<(), Box<ItemError>>,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bulk {
    /// The documents to store.
    pub batch: Batch,
    /// One for each action.
    pub items: Vec<Item>,
    /// The identity of the documents to store, if all of them have ids, or times and one of them a time
    /// that is finer than a second: a hash of ids, indexes and what they say. The same documents sent again
    /// have the same.
    pub identity: Option<u128>,
}

/// Why a request is refused as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BulkError {
    /// A line that is no action.
    Action {
        /// Number of the line, counted from 1.
        line: usize,
        /// Why, in words.
        reason: String,
    },
    /// The document of the last action is missing.
    NoDocument {
        /// Number of the action's line, counted from 1.
        line: usize,
    },
    /// An action that names no index, in a request that names none.
    NoIndex {
        /// Number of the action's line, counted from 1.
        line: usize,
    },
    /// There is nothing in it.
    Empty,
    /// More than [`ACTIONS_MAX`] actions.
    TooMany,
    /// More than can be taken at once.
    TooLarge(TooLarge),
}

impl fmt::Display for BulkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BulkError::Action { line, reason } => {
                write!(f, "Malformed action/metadata line [{line}]: {reason}")
            }
            BulkError::NoDocument { line } => {
                write!(f, "the action on line [{line}] has no document behind it")
            }
            BulkError::NoIndex { line } => write!(f, "the action on line [{line}] names no index"),
            BulkError::Empty => f.write_str("request body is required"),
            BulkError::TooMany => write!(
                f,
                "more than {ACTIONS_MAX} actions; send them in several requests"
            ),
            BulkError::TooLarge(error) => write!(f, "{error}"),
        }
    }
}

/// The line of an action. Members beside the action are no business of ours.
#[derive(Deserialize)]
struct ActionLine<'a> {
    #[serde(borrow)]
    create: Option<Meta<'a>>,
    #[serde(borrow)]
    index: Option<Meta<'a>>,
    #[serde(borrow)]
    update: Option<Meta<'a>>,
    #[serde(borrow)]
    delete: Option<Meta<'a>>,
}

/// The names that a request has in its path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Names<'a> {
    /// The index of documents that name none.
    pub index: Option<&'a str>,
    /// The id of the one document.
    pub id: Option<&'a str>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(rename = "_index", borrow)]
    index: Option<Cow<'a, str>>,
    #[serde(rename = "_id", borrow)]
    id: Option<&'a RawValue>,
}

/// Decodes a request; documents longer than `line_bytes_max` are refused one by one.
///
/// # Errors
/// See [`BulkError`].
pub fn decode(
    body: &[u8],
    names: Names<'_>,
    labels: Labels,
    line_bytes_max: usize,
) -> Result<Bulk, BulkError> {
    let line_bytes_max = line_bytes_max.min(LINE_BYTES_MAX);
    let mut bulk = Bulk {
        batch: Batch::new(EntryKind::Enveloped, labels),
        items: Vec::new(),
        identity: None,
    };
    let mut identities = Identities::default();
    let mut lines = (1..).zip(Lines(body).map(without_cr));
    while let Some((line, text)) = lines.find(|(_, text)| !text.trim_ascii().is_empty()) {
        if bulk.items.len() == ACTIONS_MAX {
            return Err(BulkError::TooMany);
        }
        let (action, meta) = read_action(line, text)?;
        let own = meta.index.as_deref().or(names.index);
        let own = own.ok_or(BulkError::NoIndex { line })?;
        let document = match action {
            Action::Delete => None,
            _ => Some(lines.next().ok_or(BulkError::NoDocument { line })?),
        };
        let mut id = meta.id.and_then(id_of);
        let outcome = match (action, document) {
            (Action::Create | Action::Index, Some((_, document))) => {
                let named = (own, id.as_deref());
                let stored = store(document, named, line_bytes_max, &mut bulk.batch);
                if stored.is_ok() {
                    identities.add(named, document);
                    id.get_or_insert_with(|| Cow::Owned(made_id(line, document)));
                }
                stored
            }
            _ => Err(ItemError::Unsupported(action)),
        };
        TooLarge::check(&bulk.batch).map_err(BulkError::TooLarge)?;
        let before = bulk.items.last().map(|item| &item.index);
        let index = match before.filter(|before| &***before == own) {
            Some(before) => Arc::clone(before),
            None => own.into(),
        };
        bulk.items.push(Item {
            action,
            index,
            id: id.map(Box::from),
            outcome: outcome.map_err(Box::new),
        });
    }
    bulk.identity = identities.identity();
    if bulk.items.is_empty() {
        Err(BulkError::Empty)
    } else {
        Ok(bulk)
    }
}

/// Decodes a request of one document, as one action. Its path may name its id.
///
/// # Errors
/// See [`BulkError`].
pub fn decode_document(
    body: &[u8],
    names: Names<'_>,
    labels: Labels,
    line_bytes_max: usize,
) -> Result<Bulk, BulkError> {
    let mut action = b"{\"create\":{".to_vec();
    if let Some(id) = names.id {
        action.extend_from_slice(b"\"_id\":");
        write_json_string(id, &mut action);
    }
    action.extend_from_slice(b"}}\n");
    // A line end within a JSON text is white space.
    let document: Vec<u8> = body.iter().copied().filter(|byte| *byte != b'\n').collect();
    let lines = [&action, &document, b"\n".as_slice()].concat();
    decode(&lines, names, labels, line_bytes_max)
}

fn read_action(line: usize, text: &[u8]) -> Result<(Action, Meta<'_>), BulkError> {
    let malformed = |reason: String| BulkError::Action { line, reason };
    let read: ActionLine<'_> =
        serde_json::from_slice(text).map_err(|error| malformed(error.to_string()))?;
    let given = [
        (Action::Create, read.create),
        (Action::Index, read.index),
        (Action::Update, read.update),
        (Action::Delete, read.delete),
    ];
    let mut given = given
        .into_iter()
        .filter_map(|(action, meta)| Some((action, meta?)));
    match (given.next(), given.next()) {
        (Some(one), None) => Ok(one),
        _ => Err(malformed(
            "expected one of create, index, update and delete".to_owned(),
        )),
    }
}

/// The id of a document without one, of 22 letters, digits, `-` and `_`.
fn made_id(line: usize, document: &[u8]) -> String {
    let hash = xxh3_128_with_seed(document, line as u64);
    URL_SAFE_NO_PAD.encode(hash.to_be_bytes())
}

/// The name of a document's time, as it is written.
const TIME_KEY: &[u8] = b"\"@timestamp\"";

/// The longest text of a time, such as `2026-03-02T00:00:00.123456789+01:00`, with its quotation mark.
const TIME_BYTES_MAX: usize = 40;

/// The identities of the documents of a request.
#[derive(Default)]
struct Identities {
    hash: Xxh3,
    documents: usize,
    /// True if one has neither an id nor a time.
    has_nameless: bool,
    /// True if one has an id or a time that is finer than a second.
    has_telling: bool,
}

impl Identities {
    fn add(&mut self, (index, id): (&str, Option<&str>), document: &[u8]) {
        self.documents += 1;
        let time = time_of(document);
        self.has_nameless |= id.is_none() && time.is_none();
        self.has_telling |= id.is_some() || time.is_some_and(has_fraction);
        for part in [
            index.as_bytes(),
            id.unwrap_or_default().as_bytes(),
            document,
        ] {
            self.hash.update(&(part.len() as u64).to_le_bytes());
            self.hash.update(part);
        }
    }

    fn identity(&self) -> Option<u128> {
        let is_told = self.documents > 0 && !self.has_nameless && self.has_telling;
        is_told.then(|| self.hash.digest128())
    }
}

/// True if a time is finer than a second: of `…:00.000Z` nothing tells two records apart.
fn has_fraction(time: &[u8]) -> bool {
    let fraction = time.iter().skip_while(|byte| **byte != b'.').skip(1);
    let mut digits = fraction.take_while(|byte| byte.is_ascii_digit());
    digits.any(|digit| *digit != b'0')
}

/// The text of a document's time, roughly: documents that have it elsewhere are not told from others by it.
fn time_of(document: &[u8]) -> Option<&[u8]> {
    let at = memmem::find(document, TIME_KEY)? + TIME_KEY.len();
    let rest = document[at..].trim_ascii_start().strip_prefix(b":")?;
    let text = rest.trim_ascii_start().strip_prefix(b"\"")?;
    let end = memchr(b'"', &text[..text.len().min(TIME_BYTES_MAX)])?;
    Some(&text[..end])
}

/// Stores a document of an index, with the id that it is given.
fn store(
    document: &[u8],
    (index, id): (&str, Option<&str>),
    line_bytes_max: usize,
    batch: &mut Batch,
) -> Result<(), ItemError> {
    check(EntryKind::Json, document, line_bytes_max).map_err(ItemError::Document)?;
    let index = (INDEX_FIELD, Value::Str(Cow::Borrowed(index)));
    let id = id.map(|id| (ID_FIELD, Value::Str(Cow::Borrowed(id))));
    let host = host_of(document).map(|host| (HOSTNAME, Value::Str(host)));
    let fields: Vec<_> = [Some(index), id, host].into_iter().flatten().collect();
    let fields = fields.iter().map(|(name, value)| (*name, value));
    batch.push_enveloped(EntryKind::Json, None, fields, document);
    Ok(())
}

/// The text of an id, which may be a number.
fn id_of(id: &RawValue) -> Option<Cow<'_, str>> {
    text_of(id).filter(|id| !id.is_empty() && id.len() <= ID_BYTES_MAX)
}

/// What a document says of its machine.
#[derive(Deserialize)]
struct Ecs<'a> {
    #[serde(borrow)]
    host: Option<&'a RawValue>,
    #[serde(rename = "host.name", borrow)]
    host_name: Option<&'a RawValue>,
    hostname: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Host<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
}

/// The name of the machine that a document comes from, where it says no `hostname` itself.
fn host_of(document: &[u8]) -> Option<Cow<'_, str>> {
    // Few documents that have none are read for it.
    memchr::memmem::find(document, b"\"host")?;
    let ecs: Ecs<'_> = serde_json::from_slice(document).ok()?;
    fn in_object(host: &RawValue) -> Option<&RawValue> {
        serde_json::from_str::<Host<'_>>(host.get()).ok()?.name
    }
    let name = ecs.host_name.or_else(|| in_object(ecs.host?));
    let name = name.filter(|name| ecs.hostname.is_none() && name.get().starts_with('"'))?;
    text_of(name).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use logpond_record::line_of;

    use super::*;

    const IN_A: Names<'_> = Names {
        index: Some("a"),
        id: None,
    };

    fn read(body: &str, index: Option<&str>) -> Result<Bulk, BulkError> {
        let names = Names { index, id: None };
        decode(body.as_bytes(), names, Labels::new(), 64)
    }

    /// Each stored document with its index.
    fn stored(bulk: &Bulk) -> Vec<String> {
        let each = bulk.batch.iter().map(|held| {
            let (kind, envelope, line) = line_of(bulk.batch.kind, held);
            assert_eq!((kind, envelope.time), (EntryKind::Json, None));
            let fields: Vec<String> = envelope
                .fields()
                .map(|(name, value)| format!("{name}={}", value.to_text().escape_ascii()))
                .collect();
            format!("{} {}", fields.join(" "), String::from_utf8_lossy(line))
        });
        each.collect()
    }

    #[test]
    fn actions_and_documents_take_turns() {
        let body = "{\"create\":{\"_index\":\"a\",\"_id\":\"x\",\"pipeline\":\"p\"}}\r\n{\"n\":1}\r\n\n\
                    {\"index\":{}}\n{\"n\":2}\n\
                    {\"delete\":{\"_index\":\"a\",\"_id\":7}}\n\
                    {\"update\":{\"_index\":\"a\",\"_id\":\"y\"}}\n{\"doc\":{}}\n\
                    { \"create\" : {} }\n[3]\n\
                    {\"create\":{}}\n{\"long\":\"01234567890123456789012345678901234567890123456789012345678\"}\n\
                    {\"create\":{}}\n{\"n\":4}";
        let bulk = read(body, Some("path")).unwrap();
        assert_eq!(
            stored(&bulk),
            [
                "_index=a _document_id=x {\"n\":1}",
                "_index=path {\"n\":2}",
                "_index=path {\"n\":4}"
            ]
        );
        let outcomes: Vec<_> = bulk
            .items
            .iter()
            .map(|item| {
                let outcome = match &item.outcome {
                    Ok(()) => "ok".to_owned(),
                    Err(error) => error.to_string(),
                };
                let id = item.id.as_deref().unwrap_or("-");
                let id = if id.len() == 22 { "made" } else { id };
                format!("{} {id} {outcome}", item.action.as_str())
            })
            .collect();
        assert_eq!(
            outcomes,
            [
                "create x ok",
                "index made ok",
                "delete 7 delete is not supported: logs are stored and never changed",
                "update y update is not supported: logs are stored and never changed",
                "create - not a JSON object: expected '{' at byte 0",
                "create - the line has 70 bytes, more than the limit of 64 bytes a line \
                 (line-bytes-max)",
                "create made ok",
            ]
        );
    }

    #[test]
    fn members_beside_an_action_do_no_harm() {
        let meta = r#"{"_index":"a","require_alias":false,"dynamic_templates":{"f":"t"},"x":[1]}"#;
        let body = format!("{{\"routing\":\"r\",\"index\":{meta},\"retry\":3}}\n{{\"n\":1}}\n");
        let bulk = decode(body.as_bytes(), Names::default(), Labels::new(), 1000).unwrap();
        assert_eq!(stored(&bulk), ["_index=a {\"n\":1}"]);
    }

    #[test]
    fn one_document_has_the_id_of_its_path_or_of_its_bytes() {
        let one = |id| {
            let names = Names {
                index: Some("a"),
                id,
            };
            decode_document(b"{\"n\":\n1}", names, Labels::new(), 100).unwrap()
        };
        let named = one(Some("a\"/é"));
        assert_eq!(
            stored(&named),
            ["_index=a _document_id=a\\\"/\\xc3\\xa9 {\"n\":1}"]
        );
        assert_eq!(named.items[0].id.as_deref(), Some("a\"/é"));
        let made = one(None);
        assert_eq!(stored(&made), ["_index=a {\"n\":1}"]);
        let id = made.items[0].id.as_deref().unwrap();
        assert_eq!(id.len(), 22);
        assert_eq!(one(None).items[0].id.as_deref(), Some(id));
    }

    #[test]
    fn ids_and_machines_are_fields() {
        let long = "i".repeat(ID_BYTES_MAX + 1);
        let table = [
            (r#""_id":7"#, "{}", "_document_id=7 "),
            (r#""_id":"a\u00e9""#, "{}", r"_document_id=a\xc3\xa9 "),
            (r#""_id":null"#, "{}", ""),
            (r#""_id":"""#, "{}", ""),
            (&format!(r#""_id":"{long}""#), "{}", ""),
            (
                "",
                r#"{"host":{"ip":["::1"],"name":"web-1"}}"#,
                "hostname=web-1 ",
            ),
            ("", r#"{"host.name":"web\n1"}"#, r"hostname=web\n1 "),
            ("", r#"{"host":{"name":"web-1"},"hostname":"own"}"#, ""),
            ("", r#"{"host":"shop.example.org"}"#, ""),
            ("", r#"{"host":{"name":7}}"#, ""),
            ("", r#"{"host":{"name":""}}"#, ""),
            ("", r#"{"host":{"ip":"::1"}}"#, ""),
            ("", r#"{"n":{"host":{"name":"inner"}}}"#, ""),
        ];
        for (meta, document, fields) in table {
            let body = format!("{{\"create\":{{{meta}}}}}\n{document}\n");
            let bulk = decode(body.as_bytes(), IN_A, Labels::new(), 1000).unwrap();
            assert_eq!(stored(&bulk), [format!("_index=a {fields}{document}")]);
        }
    }

    #[test]
    fn documents_with_ids_are_told_from_others() {
        let of = |body: &str| read(body, Some("a")).unwrap().identity;
        let one = "{\"create\":{\"_id\":\"1\"}}\n{\"n\":1}\n";
        let two = "{\"index\":{\"_id\":\"2\"}}\n{\"n\":2}\n";
        let both = of(&format!("{one}{two}"));
        assert!(both.is_some());
        assert_eq!(both, of(&format!("{one}{two}")));
        let others = [
            of(one),
            of(&format!("{two}{one}")),
            of(&format!("{}{two}", one.replace("\"n\":1", "\"n\":3"))),
            of(&format!("{}{two}", one.replace("\"1\"}", "\"11\"}"))),
            of(&format!(
                "{}{two}",
                one.replace("\"_id\"", "\"_index\":\"b\",\"_id\"")
            )),
        ];
        assert!(others.iter().all(|other| other.is_some() && *other != both));
        // What is refused is not stored again either.
        assert_eq!(
            of(one),
            of(&format!("{one}{{\"create\":{{}}}}\nno document\n"))
        );
        let without = "{\"create\":{}}\n{\"n\":2}\n";
        assert_eq!(of(&format!("{one}{without}")), None);
        assert_eq!(of("{\"delete\":{\"_id\":\"1\"}}\n"), None);
        // Times tell documents apart, too, if they are fine enough.
        let timed = |time: &str| format!("{{\"create\":{{}}}}\n{{\"@timestamp\" : \"{time}\"}}\n");
        let fine = timed("2026-03-02T00:00:00.123Z");
        assert!(of(&fine).is_some() && of(&fine) == of(&fine));
        assert_ne!(of(&fine), of(&timed("2026-03-02T00:00:00.124Z")));
        let coarse = timed("2026-03-02T00:00:00Z");
        assert_eq!(of(&coarse), None);
        assert!(of(&format!("{coarse}{fine}")).is_some());
        assert!(of(&format!("{one}{fine}")).is_some());
        assert_eq!(of(&format!("{fine}{without}")), None);
    }

    #[test]
    fn a_bad_action_line_takes_all() {
        let good = "{\"create\":{\"_index\":\"a\"}}\n{}\n";
        let table = [
            ("", "request body is required"),
            ("\n\n", "request body is required"),
            (
                "{\"create\":{}}\n{}\n",
                "the action on line [1] names no index",
            ),
            (
                "{\"create\":{\"_index\":\"a\"}}\n",
                "the action on line [1] has no document behind it",
            ),
        ];
        for (body, error) in table {
            assert_eq!(read(body, None).unwrap_err().to_string(), error);
        }
        for bad in [
            "{\"n\":1}",
            "[]",
            "x",
            "{\"create\":{}",
            "{\"drop\":{}}",
            "{\"create\":{},\"index\":{}}",
        ] {
            let error = read(&format!("{good}{bad}\n{{}}\n"), None).unwrap_err();
            let text = error.to_string();
            assert!(
                text.starts_with("Malformed action/metadata line [3]"),
                "{text}"
            );
        }
    }
}

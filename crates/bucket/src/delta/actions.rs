//! The lines of the log, as JSON. Only what this program writes is read: others may read the
//! table, and not write to it.

use std::sync::Arc;

use logpond_cluster::Day;
use logpond_cluster::chain::{parse_segment_name, segment_name};
use logpond_record::Id;
use serde_json::{Value, json};

use super::columns::Columns;

/// Who wants to write must know of this; nobody else does, so that nobody else writes, or removes what the
/// table does not list: the chains lie below the same prefix.
const WRITER_FEATURE: &str = "logpond";

/// What the names of applications begin with whose transactions are the numbers of heads.
const HEADS: &str = "logpond/";

/// The tag with a segment's columns.
const COLUMNS_TAG: &str = "logpond.columns";

/// A segment of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AddAction {
    /// Length of the object.
    pub(super) bytes: u64,
    /// Its rows.
    pub(super) rows: u64,
    /// When it came into the table, in milliseconds since 1970.
    pub(super) since_ms: i64,
    /// See [`super::stats`].
    pub(super) stats: String,
    /// The columns of its fields.
    pub(super) columns: Arc<Columns>,
}

/// What the table is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Metadata {
    /// Random, and the same for ever.
    pub(super) id: u128,
    /// Its columns.
    pub(super) schema: String,
    /// When it was made, in milliseconds since 1970.
    pub(super) created_ms: i64,
}

/// A line of the log, but for the first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Protocol,
    Metadata(Metadata),
    /// What is listed of a day is what the head of this number lists.
    Head {
        day: Day,
        number: u64,
        since_ms: i64,
    },
    Add(Day, Id, AddAction),
    Remove {
        day: Day,
        id: Id,
        since_ms: i64,
    },
}

/// A version on its way into the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Commit {
    /// Random.
    pub(super) nonce: u128,
    /// The nonce of the version that it follows; 0 of the first one.
    pub(super) parent: u128,
    /// When it was made, in milliseconds since 1970.
    pub(super) at_ms: i64,
    pub(super) actions: Vec<Action>,
}

impl Commit {
    /// As the format has it: a JSON object a line.
    pub(super) fn to_text(&self) -> String {
        let info = json!({ "commitInfo": {
            "timestamp": self.at_ms,
            "operation": "WRITE",
            "operationParameters": {},
            "engineInfo": "logpond",
            "nonce": format!("{:032x}", self.nonce),
            "parent": format!("{:032x}", self.parent),
        }});
        let mut text = format!("{info}\n");
        for action in &self.actions {
            text.push_str(&action.to_json().to_string());
            text.push('\n');
        }
        text
    }

    /// Reads what [`Commit::to_text`] wrote; `None` for all else.
    pub(super) fn from_text(text: &[u8]) -> Option<Commit> {
        let mut lines = text
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        let first: Value = serde_json::from_slice(lines.next()?).ok()?;
        let info = first.get("commitInfo")?;
        let number = |key: &str| u128::from_str_radix(info.get(key)?.as_str()?, 16).ok();
        let read = |line| Action::from_json(&serde_json::from_slice(line).ok()?);
        Some(Commit {
            nonce: number("nonce")?,
            parent: number("parent")?,
            at_ms: info.get("timestamp")?.as_i64()?,
            actions: lines.map(read).collect::<Option<_>>()?,
        })
    }
}

impl Action {
    pub(super) fn to_json(&self) -> Value {
        match self {
            Action::Protocol => json!({ "protocol": {
                "minReaderVersion": 1,
                "minWriterVersion": 7,
                "writerFeatures": [WRITER_FEATURE],
            }}),
            Action::Metadata(metadata) => metadata_to_json(metadata),
            Action::Head {
                day,
                number,
                since_ms,
            } => json!({ "txn": {
                "appId": format!("{HEADS}{day}"),
                "version": number,
                "lastUpdated": since_ms,
            }}),
            Action::Add(day, id, added) => json!({ "add": {
                "path": segment_name(*day, *id),
                "partitionValues": {},
                "size": added.bytes,
                "modificationTime": added.since_ms,
                "dataChange": true,
                "stats": added.stats,
                "tags": { COLUMNS_TAG: added.columns.to_tag() },
            }}),
            Action::Remove { day, id, since_ms } => json!({ "remove": {
                "path": segment_name(*day, *id),
                "deletionTimestamp": since_ms,
                "dataChange": true,
            }}),
        }
    }

    /// Reads what [`Action::to_json`] wrote; `None` for all else.
    pub(super) fn from_json(value: &Value) -> Option<Action> {
        let (key, of) = value.as_object()?.iter().next()?;
        let milliseconds = |key: &str| of.get(key)?.as_i64();
        let segment = || parse_segment_name(of.get("path")?.as_str()?);
        match key.as_str() {
            "protocol" => is_ours(of).then_some(Action::Protocol),
            "metaData" => read_metadata(of).map(Action::Metadata),
            "txn" => Some(Action::Head {
                day: of
                    .get("appId")?
                    .as_str()?
                    .strip_prefix(HEADS)?
                    .parse()
                    .ok()?,
                number: of.get("version")?.as_u64()?,
                since_ms: milliseconds("lastUpdated")?,
            }),
            "add" => {
                let (day, id) = segment()?;
                Some(Action::Add(day, id, read_added(of)?))
            }
            "remove" => {
                let (day, id) = segment()?;
                let since_ms = milliseconds("deletionTimestamp")?;
                Some(Action::Remove { day, id, since_ms })
            }
            _ => None,
        }
    }
}

fn is_ours(protocol: &Value) -> bool {
    let is = |key: &str, expected: Value| protocol.get(key) == Some(&expected);
    is("minReaderVersion", 1.into())
        && is("minWriterVersion", 7.into())
        && is("writerFeatures", json!([WRITER_FEATURE]))
}

fn metadata_to_json(metadata: &Metadata) -> Value {
    json!({ "metaData": {
        "id": uuid(metadata.id),
        "name": "logs",
        "format": { "provider": "parquet", "options": {} },
        "schemaString": metadata.schema,
        "partitionColumns": [],
        // As long as the bucket keeps what was replaced.
        "configuration": { "delta.deletedFileRetentionDuration": "interval 1 days" },
        "createdTime": metadata.created_ms,
    }})
}

fn read_metadata(of: &Value) -> Option<Metadata> {
    let id = of.get("id")?.as_str()?.replace('-', "");
    Some(Metadata {
        id: u128::from_str_radix(&id, 16).ok()?,
        schema: of.get("schemaString")?.as_str()?.to_owned(),
        created_ms: of.get("createdTime")?.as_i64()?,
    })
}

fn read_added(of: &Value) -> Option<AddAction> {
    let stats = of.get("stats")?.as_str()?;
    let numbers: Value = serde_json::from_str(stats).ok()?;
    let tag = of.get("tags")?.get(COLUMNS_TAG)?.as_str()?;
    Some(AddAction {
        bytes: of.get("size")?.as_u64()?,
        rows: numbers.get("numRecords")?.as_u64()?,
        since_ms: of.get("modificationTime")?.as_i64()?,
        stats: stats.to_owned(),
        columns: Arc::new(Columns::from_tag(tag)?),
    })
}

/// 128 random bits as a UUID.
pub(super) fn random_id(bits: u128) -> u128 {
    let version = (bits & !(0xf << 76)) | (4 << 76);
    (version & !(0b11 << 62)) | (0b10 << 62)
}

fn uuid(id: u128) -> String {
    let hex = format!("{id:032x}");
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-")
}

//! The table under writers that race, are behind, lose replies, come late and start anew.

mod model;

use std::sync::Arc;

use bytes::Bytes;
use logpond_cluster::Day;
use logpond_cluster::chain::SegmentEntry;
use logpond_record::{Id, Incarnation, SourceId, Timestamp};
use logpond_segment::rows::{ColumnSpec, ColumnType, Schema};
use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::Type;

use super::actions::{Action, AddAction, Commit, Metadata, random_id};
use super::checkpoint;
use super::columns::{Columns, Kind};
use super::names::LogName;
use super::schema::{COLUMNS_MAX, FIXED, TableSchema};
use super::stats::stats;

const NOON: Timestamp = Timestamp(1_763_899_200_000_000_000);

fn columns(list: &[(&str, ColumnType)]) -> Columns {
    let columns = list.iter().map(|(name, kind)| ColumnSpec {
        name: (*name).into(),
        kind: *kind,
    });
    Columns::from(&Schema {
        columns: columns.collect(),
    })
}

fn listed(id: u128, received: Timestamp, sequences: impl IntoIterator<Item = u64>) -> SegmentEntry {
    let source = |sequence| SourceId {
        incarnation: Incarnation(7),
        sequence,
    };
    SegmentEntry {
        id: Id(id),
        bytes: 1000,
        index_from: 900,
        rows: 10,
        line_bytes: 5000,
        time: (received, received),
        received: (received, received),
        cold: false,
        sources: sequences.into_iter().map(source).collect(),
    }
}

fn added() -> AddAction {
    AddAction {
        bytes: 1000,
        rows: 10,
        since_ms: 1_763_899_200_123,
        stats: stats(&listed(5, NOON, [1])),
        columns: Arc::new(columns(&[
            ("status", ColumnType::Int),
            ("took", ColumnType::Decimal(3)),
            ("a \"quoted\" name", ColumnType::Json),
        ])),
    }
}

/// One of each line.
fn all_actions() -> Vec<Action> {
    let (day, since_ms) = (Day::of(NOON), 1_763_899_200_123);
    let schema = TableSchema::of([(&*added().columns, 10)].into_iter());
    vec![
        Action::Protocol,
        Action::Metadata(Metadata {
            id: random_id(0xfeed),
            schema: schema.text,
            created_ms: since_ms,
        }),
        Action::Add(day, Id(5), added()),
        Action::Remove {
            day,
            id: Id(3),
            since_ms,
        },
        Action::Head {
            day,
            number: 17,
            since_ms,
        },
    ]
}

#[test]
fn the_format_is_that_of_the_golden_file() {
    let commit = Commit {
        nonce: 0xfeed,
        parent: 0xbee,
        at_ms: 1_763_899_200_123,
        actions: all_actions(),
    };
    let golden = include_str!("../../../../testdata/bucket/table-v1.json");
    assert_eq!(commit.to_text(), golden);
    assert_eq!(Commit::from_text(golden.as_bytes()), Some(commit));
}

#[test]
fn a_checkpoint_of_an_earlier_build_is_read() {
    let golden = include_bytes!("../../../../testdata/bucket/table-v1.checkpoint.parquet");
    let read = checkpoint::read(Bytes::from_static(golden)).unwrap();
    assert_eq!(read, Some(all_actions()));
}

#[test]
fn checkpoints_come_back() {
    let mut actions = all_actions();
    let empty = AddAction {
        columns: Arc::default(),
        ..added()
    };
    actions.extend((10..5000).map(|id| Action::Add(Day::of(NOON), Id(id), empty.clone())));
    let file = checkpoint::write(&actions).unwrap();
    assert_eq!(checkpoint::read(Bytes::from(file)).unwrap(), Some(actions));
    let none = checkpoint::read(Bytes::from(checkpoint::write(&[]).unwrap()));
    assert_eq!(none.unwrap(), Some(Vec::new()));
    assert!(checkpoint::read(Bytes::from_static(b"PAR1 or not")).is_err());
}

#[test]
fn what_others_write_is_refused() {
    let golden = include_str!("../../../../testdata/bucket/table-v1.json");
    for (part, other) in [
        ("\"minReaderVersion\":1", "\"minReaderVersion\":3"),
        ("[\"logpond\"]", "[\"logpond\",\"rowTracking\"]"),
        ("segments/2025-11-23/", "part-0000/"),
        ("logpond/2025-11-23", "spark"),
        ("\"remove\"", "\"cdc\""),
        ("\"parent\"", "\"other\""),
        ("logpond.columns", "columns"),
    ] {
        let changed = golden.replace(part, other);
        assert_ne!(changed, golden, "{part}");
        assert_eq!(Commit::from_text(changed.as_bytes()), None, "{other}");
    }
}

#[test]
fn names_come_back() {
    let names = [
        (LogName::Commit(17), "_delta_log/00000000000000000017.json"),
        (
            LogName::Checkpoint(17),
            "_delta_log/00000000000000000017.checkpoint.parquet",
        ),
    ];
    for (name, text) in names {
        assert_eq!(name.to_string(), text);
        assert_eq!(LogName::parse(text), Some(name));
    }
    for other in [
        "_delta_log/17.json",
        "_delta_log/_last_checkpoint",
        "_delta_log/00000000000000000017.checkpoint.0000000001.0000000002.parquet",
        "00000000000000000017.json",
    ] {
        assert_eq!(LogName::parse(other), None, "{other}");
    }
}

/// The fields of a table of these segments, and how many are left out.
fn table_of(segments: &[(&Columns, u64)]) -> (Vec<String>, usize) {
    let schema = TableSchema::of(segments.iter().copied());
    let value: serde_json::Value = serde_json::from_str(&schema.text).unwrap();
    let fields = value["fields"].as_array().unwrap();
    let text = |field: &serde_json::Value| {
        let (name, kind) = (&field["name"], &field["type"]);
        format!("{} {}", name.as_str().unwrap(), kind.as_str().unwrap())
    };
    let fields = fields[FIXED.len()..].iter().map(text).collect();
    (fields, schema.left_out)
}

#[test]
fn columns_of_one_type_and_name_are_shown() {
    let one = columns(&[
        ("a.b", ColumnType::Bool),
        ("list", ColumnType::Json),
        ("ratio", ColumnType::Float),
        ("size", ColumnType::Int),
        ("status", ColumnType::Int),
        ("Took", ColumnType::Decimal(3)),
    ]);
    let shown = [
        "a.b boolean",
        "list string",
        "ratio double",
        "size long",
        "status long",
    ];
    let (fields, left_out) = table_of(&[(&one, 5)]);
    assert_eq!(fields[0], "Took decimal(18,3)");
    assert_eq!((&fields[1..], left_out), (&shown.map(String::from)[..], 0));
    let other = columns(&[
        ("list", ColumnType::Text),
        ("size", ColumnType::Decimal(0)),
        ("status", ColumnType::Int),
        ("took", ColumnType::Decimal(3)),
    ]);
    let (fields, left_out) = table_of(&[(&one, 5), (&other, 1)]);
    let shown = ["a.b boolean", "list string", "ratio double", "status long"];
    assert_eq!((fields, left_out), (shown.map(String::from).to_vec(), 2));
    let refused = columns(&[
        ("a b", ColumnType::Int),
        ("a(b)", ColumnType::Int),
        ("a=b", ColumnType::Int),
        ("a\tb", ColumnType::Int),
        ("_MORE", ColumnType::Int),
    ]);
    assert_eq!(table_of(&[(&refused, 1)]), (Vec::new(), 5));
}

#[test]
fn columns_with_few_rows_go_first() {
    let names: Vec<String> = (0..COLUMNS_MAX).map(|n| format!("f{n:04}")).collect();
    let many: Vec<(&str, ColumnType)> = names
        .iter()
        .map(|name| (&**name, ColumnType::Int))
        .collect();
    let (many, few) = (
        columns(&many),
        columns(&[("f0000", ColumnType::Int), ("rare", ColumnType::Int)]),
    );
    let (fields, left_out) = table_of(&[(&many, 100), (&few, 7)]);
    assert_eq!((fields.len(), left_out), (COLUMNS_MAX, 1));
    assert!(!fields.contains(&"rare long".to_owned()));
}

#[test]
fn times_are_rounded_outward() {
    let mut segment = listed(1, NOON, [1]);
    segment.time = (Timestamp(NOON.0 + 1_999_999), Timestamp(NOON.0 + 1_000_001));
    let text = stats(&segment);
    assert!(text.contains("\"minValues\":{\"_received\":\"2025-11-23T12:00:00.000Z\",\"_time\":\"2025-11-23T12:00:00.001Z\"}"), "{text}");
    assert!(
        text.contains("\"_time\":\"2025-11-23T12:00:00.002Z\"}"),
        "{text}"
    );
}

/// What a column of a file is to the table.
fn kind(column: &Type) -> Kind {
    let info = column.get_basic_info();
    let is_text = info.converted_type() == ConvertedType::UTF8;
    match (column.get_physical_type(), info.logical_type_ref()) {
        (Physical::INT64, Some(LogicalType::Timestamp(_))) => Kind::Time,
        (Physical::INT64, Some(LogicalType::Decimal(_))) => Kind::Decimal(column.get_scale() as u8),
        (Physical::INT64, None) => Kind::Int,
        (Physical::DOUBLE, None) => Kind::Float,
        (Physical::BOOLEAN, None) => Kind::Bool,
        (Physical::BYTE_ARRAY, _) if is_text => Kind::Text,
        (Physical::BYTE_ARRAY, None) => Kind::Bytes,
        other => panic!("{}: {other:?}", column.name()),
    }
}

#[test]
fn the_fixed_columns_are_those_of_segments() {
    let segment = include_bytes!("../../../../testdata/segment/v2.parquet");
    let reader = SerializedFileReader::new(Bytes::from_static(segment)).unwrap();
    let schema = reader.metadata().file_metadata().schema();
    let columns = schema.get_fields().iter();
    let found: Vec<(&str, Kind)> = columns.clone().map(|c| (c.name(), kind(c))).collect();
    assert_eq!(&found[..FIXED.len()], &FIXED);
    // The table has no templates: segments of the first version lack them.
    assert_eq!(found.last(), Some(&("_template", Kind::Text)));
    // All others are of fields, which rows may lack.
    let mut others = columns.skip(FIXED.len());
    assert!(others.all(|c| c.get_basic_info().repetition() == Repetition::OPTIONAL));
}

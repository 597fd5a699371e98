//! Checkpoints: lines of the log as rows of a Parquet file.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{
    Compression, ConvertedType, LogicalType, Repetition, Type as Physical, ZstdLevel,
};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::{Field, Row};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{Type, TypePtr};
use serde_json::{Map, Value};

use super::actions::Action;

/// The columns.
const SCHEMA: &str = "message checkpoint {
    optional group txn {
        optional binary appId (STRING);
        optional int64 version;
        optional int64 lastUpdated;
    }
    optional group add {
        optional binary path (STRING);
        optional group partitionValues (MAP) {
            repeated group key_value {
                required binary key (STRING);
                optional binary value (STRING);
            }
        }
        optional int64 size;
        optional int64 modificationTime;
        optional boolean dataChange;
        optional binary stats (STRING);
        optional group tags (MAP) {
            repeated group key_value {
                required binary key (STRING);
                optional binary value (STRING);
            }
        }
    }
    optional group remove {
        optional binary path (STRING);
        optional int64 deletionTimestamp;
        optional boolean dataChange;
    }
    optional group metaData {
        optional binary id (STRING);
        optional binary name (STRING);
        optional group format {
            optional binary provider (STRING);
            optional group options (MAP) {
                repeated group key_value {
                    required binary key (STRING);
                    optional binary value (STRING);
                }
            }
        }
        optional binary schemaString (STRING);
        optional group partitionColumns (LIST) {
            repeated group list {
                optional binary element (STRING);
            }
        }
        optional group configuration (MAP) {
            repeated group key_value {
                required binary key (STRING);
                optional binary value (STRING);
            }
        }
        optional int64 createdTime;
    }
    optional group protocol {
        optional int32 minReaderVersion;
        optional int32 minWriterVersion;
        optional group writerFeatures (LIST) {
            repeated group list {
                optional binary element (STRING);
            }
        }
    }
}";

/// Lines as a file.
///
/// # Errors
/// When the library fails; nothing of the input is a reason.
pub(super) fn write(actions: &[Action]) -> Result<Vec<u8>, ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut leaves = leaves(&schema);
    for action in actions {
        let line = action.to_json();
        let mut at = 0;
        for column in schema.get_fields() {
            at = shred(&mut leaves, at, column, line.get(column.name()), (0, 0));
        }
    }
    let level = ZstdLevel::try_new(3)?;
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(level));
    let mut file = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut file, schema, Arc::new(properties.build()))?;
    let mut group = writer.next_row_group()?;
    let mut leaves = leaves.into_iter();
    while let Some(mut column) = group.next_column()? {
        if let Some(leaf) = leaves.next() {
            leaf.write(column.untyped())?;
        }
        column.close()?;
    }
    group.close()?;
    writer.close()?;
    Ok(file)
}

/// Lines of a file; `None` if one is none that this program writes.
///
/// # Errors
/// When it is no Parquet, or damaged.
pub(super) fn read(file: Bytes) -> Result<Option<Vec<Action>>, ParquetError> {
    let reader = SerializedFileReader::new(file)?;
    let mut actions = Vec::new();
    for row in reader.get_row_iter(None)? {
        let Some(action) = Action::from_json(&row_to_json(&row?)) else {
            return Ok(None);
        };
        actions.push(action);
    }
    Ok(Some(actions))
}

/// A column without structure: its values, and how deep each of them is.
struct Leaf {
    values: Values,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
}

enum Values {
    Texts(Vec<ByteArray>),
    Longs(Vec<i64>),
    Ints(Vec<i32>),
    Bools(Vec<bool>),
}

impl Leaf {
    fn new(physical: Physical) -> Leaf {
        let values = match physical {
            Physical::INT64 => Values::Longs(Vec::new()),
            Physical::INT32 => Values::Ints(Vec::new()),
            Physical::BOOLEAN => Values::Bools(Vec::new()),
            _ => Values::Texts(Vec::new()),
        };
        Leaf {
            values,
            definitions: Vec::new(),
            repetitions: Vec::new(),
        }
    }

    fn push(&mut self, value: Option<&Value>, (definition, repetition): (i16, i16)) {
        self.definitions.push(definition);
        self.repetitions.push(repetition);
        let Some(value) = value else {
            return;
        };
        match &mut self.values {
            Values::Texts(texts) => texts.push(value.as_str().unwrap_or_default().into()),
            Values::Longs(longs) => longs.push(value.as_i64().unwrap_or(i64::MAX)),
            Values::Ints(ints) => {
                let int = value.as_i64().and_then(|long| i32::try_from(long).ok());
                ints.push(int.unwrap_or(i32::MAX));
            }
            Values::Bools(bools) => bools.push(value.as_bool().unwrap_or_default()),
        }
    }

    fn write(self, column: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = (Some(&self.definitions[..]), Some(&self.repetitions[..]));
        let written = match (column, &self.values) {
            (ColumnWriter::ByteArrayColumnWriter(w), Values::Texts(v)) => {
                w.write_batch(v, levels.0, levels.1)
            }
            (ColumnWriter::Int64ColumnWriter(w), Values::Longs(v)) => {
                w.write_batch(v, levels.0, levels.1)
            }
            (ColumnWriter::Int32ColumnWriter(w), Values::Ints(v)) => {
                w.write_batch(v, levels.0, levels.1)
            }
            (ColumnWriter::BoolColumnWriter(w), Values::Bools(v)) => {
                w.write_batch(v, levels.0, levels.1)
            }
            _ => Err(ParquetError::General("a column has another type".into())),
        };
        written.map(drop)
    }
}

/// The columns below a type, in the order of the file.
fn leaves(node: &Type) -> Vec<Leaf> {
    match node {
        Type::PrimitiveType { physical_type, .. } => vec![Leaf::new(*physical_type)],
        Type::GroupType { fields, .. } => fields.iter().flat_map(|field| leaves(field)).collect(),
    }
}

/// Puts a value, or that there is none, into the columns below a type, which begin at `at`; gives where those behind
/// it begin. `levels` are how much of what is above it is there, and in which list it is not the first.
fn shred(
    leaves: &mut [Leaf],
    at: usize,
    node: &TypePtr,
    value: Option<&Value>,
    levels: (i16, i16),
) -> usize {
    let value = value.filter(|value| !value.is_null());
    let (mut definition, repetition) = levels;
    if value.is_some() && node.get_basic_info().repetition() == Repetition::OPTIONAL {
        definition += 1;
    }
    if node.is_primitive() {
        leaves[at].push(value, (definition, repetition));
        return at + 1;
    }
    let Some(entries) = entries(node, value) else {
        return shred_all(leaves, at, node, value, (definition, repetition));
    };
    let repeated = &node.get_fields()[0];
    if entries.is_empty() {
        return shred_all(leaves, at, repeated, None, (definition, repetition));
    }
    let mut end = at;
    for (number, entry) in entries.iter().enumerate() {
        // Lists are in no other lists.
        let repetition = if number == 0 { repetition } else { 1 };
        end = shred_all(
            leaves,
            at,
            repeated,
            Some(entry),
            (definition + 1, repetition),
        );
    }
    end
}

fn shred_all(
    leaves: &mut [Leaf],
    at: usize,
    group: &TypePtr,
    value: Option<&Value>,
    levels: (i16, i16),
) -> usize {
    let fields = group.get_fields().iter();
    fields.fold(at, |at, field| {
        let below = value.and_then(|value| value.get(field.name()));
        shred(leaves, at, field, below, levels)
    })
}

/// The entries of a map or a list, as objects; `None` if the type is neither.
fn entries(node: &TypePtr, value: Option<&Value>) -> Option<Vec<Value>> {
    let info = node.get_basic_info();
    let is_map = info.logical_type_ref() == Some(&LogicalType::Map)
        || info.converted_type() == ConvertedType::MAP;
    let is_list = info.logical_type_ref() == Some(&LogicalType::List)
        || info.converted_type() == ConvertedType::LIST;
    let entry = |pairs: &[(&str, &Value)]| {
        let pairs = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).clone()));
        Value::Object(pairs.collect())
    };
    if is_map {
        let map = value.and_then(Value::as_object).into_iter().flatten();
        let entries =
            map.map(|(key, value)| entry(&[("key", &key.as_str().into()), ("value", value)]));
        return Some(entries.collect());
    }
    let list = value.and_then(Value::as_array).into_iter().flatten();
    is_list.then(|| list.map(|element| entry(&[("element", element)])).collect())
}

fn row_to_json(row: &Row) -> Value {
    let columns = row.get_column_iter();
    let values = columns.map(|(name, field)| (name.clone(), field_to_json(field)));
    Value::Object(values.filter(|(_, value)| !value.is_null()).collect())
}

fn field_to_json(field: &Field) -> Value {
    match field {
        Field::Bool(value) => (*value).into(),
        Field::Int(value) => (*value).into(),
        Field::Long(value) => (*value).into(),
        Field::Str(value) => value.clone().into(),
        Field::Group(row) => row_to_json(row),
        Field::ListInternal(list) => list.elements().iter().map(field_to_json).collect(),
        Field::MapInternal(map) => {
            let entries = map.entries().iter();
            let text = |key: &Field| field_to_json(key).as_str().unwrap_or_default().to_owned();
            Value::Object(Map::from_iter(
                entries.map(|(key, value)| (text(key), field_to_json(value))),
            ))
        }
        // None of the others is in the schema.
        _ => Value::Null,
    }
}

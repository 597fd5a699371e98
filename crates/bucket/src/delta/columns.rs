//! The columns that a segment has beside the fixed ones, with the types that the table knows.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use logpond_segment::rows::{ColumnType, Schema};
use serde_json::Value;

/// The type of a column in the table. Different types of segments may be one here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Text,
    Bytes,
    Int,
    Float,
    /// With so many decimals.
    Decimal(u8),
    Bool,
    Time,
}

/// The digits of a decimal.
const DECIMAL_DIGITS: u8 = 18;

impl From<ColumnType> for Kind {
    fn from(column: ColumnType) -> Kind {
        match column {
            ColumnType::Text | ColumnType::Json => Kind::Text,
            ColumnType::Bytes => Kind::Bytes,
            ColumnType::Int => Kind::Int,
            ColumnType::Float => Kind::Float,
            ColumnType::Decimal(scale) => Kind::Decimal(scale),
            ColumnType::Bool => Kind::Bool,
        }
    }
}

/// As the table's schema has it.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Text => f.write_str("string"),
            Kind::Bytes => f.write_str("binary"),
            Kind::Int => f.write_str("long"),
            Kind::Float => f.write_str("double"),
            Kind::Decimal(scale) => write!(f, "decimal({DECIMAL_DIGITS},{scale})"),
            Kind::Bool => f.write_str("boolean"),
            Kind::Time => f.write_str("timestamp"),
        }
    }
}

/// A text that is no type.
#[derive(Debug)]
pub(super) struct NoKind;

impl FromStr for Kind {
    type Err = NoKind;

    fn from_str(text: &str) -> Result<Kind, NoKind> {
        let simple = [
            Kind::Text,
            Kind::Bytes,
            Kind::Int,
            Kind::Float,
            Kind::Bool,
            Kind::Time,
        ];
        let decimals = (0..=DECIMAL_DIGITS).map(Kind::Decimal);
        let mut all = simple.into_iter().chain(decimals);
        all.find(|kind| kind.to_string() == text).ok_or(NoKind)
    }
}

/// The columns of fields that a segment has.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Columns(BTreeMap<Box<str>, Kind>);

impl Columns {
    /// The names and types, in the order of names.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Kind)> {
        self.0.iter().map(|(name, kind)| (&**name, *kind))
    }

    /// As one text: a JSON object of types, each with its names.
    pub(super) fn to_tag(&self) -> String {
        let mut kinds: BTreeMap<Kind, Vec<Value>> = BTreeMap::new();
        for (name, kind) in self.iter() {
            kinds.entry(kind).or_default().push(name.into());
        }
        let object = kinds
            .into_iter()
            .map(|(kind, names)| (kind.to_string(), Value::Array(names)));
        Value::Object(object.collect()).to_string()
    }

    /// Reads what [`Columns::to_tag`] wrote.
    pub(super) fn from_tag(text: &str) -> Option<Columns> {
        let value: Value = serde_json::from_str(text).ok()?;
        let mut columns = BTreeMap::new();
        for (kind, names) in value.as_object()? {
            let kind: Kind = kind.parse().ok()?;
            for name in names.as_array()? {
                columns.insert(name.as_str()?.into(), kind);
            }
        }
        Some(Columns(columns))
    }
}

impl From<&Schema> for Columns {
    fn from(schema: &Schema) -> Columns {
        let columns = schema.columns.iter();
        Columns(columns.map(|c| (c.name.clone(), c.kind.into())).collect())
    }
}

//! The types of Postgres, and which of them a column of the engine has.

use datafusion::arrow::datatypes::{DataType, TimeUnit};

/// A type of Postgres.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostgresType {
    /// Its number.
    pub oid: u32,
    /// Its name in the catalog.
    pub name: &'static str,
    /// Its name in SQL.
    pub sql_name: &'static str,
    /// The bytes of a value; -1 if they vary.
    pub bytes: i16,
    /// The number of the type of lists of it; 0 of lists.
    pub list_oid: u32,
    /// The letter of its category.
    pub category: char,
}

const fn row(
    oid: u32,
    name: &'static str,
    sql_name: &'static str,
    bytes: i16,
    list_oid: u32,
    category: char,
) -> PostgresType {
    PostgresType {
        oid,
        name,
        sql_name,
        bytes,
        list_oid,
        category,
    }
}

const BOOL: PostgresType = row(16, "bool", "boolean", 1, 1000, 'B');
const BYTEA: PostgresType = row(17, "bytea", "bytea", -1, 1001, 'U');
const INT8: PostgresType = row(20, "int8", "bigint", 8, 1016, 'N');
const INT2: PostgresType = row(21, "int2", "smallint", 2, 1005, 'N');
const INT4: PostgresType = row(23, "int4", "integer", 4, 1007, 'N');
const TEXT: PostgresType = row(25, "text", "text", -1, 1009, 'S');
const FLOAT4: PostgresType = row(700, "float4", "real", 4, 1021, 'N');
const FLOAT8: PostgresType = row(701, "float8", "double precision", 8, 1022, 'N');
const DATE: PostgresType = row(1082, "date", "date", 4, 1182, 'D');
const TIME: PostgresType = row(1083, "time", "time without time zone", 8, 1183, 'D');
const TIMESTAMP: PostgresType = row(
    1114,
    "timestamp",
    "timestamp without time zone",
    8,
    1115,
    'D',
);
const TIMESTAMPTZ: PostgresType = row(
    1184,
    "timestamptz",
    "timestamp with time zone",
    8,
    1185,
    'D',
);
const INTERVAL: PostgresType = row(1186, "interval", "interval", 16, 1187, 'T');
const NUMERIC: PostgresType = row(1700, "numeric", "numeric", -1, 1231, 'N');

/// Types that columns of results have.
const OF_COLUMNS: [PostgresType; 14] = [
    BOOL,
    BYTEA,
    INT8,
    INT2,
    INT4,
    TEXT,
    FLOAT4,
    FLOAT8,
    DATE,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    INTERVAL,
    NUMERIC,
];

/// Types that clients look for, and no column has.
const OTHERS: [PostgresType; 14] = [
    row(18, "char", "\"char\"", 1, 1002, 'Z'),
    row(19, "name", "name", 64, 1003, 'S'),
    row(24, "regproc", "regproc", 4, 1008, 'N'),
    row(26, "oid", "oid", 4, 1028, 'N'),
    row(114, "json", "json", -1, 199, 'U'),
    row(705, "unknown", "unknown", -2, 0, 'X'),
    row(1042, "bpchar", "character", -1, 1014, 'S'),
    row(1043, "varchar", "character varying", -1, 1015, 'S'),
    row(2205, "regclass", "regclass", 4, 2210, 'N'),
    row(2206, "regtype", "regtype", 4, 2211, 'N'),
    row(2249, "record", "record", -1, 2287, 'P'),
    row(2278, "void", "void", 4, 0, 'P'),
    row(2950, "uuid", "uuid", 16, 2951, 'U'),
    row(3802, "jsonb", "jsonb", -1, 3807, 'U'),
];

/// All types, without lists.
pub(super) fn all() -> impl Iterator<Item = PostgresType> {
    OF_COLUMNS.into_iter().chain(OTHERS)
}

/// The name in SQL of the type of a number.
pub(super) fn sql_name(oid: i64) -> Option<String> {
    let is_it = |number: u32| i64::from(number) == oid;
    let plain = all().find(|known| is_it(known.oid));
    if let Some(plain) = plain {
        return Some(plain.sql_name.to_owned());
    }
    let of_list = all().find(|known| oid != 0 && is_it(known.list_oid));
    of_list.map(|element| format!("{}[]", element.sql_name))
}

/// The number of the type of a name, in the catalog or in SQL.
pub(super) fn oid_named(name: &str) -> Option<i64> {
    let name = name.trim().trim_matches('"');
    let name = name.strip_prefix("pg_catalog.").unwrap_or(name);
    let (name, is_list) = match name.strip_suffix("[]") {
        Some(element) => (element, true),
        None => (name, false),
    };
    let found = all().find(|known| known.name == name || known.sql_name == name)?;
    let oid = if is_list { found.list_oid } else { found.oid };
    Some(i64::from(oid))
}

/// The type that a column of the engine has for clients, and true if it is a list of it.
pub fn of_arrow(data_type: &DataType) -> (PostgresType, bool) {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            let (element, is_nested) = of_arrow(item.data_type());
            // A list of lists is the text of both.
            if is_nested {
                (TEXT, true)
            } else {
                (element, true)
            }
        }
        DataType::Dictionary(_, value) => of_arrow(value),
        plain => (of_value(plain), false),
    }
}

fn of_value(data_type: &DataType) -> PostgresType {
    match data_type {
        DataType::Boolean => BOOL,
        DataType::Int8 | DataType::UInt8 | DataType::Int16 => INT2,
        DataType::UInt16 | DataType::Int32 => INT4,
        // Those without a sign are counts and places: no column of records has the type.
        DataType::UInt32 | DataType::Int64 | DataType::UInt64 => INT8,
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => NUMERIC,
        DataType::Float16 | DataType::Float32 => FLOAT4,
        DataType::Float64 => FLOAT8,
        DataType::Timestamp(_, Some(_)) => TIMESTAMPTZ,
        DataType::Timestamp(_, None) => TIMESTAMP,
        DataType::Date32 | DataType::Date64 => DATE,
        DataType::Time32(TimeUnit::Second | TimeUnit::Millisecond) | DataType::Time64(_) => TIME,
        DataType::Duration(_) | DataType::Interval(_) => INTERVAL,
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => BYTEA,
        _ => TEXT,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::datatypes::Field;

    use super::*;

    #[test]
    fn types_have_their_names() {
        for (oid, name) in [
            (20, "bigint"),
            (1184, "timestamp with time zone"),
            (1009, "text[]"),
            (1016, "bigint[]"),
        ] {
            assert_eq!(sql_name(oid).as_deref(), Some(name));
            assert_eq!(oid_named(name), Some(oid), "{name}");
        }
        assert_eq!(oid_named("pg_catalog.int4"), Some(23));
        assert_eq!((sql_name(0), oid_named("widget")), (None, None));
    }

    #[test]
    fn columns_have_types() {
        let list = DataType::List(Arc::new(Field::new("item", DataType::Int64, true)));
        for (column, name, is_list) in [
            (DataType::Utf8View, "text", false),
            (DataType::UInt64, "int8", false),
            (list, "int8", true),
        ] {
            let (found, of_list) = of_arrow(&column);
            assert_eq!((found.name, of_list), (name, is_list));
        }
    }
}

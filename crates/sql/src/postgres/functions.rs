//! Functions that clients of Postgres call, and that the engine has not.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, Int64Array, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use datafusion::prelude::SessionContext;

use super::{DATABASE, PostgresSession, Relation, SCHEMA, comments, type_table};

/// The name of the function that finds the number of a table by its name.
pub(super) const REGCLASS: &str = "logpond_regclass";

/// The name of the function that finds the name of a table by its number.
pub(super) const CLASS_NAME: &str = "logpond_class_name";

/// The name of the function that finds the number of a type by its name.
pub(super) const REGTYPE: &str = "logpond_regtype";

/// Functions that are true here, whatever they are asked: all is visible, and all may be read.
const TRUE: [&str; 9] = [
    "pg_table_is_visible",
    "pg_type_is_visible",
    "pg_function_is_visible",
    "has_schema_privilege",
    "has_database_privilege",
    "has_any_column_privilege",
    "has_function_privilege",
    "has_type_privilege",
    "pg_has_role",
];

/// Functions that are false.
const FALSE: [&str; 4] = [
    "pg_is_in_recovery",
    "pg_relation_is_publishable",
    "pg_is_other_temp_schema",
    "row_security_active",
];

/// Functions that have no text to show: there are no indexes, constraints, views or defaults.
const NO_TEXT: [&str; 17] = [
    "txid_current_if_assigned",
    "pg_get_expr",
    "pg_get_constraintdef",
    "pg_get_indexdef",
    "pg_get_viewdef",
    "pg_get_partkeydef",
    "pg_get_ruledef",
    "pg_get_triggerdef",
    "pg_get_functiondef",
    "pg_get_function_result",
    "pg_get_function_arguments",
    "pg_get_function_identity_arguments",
    "pg_get_serial_sequence",
    "pg_get_statisticsobjdef_columns",
    "pg_tablespace_location",
    "shobj_description",
    "inet_server_addr",
];

/// Functions that are nothing, as a number: sizes are not counted by table.
const ZERO: [&str; 8] = [
    "pg_total_relation_size",
    "pg_relation_size",
    "pg_table_size",
    "pg_indexes_size",
    "pg_database_size",
    "pg_my_temp_schema",
    "pg_advisory_lock",
    "pg_stat_get_numscans",
];

/// Numbers of tables of the catalog, which comments and dependencies name.
const CATALOG_OIDS: [(&str, i64); 7] = [
    ("pg_type", 1247),
    ("pg_attribute", 1249),
    ("pg_proc", 1255),
    ("pg_class", 1259),
    ("pg_database", 1262),
    ("pg_constraint", 2606),
    ("pg_namespace", 2615),
];

/// The way a function finds its result.
#[derive(Clone, Debug)]
enum Rule {
    /// It is this value.
    Value(ScalarValue),
    /// A text by its number.
    TextOfNumber(Arc<HashMap<i64, String>>),
    /// A text by two numbers.
    TextOfNumbers(Arc<HashMap<(i64, i64), String>>),
    /// The name of a type by its number.
    TypeName,
    /// The number of a type by its name.
    TypeNumber,
    /// A number by a name.
    NumberOfName(Arc<HashMap<String, i64>>),
    /// A setting by its name.
    Setting(Arc<PostgresSession>),
    /// Its second argument.
    Second,
    /// An identifier in quotes, if it needs them.
    Quoted,
    /// True if the privilege only reads.
    MayRead,
}

/// A function of a client.
#[derive(Debug)]
struct CatalogFunction {
    name: String,
    signature: Signature,
    rule: Rule,
}

impl PartialEq for CatalogFunction {
    fn eq(&self, other: &CatalogFunction) -> bool {
        self.name == other.name
    }
}

impl Eq for CatalogFunction {}

impl Hash for CatalogFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for CatalogFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match &self.rule {
            Rule::Value(value) => value.data_type(),
            Rule::TypeNumber | Rule::NumberOfName(_) => DataType::Int64,
            Rule::MayRead => DataType::Boolean,
            _ => DataType::Utf8,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let Rule::Value(value) = &self.rule {
            return Ok(ColumnarValue::Scalar(value.clone()));
        }
        let is_scalar = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let are_scalars = args.args.iter().all(is_scalar);
        let rows = if are_scalars { 1 } else { args.number_rows };
        let arrays = args.args.iter().map(|arg| arg.to_array(rows));
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let result = self.results(&arrays, rows)?;
        if are_scalars {
            let value = ScalarValue::try_from_array(&result, 0)?;
            return Ok(ColumnarValue::Scalar(value));
        }
        Ok(ColumnarValue::Array(result))
    }
}

impl CatalogFunction {
    fn results(&self, arrays: &[Arc<dyn Array>], rows: usize) -> Result<Arc<dyn Array>> {
        let numbers = |at: usize| -> Result<Int64Array> {
            match arrays.get(at) {
                Some(array) => Ok(cast(array, &DataType::Int64)?
                    .as_primitive::<Int64Type>()
                    .clone()),
                None => Ok(Int64Array::new_null(rows)),
            }
        };
        let texts = |at: usize| -> Result<StringArray> {
            match arrays.get(at) {
                Some(array) => Ok(cast(array, &DataType::Utf8)?.as_string::<i32>().clone()),
                None => Ok(StringArray::new_null(rows)),
            }
        };
        let last = arrays.len().saturating_sub(1);
        let shown: StringArray = match &self.rule {
            Rule::TextOfNumber(known) => {
                let found = |number: Option<i64>| known.get(&number?).cloned();
                numbers(0)?.iter().map(found).collect()
            }
            Rule::TextOfNumbers(known) => {
                let (objects, columns) = (numbers(0)?, numbers(1)?);
                let pairs = objects.iter().zip(columns.iter());
                let found = |(object, column): (Option<i64>, Option<i64>)| {
                    known.get(&(object?, column?)).cloned()
                };
                pairs.map(found).collect()
            }
            Rule::TypeName => {
                let name = |oid: Option<i64>| oid.map(type_name);
                numbers(0)?.iter().map(name).collect()
            }
            Rule::TypeNumber => {
                let found = |name: Option<&str>| type_table::oid_named(name?);
                return Ok(Arc::new(
                    texts(0)?.iter().map(found).collect::<Int64Array>(),
                ));
            }
            Rule::NumberOfName(known) => {
                let found = |name: Option<&str>| known.get(bare(name?)).copied();
                return Ok(Arc::new(
                    texts(0)?.iter().map(found).collect::<Int64Array>(),
                ));
            }
            Rule::Setting(session) => {
                let found = |name: Option<&str>| session.setting(name?);
                texts(0)?.iter().map(found).collect()
            }
            Rule::Quoted => texts(0)?.iter().map(|name| name.map(quoted)).collect(),
            Rule::MayRead => {
                let reads = |name: Option<&str>| name.map(only_reads);
                let privileges = texts(last)?;
                let flags = privileges.iter().map(reads);
                return Ok(Arc::new(
                    flags.collect::<datafusion::arrow::array::BooleanArray>(),
                ));
            }
            Rule::Second | Rule::Value(_) => texts(1)?,
        };
        Ok(Arc::new(shown))
    }
}

impl PostgresSession {
    /// The value of a setting.
    pub fn setting(&self, name: &str) -> Option<String> {
        let found = self
            .settings
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.clone())
    }
}

fn type_name(oid: i64) -> String {
    type_table::sql_name(oid).unwrap_or_else(|| "???".to_owned())
}

/// True if a privilege, or a list of them, asks for nothing but reading.
fn only_reads(privileges: &str) -> bool {
    let mut all = privileges.split(',').map(str::trim);
    all.all(|one| one.eq_ignore_ascii_case("select") || one.eq_ignore_ascii_case("usage"))
}

/// The name of a table without its schema and quotes.
fn bare(name: &str) -> &str {
    let name = name.trim();
    let name = name.strip_prefix("public.").unwrap_or(name);
    let name = name.strip_prefix("\"public\".").unwrap_or(name);
    let name = name.strip_prefix("pg_catalog.").unwrap_or(name);
    let inner = name
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'));
    inner.unwrap_or(name)
}

pub(super) fn quoted(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let begins = name
        .bytes()
        .next()
        .is_some_and(|byte| !byte.is_ascii_digit());
    if begins && name.bytes().all(is_plain) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

/// Registers the functions that look up nothing but the session.
pub(super) fn register(context: &SessionContext, session: &Arc<PostgresSession>) {
    let mut all: Vec<(&str, Rule)> = Vec::new();
    let value = |value: ScalarValue| Rule::Value(value);
    let text = |text: &str| Rule::Value(ScalarValue::Utf8(Some(text.to_owned())));
    all.extend(TRUE.map(|name| (name, value(ScalarValue::Boolean(Some(true))))));
    all.extend(FALSE.map(|name| (name, value(ScalarValue::Boolean(Some(false))))));
    all.extend(NO_TEXT.map(|name| (name, value(ScalarValue::Utf8(None)))));
    all.extend(ZERO.map(|name| (name, value(ScalarValue::Int64(Some(0))))));
    for name in ["current_user", "session_user", "user", "current_role"] {
        all.push((name, text(&session.user)));
    }
    let schemas: Vec<ScalarValue> = ["pg_catalog", SCHEMA]
        .map(|name| ScalarValue::Utf8(Some(name.to_owned())))
        .to_vec();
    let schemas = ScalarValue::new_list_nullable(&schemas, &DataType::Utf8);
    all.extend([
        ("version", text(&session.version)),
        ("current_database", text(DATABASE)),
        ("current_catalog", text(DATABASE)),
        ("current_schema", text(SCHEMA)),
        ("current_schemas", value(ScalarValue::List(schemas))),
        (
            "pg_backend_pid",
            value(ScalarValue::Int32(Some(session.process_id))),
        ),
        ("pg_get_userbyid", text(DATABASE)),
        ("pg_encoding_to_char", text("UTF8")),
        ("pg_size_pretty", text("0 bytes")),
        ("format_type", Rule::TypeName),
        (REGTYPE, Rule::TypeNumber),
        ("to_regtype", Rule::TypeNumber),
        ("current_setting", Rule::Setting(Arc::clone(session))),
        ("set_config", Rule::Second),
        ("quote_ident", Rule::Quoted),
        ("has_table_privilege", Rule::MayRead),
        ("has_column_privilege", Rule::MayRead),
    ]);
    register_all(context, all);
}

/// Registers the functions that look up tables and their columns.
pub(super) fn register_lookups(context: &SessionContext, relations: &[Relation]) {
    register_all(context, of_relations(relations));
}

fn register_all(context: &SessionContext, all: Vec<(&str, Rule)>) {
    for (name, rule) in all {
        let any = vec![TypeSignature::Nullary, TypeSignature::VariadicAny];
        context.register_udf(ScalarUDF::from(CatalogFunction {
            name: name.to_owned(),
            signature: Signature::one_of(any, Volatility::Stable),
            rule,
        }));
    }
}

/// Functions that look tables up.
fn of_relations(relations: &[Relation]) -> Vec<(&'static str, Rule)> {
    let names = relations.iter().map(|one| (one.oid, one.name.clone()));
    let names: HashMap<i64, String> = names.collect();
    let numbers = relations.iter().map(|one| (one.name.clone(), one.oid));
    let of_catalog = CATALOG_OIDS.map(|(name, oid)| (name.to_owned(), oid));
    let numbers = numbers.chain(of_catalog);
    let numbers: Arc<HashMap<String, i64>> = Arc::new(numbers.collect());
    let described = relations
        .iter()
        .filter_map(|one| Some((one.oid, comments::of_table(&one.name)?)));
    let mut columns = HashMap::new();
    for relation in relations {
        for (number, field) in (1_i64..).zip(relation.schema.fields()) {
            if let Some(comment) = comments::of_column(field.name()) {
                columns.insert((relation.oid, number), comment.to_owned());
            }
        }
    }
    vec![
        (REGCLASS, Rule::NumberOfName(Arc::clone(&numbers))),
        ("to_regclass", Rule::NumberOfName(numbers)),
        (CLASS_NAME, Rule::TextOfNumber(Arc::new(names))),
        (
            "obj_description",
            Rule::TextOfNumber(Arc::new(described.collect())),
        ),
        ("col_description", Rule::TextOfNumbers(Arc::new(columns))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_schema() {
        for (name, expected) in [
            ("logs", "logs"),
            ("public.logs", "logs"),
            ("\"public\".\"logs\"", "logs"),
            ("\"Odd\"", "Odd"),
        ] {
            assert_eq!(bare(name), expected);
        }
        assert_eq!(
            (quoted("logs"), quoted("Odd\"")),
            ("logs".into(), "\"Odd\"\"\"".into())
        );
    }

    #[test]
    fn nothing_can_be_written() {
        assert!(only_reads("SELECT") && only_reads("usage, select"));
        assert!(!only_reads("SELECT, INSERT"));
    }
}

//! The tables of `information_schema`.

use super::sheet::{Cell, Row, Sheet};
use super::{DATABASE, PostgresSession, Relation, SCHEMA, type_table};
use crate::postgres::catalog::PG_CATALOG;

/// The schema that has these tables.
pub(super) const INFORMATION_SCHEMA: &str = "information_schema";

const TABLES: &str = "table_catalog t, table_schema t, table_name t, table_type t, self_referencing_column_name n, \
    reference_generation n, user_defined_type_catalog n, user_defined_type_schema n, user_defined_type_name n, \
    is_insertable_into t, is_typed t, commit_action n";

const COLUMNS: &str = "table_catalog t, table_schema t, table_name t, column_name t, ordinal_position 4, \
    column_default n, is_nullable t, data_type t, character_maximum_length n, character_octet_length n, \
    numeric_precision n, numeric_precision_radix n, numeric_scale n, datetime_precision n, interval_type n, \
    interval_precision n, character_set_catalog n, character_set_schema n, character_set_name n, collation_catalog n, \
    collation_schema n, collation_name n, domain_catalog n, domain_schema n, domain_name n, udt_catalog t, \
    udt_schema t, udt_name t, scope_catalog n, scope_schema n, scope_name n, maximum_cardinality n, dtd_identifier t, \
    is_self_referencing t, is_identity t, identity_generation n, identity_start n, identity_increment n, \
    identity_maximum n, identity_minimum n, identity_cycle t, is_generated t, generation_expression n, is_updatable t";

const SCHEMATA: &str = "catalog_name t, schema_name t, schema_owner t, default_character_set_catalog n, \
    default_character_set_schema n, default_character_set_name n, sql_path n";

/// Tables without rows.
const EMPTY: [(&str, &str); 9] = [
    (
        "views",
        "table_catalog t, table_schema t, table_name t, view_definition n, check_option t, is_updatable t",
    ),
    (
        "table_constraints",
        "constraint_catalog t, constraint_schema t, constraint_name t, table_catalog t, table_schema t, table_name t, \
         constraint_type t, is_deferrable t, initially_deferred t",
    ),
    (
        "key_column_usage",
        "constraint_catalog t, constraint_schema t, constraint_name t, table_catalog t, table_schema t, table_name t, \
         column_name t, ordinal_position 4, position_in_unique_constraint 4",
    ),
    (
        "constraint_column_usage",
        "table_catalog t, table_schema t, table_name t, column_name t, constraint_catalog t, constraint_schema t, \
         constraint_name t",
    ),
    (
        "referential_constraints",
        "constraint_catalog t, constraint_schema t, constraint_name t, unique_constraint_catalog t, \
         unique_constraint_schema t, unique_constraint_name t, match_option t, update_rule t, delete_rule t",
    ),
    (
        "routines",
        "specific_catalog t, specific_schema t, specific_name t, routine_catalog t, routine_schema t, routine_name t, \
         routine_type t, data_type n",
    ),
    (
        "parameters",
        "specific_catalog t, specific_schema t, specific_name t, ordinal_position 4, parameter_mode t, \
         parameter_name t, data_type t",
    ),
    (
        "sequences",
        "sequence_catalog t, sequence_schema t, sequence_name t, data_type t, start_value t",
    ),
    (
        "triggers",
        "trigger_catalog t, trigger_schema t, trigger_name t, event_object_schema t, event_object_table t",
    ),
];

/// All tables of the schema.
pub(super) fn sheets(session: &PostgresSession, relations: &[Relation]) -> Vec<Sheet> {
    let sheet = |name, columns, rows| Sheet {
        name,
        columns,
        rows,
    };
    let mut sheets = vec![
        sheet("tables", TABLES, relations.iter().map(table).collect()),
        sheet(
            "columns",
            COLUMNS,
            relations.iter().flat_map(columns).collect(),
        ),
        sheet("schemata", SCHEMATA, schemata()),
        sheet(
            "character_sets",
            "character_set_catalog n, character_set_schema n, character_set_name t, character_repertoire t, \
             form_of_use t, default_collate_catalog t, default_collate_schema t, default_collate_name t",
            vec![vec![
                ("character_set_name", "UTF8".into()),
                ("character_repertoire", "UCS".into()),
                ("form_of_use", "UTF8".into()),
                ("default_collate_catalog", DATABASE.into()),
                ("default_collate_schema", PG_CATALOG.into()),
                ("default_collate_name", "C".into()),
            ]],
        ),
        sheet(
            "table_privileges",
            "grantor t, grantee t, table_catalog t, table_schema t, table_name t, privilege_type t, is_grantable t, \
             with_hierarchy t",
            relations
                .iter()
                .map(|relation| privilege(session, relation))
                .collect(),
        ),
    ];
    sheets.extend(EMPTY.map(|(name, columns)| Sheet::empty(name, columns)));
    sheets
}

fn place(relation: &Relation) -> Row {
    vec![
        ("table_catalog", DATABASE.into()),
        ("table_schema", SCHEMA.into()),
        ("table_name", relation.name.as_str().into()),
    ]
}

fn table(relation: &Relation) -> Row {
    let mut row = place(relation);
    row.extend([
        ("table_type", Cell::from("BASE TABLE")),
        ("is_insertable_into", "NO".into()),
        ("is_typed", "NO".into()),
    ]);
    row
}

fn privilege(session: &PostgresSession, relation: &Relation) -> Row {
    let mut row = place(relation);
    row.extend([
        ("grantor", Cell::from(DATABASE)),
        ("grantee", session.user.as_str().into()),
        ("privilege_type", "SELECT".into()),
        ("is_grantable", "NO".into()),
        ("with_hierarchy", "NO".into()),
    ]);
    row
}

fn columns(relation: &Relation) -> Vec<Row> {
    let mut rows = Vec::new();
    for (at, field) in relation.schema.fields().iter().enumerate() {
        let (found, is_list) = type_table::of_arrow(field.data_type());
        let (sql_name, name) = if is_list {
            ("ARRAY".to_owned(), format!("_{}", found.name))
        } else {
            (found.sql_name.to_owned(), found.name.to_owned())
        };
        let mut row = place(relation);
        row.extend([
            ("column_name", Cell::from(field.name().as_str())),
            (
                "ordinal_position",
                Cell::Number(i64::try_from(at + 1).unwrap_or(i64::MAX)),
            ),
            ("is_nullable", "YES".into()),
            ("data_type", sql_name.into()),
            ("udt_catalog", DATABASE.into()),
            ("udt_schema", PG_CATALOG.into()),
            ("udt_name", name.into()),
            ("dtd_identifier", (at + 1).to_string().into()),
            ("is_self_referencing", "NO".into()),
            ("is_identity", "NO".into()),
            ("identity_cycle", "NO".into()),
            ("is_generated", "NEVER".into()),
            ("is_updatable", "NO".into()),
        ]);
        rows.push(row);
    }
    rows
}

fn schemata() -> Vec<Row> {
    let all = [PG_CATALOG, SCHEMA, INFORMATION_SCHEMA];
    let row = |name: &str| -> Row {
        vec![
            ("catalog_name", DATABASE.into()),
            ("schema_name", name.into()),
            ("schema_owner", DATABASE.into()),
        ]
    };
    all.into_iter().map(row).collect()
}

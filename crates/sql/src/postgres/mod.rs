//! Statements of clients of Postgres: their dialect, the catalog that they read, and the functions that they call.
//!
//! Invariants:
//! - A statement that reads the catalog runs as any other: with the same memory, turns and checks.
//! - The catalog has the tables that the statement may read, with the columns that it finds there. Nothing of it is
//!   stored.

mod type_table;
mod sheet;
mod catalog;
mod schemas;
mod time_format;
mod conversions;
mod functions;
mod text_functions;
mod names;
mod comments;
mod absent;
mod rewrite;

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::prelude::SessionContext;

use crate::error::SqlError;

pub use names::shown_name;
pub(crate) use rewrite::rewrite;
pub use type_table::{PostgresType, of_arrow};

/// The name of the only database.
pub const DATABASE: &str = "logpond";

/// The name of the schema that has the tables.
pub(crate) const SCHEMA: &str = "public";

/// Words of statements that may mean the catalog, or the functions that look tables up. For others neither is made.
const CATALOG_WORDS: [&str; 8] = [
    "pg_",
    "information_schema",
    "regclass",
    "description",
    "show",
    "describe",
    "format_type",
    "has_",
];

/// The facts of a session that its statements may ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PostgresSession {
    /// The name that the client gave.
    pub user: String,
    /// The number of the session, by which it is cancelled.
    pub process_id: i32,
    /// The version that the server reports, as `version()` shows it.
    pub version: String,
    /// The settings of the session, by name.
    pub settings: Vec<(String, String)>,
}

/// A table that statements may read.
#[derive(Clone, Debug)]
pub(crate) struct Relation {
    pub(crate) oid: i64,
    pub(crate) name: String,
    pub(crate) schema: SchemaRef,
}

impl Relation {
    pub(crate) fn new(name: &str, schema: SchemaRef) -> Relation {
        Relation {
            oid: oid_of(name),
            name: name.to_owned(),
            schema,
        }
    }
}

/// The first number of an object that is not part of every Postgres.
const FIRST_OID: i64 = 16_384;

/// The number of a table: the same for all statements and nodes, whatever other tables there are (FNV-1a).
fn oid_of(name: &str) -> i64 {
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    FIRST_OID + i64::from(hash >> 2)
}

/// True if a statement may read the catalog.
fn reads_catalog(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    CATALOG_WORDS.iter().any(|word| text.contains(word))
}

/// Registers what only clients of Postgres ask for: functions, and the catalog if the statement may read it.
pub(crate) fn register(
    context: &SessionContext,
    session: &Arc<PostgresSession>,
    relations: Vec<Relation>,
    text: &str,
) -> Result<(), SqlError> {
    let relations: Arc<[Relation]> = relations.into();
    functions::register(context, session);
    text_functions::register(context);
    conversions::register(context).map_err(|error| SqlError::of(&error))?;
    if reads_catalog(text) {
        functions::register_lookups(context, &relations);
        catalog::register(context, session, &relations).map_err(|error| SqlError::of(&error))?;
    }
    Ok(())
}

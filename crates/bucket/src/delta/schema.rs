//! The columns of the table: those that all segments have or lack with one type.

use std::collections::BTreeMap;
use std::ptr;

use serde_json::{Value, json};

use super::columns::{Columns, Kind};

/// The most columns of fields; those with the fewest rows in their segments are left out.
pub(super) const COLUMNS_MAX: usize = 1000;

/// The longest name of a column in bytes.
const NAME_BYTES_MAX: usize = 255;

/// What names of columns must not have, by the format, beside control characters.
const REFUSED: [char; 8] = [' ', ',', ';', '{', '}', '(', ')', '='];

/// The columns that every segment has.
pub(super) const FIXED: [(&str, Kind); 12] = [
    ("_time", Kind::Time),
    ("_time_rest", Kind::Int),
    ("_received", Kind::Time),
    ("_n", Kind::Int),
    ("_source", Kind::Int),
    ("_time_source", Kind::Text),
    ("_shape", Kind::Text),
    ("_msg", Kind::Text),
    ("_msg_bin", Kind::Bytes),
    ("_raw", Kind::Bytes),
    ("_fix", Kind::Bytes),
    ("_more", Kind::Text),
];

/// A field over all segments.
struct Field<'a> {
    name: &'a str,
    kind: Kind,
    rows: u64,
    /// Whether all segments that have it agree on its type and the case of its name.
    is_one: bool,
}

/// The columns of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TableSchema {
    /// As the format has it.
    pub(super) text: String,
    /// Fields that have columns in segments and none in the table.
    pub(super) left_out: usize,
}

impl TableSchema {
    /// The columns of a table of these segments, each with its number of rows.
    pub(super) fn of<'a>(segments: impl Iterator<Item = (&'a Columns, u64)>) -> TableSchema {
        // Many segments have the same columns, which are in memory once.
        let mut sets: BTreeMap<usize, (&Columns, u64)> = BTreeMap::new();
        for (columns, rows) in segments {
            let set = sets.entry(ptr::from_ref(columns).addr());
            let (_, sum) = set.or_insert((columns, 0));
            *sum = sum.saturating_add(rows);
        }
        let mut fields: BTreeMap<String, Field<'a>> = BTreeMap::new();
        for (columns, rows) in sets.into_values() {
            for (name, kind) in columns.iter() {
                let field = fields.entry(name.to_lowercase()).or_insert(Field {
                    name,
                    kind,
                    rows: 0,
                    is_one: is_good(name),
                });
                field.rows = field.rows.saturating_add(rows);
                field.is_one &= field.name == name && field.kind == kind;
            }
        }
        let all = fields.len();
        let mut chosen: Vec<Field<'_>> = fields.into_values().filter(|f| f.is_one).collect();
        chosen.sort_by(|a, b| b.rows.cmp(&a.rows).then(a.name.cmp(b.name)));
        chosen.truncate(COLUMNS_MAX);
        chosen.sort_by_key(|field| field.name);
        let left_out = all - chosen.len();
        let columns = chosen.iter().map(|field| (field.name, field.kind));
        let columns: Vec<Value> = FIXED.into_iter().chain(columns).map(column).collect();
        let text = json!({ "type": "struct", "fields": columns }).to_string();
        TableSchema { text, left_out }
    }
}

/// Whether a table may have a column of this name.
fn is_good(name: &str) -> bool {
    let is_fixed = FIXED
        .iter()
        .any(|(fixed, _)| fixed.eq_ignore_ascii_case(name));
    let is_refused = |c: char| REFUSED.contains(&c) || c.is_control();
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && !is_fixed && !name.contains(is_refused)
}

fn column((name, kind): (&str, Kind)) -> Value {
    json!({ "name": name, "type": kind.to_string(), "nullable": true, "metadata": {} })
}

//! Which fields become columns, and of what type.

use std::collections::BTreeMap;

use logpond_record::{Value, cast};

/// The most columns of fields in one file; rarer fields share the overflow column.
const COLUMNS_MAX: usize = 256;

/// A field becomes a column if at least one row in so many has it …
const ROWS_PER_VALUE_MAX: u64 = 128;

/// … or if so many rows have it.
const VALUES_ENOUGH: u64 = 4096;

/// Whole numbers up to this size are exact as floats.
const EXACT_INT_MAX: u64 = 1 << 53;

/// The most decimals of a column of decimal numbers.
const SCALE_MAX: u8 = 6;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ColumnType {
    /// UTF-8 text.
    Text,
    /// JSON text of arrays and empty objects.
    Json,
    /// Bytes that may not be UTF-8.
    Bytes,
    /// 64-bit whole numbers.
    Int,
    /// 64-bit floats.
    Float,
    /// Floats with at most so many decimals, stored as whole numbers of that unit.
    Decimal(u8),
    /// True or false.
    Bool,
}

/// A column of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// The field's name.
    pub name: Box<str>,
    /// The column's type; values of other types are in the overflow column.
    pub kind: ColumnType,
}

/// How often a field has values of each type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldCount {
    /// Text values.
    pub text: u64,
    /// Arrays and empty objects.
    pub json: u64,
    /// Whole numbers.
    pub int: u64,
    /// Numbers with a fraction.
    pub float: u64,
    /// Booleans.
    pub bool: u64,
    /// What no column holds: nulls that are not part of a shape, and bytes that are no text.
    pub null: u64,
    /// Nulls that a shape has in a slot; they are stored nowhere else.
    pub shape_null: u64,
    /// Of the whole numbers, those beside lines. No slot says that they are whole, so a column of fractions
    /// does not hold them. Files of earlier writers do not count them, and have them there.
    pub label_int: u64,
    /// The largest magnitude among the whole numbers.
    pub int_max: u64,
    /// The most decimals among the floats; above [`SCALE_MAX`] they are no decimals.
    pub scale: u8,
}

impl FieldCount {
    /// Counts a value.
    pub fn add(&mut self, value: &Value<'_>) {
        match value {
            Value::Null | Value::Bytes(_) => self.null += 1,
            Value::Bool(_) => self.bool += 1,
            Value::Int(i) => {
                self.int += 1;
                self.int_max = self.int_max.max(i.unsigned_abs());
            }
            Value::Float(f) => {
                self.float += 1;
                while self.scale <= SCALE_MAX && to_decimal(*f, self.scale).is_none() {
                    self.scale += 1;
                }
            }
            Value::Json(_) => self.json += 1,
            Value::Str(_) => self.text += 1,
        }
    }

    /// Adds the counts of other rows.
    pub fn merge(&mut self, other: &FieldCount) {
        self.text += other.text;
        self.json += other.json;
        self.int += other.int;
        self.float += other.float;
        self.bool += other.bool;
        self.null += other.null;
        self.shape_null += other.shape_null;
        self.label_int += other.label_int;
        self.int_max = self.int_max.max(other.int_max);
        self.scale = self.scale.max(other.scale);
    }

    /// All values together.
    pub fn total(&self) -> u64 {
        self.text + self.json + self.int + self.float + self.bool + self.null
    }

    /// Whether all numbers are exact as whole numbers of 10^-scale.
    fn is_decimal(&self) -> bool {
        self.scale <= SCALE_MAX
            && u128::from(self.int_max) * 10u128.pow(u32::from(self.scale))
                < u128::from(EXACT_INT_MAX)
    }

    /// True if a column of floats holds the whole numbers of lines.
    pub(super) fn floats_hold_ints(&self) -> bool {
        self.int_max <= EXACT_INT_MAX
    }

    /// True if a column of this type may hold whole numbers among fractions, so that only the slots of
    /// shapes tell which they are. A row group whose own numbers allow it has them there even if those
    /// of the file do not.
    pub fn may_mix(&self, kind: ColumnType) -> bool {
        let holds_fractions = matches!(kind, ColumnType::Float | ColumnType::Decimal(_));
        holds_fractions && self.int > self.label_int
    }

    /// Values that a column of this type holds.
    fn inside(&self, kind: ColumnType) -> u64 {
        match kind {
            ColumnType::Text | ColumnType::Bytes => self.text,
            ColumnType::Json => self.json,
            ColumnType::Int => self.int,
            ColumnType::Float if !self.floats_hold_ints() => self.float,
            ColumnType::Float | ColumnType::Decimal(_) => {
                self.float + self.int.saturating_sub(self.label_int)
            }
            ColumnType::Bool => self.bool,
        }
    }

    /// Values that a column of this type does not hold.
    pub fn beside(&self, kind: ColumnType) -> u64 {
        self.total() - self.inside(kind)
    }

    /// The type that most values have, and how many a column of it holds.
    fn best(&self) -> (ColumnType, u64) {
        let fractions = if self.floats_hold_ints() && self.is_decimal() {
            ColumnType::Decimal(self.scale)
        } else {
            ColumnType::Float
        };
        let kinds = [
            ColumnType::Int,
            ColumnType::Text,
            ColumnType::Json,
            ColumnType::Bool,
        ];
        let numbers = match self.float {
            0 => ColumnType::Int,
            _ => fractions,
        };
        let held = |kind| (kind, self.inside(kind));
        let others = kinds.into_iter().map(held);
        others.fold(
            held(numbers),
            |best, one| {
                if one.1 > best.1 { one } else { best }
            },
        )
    }
}

/// The whole number of 10^-scale that is this float, if that is exact in both directions.
pub fn to_decimal(value: f64, scale: u8) -> Option<i64> {
    let unit = 10f64.powi(i32::from(scale));
    let scaled = (value * unit).round();
    let exact = scaled.abs() < cast::float(EXACT_INT_MAX)
        && scaled / unit == value
        && (scaled != 0.0 || value.is_sign_positive());
    exact.then_some(cast::whole_i64(scaled))
}

/// The inverse of [`to_decimal`].
pub fn from_decimal(value: i64, scale: u8) -> f64 {
    cast::float(value) / 10f64.powi(i32::from(scale))
}

/// Types and counts of the fields of some rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldCounts {
    /// By field name.
    pub fields: BTreeMap<Box<str>, FieldCount>,
    /// Number of rows.
    pub rows: u64,
}

impl FieldCounts {
    /// Adds the counts of other rows.
    pub fn merge(&mut self, other: &FieldCounts) {
        self.rows += other.rows;
        for (name, count) in &other.fields {
            self.fields.entry(name.clone()).or_default().merge(count);
        }
    }

    /// Counts whole numbers beside lines as some rows have them, where fewer are known of.
    pub fn count_labels_of(&mut self, rows: &FieldCounts) {
        for (name, known) in &mut self.fields {
            let found = rows.fields.get(name).map_or(0, |count| count.label_int);
            known.label_int = known.label_int.max(found).min(known.int);
        }
    }

    /// The columns for rows with these counts, in the order of their names.
    pub fn schema(&self) -> Schema {
        let mut chosen: Vec<(u64, ColumnSpec)> = self
            .fields
            .iter()
            .filter_map(|(name, count)| {
                let (kind, values) = count.best();
                let frequent = values * ROWS_PER_VALUE_MAX >= self.rows || values >= VALUES_ENOUGH;
                let spec = ColumnSpec {
                    name: name.clone(),
                    kind,
                };
                (frequent && values > 0 && !is_reserved(name)).then_some((values, spec))
            })
            .collect();
        chosen.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.name.cmp(&b.1.name)));
        chosen.truncate(COLUMNS_MAX);
        let mut columns: Vec<ColumnSpec> = chosen.into_iter().map(|(_, spec)| spec).collect();
        columns.sort_by(|a, b| a.name.cmp(&b.name));
        Schema { columns }
    }
}

/// Names that the file's own columns have.
const RESERVED: [&str; 14] = [
    "_time",
    "_time_rest",
    "_received",
    "_n",
    "_source",
    "_time_source",
    "_shape",
    "_msg",
    "_msg_bin",
    "_raw",
    "_fix",
    "_more",
    "_template",
    "_id",
];

/// Whether a field of this name must go to the overflow column: foreign readers refuse columns
/// without a name, and compare names without case.
fn is_reserved(name: &str) -> bool {
    name.is_empty() || RESERVED.iter().any(|r| r.eq_ignore_ascii_case(name))
}

/// The columns of fields of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// In the order of their names, each name once.
    pub columns: Vec<ColumnSpec>,
}

impl Schema {
    /// The column of a field.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.binary_search_by(|c| (*c.name).cmp(name)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_type_wins_and_rare_fields_get_no_column() {
        let mut counts = FieldCounts {
            rows: 10_000,
            ..FieldCounts::default()
        };
        let mut add = |name: &str, value: Value<'_>, times: usize| {
            let count = counts.fields.entry(name.into()).or_default();
            (0..times).for_each(|_| count.add(&value));
        };
        add("status", Value::Int(200), 900);
        add("status", Value::Str("OK".into()), 100);
        add("latency", Value::Float(2.75), 500);
        add("latency", Value::Int(3), 500);
        add("ratio", Value::Float(0.123_456_789), 500);
        add("rare", Value::Int(1), 3);
        add("_n", Value::Int(1), 9000);
        let kinds: Vec<_> = counts
            .schema()
            .columns
            .into_iter()
            .map(|c| (c.name.to_string(), c.kind))
            .collect();
        assert_eq!(
            kinds,
            [
                ("latency".to_owned(), ColumnType::Decimal(2)),
                ("ratio".to_owned(), ColumnType::Float),
                ("status".to_owned(), ColumnType::Int),
            ]
        );
    }

    #[test]
    fn decimals_are_exact_or_refused() {
        for (value, scale, expected) in [
            (2.75, 2, Some(275)),
            (0.1, 1, Some(1)),
            (-0.0, 0, None),
            (1e300, 2, None),
            (0.125, 2, None),
        ] {
            assert_eq!(to_decimal(value, scale), expected);
            assert!(expected.is_none_or(|e| from_decimal(e, scale) == value));
        }
    }
}

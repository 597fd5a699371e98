//! What is said of values that have not the type that they should have.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan};

use crate::error::SqlError;

/// What the engine says of a text that is none of a type: before the text, behind it and behind the type.
const PARTS: [&str; 3] = ["Cannot cast string '", "' to value of ", " type"];

/// The longest text that is repeated.
const SHOWN_CHARS_MAX: usize = 40;

/// The name that SQL has for a type.
pub(crate) fn type_name(kind: &DataType) -> String {
    let name = match kind {
        DataType::Boolean => "BOOLEAN",
        DataType::Int64 => "BIGINT",
        DataType::Int32 => "INTEGER",
        DataType::Int16 => "SMALLINT",
        DataType::Float64 => "DOUBLE",
        DataType::Float32 => "REAL",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "VARCHAR",
        DataType::Timestamp(_, None) => "TIMESTAMP",
        DataType::Timestamp(..) => "TIMESTAMP WITH TIME ZONE",
        DataType::Date32 => "DATE",
        DataType::Decimal128(precision, scale) => return format!("DECIMAL({precision}, {scale})"),
        other => return other.to_string(),
    };
    name.to_owned()
}

/// An error that names the column of a value that could not be cast, where the plan shows it.
pub(crate) fn explained(error: SqlError, plan: &LogicalPlan) -> SqlError {
    let Some((text, kind)) = cast_in(&error.message) else {
        return error;
    };
    let found = culprit(plan, text, kind);
    let shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    let (name, message) = match &found {
        Some(Culprit::Constant { column, kind }) => {
            let name = type_name(kind);
            let message = format!("column {column} is a {name}, which '{shown}' is not");
            return SqlError { message, ..error };
        }
        Some(Culprit::Column { column, kind }) => (
            type_name(kind),
            format!("a value of column {column}, '{shown}', is no "),
        ),
        None => (kind.to_owned(), format!("'{shown}' is no ")),
    };
    let column = match &found {
        Some(Culprit::Column { column, .. }) => column,
        _ => "…",
    };
    let message =
        format!("{message}{name}: TRY_CAST({column} AS {name}) has a null for such values");
    SqlError { message, ..error }
}

/// The text and the engine's name of the type.
fn cast_in(message: &str) -> Option<(&str, &str)> {
    let [before, between, behind] = PARTS;
    let (_, rest) = message.split_once(before)?;
    let (text, rest) = rest.rsplit_once(between)?;
    let (kind, _) = rest.split_once(behind)?;
    Some((text, kind))
}

enum Culprit {
    /// A constant, in a comparison with this column.
    Constant { column: String, kind: DataType },
    /// Values of this column.
    Column { column: String, kind: DataType },
}

fn culprit(plan: &LogicalPlan, text: &str, kind: &str) -> Option<Culprit> {
    let mut found = None;
    let walked = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                found = of_part(part, text, kind).or(found.take());
                let is_found = matches!(found, Some(Culprit::Constant { .. }));
                Ok(if is_found {
                    TreeNodeRecursion::Stop
                } else {
                    TreeNodeRecursion::Continue
                })
            })
        })
    });
    walked.ok().and(found)
}

fn of_part(part: &Expr, text: &str, kind: &str) -> Option<Culprit> {
    match part {
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => {
            constant(left, right, text).or_else(|| constant(right, left, text))
        }
        Expr::Cast(cast) if cast.field.data_type().to_string() == kind => {
            let mut columns = cast.expr.column_refs().into_iter();
            let column = columns.next().filter(|_| columns.next().is_none())?;
            Some(Culprit::Column {
                column: column.name.clone(),
                kind: cast.field.data_type().clone(),
            })
        }
        _ => None,
    }
}

fn constant(column: &Expr, cast: &Expr, text: &str) -> Option<Culprit> {
    let (Expr::Column(column), Expr::Cast(cast)) = (column, cast) else {
        return None;
    };
    let Expr::Literal(ScalarValue::Utf8(Some(found)) | ScalarValue::Utf8View(Some(found)), _) =
        &*cast.expr
    else {
        return None;
    };
    (found == text).then(|| Culprit::Constant {
        column: column.name.clone(),
        kind: cast.field.data_type().clone(),
    })
}

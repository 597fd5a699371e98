//! Times as people write them in statements.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable};

/// The form of a time without seconds: a digit for each `0`, and a space or `T` between.
const WITHOUT_SECONDS: &str = "0000-00-00 00:00";

/// Completes times that have no seconds, as all other interfaces take them.
#[derive(Debug)]
pub(crate) struct TextsOfTimes;

impl FunctionRewrite for TextsOfTimes {
    fn name(&self) -> &'static str {
        "texts_of_times"
    }

    fn rewrite(
        &self,
        expr: Expr,
        schema: &DFSchema,
        _: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        let is_time = |expr: &Expr| {
            let kind = expr.get_type(schema);
            kind.is_ok_and(|kind| matches!(kind, DataType::Timestamp(..)))
        };
        Ok(match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let (of_left, of_right) = (is_time(&left), is_time(&right));
                let left = if of_right { completed(*left) } else { *left };
                let right = if of_left { completed(*right) } else { *right };
                Transformed::yes(Expr::BinaryExpr(BinaryExpr {
                    left: Box::new(left),
                    op,
                    right: Box::new(right),
                }))
            }
            Expr::Between(mut between) if is_time(&between.expr) => {
                between.low = Box::new(completed(*between.low));
                between.high = Box::new(completed(*between.high));
                Transformed::yes(Expr::Between(between))
            }
            Expr::InList(mut list) if is_time(&list.expr) => {
                list.list = list.list.into_iter().map(completed).collect();
                Transformed::yes(Expr::InList(list))
            }
            Expr::Cast(Cast { expr, field })
                if matches!(field.data_type(), DataType::Timestamp(..)) =>
            {
                let expr = Box::new(completed(*expr));
                Transformed::yes(Expr::Cast(Cast { expr, field }))
            }
            other => Transformed::no(other),
        })
    }
}

/// A constant text with seconds, if it is a time without them.
fn completed(expr: Expr) -> Expr {
    match expr {
        Expr::Literal(ScalarValue::Utf8(Some(text)), metadata) => {
            let text = with_seconds(&text).unwrap_or(text);
            Expr::Literal(ScalarValue::Utf8(Some(text)), metadata)
        }
        other => other,
    }
}

fn with_seconds(text: &str) -> Option<String> {
    let (time, zone) = text.split_at_checked(WITHOUT_SECONDS.len())?;
    let fits = |(char, form): (char, char)| match form {
        '0' => char.is_ascii_digit(),
        ' ' => matches!(char, ' ' | 'T' | 't'),
        form => char == form,
    };
    let is_time = time.chars().zip(WITHOUT_SECONDS.chars()).all(fits);
    let is_zone = zone.is_empty() || zone.starts_with(['Z', 'z', '+', '-', ' ']);
    (is_time && is_zone).then(|| format!("{time}:00{zone}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_added_where_there_are_none() {
        let table = [
            ("2026-03-02 01:00", Some("2026-03-02 01:00:00")),
            ("2026-03-02T01:00", Some("2026-03-02T01:00:00")),
            ("2026-03-02T01:00Z", Some("2026-03-02T01:00:00Z")),
            ("2026-03-02 01:00+02:00", Some("2026-03-02 01:00:00+02:00")),
            ("2026-03-02 01:00:30", None),
            ("2026-03-02", None),
            ("2026-03-02 01:0", None),
            ("2026-03-02 01:00pm", None),
            ("2026-03-02 01-00", None),
            ("ä026-03-02 01:00", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(with_seconds(text).as_deref(), expected, "{text}");
        }
    }
}

//! Texts that are compared with numbers.
//!
//! A field that has numbers in most records and a word in one is a column of text. Whoever compares it with a
//! number means the numbers in it.
//!
//! A field is a column of texts, too, if one of its numbers is beyond 64 bits, or has more digits than a
//! `DOUBLE`. What is compared with a number that a `DOUBLE` does not tell from others is compared as a
//! decimal of [`EXACT`].
//!
//! Invariant: where a text is compared with a number, a text that is no number is neither equal to it, nor
//! different, nor before or behind it; it is no error.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, Operator, TryCast};

/// The first whole number that a `DOUBLE` does not tell from its neighbour.
const INEXACT_FROM: u64 = 1 << 53;

/// The type as which exact numbers are compared: the longest decimals, as many digits before the point
/// as behind it.
const EXACT: DataType = DataType::Decimal256(76, 38);

/// Makes numbers of texts that are compared with numbers.
#[derive(Debug)]
pub(crate) struct NumbersOfTexts;

impl FunctionRewrite for NumbersOfTexts {
    fn name(&self) -> &'static str {
        "numbers_of_texts"
    }

    fn rewrite(
        &self,
        expr: Expr,
        schema: &DFSchema,
        _: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        Ok(match expr {
            Expr::BinaryExpr(binary) if is_comparison(binary.op) => compared(binary, schema),
            Expr::InList(list) => {
                let Some(kind) = number_for(&list.expr, list.list.iter(), schema) else {
                    return Ok(Transformed::no(Expr::InList(list)));
                };
                let expr = Box::new(tried(*list.expr, kind.clone()));
                let others = list.list.into_iter();
                let others = others.map(|other| compared_as(other, &kind)).collect();
                let negated = list.negated;
                Transformed::yes(Expr::InList(InList {
                    expr,
                    list: others,
                    negated,
                }))
            }
            Expr::Between(between) => {
                let bounds = [&*between.low, &*between.high];
                let Some(kind) = number_for(&between.expr, bounds.into_iter(), schema) else {
                    return Ok(Transformed::no(Expr::Between(between)));
                };
                let expr = Box::new(tried(*between.expr, kind.clone()));
                Transformed::yes(Expr::Between(Between {
                    expr,
                    low: Box::new(compared_as(*between.low, &kind)),
                    high: Box::new(compared_as(*between.high, &kind)),
                    ..between
                }))
            }
            other => Transformed::no(other),
        })
    }
}

/// Whether an operator compares which of two values is before the other.
pub(crate) fn is_comparison(op: Operator) -> bool {
    matches!(
        op,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
    )
}

fn compared(binary: BinaryExpr, schema: &DFSchema) -> Transformed<Expr> {
    let BinaryExpr { left, op, right } = binary;
    let (left, right) = if let Some(kind) = number_for(&left, [&*right].into_iter(), schema) {
        let right = compared_as(*right, &kind);
        (Box::new(tried(*left, kind)), Box::new(right))
    } else if let Some(kind) = number_for(&right, [&*left].into_iter(), schema) {
        let left = compared_as(*left, &kind);
        (Box::new(left), Box::new(tried(*right, kind)))
    } else {
        return Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }));
    };
    Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
}

fn tried(expr: Expr, kind: DataType) -> Expr {
    Expr::TryCast(TryCast::new(Box::new(expr), kind))
}

/// The number that a text is compared with, of the type that the text becomes.
fn compared_as(number: Expr, kind: &DataType) -> Expr {
    match *kind == EXACT {
        true => tried(number, EXACT),
        false => number,
    }
}

/// What to make of a text that is compared with these, if all of them are numbers.
fn number_for<'e>(
    text: &Expr,
    others: impl Iterator<Item = &'e Expr>,
    schema: &DFSchema,
) -> Option<DataType> {
    let is_text = text.get_type(schema).is_ok_and(|kind| kind.is_string());
    // What is wrong with a constant is to be said.
    if !is_text || matches!(text, Expr::Literal(..)) {
        return None;
    }
    let mut kind = DataType::Float64;
    for other in others {
        let other_kind = other.get_type(schema).ok().filter(DataType::is_numeric)?;
        let is_exact = other_kind.is_integer() && !is_exact_float(other);
        if is_exact || other_kind.is_decimal() {
            kind = EXACT;
        }
    }
    Some(kind)
}

/// Whether a whole number is the same as a `DOUBLE`.
fn is_exact_float(expr: &Expr) -> bool {
    match expr {
        Expr::Negative(inner) => is_exact_float(inner),
        Expr::Literal(ScalarValue::Int64(Some(int)), _) => int.unsigned_abs() < INEXACT_FROM,
        Expr::Literal(ScalarValue::UInt64(Some(int)), _) => *int < INEXACT_FROM,
        _ => false,
    }
}

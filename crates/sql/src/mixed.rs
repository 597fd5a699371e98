//! Texts that are compared with numbers.
//!
//! A field that has numbers in most records and a word in one is a column of text. Whoever compares it with a
//! number means the numbers in it.
//!
//! A field is a column of texts, too, if one of its numbers is beyond 64 bits, or has more digits than a
//! `DOUBLE`. Therefore texts and numbers are compared by keys that have the order of all numbers.
//!
//! Invariant: where a text is compared with a number, a text that is no number is neither equal to it, nor
//! different, nor before or behind it; it is no error.

use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, Operator};

use crate::number_key::number_key;

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
                if !is_compared(&list.expr, list.list.iter(), schema) {
                    return Ok(Transformed::no(Expr::InList(list)));
                }
                let others = list.list.into_iter().map(number_key).collect();
                Transformed::yes(Expr::InList(InList {
                    expr: Box::new(number_key(*list.expr)),
                    list: others,
                    negated: list.negated,
                }))
            }
            Expr::Between(between) => {
                let bounds = [&*between.low, &*between.high];
                if !is_compared(&between.expr, bounds.into_iter(), schema) {
                    return Ok(Transformed::no(Expr::Between(between)));
                }
                Transformed::yes(Expr::Between(Between {
                    expr: Box::new(number_key(*between.expr)),
                    low: Box::new(number_key(*between.low)),
                    high: Box::new(number_key(*between.high)),
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
    let is_compared = is_compared(&left, [&*right].into_iter(), schema)
        || is_compared(&right, [&*left].into_iter(), schema);
    if !is_compared {
        return Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }));
    }
    let (left, right) = (number_key(*left), number_key(*right));
    let (left, right) = (Box::new(left), Box::new(right));
    Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
}

/// True if this is a text, and all others are numbers.
fn is_compared<'e>(
    text: &Expr,
    mut others: impl Iterator<Item = &'e Expr>,
    schema: &DFSchema,
) -> bool {
    let is_text = text.get_type(schema).is_ok_and(|kind| kind.is_string());
    let is_number = |other: &Expr| {
        let kind = other.get_type(schema);
        kind.is_ok_and(|kind| kind.is_numeric())
    };
    // An error in a constant is to be reported.
    is_text && !matches!(text, Expr::Literal(..)) && others.all(is_number)
}

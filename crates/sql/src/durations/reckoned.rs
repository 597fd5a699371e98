//! What the engine has no types for: multiples and parts of durations, and texts that stand for durations and times
//! beside them.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, Operator, binary_expr};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::{DURATION, INTERVAL, cast, is_comparison, is_duration, is_interval, kind_of, length};
use crate::layout::ZONE;

/// All digits of 64 bits.
const DIGITS: DataType = DataType::Decimal128(19, 0);

/// Plans operators on durations.
#[derive(Debug)]
pub(crate) struct DurationPlanner;

impl ExprPlanner for DurationPlanner {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let Some(op) = operator(&expr.op) else {
            return Ok(PlannerResult::Original(expr));
        };
        if let Some(number) = reckoned(&expr.left, op, &expr.right, schema)? {
            let name = binary_expr(expr.left, op, expr.right)
                .schema_name()
                .to_string();
            return Ok(PlannerResult::Planned(number.alias(name)));
        }
        let RawBinaryExpr {
            op: raw,
            left,
            right,
        } = expr;
        let is_sum = matches!(op, Operator::Plus | Operator::Minus);
        let (left, right) = if is_comparison(op) && is_length(&left, schema) {
            (left, told(right, schema)?)
        } else if is_comparison(op) && is_length(&right, schema) {
            (told(left, schema)?, right)
        } else if is_sum && is_time(&left, schema) {
            (left, time_or_length(right, op))
        } else {
            (left, right)
        };
        Ok(PlannerResult::Original(RawBinaryExpr {
            op: raw,
            left,
            right,
        }))
    }
}

fn operator(op: &BinaryOperator) -> Option<Operator> {
    Some(match op {
        BinaryOperator::Plus => Operator::Plus,
        BinaryOperator::Minus => Operator::Minus,
        BinaryOperator::Multiply => Operator::Multiply,
        BinaryOperator::Divide => Operator::Divide,
        BinaryOperator::Eq => Operator::Eq,
        BinaryOperator::NotEq => Operator::NotEq,
        BinaryOperator::Lt => Operator::Lt,
        BinaryOperator::LtEq => Operator::LtEq,
        BinaryOperator::Gt => Operator::Gt,
        BinaryOperator::GtEq => Operator::GtEq,
        _ => return None,
    })
}

fn is_length(expr: &Expr, schema: &DFSchema) -> bool {
    is_duration(expr, schema) || is_interval(expr, schema)
}

fn is_time(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(kind_of(expr, schema), Some(DataType::Timestamp(..)))
}

fn is_number(expr: &Expr, schema: &DFSchema) -> bool {
    let kind = kind_of(expr, schema);
    kind.is_some_and(|kind| kind.is_integer() || kind.is_floating())
}

/// What is compared with a duration: a constant text or number at once, where the engine would refuse it by its
/// type; all else when all types are known.
fn told(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    match &expr {
        Expr::Literal(ScalarValue::Utf8(Some(_)), _) => length(expr, schema),
        other if is_number(other, schema) => length(expr, schema),
        _ => Ok(expr),
    }
}

/// What is added to a time, or taken from it: a text is a time if it can be one, or else an interval.
fn time_or_length(expr: Expr, op: Operator) -> Expr {
    let Expr::Literal(ScalarValue::Utf8(Some(text)), _) = &expr else {
        return expr;
    };
    let time = DataType::Timestamp(TimeUnit::Nanosecond, Some(ZONE.into()));
    let is_time = ScalarValue::try_from_string(text.clone(), &time).is_ok();
    if is_time && op == Operator::Minus {
        return cast(expr, time);
    }
    match ScalarValue::try_from_string(text.clone(), &INTERVAL) {
        Ok(interval) if !is_time => Expr::Literal(interval, None),
        _ => expr,
    }
}

/// A sum of durations and intervals, or a multiple, a part or the ratio of them.
fn reckoned(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    Ok(
        match (is_length(left, schema), op, is_length(right, schema)) {
            (true, Operator::Plus | Operator::Minus, true)
                if is_duration(left, schema) || is_duration(right, schema) =>
            {
                let left = length(left.clone(), schema)?;
                Some(binary_expr(left, op, length(right.clone(), schema)?))
            }
            (true, Operator::Divide, true) => {
                let nanoseconds = |expr: &Expr| -> Result<Expr> {
                    let length = length(expr.clone(), schema)?;
                    Ok(cast(cast(length, DataType::Int64), DataType::Float64))
                };
                Some(nanoseconds(left)? / nanoseconds(right)?)
            }
            (true, Operator::Multiply | Operator::Divide, _) if is_number(right, schema) => {
                Some(multiple(left, op, right, schema)?)
            }
            (_, Operator::Multiply, true) if is_number(left, schema) => {
                Some(multiple(right, op, left, schema)?)
            }
            _ => None,
        },
    )
}

/// Products have all their digits until they are durations again: the engine lets whole numbers wrap.
fn multiple(of: &Expr, op: Operator, number: &Expr, schema: &DFSchema) -> Result<Expr> {
    let nanoseconds = cast(length(of.clone(), schema)?, DataType::Int64);
    let is_float = kind_of(number, schema).is_some_and(|kind| kind.is_floating());
    let result = match op {
        _ if is_float => binary_expr(cast(nanoseconds, DataType::Float64), op, number.clone()),
        Operator::Multiply => cast(nanoseconds, DIGITS) * cast(number.clone(), DIGITS),
        _ => binary_expr(nanoseconds, op, number.clone()),
    };
    Ok(cast(cast(result, DataType::Int64), DURATION))
}

//! Differences of times, and what they are compared and reckoned with.
//!
//! The difference of two times is a duration: a number of nanoseconds. An interval is months, days and nanoseconds,
//! and the engine compares them one after the other: 25 hours would be less than one day. All times are in UTC,
//! where a day has 24 hours.
//!
//! Invariants:
//! - Durations and intervals are compared and reckoned with as what they last. Months have no length of their own,
//!   and are an error there.
//! - A condition on the difference of a time and a constant is one on the time: it decides what is read.

mod parts;
mod reckoned;

use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalUnit, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{AggregateFunction, InList, ScalarFunction, Sort};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Between, BinaryExpr, Case, Cast, Expr, ExprSchemable, LogicalPlan, Operator, Volatility,
    binary_expr,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::utils::NamePreserver;

use crate::mixed;

pub(crate) use reckoned::DurationPlanner;

const DURATION: DataType = DataType::Duration(TimeUnit::Nanosecond);
const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

const DAY_NS: i64 = 86_400_000_000_000;

/// What a duration lasts at most that is added to a constant time: a hundred years, since times of logs are far from
/// the ends of what a time can be.
const SHIFT_NS_MAX: u64 = 36_525 * DAY_NS.unsigned_abs();

/// Functions that give one of their arguments.
const CHOICES: [&str; 5] = ["coalesce", "greatest", "least", "nullif", "nvl"];

/// Has differences of times and intervals compared and sorted as what they last. What an expression gives may be of
/// another type then, so it is done before all types are made to fit.
#[derive(Debug)]
pub(crate) struct Durations;

impl AnalyzerRule for Durations {
    fn name(&self) -> &'static str {
        "durations"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let rewritten = plan.transform_up_with_subqueries(|mut node| {
            let schema = merge_schema(&node.inputs());
            if let LogicalPlan::Sort(sort) = &mut node {
                for key in &mut sort.expr {
                    sorted(key, &schema)?;
                }
            }
            let names = NamePreserver::new(&node);
            let node = node.map_expressions(|expr| {
                let name = names.save(&expr);
                let rewritten = expr.transform_up(|expr| rewritten(expr, &schema))?;
                Ok(rewritten.update_data(|expr| name.restore(expr)))
            })?;
            node.map_data(LogicalPlan::recompute_schema)
        });
        Ok(rewritten?.data)
    }
}

fn rewritten(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(binary) if is_comparison(binary.op) => compared(binary, schema),
        Expr::Between(between) => between_rewritten(between, schema),
        Expr::InList(list) => {
            let parts = std::iter::once(&*list.expr).chain(&list.list);
            if !has_lengths(parts, schema) {
                return Ok(Transformed::no(Expr::InList(list)));
            }
            let values = list.list.into_iter().map(|value| length(value, schema));
            let values = values.collect::<Result<_>>()?;
            let expr = Box::new(length(*list.expr, schema)?);
            let list = InList::new(expr, values, list.negated);
            Ok(Transformed::yes(Expr::InList(list)))
        }
        Expr::Case(case) => chosen(case, schema),
        Expr::ScalarFunction(mut call)
            if call.func.name() == "date_part" && has_duration(call.args.iter(), schema) =>
        {
            if let [part, of] = &mut call.args[..]
                && !is_total(part)
            {
                *of = parts::in_days(of.clone());
            }
            Ok(Transformed::yes(Expr::ScalarFunction(call)))
        }
        Expr::ScalarFunction(call) if CHOICES.contains(&call.func.name()) => {
            if !has_duration(call.args.iter(), schema) {
                return Ok(Transformed::no(Expr::ScalarFunction(call)));
            }
            let args = call.args.into_iter().map(|arg| length(arg, schema));
            let args = args.collect::<Result<_>>()?;
            let call = ScalarFunction::new_udf(call.func, args);
            Ok(Transformed::yes(Expr::ScalarFunction(call)))
        }
        Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
            for key in &mut params.order_by {
                sorted(key, schema)?;
            }
            if matches!(func.name(), "min" | "max") && has_interval(params.args.iter(), schema) {
                let args = params.args.into_iter().map(|arg| length(arg, schema));
                params.args = args.collect::<Result<_>>()?;
            }
            let function = AggregateFunction { func, params };
            Ok(Transformed::yes(Expr::AggregateFunction(function)))
        }
        Expr::WindowFunction(mut window) => {
            for key in &mut window.params.order_by {
                // The engine has no frames of durations.
                if has_lengths([&key.expr].into_iter(), schema) {
                    key.expr = cast(length(key.expr.clone(), schema)?, DataType::Int64);
                }
            }
            Ok(Transformed::yes(Expr::WindowFunction(window)))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn sorted(key: &mut Sort, schema: &DFSchema) -> Result<()> {
    if is_interval(&key.expr, schema) {
        key.expr = length(key.expr.clone(), schema)?;
    }
    Ok(())
}

fn is_comparison(op: Operator) -> bool {
    mixed::is_comparison(op) || matches!(op, Operator::IsDistinctFrom | Operator::IsNotDistinctFrom)
}

fn kind_of(expr: &Expr, schema: &DFSchema) -> Option<DataType> {
    expr.get_type(schema).ok()
}

fn is_duration(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(kind_of(expr, schema), Some(DataType::Duration(_)))
}

fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(kind_of(expr, schema), Some(DataType::Interval(_)))
}

fn is_time(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(
        kind_of(expr, schema),
        Some(DataType::Timestamp(TimeUnit::Nanosecond, _))
    )
}

/// Whether a part of a duration is all of it.
fn is_total(part: &Expr) -> bool {
    let total = |text: &String| {
        ["epoch", "nanosecond"]
            .iter()
            .any(|name| text.eq_ignore_ascii_case(name))
    };
    matches!(
        part,
        Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) if total(text)
    )
}

fn has_duration<'e>(mut exprs: impl Iterator<Item = &'e Expr>, schema: &DFSchema) -> bool {
    exprs.any(|expr| is_duration(expr, schema))
}

fn has_interval<'e>(mut exprs: impl Iterator<Item = &'e Expr>, schema: &DFSchema) -> bool {
    exprs.any(|expr| is_interval(expr, schema))
}

fn has_lengths<'e>(mut exprs: impl Iterator<Item = &'e Expr>, schema: &DFSchema) -> bool {
    exprs.any(|expr| is_duration(expr, schema) || is_interval(expr, schema))
}

fn compared(binary: BinaryExpr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let BinaryExpr { left, op, right } = binary;
    if !has_lengths([&*left, &*right].into_iter(), schema) {
        return Ok(Transformed::no(binary_expr(*left, op, *right)));
    }
    let (left, right) = (length(*left, schema)?, length(*right, schema)?);
    let moved = moved(&left, op, &right, schema);
    let swapped = || {
        op.swap()
            .and_then(|op| self::moved(&right, op, &left, schema))
    };
    let expr = moved.or_else(swapped);
    Ok(Transformed::yes(
        expr.unwrap_or_else(|| binary_expr(left, op, right)),
    ))
}

fn between_rewritten(between: Between, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let parts = [&*between.expr, &*between.low, &*between.high];
    if !has_lengths(parts.into_iter(), schema) {
        return Ok(Transformed::no(Expr::Between(between)));
    }
    let expr = length(*between.expr, schema)?;
    let low = length(*between.low, schema)?;
    let high = length(*between.high, schema)?;
    if !between.negated
        && let Some(from) = moved(&expr, Operator::GtEq, &low, schema)
        && let Some(to) = moved(&expr, Operator::LtEq, &high, schema)
    {
        return Ok(Transformed::yes(from.and(to)));
    }
    let (expr, low, high) = (Box::new(expr), Box::new(low), Box::new(high));
    let between = Between::new(expr, between.negated, low, high);
    Ok(Transformed::yes(Expr::Between(between)))
}

/// The condition on a difference of times as one on the time, if the other one is a constant: `now() - time < d`
/// is `time > now() - d`.
fn moved(difference: &Expr, op: Operator, than: &Expr, schema: &DFSchema) -> Option<Expr> {
    let Expr::BinaryExpr(BinaryExpr {
        left,
        op: Operator::Minus,
        right,
    }) = difference
    else {
        return None;
    };
    let Expr::Literal(ScalarValue::DurationNanosecond(Some(nanoseconds)), _) = than else {
        return None;
    };
    let is_small = nanoseconds.unsigned_abs() <= SHIFT_NS_MAX;
    if !is_small || !is_time(left, schema) || !is_time(right, schema) {
        return None;
    }
    let (left, right, than) = ((**left).clone(), (**right).clone(), than.clone());
    match (is_constant(&left), is_constant(&right)) {
        (true, false) => Some(binary_expr(right, op.swap()?, left - than)),
        (false, true) => Some(binary_expr(left, op, right + than)),
        _ => None,
    }
}

fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(..) => true,
        Expr::Cast(cast) => is_constant(&cast.expr),
        Expr::Alias(alias) => is_constant(&alias.expr),
        Expr::BinaryExpr(binary) => is_constant(&binary.left) && is_constant(&binary.right),
        Expr::ScalarFunction(call) => {
            call.func.signature().volatility != Volatility::Volatile
                && call.args.iter().all(is_constant)
        }
        _ => false,
    }
}

/// Choices between durations and intervals are durations.
fn chosen(mut case: Case, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let results = case.when_then_expr.iter().map(|(_, then)| &**then);
    if !has_duration(results.chain(case.else_expr.as_deref()), schema) {
        return Ok(Transformed::no(Expr::Case(case)));
    }
    for (_, then) in &mut case.when_then_expr {
        **then = length((**then).clone(), schema)?;
    }
    if let Some(other) = &mut case.else_expr {
        **other = length((**other).clone(), schema)?;
    }
    Ok(Transformed::yes(Expr::Case(case)))
}

fn cast(expr: Expr, kind: DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), kind))
}

/// What a duration, an interval or a text that stands for one lasts.
fn length(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let told = |nanoseconds| Expr::Literal(ScalarValue::DurationNanosecond(nanoseconds), None);
    match &expr {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _) => {
            return match nanoseconds(*interval) {
                Ok(nanoseconds) => Ok(told(Some(nanoseconds))),
                Err(why) => plan_err!("{why}"),
            };
        }
        Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) => {
            let parsed = ScalarValue::try_from_string(text.clone(), &INTERVAL);
            return match parsed {
                Ok(interval) => length(Expr::Literal(interval, None), schema),
                Err(_) => plan_err!(
                    "'{text}' is no interval: a difference of times is compared with one such as \
                     INTERVAL '90 minutes'"
                ),
            };
        }
        _ => {}
    }
    Ok(match kind_of(&expr, schema) {
        Some(DataType::Duration(TimeUnit::Nanosecond)) => expr,
        Some(DataType::Duration(_)) => cast(expr, DURATION),
        Some(DataType::Interval(_)) => parts::lasting(expr),
        Some(kind) if kind.is_numeric() => {
            return plan_err!(
                "a number is compared with an interval: a difference of times is compared with one such as \
                 INTERVAL '5 seconds', extract(epoch FROM …) of it with seconds, and a difference of dates is a \
                 number of days"
            );
        }
        _ => expr,
    })
}

fn nanoseconds(interval: IntervalMonthDayNano) -> std::result::Result<i64, &'static str> {
    if interval.months != 0 {
        return Err(
            "an interval of months or years lasts longer or shorter as they come, and cannot be compared or \
             reckoned with as a duration: write days, or add it to a time",
        );
    }
    let days = i64::from(interval.days).checked_mul(DAY_NS);
    days.and_then(|days| days.checked_add(interval.nanoseconds))
        .ok_or("an interval is longer than 292 years")
}

//! Conversions between types that Postgres has otherwise than the engine.
//!
//! - `AT TIME ZONE` of a time with a zone gives one without, and the other way round.
//! - A fraction that becomes a whole number is rounded, to the even one in the middle.
//! - A time as a text has a space between date and time, and its offset behind.
//! - Templates of times have their own patterns, see `time_format`.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, Float64Array};
use datafusion::arrow::compute::{cast, unary};
use datafusion::arrow::datatypes::{DataType, Float64Type, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::functions::datetime::{to_char, to_local_time};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::prelude::SessionContext;

use super::time_format::format_of;
use crate::layout::ZONE;

/// The function that `AT TIME ZONE` becomes.
pub(super) const AT_TIME_ZONE: &str = "logpond_at_time_zone";

/// The function that rounds a fraction to a whole number.
const TO_WHOLE: &str = "logpond_to_whole";

/// Functions whose last argument is a template of times.
const WITH_TEMPLATES: [&str; 3] = ["to_char", "to_timestamp", "to_date"];

/// Registers the conversions.
pub(super) fn register(context: &SessionContext) -> Result<()> {
    context.register_udf(ScalarUDF::from(ZoneShift::new()));
    context.register_udf(ScalarUDF::from(WholeNumber::new()));
    let state = context.state_ref();
    let rewrite = Arc::new(PostgresConversions);
    datafusion::execution::FunctionRegistry::register_function_rewrite(&mut *state.write(), rewrite)
}

/// A time with the engine's zone.
fn with_zone() -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, Some(ZONE.into()))
}

/// A time without a zone.
fn without_zone() -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, None)
}

/// Rewrites conversions, once the types are known.
#[derive(Debug)]
struct PostgresConversions;

impl FunctionRewrite for PostgresConversions {
    fn name(&self) -> &'static str {
        "postgres_conversions"
    }

    fn rewrite(
        &self,
        expr: Expr,
        schema: &DFSchema,
        _: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        Ok(match expr {
            Expr::ScalarFunction(call) if call.func.name() == AT_TIME_ZONE => {
                Transformed::yes(shifted(call, schema)?)
            }
            Expr::ScalarFunction(call) if WITH_TEMPLATES.contains(&call.func.name()) => {
                Transformed::yes(Expr::ScalarFunction(with_format(call, schema)?))
            }
            Expr::Cast(Cast { expr, field }) => {
                let from = expr.get_type(schema)?;
                Transformed::yes(match (&from, field.data_type()) {
                    (DataType::Float32 | DataType::Float64, to) if to.is_integer() => {
                        let whole = Arc::new(ScalarUDF::from(WholeNumber::new()));
                        let expr =
                            Expr::ScalarFunction(ScalarFunction::new_udf(whole, vec![*expr]));
                        let expr = Box::new(expr);
                        Expr::Cast(Cast { expr, field })
                    }
                    (DataType::Timestamp(_, zone), to) if to.is_string() => {
                        let offset = if zone.is_some() { "+00" } else { "" };
                        let format = text(&format!("%Y-%m-%d %H:%M:%S%.f{offset}"));
                        let arguments = vec![*expr, format];
                        Expr::ScalarFunction(ScalarFunction::new_udf(to_char(), arguments))
                    }
                    _ => Expr::Cast(Cast { expr, field }),
                })
            }
            other => Transformed::no(other),
        })
    }
}

fn text(text: &str) -> Expr {
    Expr::Literal(ScalarValue::Utf8(Some(text.to_owned())), None)
}

/// The text of a constant.
fn constant(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(ScalarValue::Utf8(text) | ScalarValue::Utf8View(text), _) => text.as_deref(),
        _ => None,
    }
}

fn cast_to(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), data_type))
}

/// The shift of a time to a zone, or from it.
fn shifted(call: ScalarFunction, schema: &DFSchema) -> Result<Expr> {
    let [time, zone] = &call.args[..] else {
        return plan_err!("AT TIME ZONE has a time and a zone");
    };
    let Some(zone) = constant(zone) else {
        return plan_err!("the zone of AT TIME ZONE is a constant text, such as 'Europe/Berlin'");
    };
    let there = DataType::Timestamp(TimeUnit::Nanosecond, Some(zone.into()));
    Ok(match time.get_type(schema)? {
        DataType::Timestamp(_, None) | DataType::Date32 => {
            let local = cast_to(time.clone(), without_zone());
            cast_to(cast_to(local, there), with_zone())
        }
        _ => {
            let utc = cast_to(time.clone(), with_zone());
            let there = cast_to(utc, there);
            let local = ScalarFunction::new_udf(to_local_time(), vec![there]);
            Expr::ScalarFunction(local)
        }
    })
}

/// A function with the engine's format instead of a template. One with `%` is a format already.
fn with_format(mut call: ScalarFunction, schema: &DFSchema) -> Result<ScalarFunction> {
    let name = call.func.name().to_owned();
    let [value, template] = &mut call.args[..] else {
        return Ok(call);
    };
    if name == "to_char" {
        let kind = value.get_type(schema)?;
        if !kind.is_temporal() && kind != DataType::Null {
            return plan_err!(
                "to_char is not supported for values of type {kind}: CAST(… AS VARCHAR) shows them"
            );
        }
    }
    let Some(text_of_template) = constant(template) else {
        return plan_err!("the template of {name} is a constant text");
    };
    if !text_of_template.contains('%') {
        match format_of(text_of_template) {
            Ok(format) => *template = text(&format),
            Err(message) => return plan_err!("{name}: {message}"),
        }
    }
    Ok(call)
}

/// The function for `AT TIME ZONE`. Only its type is asked for: it is rewritten.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ZoneShift {
    signature: Signature,
}

impl ZoneShift {
    fn new() -> ZoneShift {
        ZoneShift {
            signature: Signature::any(2, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for ZoneShift {
    fn name(&self) -> &str {
        AT_TIME_ZONE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(match arguments {
            [DataType::Timestamp(_, None) | DataType::Date32, _] => with_zone(),
            _ => without_zone(),
        })
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        exec_err!("AT TIME ZONE was not planned")
    }
}

/// The function that rounds to a whole number, to the even one in the middle.
#[derive(Debug, PartialEq, Eq, Hash)]
struct WholeNumber {
    signature: Signature,
}

impl WholeNumber {
    fn new() -> WholeNumber {
        WholeNumber {
            signature: Signature::any(1, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for WholeNumber {
    fn name(&self) -> &str {
        TO_WHOLE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = &arguments.args[..] else {
            return exec_err!("{TO_WHOLE} has one argument");
        };
        let array = cast(&value.to_array(arguments.number_rows)?, &DataType::Float64)?;
        let rounded: Float64Array =
            unary(array.as_primitive::<Float64Type>(), f64::round_ties_even);
        match value {
            ColumnarValue::Scalar(_) => {
                let value = ScalarValue::try_from_array(&rounded, 0)?;
                Ok(ColumnarValue::Scalar(value))
            }
            ColumnarValue::Array(_) => Ok(ColumnarValue::Array(Arc::new(rounded))),
        }
    }
}

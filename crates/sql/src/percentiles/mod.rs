//! Percentiles as the standard has them: of the values in their order, the one at a place, or what is between the
//! two around it.
//!
//! The engine's own interpolate in steps of a millionth, and turn the order around by `1 - p`, which is another
//! number.
//!
//! Invariants:
//! - Of `n` values in their order `percentile_cont(p)` is at the place `p * (n - 1)`, counted from nothing, and
//!   between two places by as much as the place is; `percentile_disc(p)` is the first one with at least `p * n`
//!   values up to it. `median` is `percentile_cont(0.5)`.
//! - All values are kept until the answer is there, and are told as memory of the statement.

mod groups;
mod values;

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, TimeUnit};
use datafusion::common::{ScalarValue, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, GroupsAccumulator, Signature,
    Volatility,
};
use datafusion::physical_expr::utils::collect_columns;

use crate::moving::Frame;
use groups::Groups;
use values::{OrderedValues, Values};

/// All of these functions.
pub(crate) fn functions() -> [AggregateUDF; 3] {
    let new = |name, alias: &[&str], is_between, constant| {
        AggregateUDF::from(Percentile {
            name,
            aliases: alias.iter().copied().map(str::to_owned).collect(),
            is_between,
            constant,
            signature: Signature::user_defined(Volatility::Immutable),
        })
    };
    [
        new("percentile_cont", &["quantile_cont"], true, None),
        new("percentile_disc", &["quantile_disc"], false, None),
        new("median", &[], true, Some(Tenths(5))),
    ]
}

/// A constant percentile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Tenths(u8);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Percentile {
    name: &'static str,
    aliases: Vec<String>,
    /// Whether it may be between two values.
    is_between: bool,
    /// Which one it always is.
    constant: Option<Tenths>,
    signature: Signature,
}

/// Where among values.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Place {
    percentile: f64,
    is_between: bool,
    is_descending: bool,
}

impl Percentile {
    fn place(&self, args: &AccumulatorArgs<'_>) -> Result<Place> {
        let percentile = match (self.constant, args.exprs) {
            (Some(Tenths(tenths)), _) => f64::from(tenths) / 10.0,
            (None, [_, percentile]) if collect_columns(percentile).is_empty() => {
                let nothing = RecordBatch::new_empty(Arc::new(Schema::empty()));
                match percentile.evaluate(&nothing)? {
                    ColumnarValue::Scalar(ScalarValue::Float64(Some(percentile))) => percentile,
                    _ => return self.no_percentile(),
                }
            }
            _ => return self.no_percentile(),
        };
        if !(0.0..=1.0).contains(&percentile) {
            return self.no_percentile();
        }
        let sort = args.order_bys.first();
        Ok(Place {
            percentile,
            is_between: self.is_between,
            is_descending: sort.is_some_and(|sort| sort.options.descending),
        })
    }

    fn no_percentile<T>(&self) -> Result<T> {
        exec_err!("{} takes a constant number from 0 to 1", self.name)
    }

    /// The type that values of another one are made, which is that of the percentile.
    fn value_type(&self, kind: &DataType) -> Result<DataType> {
        Ok(match kind {
            DataType::Null => DataType::Float64,
            kind if kind.is_signed_integer() && !self.is_between => DataType::Int64,
            kind if kind.is_numeric() => DataType::Float64,
            DataType::Timestamp(..) | DataType::Duration(_) => kind.clone(),
            DataType::Date32 if self.is_between => DataType::Timestamp(TimeUnit::Nanosecond, None),
            DataType::Date32 => DataType::Date32,
            kind if kind.is_string() => {
                return plan_err!("Function '{}' requires Float64, not {kind}", self.name);
            }
            kind => {
                return plan_err!(
                    "{} takes numbers, times or durations, not {kind}",
                    self.name
                );
            }
        })
    }
}

/// The type that values are kept as.
fn kept(kind: &DataType) -> DataType {
    match kind {
        DataType::Float64 => DataType::Float64,
        _ => DataType::Int64,
    }
}

impl AggregateUDFImpl for Percentile {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match (types, self.constant) {
            ([value], Some(_)) => Ok(vec![self.value_type(value)?]),
            ([value, percentile], None) if percentile.is_numeric() => {
                Ok(vec![self.value_type(value)?, DataType::Float64])
            }
            (_, Some(_)) => plan_err!("{} takes one argument", self.name),
            (_, None) => plan_err!(
                "{} takes a number from 0 to 1: {}(0.9) WITHIN GROUP (ORDER BY …)",
                self.name,
                self.name
            ),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        types
            .first()
            .map_or(Ok(DataType::Float64), |kind| self.value_type(kind))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let name = format_state_name(args.name, self.name);
        let values = Field::new_list_field(kept(args.return_type()), true);
        let kind = DataType::List(Arc::new(values));
        Ok(vec![Arc::new(Field::new(name, kind, true))])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let (place, kind) = (self.place(&args)?, args.return_type().clone());
        Ok(match kept(&kind) {
            DataType::Float64 => Box::new(Values::<f64>::new(place, kind, args.is_distinct)),
            _ => Box::new(Values::<i64>::new(place, kind, args.is_distinct)),
        })
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        let (place, kind) = (self.place(&args)?, args.return_type().clone());
        Ok(match kept(&kind) {
            DataType::Float64 => Box::new(Frame(OrderedValues::<f64>::new(
                place,
                kind,
                args.is_distinct,
            ))),
            _ => Box::new(Frame(OrderedValues::<i64>::new(
                place,
                kind,
                args.is_distinct,
            ))),
        })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let (place, kind) = (self.place(&args)?, args.return_type().clone());
        Ok(match kept(&kind) {
            DataType::Float64 => Box::new(Groups::<f64>::new(place, kind)),
            _ => Box::new(Groups::<i64>::new(place, kind)),
        })
    }

    fn supports_within_group_clause(&self) -> bool {
        self.constant.is_none()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

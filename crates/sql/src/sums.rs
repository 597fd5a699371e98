//! Sums of whole numbers: right, or an error.
//!
//! Invariant: a sum is a `BIGINT`, as the numbers are, and is computed in 128 bits: no count of records makes it
//! wrap on the way.

use std::collections::HashMap;
use std::slice;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Int64Type};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue, exec_err};
use datafusion::error::Result;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Cast, EmitTo, Expr, ExprSchemable,
    GroupsAccumulator, ReversedUDAF, Signature, Volatility, WindowFunctionDefinition,
};

use crate::moving::{Frame, FrameAccumulator};

/// What a sum is while it is computed: more digits than 2^63 numbers of 64 bits have.
const WIDE: DataType = DataType::Decimal128(38, 0);

/// What a distinct sum is made of: all digits of 64 bits.
const DISTINCT: DataType = DataType::Decimal128(20, 0);

/// Has whole numbers summed up so.
#[derive(Debug)]
pub(crate) struct CheckedSums;

impl FunctionRewrite for CheckedSums {
    fn name(&self) -> &'static str {
        "checked_sums"
    }

    fn rewrite(
        &self,
        expr: Expr,
        schema: &DFSchema,
        _: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        let is_sum = |name: &str, args: &[Expr]| {
            name == "sum" && matches!(args, [arg] if is_whole(arg, schema))
        };
        Ok(match expr {
            Expr::AggregateFunction(AggregateFunction { func, mut params })
                if is_sum(func.name(), &params.args) && !func.inner().is::<CheckedSum>() =>
            {
                if params.distinct {
                    let args = params.args.into_iter();
                    let wide = |arg| Expr::Cast(Cast::new(Box::new(arg), DISTINCT));
                    params.args = args.map(wide).collect();
                    return Ok(Transformed::yes(Expr::AggregateFunction(
                        AggregateFunction { func, params },
                    )));
                }
                let func = checked();
                Transformed::yes(Expr::AggregateFunction(AggregateFunction { func, params }))
            }
            Expr::WindowFunction(mut window) if is_of_engine(&window) => {
                if is_sum(window.fun.name(), &window.params.args) {
                    window.fun = WindowFunctionDefinition::AggregateUDF(checked());
                    return Ok(Transformed::yes(Expr::WindowFunction(window)));
                }
                Transformed::no(Expr::WindowFunction(window))
            }
            other => Transformed::no(other),
        })
    }
}

fn checked() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(CheckedSum::default()))
}

fn is_of_engine(window: &WindowFunction) -> bool {
    match &window.fun {
        WindowFunctionDefinition::AggregateUDF(function) => !function.inner().is::<CheckedSum>(),
        WindowFunctionDefinition::WindowUDF(_) => false,
    }
}

fn is_whole(arg: &Expr, schema: &DFSchema) -> bool {
    let kind = arg.get_type(schema);
    kind.is_ok_and(|kind| kind.is_signed_integer())
}

/// The sum of whole numbers.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedSum(Signature);

impl Default for CheckedSum {
    fn default() -> CheckedSum {
        CheckedSum(Signature::exact(
            vec![DataType::Int64],
            Volatility::Immutable,
        ))
    }
}

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &'static str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        // Only those of windows are distinct: see the rewriting.
        Ok(if args.is_distinct {
            Box::new(Frame(DistinctTotal::default()))
        } else {
            Box::new(Total::default())
        })
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        self.accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let name = format_state_name(args.name, "sum");
        Ok(vec![Arc::new(Field::new(name, WIDE, true))])
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let wide = AccumulatorArgs {
            return_field: Arc::new(Field::new(args.name, WIDE, true)),
            ..args
        };
        let inner = sum_udaf().create_groups_accumulator(wide)?;
        Ok(Box::new(Totals(inner)))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

fn too_large<T>() -> Result<T> {
    exec_err!(
        "a sum is larger than a BIGINT can be: sum(CAST(… AS DECIMAL(20, 0))) has all its digits"
    )
}

fn narrow(sum: i128) -> Result<i64> {
    i64::try_from(sum).or_else(|_| too_large())
}

/// One sum.
#[derive(Debug, Default)]
struct Total {
    sum: i128,
    /// Numbers that are in it: the sum of none is null.
    count: u64,
}

fn numbers(values: &[ArrayRef]) -> impl Iterator<Item = i64> {
    let values = values
        .iter()
        .filter_map(|array| array.as_primitive_opt::<Int64Type>());
    values.flat_map(|array| array.iter().flatten())
}

impl Accumulator for Total {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for number in numbers(values) {
            self.sum += i128::from(number);
            self.count += 1;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for number in numbers(values) {
            self.sum -= i128::from(number);
            self.count -= 1;
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let states = states
            .iter()
            .filter_map(|array| array.as_primitive_opt::<Decimal128Type>());
        for sum in states.flat_map(|array| array.iter().flatten()) {
            self.sum += sum;
            self.count += 1;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let sum = (self.count > 0).then_some(self.sum);
        Ok(vec![ScalarValue::Decimal128(sum, 38, 0)])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match self.count {
            0 => Ok(ScalarValue::Int64(None)),
            _ => Ok(ScalarValue::Int64(Some(narrow(self.sum)?))),
        }
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// A sum of distinct numbers in the frame of a window.
#[derive(Debug, Default)]
struct DistinctTotal {
    sum: i128,
    /// How often each number is in the frame. Invariant: not zero times.
    counts: HashMap<i64, u64>,
}

impl FrameAccumulator for DistinctTotal {
    fn enter(&mut self, values: &ArrayRef) -> Result<()> {
        for number in numbers(slice::from_ref(values)) {
            let count = self.counts.entry(number).or_default();
            if *count == 0 {
                self.sum += i128::from(number);
            }
            *count += 1;
        }
        Ok(())
    }

    fn leave(&mut self, values: &ArrayRef) -> Result<()> {
        for number in numbers(slice::from_ref(values)) {
            match self.counts.get_mut(&number) {
                Some(count) if *count > 1 => *count -= 1,
                _ => {
                    self.counts.remove(&number);
                    self.sum -= i128::from(number);
                }
            }
        }
        Ok(())
    }

    fn value(&self) -> Result<ScalarValue> {
        if self.counts.is_empty() {
            Ok(ScalarValue::Int64(None))
        } else {
            Ok(ScalarValue::Int64(Some(narrow(self.sum)?)))
        }
    }

    fn bytes(&self) -> usize {
        size_of_val(self) + self.counts.capacity() * size_of::<(i64, u64)>()
    }
}

/// The sums of groups.
struct Totals(Box<dyn GroupsAccumulator>);

fn widened(values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    let values = values.iter().map(|array| Ok(cast(array, &WIDE)?));
    values.collect()
}

impl GroupsAccumulator for Totals {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.0
            .update_batch(&widened(values)?, groups, filter, count)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let sums = self.0.evaluate(emit)?;
        let Some(sums) = sums.as_primitive_opt::<Decimal128Type>() else {
            return exec_err!("sums are {}", sums.data_type());
        };
        let sums = sums.iter().map(|sum| sum.map(narrow).transpose());
        Ok(Arc::new(sums.collect::<Result<Int64Array>>()?))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let state = self.0.state(emit)?;
        let exact = |array: ArrayRef| match array.as_primitive_opt::<Decimal128Type>() {
            Some(sums) => Ok(Arc::new(sums.clone().with_data_type(WIDE)) as ArrayRef),
            None => Ok(array),
        };
        state.into_iter().map(exact).collect()
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.0.merge_batch(values, groups, count)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        self.0.convert_to_state(&widened(values)?, filter)
    }

    fn size(&self) -> usize {
        self.0.size()
    }
}

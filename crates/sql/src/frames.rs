//! Sums, means and deviations of fractions in frames whose beginning moves.
//!
//! The engine takes away what leaves a frame from a sum, which has lost the digits of small numbers by then, and never
//! gets rid of an infinite one: after `1e300` the sum of 5.5 and 0.1 is 0.1, and their mean below zero.
//!
//! Invariant: what a frame gives is computed of the numbers in it, and nothing is taken away.
//!
//! Layout: numbers come at the back, and leave at the front. The front has, for each of its numbers, the summary of all
//! from it on; when it is used up, the back becomes the front. Each number is looked at twice.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef, Float64Type};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, ExprSchemable, Signature, WindowFrame,
    WindowFrameBound, WindowFunctionDefinition,
};
use logpond_record::cast;

use crate::moving::{Frame, FrameAccumulator};

/// The most rows or groups that a frame reaches before or behind a row. The engine adds them to numbers of rows.
const FRAME_ROWS_MAX: u64 = 1 << 53;

/// Has such functions computed so.
#[derive(Debug)]
pub(crate) struct Frames;

impl FunctionRewrite for Frames {
    fn name(&self) -> &'static str {
        "frames"
    }

    fn rewrite(
        &self,
        expr: Expr,
        schema: &DFSchema,
        _: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        let Expr::WindowFunction(mut window) = expr else {
            return Ok(Transformed::no(expr));
        };
        check_bounds(&window.params.window_frame)?;
        let WindowFunctionDefinition::AggregateUDF(function) = &window.fun else {
            return Ok(Transformed::no(Expr::WindowFunction(window)));
        };
        let [arg] = &window.params.args[..] else {
            return Ok(Transformed::no(Expr::WindowFunction(window)));
        };
        let kind = arg.get_type(schema)?;
        let is_known = kind.is_floating() || kind.is_integer() && function.name() != "sum";
        let of = Of::named(function.name()).filter(|_| is_known && !window.params.distinct);
        let Some(of) = of.filter(|_| !function.inner().is::<InFrame>()) else {
            return Ok(Transformed::no(Expr::WindowFunction(window)));
        };
        let inner = Arc::clone(function);
        let function = AggregateUDF::from(InFrame { inner, of });
        window.fun = WindowFunctionDefinition::AggregateUDF(Arc::new(function));
        Ok(Transformed::yes(Expr::WindowFunction(window)))
    }
}

/// Refuses a frame that reaches further than the engine counts.
fn check_bounds(frame: &WindowFrame) -> Result<()> {
    for bound in [&frame.start_bound, &frame.end_bound] {
        if let WindowFrameBound::Preceding(ScalarValue::UInt64(Some(rows)))
        | WindowFrameBound::Following(ScalarValue::UInt64(Some(rows))) = bound
            && *rows > FRAME_ROWS_MAX
        {
            return plan_err!(
                "a window reaches at most {FRAME_ROWS_MAX} rows, not {rows}: say UNBOUNDED"
            );
        }
    }
    Ok(())
}

/// What is wanted of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Of {
    Sum,
    Mean,
    /// The squares of differences from the mean: over so many numbers less than there are, and the root of that.
    Variance {
        less: u64,
        is_root: bool,
    },
}

impl Of {
    fn named(name: &str) -> Option<Of> {
        let variance = |less, is_root| Of::Variance { less, is_root };
        Some(match name {
            "sum" => Of::Sum,
            "avg" => Of::Mean,
            "var" => variance(1, false),
            "var_pop" => variance(0, false),
            "stddev" => variance(1, true),
            "stddev_pop" => variance(0, true),
            _ => return None,
        })
    }
}

/// A function of the engine in a window.
#[derive(Debug, PartialEq, Eq, Hash)]
struct InFrame {
    inner: Arc<AggregateUDF>,
    of: Of,
}

impl AggregateUDFImpl for InFrame {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.inner.accumulator(args)
    }

    fn create_sliding_accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Frame(Numbers {
            of: self.of,
            front: Vec::new(),
            back: Vec::new(),
            all_back: Summary::default(),
        })))
    }
}

/// What is known of some numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Summary {
    count: u64,
    sum: f64,
    mean: f64,
    /// The sum of the squares of the differences from the mean.
    squares: f64,
}

impl Summary {
    fn one(number: f64) -> Summary {
        Summary {
            count: 1,
            sum: number,
            mean: number,
            squares: 0.0,
        }
    }

    fn and(self, other: Summary) -> Summary {
        if self.count == 0 || other.count == 0 {
            return if self.count == 0 { other } else { self };
        }
        let (left, right) = (cast::float(self.count), cast::float(other.count));
        let (count, apart) = (left + right, other.mean - self.mean);
        Summary {
            count: self.count + other.count,
            sum: self.sum + other.sum,
            mean: self.mean + apart * right / count,
            squares: self.squares + other.squares + apart * apart * left * right / count,
        }
    }

    fn value(self, of: Of) -> Option<f64> {
        match of {
            _ if self.count == 0 => None,
            Of::Sum => Some(self.sum),
            Of::Mean => Some(self.sum / cast::float(self.count)),
            Of::Variance { less, .. } if self.count <= less => None,
            Of::Variance { less, is_root } => {
                let variance = self.squares / cast::float(self.count - less);
                Some(if is_root { variance.sqrt() } else { variance })
            }
        }
    }
}

/// The numbers of a frame.
#[derive(Debug)]
struct Numbers {
    of: Of,
    /// The first number is the last one here.
    front: Vec<Summary>,
    back: Vec<f64>,
    all_back: Summary,
}

impl Numbers {
    fn let_go(&mut self) -> Result<()> {
        if self.front.is_empty() {
            let mut behind = Summary::default();
            for number in self.back.drain(..).rev() {
                behind = Summary::one(number).and(behind);
                self.front.push(behind);
            }
            self.all_back = Summary::default();
        }
        match self.front.pop() {
            Some(_) => Ok(()),
            None => exec_err!("a number leaves a frame that it is not in"),
        }
    }
}

fn numbers(values: &ArrayRef) -> Result<Vec<f64>> {
    let values = cast(values, &DataType::Float64)?;
    let numbers = values.as_primitive_opt::<Float64Type>();
    Ok(numbers.map_or_else(Vec::new, |numbers| numbers.iter().flatten().collect()))
}

impl FrameAccumulator for Numbers {
    fn enter(&mut self, values: &ArrayRef) -> Result<()> {
        for number in numbers(values)? {
            self.back.push(number);
            self.all_back = self.all_back.and(Summary::one(number));
        }
        Ok(())
    }

    fn leave(&mut self, values: &ArrayRef) -> Result<()> {
        for _ in numbers(values)? {
            self.let_go()?;
        }
        Ok(())
    }

    fn value(&self) -> Result<ScalarValue> {
        let front = self.front.last().copied().unwrap_or_default();
        Ok(ScalarValue::Float64(
            front.and(self.all_back).value(self.of),
        ))
    }

    fn bytes(&self) -> usize {
        let front = self.front.capacity() * size_of::<Summary>();
        size_of_val(self) + front + self.back.capacity() * size_of::<f64>()
    }
}

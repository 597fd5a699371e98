//! Functions with results of any length.
//!
//! The pool of statements does not count memory that a function takes, and `repeat('x', 2000000000)` would
//! end the process. Therefore each function with such results, and the operator `||`, gets an upper bound of
//! them before they are computed. No function is left out for being unknown: a function that is not in the
//! table of [`Growth`] is taken for one whose results grow with its arguments.
//!
//! Invariants:
//! - The results of one call, for the rows that it is given at a time, are no larger than its share of the
//!   bytes of [`Limits`]. The result of constants has an eighth of that: planning copies constants.
//! - A call computes nothing after the end of its statement, also while the statement is planned.
//! - Large results are computed only while the process has memory for them.
//! - Results that are texts are views: rows that a join multiplies share their bytes.
//! - Constants of a projection, which stand beside each of its rows, are no larger than [`RESULT_BYTES_MAX`]
//!   for the rows of a batch.

mod joined;
mod large_constants;
mod sizes;
mod steps;

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature,
};

use crate::checkpoint::StopFlag;
use crate::copies::held_bytes;
use crate::error::{Blame, SqlError};
use crate::number_key::NumberKey;
use crate::source::Memory;

use joined::ConcatFunction;
pub(crate) use large_constants::check_constants;
use sizes::Growth;
use steps::SteppedFunction;

/// Bytes of results of all such functions of a statement for the rows that they are given at a time: 32 KiB for
/// each row of a batch.
pub(crate) const RESULT_BYTES_MAX: u64 = 64 << 20;

/// The smallest share of one of many calls, as a part of the bytes of all: a KiB for each row of a batch.
const SHARES_MAX: u64 = 32;

/// The result of constants has this part of a share: planning has several copies of it at a time.
const CONSTANT_SHARE: u64 = 8;

/// Smaller results are not asked for.
const ASKED_BYTES_MIN: u64 = 256 << 10;

/// Functions that planning replaces by expressions without results of their own.
const REPLACED: [&str; 8] = [
    "coalesce",
    "nvl",
    "nvl2",
    "get_field",
    "arrow_cast",
    "arrow_try_cast",
    "cast_to_type",
    "try_cast_to_type",
];

/// The bounds of one statement.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Bytes of the results of all calls.
    pub(crate) result_bytes: u64,
    /// The end of the statement.
    pub(crate) ending: StopFlag,
    /// The memory of the process, if it is counted.
    pub(crate) memory: Option<Arc<dyn Memory>>,
    /// True if results keep the types that they were planned with: a recursive query was planned with them.
    pub(crate) keeps_types: bool,
}

/// The calls of one statement, among which the bytes are shared.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    count: Arc<AtomicUsize>,
    limits: Limits,
}

impl Calls {
    pub(crate) fn new(limits: Limits) -> Calls {
        Calls {
            count: Arc::default(),
            limits,
        }
    }

    /// Bytes that the results of one call may have.
    fn share(&self) -> u64 {
        let calls = self.count.load(Ordering::Relaxed).max(1) as u64;
        self.limits.result_bytes / calls.min(SHARES_MAX)
    }

    /// A call, unless it is bounded already or has results of a fixed size.
    fn growth_of(call: &ScalarFunction, schema: &DFSchema) -> Option<Growth> {
        let name = call.func.name();
        // A key is as long as its number, and is made for a comparison.
        let is_known =
            call.func.inner().is::<BoundedFunction>() || call.func.inner().is::<NumberKey>();
        if is_known || REPLACED.contains(&name) {
            return None;
        }
        Growth::of(name).or_else(|| {
            let kind = Expr::ScalarFunction(call.clone()).get_type(schema);
            (!kind.is_ok_and(|kind| has_fixed_size(&kind))).then_some(Growth::Linear)
        })
    }
}

/// True if no value of this type has more than some bytes.
fn has_fixed_size(kind: &DataType) -> bool {
    kind.is_primitive() || matches!(kind, DataType::Null | DataType::Boolean)
}

impl FunctionRewrite for Calls {
    fn name(&self) -> &'static str {
        "bounded_functions"
    }

    fn rewrite(
        &self,
        expr: Expr,
        schema: &DFSchema,
        _: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        if let Expr::ScalarFunction(call) = &expr
            && let Some(stepped) = SteppedFunction::of(&call.func, &self.limits.ending)
        {
            let function = Arc::new(ScalarUDF::from(stepped));
            let call = ScalarFunction::new_udf(function, call.args.clone());
            return Ok(Transformed::yes(Expr::ScalarFunction(call)));
        }
        let planned = self.limits.keeps_types.then(|| expr.get_type(schema));
        let (function, args) = match expr {
            Expr::ScalarFunction(call) => match Calls::growth_of(&call, schema) {
                None if is_cast_to_fixed_bytes(&call) => {
                    return plan_err!("{} makes no values of fixed sizes", call.func.name());
                }
                Some(growth) => (BoundedFunction::new(call.func, growth, self), call.args),
                None => return Ok(Transformed::no(Expr::ScalarFunction(call))),
            },
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::StringConcat,
                right,
            }) if is_joined_as_text(&left, schema) && is_joined_as_text(&right, schema) => {
                let joined = Arc::new(ScalarUDF::from(ConcatFunction::default()));
                let bounded = BoundedFunction::new(joined, Growth::Joined, self);
                (bounded, vec![*left, *right])
            }
            other => return Ok(Transformed::no(other)),
        };
        self.count.fetch_add(1, Ordering::Relaxed);
        let function = Arc::new(ScalarUDF::from(function));
        let call = Expr::ScalarFunction(ScalarFunction::new_udf(function, args));
        Ok(Transformed::yes(match planned {
            Some(planned) => call.cast_to(&planned?, schema)?,
            None => call,
        }))
    }
}

/// True if a call casts to a type whose size the statement says, which no function then bounds.
fn is_cast_to_fixed_bytes(call: &ScalarFunction) -> bool {
    let is_sized = |arg: &Expr| match arg {
        Expr::Literal(kind, _) => kind.to_string().contains("FixedSize"),
        _ => false,
    };
    REPLACED.contains(&call.func.name()) && call.args.iter().any(is_sized)
}

/// Whether `||` makes a text of this.
fn is_joined_as_text(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|kind| {
        let is_plain = kind.is_string() || kind.is_numeric() || kind.is_temporal();
        is_plain || matches!(kind, DataType::Null | DataType::Boolean)
    })
}

/// A function that is asked for no more than its share.
#[derive(Debug)]
struct BoundedFunction {
    inner: Arc<ScalarUDF>,
    growth: Growth,
    calls: Calls,
}

impl PartialEq for BoundedFunction {
    fn eq(&self, other: &BoundedFunction) -> bool {
        self.inner == other.inner
    }
}

impl Eq for BoundedFunction {}

impl Hash for BoundedFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl BoundedFunction {
    fn new(inner: Arc<ScalarUDF>, growth: Growth, calls: &Calls) -> BoundedFunction {
        BoundedFunction {
            inner,
            growth,
            calls: calls.clone(),
        }
    }

    fn too_large<T>(&self, share: u64) -> Result<T> {
        refused(format!(
            "the results of {} for some thousand rows take more than {} KiB: ask for shorter ones, or for \
             fewer rows at a time",
            self.inner.name(),
            share >> 10
        ))
    }

    /// Computes rows whose results have no more than so many bytes.
    fn invoke(&self, args: ScalarFunctionArgs, bytes: u64) -> Result<ColumnarValue> {
        self.calls.limits.ending.check()?;
        // The result is counted from its allocation on, so this is for the time until then.
        let memory = self.calls.limits.memory.as_ref();
        let asked = memory.filter(|_| bytes >= ASKED_BYTES_MIN);
        let _held = match asked.map(|memory| memory.hold(bytes)) {
            Some(Err(why)) => return refused(why),
            held => held,
        };
        self.inner.inner().invoke_with_args(args)
    }

    /// Computes as many rows at a time as may be too large at most, and counts what they are.
    fn in_slices(
        &self,
        args: &ScalarFunctionArgs,
        sizes: &[u64],
        share: u64,
    ) -> Result<ColumnarValue> {
        let mut parts: Vec<ArrayRef> = Vec::new();
        let (mut from, mut bytes) = (0, 0);
        while from < sizes.len() {
            let rows = rows_within(&sizes[from..], share);
            if rows == 0 {
                return self.too_large(share);
            }
            let slice = sizes[from..from + rows].iter().sum();
            let part = self.invoke(sliced(args, from, rows), slice)?;
            let part = part.into_array(rows)?;
            bytes += held_bytes(&part) as u64;
            if bytes > share {
                return self.too_large(share);
            }
            parts.push(part);
            from += rows;
        }
        let parts: Vec<_> = parts.iter().map(AsRef::as_ref).collect();
        Ok(ColumnarValue::Array(concat(&parts)?))
    }
}

/// A refusal for want of memory.
fn refused<T>(message: String) -> Result<T> {
    let error = SqlError::new(Blame::Memory, message);
    Err(DataFusionError::External(Box::new(error)))
}

/// How many of the first rows have no more than so much together.
fn rows_within(sizes: &[u64], size_max: u64) -> usize {
    let mut all = 0_u64;
    let fits = |size: &&u64| {
        all = all.saturating_add(**size);
        all <= size_max
    };
    sizes.iter().take_while(fits).count()
}

fn sliced(args: &ScalarFunctionArgs, from: usize, rows: usize) -> ScalarFunctionArgs {
    let slice = |arg: &ColumnarValue| match arg {
        ColumnarValue::Array(array) => ColumnarValue::Array(array.slice(from, rows)),
        scalar => scalar.clone(),
    };
    ScalarFunctionArgs {
        args: args.args.iter().map(slice).collect(),
        number_rows: rows,
        ..args.clone()
    }
}

/// Everything but the simplified form is what the inner function says: that one may be another function, which
/// nobody bounds.
impl ScalarUDFImpl for BoundedFunction {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.inner.inner().schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.inner().coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types).map(|kind| viewed(&kind))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let field = self.inner.return_field_from_args(args)?;
        let kind = viewed(field.data_type());
        Ok(Arc::new(Field::clone(&field).with_data_type(kind)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let is_constant = args.args.iter().all(is_scalar);
        let (rows, share) = if is_constant {
            (1, self.calls.share() / CONSTANT_SHARE)
        } else {
            (args.number_rows, self.calls.share())
        };
        let kind = args.return_field.data_type().clone();
        let sizes = self.growth.sizes(&args.args, rows)?;
        let all = sizes
            .iter()
            .fold(0, |all: u64, size| all.saturating_add(*size));
        let result = if all <= share {
            self.invoke(args, all)
        } else if self.growth.is_exact() {
            self.too_large(share)
        } else {
            self.in_slices(&args, &sizes, share)
        };
        result?.cast_to(&kind, None)
    }
}

/// The type of results.
fn viewed(kind: &DataType) -> DataType {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        other => other.clone(),
    }
}

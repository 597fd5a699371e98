//! Functions whose results may be far larger than what they are given.
//!
//! Memory that a function takes is nobody's: the pool of statements has no part in it, and
//! `repeat('x', 2000000000)` would end the process. So such functions, and the operator `||`, say what
//! their results for some rows will take at most before they are computed.
//!
//! Invariants:
//! - The results of one call, for the rows that it is given at a time, are no larger than its share of
//!   [`RESULT_BYTES_MAX`].
//! - Results that are texts are views: rows that a join multiplies share their bytes.
//! - Constants of a projection, which stand beside each of its rows, are no larger than [`RESULT_BYTES_MAX`]
//!   for the rows of a batch.

mod joined;
mod sizes;

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, exec_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;

use joined::Joined;
use sizes::Growth;

/// Bytes of results of all such functions of a statement for the rows that they are given at a time: 32 KiB for
/// each row of a batch.
pub(crate) const RESULT_BYTES_MAX: u64 = 64 << 20;

/// The least share of one of many calls: a KiB for each row of a batch.
const SHARE_BYTES_MIN: u64 = 2 << 20;

/// The calls of one statement, among which the bytes are shared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls(Arc<AtomicUsize>);

impl Calls {
    /// Bytes that the results of one call may have.
    fn share(&self) -> u64 {
        let calls = self.0.load(Ordering::Relaxed).max(1) as u64;
        (RESULT_BYTES_MAX / calls).max(SHARE_BYTES_MIN)
    }
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
        let (function, args) = match expr {
            Expr::ScalarFunction(call) => match Growth::of(call.func.name()) {
                Some(_) if call.func.inner().is::<Bounded>() => {
                    return Ok(Transformed::no(Expr::ScalarFunction(call)));
                }
                Some(growth) => (Bounded::new(call.func, growth, self), call.args),
                None => return Ok(Transformed::no(Expr::ScalarFunction(call))),
            },
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::StringConcat,
                right,
            }) if is_joined_as_text(&left, schema) && is_joined_as_text(&right, schema) => {
                let joined = Arc::new(ScalarUDF::from(Joined::default()));
                let bounded = Bounded::new(joined, Growth::Joined, self);
                (bounded, vec![*left, *right])
            }
            other => return Ok(Transformed::no(other)),
        };
        self.0.fetch_add(1, Ordering::Relaxed);
        let function = Arc::new(ScalarUDF::from(function));
        let call = ScalarFunction::new_udf(function, args);
        Ok(Transformed::yes(Expr::ScalarFunction(call)))
    }
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
struct Bounded {
    inner: Arc<ScalarUDF>,
    growth: Growth,
    calls: Calls,
}

impl PartialEq for Bounded {
    fn eq(&self, other: &Bounded) -> bool {
        self.inner == other.inner
    }
}

impl Eq for Bounded {}

impl Hash for Bounded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl Bounded {
    fn new(inner: Arc<ScalarUDF>, growth: Growth, calls: &Calls) -> Bounded {
        Bounded {
            inner,
            growth,
            calls: calls.clone(),
        }
    }

    fn too_large<T>(&self, share: u64) -> Result<T> {
        exec_err!(
            "the results of {} for some thousand rows take more than {} MiB: ask for shorter ones, or for \
             fewer rows at a time",
            self.inner.name(),
            share >> 20
        )
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
            let mut slice = 0_u64;
            let fits = |size: &&u64| {
                slice = slice.saturating_add(**size);
                slice <= share
            };
            let rows = sizes[from..].iter().take_while(fits).count();
            if rows == 0 {
                return self.too_large(share);
            }
            let part = self
                .inner
                .inner()
                .invoke_with_args(sliced(args, from, rows))?;
            let part = part.into_array(rows)?;
            bytes += part.get_array_memory_size() as u64;
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
impl ScalarUDFImpl for Bounded {
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
        let rows = match args.args.iter().all(is_scalar) {
            true => 1,
            false => args.number_rows,
        };
        let sizes = self.growth.sizes(&args.args, rows)?;
        let share = self.calls.share();
        let all = sizes
            .iter()
            .fold(0, |all: u64, size| all.saturating_add(*size));
        let kind = args.return_field.data_type().clone();
        let result = match all <= share {
            true => self.inner.inner().invoke_with_args(args),
            false if self.growth.is_exact() => self.too_large(share),
            false => self.in_slices(&args, &sizes, share),
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

/// Refuses a plan that would put large constants beside each of its rows.
pub(crate) fn check_constants(plan: &Arc<dyn ExecutionPlan>, batch_rows: usize) -> Result<()> {
    plan.apply(|operator| {
        if let Some(projection) = operator.downcast_ref::<ProjectionExec>()
            && !projection.input().is::<PlaceholderRowExec>()
        {
            let constants = projection
                .expr()
                .iter()
                .map(|named| constant_bytes(&named.expr));
            let bytes = constants.sum::<Result<u64>>()?;
            if bytes.saturating_mul(batch_rows as u64) > RESULT_BYTES_MAX {
                return exec_err!(
                    "the texts that the statement puts beside each row have more than {} KiB",
                    (RESULT_BYTES_MAX / batch_rows as u64) >> 10
                );
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .map(|_| ())
}

fn constant_bytes(expr: &Arc<dyn PhysicalExpr>) -> Result<u64> {
    let mut bytes = 0;
    expr.apply(|part| {
        if let Some(constant) = part.downcast_ref::<Literal>() {
            bytes += constant.value().size() as u64;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(bytes)
}

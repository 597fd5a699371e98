//! Sums, differences and products of two whole numbers: right, or an error. The engine lets them wrap.

use std::sync::Arc;

use datafusion::arrow::array::Datum;
use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue, exec_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};

/// Has whole numbers reckoned with so.
#[derive(Debug)]
pub(crate) struct CheckedNumbers;

impl FunctionRewrite for CheckedNumbers {
    fn name(&self) -> &'static str {
        "checked_numbers"
    }

    fn rewrite(
        &self,
        expr: Expr,
        schema: &DFSchema,
        _: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else {
            return Ok(Transformed::no(expr));
        };
        let is_whole = |expr: &Expr| {
            expr.get_type(schema)
                .is_ok_and(|kind| kind == DataType::Int64)
        };
        let is_checked = matches!(op, Operator::Plus | Operator::Minus | Operator::Multiply);
        if !is_checked || !is_whole(&left) || !is_whole(&right) {
            let binary = BinaryExpr { left, op, right };
            return Ok(Transformed::no(Expr::BinaryExpr(binary)));
        }
        let function = Arc::new(ScalarUDF::from(CheckedOperator::new(op)));
        let call = ScalarFunction::new_udf(function, vec![*left, *right]);
        Ok(Transformed::yes(Expr::ScalarFunction(call)))
    }
}

/// An operator as a function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedOperator {
    op: Operator,
    signature: Signature,
}

impl CheckedOperator {
    fn new(op: Operator) -> CheckedOperator {
        let kinds = vec![DataType::Int64; 2];
        CheckedOperator {
            op,
            signature: Signature::exact(kinds, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for CheckedOperator {
    fn name(&self) -> &'static str {
        match self.op {
            Operator::Plus => "+",
            Operator::Minus => "-",
            _ => "*",
        }
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match args {
            [left, right] => Ok(format!(
                "{} {} {}",
                left.schema_name(),
                self.op,
                right.schema_name()
            )),
            _ => exec_err!("{} takes two numbers", self.op),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = &args.args[..] else {
            return exec_err!("{} takes two numbers", self.op);
        };
        let datum = |value: &ColumnarValue| -> Result<Box<dyn Datum>> {
            Ok(match value {
                ColumnarValue::Array(array) => Box::new(Arc::clone(array)),
                ColumnarValue::Scalar(value) => Box::new(value.to_scalar()?),
            })
        };
        let (left_datum, right_datum) = (datum(left)?, datum(right)?);
        let result = match self.op {
            Operator::Plus => numeric::add(&*left_datum, &*right_datum),
            Operator::Minus => numeric::sub(&*left_datum, &*right_datum),
            _ => numeric::mul(&*left_datum, &*right_datum),
        };
        let Ok(result) = result else {
            return exec_err!(
                "a number is larger than a BIGINT can be: reckon with CAST(… AS DECIMAL(20, 0)) or CAST(… AS DOUBLE)"
            );
        };
        let is_scalar = |value: &ColumnarValue| matches!(value, ColumnarValue::Scalar(_));
        Ok(if is_scalar(left) && is_scalar(right) {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)
        } else {
            ColumnarValue::Array(result)
        })
    }
}

//! `||`: two texts as one; null if one of them is.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, StringViewBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

/// The operator as a function, which can be bounded.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ConcatFunction(Signature);

impl Default for ConcatFunction {
    fn default() -> ConcatFunction {
        ConcatFunction(Signature::user_defined(Volatility::Immutable))
    }
}

impl ScalarUDFImpl for ConcatFunction {
    fn name(&self) -> &'static str {
        "||"
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match args {
            [left, right] => Ok(format!("{} || {}", left.schema_name(), right.schema_name())),
            _ => exec_err!("|| joins two texts"),
        }
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(vec![DataType::Utf8View; types.len()])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let rows = if args.args.iter().all(is_scalar) {
            1
        } else {
            args.number_rows
        };
        let [left, right] = &args.args[..] else {
            return exec_err!("|| joins two texts");
        };
        let text = |arg: &ColumnarValue| cast(&arg.to_array(rows)?, &DataType::Utf8View);
        let (left, right) = (text(left)?, text(right)?);
        let mut builder = StringViewBuilder::with_capacity(rows);
        let mut joined = String::new();
        for pair in left.as_string_view().iter().zip(right.as_string_view()) {
            let (Some(left), Some(right)) = pair else {
                builder.append_null();
                continue;
            };
            joined.clear();
            joined.push_str(left);
            joined.push_str(right);
            builder.append_value(&joined);
        }
        let array = builder.finish();
        Ok(if rows == 1 && args.args.iter().all(is_scalar) {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)
        } else {
            ColumnarValue::Array(Arc::new(array))
        })
    }
}

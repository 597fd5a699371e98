//! Numbers as bytes that have their order, whatever their size.
//!
//! Invariant: two keys have the order in which filters compare the numbers. A text that is no number has no
//! key, like `NaN`.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{ScalarValue, exec_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use logpond_search::Number;

/// The function's name.
pub(crate) const NAME: &str = "number_key";

/// The key of an infinite number: behind or before all others.
const INFINITE: &[u8] = &[3];
const NEGATIVE_INFINITE: &[u8] = &[];

/// The key of a number, or of a text that may be one.
pub(crate) fn number_key(expr: Expr) -> Expr {
    let function = Arc::new(ScalarUDF::from(NumberKey::default()));
    Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![expr]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct NumberKey(Signature);

impl Default for NumberKey {
    fn default() -> NumberKey {
        NumberKey(Signature::any(1, Volatility::Immutable))
    }
}

impl ScalarUDFImpl for NumberKey {
    fn name(&self) -> &'static str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match &args.args[..] {
            [ColumnarValue::Array(array)] => Ok(ColumnarValue::Array(keys(array)?)),
            [ColumnarValue::Scalar(value)] => {
                let keys = keys(&value.to_array()?)?;
                let key = ScalarValue::try_from_array(&keys, 0)?;
                Ok(ColumnarValue::Scalar(key))
            }
            _ => exec_err!("{NAME} takes one number"),
        }
    }
}

fn keys(numbers: &ArrayRef) -> Result<ArrayRef> {
    let mut keys = BinaryBuilder::new();
    if numbers.data_type().is_floating() {
        let floats = cast(numbers, &DataType::Float64)?;
        for float in floats.as_primitive::<Float64Type>() {
            keys.append_option(float.and_then(float_key));
        }
    } else {
        // Whole numbers and decimals have all their digits in texts.
        let texts = cast(numbers, &DataType::Utf8View)?;
        for text in texts.as_string_view() {
            let number = text.and_then(|text| Number::parse(text.as_bytes()));
            keys.append_option(number.map(|number| number.sort_key()));
        }
    }
    Ok(Arc::new(keys.finish()))
}

fn float_key(float: f64) -> Option<Vec<u8>> {
    if float.is_finite() {
        Some(Number::Float(float).sort_key())
    } else if float.is_nan() {
        None
    } else if float > 0.0 {
        Some(INFINITE.to_vec())
    } else {
        Some(NEGATIVE_INFINITE.to_vec())
    }
}

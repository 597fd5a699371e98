//! Functions that compare each part of one argument with each part of another.
//!
//! Their results are small, and two texts of 300,000 characters take minutes. So they compute some rows at a time,
//! look at the end of the statement in between, and refuse what one row would take too long for.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use super::sizes::Argument;
use super::{rows_within, sliced};
use crate::checkpoint::StopFlag;
use crate::error::{Blame, SqlError};

/// The functions, by the names of the engine.
const FUNCTIONS: [&str; 4] = ["levenshtein", "strpos", "array_has_all", "array_has_any"];

/// Comparisons between two looks at the end of the statement: less than a tenth of a second.
const STEPS_BETWEEN: u64 = 1 << 24;

/// The most comparisons of a row: about a second. Two texts of 16,384 bytes take so many.
const STEPS_MAX: u64 = 1 << 28;

/// A function that ends with its statement.
#[derive(Debug)]
pub(super) struct SteppedFunction {
    inner: Arc<ScalarUDF>,
    ending: StopFlag,
}

impl PartialEq for SteppedFunction {
    fn eq(&self, other: &SteppedFunction) -> bool {
        self.inner == other.inner
    }
}

impl Eq for SteppedFunction {}

impl Hash for SteppedFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl SteppedFunction {
    /// The same function, if it is one of these and is not stepped yet.
    pub(super) fn of(function: &Arc<ScalarUDF>, ending: &StopFlag) -> Option<SteppedFunction> {
        let is_one = FUNCTIONS.contains(&function.name());
        (is_one && !function.inner().is::<SteppedFunction>()).then(|| SteppedFunction {
            inner: Arc::clone(function),
            ending: ending.clone(),
        })
    }

    fn too_long(&self) -> DataFusionError {
        let message = format!(
            "{} of arguments of this length takes too long: ask for shorter ones, whose lengths have a product of \
             at most {STEPS_MAX}",
            self.inner.name()
        );
        DataFusionError::External(Box::new(SqlError::new(Blame::Statement, message)))
    }

    /// The comparisons of each row.
    fn steps(&self, args: &[ColumnarValue], rows: usize) -> Result<Vec<u64>> {
        let args = args.iter().map(Argument::of).collect::<Result<Vec<_>>>()?;
        let of_row = |row: usize| {
            let lengths = args.iter().map(|arg| arg.length(row).max(1));
            lengths.fold(1, u64::saturating_mul)
        };
        Ok((0..rows).map(of_row).collect())
    }
}

impl ScalarUDFImpl for SteppedFunction {
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
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let is_constant = args.args.iter().all(is_scalar);
        let rows = if is_constant { 1 } else { args.number_rows };
        let steps = self.steps(&args.args, rows)?;
        if steps.iter().any(|steps| *steps > STEPS_MAX) {
            return Err(self.too_long());
        }
        let all = steps
            .iter()
            .fold(0, |all: u64, steps| all.saturating_add(*steps));
        self.ending.check()?;
        if all <= STEPS_BETWEEN || is_constant {
            return self.inner.inner().invoke_with_args(args);
        }
        let mut parts: Vec<ArrayRef> = Vec::new();
        let mut from = 0;
        while from < rows {
            self.ending.check()?;
            let taken = rows_within(&steps[from..], STEPS_BETWEEN).max(1);
            let part = self
                .inner
                .inner()
                .invoke_with_args(sliced(&args, from, taken))?;
            parts.push(part.into_array(taken)?);
            from += taken;
        }
        let parts: Vec<_> = parts.iter().map(AsRef::as_ref).collect();
        Ok(ColumnarValue::Array(concat(&parts)?))
    }
}

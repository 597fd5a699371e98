//! Intervals as durations, and durations as days and what is left.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, AsArray, DurationNanosecondArray, IntervalMonthDayNanoArray,
};
use datafusion::arrow::datatypes::{
    DataType, DurationNanosecondType, IntervalMonthDayNano, IntervalMonthDayNanoType,
};
use datafusion::common::{ScalarValue, exec_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use logpond_record::cast;

use super::{DAY_NS, DURATION, INTERVAL, cast, nanoseconds};

/// What an interval lasts.
pub(super) fn lasting(interval: Expr) -> Expr {
    call(
        Parts::new("duration_of_interval", INTERVAL, DURATION),
        interval,
    )
}

/// A duration as an interval of days and less than a day.
pub(super) fn in_days(duration: Expr) -> Expr {
    let duration = cast(duration, DURATION);
    call(
        Parts::new("interval_of_duration", DURATION, INTERVAL),
        duration,
    )
}

fn call(function: Parts, arg: Expr) -> Expr {
    let function = Arc::new(ScalarUDF::from(function));
    Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![arg]))
}

/// Makes one of the other.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Parts {
    name: &'static str,
    signature: Signature,
    to: DataType,
}

impl Parts {
    fn new(name: &'static str, from: DataType, to: DataType) -> Parts {
        let signature = Signature::exact(vec![from], Volatility::Immutable);
        Parts {
            name,
            signature,
            to,
        }
    }
}

impl ScalarUDFImpl for Parts {
    fn name(&self) -> &'static str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match &args.args[..] {
            [ColumnarValue::Array(array)] => Ok(ColumnarValue::Array(converted(array)?)),
            [ColumnarValue::Scalar(value)] => {
                let array = converted(&value.to_array()?)?;
                let value = ScalarValue::try_from_array(&array, 0)?;
                Ok(ColumnarValue::Scalar(value))
            }
            _ => exec_err!("{} takes one argument", self.name),
        }
    }
}

fn converted(array: &ArrayRef) -> Result<ArrayRef> {
    if let Some(durations) = array.as_primitive_opt::<DurationNanosecondType>() {
        // An i64 of nanoseconds has far fewer days than an i32 can count.
        let in_days =
            |ns: i64| IntervalMonthDayNano::new(0, cast::low_i32(ns / DAY_NS), ns % DAY_NS);
        let intervals = durations.iter().map(|duration| duration.map(in_days));
        return Ok(Arc::new(intervals.collect::<IntervalMonthDayNanoArray>()));
    }
    let Some(intervals) = array.as_primitive_opt::<IntervalMonthDayNanoType>() else {
        return exec_err!("{} is no interval", array.data_type());
    };
    let length = |interval| match nanoseconds(interval) {
        Ok(nanoseconds) => Ok(nanoseconds),
        Err(why) => exec_err!("{why}"),
    };
    let lengths = intervals.iter().map(|one| one.map(length).transpose());
    let lengths = lengths.collect::<Result<Vec<Option<i64>>>>()?;
    Ok(Arc::new(DurationNanosecondArray::from(lengths)))
}

//! What is computed in frames of windows whose beginning moves.

use std::fmt;

use datafusion::arrow::array::ArrayRef;
use datafusion::common::{ScalarValue, exec_err};
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;

/// The values in a frame. Null ones are not in it.
pub(crate) trait FrameAccumulator: fmt::Debug + Send + Sync + 'static {
    /// Values come at the end.
    fn enter(&mut self, values: &ArrayRef) -> Result<()>;

    /// As many as these, and the same, go from the beginning.
    fn leave(&mut self, values: &ArrayRef) -> Result<()>;

    /// What is asked of them.
    fn value(&self) -> Result<ScalarValue>;

    /// The memory that they take.
    fn bytes(&self) -> usize;
}

/// A frame for the engine, which never puts parts of one together.
#[derive(Debug)]
pub(crate) struct Frame<M>(pub(crate) M);

impl<M: FrameAccumulator> Accumulator for Frame<M> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        values.first().map_or(Ok(()), |values| self.0.enter(values))
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        values.first().map_or(Ok(()), |values| self.0.leave(values))
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        exec_err!("the frame of a window has no parts")
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        exec_err!("the frame of a window has no parts")
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.0.value()
    }

    fn size(&self) -> usize {
        self.0.bytes()
    }
}

//! Rows of records as columns, in memory.
//!
//! ```text
//! Record ─▶ RowsBuilder ─▶ Rows (one column per frequent field, the rest in `more`) ─▶ file
//! ```
//!
//! Invariant: what a [`RowsBuilder`] was given comes back from [`Rows`] and from the file: every
//! value with its type, every line byte for byte.

mod append;
mod builder;
mod column;
mod fixes;
mod interned;
mod memory;
mod overflow;
mod reorder;
mod room;
mod row_list;
mod schema;
mod sort;
mod templates;
mod view;

pub(crate) use append::Block;
pub use builder::{Rows, RowsBuilder};
pub use column::{Column, NULL, Numbers, StringColumn, Strings};
pub use fixes::Fixes;
pub(crate) use interned::Interner;
pub use memory::memory_bytes;
pub use overflow::{BYTES_MARK, Overflow, OverflowField, write_overflow};
pub use schema::{
    ColumnSpec, ColumnType, FieldCount, FieldCounts, Schema, from_decimal, to_decimal,
};
pub use sort::{sorted_order, time_slices};
pub(crate) use templates::templates_of;
pub use templates::{MESSAGE_BYTES_MAX, OPEN_END, VARIABLE, may_vary, write_template};
pub use view::as_slot;
pub use view::{
    Plans, RowsView, cell_bits, column_value, number_value, string_value, write_number,
};

//! Hard limits of a record. Settings may lower some of them, nothing raises them.

/// The longest line that is taken by default; longer ones are kept truncated and marked.
pub const LINE_BYTES_DEFAULT: usize = 1 << 20;

/// The longest line that any setting may allow.
pub const LINE_BYTES_MAX: usize = 32 << 20;

/// The most fields a record may have; a record with more keeps its line whole and drops none.
pub const FIELDS_MAX: usize = 1024;

/// The longest field name in bytes.
pub const FIELD_NAME_BYTES_MAX: usize = 256;

/// The deepest nesting of JSON objects that is flattened into fields.
pub const JSON_DEPTH_MAX: usize = 64;

/// The most distinct shapes one table keeps; lines of further shapes are kept whole.
///
/// A shape costs a few hundred bytes, so a table stays below a few MB whatever is sent.
pub const SHAPES_MAX: usize = 4096;

/// The longest text of a shape; a line that needs a longer one is kept whole.
pub const SHAPE_BYTES_MAX: usize = 16 << 10;

/// The field that marks a line that was cut; its value is the length that was sent, in bytes.
pub const TRUNCATED_FIELD: &str = "_truncated_bytes";

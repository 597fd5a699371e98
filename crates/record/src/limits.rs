//! Hard limits of a record. Settings may lower some of them, nothing raises them.

/// The longest line that is taken by default; longer ones are kept truncated and marked.
pub const LINE_BYTES_DEFAULT: usize = 1 << 20;

/// The longest line that any setting may allow.
pub const LINE_BYTES_MAX: usize = 32 << 20;

/// The most fields beside a line. A line may have more: it is kept whole, and its shape lists them.
pub const FIELDS_MAX: usize = 1024;

/// The longest name of a field beside a line, in bytes. A line may have longer ones, see [`FIELDS_MAX`].
pub const FIELD_NAME_BYTES_MAX: usize = 256;

/// The deepest nesting of JSON objects that is flattened into fields; what is deeper is a field with its
/// JSON text.
pub const JSON_DEPTH_MAX: usize = 64;

/// The most distinct shapes one table keeps; lines of further shapes are kept whole.
///
/// A shape costs a few hundred bytes, so a table stays below a few MB whatever is sent.
pub const SHAPES_MAX: usize = 4096;

/// The longest text of a shape that rebuilds its line; a line that needs a longer one is kept whole.
pub const SHAPE_BYTES_MAX: usize = 16 << 10;

/// The longest text of a shape that only lists the fields of a line that is kept whole. The names in
/// an object of the longest default line take half of it; names of nested objects repeat those of the
/// objects around, so that there must be an end.
pub const LISTING_BYTES_MAX: usize = 4 << 20;

/// The field that marks a record whose shape could not list all fields of its line; its value is how
/// many are left out.
pub const UNLISTED_FIELD: &str = "_unlisted_fields";

/// The field that marks a line that was cut; its value is the length that was sent, in bytes.
pub const TRUNCATED_FIELD: &str = "_truncated_bytes";

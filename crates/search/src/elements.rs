//! Expressions for the elements of a list, which a record keeps as JSON text.

use logpond_record::write_json_string;

/// The expression for a text as JSON writes it, in quotes.
pub fn quoted(text: &str) -> String {
    let mut quoted = Vec::new();
    write_json_string(text, &mut quoted);
    regex_syntax::escape(&String::from_utf8_lossy(&quoted))
}

/// The expression for a list with an element that `element` matches as a whole, as JSON writes it.
pub fn list_with(element: &str) -> String {
    format!(r"^\[(?:.*,)?{element}[,\]]")
}

//! Numbers that texts are.

use serde_json::Value as Json;

/// A number that a text is, written as numbers are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum WrittenNumber {
    Whole(i64),
    Float(f64),
}

/// The number that a text is, if it is written as the number would be.
pub(super) fn number(text: &str) -> Option<WrittenNumber> {
    if let Ok(whole) = text.parse::<i64>() {
        let own = whole.to_string();
        return (own == text).then_some(WrittenNumber::Whole(whole));
    }
    let float = text
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite())?;
    let own = Json::from(float).to_string();
    let is_plain = text.bytes().all(|byte| b"0123456789.-".contains(&byte));
    (own == text && is_plain).then_some(WrittenNumber::Float(float))
}

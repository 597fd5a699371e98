//! Answers of the `_cat` endpoints: a table as text, or as JSON.

use hyper::StatusCode;
use serde_json::Value as Json;

use super::{Answer, Call, Content};
use crate::error::ApiError;

/// Writes rows of cells, one for each column. The parameter `h` names columns in an order of its own, `v` puts
/// their names above, and `format=json` makes an object of each row.
///
/// # Errors
/// When a parameter is wrong.
pub(super) fn answer(
    call: &Call,
    columns: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> Result<Answer, ApiError> {
    let place = |name: &str| columns.iter().position(|column| *column == name);
    let places: Vec<usize> = match call.params.one("h")? {
        None => (0..columns.len()).collect(),
        Some(names) => names.split(',').filter_map(place).collect(),
    };
    if call.params.one("format")? == Some("json") {
        let object = |row: Vec<String>| {
            let member = |at: &usize| (columns[*at].to_owned(), Json::from(row[*at].as_str()));
            Json::Object(places.iter().map(member).collect())
        };
        return Ok(rows.into_iter().map(object).collect::<Json>().into());
    }
    let has_head = call.params.flag("v", false)?;
    let head = has_head.then(|| columns.iter().map(|&name| name.to_owned()).collect());
    let mut text = String::new();
    for row in head.into_iter().chain(rows) {
        let cells: Vec<&str> = places.iter().map(|at| row[*at].as_str()).collect();
        text += &cells.join(" ");
        text.push('\n');
    }
    Ok(Answer {
        status: StatusCode::OK,
        content: Content::Text(text),
    })
}

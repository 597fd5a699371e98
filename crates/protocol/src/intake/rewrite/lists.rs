//! Values within lists of objects: `users.password` in `{"users":[{"password":"x"}]}`. A list is one field of a
//! record, whose text has the values.

use logpond_record::Value;

use super::{Change, Edit};
use crate::intake::json::{self, JsonChange};

/// The change of a field: by its own name, or of values within it if it is a list of objects.
pub(super) fn change(edit: &mut dyn Edit, name: &str, value: &Value<'_>) -> Option<Change> {
    if edit.wants(name) {
        return edit.change(name, value);
    }
    let list = list_of_objects(value)?;
    let mut decide = |path: &str, value: &Value<'_>| {
        change(edit, &format!("{name}.{path}"), value).map(json_change)
    };
    // A list is checked when it is read.
    let edited = json::edit_list(list, &mut decide).ok()?;
    edited.map(Change::Json)
}

/// The change as it is made in JSON.
pub(super) fn json_change(change: Change) -> JsonChange {
    match change {
        Change::Text(text) => JsonChange::Text(text),
        Change::Json(text) => JsonChange::Json(text),
        Change::Remove => JsonChange::Null,
    }
}

/// True if a field may have a change: by its name, or by those of values within it.
pub(super) fn may_change(edit: &dyn Edit, name: &str, value: &Value<'_>) -> bool {
    edit.wants(name) || list_of_objects(value).is_some()
}

fn list_of_objects<'v>(value: &'v Value<'_>) -> Option<&'v str> {
    match value {
        Value::Json(text) if text.starts_with('[') && text.contains('{') => Some(text),
        _ => None,
    }
}

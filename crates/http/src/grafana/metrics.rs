//! `POST /metrics`: saved queries with the fields of their forms.

use serde_json::{Value as Json, json};

use crate::App;
use logpond_engine::saved::{Language, SavedQuery};

/// The target whose form holds LogQL.
pub(super) const LOGQL: &str = "logql";

/// Lists saved queries, each with a field for each of its variables; and LogQL itself.
pub(super) fn answer(app: &App) -> Json {
    let all = app.saved.all().into_iter();
    let all = all.filter(|(_, query, _)| query.language == Language::LogQl);
    let mut metrics: Vec<Json> = all.map(|(name, query, _)| metric(&name, &query)).collect();
    let query = json!({ "name": "query", "label": "LogQL", "type": "textarea",
        "placeholder": "{app=\"shop\"} |= \"error\"" });
    metrics.push(json!({ "label": "LogQL", "value": LOGQL, "payloads": with_shape(vec![query]) }));
    metrics.into()
}

fn metric(name: &str, query: &SavedQuery) -> Json {
    let fields = query.variables.iter().map(|(name, default)| {
        json!({ "name": name, "label": name.replace('_', " "), "type": "input",
            "placeholder": default })
    });
    json!({ "label": name, "value": name, "payloads": with_shape(fields.collect()) })
}

/// With the fields that every form has.
fn with_shape(mut fields: Vec<Json>) -> Json {
    fields.push(
        json!({ "name": "legend", "label": "legend", "type": "input",
        "placeholder": "{{label}}" }),
    );
    let choices = ["time_series", "table"].map(choice);
    fields.push(
        json!({ "name": "format", "label": "format", "type": "select",
        "options": choices }),
    );
    fields.into()
}

/// A line of a menu.
pub(super) fn choice(text: &str) -> Json {
    json!({ "label": text, "value": text })
}

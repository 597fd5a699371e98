//! `GET|POST /loki/api/v1/detected_labels`: labels, and how many values each has.

use std::sync::Arc;

use hyper::Response;
use logpond_record::write_json_string;
use logpond_search::aggregate::{FieldRow, FieldsAnswer};

use super::reply::{failed, gathered, write_warnings};
use super::{LokiRequest, selector};
use crate::App;
use crate::body::Body;
use crate::error::ApiError;

/// From how many values on a label may be an identifier.
const IDENTIFIERS_MIN: u64 = 1000;

/// Records that there are at most for each value of an identifier, on average.
const RECORDS_PER_IDENTIFIER_MAX: u64 = 20;

/// Whether a label tells records apart rather than groups of them, as the ids of traces do, which senders have
/// beside their lines: nobody looks through its values, and a series for each is none that is looked at.
fn is_identifier(label: &FieldRow) -> bool {
    label.distinct >= IDENTIFIERS_MIN
        && label.distinct.saturating_mul(RECORDS_PER_IDENTIFIER_MAX) >= label.rows
}

/// Lists labels by their names, without identifiers.
pub(super) async fn answer(
    app: &Arc<App>,
    request: LokiRequest,
) -> Result<Response<Body>, ApiError> {
    let scope = selector::scope_of_request(&request)?;
    let gather = move |app: &App, out: &mut _| app.engine.labels(&scope, out).map_err(failed);
    gathered(
        app,
        &request.headers,
        gather,
        |mut labels: FieldsAnswer, warnings, to| {
            labels.fields.retain(|label| !is_identifier(label));
            labels.fields.sort_by(|a, b| a.name.cmp(&b.name));
            to.write_all(b"{\"detectedLabels\":[")?;
            for (at, label) in labels.fields.iter().enumerate() {
                let mut name = Vec::new();
                write_json_string(&label.name, &mut name);
                let comma = if at > 0 { "," } else { "" };
                write!(to, "{comma}{{\"label\":")?;
                to.write_all(&name)?;
                write!(to, ",\"cardinality\":{}}}", label.distinct)?;
            }
            to.write_all(b"]")?;
            write_warnings(warnings, to)?;
            to.write_all(b"}\n")
        },
    )
    .await
}

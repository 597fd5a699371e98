//! `/loki/api/v1/delete`: nothing is deleted by a query.

use crate::error::{ApiError, Kind};

/// Answers with the status of a Loki where deletion is not set up: it has nothing there.
pub(super) fn refusal() -> ApiError {
    let mut error = ApiError::new(
        Kind::NotFound,
        "deletion is not available for this server: records go when they are as old as \
         --retain-age says, or when there is no room for them",
    );
    error.hint =
        Some("what must not be stored is dropped or redacted on its way in, by --rules".to_owned());
    error
}

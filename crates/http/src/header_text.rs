//! Text in a header of an answer.

use std::sync::Arc;

use hyper::Response;
use hyper::header::HeaderValue;
use tokio::task::spawn_blocking;

use crate::App;
use crate::body::Body;
use crate::logql::run;

/// The header that says what an answer lacks, or what could not be read as was asked for, where its form has no place
/// for that.
pub(crate) const WARNING_HEADER: &str = "logpond-warning";

/// The longest text, in bytes: proxies refuse longer headers.
const BYTES_MAX: usize = 1 << 10;

/// The beginning of a text in the characters that a header may have; a question mark is there for each other one.
pub(crate) fn plain(text: &str) -> String {
    let plain = text.chars().map(|sign| match sign {
        ' '..='~' => sign,
        _ => '?',
    });
    plain.take(BYTES_MAX).collect()
}

/// The value of a header that warns; none if there is nothing to say.
pub(crate) fn warning(texts: &[String]) -> Option<HeaderValue> {
    if texts.is_empty() {
        return None;
    }
    HeaderValue::try_from(plain(&texts.join("; "))).ok()
}

/// Says in the head of an answer without a trailer what is lost for good.
pub(crate) async fn note_losses(app: &Arc<App>, mut response: Response<Body>) -> Response<Body> {
    let engine = Arc::clone(&app.engine);
    // It looks at what the node holds, which may be locked for a moment.
    let lost = spawn_blocking(move || engine.losses()).await;
    let warnings: Vec<String> = run::losses(&lost.unwrap_or_default()).collect();
    if let Some(warning) = warning(&warnings) {
        response.headers_mut().insert(WARNING_HEADER, warning);
    }
    response
}

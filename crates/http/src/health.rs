//! `GET /-/healthy` and `GET /-/ready`.

use hyper::{Response, StatusCode};

use super::body::Body;
use logpond_host::shutdown::Shutdown;
use logpond_listen::net::ListenerStatus;

const CONTENT_TYPE: &str = "text/plain; charset=utf-8";

/// The process answers, so it is healthy.
pub(super) fn healthy() -> Response<Body> {
    Body::whole(StatusCode::OK, CONTENT_TYPE, "healthy\n")
}

/// Listeners open only once everything else is ready, so only the stop makes it unready. Listeners that
/// nobody asked for may be off; the answer says which.
pub(super) fn ready(shutdown: &Shutdown, listening: &ListenerStatus) -> Response<Body> {
    if shutdown.is_stopping() {
        return Body::whole(StatusCode::SERVICE_UNAVAILABLE, CONTENT_TYPE, "stopping\n");
    }
    let text = format!("ready\n{}", listening.lines());
    Body::whole(StatusCode::OK, CONTENT_TYPE, text)
}

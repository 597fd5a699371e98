//! `GET /`: the page for people, a greeting for programs.

use hyper::header::{
    ACCEPT, CONTENT_SECURITY_POLICY, HeaderMap, HeaderValue, REFERRER_POLICY, VARY,
};
use hyper::{Response, StatusCode};
use serde_json::json;

use super::body::Body;
use super::elastic;
use super::error::{ApiError, Kind};

const HTML: &str = "text/html; charset=utf-8";

/// Everything that the page loads, by path.
const ASSETS: [(&str, &str, &str); 3] = [
    (
        "/web/app.js",
        "text/javascript; charset=utf-8",
        include_str!("../../../../web/fallback/app.js"),
    ),
    (
        "/web/style.css",
        "text/css; charset=utf-8",
        include_str!("../../../../web/fallback/style.css"),
    ),
    (
        "/web/icon.svg",
        "image/svg+xml",
        include_str!("../../../../web/fallback/icon.svg"),
    ),
];

/// The page if HTML is asked for, else who this is.
pub(super) fn greeting(headers: &HeaderMap) -> Response<Body> {
    let accept = headers
        .get(ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let mut response = if accept.contains("text/html") {
        Body::whole(
            StatusCode::OK,
            HTML,
            include_str!("../../../../web/fallback/index.html"),
        )
    } else {
        let mut greeting = elastic::greeting(headers);
        greeting["logpond"] = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "push": "/api/v1/push",
            "query": "/api/v1/query",
        });
        let mut response = Body::json(StatusCode::OK, &greeting);
        elastic::note_product(response.headers_mut());
        response
    };
    let headers = response.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("accept"));
    secure(headers);
    response
}

/// A file of the page.
pub(super) fn asset(path: &str) -> Result<Response<Body>, ApiError> {
    let found = ASSETS.iter().find(|(known, _, _)| *known == path);
    let Some((_, content_type, text)) = found else {
        return Err(ApiError::new(
            Kind::NotFound,
            format!("there is nothing at {path}"),
        ));
    };
    let mut response = Body::whole(StatusCode::OK, content_type, *text);
    secure(response.headers_mut());
    Ok(response)
}

fn secure(headers: &mut HeaderMap) {
    let policy = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
}

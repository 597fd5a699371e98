//! Refusals of methods that a path does not take.

use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, Response};

use super::{ELASTIC_PREFIX, Route, all_routes, names_in};
use crate::body::Body;
use crate::elastic;
use crate::error::{ApiError, Kind};

/// Says which methods the routes of a path take instead of this one.
pub(super) fn wrong_method(path: &str, method: &Method) -> Response<Body> {
    let below = path.strip_prefix(ELASTIC_PREFIX);
    let is_here = |route: &&Route| {
        let fits = |path| names_in(route.0, path).is_some();
        fits(path) || below.is_some_and(fits)
    };
    let routes = all_routes().filter(is_here);
    let mut allowed: Vec<_> = routes
        .flat_map(|route| route.1)
        .map(Method::as_str)
        .collect();
    let mut seen = Vec::new();
    allowed.retain(|method| {
        !seen.contains(method) && {
            seen.push(*method);
            true
        }
    });
    refuse_method(path, method, &allowed)
}

/// Says which methods something takes instead of this one.
pub(crate) fn refuse_method(path: &str, method: &Method, allowed: &[&str]) -> Response<Body> {
    let allowed = allowed.join(", ");
    let message = format!("{path} takes {allowed}, not {method}");
    let error = ApiError::new(Kind::MethodNotAllowed, message);
    let mut response = if elastic::is_path(path) {
        elastic::refusal(error)
    } else {
        error.into_response()
    };
    if let Ok(allowed) = HeaderValue::from_str(&allowed) {
        response.headers_mut().insert(ALLOW, allowed);
    }
    response
}

//! Which request goes where: one table.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response};

use super::body::{self, Body};
use super::error::{ApiError, Kind};
use super::params::Params;
use super::{
    App, compact, fields, health, histogram, metrics, origin, page, push, query, segments, top,
};

/// A form in a POST body: a long query.
pub(super) const FORM_BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    Push,
    Query,
    Top,
    Histogram,
    Fields,
    Segments,
    Compact,
    Metrics,
    Healthy,
    Ready,
    Greeting,
    Asset,
}

const READ: &[Method] = &[Method::GET, Method::HEAD];
const ASK: &[Method] = &[Method::GET, Method::HEAD, Method::POST];
const ACT: &[Method] = &[Method::POST];

/// Every path, its methods and what answers there.
pub(super) const ROUTES: [(&str, &[Method], Endpoint); 14] = [
    ("/api/v1/push", ACT, Endpoint::Push),
    ("/api/v1/query", ASK, Endpoint::Query),
    ("/api/v1/top", ASK, Endpoint::Top),
    ("/api/v1/histogram", ASK, Endpoint::Histogram),
    ("/api/v1/fields", ASK, Endpoint::Fields),
    ("/api/v1/segments", READ, Endpoint::Segments),
    ("/api/v1/compact", ACT, Endpoint::Compact),
    ("/metrics", READ, Endpoint::Metrics),
    ("/-/healthy", READ, Endpoint::Healthy),
    ("/-/ready", READ, Endpoint::Ready),
    ("/", READ, Endpoint::Greeting),
    ("/web/app.js", READ, Endpoint::Asset),
    ("/web/style.css", READ, Endpoint::Asset),
    ("/web/icon.svg", READ, Endpoint::Asset),
];

/// Answers one request; errors become answers too.
pub(super) async fn answer(
    app: Arc<App>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let metrics = app.metrics.clone();
    let response = route(app, request)
        .await
        .unwrap_or_else(ApiError::into_response);
    let class = usize::from(response.status().as_u16() / 100).clamp(1, 5);
    metrics.http_answers[class - 1].add(1);
    Ok(response)
}

async fn route(app: Arc<App>, request: Request<Incoming>) -> Result<Response<Body>, ApiError> {
    let path = request.uri().path();
    let Some((_, methods, endpoint)) = ROUTES.iter().find(|(p, _, _)| *p == path) else {
        let message = format!("there is nothing at {path}; the API is below /api/v1/");
        return Err(ApiError::new(Kind::NotFound, message));
    };
    if !methods.contains(request.method()) {
        return Ok(wrong_method(path, request.method(), methods));
    }
    origin::check(request.headers())?;
    let mut params = Params::default();
    params.read(request.uri().query().unwrap_or_default().as_bytes())?;
    if *endpoint == Endpoint::Push {
        return push::answer(&app, params, request).await;
    }
    let (parts, body) = request.into_parts();
    if parts.method == Method::POST {
        let form = body::receive(body, FORM_BYTES_MAX, &app.bodies).await?;
        let content_type = parts.headers.get(CONTENT_TYPE);
        match &form.bytes[..] {
            b"" => {}
            form if is_type(content_type, "application/x-www-form-urlencoded") => {
                params.read(form)?;
            }
            form if is_type(content_type, "application/json") => params.read_json(form)?,
            _ => {
                let message = "parameters are taken from a body of `Content-Type: \
                               application/x-www-form-urlencoded` or `application/json`";
                return Err(ApiError::new(Kind::UnsupportedMediaType, message));
            }
        }
    }
    match endpoint {
        Endpoint::Push => Err(ApiError::new(Kind::Internal, "a push got lost")),
        Endpoint::Query => query::answer(&app, params).await,
        Endpoint::Top => top::answer(&app, params).await,
        Endpoint::Histogram => histogram::answer(&app, params).await,
        Endpoint::Fields => fields::answer(&app, params).await,
        Endpoint::Segments => segments::answer(&app, params).await,
        Endpoint::Compact => compact::answer(&app, params).await,
        Endpoint::Metrics => metrics::answer(&app).await,
        Endpoint::Healthy => Ok(health::healthy()),
        Endpoint::Ready => Ok(health::ready(&app)),
        Endpoint::Greeting => Ok(page::greeting(&parts.headers)),
        Endpoint::Asset => page::asset(parts.uri.path()),
    }
}

fn is_type(content_type: Option<&HeaderValue>, wanted: &str) -> bool {
    let given = content_type.map_or(&b""[..], |value| value.as_bytes());
    given
        .get(..wanted.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(wanted.as_bytes()))
}

fn wrong_method(path: &str, method: &Method, methods: &[Method]) -> Response<Body> {
    let allowed: Vec<_> = methods.iter().map(Method::as_str).collect();
    let allowed = allowed.join(", ");
    let message = format!("{path} takes {allowed}, not {method}");
    let mut response = ApiError::new(Kind::MethodNotAllowed, message).into_response();
    if let Ok(allowed) = HeaderValue::from_str(&allowed) {
        response.headers_mut().insert(ALLOW, allowed);
    }
    response
}

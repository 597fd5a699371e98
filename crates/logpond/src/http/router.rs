//! Which request goes where: one table.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response};

use super::body::{self, Body};
use super::error::{ApiError, Kind};
use super::params::Params;
use super::{
    App, authorization, batches, cluster, compact, fields, health, histogram, metrics, origin,
    page, push, query, segments, top,
};
use crate::tokens::Role;

/// A form in a POST body: a long query.
pub(super) const FORM_BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Push,
    Batches,
    Query,
    Top,
    Histogram,
    Fields,
    Segments,
    Compact,
    ClusterStatus,
    ClusterDrain,
    ClusterForget,
    Metrics,
    Healthy,
    Ready,
    Greeting,
    Asset,
}

const READ: &[Method] = &[Method::GET, Method::HEAD];
const ASK: &[Method] = &[Method::GET, Method::HEAD, Method::POST];
const ACT: &[Method] = &[Method::POST];

/// What a request needs; nothing, where there is nothing to protect.
const OPEN: Option<Role> = None;
const READER: Option<Role> = Some(Role::Read);
const WRITER: Option<Role> = Some(Role::Write);
const ADMIN: Option<Role> = Some(Role::Admin);

/// Every path, its methods, the role of the token that it needs, and what answers there.
pub(crate) const ROUTES: [(&str, &[Method], Option<Role>, Endpoint); 18] = [
    ("/api/v1/push", ACT, WRITER, Endpoint::Push),
    ("/api/v1/batches", READ, WRITER, Endpoint::Batches),
    ("/api/v1/query", ASK, READER, Endpoint::Query),
    ("/api/v1/top", ASK, READER, Endpoint::Top),
    ("/api/v1/histogram", ASK, READER, Endpoint::Histogram),
    ("/api/v1/fields", ASK, READER, Endpoint::Fields),
    ("/api/v1/segments", READ, READER, Endpoint::Segments),
    ("/api/v1/compact", ACT, ADMIN, Endpoint::Compact),
    ("/api/v1/cluster", READ, READER, Endpoint::ClusterStatus),
    ("/api/v1/cluster/drain", ACT, ADMIN, Endpoint::ClusterDrain),
    (
        "/api/v1/cluster/forget",
        ACT,
        ADMIN,
        Endpoint::ClusterForget,
    ),
    ("/metrics", READ, READER, Endpoint::Metrics),
    ("/-/healthy", READ, OPEN, Endpoint::Healthy),
    ("/-/ready", READ, OPEN, Endpoint::Ready),
    ("/", READ, OPEN, Endpoint::Greeting),
    ("/web/app.js", READ, OPEN, Endpoint::Asset),
    ("/web/style.css", READ, OPEN, Endpoint::Asset),
    ("/web/icon.svg", READ, OPEN, Endpoint::Asset),
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

/// Answers a request that came unencrypted where encryption is on.
pub(super) async fn refuse_plain(app: Arc<App>) -> Result<Response<Body>, Infallible> {
    let mut error = ApiError::new(Kind::TlsRequired, "this address speaks TLS only");
    error.hint = Some("ask at https:// instead of http://".to_owned());
    app.metrics.http_answers[3].add(1);
    let mut response = error.into_response();
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    Ok(response)
}

async fn route(app: Arc<App>, request: Request<Incoming>) -> Result<Response<Body>, ApiError> {
    let path = request.uri().path();
    let Some((_, methods, needed, endpoint)) = ROUTES.iter().find(|route| route.0 == path) else {
        let message = format!("there is nothing at {path}; the API is below /api/v1/");
        return Err(ApiError::new(Kind::NotFound, message));
    };
    if !methods.contains(request.method()) {
        return Ok(wrong_method(path, request.method(), methods));
    }
    origin::check(request.headers())?;
    if let Some(role) = needed {
        authorization::check(&app, request.headers(), *role)?;
    }
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
        Endpoint::Batches => batches::answer(&app, &params),
        Endpoint::Query => query::answer(&app, params).await,
        Endpoint::Top => top::answer(&app, params).await,
        Endpoint::Histogram => histogram::answer(&app, params).await,
        Endpoint::Fields => fields::answer(&app, params).await,
        Endpoint::Segments => segments::answer(&app, params).await,
        Endpoint::Compact => compact::answer(&app, params).await,
        Endpoint::ClusterStatus => cluster::status(&app, &params).await,
        Endpoint::ClusterDrain => cluster::drain(&app, &params).await,
        Endpoint::ClusterForget => cluster::forget(&app, &params).await,
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

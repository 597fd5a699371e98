//! Requests as frameworks and their middlewares log them, see [`super::products`].

use super::requests::Column::{
    Agent, Bytes, Method, Protocol, Query, Referer, RemotePort, RequestId, RequestLength, Scheme,
    Status, User,
};
use super::requests::Take::{self, Client, Number, Target, Text, Version};
use super::requests::{MILLISECONDS, NANOSECONDS};

/// Serilog's middleware of ASP.NET Core: compact, and as its other formatters nest it.
pub(super) const SERILOG: &[(&str, Take)] = &[
    ("ClientIp", Client),
    ("ClientIP", Client),
    ("RemoteIpAddress", Client),
    ("RequestMethod", Text(Method)),
    ("RequestPath", Target),
    ("RequestHost", Take::Host),
    ("RequestScheme", Text(Scheme)),
    ("UserAgent", Text(Agent)),
    ("UserName", Text(User)),
    ("RequestId", Text(RequestId)),
    ("StatusCode", Number(Status)),
    ("ContentLength", Number(Bytes)),
    ("Elapsed", MILLISECONDS),
    ("ElapsedMilliseconds", MILLISECONDS),
    ("Properties.ClientIp", Client),
    ("Properties.RequestMethod", Text(Method)),
    ("Properties.RequestPath", Target),
    ("Properties.RequestHost", Take::Host),
    ("Properties.UserAgent", Text(Agent)),
    ("Properties.RequestId", Text(RequestId)),
    ("Properties.StatusCode", Number(Status)),
    ("Properties.Elapsed", MILLISECONDS),
];

/// The host of ASP.NET Core about a request that has ended, as members and as its console nests them.
pub(super) const KESTREL: &[(&str, Take)] = &[
    ("Method", Text(Method)),
    ("Path", Target),
    ("QueryString", Text(Query)),
    ("Protocol", Text(Protocol)),
    ("Scheme", Text(Scheme)),
    ("Host", Take::Host),
    ("StatusCode", Number(Status)),
    ("ContentLength", Number(Bytes)),
    ("Elapsed", MILLISECONDS),
    ("ElapsedMilliseconds", MILLISECONDS),
    ("State.Method", Text(Method)),
    ("State.Path", Target),
    ("State.QueryString", Text(Query)),
    ("State.Protocol", Text(Protocol)),
    ("State.Scheme", Text(Scheme)),
    ("State.Host", Take::Host),
    ("State.StatusCode", Number(Status)),
    ("State.ContentLength", Number(Bytes)),
    ("State.ElapsedMilliseconds", MILLISECONDS),
];

/// logback-access by Logstash's encoder.
pub(super) const LOGBACK: &[(&str, Take)] = &[
    ("remote_host", Client),
    ("remote_user", Text(User)),
    ("requested_uri", Target),
    ("status_code", Number(Status)),
    ("content_length", Number(Bytes)),
    ("elapsed_time", MILLISECONDS),
    ("@fields.remote_host", Client),
    ("@fields.remote_user", Text(User)),
    ("@fields.method", Text(Method)),
    ("@fields.protocol", Text(Protocol)),
    ("@fields.requested_uri", Target),
    ("@fields.status_code", Number(Status)),
    ("@fields.content_length", Number(Bytes)),
    ("@fields.elapsed_time", MILLISECONDS),
];

/// Spans of Rust's tower-http, tracing-actix-web, axum-tracing-opentelemetry and Poem, with the event in `fields` or not.
pub(super) const TOWER: &[(&str, Take)] = &[
    ("span.method", Text(Method)),
    ("span.http.request.method", Text(Method)),
    ("span.http.method", Text(Method)),
    ("span.uri", Target),
    ("span.path", Target),
    ("span.url.path", Target),
    ("span.http.target", Target),
    ("span.http.url", Target),
    ("span.http.route", Target),
    ("span.url.query", Text(Query)),
    ("span.version", Version),
    ("span.http.flavor", Version),
    ("span.network.protocol.version", Version),
    ("span.http.host", Take::Host),
    ("span.server.address", Take::Host),
    ("span.http.scheme", Text(Scheme)),
    ("span.client.address", Client),
    ("span.http.client_ip", Client),
    ("span.remote_addr", Client),
    ("span.user_agent.original", Text(Agent)),
    ("span.http.user_agent", Text(Agent)),
    ("span.request_id", Text(RequestId)),
    ("fields.status", Number(Status)),
    ("fields.http.status_code", Number(Status)),
    ("span.status", Number(Status)),
    ("span.http.response.status_code", Number(Status)),
    ("span.http.status_code", Number(Status)),
    ("fields.latency", Take::TookWithUnit),
    ("fields.duration", Take::TookWithUnit),
    ("fields.latency_ms", MILLISECONDS),
    ("latency", Take::TookWithUnit),
];

/// Go's middlewares for slog: slog-http, slog-gin, slog-echo, slog-fiber and slog-chi.
pub(super) const SLOG: &[(&str, Take)] = &[
    ("request.ip", Client),
    ("request.method", Text(Method)),
    ("request.path", Target),
    ("request.query", Text(Query)),
    ("request.host", Take::Host),
    ("request.referer", Text(Referer)),
    ("request.user-agent", Text(Agent)),
    ("request.length", Number(RequestLength)),
    ("response.status", Number(Status)),
    ("response.length", Number(Bytes)),
    ("response.latency", NANOSECONDS),
    ("id", Text(RequestId)),
];

/// Go's httplog of Chi.
pub(super) const CHI: &[(&str, Take)] = &[
    ("httpRequest.remoteIP", Client),
    ("httpRequest.requestMethod", Text(Method)),
    ("httpRequest.requestPath", Target),
    ("httpRequest.requestURL", Target),
    ("httpRequest.proto", Text(Protocol)),
    ("httpRequest.scheme", Text(Scheme)),
    ("httpRequest.requestID", Text(RequestId)),
    ("httpResponse.status", Number(Status)),
    ("httpResponse.bytes", Number(Bytes)),
    ("httpResponse.elapsed", MILLISECONDS),
];

/// express-winston.
pub(super) const WINSTON: &[(&str, Take)] = &[
    ("meta.req.method", Text(Method)),
    ("meta.req.url", Target),
    ("meta.req.originalUrl", Target),
    ("meta.req.headers.host", Take::Host),
    ("meta.req.headers.user-agent", Text(Agent)),
    ("meta.req.headers.referer", Text(Referer)),
    ("meta.res.statusCode", Number(Status)),
    ("meta.responseTime", MILLISECONDS),
];

/// Python's services: uvicorn's and FastAPI's examples for structlog, and names with one prefix that many choose.
pub(super) const PREFIXED: &[(&str, Take)] = &[
    ("client_ip", Client),
    ("remote_ip", Client),
    ("http_client_ip", Client),
    ("client_addr", Client),
    ("network.client.ip", Client),
    ("network.client.port", Number(RemotePort)),
    ("http_method", Text(Method)),
    ("request_method", Text(Method)),
    ("http_path", Target),
    ("request_path", Target),
    ("http_url", Target),
    ("request_url", Target),
    ("http_target", Target),
    ("request_uri", Target),
    ("url", Target),
    ("path", Target),
    ("http_version", Version),
    ("http_host", Take::Host),
    ("http_user_agent", Text(Agent)),
    ("user_agent", Text(Agent)),
    ("http_status", Number(Status)),
    ("http_status_code", Number(Status)),
    ("status_code", Number(Status)),
    ("response_status", Number(Status)),
    ("response_code", Number(Status)),
    ("http_response_size", Number(Bytes)),
    ("response_size", Number(Bytes)),
    ("duration_ms", MILLISECONDS),
    ("elapsed_ms", MILLISECONDS),
    ("latency_ms", MILLISECONDS),
    ("response_time_ms", MILLISECONDS),
    ("request_duration_ms", MILLISECONDS),
    ("process_time_ms", MILLISECONDS),
    ("duration", Take::TookWithUnit),
    ("latency", Take::TookWithUnit),
    ("elapsed", Take::TookWithUnit),
    ("response_time", Take::TookWithUnit),
];

//! Objects about requests, by product: see [`super::requests`].
//!
//! A name that is a mark of a product stands in no other kind of object together with the product's other marks.

use super::frameworks::{CHI, KESTREL, LOGBACK, PREFIXED, SERILOG, SLOG, TOWER, WINSTON};
use super::requests::Column::{
    Agent, Bytes, CacheStatus, Method, Path, Port, Protocol, Query, Referer, RemotePort, RequestId,
    RequestLength, Scheme, Status, UpstreamAddr, UpstreamStatus, User,
};
use super::requests::Take::{
    self, Client, Forwarded, Headers, Number, Request, Target, Text, Version,
};
use super::requests::{MILLISECONDS, NANOSECONDS, Product, SECONDS};

const fn product(
    marks: &'static [&'static str],
    names: &'static [(&'static str, Take)],
) -> Product {
    Product { marks, names }
}

/// nginx's variables (ngx_http_log_module, ngx_http_core_module, ngx_http_upstream_module), as `log_format`
/// with `escape=json` has them by the usual names.
const NGINX: &[(&str, Take)] = &[
    ("request", Request),
    ("request_method", Text(Method)),
    ("request_uri", Target),
    ("uri", Target),
    ("args", Text(Query)),
    ("query_string", Text(Query)),
    ("server_protocol", Text(Protocol)),
    ("http_host", Take::Host),
    ("server_name", Take::Host),
    ("server_port", Number(Port)),
    ("remote_user", Text(User)),
    ("client_ip", Client),
    ("client", Client),
    ("body_bytes_sent", Number(Bytes)),
    ("bytes_sent", Number(Bytes)),
    ("size", Number(Bytes)),
    ("http_referer", Text(Referer)),
    ("http_referrer", Text(Referer)),
    ("referrer", Text(Referer)),
    ("http_user_agent", Text(Agent)),
    ("user_agent", Text(Agent)),
    ("request_time", SECONDS),
    ("upstream_cache_status", Text(CacheStatus)),
];

/// Envoy's command operators by the names of Istio and of Envoy Gateway.
const ENVOY: &[(&str, Take)] = &[
    ("x_forwarded_for", Forwarded),
    ("x-forwarded-for", Forwarded),
    ("downstream_remote_address", Client),
    ("downstream_remote_addr", Client),
    ("x-envoy-origin-path", Target),
    ("x_envoy_origin_path", Target),
    ("path", Target),
    ("authority", Take::Host),
    (":authority", Take::Host),
    ("response_code", Number(Status)),
    ("bytes_sent", Number(Bytes)),
    ("bytes_received", Number(RequestLength)),
    ("user_agent", Text(Agent)),
    ("user-agent", Text(Agent)),
    ("x-request-id", Text(RequestId)),
    ("upstream_host", Text(UpstreamAddr)),
    ("duration", MILLISECONDS),
];

/// Caddy.
const CADDY: &[(&str, Take)] = &[
    ("request.client_ip", Client),
    ("request.remote_ip", Client),
    ("request.remote_addr", Client),
    ("request.remote_port", Number(RemotePort)),
    ("request.method", Text(Method)),
    ("request.uri", Target),
    ("request.proto", Text(Protocol)),
    ("request.host", Take::Host),
    ("request.headers.User-Agent", Text(Agent)),
    ("request.headers.Referer", Text(Referer)),
    ("user_id", Text(User)),
    ("size", Number(Bytes)),
    ("bytes_read", Number(RequestLength)),
    ("duration", SECONDS),
];

/// Traefik; headers have their names behind `request_`.
const TRAEFIK: &[(&str, Take)] = &[
    ("ClientHost", Client),
    ("ClientAddr", Client),
    ("ClientPort", Number(RemotePort)),
    ("ClientUsername", Text(User)),
    ("RequestMethod", Text(Method)),
    ("RequestPath", Target),
    ("RequestProtocol", Text(Protocol)),
    ("RequestScheme", Text(Scheme)),
    ("RequestHost", Take::Host),
    ("RequestAddr", Take::Host),
    ("RequestPort", Number(Port)),
    ("RequestContentSize", Number(RequestLength)),
    ("DownstreamStatus", Number(Status)),
    ("DownstreamContentSize", Number(Bytes)),
    ("OriginStatus", Number(UpstreamStatus)),
    ("ServiceAddr", Text(UpstreamAddr)),
    ("request_User-Agent", Text(Agent)),
    ("request_Referer", Text(Referer)),
    ("Duration", NANOSECONDS),
];

/// Kong's serializer.
const KONG: &[(&str, Take)] = &[
    ("client_ip", Client),
    ("request.method", Text(Method)),
    ("request.uri", Target),
    ("request.url", Target),
    ("request.size", Number(RequestLength)),
    ("request.headers.host", Take::Host),
    ("request.headers.user-agent", Text(Agent)),
    ("request.headers.referer", Text(Referer)),
    ("request.id", Text(RequestId)),
    ("response.status", Number(Status)),
    ("response.size", Number(Bytes)),
    ("authenticated_entity.id", Text(User)),
    ("latencies.request", MILLISECONDS),
];

/// HAProxy's fields by the names that its documentation and its vendors' examples use.
const HAPROXY: &[(&str, Take)] = &[
    ("client_ip", Client),
    ("client", Client),
    ("client_port", Number(RemotePort)),
    ("http_request", Request),
    ("request", Request),
    ("http_method", Text(Method)),
    ("http_uri", Target),
    ("uri", Target),
    ("http_path", Target),
    ("http_query", Text(Query)),
    ("http_version", Version),
    ("http_host", Take::Host),
    ("http_user_agent", Text(Agent)),
    ("user_agent", Text(Agent)),
    ("http_status_code", Number(Status)),
    ("status_code", Number(Status)),
    ("http_status", Number(Status)),
    ("bytes_read", Number(Bytes)),
    ("bytes_uploaded", Number(RequestLength)),
    ("server_ip", Text(UpstreamAddr)),
    ("time_active", MILLISECONDS),
    ("time_total", MILLISECONDS),
    ("total_time", MILLISECONDS),
    ("Tt", MILLISECONDS),
    ("Ta", MILLISECONDS),
];

/// Columns of the W3C Extended Log File Format as members: IIS.
const W3C: &[(&str, Take)] = &[
    ("c-ip", Client),
    ("c-port", Number(RemotePort)),
    ("cs-username", Text(User)),
    ("cs-method", Text(Method)),
    ("cs-uri-stem", Text(Path)),
    ("cs-uri-query", Text(Query)),
    ("cs-protocol-version", Text(Protocol)),
    ("cs-version", Text(Protocol)),
    ("cs-protocol", Text(Scheme)),
    ("x-host-header", Take::Host),
    ("cs-host", Take::Host),
    ("cs(Host)", Take::Host),
    ("s-port", Number(Port)),
    ("sc-status", Number(Status)),
    ("sc-bytes", Number(Bytes)),
    ("cs-bytes", Number(RequestLength)),
    ("cs(Referer)", Text(Referer)),
    ("cs(User-Agent)", Text(Agent)),
    ("time-taken", MILLISECONDS),
];

/// The same of CloudFront: standard logs, version 2, and real-time logs. It counts seconds.
const CLOUDFRONT: &[(&str, Take)] = &[
    ("c-ip", Client),
    ("c-port", Number(RemotePort)),
    ("cs-method", Text(Method)),
    ("cs-uri-stem", Text(Path)),
    ("cs-uri-query", Text(Query)),
    ("cs-protocol-version", Text(Protocol)),
    ("cs-protocol", Text(Scheme)),
    ("x-host-header", Take::Host),
    ("cs-host", Take::Host),
    ("cs(Host)", Take::Host),
    ("sc-status", Number(Status)),
    ("sc-bytes", Number(Bytes)),
    ("cs-bytes", Number(RequestLength)),
    ("cs(Referer)", Text(Referer)),
    ("cs-referer", Text(Referer)),
    ("cs(User-Agent)", Text(Agent)),
    ("cs-user-agent", Text(Agent)),
    ("time-taken", SECONDS),
    ("x-edge-request-id", Text(RequestId)),
    ("x-edge-result-type", Text(CacheStatus)),
];

/// `HttpRequest` of Google's LogEntry, behind the name that a logger gives it.
const GOOGLE: &[(&str, Take)] = &[
    ("httpRequest.remoteIp", Client),
    ("httpRequest.requestMethod", Text(Method)),
    ("httpRequest.requestUrl", Target),
    ("httpRequest.protocol", Text(Protocol)),
    ("httpRequest.status", Number(Status)),
    ("httpRequest.responseSize", Number(Bytes)),
    ("httpRequest.requestSize", Number(RequestLength)),
    ("httpRequest.userAgent", Text(Agent)),
    ("httpRequest.referer", Text(Referer)),
    ("httpRequest.serverIp", Text(UpstreamAddr)),
    ("httpRequest.latency", SECONDS),
];

/// Elastic Common Schema and OpenTelemetry's semantic conventions, also the older ones.
const SCHEMAS: &[(&str, Take)] = &[
    ("client.address", Client),
    ("client.ip", Client),
    ("source.ip", Client),
    ("source.address", Client),
    ("net.peer.ip", Client),
    ("network.client.ip", Client),
    ("http.client_ip", Client),
    ("client.port", Number(RemotePort)),
    ("source.port", Number(RemotePort)),
    ("user.name", Text(User)),
    ("http.request.method", Text(Method)),
    ("http.method", Text(Method)),
    ("url.path", Target),
    ("url.query", Text(Query)),
    ("url.original", Target),
    ("url.full", Target),
    ("http.target", Target),
    ("http.path", Target),
    ("http.url", Target),
    ("url.scheme", Text(Scheme)),
    ("http.scheme", Text(Scheme)),
    ("url.domain", Take::Host),
    ("server.address", Take::Host),
    ("http.host", Take::Host),
    ("url.port", Number(Port)),
    ("server.port", Number(Port)),
    ("http.version", Version),
    ("network.protocol.version", Version),
    ("http.flavor", Version),
    ("http.response.status_code", Number(Status)),
    ("http.status_code", Number(Status)),
    ("http.status", Number(Status)),
    ("http.response.body.bytes", Number(Bytes)),
    ("http.response.bytes", Number(Bytes)),
    ("http.response.body.size", Number(Bytes)),
    ("http.response_content_length", Number(Bytes)),
    ("http.request.body.bytes", Number(RequestLength)),
    ("http.request.bytes", Number(RequestLength)),
    ("http.request.body.size", Number(RequestLength)),
    ("http.request_content_length", Number(RequestLength)),
    ("http.request.referrer", Text(Referer)),
    ("http.referer", Text(Referer)),
    ("user_agent.original", Text(Agent)),
    ("http.user_agent", Text(Agent)),
    ("http.useragent", Text(Agent)),
    ("http.request.id", Text(RequestId)),
    ("http.duration_ms", MILLISECONDS),
    ("http.duration", Take::TookWithUnit),
    ("http.latency", Take::TookWithUnit),
    // Elastic counts nanoseconds.
    ("event.duration", NANOSECONDS),
];

/// Application Load Balancers, by the names of the user guide and of its table for Athena.
const ALB: &[(&str, Take)] = &[
    ("client_ip", Client),
    ("client:port", Client),
    ("client_port", Number(RemotePort)),
    ("request", Request),
    ("request_verb", Text(Method)),
    ("request_url", Target),
    ("request_proto", Text(Protocol)),
    ("elb_status_code", Number(Status)),
    ("target_status_code", Number(UpstreamStatus)),
    ("target_ip", Text(UpstreamAddr)),
    ("target:port", Text(UpstreamAddr)),
    ("sent_bytes", Number(Bytes)),
    ("received_bytes", Number(RequestLength)),
    ("user_agent", Text(Agent)),
    ("domain_name", Take::Host),
    ("trace_id", Text(RequestId)),
];

/// API Gateway's `$context` variables by the names of its console.
const API_GATEWAY: &[(&str, Take)] = &[
    ("ip", Client),
    ("sourceIp", Client),
    ("httpMethod", Text(Method)),
    ("path", Target),
    ("resourcePath", Target),
    ("responseLength", Number(Bytes)),
    ("userAgent", Text(Agent)),
    ("domainName", Take::Host),
    ("requestId", Text(RequestId)),
    ("integrationStatus", Number(UpstreamStatus)),
    ("responseLatency", MILLISECONDS),
];

/// AWS WAF.
const WAF: &[(&str, Take)] = &[
    ("httpRequest.clientIp", Client),
    ("httpRequest.httpMethod", Text(Method)),
    ("httpRequest.uri", Target),
    ("httpRequest.args", Text(Query)),
    ("httpRequest.httpVersion", Text(Protocol)),
    ("httpRequest.scheme", Text(Scheme)),
    ("httpRequest.host", Take::Host),
    ("httpRequest.requestId", Text(RequestId)),
    ("httpRequest.headers", Headers),
    ("responseCodeSent", Number(Status)),
];

/// Suricata's EVE; AWS Network Firewall has it below `event`. `http-body` and `dump-all-headers` add the list.
const SURICATA: &[(&str, Take)] = &[
    ("src_ip", Client),
    ("src_port", Number(RemotePort)),
    ("http.http_method", Text(Method)),
    ("http.url", Target),
    ("http.protocol", Text(Protocol)),
    ("http.hostname", Take::Host),
    ("http.http_port", Number(Port)),
    ("http.status", Number(Status)),
    ("http.length", Number(Bytes)),
    ("http.http_refer", Text(Referer)),
    ("http.http_user_agent", Text(Agent)),
    ("http.request_headers", Headers),
    ("event.src_ip", Client),
    ("event.src_port", Number(RemotePort)),
    ("event.http.http_method", Text(Method)),
    ("event.http.url", Target),
    ("event.http.protocol", Text(Protocol)),
    ("event.http.hostname", Take::Host),
    ("event.http.status", Number(Status)),
    ("event.http.length", Number(Bytes)),
    ("event.http.http_refer", Text(Referer)),
    ("event.http.http_user_agent", Text(Agent)),
    ("event.http.request_headers", Headers),
];

/// Zeek's log of HTTP as JSON.
const ZEEK: &[(&str, Take)] = &[
    ("id.orig_h", Client),
    ("id.orig_p", Number(RemotePort)),
    ("username", Text(User)),
    ("uri", Target),
    ("version", Version),
    ("status_code", Number(Status)),
    ("request_body_len", Number(RequestLength)),
    ("response_body_len", Number(Bytes)),
    ("referrer", Text(Referer)),
    ("user_agent", Text(Agent)),
];

/// ModSecurity's audit log as JSON.
const MODSECURITY: &[(&str, Take)] = &[
    ("transaction.client_ip", Client),
    ("transaction.client_port", Number(RemotePort)),
    ("transaction.request.method", Text(Method)),
    ("transaction.request.uri", Target),
    ("transaction.request.http_version", Version),
    ("transaction.request.headers.Host", Take::Host),
    ("transaction.request.headers.host", Take::Host),
    ("transaction.request.headers.User-Agent", Text(Agent)),
    ("transaction.request.headers.user-agent", Text(Agent)),
    ("transaction.request.headers.Referer", Text(Referer)),
    ("transaction.request.headers.referer", Text(Referer)),
    ("transaction.response.http_code", Number(Status)),
    ("transaction.unique_id", Text(RequestId)),
];

/// Fastly's real-time logs as JSON, by the names that its console proposes.
const FASTLY: &[(&str, Take)] = &[
    ("client_ip", Client),
    ("request_method", Text(Method)),
    ("url", Target),
    ("request_protocol", Text(Protocol)),
    ("request_referer", Text(Referer)),
    ("request_user_agent", Text(Agent)),
    ("response_status", Number(Status)),
    ("response_body_size", Number(Bytes)),
    ("response_state", Text(CacheStatus)),
];

/// Objects of other products with a list of a request's headers, behind the names that most of these have.
const LISTED: &[(&str, Take)] = &[
    ("request.clientIp", Client),
    ("request.client_ip", Client),
    ("request.remote_ip", Client),
    ("clientIp", Client),
    ("client_ip", Client),
    ("remote_ip", Client),
    ("request.method", Text(Method)),
    ("request.httpMethod", Text(Method)),
    ("request.uri", Target),
    ("request.url", Target),
    ("request.path", Target),
    ("request.querystring", Text(Query)),
    ("request.httpVersion", Version),
    ("request.protocol", Text(Protocol)),
    ("request.headers", Headers),
    ("request.bodySize", Number(RequestLength)),
    ("response.status", Number(Status)),
    ("response.statusCode", Number(Status)),
    ("response.bodySize", Number(Bytes)),
];

/// Cloudflare's Logpush, data set HTTP requests.
const CLOUDFLARE: &[(&str, Take)] = &[
    ("ClientIP", Client),
    ("ClientSrcPort", Number(RemotePort)),
    ("ClientRequestMethod", Text(Method)),
    ("ClientRequestURI", Target),
    ("ClientRequestPath", Target),
    ("ClientRequestProtocol", Text(Protocol)),
    ("ClientRequestScheme", Text(Scheme)),
    ("ClientRequestHost", Take::Host),
    ("ClientRequestBytes", Number(RequestLength)),
    ("ClientRequestReferer", Text(Referer)),
    ("ClientRequestUserAgent", Text(Agent)),
    ("EdgeResponseStatus", Number(Status)),
    ("EdgeResponseBytes", Number(Bytes)),
    ("OriginIP", Text(UpstreamAddr)),
    ("OriginResponseStatus", Number(UpstreamStatus)),
    ("CacheCacheStatus", Text(CacheStatus)),
    ("RayID", Text(RequestId)),
];

/// Akamai's DataStream 2.
const AKAMAI: &[(&str, Take)] = &[
    ("cliIP", Client),
    ("reqMethod", Text(Method)),
    ("reqPath", Target),
    ("queryStr", Text(Query)),
    ("reqHost", Take::Host),
    ("reqPort", Number(Port)),
    ("proto", Text(Protocol)),
    ("statusCode", Number(Status)),
    ("rspContentLen", Number(Bytes)),
    ("UA", Text(Agent)),
    ("referer", Text(Referer)),
    ("reqId", Text(RequestId)),
    ("turnAroundTimeMSec", MILLISECONDS),
];

/// Vercel's log drains.
const VERCEL: &[(&str, Take)] = &[
    ("proxy.clientIp", Client),
    ("proxy.method", Text(Method)),
    ("proxy.path", Target),
    ("proxy.host", Take::Host),
    ("proxy.scheme", Text(Scheme)),
    ("proxy.statusCode", Number(Status)),
    ("proxy.responseByteSize", Number(Bytes)),
    ("proxy.userAgent", Text(Agent)),
    ("proxy.referer", Text(Referer)),
    ("proxy.vercelCache", Text(CacheStatus)),
    ("requestId", Text(RequestId)),
];

/// Azure's Front Door and Application Gateway.
const AZURE: &[(&str, Take)] = &[
    ("properties.clientIp", Client),
    ("properties.clientIP", Client),
    ("properties.clientPort", Number(RemotePort)),
    ("properties.httpMethod", Text(Method)),
    ("properties.requestUri", Target),
    ("properties.requestQuery", Text(Query)),
    ("properties.httpVersion", Version),
    ("properties.requestProtocol", Text(Scheme)),
    ("properties.hostName", Take::Host),
    ("properties.host", Take::Host),
    ("properties.hostname", Take::Host),
    ("properties.originalHost", Take::Host),
    ("properties.httpStatusCode", Number(Status)),
    ("properties.httpStatus", Number(Status)),
    ("properties.responseBytes", Number(Bytes)),
    ("properties.sentBytes", Number(Bytes)),
    ("properties.requestBytes", Number(RequestLength)),
    ("properties.receivedBytes", Number(RequestLength)),
    ("properties.userAgent", Text(Agent)),
    ("properties.referer", Text(Referer)),
    ("properties.serverRouted", Text(UpstreamAddr)),
    ("properties.originIp", Text(UpstreamAddr)),
    ("properties.serverStatus", Number(UpstreamStatus)),
    ("properties.cacheStatus", Text(CacheStatus)),
    ("properties.trackingReference", Text(RequestId)),
    ("properties.transactionId", Text(RequestId)),
    ("properties.timeTaken", SECONDS),
];

/// Node's loggers: pino-http, Bunyan's middleware, Fastify.
const NODE: &[(&str, Take)] = &[
    ("req.remoteAddress", Client),
    ("req.remotePort", Number(RemotePort)),
    ("req.method", Text(Method)),
    ("req.url", Target),
    ("req.path", Target),
    ("req.ip", Client),
    ("req.remote", Client),
    ("req.host", Take::Host),
    ("req.hostname", Take::Host),
    ("req.headers.host", Take::Host),
    ("req.headers.user-agent", Text(Agent)),
    ("req.headers.referer", Text(Referer)),
    ("req.id", Text(RequestId)),
    ("res.statusCode", Number(Status)),
    ("res.status", Number(Status)),
    ("res.duration", Take::TookWithUnit),
    ("res.headers.content-length", Number(Bytes)),
    ("responseTime", MILLISECONDS),
];

/// Go's Echo.
const ECHO: &[(&str, Take)] = &[
    ("remote_ip", Client),
    ("uri", Target),
    ("user_agent", Text(Agent)),
    ("id", Text(RequestId)),
    ("bytes_out", Number(Bytes)),
    ("bytes_in", Number(RequestLength)),
    ("latency", NANOSECONDS),
];

/// lograge of Rails, as JSON and as `key=value`, and GitLab.
const RAILS: &[(&str, Take)] = &[
    ("remote_ip", Client),
    ("ip", Client),
    ("path", Target),
    ("ua", Text(Agent)),
    ("username", Text(User)),
    ("duration", MILLISECONDS),
];

/// Heroku's router.
const HEROKU: &[(&str, Take)] = &[("fwd", Forwarded), ("path", Target), ("service", SECONDS)];

/// Grafana's requests.
const GRAFANA: &[(&str, Take)] = &[
    ("path", Target),
    ("uname", Text(User)),
    ("size", Number(Bytes)),
    ("time_ms", MILLISECONDS),
];

/// MinIO's audit log.
const MINIO: &[(&str, Take)] = &[
    ("remotehost", Client),
    ("requestPath", Target),
    ("requestHost", Take::Host),
    ("userAgent", Text(Agent)),
    ("requestID", Text(RequestId)),
    ("accessKey", Text(User)),
    ("api.statusCode", Number(Status)),
    ("api.tx", Number(Bytes)),
    ("api.rx", Number(RequestLength)),
    ("api.timeToResponse", NANOSECONDS),
];

/// Kubernetes' audit log.
const KUBERNETES: &[(&str, Take)] = &[
    ("sourceIPs", Client),
    ("requestURI", Target),
    ("userAgent", Text(Agent)),
    ("user.username", Text(User)),
    ("responseStatus.code", Number(Status)),
];

/// `COMBINEDAPACHELOG` of Logstash's grok.
const LOGSTASH: &[(&str, Take)] = &[
    ("clientip", Client),
    ("auth", Text(User)),
    ("verb", Text(Method)),
    ("request", Target),
    ("httpversion", Version),
    ("response", Number(Status)),
    ("referrer", Text(Referer)),
];

/// The labels that LTSV recommends.
const LTSV: &[(&str, Take)] = &[
    ("host", Client),
    ("user", Text(User)),
    ("req", Request),
    ("method", Text(Method)),
    ("uri", Target),
    ("protocol", Text(Protocol)),
    ("vhost", Take::Host),
    ("size", Number(Bytes)),
    ("reqsize", Number(RequestLength)),
    ("referer", Text(Referer)),
    ("ua", Text(Agent)),
    ("cache", Text(CacheStatus)),
    ("reqtime", SECONDS),
];

/// Requests by the names that many programs and frameworks have.
const USUAL: &[(&str, Take)] = &[
    ("remote_ip", Client),
    ("client_ip", Client),
    ("clientIp", Client),
    ("clientip", Client),
    ("remote_host", Client),
    ("ip", Client),
    ("remote_user", Text(User)),
    ("request_method", Text(Method)),
    ("uri", Target),
    ("url", Target),
    ("path", Target),
    ("proto", Text(Protocol)),
    ("vhost", Take::Host),
    ("status_code", Number(Status)),
    ("statusCode", Number(Status)),
    ("code", Number(Status)),
    ("bytes_out", Number(Bytes)),
    ("bytes_sent", Number(Bytes)),
    ("size", Number(Bytes)),
    ("bytes_in", Number(RequestLength)),
    ("referrer", Text(Referer)),
    ("user_agent", Text(Agent)),
    ("userAgent", Text(Agent)),
    ("requestId", Text(RequestId)),
    ("latency_ms", MILLISECONDS),
    ("duration_ms", MILLISECONDS),
    ("elapsed_ms", MILLISECONDS),
    ("response_time_ms", MILLISECONDS),
    ("latency", Take::TookWithUnit),
    ("duration", Take::TookWithUnit),
    ("elapsed", Take::TookWithUnit),
];

/// Cloudflare's Workers: their trace events by Logpush, and by `wrangler tail`.
const WORKERS: &[(&str, Take)] = &[
    ("Event.Request.Method", Text(Method)),
    ("Event.Request.URL", Target),
    ("Event.Response.Status", Number(Status)),
    ("Event.RayID", Text(RequestId)),
    ("event.request.method", Text(Method)),
    ("event.request.url", Target),
    ("event.response.status", Number(Status)),
];

/// Akamai's SIEM integration.
const AKAMAI_SIEM: &[(&str, Take)] = &[
    ("attackData.clientIP", Client),
    ("httpMessage.method", Text(Method)),
    ("httpMessage.path", Target),
    ("httpMessage.query", Text(Query)),
    ("httpMessage.protocol", Text(Protocol)),
    ("httpMessage.host", Take::Host),
    ("httpMessage.port", Number(Port)),
    ("httpMessage.status", Number(Status)),
    ("httpMessage.bytes", Number(Bytes)),
    ("httpMessage.requestId", Text(RequestId)),
];

/// All products. One whose marks others have, too, stands behind these.
pub(super) const PRODUCTS: [Product; 92] = [
    product(&["response_code", "response_flags"], ENVOY),
    product(&["response_code", "start_time", "method"], ENVOY),
    // A list: elsewhere each header is a member.
    product(&["request.headers", "request.method"], LISTED),
    product(&["request.headers", "request.httpMethod"], LISTED),
    product(&["response.latency", "request.path"], SLOG),
    product(&["response.status", "request.method"], KONG),
    product(&["request.uri", "request.method", "status"], CADDY),
    product(&["DownstreamStatus"], TRAEFIK),
    product(&["ClientRequestMethod", "EdgeResponseStatus"], CLOUDFLARE),
    product(&["ClientRequestMethod", "ClientIP"], CLOUDFLARE),
    product(
        &["httpRequest.requestMethod", "httpRequest.requestPath"],
        CHI,
    ),
    product(&["httpRequest.requestMethod", "httpResponse.status"], CHI),
    product(&["httpRequest.requestMethod"], GOOGLE),
    product(&["httpRequest.httpMethod", "httpRequest.uri"], WAF),
    product(&["x-edge-location", "cs-method"], CLOUDFRONT),
    product(&["cs-method", "sc-status"], W3C),
    product(&["elb_status_code"], ALB),
    product(&["httpMethod", "requestTime"], API_GATEWAY),
    product(&["httpMethod", "responseLength"], API_GATEWAY),
    product(&["cliIP", "reqMethod"], AKAMAI),
    product(&["proxy.method", "proxy.path"], VERCEL),
    product(&["properties.httpMethod", "properties.requestUri"], AZURE),
    // The logs of their firewalls have no method.
    product(&["properties.requestUri", "properties.clientIp"], AZURE),
    product(&["properties.requestUri", "properties.clientIP"], AZURE),
    product(&["http.http_method", "src_ip"], SURICATA),
    product(&["event.http.http_method", "event.src_ip"], SURICATA),
    product(&["id.orig_h", "method", "uri"], ZEEK),
    product(
        &["transaction.client_ip", "transaction.request.uri"],
        MODSECURITY,
    ),
    product(&["response_status", "request_method", "url"], FASTLY),
    product(&["req.method", "req.url"], NODE),
    product(&["req.path", "req.method"], NODE),
    // Fastify writes the request and its response in two lines.
    product(&["res.statusCode", "responseTime"], NODE),
    product(&["meta.req.method", "meta.req.url"], WINSTON),
    product(
        &["http.response.status_code", "http.request.method"],
        SCHEMAS,
    ),
    product(&["http.status_code", "http.method"], SCHEMAS),
    product(&["http.status", "http.method"], SCHEMAS),
    product(&["latency_human", "status"], ECHO),
    product(&["controller", "action", "method", "status"], RAILS),
    product(&["dyno", "fwd", "method"], HEROKU),
    product(&["time_ms", "remote_addr", "method", "status"], GRAFANA),
    product(&["api.statusCode", "remotehost"], MINIO),
    product(&["requestURI", "auditID"], KUBERNETES),
    product(&["RequestMethod", "StatusCode"], SERILOG),
    product(&["RequestMethod", "RequestPath"], SERILOG),
    product(
        &["Properties.RequestMethod", "Properties.StatusCode"],
        SERILOG,
    ),
    product(&["Method", "Path", "StatusCode"], KESTREL),
    product(&["State.Method", "State.Path"], KESTREL),
    product(&["requested_uri", "status_code"], LOGBACK),
    product(&["@fields.requested_uri", "@fields.method"], LOGBACK),
    product(&["span.uri", "span.method"], TOWER),
    product(&["span.path", "span.method"], TOWER),
    product(&["span.http.request.method", "span.url.path"], TOWER),
    product(&["span.http.target", "span.http.method"], TOWER),
    product(&["span.http.route", "span.http.method"], TOWER),
    product(&["span.http.url", "span.http.method"], TOWER),
    product(&["body_bytes_sent", "status"], NGINX),
    product(&["request_uri", "status"], NGINX),
    product(&["request_time", "status"], NGINX),
    product(&["request", "remote_addr"], NGINX),
    product(&["reqtime", "status"], LTSV),
    product(&["req", "status", "ua"], LTSV),
    product(&["req", "status", "size"], LTSV),
    product(&["Event.Request.Method", "Event.Request.URL"], WORKERS),
    product(&["event.request.method", "event.request.url"], WORKERS),
    product(&["httpMessage.method", "httpMessage.path"], AKAMAI_SIEM),
    product(&["status_code", "method", "path"], USUAL),
    product(&["status_code", "method", "uri"], USUAL),
    product(&["client_ip", "http_status_code"], HAPROXY),
    product(&["client_ip", "status_code"], HAPROXY),
    product(&["client_ip", "bytes_read"], HAPROXY),
    product(&["frontend", "backend", "status"], HAPROXY),
    product(&["frontend_name", "backend_name"], HAPROXY),
    product(&["clientip", "verb", "response"], LOGSTASH),
    product(&["uri", "method", "status"], USUAL),
    product(&["uri", "request_method", "status"], USUAL),
    product(&["url", "method", "status"], USUAL),
    product(&["url", "method", "statusCode"], USUAL),
    product(&["path", "method", "status"], USUAL),
    product(&["path", "method", "statusCode"], USUAL),
    product(&["http_status", "http_method"], PREFIXED),
    product(&["http_status_code", "http_method"], PREFIXED),
    product(&["status_code", "http_method"], PREFIXED),
    product(&["http_path", "http_method"], PREFIXED),
    product(&["http_url", "http_method"], PREFIXED),
    product(&["status_code", "request_method"], PREFIXED),
    product(&["response_status", "request_method"], PREFIXED),
    product(&["response_code", "request_method"], PREFIXED),
    product(&["request_path", "request_method"], PREFIXED),
    product(&["request_url", "request_method"], PREFIXED),
    product(&["path", "method", "code"], USUAL),
    product(&["path", "method", "response_code"], PREFIXED),
    product(&["path", "method", "http_status"], PREFIXED),
];

//! Which request goes where: one table.

mod endpoints;
mod methods;
mod refusals;

use std::convert::Infallible;
use std::sync::Arc;

use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response};

use super::body::{self, Body};
use super::coding::{Coding, coded};
use super::error::{ApiError, Kind};
use super::inflow::Inflow;
use super::origin::Target;
use super::params::Params;
use super::shippers::{Shipper, take_in};
use super::{
    App, aggregate, authorization, batches, cluster, compact, elastic, flat, forget, gatewayd,
    grafana, health, histogram, listeners, logsql, loki, mcp, metrics, page, patterns, report,
    running, saved, segments, session, sql, trails, vacuum,
};
use crate::view::Reach;
use endpoints::*;
use logpond_client::encode;
use logpond_engine::audit::Trail;
use logpond_engine::query::AGGREGATES;
use logpond_listen::tokens::Role;
use methods::*;
pub(crate) use refusals::refuse_method;
use refusals::wrong_method;

/// A form in a POST body: a long query.
pub(super) const FORM_BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Ship(Shipper),
    Loki(loki::Question),
    Grafana(grafana::Question),
    Saved(saved::Question),
    Batches,
    Query,
    Flat,
    Sql,
    /// The aggregate of this place in the table.
    Aggregate(usize),
    Histogram,
    Patterns,
    Segments,
    Compact,
    Vacuum,
    Forget,
    ClusterStatus,
    ClusterDrain,
    ClusterForget,
    JournalEntries,
    JournalField,
    JournalMachine,
    JournalPage,
    Metrics,
    Healthy,
    Ready,
    Greeting,
    Asset,
    Session,
    Listeners,
    Running,
    RunningEnd,
    Mcp,
    LogsQl,
}

/// What a request needs; nothing, where there is nothing to protect.
const OPEN: Option<Role> = None;
const READER: Option<Role> = Some(Role::Read);
const WRITER: Option<Role> = Some(Role::Write);
const ADMIN: Option<Role> = Some(Role::Admin);

/// A path, in which `{}` is any name; its methods, the role of the token that it needs, and what
/// answers there.
type Route = (&'static str, &'static [Method], Option<Role>, Endpoint);

/// What Elasticsearch's interface is below, too.
pub(super) const ELASTIC_PREFIX: &str = "/elasticsearch";

/// Where messages of GELF are taken.
pub(super) const GELF_PATH: &str = "/gelf";

/// The path of an index of Elasticsearch. As any name fits, it is one for its methods only.
const INDEX_PATH: &str = "/{}";

/// Every path with its methods and the role of the token that it needs.
pub fn routes() -> impl Iterator<Item = (&'static str, &'static [Method], Option<Role>)> {
    let routes = all_routes();
    routes.map(|(path, methods, needed, _)| (*path, *methods, *needed))
}

/// The aggregates, each at its path.
const OF_AGGREGATES: [Route; AGGREGATES.len()] = {
    let mut routes = [("", ASK, READER, Endpoint::Aggregate(0)); AGGREGATES.len()];
    let mut place = 0;
    while place < routes.len() {
        routes[place].0 = AGGREGATES[place].path;
        routes[place].3 = Endpoint::Aggregate(place);
        place += 1;
    }
    routes
};

/// Every route. The first that fits counts.
fn all_routes() -> impl Iterator<Item = &'static Route> {
    OF_AGGREGATES.iter().chain(&ROUTES)
}

/// The routes that no other table has.
const ROUTES: [Route; 179] = [
    ("/api/v1/push", ACT, WRITER, OWN),
    ("/loki/api/v1/push", ACT, WRITER, LOKI),
    ("/api/prom/push", ACT, WRITER, LOKI),
    ("/v1/logs", ACT, WRITER, OTLP),
    ("/otlp/v1/logs", ACT, WRITER, OTLP),
    (GELF_PATH, ACT, WRITER, GELF),
    ("/services/collector", COLLECT, WRITER, HEC_EVENT),
    ("/services/collector/event", COLLECT, WRITER, HEC_EVENT),
    ("/services/collector/event/1.0", COLLECT, WRITER, HEC_EVENT),
    ("/services/collector/raw", COLLECT, WRITER, HEC_RAW),
    ("/services/collector/raw/1.0", COLLECT, WRITER, HEC_RAW),
    ("/services/collector/ack", ACT, WRITER, HEC_ACK),
    ("/services/collector/health", READ, WRITER, HEC_HEALTH),
    ("/services/collector/health/1.0", READ, WRITER, HEC_HEALTH),
    ("/upload", ACT, WRITER, Endpoint::Ship(Shipper::Journal)),
    ("/_search", ASK, READER, ES_SEARCH),
    ("/{}/_search", ASK, READER, ES_SEARCH),
    ("/_msearch", ASK, READER, ES_MULTI_SEARCH),
    ("/{}/_msearch", ASK, READER, ES_MULTI_SEARCH),
    ("/_count", ASK, READER, ES_COUNT),
    ("/{}/_count", ASK, READER, ES_COUNT),
    ("/_field_caps", ASK, READER, ES_FIELD_CAPABILITIES),
    ("/{}/_field_caps", ASK, READER, ES_FIELD_CAPABILITIES),
    ("/_search/scroll", SCROLL, READER, ES_SCROLL),
    ("/_search/scroll/{}", SCROLL, READER, ES_SCROLL),
    ("/{}/_pit", ACT, READER, ES_POINT_IN_TIME),
    ("/_pit", END, READER, ES_POINT_IN_TIME),
    ("/_mapping", READ, READER, ES_MAPPING),
    ("/{}/_mapping", READ, READER, ES_MAPPING),
    ("/{}/_mapping/field/{}", READ, READER, ES_MAPPING),
    ("/_cat/indices", READ, READER, ES_CAT_INDICES),
    ("/_cat/indices/{}", READ, READER, ES_CAT_INDICES),
    ("/_resolve/index/{}", READ, READER, ES_RESOLVE_INDEX),
    ("/_cat/count", READ, READER, ES_CAT_COUNT),
    ("/_cat/count/{}", READ, READER, ES_CAT_COUNT),
    ("/_stats", READ, READER, ES_STATS),
    ("/{}/_stats", READ, READER, ES_STATS),
    ("/_validate/query", ASK, READER, ES_VALIDATE),
    ("/{}/_validate/query", ASK, READER, ES_VALIDATE),
    ("/_mget", ASK, READER, ES_MULTI_GET),
    ("/{}/_mget", ASK, READER, ES_MULTI_GET),
    ("/{}/_doc/{}", READ, READER, ES_GET),
    ("/{}/_source/{}", READ, READER, ES_SOURCE),
    ("/logplex", ACT, WRITER, LOGPLEX),
    ("/api/v2/logs", ACT, WRITER, DATADOG),
    ("/v1/input", ACT, WRITER, DATADOG),
    ("/firehose", ACT, WRITER, FIREHOSE),
    ("/pubsub", ACT, WRITER, PUBSUB),
    ("/logpush", ACT, WRITER, LOGPUSH),
    ("/insert/jsonline", ACT, WRITER, VICTORIA),
    ("/_bulk", STORE, WRITER, ES_BULK),
    ("/{}/_bulk", STORE, WRITER, ES_BULK),
    ("/{}/_doc", STORE, WRITER, ES_DOCUMENT),
    ("/{}/_doc/", STORE, WRITER, ES_DOCUMENT),
    ("/{}/_doc/{}", STORE, WRITER, ES_DOCUMENT),
    ("/{}/_create/{}", STORE, WRITER, ES_DOCUMENT),
    ("/_license", READ, OPEN, ES_LICENSE),
    ("/_xpack", READ, OPEN, ES_NOTHING),
    ("/_cluster/health", READ, OPEN, ES_HEALTH),
    ("/_nodes", READ, OPEN, ES_NODES),
    ("/_nodes/{}", READ, OPEN, ES_NODES),
    ("/_cat/templates/{}", READ, WRITER, ES_TEMPLATE),
    ("/_template/{}", SET_UP, WRITER, ES_SETUP),
    ("/_index_template/{}", SET_UP, WRITER, ES_SETUP),
    ("/_component_template/{}", SET_UP, WRITER, ES_SETUP),
    ("/_data_stream/{}", SET_UP, WRITER, ES_SETUP),
    ("/_alias/{}", SET_UP, WRITER, ES_SETUP),
    ("/_ilm/policy/{}", SET_UP, WRITER, ES_SETUP),
    ("/_ingest/pipeline", SET_UP, WRITER, ES_SETUP),
    ("/_ingest/pipeline/{}", SET_UP, WRITER, ES_SETUP),
    ("/_refresh", ASK, WRITER, ES_REFRESH),
    ("/_flush", ASK, WRITER, ES_REFRESH),
    ("/{}/_refresh", ASK, WRITER, ES_REFRESH),
    ("/{}/_flush", ASK, WRITER, ES_REFRESH),
    ("/_cluster/health/{}", READ, OPEN, ES_HEALTH),
    ("/_cat/health", READ, OPEN, ES_CAT_HEALTH),
    ("/_data_stream", READ, WRITER, ES_NOTHING),
    ("/_aliases", SET_UP, WRITER, ES_SETUP),
    ("/{}/_alias/{}", SET_UP, WRITER, ES_SETUP),
    ("/{}/_alias", READ, WRITER, ES_SETUP),
    ("/{}/_aliases/{}", SET_UP, WRITER, ES_SETUP),
    ("/{}/_mapping", STORE, WRITER, ES_SETUP),
    ("/{}/_mapping/{}", SET_UP, WRITER, ES_SETUP),
    ("/{}/_mappings", SET_UP, WRITER, ES_SETUP),
    ("/{}/_settings", SET_UP, WRITER, ES_SETUP),
    ("/_settings", SET_UP, WRITER, ES_SETUP),
    ("/_cluster/settings", SET_UP, WRITER, ES_SETUP),
    ("/api/v1/batches", READ, WRITER, Endpoint::Batches),
    ("/api/v1/query", ASK, READER, Endpoint::Query),
    ("/api/query", ASK, READER, Endpoint::Flat),
    (
        "/api/v1/saved-queries",
        READ,
        READER,
        Endpoint::Saved(saved::Question::List),
    ),
    (
        "/api/v1/saved-queries/{}",
        READ,
        READER,
        Endpoint::Saved(saved::Question::Show),
    ),
    (
        "/api/v1/saved-queries/{}",
        CHANGE,
        ADMIN,
        Endpoint::Saved(saved::Question::Change),
    ),
    ("/api/v1/sql", ASK, READER, Endpoint::Sql),
    ("/mcp", ACT, READER, Endpoint::Mcp),
    ("/select/logsql/query", ASK, READER, Endpoint::LogsQl),
    ("/api/v1/histogram", ASK, READER, Endpoint::Histogram),
    ("/api/v1/patterns", ASK, READER, Endpoint::Patterns),
    ("/api/v1/segments", READ, READER, Endpoint::Segments),
    ("/api/v1/listeners", READ, READER, Endpoint::Listeners),
    ("/api/v1/running", READ, ADMIN, Endpoint::Running),
    ("/api/v1/running/{}", END, ADMIN, Endpoint::RunningEnd),
    ("/api/v1/compact", ACT, ADMIN, Endpoint::Compact),
    ("/api/v1/vacuum", ACT, ADMIN, Endpoint::Vacuum),
    ("/api/v1/forget", ACT, ADMIN, Endpoint::Forget),
    ("/api/v1/cluster", READ, READER, Endpoint::ClusterStatus),
    ("/api/v1/cluster/drain", ACT, ADMIN, Endpoint::ClusterDrain),
    (
        "/api/v1/cluster/forget",
        ACT,
        ADMIN,
        Endpoint::ClusterForget,
    ),
    (
        "/loki/api/v1/query",
        ASK,
        READER,
        loki(loki::Question::Query),
    ),
    (
        "/loki/api/v1/query_range",
        ASK,
        READER,
        loki(loki::Question::QueryRange),
    ),
    (
        "/loki/api/v1/tail",
        LISTEN,
        READER,
        loki(loki::Question::Tail),
    ),
    (
        "/loki/api/v1/detected_fields",
        ASK,
        READER,
        loki(loki::Question::DetectedFields),
    ),
    (
        "/loki/api/v1/detected_field/{}/values",
        ASK,
        READER,
        loki(loki::Question::DetectedFieldValues),
    ),
    (
        "/loki/api/v1/labels",
        ASK,
        READER,
        loki(loki::Question::Labels),
    ),
    (
        "/loki/api/v1/label/{}/values",
        ASK,
        READER,
        loki(loki::Question::LabelValues),
    ),
    (
        "/loki/api/v1/label",
        ASK,
        READER,
        loki(loki::Question::Labels),
    ),
    ("/api/prom/label", ASK, READER, loki(loki::Question::Labels)),
    (
        "/api/prom/label/{}/values",
        ASK,
        READER,
        loki(loki::Question::LabelValues),
    ),
    (
        "/api/prom/query",
        ASK,
        READER,
        loki(loki::Question::QueryRange),
    ),
    (
        "/loki/api/v1/series",
        ASK,
        READER,
        loki(loki::Question::Series),
    ),
    (
        "/loki/api/v1/index/stats",
        ASK,
        READER,
        loki(loki::Question::IndexStats),
    ),
    (
        "/loki/api/v1/index/volume",
        ASK,
        READER,
        loki(loki::Question::IndexVolume),
    ),
    (
        "/loki/api/v1/index/volume_range",
        ASK,
        READER,
        loki(loki::Question::IndexVolumeRange),
    ),
    (
        "/loki/api/v1/detected_labels",
        ASK,
        READER,
        loki(loki::Question::DetectedLabels),
    ),
    (
        "/loki/api/v1/patterns",
        ASK,
        READER,
        loki(loki::Question::Patterns),
    ),
    (
        "/loki/api/v1/drilldown-limits",
        ASK,
        READER,
        loki(loki::Question::DrilldownLimits),
    ),
    (
        "/loki/api/v1/format_query",
        ASK,
        READER,
        loki(loki::Question::FormatQuery),
    ),
    (
        "/loki/api/v1/status/buildinfo",
        ASK,
        READER,
        loki(loki::Question::BuildInfo),
    ),
    ("/loki/api/v1/rules", EDIT, READER, RULE_GROUPS),
    ("/loki/api/v1/rules/{}", EDIT, READER, RULE_GROUPS),
    ("/loki/api/v1/rules/{}/{}", EDIT, READER, RULE_GROUPS),
    ("/api/prom/rules", EDIT, READER, RULE_GROUPS),
    ("/api/prom/rules/{}", EDIT, READER, RULE_GROUPS),
    ("/api/prom/rules/{}/{}", EDIT, READER, RULE_GROUPS),
    (
        "/loki/api/v1/delete",
        EDIT,
        READER,
        loki(loki::Question::Delete),
    ),
    (
        "/prometheus/api/v1/rules",
        READ,
        READER,
        loki(loki::Question::Rules),
    ),
    (
        "/prometheus/api/v1/alerts",
        READ,
        READER,
        loki(loki::Question::Alerts),
    ),
    (
        "/grafana/json",
        READ,
        READER,
        grafana(grafana::Question::Health),
    ),
    (
        "/grafana/json/",
        READ,
        READER,
        grafana(grafana::Question::Health),
    ),
    (
        "/grafana/json/search",
        ACT,
        READER,
        grafana(grafana::Question::Search),
    ),
    (
        "/grafana/json/query",
        ACT,
        READER,
        grafana(grafana::Question::Query),
    ),
    (
        "/grafana/json/annotations",
        ACT,
        READER,
        grafana(grafana::Question::Annotations),
    ),
    (
        "/grafana/json/tag-keys",
        ACT,
        READER,
        grafana(grafana::Question::TagKeys),
    ),
    (
        "/grafana/json/tag-values",
        ACT,
        READER,
        grafana(grafana::Question::TagValues),
    ),
    (
        "/grafana/json/metrics",
        ACT,
        READER,
        grafana(grafana::Question::Metrics),
    ),
    (
        "/grafana/json/metric-payload-options",
        ACT,
        READER,
        grafana(grafana::Question::PayloadOptions),
    ),
    (
        "/grafana/json/variable",
        ACT,
        READER,
        grafana(grafana::Question::Variable),
    ),
    ("/search", ACT, READER, grafana(grafana::Question::Search)),
    ("/query", ACT, READER, grafana(grafana::Question::Query)),
    (
        "/annotations",
        ACT,
        READER,
        grafana(grafana::Question::Annotations),
    ),
    (
        "/tag-keys",
        ACT,
        READER,
        grafana(grafana::Question::TagKeys),
    ),
    (
        "/tag-values",
        ACT,
        READER,
        grafana(grafana::Question::TagValues),
    ),
    ("/metrics", ACT, READER, grafana(grafana::Question::Metrics)),
    (
        "/metric-payload-options",
        ACT,
        READER,
        grafana(grafana::Question::PayloadOptions),
    ),
    (
        "/variable",
        ACT,
        READER,
        grafana(grafana::Question::Variable),
    ),
    ("/entries", READ, READER, Endpoint::JournalEntries),
    ("/fields/{}", READ, READER, Endpoint::JournalField),
    ("/machine", READ, READER, Endpoint::JournalMachine),
    ("/browse", READ, READER, Endpoint::JournalPage),
    ("/metrics", READ, READER, Endpoint::Metrics),
    ("/-/healthy", READ, OPEN, Endpoint::Healthy),
    ("/-/ready", READ, OPEN, Endpoint::Ready),
    // Where Loki says it.
    ("/ready", READ, OPEN, Endpoint::Ready),
    ("/elasticsearch/", READ, OPEN, Endpoint::Greeting),
    ("/elasticsearch", READ, OPEN, Endpoint::Greeting),
    ("/", READ, OPEN, Endpoint::Greeting),
    // The HTTP output of Logstash is given the address of a server, and no path.
    ("/", STORE, WRITER, OWN),
    ("/web/{}", READ, OPEN, Endpoint::Asset),
    ("/api/v1/session", SESSION, OPEN, Endpoint::Session),
    // With a type, which Elasticsearch had up to version 6: the defaults of rsyslog, of bunyan-elasticsearch, and
    // of Beats and Logstash of that time.
    ("/{}/{}/_bulk", STORE, WRITER, ES_BULK),
    ("/{}/events", ACT, WRITER, ES_DOCUMENT),
    ("/{}/events/{}", STORE, WRITER, ES_DOCUMENT),
    ("/{}/logs", ACT, WRITER, ES_DOCUMENT),
    ("/{}/logs/{}", STORE, WRITER, ES_DOCUMENT),
    ("/{}/doc", ACT, WRITER, ES_DOCUMENT),
    ("/{}/doc/{}", STORE, WRITER, ES_DOCUMENT),
    (INDEX_PATH, LISTEN, READER, ES_DESCRIBE),
    (INDEX_PATH, EXISTS, OPEN, ES_INDEX),
    (INDEX_PATH, CREATE, WRITER, ES_INDEX),
];

/// The route of a path that takes the method, and the names in it; any route of the path, if none
/// takes it.
fn find<'p>(path: &'p str, method: &Method) -> Option<(&'static Route, Vec<&'p str>)> {
    let fits = |path| {
        let found = |route: &'static Route| {
            let is_here = route.0 != INDEX_PATH || route.1.contains(method);
            let names = names_in(route.0, path).filter(|_| is_here)?;
            Some((route, names))
        };
        let mut routes = all_routes().filter_map(found);
        let first = routes.next()?;
        let takes = |(route, _): &(&Route, _)| route.1.contains(method);
        // A path that is something else is no index to be read.
        let is_index = |(route, _): &(&Route, _)| route.0 == INDEX_PATH && route.1 == LISTEN;
        if takes(&first) {
            Some(first)
        } else {
            let other = routes.find(|found| takes(found) && !is_index(found));
            Some(other.unwrap_or(first))
        }
    };
    let below = path.strip_prefix(ELASTIC_PREFIX).and_then(fits);
    let is_elastic =
        |(route, _): &(&Route, _)| matches!(route.3, Endpoint::Ship(Shipper::Elastic(_)));
    below.filter(is_elastic).or_else(|| fits(path))
}

/// The names in a path, if it is one of these.
fn names_in<'p>(route: &str, path: &'p str) -> Option<Vec<&'p str>> {
    let (mut wanted, mut given) = (route.split('/'), path.split('/'));
    let mut names = Vec::new();
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(names),
            (Some("{}"), Some(name)) if !name.is_empty() => names.push(name),
            (Some(wanted), Some(given)) if wanted == given => {}
            _ => return None,
        }
    }
}

/// Answers one request; errors become answers too.
pub(super) async fn answer(
    app: Arc<App>,
    request: Request<Inflow>,
) -> Result<Response<Body>, Infallible> {
    let metrics = app.metrics.clone();
    let is_loki = loki::is_path(request.uri().path());
    let is_elastic = elastic::is_path(request.uri().path());
    let is_head = request.method() == Method::HEAD;
    let coding = if is_head {
        Coding::Plain
    } else {
        Coding::of(request.headers())
    };
    let mut trail = None;
    let response = route(app, request, &mut trail).await;
    let response = response.unwrap_or_else(|error| {
        if is_loki {
            loki::refusal(error)
        } else if is_elastic {
            elastic::refusal(error)
        } else {
            error.into_response()
        }
    });
    let class = usize::from(response.status().as_u16() / 100).clamp(1, 5);
    metrics.http_answers[class - 1].add(1);
    let response = coded(coding, response);
    Ok(match trail {
        Some(trail) => body::noted(response, trail),
        None => response,
    })
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

/// Answers a request, or says why not; gives the trail where it is noted.
async fn route(
    app: Arc<App>,
    request: Request<Inflow>,
    noted: &mut Option<Arc<Trail>>,
) -> Result<Response<Body>, ApiError> {
    authorization::check_host(&app, &request)?;
    let path = request.uri().path().to_owned();
    let path = &*path;
    let Some(((route, methods, needed, endpoint), names)) = find(path, request.method()) else {
        let message = format!("there is nothing at {path}; the API is below /api/v1/");
        return Err(ApiError::new(Kind::NotFound, message));
    };
    if !methods.contains(request.method()) {
        return Ok(wrong_method(path, request.method()));
    }
    let target = match endpoint {
        Endpoint::Greeting | Endpoint::JournalPage => Target::Page,
        _ => Target::Other,
    };
    authorization::check_origin(&app, &request, target)?;
    let reach = match endpoint {
        // Metrics are read all the time, and are no records.
        Endpoint::Metrics => Reach::Nothing,
        endpoint => endpoint.reach(),
    };
    let trail = app.trail_of(&request, route, *needed, reach);
    noted.clone_from(&trail);
    let admission = match needed {
        Some(role) => {
            let name = match endpoint {
                Endpoint::Ship(shipper) => shipper.token_param(),
                _ => None,
            };
            let params = name.map(|_| Params::of(request.uri())).transpose()?;
            let name = name.unwrap_or_default();
            let token = params.as_ref().and_then(|params| params.one(name).ok()?);
            authorization::check(&app, request.headers(), token, *role, trail.as_deref())?
        }
        None => None,
    };
    if let (Some(trail), Some(admission)) = (&trail, &admission) {
        trail.came_with(admission.label());
    }
    let app = app.noted_by(trail.as_ref());
    let app = match needed {
        Some(role) => app.seen_by(admission.as_ref(), *role, request.headers())?,
        None => app,
    };
    app.check_reach(endpoint.reach())?;
    let answering = running::listed(path, answer_at(app, endpoint, names, request));
    trails::noted(trail, authorization::admitted(admission, answering)).await
}

/// Answers a question of this process itself, on behalf of a request that may read.
pub(super) async fn ask(
    app: Arc<App>,
    path: &str,
    parameters: &[(String, String)],
) -> Result<Response<Body>, ApiError> {
    let mut address = path.to_owned();
    for (at, (name, value)) in parameters.iter().enumerate() {
        address.push(if at == 0 { '?' } else { '&' });
        encode(name.as_bytes(), &mut address);
        address.push('=');
        encode(value.as_bytes(), &mut address);
    }
    let request = Request::builder().uri(address);
    let request = request.body(Inflow::empty(&app.shutdown));
    let request = request.map_err(|_| ApiError::bad_request("the parameters are too long"))?;
    match find(path, request.method()) {
        Some(((_, methods, None | Some(Role::Read), endpoint), names))
            if methods.contains(request.method()) =>
        {
            app.check_reach(endpoint.reach())?;
            answer_at(app, endpoint, names, request).await
        }
        _ => Err(ApiError::new(Kind::NotFound, "there is no such question")),
    }
}

/// Answers a request that was let in.
async fn answer_at(
    app: Arc<App>,
    endpoint: &Endpoint,
    names: Vec<&str>,
    request: Request<Inflow>,
) -> Result<Response<Body>, ApiError> {
    if let Endpoint::Ship(shipper) = endpoint {
        return take_in(&app, *shipper, &names, request).await;
    }
    if let Endpoint::Loki(question) = endpoint {
        return Ok(loki::answer(&app, *question, &names, request).await);
    }
    if let Endpoint::Grafana(question) = endpoint {
        return grafana::answer(&app, *question, request).await;
    }
    if let Endpoint::Saved(question) = endpoint {
        return saved::answer(&app, *question, &names, request).await;
    }
    if *endpoint == Endpoint::Sql {
        return sql::answer(&app, request).await;
    }
    if *endpoint == Endpoint::Mcp {
        return mcp::answer(&app, request).await;
    }
    let (parts, params) = params_of(&app, request).await?;
    match endpoint {
        Endpoint::Ship(_)
        | Endpoint::Loki(_)
        | Endpoint::Grafana(_)
        | Endpoint::Saved(_)
        | Endpoint::Sql
        | Endpoint::Mcp => Err(ApiError::new(Kind::Internal, "a request got lost")),
        Endpoint::Batches => batches::answer(&app, &params),
        Endpoint::LogsQl => Ok(logsql::answer(&app, params).await),
        Endpoint::Query => report::answer(&app, params).await,
        Endpoint::Flat => flat::answer(&app, &parts.headers, params).await,
        Endpoint::Aggregate(place) => aggregate::answer(&app, *place, params).await,
        Endpoint::Histogram => histogram::answer(&app, params).await,
        Endpoint::Patterns => patterns::answer(&app, params).await,
        Endpoint::Segments => segments::answer(&app, params).await,
        Endpoint::Listeners => listeners::answer(&app.listening, &params),
        Endpoint::Running => running::answer(&app, &params),
        Endpoint::RunningEnd => {
            let name = names.first().copied().unwrap_or_default();
            running::stop(&app, name, &params)
        }
        Endpoint::Compact => compact::answer(&app, params).await,
        Endpoint::Vacuum => vacuum::answer(&app, params).await,
        Endpoint::Forget => forget::answer(&app, params).await,
        Endpoint::ClusterStatus => cluster::status(&app, &params).await,
        Endpoint::ClusterDrain => cluster::drain(&app, &params).await,
        Endpoint::ClusterForget => cluster::forget(&app, &params).await,
        Endpoint::JournalEntries => gatewayd::entries(&app, &params, &parts.headers).await,
        Endpoint::JournalField => {
            let name = names.first().copied().unwrap_or_default();
            gatewayd::field(&app, name, &parts.headers).await
        }
        Endpoint::JournalMachine => gatewayd::machine(&app).await,
        Endpoint::JournalPage => Ok(gatewayd::browse()),
        Endpoint::Metrics => metrics::answer(&app).await,
        Endpoint::Healthy => Ok(health::healthy()),
        Endpoint::Ready => Ok(health::ready(&app.shutdown, &app.listening)),
        Endpoint::Greeting => Ok(page::greeting(&parts.headers)),
        Endpoint::Asset => page::asset(parts.uri.path(), &parts.headers),
        Endpoint::Session => session::answer(&app, &parts.method, &parts.headers, &params),
    }
}

/// The parameters of a request: those in its address, and those in its body.
pub(super) async fn params_of(
    app: &App,
    request: Request<Inflow>,
) -> Result<(Parts, Params), ApiError> {
    let mut params = Params::of(request.uri())?;
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
    running::describe(&params);
    Ok((parts, params))
}

fn is_type(content_type: Option<&HeaderValue>, wanted: &str) -> bool {
    let given = content_type.map_or(&b""[..], |value| value.as_bytes());
    given
        .get(..wanted.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(wanted.as_bytes()))
}

//! Elasticsearch's interface: bulk requests of shippers, what they ask before the first one, and searches.
//!
//! Invariants: there is one item in the answer to a bulk request for each action, in order; every
//! answer bears the header without which the official clients talk to nobody; what may pass is 429
//! or 5xx, so that no client drops it.

mod reads;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use logpond_protocol::intake::push::elastic::{self, Bulk, BulkError, Item, ItemError, Names};
use logpond_record::{Labels, write_json_string};
use serde_json::{Value, json};

pub(crate) use reads::Question as ReadQuestion;

use super::App;
use super::body::{self, Body, RECEIVED_BYTES_MAX};
use super::error::{ApiError, Kind};
use super::inflow::Inflow;
use super::{intake, once, params};
use logpond_host::telemetry::Intake;

/// The header that tells official clients that they may talk.
const PRODUCT: HeaderName = HeaderName::from_static("x-elastic-product");

/// The version for clients that do not say their own.
const VERSION: &str = "8.19.0";

/// When the licence that is none was issued: 2026-01-01.
const ISSUE_MS: u64 = 1_767_225_600_000;

/// When it ends: 2100-01-01.
const EXPIRY_MS: u64 = 4_102_444_800_000;

/// The longest part of a path that is taken for a name, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// Reads a body: its bytes, the names in its path, labels, the limit of a line.
type Read = fn(&[u8], Names<'_>, Labels, usize) -> Result<Bulk, BulkError>;

/// What a client asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    Bulk,
    Document,
    License,
    Health,
    Nodes,
    /// An index is asked for, or created: every index is there.
    Index,
    /// Makes documents visible, which they are already.
    Refresh,
    /// The health as text, as rsyslog asks for it.
    CatHealth,
    /// Something that is set up before the first document: it is there already.
    Setup,
    /// Whether there is a template, as Beats 7 ask: by looking for its name in the answer.
    Template,
    Nothing,
    /// Reads records.
    Read(ReadQuestion),
}

/// Answers a question; `names` are those in its path.
pub(super) async fn answer(
    app: &Arc<App>,
    question: Question,
    names: &[&str],
    request: Request<Inflow>,
) -> Response<Body> {
    let named = Names {
        index: names.first().copied(),
        // The second name of a bulk request is a type.
        id: names
            .get(1)
            .copied()
            .filter(|_| question == Question::Document),
    };
    // At the root any path of one name is asked for as an index, be it one or not.
    let is_index = question == Question::Read(ReadQuestion::Index);
    let is_of_elastic = !is_index
        || request
            .uri()
            .path()
            .starts_with(super::router::ELASTIC_PREFIX);
    let answered = match question {
        Question::Bulk => bulk(app, named, request).await,
        Question::Document => document(app, named, request).await,
        Question::Index => index(app, names, request).await,
        Question::Refresh => refresh(app, request).await,
        Question::CatHealth => Ok(cat_health()),
        Question::License => Ok(Body::json(StatusCode::OK, &license())),
        Question::Health => Ok(Body::json(StatusCode::OK, &health())),
        Question::Nodes => Ok(Body::json(StatusCode::OK, &nodes(address_of(&request)))),
        Question::Setup => set_up(app, request).await,
        Question::Template => Ok(Body::json(StatusCode::OK, &templates(named.index))),
        Question::Nothing => Ok(Body::json(StatusCode::OK, &json!({}))),
        Question::Read(question) => reads::answer(app, question, names, request).await,
    };
    let mut response = match answered {
        Err(error) if !is_of_elastic => return error.into_response(),
        answered => answered.unwrap_or_else(refusal),
    };
    note_product(response.headers_mut());
    response
}

/// Says that official clients may talk.
pub(super) fn note_product(headers: &mut HeaderMap) {
    headers.insert(PRODUCT, HeaderValue::from_static("Elasticsearch"));
}

/// What Elasticsearch says of itself at `GET /`.
pub(super) fn greeting(headers: &HeaderMap) -> Value {
    let version = version_for(headers);
    json!({
        "name": "logpond",
        "cluster_name": "logpond",
        "cluster_uuid": "logpond",
        "version": {
            "number": version,
            "build_flavor": "default",
            "build_type": "binary",
            "build_hash": "unknown",
            "build_date": "2026-01-01T00:00:00Z",
            "build_snapshot": false,
            "lucene_version": "9.12.0",
            "minimum_wire_compatibility_version": "7.17.0",
            "minimum_index_compatibility_version": "7.0.0",
        },
        "tagline": "You Know, for Search",
    })
}

/// The version that a client of the same maker has, since those refuse servers that are older.
fn version_for(headers: &HeaderMap) -> String {
    let agent = headers
        .get(USER_AGENT)
        .and_then(|value| value.to_str().ok());
    let is_own = |product: &str| {
        let product = product.to_ascii_lowercase();
        product.starts_with("elastic")
            || product.starts_with("logstash")
            || product.ends_with("beat")
    };
    let found = agent.and_then(|agent| {
        let (product, rest) = agent.split_once('/')?;
        let version = rest.split([' ', '-', '(', '+']).next()?;
        let parts: Vec<&str> = version.split('.').collect();
        let is_number = |part: &&str| {
            !part.is_empty() && part.len() <= 4 && part.bytes().all(|b| b.is_ascii_digit())
        };
        (is_own(product) && parts.len() == 3 && parts.iter().all(is_number)).then_some(version)
    });
    found.unwrap_or(VERSION).to_owned()
}

fn license() -> Value {
    json!({ "license": {
        "uid": "logpond",
        "type": "basic",
        "mode": "basic",
        "status": "active",
        "issued_to": "logpond",
        "issuer": "logpond",
        "issue_date": "2026-01-01T00:00:00.000Z",
        "issue_date_in_millis": ISSUE_MS,
        "start_date_in_millis": ISSUE_MS,
        "expiry_date": "2100-01-01T00:00:00.000Z",
        "expiry_date_in_millis": EXPIRY_MS,
        "max_nodes": 1000,
    } })
}

/// The health with all members that typed clients need: Java's refuses an answer that lacks one.
fn health() -> Value {
    json!({
        "cluster_name": "logpond",
        "status": "green",
        "timed_out": false,
        "number_of_nodes": 1,
        "number_of_data_nodes": 1,
        "active_primary_shards": 1,
        "active_shards": 1,
        "relocating_shards": 0,
        "initializing_shards": 0,
        "unassigned_shards": 0,
        "unassigned_primary_shards": 0,
        "delayed_unassigned_shards": 0,
        "number_of_pending_tasks": 0,
        "number_of_in_flight_fetch": 0,
        "task_max_waiting_in_queue_millis": 0,
        "active_shards_percent_as_number": 100.0,
    })
}

/// The columns epoch, timestamp, cluster, status, node.total.
fn cat_health() -> Response<Body> {
    let line = "0 00:00:00 logpond green 1\n".to_owned();
    Body::whole(StatusCode::OK, "text/plain; charset=utf-8", line)
}

/// Every index is there. A name that begins with an underscore is none.
async fn index(
    app: &Arc<App>,
    names: &[&str],
    request: Request<Inflow>,
) -> Result<Response<Body>, ApiError> {
    let name = names.first().copied().unwrap_or_default();
    if name.starts_with('_') {
        let message = format!("there is nothing at /{name}");
        return Err(ApiError::new(Kind::NotFound, message));
    }
    let (parts, body) = request.into_parts();
    if parts.method != Method::PUT {
        return Ok(Body::json(StatusCode::OK, &json!({})));
    }
    body::receive(body, RECEIVED_BYTES_MAX, &app.bodies).await?;
    let created = json!({ "acknowledged": true, "shards_acknowledged": true, "index": name });
    Ok(Body::json(StatusCode::OK, &created))
}

async fn refresh(app: &Arc<App>, request: Request<Inflow>) -> Result<Response<Body>, ApiError> {
    body::receive(request.into_body(), RECEIVED_BYTES_MAX, &app.bodies).await?;
    let refreshed = json!({ "_shards": { "total": 1, "successful": 1, "failed": 0 } });
    Ok(Body::json(StatusCode::OK, &refreshed))
}

/// Members of the answer for a document that was stored, as typed clients read them.
const CREATED: &str = "\"_version\":1,\"result\":\"created\",\
                       \"_shards\":{\"total\":1,\"successful\":1,\"failed\":0},\
                       \"_seq_no\":0,\"_primary_term\":1";

/// The address that a client used, if that has a port: a name or an IP address, a colon and the port.
fn address_of<B>(request: &Request<B>) -> Option<String> {
    let host = request
        .headers()
        .get(HOST)
        .and_then(|host| host.to_str().ok());
    let host = host.or_else(|| {
        request
            .uri()
            .authority()
            .map(|authority| authority.as_str())
    })?;
    let (_, port) = host.rsplit_once(':')?;
    port.parse::<u16>().is_ok().then(|| host.to_owned())
}

/// The nodes, for clients that sniff: this one, at the address by which the client came. olivere's client sniffs by
/// default, and fails if there is no node. Without an address there is none.
fn nodes(address: Option<String>) -> Value {
    let Some(address) = address else {
        return json!({
            "_nodes": { "total": 0, "successful": 0, "failed": 0 }, "cluster_name": "logpond", "nodes": {},
        });
    };
    let http = json!({ "bound_address": [address], "publish_address": address });
    let node = json!({ "name": "logpond", "version": VERSION, "roles": ["data", "ingest", "master"], "http": http });
    json!({
        "_nodes": { "total": 1, "successful": 1, "failed": 0 },
        "cluster_name": "logpond",
        "nodes": { "logpond": node },
    })
}

/// A list of templates that has this one.
fn templates(name: Option<&str>) -> Value {
    let name = name.unwrap_or_default();
    json!([{ "name": name, "index_patterns": format!("[{name}-*]"), "order": "1" }])
}

/// Templates, pipelines, policies: nothing needs them here, and all are there.
async fn set_up(app: &Arc<App>, request: Request<Inflow>) -> Result<Response<Body>, ApiError> {
    let (parts, body) = request.into_parts();
    let value = match parts.method {
        Method::PUT | Method::POST => {
            body::receive(body, RECEIVED_BYTES_MAX, &app.bodies).await?;
            json!({ "acknowledged": true })
        }
        _ => json!({}),
    };
    Ok(Body::json(StatusCode::OK, &value))
}

async fn bulk(
    app: &Arc<App>,
    names: Names<'_>,
    request: Request<Inflow>,
) -> Result<Response<Body>, ApiError> {
    let started = Instant::now();
    let bulk = receive(app, names, request, elastic::decode).await?;
    let (items, has_errors) = store(app, bulk).await?;
    // A large answer that grew by and by would take its memory twice.
    let mut out = String::with_capacity(items.iter().map(item_bytes).sum());
    let took = started.elapsed().as_millis();
    let _ = write!(out, "{{\"took\":{took},\"errors\":{has_errors},\"items\":[");
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write_item(item, &mut out);
    }
    out.push_str("]}");
    Ok(Body::whole(StatusCode::OK, "application/json", out))
}

/// One document: a bulk request of one action.
async fn document(
    app: &Arc<App>,
    names: Names<'_>,
    request: Request<Inflow>,
) -> Result<Response<Body>, ApiError> {
    let bulk = receive(app, names, request, elastic::decode_document).await?;
    let (items, _) = store(app, bulk).await?;
    match items.first().map(|item| (item, &item.outcome)) {
        Some((item, Ok(()))) => {
            let mut out = "{".to_owned();
            write_names(item, &mut out);
            out += CREATED;
            out += "}\n";
            Ok(Body::whole(StatusCode::CREATED, "application/json", out))
        }
        Some((_, Err(error))) => Err(ApiError::bad_request(error.to_string())),
        None => Err(ApiError::bad_request("there is no document")),
    }
}

async fn receive(
    app: &Arc<App>,
    names: Names<'_>,
    request: Request<Inflow>,
    read: Read,
) -> Result<Bulk, ApiError> {
    let owned = |name: Option<&str>, is: &str, bytes_max: usize| {
        let Some(name) = name.map(params::of_path).transpose()? else {
            return Ok(None);
        };
        if name.len() > bytes_max {
            let message = format!("the {is} is longer than {bytes_max} bytes");
            return Err(ApiError::bad_request(message));
        }
        Ok(Some(name))
    };
    let index = owned(names.index, "name of the index", NAME_BYTES_MAX)?;
    let id = owned(names.id, "id of the document", elastic::ID_BYTES_MAX)?;
    let encoding = intake::encoding(request.headers())?;
    let line_bytes_max = app.line_bytes_max;
    let decode = move |body: &[u8]| {
        let names = Names {
            index: index.as_deref(),
            id: id.as_deref(),
        };
        read(body, names, Labels::new(), line_bytes_max).map_err(refused)
    };
    intake::decode(app, request.into_body(), encoding, decode).await
}

/// Has the documents made durable; gives what is to be answered, and whether something failed.
async fn store(app: &Arc<App>, bulk: Bulk) -> Result<(Vec<Item>, bool), ApiError> {
    let Bulk {
        batch,
        items,
        identity,
    } = bulk;
    let failed = items.iter().filter(|item| item.outcome.is_err()).count();
    app.metrics
        .intake(Intake::Elastic)
        .rejected
        .add(failed as u64);
    once::submit(app, Intake::Elastic, batch, identity).await?;
    Ok((items, failed > 0))
}

fn write_item(item: &Item, out: &mut String) {
    let _ = write!(out, "{{\"{}\":{{", item.action.as_str());
    write_names(item, out);
    match &item.outcome {
        Ok(()) => {
            let _ = write!(out, "{CREATED},\"status\":201}}}}");
        }
        Err(error) => {
            let kind = match &**error {
                ItemError::Unsupported(_) => "illegal_argument_exception",
                ItemError::Document(_) => "document_parsing_exception",
            };
            let error = json!({ "type": kind, "reason": error.to_string() });
            let _ = write!(out, "\"status\":400,\"error\":{error}}}}}");
        }
    }
}

/// How many bytes an item of an answer takes: those of its names and what else each has.
fn item_bytes(item: &Item) -> usize {
    const OTHERS: usize = CREATED.len() + 64;
    item.index.len() + item.id.as_ref().map_or(0, |id| id.len()) + OTHERS
}

/// The index and the id of a document, each with a comma behind it.
fn write_names(item: &Item, out: &mut String) {
    let names = [("_index", Some(&*item.index)), ("_id", item.id.as_deref())];
    for (name, text) in names {
        if let Some(text) = text {
            let mut json = Vec::new();
            write_json_string(text, &mut json);
            let _ = write!(out, "\"{name}\":{},", String::from_utf8_lossy(&json));
        }
    }
}

fn refused(error: BulkError) -> ApiError {
    let kind = match error {
        BulkError::TooMany | BulkError::TooLarge(_) => Kind::BodyTooLarge,
        _ => Kind::BadRequest,
    };
    ApiError::new(kind, error.to_string())
}

/// An error in the form of Elasticsearch.
pub(super) fn refusal(error: ApiError) -> Response<Body> {
    let (status, value) = error_json(&error);
    let mut response = error.kind.dress(Body::json(status, &value));
    note_product(response.headers_mut());
    response
}

/// True for a path that only Elasticsearch's interface has, so that its errors have that form.
pub(super) fn is_path(path: &str) -> bool {
    path.starts_with("/elasticsearch/") || path.split('/').any(|name| name.starts_with('_'))
}

/// The status of an error, and the error as Elasticsearch writes it.
fn error_json(error: &ApiError) -> (StatusCode, Value) {
    let (status, _, _) = error.kind.row();
    let kind = match (error.kind, status.as_u16()) {
        (Kind::BadQuery, _) => "parsing_exception",
        (_, 400) => "illegal_argument_exception",
        (_, 401 | 403) => "security_exception",
        (_, 404) => "resource_not_found_exception",
        (_, 413) => "content_too_long_exception",
        (_, 429) => "es_rejected_execution_exception",
        (Kind::Incomplete, _) => "search_phase_execution_exception",
        _ => "status_exception",
    };
    let reason = match &error.hint {
        Some(hint) => format!("{}: {hint}", error.message),
        None => error.message.clone(),
    };
    let cause = json!({ "type": kind, "reason": reason });
    let value = json!({
        "error": { "root_cause": [cause], "type": kind, "reason": reason },
        "status": status.as_u16(),
    });
    (status, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_the_same_maker_find_their_own_version() {
        let table = [
            ("Elastic-filebeat/8.15.1 (linux; amd64)", "8.15.1"),
            ("Filebeat/7.17.0", "7.17.0"),
            ("Logstash/9.0.2 (OS=Linux)", "9.0.2"),
            ("elasticsearch-py/8.14.0 (Python/3.11.2)", "8.14.0"),
            ("elasticsearch-py/8.14.0-SNAPSHOT", "8.14.0"),
            ("Vector/0.40.0 (x86_64)", VERSION),
            ("curl/8.5.0", VERSION),
            ("Elastic/8.x.1", VERSION),
            ("", VERSION),
        ];
        for (agent, version) in table {
            let mut headers = HeaderMap::new();
            headers.insert(USER_AGENT, agent.parse().unwrap());
            assert_eq!(version_for(&headers), version, "{agent}");
        }
    }
}

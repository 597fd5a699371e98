//! The reading side of Elasticsearch's interface: searches, counts and what clients ask of fields and indices.
//!
//! ```text
//! body and parameters ─▶ request ─▶ query (a filter of the engine) ─▶ search, aggregations ─▶ JSON
//! ```
//!
//! Invariants:
//! - Nothing that would change an answer is passed over: what is not supported is an error with a remedy.
//! - An answer that lacks something is refused (503), unless a partial one is wanted.
//! - Scrolls and points in time take no memory: their ids say all that there is to know.

mod aggregations;
mod cat;
mod completeness;
mod count;
mod dates;
mod document;
mod fetch;
mod fields;
mod filter_path;
mod get;
mod hit;
mod indices;
mod json;
mod listing;
mod lists;
mod multi;
mod names;
mod numbers;
mod objects;
mod pages;
mod query;
mod request;
mod scope;
mod search;
mod sort;
mod sorted;
mod validate;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hyper::header::{CONTENT_TYPE, HeaderValue, WARNING};
use hyper::{Method, Request, Response, StatusCode};
use logpond_engine::query::Output;
use logpond_host::clock;
use logpond_record::Timestamp;
use serde_json::Value as Json;

use super::super::App;
use super::super::body::{self, Body};
use super::super::error::{ApiError, Kind};
use super::super::header_text;
use super::super::inflow::Inflow;
use super::super::intake;
use super::super::params::{self, Params};
use filter_path::FilterPath;
use request::{AnswerOptions, SearchRequest};

/// The longest body of a request.
const BODY_BYTES_MAX: usize = 4 << 20;

/// The question of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    Search,
    MultiSearch,
    Count,
    Mapping,
    FieldCapabilities,
    CatIndices,
    ResolveIndex,
    Scroll,
    PointInTime,
    Document,
    Source,
    /// Several documents by their ids.
    Documents,
    /// An index: its fields.
    Index,
    CatCount,
    /// How many records indices have.
    Stats,
    /// The validity of a query.
    Validate,
}

/// An answer.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Json(Json),
    Text(String),
}

impl From<Json> for Answer {
    fn from(json: Json) -> Answer {
        Answer {
            status: StatusCode::OK,
            content: Content::Json(json),
        }
    }
}

/// A request, received.
#[derive(Debug)]
struct Call {
    method: Method,
    /// The names in the path.
    names: Vec<String>,
    params: Params,
    body: Vec<u8>,
    now: Timestamp,
}

impl Call {
    /// The first name in the path: an expression of indices.
    fn index(&self) -> &str {
        self.names.first().map_or("", |name| name.as_str())
    }
}

/// Answers a question; `names` are those in its path.
pub(super) async fn answer(
    app: &Arc<App>,
    question: Question,
    names: &[&str],
    request: Request<Inflow>,
) -> Result<Response<Body>, ApiError> {
    let names: Result<Vec<String>, ApiError> =
        names.iter().map(|name| params::of_path(name)).collect();
    let mut params = Params::of(request.uri())?;
    let filter_path = FilterPath::read(&params.take("filter_path").unwrap_or_default())?;
    let is_table = matches!(question, Question::CatIndices | Question::CatCount);
    if !is_table
        && let Some(format) = params.take("format")
        && !format.eq_ignore_ascii_case("json")
    {
        return Err(json::unsupported("format", "answers are JSON"));
    }
    let (parts, body) = request.into_parts();
    let encoding = intake::encoding(&parts.headers)?;
    let received = body::receive(body, BODY_BYTES_MAX, &app.bodies).await?;
    let body = intake::decode_received(received, (encoding, BODY_BYTES_MAX), bounded).await?;
    let call = Call {
        method: parts.method,
        names: names?,
        params,
        body,
        now: clock::now(),
    };
    let head = Arc::new(Mutex::new((StatusCode::OK, "application/json", None)));
    let app_there = app.clone();
    let head_there = Arc::clone(&head);
    let work = move |out: &mut Output| {
        let started = Instant::now();
        let answer = ask(&app_there, question, &call, out);
        drop(call);
        let metrics = &app_there.metrics;
        metrics.query_ns.observe_duration(started.elapsed());
        // The rows of a search went elsewhere.
        out.leave_out_trailer();
        let answer = answer?;
        let kind = match answer.content {
            Content::Json(_) => "application/json",
            Content::Text(_) => "text/plain; charset=utf-8",
        };
        let warning = warning(out.lost());
        *head_there.lock().unwrap_or_else(PoisonError::into_inner) = (answer.status, kind, warning);
        Ok(Answer {
            content: match answer.content {
                Content::Json(json) => Content::Json(filter_path.of(json)),
                text => text,
            },
            ..answer
        })
    };
    let mut response = app.threads.gathered(work, write).await?;
    let (status, kind, warning) =
        std::mem::take(&mut *head.lock().unwrap_or_else(PoisonError::into_inner));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if let Some(warning) = warning {
        headers.insert(WARNING, warning);
    }
    Ok(response)
}

/// The header that Elasticsearch warns with, which its clients show: RFC 9111, section 5.5, code 299.
fn warning<'l>(lost: impl Iterator<Item = &'l str>) -> Option<HeaderValue> {
    let lost: Vec<&str> = lost.collect();
    if lost.is_empty() {
        return None;
    }
    // The text stands in quotes.
    let text = header_text::plain(&lost.join("; ")).replace(['"', '\\'], "'");
    let version = env!("CARGO_PKG_VERSION");
    HeaderValue::try_from(format!("299 logpond-{version} \"lost for good: {text}\"")).ok()
}

/// The bytes of a body, as they are when decompressed.
fn bounded(bytes: &[u8]) -> Result<Vec<u8>, ApiError> {
    if bytes.len() > BODY_BYTES_MAX {
        let message = format!("the body is longer than {} MiB", BODY_BYTES_MAX >> 20);
        return Err(ApiError::new(Kind::BodyTooLarge, message));
    }
    Ok(bytes.to_vec())
}

fn write(answer: Answer, out: &mut Output) -> io::Result<()> {
    let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
    let written = match answer.content {
        // As bytes, in chunks, so that the text of a large answer is not there twice.
        Content::Json(json) => {
            return serde_json::to_writer(&mut ChunkWriter(out), &json).map_err(io::Error::from);
        }
        Content::Text(text) => out.append(|chunk| chunk.extend_from_slice(text.as_bytes())),
    };
    written.map_err(gone)
}

/// Writes bytes into the chunks of an answer.
struct ChunkWriter<'o>(&'o mut Output);

impl io::Write for ChunkWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.append(|chunk| chunk.extend_from_slice(bytes));
        written.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn ask(app: &App, question: Question, call: &Call, out: &mut Output) -> Result<Answer, ApiError> {
    match question {
        Question::Search => {
            call.params.only(&request::PARAMETERS)?;
            let mut body = request::read_body(&call.body)?;
            request::take_parameters(&call.params, &mut body)?;
            let options = AnswerOptions::read(&call.params)?;
            let request = SearchRequest::read(&body, call.index(), options, call.now)?;
            let found = search::run(app, &request, out)?;
            Ok(found.into())
        }
        Question::MultiSearch => multi::answer(app, call, out),
        Question::Count => count::answer(app, call, out),
        Question::Mapping => fields::mapping(app, call, out),
        Question::FieldCapabilities => fields::capabilities(app, call, out),
        Question::CatIndices => listing::cat_indices(app, call, out),
        Question::ResolveIndex => listing::resolve_index(app, call, out),
        Question::Scroll => pages::scroll(app, call, out),
        Question::PointInTime => pages::point_in_time(call),
        Question::Document => get::document(app, call, out),
        Question::Source => get::source(app, call, out),
        Question::Documents => get::documents(app, call, out),
        Question::Index => fields::index(app, call, out),
        Question::CatCount => count::cat_count(app, call, out),
        Question::Stats => listing::stats(app, call, out),
        Question::Validate => validate::answer(call),
    }
}

#[cfg(test)]
mod tests;

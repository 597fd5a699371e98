//! The interface of Grafana's JSON data sources, as SimpleJson (1.4) and simPod's JSON (0.6) ask it:
//! below `/grafana/json`, and at the root.
//!
//! Invariants:
//! - Every target that is not hidden is answered, in the order of the question.
//! - What a data source sends beside what is known is passed over; what is known and wrong is an error.
//! - Errors are `{"error":{"code","message"}}`, which these data sources show.

mod annotations;
mod asked;
mod escapes;
mod lookup;
mod metric_payload_options;
mod metrics;
mod query;
mod search;
mod tag_keys;
mod tag_values;
mod target;
mod variable;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response, StatusCode};
use serde_json::Value;

use super::App;
use super::body::{self, Body};
use super::coding::{AnswerEncoder, Coding, gone};
use super::error::ApiError;
use super::header_text::{self, WARNING_HEADER};
use super::inflow::Inflow;
use asked::QueryRequest;
use logpond_engine::query::Output;
use logpond_host::clock;
use lookup::Warned;

/// The longest question: dashboards send all their variables with each.
const BODY_BYTES_MAX: usize = 1 << 20;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    Health,
    Search,
    Metrics,
    PayloadOptions,
    Query,
    Variable,
    Annotations,
    TagKeys,
    TagValues,
}

/// What is answered.
enum Answer {
    /// A small value, and what it lacks.
    Value(Warned<Value>),
    /// What targets have found.
    Results(Vec<query::TargetResult>),
}

/// Answers a question.
pub(super) async fn answer(
    app: &Arc<App>,
    question: Question,
    request: Request<Inflow>,
) -> Result<Response<Body>, ApiError> {
    if question == Question::Health {
        let text = "text/plain; charset=utf-8";
        return Ok(Body::whole(StatusCode::OK, text, "ok\n"));
    }
    let coding = Coding::of(request.headers());
    let body = body::receive(request.into_body(), BODY_BYTES_MAX, &app.bodies).await?;
    let app_there = app.clone();
    // Its header is made on this thread, after the answer was gathered on another.
    let warning: Arc<Mutex<Option<HeaderValue>>> = Arc::default();
    let warning_there = warning.clone();
    let work = move |out: &mut Output| {
        let request = QueryRequest::read(&body.bytes, clock::now())?;
        drop(body);
        let started = Instant::now();
        let answer = ask(&app_there, question, &request, out);
        let metrics = &app_there.metrics;
        metrics.query_ns.observe_duration(started.elapsed());
        if let Ok(Answer::Value((_, warnings))) = &answer {
            let mut warning = warning_there.lock().unwrap_or_else(PoisonError::into_inner);
            *warning = header_text::warning(warnings);
        }
        answer
    };
    let send = move |answer, out: &mut Output| coding.send(out, |to| write(&answer, to));
    let mut response = app.threads.gathered(work, send).await?;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    let warning = warning
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    if let Some(warning) = warning {
        response.headers_mut().insert(WARNING_HEADER, warning);
    }
    coding.dress(&mut response);
    Ok(response)
}

fn ask(
    app: &App,
    question: Question,
    request: &QueryRequest,
    out: &mut Output,
) -> Result<Answer, ApiError> {
    Ok(Answer::Value(match question {
        Question::Query => return query::answer(app, request, out).map(Answer::Results),
        Question::Health => (Value::Null, Vec::new()),
        Question::Search => search::answer(app, request, out)?,
        Question::Metrics => (metrics::answer(app), Vec::new()),
        Question::PayloadOptions => metric_payload_options::answer(app, request, out)?,
        Question::Variable => variable::answer(app, request, out)?,
        Question::Annotations => annotations::answer(app, request, out)?,
        Question::TagKeys => tag_keys::answer(app, request, out)?,
        Question::TagValues => tag_values::answer(app, request, out)?,
    }))
}

fn write(answer: &Answer, out: &mut AnswerEncoder<'_>) -> io::Result<()> {
    let written = match answer {
        // As bytes: while names were looked up, lines went elsewhere.
        Answer::Value((value, _)) => out.append(|chunk| {
            chunk.extend_from_slice(value.to_string().as_bytes());
            chunk.push(b'\n');
        }),
        Answer::Results(results) => query::write(results, out),
    };
    written.map_err(gone)
}

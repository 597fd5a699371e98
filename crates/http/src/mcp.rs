//! `POST /mcp`: tools for assistants, by the streamable HTTP of the Model Context Protocol.
//!
//! Invariants: a tool asks what the role `read` may ask, through the routes of this API and within their bounds; a
//! token that is revoked ends the calls that it let in.

use std::pin::Pin;
use std::sync::Arc;

use hyper::body::Body as _;
use hyper::header::CONTENT_TYPE;
use hyper::{Request, Response};
use logpond_client::ClientError;
use logpond_listen::tokens::Admission;
use logpond_mcp::{ANSWER_BYTES_MAX, Asking, Question, RawAnswer, Refusal, Server};

use super::body::{self, Body};
use super::error::ApiError;
use super::inflow::Inflow;
use super::params::Params;
use super::{App, authorization, router};

/// The longest refusal that is read.
const REFUSAL_BYTES_MAX: usize = 64 << 10;

/// Answers one request of an assistant.
pub(super) async fn answer(
    app: &Arc<App>,
    request: Request<Inflow>,
) -> Result<Response<Body>, ApiError> {
    Params::of(request.uri())?.only(&[])?;
    let (parts, body) = request.into_parts();
    let received = body::receive(body, logpond_mcp::REQUEST_BYTES_MAX, &app.bodies).await?;
    let request = Request::from_parts(parts, received.into_bytes());
    let server = LocalServer {
        app: Arc::clone(app),
        admission: authorization::admission(),
    };
    let (parts, bytes) = logpond_mcp::answer(request, Arc::new(server), &app.calls)
        .await
        .into_parts();
    let mut response = Body::whole(parts.status, "text/plain; charset=utf-8", bytes);
    if let Some(content_type) = parts.headers.get(CONTENT_TYPE) {
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, content_type.clone());
    }
    Ok(response)
}

/// This server, asked within its process.
struct LocalServer {
    app: Arc<App>,
    /// The token by which the assistant was let in.
    admission: Option<Admission>,
}

impl Server for LocalServer {
    fn ask(&self, question: Question) -> Asking {
        let app = Arc::clone(&self.app);
        let asking = async move {
            let answered = router::ask(app, question.path, &question.parameters).await;
            match answered {
                Ok(response) => read(response).await,
                Err(error) => read(error.into_response()).await,
            }
        };
        Box::pin(authorization::admitted(self.admission.clone(), asking))
    }
}

async fn read(response: Response<Body>) -> Result<RawAnswer, Refusal> {
    let status = response.status();
    let mut body = response.into_body();
    let bytes_max = if status.is_success() {
        ANSWER_BYTES_MAX
    } else {
        REFUSAL_BYTES_MAX
    };
    let mut answer = RawAnswer::default();
    loop {
        let frame = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        let data = match frame {
            None => break,
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            Some(Err(_)) => {
                answer.is_cut = true;
                break;
            }
        };
        let room = bytes_max - answer.bytes.len();
        answer.bytes.extend(data.iter().take(room));
        if data.len() > room {
            answer.is_cut = true;
            break;
        }
    }
    if status.is_success() {
        return Ok(answer);
    }
    match ClientError::refused(status.as_u16(), &answer.bytes) {
        ClientError::Refused {
            code,
            message,
            hint,
            ..
        } => Err(Refusal {
            code,
            message: hint.map_or(message.clone(), |hint| format!("{message}; {hint}")),
        }),
        error => Err(Refusal {
            code: "no_answer".to_owned(),
            message: error.to_string(),
        }),
    }
}

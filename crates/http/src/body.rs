//! Bodies of answers, and the bounded reading of bodies of requests.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use hyper::body::{Body as _, Bytes, Frame, SizeHint};
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};
use logpond_record::cast;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::bodies::{BODY_IDLE_MAX, Bodies};
use super::coding::Coded;
use super::error::{ApiError, Kind};
use super::inflow::Inflow;
use super::{authorization, trails};
use logpond_engine::audit::Trail;
use logpond_engine::query::Chunks;

/// The longest body of a push, as it is sent. Within the memory for all bodies, so that one of
/// this size can be received at all.
pub(super) const RECEIVED_BYTES_MAX: usize = 32 << 20;

/// Room reserved for a body before its length is known to be true.
const CAPACITY_BYTES_MAX: usize = 1 << 20;

/// The body of an answer.
pub enum Body {
    /// All of it; `None` once it is taken.
    Whole(Option<Bytes>),
    /// Chunks as they come, until the sender is gone.
    Rows(Chunks, BrokenEnd),
    /// The same, compressed.
    Coded(Box<Coded>),
    /// Any of these, whose bytes are noted.
    Noted(Box<Body>, Arc<Trail>),
}

/// An answer whose status and bytes are noted.
pub(super) fn noted(response: Response<Body>, trail: Arc<Trail>) -> Response<Body> {
    trail.answered(response.status().as_u16());
    response.map(|body| Body::Noted(Box::new(body), trail))
}

/// The end of an answer whose sender is gone: it may break off there.
#[derive(Debug)]
pub struct BrokenEnd {
    is_broken: Arc<AtomicBool>,
    /// The rows before the end were on their way to the client: a connection that breaks throws the rest away.
    has_paused: bool,
}

impl BrokenEnd {
    /// The end of an answer: `None` if it is whole.
    fn poll_end(
        &mut self,
        is_given_up: bool,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        if !is_given_up && !self.is_broken.load(Ordering::Acquire) {
            return Poll::Ready(None);
        }
        if !std::mem::replace(&mut self.has_paused, true) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.is_broken.store(false, Ordering::Release);
        Poll::Ready(Some(Err(BrokenOff)))
    }
}

/// An answer ends before it is whole, in a form that has no other way to say so.
#[derive(Debug)]
pub struct BrokenOff;

impl std::fmt::Display for BrokenOff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the answer is not complete")
    }
}

impl std::error::Error for BrokenOff {}

impl Body {
    /// An answer of one piece.
    pub fn whole(
        status: StatusCode,
        content_type: &'static str,
        bytes: impl Into<Bytes>,
    ) -> Response<Body> {
        Body::respond(status, content_type, Body::Whole(Some(bytes.into())))
    }

    /// An answer of one JSON value.
    pub(crate) fn json(status: StatusCode, value: &serde_json::Value) -> Response<Body> {
        Body::whole(status, "application/json", format!("{value}\n"))
    }

    /// A stream of JSON lines.
    pub(crate) fn rows(chunks: Chunks, is_broken: Arc<AtomicBool>) -> Response<Body> {
        let broken = BrokenEnd {
            is_broken,
            has_paused: false,
        };
        let body = Body::Rows(chunks, broken);
        Body::respond(StatusCode::OK, "application/x-ndjson", body)
    }

    fn respond(status: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
        let mut response = Response::new(body);
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        let nosniff = HeaderValue::from_static("nosniff");
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
        let no_store = HeaderValue::from_static("no-store");
        headers.insert(header::CACHE_CONTROL, no_store);
        response
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match self.get_mut() {
            Body::Whole(bytes) => Poll::Ready(bytes.take().map(|b| Ok(Frame::data(b)))),
            Body::Rows(chunks, broken) => match std::task::ready!(chunks.poll_recv(context)) {
                Some(chunk) => Poll::Ready(Some(Ok(Frame::data(chunk)))),
                None => broken.poll_end(chunks.is_broken_off(), context),
            },
            Body::Coded(coded) => coded.poll_chunk(context),
            Body::Noted(inner, trail) => {
                let frame = std::task::ready!(Pin::new(&mut **inner).poll_frame(context));
                if let Some(Ok(frame)) = &frame {
                    trail.sent(frame.data_ref().map_or(0, Bytes::len));
                }
                Poll::Ready(frame)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Whole(bytes) => bytes.is_none(),
            Body::Noted(inner, _) => inner.is_end_stream(),
            Body::Rows(..) | Body::Coded(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64))
            }
            Body::Noted(inner, _) => inner.size_hint(),
            Body::Rows(..) | Body::Coded(_) => SizeHint::default(),
        }
    }
}

/// The body of a request, with its share of the memory for bodies.
pub struct RequestBody {
    pub(super) bytes: Vec<u8>,
    /// Held while `bytes` is.
    _room: Option<OwnedSemaphorePermit>,
}

impl RequestBody {
    /// The bytes; from here on the taker bounds their memory.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Passes a body on as it comes, as fast as it is taken; ends early if nobody takes it or it makes
/// no progress.
pub async fn pass_on(mut body: Inflow, to: mpsc::Sender<Bytes>) {
    while let Ok(Some(chunk)) = next_chunk(&mut body).await {
        if to.send(chunk).await.is_err() {
            return;
        }
    }
}

/// Reads a body of at most `bytes_max`, and no more than there is memory for all bodies.
pub async fn receive(
    mut body: Inflow,
    bytes_max: usize,
    bodies: &Bodies,
) -> Result<RequestBody, ApiError> {
    let pool_bytes = bodies.bytes_max();
    let too_large = || {
        let message = if bytes_max > pool_bytes {
            format!(
                "the body is longer than {pool_bytes} bytes, which is all that --memory leaves for bodies; send \
                 smaller batches"
            )
        } else {
            format!("the body is longer than {bytes_max} bytes; send smaller batches")
        };
        ApiError::new(Kind::BodyTooLarge, message)
    };
    let bytes_most = bytes_max.min(pool_bytes);
    let announced = body.size_hint().exact();
    if announced.is_some_and(|bytes| bytes > bytes_most as u64) {
        return Err(too_large());
    }
    let capacity = announced.map_or(0, |bytes| cast::to_usize(bytes).min(CAPACITY_BYTES_MAX));
    let mut bytes = Vec::with_capacity(capacity);
    let mut receiving = bodies.begin();
    let mut refused = std::pin::pin!(authorization::refused());
    loop {
        let chunk = tokio::select! {
            biased;
            refusal = refused.as_mut() => return Err(refusal),
            chunk = receiving.next(&mut body) => chunk?,
        };
        let Some(chunk) = chunk else { break };
        if bytes.len() + chunk.len() > bytes_most {
            return Err(too_large());
        }
        receiving.hold(bytes.len() + chunk.len()).await?;
        bytes.extend_from_slice(&chunk);
    }
    trails::note_body(&bytes);
    Ok(RequestBody {
        bytes,
        _room: receiving.into_room(),
    })
}

async fn next_chunk(body: &mut Inflow) -> Result<Option<Bytes>, ApiError> {
    let chunk = tokio::time::timeout(BODY_IDLE_MAX, next_chunk_ever(body));
    chunk.await.unwrap_or_else(|_| {
        let seconds = BODY_IDLE_MAX.as_secs();
        let message = format!("nothing of the body came for {seconds} s");
        Err(ApiError::new(Kind::BodyTooSlow, message))
    })
}

/// The next chunk of a body, however late it comes; `None` at its end.
pub(super) async fn next_chunk_ever(body: &mut Inflow) -> Result<Option<Bytes>, ApiError> {
    std::future::poll_fn(|context| poll_chunk(body, context)).await
}

/// The same, but only what is there already.
pub(super) async fn chunk_at_hand(body: &mut Inflow) -> Option<Result<Option<Bytes>, ApiError>> {
    let look = |context: &mut Context<'_>| match poll_chunk(body, context) {
        Poll::Ready(chunk) => Poll::Ready(Some(chunk)),
        Poll::Pending => Poll::Ready(None),
    };
    std::future::poll_fn(look).await
}

fn poll_chunk(
    body: &mut Inflow,
    context: &mut Context<'_>,
) -> Poll<Result<Option<Bytes>, ApiError>> {
    loop {
        let polled = Pin::new(&mut *body).poll_frame(context);
        match std::task::ready!(polled) {
            None => return Poll::Ready(Ok(None)),
            Some(Err(e)) => {
                let error = ApiError::bad_request(format!("the body broke off: {e}"));
                return Poll::Ready(Err(error));
            }
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Poll::Ready(Ok(Some(data)));
                }
            }
        }
    }
}

//! OTLP over gRPC: `LogsService/Export` over HTTP/2, on a listener of its own.
//!
//! gRPC is little beside HTTP/2: a message is a body with five bytes before it, and what became of it
//! stands in trailers. Source: "gRPC over HTTP2" (PROTOCOL-HTTP2), and the OTLP specification 1.x for
//! what exporters do with a status.
//!
//! Invariants: `OK` says that everything is durable but the records that are counted as rejected, which
//! are never sent again; what may pass is `UNAVAILABLE` or `RESOURCE_EXHAUSTED` with the time after which
//! to try again, because exporters drop everything else; other services are `UNIMPLEMENTED`.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use hyper::body::{Bytes, Frame};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use logpond_protocol::intake::body::Encoding;
use logpond_protocol::intake::push::otlp;
use logpond_record::{Labels, cast};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::body::{self, RECEIVED_BYTES_MAX};
use super::error::{ApiError, Kind};
use super::inflow::Inflow;
use super::origin::Target;
use super::{App, authorization, http2, intake, once};
use logpond_host::telemetry::Intake;
use logpond_listen::net;
use logpond_listen::net::tls::{self, Acceptor};
use logpond_listen::tokens::Role;

/// What is served.
const EXPORT: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

/// Bytes before a message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

/// Seconds after which to try again, where nothing else is known.
const RETRY_AFTER_S: u32 = 1;

/// Codes of gRPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    InvalidArgument = 3,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    Unimplemented = 12,
    Unavailable = 14,
    Unauthenticated = 16,
}

/// The error of a call.
#[derive(Debug)]
struct CallError {
    code: Code,
    message: String,
    /// Seconds after which the same call may pass.
    retry_after_s: Option<u32>,
}

impl CallError {
    fn new(code: Code, message: impl Into<String>) -> CallError {
        CallError {
            code,
            message: message.into(),
            retry_after_s: None,
        }
    }

    fn headers(&self) -> HeaderMap {
        let code = self.code as u8;
        let details = otlp::write_failure(code.into(), &self.message, self.retry_after_s);
        let mut headers = HeaderMap::new();
        headers.insert(STATUS, HeaderValue::from(u16::from(code)));
        let texts = [
            (MESSAGE, percent_encoded(&self.message)),
            (DETAILS, STANDARD_NO_PAD.encode(details)),
        ];
        for (name, text) in texts {
            if let Ok(value) = HeaderValue::from_str(&text) {
                headers.insert(name, value);
            }
        }
        headers
    }
}

impl From<ApiError> for CallError {
    fn from(error: ApiError) -> CallError {
        let (status, _, retry_after) = error.kind.row();
        let code = match status.as_u16() {
            401 => Code::Unauthenticated,
            403 => Code::PermissionDenied,
            413 | 429 => Code::ResourceExhausted,
            408 | 421 | 500.. => Code::Unavailable,
            _ => Code::InvalidArgument,
        };
        let may_pass = code == Code::Unavailable || error.kind == Kind::Busy;
        let message = match error.hint {
            Some(hint) if error.kind == Kind::ForeignHost => format!("{}; {hint}", error.message),
            _ => error.message,
        };
        CallError {
            code,
            message,
            retry_after_s: may_pass.then_some(retry_after.unwrap_or(RETRY_AFTER_S)),
        }
    }
}

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// What a client may compress with.
const ENCODINGS: &str = "identity,gzip,deflate,zstd";

/// An answer: a message, or none, and what became of the call.
struct Answer {
    message: Option<Bytes>,
    trailers: Option<HeaderMap>,
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let answer = self.get_mut();
        let message = answer.message.take().map(Frame::data);
        let next = message.or_else(|| answer.trailers.take().map(Frame::trailers));
        Poll::Ready(next.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.message.is_none() && self.trailers.is_none()
    }
}

/// Serves an accepted connection to its end: with `tls` after its handshake, and only if there is
/// one.
pub async fn serve_grpc(
    stream: TcpStream,
    context: net::Context,
    app: Arc<App>,
    tls: Option<Arc<Acceptor>>,
) {
    let Some(tls) = tls else {
        return serve_connection(stream, context, app).await;
    };
    let mut shutdown = context.shutdown.clone();
    let incoming = tokio::select! {
        incoming = tls.accept_http2(stream) => incoming,
        () = shutdown.stopping() => return,
    };
    // What is not encrypted is HTTP/2 that cannot be read: its client sees the end of it.
    if let Ok(tls::IncomingStream::Tls(stream)) = incoming {
        serve_connection(*stream, context, app).await;
    }
}

async fn serve_connection<I>(stream: I, context: net::Context, app: Arc<App>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| answer(app.clone(), request));
    http2::serve_connection(stream, context.shutdown, service).await;
}

async fn answer(
    app: Arc<App>,
    mut request: Request<Inflow>,
) -> Result<Response<Answer>, Infallible> {
    let is_grpc = content_type(request.headers()).starts_with(b"application/grpc");
    if *request.method() != Method::POST || !is_grpc {
        let mut response = Response::new(Answer {
            message: None,
            trailers: None,
        });
        *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        app.metrics.http_answers[3].add(1);
        return Ok(response);
    }
    app.metrics.http_answers[1].add(1);
    let end = request.body_mut().end();
    let (message, trailers, headers) = match call(&app, request).await {
        Ok(message) => {
            let mut trailers = HeaderMap::new();
            trailers.insert(STATUS, HeaderValue::from_static("0"));
            (Some(message), Some(trailers), HeaderMap::new())
        }
        // Without a message the trailers are the headers, and the end of the answer.
        Err(failed) => {
            end.wait().await;
            (None, None, failed.headers())
        }
    };
    let mut response = Response::new(Answer { message, trailers });
    *response.headers_mut() = headers;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(ENCODINGS));
    Ok(response)
}

fn content_type(headers: &HeaderMap) -> &[u8] {
    headers
        .get(CONTENT_TYPE)
        .map_or(&[], |value| value.as_bytes())
}

/// Takes the records of a call; gives the message of the answer.
async fn call(app: &Arc<App>, request: Request<Inflow>) -> Result<Bytes, CallError> {
    authorization::check_host(app, &request)?;
    authorization::check_origin(app, &request, Target::Other)?;
    let path = request.uri().path();
    if path != EXPORT {
        let message =
            format!("{path} is not served here: this server takes logs only, by {EXPORT}");
        return Err(CallError::new(Code::Unimplemented, message));
    }
    let admission = authorization::check(app, request.headers(), None, Role::Write, None)?;
    let app = &app.seen_by(admission.as_ref(), Role::Write, request.headers())?;
    let given = intake::text_of(request.headers(), ENCODING)?;
    let encoding = Encoding::from_header(given).ok_or_else(|| {
        let message = format!("compression {given} is not taken; send one of {ENCODINGS}");
        CallError::new(Code::Unimplemented, message)
    })?;
    // Before the message is sent for nothing.
    app.ingest.gate().check().map_err(ApiError::from)?;
    let mut received = body::receive(request.into_body(), RECEIVED_BYTES_MAX, &app.bodies).await?;
    let is_compressed = unframe(&mut received.bytes)?;
    let encoding = if is_compressed {
        encoding
    } else {
        Encoding::Identity
    };
    let line_bytes_max = app.line_bytes_max;
    let decode = move |body: &[u8]| {
        otlp::decode_protobuf(body, Labels::new(), line_bytes_max).map_err(super::otlp::refused)
    };
    let pushed = intake::decode_records(app, received, encoding, decode).await?;
    let metrics = app.metrics.intake(Intake::OtlpGrpc);
    metrics.rejected.add(pushed.rejected_total as u64);
    let answer = super::otlp::success_message(&pushed);
    let identity = once::identity_of(&pushed.batch);
    once::submit(app, Intake::OtlpGrpc, pushed.batch, identity).await?;
    Ok(framed(&answer))
}

/// Takes the bytes before the only message off; says whether it is compressed.
fn unframe(bytes: &mut Vec<u8>) -> Result<bool, CallError> {
    let invalid = |message: &str| Err(CallError::new(Code::InvalidArgument, message));
    let Some((prefix, message)) = bytes.split_first_chunk::<PREFIX_BYTES>() else {
        return invalid("the message is missing or cut off");
    };
    let is_compressed = match prefix[0] {
        0 => false,
        1 => true,
        _ => return invalid("the message is neither compressed nor not"),
    };
    let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]);
    if message.len() != length as usize {
        return invalid("the message is cut off, or there is more than one");
    }
    bytes.drain(..PREFIX_BYTES);
    Ok(is_compressed)
}

fn framed(message: &[u8]) -> Bytes {
    // Answers are short.
    let length = cast::low_u32(message.len()).to_be_bytes();
    [&[0], &length[..], message].concat().into()
}

/// Text as `grpc-message` has it.
fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_one_whole_message() {
        type Row<'a> = (&'a [u8], Option<(bool, &'a [u8])>);
        let table: [Row<'_>; 8] = [
            (b"\0\0\0\0\x02ab", Some((false, b"ab"))),
            (b"\x01\0\0\0\x02ab", Some((true, b"ab"))),
            (b"\0\0\0\0\0", Some((false, b""))),
            (b"", None),
            (b"\0\0\0\0", None),
            (b"\x02\0\0\0\0", None),
            (b"\0\0\0\0\x03ab", None),
            (b"\0\0\0\0\x01ab", None),
        ];
        for (bytes, expected) in table {
            let mut bytes = bytes.to_vec();
            let found = unframe(&mut bytes).ok();
            assert_eq!(
                found.map(|is_compressed| (is_compressed, &bytes[..])),
                expected
            );
        }
        assert_eq!(&framed(b"ab")[..], b"\0\0\0\0\x02ab");
    }

    #[test]
    fn exporters_try_again_what_may_pass_and_nothing_else() {
        let table = [
            (Kind::BadRequest, Code::InvalidArgument, None),
            (Kind::BodyTooLarge, Code::ResourceExhausted, None),
            (Kind::TokenMissing, Code::Unauthenticated, None),
            (Kind::RoleMissing, Code::PermissionDenied, None),
            (Kind::Busy, Code::ResourceExhausted, Some(1)),
            (Kind::DiskFull, Code::Unavailable, Some(5)),
            (Kind::Stopping, Code::Unavailable, Some(5)),
            (Kind::WrongRole, Code::Unavailable, Some(1)),
            (Kind::Internal, Code::Unavailable, Some(1)),
        ];
        for (kind, code, retry_after_s) in table {
            let failed = CallError::from(ApiError::new(kind, "100 % ä"));
            assert_eq!(
                (failed.code, failed.retry_after_s),
                (code, retry_after_s),
                "{kind:?}"
            );
            let headers = failed.headers();
            assert_eq!(headers[STATUS], (code as u8).to_string());
            assert_eq!(headers[MESSAGE], "100 %25 %C3%A4");
            assert!(headers.contains_key(DETAILS));
        }
    }
}

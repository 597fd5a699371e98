//! Errors of the HTTP face, and the one table of their statuses.

use hyper::{Response, StatusCode, header};
use serde_json::json;

use super::body::Body;
use logpond_engine::ingest::IngestError;
use logpond_host::memory::Charge;

/// What went wrong, by culprit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A parameter, a header or the body is malformed.
    BadRequest,
    /// A query in any of the languages is malformed.
    BadQuery,
    /// The listener speaks TLS only.
    TlsRequired,
    /// The path needs a token, and the request has none.
    TokenMissing,
    /// The token is unknown, expired or revoked.
    TokenRefused,
    /// The token has another role.
    RoleMissing,
    /// A page of another site sent the request.
    ForeignOrigin,
    /// The request names a host that is not this server.
    ForeignHost,
    /// The path, or what it names, does not exist.
    NotFound,
    /// The state of what is to be changed forbids it.
    Conflict,
    /// The path has other methods.
    MethodNotAllowed,
    /// The body took too long.
    BodyTooSlow,
    /// The body has more bytes than its bound.
    BodyTooLarge,
    /// No record of a push was accepted.
    NothingPushed,
    /// The content type is not one of the path.
    UnsupportedMediaType,
    /// The content encoding is unknown.
    UnsupportedEncoding,
    /// The journal or the memory of pushes is full for now.
    Busy,
    /// All query threads are taken, and the queue is full.
    TooManyQueries,
    /// The memory budget has no room for the query.
    MemoryFull,
    /// A defect of this program.
    Internal,
    /// The journal cannot be written.
    JournalFailed,
    /// Too few other nodes know of this one.
    NotJoined,
    /// The server stops.
    Stopping,
    /// The answer lacks records that exist.
    Incomplete,
    /// This build lacks the feature.
    NotBuilt,
    /// The node leaves its cluster.
    Leaving,
    /// The clock is behind what is stored.
    ClockBehind,
    /// The role of this node does not answer this.
    WrongRole,
    /// Another node does not answer.
    NodeSilent,
    /// The disk is full.
    DiskFull,
}

impl Kind {
    /// The status, the code that programs compare, and the seconds after which to try again.
    pub(super) fn row(self) -> (StatusCode, &'static str, Option<u32>) {
        match self {
            Kind::BadRequest => (StatusCode::BAD_REQUEST, "bad_request", None),
            Kind::BadQuery => (StatusCode::BAD_REQUEST, "bad_query", None),
            Kind::TlsRequired => (StatusCode::BAD_REQUEST, "tls_required", None),
            Kind::TokenMissing => (StatusCode::UNAUTHORIZED, "token_missing", None),
            Kind::TokenRefused => (StatusCode::UNAUTHORIZED, "token_refused", None),
            Kind::RoleMissing => (StatusCode::FORBIDDEN, "role_missing", None),
            Kind::ForeignOrigin => (StatusCode::FORBIDDEN, "foreign_origin", None),
            Kind::ForeignHost => (StatusCode::MISDIRECTED_REQUEST, "foreign_host", None),
            Kind::NotFound => (StatusCode::NOT_FOUND, "not_found", None),
            Kind::Conflict => (StatusCode::CONFLICT, "conflict", None),
            Kind::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", None),
            Kind::BodyTooSlow => (StatusCode::REQUEST_TIMEOUT, "body_too_slow", None),
            Kind::BodyTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", None),
            Kind::NothingPushed => (StatusCode::UNPROCESSABLE_ENTITY, "nothing_pushed", None),
            Kind::UnsupportedMediaType => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_media_type",
                None,
            ),
            Kind::UnsupportedEncoding => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_encoding",
                None,
            ),
            Kind::Busy => (StatusCode::TOO_MANY_REQUESTS, "busy", Some(1)),
            Kind::TooManyQueries => (StatusCode::TOO_MANY_REQUESTS, "too_many_queries", Some(1)),
            Kind::MemoryFull => (StatusCode::TOO_MANY_REQUESTS, "memory_full", Some(5)),
            Kind::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal", None),
            Kind::JournalFailed => (StatusCode::SERVICE_UNAVAILABLE, "journal_failed", Some(1)),
            Kind::NotJoined => (StatusCode::SERVICE_UNAVAILABLE, "not_joined", Some(1)),
            Kind::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "stopping", Some(5)),
            Kind::Incomplete => (StatusCode::SERVICE_UNAVAILABLE, "incomplete", None),
            Kind::NotBuilt => (StatusCode::NOT_IMPLEMENTED, "not_built", None),
            Kind::Leaving => (StatusCode::SERVICE_UNAVAILABLE, "leaving", Some(5)),
            Kind::ClockBehind => (StatusCode::SERVICE_UNAVAILABLE, "clock_behind", Some(5)),
            Kind::WrongRole => (StatusCode::MISDIRECTED_REQUEST, "wrong_role", None),
            Kind::NodeSilent => (StatusCode::BAD_GATEWAY, "node_silent", None),
            Kind::DiskFull => (StatusCode::INSUFFICIENT_STORAGE, "disk_full", Some(5)),
        }
    }

    /// How to authenticate, where that is what is missing (RFC 6750, section 3).
    fn challenge(self) -> Option<&'static str> {
        match self {
            Kind::TokenMissing => Some("Bearer realm=\"logpond\""),
            Kind::TokenRefused => Some("Bearer realm=\"logpond\", error=\"invalid_token\""),
            _ => None,
        }
    }
}

impl Kind {
    /// Adds the headers that say what to do about it, in whatever form the answer is.
    pub(super) fn dress(self, mut response: Response<Body>) -> Response<Body> {
        let (_, _, retry_after) = self.row();
        let headers = response.headers_mut();
        if let Some(challenge) = self.challenge() {
            let challenge = header::HeaderValue::from_static(challenge);
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// An answer that is an error.
#[derive(Clone, Debug)]
pub struct ApiError {
    pub(super) kind: Kind,
    pub(super) message: String,
    /// Characters of the query that are wrong.
    pub(super) span: Option<(usize, usize)>,
    pub(super) hint: Option<String>,
}

impl ApiError {
    /// The fault, in words.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// An error of this kind, without a span and a hint.
    pub fn new(kind: Kind, message: impl Into<String>) -> ApiError {
        ApiError {
            kind,
            message: message.into(),
            span: None,
            hint: None,
        }
    }

    /// A query that has to end for want of memory, with the numbers.
    pub(super) fn no_memory(charge: &Charge) -> ApiError {
        let refusal = charge.refusal().map(|refusal| refusal.to_string());
        let message = refusal.unwrap_or_else(|| "there is no memory for the query".to_owned());
        ApiError::new(Kind::MemoryFull, message)
    }

    /// A parameter or header that cannot be read.
    pub fn bad_request(message: impl Into<String>) -> ApiError {
        ApiError::new(Kind::BadRequest, message)
    }

    /// The answer to send.
    pub fn into_response(self) -> Response<Body> {
        let (status, code, _) = self.kind.row();
        let mut error = json!({ "code": code, "message": self.message });
        if let Some((start, end)) = self.span {
            error["start"] = start.into();
            error["end"] = end.into();
        }
        if let Some(hint) = self.hint {
            error["hint"] = hint.into();
        }
        self.kind
            .dress(Body::json(status, &json!({ "error": error })))
    }
}

impl From<IngestError> for ApiError {
    fn from(refused: IngestError) -> ApiError {
        let kind = match &refused {
            IngestError::Busy => Kind::Busy,
            IngestError::Full(_) => Kind::DiskFull,
            IngestError::Failed(_) => Kind::JournalFailed,
            IngestError::NotJoined(_) => Kind::NotJoined,
            IngestError::Invalid(_) => Kind::BadRequest,
            IngestError::Stopping => Kind::Stopping,
            IngestError::Leaving => Kind::Leaving,
            IngestError::ClockBehind => Kind::ClockBehind,
            IngestError::NoIngester => Kind::WrongRole,
        };
        ApiError::new(kind, refused.to_string())
    }
}

//! Answers of stores that say what is wrong with settings or credentials.

use std::error::Error;
use std::fmt;

use hyper::StatusCode;
use hyper::http::response::Parts;

use crate::objects::FailureKind;

/// So much of an answer's text is kept.
const REASON_BYTES_MAX: usize = 500;

/// S3 names the region of a bucket so.
const REGION_HEADER: &str = "x-amz-bucket-region";

/// Azure names what is wrong so, and S3 and Google in the element `Code` of the body.
const CODE_HEADER: &str = "x-ms-error-code";

/// The store has understood and says no; asking again does not help.
#[derive(Debug)]
pub(crate) struct RejectedRequest {
    /// What kind of failure it is.
    pub(crate) kind: FailureKind,
    status: StatusCode,
    /// Where the bucket is, if that is the reason.
    region: Option<String>,
    /// What the store says beside that, in one line, cut to [`REASON_BYTES_MAX`].
    reason: String,
}

impl RejectedRequest {
    /// What an answer says of settings or credentials; `None` if it is about something else.
    pub(crate) fn of(head: &Parts, body: &[u8]) -> Option<RejectedRequest> {
        let body = String::from_utf8_lossy(&body[..body.len().min(REASON_BYTES_MAX)]);
        let code = header(head, CODE_HEADER).or_else(|| element(&body, "Code"));
        let kind = match (head.status, code.unwrap_or_default()) {
            (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) => FailureKind::Refused,
            (StatusCode::NOT_FOUND, "NoSuchBucket" | "ContainerNotFound") => FailureKind::NoBucket,
            (StatusCode::BAD_REQUEST, "ExpiredToken" | "InvalidToken") => FailureKind::Refused,
            // Both are what S3 says of a bucket that is in another region.
            (StatusCode::MOVED_PERMANENTLY, "PermanentRedirect")
            | (StatusCode::BAD_REQUEST, "AuthorizationHeaderMalformed") => FailureKind::Refused,
            _ => return None,
        };
        let is_elsewhere = matches!(
            head.status,
            StatusCode::MOVED_PERMANENTLY | StatusCode::BAD_REQUEST
        );
        let region = header(head, REGION_HEADER).or_else(|| element(&body, "Region"));
        Some(RejectedRequest {
            kind,
            status: head.status,
            region: region.filter(|_| is_elsewhere).map(str::to_owned),
            reason: body.split_whitespace().collect::<Vec<_>>().join(" "),
        })
    }
}

impl fmt::Display for RejectedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(region) = &self.region {
            write!(f, "the bucket is in the region {region}, set AWS_REGION; ")?;
        }
        write!(f, "the store answers {} {}", self.status, self.reason)
    }
}

impl Error for RejectedRequest {}

fn header<'a>(head: &'a Parts, name: &str) -> Option<&'a str> {
    head.headers.get(name)?.to_str().ok()
}

/// The text of the first element of this name, which has no elements in it.
fn element<'a>(body: &'a str, name: &str) -> Option<&'a str> {
    let (_, behind) = body.split_once(&format!("<{name}>"))?;
    behind.split_once('<').map(|(text, _)| text)
}

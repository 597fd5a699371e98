//! Keeps pages of other sites from using a visitor's browser against a loopback server.

use hyper::HeaderMap;
use hyper::header::{HOST, ORIGIN};

use super::error::{ApiError, Kind};

/// Refuses what a browser sends on behalf of another site's page. Programs send no `Origin`.
pub(super) fn check(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(origin) = headers.get(ORIGIN) else {
        return Ok(());
    };
    let origin = origin.as_bytes();
    let host = headers.get(HOST).map_or(&b""[..], |h| h.as_bytes());
    let authority = origin
        .strip_prefix(b"http://")
        .or(origin.strip_prefix(b"https://"));
    if authority.is_some_and(|a| a.eq_ignore_ascii_case(host)) {
        return Ok(());
    }
    Err(ApiError::new(
        Kind::ForeignOrigin,
        "a page of another site may not use this server; open the page at / instead",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_page_may_use_a_browser() {
        let table = [
            (None, true),
            (Some("http://127.0.0.1:7650"), true),
            (Some("https://127.0.0.1:7650"), true),
            (Some("http://evil.example"), false),
            (Some("null"), false),
        ];
        for (origin, allowed) in table {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, "127.0.0.1:7650".parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(ORIGIN, origin.parse().unwrap());
            }
            assert_eq!(check(&headers).is_ok(), allowed, "{origin:?}");
        }
    }
}

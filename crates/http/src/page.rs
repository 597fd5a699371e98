//! `GET /`: the page for people, a greeting for programs; and the files of the page.

use hyper::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, HeaderMap, HeaderValue,
    REFERRER_POLICY, VARY,
};
use hyper::{Response, StatusCode};
use serde_json::json;

use super::body::Body;
use super::coding::takes;
use super::elastic;
use super::error::{ApiError, Kind};

use embedded::{FILES, IS_BUILT};

/// The names of hashed files never change their content.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// Others are asked for again each time.
const AGAIN: &str = "no-cache";

/// A file of the page.
pub(super) struct File {
    path: &'static str,
    content_type: &'static str,
    plain: &'static [u8],
    gzip: Option<&'static [u8]>,
    brotli: Option<&'static [u8]>,
}

mod embedded {
    //! The files that the build found.
    use super::File;
    include!(concat!(env!("OUT_DIR"), "/page.rs"));
}

/// The page if HTML is asked for, else who this is.
pub(super) fn greeting(headers: &HeaderMap) -> Response<Body> {
    let accept = headers
        .get(ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let page = file("/").filter(|_| accept.contains("text/html"));
    let mut response = page.map_or_else(
        || {
            let mut greeting = elastic::greeting(headers);
            greeting["logpond"] = json!({
                "version": env!("CARGO_PKG_VERSION"),
                "push": "/api/v1/push",
                "query": "/api/v1/query",
            });
            let mut response = Body::json(StatusCode::OK, &greeting);
            elastic::note_product(response.headers_mut());
            response
        },
        |page| page.answer(headers),
    );
    let headers = response.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("accept, accept-encoding"));
    secure(headers);
    response
}

/// A file of the page.
pub(super) fn asset(path: &str, headers: &HeaderMap) -> Result<Response<Body>, ApiError> {
    let Some(file) = file(path) else {
        return Err(ApiError::new(
            Kind::NotFound,
            format!("there is nothing at {path}"),
        ));
    };
    let mut response = file.answer(headers);
    secure(response.headers_mut());
    Ok(response)
}

fn file(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}

impl File {
    fn answer(&self, headers: &HeaderMap) -> Response<Body> {
        let compressed = [("br", self.brotli), ("gzip", self.gzip)];
        let smallest = compressed
            .into_iter()
            .find_map(|(coding, bytes)| Some((coding, bytes.filter(|_| takes(headers, coding))?)));
        let bytes = smallest.map_or(self.plain, |(_, bytes)| bytes);
        let mut response = Body::whole(StatusCode::OK, self.content_type, bytes);
        let headers = response.headers_mut();
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        if let Some((coding, _)) = smallest {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
        }
        let is_hashed = IS_BUILT && self.path != "/";
        let kept = if is_hashed { FOR_EVER } else { AGAIN };
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(kept));
        response
    }
}

fn secure(headers: &mut HeaderMap) {
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                  frame-ancestors 'none'; base-uri 'none'; form-action 'self'";
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_that_a_file_names_is_there() {
        let page = file("/").unwrap();
        let html = std::str::from_utf8(page.plain).unwrap();
        let named = html
            .split('"')
            .filter_map(|part| part.strip_prefix("./").or(Some(part)));
        let named: Vec<&str> = named.filter(|part| part.starts_with("web/")).collect();
        assert!(named.len() >= 3, "{html}");
        for path in named {
            assert!(file(&format!("/{path}")).is_some(), "{path}");
        }
    }

    #[test]
    fn a_coding_is_one_that_the_client_takes() {
        let page = file("/").unwrap();
        let coding = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("accept-encoding", text.parse().unwrap());
            let answer = page.answer(&headers);
            let coding = answer.headers().get(CONTENT_ENCODING);
            coding.map(|coding| coding.to_str().unwrap().to_owned())
        };
        assert_eq!(coding("identity"), None);
        assert_eq!(coding("br;q=0, zstd"), None);
        if IS_BUILT {
            assert_eq!(coding("gzip, br").as_deref(), Some("br"));
            assert_eq!(coding("gzip, br;q=0").as_deref(), Some("gzip"));
        }
    }
}

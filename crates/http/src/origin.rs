//! Keeps pages of other sites from using a visitor's browser against this server.
//!
//! Browsers say by `Sec-Fetch-Site` whose page a request comes from, which no page can forge
//! (<https://www.w3.org/TR/fetch-metadata/>). They leave it out where the server is neither encrypted
//! nor on the same machine; what may change something there, or be read, has `Origin`. Programs send
//! neither.

use hyper::header::{HOST, HeaderValue, ORIGIN};
use hyper::{HeaderMap, Method};

use super::error::{ApiError, Kind};

const SITE: &str = "sec-fetch-site";
const MODE: &str = "sec-fetch-mode";
const DESTINATION: &str = "sec-fetch-dest";

/// What another site may have a browser do with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Show it in a window of its own: people follow links.
    Page,
    /// Nothing.
    Other,
}

/// Refuses what a browser sends on behalf of another site's page, but for a link to our page.
pub(super) fn check(method: &Method, headers: &HeaderMap, target: Target) -> Result<(), ApiError> {
    // Between a browser and this server something may add headers: each has to be right.
    let sites = || headers.get_all(SITE).iter().map(HeaderValue::as_bytes);
    let is_own = if sites().any(|site| !matches!(site, b"same-origin" | b"none")) {
        target == Target::Page && is_link(method, headers)
    } else if sites().any(|site| site == b"same-origin") {
        true
    } else {
        // It was typed in, or is a bookmark.
        is_own_origin(headers)
    };
    if is_own {
        Ok(())
    } else {
        Err(ApiError::new(
            Kind::ForeignOrigin,
            "a page of another site may not use this server; open the page at / instead",
        ))
    }
}

fn is_own_origin(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).map_or(&b""[..], |h| h.as_bytes());
    let mut origins = headers.get_all(ORIGIN).iter().map(HeaderValue::as_bytes);
    origins.all(|origin| {
        let authority = origin
            .strip_prefix(b"http://")
            .or(origin.strip_prefix(b"https://"));
        authority.is_some_and(|a| a.eq_ignore_ascii_case(host))
    })
}

/// Whether a whole window goes here by a method that changes nothing; not a frame in a page.
fn is_link(method: &Method, headers: &HeaderMap) -> bool {
    let is = |name, value: &[u8]| headers.get(name).is_some_and(|v| v.as_bytes() == value);
    method.is_safe() && is(MODE, b"navigate") && is(DESTINATION, b"document")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(given: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "127.0.0.1:7650".parse().unwrap());
        for (name, value) in given {
            headers.insert(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_the_own_page_may_use_a_browser() {
        let table = [
            (None, true),
            (Some("http://127.0.0.1:7650"), true),
            (Some("https://127.0.0.1:7650"), true),
            (Some("http://evil.example"), false),
            (Some("http://127.0.0.1:3000"), false),
            (Some("null"), false),
        ];
        for (origin, allowed) in table {
            let given: Vec<_> = origin.iter().map(|origin| ("origin", *origin)).collect();
            let without = headers(&given);
            let checked = check(&Method::GET, &without, Target::Page);
            assert_eq!(checked.is_ok(), allowed, "{origin:?}");
            let typed = [&given[..], &[(SITE, "none")]].concat();
            let checked = check(&Method::GET, &headers(&typed), Target::Other);
            assert_eq!(checked.is_ok(), allowed, "typed in, {origin:?}");
        }
    }

    #[test]
    fn every_header_of_several_is_looked_at() {
        let own = "http://127.0.0.1:7650";
        let table = [
            (SITE, ["same-origin", "cross-site"], false),
            (SITE, ["cross-site", "same-origin"], false),
            (SITE, ["same-origin", "same-origin"], true),
            ("origin", [own, "http://evil.example"], false),
            ("origin", ["http://evil.example", own], false),
            ("origin", [own, own], true),
        ];
        for (name, values, allowed) in table {
            let mut given = headers(&[]);
            for value in values {
                given.append(name, value.parse().unwrap());
            }
            let checked = check(&Method::POST, &given, Target::Other);
            assert_eq!(checked.is_ok(), allowed, "{name}: {values:?}");
        }
    }

    #[test]
    fn browsers_say_whose_page_asks() {
        let link = &[(MODE, "navigate"), (DESTINATION, "document")][..];
        let frame = &[(MODE, "navigate"), (DESTINATION, "iframe")][..];
        let image = &[(MODE, "no-cors"), (DESTINATION, "image")][..];
        let (get, post) = (Method::GET, Method::POST);
        let table = [
            ("same-origin", image, &post, Target::Other, true),
            ("none", link, &get, Target::Other, true),
            ("cross-site", image, &get, Target::Other, false),
            ("cross-site", image, &get, Target::Page, false),
            ("same-site", image, &get, Target::Other, false),
            ("cross-site", &[], &get, Target::Page, false),
            ("cross-site", link, &get, Target::Page, true),
            ("same-site", link, &get, Target::Page, true),
            ("cross-site", link, &get, Target::Other, false),
            ("cross-site", link, &post, Target::Page, false),
            ("cross-site", frame, &get, Target::Page, false),
            ("something-new", image, &get, Target::Page, false),
        ];
        for (site, how, method, target, allowed) in table {
            let headers = headers(&[&[(SITE, site)], how].concat());
            let checked = check(method, &headers, target);
            assert_eq!(
                checked.is_ok(),
                allowed,
                "{site} {how:?} {method} {target:?}"
            );
        }
        // A proxy may ask under another name for its users.
        let proxied = headers(&[
            ("origin", "https://logs.example.org"),
            (SITE, "same-origin"),
        ]);
        assert!(check(&post, &proxied, Target::Other).is_ok());
    }
}

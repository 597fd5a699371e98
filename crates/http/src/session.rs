//! `/api/v1/session`: a browser signs in with a token, and out.
//!
//! Invariants: the token is in a cookie that scripts cannot read (`HttpOnly`) and that pages of other sites cannot
//! have sent (`SameSite=Strict`); the server keeps nothing of a session, so a token that is revoked or expires ends
//! all sessions with it.

use hyper::header::{COOKIE, HeaderMap, HeaderValue, SET_COOKIE};
use hyper::{Method, Response, StatusCode};

use super::App;
use super::authorization;
use super::body::Body;
use super::error::{ApiError, Kind};
use super::params::Params;

/// Parameters of `POST /api/v1/session`.
pub(super) const PARAMS: [&str; 1] = ["token"];

/// The name of the cookie.
const NAME: &str = "logpond_session";

/// The seconds for which a browser keeps it: a month. The token may end before.
const AGE_S_MAX: u32 = 30 * 86_400;

/// The header by which a proxy says how it was asked.
const SCHEME: &str = "x-forwarded-proto";

/// Puts the token into a cookie, if it is good, or removes the cookie.
pub(super) fn answer(
    app: &App,
    method: &Method,
    headers: &HeaderMap,
    params: &Params,
) -> Result<Response<Body>, ApiError> {
    let (token, age_s) = if method == Method::DELETE {
        params.only(&[])?;
        ("", 0)
    } else {
        params.only(&PARAMS)?;
        let token = params.one("token")?.map(str::trim);
        let token = token.ok_or_else(|| ApiError::bad_request("parameter 'token' is missing"))?;
        authorization::check_token(app, token)?;
        (token, AGE_S_MAX)
    };
    let is_encrypted =
        app.is_encrypted || headers.get(SCHEME).is_some_and(|scheme| scheme == "https");
    let secure = if is_encrypted { "; Secure" } else { "" };
    let cookie =
        format!("{NAME}={token}; Path=/; Max-Age={age_s}; HttpOnly; SameSite=Strict{secure}");
    let cookie = HeaderValue::from_str(&cookie)
        .map_err(|_| ApiError::new(Kind::TokenRefused, "this is no token"))?;
    let mut response = Body::whole(StatusCode::NO_CONTENT, "text/plain", "");
    response.headers_mut().insert(SET_COOKIE, cookie);
    Ok(response)
}

/// The token in the cookie of a request, if there is one.
pub(super) fn token(headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get_all(COOKIE).iter();
    let cookies = cookies.filter_map(|value| value.to_str().ok());
    cookies
        .flat_map(|value| value.split(';'))
        .find_map(|cookie| {
            let (name, value) = cookie.trim().split_once('=')?;
            (name == NAME && !value.is_empty()).then(|| value.to_owned())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_among_cookies() {
        let table = [
            ("logpond_session=lp_a_b", Some("lp_a_b")),
            ("a=b; logpond_session=lp_a_b; c=d", Some("lp_a_b")),
            ("logpond_session=", None),
            ("xlogpond_session=lp_a_b", None),
            ("a", None),
        ];
        for (text, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, text.parse().unwrap());
            assert_eq!(token(&headers).as_deref(), expected, "{text}");
        }
    }
}

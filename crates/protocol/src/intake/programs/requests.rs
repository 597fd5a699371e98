//! Lines of frameworks about requests that are no access logs of their own: a logger's head, and a text with the parts
//! of the request. The fields are made beside the message, by the names that access logs have.
//!
//! | framework | text |
//! | --- | --- |
//! | morgan of Express: `dev`, `tiny`, `short` | `GET /a 200 4.123 ms - 42`, `GET /a 200 42 - 4.123 ms` |
//! | Tornado, Jupyter | `200 GET /a (192.0.2.7) 1.23ms` |
//! | chi | `"GET http://example.org/a HTTP/1.1" from 192.0.2.7:41000 - 200 4B in 1.234ms` |
//! | Fiber | `00:51:25 \| 200 \| 1.234ms \| 192.0.2.7 \| GET \| /a \| -` |
//! | Gitea, Forgejo | `router: completed GET /a for 192.0.2.7:41000, 200 OK in 12.3ms @ …` |
//! | Phoenix | `GET /a`, `Sent 200 in 12ms` |
//! | Next.js, Koa, Hono | `GET /a 200 in 45ms`, `--> GET /a 200 5ms 12b` |
//! | PHP's own server | `192.0.2.7:41000 [200]: GET /a` |
//! | Ghost, Strapi | `"GET /a" 200 12ms` |
//! | CouchDB | `6f2c shop:5984 192.0.2.7 ann GET /a 200 ok 1` |
//! | Artifactory | `2026-11-27T00:51:25.818Z\|6f2c\|192.0.2.7\|ann\|GET\|/a\|200\|-1\|123\|12\|curl/8.5.0` |
//! | Hypercorn | `192.0.2.7:41000 - - [27/Nov/2026:00:51:25 +0000] "GET /a 1.1" 200 12 "-" "curl/8.5.0"` |
//! | uvicorn without its formatter | `192.0.2.7:41000 - "GET /a HTTP/1.1" 200` |
//! | ASP.NET Core | `Request finished HTTP/1.1 GET http://example.org/a - 200 5124 text/html 12.3ms` |
//! | Ktor, Sanic | `200 OK: GET - /a in 12ms`, `GET http://example.org/a  200 5124` |
//! | Werkzeug, Actix | `192.0.2.7 - - [27/Nov/2026 00:51:25] "GET /a HTTP/1.1" 200 -`, `192.0.2.7 "GET /a HTTP/1.1" 200 12 …` |
//!
//! Invariant: a text fits as a whole, or it is none of these.

use std::borrow::Cow;

use logpond_record::Value;
use memchr::{memchr, memchr_iter, memmem, memrchr};

use super::sentences::is_address;
use crate::intake::access::{canonical_int, seconds_with_unit};

/// Longer texts are not looked at.
const TEXT_BYTES_MAX: usize = 4 << 10;

/// How far into a line its text may begin, in bytes.
const HEAD_BYTES_MAX: usize = 256;

/// The most fields of a request.
const FIELDS_MAX: usize = 12;

/// The most blanks of a column.
const BLANKS_MAX: usize = 40;

/// Fields that are made of a request.
type Made<'a> = Vec<(Cow<'a, str>, Value<'a>)>;

/// A part of a text.
#[derive(Clone, Copy)]
enum Part {
    /// Just this.
    Text(&'static str),
    /// Capitals.
    Method,
    /// Path and query, or a whole address.
    Target,
    Protocol,
    /// Three digits.
    Status,
    /// A number, or `-`.
    Bytes,
    /// Milliseconds without their unit, or `-`.
    Milliseconds,
    /// A duration with its unit.
    Took,
    /// An address.
    Address,
    /// An address and a port.
    Peer,
    /// `ann@192.0.2.7`, `@192.0.2.7`, or an address alone.
    Account,
    /// A clock of eight bytes.
    Clock,
    /// The name of a user, or `-`.
    User,
    /// Any word.
    Word,
    /// As many blanks as there are.
    Blanks,
    /// All that is left.
    Rest,
}

use Part::{
    Account, Address, Blanks, Bytes, Clock, Method, Milliseconds, Peer, Protocol, Rest, Status,
    Target, Text, Took, User, Word,
};

const SPACE: Part = Text(" ");
const BAR: Part = Text("|");

const TINY: &[Part] = &[
    Method,
    SPACE,
    Target,
    SPACE,
    Status,
    SPACE,
    Bytes,
    Text(" - "),
    Milliseconds,
    Text(" ms"),
];
const DEV: &[Part] = &[
    Method,
    SPACE,
    Target,
    SPACE,
    Status,
    SPACE,
    Milliseconds,
    Text(" ms - "),
    Bytes,
];
const SHORT: &[Part] = &[
    Address,
    SPACE,
    Word,
    SPACE,
    Method,
    SPACE,
    Target,
    SPACE,
    Protocol,
    SPACE,
    Status,
    SPACE,
    Bytes,
    Text(" - "),
    Milliseconds,
    Text(" ms"),
];
const NEXT: &[Part] = &[
    Blanks,
    Method,
    SPACE,
    Target,
    SPACE,
    Status,
    Text(" in "),
    Took,
];
const KOA: &[Part] = &[
    Blanks,
    Text("-->"),
    SPACE,
    Method,
    SPACE,
    Target,
    SPACE,
    Status,
    SPACE,
    Took,
    Rest,
];
const FIBER: &[Part] = &[
    Clock, SPACE, BAR, SPACE, Status, SPACE, BAR, Blanks, Took, SPACE, BAR, Blanks, Address,
    Blanks, BAR, SPACE, Method, Blanks, BAR, SPACE, Target, Blanks, BAR, Rest,
];
const TORNADO: &[Part] = &[
    Status,
    SPACE,
    Method,
    SPACE,
    Target,
    Text(" ("),
    Account,
    Text(") "),
    Took,
];
const ACTIX: &[Part] = &[
    Address,
    Text(" \""),
    Method,
    SPACE,
    Target,
    SPACE,
    Protocol,
    Text("\" "),
    Status,
    SPACE,
    Bytes,
    SPACE,
    Rest,
];
const PHOENIX: &[Part] = &[Method, SPACE, Target];
const PHOENIX_SENT: &[Part] = &[Text("Sent "), Status, Text(" in "), Took];
const CHI: &[Part] = &[
    Method,
    SPACE,
    Target,
    SPACE,
    Protocol,
    Text("\" from "),
    Peer,
    Text(" - "),
    Status,
    SPACE,
    Bytes,
    Text("B in "),
    Took,
];
const GITEA: &[Part] = &[
    Method,
    SPACE,
    Target,
    Text(" for "),
    Peer,
    Text(", "),
    Status,
    SPACE,
    Rest,
];
const COMMON: &[Part] = &[
    Address,
    Text(" - "),
    User,
    Text(" ["),
    Word,
    SPACE,
    Word,
    Text("] \""),
    Method,
    SPACE,
    Target,
    SPACE,
    Protocol,
    Text("\" "),
    Status,
    SPACE,
    Bytes,
    Rest,
];
const HYPERCORN: &[Part] = &[
    Peer,
    Text(" - "),
    Word,
    Text(" ["),
    Word,
    SPACE,
    Word,
    Text("] \""),
    Method,
    SPACE,
    Target,
    SPACE,
    Word,
    Text("\" "),
    Status,
    SPACE,
    Bytes,
    Rest,
];
const PHP: &[Part] = &[
    Peer,
    Text(" ["),
    Status,
    Text("]: "),
    Method,
    SPACE,
    Target,
    Rest,
];
const GHOST: &[Part] = &[Method, SPACE, Target, Text("\" "), Status, SPACE, Took];
const COUCHDB: &[Part] = &[
    Word,
    SPACE,
    Word,
    SPACE,
    Address,
    SPACE,
    Word,
    SPACE,
    Method,
    SPACE,
    Target,
    SPACE,
    Status,
    SPACE,
    Word,
    SPACE,
    Milliseconds,
];
const ARTIFACTORY: &[Part] = &[
    Word,
    BAR,
    Word,
    BAR,
    Address,
    BAR,
    User,
    BAR,
    Method,
    BAR,
    Target,
    BAR,
    Status,
    BAR,
    Word,
    BAR,
    Bytes,
    BAR,
    Milliseconds,
    BAR,
    Rest,
];

const UVICORN: &[Part] = &[
    Peer,
    Text(" - \""),
    Method,
    SPACE,
    Target,
    SPACE,
    Protocol,
    Text("\" "),
    Status,
    Rest,
];
const ASP_NET: &[Part] = &[
    Blanks,
    Text("Request finished "),
    Protocol,
    SPACE,
    Method,
    SPACE,
    Target,
    Text(" - "),
    Status,
    SPACE,
    Bytes,
    SPACE,
    Word,
    SPACE,
    Took,
];
const KTOR: &[Part] = &[
    Status,
    SPACE,
    Word,
    Text(": "),
    Method,
    Text(" - "),
    Target,
    Text(" in "),
    Took,
];
const KTOR_SHORT: &[Part] = &[Status, SPACE, Word, Text(": "), Method, Text(" - "), Target];
const SANIC: &[Part] = &[Method, SPACE, Target, SPACE, SPACE, Status, SPACE, Bytes];

/// The texts. Each begins a line or a message, or stands behind one of the marks of a head.
const TEXTS: [&[Part]; 22] = [
    TINY,
    DEV,
    SHORT,
    NEXT,
    KOA,
    FIBER,
    TORNADO,
    ACTIX,
    PHOENIX_SENT,
    CHI,
    GITEA,
    COMMON,
    HYPERCORN,
    PHP,
    GHOST,
    COUCHDB,
    ARTIFACTORY,
    UVICORN,
    ASP_NET,
    KTOR,
    KTOR_SHORT,
    SANIC,
];

/// The ends of heads.
const MARKS: [&str; 7] = [
    "] ",
    "]: ",
    " \"",
    "router: completed ",
    "> ",
    "info] ",
    "debug] ",
];

/// The most slashes that are looked at.
const SLASHES_MAX: usize = 8;

/// True if a path or an address stands in the text's head where a request has it: behind a method, a bar or a hyphen.
fn may_be(text: &[u8]) -> bool {
    let head = &text[..text.len().min(HEAD_BYTES_MAX)];
    let mut slashes = memchr_iter(b'/', head).take(SLASHES_MAX);
    let is_target = |at: usize| {
        let ahead = &head[..at];
        let ahead = ahead.strip_suffix(b"http:").unwrap_or(ahead);
        let ahead = ahead.strip_suffix(b"https:").unwrap_or(ahead);
        match ahead {
            [.., before, b' '] => before.is_ascii_uppercase() || matches!(before, b'|' | b'-'),
            [.., b'|'] => true,
            _ => false,
        }
    };
    slashes.any(is_target) || memchr_iter(b'S', head).any(|at| head[at..].starts_with(b"Sent "))
}

/// Makes the fields of a text about a request: of a line, or of the message of one.
pub(super) fn of_text(text: &str) -> Made<'_> {
    if text.len() > TEXT_BYTES_MAX || !may_be(text.as_bytes()) {
        return Vec::new();
    }
    let head = &text.as_bytes()[..text.len().min(HEAD_BYTES_MAX)];
    let behind = |mark: &str| text.get(memmem::find(head, mark.as_bytes())? + mark.len()..);
    let fit = |text| TEXTS.iter().find_map(|parts| of_parts(parts, text));
    let found = fit(text)
        .or_else(|| fit(text.strip_prefix('"')?))
        .or_else(|| MARKS.iter().find_map(|mark| fit(behind(mark)?)))
        .or_else(|| of_parts(COMMON, common(text)?))
        // A method and a path alone are too little, but behind a level.
        .or_else(|| {
            PHOENIX_MARKS
                .iter()
                .find_map(|mark| of_parts(PHOENIX, behind(mark)?))
        });
    found.unwrap_or_default()
}

/// The text from the address of a line in common on, which a head stands before: `INFO:werkzeug:192.0.2.17 - - [`.
fn common(text: &str) -> Option<&str> {
    let head = &text.as_bytes()[..text.len().min(HEAD_BYTES_MAX)];
    let hyphen = memmem::find_iter(head, b" - ")
        .take(SLASHES_MAX)
        .find(|at| {
            let user = &head[at + 3..];
            let end = memchr(b' ', user);
            end.is_some_and(|end| user[end..].starts_with(b" ["))
        })?;
    let start = memrchr(b' ', &head[..hyphen]).map_or(0, |blank| blank + 1);
    let word = text.get(start..hyphen)?;
    if is_address(word) {
        return text.get(start..);
    }
    let colon = word.rfind(':')?;
    text.get(start + colon + 1..)
}

/// The text before the requests of Phoenix.
const PHOENIX_MARKS: [&str; 2] = ["[info] ", "[debug] "];

/// Makes the fields of a text that fits the parts.
fn of_parts<'a>(parts: &[Part], text: &'a str) -> Option<Made<'a>> {
    let mut made = Vec::with_capacity(FIELDS_MAX);
    let mut rest = behind_colours(text);
    for (at, part) in parts.iter().enumerate() {
        // Colours stand around values.
        rest = behind_colours(part.read(rest, parts.get(at + 1), &mut made)?);
    }
    rest.trim_end_matches('\r').is_empty().then_some(made)
}

/// The text behind the sequences of a terminal that it begins with.
fn behind_colours(text: &str) -> &str {
    let mut rest = text;
    while let Some(inside) = rest.strip_prefix("\x1b[") {
        let Some(end) = inside.bytes().position(|byte| byte.is_ascii_alphabetic()) else {
            break;
        };
        rest = &inside[end + 1..];
    }
    rest
}

impl Part {
    /// Reads the part that a text begins with; gives what follows it.
    fn read<'a>(self, text: &'a str, next: Option<&Part>, made: &mut Made<'a>) -> Option<&'a str> {
        match self {
            Text(literal) => return text.strip_prefix(literal),
            Rest => return Some(""),
            Blanks => {
                let after = text.trim_start_matches(' ');
                return (text.len() - after.len() <= BLANKS_MAX).then_some(after);
            }
            _ => {}
        }
        let end = match next {
            Some(Text(literal)) => text.find(literal)?,
            // Values of columns have no blank behind them where the line ends.
            _ => memchr(b' ', text.as_bytes()).unwrap_or(text.len()),
        };
        let colour = memchr(0x1b, &text.as_bytes()[..end]).unwrap_or(end);
        let (value, rest) = text.split_at(colour);
        self.make(value, made).map(|()| rest)
    }

    /// Makes the fields of a value; `None` if it is none of the part's.
    fn make<'a>(self, value: &'a str, made: &mut Made<'a>) -> Option<()> {
        let mut put = |name: &'static str, value| made.push((name.into(), value));
        let text = |text: &'a str| Value::Str(text.into());
        match self {
            Method => {
                let is_method = (3..=9).contains(&value.len())
                    && value.bytes().all(|byte| byte.is_ascii_uppercase());
                put("method", text(is_method.then_some(value)?));
            }
            Target => target(value, made)?,
            Protocol => put(
                "protocol",
                text(value.starts_with("HTTP/").then_some(value)?),
            ),
            Status => {
                let status = canonical_int(value).filter(|status| (100..600).contains(status))?;
                put("status", Value::Int(status));
            }
            Bytes if value == "-" => {}
            Bytes => put("bytes", Value::Int(canonical_int(value)?)),
            Milliseconds if value == "-" => {}
            Milliseconds => {
                let number: f64 = value.parse().ok()?;
                put(
                    "duration_s",
                    Value::Float(number.is_finite().then_some(number / 1e3)?),
                );
            }
            Took => put("duration_s", Value::Float(seconds_with_unit(value)?)),
            Address => put("remote_addr", text(is_address(value).then_some(value)?)),
            Peer => {
                let (address, port) = value.rsplit_once(':')?;
                let address = address.trim_matches(['[', ']']);
                put("remote_addr", text(is_address(address).then_some(address)?));
                put("remote_port", Value::Int(canonical_int(port)?));
            }
            Account => {
                let (user, address) = value.split_once('@').unwrap_or(("", value));
                if !user.is_empty() {
                    put("user", text(user));
                }
                put("remote_addr", text(is_address(address).then_some(address)?));
            }
            User if value == "-" => {}
            User => put("user", text(value)),
            Clock => return is_clock(value).then_some(()),
            Word => return (!value.is_empty()).then_some(()),
            Text(_) | Blanks | Rest => {}
        }
        Some(())
    }
}

/// Makes the parts of a target.
fn target<'a>(value: &'a str, made: &mut Made<'a>) -> Option<()> {
    let mut rest = value;
    if let Some((scheme, behind)) = value.split_once("://")
        && matches!(scheme, "http" | "https")
    {
        let end = behind.find(['/', '?']).unwrap_or(behind.len());
        made.push(("scheme".into(), Value::Str(scheme.into())));
        let (host, port) = match behind[..end].rsplit_once(':') {
            Some((host, port)) => (host, canonical_int(port)),
            None => (&behind[..end], None),
        };
        made.push(("host".into(), Value::Str(host.into())));
        made.extend(port.map(|port| ("port".into(), Value::Int(port))));
        rest = &behind[end..];
    }
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    if !(path.starts_with('/') || path == "*") {
        return None;
    }
    made.push(("path".into(), Value::Str(path.into())));
    if !query.is_empty() {
        made.push(("query".into(), Value::Str(query.into())));
    }
    Some(())
}

/// True for `00:51:25`.
fn is_clock(value: &str) -> bool {
    let is_part = |(at, byte): (usize, u8)| match at {
        2 | 5 => byte == b':',
        _ => byte.is_ascii_digit(),
    };
    value.len() == 8 && value.bytes().enumerate().all(is_part)
}

//! Access logs: of web servers, proxies, load balancers and content networks, recognised without a setting.
//!
//! | format | room |
//! | --- | --- |
//! | common and combined with their relatives: nginx, Apache, ingress-nginx, Traefik, Varnish, lighttpd, gunicorn, APISIX | [`combined`] |
//! | HAProxy over HTTP and TCP | [`haproxy`] |
//! | Amazon's load balancers, S3, CloudFront, VPC flow logs | [`aws`] |
//! | Squid, Envoy, Istio, IIS, uWSGI, uvicorn, Django, Gin, Nginx Proxy Manager | [`servers`] |
//!
//! Invariants: literals of the shapes are few; all that varies is a slot. Fields have the same names and types
//! in all formats, so one query or dashboard fits them all. A line is looked at by the reader that its first
//! bytes name, and by no other.

mod aws;
mod clock;
mod columns;
mod combined;
mod haproxy;
mod platforms;
mod servers;

use memchr::{memchr, memchr_iter, memmem};

use super::access_format::{DerivedFields, Times};
use super::sketch::Sketch;
pub(crate) use clock::Clock;
pub(crate) use columns::{MILLISECOND, Pen, SECOND, Take, nanoseconds};
pub(crate) use servers::go_seconds as seconds_with_unit;

/// The time must begin within so many bytes: a vhost and a list of addresses take 300 at most.
const HEAD_BYTES_MAX: usize = 512;

/// The request must begin within so many bytes behind the bracket of the time.
const TIME_BYTES_MAX: usize = 40;

/// Bytes of the id of a bucket's owner, in hexadecimal digits.
const OWNER_BYTES: usize = 64;

/// A format's reader: draws a line, or gives `None` if it is none of the format.
pub(crate) type Reader = for<'a> fn(&'a str, &mut Pen<'_, '_, 'a, '_>) -> Option<()>;

/// Draws an access log line by the reader that [`reader`] names. `None` if the line is none, and the sketch is then
/// spoilt.
pub(crate) fn draw<'a>(
    reader: Reader,
    line: &'a str,
    times: Times<'_>,
    sketch: &mut Sketch<'_, 'a>,
) -> Option<DerivedFields<'a>> {
    let (line, carriage_return) = match line.strip_suffix('\r') {
        Some(line) => (line, "\r"),
        None => (line, ""),
    };
    let mut pen = Pen::new(sketch, times);
    reader(line, &mut pen)?;
    pen.sketch.literal(carriage_return);
    Some(pen.finish())
}

/// The reader of the format that `line` begins in: a cheap test that few other lines pass.
pub(crate) fn reader(line: &[u8]) -> Option<Reader> {
    let by_start = match *line.first()? {
        b'[' => of_bracket(line),
        b'0'..=b'9' => of_digit(line),
        b'a'..=b'z' | b'A'..=b'Z' => of_letter(line),
        // JSON and syslog have readers of their own.
        b'{' | b'<' => return None,
        _ => None,
    };
    by_start
        .or_else(|| of_request(line))
        .or_else(|| of_bare_time(line))
}

/// By a time without brackets behind an address and two words: `192.0.2.7 - lena 27/Nov/2026:00:51:25 +0100 "GET …`.
fn of_bare_time(line: &[u8]) -> Option<Reader> {
    const TIME_BYTES: usize = 26;
    let head = &line[..line.len().min(HEAD_BYTES_MAX)];
    let start = memchr_iter(b' ', head).nth(2)? + 1;
    let time = head.get(start..start + TIME_BYTES)?;
    let is_it = time[2] == b'/'
        && time[6] == b'/'
        && time[11] == b':'
        && head[start + TIME_BYTES..].starts_with(b" \"");
    let has_user = head[start - 2] != b' ';
    let reader = if has_user {
        combined::bare
    } else {
        combined::fpm
    };
    is_it.then_some(reader as Reader)
}

/// By the time in brackets that a request follows.
fn of_request(line: &[u8]) -> Option<Reader> {
    let head = &line[..line.len().min(HEAD_BYTES_MAX)];
    let bracket = combined::bracket_of_time(head)?;
    if bracket < 4 || line[bracket - 1] != b' ' || !line.get(bracket + 1)?.is_ascii_digit() {
        return None;
    }
    let behind = &line[bracket..line.len().min(bracket + TIME_BYTES_MAX)];
    let close = memchr(b']', behind)?;
    let behind = &line[bracket + close..];
    if behind.starts_with(b"] \"") {
        let is_router = memchr(b' ', head) == bracket.checked_sub(3)
            && memmem::find(line, platforms::GOROUTER_MARK).is_some();
        return Some(if is_router {
            platforms::gorouter
        } else {
            combined::draw
        });
    }
    if is_before_request(behind) {
        return Some(combined::hosted);
    }
    if behind.starts_with(b"] TCP ") || behind.starts_with(b"] UDP ") {
        return Some(servers::stream);
    }
    // `02/Mar/2026:00:00:06.123`
    let is_haproxy = close == 25 && line[bracket + 21] == b'.' && behind.get(1) == Some(&b' ');
    is_haproxy.then_some(haproxy::draw as Reader)
}

/// True for `] shop.example.org "GET `: a host between the time and a request.
fn is_before_request(behind: &[u8]) -> bool {
    let host = || {
        let rest = behind.strip_prefix(b"] ")?;
        let blank = memchr(b' ', &rest[..rest.len().min(HEAD_BYTES_MAX)])?;
        let method = rest[blank..].strip_prefix(b" \"")?.first()?;
        Some(blank > 0 && method.is_ascii_uppercase())
    };
    host() == Some(true)
}

fn of_bracket(line: &[u8]) -> Option<Reader> {
    match *line {
        [b'[', b'G', b'I', b'N', b']', b' ', ..] => Some(servers::gin),
        [b'[', b'p', b'i', b'd', b':', b' ', ..] => Some(servers::uwsgi),
        [b'[', b'h', b't', b't', b'p', b'd', b']', b' ', ..] => Some(servers::influxdb),
        // `[2026-03-02T00:00:06.123Z] "`
        [b'[', b'0'..=b'9', _, _, _, b'-', _, _, b'-', _, _, b'T', ..] => {
            let close = memchr(b']', &line[..line.len().min(TIME_BYTES_MAX)])?;
            let is_request = line[close..].starts_with(b"] \"");
            is_request.then_some(servers::envoy as Reader)
        }
        // `[02/Mar/2026 00:00:06] "`
        [b'[', b'0'..=b'9', _, b'/', _, _, _, b'/', ..] => match line.get(12)? {
            b' ' if line.get(21..24) == Some(b"] \"") => Some(servers::django),
            b':' if line.get(27..29) == Some(b"] ") => Some(of_bracketed_time(&line[29..])),
            _ => None,
        },
        _ => None,
    }
}

/// By what follows a time in brackets: Apache's log of requests over TLS has the version behind the address.
fn of_bracketed_time(behind: &[u8]) -> Reader {
    let version = behind.splitn(3, |byte| *byte == b' ').nth(1);
    let is_tls = version.is_some_and(|version| {
        let starts: [&[u8]; 2] = [b"TLSv", b"SSLv"];
        starts.iter().any(|start| version.starts_with(start))
    });
    if is_tls {
        servers::tls_request
    } else {
        servers::proxy_manager
    }
}

fn of_digit(line: &[u8]) -> Option<Reader> {
    let is_digit = |at: usize| line.get(at).is_some_and(u8::is_ascii_digit);
    match (line.get(4)?, line.get(10)?) {
        (b'-', b' ')
            if line
                .get(19..)
                .is_some_and(|rest| rest.starts_with(b" W3SVC")) =>
        {
            Some(servers::iis_all)
        }
        (b'-', b' ') if line[7] == b'-' && line.get(19) == Some(&b' ') => {
            // An address follows, not a level.
            let is_address = is_digit(20) || line.get(20) == Some(&b':');
            is_address.then_some(servers::iis as Reader)
        }
        (b'-', b'\t') if line[7] == b'-' && line.get(19) == Some(&b'\t') => Some(aws::cloudfront),
        (b'-', b'T') if line.get(19) == Some(&b'.') => {
            if is_routed(line) {
                return Some(platforms::routed);
            }
            let head = &line[..line.len().min(HEAD_BYTES_MAX)];
            let mut words = head.split(|byte| *byte == b' ').skip(2);
            let is_client = words.next()?.contains(&b':') && words.next().is_some();
            let is_number = words.next().is_some_and(is_decimal);
            (is_client && is_number).then_some(aws::elb as Reader)
        }
        // Seconds since 1970 have ten digits.
        (_, b'.') if line.get(14) == Some(&b' ') && line[..10].iter().all(u8::is_ascii_digit) => {
            (line[0] != b'0').then_some(servers::squid as Reader)
        }
        _ => match line {
            // An account may be `unknown`.
            [b'2', b' ', b'0'..=b'9' | b'u', ..] => Some(aws::vpc),
            _ if is_owner(line) => Some(aws::s3),
            _ if is_iis_own(line) => Some(platforms::iis_own),
            _ => None,
        },
    }
}

/// True for ` [RTR/` behind a time, and a request behind that.
fn is_routed(line: &[u8]) -> bool {
    let blank = memchr(b' ', &line[..line.len().min(TIME_BYTES_MAX)]);
    blank.is_some_and(|blank| line[blank..].starts_with(b" [RTR/"))
        && memmem::find(line, platforms::GOROUTER_MARK).is_some()
}

fn of_letter(line: &[u8]) -> Option<Reader> {
    const ALB_TYPES: [&[u8]; 7] = [b"http", b"https", b"h2", b"grpcs", b"grpc", b"ws", b"wss"];
    const LEVELS: [&[u8]; 5] = [b"INFO", b"WARNING", b"ERROR", b"DEBUG", b"CRITICAL"];
    if platforms::is_xferlog(line) {
        return Some(platforms::xferlog);
    }
    let end = line
        .iter()
        .take(10)
        .position(|byte| matches!(byte, b' ' | b':'));
    match end {
        Some(end) if line[end] == b' ' => {
            let word = &line[..end];
            if ALB_TYPES.contains(&word) && line.get(end + 11) == Some(&b'T') {
                return Some(aws::alb);
            }
            let is_network = word == b"tls" && line.get(end + 15) == Some(&b'T');
            is_network.then_some(aws::nlb as Reader)
        }
        Some(end) if LEVELS.contains(&&line[..end]) => {
            let rest = line[end + 1..].trim_ascii_start();
            let is_address = |byte: &u8| byte.is_ascii_hexdigit() || b".:[]".contains(byte);
            let address = rest.iter().take_while(|byte| is_address(byte)).count();
            let is_client = address > 4 && rest[address..].starts_with(b" - \"");
            is_client.then_some(servers::uvicorn as Reader)
        }
        _ if is_owner(line) => Some(aws::s3),
        _ => None,
    }
}

/// True for an address that a comma ends, and a site of IIS behind it.
fn is_iis_own(line: &[u8]) -> bool {
    const SITE_BYTES_MAX: usize = 128;
    const ADDRESS_BYTES_MAX: usize = 48;
    let comma = memchr(b',', &line[..line.len().min(ADDRESS_BYTES_MAX)]);
    let is_part = |byte: &u8| byte.is_ascii_hexdigit() || b".:%".contains(byte);
    comma.is_some_and(|comma| line[..comma].iter().all(is_part))
        && platforms::IIS_SITES.iter().any(|site| {
            let head = &line[..line.len().min(SITE_BYTES_MAX)];
            memmem::find(head, site).is_some()
        })
}

/// True if a line begins with the id of a bucket's owner.
fn is_owner(line: &[u8]) -> bool {
    line.get(OWNER_BYTES) == Some(&b' ')
        && line[..OWNER_BYTES]
            .iter()
            .all(|byte| byte.is_ascii_hexdigit())
}

/// True for `0.000042` and `-1`.
fn is_decimal(text: &[u8]) -> bool {
    text == b"-1" || text.contains(&b'.') && text.iter().all(|b| b.is_ascii_digit() || *b == b'.')
}

/// The parts of `METHOD target HTTP/x`.
pub(crate) fn parts_of(request: &str) -> Option<(&str, &str, &str)> {
    let (method, rest) = request.split_once(' ')?;
    let space = memchr(b' ', rest.as_bytes())?;
    let (target, protocol) = (&rest[..space], &rest[space + 1..]);
    let well_formed = !method.is_empty()
        && !target.is_empty()
        && protocol.starts_with("HTTP/")
        && !protocol.contains(' ');
    well_formed.then_some((method, target, protocol))
}

/// A number without a sign or leading zeros.
pub(crate) fn canonical_int(text: &str) -> Option<i64> {
    let digits = text.as_bytes();
    let proper = (1..=18).contains(&digits.len())
        && (digits.len() == 1 || digits[0] != b'0')
        && digits.iter().all(u8::is_ascii_digit);
    proper.then(|| {
        digits
            .iter()
            .fold(0, |value, digit| value * 10 + i64::from(digit - b'0'))
    })
}

/// The first quote that no backslash escapes.
pub(crate) fn closing_quote(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    memchr_iter(b'"', bytes).find(|&at| {
        let backslashes = bytes[..at]
            .iter()
            .rev()
            .take_while(|b| **b == b'\\')
            .count();
        backslashes % 2 == 0
    })
}

#[cfg(test)]
mod tests;

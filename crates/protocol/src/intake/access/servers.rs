//! Access logs of single servers and frameworks: Squid, Envoy and Istio, IIS, uWSGI, uvicorn, Django, Gin and Nginx
//! Proxy Manager.

use super::clock::Clock;
use super::closing_quote;
use super::columns::{Column, MILLISECOND, Pen, SECOND, Take, column};

/// Squid's native format (`logformat squid`), behind the time.
const SQUID: [Column; 11] = [
    column("", Take::Time(Clock::Epoch), " "),
    column("", Take::Pad, ""),
    column("elapsed_ms", Take::Took(MILLISECOND), " "),
    column("remote_addr", Take::Word, " "),
    column("cache_status", Take::Word, "/"),
    column("status", Take::Status, " "),
    column("bytes", Take::Number, " "),
    column("method", Take::Method, " "),
    column("", Take::Target, " "),
    column("user", Take::Text, " "),
    column("hierarchy", Take::Word, "/"),
];

/// Envoy's default format up to the flags.
const ENVOY: [Column; 4] = [
    column("", Take::Time(Clock::Iso), "] \""),
    column("", Take::Request, "\" "),
    column("status", Take::Status, " "),
    column("response_flags", Take::Text, " "),
];

/// The columns of Istio behind the flags.
const ISTIO: [Column; 3] = [
    column("response_code_details", Take::Text, " "),
    column("connection_termination_details", Take::Text, " \""),
    column("upstream_transport_failure_reason", Take::Text, "\" "),
];

const ENVOY_NUMBERS: [Column; 9] = [
    column("request_length", Take::Number, " "),
    column("bytes", Take::Number, " "),
    column("duration_ms", Take::Took(MILLISECOND), " "),
    column("upstream_service_time", Take::Number, " \""),
    column("", Take::Forwarded, "\" \""),
    column("agent", Take::Plain, "\" \""),
    column("request_id", Take::Text, "\" \""),
    column("host", Take::Text, "\" \""),
    column("upstream_addr", Take::Text, "\""),
];

const ISTIO_TRAILING: [(&str, Take); 6] = [
    ("upstream_cluster", Take::Text),
    ("upstream_local_address", Take::Text),
    ("downstream_local_address", Take::Text),
    ("downstream_remote_address", Take::Text),
    ("requested_server_name", Take::Text),
    ("route_name", Take::Text),
];

/// The default fields of IIS, up to the agent. Before version 7.5 there was no referer, and before 7 no time.
const IIS: [Column; 9] = [
    column("", Take::Time(Clock::W3c), " "),
    column("server_addr", Take::Word, " "),
    column("method", Take::Method, " "),
    column("path", Take::Path, " "),
    column("query", Take::Text, " "),
    column("port", Take::Number, " "),
    column("user", Take::Text, " "),
    column("remote_addr", Take::Word, " "),
    column("agent", Take::Plain, " "),
];

const IIS_TRAILING: [(&str, Take); 4] = [
    ("status", Take::Status),
    ("sc_substatus", Take::Number),
    ("sc_win32_status", Take::Number),
    ("time_taken", Take::Took(MILLISECOND)),
];

/// The same with the bytes of both directions.
const IIS_WITH_BYTES: [(&str, Take); 6] = [
    ("status", Take::Status),
    ("sc_substatus", Take::Number),
    ("sc_win32_status", Take::Number),
    ("bytes", Take::Number),
    ("request_length", Take::Number),
    ("time_taken", Take::Took(MILLISECOND)),
];

/// All fields of IIS; the site and the server's name stand behind the time.
const IIS_SITE: [Column; 2] = [
    column("s_sitename", Take::Word, " "),
    column("s_computername", Take::Text, " "),
];
const IIS_ALL: [Column; 5] = [
    column("protocol", Take::Text, " "),
    column("agent", Take::Plain, " "),
    column("cookie", Take::Text, " "),
    column("referer", Take::Plain, " "),
    column("host", Take::Text, " "),
];

/// How many fields those are, the date and the clock counted apart.
const IIS_ALL_COUNT: usize = 22;

/// uWSGI's default format, behind `[pid: `.
const UWSGI: [Column; 13] = [
    column("pid", Take::Number, "|app: "),
    column("app", Take::Text, "|req: "),
    column("request_number", Take::Text, "] "),
    column("remote_addr", Take::Word, " ("),
    column("user", Take::Text, ") {"),
    column("vars", Take::Text, "} ["),
    column("", Take::Time(Clock::Asctime), "] "),
    column("method", Take::Method, " "),
    column("", Take::Target, " => generated "),
    column("bytes", Take::Number, " bytes in "),
    column("duration_ms", Take::Took(MILLISECOND), " msecs ("),
    column("protocol", Take::Word, " "),
    column("status", Take::Status, ")"),
];

const UVICORN: [Column; 3] = [
    column("", Take::Client, " - \""),
    column("", Take::Request, "\" "),
    column("status", Take::Status, ""),
];

const DJANGO: [Column; 2] = [
    column("", Take::Time(Clock::Python), "] \""),
    column("", Take::Request, "\" "),
];

/// Apache's `ssl_request_log` as distributions of Red Hat's family configure it, behind the bracket.
const TLS_REQUEST: [Column; 4] = [
    column("remote_addr", Take::Word, " "),
    column("ssl_protocol", Take::Text, " "),
    column("ssl_cipher", Take::Text, " \""),
    column("", Take::Request, "\" "),
];

/// Nginx Proxy Manager's `proxy`, behind the bracket.
const PROXY_MANAGER: [Column; 13] = [
    column("upstream_cache_status", Take::Text, " "),
    column("upstream_status", Take::Text, " "),
    column("status", Take::Status, " - "),
    column("method", Take::Method, " "),
    column("scheme", Take::Word, " "),
    column("host", Take::Word, " \""),
    column("", Take::Target, "\" [Client "),
    column("remote_addr", Take::Word, "] [Length "),
    column("bytes", Take::Number, "] [Gzip "),
    column("gzip_ratio", Take::Text, "] [Sent-to "),
    column("upstream_addr", Take::Text, "] \""),
    column("agent", Take::Plain, "\" \""),
    column("referer", Take::Plain, "\""),
];

/// Draws a line of Squid.
pub(super) fn squid<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    let rest = pen.columns(line, &SQUID)?;
    let (server, rest) = rest.split_at(rest.find(' ')?);
    pen.text("upstream_addr", server);
    pen.trailing(rest, &[("content_type", Take::Text)]);
    Some(())
}

/// Draws a line of Envoy, or of Istio's proxies.
pub(super) fn envoy<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    pen.sketch.literal("[");
    let mut rest = pen.columns(line.strip_prefix('[')?, &ENVOY)?;
    if !rest.starts_with(|c: char| c.is_ascii_digit()) {
        rest = pen.columns(rest, &ISTIO)?;
    }
    let rest = pen.columns(rest, &ENVOY_NUMBERS)?;
    pen.trailing(rest, &ISTIO_TRAILING);
    Some(())
}

/// Draws a line of IIS with its default fields.
pub(super) fn iis<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    let rest = pen.columns(line, &IIS)?;
    // IIS writes the fields that it is told to write in a fixed order.
    let (has_referer, names) = match rest.split(' ').count() {
        3 => (false, &IIS_TRAILING[..3]),
        4 => (false, &IIS_TRAILING[..]),
        5 => (true, &IIS_TRAILING[..]),
        7 => (true, &IIS_WITH_BYTES[..]),
        _ => return None,
    };
    let mut values = rest.split(' ');
    if has_referer {
        pen.value("referer", Take::Plain, values.next()?)?;
        pen.sketch.literal(" ");
    }
    for (at, ((name, take), value)) in names.iter().zip(values).enumerate() {
        pen.sketch.literal(if at > 0 { " " } else { "" });
        pen.value(name, *take, value)?;
    }
    Some(())
}

/// Draws a line of IIS with all of its fields.
pub(super) fn iis_all<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    if line.split(' ').count() != IIS_ALL_COUNT {
        return None;
    }
    let rest = pen.columns(line, &IIS[..1])?;
    let rest = pen.columns(rest, &IIS_SITE)?;
    let rest = pen.columns(rest, &IIS[1..IIS.len() - 1])?;
    let rest = pen.columns(rest, &IIS_ALL)?;
    for (at, ((name, take), value)) in IIS_WITH_BYTES.iter().zip(rest.split(' ')).enumerate() {
        pen.sketch.literal(if at > 0 { " " } else { "" });
        pen.value(name, *take, value)?;
    }
    Some(())
}

/// Draws a line of uWSGI.
pub(super) fn uwsgi<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    const START: &str = "[pid: ";
    pen.sketch.literal(START);
    let rest = pen.columns(line.strip_prefix(START)?, &UWSGI)?;
    pen.surplus(rest);
    Some(())
}

/// Draws a line of uvicorn, behind whose level a client stands.
pub(super) fn uvicorn<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    let (level, rest) = line.split_once(':')?;
    pen.text("level", level);
    pen.sketch.literal(":");
    let after = rest.trim_start_matches(' ');
    pen.sketch.literal(&rest[..rest.len() - after.len()]);
    let rest = pen.columns(after, &UVICORN[..2])?;
    let length = rest.find(' ').unwrap_or(rest.len());
    let (status, rest) = rest.split_at(length);
    pen.status("status", status)?;
    if let Some(reason) = rest.strip_prefix(' ') {
        pen.sketch.literal(" ");
        pen.text("reason", reason);
    }
    Some(())
}

/// Draws a line of Django's development server.
pub(super) fn django<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    pen.sketch.literal("[");
    let rest = pen.columns(line.strip_prefix('[')?, &DJANGO)?;
    let (status, bytes) = rest.split_once(' ')?;
    pen.status("status", status)?;
    pen.sketch.literal(" ");
    pen.value("bytes", Take::Number, bytes)
}

/// Draws a line of Gin's logger: `[GIN] time | status | took | address | METHOD "path"`.
pub(super) fn gin<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    const START: &str = "[GIN] ";
    pen.sketch.literal(START);
    let rest = pen.time(line.strip_prefix(START)?, Clock::Gin)?;
    let mut parts = rest.splitn(5, '|');
    pen.padded(parts.next()?, |_, empty| empty.is_empty().then_some(()))?;
    pen.padded(parts.next()?, |pen, status| pen.status("status", status))?;
    pen.padded(parts.next()?, |pen, took| {
        pen.drawn.duration_s = go_seconds(took);
        pen.value("duration", Take::Word, took)
    })?;
    pen.padded(parts.next()?, |pen, client| {
        pen.value("remote_addr", Take::Word, client)
    })?;
    pen.sketch.literal(" ");
    let (method, rest) = parts.next()?.strip_prefix(' ')?.split_once(' ')?;
    pen.value("method", Take::Method, method)?;
    pen.sketch.literal(" ");
    let after = rest.trim_start_matches(' ');
    pen.sketch.literal(&rest[..rest.len() - after.len()]);
    pen.sketch.literal("\"");
    let inside = after.strip_prefix('"')?;
    let end = closing_quote(inside)?;
    pen.target(&inside[..end]);
    pen.sketch.literal("\"");
    pen.surplus(&inside[end + 1..]);
    Some(())
}

/// The columns of nginx for streams, behind the time.
const STREAM: [Column; 4] = [
    column("protocol", Take::Word, " "),
    column("status", Take::Status, " "),
    column("bytes", Take::Number, " "),
    column("request_length", Take::Number, " "),
];

const STREAM_TRAILING: [(&str, Take); 4] = [
    ("upstream_addr", Take::Text),
    ("upstream_bytes_sent", Take::Text),
    ("upstream_bytes_received", Take::Text),
    ("upstream_connect_time", Take::Text),
];

/// Draws a line of nginx for streams, in the format of its documentation.
pub(super) fn stream<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    let (address, rest) = line.split_once(" [")?;
    if address.contains(' ') {
        return None;
    }
    pen.address(address);
    pen.sketch.literal(" [");
    let rest = pen.usual_time(rest)?;
    pen.sketch.literal("] ");
    let rest = pen.columns(rest.strip_prefix("] ")?, &STREAM)?;
    let length = rest.find(' ').unwrap_or(rest.len());
    let (took, rest) = rest.split_at(length);
    pen.value("session_time", Take::Took(SECOND), took)?;
    pen.trailing(rest, &STREAM_TRAILING);
    Some(())
}

/// Draws a line of InfluxDB: combined behind a name in brackets.
pub(super) fn influxdb<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    const START: &str = "[httpd] ";
    pen.sketch.literal(START);
    super::combined::draw(line.strip_prefix(START)?, pen)
}

/// Draws a line of Apache's log of requests over TLS.
pub(super) fn tls_request<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    pen.sketch.literal("[");
    let rest = pen.usual_time(line.strip_prefix('[')?)?;
    pen.sketch.literal("] ");
    let rest = pen.columns(rest.strip_prefix("] ")?, &TLS_REQUEST)?;
    let length = rest.find(' ').unwrap_or(rest.len());
    let (bytes, rest) = rest.split_at(length);
    pen.value("bytes", Take::Number, bytes)?;
    pen.trailing(rest, &[]);
    Some(())
}

/// Draws a line of Nginx Proxy Manager.
pub(super) fn proxy_manager<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    pen.sketch.literal("[");
    let rest = pen.usual_time(line.strip_prefix('[')?)?;
    pen.sketch.literal("] ");
    let rest = rest.strip_prefix("] ")?;
    // For hosts that redirect or are dead there is only one status.
    let columns = if rest.starts_with("- - ") || rest.split(' ').nth(3) == Some("-") {
        &PROXY_MANAGER[..]
    } else {
        return None;
    };
    let rest = pen.columns(rest, columns)?;
    pen.trailing(rest, &[]);
    Some(())
}

/// A duration as Go writes it, with one unit: `1.5ms`.
pub(crate) fn go_seconds(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 5] = [
        ("ns", 1e9),
        ("µs", 1e6),
        ("us", 1e6),
        ("ms", 1e3),
        ("s", 1.0),
    ];
    let (number, divisor) = UNITS
        .iter()
        .find_map(|(unit, divisor)| Some((text.strip_suffix(unit)?, divisor)))?;
    // Rust's tower-http has a blank before the unit.
    let number = number.strip_suffix(' ').unwrap_or(number);
    let is_number = number
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value: f64 = number.parse().ok().filter(|_| is_number)?;
    let value = Some(value).filter(|value| value.is_finite())?;
    Some(value / divisor)
}

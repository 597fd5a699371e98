//! HAProxy's formats `httplog`, `tcplog` and that of errors (HAProxy, configuration manual, section 8.2).
//!
//! ```text
//! addr:port [time] frontend backend/server TR/Tw/Tc/Tr/Ta status bytes req res state a/f/b/s/r sq/bq
//!     [{…} ][{…} ]"request"
//! addr:port [time] frontend backend/server Tw/Tc/Tt bytes state a/f/b/s/r sq/bq
//! addr:port [time] frontend/bind: message
//! ```

use super::clock::Clock;
use super::columns::{Column, MILLISECOND, Pen, Take, column};

const START: [Column; 2] = [
    column("", Take::Client, " ["),
    column("", Take::Time(Clock::Haproxy), "] "),
];

const PROXIES: [Column; 3] = [
    column("frontend", Take::Word, " "),
    column("backend", Take::Word, "/"),
    column("server", Take::Word, " "),
];

const HTTP: [Column; 10] = [
    column("request_ms", Take::Number, "/"),
    column("queue_ms", Take::Number, "/"),
    column("connect_ms", Take::Number, "/"),
    column("response_ms", Take::Number, "/"),
    column("duration_ms", Take::Took(MILLISECOND), " "),
    column("status", Take::Status, " "),
    column("bytes", Take::Number, " "),
    column("request_cookie", Take::Text, " "),
    column("response_cookie", Take::Text, " "),
    column("termination_state", Take::Text, " "),
];

const TCP: [Column; 5] = [
    column("queue_ms", Take::Number, "/"),
    column("connect_ms", Take::Number, "/"),
    column("duration_ms", Take::Took(MILLISECOND), " "),
    column("bytes", Take::Number, " "),
    column("termination_state", Take::Text, " "),
];

const CONNECTIONS: [Column; 6] = [
    column("active_connections", Take::Number, "/"),
    column("frontend_connections", Take::Number, "/"),
    column("backend_connections", Take::Number, "/"),
    column("server_connections", Take::Number, "/"),
    column("retries", Take::Number, " "),
    column("server_queue", Take::Number, "/"),
];

const ERROR: [Column; 2] = [
    column("frontend", Take::Word, "/"),
    column("bind", Take::Word, ": "),
];

/// Draws a line; `None` if it is none.
pub(super) fn draw<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    let rest = pen.columns(line, &START)?;
    let place = pen.sketch.mark();
    if let Some(()) = session(rest, pen) {
        return Some(());
    }
    pen.sketch.rewind(place);
    let rest = pen.columns(rest, &ERROR)?;
    pen.sketch.message(rest.as_bytes());
    Some(())
}

/// Draws a session behind its time.
fn session<'a>(rest: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    let rest = pen.columns(rest, &PROXIES)?;
    let timers = &rest[..rest.find(' ')?];
    let is_http = timers.bytes().filter(|byte| *byte == b'/').count() == 4;
    let rest = if is_http {
        pen.columns(rest, &HTTP)?
    } else {
        pen.columns(rest, &TCP)?
    };
    let rest = pen.columns(rest, &CONNECTIONS)?;
    let length = rest.find(' ').unwrap_or(rest.len());
    let (queue, rest) = rest.split_at(length);
    pen.value("backend_queue", Take::Number, queue)?;
    let rest = captures(rest, pen);
    match rest.strip_prefix(" \"") {
        Some(request) if is_http => {
            pen.sketch.literal(" \"");
            // A long request is cut, and has no quote then.
            let end = super::closing_quote(request).unwrap_or(request.len());
            pen.request(&request[..end]);
            let rest = &request[end..];
            if let Some(rest) = rest.strip_prefix('"') {
                pen.sketch.literal("\"");
                pen.trailing(rest, &[]);
            }
        }
        _ => pen.trailing(rest, &[]),
    }
    Some(())
}

/// Draws the captured headers of the request and of the answer; gives the rest.
fn captures<'a>(mut rest: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> &'a str {
    let mut names = ["captured_request", "captured_response"].iter();
    while let Some(inside) = rest.strip_prefix(" {") {
        let (Some(end), Some(name)) = (inside.find('}'), names.next()) else {
            break;
        };
        pen.sketch.literal(" {");
        pen.text(name, &inside[..end]);
        pen.sketch.literal("}");
        rest = &inside[end + 1..];
    }
    rest
}

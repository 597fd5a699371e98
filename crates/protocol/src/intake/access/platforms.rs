//! Access logs of platforms and of servers that are no web servers alone: Cloud Foundry's router, Adobe Experience
//! Manager, IIS in its own format, and servers of FTP.

use super::clock::Clock;
use super::columns::{Column, MILLISECOND, Pen, SECOND, Take, TrailingValue, column};

/// The start of a list of addresses behind the known columns of Cloud Foundry's router.
pub(super) const GOROUTER_MARK: &[u8] = b" x_forwarded_for:\"";

/// Cloud Foundry's router behind the time.
const GOROUTER: [Column; 8] = [
    column("", Take::Request, "\" "),
    column("status", Take::Status, " "),
    column("request_length", Take::Number, " "),
    column("bytes", Take::Number, " \""),
    column("referer", Take::Plain, "\" \""),
    column("agent", Take::Plain, "\" \""),
    column("", Take::Client, "\" \""),
    column("upstream_addr", Take::Text, "\""),
];

/// Its values with labels, and the fields that they are. Others are the surplus.
const GOROUTER_LABELS: [(&str, &str, Take); 19] = [
    ("x_forwarded_for", "http_x_forwarded_for", Take::Text),
    ("x_forwarded_proto", "scheme", Take::Text),
    ("vcap_request_id", "request_id", Take::Text),
    ("response_time", "response_time", Take::Took(SECOND)),
    ("gorouter_time", "gorouter_time", Take::Text),
    ("app_time", "app_time", Take::Text),
    ("dial_time", "dial_time", Take::Text),
    ("dns_time", "dns_time", Take::Text),
    ("tls_time", "tls_time", Take::Text),
    ("backend_time", "backend_time", Take::Text),
    ("failed_attempts", "failed_attempts", Take::Text),
    ("failed_attempts_time", "failed_attempts_time", Take::Text),
    ("app_id", "app_id", Take::Text),
    ("app_index", "app_index", Take::Text),
    ("instance_id", "instance_id", Take::Text),
    ("x_cf_routererror", "x_cf_routererror", Take::Text),
    ("x_b3_traceid", "x_b3_traceid", Take::Text),
    ("x_b3_spanid", "x_b3_spanid", Take::Text),
    ("b3", "b3", Take::Text),
];

/// The names of the sites of IIS in its own format.
pub(super) const IIS_SITES: [&[u8]; 3] = [b", W3SVC", b", MSFTPSVC", b", SMTPSVC"];

/// IIS in its own format up to the time, and behind it.
const IIS_CLIENT: [Column; 2] = [
    column("remote_addr", Take::Word, ", "),
    column("user", Take::Text, ", "),
];
const IIS_REQUEST: [Column; 12] = [
    column("service", Take::Word, ", "),
    column("server_name", Take::Text, ", "),
    column("server_addr", Take::Word, ", "),
    column("time_taken", Take::Took(MILLISECOND), ", "),
    column("request_length", Take::Number, ", "),
    column("bytes", Take::Number, ", "),
    column("status", Take::Status, ", "),
    column("sc_win32_status", Take::Number, ", "),
    column("method", Take::Method, ", "),
    column("path", Take::Text, ", "),
    column("query", Take::Text, ","),
    column("", Take::Pad, ""),
];

/// `xferlog` of wu-ftpd, vsftpd, ProFTPD and Pure-FTPd.
const XFERLOG: [Column; 14] = [
    column("", Take::Time(Clock::Asctime), " "),
    column("transfer_time", Take::Took(SECOND), " "),
    column("remote_addr", Take::Word, " "),
    column("bytes", Take::Number, " "),
    column("path", Take::Text, " "),
    column("transfer_type", Take::Word, " "),
    column("action_flag", Take::Text, " "),
    column("direction", Take::Word, " "),
    column("access_mode", Take::Word, " "),
    column("user", Take::Text, " "),
    column("service", Take::Word, " "),
    column("auth_method", Take::Word, " "),
    column("auth_user", Take::Text, " "),
    column("completion", Take::Word, ""),
];

/// Draws a line of Cloud Foundry's router: `host - [time] "request" status …`.
pub(super) fn gorouter<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    let (host, rest) = line.split_once(" - [")?;
    if host.contains(' ') {
        return None;
    }
    pen.host(host);
    pen.sketch.literal(" - [");
    let rest = pen.any_time(rest, "] \"")?;
    pen.sketch.literal("] \"");
    let mut rest = pen.columns(rest.strip_prefix("] \"")?, &GOROUTER)?;
    for _ in 0..GOROUTER_LABELS.len() {
        let Some((label, behind)) = rest.strip_prefix(' ').and_then(|rest| rest.split_once(':'))
        else {
            break;
        };
        let known = GOROUTER_LABELS.iter().find(|(known, ..)| *known == label);
        let (Some((_, name, take)), Some(value)) = (known, TrailingValue::read(behind)) else {
            break;
        };
        pen.labelled_value(label, name, *take, &value);
        rest = value.rest;
    }
    pen.surplus(rest);
    Some(())
}

/// Draws the same in the stream of an app: `2026-11-27T00:51:25.81+0000 [RTR/0] OUT host - [time] …`.
pub(super) fn routed<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    const OUT: &str = "] OUT ";
    let (written, rest) = line.split_once(" [")?;
    let (source, rest) = rest.split_once(OUT)?;
    pen.sketch.text("time_written:t", written);
    pen.sketch.literal(" [");
    pen.sketch.text("source_type:t", source);
    pen.sketch.literal(OUT);
    gorouter(rest, pen)
}

/// Draws a line of IIS in its own format: values that commas and blanks part.
pub(super) fn iis_own<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    let rest = pen.columns(line, &IIS_CLIENT)?;
    let rest = pen.any_time(rest, ", ")?;
    pen.sketch.literal(", ");
    let rest = pen.columns(rest.strip_prefix(", ")?, &IIS_REQUEST)?;
    rest.is_empty().then_some(())
}

/// Draws a line about a file that was sent.
pub(super) fn xferlog<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    pen.columns(line, &XFERLOG).map(|_| ())
}

/// True for a line that begins with a time of C and ends as [`xferlog`] has it: complete or not.
pub(super) fn is_xferlog(line: &[u8]) -> bool {
    const WORDS: usize = 18;
    let is_timed = matches!(line, [b'A'..=b'Z', _, _, b' ', b'A'..=b'Z', _, _, b' ', ..])
        && line.get(24) == Some(&b' ')
        && line.get(25).is_some_and(u8::is_ascii_digit);
    let is_ended = line.ends_with(b" c") || line.ends_with(b" i");
    // A day of one digit has two blanks before it.
    let words = || {
        line.split(|byte| *byte == b' ')
            .filter(|word| !word.is_empty())
    };
    is_timed && is_ended && words().take(WORDS + 1).count() == WORDS
}

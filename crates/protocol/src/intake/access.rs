//! Web servers' access logs: common and combined, as nginx and Apache write them.
//!
//! ```text
//! [vhost:port ]addr ident user [time] "request" status bytes[ "referer" "agent"[ "host"]][ extra…]
//! ```
//!
//! Invariants: literals of the shapes are ASCII and few; everything that varies is a slot. `-` for
//! ident, user, status or bytes is literal: the field is missing. Quoted values keep their text as
//! it is, escapes and `-` included. A request that is not `METHOD target HTTP/x` is the field
//! `request`.

use logpond_record::{TimeSource, Value};
use memchr::{memchr, memchr_iter};

use super::access_format::{Drawn, host_of};
use super::sketch::Sketch;
use super::timestamps;

/// Where the time must begin, in bytes: a vhost and an address take 300 at most.
const HEAD_BYTES_MAX: usize = 512;

/// The slot of the time in a record that has one already, of its header.
const SECOND_TIME: &str = "time_local:t";

/// The slot of the referer.
const REFERER: &str = "referer:t";

/// Values behind the known ones (times, request ids, upstreams) that become fields.
const EXTRA: [&str; 8] = [
    "extra1:t", "extra2:t", "extra3:t", "extra4:t", "extra5:t", "extra6:t", "extra7:t", "extra8:t",
];

/// Draws an access log line. `None` if the line is none, and the sketch is then spoilt.
pub(crate) fn draw<'a>(line: &'a str, sketch: &mut Sketch<'_, 'a>) -> Option<Drawn<'a>> {
    let mut drawn = Drawn::default();
    draw_line(line, sketch, &mut drawn)?;
    Some(drawn)
}

/// Whether `line` may be an access log line: a cheap test that few others pass.
pub(crate) fn is_candidate(line: &[u8]) -> bool {
    let head = &line[..line.len().min(HEAD_BYTES_MAX)];
    let Some(bracket) = memchr(b'[', head) else {
        return false;
    };
    bracket >= 6
        && line[bracket - 1] == b' '
        && line.get(bracket + 27..bracket + 30) == Some(b"] \"")
}

fn draw_line<'a>(line: &'a str, sketch: &mut Sketch<'_, 'a>, drawn: &mut Drawn<'a>) -> Option<()> {
    let (line, carriage_return) = match line.strip_suffix('\r') {
        Some(line) => (line, "\r"),
        None => (line, ""),
    };
    let bracket = memchr(b'[', line.as_bytes())?;
    let has_host = draw_client(&line[..bracket - 1], sketch)?;
    let after = &line[bracket + 1..];
    let written = timestamps::access(after.as_bytes())?;
    sketch.literal(" [");
    let time = &after[..written.bytes];
    drawn.time = Some((written.time, written.form.assumed()));
    match sketch.parts.time {
        None => sketch.time(&written, time.as_bytes(), TimeSource::Line),
        Some(_) => sketch.text(SECOND_TIME, time),
    }
    let after = after[written.bytes..].strip_prefix("] \"")?;
    let end = closing_quote(after)?;
    sketch.literal("] \"");
    draw_request(&after[..end], sketch);
    let after = after[end + 1..].strip_prefix(' ')?;
    let (status, after) = word(after);
    sketch.literal("\" ");
    draw_number("status:i", status, sketch)?;
    let (bytes, after) = word(after.strip_prefix(' ')?);
    sketch.literal(" ");
    draw_number("bytes:i", bytes, sketch)?;
    drawn.referer_host = host_of(draw_rest(after, has_host, sketch)?);
    sketch.literal(carriage_return);
    Some(())
}

/// Draws what stands before the time; gives whether a virtual host is part of it.
fn draw_client<'a>(head: &'a str, sketch: &mut Sketch<'_, 'a>) -> Option<bool> {
    let mut words = head.split(' ');
    let mut take = || words.next().filter(|w| !w.is_empty());
    let (first, second, third) = (take()?, take()?, take()?);
    let fourth = words.next();
    if words.next().is_some() {
        return None;
    }
    let (address, ident, user) = match fourth {
        None => (first, second, third),
        // With four words, a user's name that holds a space looks like a virtual host before the
        // address, but for the ident, which nobody sends any more.
        Some(user) if third == "-" && !user.is_empty() => {
            draw_virtual_host(first, sketch);
            (second, third, user)
        }
        Some(_) => return None,
    };
    sketch.text("remote_addr:t", address);
    sketch.literal(" ");
    draw_word("ident:t", ident, sketch);
    sketch.literal(" ");
    draw_word("user:t", user, sketch);
    Some(fourth.is_some())
}

fn draw_virtual_host<'a>(host: &'a str, sketch: &mut Sketch<'_, 'a>) {
    let port = host.rsplit_once(':').and_then(|(name, port)| {
        let number = canonical_int(port)?;
        Some((name, number))
    });
    match port {
        Some((name, number)) => {
            sketch.text("host:t", name);
            sketch.literal(":");
            sketch.slot("port:i", Value::Int(number));
        }
        None => sketch.text("host:t", host),
    }
    sketch.literal(" ");
}

/// Draws `METHOD target PROTOCOL`, or a request that is something else.
fn draw_request<'a>(request: &'a str, sketch: &mut Sketch<'_, 'a>) {
    let Some((method, target, protocol)) = parts_of(request) else {
        return sketch.text("request:t", request);
    };
    sketch.text("method:t", method);
    sketch.literal(" ");
    match memchr(b'?', target.as_bytes()) {
        Some(mark) => {
            sketch.text("path:t", &target[..mark]);
            sketch.literal("?");
            sketch.text("query:t", &target[mark + 1..]);
        }
        None => sketch.text("path:t", target),
    }
    sketch.literal(" ");
    sketch.text("protocol:t", protocol);
}

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

/// Draws what follows the number of bytes; gives the referer.
fn draw_rest<'a>(
    mut rest: &'a str,
    mut has_host: bool,
    sketch: &mut Sketch<'_, 'a>,
) -> Option<&'a str> {
    let mut referer = "";
    let mut extra = EXTRA.iter();
    let mut known = [REFERER, "agent:t"].iter();
    // Each round takes a value, and there are only so many names.
    while !rest.is_empty() {
        rest = rest.strip_prefix(' ')?;
        sketch.literal(" ");
        let Some(inside) = rest.strip_prefix('"') else {
            let (value, after) = word(rest);
            if value.is_empty() {
                return None;
            }
            sketch.text(extra.next()?, value);
            rest = after;
            continue;
        };
        let end = closing_quote(inside)?;
        let value = &inside[..end];
        let slot = match known.next() {
            Some(slot) => slot,
            // Behind the agent nginx's own example format has a list of forwarded addresses.
            None if !has_host && !value.contains(',') => {
                has_host = true;
                "host:t"
            }
            None => extra.next()?,
        };
        if slot == REFERER {
            referer = value;
        }
        sketch.literal("\"");
        sketch.text(slot, value);
        sketch.literal("\"");
        rest = &inside[end + 1..];
    }
    Some(referer)
}

fn draw_word<'a>(slot: &str, word: &'a str, sketch: &mut Sketch<'_, 'a>) {
    match word {
        "-" => sketch.literal("-"),
        _ => sketch.text(slot, word),
    }
}

fn draw_number(slot: &str, number: &str, sketch: &mut Sketch<'_, '_>) -> Option<()> {
    match number {
        "-" => sketch.literal("-"),
        _ => sketch.slot(slot, Value::Int(canonical_int(number)?)),
    }
    Some(())
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

/// The text up to the next space, and the rest from the space on.
fn word(text: &str) -> (&str, &str) {
    let end = memchr(b' ', text.as_bytes()).unwrap_or(text.len());
    text.split_at(end)
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

//! Common and combined, as nginx and Apache write them, and what others have made of them.
//!
//! ```text
//! [vhost:port ]addr ident user [time] "request" status bytes[ "referer" "agent"[ "host"]][ extra…]
//! ```
//!
//! `-` for ident, user, status or bytes is literal: the field is missing. Quoted values keep their text as it
//! is, escapes and `-` included. Instead of the address may stand the list of `X-Forwarded-For`, whose first
//! address is the client's. Values behind the agent have names in lines of ingress-nginx and Traefik; others
//! are `extra1` and so on, and never cost the line its fields.

use memchr::memchr;

use super::clock::{BRACKETED, Clock};
use super::closing_quote;
use super::columns::{Column, Pen, SECOND, Take, TrailingValue, column, inside_brackets};
use crate::intake::levels;

/// The values behind the agent in ingress-nginx's default format.
const INGRESS: [(&str, Take); 9] = [
    ("request_length", Take::Number),
    ("request_time", Take::Took(SECOND)),
    ("proxy_upstream_name", Take::Text),
    ("proxy_alternative_upstream_name", Take::Text),
    ("upstream_addr", Take::Text),
    ("upstream_response_length", Take::Text),
    ("upstream_response_time", Take::Text),
    ("upstream_status", Take::Text),
    ("req_id", Take::Text),
];

/// The values behind the agent in Traefik's format `common`.
const TRAEFIK: [(&str, Take); 4] = [
    ("request_count", Take::Number),
    ("router_name", Take::Text),
    ("service_url", Take::Text),
    ("duration_ms", Take::TookMs),
];

/// The values behind the bytes in APISIX's default format.
const APISIX: [(&str, Take); 7] = [
    ("request_time", Take::Took(SECOND)),
    ("referer", Take::Plain),
    ("agent", Take::Plain),
    ("upstream_addr", Take::Text),
    ("upstream_status", Take::Text),
    ("upstream_response_time", Take::Text),
    ("upstream_url", Take::Text),
];

/// The parts of a line of PHP-FPM.
const METHOD: [Column; 1] = [column("method", Take::Method, " ")];
const STATUS: [Column; 1] = [column("status", Take::Status, "")];

/// The slot of the agent, behind which values may have names.
const AGENT: &str = "agent:t";

/// The slot of the host.
const HOST: &str = "host:t";

/// Draws a line; `None` if it is none.
pub(super) fn draw<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    let bracket = bracket_of_time(line.as_bytes())?;
    if !may_be_name(line.split(' ').next()?) {
        return None;
    }
    let has_host = client(line.get(..bracket.checked_sub(1)?)?, pen)?;
    pen.sketch.literal(" [");
    let after = time(&line[bracket + 1..], pen)?;
    pen.sketch.literal("] \"");
    let after = after.strip_prefix("] \"")?;
    let end = closing_quote(after)?;
    pen.request(&after[..end]);
    pen.sketch.literal("\" ");
    let (status, after) = word(after[end + 1..].strip_prefix(' ')?);
    let (bytes, after) = word(after.strip_prefix(' ')?);
    pen.answer(status, bytes)?;
    rest(after, has_host, pen);
    Some(())
}

/// Draws a line whose time has no brackets, as Adobe Experience Manager writes it.
pub(super) fn bare<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    let mut blanks = memchr::memchr_iter(b' ', line.as_bytes());
    let start = blanks.nth(2)?;
    let has_host = client(&line[..start], pen)?;
    pen.sketch.literal(" ");
    let after = pen.usual_time(&line[start + 1..])?;
    pen.sketch.literal(" \"");
    let after = after.strip_prefix(" \"")?;
    let end = closing_quote(after)?;
    pen.request(&after[..end]);
    pen.sketch.literal("\" ");
    let (status, after) = word(after[end + 1..].strip_prefix(' ')?);
    let (bytes, after) = word(after.strip_prefix(' ')?);
    pen.answer(status, bytes)?;
    rest(after, has_host, pen);
    Some(())
}

/// Draws a line of PHP-FPM: no user, no protocol, and nothing behind the status.
pub(super) fn fpm<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    let (address, rest) = line.split_once(" -  ")?;
    if !is_address(address) {
        return None;
    }
    pen.address(address);
    pen.sketch.literal(" -  ");
    let rest = pen.usual_time(rest)?;
    pen.sketch.literal(" \"");
    let rest = pen.columns(rest.strip_prefix(" \"")?, &METHOD)?;
    let end = closing_quote(rest)?;
    pen.target(&rest[..end]);
    pen.sketch.literal("\" ");
    let rest = pen.columns(rest[end..].strip_prefix("\" ")?, &STATUS)?;
    rest.is_empty().then_some(())
}

/// Draws a line whose host stands behind the time, as APISIX writes it.
pub(super) fn hosted<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    let bracket = bracket_of_time(line.as_bytes())?;
    let has_host = client(line.get(..bracket.checked_sub(1)?)?, pen)?;
    pen.sketch.literal(" [");
    let after = pen.usual_time(&line[bracket + 1..])?;
    pen.sketch.literal("] ");
    let (host, after) = after.strip_prefix("] ")?.split_once(" \"")?;
    if has_host || host.contains(' ') {
        return None;
    }
    pen.host(host);
    pen.sketch.literal(" \"");
    let end = closing_quote(after)?;
    pen.request(&after[..end]);
    pen.sketch.literal("\" ");
    let (status, after) = word(after[end + 1..].strip_prefix(' ')?);
    let (bytes, after) = word(after.strip_prefix(' ')?);
    pen.answer(status, bytes)?;
    pen.trailing(after, &APISIX);
    Some(())
}

/// The first bracket that opens no address.
pub(super) fn bracket_of_time(line: &[u8]) -> Option<usize> {
    let bracket = memchr(b'[', line)?;
    match bracketed_address(&line[bracket..]) {
        Some(bytes) => Some(bracket + bytes + memchr(b'[', &line[bracket + bytes..])?),
        None => Some(bracket),
    }
}

/// The bytes of an address of version 6 in brackets that a text begins with, and of the blank behind it.
fn bracketed_address(line: &[u8]) -> Option<usize> {
    const ADDRESS_BYTES_MAX: usize = 47;
    let inside = line.strip_prefix(b"[")?;
    let is_part = |byte: &&u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
    let length = inside
        .iter()
        .take(ADDRESS_BYTES_MAX)
        .take_while(is_part)
        .count();
    let is_address = inside[..length]
        .iter()
        .filter(|byte| **byte == b':')
        .count()
        >= 2;
    (is_address && inside[length..].starts_with(b"] ")).then_some(length + 2)
}

/// Draws the time, which may be in another form than the usual one.
fn time<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<&'a str> {
    if let Some(after) = pen.usual_time(text) {
        return Some(after);
    }
    let ends = |after: &&str| after.starts_with("] \"");
    let is_likely =
        |clock: &&Clock| **clock != Clock::Cpanel || text[..].get(20..25) == Some("-0000");
    let found = BRACKETED.iter().filter(is_likely).find_map(|clock| {
        let read = clock.read(text.as_bytes(), pen.times)?;
        text.get(read.bytes..).filter(ends)?;
        pen.time(text, *clock)
    });
    // WEBrick and SOGo have the name of a zone, Proxmox the month as a number.
    found.or_else(|| pen.any_time(text, "] \""))
}

/// Draws what stands before the time; gives true if a virtual host is part of it.
fn client<'a>(head: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<bool> {
    if let Some(comma) = memchr(b',', head.as_bytes()) {
        return client_of_list(head, comma, pen);
    }
    let mut words = head.split(' ');
    let mut take = || words.next().filter(|word| !word.is_empty());
    let first = take()?;
    let Some(second) = take() else {
        // Formats of one's own often leave out what nobody sends.
        return (first.len() == head.len() && is_address(first)).then(|| {
            pen.address(first);
            false
        });
    };
    let Some(third) = take() else {
        let is_all = first.len() + 1 + second.len() == head.len();
        return (is_all && is_address(first)).then(|| {
            pen.address(first);
            pen.sketch.literal(" ");
            pen.text("user", second);
            false
        });
    };
    let Some(fourth) = words.next() else {
        pen.address(first);
        return owner(second, third, pen);
    };
    if second == "-" && third != "-" {
        // A user's name with blanks.
        pen.address(first);
        return owner(second, &head[first.len() + " - ".len()..], pen);
    }
    // With four words, a user's name that holds a space looks like a virtual host before the
    // address, but for the ident, which nobody sends any more.
    if fourth.is_empty() || third != "-" && !is_address(second) {
        return None;
    }
    if third != "-" {
        pen.host(first);
        pen.sketch.literal(" ");
        pen.address(second);
        words.next().is_none().then_some(())?;
        return owner(third, fourth, pen).map(|_| true);
    }
    pen.host(first);
    pen.sketch.literal(" ");
    pen.address(second);
    pen.sketch.literal(" - ");
    match words.next() {
        None => pen.text("user", fourth),
        // BunkerWeb has the request's id before the user.
        Some(user) if !user.is_empty() && words.next().is_none() => {
            pen.text("request_id", fourth);
            pen.sketch.literal(" ");
            pen.text("user", user);
        }
        Some(_) => return None,
    }
    Some(true)
}

/// True for addresses of version 4 and 6.
fn is_address(word: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_hexdigit() || matches!(byte, b'.' | b':');
    let word = inside_brackets(word).unwrap_or(word);
    word.len() >= 3 && word.bytes().all(is_part) && word.contains(['.', ':']) && !is_clock(word)
}

/// True for a word that can name a machine. Heads of loggers and container tools are none: a time, a level, a name that a
/// colon ends, `INFO:werkzeug:192.0.2.7`.
fn may_be_name(word: &str) -> bool {
    let bytes = word.as_bytes();
    let is_time = bytes.len() > 10 && bytes[4] == b'-' && bytes[7] == b'-' && bytes[10] == b'T';
    let is_level = bytes.iter().all(u8::is_ascii_uppercase) && levels::is_word(bytes);
    let is_logger = || {
        let is_hex = |byte: u8| byte.is_ascii_hexdigit() || b".:%[]".contains(&byte);
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        word.rsplit_once(':').is_some_and(|(name, last)| {
            name.contains(':') && !is_number(last) && !word.bytes().all(is_hex)
        })
    };
    // nginx names clients of a socket so.
    let is_head = word.ends_with(':') && word != "unix:";
    !(is_time || is_level || is_head || is_clock(word) || is_logger())
}

/// True for `00:51:25`, with which the line of another logger begins.
fn is_clock(word: &str) -> bool {
    matches!(word.as_bytes(), [_, _, b':', _, _, b':', _, _])
}

/// Draws ident and user, which stand behind the address.
fn owner<'a>(ident: &'a str, user: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<bool> {
    if ident == "-" {
        pen.sketch.literal(" - ");
        pen.text("user", user);
        return Some(false);
    }
    pen.sketch.literal(" ");
    // lighttpd has the virtual host there.
    let is_host = ident.contains(['.', ':']) || ident == "localhost";
    if is_host {
        pen.host(ident);
    } else {
        pen.text("ident", ident);
    }
    pen.sketch.literal(" ");
    pen.text("user", user);
    Some(is_host)
}

/// Draws what stands before the time where that holds a list of addresses: of nodes that passed the request on.
fn client_of_list<'a>(head: &'a str, comma: usize, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<bool> {
    let start = head[..comma].rfind(' ').map_or(0, |blank| blank + 1);
    if is_clock(&head[start..comma]) {
        return None;
    }
    if start > 0 {
        let host = &head[..start - 1];
        if host.is_empty() || host.contains(' ') {
            return None;
        }
        pen.host(host);
        pen.sketch.literal(" ");
    }
    let (open, list) = match head[start..].strip_prefix('"') {
        Some(list) => ("\"", list),
        None => ("", &head[start..]),
    };
    let length = match open {
        "" => list_bytes(list),
        _ => memchr(b'"', list.as_bytes())?,
    };
    pen.sketch.literal(open);
    pen.forwarded(&list[..length]);
    pen.sketch.literal(open);
    let after = list[length..].strip_prefix(open)?.strip_prefix(' ')?;
    let (ident, user) = after.split_once(' ')?;
    let has_host = owner(ident, user, pen)?;
    Some(has_host || start > 0)
}

/// The length of a list: each word that a comma ends has another one behind it.
fn list_bytes(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut blanks = memchr::memchr_iter(b' ', bytes);
    let end = blanks.find(|&at| !bytes[..at].ends_with(b","));
    end.unwrap_or(text.len())
}

/// Draws ` Print-Job successful-ok`, the operation and the status that CUPS has behind the number of bytes; gives the rest.
fn ipp<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<&'a str> {
    const STATUSES: [&str; 5] = [
        "successful-ok",
        "client-error-",
        "server-error-",
        "redirection-",
        "informational",
    ];
    let (operation, behind) = text.strip_prefix(' ')?.split_once(' ')?;
    let length = behind.find(' ').unwrap_or(behind.len());
    let (status, rest) = behind.split_at(length);
    let is_status = STATUSES.iter().any(|start| status.starts_with(start));
    let is_operation = operation.starts_with(|first: char| first.is_ascii_uppercase());
    (is_status && is_operation).then(|| {
        pen.sketch.literal(" ");
        pen.text("ipp_operation", operation);
        pen.sketch.literal(" ");
        pen.text("ipp_status", status);
        rest
    })
}

/// Draws what follows the number of bytes.
fn rest<'a>(mut rest: &'a str, has_host: bool, pen: &mut Pen<'_, '_, 'a, '_>) {
    if let Some(behind) = ipp(rest, pen) {
        rest = behind;
    }
    let mut known = ["referer:t", AGENT].iter();
    let (mut has_third, mut is_apart) = (false, false);
    let mut pairs = 0;
    // Each round takes a value, and there are only so many names.
    while let Some(value) = rest.strip_prefix(' ').and_then(TrailingValue::read) {
        // Behind a bare value, such as a duration, referer and agent still stand side by side.
        is_apart |= !value.is_quoted();
        let is_known = value.is_quoted() && !(is_apart && known.len() == 2 && !is_pair(value.rest));
        let slot = if is_known {
            known.next().copied()
        } else {
            None
        };
        if known.len() == 0
            && let Some((name, quoted)) = named(&value)
        {
            pen.named_value(name, &value, &quoted);
            rest = quoted.rest;
            continue;
        }
        if known.len() == 0
            && pairs < PAIRS_MAX
            && let Some((name, label, own)) = paired(&value, pen)
        {
            pairs += 1;
            pen.paired_value(label, name, label_take(label), own);
            rest = value.rest;
            continue;
        }
        if let Some(slot) = slot {
            pen.quoted(slot, value.text);
        } else if let Some(slot) = third(&value).filter(|_| !has_third && known.len() == 0) {
            has_third = true;
            let is_host = slot == HOST;
            if is_host && (has_host || pen.has_host()) {
                let Some(name) = pen.next_extra() else { break };
                pen.trailing_value(name, Take::Plain, &value);
            } else {
                pen.quoted(slot, value.text);
            }
        } else if let Some(name) = pen.next_extra() {
            pen.trailing_value(name, Take::Plain, &value);
        } else {
            break;
        }
        rest = value.rest;
        if slot == Some(AGENT) {
            rest = pen.named(rest, names_of(rest));
        }
    }
    pen.surplus(rest);
}

/// The most pairs behind the agent.
const PAIRS_MAX: usize = 32;

/// The most bytes of a name before an equals sign.
const LABEL_BYTES_MAX: usize = 32;

/// Labels that nginx's documentation and its users give its variables.
const LABELS: [(&str, &str); 6] = [
    ("rt", "request_time"),
    ("uct", "upstream_connect_time"),
    ("uht", "upstream_header_time"),
    ("urt", "upstream_response_time"),
    ("ua", "upstream_addr"),
    ("us", "upstream_status"),
];

/// The name of the field of `rt=0.123` and `urt="0.120"`, the label and the value, quotes included.
fn paired<'a>(
    value: &TrailingValue<'a>,
    pen: &Pen<'_, '_, 'a, '_>,
) -> Option<(&'a str, &'a str, &'a str)> {
    let (label, own) = value.text.split_once('=').filter(|_| value.is_bare())?;
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_label = (1..=LABEL_BYTES_MAX).contains(&label.len())
        && label.bytes().all(is_part)
        && label.as_bytes()[0].is_ascii_alphabetic();
    let mut known = LABELS.iter();
    let name = known.find(|(known, _)| *known == label);
    let name = name.map_or(label, |(_, name)| name);
    let is_whole = own.len() > 1 && own.starts_with('"') == own.ends_with('"')
        || own.len() == 1 && own != "\"";
    let is_free = !pen.sketch.has_slot(name.as_bytes());
    (is_label && is_whole && is_free).then_some((name, label, own))
}

/// The kind of a value by its label: the time of the request is its duration.
fn label_take(label: &str) -> Take {
    if matches!(label, "rt" | "request_time") {
        Take::Took(SECOND)
    } else {
        Take::Text
    }
}

/// Names that stand before values in quotes, with a colon: Kong's.
const NAMED: [(&str, &str); 1] = [("kong_request_id:", "request_id")];

/// The name of the next value, if this one is its label, and that value.
fn named<'a>(label: &TrailingValue<'a>) -> Option<(&'static str, TrailingValue<'a>)> {
    let (_, name) = NAMED.iter().find(|(known, _)| *known == label.text)?;
    let value = label.rest.strip_prefix(' ').and_then(TrailingValue::read)?;
    value.is_quoted().then_some((*name, value))
}

/// True if the next value is in quotes.
fn is_pair(rest: &str) -> bool {
    let next = rest.strip_prefix(' ').and_then(TrailingValue::read);
    next.is_some_and(|value| value.is_quoted())
}

/// The slot of the first quoted value behind the agent: a host, or the list of addresses that nginx's own example
/// format has there. A lone address is a host: servers are asked for by their address, too. `None` for what
/// tells neither.
fn third(value: &TrailingValue<'_>) -> Option<&'static str> {
    let is_listed = |byte: u8| byte.is_ascii_hexdigit() || b".:, ".contains(&byte);
    let is_list = |text: &str| {
        text.contains(", ") && text.bytes().all(is_listed) && text.split(", ").all(is_address)
    };
    match value.text {
        _ if !value.is_quoted() => None,
        "-" | "" => None,
        text if is_list(text) => Some("http_x_forwarded_for:t"),
        text if text.contains([',', ' ']) => None,
        _ => Some(HOST),
    }
}

/// The names of the values behind the agent, by the first of them.
fn names_of(rest: &str) -> &'static [(&'static str, Take)] {
    if !rest.starts_with(' ') || rest.starts_with(" \"") {
        return &[];
    }
    let mut values = [""; 4];
    let mut behind = rest;
    for text in &mut values {
        let Some(value) = behind.strip_prefix(' ').and_then(TrailingValue::read) else {
            break;
        };
        *text = &behind[1..behind.len() - value.rest.len()];
        behind = value.rest;
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let [first, second, third, fourth] = values;
    if !is_number(first) {
        &[]
    } else if second.contains('.') && third.starts_with('[') && fourth.starts_with('[') {
        &INGRESS
    } else if second.starts_with('"') && third.starts_with('"') && fourth.ends_with("ms") {
        &TRAEFIK
    } else {
        &[]
    }
}

/// The text up to the next space, and the rest from the space on.
fn word(text: &str) -> (&str, &str) {
    let end = memchr(b' ', text.as_bytes()).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_machines_are_told_from_heads_of_loggers() {
        for name in [
            "unix:",
            "192.0.2.7",
            "::1",
            "[2001:db8::1]",
            "www.example.org",
            "example.org:443",
        ] {
            assert!(may_be_name(name), "{name}");
        }
        for head in [
            "nginx:",
            "INFO",
            "00:51:25",
            "INFO:werkzeug:192.0.2.7",
            "2026-11-27T00:51:25Z",
        ] {
            assert!(!may_be_name(head), "{head}");
        }
    }
}

//! Names within messages of servers: fields that are made beside the message, which stays whole.
//!
//! A text of a client may stand in a message. A value is taken only where the product has put quotes or brackets
//! around it, and where it has none of them within.

use std::borrow::Cow;

use logpond_record::Value;
use memchr::{memchr_iter, memmem};

use super::{Pen, firewalls, sentences};
use crate::intake::access::{canonical_int, closing_quote};
use crate::intake::logfmt;

/// The most bytes of a message that are looked at.
const MESSAGE_BYTES_MAX: usize = 1 << 10;

/// The length of a UUID.
const UUID_BYTES: usize = 36;

/// Starts of messages of MySQL and MariaDB about a connection.
const MYSQL: [&str; 2] = ["Access denied for user ", "Aborted connection "];

/// `Access denied for user 'lena'@'192.0.2.7' (using password: YES)` and
/// `Aborted connection 77 to db: 'shop' user: 'lena' host: '192.0.2.7' (…)`.
pub(super) fn mysql<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) {
    pen.sketch.message(text.as_bytes());
    if text.len() > MESSAGE_BYTES_MAX || !MYSQL.iter().any(|start| text.starts_with(start)) {
        return;
    }
    let (user, host) = match text.strip_prefix(MYSQL[0]) {
        Some(account) => {
            let (user, host) = account.split_once("'@'").unwrap_or_default();
            (user.strip_prefix('\''), host.split('\'').next())
        }
        None => (quoted(text, " user: '"), quoted(text, " host: '")),
    };
    let database = quoted(text, " db: '").or(quoted(text, " to database '"));
    let is_plain = |value: &&str| !value.contains(['\'', ' ']);
    let host = host.filter(is_plain);
    let address = host.filter(|host| sentences::is_address(host));
    // Names as the log of slow statements has them.
    let fields = [
        ("user", user.filter(is_plain)),
        ("client", host),
        ("remote_addr", address),
        ("schema", database.filter(is_plain)),
    ];
    for (name, value) in fields {
        pen.make_text(name, value.unwrap_or_default());
    }
}

/// The text behind a label, up to the quote that ends it; `None` if the label is there more than once.
fn quoted<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    let (_, behind) = text.split_once(label)?;
    if behind.contains(label) {
        return None;
    }
    behind.split('\'').next()
}

/// `closing AMQP connection <0.222.0> (192.0.2.7:41000 -> 192.0.2.8:5672, vhost: '/', user: 'lena')`
pub(super) fn rabbitmq<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) {
    pen.sketch.message(text.as_bytes());
    let line = text.lines().next().unwrap_or_default();
    if line.len() > MESSAGE_BYTES_MAX {
        return;
    }
    let Some((before, behind)) = line.split_once(" -> ") else {
        return;
    };
    let client = before.rsplit_once('(').map_or("", |(_, client)| client);
    let Some((address, port)) = client.rsplit_once(':') else {
        return;
    };
    let address = address.trim_matches(['[', ']']);
    if let (true, Some(port)) = (sentences::is_address(address), canonical_int(port)) {
        pen.make_text("remote_addr", address);
        pen.make("remote_port", Value::Int(port));
    }
    for (name, label) in [("vhost", ", vhost: '"), ("user", ", user: '")] {
        pen.make_text(name, quoted(behind, label).unwrap_or_default());
    }
}

/// `client @0x7f 192.0.2.7#41000 (example.org): query: example.org IN A +E(0)K (10.0.0.7)` of BIND's own file.
pub(super) fn query<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    if !text.starts_with("client ") || text.len() > MESSAGE_BYTES_MAX {
        return None;
    }
    let mut made = Vec::new();
    firewalls::query(text, &mut made)?;
    made.retain(|(name, _)| !(pen.is_within && pen.sketch.has_slot(name.as_bytes())));
    pen.beside.fields.append(&mut made);
    Some(())
}

/// Names of the firewalls whose messages have tags.
const FIREWALLS: [&str; 2] = ["ModSecurity: ", "Coraza: "];

/// Their tags with the names of the fields. The severity is that of the rule: the server says the line's level.
const TAGS: [(&str, &str); 16] = [
    ("file", "file"),
    ("line", "line"),
    ("id", "id"),
    ("rev", "rev"),
    ("msg", "msg"),
    ("data", "data"),
    ("severity", "rule_severity"),
    ("ver", "ver"),
    ("maturity", "maturity"),
    ("accuracy", "accuracy"),
    (TAG, TAG),
    ("hostname", "hostname"),
    ("uri", "uri"),
    ("unique_id", "unique_id"),
    ("ref", "ref"),
    ("client", "client"),
];

/// The tag that may be there more than once: its field is then a list.
const TAG: &str = "tag";

/// Fields that are text, also if they have digits only.
const TEXTS: [&str; 6] = ["data", "msg", "ref", "ver", "unique_id", "uri"];

/// The most tags of a message, and the most places where they are tried to begin.
const TAGS_MAX: usize = 64;

/// The longest message with tags.
const TAGGED_BYTES_MAX: usize = 16 << 10;

/// `ModSecurity: Warning. … [id "942100"] [msg "…"] [tag "…"] [tag "…"] [uri "/cart"]`: the tags are those from
/// which all is tags. A request's data stands before them, and within them its quotes are escaped.
pub(super) fn firewall<'a>(message: &'a str, pen: &mut Pen<'_, '_, 'a>) {
    let is_one = |name: &&str| memmem::find(message.as_bytes(), name.as_bytes()).is_some();
    let is_short = message.len() <= TAGGED_BYTES_MAX;
    if !message.ends_with("\"]") || !is_short || !FIREWALLS.iter().any(is_one) {
        return;
    }
    let starts = memchr_iter(b'[', message.as_bytes()).take(TAGS_MAX);
    let Some(tags) = { starts }.find_map(|start| tags(&message[start..])) else {
        return;
    };
    for (known, name) in TAGS {
        let values = tags.iter().filter(|(key, _)| *key == known);
        let values = values.map(|(_, value)| *value).filter(|v| !v.is_empty());
        let values: Vec<&str> = values.collect();
        match values[..] {
            [] => {}
            [_, _, ..] if known == TAG => {
                let json = serde_json::Value::from(values).to_string();
                pen.make(name, Value::Json(Cow::Owned(json)));
            }
            [value, ..] => match logfmt::bare_value(value) {
                (read, b'i', true) if !TEXTS.contains(&name) => pen.make(name, read),
                _ => pen.make_text(name, value),
            },
        }
    }
}

/// The tags of a text that has nothing else.
fn tags(text: &str) -> Option<Vec<(&str, &str)>> {
    let mut tags = Vec::new();
    let mut rest = text;
    while tags.len() < TAGS_MAX {
        let (name, inside) = rest.strip_prefix('[')?.split_once(" \"")?;
        if !TAGS.iter().any(|(known, _)| *known == name) {
            return None;
        }
        let end = closing_quote(inside)?;
        tags.push((name, &inside[..end]));
        rest = inside[end..].strip_prefix("\"]")?;
        if rest.trim_end_matches(' ').is_empty() {
            return Some(tags);
        }
        rest = rest.strip_prefix(' ')?;
    }
    None
}

/// `child 77 exited with code 0 after 12.3 seconds from start`, and `fpm is running, pid 1`.
pub(super) fn fpm<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) {
    pen.sketch.message(text.as_bytes());
    let child = text
        .strip_prefix("child ")
        .map(|rest| rest.split(' ').next());
    let own = text.strip_prefix("fpm is running, pid ").map(Some);
    if let Some(pid) = child.or(own).flatten().and_then(canonical_int) {
        pen.make("pid", Value::Int(pid));
    }
}

/// `[6c2f…] Started GET "/cart" for 192.0.2.7 at …`: a sentence of Rails behind its tags, of which a UUID is the request.
pub(super) fn ruby<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) {
    pen.sketch.message(text.as_bytes());
    let tag = text
        .strip_prefix('[')
        .and_then(|inside| inside.split_once("] "));
    if let Some((tag, _)) = tag.filter(|(tag, _)| is_uuid(tag)) {
        pen.make_text("request_id", tag);
    }
    for (name, value) in sentences::fields(None, text) {
        if !(pen.is_within && pen.sketch.has_slot(name.as_bytes())) {
            pen.beside.fields.push((name, value));
        }
    }
}

fn is_uuid(text: &str) -> bool {
    text.len() == UUID_BYTES
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

//! Fields of daemons' sentences, and of sentences of Rails: they are made beside the message, which stays whole.
//!
//! A text of a client may stand in a sentence. A value is taken only where it stands behind all such text, or where it
//! cannot hold what follows it.

use std::borrow::Cow;

use logpond_record::Value;
use memchr::memchr;

use super::{daemons, firewalls, named, requests};
use crate::intake::access::{canonical_int, seconds_with_unit};
use crate::intake::{logfmt, timestamps};

/// Longer sentences are not looked at.
const SENTENCE_BYTES_MAX: usize = 4 << 10;

/// Bytes of the id of a request.
const ID_BYTES: usize = 36;

/// The most fields of a sentence.
const FIELDS_MAX: usize = 24;

/// Starts of sentences of Rails.
const RAILS: [&str; 3] = ["Started ", "Completed ", "Processing by "];

/// Starts of sentences of AWS Lambda's platform.
const LAMBDA: [&str; 4] = [
    "REPORT RequestId: ",
    "START RequestId: ",
    "END RequestId: ",
    "RequestId: ",
];

/// Labels of its reports with the fields that they are, each with its unit.
const REPORT: [(&str, &str, &str); 6] = [
    ("Duration", " ms", "duration_s"),
    ("Billed Duration", " ms", "billed_duration_s"),
    ("Init Duration", " ms", "init_duration_s"),
    ("Restore Duration", " ms", "restore_duration_s"),
    ("Memory Size", " MB", "memory_size_mb"),
    ("Max Memory Used", " MB", "max_memory_used_mb"),
];

/// Fields that are made of a sentence.
type Made<'a> = Vec<(Cow<'a, str>, Value<'a>)>;

/// Names behind which Postfix writes values.
const POSTFIX: [(&str, &str); 17] = [
    ("to", "to"),
    ("orig_to", "orig_to"),
    ("from", "from"),
    ("relay", "relay"),
    ("delay", "delay"),
    ("delays", "delays"),
    ("dsn", "dsn"),
    ("status", "status"),
    ("size", "size"),
    ("nrcpt", "nrcpt"),
    ("message-id", "message_id"),
    ("client", "client"),
    ("sasl_username", "user"),
    ("sasl_method", "sasl_method"),
    ("proto", "protocol"),
    ("helo", "helo"),
    ("uid", "uid"),
];

/// The same of Dovecot.
const DOVECOT: [(&str, &str); 8] = [
    ("user", "user"),
    ("method", "auth_method"),
    ("rip", "remote_addr"),
    ("lip", "local_addr"),
    ("rport", "remote_port"),
    ("lport", "local_port"),
    ("mpid", "mpid"),
    ("session", "session"),
];

/// True for a name of a daemon whose sentences are read.
pub(crate) fn is_daemon(name: &str) -> bool {
    matches!(
        name,
        "sshd"
            | "sshd-session"
            | "sshd-auth"
            | "dovecot"
            | "dnsmasq"
            | "kernel"
            | "filterlog"
            | "named"
    ) || name.starts_with("postfix")
        || daemons::is_one(name)
}

/// Makes the fields of a message that a program has sent.
pub(crate) fn fields<'a>(program: Option<&str>, message: &'a str) -> Made<'a> {
    let mut made = Vec::new();
    let program = program.unwrap_or_default();
    let message = if program.is_empty() {
        if LAMBDA.iter().any(|start| message.starts_with(start)) {
            lambda(message, &mut made);
            return made;
        }
        if let Some(alert) = daemons::alert_of_file(message) {
            daemons::alert(alert, &mut made);
            return made;
        }
        if named::is_of_kernel(message) {
            let read = firewalls::netfilter(message, &mut made);
            read.or_else(|| named::wireguard(message, &mut made))
                .unwrap_or_default();
            return made;
        }
        let untagged = untagged(message);
        if !RAILS.iter().any(|start| untagged.starts_with(start)) {
            return requests::of_text(message);
        }
        untagged
    } else {
        message
    };
    if message.len() > SENTENCE_BYTES_MAX || message.contains('\n') {
        return made;
    }
    let read = match program {
        "sshd" | "sshd-session" | "sshd-auth" => sshd(message, &mut made),
        "dovecot" => dovecot(message, &mut made),
        "dnsmasq" => dnsmasq(message, &mut made),
        "kernel" => firewalls::netfilter(message, &mut made)
            .or_else(|| named::wireguard(message, &mut made)),
        "filterlog" => firewalls::pf(message, &mut made),
        "named" => firewalls::query(message, &mut made),
        _ if program.starts_with("postfix") => postfix(message, &mut made),
        "" => rails(message, &mut made),
        name => daemons::read(name, message, &mut made),
    };
    if read.is_none() {
        made.clear();
        if daemons::pam(message, &mut made).is_none() {
            made.clear();
        }
    }
    made
}

/// The text behind the tags that Rails writes of a request.
fn untagged(message: &str) -> &str {
    let behind = timestamps::behind_tags(message.as_bytes());
    &message[message.len() - behind.len()..]
}

fn put<'a>(made: &mut Made<'a>, name: &'static str, value: &'a str) {
    let is_there = made.iter().any(|(known, _)| known == name);
    if value.is_empty() || is_there || made.len() >= FIELDS_MAX {
        return;
    }
    let (read, _, _) = logfmt::bare_value(value);
    made.push((name.into(), read));
}

fn put_text<'a>(made: &mut Made<'a>, name: &'static str, value: &'a str) {
    if !value.is_empty() {
        made.push((name.into(), Value::Str(value.into())));
    }
}

pub(super) fn is_address(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_hexdigit() || b".:%".contains(&byte);
    text.contains(['.', ':']) && text.bytes().all(is_part)
}

/// `Failed password for invalid user lena from 192.0.2.7 port 41000 ssh2`: the address is the last one, since the
/// name of the user may hold one.
fn sshd<'a>(message: &'a str, made: &mut Made<'a>) -> Option<()> {
    const STARTS: [&str; 11] = [
        "Accepted ",
        "Failed ",
        "Postponed ",
        "Invalid user ",
        "Connection closed by ",
        "Connection reset by ",
        "Connection from ",
        "Disconnected from ",
        "Disconnecting ",
        "Received disconnect from ",
        "Unable to negotiate with ",
    ];
    STARTS.iter().find(|start| message.starts_with(**start))?;
    let (head, port) = message.rsplit_once(" port ")?;
    let digits = port.bytes().take_while(u8::is_ascii_digit).count();
    let (before, address) = head.rsplit_once(' ')?;
    if !is_address(address) {
        return None;
    }
    put_text(made, "remote_addr", address);
    made.push((
        "remote_port".into(),
        Value::Int(canonical_int(&port[..digits])?),
    ));
    let user = before.strip_suffix(" from").unwrap_or(before);
    let (rest, method) = match user.split_once(' ') {
        Some(("Accepted" | "Failed" | "Postponed", rest)) => {
            let (method, rest) = rest.split_once(" for ")?;
            (rest, Some(method))
        }
        _ => (user, None),
    };
    if let Some(method) = method.filter(|method| !method.contains(' ')) {
        put_text(made, "auth_method", method);
    }
    const BEFORE_USER: [&str; 6] = [
        "invalid user ",
        "Invalid user ",
        "Connection closed by authenticating user ",
        "Connection closed by invalid user ",
        "Disconnected from user ",
        "Disconnected from authenticating user ",
    ];
    let named = BEFORE_USER
        .iter()
        .find_map(|before| rest.strip_prefix(before));
    let user = named.or(method.map(|_| rest));
    if let Some(user) = user.filter(|user| !user.contains(' ')) {
        put_text(made, "user", user);
    }
    Some(())
}

/// `4ABC12: to=<lena@example.org>, relay=…, delay=1.2, dsn=2.0.0, status=sent (250 OK)`
fn postfix<'a>(message: &'a str, made: &mut Made<'a>) -> Option<()> {
    if let Some(client) = ["connect from ", "disconnect from "]
        .iter()
        .find_map(|start| message.strip_prefix(start))
    {
        return host_and_address(client.split(' ').next()?, made);
    }
    let (id, rest) = message.split_once(": ")?;
    let is_id = id.len() >= 5 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    // `warning: …` and `statistics: …` are no messages of a queue.
    if !is_id || id.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return None;
    }
    put_text(made, "queue_id", id);
    let is_rejected = ["reject: ", "milter-reject: ", "warning: "];
    if is_rejected.iter().any(|start| rest.starts_with(start)) {
        let client = rest.split_once(" from ").map(|(_, client)| client)?;
        return host_and_address(client.split(": ").next()?, made);
    }
    pairs(rest, &POSTFIX, made);
    let client = made.iter().find(|(name, _)| name == "client");
    if let Some((_, Value::Str(Cow::Borrowed(client)))) = client {
        let client: &'a str = client;
        host_and_address(client, made);
    }
    Some(())
}

/// `mx.example.org[192.0.2.7]`
fn host_and_address<'a>(text: &'a str, made: &mut Made<'a>) -> Option<()> {
    let (_, rest) = text.split_once('[')?;
    let (address, _) = rest.split_once(']')?;
    is_address(address).then(|| put_text(made, "remote_addr", address))
}

/// `imap-login: Login: user=<lena>, method=PLAIN, rip=192.0.2.7, lip=192.0.2.8`
fn dovecot<'a>(message: &'a str, made: &mut Made<'a>) -> Option<()> {
    let (service, rest) = message.split_once(": ")?;
    let service = service.split(['(', '<']).next()?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if service.is_empty() || !service.bytes().all(is_name) {
        return None;
    }
    put_text(made, "service", service);
    login(rest, made);
    Some(())
}

/// Makes the fields of what Dovecot says of a session.
pub(super) fn login<'a>(text: &'a str, made: &mut Made<'a>) {
    let behind = text.find("user=<").unwrap_or(text.len());
    pairs(&text[behind..], &DOVECOT, made);
}

/// `query[A] shop.example.org from 192.0.2.7`
fn dnsmasq<'a>(message: &'a str, made: &mut Made<'a>) -> Option<()> {
    // Of queries with their number and their client, `77 192.0.2.7/41000 query[A] …`.
    let query = match message.as_bytes().first()? {
        b'0'..=b'9' => message.splitn(3, ' ').nth(2)?,
        _ => message,
    };
    let (kind, rest) = query.strip_prefix("query[")?.split_once("] ")?;
    let (name, client) = rest.split_once(" from ")?;
    if name.contains(' ') || !is_address(client) {
        return None;
    }
    put_text(made, "query_type", kind);
    put_text(made, "query_name", name);
    put_text(made, "remote_addr", client);
    Some(())
}

/// `name=value` or `name=<value>` with a comma between them, as far as the names are known.
fn pairs<'a>(text: &'a str, names: &[(&str, &'static str)], made: &mut Made<'a>) {
    let mut rest = text;
    for _ in 0..FIELDS_MAX {
        let Some((key, behind)) = rest.split_once('=') else {
            return;
        };
        // Flags such as `TLS` stand between values.
        let key = key.rsplit(' ').next().unwrap_or(key);
        let length = match behind.strip_prefix('<') {
            Some(inside) => memchr(b'>', inside.as_bytes()).map(|end| end + 2),
            None => behind.find([',', ' ', ';']),
        };
        let (value, after) = behind.split_at(length.unwrap_or(behind.len()));
        if let Some((_, name)) = names.iter().find(|(known, _)| *known == key) {
            let inside = value.strip_prefix('<').and_then(|v| v.strip_suffix('>'));
            put(made, name, inside.unwrap_or(value));
        }
        // A remark in parentheses ends the values.
        if after.starts_with(" (") {
            return;
        }
        rest = after.trim_start_matches([',', ' ', ';']);
    }
}

/// `REPORT RequestId: 6c2f… TAB Duration: 12.34 ms TAB Billed Duration: 13 ms TAB Memory Size: 128 MB …`
fn lambda<'a>(message: &'a str, made: &mut Made<'a>) {
    let (_, rest) = message.split_once("RequestId: ").unwrap_or_default();
    let id = rest.split([' ', '\t', '\n']).next().unwrap_or_default();
    let is_id = id.len() == ID_BYTES && id.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    if !is_id {
        return;
    }
    put_text(made, "request_id", id);
    if let Some((_, version)) = rest.split_once(" Version: ") {
        put_text(made, "function_version", version.trim_end());
    }
    for part in rest.split('\t').take(FIELDS_MAX) {
        let Some((label, value)) = part.split_once(": ") else {
            continue;
        };
        let known = REPORT.iter().find(|(known, ..)| *known == label);
        let Some((_, unit, name)) = known else {
            continue;
        };
        let number = value.strip_suffix(unit).unwrap_or_default();
        if let Some(number) = canonical_int(number).filter(|_| *unit == " MB") {
            made.push(((*name).into(), Value::Int(number)));
        } else if let Some(seconds) = seconds_with_unit(value) {
            made.push(((*name).into(), Value::Float(seconds)));
        }
    }
}

/// `Started GET "/cart?step=2" for 192.0.2.7 at …`, `Completed 200 OK in 12ms (…)`, and
/// `Processing by CartController#show as HTML`.
fn rails<'a>(message: &'a str, made: &mut Made<'a>) -> Option<()> {
    if let Some(rest) = message.strip_prefix("Started ") {
        let (method, rest) = rest.split_once(" \"")?;
        let (target, rest) = rest.rsplit_once("\" for ")?;
        let (address, _) = rest.split_once(" at ")?;
        let is_method = !method.is_empty() && method.bytes().all(|b| b.is_ascii_uppercase());
        if !is_method || !is_address(address) {
            return None;
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        put_text(made, "method", method);
        put_text(made, "path", path);
        put_text(made, "query", query);
        put_text(made, "remote_addr", address);
    } else if let Some(rest) = message.strip_prefix("Completed ") {
        let (status, rest) = rest.split_once(' ')?;
        let (_, took) = rest.split_once(" in ")?;
        let took = took.split(' ').next()?;
        let status = canonical_int(status).filter(|status| (100..1000).contains(status))?;
        let seconds = seconds_with_unit(took)?;
        made.push(("status".into(), Value::Int(status)));
        made.push(("duration_s".into(), Value::Float(seconds)));
    } else if let Some(rest) = message.strip_prefix("Processing by ") {
        let (controller, rest) = rest.split_once('#')?;
        let (action, format) = rest.split_once(" as ")?;
        if [controller, action, format]
            .iter()
            .any(|part| part.contains(' '))
        {
            return None;
        }
        put_text(made, "controller", controller);
        put_text(made, "action", action);
        put_text(made, "format", format);
    } else {
        return None;
    }
    Some(())
}

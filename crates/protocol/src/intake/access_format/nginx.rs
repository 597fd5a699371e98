//! nginx's variables: `$name` and `${name}` (ngx_http_log_module, ngx_http_core_module).

use super::compile::{Item, NamedVariable};
use super::{Clock, FieldMeaning, FormatError, FormatReason};

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// Takes a definition apart.
pub(super) fn items(text: &str) -> Result<Vec<Item>, FormatError> {
    let mut items = Vec::new();
    let mut literal = 0;
    let mut at = 0;
    while let Some(found) = text[at..].find('$') {
        let dollar = at + found;
        let (name, end) = name_at(text, dollar)?;
        if name.is_empty() {
            at = dollar + 1;
            continue;
        }
        if literal < dollar {
            items.push(Item::Literal(text[literal..dollar].to_owned()));
        }
        items.push(Item::Named(NamedVariable {
            at: dollar,
            written: text[dollar..end].to_owned(),
            // Names that begin so are the words of intakes.
            own_name: name.trim_start_matches('_').to_owned(),
            meaning: meaning(name.trim_start_matches('_')),
            is_list: is_list(name),
        }));
        literal = end;
        at = end;
    }
    if literal < text.len() {
        items.push(Item::Literal(text[literal..].to_owned()));
    }
    Ok(items)
}

/// The name behind a dollar sign, and where it ends.
fn name_at(text: &str, dollar: usize) -> Result<(&str, usize), FormatError> {
    let after = &text[dollar + 1..];
    if let Some(braced) = after.strip_prefix('{') {
        let Some(end) = braced.find('}') else {
            let (at, reason) = (dollar, FormatReason::Unclosed('{'));
            return Err(FormatError { at, reason });
        };
        return Ok((&braced[..end], dollar + 3 + end));
    }
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let length = after.bytes().take_while(|byte| is_name(byte)).count();
    Ok((&after[..length], dollar + 1 + length))
}

/// What a variable holds. Those that are not listed are text of their own name: servers' modules,
/// `map` and `set` make more of them.
fn meaning(name: &str) -> FieldMeaning {
    let text = |name: &str| FieldMeaning::Text(name.into());
    let plain = |name: &str| FieldMeaning::Plain(name.into());
    let number = |name: &str| FieldMeaning::Number(name.into());
    match name {
        "time_local" => FieldMeaning::Time(Clock::Access, name.into()),
        "time_iso8601" => FieldMeaning::Time(Clock::Iso, name.into()),
        "msec" => FieldMeaning::Time(Clock::Other, name.into()),
        "request" => FieldMeaning::Request,
        "request_uri" => FieldMeaning::Target,
        "request_time" => FieldMeaning::Duration(name.into(), SECOND),
        "request_method" => text("method"),
        "uri" | "document_uri" => text("path"),
        "args" | "query_string" => text("query"),
        "server_protocol" => text("protocol"),
        "remote_user" => text("user"),
        "host" | "http_host" => text("host"),
        "http_referer" => plain("referer"),
        "http_user_agent" => plain("agent"),
        "body_bytes_sent" => number("bytes"),
        "server_port" => number("port"),
        "status"
        | "bytes_sent"
        | "request_length"
        | "connection"
        | "connection_requests"
        | "remote_port" => number(name),
        "pid" => number("worker_pid"),
        _ => text(name),
    }
}

/// Whether a variable's value may be several, with blanks between them: one for each server that
/// was asked.
fn is_list(name: &str) -> bool {
    name.starts_with("upstream_") || name.ends_with("_x_forwarded_for")
}

//! Apache's directives: `%h`, `%>s`, `%{Referer}i` (mod_log_config, mod_logio).

use super::compile::{Item, NamedVariable};
use super::{Clock, FieldMeaning, FormatError, FormatReason};

const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;
const MICROSECOND: u64 = 1_000;

/// Forms of `%{…}t` that are recognised when they are read.
const TIME_FORMATS: [&str; 14] = [
    "sec",
    "msec",
    "usec",
    "%s",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M:%S%z",
    "%Y-%m-%dT%H:%M:%SZ",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M:%S %z",
    "%FT%T",
    "%FT%T%z",
    "%F %T",
    "%d/%b/%Y:%H:%M:%S %z",
    "%d/%b/%Y:%T %z",
];

/// Takes a definition apart.
pub(super) fn items(text: &str) -> Result<Vec<Item>, FormatError> {
    let mut items = Vec::new();
    let mut literal = String::new();
    let mut at = 0;
    while let Some(found) = text[at..].find('%') {
        let percent = at + found;
        literal.push_str(&text[at..percent]);
        let directive = directive(text, percent)?;
        at = directive.end;
        if directive.letter == "%" {
            literal.push('%');
            continue;
        }
        let named = named(&directive, percent, &text[percent..at])?;
        let (before, behind) = match named.meaning {
            FieldMeaning::Time(Clock::Access, _) if directive.argument.is_none() => ("[", "]"),
            _ => ("", ""),
        };
        literal.push_str(before);
        if !literal.is_empty() {
            items.push(Item::Literal(std::mem::take(&mut literal)));
        }
        join_query(&mut items, named);
        literal.push_str(behind);
    }
    literal.push_str(&text[at..]);
    if !literal.is_empty() {
        items.push(Item::Literal(literal));
    }
    Ok(items)
}

/// One directive as it is written.
struct Directive<'t> {
    argument: Option<&'t str>,
    letter: &'t str,
    end: usize,
}

/// Reads `%`, conditions and marks (`!200,304`, `<`, `>`), `{argument}` and the letters.
fn directive(text: &str, percent: usize) -> Result<Directive<'_>, FormatError> {
    let is_mark = |byte: &u8| matches!(byte, b'!' | b',' | b'<' | b'>' | b'0'..=b'9');
    let marks = text[percent + 1..].bytes().take_while(is_mark).count();
    let mut at = percent + 1 + marks;
    let mut argument = None;
    if let Some(inside) = text[at..].strip_prefix('{') {
        let Some(end) = inside.find('}') else {
            let (at, reason) = (at, FormatReason::Unclosed('{'));
            return Err(FormatError { at, reason });
        };
        argument = Some(&inside[..end]);
        at += end + 2;
    }
    let rest = &text[at..];
    let length = match rest.as_bytes() {
        [b'^', b't', b'i' | b'o', ..] => 3,
        _ => rest.chars().next().map_or(0, char::len_utf8),
    };
    Ok(Directive {
        argument,
        letter: &rest[..length],
        end: at + length,
    })
}

fn named(
    directive: &Directive<'_>,
    at: usize,
    written: &str,
) -> Result<NamedVariable, FormatError> {
    let error = |reason| Err(FormatError { at, reason });
    let text = |name: &str| FieldMeaning::Text(name.into());
    let number = |name: &str| FieldMeaning::Number(name.into());
    let (own_name, meaning) = match (directive.letter, directive.argument) {
        ("h", _) | ("a", None) => ("remote_addr".to_owned(), text("remote_addr")),
        ("a", Some(_)) => ("peer_addr".to_owned(), text("peer_addr")),
        ("A", _) => ("server_addr".to_owned(), text("server_addr")),
        ("l", _) => ("ident".to_owned(), text("ident")),
        ("u", _) => ("user".to_owned(), text("user")),
        ("r", _) => ("request".to_owned(), FieldMeaning::Request),
        ("m", _) => ("method".to_owned(), text("method")),
        ("U", _) => ("path".to_owned(), text("path")),
        ("q", _) => ("query".to_owned(), text("query")),
        ("H", _) => ("protocol".to_owned(), text("protocol")),
        ("s", _) => ("status".to_owned(), number("status")),
        ("b" | "B", _) => ("bytes".to_owned(), number("bytes")),
        ("O", _) => ("bytes_sent".to_owned(), number("bytes_sent")),
        ("I", _) => ("bytes_received".to_owned(), number("bytes_received")),
        ("S", _) => ("bytes_moved".to_owned(), number("bytes_moved")),
        ("D", _) => duration("request_us", MICROSECOND),
        ("T", Some("us")) => duration("request_us", MICROSECOND),
        ("T", Some("ms")) => duration("request_ms", MILLISECOND),
        ("T", _) => duration("request_s", SECOND),
        ("v" | "V", _) => ("host".to_owned(), text("host")),
        ("p", _) => ("port".to_owned(), number("port")),
        ("k", _) => ("keepalive".to_owned(), number("keepalive")),
        ("P", _) => ("worker_pid".to_owned(), number("worker_pid")),
        ("X", _) => ("connection".to_owned(), text("connection")),
        ("f", _) => ("file_served".to_owned(), text("file_served")),
        ("L", _) => ("log_id".to_owned(), text("log_id")),
        ("R", _) => ("handler".to_owned(), text("handler")),
        ("t", None) => time("time_local", Clock::Access),
        ("t", Some(format)) => {
            let format = format
                .trim_start_matches("begin:")
                .trim_start_matches("end:");
            if !TIME_FORMATS.contains(&format) {
                return error(FormatReason::TimeFormat(written.to_owned()));
            }
            time("time", Clock::Other)
        }
        ("i", Some(header)) => request_header(header),
        ("o", Some(header)) => other("sent_http_", header),
        ("^ti", Some(header)) => other("trailer_", header),
        ("^to", Some(header)) => other("sent_trailer_", header),
        ("C", Some(cookie)) => other("cookie_", cookie),
        ("e" | "n", Some(variable)) => other("", variable),
        _ => return error(FormatReason::Directive(written.to_owned())),
    };
    Ok(NamedVariable {
        at,
        written: written.to_owned(),
        own_name,
        meaning,
        is_list: false,
    })
}

fn duration(name: &str, unit_ns: u64) -> (String, FieldMeaning) {
    (
        name.to_owned(),
        FieldMeaning::Duration(name.into(), unit_ns),
    )
}

fn time(name: &str, clock: Clock) -> (String, FieldMeaning) {
    (name.to_owned(), FieldMeaning::Time(clock, name.into()))
}

fn request_header(header: &str) -> (String, FieldMeaning) {
    match header.to_ascii_lowercase().as_str() {
        "referer" => ("referer".to_owned(), FieldMeaning::Plain("referer".into())),
        "user-agent" => ("agent".to_owned(), FieldMeaning::Plain("agent".into())),
        "host" => ("host".to_owned(), FieldMeaning::Text("host".into())),
        _ => other("http_", header),
    }
}

/// A field that is named after what it was called.
fn other(prefix: &str, name: &str) -> (String, FieldMeaning) {
    let name = format!("{prefix}{}", name.to_ascii_lowercase().replace('-', "_"));
    let name = name.trim_start_matches('_').to_owned();
    let meaning = FieldMeaning::Text(name.as_str().into());
    (name, meaning)
}

/// Adds a directive. `%U%q` are one: the query has its question mark, if there is a query.
fn join_query(items: &mut Vec<Item>, named: NamedVariable) {
    if named.own_name == "query"
        && let Some(Item::Named(before)) = items.last_mut()
        && before.own_name == "path"
    {
        before.written.push_str(&named.written);
        before.meaning = FieldMeaning::Target;
        return;
    }
    items.push(Item::Named(named));
}

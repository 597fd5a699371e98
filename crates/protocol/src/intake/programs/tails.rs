//! Values that stand behind the message of a line, in the way of its product.
//!
//! A tail that does not fit as a whole is part of the message.

use std::borrow::Cow;

use logpond_record::Value;
use memchr::{memchr, memchr_iter, memrchr_iter};

use super::pattern::find;
use super::{Pen, columns, facts, named as lines, pairs, postgres};
use crate::intake::access::{canonical_int, closing_quote, parts_of, seconds_with_unit};
use crate::intake::logfmt;

/// The most values behind a message.
const VALUES_MAX: usize = 64;

/// The most places where a tail is tried to begin.
const STARTS_MAX: usize = 32;

/// The most bytes of a key.
const KEY_BYTES_MAX: usize = 64;

/// A kind of tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// There is none.
    None,
    /// `, client: …, server: …, request: "…"`
    Nginx,
    /// `, referer: …`
    Apache,
    /// ` (kafka.server.KafkaServer)`, which must be there.
    Logger,
    /// `: key=value …`
    Hclog,
    /// ` key="value"` behind a message in quotes.
    Klog,
    /// ` in /srv/a.php on line 7`
    Php,
    /// A tab, and an object.
    Zap,
    /// `["message"] [key=value] …`
    Tidb,
    /// Names within the message of MySQL, RabbitMQ, Rails and PHP-FPM: see [`facts`].
    Mysql,
    Rabbitmq,
    Ruby,
    Fpm,
    /// A prefix of PostgreSQL, its label and the message: see [`postgres`].
    Postgres,
    /// ` latency=12 ms status=200`
    Tower,
    /// `GET /cart HTTP/1.1`
    Request,
    /// The same as [`Tail::Postgres`] where the time stands within the prefix.
    Prefixed,
    /// ` key=value …`, see [`pairs`].
    Pairs,
    /// The same with the pairs in the message, too.
    Beside,
    Structlog,
    /// `key=value …`, which must be all.
    Keyed,
    /// ` | LOGGER | THREAD`, which must be there.
    ActiveMq,
    /// `  (Tag)` of Android's logcat.
    Tag,
    /// `, ltime:2026/11/27-00:51:25:818426`
    Brocade,
    /// `]]`, which must be there.
    Closed,
    /// `>`, likewise.
    Angled,
    /// Names and values of Exim.
    Exim,
    /// An action of dpkg on a package.
    Dpkg,
    /// A query of BIND.
    Query,
    /// The same, which must be there.
    Client,
    /// Lines that their first words tell, see [`super::named`].
    Known,
    Dovecot,
    Kernel,
    /// The same of lines that a word tells.
    Packet,
    Page,
    /// `, order: 7`
    Listed,
}

/// Values of nginx behind a message, with their labels in their order; those in quotes end with one.
const NGINX: [(&str, &str); 9] = [
    (", client: ", "client"),
    (", server: ", "server"),
    (", request: \"", "request"),
    (", subrequest: \"", "subrequest"),
    (", upstream: \"", "upstream"),
    (", host: \"", "host"),
    (", referrer: \"", "referer"),
    // Kong.
    (", request_id: \"", "request_id"),
    (", bytes from/to client:", "bytes_client"),
];

impl Tail {
    pub(super) fn of_name(name: &str) -> Tail {
        match name {
            "nginx" => Tail::Nginx,
            "apache" => Tail::Apache,
            "logger" => Tail::Logger,
            "hclog" => Tail::Hclog,
            "klog" => Tail::Klog,
            "php" => Tail::Php,
            "zap" => Tail::Zap,
            "tidb" => Tail::Tidb,
            "mysql" => Tail::Mysql,
            "rabbitmq" => Tail::Rabbitmq,
            "ruby" => Tail::Ruby,
            "fpm" => Tail::Fpm,
            "postgres" => Tail::Postgres,
            "prefixed" => Tail::Prefixed,
            "request" => Tail::Request,
            "tower" => Tail::Tower,
            "pairs" => Tail::Pairs,
            "beside" => Tail::Beside,
            "structlog" => Tail::Structlog,
            "keyed" => Tail::Keyed,
            "activemq" => Tail::ActiveMq,
            "tag" => Tail::Tag,
            "brocade" => Tail::Brocade,
            "closed" => Tail::Closed,
            "angled" => Tail::Angled,
            "exim" => Tail::Exim,
            "dpkg" => Tail::Dpkg,
            "query" => Tail::Query,
            "client" => Tail::Client,
            "known" => Tail::Known,
            "dovecot" => Tail::Dovecot,
            "kernel" => Tail::Kernel,
            "packet" => Tail::Packet,
            "page" => Tail::Page,
            "listed" => Tail::Listed,
            _ => Tail::None,
        }
    }

    /// False for a text that cannot be such a rest: a cheap test.
    pub(super) fn may_fit(self, text: &str) -> bool {
        match self {
            Tail::Postgres | Tail::Prefixed => postgres::may_fit(text),
            Tail::Known => lines::may_be_known(text),
            Tail::Dovecot => lines::may_be_dovecot(text),
            Tail::Packet => lines::is_of_kernel(text),
            _ => true,
        }
    }

    /// Draws the rest of a line: its message, and what is behind that.
    pub(super) fn draw<'a>(self, text: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
        match self {
            Tail::None => pen.sketch.message(text.as_bytes()),
            Tail::Nginx => nginx(text, pen),
            Tail::Apache => apache(text, pen),
            Tail::Logger => return named(text, " (", "logger", pen),
            Tail::Tag => {
                if named(text, "  (", "tag", pen).is_none() {
                    pen.sketch.message(text.as_bytes());
                }
            }
            Tail::Hclog => hclog(text, pen),
            Tail::Klog => klog(text, pen),
            Tail::Php => php(text, pen),
            Tail::Zap => return zap(text, pen),
            Tail::Pairs => pairs::draw(text, pen),
            Tail::Beside => pairs::beside(text, pen),
            Tail::Structlog => pairs::structlog(text, pen),
            Tail::Keyed => return pairs::keyed(text, pen),
            Tail::ActiveMq => return columns::activemq(text, pen),
            Tail::Brocade => columns::brocade(text, pen),
            Tail::Closed => return columns::closed(text, "]]", pen),
            Tail::Angled => return columns::closed(text, ">", pen),
            Tail::Exim => return columns::exim(text, pen),
            Tail::Dpkg => return columns::dpkg(text, pen),
            Tail::Query => {
                pen.sketch.message(text.as_bytes());
                facts::query(text, pen).unwrap_or_default();
            }
            Tail::Client => {
                pen.sketch.message(text.as_bytes());
                return facts::query(text, pen);
            }
            Tail::Known => return lines::known(text, pen),
            Tail::Dovecot => return lines::dovecot(text, pen),
            Tail::Kernel | Tail::Packet => lines::kernel(text, pen),
            Tail::Page => return lines::page(text, pen),
            Tail::Listed => lines::listed(text, pen),
            Tail::Tidb => return tidb(text, pen),
            Tail::Mysql => facts::mysql(text, pen),
            Tail::Rabbitmq => facts::rabbitmq(text, pen),
            Tail::Ruby => facts::ruby(text, pen),
            Tail::Fpm => facts::fpm(text, pen),
            Tail::Postgres => return postgres::draw(text, pen),
            Tail::Tower => tower(text, pen),
            Tail::Request => {
                make_request(text, pen);
                pen.sketch.message(text.as_bytes());
            }
            Tail::Prefixed => return postgres::draw_prefixed(text, pen),
        }
        Some(())
    }
}

/// Draws the message up to the first place from which all is values; what a client has written into the message
/// is not all values.
fn nginx<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) {
    let commas = memchr_iter(b',', text.as_bytes());
    let is_start = |at: &usize| {
        let mut labels = NGINX[..2].iter();
        labels.any(|(label, _)| text[*at..].starts_with(label))
    };
    let starts = commas.filter(is_start);
    for start in starts.take(STARTS_MAX) {
        let mark = pen.sketch.mark();
        let made = pen.beside.fields.len();
        pen.sketch.message(&text.as_bytes()[..start]);
        if start > 0 && nginx_values(&text[start..], pen).is_some() {
            return facts::firewall(&text[..start], pen);
        }
        pen.sketch.rewind(mark);
        pen.beside.fields.truncate(made);
    }
    pen.sketch.message(text.as_bytes());
    facts::firewall(text, pen);
}

fn nginx_values<'a>(mut rest: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    for (label, name) in NGINX {
        let Some(behind) = rest.strip_prefix(label) else {
            continue;
        };
        pen.sketch.literal(label);
        let is_quoted = label.ends_with('"');
        let length = if is_quoted {
            closing_quote(behind)?
        } else {
            find(behind.as_bytes(), b", ").unwrap_or(behind.len())
        };
        let (value, after) = behind.split_at(length);
        rest = after;
        match name {
            "client" => pen.client(name, value, false)?,
            _ if is_quoted => {
                pen.text(name, value);
                pen.sketch.literal("\"");
                rest = after.strip_prefix('"')?;
            }
            _ if value.contains([' ', '"']) => return None,
            _ => pen.text(name, value),
        }
        if name == "request" {
            make_request(value, pen);
        }
    }
    rest.is_empty().then_some(())
}

/// Makes the parts of a request.
pub(super) fn make_request<'a>(request: &'a str, pen: &mut Pen<'_, '_, 'a>) {
    if let Some((method, target, protocol)) = parts_of(request) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        pen.make_text("method", method);
        pen.make_text("path", path);
        pen.make_text("query", query);
        pen.make_text("protocol", protocol);
    }
}

/// Makes the status and the duration that end a message, and the parts of the target that was drawn before it.
fn tower<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) {
    pen.sketch.message(text.as_bytes());
    let uri = match pen.sketch.value(b"uri") {
        Some(Value::Str(Cow::Borrowed(uri))) => *uri,
        _ => "",
    };
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    pen.make_text("path", path);
    pen.make_text("query", query);
    let Some((_, values)) = text.rsplit_once(" latency=") else {
        return;
    };
    let (latency, status) = values.split_once(" status=").unwrap_or((values, ""));
    if let Some(seconds) = seconds_with_unit(latency) {
        pen.make("duration_s", Value::Float(seconds));
    }
    if let Some(status) = canonical_int(status) {
        pen.make("status", Value::Int(status));
    }
}

fn apache<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) {
    const REFERER: &str = ", referer: ";
    let mut commas = memrchr_iter(b',', text.as_bytes());
    let start = commas.find(|at| text[*at..].starts_with(REFERER));
    let split = start.map(|at| (&text[..at], &text[at + REFERER.len()..]));
    match split.filter(|(message, referer)| !message.is_empty() && !referer.contains(' ')) {
        Some((message, referer)) => {
            pen.sketch.message(message.as_bytes());
            pen.sketch.literal(REFERER);
            pen.text("referer", referer);
            facts::firewall(message, pen);
        }
        None => {
            pen.sketch.message(text.as_bytes());
            facts::firewall(text, pen);
        }
    }
}

/// Draws `message (a.b.C)`. Traces stand behind it, on lines of their own.
fn named<'a>(
    text: &'a str,
    between: &str,
    slot: &'static str,
    pen: &mut Pen<'_, '_, 'a>,
) -> Option<()> {
    let end = memchr(b'\n', text.as_bytes()).unwrap_or(text.len());
    let (line, trace) = text.split_at(end);
    let (message, name) = line.strip_suffix(')')?.rsplit_once(between)?;
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._$-".contains(&byte);
    let is_name = !name.is_empty() && name.bytes().all(is_part);
    if !is_name || message.is_empty() {
        return None;
    }
    if !trace.is_empty() {
        // The trace is part of the message, and so is what stands before it.
        pen.sketch.message(text.as_bytes());
        pen.make_text(slot, name);
        return Some(());
    }
    pen.sketch.message(message.as_bytes());
    pen.sketch.literal(between);
    pen.text(slot, name);
    pen.sketch.literal(")");
    Some(())
}

fn hclog<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) {
    let colons = memchr_iter(b':', text.as_bytes());
    let starts = colons.filter(|at| text[*at..].starts_with(": "));
    for start in starts.take(STARTS_MAX) {
        if draw_pairs(&text[..start], ": ", &text[start + 2..], pen).is_some() {
            return;
        }
    }
    pen.sketch.message(text.as_bytes());
}

/// Draws a message in quotes and the values behind it, or a message that is no more.
fn klog<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) {
    let quoted = text.strip_prefix('"').and_then(|inside| {
        let end = closing_quote(inside)?;
        Some((&inside[..end], &inside[end + 1..]))
    });
    let is_simple = |message: &str| !message.is_empty() && !message.contains('\\');
    if let Some((message, rest)) = quoted.filter(|(message, _)| is_simple(message)) {
        let mark = pen.sketch.mark();
        pen.sketch.literal("\"");
        if rest.is_empty() {
            pen.sketch.message(message.as_bytes());
            pen.sketch.literal("\"");
            return;
        }
        if let Some(pairs) = rest.strip_prefix(' ')
            && draw_pairs(message, "\" ", pairs, pen).is_some()
        {
            return;
        }
        pen.sketch.rewind(mark);
    }
    pen.sketch.message(text.as_bytes());
}

/// Draws a message, and `key=value` pairs with a blank between them; `None` if anything else stands there, and the
/// sketch is as it was.
pub(super) fn draw_pairs<'a>(
    message: &'a str,
    between: &str,
    pairs: &'a str,
    pen: &mut Pen<'_, '_, 'a>,
) -> Option<()> {
    let key = pairs.bytes().take_while(is_of_key).count();
    if message.is_empty() || key == 0 || pairs.as_bytes().get(key) != Some(&b'=') {
        return None;
    }
    let mark = pen.sketch.mark();
    pen.sketch.message(message.as_bytes());
    pen.sketch.literal(between);
    let drawn = values(pairs, pen);
    if drawn.is_none() {
        pen.sketch.rewind(mark);
    }
    drawn
}

pub(super) fn is_of_key(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.-".contains(byte)
}

/// True for a key that a field may have and none has yet.
fn is_free_key(key: &str, pen: &Pen<'_, '_, '_>) -> bool {
    let is_key =
        (1..=KEY_BYTES_MAX).contains(&key.len()) && key.bytes().all(|byte| is_of_key(&byte));
    is_key && !key.starts_with('_') && !pen.sketch.has_slot(key.as_bytes())
}

pub(super) fn values<'a>(mut rest: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    for _ in 0..VALUES_MAX {
        let (key, behind) = rest.split_once('=')?;
        if !is_free_key(key, pen) {
            return None;
        }
        pen.sketch.literal(key);
        pen.sketch.literal("=");
        let is_message = pairs::is_message(key, pen);
        let after = match behind.strip_prefix('"') {
            Some(inside) => {
                let end = closing_quote(inside)?;
                pen.sketch.literal("\"");
                if is_message {
                    pen.sketch.message(&inside.as_bytes()[..end]);
                } else {
                    pen.text(key, &inside[..end]);
                }
                pen.sketch.literal("\"");
                &inside[end + 1..]
            }
            None => {
                let end = list_bytes(behind)
                    .or_else(|| single_bytes(behind))
                    .or_else(|| memchr(b' ', behind.as_bytes()))
                    .unwrap_or(behind.len());
                let (value, after) = behind.split_at(end);
                let is_list = value.starts_with("[\"");
                if value.contains(['"', '\n']) && !is_list || value.is_empty() {
                    return None;
                }
                let (read, kind, is_canonical) = logfmt::bare_value(value);
                if is_message {
                    pen.sketch.message(value.as_bytes());
                } else if is_canonical {
                    pen.slot(key, kind_of(kind), read)
                } else {
                    pen.text(key, value)
                }
                after
            }
        };
        if after.is_empty() {
            return Some(());
        }
        pen.sketch.literal(" ");
        rest = after.strip_prefix(' ')?;
    }
    None
}

/// The bytes of a text in single quotes, as Python writes texts with blanks: `'no stock'`.
fn single_bytes(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('\'')?;
    let end = memchr(b'\'', inside.as_bytes())? + 2;
    let is_whole = text[end..].is_empty() || text[end..].starts_with(' ');
    is_whole.then_some(end)
}

/// The bytes of a list of texts, as klog writes the names of objects: `["default/web-1","default/web-2"]`.
fn list_bytes(text: &str) -> Option<usize> {
    let mut rest = text.strip_prefix('[')?;
    for _ in 0..VALUES_MAX {
        rest = rest.strip_prefix('"')?;
        rest = &rest[closing_quote(rest)? + 1..];
        if let Some(behind) = rest.strip_prefix(']') {
            return Some(text.len() - behind.len());
        }
        rest = rest.strip_prefix(',')?;
    }
    None
}

/// Draws `message in FILE on line N`, or `message in FILE:N`; traces stand behind it.
fn php<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) {
    if let Some(Value::Str(Cow::Borrowed("Deprecated" | "Strict Standards"))) =
        pen.sketch.value(b"error_type")
    {
        pen.level = Some("notice");
    }
    let end = memchr(b'\n', text.as_bytes()).unwrap_or(text.len());
    let (line, trace) = text.split_at(end);
    let found = line.rsplit_once(" in /").and_then(|(message, place)| {
        let (file, number, between) = match place.rsplit_once(" on line ") {
            Some((file, number)) => (file, number, " on line "),
            None => {
                let (file, number) = place.rsplit_once(':')?;
                (file, number, ":")
            }
        };
        let number = canonical_int(number).filter(|_| !message.is_empty() && trace.is_empty())?;
        let start = line.len() - place.len() - 1;
        Some((
            message,
            &line[start..start + 1 + file.len()],
            between,
            number,
        ))
    });
    match found {
        Some((message, file, between, number)) => {
            pen.sketch.message(message.as_bytes());
            pen.sketch.literal(" in ");
            pen.text("file", file);
            pen.sketch.literal(between);
            pen.slot("line", "i", Value::Int(number));
        }
        None => pen.sketch.message(text.as_bytes()),
    }
}

/// Draws a message and the object behind it, which is one text. An object alone is no message.
fn zap<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    if text.starts_with("{\"") && text.ends_with('}') {
        return None;
    }
    let found = text.split_once("\t{").filter(|(message, rest)| {
        !message.is_empty() && rest.ends_with('}') && !rest.contains('\n')
    });
    match found {
        Some((message, _)) => {
            pen.sketch.message(message.as_bytes());
            pen.sketch.literal("\t");
            pen.text("fields", &text[message.len() + 1..]);
        }
        None => pen.sketch.message(text.as_bytes()),
    }
    Some(())
}

/// Draws `["message"] [key=value] [key="value"]`.
fn tidb<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    let (message, mut rest) = bracketed(text)?;
    if message.is_empty() {
        return None;
    }
    let quote = if unquoted(message).is_some() {
        "\""
    } else {
        ""
    };
    pen.sketch.literal("[");
    pen.sketch.literal(quote);
    pen.sketch
        .message(unquoted(message).unwrap_or(message).as_bytes());
    pen.sketch.literal(quote);
    pen.sketch.literal("]");
    for _ in 0..VALUES_MAX {
        if rest.is_empty() {
            return Some(());
        }
        pen.sketch.literal(" ");
        let (pair, after) = bracketed(rest.strip_prefix(' ')?)?;
        rest = after;
        let (key, value) = pair.split_once('=')?;
        if !is_free_key(key, pen) {
            return None;
        }
        pen.sketch.literal("[");
        pen.sketch.literal(key);
        pen.sketch.literal("=");
        match (unquoted(value), logfmt::bare_value(value)) {
            (Some(inside), _) => {
                pen.sketch.literal("\"");
                pen.text(key, inside);
                pen.sketch.literal("\"");
            }
            (None, (read, kind, true)) => pen.slot(key, kind_of(kind), read),
            _ => pen.text(key, value),
        }
        pen.sketch.literal("]");
    }
    None
}

/// The inside of quotes, if they are around a text.
fn unquoted(text: &str) -> Option<&str> {
    text.strip_prefix('"')?.strip_suffix('"')
}

/// The inside of brackets that a text begins with, quotes in it included, and the rest.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix('[')?;
    let is_quoted = inside.starts_with('"') || inside.split(']').next()?.contains("=\"");
    let end = if is_quoted {
        find(inside.as_bytes(), b"\"]")? + 1
    } else {
        memchr(b']', inside.as_bytes())?
    };
    Some((&inside[..end], &inside[end + 1..]))
}

/// The letter of a slot's kind as text.
pub(super) fn kind_of(letter: u8) -> &'static str {
    match letter {
        b'i' => "i",
        b'f' => "f",
        b'b' => "b",
        _ => "t",
    }
}

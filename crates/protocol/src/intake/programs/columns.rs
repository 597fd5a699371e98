//! Messages that stand before columns of their product: ActiveMQ, Brocade, GlassFish, WebLogic, Exim.

use logpond_record::Value;
use memchr::memchr;

use super::Pen;
use super::sentences::is_address;
use super::tails::kind_of;
use crate::intake::access::canonical_int;
use crate::intake::logfmt;

/// The most values of Exim.
const VALUES_MAX: usize = 32;

/// Values of Exim with their letters and the fields that they are. Others stay in the message.
const EXIM: [(&str, &str); 10] = [
    ("P", "protocol"),
    ("R", "router"),
    ("T", "transport"),
    ("X", "tls"),
    ("A", "auth_method"),
    ("id", "message_id"),
    ("U", "user"),
    ("QT", "queue_time"),
    ("DT", "delivery_time"),
    ("H", "remote_host"),
];

/// Draws `message | org.apache.activemq.Broker | main`.
pub(super) fn activemq<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    const BAR: &str = " | ";
    let (ahead, thread) = text.rsplit_once(BAR)?;
    let (message, logger) = ahead.rsplit_once(BAR)?;
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._$-".contains(&byte);
    let is_logger = logger.contains('.') && logger.bytes().all(is_part);
    if !is_logger || message.is_empty() || thread.is_empty() || text.contains('\n') {
        return None;
    }
    pen.sketch.message(message.as_bytes());
    pen.sketch.literal(BAR);
    pen.text("logger", logger);
    pen.sketch.literal(BAR);
    pen.text("thread", thread);
    Some(())
}

/// Draws a message, and the time that ends it if there is one.
pub(super) fn brocade<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) {
    const LABEL: &str = ", ltime:";
    let found = text.rsplit_once(LABEL).and_then(|(message, time)| {
        let written = pen
            .times
            .reader
            .program(time.as_bytes(), pen.times.received)?;
        let is_whole = written.bytes == time.len() && !message.is_empty();
        is_whole.then_some((message, time, written))
    });
    match found {
        Some((message, time, written)) => {
            pen.sketch.message(message.as_bytes());
            pen.sketch.literal(LABEL);
            pen.time(&written, time);
        }
        None => pen.sketch.message(text.as_bytes()),
    }
}

/// Draws a message that brackets end.
pub(super) fn closed<'a>(text: &'a str, end: &str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    let behind = text.trim_ascii_end();
    let message = behind
        .strip_suffix(end)
        .filter(|message| !message.is_empty())?;
    pen.sketch.message(message.as_bytes());
    pen.sketch.literal(&text[message.len()..]);
    Some(())
}

/// The flags of Exim, the fields of the addresses behind them, and what they say of the message.
const EXIM_FLAGS: [(&str, &str, &str); 8] = [
    ("<= ", "sender", "arrival"),
    ("(= ", "sender", "fakereject"),
    ("=> ", "recipient", "delivery"),
    ("-> ", "recipient", "delivery"),
    (">> ", "recipient", "delivery"),
    ("*> ", "recipient", "suppressed"),
    ("** ", "recipient", "failed"),
    ("== ", "recipient", "deferred"),
];

/// Makes the fields of a message of Exim: `<= lena@example.org H=mx.example.org [192.0.2.7] P=esmtps S=1234 id=…`. The
/// identifier of the message stands before it.
pub(super) fn exim<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    let is_known = match pen.sketch.value(b"queue_id") {
        Some(Value::Str(id)) => is_queue_id(id),
        _ => false,
    };
    is_known.then_some(())?;
    pen.sketch.message(text.as_bytes());
    let mut flags = EXIM_FLAGS.iter();
    let Some((flag, name, action)) = flags.find(|(flag, ..)| text.starts_with(flag)) else {
        exim_values(text, pen);
        return Some(());
    };
    pen.make_text("action", action);
    match *flag {
        "** " => pen.level = Some("error"),
        "== " => pen.level = Some("warn"),
        _ => {}
    }
    let rest = &text[flag.len()..];
    let end = memchr(b' ', rest.as_bytes()).unwrap_or(rest.len());
    let (address, rest) = rest.split_at(end);
    pen.make_text(name, address.trim_end_matches(':'));
    let original = rest
        .strip_prefix(" <")
        .and_then(|rest| rest.split_once('>'));
    if let Some((original, _)) = original.filter(|_| *name == "recipient") {
        pen.make_text("original_recipient", original);
    }
    exim_values(rest, pen);
    Some(())
}

/// True for `1abcDE-000abc-2x`, and with eleven letters and four digits from version 4.97 on.
fn is_queue_id(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut is_next = |lengths: [usize; 2]| {
        let part = parts.next().unwrap_or_default();
        lengths.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    is_next([6, 6]) && is_next([6, 11]) && is_next([2, 4]) && parts.next().is_none()
}

/// Makes the fields of the values in a message of Exim.
pub(super) fn exim_values<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) {
    let mut rest = text;
    let mut before = "";
    for _ in 0..VALUES_MAX {
        rest = rest.trim_start_matches(' ');
        // A text of a server stands in quotes.
        if let Some(inside) = rest.strip_prefix("C=\"") {
            let end = crate::intake::access::closing_quote(inside).unwrap_or(inside.len());
            pen.make_text("confirmation", &inside[..end]);
            rest = inside.get(end + 1..).unwrap_or_default();
            continue;
        }
        // The subject, which the sender has written.
        if let Some(inside) = rest.strip_prefix("T=\"") {
            let end = crate::intake::access::closing_quote(inside).unwrap_or(inside.len());
            pen.make_text("subject", &inside[..end]);
            rest = inside.get(end + 1..).unwrap_or_default();
            continue;
        }
        let (word, behind) = rest.split_once(' ').unwrap_or((rest, ""));
        if word.is_empty() {
            return;
        }
        exim_value(word, before, pen);
        (before, rest) = (word, behind);
    }
}

/// Makes the field of a word of Exim, which stands behind another one.
fn exim_value<'a>(word: &'a str, before: &str, pen: &mut Pen<'_, '_, 'a>) {
    if let Some(inside) = word.strip_prefix('[') {
        return exim_address(inside, ["remote_addr", "remote_port"], pen);
    }
    if let Some(helo) = word
        .strip_prefix('(')
        .and_then(|word| word.strip_suffix(')'))
        && before.starts_with("H=")
    {
        return pen.make_text("helo", helo);
    }
    let Some((key, value)) = word.split_once('=') else {
        return;
    };
    let value = value.trim_end_matches([':', ',']);
    match key {
        "S" => {
            if let Some(bytes) = canonical_int(value) {
                pen.make("bytes", Value::Int(bytes));
            }
        }
        "H" if value.starts_with('(') => {
            pen.make_text("helo", value.trim_matches(['(', ')']));
        }
        "H" if value.starts_with('[') => {
            exim_address(&value[1..], ["remote_addr", "remote_port"], pen);
        }
        "I" if value.starts_with('[') => {
            exim_address(&value[1..], ["local_addr", "local_port"], pen);
        }
        "F" => pen.make_text("from", value.trim_matches(['<', '>'])),
        "pid" => {
            if let Some(pid) = canonical_int(value).filter(|_| !pen.sketch.has_slot(b"pid")) {
                pen.make("pid", Value::Int(pid));
            }
        }
        _ => {
            if let Some((_, name)) = EXIM.iter().find(|(known, _)| *known == key) {
                pen.make_text(name, value);
            }
        }
    }
}

/// Makes the fields of `192.0.2.7]:41000`, of which the port may be missing.
fn exim_address<'a>(text: &'a str, names: [&'static str; 2], pen: &mut Pen<'_, '_, 'a>) {
    let (address, port) = text.split_once(']').unwrap_or((text, ""));
    if is_address(address) {
        pen.make_text(names[0], address);
        let port = port.strip_prefix(':').and_then(canonical_int);
        if let Some(port) = port {
            pen.make(names[1], Value::Int(port));
        }
    }
}

/// Draws a value without quotes as what it is.
pub(super) fn bare<'a>(name: &str, value: &'a str, pen: &mut Pen<'_, '_, 'a>) {
    match logfmt::bare_value(value) {
        (read, kind, true) => pen.slot(name, kind_of(kind), read),
        _ => pen.text(name, value),
    }
}

/// The words that messages of dpkg begin with.
pub(super) const DPKG_WORDS: [&str; 10] = [
    "status",
    "install",
    "upgrade",
    "configure",
    "trigproc",
    "remove",
    "purge",
    "disappear",
    "conffile",
    "startup",
];

/// Makes the fields of a message of dpkg: `status STATE PACKAGE VERSION`, or an action, the package, its version, and
/// the new one.
pub(super) fn dpkg<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    let (action, rest) = text.split_once(' ')?;
    let names: &[&str] = match action {
        "status" => &["state", "package", "version"],
        "startup" => &["target", "command"],
        "conffile" => &["path", "decision"],
        "install" | "upgrade" => &["package", "version_old", "version"],
        _ => &["package", "version"],
    };
    let is_known = DPKG_WORDS.contains(&action);
    let mut words = rest.split(' ');
    let is_whole =
        words.clone().count() >= names.len() && words.clone().all(|word| !word.is_empty());
    (is_known && is_whole).then_some(())?;
    pen.sketch.message(text.as_bytes());
    pen.make_text("action", action);
    for (name, word) in names.iter().copied().zip(&mut words) {
        if word != "<none>" {
            pen.make_text(name, word);
        }
    }
    Some(())
}

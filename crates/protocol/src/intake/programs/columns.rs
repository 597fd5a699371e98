//! Messages that stand before columns of their product: ActiveMQ, Brocade, GlassFish, WebLogic, Exim.

use logpond_record::Value;
use memchr::memchr;

use super::Pen;
use super::sentences::is_address;
use crate::intake::access::canonical_int;

/// The most values of Exim.
const VALUES_MAX: usize = 32;

/// Values of Exim with their letters and the fields that they are. Others stay in the message.
const EXIM: [(&str, &str); 11] = [
    ("P", "protocol"),
    ("R", "router"),
    ("T", "transport"),
    ("X", "tls"),
    ("A", "auth_method"),
    ("id", "message_id"),
    ("U", "user"),
    ("F", "from"),
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

/// Makes the fields of a message of Exim: `<= lena@example.org H=mx.example.org [192.0.2.7] P=esmtps S=1234 id=…`.
pub(super) fn exim<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    const SIGNS: [(&str, &str); 6] = [
        ("<= ", "sender"),
        ("=> ", "recipient"),
        ("-> ", "recipient"),
        (">> ", "recipient"),
        ("** ", "recipient"),
        ("== ", "recipient"),
    ];
    pen.sketch.message(text.as_bytes());
    let mut signs = SIGNS.iter();
    let Some((sign, name)) = signs.find(|(sign, _)| text.starts_with(sign)) else {
        let starts = ["Completed", "Frozen", "Unfrozen"];
        return starts
            .iter()
            .any(|start| text.starts_with(start))
            .then_some(());
    };
    match *sign {
        "** " => pen.level = Some("error"),
        "== " => pen.level = Some("warn"),
        _ => {}
    }
    let rest = &text[sign.len()..];
    let end = memchr(b' ', rest.as_bytes()).unwrap_or(rest.len());
    pen.make_text(name, &rest[..end]);
    // A text of a server stands behind its own letter, the last one.
    let known = rest.split(" C=\"").next().unwrap_or(rest);
    for word in known.split(' ').take(VALUES_MAX) {
        if let Some(address) = word
            .strip_prefix('[')
            .and_then(|word| word.split(']').next())
        {
            if is_address(address) {
                pen.make_text("remote_addr", address);
            }
            continue;
        }
        let Some((key, value)) = word.split_once('=') else {
            continue;
        };
        if key == "S"
            && let Some(bytes) = canonical_int(value)
        {
            pen.make("bytes", Value::Int(bytes));
        } else if let Some((_, name)) = EXIM.iter().find(|(known, _)| *known == key) {
            // What the server said stands behind the transport.
            pen.make_text(name, value.trim_end_matches(':'));
        }
    }
    Some(())
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

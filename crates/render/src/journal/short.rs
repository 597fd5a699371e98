//! The formats of one line an entry: a time, a host, a program with its process, the message.

use super::super::header;
use super::{Entry, Format, PreviousEntry, Style, plain, stamp};

/// Appends an entry; one without a message has no line.
pub(super) fn write(
    entry: &Entry,
    style: &Style,
    before: Option<&PreviousEntry>,
    out: &mut Vec<u8>,
) {
    let Some(message) = entry.last("MESSAGE") else {
        return;
    };
    let start = out.len();
    write_time(entry, style, before, out);
    let shown = |name: &str| {
        let value = entry.last(name);
        value.filter(|value| plain::is_for_head(value, style))
    };
    if let Some(host) = shown("_HOSTNAME").filter(|_| !style.no_hostname) {
        out.push(b' ');
        plain::put(host, style, out);
    }
    out.push(b' ');
    let (unit, user_unit) = (shown("_SYSTEMD_UNIT"), shown("_SYSTEMD_USER_UNIT"));
    if style.format == Format::WithUnit && (unit.is_some() || user_unit.is_some()) {
        let both = [unit, user_unit].into_iter().flatten();
        plain::put(&both.collect::<Vec<_>>().join(&b'/'), style, out);
    } else {
        let program = shown("SYSLOG_IDENTIFIER").or(shown("_COMM"));
        plain::put(program.unwrap_or(b"unknown"), style, out);
    }
    if let Some(process) = shown("_PID").or(shown("SYSLOG_PID")) {
        out.push(b'[');
        plain::put(process, style, out);
        out.push(b']');
    }
    let head = out.len() - start;
    let said = ["_HOSTNAME", "SYSLOG_IDENTIFIER"].into_iter();
    let said: Vec<&[u8]> = said.filter_map(|name| entry.last(name)).collect();
    let message = header::behind(message, &said);
    write_message(message, entry, style, head + 2, out);
}

fn write_time(entry: &Entry, style: &Style, before: Option<&PreviousEntry>, out: &mut Vec<u8>) {
    let text = match style.format {
        Format::ShortMonotonic => {
            format!("[{}]", stamp::seconds(entry.since_boot_us().unwrap_or(0)))
        }
        Format::ShortDelta => {
            let us = entry.since_boot_us().unwrap_or(0);
            let since = before.map_or(" ".repeat(16), |before| since(before, entry));
            format!("[{}{since}]", stamp::seconds(us))
        }
        format => stamp::line(entry.shown_us, format, &style.zone),
    };
    out.extend_from_slice(text.as_bytes());
}

/// How long it is since the entry before; with a star if that is of another boot, so that only the
/// times of day tell it.
fn since(before: &PreviousEntry, entry: &Entry) -> String {
    let same_boot = before.boot_id == entry.boot_id;
    let times = before.since_boot_us.zip(entry.since_boot_us());
    let by_boot = times.filter(|(then, now)| same_boot && then <= now);
    let (us, mark) = match by_boot {
        Some((then, now)) => (now.saturating_sub(then), ' '),
        None => (entry.shown_us.saturating_sub(before.shown_us), '*'),
    };
    if us < 0 {
        " ".repeat(16)
    } else {
        format!(" <{}{mark}>", stamp::seconds(us))
    }
}

fn write_message(message: &[u8], entry: &Entry, style: &Style, indent: usize, out: &mut Vec<u8>) {
    let changed;
    let text = if style.all {
        message
    } else {
        changed = plain::shown(message);
        &changed
    };
    out.extend_from_slice(b": ");
    if !style.all && !plain::is_printable(text) {
        out.extend_from_slice(plain::blob(text.len()).as_bytes());
        out.push(b'\n');
        return;
    }
    let colours = if style.colour {
        plain::colours(entry.level())
    } else {
        ("", "")
    };
    let spans = style.spans.as_ref().filter(|_| style.colour);
    let spans = spans.map_or(Vec::new(), |spans| spans(text));
    let columns = if style.all { 0 } else { style.columns };
    let line = |line: &[u8], start: usize, out: &mut Vec<u8>| match cut(line, indent, columns) {
        None => plain::painted(line, start, colours, &spans, style, out),
        Some(kept) => {
            plain::painted(kept, start, colours, &spans, style, out);
            out.extend_from_slice("…".as_bytes());
        }
    };
    plain::lines(text, indent, line, out);
}

/// What of a line has room before the mark that says that it was cut; `None` if all has.
fn cut(line: &[u8], indent: usize, columns: usize) -> Option<&[u8]> {
    if columns == 0 {
        return None;
    }
    let room = columns.saturating_sub(indent).max(1);
    let text = std::str::from_utf8(line).ok()?;
    text.char_indices().nth(room)?;
    let (end, _) = text.char_indices().nth(room - 1)?;
    Some(&line[..end])
}

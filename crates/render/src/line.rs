//! `-o line`, for pipes: `2026-03-02T00:02:32.465922Z hostname app: message key=value…`.
//!
//! One record a line, UTC, without colours, nothing cut. Parts that a record does not have are
//! left out. Fields that the message shows are left out where it is the line they stand in, as that
//! of an access log is; so is its header where the line came by syslog.

use std::borrow::Cow;

use logpond_record::Timestamp;

use super::{Render, Row};
use logpond_host::terminal::text::{write_pair, write_safe};

/// Fields that stand before the message.
pub(super) const HEAD: [&str; 2] = ["hostname", "app"];

/// See the module.
pub(super) struct Line;

impl Render for Line {
    fn row(&mut self, row: &Row<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        if let Some(time) = row.time {
            out.extend_from_slice(utc(time).as_bytes());
        }
        let [hostname, app] = HEAD.map(|name| row.field(name).map(|value| value.to_text()));
        write_head(hostname, app, out);
        let message = row.message_behind(&HEAD);
        if !message.is_empty() {
            out.push(b' ');
            write_safe(message, false, out);
        }
        for (name, value) in row.fields_behind(message, &HEAD) {
            out.push(b' ');
            write_pair(name, value, out);
        }
        if out.get(start) == Some(&b' ') {
            out.remove(start);
        }
        out.push(b'\n');
    }
}

/// Appends ` hostname app:`, or as much of it as there is.
fn write_head(hostname: Option<Cow<'_, [u8]>>, app: Option<Cow<'_, [u8]>>, out: &mut Vec<u8>) {
    for (part, colon) in [(hostname, app.is_none()), (app, true)] {
        if let Some(part) = part {
            out.push(b' ');
            write_safe(&part, false, out);
            if colon {
                out.push(b':');
            }
        }
    }
}

/// RFC 3339 with microseconds, or with nanoseconds where they are not zero.
pub(super) fn utc(time: Timestamp) -> String {
    let text = time.to_string();
    match text.strip_suffix("000Z") {
        Some(short) => format!("{short}Z"),
        None => text,
    }
}

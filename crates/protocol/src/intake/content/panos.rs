//! Logs of Palo Alto Networks' PAN-OS: values that commas part, `1,2026/11/27 00:51:25,0123,TRAFFIC,end,…`.
//!
//! The fields have the names that PAN-OS gives its variables (`$natsrc`, `$session_end_reason`). The description of a
//! system log is its message. Values without a name, and those behind the known ones, are no fields.
//! Source: PAN-OS Administrator's Guide, "Syslog Field Descriptions".

use std::borrow::Cow;

use logpond_record::Value;
use memchr::memchr;

use crate::intake::logfmt;
use crate::intake::outline::Outline;
use crate::intake::sketch::Parts;

/// Start of all logs but for the date.
pub(super) const START: &[u8] = b"1,20";

/// The place of the type, and the fewest values of a log.
const TYPE_AT: usize = 3;
const VALUES_MIN: usize = 8;

/// The most values that are looked at.
const VALUES_MAX: usize = 128;

/// Values that all logs begin with; no name, no field.
const HEAD: [&str; 7] = [
    "",
    "receive_time",
    "serial",
    "type",
    "subtype",
    "",
    "time_generated",
];

/// Values of sessions behind these, up to the action.
const SESSION: [&str; 24] = [
    "src",
    "dst",
    "natsrc",
    "natdst",
    "rule",
    "srcuser",
    "dstuser",
    "app",
    "vsys",
    "from",
    "to",
    "inbound_if",
    "outbound_if",
    "logset",
    "",
    "sessionid",
    "repeatcnt",
    "sport",
    "dport",
    "natsport",
    "natdport",
    "flags",
    "proto",
    "action",
];

const TRAFFIC: [&str; 24] = [
    "bytes",
    "bytes_sent",
    "bytes_received",
    "packets",
    "start",
    "elapsed",
    "category",
    "",
    "seqno",
    "actionflags",
    "srcloc",
    "dstloc",
    "",
    "pkts_sent",
    "pkts_received",
    "session_end_reason",
    "dg_hier_level_1",
    "dg_hier_level_2",
    "dg_hier_level_3",
    "dg_hier_level_4",
    "vsys_name",
    "device_name",
    "action_source",
    "src_uuid",
];

const THREAT: [&str; 33] = [
    "misc",
    "threatid",
    "category",
    "severity",
    "direction",
    "seqno",
    "actionflags",
    "srcloc",
    "dstloc",
    "",
    "contenttype",
    "pcap_id",
    "filedigest",
    "cloud",
    "url_idx",
    "user_agent",
    "filetype",
    "xff",
    "referer",
    "sender",
    "subject",
    "recipient",
    "reportid",
    "dg_hier_level_1",
    "dg_hier_level_2",
    "dg_hier_level_3",
    "dg_hier_level_4",
    "vsys_name",
    "device_name",
    "",
    "src_uuid",
    "dst_uuid",
    "http_method",
];

const SYSTEM: [&str; 16] = [
    "vsys",
    "eventid",
    "object",
    "",
    "",
    "module",
    "severity",
    "message",
    "seqno",
    "actionflags",
    "dg_hier_level_1",
    "dg_hier_level_2",
    "dg_hier_level_3",
    "dg_hier_level_4",
    "vsys_name",
    "device_name",
];

const CONFIG: [&str; 9] = [
    "host",
    "vsys",
    "cmd",
    "admin",
    "client",
    "result",
    "path",
    "seqno",
    "actionflags",
];

/// The tables of values behind the head, by the type of the log.
const TYPES: [(&str, [&[&str]; 2]); 4] = [
    ("TRAFFIC", [&SESSION, &TRAFFIC]),
    ("THREAT", [&SESSION, &THREAT]),
    ("SYSTEM", [&SYSTEM, &[]]),
    ("CONFIG", [&CONFIG, &[]]),
];

/// True for a line that begins as a log of PAN-OS.
pub(super) fn is_candidate(line: &[u8]) -> bool {
    line.starts_with(START)
        && line.get(6) == Some(&b'/')
        && line.get(12) == Some(&b' ')
        && line.get(21) == Some(&b',')
}

/// Reads the values of a log.
pub(super) fn read<'a>(text: &'a str, outline: &mut Outline) -> Option<Parts<'a>> {
    outline.clear();
    let mut parts = Parts::new(64);
    let mut names = HEAD.iter().copied().chain(tables(text));
    let (mut at, mut count) = (0, 0);
    for _ in 0..VALUES_MAX {
        let span = value(text, at)?;
        let name = names.next().unwrap_or_default();
        let written = &text[span.0..span.1];
        // A quote in quotes is written twice.
        let is_plain = !(span.0 > at && written.contains('"'));
        if !name.is_empty() && !written.is_empty() && is_plain {
            outline.add(
                &mut parts,
                name.as_bytes(),
                text,
                span,
                read_value(name, written),
            );
        }
        count += 1;
        // Behind the quote that the value stands before.
        at = span.1 + usize::from(span.0 > at);
        if at == text.len() {
            break;
        }
        at += 1;
    }
    (count >= VALUES_MIN).then_some(parts)
}

/// The names behind the head.
fn tables(text: &str) -> impl Iterator<Item = &'static str> + use<> {
    let kind = text.split(',').nth(TYPE_AT).unwrap_or_default();
    let row = TYPES.iter().find(|(name, _)| *name == kind);
    let tables = row.map_or([&[][..], &[][..]], |(_, tables)| *tables);
    tables.into_iter().flatten().copied()
}

/// Numbers are numbers, but for serial numbers and names.
fn read_value<'a>(name: &str, written: &'a str) -> (Value<'a>, u8, bool) {
    const TEXTS: [&str; 6] = ["serial", "rule", "srcuser", "dstuser", "misc", "message"];
    match logfmt::bare_value(written) {
        read @ (Value::Int(_), ..) if !TEXTS.contains(&name) => read,
        _ => (Value::Str(Cow::Borrowed(written)), b't', true),
    }
}

/// The place of a value, without its quotes; `None` if anything but a comma follows it.
fn value(text: &str, at: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    if bytes.get(at) != Some(&b'"') {
        let length = memchr(b',', &bytes[at..]).unwrap_or(bytes.len() - at);
        return Some((at, at + length));
    }
    let start = at + 1;
    let mut end = start;
    loop {
        end += memchr(b'"', &bytes[end..])?;
        match bytes.get(end + 1) {
            Some(b'"') => end += 2,
            Some(b',') | None => return Some((start, end)),
            Some(_) => return None,
        }
    }
}

//! Records of the kernel's audit system, as lines of text.
//!
//! ```text
//! node=ash type=SYSCALL msg=audit(1772409600.123:456): arch=c000003e syscall=59 comm="cat" key=(null)␝UID="root"
//! type=USER_AUTH msg=audit(1772409600.123:457): pid=7 uid=0 msg='op=login acct="root" res=success'
//! audit: type=1400 audit(1772409600.123:458): avc:  denied  { read } for  pid=7 name="x"
//! ```
//!
//! The first two are what auditd and its plugins write, the last is what the kernel prints where no
//! auditd runs. Fields have journald's names (systemd.journal-fields(7)):
//!
//! | in the line | field |
//! | --- | --- |
//! | the type, its number, the number of the event | `_AUDIT_TYPE_NAME`, `_AUDIT_TYPE`, `_AUDIT_ID` |
//! | `pid`, `auid`, `comm` and what else journald names | `_PID`, `_AUDIT_LOGINUID`, `_COMM`, … |
//! | all others that the kernel says | `_AUDIT_FIELD_` and the key in capitals |
//! | those in `msg='…'`, which a program says | `AUDIT_FIELD_` and the key in capitals |
//! | those in capitals behind 0x1D, auditd's words for numbers | `_AUDIT_NAME_` and the key |
//!
//! What a program could have chosen freely the kernel writes in quotes or, where these would not do,
//! as hexadecimal digits without quotes; these are read. Numbers are read where a field is one by its
//! meaning; elsewhere digits may be hexadecimal. All records of an event have its number and its time.

pub mod netlink;
mod record_types;

use std::borrow::Cow;

use logpond_record::{Assumption, Value};
use memchr::{memchr, memchr2, memrchr};

use super::outline::{BODY_PREFIX, Outline};
use super::sketch::Parts;
use super::timestamps::unix_time;
use super::{Beside, logfmt};

const TYPE_FIELD: &str = "_AUDIT_TYPE";
const TYPE_NAME_FIELD: &str = "_AUDIT_TYPE_NAME";
const ID_FIELD: &str = "_AUDIT_ID";
const NODE_FIELD: &str = "hostname";

/// What `denied` and the permissions are called in messages of SELinux, by ausearch.
const RESULT_KEY: &[u8] = b"seresult";
const PERMISSIONS_KEY: &[u8] = b"seperms";

/// What is no pair.
const TEXT_KEY: &[u8] = b"text";

/// What the kernel prints before a record.
const PRINTED: &[u8] = b"audit: ";

/// Separates what auditd adds.
const SEPARATOR: u8 = 0x1d;

/// The longest name of a host (RFC 1035, section 2.3.4).
const NODE_BYTES_MAX: usize = 253;

/// The longest name of a type, and more.
const TYPE_BYTES_MAX: usize = 48;

/// Digits of the longest number that fits 64 bits.
const DIGITS_MAX: usize = 20;

/// The longest word for what SELinux decided, and more.
const DECISION_BYTES_MAX: usize = 64;

/// Keys that have names of their own.
const NAMED: [(&[u8], &str); 15] = [
    (b"pid", "_PID"),
    (b"ppid", "_PPID"),
    (b"uid", "_UID"),
    (b"euid", "_EUID"),
    (b"fsuid", "_FSUID"),
    (b"gid", "_GID"),
    (b"egid", "_EGID"),
    (b"fsgid", "_FSGID"),
    (b"tty", "_TTY"),
    (b"ses", "_AUDIT_SESSION"),
    (b"auid", "_AUDIT_LOGINUID"),
    (b"subj", "_SELINUX_CONTEXT"),
    (b"comm", "_COMM"),
    (b"exe", "_EXE"),
    (b"proctitle", "_CMDLINE"),
];

/// Keys whose values are decimal numbers.
const NUMBERS: [&[u8]; 27] = [
    b"pid",
    b"ppid",
    b"uid",
    b"euid",
    b"suid",
    b"fsuid",
    b"gid",
    b"egid",
    b"sgid",
    b"fsgid",
    b"auid",
    b"ses",
    b"ouid",
    b"ogid",
    b"oauid",
    b"oses",
    b"opid",
    b"old-auid",
    b"old-ses",
    b"syscall",
    b"exit",
    b"items",
    b"item",
    b"argc",
    b"ino",
    b"inode",
    b"permissive",
];

/// Keys whose values a program may have chosen: without quotes they are hexadecimal digits.
const CHOSEN: [&[u8]; 24] = [
    b"comm",
    b"ocomm",
    b"exe",
    b"proctitle",
    b"name",
    b"path",
    b"cwd",
    b"dir",
    b"file",
    b"key",
    b"acct",
    b"cmd",
    b"data",
    b"watch",
    b"vm",
    b"device",
    b"dev",
    b"grp",
    b"new_group",
    b"new-disk",
    b"old-disk",
    b"new-fs",
    b"old-fs",
    b"root_dir",
];

/// Who says a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sayer {
    Kernel,
    Program,
    Auditd,
}

impl Sayer {
    fn prefix(self) -> &'static [u8] {
        match self {
            Sayer::Kernel => b"_AUDIT_FIELD_",
            Sayer::Program => b"AUDIT_FIELD_",
            Sayer::Auditd => b"_AUDIT_NAME_",
        }
    }
}

/// The most bytes of a time and an id.
const STAMP_BYTES_MAX: usize = 48;

/// What a record begins with: places in the line.
struct Head {
    node: Option<(usize, usize)>,
    kind: (usize, usize),
    time: (usize, usize),
    id: (usize, usize),
    /// Where its fields begin.
    body: usize,
}

/// Whether a line begins like a record.
pub(crate) fn is_candidate(line: &[u8]) -> bool {
    begins_like_one(line) && head(line).is_some()
}

/// Whether the first bytes are those of a record, which costs other lines next to nothing.
fn begins_like_one(line: &[u8]) -> bool {
    matches!(
        line,
        [b't', b'y', b'p', b'e', b'=', ..]
            | [b'n', b'o', b'd', b'e', b'=', ..]
            | [b'a', b'u', b'd', b'i', b't', b':', ..]
    )
}

/// Whether a field of this name is said by records only, and not by an intake of a sender.
pub(crate) fn is_own_field(name: &[u8]) -> bool {
    let whole = [TYPE_FIELD, TYPE_NAME_FIELD, ID_FIELD];
    whole.iter().any(|own| own.as_bytes() == name)
        || [Sayer::Kernel, Sayer::Auditd]
            .iter()
            .any(|sayer| name.starts_with(sayer.prefix()))
}

/// What follows of a record: when it happened, and the number of its type or the name, whichever is
/// not in the line. Nothing of any other line.
pub(crate) fn beside<'a>(text: &str) -> Beside<'a> {
    let bytes = text.as_bytes();
    let Some(head) = begins_like_one(bytes).then(|| head(bytes)).flatten() else {
        return Beside::default();
    };
    let kind = &text[head.kind.0..head.kind.1];
    let kind = match kind.parse() {
        Ok(number) => record_types::name_of(number)
            .map(|name| (TYPE_NAME_FIELD, Value::Str(Cow::Borrowed(name)))),
        Err(_) => {
            record_types::number_of(kind).map(|number| (TYPE_FIELD, Value::Int(number.into())))
        }
    };
    let time = unix_time(&bytes[head.time.0..head.time.1]);
    Beside {
        fields: kind
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect(),
        time: time.map(|time| (time, Assumption::Nothing)),
        ..Beside::default()
    }
}

/// Reads a record; `None` if it is none.
pub(crate) fn read<'a>(text: &'a str, outline: &mut Outline) -> Option<Parts<'a>> {
    read_as(text, outline, b"")
}

/// Reads a record of a sender that the kernel has named: what would be named as the sender is gets
/// the prefix of fields in messages.
pub(crate) fn read_of_sender<'a>(text: &'a str, outline: &mut Outline) -> Option<Parts<'a>> {
    read_as(text, outline, BODY_PREFIX.as_bytes())
}

fn read_as<'a>(
    text: &'a str,
    outline: &mut Outline,
    named_prefix: &'static [u8],
) -> Option<Parts<'a>> {
    let head = head(text.as_bytes())?;
    outline.clear();
    // The kernel's fields come before what a program says of itself.
    outline.let_first_count();
    let kind = &text[head.kind.0..head.kind.1];
    let mut reader = Reader {
        text,
        outline,
        parts: Parts::new(40),
        name: Vec::with_capacity(64),
        named_prefix,
        has_arguments: matches!(kind, "EXECVE" | "1309"),
    };
    reader.head(&head);
    reader.fields(head.body, text.trim_ascii_end().len(), Sayer::Kernel);
    Some(reader.parts)
}

fn head(line: &[u8]) -> Option<Head> {
    let mut at = if line.starts_with(PRINTED) {
        PRINTED.len()
    } else {
        0
    };
    let mut node = None;
    if line[at..].starts_with(b"node=") {
        let name = word(line, at + b"node=".len(), NODE_BYTES_MAX)?;
        at = name.1 + 1;
        node = Some(name);
    }
    let kind = word(line, behind(line, at, b"type=")?, TYPE_BYTES_MAX)?;
    at = kind.1 + 1;
    at = behind(line, at, b"msg=").unwrap_or(at);
    at = behind(line, at, b"audit(")?;
    let (time, id, body) = stamp(line, at).or_else(|| interpreted_stamp(line, at))?;
    Some(Head {
        node,
        kind,
        time,
        id,
        body,
    })
}

/// A part of a line.
type Span = (usize, usize);

/// Time and id, `1795740685.818:42):`, and the place behind them.
fn stamp(line: &[u8], at: usize) -> Option<(Span, Span, usize)> {
    let seconds = digits(line, at)?;
    let millis = digits(line, behind(line, seconds.1, b".")?)?;
    let id = digits(line, behind(line, millis.1, b":")?)?;
    Some(((seconds.0, millis.1), id, behind(line, id.1, b"):")?))
}

/// The same as `ausearch -i` prints them, by the locale: `11/27/26 00:51:25.818:42) : `.
fn interpreted_stamp(line: &[u8], at: usize) -> Option<(Span, Span, usize)> {
    let head = line.get(at..)?;
    let close = at + memchr(b')', &head[..head.len().min(STAMP_BYTES_MAX)])?;
    let colon = at + memrchr(b':', &line[at..close])?;
    let id = digits(line, colon + 1).filter(|id| id.1 == close)?;
    let body = behind(line, close, b") :").or_else(|| behind(line, close, b"):"))?;
    let time = &line[at..colon];
    let is_clock = |byte: &u8| byte.is_ascii_alphanumeric() || b"/.:- ".contains(byte);
    let is_one = time.contains(&b' ') && time.contains(&b':') && time.iter().all(is_clock);
    is_one.then_some(((at, colon), id, body))
}

/// The place behind a text that stands at a place.
fn behind(line: &[u8], at: usize, text: &[u8]) -> Option<usize> {
    line.get(at..)?.starts_with(text).then_some(at + text.len())
}

/// A word that a space ends.
fn word(line: &[u8], at: usize, bytes_max: usize) -> Option<(usize, usize)> {
    let rest = line.get(at..)?;
    let bytes = memchr(b' ', &rest[..rest.len().min(bytes_max + 1)])?;
    let is_word = bytes > 0 && rest[..bytes].iter().all(u8::is_ascii_graphic);
    is_word.then_some((at, at + bytes))
}

fn digits(line: &[u8], at: usize) -> Option<(usize, usize)> {
    let found = line.get(at..)?.iter().take(DIGITS_MAX);
    let count = found.take_while(|byte| byte.is_ascii_digit()).count();
    (count > 0).then_some((at, at + count))
}

/// What stands between two places, without white space around it.
fn trimmed(text: &str, from: usize, end: usize) -> (usize, usize) {
    let inside = &text[from..end];
    let start = end - inside.trim_ascii_start().len();
    (start, start + inside.trim_ascii().len())
}

/// Bytes of a key that a `=` follows.
fn key_bytes(text: &[u8]) -> Option<usize> {
    let is_in_key = |byte: &&u8| {
        byte.is_ascii_alphanumeric() || matches!(**byte, b'_' | b'-' | b'.' | b'[' | b']')
    };
    let bytes = text.iter().take_while(is_in_key).count();
    (bytes > 0 && text.get(bytes) == Some(&b'=')).then_some(bytes)
}

struct Reader<'o, 'a> {
    text: &'a str,
    outline: &'o mut Outline,
    parts: Parts<'a>,
    /// The name of the field under way.
    name: Vec<u8>,
    /// What stands before the names that journald has for a process.
    named_prefix: &'static [u8],
    /// Whether fields are a program's arguments.
    has_arguments: bool,
}

impl<'a> Reader<'_, 'a> {
    fn head(&mut self, head: &Head) {
        if let Some(node) = head.node {
            self.add_as(NODE_FIELD, node, ValueReading::Text);
        }
        let kind = &self.text[head.kind.0..head.kind.1];
        match kind.parse::<u16>() {
            Ok(_) => self.add_as(TYPE_FIELD, head.kind, ValueReading::Number),
            Err(_) => self.add_as(TYPE_NAME_FIELD, head.kind, ValueReading::Text),
        }
        self.add_as("_time", head.time, ValueReading::Text);
        self.add_as(ID_FIELD, head.id, ValueReading::Number);
    }

    /// Takes what stands between two places.
    fn fields(&mut self, from: usize, end: usize, sayer: Sayer) {
        let bytes = self.text.as_bytes();
        let mut sayer = sayer;
        let mut at = self.decision(from, end, sayer);
        // Each round takes a byte at least.
        while at < end {
            at = match (bytes[at], sayer) {
                (b' ' | b',', _) => at + 1,
                (SEPARATOR, Sayer::Kernel) => {
                    sayer = Sayer::Auditd;
                    at + 1
                }
                _ => match key_bytes(&bytes[at..end]) {
                    Some(key) => {
                        if sayer == Sayer::Kernel && is_word_of_auditd(&bytes[at..at + key]) {
                            sayer = Sayer::Auditd;
                        }
                        self.pair(at, at + key, end, sayer)
                    }
                    None => self.words(at, end, sayer),
                },
            };
        }
    }

    /// Takes `avc:  denied  { read } for`; gives the place behind it.
    fn decision(&mut self, from: usize, end: usize, sayer: Sayer) -> usize {
        let bytes = self.text.as_bytes();
        let found = || {
            let skip = |at: usize| at + bytes[at..end].iter().take_while(|b| **b == b' ').count();
            let start = skip(behind(&bytes[..end], skip(from), b"avc:")?);
            let result = word(&bytes[..end], start, DECISION_BYTES_MAX)?;
            let open = behind(&bytes[..end], skip(result.1), b"{")?;
            let close = open + memchr(b'}', &bytes[open..end])?;
            Some((result, trimmed(self.text, open, close), close + 1))
        };
        let Some((result, permissions, after)) = found() else {
            return from;
        };
        self.add(RESULT_KEY, result, sayer, ValueReading::Text);
        self.add(PERMISSIONS_KEY, permissions, sayer, ValueReading::Text);
        let for_whom = bytes[after..end].iter().take_while(|b| **b == b' ').count();
        behind(&bytes[..end], after + for_whom, b"for ").unwrap_or(after)
    }

    /// Takes a pair whose key stands between two places; gives the place behind it.
    fn pair(&mut self, key: usize, equals: usize, end: usize, sayer: Sayer) -> usize {
        let bytes = self.text.as_bytes();
        let name = &bytes[key..equals];
        let start = equals + 1;
        let rest = &bytes[start..end];
        let first = rest.first();
        if first == Some(&b'\'') && name == b"msg" && sayer == Sayer::Kernel {
            let said = &rest[..memchr(SEPARATOR, rest).unwrap_or(rest.len())];
            if let Some(close) = memrchr(b'\'', &said[1..]) {
                self.fields(start + 1, start + 1 + close, Sayer::Program);
                return start + close + 2;
            }
        }
        let closing = match (first, sayer) {
            (Some(b'"'), _) => memchr(b'"', &rest[1..]),
            (Some(b'{'), Sayer::Auditd) => memchr(b'}', &rest[1..]),
            _ => None,
        };
        if let Some(inside) = closing {
            let close = start + 1 + inside;
            let span = match first {
                Some(b'{') => trimmed(self.text, start + 1, close),
                _ => (start + 1, close),
            };
            self.add(name, span, sayer, ValueReading::Text);
            return close + 1;
        }
        let word = &rest[..memchr2(b' ', SEPARATOR, rest).unwrap_or(rest.len())];
        let stop = start + word.strip_suffix(b",").unwrap_or(word).len();
        let reading = match sayer {
            Sayer::Auditd => ValueReading::Text,
            _ if NUMBERS.contains(&name) => ValueReading::Number,
            _ if CHOSEN.contains(&name) || (self.has_arguments && is_argument(name)) => {
                ValueReading::Chosen {
                    has_parts: matches!(name, b"proctitle"),
                }
            }
            _ => ValueReading::Text,
        };
        self.add(name, (start, stop), sayer, reading);
        stop
    }

    /// Takes words up to the next pair as one field; gives the place behind them.
    fn words(&mut self, from: usize, end: usize, sayer: Sayer) -> usize {
        let bytes = self.text.as_bytes();
        let mut stop = from;
        let mut at = from;
        while at < end && bytes[at] != SEPARATOR {
            if bytes[at] == b' ' {
                at += 1;
                continue;
            }
            if at > from && key_bytes(&bytes[at..end]).is_some() {
                break;
            }
            at += memchr2(b' ', SEPARATOR, &bytes[at..end]).unwrap_or(end - at);
            stop = at;
        }
        // A separator where none is expected is a word.
        let stop = stop.max(from + 1);
        self.add(TEXT_KEY, (from, stop), sayer, ValueReading::Text);
        stop
    }

    /// Adds a field by its key.
    fn add(&mut self, key: &[u8], span: (usize, usize), sayer: Sayer, reading: ValueReading) {
        self.name.clear();
        let mut named = NAMED.iter().filter(|_| sayer == Sayer::Kernel);
        match named.find(|(known, _)| *known == key) {
            Some((_, name)) => {
                self.name.extend_from_slice(self.named_prefix);
                self.name.extend_from_slice(name.as_bytes());
            }
            None => {
                self.name.extend_from_slice(sayer.prefix());
                let capital = |byte: &u8| match byte {
                    b'-' => b'_',
                    byte => byte.to_ascii_uppercase(),
                };
                self.name.extend(key.iter().map(capital));
            }
        }
        let read = reading.of(&self.text[span.0..span.1]);
        self.outline
            .add(&mut self.parts, &self.name, self.text, span, read);
    }

    /// Adds a field by its name.
    fn add_as(&mut self, name: &str, span: (usize, usize), reading: ValueReading) {
        let read = reading.of(&self.text[span.0..span.1]);
        let name = name.as_bytes();
        self.outline
            .add(&mut self.parts, name, self.text, span, read);
    }
}

/// Whether a key is one of auditd's, which alone are in capitals: what separates them gets lost where
/// lines are passed on as text.
fn is_word_of_auditd(key: &[u8]) -> bool {
    let is_capital = |byte: &u8| byte.is_ascii_uppercase() || matches!(byte, b'0'..=b'9' | b'_');
    key[0].is_ascii_uppercase() && key.iter().all(is_capital)
}

/// Whether a key is one of a program's arguments: `a0`, or a piece of a long one, `a0[1]`.
fn is_argument(key: &[u8]) -> bool {
    let Some(number) = key.strip_prefix(b"a") else {
        return false;
    };
    let is_in_number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'[' | b']');
    number.first().is_some_and(u8::is_ascii_digit) && number.iter().all(is_in_number)
}

/// How a value is read.
#[derive(Clone, Copy)]
enum ValueReading {
    Text,
    Number,
    /// Hexadecimal digits of text, whose parts NULs may end.
    Chosen {
        has_parts: bool,
    },
}

impl ValueReading {
    /// A value, the letter of its slot's kind, and whether it is written as it would be rendered.
    fn of(self, written: &str) -> (Value<'_>, u8, bool) {
        let as_text = (Value::Str(Cow::Borrowed(written)), b't', true);
        match self {
            ValueReading::Text => as_text,
            ValueReading::Number => match logfmt::bare_value(written) {
                number @ (Value::Int(_), ..) => number,
                _ => as_text,
            },
            ValueReading::Chosen { has_parts } => match decoded(written, has_parts) {
                Some(value) => (value, b't', false),
                None => as_text,
            },
        }
    }
}

/// The text that pairs of hexadecimal digits stand for, as the kernel writes them: capitals.
fn decoded(written: &str, has_parts: bool) -> Option<Value<'static>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    };
    let digits = written.as_bytes();
    if digits.is_empty() || !digits.len().is_multiple_of(2) {
        return None;
    }
    let pairs = digits.chunks_exact(2);
    let bytes: Option<Vec<u8>> = pairs
        .map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
        .collect();
    let mut bytes = bytes?;
    if has_parts {
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        let ends = bytes.iter_mut().filter(|byte| **byte == 0);
        ends.for_each(|byte| *byte = b' ');
    }
    Some(match String::from_utf8(bytes) {
        Ok(text) => Value::Str(Cow::Owned(text)),
        Err(error) => Value::Bytes(Cow::Owned(error.into_bytes())),
    })
}

#[cfg(test)]
mod tests;

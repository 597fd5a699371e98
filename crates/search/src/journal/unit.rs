//! Units: the names that people type, and the records that are about one (`systemd.unit(5)`).

use super::{equal, like};
use crate::query::Filter;

/// What names of units end in.
const SUFFIXES: [&str; 11] = [
    ".service",
    ".socket",
    ".target",
    ".device",
    ".mount",
    ".automount",
    ".swap",
    ".timer",
    ".path",
    ".slice",
    ".scope",
];

/// The message that is written of every core dump.
const COREDUMP: &[u8] = b"fc2e22bc6ee647b6b90729ab34a250b1";

/// The whole name of a unit: paths are devices or mount points, what has no suffix is a service, and
/// what names cannot have is escaped. Patterns stay as they are.
pub fn unit_name(text: &str) -> String {
    if is_pattern(text) || (has_suffix(text) && text.bytes().all(is_plain)) {
        return text.to_owned();
    }
    if let Some(path) = text.strip_prefix('/') {
        let suffix = if path == "dev" || path.starts_with("dev/") {
            ".device"
        } else {
            ".mount"
        };
        let path: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let escaped: Vec<String> = path.iter().map(|part| escape(part, is_of_path)).collect();
        let name = if escaped.is_empty() {
            "-".to_owned()
        } else {
            escaped.join("-")
        };
        return name + suffix;
    }
    let mut name = escape(&text.replace('/', "-"), is_plain);
    if !has_suffix(&name) {
        name.push_str(".service");
    }
    name
}

fn has_suffix(name: &str) -> bool {
    let mut suffixes = SUFFIXES.iter();
    suffixes.any(|suffix| name.len() > suffix.len() && name.ends_with(suffix))
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte)
}

fn is_of_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b":_.".contains(&byte)
}

fn escape(text: &str, is_kept: fn(u8) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, byte) in text.bytes().enumerate() {
        if is_kept(byte) && !(at == 0 && byte == b'.') {
            out.push(char::from(byte))
        } else {
            out.push_str(&format!("\\x{byte:02x}"))
        }
    }
    out
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// What `fnmatch(3)` finds by a pattern, as a regular expression.
fn expression(pattern: &str) -> String {
    let mut out = String::from("^");
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        match c {
            '*' => out.push_str("(?s:.*)"),
            '?' => out.push_str("(?s:.)"),
            '[' => match class(rest.as_str()) {
                Some((class, behind)) => {
                    out.push_str(&class);
                    rest = behind.chars();
                }
                None => out.push_str("\\["),
            },
            c => out.push_str(&regex_syntax::escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    out.push('$');
    out
}

/// The class that text behind a `[` begins with, and what is behind it.
fn class(text: &str) -> Option<(String, &str)> {
    let inner = text.strip_prefix(['!', '^']);
    let body = inner.unwrap_or(text);
    // A bracket that comes first belongs to the class.
    let first = body.chars().next()?.len_utf8();
    let end = first + body.get(first..)?.find(']')?;
    let mut out = String::from(if inner.is_some() { "[^" } else { "[" });
    for (at, c) in body[..end].char_indices() {
        let is_range = c == '-' && at > 0 && at + 1 < end;
        if is_range || c.is_alphanumeric() {
            out.push(c)
        } else {
            out.push('\\');
            out.push(c);
        }
    }
    out.push(']');
    Some((out, &body[end + 1..]))
}

/// Records that this unit wrote, or that the service manager, programs of root, or a core dump wrote about
/// it. `text` is a name or a pattern, as people type it.
pub fn unit(text: &str) -> Filter {
    let name = unit_name(text);
    let root = || equal("_UID", b"0");
    let manager = Filter::or([
        equal("_PID", b"1"),
        equal("_SYSTEMD_CGROUP", b"/init.scope"),
    ]);
    let mut about = vec![
        is("_SYSTEMD_UNIT", &name),
        Filter::and([manager, is("UNIT", &name)]),
        Filter::and([root(), is("OBJECT_SYSTEMD_UNIT", &name)]),
        Filter::and([
            equal("MESSAGE_ID", COREDUMP),
            root(),
            is("COREDUMP_UNIT", &name),
        ]),
    ];
    if name.ends_with(".slice") {
        about.push(is("_SYSTEMD_SLICE", &name));
    }
    Filter::or(about)
}

/// The same for a unit of a user's service manager, whoever the user is.
pub fn user_unit(text: &str) -> Filter {
    let name = unit_name(text);
    let mut about = vec![
        is("_SYSTEMD_USER_UNIT", &name),
        is("USER_UNIT", &name),
        is("OBJECT_SYSTEMD_USER_UNIT", &name),
        is("COREDUMP_USER_UNIT", &name),
    ];
    if name.ends_with(".slice") {
        about.push(is("_SYSTEMD_USER_SLICE", &name));
    }
    Filter::or(about)
}

fn is(field: &str, name: &str) -> Filter {
    if is_pattern(name) {
        like(field, &expression(name), false)
    } else {
        equal(field, name.as_bytes())
    }
}
